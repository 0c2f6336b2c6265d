//! What an undo has to leave, since a task is in it: it is told, and the next undo takes it up again. The same story on
//! the kernel in memory and on the machine's own.

use std::{sync::OnceLock, time::Duration};

use apply::{Drift, Failure, GroupStatus, Lock, Outcome, Running, State, Target, execute, status, undo};
use fake::Fake;
use kernel::{GroupName, Kernel};
use plan::Plan;
use rustix::io::Errno;
use settings::Controller::{Cpu, Cpuset, Devices, Memory};

use crate::{
    faulty::{Beside, Fault, Faults},
    groups::{Groups, machine},
    maker::Maker,
    pipeline::{self, Layout},
    world::{host, meta, target},
};

/// A kernel with groups of a prefix, and tasks.
struct Story<'s> {
    to: Target<'s>,
    lock: &'s Lock,
    state: &'s State,
    prefix: &'s str,
    /// Puts a new task into a group.
    occupy: &'s dyn Fn(&str),
    /// Ends all tasks.
    leave: &'s dyn Fn(),
}

impl Story<'_> {
    fn name(&self, group: &str) -> String {
        format!("{}{group}", self.prefix)
    }

    fn exists(&self, group: &str) -> bool {
        !self.to.host.seats(&GroupName::new(&self.name(group)).unwrap()).is_empty()
    }

    fn apply(&self, make: impl Fn(&mut Maker<'_>)) -> u32 {
        let mut maker = Maker::new(self.to.host);
        make(&mut maker);
        self.carry_out(&maker.plan())
    }

    fn carry_out(&self, plan: &Plan) -> u32 {
        execute(self.lock, self.to, plan, &meta("apply")).unwrap().generation.unwrap()
    }

    fn make(&self, groups: &[&str]) -> u32 {
        self.apply(|maker| {
            for group in groups {
                maker.create(Cpu, &self.name(group));
            }
        })
    }

    fn shares(&self, group: &str, shares: &str) -> u32 {
        self.apply(|maker| {
            maker.write(Cpu, &self.name(group), "cpu.shares", shares);
        })
    }

    fn undo(&self, to: Option<u32>) -> Outcome {
        undo(self.lock, self.to, to, &meta("undo")).unwrap()
    }

    /// The groups that are told to have had to stay, with the generation that made them.
    fn stays(&self) -> Vec<(String, u32)> {
        let stays = |status: GroupStatus| {
            let made = status.drift.iter().find_map(|drift| match drift {
                Drift::Stayed { generation, .. } => Some(*generation),
                _ => None,
            });
            Some((status.group.strip_prefix(self.prefix).unwrap().to_owned(), made?))
        };
        status(self.state, self.to).unwrap().into_iter().filter_map(stays).collect()
    }

    fn nothing_is_left(&self, groups: &[&str]) {
        for group in groups {
            assert!(!self.exists(group), "{group}");
        }
        assert_eq!(status(self.state, self.to).unwrap(), []);
        assert!(matches!(undo(self.lock, self.to, None, &meta("undo")), Err(Failure::NothingToUndo)));
    }

    fn all(&self) {
        self.a_later_undo_removes_it();
        self.a_generation_that_came_later_keeps_it();
        self.it_is_its_generations_again();
    }

    fn a_later_undo_removes_it(&self) {
        let made = self.make(&["a", "a/b", "c"]);
        (self.occupy)("a/b");
        let left = self.undo(Some(0)).left;
        assert!(left.iter().any(|left| left.contains("a/b' stays: 1 process in")), "{left:?}");
        let both = [("a".to_owned(), made), ("a/b".to_owned(), made)];
        assert!(self.exists("a/b") && !self.exists("c"));
        assert_eq!(self.stays(), both);
        // still occupied
        assert_eq!(self.undo(Some(0)).steps, 0);
        assert_eq!(self.stays(), both);
        // what has nothing to do with it
        self.make(&["d"]);
        assert_eq!(self.stays(), both);
        (self.leave)();
        let outcome = self.undo(Some(0));
        assert_eq!((outcome.steps, outcome.left), (3, Vec::new()));
        self.nothing_is_left(&["a", "d"]);
    }

    fn a_generation_that_came_later_keeps_it(&self) {
        let made = self.make(&["a"]);
        (self.occupy)("a");
        self.undo(None);
        self.shares("a", "700");
        self.make(&["d"]);
        (self.leave)();
        self.undo(None);
        assert!(self.exists("a"), "a generation in effect changed it");
        assert_eq!(self.stays(), [("a".to_owned(), made)]);
        self.undo(None);
        self.nothing_is_left(&["a", "d"]);
    }

    fn it_is_its_generations_again(&self) {
        self.make(&["d"]);
        let made = self.apply(|maker| {
            maker.create(Cpu, &self.name("a"));
        });
        let more = self.shares("a", "700");
        (self.occupy)("a");
        self.undo(Some(0));
        assert_eq!(self.stays(), [("a".to_owned(), made)]);
        self.undo(Some(more));
        assert!(self.stays().is_empty() && self.exists("d"));
        assert!(status(self.state, self.to).unwrap().iter().all(|status| status.drift.is_empty()));
        (self.leave)();
        self.undo(Some(made));
        assert!(self.exists("a"));
        self.undo(Some(0));
        self.nothing_is_left(&["a", "d"]);
    }
}

