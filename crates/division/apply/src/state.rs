//! The state directory: one lock, and the generations with their journal. Files appear whole or not at all: a record
//! is written under another name and renamed once it is on the disk. Knows nothing of what the records mean.

mod changes;
mod locks;

use std::{
    ffi::OsString,
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use system::files;
use units::hint::Command;

use crate::{
    Failure,
    entry::Entry,
    lines::{self, Damage, Good, ROOM},
    record::{CHECKSUMS, FORMAT, Head, Joins, Record, Summary},
};
pub(crate) use locks::command_line;

/// The default directory of the state.
pub const STATE: &str = "/var/lib/ringfence";
/// The variable that names another place.
pub const STATE_VARIABLE: &str = "RINGFENCE_STATE";

/// The directory of the state unless an argument names another: what the environment says, or [`STATE`].
pub fn state_directory() -> PathBuf {
    named_directory(std::env::var_os(STATE_VARIABLE))
}

/// An empty variable names none, as an unset one.
fn named_directory(variable: Option<OsString>) -> PathBuf {
    variable.filter(|name| !name.is_empty()).map_or_else(|| PathBuf::from(STATE), PathBuf::from)
}

/// The suffix of a finished generation, and of one that is under way.
const FINISHED: &str = "jsonl";
const JOURNAL: &str = "journal";
/// The suffix of a generation that is several in one.
const JOINED: &str = "joined";
/// The suffix of the file that confirms a generation.
const CONFIRMED: &str = "confirmed";
/// The suffix of a journal whose steps are still being written down: nothing was changed yet.
const NEW: &str = "new";
/// The suffix of an empty file with the number of the newest generation: without its record it is missed.
const NEWEST: &str = "newest";
/// The mode of the directory of generations: what root ran, and when, is nobody else's business.
const PRIVATE: u32 = 0o700;
/// Room that is set aside for the journal of an undo.
const RESERVE: &str = "reserve";

/// How many generations can be undone one by one: older ones go unless an undo to one of these needs them, and those are joined.
pub const UNDOABLE: usize = 100;

/// The largest record that is read, in bytes: another user's may be of any length, and a layout has a limit too.
const LARGEST: u64 = 1 << 30;
/// How much of a file's end is read for its last line, unless that is longer.
const LAST_LINE: u64 = 4096;

/// A state directory.
#[derive(Debug, Clone)]
pub struct State {
    directory: PathBuf,
    undoable: usize,
}

/// The directory of the records.
const GENERATIONS: &str = "generations";

/// What [`State::watch`] shows; gone with the process.
#[derive(Debug)]
pub struct Watch {
    _file: File,
}

/// The right to change: owned by one process at a time, gone with its death.
#[derive(Debug)]
pub struct Lock {
    state: State,
    // closing it lets go
    _file: File,
}

impl State {
    /// Opens a state directory, made if it is missing.
    ///
    /// # Errors
    /// [`Failure::State`]: it can't be made, or others may write to it.
    pub fn open(directory: impl Into<PathBuf>) -> Result<State, Failure> {
        let state = State::peek(directory);
        let generations = state.generations();
        if rustix::process::geteuid().is_root() {
            all_above(&state.directory)?;
        }
        for (directory, mode) in [(&state.directory, 0o755), (&generations, PRIVATE)] {
            let made = DirBuilder::new().recursive(true).mode(mode).create(directory);
            made.map_err(|error| failed("make", directory, &error))?;
            let about = std::fs::metadata(directory).map_err(|error| failed("look at", directory, &error))?;
            if about.mode() & 0o022 != 0 || about.uid() != rustix::process::geteuid().as_raw() {
                let reason = format!("owner {} and mode {:o}", about.uid(), about.mode() & 0o7777);
                let hint = Some(distrusted(directory));
                return Err(Failure::State { what: "trust", path: directory.clone(), reason, hint });
            }
        }
        // an earlier version left it open to be listed
        let closed = std::fs::set_permissions(&generations, Permissions::from_mode(PRIVATE));
        closed.map_err(|error| failed("close to others", &generations, &error))?;
        Ok(state)
    }

    /// Opens one to read from it only; a missing one is empty.
    pub fn peek(directory: impl Into<PathBuf>) -> State {
        State { directory: directory.into(), undoable: UNDOABLE }
    }

    /// The same, with at least this many generations that can be undone one at a time.
    #[must_use]
    pub fn undoable(self, undoable: usize) -> State {
        State { undoable, ..self }
    }

    /// How many generations can be undone one by one, at least.
    pub(crate) fn generations_undoable(&self) -> usize {
        self.undoable
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn generations(&self) -> PathBuf {
        self.directory.join(GENERATIONS)
    }

    fn file(&self, generation: u32, suffix: &str) -> PathBuf {
        self.generations().join(format!("{generation:04}.{suffix}"))
    }

    /// The numbers of the finished generations, ascending.
    pub(crate) fn finished(&self) -> Result<Vec<u32>, Failure> {
        self.numbers(&[FINISHED, JOINED])
    }

    /// A finished generation's file.
    fn finished_file(&self, generation: u32) -> PathBuf {
        let joined = self.file(generation, JOINED);
        if joined.exists() { joined } else { self.file(generation, FINISHED) }
    }

    /// The joined generations, each with those that it is in the place of.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub(crate) fn joined(&self) -> Result<Vec<Joins>, Failure> {
        let joins = |generation| Ok(self.summary(generation)?.head.joins);
        self.numbers(&[JOINED])?.into_iter().filter_map(|generation| joins(generation).transpose()).collect()
    }

    /// The number of the generation that is under way or was interrupted.
    pub(crate) fn unfinished(&self) -> Result<Option<u32>, Failure> {
        Ok(self.numbers(&[JOURNAL])?.pop())
    }

    fn numbers(&self, suffixes: &[&str]) -> Result<Vec<u32>, Failure> {
        let directory = self.generations();
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &directory, &error)),
        };
        let number = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            let (number, suffix) =
                name.to_str()?.rsplit_once('.').filter(|(_, end)| suffixes.contains(end))?;
            let number = number.parse().ok()?;
            // `1.jsonl` and `+1.jsonl` are files of somebody's
            let is_ours = number > 0 && self.file(number, suffix).file_name() == Some(&name);
            is_ours.then_some(number)
        };
        let mut numbers: Vec<u32> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        // while several are joined the last of them has both names
        numbers.dedup();
        Ok(numbers)
    }

    /// A finished generation.
    pub(crate) fn record(&self, generation: u32) -> Result<Record, Failure> {
        let path = self.finished_file(generation);
        let record = self.read(&path, generation, false)?;
        if record.result.is_none() {
            return Err(damaged(path, &Damage::end_is_missing()));
        }
        Ok(record)
    }

    /// What a generation, finished or under way, did or was to do, step by step, with what was there before.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn steps(&self, generation: u32) -> Result<Vec<Entry>, Failure> {
        let record =
            if self.is_there(generation) { self.record(generation) } else { self.journal(generation) };
        Ok(record?.entries)
    }

    /// The record of a generation that is in effect; `None` if somebody moved it away, as it was damaged.
    pub(crate) fn record_in_effect(&self, generation: u32) -> Result<Option<Record>, Failure> {
        match self.record(generation) {
            // whatever has its name is named
            Err(_) if !self.is_there(generation) => Ok(None),
            read => read.map(Some),
        }
    }

    /// The one that is under way.
    pub(crate) fn journal(&self, generation: u32) -> Result<Record, Failure> {
        let path = self.file(generation, JOURNAL);
        let record = self.read(&path, generation, true)?;
        if record.head.format < CHECKSUMS {
            let reason = "an older version of this program began it and did not finish it".to_owned();
            let hint = Some("run ringfence undo with that version once".to_owned());
            return Err(Failure::State { what: "continue", path, reason, hint });
        }
        Ok(record)
    }

    fn read(&self, path: &Path, generation: u32, under_way: bool) -> Result<Record, Failure> {
        let bytes = whole(path).map_err(|error| failed("read", path, &error))?;
        let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let record = understood(path, first, Record::read(&bytes, under_way), |record| &record.head)?;
        named(&record.head, generation, path).map(|()| record)
    }

    /// The number of the next generation: the same as long as no change was made.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn next(&self) -> Result<u32, Failure> {
        let last = self.finished()?.last().copied().max(self.newest()?).unwrap_or(0);
        last.checked_add(1).ok_or_else(|| Failure::State {
            what: "number a generation in",
            path: self.generations(),
            reason: format!("{last} is the last number there is"),
            hint: Some("keep the state in a new directory: --state DIR".to_owned()),
        })
    }

    /// Changes when a generation begins or ends; cheap, for polling.
    pub fn stamp(&self) -> Option<(i64, i64)> {
        let about = std::fs::metadata(self.generations()).ok()?;
        Some((about.mtime(), about.mtime_nsec()))
    }

    /// The newest finished generation, whether its record exists or not.
    fn newest(&self) -> Result<Option<u32>, Failure> {
        // one that is still under way is not finished
        Ok(self.numbers(&[NEWEST])?.pop().filter(|newest| !self.file(*newest, JOURNAL).exists()))
    }

    /// The last finished generation that has a record. One that came after it and lost it counts as in effect: nobody
    /// knows what it changed.
    pub(crate) fn last(&self) -> Result<Option<Summary>, Failure> {
        let Some(last) = self.finished()?.last().copied() else { return Ok(None) };
        let mut summary = self.summary(last)?;
        if let Some(lost) = self.newest()?.filter(|newest| *newest > last) {
            summary.head.in_effect.push(lost);
            summary.head.in_effect_before.push(lost);
        }
        let joined = self.joined()?;
        in_place(&joined, &mut summary.head.in_effect);
        in_place(&joined, &mut summary.head.in_effect_before);
        Ok(Some(summary))
    }

    /// The last one that succeeded: what was rolled back after it has changed nothing.
    pub(crate) fn last_done(&self) -> Result<Option<Summary>, Failure> {
        for generation in self.finished()?.into_iter().rev() {
            let summary = self.summary(generation)?;
            if summary.is_done() {
                return Ok(Some(summary));
            }
        }
        Ok(None)
    }

    /// What a finished generation was and how it ended, read without its steps: there may be thousands.
    pub(crate) fn summary(&self, generation: u32) -> Result<Summary, Failure> {
        let path = self.finished_file(generation);
        let (first, last) = ends(&path).map_err(|error| failed("read", &path, &error))?;
        let summary = understood(&path, &first, Summary::read(&first, &last), |summary| &summary.head)?;
        named(&summary.head, generation, &path).map(|()| summary)
    }

    /// Does a file of this finished generation exist?
    pub(crate) fn is_there(&self, generation: u32) -> bool {
        // whatever it is, so that what is no record is named
        self.finished_file(generation).symlink_metadata().is_ok()
    }

    /// Does a file of this generation exist that only others may read?
    pub(crate) fn is_denied(&self, generation: u32) -> bool {
        [FINISHED, JOINED, JOURNAL].iter().any(|suffix| {
            let opened = open(&self.file(generation, suffix));
            opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        })
    }

    /// Was this generation confirmed?
    pub(crate) fn is_confirmed(&self, generation: u32) -> bool {
        self.file(generation, CONFIRMED).exists()
    }
}

