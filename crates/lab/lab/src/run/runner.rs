//! One run: settings given, workloads started in their groups, warmed up until the rate is steady, what counts, the end,
//! and everything put back.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use experiment::{Experiment, Lengths, file::applies, rescale::Rescaled, results::Run};
use kernel::Host;

use super::{
    elastic::{self, ElasticGroups},
    isolated_place, isolation,
    journal::{Home, Journal, Relocation},
    roles,
    sampling::{Samples, Sampling},
    shared_cpus::SharedCpus,
};
use workloads::{Driver, Site, Stop, Timing};

use crate::{Error, OwnDirectory, groups::Groups, spawn::Spawner};

/// Where tasks ran is looked at once a second.
const TASKS: Duration = Duration::from_secs(1);
/// The longest sleep: Ctrl-C is noticed within it.
const NAP: Duration = Duration::from_millis(20);

/// A workload that can be started.
pub(crate) struct Ready {
    /// As the experiment names it; a load's has no name.
    pub name: Option<String>,
    /// Its load.
    pub load: Option<String>,
    /// Only in these conditions; empty: in all.
    pub conditions: Vec<String>,
    pub group: Option<String>,
    pub clients_group: Option<String>,
    pub directory: PathBuf,
    /// Kernel threads do its work.
    pub is_io: bool,
    /// It ends its warm-up and itself by its own clock.
    pub has_own_clock: bool,
    /// What counts of it is the time from its start to its end.
    pub runs_to_its_end: bool,
    /// Options that some condition has otherwise, as they are here.
    pub options: Vec<(String, String)>,
    pub driver: Box<dyn Driver>,
}

/// What is the same for all runs and is not changed by them.
pub(crate) struct Context<'b> {
    pub host: &'b Host,
    pub experiment: &'b Experiment,
    pub lengths: Lengths,
    pub cpus: &'b Rescaled,
    /// The group that the experiment's groups are in.
    pub parent: &'b str,
    pub stop: Stop,
}

/// The experiment's devices by their names.
pub(crate) struct DevicePaths {
    /// As paths of block devices, for settings.
    pub blocks: BTreeMap<String, String>,
    /// As workloads see them.
    pub usable: BTreeMap<String, PathBuf>,
}

/// What measures the groups and the machine.
pub(crate) struct Meters {
    pub sampling: Sampling,
    pub shared_cpus: SharedCpus,
}

/// The machine's other programs.
pub(crate) struct Bystanders {
    /// They may be moved off CPUs that are a group's own.
    pub may_move: bool,
    /// Where they are now, if they were moved.
    pub moved: Option<Relocation>,
}

/// Makes runs.
pub(crate) struct Runner<'b> {
    pub context: Context<'b>,
    pub devices: DevicePaths,
    pub groups: Groups,
    pub launch: Spawner,
    pub meters: Meters,
    pub workloads: Vec<Ready>,
    /// Processes of the user's in the experiment's groups, and where they were.
    pub homes: Vec<Home>,
    pub bystanders: Bystanders,
    /// What is set of the machine's knobs, as CPUs are isolated.
    pub isolated: Vec<isolated_place::Place>,
    /// Processes of servers that are divided by role, in the present run.
    pub seen: roles::Seen,
    pub journal: &'b mut Journal,
    /// The directory of the results, once it is made.
    pub results: Option<Arc<OwnDirectory>>,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellOf<'e> {
    pub condition: &'e str,
    pub load: Option<&'e str>,
}