pub fn what_an_undo_had_to_leave_goes_with_a_later_one() {
    let fake = Fake::v1(4, 1);
    let faults = Faults::at(&[]);
    let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let tasks = std::cell::RefCell::new(Vec::new());
    let occupy = |group: &str| {
        let pid = fake.spawn(1).unwrap();
        let group = GroupName::new(group).unwrap();
        let seat = host.seat(&group, Cpu).unwrap();
        host.write(&seat, &group, "cgroup.procs", &pid.to_string()).unwrap();
        tasks.borrow_mut().push(pid);
    };
    let leave = || tasks.borrow_mut().drain(..).for_each(|pid| fake.end(pid));
    let (to, state) = (target(&host, &system), &state);
    Story { to, lock: &lock, state, prefix: "", occupy: &occupy, leave: &leave }.all();
}

/// Somebody puts a task into a new group, and the last step is refused.
pub fn groups_that_a_roll_back_had_to_leave_lose_their_limits() {
    let fake = Fake::v1(4, 1);
    let all = fake.hierarchies().unwrap();
    let with = |controller| all.iter().find(|at| at.controllers.contains(&controller)).unwrap().clone();
    let three = [Cpu, Cpuset, Memory].map(with);
    let changes = |fault: &[(usize, Fault)], put: &'static str| {
        let (kernel, all, once) = (fake.clone(), three.clone(), OnceLock::new());
        let look = move || {
            let limit = kernel.read(&all[2], "a/b", "memory.limit_in_bytes");
            if !put.is_empty() && once.get().is_none() && limit == Ok("33554432\n".to_owned()) {
                let pid = once.get_or_init(|| kernel.spawn(1).unwrap()).to_string();
                all.iter().for_each(|at| kernel.write(at, put, "cgroup.procs", &pid).unwrap());
            }
        };
        let faults = Faults::at_looking(fault, look);
        let (host, system) = (host(fake.clone(), &faults), Beside::fake(&fake, &faults));
        let to = target(&host, &system);
        let mut maker = Maker::new(&host);
        for group in ["a", "a/b"] {
            maker.create(Cpu, group).create(Cpuset, group).create(Memory, group);
            maker.write(Cpu, group, "cpu.shares", "700").write(Cpuset, group, "cpuset.mems", "0");
            maker.write(Cpuset, group, "cpuset.cpus", "1-2");
            maker.write(Memory, group, "memory.limit_in_bytes", "33554432");
        }
        let plan = maker.write(Cpu, "a", "cpu.shares", "800").plan();
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let done = execute(&lock, to, &plan, &meta("a"));
        let count = faults.count();
        let values = || {
            let files =
                [(0, "cpu.shares"), (1, "cpuset.cpus"), (1, "cpuset.mems"), (2, "memory.limit_in_bytes")];
            ["", "a", "a/b"].map(|group| files.map(|(at, file)| fake.read(&three[at], group, file)))
        };
        let [root, a, b] = values();
        if put.is_empty() {
            done.unwrap();
        } else {
            let Err(Failure::RolledBack { left, .. }) = done else { panic!("{done:?}") };
            // in three hierarchies
            let count = |text: &str| left.iter().filter(|left| left.contains(text)).count();
            let of_b = "cannot delete group 'a/b'";
            let kill = "(ringfence kill a/b, or move them out: ringfence move OTHER";
            assert_eq!(
                (left.len(), count(of_b), count(kill), count("1 group below")),
                (6, 3, 3, 3),
                "{left:?}"
            );
            assert_eq!((&a, &b), (&root, &root));
            fake.processes().unwrap().into_iter().for_each(|pid| fake.end(pid));
        }
        assert_eq!(undo(&lock, to, None, &meta("undo")).unwrap().left, [""; 0]);
        assert!(values()[1..].iter().flatten().all(Result::is_err));
        count
    };
    let count = changes(&[], "");
    // the undo's own changes are not counted
    changes(&[(count - 1, Fault::Refuse(Errno::IO))], "a/b");
}

