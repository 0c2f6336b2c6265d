//! How long it takes to make many groups; told, never judged. Run with `--nocapture`.

use std::time::{Duration, Instant};

use apply::{Running, State, execute, undo};
use fake::suite;
use kernel::{Host, Real};
use libtest_mimic::Trial;
use settings::Controller::{Cpu, Memory};

use crate::{
    groups::Groups,
    maker::Maker,
    world::{meta, target},
};

pub fn trial() -> Trial {
    suite::fallible("how_long_2000_groups_take", None, || {
        // of a run that was interrupted, and of this one if it fails
        let _clear = Groups::new("speed");
        for (tasks, admin) in [(0, 0), (1000, 0), (1000, 1000), (1000, 1001)] {
            run(tasks, admin);
        }
        Ok(())
    })
}

fn run(tasks: u32, admin: u32) {
    let (host, system) = (Host::new(Box::new(Real::new())).unwrap(), Running::new());
    let directory = tempfile::tempdir().unwrap();
    let state = State::open(directory.path()).unwrap();
    let lock = state.lock(Duration::ZERO).unwrap();
    let mut maker = Maker::new(&host);
    for number in 0..2000 {
        let group = format!("rf-test-apply-speed-{number}");
        for controller in [Cpu, Memory] {
            maker.create(controller, &group).own(controller, &group, tasks, admin);
        }
    }
    for step in &mut maker.steps {
        if let plan::Action::SetOwnership { access, .. } = &mut step.action {
            access.directory_mode = None;
        }
    }
    let plan = maker.plan();
    let bare = bare();
    let start = Instant::now();
    let done = execute(&lock, target(&host, &system), &plan, &meta("speed"));
    let made = start.elapsed();
    let start = Instant::now();
    let undone = undo(&lock, target(&host, &system), None, &meta("speed"));
    eprintln!(
        "tasks {tasks}, admin {admin}: bare directories {bare:?}, made in {made:?}, undone in {:?}",
        start.elapsed()
    );
    done.unwrap();
    undone.unwrap();
}

/// The same directories and nothing else.
fn bare() -> Duration {
    use kernel::Kernel;
    let (host, kernel) = (Host::new(Box::new(Real::new())).unwrap(), Real::new());
    let places = || (0..2000).flat_map(|number| [Cpu, Memory].map(|controller| (number, controller)));
    let each = |act: &dyn Fn(&kernel::Hierarchy, &str) -> Result<(), rustix::io::Errno>| {
        for (number, controller) in places() {
            act(host.hierarchy_of(controller).unwrap(), &format!("rf-test-apply-speed-{number}")).unwrap();
        }
    };
    let start = Instant::now();
    each(&|at, group| kernel.mkdir(at, group));
    let made = start.elapsed();
    each(&|at, group| kernel.rmdir(at, group));
    made
}
