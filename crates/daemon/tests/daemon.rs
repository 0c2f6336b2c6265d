//! The daemon on this machine's real hierarchies and real process events. Every rule here takes copies of programs of our
//! own under names of our own, so that no other process of the machine is ever moved. Needs root; this binary is the
//! daemon and its gate too.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr, reason = "a test without harness")]

#[path = "daemon/classified.rs"]
mod classified;
#[path = "daemon/daemon_process.rs"]
mod daemon_process;
#[path = "daemon/kept.rs"]
mod kept;
#[path = "daemon/reloaded.rs"]
mod reloaded;
#[path = "daemon/strict.rs"]
mod strict;
#[path = "daemon/world.rs"]
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some(daemon_process::DAEMON) => return daemon_process::daemon(words),
        Some(daemon_process::GATE) => return daemon_process::gate(words),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // each starts a daemon that sees all processes of the machine
    arguments.test_threads = Some(1);
    let trials = if rustix::process::geteuid().is_root() {
        [classified::trials(), reloaded::trials(), kept::trials(), strict::trials()].concat()
    } else {
        let ignored = || Ok(Completion::ignored_with("needs root"));
        return libtest_mimic::run(&arguments, vec![Trial::ignorable_test("daemon::all", ignored)])
            .exit_code();
    };
    let trials = trials.into_iter().map(|(name, case)| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A case, which fails by a panic.
type Case = (&'static str, fn());
