//! The layout on this machine: planned, applied, and compared with what is there. The way is the commands': `plan`
//! decides, `apply` writes and records. Says nothing itself but through its results.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use apply::{By, Drift, Meta, Running, State, Target};
use kernel::Host;
use layout::{Diagnostic, Severity, Trust};
use plan::{Plan, Problem};
use system::Accounts;
use topology::Machine;

use crate::Refused;

/// How long another change is waited for, which holds the history's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// What tells one set of CPUs and memory from another.
const MACHINE: [&str; 3] = [
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/node/online",
];

/// A layout and its history.
#[derive(Debug)]
pub struct Division {
    state: State,
    layout: PathBuf,
}

/// What was done for a layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Its number in the history; `None` if there was nothing to do.
    pub generation: Option<u32>,
    /// How many steps.
    pub steps: usize,
    /// What is worth knowing: warnings of the layout and plan, values that the kernel holds otherwise.
    pub told: Vec<String>,
}

impl Division {
    /// `layout`: a file, or a directory with layout.toml and layout.d.
    pub fn new(state: State, layout: PathBuf) -> Division {
        Division { state, layout }
    }

    /// Puts back what a change that was broken off had done, and undoes what was not confirmed in time. What was done
    /// is told.
    ///
    /// # Errors
    /// [`apply::Failure`].
    pub fn recover(state: &State, host: &Host) -> Result<Vec<String>, apply::Failure> {
        let running = Running::new();
        let recovered = apply::recover(&state.lock(PATIENCE)?, Target { host, system: &running })?;
        let told = |one: &apply::Recovered| {
            let left =
                if one.left.is_empty() { String::new() } else { format!("; left: {}", one.left.join(", ")) };
            format!("generation {} was broken off or not confirmed: {:?}{left}", one.generation, one.ending)
        };
        Ok(recovered.iter().map(told).collect())
    }

    /// Makes the machine as the layout asks, wholly or not at all.
    ///
    /// # Errors
    /// [`Refused`]: nothing is changed then, but for what its text says.
    pub fn apply(&self, host: &Host) -> Result<Applied, Refused> {
        let failed = |failure: apply::Failure| {
            let hint = failure.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
            Refused { summary: failure.to_string(), details: hint }
        };
        let lock = self.state.lock(PATIENCE).map_err(failed)?;
        let (plan, mut told) = self.planned(host)?;
        let running = Running::new();
        let what = format!("layout {} (ringfenced)", self.layout.display());
        let meta = Meta { by: By::caller(), what, confirm_within: None };
        let outcome =
            apply::execute(&lock, Target { host, system: &running }, &plan, &meta).map_err(failed)?;
        told.extend(
            outcome.differences.iter().map(|one| {
                format!("{}: asked for {}, holds {}: {}", one.file, one.asked, one.held, one.reason)
            }),
        );
        Ok(Applied { generation: outcome.generation, steps: outcome.steps, told })
    }

    fn planned(&self, host: &Host) -> Result<(Plan, Vec<String>), Refused> {
        let (reading, sources) = layout::read_path(&self.layout, Trust::of_this_process());
        let refused = |diagnostics: &[Diagnostic]| {
            let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
            let layout = self.layout.display();
            Refused {
                summary: format!("{layout} has {errors} error(s); nothing was touched"),
                details: layout::render(diagnostics, &sources),
            }
        };
        let Some(desired) = reading.desired else { return Err(refused(&reading.diagnostics)) };
        let running = Running::new();
        let target = Target { host, system: &running };
        let machine = Machine::live()
            .map_err(|error| Refused { summary: error.to_string(), details: String::new() })?;
        let planned = apply::planned(target, &desired, &machine, &system::Live, &Accounts::new());
        let planned = planned.map_err(|problems| {
            let problems: Vec<Diagnostic> = problems.iter().map(Problem::diagnostic).collect();
            refused(&problems)
        })?;
        let lints = planned.lints.iter().map(plan::Lint::diagnostic);
        let told = reading.diagnostics.into_iter().chain(lints).map(|one| crate::ruling::in_line(&one));
        let told = told.collect();
        Ok((planned, told))
    }

    /// Where the machine is no longer as it was applied, each with its group; partitions that the kernel keeps invalid
    /// among them.
    ///
    /// # Errors
    /// [`apply::Failure`].
    pub fn drift(&self, host: &Host) -> Result<Vec<(String, Drift)>, apply::Failure> {
        let running = Running::new();
        let groups = apply::status(&self.state, Target { host, system: &running })?;
        let of_group = |group: apply::GroupStatus| {
            let name = group.group;
            group.drift.into_iter().map(move |drift| (name.clone(), drift))
        };
        Ok(groups.into_iter().flat_map(of_group).collect())
    }

    /// What the machine consists of, as far as CPUs and memory come and go.
    pub(crate) fn machine() -> String {
        let text = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let total = memory.lines().find(|line| line.starts_with("MemTotal")).unwrap_or_default();
        MACHINE.iter().map(|path| text(path)).collect::<String>() + total
    }
}
