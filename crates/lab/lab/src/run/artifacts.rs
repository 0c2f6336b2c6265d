//! The tools' own logs and reports of a run, copied beside the results (`runs/NUMBER/`), so that anybody can work the
//! figures out again. A log that is too long is cut off, which is reported.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use experiment::Note;
use workloads::files;

use crate::{Error, OwnDirectory};

/// Of one file, in bytes. A pgbench of many small transactions logs as much in about ten seconds.
const MOST: u64 = 32 << 20;

/// The files of one run.
pub(crate) struct Artifacts<'r> {
    results: &'r OwnDirectory,
    /// `runs/NUMBER`
    below: PathBuf,
    most: u64,
    /// Paths below the directory of the results.
    pub paths: Vec<String>,
}

impl<'r> Artifacts<'r> {
    /// What an interrupted run of the same number left is removed.
    pub fn begin(results: &'r OwnDirectory, number: u32) -> Result<Artifacts<'r>, Error> {
        let below = format!("runs/{number}");
        results.remove_all(&below)?;
        Ok(Artifacts { results, below: below.into(), most: MOST, paths: Vec::new() })
    }

    /// Copies one, with its workload's name before its own. What a reader must know of it, if anything.
    pub fn add(&mut self, label: &str, title: &str, file: &Path) -> Result<Option<Note>, Error> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let own = file.file_name().unwrap_or_default().to_string_lossy();
        let name: String = format!("{label}.{own}").chars().map(plain).collect();
        let of = |again: usize| match again {
            0 => self.below.join(&name),
            again => self.below.join(format!("{again}-{name}")),
        };
        // two workloads of one load have the same label
        let taken = |path: &PathBuf| self.paths.iter().any(|taken| Path::new(taken) == path);
        let Some(path) = (0..=self.paths.len()).map(of).find(|path| !taken(path)) else { return Ok(None) };
        // a tool that runs as another user must not choose what root copies
        let mut from = files::open(file).map_err(Error::file("read", file))?;
        let whole = from.metadata().map_err(Error::file("read", file))?.len();
        let length = match whole > self.most {
            true => whole_lines(&mut from, self.most).map_err(Error::file("read", file))?,
            false => whole,
        };
        let path = path.display().to_string();
        self.results.write_by(&path, |new| io::copy(&mut from.take(length), new))?;
        self.paths.push(path);
        let cut = || Note::LogCutOff { workload: title.to_owned(), mebibytes: self.most >> 20 };
        Ok((length < whole).then(cut))
    }
}

/// How many bytes the whole lines within the first `most` have. It is read from its beginning afterwards.
fn whole_lines(file: &mut File, most: u64) -> io::Result<u64> {
    // a line of a log is not longer than that
    let tail = most.min(64 << 10);
    file.seek(SeekFrom::Start(most - tail))?;
    let mut end = Vec::new();
    file.by_ref().take(tail).read_to_end(&mut end)?;
    file.seek(SeekFrom::Start(0))?;
    let last = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    Ok(most - tail + last)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Here(PathBuf);

    impl Here {
        fn new(name: &str) -> Here {
            let path = std::env::temp_dir().join(format!("rf-test-artifacts-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("site")).unwrap();
            Here(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join("site").join(name);
            fs::write(&path, text).unwrap();
            path
        }

        fn copy_of(&self, path: &str) -> String {
            fs::read_to_string(self.0.join(path)).unwrap()
        }
    }

    impl Drop for Here {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_of_the_same_name_get_different_names_and_an_earlier_runs_are_removed() {
        let here = Here::new("names");
        fs::create_dir_all(here.0.join("runs/3")).unwrap();
        fs::write(here.0.join("runs/3/old"), "old").unwrap();
        let own = OwnDirectory::open(&here.0).unwrap();
        let mut artifacts = Artifacts::begin(&own, 3).unwrap();
        assert!(!here.0.join("runs/3").exists(), "what an interrupted run left is not this run's");
        for text in ["one", "two"] {
            assert_eq!(artifacts.add("a/b", "'a/b'", &here.file("fio.json", text)).unwrap(), None);
        }
        assert_eq!(artifacts.paths, ["runs/3/a-b.fio.json", "runs/3/1-a-b.fio.json"]);
        assert_eq!([0, 1].map(|at| here.copy_of(&artifacts.paths[at])), ["one", "two"]);
    }

    #[test]
    fn a_long_log_is_cut_off_behind_a_line_and_reported() {
        let here = Here::new("long");
        let own = OwnDirectory::open(&here.0).unwrap();
        let mut artifacts = Artifacts { most: 10, ..Artifacts::begin(&own, 1).unwrap() };
        let reported = artifacts.add("load", "'load'", &here.file("log", "1234\n678\n0123\n")).unwrap();
        assert!(matches!(reported, Some(Note::LogCutOff { workload, .. }) if workload == "'load'"));
        assert_eq!(here.copy_of("runs/1/load.log"), "1234\n678\n");
        assert_eq!(artifacts.add("load", "'load'", &here.file("short", "1234\n678\n\n")).unwrap(), None);
        assert_eq!(here.copy_of("runs/1/load.short"), "1234\n678\n\n");
    }

    #[test]
    fn what_a_link_points_to_is_not_copied() {
        let here = Here::new("link");
        let link = here.0.join("site/log");
        std::os::unix::fs::symlink(here.file("secret", "x"), &link).unwrap();
        let own = OwnDirectory::open(&here.0).unwrap();
        assert!(Artifacts::begin(&own, 1).unwrap().add("load", "'load'", &link).is_err());
    }
}
