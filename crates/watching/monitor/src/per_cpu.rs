//! The CPU time that a group used on each CPU: whether CPUs that are another group's are really left alone. v1 counts it
//! (`cpuacct.usage_percpu`); on v2 the kernel's task clock counts it, an event per CPU of the group's tasks.

use std::{collections::BTreeMap, fs::File, time::Duration};

use kernel::{GroupName, Host, Real, describe};
use perf_event::{Builder, Counter, events::Software};
use rustix::{fs::OFlags, io::Errno};
use settings::{Controller, Version};
use units::CpuSet;

/// Counts one group's CPU time on some CPUs. On v2 from the moment on at which it is made.
pub struct PerCpu {
    group: GroupName,
    /// CPU → its counter; none where a file has the figures.
    clocks: BTreeMap<usize, Counter>,
}

impl PerCpu {
    /// Of a group that is there, with all below it.
    ///
    /// # Errors
    /// Why this machine does not count it, in words.
    pub fn new(host: &Host, group: &GroupName, cpus: &CpuSet) -> Result<PerCpu, String> {
        let mut counted = PerCpu { group: group.clone(), clocks: BTreeMap::new() };
        if counted.file(host).is_some() {
            return Ok(counted);
        }
        let why = |errno| format!("the task clock of group {group} is not counted: {}", describe(errno));
        let seat = host.seat(group, Controller::PerfEvent).map_err(|error| error.to_string())?;
        let directory = Real::new().open(seat.at, &seat.path, "", OFlags::RDONLY | OFlags::DIRECTORY);
        let directory = directory.map(File::from).map_err(why)?;
        for cpu in cpus.iter() {
            let mut clock = Builder::new(Software::TASK_CLOCK);
            clock.observe_cgroup(&directory).one_cpu(cpu).exclude_kernel(false).exclude_hv(false);
            let clock = clock.enabled(true).build();
            let clock = clock.map_err(|error| why(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
            counted.clocks.insert(cpu, clock);
        }
        Ok(counted)
    }

    /// CPU time used so far, by CPU. `None`: the group is gone, or is not counted any more.
    pub fn read(&mut self, host: &Host) -> Option<BTreeMap<usize, Duration>> {
        if self.clocks.is_empty() {
            return self.file(host);
        }
        let read =
            |(cpu, clock): (&usize, &mut Counter)| Some((*cpu, Duration::from_nanos(clock.read().ok()?)));
        self.clocks.iter_mut().map(read).collect()
    }

    /// v1 has a number per possible CPU.
    fn file(&self, host: &Host) -> Option<BTreeMap<usize, Duration>> {
        let seat = host.seat(&self.group, Controller::Cpuacct).ok()?;
        if seat.at.version != Version::V1 {
            return None;
        }
        let text = host.kernel().read(seat.at, &seat.path, "cpuacct.usage_percpu").ok()?;
        let numbers = text.split_whitespace().map(|word| word.parse().map(Duration::from_nanos));
        numbers.enumerate().map(|(cpu, time)| Some((cpu, time.ok()?))).collect()
    }
}
