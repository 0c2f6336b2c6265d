//! The packaged unit, really started by systemd: only in a VM under systemd, as the machine's own units and configuration
//! are written. `RINGFENCE` names the program there, and the unit's file is beside it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kernel::GroupName;
use rustix::process::Signal;
use settings::Controller;

use crate::{
    Case,
    world::{Running, World, end, eventually},
};

pub const TRIALS: &[Case] = &[
    (
        "systemd_starts_the_service_once_everybody_is_in_his_group_and_stops_it_with_them_there",
        start_and_stop,
    ),
    ("systemd_sees_the_service_live_and_restarts_it_after_a_kill_or_a_hang", watched),
    ("systemctl_reload_tells_of_a_bad_layout_and_follows_a_good_one", reloaded),
    ("the_sandboxed_service_mounts_for_everybody_records_and_shows_metrics", sandboxed),
];

/// The installed service, and a program of the test's own that its layout puts into a group.
struct Service {
    world: World,
    group: String,
    program: PathBuf,
}

impl Service {
    fn install() -> Service {
        let mut world = World::new();
        let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
        let ringfence = PathBuf::from(std::env::var_os("RINGFENCE").unwrap());
        for link in ["/usr/bin/ringfence", "/usr/sbin/ringfenced"] {
            let _ = fs::remove_file(link);
            symlink(&ringfence, link).unwrap();
        }
        let unit = ringfence.with_file_name("ringfenced.service");
        fs::copy(unit, "/etc/systemd/system/ringfenced.service").unwrap();
        // a hang is to be seen soon, but not where an emulated machine is only slow
        fs::create_dir_all("/etc/systemd/system/ringfenced.service.d").unwrap();
        let sooner = "[Service]\nWatchdogSec=12\nTimeoutAbortSec=12\n[Unit]\nStartLimitIntervalSec=0\n";
        fs::write("/etc/systemd/system/ringfenced.service.d/sooner.conf", sooner).unwrap();
        systemctl(&["daemon-reload"]);
        fs::create_dir_all("/etc/ringfence").unwrap();
        let service = Service { world, group, program };
        service.layout(500, "");
        service
    }

    fn layout(&self, max: u32, more: &str) {
        let (group, program) = (&self.group, self.program.display());
        let text =
            format!("[groups.{group}]\npids.max = {max}\nmatch = [{{ process = \"{program}\" }}]\n{more}");
        fs::write("/etc/ringfence/layout.toml", text).unwrap();
    }

    fn start(&self) -> Running {
        Running::start(&self.program, &["600"])
    }

    fn is_in(&self, process: &Running) -> bool {
        self.world.place(process.pid()).as_deref() == Some(&self.group)
    }

    fn held(&self) -> String {
        let name = GroupName::new(&self.group).unwrap();
        let seat = self.world.host.seat(&name, Controller::Pids).unwrap();
        self.world.host.read(&seat, &name, "pids.max").unwrap().trim().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let told =
                Command::new("journalctl").args(["-u", "ringfenced", "-n", "60", "--no-pager"]).output();
            eprintln!(
                "{}\n{}",
                shown(&["status", "ringfenced"]),
                String::from_utf8_lossy(&told.unwrap().stdout)
            );
        }
        run(&["stop", "ringfenced"]);
        // the group of its layout ends with the world: a generation that has it is nothing that the next test could
        // return to by `undo`; and a log is nothing that it recorded. Only a unit that did not fail is cleaned
        run(&["reset-failed", "ringfenced"]);
        let cleaned = run(&["clean", "--what=state", "--what=logs", "ringfenced"]);
        let _ = fs::remove_dir_all("/etc/ringfence");
        if !std::thread::panicking() {
            assert!(cleaned.status.success(), "{cleaned:?}");
        }
    }
}

fn run(words: &[&str]) -> Output {
    Command::new("systemctl").args(words).output().unwrap()
}

fn systemctl(words: &[&str]) {
    let output = run(words);
    assert!(output.status.success(), "systemctl {words:?}: {output:?}");
}

fn shown(words: &[&str]) -> String {
    String::from_utf8_lossy(&run(words).stdout).trim().to_owned()
}

fn property(name: &str) -> String {
    shown(&["show", "ringfenced", "--value", "--property", name])
}

fn main_pid() -> u32 {
    property("MainPID").parse().unwrap()
}

fn active() -> bool {
    property("ActiveState") == "active" && property("SubState") == "running"
}

fn start_and_stop() {
    let service = Service::install();
    let before = service.start();
    systemctl(&["enable", "ringfenced"]);
    assert!(Path::new("/etc/systemd/system/multi-user.target.wants/ringfenced.service").exists());
    systemctl(&["start", "ringfenced"]);
    assert!(active() && service.is_in(&before), "{}", shown(&["status", "ringfenced"]));
    assert_eq!(service.held(), "500");
    let new = service.start();
    eventually("the new one in its group", || service.is_in(&new));
    let requested = Command::new("/usr/bin/ringfence").arg("reload").output().unwrap();
    assert!(requested.status.success(), "it answers: {requested:?}");
    systemctl(&["stop", "ringfenced"]);
    let ended = (property("ActiveState"), property("Result"), property("NRestarts"));
    assert_eq!(ended, ("inactive".to_owned(), "success".to_owned(), "0".to_owned()));
    assert!(service.is_in(&before) && service.is_in(&new) && service.held() == "500");
    assert!(!Path::new("/run/ringfence/ringfenced.sock").exists());
    systemctl(&["disable", "ringfenced"]);
}

