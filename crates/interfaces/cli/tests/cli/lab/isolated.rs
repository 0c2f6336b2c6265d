//! A condition whose group's CPU is isolated, on a machine of the suite's own: the kernel's knobs before, during and after a
//! run, and after kill -9 in one.

use std::{collections::BTreeMap, fs};

use apply::{KnobFiles, MachineKnobs as _};
use rustix::process::Signal;
use settings::knobs::KNOBS;

use super::{Lab, text};

/// The second condition is isolated.
const EXPERIMENT: &str = r#"
name = "isolated"
title = "One CPU without the kernel's own work"
repetitions = 1
duration = "DURATION"
warm-up = "200ms"
steady-within = "200ms"
sample = "0s"
order = "as-written"
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
[group.realtime]
[workload.task]
driver = "cyclic"
priority = 0
group = "realtime"
[[condition]]
name = "plain"
settings.realtime."cpuset.cpus" = "{rt}"
[[condition]]
name = "isolated"
settings.realtime."cpuset.cpus" = "{rt}"
isolate.realtime = "full"
isolate-machine = { stat-interval = "7" }
[[measure]]
name = "cycles"
is = "task.cycles"
"#;
const INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// Every place of every row. Threads come and go.
fn picture() -> BTreeMap<String, String> {
    let seen = KNOBS.iter().flat_map(|knob| KnobFiles::default().look(knob));
    seen.map(|seen| (format!("{} {}", seen.knob, seen.instance), seen.text)).collect()
}

fn assert_as(before: &BTreeMap<String, String>) {
    let now = picture();
    let differ: Vec<_> = before
        .iter()
        .filter_map(|(place, then)| now.get(place).filter(|now| *now != then).map(|now| (place, then, now)))
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
}

fn interval() -> String {
    fs::read_to_string(INTERVAL).unwrap().trim().to_owned()
}

pub fn put_back(lab: &Lab) {
    fs::write(lab.path("isolated.toml"), EXPERIMENT.replace("DURATION", "2s")).unwrap();
    let before = picture();
    let mut running = lab.spawn("run isolated.toml --directory out");
    running.until("run 1 of 2");
    assert_as(&before);
    running.until("run 2 of 2");
    let begun = std::time::Instant::now();
    while interval() != "7" {
        assert!(begun.elapsed().as_secs() < 60, "nothing was set");
    }
    let mask = fs::read_to_string("/proc/irq/default_smp_affinity").unwrap();
    assert_ne!(
        Some(mask.trim()),
        before.get("interrupt-default /proc/irq/default_smp_affinity").map(|text| text.trim())
    );
    let (code, said) = running.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_as(&before);
    let results = lab.json("report out");
    let notes = results["notes"].as_array().unwrap();
    let note = notes.iter().find(|note| note["kind"] == "isolated");
    assert!(note.is_some_and(|note| note["text"].as_str().unwrap().contains("were isolated")), "{notes:?}");
}

pub fn killed(lab: &Lab) {
    let isolates = "name = \"plain\"\nisolate.realtime = \"full\"\nisolate-machine.stat-interval = \"7\"";
    let experiment = EXPERIMENT.replace("DURATION", "300s").replace("name = \"plain\"", isolates);
    fs::write(lab.path("isolated.toml"), experiment).unwrap();
    let before = picture();
    let mut running = lab.spawn("run isolated.toml --directory out");
    running.until("run 1 of 2");
    let begun = std::time::Instant::now();
    while interval() != "7" {
        assert!(begun.elapsed().as_secs() < 60, "nothing was set");
    }
    running.signal(Signal::KILL);
    running.child.wait().unwrap();
    assert_eq!(interval(), "7", "a killed lab puts nothing back by itself");
    let output = lab.run("clean");
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("knobs of isolated CPUs"),
        "{said}{}",
        text(&output.stderr)
    );
    assert_as(&before);
    assert_eq!(lab.ok("clean"), "", "there is nothing left");
}
