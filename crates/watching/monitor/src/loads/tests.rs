//! Groups on the in-memory kernel whose use the test writes; reads of it are counted.

use std::{cell::Cell, rc::Rc};

use fake::Fake;
use kernel::Hierarchy;
use settings::Controller;

use super::*;
use crate::{Buffer, Named, Uncached, tasks::TASKS};

const GROUPS: usize = 40;
/// Nanoseconds that are several CPUs of the time between two looks, however late a look is.
const LONG: u64 = 20_000_000_000;

/// What v1 counts the use of a group in.
fn usage() -> &'static str {
    file_of("cpu.usage")
}

fn file_of(field: &str) -> &'static str {
    let field = GROUP_FIELDS.iter().find(|known| known.name == field).unwrap();
    field.side(Version::V1).unwrap().source.file
}

/// The in-memory kernel's files, but for that one, which the kernel alone writes.
struct Shown {
    files: Uncached<Fake>,
    reads: Rc<Cell<usize>>,
    /// How many lists of tasks were opened.
    lists: Rc<Cell<usize>>,
}

impl Files for Shown {
    type Open = Named;

    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<Named, Errno> {
        self.lists.set(self.lists.get() + usize::from(file == TASKS));
        match file == usage() {
            true => Ok(Named::Outside(path(group))),
            false => self.files.open(at, group, file),
        }
    }

    fn open_outside(&self, path: &str) -> Result<Named, Errno> {
        self.files.open_outside(path)
    }

    fn read(&self, file: &Named, into: &mut Buffer) -> Result<(), Errno> {
        self.reads.set(
            self.reads.get() + usize::from(matches!(file, Named::Outside(of) if of.starts_with("/shown"))),
        );
        self.files.read(file, into)
    }

    fn at_most(&self) -> usize {
        usize::MAX
    }
}

fn path(group: &str) -> String {
    format!("/shown/{group}/{}", usage())
}

struct World {
    fake: Fake,
    host: Host,
    loads: Loads<Shown>,
    reads: Rc<Cell<usize>>,
    lists: Rc<Cell<usize>>,
    used: Vec<u64>,
    /// What the directory above used beside its groups.
    own: u64,
}

impl World {
    fn new() -> World {
        let fake = Fake::v1(4, 2);
        let host = Host::new(Box::new(fake.clone())).unwrap();
        for at in host.hierarchies() {
            host.kernel().mkdir(at, "many").unwrap();
            (0..GROUPS).for_each(|group| host.kernel().mkdir(at, &name(group)).unwrap());
        }
        let (reads, lists): (Rc<Cell<usize>>, Rc<Cell<usize>>) = Default::default();
        let groups = (0..GROUPS).map(name);
        let groups = groups.map(|name| GroupName::new(&name).unwrap()).collect();
        let files = Shown { files: Uncached(fake.clone()), reads: reads.clone(), lists: lists.clone() };
        let loads = Loads::new(&host, files, groups);
        World { fake, host, loads, reads, lists, used: vec![0; GROUPS], own: 0 }
    }

    /// After these groups used so much; how many files were read.
    fn look(&mut self, used: &[(usize, u64)]) -> usize {
        used.iter().for_each(|(group, used)| self.used[*group] += used);
        for (group, used) in self.used.iter().enumerate() {
            self.fake.set_outside(path(&name(group)), &used.to_string());
        }
        let all = self.own + self.used.iter().sum::<u64>();
        self.fake.set_outside(path("many"), &all.to_string());
        std::thread::sleep(Duration::from_millis(5));
        self.reads.set(0);
        self.loads.look(&self.host);
        self.reads.get()
    }

    fn used(&self) -> Vec<f64> {
        self.loads.all().map(|load| load.unwrap().used).collect()
    }
}

fn name(group: usize) -> String {
    format!("many/g{group}")
}

/// The directory above and the groups whose turn it is.
const FEW: usize = 1 + GROUPS.div_ceil(TURN as usize);

#[test]
fn one_read_stands_for_those_of_quiet_groups() {
    let mut world = World::new();
    assert!(world.look(&[]) > GROUPS && world.look(&[]) >= GROUPS, "at first all are read");
    assert_eq!(world.look(&[]), FEW);
    // one that runs is read itself
    world.look(&[(7, LONG)]);
    for _ in 0..30 {
        assert!(world.look(&[(7, LONG)]) <= FEW + 1);
        assert!(world.used()[7] > 1.0, "{:?}", world.used());
    }
}

#[test]
fn a_group_that_begins_to_run_is_seen_at_once_and_with_all_that_it_uses() {
    let mut world = World::new();
    for _ in 0..15 {
        world.look(&[]);
    }
    for group in 0..GROUPS {
        world.look(&[(group, LONG)]);
        let used = world.used();
        assert!(used[group] > 1.0, "{group}: {used:?}");
        world.look(&[]);
        assert!(world.used().iter().all(|used| *used < 1.0), "{group}: {:?}", world.used());
    }
}

#[test]
fn what_others_use_in_the_directory_above_hides_nobody() {
    let mut world = World::new();
    for _ in 0..15 {
        world.look(&[]);
    }
    world.own += LONG;
    assert!(world.look(&[]) >= GROUPS, "it may be of any group");
    world.own += LONG;
    world.look(&[(3, LONG)]);
    assert!(world.used()[3] > 1.0);
}

#[test]
fn tasks_are_looked_at_when_their_group_has_run() {
    let mut world = World::new();
    let tid = world.fake.spawn(1).unwrap();
    let at = world.host.hierarchy_of(Controller::Cpuacct).unwrap();
    world.host.kernel().write(at, &name(7), TASKS, &tid.to_string()).unwrap();
    let waits = |nanoseconds: u64| (format!("/proc/{tid}/schedstat"), format!("1000 {nanoseconds} 1"));
    let (path, none) = waits(0);
    world.fake.set_outside(path, &none);
    for _ in 0..2 * TURN {
        world.look(&[]);
    }
    world.lists.set(0);
    for _ in 0..2 * TURN {
        world.look(&[]);
    }
    assert_eq!(world.lists.get(), 0);
    let (path, long) = waits(LONG);
    world.fake.set_outside(path, &long);
    world.look(&[(7, LONG)]);
    let load = world.loads.all().nth(7).unwrap().unwrap();
    assert!(load.used > 1.0 && load.waiting > 0.9, "{load:?}");
}

#[test]
fn a_group_that_its_quota_stops_is_read_each_time() {
    let mut world = World::new();
    let at = world.host.hierarchy_of(Controller::Cpu).unwrap().clone();
    let periods = |world: &World, all: u64, stopped: u64| {
        for group in (0..GROUPS).map(name) {
            let text = format!("nr_periods {all}\nnr_throttled {stopped}\nthrottled_time 0\n");
            world.fake.count(&at, &group, file_of("cpu.periods"), &text).unwrap();
        }
    };
    periods(&world, 10, 0);
    for _ in 0..2 * TURN {
        world.look(&[(3, 1000)]);
    }
    assert_eq!(world.look(&[(3, 1000)]), FEW, "a quota that stops nobody");
    let throttled = |world: &World| world.loads.all().nth(3).unwrap().unwrap().throttled;
    periods(&world, 20, 5);
    let seen = (0..TURN).position(|_| {
        world.look(&[(3, 1000)]);
        throttled(&world) > 0.0
    });
    assert!(seen.is_some(), "no turn showed it");
    for more in 1..5 {
        periods(&world, 20 + more, 5 + more);
        world.look(&[(3, 1000)]);
        assert!((throttled(&world) - 1.0).abs() < 1e-9, "{more}");
    }
}
