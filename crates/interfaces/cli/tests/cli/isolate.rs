//! `isolate check`, compared with what the kernel counts, and `shield`, with where processes may run.

use std::{fs, process::Child, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    desk::{Desk, answer, says},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const CASES: &[Case] = &[
    ("what is counted lies within what the kernel counts around it", &[], counted),
    ("the budget decides the exit status", &[], budget),
    ("the probe watches each CPU, for as long as it says", &[], probed),
    ("bad input is refused", &[], refused),
    ("Ctrl-C ends it with what was counted", &[], interrupted),
    ("the probe of a group runs inside it", &[Need::Groups, Need::Cpus(2)], inside),
    ("shield closes CPUs to all others until unshield", SHIELD, shielded),
    ("unshield names what came after the shield", SHIELD, later),
];

const SHIELD: &[Need] = &[Need::OwnMachine, Need::Plain, Need::Groups, Need::Cpus(4)];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let cpusets: &[Need] = if needs.is_empty() { &[] } else { &[Need::On("cpuset")] };
        let (lacks, world) = (world.lacks(&[needs, cpusets].concat()), world.clone());
        suite::trial(format!("isolate: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// All counts of a CPU's column.
fn sum(file: &str, cpu: usize) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let heading: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    let column = heading.iter().position(|name| *name == format!("CPU{cpu}")).unwrap();
    let row = |line: &str| {
        let counts: Vec<u64> = line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
        if counts.len() >= heading.len() { counts[column] } else { 0 }
    };
    text.lines().skip(1).map(row).sum()
}

fn counted(desk: &mut Desk) {
    let around = || (sum("/proc/interrupts", 0), sum("/proc/softirqs", 0));
    let before = around();
    let report = desk.json("isolate check 0 --for 500ms --no-probe --json", 0);
    let after = around();
    let one = &report["cpus"][0];
    assert_eq!((one["cpu"].as_u64(), one["noise"].is_null()), (Some(0), true));
    let of = |kind: &str| -> u64 {
        let causes = one["causes"].as_array().unwrap().iter().filter(|cause| cause["kind"] == kind);
        causes.map(|cause| cause["count"].as_u64().unwrap()).sum()
    };
    let (interrupts, softirqs) = (of("interrupt"), of("softirq"));
    assert!(interrupts > 0 && interrupts <= after.0 - before.0, "{interrupts} of {}", after.0 - before.0);
    assert!(softirqs <= after.1 - before.1, "{softirqs} of {}", after.1 - before.1);
    let all: f64 = one["causes"].as_array().unwrap().iter().map(|one| one["per_sec"].as_f64().unwrap()).sum();
    assert!((one["per_sec"].as_f64().unwrap() - all).abs() < 1e-6);
    assert!(report["span_sec"].as_f64().unwrap() >= 0.5);
}

fn budget(desk: &mut Desk) {
    let above = desk.ends("isolate check 0 --for 500ms --no-probe --budget 0", 3);
    says(&above, &["above the budget of 0", "per second"]);
    let within = desk.ends("isolate check 0 --for 500ms --no-probe --budget 1e12", 0);
    says(&within, &["within the budget of 1000000000000 interruptions per second"]);
    assert_eq!(
        desk.json("isolate check 0 --for 500ms --no-probe --budget 0 --json", 3)["above_budget"],
        true
    );
    assert!(desk.json("isolate check 0 --for 100ms --no-probe --json", 0)["above_budget"].is_null());
}

fn probed(desk: &mut Desk) {
    // every reading of the clock is a gap of a threshold below its length, and none is longer than the whole
    let report = desk.json("isolate check 0 --for 500ms --threshold 1us --json", 0);
    let noise = &report["cpus"][0]["noise"];
    let number = |name: &str| noise[name].as_f64().unwrap();
    assert_eq!(noise["cpu"], 0);
    assert!((0.0..0.6).contains(&(number("observed_sec") - 0.4)), "{noise}");
    assert!(number("longest_us") <= number("total_us") && number("total_us") <= number("observed_sec") * 1e6);
    assert!(number("gaps") >= 1.0, "{noise}");
    assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{report}");
}

fn refused(desk: &mut Desk) {
    for (line, status, said) in [
        ("isolate check 4096", 2, "CPU 4096 is not online"),
        ("isolate check 3-1", 2, "3-1"),
        ("isolate check 0 --budget x", 2, "expected interruptions per second"),
        ("isolate check 0 --budget -1", 2, "-1"),
        ("isolate check 0 --threshold 0", 2, "expected a length from 1us to 100ms"),
        ("isolate check", 2, "GROUP|CPUS"),
        ("isolate check {g}-nosuch", 1, "{g}-nosuch"),
    ] {
        let (code, out, error) = desk.run(line);
        assert_eq!(code, status, "{line}: {out}{error}");
        says(&error, &[&desk.scene.fill(said)]);
    }
}

fn interrupted(desk: &mut Desk) {
    let child: Child = desk.spawn("isolate check 0 --for 1h --json");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let ours = child.id().to_string();
    // its own process counts once the probe is there
    desk.scene.until("the probe", || {
        let children = fs::read_to_string(format!("/proc/{ours}/task/{ours}/children")).unwrap_or_default();
        let is_probe = |pid: &str| {
            let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.contains("worker\0noise")
        };
        children.split_whitespace().any(is_probe)
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill_process(pid, Signal::INT).unwrap();
    let (code, out, error) = answer(child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["stopped"], true, "{report}");
    assert!(!report["cpus"][0]["noise"].is_null(), "{report}");
}

fn inside(desk: &mut Desk) {
    desk.scene.ok("create {g} -c cpuset");
    desk.scene.ok("set {g} cpuset.cpus=1");
    let report = desk.json("isolate check {g} --for 300ms --json", 0);
    let cpus: Vec<u64> =
        report["cpus"].as_array().unwrap().iter().map(|one| one["cpu"].as_u64().unwrap()).collect();
    assert_eq!((cpus, report["missing"].as_array().unwrap().len()), (vec![1], 0), "{report}");
    assert_eq!(report["group"], desk.scene.group.as_str());
    desk.scene.ok("delete {g}");
}

/// Where a process may run, as the kernel says it.
fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

fn shielded(desk: &mut Desk) {
    let other = desk.scene.start("{p}", &["sleep", "1000"]);
    let before = allowed(other);
    desk.ends("shield 2-3 {s}", 0);
    let outside = allowed(other);
    assert!(!outside.contains('2') && !outside.contains('3') && outside.starts_with("0-1"), "{outside}");
    // one that is born now, and one in the shield
    let born = desk.scene.start("{q}", &["sleep", "1000"]);
    assert_eq!(allowed(born), outside);
    let inside = desk.ends("shield 2-3 {s} -- grep Cpus_allowed_list /proc/self/status", 0);
    says(&inside, &["2-3"]);
    assert_eq!(desk.generations(), 1);
    desk.ends("unshield {s}", 0);
    assert_eq!((allowed(other), allowed(born)), (before.clone(), before));
    let (_, listed, _) = desk.run("list shield");
    assert_eq!(listed, "");
    let (code, _, error) = desk.run("unshield {s}");
    assert_eq!(code, 1);
    says(&error, &["no shield is in effect"]);
}

fn later(desk: &mut Desk) {
    desk.scene.ok("create {g}");
    // on v1 a new group has all CPUs, and the shield would be refused
    desk.scene.ok("set {g} cpuset.cpus=0-1");
    let values = desk.ends("get --values {g} cpuset.cpus memory.max", 0);
    desk.ends("shield 2-3 {s}", 0);
    desk.ends("set {g} cpuset.cpus=1 memory.max=64M {s}", 0);
    let (code, _, error) = desk.run("unshield {s}");
    assert_eq!(code, 1, "{error}");
    says(&error, &["generation 2 came after it", "nothing was changed", "ringfence undo 0 takes both back"]);
    assert_eq!(desk.ends("get --values {g} memory.max", 0), "64M\n");
    desk.run("undo 0 {s}");
    assert_eq!(desk.ends("get --values {g} cpuset.cpus memory.max", 0), values);
    let (_, listed, _) = desk.run("list shield");
    assert_eq!(listed, "");
}
