//! Why SCHED_FIFO may be refused: a group's real-time budget on cgroup v1 (RT_GROUP_SCHED), the machine's, or missing
//! rights. Budgets are the caller's to give.

use std::{fs, fs::File, io, io::Write, path::Path};

use kernel::{Host, Real, group_in};
use settings::{Controller, Version};
use units::hint::Command;

/// CPU time that one thread needs which wakes a thousand times a second, of 1. With less than its need a thread is
/// stopped for the rest of each period: worse than no real-time policy at all.
const NEED: f64 = 0.02;

/// Keeps all CPUs out of sleeps that take time to wake from, as long as the file is open (the kernel's PM QoS,
/// Documentation/power/pm_qos_interface.rst). `None`: no such device, or no right to it.
pub(super) fn keep_cpus_awake() -> Option<File> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// What real-time tasks here may take of a period, before any of them is started.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Budget {
    /// Our group as users name it, and its share of a CPU; `None` where groups have no such budgets.
    pub group: Option<(String, f64)>,
    /// The machine's share; `None`: it has no bound, or can't be read.
    pub machine: Option<f64>,
}

impl Budget {
    pub fn of_this_process() -> Budget {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
        let machine = number("/proc/sys/kernel/sched_rt_runtime_us")
            .zip(number("/proc/sys/kernel/sched_rt_period_us"))
            .filter(|(runtime, period)| *runtime >= 0.0 && *period > 0.0);
        Budget { group: group_budget(), machine: machine.map(|(runtime, period)| runtime / period) }
    }

    /// What a refusal of SCHED_FIFO means, with what fixes it.
    pub fn refusal(&self, priority: u32, error: &io::Error) -> String {
        match (&self.group, self.machine, error.raw_os_error()) {
            (Some((group, share)), _, Some(libc::EPERM)) if *share <= 0.0 => {
                let named = if group.is_empty() { "the root group" } else { group };
                format!(
                    "{named} has no real-time budget (cpu.rt_runtime_us is 0): \
                     {}",
                    Command::ringfence("set").group(group).arg("cpu.rt_runtime_us=50ms")
                )
            }
            (_, Some(share), _) if share <= 0.0 => "real-time tasks get no time on this machine: \
                sysctl kernel.sched_rt_runtime_us=950000"
                .to_owned(),
            (_, _, Some(libc::EPERM)) => {
                format!("no right to real-time priority {priority}: run it as root, or ulimit -r {priority}")
            }
            _ => error.to_string(),
        }
    }

    /// What the budget is too small for; `None` if it is enough.
    pub fn warning(&self, threads: usize, per_second: f64) -> Option<String> {
        let (group, share) = self.group.as_ref().filter(|(_, share)| *share > 0.0)?;
        let need = NEED * threads as f64 * per_second / 1000.0;
        (*share < need).then(|| {
            format!(
                "{group} has {:.1} % of a CPU for real-time tasks, these need {:.1} %: they are stopped for the rest \
                 of each period: {}",
                share * 100.0,
                need * 100.0,
                Command::ringfence("set")
                    .group(group)
                    .arg(format!("cpu.rt_runtime_us={:.0}ms", (need * 1000.0).ceil()))
            )
        })
    }
}

/// The budget of our own group, where the v1 cpu controller has them.
fn group_budget() -> Option<(String, f64)> {
    let host = Host::new(Box::new(Real::new())).ok()?;
    let at = host.hierarchy_of(Controller::Cpu).filter(|at| at.version == Version::V1)?;
    let own = host.kernel().outside(Path::new("/proc/self/cgroup")).ok()?;
    let group = at.below_mount(&group_in(at, own.as_bytes())?)?;
    let number = |file| host.kernel().read(at, &group, file).ok()?.trim().parse::<f64>().ok();
    let (runtime, period) = (number("cpu.rt_runtime_us")?, number("cpu.rt_period_us")?);
    Some((host.named(at, &group), if period > 0.0 { runtime / period } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(share: f64) -> Budget {
        Budget { group: Some(("rt".to_owned(), share)), machine: Some(0.95) }
    }

    #[test]
    fn a_refusal_names_the_cause_that_there_is() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(
            budget(0.0).refusal(90, &denied),
            "rt has no real-time budget (cpu.rt_runtime_us is 0): ringfence set rt cpu.rt_runtime_us=50ms"
        );
        assert!(budget(0.1).refusal(90, &denied).ends_with("run it as root, or ulimit -r 90"));
        let none = Budget { group: None, machine: Some(0.0) };
        assert!(none.refusal(90, &denied).ends_with("sysctl kernel.sched_rt_runtime_us=950000"));
        let wrong = io::Error::from_raw_os_error(libc::EINVAL);
        assert!(Budget::default().refusal(90, &wrong).starts_with("Invalid argument"));
    }

    #[test]
    fn a_budget_that_stops_the_threads_is_warned_of() {
        let warning = budget(0.001).warning(1, 1000.0).unwrap();
        assert!(
            warning.starts_with("rt has 0.1 % of a CPU for real-time tasks, these need 2.0 %"),
            "{warning}"
        );
        assert!(warning.ends_with("cpu.rt_runtime_us=20ms"), "{warning}");
        assert!(budget(0.05).warning(4, 1000.0).is_some());
        assert_eq!(budget(0.02).warning(1, 1000.0), None);
        assert_eq!(budget(0.02).warning(4, 100.0), None);
        assert_eq!(budget(0.0).warning(1, 1000.0), None); // refused altogether
        assert_eq!(Budget::default().warning(1, 1000.0), None);
    }

    #[test]
    fn the_own_groups_budget_is_read_where_there_are_such() {
        let budget = Budget::of_this_process();
        assert!(budget.machine.is_none_or(|share| (0.0..=1.0).contains(&share)), "{budget:?}");
        assert!(budget.group.is_none_or(|(_, share)| (0.0..=1.0).contains(&share)));
    }
}
