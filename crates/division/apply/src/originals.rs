//! What files of groups contained before resizing wrote to them: a line for each file and generation, each with a checksum, on
//! the disk before the first such write. The end of a generation brings it back, whatever became of the process that resized.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    io::{ErrorKind, Read, Write},
    path::PathBuf,
};

use kernel::{GroupName, Host};
use plan::{Action, Place};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Failure, Lock, Presence, State, Target,
    directories::Directories,
    entry::Entry,
    lines::{self, Damage},
    performer::unwritable,
    reading::content,
    resizes::{make_private, resizing, write_whole},
    spot::Spot,
    state::{damaged, failed, open, private},
};

const FILE: &str = "before.jsonl";

/// What one file contained when a generation's resizing wrote to it first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Original {
    pub generation: u32,
    /// The boot: no content outlives it.
    boot: String,
    spot: Spot,
    path: String,
    /// Of the group's directory: one that was made again since has contents of its own.
    inode: u64,
    /// The layout's group for whose sake it was written.
    pub group: String,
    pub file: String,
    pub text: String,
    /// Is it a list of a group below, which follows?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_below: bool,
    /// And had that group all CPUs of the one above?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_all: bool,
}

/// A file that is about to be written.
pub(crate) struct Noted {
    pub group: String,
    pub place: Place,
    pub file: String,
    /// Of a list below an elastic group: what it is to be once that one has its CPUs again, and whether it has all of them.
    pub below: Option<(String, bool)>,
}

impl Original {
    /// The group's directory, if it is still the same one.
    pub fn place(&self, host: &Host) -> Option<Place> {
        let at = self.spot.find(host)?;
        let inode = host.kernel().inode(at, &self.path).ok()?;
        let place = Place { hierarchy: at.id, path: self.path.clone(), version: at.version };
        (inode == self.inode).then_some(place)
    }
}

/// The originals of the generations in effect, as a process that resizes needs them.
#[derive(Debug, Default)]
pub struct Originals {
    /// The file, with the generation for which lines are added; `None`: nothing is recorded.
    file: Option<(PathBuf, u32)>,
    /// With their places, oldest first.
    lines: RefCell<Vec<(Place, Original)>>,
    /// `None`: every group is what it was.
    directories: Option<Directories>,
}

impl Originals {
    /// Records nothing: for groups that go with the process that resizes them.
    pub fn none() -> Originals {
        Originals::default()
    }

    /// For the resizing of a generation. Lines of generations that are no longer in effect, and of groups that are gone, go.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn open(lock: &Lock, target: Target<'_>, head: &crate::Head) -> Result<Originals, Failure> {
        let in_effect: BTreeSet<u32> = head.in_effect.iter().copied().collect();
        let lines = read(lock.state(), target)?;
        let lines = lines.into_iter().filter(|line| in_effect.contains(&line.generation));
        let lines: Vec<(Place, Original)> =
            lines.filter_map(|line| Some((line.place(target.host)?, line))).collect();
        make_private(&resizing(lock.state()))?;
        replace(lock, lines.iter().map(|(_, line)| line))?;
        let file = Some((path(lock.state()), head.generation));
        let directories = Some(Directories::open(lock, target.host, head)?);
        Ok(Originals { file, lines: RefCell::new(lines), directories })
    }

    /// What is where a group was that a setting belongs to, when the history changed last.
    ///
    /// # Errors
    /// The machine has no such setting.
    pub fn presence(&self, host: &Host, group: &GroupName, setting: &str) -> Result<Presence, Error> {
        let there = Ok(Presence::There);
        self.directories.as_ref().map_or(there, |noted| noted.presence(host, group, setting))
    }

    /// What a file contained before resizing wrote to it first, in any generation in effect.
    pub(crate) fn first(&self, place: &Place, file: &str) -> Option<Original> {
        let lines = self.lines.borrow();
        let is_it = |(of, line): &&(Place, Original)| of == place && line.file == file;
        lines.iter().find(is_it).map(|(_, line)| line.clone())
    }

    /// Puts down what these files contain, unless that is known.
    ///
    /// # Errors
    /// A line can't be written: nothing may be changed then.
    pub(crate) fn note(&self, target: Target<'_>, files: Vec<Noted>) -> Result<(), Error> {
        let Some((path, generation)) = &self.file else { return Ok(()) };
        let mut new: Vec<(Place, Original)> = Vec::new();
        for Noted { group, place, file, below } in files {
            let lines = self.lines.borrow();
            let is_it = |(of, line): &(Place, Original)| {
                *of == place && line.file == file && line.generation == *generation
            };
            if lines.iter().chain(&new).any(is_it) {
                continue;
            }
            let Some(at) = target.host.hierarchies().get(place.hierarchy) else { continue };
            let (Some(now), Ok(inode)) =
                (content(target.host, &place, &file), target.host.kernel().inode(at, &place.path))
            else {
                continue; // one that is only written, or is gone
            };
            let Some(spot) = Spot::of(std::slice::from_ref(at)).pop() else { continue };
            let (is_below, has_all) = (below.is_some(), below.as_ref().is_some_and(|(_, has_all)| *has_all));
            let text = below.map_or_else(|| now.trim_end_matches('\n').to_owned(), |(text, _)| text);
            let (generation, boot, path) = (*generation, target.system.boot(), place.path.clone());
            let line = Original { generation, boot, spot, path, inode, group, file, text, is_below, has_all };
            new.push((place, line));
        }
        if new.is_empty() {
            return Ok(());
        }
        let bytes = bytes(new.iter().map(|(_, line)| line)).map_err(unwritable)?;
        let added = private().append(true).create(true).open(path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_data()
        });
        added.map_err(unwritable)?;
        self.lines.borrow_mut().extend(new);
        Ok(())
    }
}

