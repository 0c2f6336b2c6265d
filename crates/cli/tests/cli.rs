//! The program as a user meets it, on the kernel of the machine that this runs on: this host, or a VM with cgroup
//! v2, v1, both, none, or systemd. `RINGFENCE` names the program where cargo does not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test's failure is a panic")]

#[path = "cli/agreement.rs"]
mod agreement;
#[path = "cli/architecture.rs"]
mod architecture;
#[path = "cli/asking.rs"]
mod asking;
#[path = "cli/backends.rs"]
mod backends;
#[path = "cli/cgrulesengd.rs"]
mod cgrulesengd;
#[path = "cli/desk.rs"]
mod desk;
#[path = "cli/input.rs"]
mod input;
#[path = "cli/lab.rs"]
mod lab;
#[path = "cli/layout_refusals.rs"]
mod layout_refusals;
#[path = "cli/layout_studies.rs"]
mod layout_studies;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/libcgroup.rs"]
mod libcgroup;
#[path = "cli/libcgroup_studies.rs"]
mod libcgroup_studies;
#[path = "cli/reference.rs"]
mod reference;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/regressions.rs"]
mod regressions;
#[path = "cli/script.rs"]
mod script;
#[path = "cli/top.rs"]
mod top;
#[path = "cli/watching.rs"]
mod watching;
#[path = "cli/world.rs"]
mod world;

use libtest_mimic::Arguments;

fn main() {
    let mut arguments = Arguments::from_args();
    // groups of one test are another's siblings, and some tests set what siblings share
    arguments.test_threads = Some(1);
    let world = world::World::look();
    let trials = [
        architecture::trials(),
        asking::trials(&world),
        input::trials(&world),
        reference::trials(&world),
        refusals::trials(&world),
        script::trials(&world),
        regressions::trials(&world),
        libcgroup::trials(&world),
        cgrulesengd::trials(&world),
        libcgroup_studies::trials(&world),
        layouts::trials(&world),
        layout_studies::trials(&world),
        layout_refusals::trials(&world),
        watching::trials(&world),
        agreement::trials(&world),
        backends::trials(&world),
        top::trials(&world),
        lab::trials(&world),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}
