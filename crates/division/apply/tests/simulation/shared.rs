//! Settings of which one version keeps several in one file, under the names of either version. In every order they are the
//! same change, the unchanged layout has nothing to do a second time, a value that somebody changed in between comes back
//! and nothing else, and an undo leaves what was there.

use std::time::Duration;

use apply::{Lock, SettingValue, State, Target, UNDOABLE, execute, status, undo};
use fake::{Fake, Snapshot};
use kernel::{GroupName, Kernel};
use plan::{Action, MachineFacts, Step};
use tempfile::TempDir;

use crate::{
    machine::{Affinities, Clocks, Faults, Sim},
    run::{LAYOUT, machine, meta, planned_text},
    world::{CPUS, Kind},
};

/// Lines of a layout's group, and a value in each version's words that somebody may write meanwhile.
type Shared = (&'static [&'static str], [(&'static str, &'static str); 2]);

const SHARED: &[Shared] = &[
    (
        &["cpu.cfs_period_us = 50000", "cpu.cfs_quota_us = 15000"],
        [("cpu.cfs_quota_us", "30000"), ("cpu.max", "30000 20000")],
    ),
    (
        &["cpu.cfs_quota_us = 15000", "cpu.max.burst = 4000", "cpu.cfs_period_us = 50000"],
        [("cpu.cfs_period_us", "60000"), ("cpu.max", "max 100000")],
    ),
    (&["cpu.cfs_period_us = 50000"], [("cpu.cfs_period_us", "60000"), ("cpu.max", "max 20000")]),
    (&["cpu.cfs_quota_us = 15000"], [("cpu.cfs_quota_us", "-1"), ("cpu.max", "20000 100000")]),
    (
        &[
            "blkio.throttle.read_bps_device = \"254:0 20971520\"",
            "blkio.throttle.write_bps_device = \"254:0 10485760\"",
            "blkio.throttle.read_iops_device = \"254:0 300\"",
            "blkio.throttle.write_iops_device = \"254:0 200\"",
        ],
        [("blkio.throttle.write_bps_device", "254:0 4096"), ("io.max", "254:0 wbps=max riops=5")],
    ),
    (
        &["io.max.\"254:0\" = { riops = 10 }", "blkio.throttle.write_bps_device = \"254:0 10485760\""],
        [("blkio.throttle.read_iops_device", "254:0 4"), ("io.max", "254:0 riops=max")],
    ),
    (
        &["memory.limit_in_bytes = \"64M\"", "memory.memsw.limit_in_bytes = \"96M\""],
        [("memory.memsw.limit_in_bytes", "536870912"), ("memory.swap.max", "0")],
    ),
    (
        &["memory.memsw.limit_in_bytes = \"96M\"", "memory.limit_in_bytes = \"64M\""],
        [("memory.memsw.limit_in_bytes", "-1"), ("memory.max", "100663296")],
    ),
    (
        &["memory.swap.max = \"32M\"", "memory.max = \"64M\""],
        [("memory.memsw.limit_in_bytes", "-1"), ("memory.max", "max")],
    ),
];

pub struct Desk {
    pub fake: Fake,
    affinities: Affinities,
    pub directory: TempDir,
    /// How many generations can be undone one by one.
    pub undoable: usize,
}

impl Desk {
    pub fn new(kind: Kind) -> Desk {
        let fake = match kind {
            Kind::V1 => Fake::v1(CPUS, 1),
            _ => Fake::v2(CPUS, 1),
        };
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Desk { fake, affinities: Affinities::default(), directory, undoable: UNDOABLE }
    }

