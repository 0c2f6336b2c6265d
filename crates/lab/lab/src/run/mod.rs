//! An experiment from its beginning to its results: makes what its runs need, makes the runs in their order, again those
//! that a gate rejected, and works out what they say. Each finished run is on the disk before the next begins. Whatever
//! it made is gone when it returns; what a killed one left the next `ringfence lab` command removes ([`clean`]).

mod isolated_place; // of the machine, that a run sets
mod journal; // what is made, written down before
mod store; // the directory of the results

mod budget; // real-time budgets of groups
mod bystanders; // the machine's other programs
mod devices; // loop devices, mounts, swap
mod exclusive; // CPUs of a group's own
mod relocate; // the user's processes into groups and back
mod roles; // processes of a server in groups by their roles
mod substitute; // built-in drivers in place of missing tools

mod elapsed; // times of a run
mod elastic; // CPUs that follow a group's load
mod isolation; // CPUs that the kernel keeps off

mod busiest; // which other programs were busy
mod environment; // what can change a result
mod gate;
mod given_gates; // of the command line
mod hopeless; // when hardly a run counts
mod interrupted; // what interrupted the CPUs of what is measured
mod sampling; // figures of groups and of the machine
mod shared_cpus; // CPU time of a group on single CPUs
mod ungrouped; // CPU time of processes in no group // what rejects a run

mod apply_settings; // before its workloads start
mod artifacts; // files of the tools, with the results
mod count; // what counts of a run, and what is recorded of it
mod runner; // one run
mod schedule;
mod warm_up; // before what counts // all of them

mod clean; // what a killed experiment left

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use experiment::{
    Experiment, Lengths, Note, Results, file,
    options::{self, Variant},
    rescale::Rescaled,
    results::Design,
};
use kernel::Host;
use topology::Machine;

pub use clean::{Cleaned, clean};
pub use given_gates::GivenGates;
pub use sampling::{group_figures, machine_figures};
pub use store::{has_runs, results};

use self::{
    devices::Devices,
    journal::{Entry, Journal},
    runner::{Bystanders, Context, DevicePaths, Meters, Ready, Runner},
    sampling::Sampling,
    shared_cpus::SharedCpus,
    store::{Manifest, Store},
    substitute::Replaced,
};
use workloads::{Program, Site, Stop, drivers, urgent::Urgent};

use crate::{Error, OwnDirectory, groups::Groups, spawn::Spawner};

/// What is to be run, and how.
pub struct Request<'r> {
    /// The experiment as its file has it.
    pub experiment: Experiment,
    /// Its named sets of CPUs on this machine.
    pub cpus: Rescaled,
    /// The file's text, for the record.
    pub text: String,
    /// The texts of its layouts by their paths there, for the record and for going on.
    pub layouts: BTreeMap<String, String>,
    /// What a reader of the results must know beside.
    pub notes: Vec<Note>,
    /// Its quick lengths.
    pub quick: bool,
    /// Instead of the file's.
    pub repetitions: Option<u32>,
    /// Instead of the file's, or of one that is drawn.
    pub seed: Option<u64>,
    /// Instead of the file's.
    pub gates: GivenGates,
    /// Built-in workloads in place of all tools that have one.
    pub built_in: bool,
    /// Other programs are moved off CPUs that a group of the experiment has for itself.
    pub move_others: bool,
    /// The user's block device in place of a loop device of the experiment; it is only read.
    pub device: Option<PathBuf>,
    /// Where results go; it is made.
    pub directory: PathBuf,
    /// Instead: continues the experiment in a directory of results. The options of its beginning hold.
    pub resume: Option<Arc<OwnDirectory>>,
    /// How built-in workloads and processes in groups are started.
    pub program: Program,
    /// Set by the caller's signal handler.
    pub stop: Stop,
    /// Called with what happens.
    pub progress: &'r mut dyn FnMut(&Step<'_>),
}

