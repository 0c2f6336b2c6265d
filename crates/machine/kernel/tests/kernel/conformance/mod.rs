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

use libtest_mimic::{Completion, Trial};

pub use child::{CHILD, child};
pub use world::{World, WorldKind};

/// What is expected of a kernel.
pub struct Case {
    name: String,
    needs: fn(&World) -> bool,
    /// What is on the machine that makes it impossible, in words.
    blocked: fn(&World) -> Option<String>,
    run: Run,
}

enum Run {
    Code(fn(&World)),
    Row(&'static writes::Row),
}

/// A case for the worlds that have its subject.
pub fn case(name: &str, needs: fn(&World) -> bool, run: fn(&World)) -> Case {
    Case { name: name.to_owned(), needs, blocked: |_| None, run: Run::Code(run) }
}

/// All cases whose subject the world has.
pub fn cases(world: &World) -> Vec<Case> {
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
    let code = lists.into_iter().flat_map(|list| list()).filter(|case| (case.needs)(world));
    let rows = writes::rows().filter(|row| row.fits(world)).map(|row| Case {
        name: row.name.to_owned(),
        needs: |_| true,
        blocked: |_| None,
        run: Run::Row(row),
    });
    code.chain(rows).collect()
}

impl Case {
    /// The same case, not run (and that said) where something of others' is in its way.
    pub fn unless(self, blocked: fn(&World) -> Option<String>) -> Case {
        Case { blocked, ..self }
    }

    pub fn trial(self, kind: WorldKind) -> Trial {
        Trial::ignorable_test(format!("{}::{}", kind.name(), self.name), move || {
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
