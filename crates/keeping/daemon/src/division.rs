//! The layout on this machine: planned, applied, and compared with what is there. The way is the commands': `plan`
//! decides, `apply` writes and records. Says nothing itself but through its results.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use apply::{By, Drift, Earlier, Lock, Meta, RulesFile, Running, State, Target};
use kernel::{Host, Real};
use layout::{Assigned, Desired, Diagnostic, Keep, Schedule, Source};
use plan::{Action, Plan, Problem};
use system::{
    Accounts,
    files::{self, Trust},
};
use topology::Machine;
use units::hint::Command;

use crate::{ConfigurationError, loaded_rules::in_line};

/// How long another change is waited for, which holds the history's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a thread of its own waits for another change at a time.
const LONG: Duration = Duration::from_secs(3600);
/// How often such a thread looks whether a change is confirmed or undone.
const LOOK: Duration = Duration::from_secs(1);

/// The files by which a change of CPUs and memory is seen.
const MACHINE: [&str; 3] = [
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/node/online",
];

/// A layout as it was read, and its history. Later changes of the files count after a reload.
#[derive(Debug)]
pub struct Division {
    state: State,
    layout: PathBuf,
    /// As its schedules have it now.
    desired: Desired,
    /// As it was read.
    written: Desired,
    /// The schedules in force, and why the next change is made, for the history.
    in_force: Vec<String>,
    cause: Option<String>,
    /// Of its text.
    checksum: u32,
    /// The next generation's number when the look for drift began.
    looked_at: Option<u32>,
    /// The texts that errors show, until it is applied.
    sources: Vec<Source>,
    /// The layout's warnings, until they are logged.
    warnings: Vec<String>,
    /// Its file, if it has rules.
    rules: Option<RulesFile>,
    applied: bool,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaired {
    /// The steps that were done.
    pub applied: Applied,
    /// Groups that are not to be repaired, with the number of steps that they would need.
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
    pub warnings: Vec<String>,
}

impl Division {
    /// Reads a layout: a file, or a directory with layout.toml and layout.d.
    ///
    /// # Errors
    /// [`ConfigurationError`] with every error of it.
    pub fn read(state: State, layout: PathBuf) -> Result<Division, ConfigurationError> {
        let (reading, sources) = files::read_layout(&layout, Trust::of_this_process());
        let Some(desired) = reading.desired else {
            return Err(refused(&layout, &reading.diagnostics, &sources));
        };
        let warnings = reading.diagnostics.iter().map(in_line).collect();
        let texts = sources.iter().map(|source| &*source.text);
        let file = RulesFile::new(&layout, texts);
        let checksum = file.checksum;
        let rules = desired.is_about_later().then_some(file);
        let (written, in_force, cause) = (desired.clone(), Vec::new(), None);
        let applied = false;
        Ok(Division {
            state,
            layout,
            desired,
            written,
            in_force,
            cause,
            checksum,
            looked_at: None,
            sources,
            warnings,
            rules,
            applied,
        })
    }

    /// Was it applied at least once?
    pub fn is_applied(&self) -> bool {
        self.applied
    }

    /// What the layout says of keeping a group.
    pub fn keep(&self, group: &str) -> Option<Keep> {
        keep_of(&self.desired, group)
    }

    /// Rolls back a change that was interrupted, and undoes what was not confirmed in time. Returns what was done.
    ///
    /// # Errors
    /// [`apply::Failure`].
    pub fn recover(lock: &Lock, host: &Host) -> Result<Vec<String>, apply::Failure> {
        let running = Running::of_a_service();
        let recovered = apply::recover(lock, Target { host, system: &running })?;
        Ok(recovered.iter().map(ToString::to_string).collect())
    }

    /// The generation that waits to be confirmed, if one does: nothing is applied meanwhile.
    ///
    /// # Errors
    /// [`apply::Failure`].
    pub fn unconfirmed(state: &State, host: &Host) -> Result<Option<u32>, apply::Failure> {
        let running = Running::new();
        let pending = apply::pending(state, Target { host, system: &running })?;
        Ok(pending.map(|pending| pending.generation))
    }

    /// The right to change, if nobody has it now; never waits.
    ///
    /// # Errors
    /// [`apply::Failure`].
    pub fn try_lock(&self) -> Result<Option<Lock>, apply::Failure> {
        try_lock(&self.state)
    }

