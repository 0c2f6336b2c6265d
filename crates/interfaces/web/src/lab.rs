//! Results of experiments on the disk, studies, and simulations.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use ::lab::{OwnDirectory, run};
use answers::Problem;
use layout::Source;
use serde::Deserialize;
use units::hint::Command;

use crate::{
    api::lab::{Against, Lab, LabResult, Point, Simulate, Simulated, SimulatedLoad, Study, Synthetic},
    layouts::TextFile,
    program::Program,
    sample::millis,
};

/// An experiment that got a run this recently counts as one that goes on.
const RECENT: Duration = Duration::from_secs(120);
/// Larger results have no sentence in the list: reading them takes seconds.
const LARGEST: u64 = 16 << 20;
const RUNS: &str = "runs.jsonl";
const RESULTS: &str = "results.json";
const REPORT: &str = "report.html";
const LARGEST_REPORT: u64 = 64 << 20;

/// Results in a directory; what was read of one is remembered until its file changes.
#[derive(Debug)]
pub struct Results {
    directory: PathBuf,
    sentences: Mutex<HashMap<PathBuf, (SystemTime, Option<Sentence>)>>,
}

#[derive(Debug, Clone)]
struct Sentence {
    headline: String,
    complete: bool,
}

impl Results {
    /// Those in a directory.
    pub fn new(directory: PathBuf) -> Results {
        Results { directory, sentences: Mutex::default() }
    }