/// A story on the machine's own kernel.
fn on_this_machine(name: &str, story: impl FnOnce(&Story<'_>)) {
    let groups = std::cell::RefCell::new(Groups::new(name));
    let prefix = groups.borrow().prefix.clone();
    let (host, system) = (machine(), Running::new());
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let occupy = |group: &str| {
        let pid = groups.borrow_mut().start("idle");
        groups.borrow().put(pid, group);
    };
    let leave = || groups.borrow_mut().end_processes();
    let to = target(&host, &system);
    story(&Story { to, lock: &lock, state: &state, prefix: &prefix, occupy: &occupy, leave: &leave });
}

pub fn what_an_undo_had_to_leave_on_this_machine_goes_with_a_later_one() {
    on_this_machine("stays", |story| story.all());
}

fn tree_of_devices(prefix: &str) -> Layout {
    let text = format!(
        "[groups.\"{prefix}old/below\"]\ndevices.deny = \"a\"\ndevices.allow = \"c 1:3 r\"\n\
         [groups.\"{prefix}old\"]\ndevices.deny = \"a\"\ndevices.allow = [\"c 1:3 rw\", \"c 1:5 r\"]\n"
    );
    ("layout.toml", text)
}

/// v1 takes rules for all devices only while no group is below.
pub fn a_parents_device_rules_come_before_its_children_and_go_after_them() {
    on_this_machine("tree", |story| {
        let at = story.to.host.hierarchy_of(Devices).unwrap();
        let seat = |group: &str| story.to.host.seat_in(at, &GroupName::new(&story.name(group)).unwrap());
        let list = |group: &str| {
            let text = story.to.host.kernel().read(at, &seat(group).path, "devices.list").unwrap();
            text.trim_end().to_owned()
        };
        story.to.host.kernel().mkdir(at, &seat("old").path).unwrap();
        let layout = tree_of_devices(story.prefix);
        let settled = || {
            assert_eq!(list("old"), "c 1:3 rw\nc 1:5 r");
            assert_eq!(list("old/below"), "c 1:3 r");
            assert!(pipeline::plan(&layout, story.to).steps.is_empty(), "it is as asked");
        };
        let all_is_back = || {
            assert_eq!(list("old"), "a *:* rwm");
            assert!(!story.exists("old/below"));
        };
        story.carry_out(&pipeline::plan(&layout, story.to));
        settled();
        // the group below is removed right before
        assert_eq!(story.undo(None).left, [""; 0]);
        all_is_back();

        // nor can what is above be given back while a task keeps a group below
        story.carry_out(&pipeline::plan(&layout, story.to));
        (story.occupy)("old/below");
        let left = story.undo(None).left;
        assert!(left.iter().any(|left| left.contains("device rules of group")), "{left:?}");
        assert_eq!(list("old"), "c 1:3 rw\nc 1:5 r");
        assert_eq!(list("old/below"), list("old"), "what a new group below starts with");
        (story.leave)();
        assert_eq!(story.undo(None).left, [""; 0]);
        all_is_back();

        // and with a group below from the beginning it is not possible at all
        story.to.host.kernel().mkdir(at, &seat("old/below").path).unwrap();
        let problems = pipeline::try_plan(&layout, story.to).unwrap_err();
        assert!(problems[0].to_string().contains("groups are below it"), "{problems:?}");
        let alone = format!("[groups.\"{}old\"]\ndevices.deny = \"a\"\n", story.prefix);
        let problems = pipeline::try_plan(&("layout.toml", alone), story.to).unwrap_err();
        assert!(problems[0].to_string().contains("groups are below it"), "{problems:?}");
    });
}
