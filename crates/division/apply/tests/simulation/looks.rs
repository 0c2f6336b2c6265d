//! How often directories are looked at does not grow faster than the layout: `status`, a plan, an apply and an undo behind groups
//! that somebody removed and a layout made again.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use apply::{State, Target, execute, status, undo};
use fake::Fake;
use kernel::Kernel;
use tempfile::TempDir;

use crate::{
    machine::{Affinities, Clocks, Faults, Sim},
    run::{LAYOUT, machine, meta, planned_text},
    world::CPUS,
};

struct Desk {
    fake: Fake,
    directory: TempDir,
}

impl Desk {
    /// How many looks at directories the act takes.
    fn looks(&self, act: impl FnOnce(&State, Target<'_>)) -> usize {
        let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
        let faults: Arc<Faults> = Faults::at(Vec::new());
        let (host, sim) = Sim::new(&self.fake, &faults, clocks, &Affinities::default(), CPUS);
        let state = State::open(self.directory.path()).unwrap();
        act(&state, Target { host: &host, system: &sim });
        faults.looks()
    }

    fn apply(&self, text: &str) -> usize {
        self.looks(|state, target| {
            let plan = planned_text(state, target, &machine(), text).unwrap();
            execute(&state.lock(Duration::ZERO).unwrap(), target, &plan, &meta(LAYOUT, None)).unwrap();
        })
    }
}

/// By command: the looks at directories with that many groups.
fn looks(groups: usize) -> Vec<(&'static str, usize)> {
    let desk = Desk { fake: Fake::v1(CPUS, 1), directory: tempfile::tempdir().unwrap() };
    let mut text = String::new();
    for group in 0..groups {
        writeln!(text, "[groups.\"above/g{group}\"]\npids.max = 10").unwrap();
    }
    desk.apply(&text);
    let at = desk.fake.hierarchies().unwrap().into_iter();
    for at in at.filter(|at| desk.fake.exists(at, "above")) {
        for group in 0..groups {
            desk.fake.rmdir(&at, &format!("above/g{group}")).unwrap();
        }
    }
    let again = desk.apply(&text);
    let status = desk.looks(|state, target| drop(status(state, target).unwrap()));
    let plan = desk.looks(|state, target| drop(planned_text(state, target, &machine(), &text).unwrap()));
    let undo = desk.looks(|state, target| {
        undo(&state.lock(Duration::ZERO).unwrap(), target, Some(0), &meta("undo", None)).unwrap();
    });
    vec![("apply", again), ("status", status), ("plan", plan), ("undo", undo)]
}

#[test]
fn looks_at_directories_grow_no_faster_than_the_layout() {
    let (few, many) = (20, 60);
    for ((command, of_few), (_, of_many)) in looks(few).into_iter().zip(looks(many)) {
        let grows = of_many * few > of_few * many * 5 / 4;
        assert!(!grows, "{command}: {of_few} looks with {few} groups, {of_many} with {many}");
    }
}