impl Runner<'_> {
    /// Makes one run. Whatever happens, its workloads have ended and its settings are put back when this returns.
    pub fn run(&mut self, cell: CellOf<'_>, numbers: Run) -> Result<Run, Error> {
        let done = self.settings_and_run(cell, numbers);
        if done.is_err() {
            clean_up(&mut self.workloads);
        }
        let others = self.others_back();
        let put_back = self.groups.put_back(self.context.host);
        // behind the end of partitions, which sets the CPUs of the kernel's threads
        let knobs = isolation::give_back(&std::mem::take(&mut self.isolated));
        let run = done?;
        others.and(put_back).and(knobs).map(|_| run)
    }

    fn settings_and_run(&mut self, cell: CellOf<'_>, mut run: Run) -> Result<Run, Error> {
        let wanted = self.context.experiment.condition.iter().find(|one| one.name == cell.condition);
        let Some(wanted) = wanted else {
            return Err(Error::cannot(format!("there is no condition '{}'", cell.condition)));
        };
        let mut together = self.context.experiment.group.clone();
        for (group, settings) in &wanted.settings {
            together.entry(group.clone()).or_default().extend(settings.clone());
        }
        let elastic = ElasticGroups::of(self.context.cpus, &self.groups, wanted, &together)?;
        if let Some(elastic) = &elastic {
            elastic.add_settings(&mut together);
        }
        let (settings, closed) = self.set(&together)?;
        run.settings = settings;
        run.settings.extend(self.options(cell));
        self.others_away(closed, &together, &mut run)?;
        self.isolate(wanted, &together, &mut run)?;
        let resizing = elastic.map(ElasticGroups::start).transpose()?;
        self.seen = roles::Seen::default();
        self.start(cell)?;
        let mut samples = Samples::default();
        let (steady, warm_up) = self.warm_up(cell, &mut samples)?;
        run.steady = steady;
        run.warm_up = warm_up.as_secs_f64();
        let span = self.count(cell, &together, &mut run, samples)?;
        if let Some(resizing) = resizing {
            resizing.end(&mut run, span, &elastic::workloads_of(self.context.experiment, cell.condition))?;
        }
        Ok(run)
    }

    fn timing(&self) -> Timing {
        let Lengths { warm_up, steady_within, duration, .. } = self.context.lengths;
        Timing { warm_up, steady_within, duration }
    }

    /// Loads first: what is measured begins under them.
    fn start(&mut self, cell: CellOf<'_>) -> Result<(), Error> {
        let timing = self.timing();
        for is_load in [true, false] {
            for workload in &mut self.workloads {
                if workload.name.is_none() != is_load || !workload.is_in(cell) {
                    continue;
                }
                if self.context.stop.is_set() {
                    return Err(workloads::Error::Interrupted.into());
                }
                let site = Site {
                    directory: &workload.directory,
                    devices: &self.devices.usable,
                    launch: &self.launch,
                    group: workload.group.as_deref(),
                    clients_group: workload.clients_group.as_deref(),
                };
                workload.driver.start(&site, timing)?;
            }
            let begun = self.workloads.iter_mut();
            let mut begun = begun.filter(|one| one.name.is_none() == is_load && one.is_in(cell));
            begun.try_for_each(|workload| workload.driver.wait())?;
        }
        Ok(())
    }

    /// Moves processes of servers into the groups of their roles.
    fn divide(&mut self, cell: CellOf<'_>) -> Result<(), Error> {
        if !self.seen.is_due() {
            return Ok(());
        }
        for workload in self.workloads.iter().filter(|workload| workload.is_in(cell)) {
            if let (Some(divided), Some(group)) = (workload.driver.divided(), &workload.group) {
                self.seen.divide(self.context.host, &self.groups, group, &divided)?;
            }
        }
        Ok(())
    }

    /// Sleeps until then, but for a look at processes that come and go.
    pub(super) fn nap(&mut self, cell: CellOf<'_>, until: Instant) -> Result<(), Error> {
        loop {
            if self.context.stop.is_set() {
                return Err(workloads::Error::Interrupted.into());
            }
            self.divide(cell)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// Ends all workloads at once: one that takes its time does not hold up the others.
pub(super) fn clean_up(workloads: &mut [Ready]) {
    std::thread::scope(|threads| {
        for workload in workloads {
            threads.spawn(|| workload.driver.clean_up());
        }
    });
}

impl Ready {
    /// As messages name it.
    pub(super) fn title(&self) -> String {
        match (&self.name, &self.load) {
            (Some(name), _) => format!("'{name}'"),
            (None, Some(load)) => format!("load '{load}'"),
            (None, None) => "a load".to_owned(),
        }
    }

    /// What its files are named after.
    pub(super) fn label(&self) -> String {
        self.name.clone().or_else(|| self.load.clone()).unwrap_or_default()
    }

    pub(super) fn is_in(&self, cell: CellOf<'_>) -> bool {
        let of_load = self.name.is_some() || self.load.as_deref() == cell.load;
        of_load && applies(&self.conditions, cell.condition)
    }
}

/// When samples are due. Late ones are not made up for.
pub(super) struct Beats {
    every: Duration,
    next: Option<Instant>,
    tasks: Instant,
}

impl Beats {
    pub(super) fn new(every: Duration, begun: Instant) -> Beats {
        Beats { every, next: (!every.is_zero()).then_some(begun), tasks: begun }
    }

    pub(super) fn next(&self) -> Instant {
        // without samples: whatever else is due comes first
        self.next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }

    pub(super) fn take(
        &mut self,
        host: &Host,
        sampling: &mut Sampling,
        samples: &mut Samples,
    ) -> Result<(), Error> {
        let now = Instant::now();
        let Some(due) = self.next.filter(|due| now >= *due) else { return Ok(()) };
        let tasks = now >= self.tasks;
        if tasks {
            self.tasks = now + TASKS;
        }
        self.next = Some((due + self.every).max(now));
        sampling.take(host, samples, tasks)
    }
}
