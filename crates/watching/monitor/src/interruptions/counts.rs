//! What the kernel has counted by some moment, and what came in between two of them.

use std::{
    collections::BTreeMap,
    fmt, fs,
    time::{Duration, Instant},
};

use serde::Serialize;
use units::CpuSet;

use crate::interruptions::{
    error::Error,
    report::{Cause, Kind},
    switches::Switches,
    table::Table,
};

const INTERRUPTS: &str = "/proc/interrupts";
const SOFTIRQS: &str = "/proc/softirqs";

/// In the version of a kernel for real-time tasks.
const RT: &[u8] = b"PREEMPT_RT";
const IN_THREADS: &str = "this kernel (PREEMPT_RT) runs them in threads, whose context switches are counted";

/// How many causes are named in a sentence.
const NAMED: usize = 3;

/// What the kernel has counted by some moment.
#[derive(Debug, Clone)]
pub struct Counts {
    at: Instant,
    interrupts: Table,
    softirqs: Table,
    switches: Vec<(usize, u64)>,
}

/// What interrupted some CPUs in a span of time, all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interrupted {
    /// The CPUs.
    pub cpus: CpuSet,
    /// How long they were counted.
    pub span_sec: f64,
    /// Interrupts and softirqs per second, of all of them.
    pub per_sec: f64,
    /// The causes, the most frequent first.
    pub causes: Vec<Cause>,
}

impl Counts {
    /// Interrupts and softirqs of all CPUs, by now. Softirqs are 0 where they can't be read, and where threads run them.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn now() -> Result<Counts, Error> {
        Counts::read(None, &mut Vec::new())
    }

    /// With context switches.
    pub(crate) fn read(switches: Option<&mut Switches>, missing: &mut Vec<String>) -> Result<Counts, Error> {
        let at = Instant::now();
        let softirqs = if in_threads() {
            Err(IN_THREADS.to_owned())
        } else {
            table(SOFTIRQS).map_err(|error| error.to_string())
        };
        let softirqs = softirqs.map_err(|why| missing.push(format!("softirqs not counted: {why}")));
        Ok(Counts {
            at,
            interrupts: table(INTERRUPTS)?,
            softirqs: softirqs.unwrap_or_default(),
            switches: switches.map(Switches::read).unwrap_or_default(),
        })
    }

    /// The CPUs that are online.
    pub fn cpus(&self) -> CpuSet {
        self.interrupts.cpus.iter().copied().collect()
    }

    /// The time since an earlier moment.
    pub(crate) fn span(&self, before: &Counts) -> Duration {
        self.at.saturating_duration_since(before.at)
    }

    /// The causes that occurred on a CPU, by kind, the most frequent first.
    pub(crate) fn causes(&self, before: &Counts, cpu: usize) -> Vec<Cause> {
        let span = self.span(before);
        let on = |counts: &Counts| counts.switches.iter().find(|(of, _)| *of == cpu).map(|(_, count)| *count);
        let switches = on(self).zip(on(before)).map(|(now, then)| now.saturating_sub(then));
        let interrupts = self.interrupts.since(&before.interrupts, cpu);
        let softirqs = self.softirqs.since(&before.softirqs, cpu);
        let interrupts = interrupts.map(|(name, count)| cause(Kind::Interrupt, name, count, span));
        let softirqs = softirqs.map(|(name, count)| cause(Kind::Softirq, name, count, span));
        let mut causes: Vec<Cause> = interrupts.chain(softirqs).filter(|cause| cause.count > 0).collect();
        causes.extend(switches.map(|count| cause(Kind::ContextSwitch, "", count, span)));
        causes.sort_by(|one, other| (one.kind, other.count).cmp(&(other.kind, one.count)));
        causes
    }

    /// What interrupted these CPUs since an earlier moment.
    pub fn since(&self, before: &Counts, cpus: &CpuSet) -> Interrupted {
        let mut sums: BTreeMap<(Kind, String), u64> = BTreeMap::new();
        for one in cpus.iter().flat_map(|cpu| self.causes(before, cpu)) {
            *sums.entry((one.kind, one.name)).or_default() += one.count;
        }
        let span = self.span(before);
        let mut causes: Vec<Cause> =
            sums.into_iter().map(|((kind, name), count)| cause(kind, &name, count, span)).collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        Interrupted {
            cpus: cpus.clone(),
            span_sec: span.as_secs_f64(),
            // the sum of none is -0
            per_sec: causes.iter().fold(0.0, |sum, cause| sum + cause.per_sec),
            causes,
        }
    }
}

/// Does this kernel run softirqs in threads? Then each is counted as a switch to such a thread.
fn in_threads() -> bool {
    rustix::system::uname().version().to_bytes().windows(RT.len()).any(|word| word == RT)
}

fn cause(kind: Kind, name: &str, count: u64, span: Duration) -> Cause {
    let per_sec = count as f64 / span.as_secs_f64().max(f64::MIN_POSITIVE);
    Cause { kind, name: name.to_owned(), count, per_sec }
}

pub(crate) fn table(file: &'static str) -> Result<Table, Error> {
    let text = fs::read_to_string(file).map_err(|source| Error::Read { file, source })?;
    Ok(Table::parse(&text))
}

impl fmt::Display for Interrupted {
    /// `CPU 3 was interrupted 262.0 times per second: 250.0 by interrupt Local timer interrupts, 12.0 by softirq TIMER`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (are, all) = if self.cpus.len() == 1 { ("CPU", " was") } else { ("CPUs", " were") };
        write!(f, "{are} {}{all} interrupted {:.1} times per second", self.cpus, self.per_sec)?;
        let mut before = ": ";
        for cause in self.causes.iter().take(NAMED) {
            let name = format!("{} {}", cause.kind.name(), cause.name);
            write!(f, "{before}{:.1} by {}", cause.per_sec, units::printable(name.trim_end()))?;
            before = ", ";
        }
        let more = self.causes.len().saturating_sub(NAMED);
        if more > 0 { write!(f, " and {more} other causes") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(at: Instant, timer: [u64; 2], disk: [u64; 2]) -> Counts {
        let text = format!(
            "CPU0 CPU1\n36: {} {} PCI-MSI  disk\nLOC: {} {} Local timer interrupts\n",
            disk[0], disk[1], timer[0], timer[1]
        );
        let softirqs = Table::parse("CPU0 CPU1\nTIMER: 0 0\n");
        Counts { at, interrupts: Table::parse(&text), softirqs, switches: Vec::new() }
    }

    #[test]
    fn causes_of_several_cpus_are_added_and_the_most_frequent_is_first() {
        let begin = Instant::now();
        let before = counts(begin, [5, 5], [0, 7]);
        let after = counts(begin + Duration::from_secs(2), [7, 15], [0, 27]);
        let both = after.since(&before, &"0-1".parse().unwrap());
        let named: Vec<(&str, u64)> = both.causes.iter().map(|cause| (&*cause.name, cause.count)).collect();
        assert_eq!(named, [("36 disk", 20), ("Local timer interrupts", 12)]);
        assert_eq!(both.per_sec, 16.0);
        assert_eq!(
            after.since(&before, &"0".parse().unwrap()).to_string(),
            "CPU 0 was interrupted 1.0 times per second: 1.0 by interrupt Local timer interrupts"
        );
        let none = before.since(&before, &"1".parse().unwrap());
        assert_eq!(
            (none.per_sec, none.to_string()),
            (0.0, "CPU 1 was interrupted 0.0 times per second".to_owned())
        );
    }
}
