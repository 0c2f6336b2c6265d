//! Isolated CPUs on a machine of the suite's own, as these steps are about the whole machine: what is moved, what is
//! named, and that everything of the table is as before after an undo, and after kill -9 at any change.

use std::{collections::BTreeMap, fs, process::Command, sync::Arc};

use apply::{KnobFiles, MachineKnobs};
use fake::suite;
use libtest_mimic::Trial;
use settings::knobs::{KNOBS, Per};
use units::CpuSet;

use crate::{
    desk::{Desk, says},
    tracer::{self, Fault, Rule, changes},
    world::{Need, World},
};

type Case = (&'static str, fn(&Desk));

const CASES: &[Case] = &[
    ("isolate: nothing that can move is on the CPU, and an undo leaves all as it was", round),
    ("isolate: another CPU gives the first one back, to threads of one node too", moved),
    ("isolate: what somebody else set is drift, repaired by apply, and stays at an undo", by_others),
    ("isolate: kill -9 at any change leaves all as before", killed),
    ("isolate: a read-only sysctl is refused, and one that became so is named until it goes back", read_only),
    ("isolate: a container's read-only mounts are named once each, with what makes them writable", mounts),
    ("isolate: a CPU that goes offline is named, and all is as before once it is back", offline),
    ("isolate: an undo while a CPU is offline gives that CPU back, too", undone_offline),
    ("isolate: the layout's budget decides the exit status of check", budget),
    ("isolate: a policy of ksoftirqd is set and goes back", policy),
];
/// v1's kernel takes the CPU out of all lists, and gives it back to the root's alone.
const ON_V2: &[Case] = &[(
    "an undo while a CPU is offline leaves that CPU to a group that had no list of its own",
    unlisted_offline,
)];

const LAYOUT: &str = "[groups.{g}]\ncpus = \"1\"\nexclusive = true\nisolate = \"full\"\n[isolate]\n\
    timer-migration = true\nhung-task = true\nstat-interval = 10\nwriteback-interval = true\ncompaction = true\n\
    huge-pages-defrag = true\nkhugepaged-defrag = true\nsame-pages = true\nrt-throttling = true\n\
    nmi-watchdog = true\nsoft-watchdog = true\nnuma-balancing = true\nmachine-checks = true\n";
const ISOLATED: usize = 1;
/// How many of the changes a kill is tried at.
const SAMPLE: usize = 8;
/// More of them, where somebody has the time.
const SAMPLES: &str = "RF_KILLS";

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    // below systemd a group has CPUs of its own only where the kernel has cpuset.cpus.exclusive (6.7)
    let anywhere = [Need::Groups, Need::OwnMachine, Need::Cpus(2), Need::On("cpuset"), Need::Plain];
    let on_v2 = [&anywhere[..], &[Need::V2("cpuset")]].concat();
    let trial = |&(name, case): &Case, needs: &[Need]| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(name, lacks, move || {
            let desk = Desk::new(&world, name);
            desk.write("l.toml", LAYOUT);
            case(&desk);
        })
    };
    let trials = CASES.iter().map(|case| trial(case, &anywhere));
    trials.chain(ON_V2.iter().map(|case| trial(case, &on_v2))).collect()
}

/// Every place of every row, with its text. A thread that came or went since is nobody's.
fn picture() -> BTreeMap<(&'static str, String), String> {
    let seen = KNOBS.iter().flat_map(|knob| {
        let seen = KnobFiles::default().look(knob).into_iter();
        seen.map(|seen| ((knob.name, seen.instance.to_string()), seen.text))
    });
    seen.collect()
}