    /// Makes the machine as the layout asks, wholly or not at all.
    ///
    /// # Errors
    /// [`ConfigurationError`]: nothing is changed then, but for what its text says.
    pub fn apply(&mut self, lock: &Lock, host: &Host) -> Result<Applied, ConfigurationError> {
        let mut plan = self.planned(host, &self.earlier(host)?, &self.desired)?;
        if plan.empties(&self.desired) {
            let layout = self.layout.display();
            let summary =
                format!("{layout} has no groups: it would undo everything that earlier layouts applied");
            let apply = Command::ringfence("apply --yes").arg(layout.to_string());
            return Err(ConfigurationError { summary, details: format!("hint: to do it: {apply}") });
        }
        let executed = self.execute(lock, host, &plan);
        self.cause = None;
        let mut applied = executed?;
        self.applied = true;
        self.sources.clear();
        let lints = std::mem::take(&mut plan.lints);
        let warnings = self.warnings.drain(..).chain(lints.iter().map(|one| in_line(&one.diagnostic())));
        applied.warnings.splice(0..0, warnings);
        Ok(applied)
    }

    /// The same where all that may differ is what a generation changed: that is undone first, if it is the last one in effect, so
    /// that the two leave nothing in the history that later changes have to read.
    ///
    /// # Errors
    /// As [`Division::apply`].
    pub fn take_back(
        &mut self,
        lock: &Lock,
        host: &Host,
        generation: Option<u32>,
    ) -> Result<Applied, ConfigurationError> {
        let last = apply::last_in_effect(&self.state).map_err(failed)?;
        if generation.is_none() || last != generation {
            return self.apply(lock, host);
        }
        let running = Running::of_a_service();
        let meta = Meta { by: By::caller(), what: self.what(), ..Meta::default() };
        let undone = apply::undo(lock, Target { host, system: &running }, None, &meta).map_err(failed)?;
        // what it could not put back, and what was not so before
        let applied = self.apply(lock, host)?;
        Ok(Applied {
            generation: applied.generation.or(undone.generation),
            steps: applied.steps + undone.steps,
            warnings: undone.left.into_iter().chain(applied.warnings).collect(),
        })
    }