/// What happens next.
#[derive(Debug)]
pub enum Step<'s> {
    /// In words.
    Preparing(&'s str),
    /// A run begins.
    Run {
        /// From 1.
        number: usize,
        /// Runs that are to count.
        of: usize,
        /// Which condition.
        condition: &'s str,
        /// Under which load.
        load: Option<&'s str>,
        /// From 1; later ones repeat a rejected run.
        attempt: u32,
        /// All that is left, this run with it.
        left: Duration,
    },
    /// It was rejected.
    Rejected(&'s str),
    /// The runs are over, and another process still has one of their loop devices open.
    StillOpen(&'s Path),
}

/// Runs it.
///
/// # Errors
/// An interruption ([`Error::is_interruption`]) once `stop` is set: finished runs stay. [`Error::Cannot`] if it can't be made here. All
/// others end it too, with what was made removed.
pub fn run(host: &Host, machine: &Machine, request: Request<'_>) -> Result<Results, Error> {
    let mut experiment = request.experiment.clone();
    let before = request.resume.as_deref().map(store::begun).transpose()?;
    let replaced = substitute::replace(
        &mut experiment,
        request.built_in,
        before.as_ref().map(|begun| &begun.built_in[..]),
        &request.program,
    );
    let given = before.as_ref().map_or(&request.gates, |begun| &begun.gates).clone();
    let given_note = given.apply(&mut experiment.gates);
    let mut cpus = request.cpus.clone();
    let left_out = experiment::leave_out(&mut experiment, &cpus, machine.online().len());
    let left_out = left_out.map_err(|why| Error::cannot(format!("not reproducible here: {why}")))?;
    cpus.notes.extend(left_out);
    let _urgent = Urgent::now();
    let mut journal = Journal::begin(&journal::directory())?;
    let parent = format!("rf-lab-{}", std::process::id());
    journal.write(&Entry::Group(parent.clone()))?;
    let begun = before.unwrap_or_else(|| {
        let mut begun = begin(&request, &experiment, &cpus, replaced);
        begun.notes.extend(given_note);
        begun
    });
    let setup = Setup { host, machine, experiment: &experiment, cpus: &cpus, parent: &parent };
    let done = prepare_and_run(&setup, request, begun, &mut journal);
    let removed = journal.end(host);
    let results = done?;
    removed.map(|()| results)
}

/// What is run where.
struct Setup<'a> {
    host: &'a Host,
    machine: &'a Machine,
    experiment: &'a Experiment,
    cpus: &'a Rescaled,
    parent: &'a str,
}

fn prepare_and_run(
    setup: &Setup<'_>,
    mut request: Request<'_>,
    mut begun: Manifest,
    journal: &mut Journal,
) -> Result<Results, Error> {
    let Setup { host, machine, experiment, cpus, parent } = *setup;
    let mut lengths = Lengths::of(experiment, begun.design.quick);
    lengths.repetitions = begun.design.repetitions;
    let scratch = Scratch::make(journal)?;
    (request.progress)(&Step::Preparing("making groups and devices"));
    let devices = Devices::make(experiment, begun.device.as_deref(), &scratch.path, journal, &request.stop)?;
    let groups = Groups::below(parent);
    let settings =
        experiment.group.values().chain(experiment.condition.iter().flat_map(|one| one.settings.values()));
    let settings = settings.chain(experiment.event.iter().flat_map(|event| event.settings.values()));
    let names = settings.flat_map(|settings| settings.keys().map(String::as_str));
    let names = names.chain(elastic::settings(&experiment.condition));
    groups.make(host, experiment.group.keys().map(String::as_str), names)?;
    let mut notes = budget::give(host, experiment, &groups)?;
    let shared_cpus = SharedCpus::new(host, experiment, cpus, &groups)?;
    notes.extend(shared_cpus.notes.iter().cloned());
    // one that is resumed has them already
    notes.retain(|note| !begun.notes.contains(note));
    begun.notes.extend(notes);
    let mut runner = Runner {
        context: Context { host, experiment, lengths, cpus, parent, stop: request.stop.clone() },
        devices: DevicePaths { blocks: devices.blocks(), usable: devices.paths() },
        groups,
        launch: Spawner::new(request.program.clone(), parent, request.stop.clone()),
        meters: Meters { sampling: Sampling::new(host, parent, experiment)?, shared_cpus },
        workloads: workloads(experiment, &request.program, cpus, &scratch.path)?,
        homes: Vec::new(),
        bystanders: Bystanders { may_move: begun.move_others, moved: None },
        isolated: Vec::new(),
        seen: roles::Seen::default(),
        journal,
        results: None,
    };
    let made = runner.prepare(&mut request).and_then(|versions| {
        let mut store = match &request.resume {
            Some(directory) => Store::open(Arc::clone(directory))?,
            None => {
                let found = environment::environment(host, machine, &versions);
                Store::begin(&request.directory, &request.text, &begun, &found)?
            }
        };
        runner.results = Some(store.directory());
        schedule::runs(&mut runner, &mut request, &mut begun, &mut store)
    });
    runner::clean_up(&mut runner.workloads);
    // nothing of the experiment may hold its devices any more
    let back = runner.homes.iter().try_for_each(|home| home.put_back(host).map(drop));
    let emptied = back.and_then(|()| runner.groups.remove(host));
    drop(runner);
    let gone = devices.remove();
    let results = made?;
    emptied?;
    gone?.iter().for_each(|device| (request.progress)(&Step::StillOpen(device)));
    Ok(results)
}

/// A directory for the workloads' data.
struct Scratch {
    path: PathBuf,
}

/// Where there is room: /tmp may be memory.
const SCRATCH: [&str; 2] = ["/var/tmp", "/tmp"];

impl Scratch {
    fn make(journal: &mut Journal) -> Result<Scratch, Error> {
        let above = SCRATCH.iter().map(Path::new).find(|path| path.is_dir()).map(Path::to_owned);
        let (pid, time) = (std::process::id(), drawn());
        let path = above.unwrap_or_else(std::env::temp_dir).join(format!("rf-lab-{pid}-{time:x}"));
        if path.exists() {
            // somebody else's is not ours to use, nor to remove later
            return Err(Error::file("make", &path)(std::io::ErrorKind::AlreadyExists.into()));
        }
        journal.write(&Entry::Directory(path.clone()))?;
        std::fs::create_dir(&path).map_err(Error::file("make", &path))?;
        Ok(Scratch { path })
    }
}

fn begin(request: &Request<'_>, experiment: &Experiment, cpus: &Rescaled, replaced: Replaced) -> Manifest {
    let lengths = Lengths::of(experiment, request.quick);
    let design = Design {
        seed: request.seed.or(lengths.seed).unwrap_or_else(drawn),
        repetitions: request.repetitions.unwrap_or(lengths.repetitions),
        duration: lengths.duration.as_secs_f64(),
        warm_up: lengths.warm_up.as_secs_f64(),
        quick: request.quick,
        cpus: cpus.rows.clone(),
        took: 0.0,
    };
    let mut notes = cpus.notes.clone();
    notes.extend(replaced.notes);
    notes.extend(request.notes.iter().cloned());
    let sees_kernel = busiest::Look::now().sees_kernel();
    notes.extend(experiment::gate_notes(experiment).into_iter().map(|note| match note {
        Note::KernelThreadsApart { what, at_most } if !sees_kernel => {
            Note::KernelThreadsUnseen { what, at_most }
        }
        note => note,
    }));
    Manifest {
        design,
        device: request.device.clone(),
        layouts: request.layouts.clone(),
        built_in: replaced.names,
        move_others: request.move_others,
        notes,
        took: 0.0,
        gates: request.gates.clone(),
    }
}

/// A seed that nobody chose.
fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20)
}

