//! What doctor finds: in facts recorded on four kernels' mounts, in facts changed from those, and on this
//! machine, where it must agree with `/proc` and `/sys` and leave nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod rows;

use std::{collections::BTreeSet, fs, sync::Mutex};

use kernel::{Kernel, Real};
use plan::doctor::{Finding, Level, findings, needs_attention, render};
use topology::{
    LogicalCpu, Machine,
    facts::{Facts, MountTrial, Partition, WRITERS, Writer},
};
use units::{Limit, Micros};

use kernel::probe;
use rows::{Row, invalid, texts};

/// Recorded by doctor itself in virtual machines with Linux 6.1, 8 CPUs and 4 nodes.
const RECORDED: [(&str, &str); 4] = [
    ("v1", include_str!("facts/v1.json")),
    ("v2", include_str!("facts/v2.json")),
    ("hybrid", include_str!("facts/hybrid.json")),
    ("systemd", include_str!("facts/systemd.json")),
];

fn recorded(mode: &str) -> Facts {
    let (_, text) = RECORDED.iter().find(|(name, _)| *name == mode).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_plain_machine_in_good_order_needs_no_attention() {
    for (mode, _) in RECORDED {
        let found = findings(&recorded(mode), None);
        assert!(!needs_attention(&found), "{mode}: {}", render(&found));
        let notes = found.iter().filter(|finding| finding.level == Level::Note).count();
        assert!(notes <= 6, "{mode} has {notes} notes");
    }
}

#[test]
fn each_change_of_the_facts_brings_its_finding_with_consequence_and_mend() {
    for Row { mode, change, level, what, consequence, hint } in rows::all() {
        let mut facts = recorded(mode);
        change(&mut facts);
        let found = findings(&facts, None);
        let finding = found.iter().find(|finding| finding.what.contains(what));
        let finding = finding.unwrap_or_else(|| panic!("{mode}: no finding '{what}' in\n{}", render(&found)));
        assert_eq!(finding.level, level, "{what}");
        let holds = |said: &Option<String>, part: &str| match (said, part) {
            (Some(said), part) => !part.is_empty() && said.contains(part),
            (None, part) => part.is_empty(),
        };
        assert!(holds(&finding.consequence, consequence), "{what}: {:?}", finding.consequence);
        assert!(holds(&finding.hint, hint), "{what}: {:?}", finding.hint);
        style(&found);
    }
}

/// Whatever is not in order says what follows; nothing ends in a full stop.
fn style(found: &[Finding]) {
    for finding in found {
        assert_eq!(finding.consequence.is_some(), finding.level != Level::Ok, "{finding:?}");
        for text in
            [Some(&finding.what), finding.consequence.as_ref(), finding.hint.as_ref()].into_iter().flatten()
        {
            assert!(!text.ends_with('.') && !text.trim().is_empty() && !text.contains("  "), "{text}");
        }
    }
}

/// Whatever is in the table has a finding, and each says how it is stopped.
#[test]
fn every_program_that_writes_what_we_write_has_a_finding() {
    let before = findings(&recorded("systemd"), None).len();
    for known in &WRITERS {
        let mut facts = recorded("systemd");
        let pid = known.process.map(|_| 77);
        facts.writers = vec![Writer { name: known.name.to_owned(), pid, ..Writer::default() }];
        let found = findings(&facts, None);
        assert_eq!(found.len(), before + 1, "{}", known.name);
        assert!(known.process.is_some() != known.mark.is_some(), "{}", known.name);
        assert!(known.process.is_none_or(|comm| comm.len() <= 15), "{}", known.name);
        style(&found);
    }
}

#[test]
fn exclusive_cpus_that_leave_their_siblings_out_need_attention() {
    let cpu = |id: usize| LogicalCpu {
        id,
        online: true,
        siblings: Some([id % 4, id % 4 + 4].into_iter().collect()),
        ..LogicalCpu::default()
    };
    let machine = Machine { cpus: (0..8).map(cpu).collect(), ..Machine::default() };
    let mut facts = recorded("v2");
    facts.cpus.smt_active = Some(true);
    let mut with = |cpus: &str| {
        let valid = Partition { invalid: None, ..invalid("/rt", cpus, &[]) };
        facts.v2.as_mut().unwrap().partitions = vec![valid];
        findings(&facts, Some(&machine))
    };
    let split = with("2-3");
    let finding = split.iter().find(|finding| finding.level == Level::Attention).unwrap();
    assert_eq!(finding.what, "/rt: CPUs 6-7 are on the same cores, and not exclusive");
    assert_eq!(finding.hint.as_deref(), Some("ringfence set /rt cpuset.cpus=2-3,6-7"));
    assert!(!needs_attention(&with("2-3,6-7")));
}

#[test]
fn the_text_is_grouped_by_area_and_at_most_100_columns_wide() {
    let mut facts = Facts { proc: true, ..Facts::default() };
    facts.caller.sys_admin = true;
    facts.realtime = recorded("v1").realtime;
    facts.pressure = recorded("v1").pressure;
    facts.cpus.smt_active = Some(false);
    facts.v2 = recorded("v2").v2;
    let v2 = facts.v2.as_mut().unwrap();
    v2.controllers = texts(&["cpuset", "cpu", "io", "memory", "pids"]);
    v2.partitions = vec![invalid("/db/oltp1", "2-3", &[("/db/batch", "0-7"), ("/web", "3-4")])];
    let text = render(&findings(&facts, None));
    assert_eq!(
        text,
        "\
access
  ok        root
controllers
  ok        cpuset, cpu, io, memory, pids: v2 at /sys/fs/cgroup
  ok        cpuacct, devices, freezer, perf_event: part of every v2 group
  note      hugetlb, net_cls, net_prio, rdma, misc: not in this kernel
            huge pages can't be limited by group; packets can't be marked with their group's class;
            packets can't be given their group's priority; RDMA handles can't be limited by group;
            counted resources (misc.max) can't be limited by group
groups
  ok        freeze: by cgroup.freeze; kill: by cgroup.kill
cpusets
  ok        exclusive CPUs: what there is shows once a group has the cpuset controller
  attention /db/oltp1: root partition that is not in force: cpu list in cpuset.cpus not exclusive
            other groups run on CPUs 2-3, too
            hint: ringfence set /db/batch cpuset.cpus=0-1,4-7 && ringfence set /web cpuset.cpus=4 &&
                  ringfence set /db/oltp1 cpuset.cpus.partition=member &&
                  ringfence set /db/oltp1 cpuset.cpus.partition=root
real time
  ok        real-time tasks may run 950ms of every 1s
memory
  note      cgroup v2 is mounted without memory_recursiveprot
            memory.min and memory.low of a group protect it as a whole, but none of the groups below
            it
            hint: mount -o remount,memory_recursiveprot /sys/fs/cgroup
pressure
  ok        pressure stall information: cpu, io, memory; of the machine and of v2 groups
owners
  ok        no other program keeps groups here
cpus
  ok        SMT: this machine has none; each CPU is a core
1 finding needs attention
"
    );
    for (mode, _) in RECORDED {
        let text = render(&findings(&recorded(mode), None));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn recorded_facts_read_back_as_they_were_written() {
    for (mode, _) in RECORDED {
        let facts = recorded(mode);
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts, "{mode}");
    }
}

/// One probe at a time, as its moments would be taken for traces.
static PROBING: Mutex<()> = Mutex::new(());

/// What the probe could leave behind: mounts, v1 hierarchies, groups.
fn traces() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let controllers = fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let bound = controllers.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
    let real = Real::new();
    let hierarchies = real.hierarchies().unwrap();
    let groups = hierarchies.iter().flat_map(|at| real.children(at, "").unwrap());
    let probes = groups.filter(|group| group.starts_with("ringfence-probe"));
    // other suites mount and unmount meanwhile
    let mounts = mounts.lines().filter(|line| !line.contains("rf-test"));
    mounts.map(str::to_owned).chain(bound).chain(probes).collect()
}

#[test]
fn probing_this_machine_leaves_nothing_behind() {
    let _alone = PROBING.lock();
    let before = traces();
    for _ in 0..3 {
        probe::probe(&Real::new());
        assert_eq!(traces(), before);
    }
}

#[test]
fn what_is_seen_of_this_machine_agrees_with_proc_and_sys() {
    let alone = PROBING.lock();
    let facts = probe::probe(&Real::new());
    drop(alone);
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned());
    let mounts = read("/proc/self/mountinfo").unwrap();
    for (at, kind) in
        facts.v1.iter().map(|at| (&at.at, "cgroup")).chain(facts.v2.iter().map(|at| (&at.at, "cgroup2")))
    {
        let line = mounts.lines().find(|line| line.split(' ').nth(4) == at.mount.to_str());
        assert!(line.unwrap().contains(&format!(" - {kind} ")), "{at:?}");
    }
    let listed = read("/proc/cgroups").unwrap_or_default();
    assert_eq!(facts.controllers.len(), listed.lines().skip(1).count());
    for v1 in facts.v1.iter().flat_map(|at| &at.controllers) {
        let row = facts.controllers.iter().find(|row| row.name == *v1);
        assert!(row.is_some_and(|row| row.hierarchy != 0 && row.trial == MountTrial::Untried), "{v1}");
    }
    assert_eq!(facts.pressure.readable.is_empty(), !fs::exists("/proc/pressure/cpu").unwrap());
    assert_eq!(facts.cpus.online.as_ref().map(ToString::to_string), read("/sys/devices/system/cpu/online"));
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages").map_or(0, |entries| entries.count());
    assert_eq!(facts.memory.huge_pages.len(), sizes);
    for disk in &facts.disks {
        let name = disk.name.replace('/', "!");
        assert_eq!(Some(&disk.number), read(&format!("/sys/block/{name}/dev")).as_ref());
        let marked = format!("[{}]", disk.scheduler.as_deref().unwrap_or_default());
        let schedulers = read(&format!("/sys/block/{name}/queue/scheduler")).unwrap_or_default();
        assert!(schedulers.contains(&marked) || disk.offered.len() <= 1, "{schedulers} {disk:?}");
    }
    if facts.v2.as_ref().is_some_and(|v2| v2.at.writable) {
        assert!(facts.v2.as_ref().unwrap().child.is_some(), "a group was looked at or made");
    }
    style(&findings(&facts, Machine::live().ok().as_ref()));
}

