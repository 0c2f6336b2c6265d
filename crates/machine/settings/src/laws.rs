//! The kernel's rules about writes: when a file is written among the others of a group, and which files bound each other.

/// When a file is written among the others of its group, earliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before the group takes threads.
    Threaded,
    /// A set is shared again, before it changes.
    Release,
    /// Memory nodes.
    Nodes,
    /// CPUs.
    Cpus,
    /// Those of the CPUs that a partition may have.
    ExclusiveCpus,
    /// A set is the group's alone.
    Exclusive,
    /// The group has a weight again.
    NotIdle,
    /// Everything without a rule.
    Limits,
    /// What takes the place of a limit, or takes something away.
    Deny,
    /// What gives some of that back.
    Allow,
    /// Stopping the tasks.
    Freeze,
    /// Tasks, and actions that can't be undone.
    Tasks,
}

/// A stage, and why a file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When.
    pub stage: Stage,
    /// The reason, for people; none where no rule of the kernel stands behind it.
    pub why: Option<&'static str>,
}

/// When a setting's files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// At one stage, whatever the value.
    Always(Turn),
    /// At one stage to switch it off, at another to switch it on.
    Switch {
        /// The text that switches it off.
        off: &'static str,
        /// When that is written.
        release: Turn,
        /// When any other text is.
        take: Turn,
    },
}

impl Order {
    /// The turn of a write of `text`.
    pub fn turn(self, text: &str) -> Turn {
        match self {
            Order::Always(turn) => turn,
            Order::Switch { off, release, take } => {
                if text.trim() == off {
                    release
                } else {
                    take
                }
            }
        }
    }
}

/// The rule between a setting's first file and another file of the same group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The other file.
    pub other: &'static str,
    /// The rule.
    pub law: Law,
    /// What it is good for, for people.
    pub why: &'static str,
}

/// What the kernel requires of two files at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// The first is never above the second.
    AtMost,
    /// The first is a time in each period of the second: between the two writes the share of the period is no more than
    /// before or after.
    Share,
    /// What a lower second file takes away goes to where the first bounds it: the first is written before the second where
    /// that falls, and behind it where it rises, so that an undo, in the opposite order, does the same.
    Spill,
}

/// The numbers of two files; `None` is no limit.
pub type Both = [Option<u64>; 2];

impl Law {
    /// Both files change from `old` to `new`: is the first to be written first?
    pub fn first_goes(self, old: Both, new: Both) -> bool {
        match (self, new[0], old[0]) {
            (Law::Spill, ..) => new[1].is_some_and(|new| old[1].is_none_or(|old| new <= old)),
            (_, None, _) => self == Law::Share || old[1].is_none(),
            (Law::AtMost, Some(first), _) => old[1].is_none_or(|second| first <= second),
            // without a limit there is no share that the period could change
            (Law::Share, Some(_), None) => false,
            (Law::Share, Some(_), Some(_)) => share_in_between(old, new),
        }
    }
}

/// Of the two states between the writes: is (new time, old period) the better one? The one whose share lies between the
/// old and the new share, so that neither the parent's limit nor a child's is broken by it; if none does, the one that
/// gives less.
fn share_in_between(old: Both, new: Both) -> bool {
    let (low, high) = if is_at_most(old, new) { (old, new) } else { (new, old) };
    let between = |share| is_at_most(low, share) && is_at_most(share, high);
    let (time_first, period_first) = ([new[0], old[1]], [old[0], new[1]]);
    match (between(time_first), between(period_first)) {
        (true, _) => true,
        (_, true) => false,
        _ => is_at_most(time_first, period_first),
    }
}

/// Is the share of a period `a` at most `b`?
pub fn is_at_most(a: Both, b: Both) -> bool {
    let period = |both: Both| u128::from(both[1].unwrap_or(u64::MAX));
    match (a[0], b[0]) {
        (_, None) => true,
        (None, _) => false,
        (Some(x), Some(y)) => u128::from(x) * period(b) <= u128::from(y) * period(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_writes_a_share_is_no_more_than_before_or_after() {
        let some = |a, b| [Some(a), Some(b)];
        for (old, new, first) in [
            (some(50, 100), some(25, 100), true),
            (some(50, 100), some(100, 200), false), // 100/100 in between would be more than both
            (some(100, 200), some(50, 100), true),  // 50/200 is less, 100/100 more
            (some(10, 100), some(200, 1000), false), // 10/1000 is less, 200/100 more
            ([None, Some(100)], some(50, 10), false), // while there is no limit, the period is free
            (some(50, 100), [None, Some(10)], true), // 50/10 would be more than the parent may have
            (some(u64::MAX, 1), some(1, u64::MAX), true),
        ] {
            assert_eq!(Law::Share.first_goes(old, new), first, "{old:?} {new:?}");
        }
    }

    #[test]
    fn swap_falls_before_the_memory_that_would_go_there() {
        let some = |a, b| [Some(a), Some(b)];
        for (old, new, first) in [
            (some(8, 8), some(0, 4), true),
            (some(0, 8), some(8, 4), true), // room for what memory loses
            (some(0, 4), some(8, 8), false),
            (some(8, 4), some(0, 8), false),
            ([None, None], some(0, 4), true),
            (some(0, 4), [None, None], false),
        ] {
            assert_eq!(Law::Spill.first_goes(old, new), first, "{old:?} {new:?}");
        }
    }

    #[test]
    fn what_is_at_most_another_goes_first_where_it_fits_below_the_old_one() {
        let some = |a, b| [Some(a), Some(b)];
        for (old, new, first) in [
            (some(1, 2), some(2, 4), true),
            (some(1, 2), some(3, 4), false),
            (some(1, 2), [None, None], false),
            ([None, None], some(1, 2), true),
            ([Some(1), None], [None, None], true),
        ] {
            assert_eq!(Law::AtMost.first_goes(old, new), first, "{old:?} {new:?}");
        }
    }
}