/// The files that these entries write.
pub(crate) fn written(entries: &[Entry]) -> Vec<Noted> {
    let noted = |entry: &Entry| match &entry.action {
        Action::Write { place, file, .. } => {
            let (group, place, file) = (entry.group.to_string(), place.clone(), file.clone());
            Some(Noted { group, place, file, below: None })
        }
        _ => None,
    };
    entries.iter().filter_map(noted).collect()
}

/// Where they are.
pub(crate) fn path(state: &State) -> PathBuf {
    resizing(state).join(FILE)
}

fn bytes<'l>(lines: impl Iterator<Item = &'l Original>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for line in lines {
        lines::append(&mut bytes, 0, line)?;
    }
    Ok(bytes)
}

/// Each line says all that is to be known of one file: it has no number. Earlier versions wrote no checksums.
fn parsed(all: &[u8]) -> Result<Vec<Original>, Damage> {
    // one that is cut off was written before anything was changed
    let whole = all.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |last| &all[..last]);
    let has_checksums = whole.contains(&b'\t');
    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parse = |(number, line): (usize, &[u8])| {
        let read = lines::value_of(line, |_: &Original| Some(0), has_checksums);
        read.map_err(|damage| Damage { line: number as u64 + 1, ..damage })
    };
    lines.enumerate().map(parse).collect()
}

/// All lines of this boot.
///
/// # Errors
/// [`Failure::State`], also where one is damaged.
pub(crate) fn read(state: &State, target: Target<'_>) -> Result<Vec<Original>, Failure> {
    let path = path(state);
    let mut all = Vec::new();
    match open(&path).and_then(|mut file| file.read_to_end(&mut all)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("read", &path, &error)),
        Ok(_) => {}
    }
    let boot = target.system.boot();
    let lines = parsed(&all).map_err(|damage| damaged(path, &damage))?;
    Ok(lines.into_iter().filter(|line| line.boot == boot).collect())
}

/// Forgets those of generations that are undone.
///
/// # Errors
/// [`Failure::State`].
pub(crate) fn forget(lock: &Lock, target: Target<'_>, generations: &BTreeSet<u32>) -> Result<(), Failure> {
    let lines = read(lock.state(), target)?;
    replace(lock, lines.iter().filter(|line| !generations.contains(&line.generation)))
}

/// Replaces the file, wholly or not at all; nothing is done where it is so already.
fn replace<'l>(lock: &Lock, lines: impl Iterator<Item = &'l Original>) -> Result<(), Failure> {
    let path = path(lock.state());
    let bytes = bytes(lines).map_err(|error| failed("write", &path, &error))?;
    let mut now = Vec::new();
    match open(&path).and_then(|mut file| file.read_to_end(&mut now)) {
        Err(error) if error.kind() == ErrorKind::NotFound && bytes.is_empty() => return Ok(()),
        Ok(_) if now == bytes => return Ok(()),
        _ => {}
    }
    write_whole(lock, &path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(text: &str) -> Original {
        let line = serde_json::json!({
            "generation": 3, "boot": "b", "path": "g", "inode": 7, "group": "g", "file": "cpuset.cpus", "text": text,
            "spot": { "label": "cpuset", "mount": "/groups/cpuset" },
        });
        serde_json::from_value(line).unwrap()
    }

    /// A changed digit was written as what the file contained before.
    #[test]
    fn no_changed_bit_is_taken_for_a_value_of_before() {
        let lines = [original("0-3"), original("1")];
        let bytes = bytes(lines.iter()).unwrap();
        assert_eq!(parsed(&bytes).unwrap(), lines);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // of a damaged newline at the end, the last line counts as cut off
                match parsed(&damaged) {
                    Ok(read) => assert!(read == lines[..1] && at == bytes.len() - 1, "byte {at}: {read:?}"),
                    Err(damage) => assert!((1..=2).contains(&damage.line), "{damage}"),
                }
            }
        }
        assert_eq!(parsed(&bytes[..bytes.len() - 3]).unwrap(), lines[..1]);
    }

    #[test]
    fn lines_of_versions_without_checksums_are_read() {
        let line = original("0-3");
        let text = format!("{}\n", serde_json::to_string(&line).unwrap());
        assert_eq!(parsed(text.as_bytes()).unwrap(), [line]);
        assert!(parsed(text.replace("generation", "generatio").as_bytes()).is_err());
    }
}
