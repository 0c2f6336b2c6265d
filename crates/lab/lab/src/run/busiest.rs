//! What other programs and the kernel's threads used of the CPUs during a run: the gate of runs with I/O tells the two
//! apart by it, and a note about a busy machine names who it was.

use std::{collections::BTreeMap, fs, time::Instant};

use units::ProcStat;

/// As many are reported.
const REPORTED: usize = 3;
/// `PF_KTHREAD` in linux/sched.h.
const IS_KERNEL: u64 = 0x0020_0000;

/// All processes at one time.
pub(crate) struct Look {
    at: Instant,
    seen: BTreeMap<u32, Usage>,
}

/// Times are in clock ticks (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Usage {
    name: String,
    parent: u32,
    is_kernel: bool,
    /// Since boot: numbers are used again.
    started: u64,
    /// Of it and of the children that it has waited for.
    used: u64,
}

/// What was used between two looks, in CPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Others {
    /// By programs that are not the experiment's.
    pub programs: f64,
    /// By threads of the kernel; `None` where they can't be seen, as in a container.
    pub kernel: Option<f64>,
    /// The programs that used the most.
    pub busiest: Vec<(String, f64)>,
    /// The threads of the kernel that used the most.
    pub kernel_threads: Vec<(String, f64)>,
}

impl Others {
    /// The programs and threads of the kernel that used the most.
    pub fn all(&self) -> Vec<(String, f64)> {
        most(self.busiest.iter().chain(&self.kernel_threads).cloned().collect())
    }
}

fn most(mut programs: Vec<(String, f64)>) -> Vec<(String, f64)> {
    programs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    programs.truncate(REPORTED);
    programs
}

impl Look {
    /// Those that end meanwhile are left out.
    pub fn now() -> Look {
        let at = Instant::now();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let seen = |pid| Some((pid, Usage::of(&fs::read(format!("/proc/{pid}/stat")).ok()?)?));
        Look { at, seen: pids.filter_map(seen).collect() }
    }

    /// Can threads of the kernel be seen from here?
    pub fn sees_kernel(&self) -> bool {
        self.seen.values().any(|one| one.is_kernel)
    }

    /// What was used since by programs that are not the experiment's, and by the kernel's threads.
    pub fn others_since(&self, before: &Look, parent: &str) -> Others {
        let own = std::process::id();
        let in_group = |pid: u32| {
            fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(parent))
        };
        let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let cpus = |used: u64| if seconds > 0.0 { used as f64 / ticks / seconds } else { 0.0 };
        let mut by_name: [BTreeMap<&str, u64>; 2] = Default::default();
        for (pid, used) in self.used_since(before).into_iter().filter(|(_, used)| *used > 0) {
            let Some(seen) = self.seen.get(&pid) else { continue };
            if seen.is_kernel || (!self.is_below(pid, own) && !in_group(pid)) {
                *by_name[usize::from(seen.is_kernel)].entry(&seen.name).or_default() += used;
            }
        }
        let [programs, kernel] = by_name;
        let sum = |used: &BTreeMap<&str, u64>| cpus(used.values().sum());
        let named = |used: &BTreeMap<&str, u64>| {
            most(used.iter().map(|(name, used)| ((*name).to_owned(), cpus(*used))).collect())
        };
        Others {
            programs: sum(&programs),
            kernel: self.sees_kernel().then(|| sum(&kernel)),
            busiest: named(&programs),
            kernel_threads: named(&kernel),
        }
    }

    /// A child that has ended meanwhile is in the time of who waited for it, with what it had used before.
    fn used_since(&self, before: &Look) -> BTreeMap<u32, u64> {
        let same =
            |pid: &u32, then: &Usage| self.seen.get(pid).is_some_and(|now| now.started == then.started);
        let mut earlier: BTreeMap<u32, u64> = BTreeMap::new();
        for (pid, then) in &before.seen {
            let mut at = *pid;
            let mut seen = Some(then);
            // a parent is older, but numbers are used again
            for _ in 0..64 {
                let Some(then) = seen.filter(|then| !same(&at, then)) else { break };
                at = then.parent;
                seen = before.seen.get(&at);
            }
            *earlier.entry(at).or_default() += then.used;
        }
        let since = |(pid, now): (&u32, &Usage)| {
            (*pid, now.used.saturating_sub(earlier.get(pid).copied().unwrap_or_default()))
        };
        self.seen.iter().map(since).collect()
    }

    fn is_below(&self, pid: u32, own: u32) -> bool {
        let mut at = pid;
        for _ in 0..64 {
            match self.seen.get(&at) {
                _ if at == own => return true,
                Some(seen) => at = seen.parent,
                None => return false,
            }
        }
        false
    }
}

