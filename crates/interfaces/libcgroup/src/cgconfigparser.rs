//! `cgconfigparser`: makes the machine as configuration files say, by the plan and the journal of `ringfence apply`: all
//! of it, or the machine stays as it was.

use std::{path::PathBuf, time::Duration};

use apply::{Meta, Running, State, Target};
use clap::{Arg, ArgMatches, Command, value_parser};
use plan::{Plan, Problem};
use system::Accounts;
use topology::Machine;

use crate::{
    arguments::{access, command, files, verbose},
    configuration::{self, Configuration},
    failure::{BAD_CONFIGURATION, Failure, SYSTEM, warn},
    machine,
};

/// How long another change is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn definition() -> Command {
    command("cgconfigparser", "Parse and load the specified cgroups configuration file: make groups, mounts and settings as it says, all of it or nothing")
        .args(files().map(|file| file.required(false)))
        .group(clap::ArgGroup::new("configuration").args(["load", "load-directory"]).multiple(true).required(true))
        .args(access())
        .arg(state())
        .arg(verbose())
        .after_help("What was done can be taken back with ringfence undo.\nExample: cgconfigparser -l /etc/cgconfig.conf -L /etc/cgconfig.d")
}

/// Where the history is stored, as for `ringfence apply`.
pub(crate) fn state() -> Arg {
    let state = Arg::new("state").long("state").value_name("DIRECTORY").value_parser(value_parser!(PathBuf));
    state.help(format!("Where the history is stored [default: RINGFENCE_STATE, or {}]", apply::STATE))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let mut configuration = configuration::read(&configuration::files(matches)?)?;
    configuration::default_access(&mut configuration.desired, matches)?;
    let host = machine::even_without_hierarchies()?;
    if host.needs_unit() {
        systemd::ensure_unit(&host)?;
    }
    let running = Running::new();
    let target = Target { host: &host, system: &running };
    let state = matches.get_one::<PathBuf>("state").cloned().unwrap_or_else(apply::state_directory);
    let lock = State::open(state)?.lock(PATIENCE)?;
    apply::recover(&lock, target)?;
    let plan = planned(&configuration, target)?;
    let meta = Meta { by: apply::By::caller(), what: what(&configuration), ..Meta::default() };
    let outcome = apply::execute(&lock, target, &plan, &meta)?;
    if matches.get_flag("verbose") {
        let lints = plan.lints.iter().map(plan::Lint::diagnostic);
        let worth: Vec<_> = configuration.warnings.iter().cloned().chain(lints).collect();
        warn(&layout::render(&worth, &configuration.sources));
        for difference in &outcome.differences {
            warn(&format!(
                "{}: {} was written, the kernel has {}\n",
                difference.file, difference.requested, difference.actual
            ));
        }
        let generation = outcome.generation.map_or(String::new(), |number| format!("generation {number}: "));
        warn(&format!("{generation}{} steps done\n", outcome.steps));
    }
    Ok(0)
}

fn what(configuration: &Configuration) -> String {
    let files: Vec<&str> = configuration.sources.iter().map(|source| &*source.name).collect();
    format!("cgconfigparser {}", files.join(" "))
}

fn planned(configuration: &Configuration, target: Target<'_>) -> Result<Plan, Failure> {
    let desired = &configuration.desired;
    let machine = Machine::live()?;
    let accounts = Accounts::new();
    apply::planned(target, &apply::Earlier::none(), desired, &machine, &system::Live, &accounts).map_err(
        |problems| {
            let mut wrong = desired.unknown_accounts(&accounts);
            // those were printed with near names
            let others: Vec<&Problem> =
                problems.iter().filter(|problem| !matches!(problem, Problem::Nobody { .. })).collect();
            let status = if others.is_empty() { BAD_CONFIGURATION } else { SYSTEM };
            wrong.extend(others.into_iter().map(Problem::diagnostic));
            warn(&layout::render(&wrong, &configuration.sources));
            Failure::new(status, "this machine cannot satisfy the configuration; nothing was changed")
        },
    )
}
