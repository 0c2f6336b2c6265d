//! The daemon on this machine's real hierarchies and real process events. Every rule here takes copies of programs of our
//! own under names of our own, or a user of the test's own, so that no other process of the machine is ever moved. Needs
//! root; this binary is the daemon and its gate too.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr, reason = "a test without harness")]

#[path = "daemon/classified.rs"]
mod classified;
#[path = "daemon/counted.rs"]
mod counted;
#[path = "daemon/daemon_process.rs"]
mod daemon_process;
#[path = "daemon/host.rs"]
mod host;
#[path = "daemon/hotplug.rs"]
mod hotplug;
#[path = "daemon/idle.rs"]
mod idle;
#[path = "daemon/journal.rs"]
mod journal;
#[path = "daemon/kept.rs"]
mod kept;
#[path = "daemon/kept_per_group.rs"]
mod kept_per_group;
#[path = "daemon/metrics.rs"]
mod metrics;
#[path = "daemon/metrics_scene.rs"]
mod metrics_scene;
#[path = "daemon/oracle.rs"]
mod oracle;
#[path = "daemon/postgresql.rs"]
mod postgresql;
#[path = "daemon/prometheus.rs"]
mod prometheus;
#[path = "daemon/recorded.rs"]
mod recorded;
#[path = "daemon/reloaded.rs"]
mod reloaded;
#[path = "daemon/service.rs"]
mod service;
#[path = "daemon/soak.rs"]
mod soak;
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
        [
            classified::trials(),
            reloaded::trials(),
            kept::trials(),
            kept_per_group::trials(),
            hotplug::trials(),
            journal::trials(),
            idle::trials(),
            counted::trials(),
            metrics::trials(),
            recorded::trials(),
            strict::trials(),
            oracle::trials(),
            postgresql::trials(),
            service::trials(),
            soak::trials(),
        ]
        .concat()
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

/// In a VM of tests/vm, which nobody else needs?
fn is_vm() -> bool {
    std::path::Path::new("/rf-vm").is_dir()
}

/// A case, which fails by a panic.
type Case = (&'static str, fn());