impl Usage {
    fn of(text: &[u8]) -> Option<Usage> {
        let stat = ProcStat::parse(text)?;
        Some(Usage {
            name: String::from_utf8_lossy(stat.name()).into_owned(),
            parent: stat.parent()?,
            is_kernel: stat.flags()? & IS_KERNEL != 0,
            started: stat.started()?,
            used: stat.ticks()? + stat.ticks_waited_for()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn look(rows: &[(u32, u32, u64, u64)], seconds: u64) -> Look {
        let seen = |&(pid, parent, started, used): &(u32, u32, u64, u64)| {
            let is_kernel = parent == 2 || pid == 2;
            (pid, Usage { name: format!("p{pid}"), parent, is_kernel, started, used })
        };
        let at = Instant::now() + Duration::from_secs(seconds);
        Look { at, seen: rows.iter().map(seen).collect() }
    }

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name_is() {
        let stat = b"7 (a ) (b) S 3 7 7 0 -1 4194304 1 2 0 0 10 20 30 40 20 0 1 0 99 1 2";
        let seen = Usage { name: "a ) (b".to_owned(), parent: 3, is_kernel: false, started: 99, used: 100 };
        assert_eq!(Usage::of(stat), Some(seen));
        let thread = b"8 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 5 0 0 20 0 1 0 99 0 0";
        assert!(Usage::of(thread).unwrap().is_kernel);
        assert_eq!(Usage::of(b"7 (a) S 3"), None);
    }

    #[test]
    fn what_an_ended_child_had_used_before_is_not_counted_again() {
        // 2 waited for 3, which had waited for 4: both had used 500 before, and 30 since
        let before = look(&[(1, 0, 0, 10), (2, 1, 5, 100), (3, 2, 6, 400), (4, 3, 7, 100), (9, 1, 8, 70)], 0);
        let now = look(&[(1, 0, 0, 11), (2, 1, 5, 630), (9, 1, 50, 20)], 1);
        let used = now.used_since(&before);
        assert_eq!(used[&2], 30);
        assert_eq!(used[&9], 20, "another process of the same number");
    }

    #[test]
    fn the_experiments_own_processes_are_not_the_others_and_the_kernels_threads_are_apart() {
        let own = std::process::id();
        let ticks = rustix::param::clock_ticks_per_second();
        let before = look(&[], 0);
        let rows = [
            (2, 0, 0, 0),
            (own, 1, 0, 5000),
            (4_000_001, own, 5, 3000),
            (4_000_002, 1, 5, ticks),
            (4_000_003, 2, 5, 3 * ticks),
        ];
        let now = Look { at: before.at + Duration::from_secs(1), ..look(&rows, 0) };
        let used = now.others_since(&before, "rf-lab-none");
        assert_eq!(used.busiest, [("p4000002".to_owned(), 1.0)]);
        assert_eq!(used.kernel_threads, [("p4000003".to_owned(), 3.0)]);
        assert_eq!((used.programs, used.kernel), (1.0, Some(3.0)));
        assert_eq!(used.all().len(), 2);
        let unseen = Look { at: now.at, ..look(&rows[1..4], 0) };
        assert_eq!(unseen.others_since(&before, "rf-lab-none").kernel, None, "as in a container");
    }
}