    /// Brings the groups that `wanted` selects back to the layout. What an earlier layout left in them goes back too, as
    /// [`Division::apply`] does it: a group that had to stay goes once it is empty. A setting for a device that is absent
    /// is skipped ([`Division::missing`]). The history's lock is taken for the writes alone: who has his group repaired all
    /// the time delays no other change for longer. `None`: another change is under way, or was made meanwhile.
    ///
    /// # Errors
    /// [`ConfigurationError`]: nothing is changed then, but for what its text says.
    pub fn repair(
        &self,
        host: &Host,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Repaired>, ConfigurationError> {
        // a change that somebody made since the look began may have ended what was compared
        let next = self.looked_at.map_or_else(|| self.state.next(), Ok).map_err(failed)?;
        let mut desired = self.desired.clone();
        let mut absent: Vec<(String, &'static str)> = Vec::new();
        for group in &mut desired.groups {
            let name = group.name.to_string();
            group.demands.settings.retain(|assigned| {
                let there = is_there(assigned).is_ok();
                if !there {
                    absent.push((name.clone(), assigned.found.setting.name));
                }
                there
            });
        }
        // the layout still has a setting that is skipped: it is no leftover of an earlier one
        let is_absent = |group: &str, file: &str| {
            let setting = settings::lookup(file).map(|found| found.setting.name);
            absent.iter().any(|(of, name)| of == group && Some(*name) == setting)
        };
        // a layout that is not in force takes nothing back
        let earlier = if self.applied { self.earlier(host)? } else { Earlier::none() };
        let mut plan = self.planned(host, &earlier, &desired)?;
        plan.dropped.files.retain(|(place, file, _)| {
            let at = host.hierarchies().get(place.hierarchy);
            !at.is_some_and(|at| is_absent(&host.named(at, &place.path), file))
        });
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        plan.steps.retain(|step| {
            let group = step.group.to_string();
            if let Action::Write { file, .. } = &step.action
                && step.restores
                && is_absent(&group, file)
            {
                return false;
            }
            wanted(&group) || {
                *left.entry(group).or_default() += 1;
                false
            }
        });
        plan.decided.retain(|step| wanted(&step.group.to_string()));
        if plan.steps.is_empty() {
            return Ok(Some(Repaired { applied: Applied::default(), left }));
        }
        let Some(lock) = self.try_lock().map_err(failed)? else { return Ok(None) };
        if self.state.next().map_err(failed)? != next {
            return Ok(None);
        }
        Ok(Some(Repaired { applied: self.execute(&lock, host, &plan)?, left }))
    }

    /// The layouts in effect.
    fn earlier(&self, host: &Host) -> Result<Earlier, ConfigurationError> {
        let running = Running::new();
        Earlier::read(&self.state, Target { host, system: &running }).map_err(failed)
    }

    fn execute(&self, lock: &Lock, host: &Host, plan: &Plan) -> Result<Applied, ConfigurationError> {
        let running = Running::of_a_service();
        let what = self.what();
        let (rules, file) = (self.rules.clone(), Some(self.identity().0));
        let meta = Meta { by: By::caller(), what, confirm_within: None, layout: true, rules, file };
        let outcome = apply::execute(lock, Target { host, system: &running }, plan, &meta).map_err(failed)?;
        let warnings = outcome.differences.iter().map(|one| {
            format!(
                "{}: {} was written, the kernel has {}: {}",
                one.file, one.requested, one.actual, one.reason
            )
        });
        Ok(Applied { generation: outcome.generation, steps: outcome.steps, warnings: warnings.collect() })
    }

    /// What is done, in words for the history.
    fn what(&self) -> String {
        let layout = format!("layout {}", self.layout.display());
        match (&self.cause, self.in_force.as_slice()) {
            (Some(cause), _) => format!("{cause}: {layout} (ringfenced)"),
            (None, []) => format!("{layout} (ringfenced)"),
            (None, names) => format!("{layout} with schedule {} (ringfenced)", names.join(", ")),
        }
    }

    /// Makes the layout what these schedules have in force. `cause`: why the next [`Division::apply`] is made, else the layout
    /// itself is the reason.
    pub fn follow_schedules(&mut self, in_force: &[&str], cause: Option<String>) {
        self.desired = self.written.with(in_force);
        self.in_force = in_force.iter().map(|name| (*name).to_owned()).collect();
        self.cause = cause;
    }

    /// A look for drift begins: a repair that follows is not made if the history has grown since.
    pub fn begin_look(&mut self) {
        self.looked_at = self.state.next().ok();
    }

    /// What changes by itself.
    pub fn schedules(&self) -> &[Schedule] {
        &self.written.schedules
    }

    /// The layout's path, absolute, and the checksum of its text.
    pub fn identity(&self) -> (PathBuf, u32) {
        (apply::absolute(&self.layout), self.checksum)
    }

    /// Where its history is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Patterns of units that somebody has to look for.
    pub fn patterns_to_watch(&self) -> Vec<String> {
        plan::patterns_without_file(&self.desired).into_iter().map(ToString::to_string).collect()
    }

    /// Have units come since it was applied that it does not limit yet?
    pub fn has_new_units(&self, host: &Host) -> bool {
        let running = Running::new();
        let target = Target { host, system: &running };
        // one that was undone, or that another one replaced, limits nobody
        let in_effect =
            apply::layout_in_effect(&self.state, target).ok().flatten().and_then(|head| head.rules);
        if in_effect.is_none() || in_effect != self.rules {
            return false;
        }
        let groups = apply::status(&self.state, target).unwrap_or_default();
        apply::new_units(target, &self.desired, &groups).is_ok_and(|new| !new.is_empty())
    }

    /// Schedules that this machine could not follow, a line each.
    pub fn unschedulable(&self, host: &Host) -> Vec<String> {
        let running = Running::new();
        let target = Target { host, system: &running };
        let in_force = apply::in_force(&self.state, &self.layout).unwrap_or_default();
        let mut wrong = apply::times(&self.written, &in_force, jiff::Timestamp::now());
        if let (Ok(earlier), Ok(machine)) = (self.earlier(host), Machine::live()) {
            let accounts = Accounts::new();
            wrong.extend(apply::unschedulable(
                target,
                &earlier,
                &self.written,
                &machine,
                &system::Live,
                &accounts,
            ));
        }
        wrong.iter().map(in_line).collect()
    }

    fn planned(&self, host: &Host, earlier: &Earlier, desired: &Desired) -> Result<Plan, ConfigurationError> {
        let running = Running::new();
        let target = Target { host, system: &running };
        let machine = Machine::live()
            .map_err(|error| ConfigurationError { summary: error.to_string(), details: String::new() })?;
        let planned = apply::planned(target, earlier, desired, &machine, &system::Live, &Accounts::new());
        let mut plan = planned.map_err(|problems| {
            let problems: Vec<Diagnostic> = problems.iter().map(Problem::diagnostic).collect();
            refused(&self.layout, &problems, &self.sources)
        })?;
        // what an earlier layout limited went with its device, and the kernel refuses the write
        plan.steps.retain(|step| match &step.action {
            Action::Write { file, text, .. } => !(step.restores && is_line_of_absent_device(file, text)),
            _ => true,
        });
        Ok(plan)
    }

    /// Settings that ask for what is not on this machine now, mostly a device; with the group.
    pub fn missing(&self) -> Vec<(String, String)> {
        let of_group = |group: &layout::Group| {
            let name = group.name.to_string();
            let shown = move |assigned: &Assigned| {
                let error = is_there(assigned).err()?;
                Some((name.clone(), format!("{} is not in force: {error}", assigned.found.name)))
            };
            group.demands.settings.iter().filter_map(shown).collect::<Vec<_>>()
        };
        self.desired.groups.iter().flat_map(of_group).collect()
    }

    /// Is another change under way?
    pub(crate) fn is_changing(&self) -> bool {
        matches!(try_lock(&self.state), Ok(None))
    }

    /// Changes when a change of the history begins or ends.
    pub(crate) fn stamp(&self) -> Option<(i64, i64)> {
        self.state.stamp()
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

/// The lock of a state directory, waited for as long as a change usually takes. Not for the loop.
///
/// # Errors
/// [`ConfigurationError`], with the holder.
pub(crate) fn lock(state: &State) -> Result<Lock, ConfigurationError> {
    state.lock(PATIENCE).map_err(failed)
}

/// The same without waiting; `None`: somebody else has it.
///
/// # Errors
/// [`apply::Failure`].
pub(crate) fn try_lock(state: &State) -> Result<Option<Lock>, apply::Failure> {
    match state.lock(Duration::ZERO) {
        Ok(lock) => Ok(Some(lock)),
        Err(apply::Failure::Locked { .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The lock once no change is under way and none waits to be confirmed. Not for the loop.
///
/// # Errors
/// Why it never comes.
pub(crate) fn lock_between_changes(state: &State) -> Result<Lock, String> {
    loop {
        let lock = match state.lock(LONG) {
            Ok(lock) => lock,
            Err(apply::Failure::Locked { .. }) => continue,
            Err(failure) => return Err(failure.to_string()),
        };
        let host = Host::new(Box::new(Real::new())).map_err(|error| error.to_string())?;
        match Division::unconfirmed(state, &host) {
            Ok(None) => return Ok(lock),
            Ok(Some(_)) => drop(lock),
            Err(failure) => return Err(failure.to_string()),
        }
        thread::sleep(LOOK);
    }
}

pub(crate) fn failed(failure: apply::Failure) -> ConfigurationError {
    let hint = failure.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
    ConfigurationError { summary: failure.to_string(), details: hint }
}

fn refused(layout: &Path, diagnostics: &[Diagnostic], sources: &[Source]) -> ConfigurationError {
    let summary = format!("{} has {}; nothing was changed", layout.display(), layout::errors(diagnostics));
    ConfigurationError { summary, details: layout::render(diagnostics, sources) }
}

/// Does the value mean something on this machine?
fn is_there(assigned: &Assigned) -> Result<(), settings::ValueError> {
    assigned.found.parse(&assigned.text, &system::Live).map(drop)
}

/// Is a difference reported? Not of a group that the layout leaves out with `keep = "off"`.
pub(crate) fn is_counted(desired: &Desired, group: &str, drift: &Drift) -> bool {
    let keep = keep_of(desired, group);
    keep != Some(Keep::Off) && !is_of_absent_device(drift)
}

fn keep_of(desired: &Desired, group: &str) -> Option<Keep> {
    desired.group_or_pattern(group)?.demands.keep
}

/// The kernel forgets a device's limits with the device.
fn is_of_absent_device(drift: &Drift) -> bool {
    let Drift::Changed { file, requested, .. } = drift else { return false };
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    is_line_of_absent_device(name, requested)
}

fn is_line_of_absent_device(file: &str, line: &str) -> bool {
    let number = line.split_whitespace().next().unwrap_or_default();
    let is_number = number
        .split_once(':')
        .is_some_and(|(major, minor)| [major, minor].iter().all(|part| part.parse::<u32>().is_ok()));
    settings::is_by_key(file) && is_number && !Path::new("/sys/dev/block").join(number).exists()
}
