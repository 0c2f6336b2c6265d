//! Frequencies that power saving lowered, on a copy of the CPUs' directory that only this trial's commands see: an undo gives
//! them back where no daemon runs.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, answer},
    world::{Need, World},
};

const LAYOUT: &str =
    "[power]\nsaving = true\nfrequency = true\nfloor = 1\n[groups.{g}]\n\"pids.max\" = 100\n";
/// As long as the one that saves: a file of a copy is written over, not replaced.
const BEFORE: &str = "schedutil";
const SAVING: &str = "powersave";

type Case = (&'static str, fn(&Copy));

const CASES: &[Case] = &[
    ("frequencies: an undo without a daemon gives back what power saving lowered", undone),
    ("frequencies: a layout without power saving gives them back without a daemon", applied),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    const PROGRAMS: [Need; 3] = [Need::Program("unshare"), Need::Program("mount"), Need::Program("cp")];
    let needs = [&[Need::Groups, Need::On("cpuset"), Need::Plain, Need::Cpus(2)], &PROGRAMS[..]].concat();
    let trial = |&(name, case): &Case| {
        let (lacks, world) = (world.lacks(&needs), world.clone());
        suite::trial(name, lacks, move || case(&Copy::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// The CPUs' directory as a copy, with governors.
struct Copy {
    desk: Desk,
    cpus: usize,
}

impl Copy {
    fn new(world: &Arc<World>, name: &str) -> Copy {
        let desk = Desk::new(world, name);
        desk.write("l.toml", LAYOUT);
        let to = desk.path("cpu");
        let mut command = Command::new("cp");
        command.arg("-RP").arg("/sys/devices/system/cpu").arg(&to).stderr(Stdio::null());
        let _ = command.status().unwrap(); // some files of sysfs can't be read
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let online: units::CpuSet = online.trim().parse().unwrap();
        let copy = Copy { desk, cpus: online.len() };
        for cpu in 0..copy.cpus {
            let file = copy.file(cpu);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file.with_file_name("related_cpus"), format!("{cpu}\n")).unwrap();
            fs::write(file, format!("{BEFORE}\n")).unwrap();
        }
        copy
    }

    fn file(&self, cpu: usize) -> PathBuf {
        self.desk.path(&format!("cpu/cpu{cpu}/cpufreq/scaling_governor"))
    }

    /// Of each CPU.
    fn governors(&self) -> Vec<String> {
        let read = |cpu| fs::read_to_string(self.file(cpu)).unwrap().trim().to_owned();
        (0..self.cpus).map(read).collect()
    }

    /// One of our commands where the copy is the machine's directory.
    fn command(&self, line: &str) -> Command {
        let script = self.desk.scene.fill("mount --bind {d}/cpu /sys/devices/system/cpu && exec \"$@\"");
        let line = self.desk.scene.fill(line);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh", &self.desk.scene.program()]);
        command.args(line.split_whitespace()).stdin(Stdio::null());
        command
    }

    fn ends(&self, line: &str, status: i32) -> String {
        let output: Output = self.command(line).output().unwrap();
        let (code, out, error) = answer(output);
        assert_eq!(code, status, "ringfence {line}\n{out}{error}");
        out
    }

    /// A daemon that saved power, and was killed then.
    fn saved(&self) {
        let mut command = self.command("daemon --layout {d}/l.toml {s} --no-socket --no-strict --check 0");
        let mut daemon: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let saves = || self.governors().iter().any(|governor| governor == SAVING);
        self.desk.scene.until("a CPU that saves energy", saves);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert!(saves(), "a killed daemon gives nothing back");
    }
}

fn undone(copy: &Copy) {
    copy.saved();
    copy.ends("undo 0 {s}", 0);
    assert_eq!(copy.governors(), vec![BEFORE; copy.cpus]);
    assert!(!copy.desk.path("state/elastic/frequencies.json").exists());
}

fn applied(copy: &Copy) {
    copy.saved();
    copy.desk.write("l.toml", "[groups.{g}]\n\"pids.max\" = 100\n");
    copy.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(copy.governors(), vec![BEFORE; copy.cpus]);
    copy.ends("undo 0 {s}", 0);
}