fn workloads(
    experiment: &Experiment,
    program: &Program,
    cpus: &Rescaled,
    scratch: &Path,
) -> Result<Vec<Ready>, Error> {
    let mut all = Vec::new();
    let mut add =
        |name: Option<&String>, load: Option<&String>, workload: &file::Workload, variant: Variant| {
            let directory = scratch.join(all.len().to_string());
            std::fs::create_dir(&directory).map_err(Error::file("make", &directory))?;
            let driver = substitute::filled(&variant.driver, cpus)?;
            let changed = name.map(|name| options::changed(experiment, name)).unwrap_or_default();
            let reported = |option: &str| Some((option.to_owned(), options::text_of(&driver, option)?));
            all.push(Ready {
                name: name.cloned(),
                load: load.cloned(),
                conditions: variant.conditions,
                group: workload.group.clone(),
                clients_group: workload.clients_group.clone(),
                directory,
                is_io: driver.row().is_io,
                has_own_clock: driver.has_own_clock(),
                runs_to_its_end: driver.runs_to_its_end(),
                options: changed.into_iter().filter_map(reported).collect(),
                driver: drivers::new(&driver, program)?,
            });
            Ok::<_, Error>(())
        };
    for (name, workload) in &experiment.workload {
        let variants =
            options::variants(experiment, name).map_err(|error| Error::cannot(error.to_string()))?;
        for variant in variants {
            add(Some(name), None, workload, variant)?;
        }
    }
    for load in &experiment.load {
        for workload in &load.workload {
            let (driver, conditions) = (workload.driver.clone(), workload.conditions.clone());
            add(None, Some(&load.name), workload, Variant { driver, conditions })?;
        }
    }
    Ok(all)
}

