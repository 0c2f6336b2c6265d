//! `cgrulesengd` without the faults of the reference's: every rule is for a copy of a program that nobody else runs, so
//! that no other process of the machine is ever moved.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    libcgroup::{is_in, quiet},
    world::{Need, Scene, Ways, World},
};

type Case = fn(&mut Scene);

const PIDS: &[&[Need]] = &[&[Need::V1("pids")], &[Need::V2("pids")]];
const TWO: &[&[Need]] = &[&[Need::V1("cpu"), Need::V1("pids")]];

const CASES: &[(&str, Ways, Case)] = &[
    ("fault 4: an open quote is an error with its place, at the start and at a reload", PIDS, open_quote),
    ("fault 4: a `%` line is for the user and program of the line above", TWO, ditto),
    ("fault 5: SIGUSR1 reads the templates and kills nobody", PIDS, templates),
    ("fault 5: a bad reload leaves the rules in force", PIDS, bad_reload),
    ("it goes to the background once it is ready", PIDS, background),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, ways, case): &(&'static str, Ways, Case)| {
        let (lacks, world) = (world.lacks_ways(ways), world.clone());
        suite::trial(format!("cgrulesengd: {name}"), lacks, move || case(&mut Scene::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// An `/etc` with rules for a program of its own.
struct Etc {
    directory: tempfile::TempDir,
    program: PathBuf,
    running: Vec<Child>,
}

impl Etc {
    fn new(scene: &Scene) -> Etc {
        let directory = tempfile::Builder::new().prefix("rf-test-cgrulesengd").tempdir().unwrap();
        let program = directory.path().join(format!("{}-sleep", scene.group));
        let places = std::env::var("PATH").unwrap();
        let sleep = places.split(':').map(|at| Path::new(at).join("sleep")).find(|file| file.is_file());
        fs::copy(sleep.unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Etc { directory, program, running: Vec::new() }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// `{g}` is the scene's group, `{p}` the program.
    fn write(&self, scene: &Scene, file: &str, text: &str) {
        let text = scene.fill(text).replace("{p}", self.program.to_str().unwrap());
        fs::write(self.directory.path().join(file), text).unwrap();
    }

    fn command(&self, scene: &Scene, words: &[&str]) -> Command {
        let mut command = Command::new(scene.program());
        command.arg("cgrulesengd").args(words).arg("--etc").arg(self.directory.path());
        command.arg("-v").arg("-f").arg(self.directory.path().join("log")).stdin(Stdio::null());
        command
    }

    /// The daemon, ready.
    fn daemon(&self, scene: &Scene) -> Daemon {
        let started = daemon::wait_for_ready(&mut self.command(scene, &["-n"])).unwrap();
        Daemon(started.unwrap_or_else(|ended| panic!("{ended:?}\n{}", self.log())))
    }

    fn start(&mut self) -> u32 {
        let child = Command::new(&self.program).arg("600").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.running.push(child);
        pid
    }

    fn wait_for_log(&self, scene: &Scene, text: &str, times: usize) {
        scene.until(text, || self.log().matches(text).count() >= times);
    }
}

impl Drop for Etc {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

struct Daemon(Child);

impl Daemon {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn expect_in(scene: &Scene, pid: u32, controller: &str, group: &str) {
    let group = scene.fill(group);
    scene.until(&format!("{pid} in {controller}:{group}"), || is_in(pid, controller, &group));
}

const OPEN: &str = "# a comment\n*:\"{p} pids {g}/db\n";

fn open_quote(scene: &mut Scene) {
    let mut etc = Etc::new(scene);
    quiet(scene, "cgcreate -g pids:{g}/db");
    etc.write(scene, "cgrules.conf", OPEN);
    let output = etc.command(scene, &["-n"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_some_and(|code| code != 0), "an end of its own: {output:?}");
    assert!(error.contains("cgrules.conf:2:") && error.contains("quote"), "{error}");

    etc.write(scene, "cgrules.conf", "*:\"{p}\" pids {g}/db\n");
    let mut daemon = etc.daemon(scene);
    etc.write(scene, "cgrules.conf", OPEN);
    daemon.signal(Signal::USR2);
    etc.wait_for_log(scene, "cgrules.conf:2:", 1);
    let pid = etc.start();
    expect_in(scene, pid, "pids", "{g}/db");
    assert!(daemon.is_alive());
}

fn ditto(scene: &mut Scene) {
    let mut etc = Etc::new(scene);
    quiet(scene, "cgcreate -g cpu:{g}/share -g pids:{g}/count");
    etc.write(scene, "cgrules.conf", "*:{p} cpu {g}/share\n% pids {g}/count\n");
    let before = etc.start();
    let _daemon = etc.daemon(scene);
    let after = etc.start();
    for pid in [before, after] {
        expect_in(scene, pid, "cpu", "{g}/share");
        expect_in(scene, pid, "pids", "{g}/count");
    }
}

fn templates(scene: &mut Scene) {
    let mut etc = Etc::new(scene);
    quiet(scene, "cgcreate -g pids:{g}");
    let template = |max: u32| format!("template {{g}}/%P {{ pids {{ pids.max = {max}; }} }}\n");
    etc.write(scene, "cgrules.conf", "*:{p} pids {g}/%P\n");
    etc.write(scene, "cgconfig.conf", &template(70));
    let mut daemon = etc.daemon(scene);
    let held = |etc: &mut Etc| {
        let pid = etc.start();
        let group = format!("{}/{pid}", scene.group);
        expect_in(scene, pid, "pids", &group);
        scene.ok(&format!("get --values {group} pids.max")).trim().to_owned()
    };
    assert_eq!(held(&mut etc), "70");
    etc.write(scene, "cgconfig.conf", &template(71));
    daemon.signal(Signal::USR1);
    etc.wait_for_log(scene, " reloaded", 1);
    assert_eq!(held(&mut etc), "71");
    etc.write(scene, "cgconfig.conf", "template {g}/%P { pids { pids.max = 72; }\n");
    daemon.signal(Signal::USR1);
    etc.wait_for_log(scene, "reload failed, still using the old configuration", 1);
    assert_eq!(held(&mut etc), "71");
    assert!(daemon.is_alive());
}

fn bad_reload(scene: &mut Scene) {
    let mut etc = Etc::new(scene);
    quiet(scene, "cgcreate -g pids:{g}/db");
    etc.write(scene, "cgrules.conf", "*:{p} pids {g}/db\n");
    let mut daemon = etc.daemon(scene);
    for (index, text) in ["* pids\n", "nobody-is-called-so-here:x nosuch {g}/db\n", "%\n"].iter().enumerate()
    {
        etc.write(scene, "cgrules.conf", text);
        daemon.signal(Signal::USR2);
        etc.wait_for_log(scene, "reload failed, still using the old configuration", index + 1);
        let pid = etc.start();
        expect_in(scene, pid, "pids", "{g}/db");
    }
    assert!(daemon.is_alive());
}

fn background(scene: &mut Scene) {
    let mut etc = Etc::new(scene);
    quiet(scene, "cgcreate -g pids:{g}/db");
    etc.write(scene, "cgrules.conf", "*:{p} pids {g}/db\n");
    let before = etc.start();
    let output = etc.command(scene, &[]).output().unwrap();
    let mut left = Left::find(etc.directory.path());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(is_in(before, "pids", &scene.fill("{g}/db")), "when the command returns");
    let pid = left.0.unwrap();
    let after = etc.start();
    expect_in(scene, after, "pids", "{g}/db");
    kill_process(pid, Signal::TERM).unwrap();
    let stat = || fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // nobody may be there to wait for it
    scene.until("it ends", || stat().is_empty() || stat().contains(") Z "));
    left.0 = None;
    assert!(is_in(after, "pids", &scene.fill("{g}/db")), "its end moves nobody");
}

/// The daemon that runs in the background with this `/etc`; killed if it is still there in the end.
struct Left(Option<Pid>);

impl Left {
    fn find(etc: &Path) -> Left {
        let is = |command: &[u8]| {
            let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            words[0] == b"cgrulesengd" && words.contains(&etc.to_str().unwrap().as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid = entry.unwrap().file_name().to_str()?.parse().ok()?;
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            is(&command).then(|| Pid::from_raw(pid).unwrap())
        });
        Left(all.last())
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
