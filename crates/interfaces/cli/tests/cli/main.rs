//! The program as a user meets it, on the kernel of the machine that this runs on: this host, or a VM with cgroup
//! v2, v1, both, none, or systemd. `RINGFENCE` names the program where cargo does not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test's failure is a panic")]

mod agreement;
mod answers;
mod architecture;
mod backends;
mod bad_state;
mod book;
mod cgrulesengd;
mod completion;
mod costs;
mod cset;
mod cset_tutorial;
#[cfg(target_arch = "x86_64")]
mod damaged;
mod desk;
mod documents;
mod frequencies;
mod hint_sources;
mod hints;
mod input;
mod isolate;
#[cfg(target_arch = "x86_64")]
mod isolated;
#[cfg(target_arch = "x86_64")]
mod killed;
mod lab;
mod layout_refusals;
mod layout_studies;
mod layouts;
mod libcgroup;
mod libcgroup_files;
mod libcgroup_studies;
mod modules;
mod newcomers;
mod obeyed;
mod page;
mod page_faults;
mod permission;
mod recipes;
mod reference;
mod refusals;
mod regressions;
mod reported;
mod scheduled;
mod script;
mod simulated;
mod sizes;
mod top;
#[cfg(target_arch = "x86_64")]
mod tracer;
#[cfg(target_arch = "x86_64")]
mod unconfirmed;
mod undoable;
mod unit_names;
mod unit_refusals;
mod units;
mod units_changed;
mod units_elastic;
mod units_exclusive;
mod units_patterns;
mod units_roles;
mod watching;
mod web;
mod words;
mod world;

use std::process::Command;

use fake::suite;
use libtest_mimic::{Arguments, Trial};

/// The history of commands that name none: this host's own is nobody's test.
const STATE: &str = "RINGFENCE_STATE";

fn main() {
    if std::env::var_os(STATE).is_none() {
        let state = tempfile::tempdir().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        let status = again.args(std::env::args_os().skip(1)).env(STATE, state.path()).status().unwrap();
        drop(state);
        std::process::exit(status.code().unwrap_or(1));
    }
    let mut arguments = Arguments::from_args();
    let world = world::World::look();
    let trials = [
        architecture::trials(),
        modules::trials(),
        sizes::trials(),
        words::trials(),
        hint_sources::trials(),
        permission::trials(&world),
        input::trials(&world),
        reference::trials(&world),
        refusals::trials(&world),
        script::trials(&world),
        regressions::trials(&world),
        libcgroup::trials(&world),
        cgrulesengd::trials(&world),
        cset::trials(&world),
        cset_tutorial::trials(&world),
        isolate::trials(&world),
        libcgroup_studies::trials(&world),
        layouts::trials(&world),
        newcomers::trials(&world),
        unit_names::trials(&world),
        documents::trials(&world),
        costs::trials(&world),
        page_faults::trials(&world),
        recipes::trials(&world),
        book::trials(),
        completion::trials(&world),
        layout_studies::trials(&world),
        layout_refusals::trials(&world),
        scheduled::trials(&world),
        simulated::trials(&world),
        watching::trials(&world),
        web::trials(&world),
        agreement::trials(&world),
        answers::trials(&world),
        reported::trials(&world),
        obeyed::trials(&world),
        #[cfg(target_arch = "x86_64")]
        killed::trials(&world),
        #[cfg(target_arch = "x86_64")]
        unconfirmed::trials(&world),
        #[cfg(target_arch = "x86_64")]
        damaged::trials(&world),
        bad_state::trials(&world),
        #[cfg(target_arch = "x86_64")]
        isolated::trials(&world),
        frequencies::trials(&world),
        backends::trials(&world),
        top::trials(&world),
        lab::trials(&world),
        units::trials(&world),
        units_patterns::trials(&world),
        units_roles::trials(&world),
        unit_refusals::trials(&world),
        units_changed::trials(&world),
        units_elastic::trials(&world),
        units_exclusive::trials(&world),
    ];
    let (parallel, alone): (Vec<Trial>, Vec<Trial>) = trials
        .into_iter()
        .flatten()
        .partition(|trial| IN_PARALLEL.iter().any(|of| trial.name().starts_with(of)));
    let only = std::env::var("RF_PARALLEL").unwrap_or_default();
    let mut failed = false;
    if only != "no" {
        failed |= suite::run(&arguments, parallel).has_failed();
    }
    if only != "only" {
        // groups of one test are another's siblings, and some tests set what siblings share
        arguments.test_threads = Some(1);
        failed |= suite::run(&arguments, alone).has_failed();
    }
    std::process::exit(if failed { 101 } else { 0 });
}

/// Tests that neither make a group nor look at those of others, by how their names begin. `RF_PARALLEL` is `only` for these, `no` for
/// all others.
const IN_PARALLEL: &[&str] = &[
    "a crate ",
    "bad layout: ",
    "completion: bash completes commands",
    "documents: ",
    "newcomers anywhere: ",
    "no two modules ",
    "simulate: ",
    "unsafe code ",
    "words: ",
    "works without any right: ",
];
