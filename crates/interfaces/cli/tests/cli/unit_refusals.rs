//! Units where they can't be bound: the message names the cause, as it is found on the spot, and what to do.

use std::{fs, path::Path, process::Command, sync::Arc};

use libtest_mimic::Trial;

use crate::{
    desk::{Desk, answer, says},
    units::{Case, NEEDS, of_cases, systemctl},
    world::{Need, World},
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let with: &[Case] = &[
        ("a transient service has its settings until it ends", transient),
        ("without the system bus the reason is named", no_bus),
        ("an ordinary user learns what systemd does not let him do", ordinary_user),
        ("in a container without systemd the units are not there", container),
    ];
    let without: &[Case] = &[("on a machine without systemd the units are not there", plain)];
    let mut trials = of_cases(world, NEEDS, with);
    trials.extend(of_cases(world, &[Need::Groups, Need::Plain, Need::OwnMachine], without));
    trials
}

const LAYOUT: &str = "[groups.{g}]\nunit = \"{u}\"\npids.max = 77\n";

fn desk(world: &Arc<World>, test: &str) -> Desk {
    let mut desk = Desk::new(world, test);
    let unit = format!("{}.service", desk.scene.group);
    desk.scene.name("{u}", &unit);
    desk.write("l.toml", LAYOUT);
    desk.write("p.toml", &LAYOUT.replace("{u}", "{g}*.service"));
    desk
}

/// What a shell says that runs the program in a world of its own.
fn shell(desk: &Desk, script: &str) -> (i32, String, String) {
    let script = desk.scene.fill(script).replace("RINGFENCE", &desk.scene.program());
    answer(Command::new("sh").args(["-c", &script]).output().unwrap())
}

fn transient(world: &Arc<World>) {
    let desk = desk(world, "unit-transient");
    let unit = desk.scene.fill("{u}");
    let start = || {
        let done = Command::new("systemd-run").args(["--quiet", "--unit", &unit, "sleep", "1000"]).status();
        assert!(done.unwrap().success());
    };
    start();
    let limit = || fs::read_to_string(format!("/sys/fs/cgroup/system.slice/{unit}/pids.max")).unwrap();
    let before = limit();
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(limit(), "77\n");
    // a reboot removes the unit, and so it does the file
    let file = format!("systemd/system/{unit}.d/90-ringfence.conf");
    assert!(Path::new("/run").join(&file).exists() && !Path::new("/etc").join(&file).exists());
    systemctl(&["daemon-reload"]);
    assert_eq!(limit(), "77\n");
    desk.ends("status {s}", 0);
    desk.ends("undo {s}", 0);
    assert_eq!(limit(), before);
    assert!(!Path::new("/run").join(&file).parent().unwrap().exists());
    desk.ends("apply {d}/l.toml {s}", 0);
    systemctl(&["stop", &unit]);
    // nothing is left of the unit but its file
    says(&desk.ends("status {s}", 0), &["does not run"]);
    let (code, _, error) = desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 1, "{error}");
    says(&error, &["systemd has no unit", &unit, "hint:"]);
    desk.ends("undo 0 {s}", 0);
    assert!(!Path::new("/run").join(&file).exists());
}

fn no_bus(world: &Arc<World>) {
    let desk = desk(world, "unit-no-bus");
    for (layout, hide, words) in [
        ("l.toml", "mount -t tmpfs none /run/dbus", "there is no /run/dbus/system_bus_socket"),
        ("p.toml", "mount -t tmpfs none /run/dbus", "there is no /run/dbus/system_bus_socket"),
        (
            "l.toml",
            "mount -t tmpfs none /run/dbus && : >/run/dbus/system_bus_socket",
            "the system bus does not answer",
        ),
    ] {
        for command in ["plan", "apply --state {d}/state"] {
            let script = format!("unshare -m sh -c '{hide} && RINGFENCE {command} {{d}}/{layout}'");
            let (code, _, error) = shell(&desk, &script);
            assert_eq!(code, 1, "{error}");
            says(&error, &["cannot reach systemd", words, "hint:", "systemctl start dbus.socket"]);
        }
    }
    // what was set needs no bus to be read
    desk.ends("status {s}", 0);
}

fn ordinary_user(world: &Arc<World>) {
    let desk = desk(world, "unit-user");
    let unit = desk.scene.fill("{u}");
    fs::write(format!("/run/systemd/system/{unit}"), "[Service]\nExecStart=/bin/sleep 1000\n").unwrap();
    systemctl(&["daemon-reload"]);
    systemctl(&["start", &unit]);
    let user = "setpriv --reuid rf --regid rf --clear-groups";
    let script = format!(
        "mkdir {{d}}/own && chown rf {{d}}/own && chmod 755 {{d}} && {user} RINGFENCE apply --state {{d}}/own/state {{d}}/l.toml"
    );
    let (code, _, error) = shell(&desk, &script);
    assert_eq!(code, 1, "{error}");
    says(&error, &["user 1000 may not write", "hint: run the command as root"]);
    let limit = fs::read_to_string(format!("/sys/fs/cgroup/system.slice/{unit}/pids.max")).unwrap();
    assert_ne!(limit, "77\n");
    assert!(!Path::new(&format!("/etc/systemd/system/{unit}.d")).exists());
    systemctl(&["stop", &unit]);
    // who may write the file may still not make systemd read it
    let script = format!(
        "mkdir /etc/systemd/system/{{u}}.d && chown rf /etc/systemd/system/{{u}}.d && {user} RINGFENCE apply --state {{d}}/own/state {{d}}/l.toml"
    );
    let (code, _, error) = shell(&desk, &script);
    // nor to read it once the file is gone again
    assert_eq!(code, 3, "{error}");
    says(
        &error,
        &[
            "systemd does not let this user read its files again",
            "hint: call it as root, or let a polkit rule",
        ],
    );
    assert!(!Path::new(&format!("/etc/systemd/system/{unit}.d/90-ringfence.conf")).exists());
    let _ = fs::remove_dir(format!("/etc/systemd/system/{unit}.d"));
    fs::remove_file(format!("/run/systemd/system/{unit}")).unwrap();
    systemctl(&["daemon-reload"]);
}

fn container(world: &Arc<World>) {
    let desk = desk(world, "unit-container");
    for layout in ["l.toml", "p.toml"] {
        let inside = format!("mount -t tmpfs none /run/systemd && RINGFENCE plan {{d}}/{layout}");
        let script = format!("unshare -m -p -f -C --mount-proc sh -c '{inside}'");
        let (code, _, error) = shell(&desk, &script);
        assert_eq!(code, 1, "{error}");
        says(&error, &["of systemd, which does not run here", "l.toml:2:".trim_start_matches('l'), "hint:"]);
    }
}

fn plain(world: &Arc<World>) {
    let desk = desk(world, "unit-plain");
    for layout in ["l.toml", "p.toml"] {
        desk.ends(&format!("check {{d}}/{layout}"), 0);
        for command in ["plan", "apply --state {d}/state"] {
            let (code, _, error) = desk.run(&format!("{command} {{d}}/{layout}"));
            assert_eq!(code, 1, "{error}");
            says(&error, &["of systemd, which does not run here", "hint: leave out unit"]);
        }
    }
}
