//! Which other programs used the CPUs during a run, so that a note about a busy machine says by what. It is no part
//! of any figure: the gate counts by the whole machine's time.

use std::{collections::BTreeMap, fs};

use units::ProcStat;

/// As many are reported.
const REPORTED: usize = 3;

/// All processes at one time.
pub(crate) struct Look(BTreeMap<u32, Usage>);

/// Times are in clock ticks (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Usage {
    name: String,
    parent: u32,
    /// Since boot: numbers are used again.
    started: u64,
    /// Of it and of the children that it has waited for.
    used: u64,
}

impl Look {
    /// Those that end meanwhile are left out.
    pub fn now() -> Look {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let seen = |pid| Some((pid, Usage::of(&fs::read(format!("/proc/{pid}/stat")).ok()?)?));
        Look(pids.filter_map(seen).collect())
    }

    /// The programs that used the most since, but for those that are the experiment's, and how many CPUs.
    pub fn others_since(&self, before: &Look, parent: &str, seconds: f64) -> Vec<(String, f64)> {
        let own = std::process::id();
        let in_group = |pid: u32| {
            fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| text.contains(parent))
        };
        let mut used: Vec<(u32, u64)> = self.used_since(before).into_iter().collect();
        used.retain(|(pid, ticks)| *ticks > 0 && !self.is_below(*pid, own) && !in_group(*pid));
        let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, ticks) in used {
            *programs.entry(self.0.get(&pid).map_or("", |seen| seen.name.as_str())).or_default() += ticks;
        }
        let mut programs: Vec<(&str, u64)> = programs.into_iter().collect();
        programs.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        let cpus =
            |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64 / seconds;
        programs.into_iter().take(REPORTED).map(|(name, ticks)| (name.to_owned(), cpus(ticks))).collect()
    }

    /// A child that has ended meanwhile is in the time of who waited for it, with what it had used before.
    fn used_since(&self, before: &Look) -> BTreeMap<u32, u64> {
        let same = |pid: &u32, then: &Usage| self.0.get(pid).is_some_and(|now| now.started == then.started);
        let mut earlier: BTreeMap<u32, u64> = BTreeMap::new();
        for (pid, then) in &before.0 {
            let mut at = *pid;
            let mut seen = Some(then);
            // a parent is older, but numbers are used again
            for _ in 0..64 {
                let Some(then) = seen.filter(|then| !same(&at, then)) else { break };
                at = then.parent;
                seen = before.0.get(&at);
            }
            *earlier.entry(at).or_default() += then.used;
        }
        let since = |(pid, now): (&u32, &Usage)| {
            (*pid, now.used.saturating_sub(earlier.get(pid).copied().unwrap_or_default()))
        };
        self.0.iter().map(since).collect()
    }

    fn is_below(&self, pid: u32, own: u32) -> bool {
        let mut at = pid;
        for _ in 0..64 {
            match self.0.get(&at) {
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
            started: stat.started()?,
            used: stat.ticks()? + stat.ticks_waited_for()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rows: &[(u32, u32, u64, u64)]) -> Look {
        let seen = |&(pid, parent, started, used): &(u32, u32, u64, u64)| {
            (pid, Usage { name: format!("p{pid}"), parent, started, used })
        };
        Look(rows.iter().map(seen).collect())
    }

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name_is() {
        let stat = b"7 (a ) (b) S 3 7 7 0 -1 4194304 1 2 0 0 10 20 30 40 20 0 1 0 99 1 2";
        let seen = Usage { name: "a ) (b".to_owned(), parent: 3, started: 99, used: 100 };
        assert_eq!(Usage::of(stat), Some(seen));
        assert_eq!(Usage::of(b"7 (a) S 3"), None);
    }

    #[test]
    fn what_an_ended_child_had_used_before_is_not_counted_again() {
        // 2 waited for 3, which had waited for 4: both had used 500 before, and 30 since
        let before = look(&[(1, 0, 0, 10), (2, 1, 5, 100), (3, 2, 6, 400), (4, 3, 7, 100), (9, 1, 8, 70)]);
        let now = look(&[(1, 0, 0, 11), (2, 1, 5, 630), (9, 1, 50, 20)]);
        let used = now.used_since(&before);
        assert_eq!(used[&2], 30);
        assert_eq!(used[&9], 20, "another process of the same number");
    }

    #[test]
    fn the_experiments_own_processes_are_not_the_others() {
        let own = std::process::id();
        let now = look(&[(own, 1, 0, 5000), (4_000_001, own, 5, 3000), (4_000_002, 1, 5, 1000)]);
        let reported = now.others_since(&look(&[]), "rf-lab-none", 1.0);
        let names: Vec<&str> = reported.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["p4000002"]);
    }
}
