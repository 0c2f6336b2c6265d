//! Groups beside each other: the kernel counts in the directory above, too, what each of them uses. What that one used beyond what was
//! read of its groups is the most that the unread ones used together, so that one read stands for theirs while they are quiet.

use kernel::{GroupName, Hierarchy, Host};
use settings::Version;
use units::group_path;

use crate::{files::Files, open_files::Slot};

/// For fewer groups the directory above is not read.
const SEVERAL: usize = 4;

/// Unread groups are read once they have used more than this together since all were read, in nanoseconds.
pub(crate) const HARDLY_ANY: u64 = 5_000_000;

/// A directory with groups whose use is read.
#[derive(Debug)]
pub(crate) struct Family<F: Files> {
    /// Below the hierarchy's mount.
    pub path: String,
    pub usage: Slot<F::Open>,
    tally: Tally,
}

/// What a directory has used, and what of it its groups did.
#[derive(Debug, Default)]
struct Tally {
    /// Nanoseconds of the directory when all groups were read last.
    base: Option<u64>,
    /// Nanoseconds of groups that were read since then.
    read: u64,
}

/// The directories of which several groups are read, and which of them each group is in.
pub(crate) fn families<F: Files>(
    host: &Host,
    at: &Hierarchy,
    groups: &[GroupName],
) -> (Vec<Family<F>>, Vec<Option<usize>>) {
    let above =
        |name: &GroupName| group_path::parent(&host.seat_in(at, name).path).unwrap_or_default().to_owned();
    let above: Vec<String> = groups.iter().map(above).collect();
    // v2's root counts by another clock
    let counts = |path: &str| !path.is_empty() || at.version == Version::V1;
    let mut paths: Vec<&String> = above.iter().filter(|path| counts(path)).collect();
    paths.sort_unstable();
    let mut families: Vec<Family<F>> = Vec::new();
    for same in paths.chunk_by(|one, other| one == other).filter(|same| same.len() >= SEVERAL) {
        families.push(Family { path: same[0].clone(), usage: Slot::New, tally: Tally::default() });
    }
    let of = above.iter().map(|path| families.iter().position(|family| family.path == *path)).collect();
    (families, of)
}

impl<F: Files> Family<F> {
    /// A group was read to have used these nanoseconds since it was read last.
    pub fn add(&mut self, used: u64) {
        self.tally.read += used;
    }

    /// Have the groups that were not read hardly used anything? `now`: what the directory has used, if it can be read. If not, all
    /// have to be read now.
    pub fn is_quiet(&mut self, now: Option<u64>) -> bool {
        self.tally.is_quiet(now)
    }
}

impl Tally {
    fn is_quiet(&mut self, now: Option<u64>) -> bool {
        let Tally { base, read } = self;
        if let Some(all) = now.zip(*base).and_then(|(now, base)| now.checked_sub(base)) {
            // the files are not read in the same moment
            *read = all.min(*read);
            if all - *read <= HARDLY_ANY {
                return true;
            }
        }
        (*base, *read) = (now, 0);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_nobody_was_read_to_use_is_of_the_unread_ones() {
        let mut tally = Tally::default();
        assert!(!tally.is_quiet(Some(100 * MS)), "nothing is known at first");
        tally.read += 50 * MS;
        assert!(tally.is_quiet(Some(150 * MS)), "all of it is of one that was read");
        tally.read += 50 * MS;
        assert!(tally.is_quiet(Some(203 * MS)), "3 ms are not");
        assert!(!tally.is_quiet(Some(206 * MS)), "nor are 6 in two looks");
        assert!(tally.is_quiet(Some(206 * MS)), "all were read then");
    }

    #[test]
    fn what_was_read_a_little_later_hides_nothing_in_the_next_look() {
        let mut tally = Tally::default();
        assert!(!tally.is_quiet(Some(0)));
        tally.read += 30 * MS;
        assert!(tally.is_quiet(Some(10 * MS)), "read in another moment");
        assert!(!tally.is_quiet(Some(16 * MS)));
    }

    #[test]
    fn a_directory_that_says_nothing_or_less_than_before_stands_for_nobody() {
        let mut tally = Tally::default();
        assert!(!tally.is_quiet(Some(10 * MS)) && tally.is_quiet(Some(10 * MS)));
        assert!(!tally.is_quiet(None) && !tally.is_quiet(Some(10 * MS)) && tally.is_quiet(Some(10 * MS)));
        assert!(!tally.is_quiet(Some(9 * MS)) && tally.is_quiet(Some(9 * MS)));
    }
}