/// What differs of what was there at both times, and the places of files that came or went.
fn differing(before: &BTreeMap<(&'static str, String), String>) -> Vec<String> {
    let now = picture();
    let differs = before.iter().filter_map(|(place, then)| match now.get(place) {
        Some(text) if text == then => None,
        None if place.0.ends_with("-threads") => None,
        text => Some(format!("{place:?}: {then}, now {text:?}")),
    });
    differs.collect()
}

fn allowed() -> CpuSet {
    cpus_of("/proc/thread-self/status")
}

fn cpus_of(status: &str) -> CpuSet {
    let status = fs::read_to_string(status).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().parse().unwrap()
}

/// The kernel ends this thread without huge pages, and starts it again with them; none where it has no huge pages.
fn restart_khugepaged() -> Option<u32> {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let thread = || {
        let mut all = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
        all.find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "khugepaged")
        })
    };
    let (before, words) = (thread()?, fs::read_to_string(ENABLED).ok()?);
    let word = words.split('[').nth(1)?.split(']').next()?.to_owned();
    fs::write(ENABLED, "never").unwrap();
    fs::write(ENABLED, word).unwrap();
    let now = thread()?;
    assert_ne!(now, before);
    Some(now)
}

fn round(desk: &Desk) {
    let (before, own) = (picture(), allowed());
    let plan = desk.ends("plan {d}/l.toml {s}", 0);
    says(&plan, &["interrupts ", "interrupt-default", "workqueues", "kernel-threads", "stat-interval"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    let status = desk.json("status --json {s}", 0);
    let groups = status["groups"].as_array().unwrap();
    let knobs = groups.iter().flat_map(|group| group["knobs"].as_array().into_iter().flatten());
    let mut done: Vec<&str> =
        knobs.filter(|knob| knob["state"] == "done").map(|knob| knob["knob"].as_str().unwrap()).collect();
    done.dedup();
    assert!(done.len() >= 12, "{done:?}");
    for knob in KNOBS.iter().filter(|knob| knob.per == Per::Thread) {
        for seen in KnobFiles::default().look(knob) {
            let cpus: CpuSet = seen.text.parse().unwrap();
            assert!(!cpus.contains(ISOLATED), "{}: {cpus}", seen.instance);
        }
    }
    if fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap() {
        let on_it = (0..1000).filter(|_| started().contains(ISOLATED)).count();
        assert_eq!(on_it, 0, "of 1000 processes");
    }
    let report = desk.json("isolate check {g} --no-probe --for 200ms --json {s}", 0);
    let rows = report["rows"].as_array().unwrap();
    let has = |name: &str, state: &str| rows.iter().any(|row| row["name"] == name && row["state"] == state);
    assert!(has("interrupt-default", "done") && has("boot", "boot-only"), "{rows:?}");
    says(&desk.ends("status -v {s}", 0), &["interrupt-default: done, "]);
    looked_at(desk);
    let started = restart_khugepaged();
    desk.ends("undo {s}", 0);
    assert_eq!(differing(&before), Vec::<String>::new());
    assert_eq!(allowed(), own);
    if let Some(thread) = started {
        assert_eq!(cpus_of(&format!("/proc/{thread}/status")), own, "a thread that was started meanwhile");
    }
}

/// A thread that runs on the CPUs of one node stayed without the CPU that was isolated first.
fn moved(desk: &Desk) {
    let before = picture();
    let last = allowed().last().unwrap();
    let other = if last == ISOLATED { 0 } else { last };
    desk.write("m.toml", &LAYOUT.replace("cpus = \"1\"", &format!("cpus = \"{other}\"")));
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.ends("apply {d}/m.toml {s}", 0);
    let isolated: CpuSet = other.to_string().parse().unwrap();
    let threads = KNOBS.iter().filter(|knob| knob.per == Per::Thread);
    for seen in threads.flat_map(|knob| KnobFiles::default().look(knob)) {
        let Some(then) = before.get(&("kernel-threads", seen.instance.to_string())) else { continue };
        let then: CpuSet = then.parse().unwrap();
        let (rest, now): (_, CpuSet) = (then.difference(&isolated), seen.text.parse().unwrap());
        // up to Linux 6.1 the beginning of a partition gives threads of one node the CPUs of all others
        let is_back = rest.is_subset(&now) && now.is_disjoint(&isolated);
        assert!(rest.is_empty() || is_back, "{}: {then}, now {now}", seen.instance);
    }
    says(&desk.ends("apply {d}/m.toml {s}", 0), &["nothing to do"]);
    desk.ends("undo 0 {s}", 0);
    assert_eq!(differing(&before), Vec::<String>::new());
}

/// What `why` and `doctor` say of an isolated group, whose state is in the default directory for them.
fn looked_at(desk: &Desk) {
    let run = |line: &str| {
        let mut command = Command::new(desk.scene.program());
        command.args(desk.scene.fill(line).split_whitespace()).env("RINGFENCE_STATE", desk.path("state"));
        let output = command.output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let answer = run("why {g} --for 500ms --json");
    let interrupted = &answer["interrupted"];
    assert_eq!(interrupted["cpus"], ISOLATED.to_string(), "{answer}");
    assert!(interrupted["span_sec"].as_f64().unwrap() >= 0.5, "{interrupted}");
    let note = answer["notes"].as_array().unwrap().iter().find(|note| note["kind"] == "interrupted").unwrap();
    let said = format!("its isolated CPU {ISOLATED} was interrupted ");
    assert!(note["sentence"].as_str().unwrap().starts_with(&said), "{note}");
    let findings = run("doctor --json");
    let said = desk.scene.fill("group '{g}' has CPUs 1 isolated: ");
    let findings = findings["findings"].as_array().unwrap().iter();
    let finding =
        findings.map(|one| one["what"].as_str().unwrap()).find(|what| what.starts_with(&said)).unwrap();
    assert!(finding.contains(" rows done") && finding.contains("boot only: nohz_full=1"), "{finding}");
}

/// The CPUs of a process that is started now.
fn started() -> CpuSet {
    let output = Command::new("/bin/sh").args(["-c", "exec cat /proc/self/status"]).output().unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().parse().unwrap()
}

fn by_others(desk: &Desk) {
    const MASK: &str = "/proc/irq/default_smp_affinity";
    const INTERVAL: &str = "/proc/sys/vm/stat_interval";
    let before = picture();
    desk.ends("apply {d}/l.toml {s}", 0);
    let all = &before[&("interrupt-default", MASK.to_owned())];
    fs::write(MASK, format!("{all}\n")).unwrap();
    says(&desk.ends("status {s}", 3), &[MASK]);
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_ne!(fs::read_to_string(MASK).unwrap().trim(), all);
    fs::write(INTERVAL, "7\n").unwrap();
    let (code, _, error) = desk.run("undo 0 {s}");
    assert_eq!(code, 0, "{error}");
    says(&error, &[INTERVAL, "stays 7"]);
    assert_eq!(fs::read_to_string(INTERVAL).unwrap().trim(), "7");
    fs::write(INTERVAL, &before[&("stat-interval", INTERVAL.to_owned())]).unwrap();
    assert_eq!(differing(&before), Vec::<String>::new());
}

fn shell(line: &str) {
    let status = Command::new("/bin/sh").args(["-c", line]).status().unwrap();
    assert!(status.success(), "{line}");
}

fn read_only(desk: &Desk) {
    const INTERVAL: &str = "/proc/sys/vm/stat_interval";
    let before = picture();
    let bind = format!("mount --bind {INTERVAL} {INTERVAL} && mount -o remount,bind,ro {INTERVAL}");
    let unbind = format!("umount {INTERVAL}");
    shell(&bind);
    let (code, _, error) = desk.run("apply {d}/l.toml {s}");
    shell(&unbind);
    assert_eq!(code, 1, "{error}");
    says(&error, &[INTERVAL, "read-only", "stat-interval = false"]);
    assert_eq!(differing(&before), Vec::<String>::new());
    desk.ends("apply {d}/l.toml {s}", 0);
    shell(&bind);
    let (code, out, error) = desk.run("undo {s}");
    let status = desk.run("status {s}");
    shell(&unbind);
    assert_eq!(code, 3, "{out}{error}");
    says(&error, &[INTERVAL, "read-only"]);
    assert_eq!(status.0, 3, "{status:?}");
    says(&status.1, &[INTERVAL, "the next undo or apply tries again"]);
    assert_eq!(differing(&before).len(), 1);
    desk.ends("undo {s}", 0);
    assert_eq!(differing(&before), Vec::<String>::new());
}

/// In a mount namespace of its own, as a container has it.
fn mounts(desk: &Desk) {
    const BOTH: [(&str, &str); 2] = [("/proc/sys", "mount --bind /proc/sys /proc/sys && "), ("/sys", "")];
    let remount = |to: &str| BOTH.map(|(at, _)| format!("mount -o remount,bind,{to} {at}")).join(" && ");
    let bind = BOTH.map(|(_, bind)| bind).concat();
    let apply = |mounts: &str| {
        let script = desk.scene.fill(&format!("{bind}{mounts} && exec \"$0\" apply {{d}}/l.toml {{s}}"));
        let program = desk.scene.program();
        let mut unshare = Command::new("unshare");
        crate::desk::answer(unshare.args(["-m", "sh", "-c", &script, &program]).output().unwrap())
    };
    let before = picture();
    let (code, _, error) = apply(&remount("ro"));
    assert_eq!(code, 1, "{error}");
    for (at, _) in BOTH {
        let of_mount = |said: &str| error.lines().filter(|line| line.contains(said)).count();
        assert_eq!(of_mount(&format!(": {at} is mounted read-only, with ")), 1, "{error}");
        assert_eq!(of_mount(&format!("hint: mount -o remount,bind,rw {at} makes it writable")), 1, "{error}");
    }
    assert_eq!(differing(&before), Vec::<String>::new());
    // what the hints say
    let (code, _, error) = apply(&format!("{} && {}", remount("ro"), remount("rw")));
    assert_eq!(code, 0, "{error}");
    desk.ends("undo {s}", 0);
    assert_eq!(differing(&before), Vec::<String>::new());
}

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

fn offline(desk: &Desk) {
    let before = picture();
    desk.ends("apply {d}/l.toml {s}", 0);
    fs::write(ONLINE, "0").unwrap();
    let (code, out, error) = desk.run("status {s}");
    fs::write(ONLINE, "1").unwrap();
    assert!(code == 3 && error.is_empty(), "{code} {out}{error}");
    let (code, out, error) = desk.run("undo 0 {s}");
    assert!(code == 0, "{code} {out}{error}");
    assert_eq!(but_for_kcompactd(differing(&before)), Vec::<String>::new());
}

/// The kernel gives these threads the CPUs of their node whenever a CPU comes.
fn but_for_kcompactd(mut left: Vec<String>) -> Vec<String> {
    left.retain(|line| !line.contains("kcompactd"));
    left
}

fn undone_offline(desk: &Desk) {
    let (before, own) = (picture(), allowed());
    desk.ends("apply {d}/l.toml {s}", 0);
    let was_moved = allowed() != own;
    fs::write(ONLINE, "0").unwrap();
    let (code, out, error) = desk.run("undo 0 {s}");
    fs::write(ONLINE, "1").unwrap();
    let on_v1 = !fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap();
    let is_named = was_moved && on_v1 && !keeps_offline();
    let lack = ["lack CPUs 1, which are offline", "echo 1 > /sys/devices/system/cpu/cpu1/online"];
    if is_named {
        assert_eq!(code, 3, "{out}{error}");
        says(&error, &lack);
    } else {
        assert!(code == 0 || code == 3 && error.contains("cannot set kernel thread"), "{code} {out}{error}");
    }
    // a thread of that CPU alone goes back once it is there
    desk.ends("undo 0 {s}", 0);
    // v2's kernel leaves the CPU out for tasks of the root group, which no step of ours is about
    let lacks = if on_v1 || keeps_offline() { "" } else { "1" };
    assert_eq!(own.difference(&allowed()).to_string(), lacks);
    if is_named {
        desk.write("b.toml", "[groups.{g}]\ncpu.weight = 200\n");
        desk.ends("apply {d}/l.toml {s}", 0);
        fs::write(ONLINE, "0").unwrap();
        let (code, out, error) = desk.run("apply {d}/b.toml {s}");
        fs::write(ONLINE, "1").unwrap();
        assert_eq!(code, 3, "{out}{error}");
        says(&error, &lack);
        desk.ends("apply {d}/b.toml {s}", 0);
        assert_eq!(allowed(), own);
        desk.ends("undo 0 {s}", 0);
    }
    let mut left = but_for_kcompactd(differing(&before));
    if !keeps_offline() {
        // the kernel took them without that CPU, which the undo has named
        left.retain(|line| !line.contains("kernel-threads"));
        assert!(error.contains("was written, the kernel has"), "{out}{error}");
    }
    assert_eq!(left, Vec::<String>::new());
}

fn unlisted_offline(desk: &Desk) {
    let status = |pid: u32| format!("/proc/{pid}/status");
    desk.ends("create {g} --controllers cpuset", 0);
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let all = cpus_of(&status(sleeper.id()));
    desk.ends(&format!("move {{g}} {}", sleeper.id()), 0);
    desk.write("u.toml", "[groups.{g}]\ncpus = \"0\"\n");
    desk.ends("apply {d}/u.toml {s}", 0);
    assert_eq!(cpus_of(&status(sleeper.id())).to_string(), "0");
    fs::write(ONLINE, "0").unwrap();
    let (code, out, error) = desk.run("undo {s}");
    fs::write(ONLINE, "1").unwrap();
    let has = cpus_of(&status(sleeper.id()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    // before Linux 7.0 the list is spelled out, as the undo says
    assert!(code == 0 || code == 3 && error.contains("takes no empty list"), "{code} {out}{error}");
    assert_eq!(has, all);
    desk.ends("delete {g}", 0);
}

/// Does sched_setaffinity(2) take CPUs that are offline, for threads of the root group? From Linux 6.3 on.
fn keeps_offline() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(3))
}

fn budget(desk: &Desk) {
    let text = |budget: &str| {
        LAYOUT.replace("\"full\"", &format!("{{ level = \"cpus\", budget = {{ {budget} }} }}"))
    };
    for (budget, status) in [("per-second = 0", 3), ("per-second = 1000000, longest-us = 100000000", 0)] {
        desk.write("b.toml", &text(budget));
        desk.ends("apply {d}/b.toml {s}", 0);
        let report = desk.json("isolate check {g} --for 300ms --json {s}", status);
        assert_eq!(report["above_budget"], status == 3, "{report}");
    }
    // the command line has the last word
    assert_eq!(
        desk.json("isolate check {g} --no-probe --for 300ms --budget 0 --json {s}", 3)["budget_per_sec"],
        0.0
    );
    desk.ends("undo 0 {s}", 0);
}

fn policy(desk: &Desk) {
    let before = picture();
    let rows = "{ level = \"cpus\", softirq-threads = \"fifo:2\" }";
    desk.write("p.toml", &LAYOUT.replace("\"full\"", rows));
    desk.ends("apply {d}/p.toml {s}", 0);
    let changed = differing(&before);
    let of = |word: &str| changed.iter().filter(|line| line.contains(word)).count();
    assert_eq!(of("ksoftirqd/1)"), 1, "{changed:?}");
    assert_eq!(of("ksoftirqd/0)"), 0, "{changed:?}");
    desk.ends("undo {s}", 0);
    assert_eq!(differing(&before), Vec::<String>::new());
}

fn killed(desk: &Desk) {
    let before = picture();
    let run = |at: usize| {
        let _ = fs::remove_dir_all(desk.path("state"));
        let words = format!("{} {}", desk.scene.program(), desk.scene.fill("apply {d}/l.toml {s}"));
        let words = words.split_whitespace().map(str::to_owned).collect();
        let rule = Rule { word: "apply", is_child: false, counts: changes, at, fault: Fault::Kill };
        let seen = tracer::run(words, &desk.path("out"), rule).1.join().unwrap();
        // an apply that came to its end is undone, and what was interrupted rolled back
        desk.run("undo {s}");
        assert_eq!(differing(&before), Vec::<String>::new(), "killed at call {at}, {:?}", seen.hit);
        seen
    };
    let calls = run(usize::MAX).calls.len();
    assert!(calls > 80, "{calls} changes are too few to tell anything");
    let sample = std::env::var(SAMPLES).ok().and_then(|text| text.parse().ok()).unwrap_or(SAMPLE);
    let step = calls.div_ceil(sample);
    let hits = (0..calls).step_by(step).filter(|at| run(*at).hit.is_some()).count();
    assert!(hits + 2 >= calls.div_ceil(step), "killed {hits} times only");
}