    /// The list, and the studies that the program has.
    pub fn list(&self, program: &Program) -> Lab {
        let mut results: Vec<LabResult> = Vec::new();
        let mut problem = None;
        match fs::read_dir(&self.directory) {
            Ok(entries) => results.extend(entries.flatten().filter_map(|entry| self.one(&entry.path()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problem = Some(format!("cannot read {}: {error}", self.directory.display())),
        }
        results.sort_by_key(|result| std::cmp::Reverse(result.at_ms));
        let studies = studies(program);
        if let Err(refused) = &studies {
            problem = problem.or(Some(refused.message.clone()));
        }
        let directory = self.directory.display().to_string();
        Lab { directory, results, studies: studies.unwrap_or_default(), problem }
    }

    fn one(&self, path: &Path) -> Option<LabResult> {
        let id = path.file_name()?.to_str()?.to_owned();
        let own = OwnDirectory::open(path).ok()?;
        let text = run::text_in(&own).ok()?;
        let experiment = experiment::read(&Source::new(&id, &text)).experiment;
        let runs = fs::read(path.join(RUNS)).unwrap_or_default();
        let runs = runs.iter().filter(|byte| **byte == b'\n').count();
        let changed = |file: &str| fs::metadata(path.join(file)).and_then(|file| file.modified()).ok();
        let last = [RUNS, RESULTS].iter().filter_map(|file| changed(file)).max();
        let sentence = self.sentence(path, &own);
        let complete = sentence.as_ref().is_some_and(|sentence| sentence.complete);
        let is_recent = last.is_some_and(|last| last.elapsed().is_ok_and(|age| age < RECENT));
        Some(LabResult {
            name: experiment.as_ref().map_or_else(|| id.clone(), |experiment| experiment.name.clone()),
            title: experiment.as_ref().map(|experiment| experiment.title.clone()).unwrap_or_default(),
            at_ms: last.map(millis),
            complete,
            runs,
            planned: experiment.as_ref().zip(design(path)).map(|(experiment, repetitions)| {
                experiment.condition.len() * experiment.load.len().max(1) * repetitions
            }),
            running: !complete && is_recent,
            headline: sentence.map(|sentence| sentence.headline),
            has_report: own.has(REPORT),
            id,
        })
    }

    fn sentence(&self, path: &Path, own: &OwnDirectory) -> Option<Sentence> {
        let file = fs::metadata(path.join(RESULTS)).ok().filter(|file| file.len() <= LARGEST)?;
        let changed = file.modified().ok()?;
        let mut known = self.sentences.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, sentence)) = known.get(path)
            && *at == changed
        {
            return sentence.clone();
        }
        let results = run::results(own).ok();
        let sentence = results
            .map(|results| Sentence { headline: report::takeaway(&results), complete: results.complete });
        known.insert(path.to_owned(), (changed, sentence.clone()));
        sentence
    }

    /// A report's page.
    ///
    /// # Errors
    /// There is none.
    pub fn report(&self, id: &str) -> Result<Vec<u8>, Problem> {
        let missing =
            || Problem::missing("there is no such report").hint("ringfence lab report DIRECTORY draws one");
        let is_name = !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\0']);
        let path = is_name.then(|| self.directory.join(id)).ok_or_else(missing)?;
        // whose directory it is, and that no link leads elsewhere
        let own = OwnDirectory::open(&path).map_err(|_| missing())?;
        own.read(REPORT, LARGEST_REPORT).ok().flatten().ok_or_else(missing)
    }
}

#[derive(Deserialize)]
struct Begun {
    design: Design,
}

#[derive(Deserialize)]
struct Design {
    repetitions: usize,
}

/// How often each condition is run.
fn design(path: &Path) -> Option<usize> {
    let text = fs::read(path.join("design.json")).ok()?;
    Some(serde_json::from_slice::<Begun>(&text).ok()?.design.repetitions)
}

#[derive(Deserialize)]
struct StudiesJson {
    studies: Vec<StudyJson>,
}

#[derive(Deserialize)]
struct StudyJson {
    name: String,
    title: String,
    #[serde(rename = "planned_sec")]
    seconds: f64,
    #[serde(rename = "quick_planned_sec")]
    quick_seconds: f64,
    needs_cpus: usize,
    needs_nodes: usize,
    tools: Vec<String>,
}

fn studies(program: &Program) -> Result<Vec<Study>, Problem> {
    let printed = program.run(["lab", "list", "--json"])?;
    let found: StudiesJson = printed.json()?;
    let study = |one: StudyJson| Study {
        name: one.name,
        title: one.title,
        seconds: one.seconds,
        quick_seconds: one.quick_seconds,
        needs_cpus: one.needs_cpus,
        needs_nodes: one.needs_nodes,
        tools: one.tools,
    };
    Ok(found.studies.into_iter().map(study).collect())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SimulatedJson {
    groups: Vec<String>,
    outcomes: Vec<OutcomeJson>,
}

#[derive(Deserialize)]
struct OutcomeJson {
    load: String,
    rule: String,
    seconds: f64,
    lost_percent: f64,
    stranded_percent: f64,
    unused_percent: f64,
    changes: usize,
    most_changes: usize,
    walk: usize,
    points: Vec<PointJson>,
}

#[derive(Deserialize)]
struct PointJson {
    at: f64,
    cpus: Vec<usize>,
}

/// Simulates elastic groups of a layout. `log`: the recorder's directory.
///
/// # Errors
/// The command's refusal.
pub fn simulate(call: &Simulate, log: &Path, program: &Program) -> Result<Simulated, Problem> {
    let file = TextFile::new(&call.text)?;
    let synthetic = call.synthetic.iter().map(|one| match one {
        Synthetic::Constant => "constant",
        Synthetic::Ramp => "ramp",
        Synthetic::Square => "square",
        Synthetic::Pareto => "pareto",
        Synthetic::Diurnal => "diurnal",
    });
    let against = call.against.iter().map(|one| match one {
        Against::Static => "static",
        Against::Koordinator => "koordinator",
        Against::ScxLayered => "scx_layered",
        Against::Lpmd => "lpmd",
        Against::Clairvoyant => "clairvoyant",
    });
    let mut options: Vec<String> = synthetic.map(|one| format!("--synthetic={one}")).collect();
    options.extend(against.map(|one| format!("--against={one}")));
    options.extend(call.trace.then(|| format!("--trace={}", log.display())));
    options.extend(call.seed.map(|seed| format!("--seed={seed}")));
    let mut args: Vec<OsString> = vec!["simulate".into(), "--json".into(), file.path().into()];
    args.extend(options.iter().map(Into::into));
    let printed = program.run(args)?;
    let command = Command::ringfence("simulate")
        .arg("layout.toml")
        .args(options.iter().map(String::as_str))
        .to_string();
    let mut diagnostics = Vec::new();
    let found: SimulatedJson = match printed.json().map_err(|problem| file.refusal(problem)) {
        Err(problem) if !problem.diagnostics.is_empty() => {
            diagnostics = problem.diagnostics;
            SimulatedJson::default()
        }
        other => other?,
    };
    let load = |one: OutcomeJson| SimulatedLoad {
        load: one.load,
        rule: one.rule,
        seconds: one.seconds,
        lost_percent: one.lost_percent,
        stranded_percent: one.stranded_percent,
        unused_percent: one.unused_percent,
        changes: one.changes,
        most_changes: one.most_changes,
        walk: one.walk,
        points: one.points.into_iter().map(|point| Point { at: point.at, cpus: point.cpus }).collect(),
    };
    Ok(Simulated {
        diagnostics,
        groups: found.groups,
        outcomes: found.outcomes.into_iter().map(load).collect(),
        warnings: printed.warnings(),
        command,
    })
}
