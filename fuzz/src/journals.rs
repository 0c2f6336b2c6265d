//! Generations' files, journals and finished records: what is damaged is refused or known to be, and what is undone by a
//! file of any content is what its steps name and nothing else.

use std::{fs, path::Path, time::Duration};

use apply::{By, Entry, Meta, Record, State, System, Target, append_line, recover, undo};
use fake::Fake;
use kernel::{Hierarchy, Host, Kernel, Ownership};
use rustix::io::Errno;
use serde_json::Value;
use settings::Controller;
use units::CpuSet;

use crate::scratch::with_directory;

/// A journal ends in unused room.
const ROOM: usize = 64 << 10;
/// A group that no file names.
const STRANGER: &str = "stranger";
/// More steps only take time.
const STEPS: usize = 200;

/// A generation's file of any bytes; and one with the same lines whose checksums are right.
pub fn journal(data: &[u8]) {
    for under_way in [false, true] {
        let _ = Record::read(data, under_way);
    }
    let text = data.iter().rposition(|byte| *byte != 0).map_or(&data[..0], |last| &data[..=last]);
    let mut sealed = Vec::new();
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let line = line.split(|byte| matches!(byte, b'\t' | b'\n')).next().unwrap_or_default();
        let Ok(value) = serde_json::from_slice::<Value>(line) else { break };
        let sealing = append_line(&mut sealed, number as u64, &value);
        sealing.unwrap_or_else(|error| panic!("{error}"));
    }
    let mut with_room = sealed.clone();
    with_room.resize((sealed.len() + 1).next_multiple_of(ROOM), 0);
    readable_lines(&with_room);
    for (file, under_way) in [(sealed, false), (with_room, true)] {
        let Ok(whole) = Record::read(&file, under_way) else { continue };
        reads_again(&whole);
        flipped(&file, under_way, &whole);
        if whole.entries.len() <= STEPS {
            with_directory(|directory| undone(directory, &file, under_way, &whole));
        }
    }
}

/// Head and steps as they are written are what was read.
fn reads_again(whole: &Record) {
    let mut bytes = Vec::new();
    let mut written = append_line(&mut bytes, 0, &whole.head);
    for (number, entry) in whole.entries.iter().enumerate() {
        written = written.and_then(|()| append_line(&mut bytes, number as u64 + 1, entry));
    }
    written.unwrap_or_else(|error| panic!("{error}"));
    let again = Record::read(&bytes, false).unwrap_or_else(|damage| panic!("{damage}"));
    assert_eq!((&again.head, &again.entries), (&whole.head, &whole.entries));
}

