//! A change with its reason and the reason's numbers.

use std::fmt;

use serde::Serialize;
use units::CpuSet;

use crate::Pool;

/// A group's new CPU set. It adds to the old one or takes from it, never both.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The group's place in the list.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// What it had.
    pub from: CpuSet,
    /// What it gets.
    pub to: CpuSet,
    /// Why.
    pub reason: Reason,
}

/// Why a set changes. Shares of time are 0 to 1, times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Reason {
    /// It uses nearly all that it has.
    Busy {
        /// CPUs used.
        used: f64,
    },
    /// Its tasks wait.
    Waits {
        /// The share of the time.
        waiting: f64,
    },
    /// Its latency is near or above its target.
    Slow {
        /// 1 - p99 / target.
        slack: f64,
    },
    /// It was quiet for its dwell.
    Quiet {
        /// The most CPUs used in that time.
        peak: f64,
        /// How long.
        dwell: f64,
    },
    /// Others wait, and this group does not use it.
    Lends {
        /// CPUs used lately.
        recent: f64,
    },
    /// Others wait, and this group has more than its weighted share.
    OverShare {
        /// That share, in CPUs.
        share: usize,
    },
    /// A shrink did harm and is undone.
    Harm {
        /// How much it waited.
        waiting: f64,
        /// How much it usually does.
        baseline: f64,
        /// The dwell from now on.
        dwell: f64,
    },
    /// A shrink brought its latency near or above its target and is undone.
    Slowed {
        /// 1 - p99 / target.
        slack: f64,
        /// The dwell from now on.
        dwell: f64,
    },
    /// It has what others do not use at the moment, too.
    Borrows {
        /// That many CPUs.
        units: usize,
    },
    /// What it borrowed is another's again.
    Returns,
    /// What an owner lent did harm to it, and is lent no more for a while.
    LoanDidHarm {
        /// How much the owner waited.
        waiting: f64,
        /// How much it usually does.
        baseline: f64,
        /// For how long it lends nothing.
        dwell: f64,
    },
    /// What an owner lent brought its latency near or above its target, and is lent no more for a while.
    LoanSlowed {
        /// 1 - p99 / target.
        slack: f64,
        /// For how long it lends nothing.
        dwell: f64,
    },
    /// Resizing has ended; the static division returns.
    GivesUp,
    /// A rule other than the policy's, in a simulation.
    Rule,
}

impl Decision {
    /// Of a group that has changed.
    pub fn of(pool: &Pool, group: usize, name: &str, from: CpuSet, reason: Reason) -> Decision {
        Decision { group, name: name.to_owned(), from, to: pool.cpus(group), reason }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { name, from, to, reason, .. } = self;
        write!(f, "{name}: {} to {} CPUs ({to}): {reason}", from.len(), to.len())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Busy { used } => write!(f, "uses {used:.2} CPUs"),
            Reason::Waits { waiting } => write!(f, "waits {:.1} % of the time", waiting * 100.0),
            Reason::Slow { slack } => write!(f, "its latency is {:.0} % of its target", latency(*slack)),
            Reason::Slowed { slack, dwell } => write!(
                f,
                "its latency is {:.0} % of its target after it shrank; shrinks again after {dwell:.0} s at the earliest",
                latency(*slack)
            ),
            Reason::LoanSlowed { slack, dwell } => write!(
                f,
                "the owner's latency is {:.0} % of its target since it lends; it lends again after {dwell:.0} s",
                latency(*slack)
            ),
            Reason::Quiet { peak, dwell } => write!(f, "used at most {peak:.2} CPUs for {dwell:.0} s"),
            Reason::Lends { recent } => write!(f, "used {recent:.2} CPUs lately, and others wait"),
            Reason::OverShare { share } => {
                write!(f, "others wait, and its weighted share is {share} CPUs")
            }
            Reason::Harm { waiting, baseline, dwell } => write!(
                f,
                "waits {:.1} % of the time after it shrank, {:.1} % before; shrinks again after {dwell:.0} s at the earliest",
                waiting * 100.0,
                baseline * 100.0
            ),
            Reason::Borrows { units } => {
                let cpus = units::counted(*units, "CPU");
                write!(f, "borrows {cpus}, which the owner has at once when it needs it")
            }
            Reason::Returns => write!(f, "what it borrowed is another's again"),
            Reason::LoanDidHarm { waiting, baseline, dwell } => write!(
                f,
                "the owner waits {:.1} % of the time since it lends, {:.1} % before; it lends again after {dwell:.0} s",
                waiting * 100.0,
                baseline * 100.0
            ),
            Reason::GivesUp => write!(f, "resizing has ended"),
            Reason::Rule => write!(f, "the rule of the baseline"),
        }
    }
}

/// In per cent of the target.
fn latency(slack: f64) -> f64 {
    (1.0 - slack) * 100.0
}