/// A FIFO in the place of a file makes nobody wait, and a symbolic link is not followed.
pub(crate) const REGULAR: rustix::fs::OFlags =
    rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK);

/// Takes out of a list of generations in effect those that another one of it is in the place of.
pub(crate) fn in_place(joined: &[Joins], in_effect: &mut Vec<u32>) {
    for Joins { generations, .. } in joined {
        let Some((last, others)) = generations.split_last() else { continue };
        if in_effect.contains(last) {
            in_effect.retain(|generation| others.binary_search(generation).is_err());
        }
    }
}

/// Is another generation in the place of this one?
pub(crate) fn is_replaced(joined: &[Joins], generation: u32) -> bool {
    let others = joined.iter().filter_map(|joins| joins.generations.split_last());
    others.into_iter().any(|(_, others)| others.binary_search(&generation).is_ok())
}

/// Files that only their owner can open: they name commands with their arguments.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(REGULAR.bits().cast_signed());
    options
}

/// What was read of a record with this first line: what this version does not know of a later one is no damage.
fn understood<T>(
    path: &Path,
    first: &[u8],
    read: Result<T, Damage>,
    head: impl Fn(&T) -> &Head,
) -> Result<T, Failure> {
    let is_known = read.as_ref().is_ok_and(|read| head(read).format <= FORMAT);
    // the head is not parsed twice where it is known
    let later = (!is_known).then(|| lines::format(first)).flatten().filter(|format| *format > FORMAT);
    match later {
        Some(format) => Err(Failure::Later { path: path.to_owned(), format }),
        None => read.map_err(|damage| damaged(path.to_owned(), &damage)),
    }
}