fn watched() {
    let service = Service::install();
    let process = service.start();
    systemctl(&["start", "ringfenced"]);
    let first = main_pid();
    let mut sign = property("WatchdogTimestampMonotonic");
    for _ in 0..3 {
        eventually("a sign of life", || property("WatchdogTimestampMonotonic") != sign);
        sign = property("WatchdogTimestampMonotonic");
    }
    assert_eq!((main_pid(), property("NRestarts").as_str()), (first, "0"));

    end(first, Signal::KILL);
    // as it was left, whether it runs again by now or not
    assert!(service.is_in(&process) && service.held() == "500");
    let meanwhile = service.start();
    eventually("it runs again", || property("NRestarts") == "1" && active());
    let second = main_pid();
    assert_ne!(second, first);
    assert!(service.is_in(&process) && service.is_in(&meanwhile) && service.held() == "500");

    end(second, Signal::STOP);
    eventually("its hang is seen, and it runs again", || property("NRestarts") == "2" && active());
    assert_ne!(main_pid(), second);
    let last = service.start();
    eventually("the new one in its group", || service.is_in(&last));
    assert!(service.is_in(&process) && service.is_in(&meanwhile));
}

fn reloaded() {
    let mut service = Service::install();
    systemctl(&["start", "ringfenced"]);
    let process = service.start();
    eventually("in its group", || service.is_in(&process));
    let first = main_pid();

    service.layout(600, "[groups.nonsense]\npids.max = \"many\"\n");
    let refused = run(&["reload", "ringfenced"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(active() && main_pid() == first && service.held() == "500");

    let (strict, cat) = (service.world.group_name("strict"), service.world.copy("cat", "cat"));
    let more = format!(
        "[groups.{strict}]\npids.max = 400\nmatch = [{{ process = \"{}\", strict = true }}]\n",
        cat.display()
    );
    service.layout(600, &more);
    systemctl(&["reload", "ringfenced"]);
    assert!(active() && main_pid() == first);
    assert_eq!(service.held(), "600", "when the reload returns");
    assert!(service.is_in(&process));
    // the unit's restrictions let the gate of strict rules work
    let client = daemon::socket::client::Client::at("/run/ringfence/ringfenced.sock");
    eventually("a gate", || client.counters().unwrap()["gates"] >= 1);
    for _ in 0..16 {
        let told = Command::new(&cat).arg("/proc/self/cgroup").output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.trim().ends_with(&format!("/{strict}")), "{told}");
    }
}

/// Attack finding 19: the unit is sandboxed and exposed at most 4.0, and everything works in it.
fn sandboxed() {
    let service = Service::install();
    fs::write("/etc/default/ringfenced", "RINGFENCED_OPTIONS=--record --metrics\n").unwrap();
    let jobs = Path::new("/run/rf-jobs");
    service.layout(500, &format!("[mounts]\n\"name=rf-jobs\" = \"{}\"\n", jobs.display()));
    systemctl(&["start", "ringfenced"]);
    let analysed =
        Command::new("systemd-analyze").args(["security", "--no-pager", "ringfenced"]).output().unwrap();
    let analysed = String::from_utf8(analysed.stdout).unwrap();
    let overall = analysed.lines().last().unwrap();
    eprintln!("{overall}");
    let exposure = overall.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap();
    assert!(exposure <= 4.0, "{analysed}");
    let mounts = || fs::read_to_string("/proc/1/mountinfo").unwrap();
    assert!(mounts().contains(" /run/rf-jobs "), "the host sees the mount\n{}", mounts());
    let metrics = || {
        use std::io::{Read, Write};
        let mut text = String::new();
        let stream = std::net::TcpStream::connect(daemon::METRICS);
        let requested = stream.and_then(|mut stream| {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            stream.read_to_string(&mut text)
        });
        requested.is_ok() && text.contains("ringfence_recorder_up 1")
    };
    eventually("metrics of a recorder that records", metrics);
    let mut log = fs::read_dir("/var/log/ringfence").unwrap();
    assert!(log.any(|entry| entry.unwrap().metadata().unwrap().len() > 0));
    // it asks for no more than it needs by default, and says what it lacks for this
    let journal = || {
        let output = Command::new("journalctl").args(["-u", "ringfenced", "--no-pager"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(journal().contains("kills for want of memory are not recorded"), "{}", journal());
    let more = "[Service]\nProtectKernelLogs=no\nCapabilityBoundingSet=CAP_SYSLOG\nDeviceAllow=/dev/kmsg r\n";
    let drop_in = "/etc/systemd/system/ringfenced.service.d/kills.conf";
    fs::write(drop_in, more).unwrap();
    systemctl(&["daemon-reload"]);
    systemctl(&["restart", "ringfenced"]);
    let killed = ["--scope", "-pMemoryMax=16M", "-pMemorySwapMax=0", "tail", "/dev/zero"];
    assert!(!Command::new("systemd-run").args(killed).output().unwrap().status.success());
    let kills = || fs::read_to_string("/var/lib/ringfence/kills/kills.jsonl").unwrap_or_default();
    eventually("a kill that is written down", || kills().contains("\"comm\":\"tail\""));
    let capabilities = fs::read_to_string(format!("/proc/{}/status", main_pid())).unwrap();
    eprintln!("{}", capabilities.lines().find(|line| line.starts_with("CapEff")).unwrap());
    run(&["stop", "ringfenced"]);
    fs::remove_file(drop_in).unwrap();
    systemctl(&["daemon-reload"]);
    fs::remove_file("/etc/default/ringfenced").unwrap();
    let undone = Command::new("/usr/bin/ringfence").args(["undo"]).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    assert!(!mounts().contains(" /run/rf-jobs "));
}