/// A few copies with one bit flipped, chosen by the bytes.
fn with_flips(file: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let seed = file.iter().fold(0xcbf2_9ce4_8422_2325, |seed: u64, byte| {
        (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (0..3).map(move |turn| {
        let bit = usize::try_from(seed.rotate_left(16 * turn) % (8 * file.len() as u64)).unwrap_or(0);
        let mut flipped = file.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (bit, flipped)
    })
}

/// Line by line, as the lab's journals are read: what is damaged is named, and no line is read that is not in the file.
fn readable_lines(file: &[u8]) {
    let whole = apply::readable::<Value>(file);
    assert!(whole.damage.is_empty(), "{:?}", whole.damage);
    for (bit, flipped) in with_flips(file) {
        let read = apply::readable::<Value>(&flipped);
        let is_part = read.lines.iter().all(|line| whole.lines.contains(line));
        assert!(is_part && !read.damage.is_empty(), "bit {bit} of {whole:?} is read as {read:?}");
    }
}

/// A flipped bit is never read as something else.
fn flipped(file: &[u8], under_way: bool, whole: &Record) {
    for (bit, flipped) in with_flips(file) {
        if let Ok(read) = Record::read(&flipped, under_way) {
            let is_known = read.damage.is_some() || !under_way && read.result.is_none();
            assert!(is_known || read == *whole, "bit {bit} is read as {read:?}, not as {whole:?}");
        }
    }
}

/// Recovered and undone on a machine where its groups are.
fn undone(directory: &Path, file: &[u8], under_way: bool, whole: &Record) {
    let is_v2 = whole.head.hierarchies.iter().all(|spot| spot.label == "unified");
    let fake = if is_v2 { Fake::v2(4, 2) } else { Fake::v1(4, 2) };
    let Ok(host) = Host::new(Box::new(fake.clone())) else { unreachable!("it has hierarchies") };
    let stayed = [&whole.head.stayed_before, &whole.head.stayed].into_iter().flatten();
    let refused = whole.result.iter().flat_map(|result| &result.refused);
    let others = stayed.chain(refused).map(|stayed| &stayed.entry);
    let entries: Vec<&Entry> = whole.entries.iter().chain(others).collect();
    for entry in &entries {
        let Some(place) = entry.action.place() else { continue };
        let label = whole.head.hierarchies.get(place.hierarchy).map(|spot| &spot.label);
        let at = host.hierarchies().iter().find(|at| Some(&at.label()) == label);
        if let Some(at) = at {
            made(&fake, at, &place.path);
        }
    }
    for at in host.hierarchies() {
        made(&fake, at, STRANGER);
    }
    let near = |entry: &&Entry| {
        let path = entry.action.place().map_or(STRANGER, |place| &place.path);
        path.is_empty() || path.split('/').next() == Some(STRANGER)
    };
    let is_named = entries.iter().any(near);
    let before = stranger(&fake);
    let state = State::open(directory.join("state")).unwrap_or_else(|error| panic!("{error}"));
    let suffix = if under_way { "journal" } else { "jsonl" };
    let name = format!("state/generations/{:04}.{suffix}", whole.head.generation);
    fs::write(directory.join(name), file).unwrap_or_else(|error| panic!("{error}"));
    let system = Still { fake: fake.clone(), boot: whole.head.boot.clone() };
    let target = Target { host: &host, system: &system };
    let lock = state.lock(Duration::ZERO).unwrap_or_else(|error| panic!("{error}"));
    if let Ok(recovered) = recover(&lock, target) {
        let all_said = recovered.iter().all(|recovered| !recovered.to_string().is_empty());
        assert!(all_said);
    }
    let meta = Meta { by: By::default(), what: String::new(), ..Meta::default() };
    if let Err(failure) = undo(&lock, target, None, &meta) {
        assert!(!failure.to_string().is_empty());
    }
    assert!(is_named || stranger(&fake) == before, "a group that no step names was changed");
}

/// Makes a group with those above it, as far as that can be.
fn made(fake: &Fake, at: &Hierarchy, path: &str) {
    if path.len() > 200 {
        return;
    }
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for end in ends.take(8) {
        let _ = fake.mkdir(at, &path[..end]); // it may be there, or be no name
    }
}

/// What the stranger holds in each hierarchy.
fn stranger(fake: &Fake) -> Vec<Option<fake::Values>> {
    fake.snapshot().groups.into_iter().map(|mut groups| groups.remove(STRANGER)).collect()
}

/// A system in which nothing goes on.
struct Still {
    fake: Fake,
    boot: String,
}

impl System for Still {
    fn owned(&self, at: &Hierarchy, group: &str, file: Option<&str>) -> Result<plan::Owned, Errno> {
        self.fake.owner(at, group, file).map(|(uid, gid, mode)| plan::Owned { uid, gid, mode })
    }
    fn own(
        &self,
        at: &Hierarchy,
        group: &str,
        each: &[(Option<&str>, Ownership)],
    ) -> Result<(), (Option<String>, Errno)> {
        each.iter().try_for_each(|(file, to)| {
            self.fake.set_ownership(at, group, *file, *to).map_err(|errno| (file.map(str::to_owned), errno))
        })
    }
    fn maker(&self) -> (u32, u32) {
        (0, 0)
    }
    fn affinity(&self, _: u32) -> Result<CpuSet, Errno> {
        Err(Errno::SRCH)
    }
    fn set_affinity(&self, _: u32, _: &CpuSet) -> Result<(), Errno> {
        Err(Errno::SRCH)
    }
    fn started(&self, _: u32) -> Result<u64, Errno> {
        Err(Errno::SRCH)
    }
    fn mount(&self, _: &[Controller], _: Option<&str>, _: &Path) -> Result<(), kernel::Error> {
        Err(kernel::Error::Outside { what: "cannot mount".to_owned(), errno: Errno::PERM, hint: None })
    }
    fn unmount(&self, _: &Path) -> Result<(), Errno> {
        Err(Errno::PERM)
    }
    fn look(&self) -> Result<Host, kernel::Error> {
        Host::even_without_hierarchies(Box::new(self.fake.clone()))
    }
    fn boot(&self) -> String {
        self.boot.clone()
    }
    fn now(&self) -> u64 {
        1_000_000_000
    }
    fn uptime(&self) -> u64 {
        1_000_000
    }
}
