//! The daemon on this machine's real hierarchies and real process events. Every rule here takes copies of programs of our
//! own under names of our own, or a user of the test's own, so that no other process of the machine is ever moved. Needs
//! root; this binary is the daemon and its gate too.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr, reason = "a test without harness")]

mod attacker;
mod classified;
mod counted;
mod daemon_process;
mod divided;
mod elastic;
mod endless;
mod host;
mod hotplug;
mod idle;
mod isolated;
mod journal;
mod killed;
mod latencies;
mod layout;
mod leases;
mod locked;
mod metrics;
mod metrics_scene;
mod needs;
mod oracle;
mod out_of_memory;
mod per_group;
mod postgresql;
mod prometheus;
mod protected;
mod protected_memory;
mod quotas;
mod recorded;
mod reloaded;
mod restored;
mod roles;
mod scheduled;
mod service;
mod soak;
mod strict;
mod unit_patterns;
mod world;

use std::{path::Path, process::ExitCode};

use fake::suite;
use libtest_mimic::{Arguments, Completion};
use settings::Version;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some(daemon_process::DAEMON) => return daemon_process::daemon(words),
        Some(daemon_process::GATE) => return daemon_process::gate(words),
        Some(metrics_scene::SCRAPE) => return metrics_scene::scrape(words),
        Some(attacker::ATTACKER) => return attacker::attack(words),
        Some("rf-test-sleep") => {
            std::thread::sleep(std::time::Duration::from_secs(600));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // each starts a daemon that sees all processes of the machine
    arguments.test_threads = Some(1);
    let trials = if rustix::process::geteuid().is_root() {
        [
            classified::trials(),
            reloaded::trials(),
            layout::trials(),
            scheduled::trials(),
            per_group::trials(),
            elastic::trials(),
            latencies::trials(),
            endless::trials(),
            restored::trials(),
            quotas::trials(),
            protected_memory::trials(),
            out_of_memory::trials(),
            locked::trials(),
            killed::trials(),
            hotplug::trials(),
            journal::trials(),
            idle::trials(),
            counted::trials(),
            metrics::trials(),
            recorded::trials(),
            strict::trials(),
            protected::trials(),
            attacker::trials(),
            soak::trials(),
        ]
        .concat()
    } else {
        let ignored = || Ok(Completion::ignored_with("needs root"));
        return libtest_mimic::run(&arguments, vec![suite::ignorable("daemon::all", ignored)]).exit_code();
    };
    let (v1, v2) = (needs::cpuset(Version::V1), needs::cpuset(Version::V2));
    let (hotplug, cores) = (needs::hotplug(), needs::cores());
    let hotplug_and = |more: Option<String>| hotplug.clone().or(more);
    let not_everywhere = [
        (scheduled::OF_THE_CLOCK, needs::vm()),
        (scheduled::OF_UNITS, needs::vm().or_else(needs::systemd)),
        (elastic::OF_CPUS, hotplug.clone()),
        (elastic::OF_CPUS_ON_V1, hotplug_and(v1.clone())),
        (divided::TRIALS, cores.clone()),
        (divided::OF_CPUS, hotplug_and(cores.clone())),
        (divided::OF_CPUS_ON_V2, hotplug_and(cores.or(v2))),
        (restored::ON_V1, v1),
        (hotplug::OF_CPUS, hotplug.clone()),
        (isolated::TRIALS, hotplug.clone()),
        (metrics::WITH_PROMETHEUS, needs::host("Prometheus")),
        (oracle::TRIALS, needs::vm()),
        (postgresql::TRIALS, needs::host("PostgreSQL")),
        (roles::TRIALS, needs::vm().or_else(needs::systemd)),
        (unit_patterns::TRIALS, needs::vm().or_else(needs::systemd)),
        (service::TRIALS, needs::vm().or_else(needs::systemd)),
    ];
    let not_everywhere = not_everywhere.iter().flat_map(|(cases, lacks)| {
        cases.iter().map(move |&(name, case)| suite::trial(name, lacks.clone(), case))
    });
    let trials = trials.into_iter().map(|(name, case)| suite::trial(name, None, case));
    suite::run(&arguments, trials.chain(not_everywhere).collect()).exit_code()
}

/// In a VM of tests/vm, which nobody else needs?
fn is_vm() -> bool {
    Path::new("/rf-vm").is_dir()
}

/// A case, which fails by a panic.
type Case = (&'static str, fn());