/// A record under the name that is its own: a copy under another one is refused.
fn named(head: &Head, generation: u32, path: &Path) -> Result<(), Failure> {
    if head.generation == generation {
        return Ok(());
    }
    let what = format!("it is the record of generation {}", head.generation);
    Err(damaged(path.to_owned(), &Damage { line: 0, what }))
}

/// Who owns a directory above, or may write there, could put another history in the place of this one.
fn all_above(directory: &Path) -> Result<(), Failure> {
    // one that is missing is made, below one that is not
    let there = directory.ancestors().find(|above| above.symlink_metadata().is_ok());
    let Some(parent) = there.and_then(|there| if there == directory { there.parent() } else { Some(there) })
    else {
        return Ok(());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    // a link leads elsewhere, where the same holds
    let links =
        [directory.to_owned(), directory.join(GENERATIONS)].into_iter().filter(|path| path.is_symlink());
    for path in std::iter::once(parent.to_owned()).chain(links) {
        files::trusted(&path).map(drop).map_err(|why| {
            let hint = why.hint().map(|fix| format!("{fix}, or keep the state elsewhere: --state DIR"));
            Failure::State { what: "trust", path: directory.to_owned(), reason: why.to_string(), hint }
        })?;
    }
    Ok(())
}

/// Opens a record.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    opened(path).map(|(file, _)| file)
}

