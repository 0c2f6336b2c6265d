//! The layout on this machine: planned, applied, and compared with what is there. The way is the commands': `plan`
//! decides, `apply` writes and records. Says nothing itself but through its results.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use apply::{By, Drift, Lock, Meta, Running, State, Target};
use kernel::Host;
use layout::{Assigned, Desired, Diagnostic, Keep, Severity, Source, Trust};
use plan::{Plan, Problem};
use system::Accounts;
use topology::Machine;

use crate::{Refused, ruling::in_line};

/// How long another change is waited for, which holds the history's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// What tells one set of CPUs and memory from another.
const MACHINE: [&str; 3] = [
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/node/online",
];

/// A layout as it was read, and its history. What is on the disk by now does not count until it is read anew.
#[derive(Debug)]
pub struct Division {
    state: State,
    layout: PathBuf,
    desired: Desired,
    /// The texts that errors show, until it is applied.
    sources: Vec<Source>,
    /// The layout's warnings, until they are told.
    warnings: Vec<String>,
    applied: bool,
}

/// What was done to make groups as the layout asks again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mended {
    /// What was done.
    pub applied: Applied,
    /// Groups that were left as they are, with the number of steps that it would take.
    pub left: BTreeMap<String, usize>,
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
    /// Reads a layout: a file, or a directory with layout.toml and layout.d.
    ///
    /// # Errors
    /// [`Refused`] with every error of it.
    pub fn read(state: State, layout: PathBuf) -> Result<Division, Refused> {
        let (reading, sources) = layout::read_path(&layout, Trust::of_this_process());
        let Some(desired) = reading.desired else {
            return Err(refused(&layout, &reading.diagnostics, &sources));
        };
        let warnings = reading.diagnostics.iter().map(in_line).collect();
        Ok(Division { state, layout, desired, sources, warnings, applied: false })
    }

    /// Was it made so, if only once?
    pub fn is_applied(&self) -> bool {
        self.applied
    }

    /// What the layout says of keeping a group.
    pub fn keep(&self, group: &str) -> Option<Keep> {
        keep_of(&self.desired, group)
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
    pub fn apply(&mut self, host: &Host) -> Result<Applied, Refused> {
        let lock = self.state.lock(PATIENCE).map_err(failed)?;
        let mut plan = self.planned(host, &self.desired)?;
        let mut applied = self.execute(&lock, host, &plan)?;
        self.applied = true;
        self.sources.clear();
        let lints = std::mem::take(&mut plan.lints);
        let told = self.warnings.drain(..).chain(lints.iter().map(|one| in_line(&one.diagnostic())));
        applied.told.splice(0..0, told);
        Ok(applied)
    }

    /// Makes those groups as the layout asks again that are `mended`; what asks for a device that is not there is left
    /// out ([`Division::missing`]). Of all others, how many steps it would take.
    ///
    /// # Errors
    /// [`Refused`]: nothing is changed then, but for what its text says.
    pub fn mend(&self, host: &Host, mended: impl Fn(&str) -> bool) -> Result<Mended, Refused> {
        let lock = self.state.lock(PATIENCE).map_err(failed)?;
        let mut desired = self.desired.clone();
        for group in &mut desired.groups {
            group.demands.settings.retain(|assigned| is_there(assigned).is_ok());
        }
        let mut plan = self.planned(host, &desired)?;
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        plan.steps.retain(|step| {
            let group = step.group.to_string();
            mended(&group) || {
                *left.entry(group).or_default() += 1;
                false
            }
        });
        Ok(Mended { applied: self.execute(&lock, host, &plan)?, left })
    }

    fn execute(&self, lock: &Lock, host: &Host, plan: &Plan) -> Result<Applied, Refused> {
        let running = Running::new();
        let what = format!("layout {} (ringfenced)", self.layout.display());
        let meta = Meta { by: By::caller(), what, confirm_within: None };
        let outcome = apply::execute(lock, Target { host, system: &running }, plan, &meta).map_err(failed)?;
        let told = outcome
            .differences
            .iter()
            .map(|one| format!("{}: asked for {}, holds {}: {}", one.file, one.asked, one.held, one.reason));
        Ok(Applied { generation: outcome.generation, steps: outcome.steps, told: told.collect() })
    }

    fn planned(&self, host: &Host, desired: &Desired) -> Result<Plan, Refused> {
        let running = Running::new();
        let target = Target { host, system: &running };
        let machine = Machine::live()
            .map_err(|error| Refused { summary: error.to_string(), details: String::new() })?;
        let planned = apply::planned(target, desired, &machine, &system::Live, &Accounts::new());
        planned.map_err(|problems| {
            let problems: Vec<Diagnostic> = problems.iter().map(Problem::diagnostic).collect();
            refused(&self.layout, &problems, &self.sources)
        })
    }

    /// Settings that ask for what is not on this machine now, mostly a device; with the group.
    pub fn missing(&self) -> Vec<(String, String)> {
        let of_group = |group: &layout::Group| {
            let name = group.name.to_string();
            let told = move |assigned: &Assigned| {
                let error = is_there(assigned).err()?;
                Some((name.clone(), format!("{} is not in force: {error}", assigned.found.name)))
            };
            group.demands.settings.iter().filter_map(told).collect::<Vec<_>>()
        };
        self.desired.groups.iter().flat_map(of_group).collect()
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
            let drift = group.drift.into_iter().filter(|drift| !is_of_absent_device(drift));
            drift.map(move |drift| (name.clone(), drift))
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

fn failed(failure: apply::Failure) -> Refused {
    let hint = failure.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
    Refused { summary: failure.to_string(), details: hint }
}

fn refused(layout: &Path, diagnostics: &[Diagnostic], sources: &[Source]) -> Refused {
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    let summary = format!("{} has {errors} error(s); nothing was touched", layout.display());
    Refused { summary, details: layout::render(diagnostics, sources) }
}

/// Does the value mean something on this machine?
fn is_there(assigned: &Assigned) -> Result<(), settings::ValueError> {
    assigned.found.parse(&assigned.text, &system::Live).map(drop)
}

/// Is a difference one that is told? Not of a group that the layout does not want kept.
pub(crate) fn is_counted(desired: &Desired, group: &str, drift: &Drift) -> bool {
    let keep = keep_of(desired, group);
    keep != Some(Keep::Off) && !is_of_absent_device(drift)
}

fn keep_of(desired: &Desired, group: &str) -> Option<Keep> {
    desired.groups.iter().find(|one| one.name.to_string() == group)?.demands.keep
}

/// The kernel forgets a device's limits with the device.
fn is_of_absent_device(drift: &Drift) -> bool {
    let Drift::Changed { file, asked, .. } = drift else { return false };
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = asked.split_whitespace().next().unwrap_or_default();
    let is_number = number
        .split_once(':')
        .is_some_and(|(major, minor)| [major, minor].iter().all(|part| part.parse::<u32>().is_ok()));
    plan::is_by_key(name) && is_number && !Path::new("/sys/dev/block").join(number).exists()
}
