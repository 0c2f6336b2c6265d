//! The directory of an experiment's results: its file, its design, its environment, a line for every run, and the results.
//! What is written is whole or not there, but for the last line of the runs.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use experiment::{
    Note, Results,
    results::{Design, Environment, Run},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use units::hint::Command;
use workloads::files;

use super::given_gates::GivenGates;
use crate::{Error, OwnDirectory};

/// What a resumed experiment must have as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Seed, lengths, CPUs.
    pub design: Design,
    /// The device of `--device`.
    pub device: Option<PathBuf>,
    /// The texts of its layouts by their paths in its file.
    #[serde(default)]
    pub layouts: BTreeMap<String, String>,
    /// Workloads that are built-in in place of a tool.
    pub built_in: Vec<String>,
    /// Other programs are moved off CPUs that a group has for itself.
    #[serde(default)]
    pub move_others: bool,
    /// What a reader must know of that.
    pub notes: Vec<Note>,
    /// Seconds that earlier parts took.
    pub took: f64,
    /// Gates of the command line.
    #[serde(default)]
    pub gates: GivenGates,
}

/// The directory.
pub(crate) struct Store {
    directory: Arc<OwnDirectory>,
    runs: File,
}

const EXPERIMENT: &str = "experiment.toml";
const BEGUN: &str = "design.json";
const ENVIRONMENT: &str = "environment.json";
const RUNS: &str = "runs.jsonl";
const RESULTS: &str = "results.json";

/// The largest file of results that is read, in bytes: hours of runs with all their samples.
const LARGEST: u64 = 256 << 20;

impl Store {
    /// A new one.
    pub fn begin(
        directory: &Path,
        text: &str,
        begun: &Manifest,
        environment: &Environment,
    ) -> Result<Store, Error> {
        let own = OwnDirectory::create(directory)?;
        if own.has(RUNS) {
            return Err(Error::Cannot {
                text: format!("{} has the runs of an experiment already", directory.display()),
                hint: Some(format!(
                    "{}, or name another directory",
                    Command::ringfence("lab run --resume").arg(directory.display().to_string())
                )),
            });
        }
        own.write(EXPERIMENT, text.as_bytes())?;
        write_json(&own, BEGUN, begun)?;
        write_json(&own, ENVIRONMENT, environment)?;
        Store::open(Arc::new(own))
    }

    /// One that is there, to add to it. A last line that was cut off is removed.
    pub fn open(directory: Arc<OwnDirectory>) -> Result<Store, Error> {
        let path = directory.path().join(RUNS);
        let runs = directory.append(RUNS)?;
        let text = runs.try_clone().and_then(|file| files::read_all(file, LARGEST));
        let text = text.map_err(Error::file("read", &path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        runs.set_len(whole as u64).map_err(Error::file("write", &path))?;
        Ok(Store { directory, runs })
    }

    /// Where it is.
    pub fn directory(&self) -> Arc<OwnDirectory> {
        Arc::clone(&self.directory)
    }

    /// Adds a run; it is on the disk when this returns.
    pub fn add(&mut self, run: &Run) -> Result<(), Error> {
        let path = self.directory.path().join(RUNS);
        let mut line = serde_json::to_vec(run).map_err(|source| unreadable(&path, source))?;
        line.push(b'\n');
        self.runs.write_all(&line).and_then(|()| self.runs.sync_data()).map_err(Error::file("write", &path))
    }

    /// Writes the results, as [`text_of`] has them.
    pub fn results(&self, text: &[u8]) -> Result<(), Error> {
        self.directory.write(RESULTS, text)
    }

    /// How long it took so far.
    pub fn begun(&self, begun: &Manifest) -> Result<(), Error> {
        write_json(&self.directory, BEGUN, begun)
    }

    /// The whole lines.
    pub fn runs(&self) -> Result<Vec<Run>, Error> {
        let path = self.directory.path().join(RUNS);
        let text = self.directory.read(RUNS, LARGEST)?.unwrap_or_default();
        let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(line).map_err(|source| unreadable(&path, source))).collect()
    }

    /// As it was when the experiment began.
    pub fn environment(&self) -> Result<Environment, Error> {
        read_json(&self.directory, ENVIRONMENT)
    }
}

/// The experiment's text in a directory of results.
pub(crate) fn text(directory: &OwnDirectory) -> Result<String, Error> {
    let bytes = directory.read(EXPERIMENT, LARGEST)?.ok_or_else(|| not_results(directory))?;
    let path = directory.path().join(EXPERIMENT);
    String::from_utf8(bytes).map_err(|_| Error::cannot(format!("{} is not UTF-8", path.display())))
}

pub(crate) fn begun(directory: &OwnDirectory) -> Result<Manifest, Error> {
    read_json(directory, BEGUN)
}

/// The results in a directory.
///
/// # Errors
/// There are none, or they can't be read.
pub fn results(directory: &OwnDirectory) -> Result<Results, Error> {
    read_json(directory, RESULTS)
}

/// Are there finished runs, so that the experiment can be continued?
pub fn has_runs(directory: &OwnDirectory) -> bool {
    directory.has(RUNS)
}

fn not_results(directory: &OwnDirectory) -> Error {
    Error::Cannot {
        text: format!("{} has no results of an experiment", directory.path().display()),
        hint: Some("ringfence lab run prints the directory at its end".to_owned()),
    }
}

fn read_json<T: DeserializeOwned>(directory: &OwnDirectory, name: &str) -> Result<T, Error> {
    let bytes = directory.read(name, LARGEST)?.ok_or_else(|| not_results(directory))?;
    serde_json::from_slice(&bytes).map_err(|source| unreadable(&directory.path().join(name), source))
}

fn unreadable(path: &Path, source: serde_json::Error) -> Error {
    Error::cannot(format!("{}: {source}", path.display()))
}

fn write_json(directory: &OwnDirectory, name: &str, value: &impl Serialize) -> Result<(), Error> {
    let text = text_of(value).map_err(|source| unreadable(&directory.path().join(name), source))?;
    directory.write(name, &text)
}

/// A file's text.
pub(crate) fn text_of(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}