/// With its length.
fn opened(path: &Path) -> std::io::Result<(File, u64)> {
    let irregular = || std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
    let opened = File::options().read(true).custom_flags(REGULAR.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| if path.is_symlink() { irregular() } else { error })?;
    let about = file.metadata()?;
    if about.len() > LARGEST {
        let why = format!("it has more than {LARGEST} bytes");
        return Err(std::io::Error::new(ErrorKind::InvalidInput, why));
    }
    about.is_file().then_some((file, about.len())).ok_or_else(irregular)
}

/// A record's bytes: a command reads a hundred records, so that each call of the kernel counts.
fn whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let (file, length) = opened(path)?;
    // room for the read that finds the end
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file's first line and its last.
fn ends(path: &Path) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let mut file = BufReader::new(open(path)?);
    let mut first = Vec::new();
    let body = file.read_until(b'\n', &mut first)? as u64;
    let length = file.get_ref().metadata()?.len();
    let mut near = length.saturating_sub(LAST_LINE).max(body);
    loop {
        file.seek(SeekFrom::Start(near))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let lines = end.strip_suffix(b"\n").unwrap_or(&end);
        match lines.iter().rposition(|byte| *byte == b'\n') {
            Some(before) => return Ok((first, lines[before + 1..].to_vec())),
            None if near <= body => return Ok((first, lines.to_vec())),
            None => near = body,
        }
    }
}

/// All generations, oldest first.
///
/// # Errors
/// [`Failure::State`].
pub fn history(state: &State) -> Result<Vec<Record>, Failure> {
    state.finished()?.into_iter().map(|generation| state.record(generation)).collect()
}

pub(crate) fn failed(what: &'static str, path: &Path, error: &std::io::Error) -> Failure {
    let hint = hint(path, error.kind());
    Failure::State { what, path: path.to_owned(), reason: error.to_string().to_lowercase(), hint }
}

