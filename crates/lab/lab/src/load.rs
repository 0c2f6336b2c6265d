//! What the machine was doing besides: CPU time of everything, so that a figure can be reported together with what disturbed
//! it.

use std::{io, time::Duration};

use kernel::Host;
use settings::{Controller, Version};
use topology::facts::Base;

/// CPU time of all CPUs since boot, in clock ticks (`/proc/stat`, proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
    cpus: u64,
}

/// Shares of all CPUs' time between two readings: 0.05 is 5 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Others {
    /// Used by everything but the workloads, the kernel's own threads among it.
    pub other: f64,
    /// Taken by the hypervisor for other machines.
    pub steal: f64,
}

impl Ticks {
    /// How many CPUs there are.
    pub fn cpus(self) -> u64 {
        self.cpus
    }

    /// The kernel's counters now.
    pub fn now() -> io::Result<Ticks> {
        let text = std::fs::read_to_string("/proc/stat")?;
        Ticks::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no cpu line in /proc/stat"))
    }

    fn parse(text: &str) -> Option<Ticks> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Option<Vec<u64>> = line.split_whitespace().map(|field| field.parse().ok()).collect();
        // guest time (the ninth and tenth) is part of user time
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields?[..] else { return None };
        let is_cpu =
            |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(char::is_numeric));
        let cpus = text.lines().filter(is_cpu).count() as u64;
        Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal, cpus })
    }

    /// What others did since `before`, `elapsed` ago. `own` is the workloads' CPU time; `ran` that of all tasks, where the
    /// kernel counts it ([`all_tasks`]).
    pub fn others_since(
        self,
        before: Ticks,
        own: Duration,
        ran: Option<Duration>,
        elapsed: Duration,
    ) -> Others {
        let past = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let (busy, steal) = (past(self.busy, before.busy), past(self.steal, before.steal));
        let all = busy + steal + past(self.idle, before.idle);
        let ratio = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { part / whole };
        let share = |time: Duration| ratio(time.as_secs_f64(), elapsed.as_secs_f64() * self.cpus as f64);
        let busy = ran.map_or(ratio(busy, all), share);
        Others { other: (busy - share(own)).max(0.0), steal: ratio(steal, all) }
    }
}

/// CPU time of all tasks of the machine since boot, to the nanosecond: `cpuacct.usage` of v1's root group
/// (cgroup-v1/cpuacct.rst). A tick counts who runs as it comes; where CPUs fall asleep and wake thousands of times a
/// second that was seen to be 6 % of a machine too much. v2 counts its root group by ticks, too, and a container does not
/// see the root group.
pub(crate) fn all_tasks(host: &Host) -> Option<Duration> {
    let at = host.hierarchy_of(Controller::Cpuacct)?;
    let is_all = at.version == Version::V1 && *host.base(at) == Base::Root;
    let text = is_all.then(|| host.kernel().read(at, "", "cpuacct.usage").ok())??;
    text.trim().parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_what_was_busy_without_the_workloads_own_time() {
        let before = Ticks::parse("cpu  10 0 10 100 5 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 3\n").unwrap();
        let after = Ticks::parse("cpu  60 5 15 130 5 0 0 10 0 0\ncpu0 1 1\ncpu1 1 1\n").unwrap();
        // 60 busy, 30 idle, 10 stolen of 100 ticks of two CPUs; the workloads had one of the two
        let nanos = Duration::from_nanos;
        let others = after.others_since(before, nanos(500), None, nanos(500));
        assert!((others.other - 0.1).abs() < 1e-9, "{others:?}");
        assert!((others.steal - 0.1).abs() < 1e-9, "{others:?}");
        let counted = after.others_since(before, nanos(500), Some(nanos(540)), nanos(500));
        assert!(
            (counted.other - 0.04).abs() < 1e-9,
            "ticks do not count where tasks' time does: {counted:?}"
        );
        let none = before.others_since(before, nanos(300), None, nanos(500));
        assert_eq!(none, Others { other: 0.0, steal: 0.0 });
        assert_eq!(Ticks::parse("cpu 1 2 x"), None);
        assert_eq!(Ticks::parse("intr 1"), None);
    }
}