impl Runner<'_> {
    /// Makes the workloads' data; says the versions of their programs.
    fn prepare(&mut self, request: &mut Request<'_>) -> Result<Vec<(String, String)>, Error> {
        let mut versions: Vec<(String, String)> = Vec::new();
        for workload in &mut self.workloads {
            for version in workload.driver.versions()? {
                if !versions.contains(&version) {
                    versions.push(version);
                }
            }
        }
        let mut seen = BTreeSet::new();
        for workload in &mut self.workloads {
            self.context.stop.check()?;
            // a workload with other options in other conditions has a driver for each, but one server of the user's
            let is_first = workload.name.as_ref().is_none_or(|name| seen.insert(name.clone()));
            let what = match (&workload.name, &workload.load) {
                (Some(name), _) => format!("preparing {name}"),
                (None, load) => format!("preparing load {}", load.as_deref().unwrap_or_default()),
            };
            (request.progress)(&Step::Preparing(&what));
            let site = Site {
                directory: &workload.directory,
                devices: &self.devices.usable,
                launch: &self.launch,
                group: workload.group.as_deref(),
                clients_group: workload.clients_group.as_deref(),
            };
            workload.driver.prepare(&site)?;
            let moves = is_first && !workload.driver.running_server().is_empty();
            if let Some(group) = workload.group.as_ref().filter(|_| moves) {
                let name = self.groups.name(group)?;
                self.homes.extend(relocate::move_in(
                    self.context.host,
                    &name,
                    &|| workload.driver.running_server(),
                    self.journal,
                )?);
            }
        }
        Ok(versions)
    }
}

/// The text of the experiment in a directory of results.
///
/// # Errors
/// It has none, or it can't be read.
pub fn text_in(directory: &OwnDirectory) -> Result<String, Error> {
    store::text(directory)
}

/// The texts of the layouts of the experiment in a directory of results, by their paths in it.
///
/// # Errors
/// They can't be read.
pub fn layouts_in(directory: &OwnDirectory) -> Result<BTreeMap<String, String>, Error> {
    Ok(store::begun(directory)?.layouts)
}