fn hint(path: &Path, kind: ErrorKind) -> Option<String> {
    let hint = match kind {
        ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
            "that takes root, or a directory of your own: --state DIR"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room there (df shows where it is full), or keep the state elsewhere: --state DIR"
        }
        ErrorKind::ReadOnlyFilesystem => "keep the state where it can be written: --state DIR",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::IsADirectory => {
            "--state names a directory, which is this program's alone"
        }
        ErrorKind::InvalidData | ErrorKind::InvalidInput => return Some(moved_away(path)),
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What to do where others could write, or where the caller is not the owner.
fn distrusted(directory: &Path) -> String {
    let must = format!("{} must be a directory that only you can write to", directory.display());
    if rustix::process::geteuid().is_root() {
        must
    } else {
        format!("{must}: become root, or take a directory of your own: --state DIR")
    }
}

fn moved_away(path: &Path) -> String {
    let path = path.to_string_lossy();
    let command = Command::new("mv").arg(&path).arg(format!("{path}.damaged"));
    format!("to continue without what it recorded: {command}; then compare: ringfence status LAYOUT")
}

pub(crate) fn damaged(path: PathBuf, damage: &Damage) -> Failure {
    let hint = Some(moved_away(&path));
    let reason = match damage.line {
        0 => format!("it is damaged: {}", damage.what),
        _ => format!("it is damaged: {damage}"),
    };
    Failure::State { what: "read", path, reason, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_names_no_directory() {
        for (variable, directory) in [(None, STATE), (Some(""), STATE), (Some("/s"), "/s")] {
            assert_eq!(named_directory(variable.map(OsString::from)), Path::new(directory));
        }
    }

    #[test]
    fn a_first_and_a_last_line_are_found_whatever_their_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        let long = "x".repeat(3 * usize::try_from(LAST_LINE).unwrap());
        let exact = "y".repeat(usize::try_from(LAST_LINE).unwrap() - 1);
        for (text, first, last) in [
            ("head\nstep\nend\n".to_owned(), "head\n", "end"),
            (format!("head\n{long}\nend\n"), "head\n", "end"),
            (format!("head\nstep\n{long}\n"), "head\n", long.as_str()),
            (format!("head\nstep\n{exact}\n"), "head\n", exact.as_str()),
            (format!("head\n{long}\n"), "head\n", long.as_str()),
            ("head\nend".to_owned(), "head\n", "end"),
            ("head\n".to_owned(), "head\n", ""),
            (String::new(), "", ""),
        ] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!(ends(&path).unwrap(), (first.as_bytes().to_vec(), last.as_bytes().to_vec()));
        }
    }

    /// Another user's record of 20 GB without a line's end made `history --state` of that user's directory abort.
    #[test]
    fn no_record_is_read_that_is_too_large() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path().join("state")).unwrap();
        File::create(state.file(1, FINISHED)).unwrap().set_len(LARGEST + 1).unwrap();
        for refused in [state.summary(1).unwrap_err(), state.record(1).unwrap_err()] {
            assert!(refused.to_string().contains("it has more than 1073741824 bytes"), "{refused}");
        }
    }

    /// `1.jsonl` and `+1.jsonl` beside `0001.jsonl` were three generations of the number 1.
    #[test]
    fn only_the_name_that_is_written_is_a_generations() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path().join("state")).unwrap();
        for number in ["0001", "1", "+1", "+001", "00001", "0000", " 001", "12345", "012345", "99999999999"] {
            std::fs::write(state.generations().join(format!("{number}.{FINISHED}")), "").unwrap();
        }
        assert_eq!(state.finished().unwrap(), [1, 12345]);
        assert_eq!(state.next().unwrap(), 12346);
    }

    /// Attack finding 30: the number after the last one was 0.
    #[test]
    fn no_generation_follows_the_last_number_there_is() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path().join("state")).unwrap();
        std::fs::write(state.file(u32::MAX, FINISHED), "").unwrap();
        let refused = state.next().unwrap_err();
        assert!(refused.to_string().contains("4294967295 is the last number there is"), "{refused}");
    }

    #[test]
    fn each_failure_has_the_mend_of_its_cause() {
        let path = Path::new("/s/generations/0007.jsonl");
        let hint = |kind| hint(path, kind).unwrap_or_default();
        assert!(hint(ErrorKind::StorageFull).starts_with("make room there"));
        assert!(hint(ErrorKind::InvalidData).contains("mv /s/generations/0007.jsonl "));
        let denied = hint(ErrorKind::PermissionDenied);
        assert_eq!(denied.is_empty(), rustix::process::geteuid().is_root(), "{denied}");
        assert_eq!(hint(ErrorKind::Interrupted), "");
        let full = failed("write", path, &std::io::Error::from_raw_os_error(28));
        assert!(full.hint().is_some_and(|hint| hint.starts_with("make room")), "{full}");
    }
}
