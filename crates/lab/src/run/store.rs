//! The directory of an experiment's results: its file, its design, its environment, a line for every run, and the results.
//! What is written is whole or not there, but for the last line of the runs.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use experiment::{
    Results,
    results::{Design, Environment, Run},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Error;

/// What a resumed experiment must have as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
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
    pub notes: Vec<String>,
    /// Seconds that earlier parts took.
    pub took: f64,
}

/// The directory.
pub(crate) struct Store {
    directory: PathBuf,
    runs: File,
}

const EXPERIMENT: &str = "experiment.toml";
const BEGUN: &str = "design.json";
const ENVIRONMENT: &str = "environment.json";
const RUNS: &str = "runs.jsonl";
const RESULTS: &str = "results.json";

impl Store {
    /// A new one.
    pub fn begin(
        directory: &Path,
        text: &str,
        begun: &Begun,
        environment: &Environment,
    ) -> Result<Store, Error> {
        fs::create_dir_all(directory).map_err(Error::file("make", directory))?;
        if directory.join(RUNS).exists() {
            return Err(Error::Cannot {
                text: format!("{} holds the runs of an experiment already", directory.display()),
                hint: Some(format!(
                    "go on with it by --resume {}, or name another directory",
                    directory.display()
                )),
            });
        }
        write(&directory.join(EXPERIMENT), text.as_bytes())?;
        write_json(&directory.join(BEGUN), begun)?;
        write_json(&directory.join(ENVIRONMENT), environment)?;
        Store::open(directory)
    }

    /// One that is there, to add to it. A last line that was cut off is removed.
    pub fn open(directory: &Path) -> Result<Store, Error> {
        let path = directory.join(RUNS);
        let mut options = OpenOptions::new();
        let runs = options.create(true).append(true).open(&path).map_err(Error::file("write", &path))?;
        let text = fs::read(&path).map_err(Error::file("read", &path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        runs.set_len(whole as u64).map_err(Error::file("write", &path))?;
        Ok(Store { directory: directory.to_owned(), runs })
    }

    /// Adds a run; it is on the disk when this returns.
    pub fn add(&mut self, run: &Run) -> Result<(), Error> {
        let path = self.directory.join(RUNS);
        let mut line = serde_json::to_vec(run).map_err(|source| unreadable(&path, source))?;
        line.push(b'\n');
        self.runs.write_all(&line).and_then(|()| self.runs.sync_data()).map_err(Error::file("write", &path))
    }

    /// Writes the results.
    pub fn results(&self, results: &Results) -> Result<(), Error> {
        write_json(&self.directory.join(RESULTS), results)
    }

    /// How long it took so far.
    pub fn begun(&self, begun: &Begun) -> Result<(), Error> {
        write_json(&self.directory.join(BEGUN), begun)
    }
}

/// The experiment's text in a directory of results.
pub(crate) fn text(directory: &Path) -> Result<String, Error> {
    let path = directory.join(EXPERIMENT);
    fs::read_to_string(&path).map_err(|error| not_results(directory, &path, error))
}

pub(crate) fn begun(directory: &Path) -> Result<Begun, Error> {
    read_json(&directory.join(BEGUN))
}

pub(crate) fn environment(directory: &Path) -> Result<Environment, Error> {
    read_json(&directory.join(ENVIRONMENT))
}

/// The whole lines.
pub(crate) fn runs(directory: &Path) -> Result<Vec<Run>, Error> {
    let path = directory.join(RUNS);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("read", &path)(error)),
    };
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).map_err(|source| unreadable(&path, source))).collect()
}

/// The results in a directory.
///
/// # Errors
/// There are none, or they can't be read.
pub fn results(directory: &Path) -> Result<Results, Error> {
    let path = directory.join(RESULTS);
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|source| unreadable(&path, source)),
        Err(error) => Err(not_results(directory, &path, error)),
    }
}

fn not_results(directory: &Path, path: &Path, error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::Cannot {
            text: format!("{} holds no results of an experiment", directory.display()),
            hint: Some("ringfence lab run prints the directory at its end".to_owned()),
        };
    }
    Error::file("read", path)(error)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    serde_json::from_str(&text).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: serde_json::Error) -> Error {
    Error::cannot(format!("{}: {source}", path.display()))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|source| unreadable(path, source))?;
    text.push(b'\n');
    write(path, &text)
}

/// Whole, or as it was.
fn write(path: &Path, text: &[u8]) -> Result<(), Error> {
    let new = path.with_extension("new");
    let written = File::create(&new).and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&new, path)).map_err(Error::file("write", path))
}
