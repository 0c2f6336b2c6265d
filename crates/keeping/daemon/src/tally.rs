//! What gates count, which are processes of their own: a file in memory that each is given as its standard output, and
//! that the daemon reads on request. Two gates run at once while rules change, so they use the two halves in turn; each
//! continues the counts of the last one in its half.

use std::{fs::File, io, os::unix::fs::FileExt, time::Duration};

use rustix::fs::{MemfdFlags, memfd_create};

/// The outcomes of gated starts, in the order in which they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No rule took it, or it was in its group.
    LeftAsItWas,
    /// It was moved.
    Moved,
    /// A rule took it and it could not be moved in time: the daemon sees to it after its exec.
    LetGo,
}

/// Names of the counters, in the file's order; the last is no count but a sum of times.
pub(crate) const NAMES: [&str; COUNTS] = ["gate_left", "gate_moved", "gate_let_go", "gate_usec"];
const COUNTS: usize = 4;
const HALF: usize = COUNTS * size_of::<u64>();

/// The daemon's side.
#[derive(Debug)]
pub(crate) struct Tallies(File);

/// A gate's side.
#[derive(Debug)]
pub(crate) struct Tally {
    file: File,
    at: u64,
    counts: [u64; COUNTS],
    nanos: u64,
}

impl Tallies {
    pub fn new() -> io::Result<Tallies> {
        let file = File::from(memfd_create("ringfenced-gates", MemfdFlags::CLOEXEC)?);
        file.set_len(2 * HALF as u64)?;
        Ok(Tallies(file))
    }

    /// For a gate's standard output.
    pub fn file(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// What all gates counted so far.
    pub fn sums(&self) -> [u64; COUNTS] {
        let (one, other) = (read(&self.0, 0), read(&self.0, HALF as u64));
        std::array::from_fn(|index| one[index].wrapping_add(other[index]))
    }
}

impl Tally {
    /// `second`: of the other half.
    pub fn new(file: File, second: bool) -> Tally {
        let at = if second { HALF as u64 } else { 0 };
        let counts = read(&file, at);
        Tally { file, at, counts, nanos: 0 }
    }

    /// One start, which waited so long for what the gate did.
    pub fn count(&mut self, outcome: Outcome, took: Duration) {
        self.counts[outcome as usize] += 1;
        self.nanos = self.nanos.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.counts[COUNTS - 1] = self.counts[COUNTS - 1].wrapping_add(self.nanos / 1000);
        self.nanos %= 1000;
        let bytes: Vec<u8> = self.counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
        // what is not counted is not worth an error: somebody waits for the answer
        let _ = self.file.write_all_at(&bytes, self.at);
    }
}

fn read(file: &File, at: u64) -> [u64; COUNTS] {
    let mut bytes = [0; HALF];
    let _ = file.read_exact_at(&mut bytes, at); // a file without counts has none
    let (counts, _) = bytes.as_chunks();
    std::array::from_fn(|index| counts.get(index).map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_after_and_beside_each_other_add_up() {
        let tallies = Tallies::new().unwrap();
        for (second, outcome) in [
            (false, Outcome::Moved),
            (true, Outcome::Moved),
            (false, Outcome::LetGo),
            (true, Outcome::LeftAsItWas),
        ] {
            let mut tally = Tally::new(tallies.file().unwrap(), second);
            tally.count(outcome, Duration::from_nanos(1500));
            tally.count(outcome, Duration::from_nanos(1500));
        }
        assert_eq!(tallies.sums(), [2, 4, 2, 12]);
    }
}
