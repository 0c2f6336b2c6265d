//! The daemon's socket on the kernel of the machine that this runs on: who may what, and what hostile clients do to it.
//! Clients of other users are this program again, under their numbers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test's failure is a panic")]

mod boot;
mod client;
mod document;
mod host;
mod hostile;
mod races;
mod rights;
mod scene;
mod serving;

use fake::suite;
use libtest_mimic::Arguments;

fn main() {
    if client::is_asked() {
        return client::run();
    }
    let mut arguments = Arguments::from_args();
    // descriptors are counted, and they are the whole process's
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root();
    let rows = [boot::ROWS, rights::ROWS, serving::ROWS, document::ROWS, races::ROWS, hostile::ROWS];
    let trial = |(name, test): &(&'static str, fn())| {
        let test = *test;
        // without root there are no other users to be
        suite::fallible(*name, None, move || {
            test();
            Ok(())
        })
        .with_ignored_flag(!root)
    };
    let conclusion = suite::run(&arguments, rows.into_iter().flatten().map(trial).collect());
    scene::tidy();
    conclusion.exit();
}
