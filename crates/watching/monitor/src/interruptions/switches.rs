//! Context switches on a CPU, of all tasks, as perf_event_open(2) counts them.

use perf_event::{Builder, Counter, events::Software};
use rustix::io::Errno;
use units::CpuSet;

use crate::Uncounted;

/// Counts from its making on.
pub(crate) struct Switches(Vec<(usize, Counter)>);

impl Switches {
    /// # Errors
    /// What the kernel refuses it with.
    pub fn on(cpus: &CpuSet) -> Result<Switches, Uncounted> {
        let open = |cpu: usize| {
            let mut builder = Builder::new(Software::CONTEXT_SWITCHES);
            builder.any_pid().one_cpu(cpu).exclude_kernel(false).exclude_hv(false).enabled(true);
            builder.build().map(|counter| (cpu, counter)).map_err(|error| Uncounted {
                events: vec!["context-switches"],
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            })
        };
        cpus.iter().map(open).collect::<Result<_, _>>().map(Switches)
    }

    /// The counts so far, by CPU.
    pub fn read(&mut self) -> Vec<(usize, u64)> {
        let counts = self.0.iter_mut().map(|(cpu, counter)| (*cpu, counter.read().unwrap_or(0)));
        counts.collect()
    }
}