/// Removes a group when it goes.
struct OwnGroup<'k>(&'k Real, kernel::Hierarchy, String);

impl Drop for OwnGroup<'_> {
    fn drop(&mut self) {
        let _ = self.0.rmdir(&self.1, &self.2);
    }
}

#[test]
fn a_groups_real_time_budget_is_seen_on_this_machine() {
    let real = Real::new();
    let hierarchies = real.hierarchies().unwrap();
    let with_budgets = |at: &&kernel::Hierarchy| real.read(at, "", "cpu.rt_runtime_us").is_ok();
    let Some(at) = hierarchies.iter().find(with_budgets).filter(|at| real.writable(at, "")) else {
        eprintln!("not run: it takes root and a v1 cpu hierarchy with RT_GROUP_SCHED");
        return;
    };
    let made = OwnGroup(&real, at.clone(), format!("rf-test-doctor-{}", std::process::id()));
    real.mkdir(at, &made.2).unwrap();
    real.write(at, &made.2, "cpu.rt_runtime_us", "10000").unwrap();
    let held = probe::seen(&real).realtime.root.unwrap().held;
    let own = held.iter().find(|group| group.group == format!("/{}", made.2)).unwrap();
    assert_eq!((own.runtime, own.period), (Limit::At(Micros(10_000)), Micros(1_000_000)));
}

/// The name of a group is chosen by whoever may make it, and root pastes the hint.
#[test]
fn a_hostile_name_comes_back_whole_from_every_command() {
    let name = "a $(touch x)";
    let mut v2 = recorded("v2");
    v2.v2.as_mut().unwrap().partitions = vec![invalid(name, "2-3", &[(name, "2-5")])];
    let mut v1 = recorded("v1");
    rows::budget(&mut v1, &[(name, 949_000)]);
    for facts in [v2, v1] {
        let found = findings(&facts, None);
        let named =
            found.iter().filter_map(|finding| finding.hint.as_deref()).filter(|hint| hint.contains(name));
        let named: Vec<_> = named.collect();
        assert!(!named.is_empty(), "{}", render(&found));
        for hint in named {
            let words = shlex::split(hint).unwrap();
            let count = words.iter().filter(|word| *word == name).count();
            assert_eq!(count, hint.matches("ringfence set").count(), "{hint}");
        }
    }
}
