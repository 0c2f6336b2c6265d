//! `lab run --move-others` on a machine that nobody else uses: where every program is before, during and after a run
//! whose group has a CPU of its own.

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command},
};

use rustix::{
    process::{Pid, Signal},
    thread::{CpuSet, sched_setaffinity},
};

use super::{Lab, groups_of, text};

/// The last CPU is the real-time group's; busy threads of the other group would like it, too.
const EXPERIMENT: &str = r#"
name = "alone"
title = "One CPU alone"
repetitions = 1
duration = "DURATION"
warm-up = "200ms"
steady-within = "200ms"
sample = "0s"
order = "as-written"
others = "general"
[gates]
foreign-cpu = 1.0
steal = 1.0
retries = 20
[machine]
cpus = 8
needs-cpus = 2
[cpus.rt]
count = 1
from = "last"
[cpus.rest]
from = "before"
before = "rt"
[cpus.all]
[group.general]
[group.realtime]
[workload.task]
driver = "cyclic"
group = "realtime"
[workload.busy]
driver = "busy"
threads = "{all}"
group = "general"
[[condition]]
name = "exclusive"
settings.general."cpuset.cpus" = "{rest}"
settings.realtime."cpuset.cpus" = "{rt}"
settings.realtime."cpuset.cpus.partition" = "root"
[[condition]]
name = "shared"
[[measure]]
name = "others"
is = "general.cpu-on.rt"
[[measure]]
name = "priority"
is = "task.priority"
"#;

/// A program of the machine that sleeps.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn status(&self, key: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_once(':').unwrap().1.trim().to_owned()
    }

    fn cpus(&self) -> String {
        self.status("Cpus_allowed_list")
    }

    fn groups(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cgroup", self.0.id())).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where everything but the kernel's own threads may run and is.
fn everywhere() -> BTreeMap<String, (String, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let row = |pid: u32| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        // one that has no program is the kernel's
        read("cmdline").filter(|line| !line.is_empty())?;
        let status = read("status")?;
        let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list"))?.to_owned();
        Some((pid.to_string(), (cpus, read("cgroup")?)))
    };
    pids.filter_map(row).collect()
}

fn last_cpu() -> usize {
    std::thread::available_parallelism().unwrap().get() - 1
}

/// The note of a kind.
fn note<'r>(results: &'r serde_json::Value, kind: &str) -> Option<&'r serde_json::Value> {
    results["notes"].as_array().unwrap().iter().find(|note| note["kind"] == kind)
}

/// On a kernel with partitions below other groups (Linux 6.7) nothing needs to be moved.
fn closed_by_kernel(lab: &Lab) -> bool {
    note(&lab.json("report out"), "partitions-are-closed").is_some()
}

fn bound(cpu: usize) -> Sleeper {
    let sleeper = Sleeper::new();
    let mut mask = CpuSet::new();
    mask.set(cpu);
    sched_setaffinity(Pid::from_raw(sleeper.0.id().cast_signed()), &mask).unwrap();
    sleeper
}

pub fn moved(lab: &Lab) {
    fs::write(lab.path("alone.toml"), EXPERIMENT.replace("DURATION", "3s")).unwrap();
    let last = last_cpu();
    let (free, bound) = (Sleeper::new(), bound(last));
    let (before, before_all) = (free.groups(), everywhere());

    // not requested: nothing that the user did not name is touched, which is reported where it matters
    let results = lab.json("run alone.toml --directory without");
    assert_eq!(everywhere_known(&before_all), before_all);
    assert!(note(&results, "others-restricted").is_none(), "{}", results["notes"]);
    if let Some(open) = note(&results, "cpus-were-open") {
        assert_eq!(open["can_ask"], true, "{open}");
    }

    let mut running = lab.spawn("run alone.toml --move-others --directory out");
    running.until("run 1 of 2");
    let mut seen = free.cpus();
    // it is moved before the workloads of the first run begin, and back before the second run
    let begun = std::time::Instant::now();
    while seen == format!("0-{last}") && begun.elapsed().as_secs() < 60 && !ended(&mut running.child) {
        std::thread::yield_now();
        seen = free.cpus();
    }
    let (code, said) = running.ended();
    assert_eq!(code, Some(0), "{said}");
    if !closed_by_kernel(lab) {
        let rest = if last == 1 { "0".to_owned() } else { format!("0-{}", last - 1) };
        assert_eq!(seen, rest, "{said}");
        let results = lab.json("report out");
        let restricted = note(&results, "others-restricted").unwrap();
        assert_eq!(restricted["cpus"], rest.as_str(), "{restricted}");
    }
    assert_eq!((free.groups(), free.cpus()), (before, format!("0-{last}")));
    assert_eq!(bound.cpus(), last.to_string(), "its own choice of CPUs is back, too");
    assert_eq!(everywhere_known(&before_all), before_all);
    assert_eq!(groups_of(running.child.id()).len(), 0);

    let results = lab.json("report out");
    let cell = |condition: &str, measure: &str| {
        let cells = results["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["condition"] == condition && cell["measure"] == measure);
        cell.unwrap()["median"].as_f64()
    };
    // the busy threads of the other group used nothing of the CPU, by the kernel's accounts
    assert_eq!(cell("exclusive", "others"), Some(0.0), "{}", results["notes"]);
    assert!(cell("shared", "others").unwrap() > 0.0, "nothing is measured: {}", results["notes"]);
    assert_eq!(cell("exclusive", "priority"), Some(90.0));
}

/// As it is now, of those that were there.
fn everywhere_known(before: &BTreeMap<String, (String, String)>) -> BTreeMap<String, (String, String)> {
    everywhere().into_iter().filter(|(pid, _)| before.contains_key(pid)).collect()
}

fn ended(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

pub fn killed(lab: &Lab) {
    fs::write(lab.path("alone.toml"), EXPERIMENT.replace("DURATION", "300s")).unwrap();
    let last = last_cpu();
    let (free, bound) = (Sleeper::new(), bound(last));
    let (before, before_all) = (free.groups(), everywhere());
    let mut running = lab.spawn("run alone.toml --move-others --directory out");
    running.until("run 1 of 2");
    let begun = std::time::Instant::now();
    // until the real-time task runs, or at the latest after a time in which nothing was moved as nothing need be
    while free.groups() == before && begun.elapsed().as_secs() < 20 {
        std::thread::yield_now();
    }
    let was_moved = free.groups() != before;
    running.signal(Signal::KILL);
    running.child.wait().unwrap();
    if was_moved {
        assert!(free.groups() != before, "a killed lab puts nothing back by itself");
    }
    let output = lab.run("clean");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pid = running.child.id();
    assert!(said.contains(&format!("removed group rf-lab-{pid}\n")), "{said}");
    assert_eq!((free.groups(), free.cpus()), (before, format!("0-{last}")));
    assert_eq!(bound.cpus(), last.to_string());
    assert_eq!(everywhere_known(&before_all), before_all);
    assert_eq!(groups_of(pid).len(), 0);
    assert_eq!(lab.ok("clean"), "", "there is nothing left");
}