    pub fn command<T>(&self, act: impl FnOnce(&Lock, Target<'_>) -> T) -> T {
        let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
        let (host, sim) = Sim::new(&self.fake, &Faults::at(Vec::new()), clocks, &self.affinities, CPUS);
        let state = State::open(self.directory.path()).unwrap().undoable(self.undoable);
        let lock = state.lock(Duration::ZERO).unwrap();
        act(&lock, Target { host: &host, system: &sim })
    }

    /// Plans and applies; what was written, and the picture afterwards.
    pub fn apply(&self, layout: &str) -> (Vec<String>, Snapshot) {
        self.try_apply(layout).unwrap()
    }

    fn try_apply(&self, layout: &str) -> Result<(Vec<String>, Snapshot), String> {
        let plan = self.command(|lock, target| {
            let plan = planned_text(lock.state(), target, &machine(), layout)?;
            let done = execute(lock, target, &plan, &meta(LAYOUT, None));
            done.map(|_| plan).map_err(|failure| failure.to_string())
        })?;
        let mut written: Vec<String> = plan
            .steps
            .iter()
            .map(|step| match &step.action {
                Action::Write { place, file, text, .. } => format!("{} {file}={}", place.path, text.trim()),
                other => format!("{other:?}"),
            })
            .collect();
        // which of two files without a rule between them goes first may follow the layout's order
        written.sort();
        Ok((written, self.fake.snapshot()))
    }

    fn drift(&self) -> Vec<String> {
        let groups = self.command(|lock, target| status(lock.state(), target).unwrap());
        let drift = groups.into_iter().flat_map(|group| group.drift);
        drift.map(|drift| drift.to_string()).collect()
    }

    /// Somebody writes a value; false where this kernel has no such file or refuses it.
    fn somebody_writes(&self, group: &str, file: &str, text: &str) -> bool {
        let hierarchies = self.fake.hierarchies().unwrap();
        let at = hierarchies.iter().find(|at| self.fake.read(at, group, file).is_ok());
        at.is_some_and(|at| self.fake.write(at, group, file, text).is_ok())
    }
}

fn layout(lines: &[&str]) -> String {
    format!("[groups.shared]\n{}\n", lines.join("\n"))
}

fn orders<T: Copy>(lines: &[T]) -> Vec<Vec<T>> {
    if lines.len() < 2 {
        return vec![lines.to_vec()];
    }
    let mut all = Vec::new();
    for index in 0..lines.len() {
        let mut rest = lines.to_vec();
        let first = rest.remove(index);
        all.extend(orders(&rest).into_iter().map(|rest| [vec![first], rest].concat()));
    }
    all
}

fn each(test: impl Fn(Kind, &[&str], &[(&str, &str); 2])) {
    for kind in [Kind::V1, Kind::V2] {
        for (lines, meanwhile) in SHARED {
            test(kind, lines, meanwhile);
        }
    }
}

#[test]
fn every_order_of_settings_in_one_file_is_the_same_change() {
    each(|kind, lines, _| {
        let mut first = None;
        for order in orders(lines) {
            let done = Desk::new(kind).apply(&layout(&order));
            let first = first.get_or_insert_with(|| done.clone());
            assert_eq!(*first, done, "{kind:?} {order:#?}");
        }
    });
}

#[test]
fn an_unchanged_layout_with_settings_in_one_file_has_nothing_to_do_again() {
    each(|kind, lines, _| {
        for order in orders(lines) {
            let desk = Desk::new(kind);
            let (_, applied) = desk.apply(&layout(&order));
            for again in 0..3 {
                assert_eq!(desk.drift(), [""; 0], "{kind:?} {order:#?}");
                let (written, now) = desk.apply(&layout(&order));
                assert_eq!(written, [""; 0], "{kind:?} apply {again} of {order:#?}");
                assert_eq!(now, applied, "{kind:?} apply {again} of {order:#?}");
            }
        }
    });
}

#[test]
fn a_value_that_somebody_changed_in_a_shared_file_comes_back_with_the_next_apply() {
    each(|kind, lines, meanwhile| {
        for order in orders(lines) {
            let desk = Desk::new(kind);
            let (_, applied) = desk.apply(&layout(&order));
            let (file, text) = meanwhile[usize::from(kind != Kind::V1)];
            assert!(desk.somebody_writes("shared", file, text), "{kind:?} has no {file}");
            let drift = desk.drift();
            assert!(!drift.is_empty(), "{kind:?} {file}={text} {order:#?}");
            let (written, now) = desk.apply(&layout(&order));
            assert!(!written.is_empty(), "{kind:?} {file}={text} {order:#?}");
            assert_eq!(now, applied, "{kind:?} {file}={text} {order:#?}: {written:#?}");
            assert_eq!(desk.apply(&layout(&order)), (Vec::new(), applied), "{kind:?} {order:#?}");
        }
    });
}

#[test]
fn a_layout_without_a_part_of_a_shared_file_gives_that_part_back() {
    each(|kind, lines, _| {
        for kept in 1..lines.len() {
            let (less, all) = (layout(&lines[..kept]), layout(lines));
            // memory plus swap needs the limit of memory
            let Ok((_, wanted)) = Desk::new(kind).try_apply(&less) else { continue };
            let desk = Desk::new(kind);
            desk.apply(&all);
            let (written, now) = desk.apply(&less);
            assert_eq!(now, wanted, "{kind:?} {less} after {all}: {written:#?}");
            assert_eq!(desk.apply(&less).0, [""; 0], "{kind:?} {less} after {all}");
        }
    });
}

#[test]
fn an_undo_of_settings_in_one_file_leaves_what_was_there() {
    each(|kind, lines, meanwhile| {
        let desk = Desk::new(kind);
        for at in desk.fake.hierarchies().unwrap() {
            let _ = desk.fake.write(&at, "", "cgroup.subtree_control", "+cpu +memory +io");
            desk.fake.mkdir(&at, "shared").unwrap();
        }
        let (file, text) = meanwhile[usize::from(kind != Kind::V1)];
        desk.somebody_writes("shared", file, text);
        let before = desk.fake.snapshot();
        desk.apply(&layout(lines));
        desk.apply(&layout(lines));
        desk.command(|lock, target| undo(lock, target, Some(0), &meta("undo", None)).unwrap());
        assert_eq!(desk.fake.snapshot(), before, "{kind:?} {lines:#?}");
    });
}

#[test]
fn what_is_set_at_once_is_one_write_on_v2_in_every_order() {
    for (requests, on_v2) in [
        (&[("cpu.cfs_period_us", "50000"), ("cpu.cfs_quota_us", "15000")][..], &["cpu.max=15000 50000"][..]),
        (
            &[
                ("blkio.throttle.read_bps_device", "254:0 20971520"),
                ("blkio.throttle.write_bps_device", "254:0 10485760"),
                ("io.max", "254:0 riops=9"),
            ],
            &["io.max=254:0 rbps=20971520 riops=9 wbps=10485760"],
        ),
        (
            &[("memory.limit_in_bytes", "67108864"), ("memory.memsw.limit_in_bytes", "100663296")],
            &["memory.max=67108864", "memory.swap.max=33554432"],
        ),
    ] {
        for kind in [Kind::V1, Kind::V2] {
            for order in orders(requests) {
                let desk = Desk::new(kind);
                for at in desk.fake.hierarchies().unwrap() {
                    let _ = desk.fake.write(&at, "", "cgroup.subtree_control", "+cpu +memory +io");
                    desk.fake.mkdir(&at, "shared").unwrap();
                }
                let changes = desk.command(|_, target| {
                    let machine = machine();
                    let facts = MachineFacts(&machine);
                    let requests = order.iter().map(|(name, text)| {
                        let (value, _) = SettingValue::parse(name, text, &facts).unwrap();
                        value.request(target.host, &GroupName::new("shared").unwrap()).unwrap()
                    });
                    apply::set(target.host, &requests.collect::<Vec<_>>()).unwrap()
                });
                assert_eq!(changes.len(), requests.len());
                let mut written: Vec<String> = Vec::new();
                for change in &changes {
                    assert_eq!(change.differences, [""; 0], "{kind:?} {order:?}");
                    assert!(!change.written.is_empty(), "{kind:?} {order:?}: {}", change.setting);
                    for write in &change.written {
                        let file = write.path.file_name().unwrap().to_string_lossy();
                        written.push(format!("{file}={}", write.text));
                    }
                }
                written.sort();
                written.dedup();
                if kind == Kind::V2 {
                    assert_eq!(written, on_v2, "{order:?}");
                } else {
                    assert!(
                        changes.iter().all(|change| change.written.len() == 1 || change.setting == "io.max")
                    );
                }
            }
        }
    }
}

#[test]
fn what_goes_back_to_less_memory_and_swap_goes_back_in_swap_first() {
    let desk = Desk::new(Kind::V2);
    let at = desk.fake.hierarchies().unwrap().remove(0);
    desk.fake.write(&at, "", "cgroup.subtree_control", "+memory").unwrap();
    desk.fake.mkdir(&at, "shared").unwrap();
    assert!(desk.somebody_writes("shared", "memory.max", "4194304"));
    assert!(desk.somebody_writes("shared", "memory.swap.max", "0"));
    let order = |layout: &str| {
        let plan = desk.command(|lock, target| {
            let plan = planned_text(lock.state(), target, &machine(), layout).unwrap();
            execute(lock, target, &plan, &meta(LAYOUT, None)).unwrap();
            plan
        });
        let file = |step: &Step| match &step.action {
            Action::Write { file, .. } => Some(file.clone()),
            _ => None,
        };
        plan.steps.iter().filter_map(file).collect::<Vec<_>>()
    };
    let (swap, memory) = ("memory.swap.max", "memory.max");
    let wide = layout(&["memory.max = \"8M\"", "memory.swap.max = \"8M\""]);
    assert_eq!(order(&wide), [memory, swap]);
    assert_eq!(order(&layout(&["memory.high = \"2M\""]))[..2], [swap, memory]);
}
