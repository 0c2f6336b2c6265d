//! Values that a write to another file changes: what was there before the layouts comes back whatever the order of the
//! layouts, and no apply of a layout that says nothing of such a file writes it.

use std::time::Duration;

use apply::{Outcome, State, Target, execute, status, undo};
use fake::Fake;
use kernel::Kernel;
use tempfile::TempDir;

use crate::{
    machine::{Affinities, Clocks, Fault, Faults, Sim},
    run::{LAYOUT, machine, meta, planned_text},
    world::CPUS,
};

/// A machine with a history.
struct Desk {
    fake: Fake,
    directory: TempDir,
}

impl Desk {
    fn new(fake: Fake) -> Desk {
        Desk { fake, directory: tempfile::tempdir().unwrap() }
    }

    fn command<T>(&self, act: impl FnOnce(&State, Target<'_>) -> T) -> T {
        self.command_with(Vec::new(), act)
    }

    fn command_with<T>(&self, faults: Vec<(usize, Fault)>, act: impl FnOnce(&State, Target<'_>) -> T) -> T {
        let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
        let faults = Faults::at(faults);
        let (host, sim) = Sim::new(&self.fake, &faults, clocks, &Affinities::default(), CPUS);
        let state = State::open(self.directory.path()).unwrap();
        act(&state, Target { host: &host, system: &sim })
    }

    fn apply(&self, text: &str) -> Outcome {
        self.command(|state, target| {
            let plan = planned_text(state, target, &machine(), text).unwrap();
            let lock = state.lock(Duration::ZERO).unwrap();
            execute(&lock, target, &plan, &meta(LAYOUT, None)).unwrap_or_else(|failure| panic!("{failure}"))
        })
    }

    fn undo(&self, to: u32) -> Outcome {
        self.undo_with(Vec::new(), to)
    }

    fn undo_with(&self, faults: Vec<(usize, Fault)>, to: u32) -> Outcome {
        self.command_with(faults, |state, target| {
            let lock = state.lock(Duration::ZERO).unwrap();
            undo(&lock, target, Some(to), &meta("undo", None)).unwrap_or_else(|failure| panic!("{failure}"))
        })
    }

    fn drift(&self) -> Vec<String> {
        self.command(|state, target| {
            let groups = status(state, target).unwrap();
            groups.iter().flat_map(|group| &group.drift).map(ToString::to_string).collect()
        })
    }

    fn is_as_applied(&self, when: &str) {
        assert_eq!(self.drift(), [""; 0], "{when}");
    }

    /// What a file of a group has, in the first hierarchy that has it.
    fn holds(&self, group: &str, file: &str) -> String {
        let all = self.fake.hierarchies().unwrap();
        let text = all.iter().find_map(|at| self.fake.read(at, group, file).ok());
        text.unwrap_or_else(|| panic!("no {file} of {group}")).trim_end().to_owned()
    }

    fn write(&self, group: &str, file: &str, text: &str) {
        let all = self.fake.hierarchies().unwrap();
        assert!(all.iter().any(|at| self.fake.write(at, group, file, text).is_ok()), "{group} {file} {text}");
    }
}

fn weight_file(fake: &Fake) -> (&'static str, &'static str) {
    let is_v1 = fake.hierarchies().unwrap().iter().any(|at| fake.read(at, "g", "cpu.shares").is_ok());
    if is_v1 { ("cpu.shares", "1024") } else { ("cpu.weight", "100") }
}

type Kind = (&'static str, fn(usize, usize) -> Fake);

const KERNELS: [Kind; 3] = [("v1", Fake::v1), ("v2", Fake::v2), ("v2 of 6.12", Fake::v2_with_exclusive_cpus)];

const IDLE: &str = "[groups.g]\n\"cpu.idle\" = 1\n";
const PLAIN: &str = "[groups.g]\ncontrollers = [\"cpu\"]\n";
const PIDS: &str = "[groups.g]\ncontrollers = [\"cpu\"]\n\"pids.max\" = 300\n";

/// Every second apply behind a layout with `cpu.idle` set the weight to 0.29 on v1, and failed on v2.
#[test]
fn an_idle_group_has_its_weight_of_before_from_then_on() {
    for (kind, fake) in KERNELS {
        for order in [
            [PLAIN, IDLE, PLAIN, PIDS, PLAIN],
            [IDLE, PLAIN, PIDS, PLAIN, PIDS],
            [PLAIN, IDLE, PIDS, IDLE, PLAIN],
        ] {
            let desk = Desk::new(fake(CPUS, 1));
            for (number, text) in order.into_iter().enumerate() {
                let when = format!("{kind}, layout {number}: {text}");
                desk.apply(text);
                let (file, default) = weight_file(&desk.fake);
                if text == IDLE {
                    assert_eq!(desk.holds("g", "cpu.idle"), "1", "{when}");
                } else {
                    assert_eq!(desk.holds("g", "cpu.idle"), "0", "{when}");
                    assert_eq!(desk.holds("g", file), default, "{when}");
                }
                desk.is_as_applied(&when);
                let again = desk.apply(text);
                assert_eq!(again.steps, 0, "{when}");
            }
        }
    }
}

/// A weight of an administrator, or of an older layout, is what was there before.
#[test]
fn the_weight_from_before_an_idle_group_comes_back_and_every_undo_is_exact() {
    for (kind, fake) in KERNELS {
        let desk = Desk::new(fake(CPUS, 1));
        let mut after = Vec::new();
        let picture = || {
            let (file, _) = weight_file(&desk.fake);
            (desk.holds("g", "cpu.idle"), desk.holds("g", file))
        };
        desk.apply(PLAIN);
        let (file, _) = weight_file(&desk.fake);
        desk.write("g", file, "300");
        after.push(picture());
        for text in [IDLE, PIDS, "[groups.g]\n\"cpu.weight\" = 50\n", IDLE, PLAIN] {
            desk.apply(text);
            after.push(picture());
        }
        let last = after.last().unwrap();
        assert_eq!(*last, ("0".to_owned(), "300".to_owned()), "{kind}");
        for generation in (1..after.len()).rev() {
            let outcome = desk.undo(u32::try_from(generation).unwrap());
            assert_eq!(outcome.left, [""; 0], "{kind}, undo {generation}");
            assert_eq!(picture(), after[generation - 1], "{kind}, undo {generation}");
        }
    }
}

/// An undo gives the group its `cpu.idle` back, and is refused the weight: that shows, and the next undo does it.
#[test]
fn a_weight_that_an_undo_could_not_bring_back_is_named_until_the_next_one_does() {
    for (kind, fake) in KERNELS {
        let is_it = |change: usize| {
            let desk = Desk::new(fake(CPUS, 1));
            desk.apply(PLAIN);
            let (file, _) = weight_file(&desk.fake);
            desk.write("g", file, "300");
            desk.apply(IDLE);
            let outcome = desk.undo_with(vec![(change, Fault::Refuse(rustix::io::Errno::ACCESS))], 1);
            if (desk.holds("g", "cpu.idle").as_str(), desk.holds("g", file).as_str()) == ("0", "300") {
                return false;
            }
            let is_weight = desk.holds("g", "cpu.idle") == "0";
            let when = format!("{kind}, change {change}: {:?}", outcome.left);
            assert!(!outcome.left.is_empty(), "{when}");
            let refused = if is_weight { file } else { "cpu.idle" };
            assert!(desk.drift().iter().any(|drift| drift.contains(refused)), "{when}: {:?}", desk.drift());
            assert_eq!(desk.undo(0).left, [""; 0], "{when}");
            assert_eq!(desk.drift(), [""; 0], "{when}");
            is_weight
        };
        assert!((0..12).filter(|change| is_it(*change)).count() > 0, "{kind}");
    }
}

/// Values that bound each other go back in an order that the kernel takes, in either direction.
#[test]
fn a_burst_and_its_quota_go_back_in_the_order_that_the_kernel_takes() {
    let large = "\"cpu.max\" = \"50ms/100ms\"\n\"cpu.max.burst\" = \"40ms\"\n";
    let small = "\"cpu.max\" = \"10ms/100ms\"\n\"cpu.max.burst\" = \"5ms\"\n";
    for (kind, fake) in KERNELS {
        for (before, layout) in [(small, large), (large, small)] {
            let desk = Desk::new(fake(CPUS, 1));
            desk.apply(PLAIN);
            let files: &[&str] = match kind {
                "v1" => &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"],
                _ => &["cpu.max", "cpu.max.burst"],
            };
            let picture = || files.iter().map(|file| desk.holds("g", file)).collect::<Vec<_>>();
            let millis = |text: &str| if text == small { ["10000", "5000"] } else { ["50000", "40000"] };
            let [quota, burst] = millis(before);
            match kind {
                "v1" => desk.write("g", "cpu.cfs_quota_us", quota),
                _ => desk.write("g", "cpu.max", &format!("{quota} 100000")),
            }
            desk.write("g", files[files.len() - 1], burst);
            let first = picture();
            desk.apply(&format!("[groups.g]\n{layout}"));
            assert_ne!(picture(), first, "{kind}");
            for text in [PLAIN, PIDS, PLAIN] {
                assert_eq!(desk.apply(text).left, [""; 0]);
                assert_eq!(picture(), first, "{kind}: {text}");
            }
            for generation in [2, 1] {
                assert_eq!(desk.undo(generation).left, [""; 0], "{kind}");
            }
            assert_eq!(picture(), first, "{kind}");
        }
    }
}

/// CPUs of a partition and its exclusive CPUs; and what v1 hands to new groups.
#[test]
fn a_partition_leaves_nothing_to_the_layouts_behind_it() {
    let own = "[groups.g]\ncpus = \"2-3\"\nexclusive = true\n";
    let shared = "[groups.g]\ncpus = \"2-3\"\n";
    for (kind, fake) in KERNELS {
        let desk = Desk::new(fake(CPUS, 1));
        let empty = "[groups.g]\ncontrollers = [\"cpuset\"]\n";
        let more = "[groups.g]\ncontrollers = [\"cpuset\"]\n\"pids.max\" = 300\n";
        desk.apply(empty);
        let before = desk.fake.snapshot();
        for text in [own, shared, own, empty, more, empty, own, empty] {
            desk.apply(text);
            desk.is_as_applied(&format!("{kind}: {text}"));
            if text == empty {
                assert_eq!(desk.fake.snapshot(), before, "{kind}");
            }
        }
        assert_eq!(desk.undo(1).left, [""; 0], "{kind}");
        assert_eq!(desk.fake.snapshot(), before, "{kind}");
    }
}

/// `cgroup.clone_children` decides what groups below start with, which later layouts must not take for values of before.
#[test]
fn clone_children_gives_nothing_to_later_layouts() {
    let desk = Desk::new(Fake::v1(CPUS, 1));
    let plain = "[groups.g]\ncontrollers = [\"cpuset\"]\n";
    desk.apply(plain);
    let before = desk.fake.snapshot();
    let clone = "[groups.g]\ncpus = \"1-2\"\n\"cgroup.clone_children\" = 1\n[groups.\"g/below\"]\ncontrollers = [\"cpuset\"]\n";
    for text in [clone, plain, clone, plain, plain] {
        desk.apply(text);
        desk.is_as_applied(text);
        if text == plain {
            assert_eq!(desk.fake.snapshot(), before);
        }
    }
    assert_eq!(desk.undo(1).left, [""; 0]);
    assert_eq!(desk.fake.snapshot(), before);
}

/// The weight waits until the group is idle no more: it is no drift meanwhile, and no second apply tries to write it.
#[test]
fn a_weight_beside_idle_comes_into_force_when_the_group_is_idle_no_more() {
    for (kind, fake) in KERNELS {
        let desk = Desk::new(fake(CPUS, 1));
        let both = "[groups.g]\n\"cpu.idle\" = 1\n\"cpu.weight\" = 50\n";
        for _ in 0..2 {
            desk.apply(both);
            assert_eq!(desk.holds("g", "cpu.idle"), "1", "{kind}");
            desk.is_as_applied(kind);
            assert_eq!(desk.apply(both).steps, 0, "{kind}");
            desk.apply("[groups.g]\n\"cpu.weight\" = 50\n");
            let (file, _) = weight_file(&desk.fake);
            assert_eq!(desk.holds("g", file), if file == "cpu.shares" { "512" } else { "50" }, "{kind}");
            assert_eq!(desk.holds("g", "cpu.idle"), "0", "{kind}");
        }
        assert_eq!(desk.undo(1).left, [""; 0], "{kind}");
        desk.is_as_applied(kind);
    }
}

/// `memory.oom_control` also counts kills: they are no drift, and nothing to write again.
#[test]
fn a_counter_beside_a_value_is_no_change_of_it() {
    let desk = Desk::new(Fake::v1(CPUS, 1));
    let plain = "[groups.g]\ncontrollers = [\"memory\"]\n";
    desk.apply(plain);
    for (text, value) in [("0", "oom_kill_disable 0"), ("1", "oom_kill_disable 1")] {
        let layout = format!("[groups.g]\n\"memory.oom_control\" = {text}\n");
        desk.apply(&layout);
        desk.fake.kill_for_memory("g");
        desk.is_as_applied(text);
        assert_eq!(desk.apply(&layout).steps, 0);
        assert!(desk.holds("g", "memory.oom_control").starts_with(value));
        desk.apply(plain);
        desk.fake.kill_for_memory("g");
        assert!(desk.holds("g", "memory.oom_control").starts_with("oom_kill_disable 0"));
        assert_eq!(desk.apply(plain).steps, 0);
        desk.is_as_applied(plain);
    }
    // what somebody changes is drift
    desk.apply("[groups.g]\n\"memory.oom_control\" = 1\n");
    desk.fake.kill_for_memory("g");
    desk.write("g", "memory.oom_control", "0");
    let drift = desk.command(|state, target| status(state, target).unwrap());
    assert_eq!(drift[0].drift.len(), 1);
    let undone = desk.undo(1);
    assert_eq!(undone.left, [""; 0]);
    desk.is_as_applied("undone");
}
