//! The cases, each a function over a [`World`], and how one is run: whatever happens, its groups and processes are
//! gone afterwards.

mod behaviour; // what kernels differ in
mod child;
mod machine;
mod world;
mod writes;

mod cpu;
mod cpuset;
mod devices;
mod exclusive;
mod groups;
mod limits;
mod moves;
mod partitions;
mod rights;
mod since;
mod states;
mod threads;
mod unified;

use fake::suite;
use libtest_mimic::{Completion, Trial};

pub use child::{CHILD, child};
pub use world::{World, WorldKind};

/// What is expected of a kernel.
pub struct Case {
    name: String,
    needs: fn(&World) -> bool,
    /// What is on the machine that makes it impossible, in words.
    blocked: fn(&World) -> Option<String>,
    /// No test can make the situation on a real kernel.
    in_memory_alone: bool,
    run: Run,
}

enum Run {
    Code(fn(&World)),
    Row(&'static writes::Row),
}

/// A case for the worlds that have its subject.
pub fn case(name: &str, needs: fn(&World) -> bool, run: fn(&World)) -> Case {
    Case { name: name.to_owned(), needs, blocked: |_| None, in_memory_alone: false, run: Run::Code(run) }
}

/// Each case, with whether the world has its subject.
pub fn cases(world: &World) -> Vec<(Case, bool)> {
    let lists: [fn() -> Vec<Case>; 13] = [
        groups::cases,
        moves::cases,
        states::cases,
        rights::cases,
        cpu::cases,
        cpuset::cases,
        limits::cases,
        unified::cases,
        threads::cases,
        partitions::cases,
        exclusive::cases,
        devices::cases,
        since::cases,
    ];
    let code = lists.into_iter().flat_map(|list| list()).map(|case| {
        let fits = (case.needs)(world);
        (case, fits)
    });
    let rows = writes::rows().map(|row| {
        let (name, run) = (row.name.to_owned(), Run::Row(row));
        (Case { name, needs: |_| true, blocked: |_| None, in_memory_alone: false, run }, row.fits(world))
    });
    code.chain(rows).collect()
}

/// A case asks in code for what it needs.
const LACKS: &str = "another version, controller or file";

impl Case {
    /// The same case, for the kernel in memory alone.
    pub fn in_memory_alone(self) -> Case {
        Case { in_memory_alone: true, ..self }
    }

    /// The same case, not run (and that said) where something of others' is in its way.
    pub fn unless(self, blocked: fn(&World) -> Option<String>) -> Case {
        Case { blocked, ..self }
    }

    /// A real kernel that lacks the subject reports it; the one in memory has another of its versions for it.
    pub fn trial(self, kind: WorldKind, fits: bool) -> Option<Trial> {
        if self.in_memory_alone && kind == WorldKind::Real {
            return None;
        }
        match (fits, kind) {
            (true, _) => Some(self.run_on(kind)),
            (false, WorldKind::Real) => {
                Some(suite::trial(format!("{}::{}", kind.name(), self.name), Some(LACKS.to_owned()), || ()))
            }
            (false, _) => None,
        }
    }

    fn run_on(self, kind: WorldKind) -> Trial {
        suite::ignorable(format!("{}::{}", kind.name(), self.name), move || {
            let world = World::new(kind)?;
            if let Some(reason) = (self.blocked)(&world) {
                return Ok(Completion::ignored_with(reason));
            }
            match self.run {
                Run::Code(run) => run(&world),
                Run::Row(row) => row.run(&world),
            }
            Ok(Completion::Completed)
        })
    }
}
