//! The rows, in the order in which a layout's steps set them.

use crate::knobs::{Accepts, Aim, Encoding, Errno, Knob, Per, Refusal, Scope};

/// What most rows have.
const MASK: Knob = Knob {
    name: "",
    doc: "",
    path: "",
    per: Per::Machine,
    encoding: Encoding::Mask,
    aim: Aim::Off,
    accepts: Accepts::Nothing,
    never_from: None,
    scope: Scope::Cpus,
    refusals: &[],
    since: "",
    by_kernel: "",
    writers: &[],
    source: "",
};

const OF_MACHINE: Knob = Knob { encoding: Encoding::Number, scope: Scope::Machine, ..MASK };
const OF_CPU: Knob = Knob { per: Per::Cpu, encoding: Encoding::Word, scope: Scope::Quiet, ..MASK };

const fn stays(errno: Errno, means: &'static str) -> Refusal {
    Refusal { errno, means, stays: true }
}

const fn fails(errno: Errno, means: &'static str) -> Refusal {
    Refusal { errno, means, stays: false }
}

const THREADS: &[Refusal] =
    &[stays(Errno::INVAL, "the thread is bound to its CPU"), stays(Errno::PERM, "the thread can't be moved")];
const POLICY: &[Refusal] = &[
    fails(Errno::INVAL, "it is no policy"),
    fails(
        Errno::PERM,
        "real-time policies take CAP_SYS_NICE, and a budget of the root group where groups have one",
    ),
];
const INTERRUPTS: &[Refusal] = &[
    stays(
        Errno::IO,
        "the kernel manages this interrupt's CPUs, or its controller can't move it: isolcpus=managed_irq at boot, or fewer queues of the device (ethtool -L)",
    ),
    stays(
        Errno::PERM,
        "the kernel manages this interrupt's CPUs: isolcpus=managed_irq at boot, or fewer queues of the device (ethtool -L)",
    ),
    stays(Errno::INVAL, "the interrupt's controller does not take these CPUs"),
    stays(Errno::NOSPC, "the other CPUs have no vector left for it"),
];
/// The largest number of a C int.
const MOST: i64 = i32::MAX as i64;
const FLAG: Accepts = Accepts::Number(0, 1);
const BALANCERS: &[&str] = &["irqbalance", "tuned"];
const TUNED: &[&str] = &["tuned"];
const SYSCTLS: &[&str] = &["tuned", "sysctl.d"];
const GOVERNORS: &[&str] = &["tuned", "power-profiles-daemon", "TLP", "auto-cpufreq"];
const PER_CPU_THREADS: &str = "admin-guide/kernel-per-CPU-kthreads.rst";
const SYSCTL_KERNEL: &str = "admin-guide/sysctl/kernel.rst";
const SYSCTL_VM: &str = "admin-guide/sysctl/vm.rst";

/// Kernel threads go first, so that an undo restores them last: the kernel resets their CPUs when a partition ends.
pub const KNOBS: &[Knob] = &[
    Knob {
        name: "kernel-threads",
        doc: "CPUs of the kernel's threads that are bound to none, and of kthreadd, which starts them",
        path: "threads of the kernel without PF_NO_SETAFFINITY",
        per: Per::Thread,
        encoding: Encoding::Affinity,
        refusals: THREADS,
        by_kernel: "when a partition is made, once; from 7.0 on for threads that start later too, in isolated partitions",
        writers: TUNED,
        source: PER_CPU_THREADS,
        ..MASK
    },
    Knob {
        name: "workqueues",
        doc: "CPUs of queues of work that are bound to none",
        path: "/sys/devices/virtual/workqueue/cpumask",
        refusals: &[fails(Errno::INVAL, "no possible CPU is among them")],
        by_kernel: "in isolated partitions, from 6.8 on",
        writers: TUNED,
        source: "core-api/workqueue.rst",
        ..MASK
    },
    Knob {
        name: "workqueue-masks",
        doc: "CPUs of queues of work with a mask of their own, among them writeback's",
        path: "/sys/devices/virtual/workqueue/*/cpumask",
        per: Per::Workqueue,
        refusals: &[stays(Errno::INVAL, "the queue takes no other CPUs")],
        by_kernel: "in isolated partitions, from 6.8 on",
        writers: TUNED,
        source: "core-api/workqueue.rst",
        ..MASK
    },
    Knob {
        name: "interrupt-default",
        doc: "CPUs of interrupts that are requested from now on",
        path: "/proc/irq/default_smp_affinity",
        refusals: &[fails(Errno::INVAL, "no online CPU is among them")],
        writers: BALANCERS,
        source: "core-api/irq/irq-affinity.rst",
        ..MASK
    },
    Knob {
        name: "interrupts",
        doc: "CPUs that devices' interrupts may go to",
        path: "/proc/irq/*/smp_affinity_list",
        per: Per::Interrupt,
        encoding: Encoding::List,
        refusals: INTERRUPTS,
        writers: BALANCERS,
        source: "core-api/irq/irq-affinity.rst",
        ..MASK
    },
    Knob {
        name: "receive-steering",
        doc: "CPUs that packets which arrived elsewhere are handed to (RPS); none where that is off",
        path: "/sys/class/net/*/queues/*/rps_cpus",
        per: Per::NicQueue,
        aim: Aim::OffOrNone,
        refusals: &[stays(Errno::NOENT, "the interface has gone")],
        writers: TUNED,
        source: "networking/scaling.rst",
        ..MASK
    },
    Knob {
        name: "transmit-steering",
        doc: "CPUs that send by each queue of an interface (XPS)",
        path: "/sys/class/net/*/queues/*/xps_cpus",
        per: Per::NicQueue,
        aim: Aim::OffOrNone,
        refusals: &[stays(Errno::NOENT, "the interface has one queue only, or has gone")],
        writers: TUNED,
        source: "networking/scaling.rst",
        ..MASK
    },
    Knob {
        name: "watchdog",
        doc: "CPUs that the watchdogs for lock-ups look after",
        path: "/proc/sys/kernel/watchdog_cpumask",
        encoding: Encoding::List,
        writers: SYSCTLS,
        source: "admin-guide/lockup-watchdogs.rst",
        ..MASK
    },
    Knob {
        name: "wake-up-latency",
        doc: "How long a wake-up of the CPU out of idle may take, in microseconds: 0 is any time, n/a no time, so that it never sleeps",
        path: "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
        aim: Aim::Value("n/a"),
        accepts: Accepts::Either(0, MOST, &["n/a"]),
        refusals: &[fails(Errno::INVAL, "it takes microseconds, or n/a")],
        writers: TUNED,
        source: "admin-guide/pm/cpuidle.rst",
        ..OF_CPU
    },
    Knob {
        name: "governor",
        doc: "What chooses the CPU's frequency",
        path: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        aim: Aim::Value("performance"),
        accepts: Accepts::Words(&[
            "performance",
            "powersave",
            "schedutil",
            "ondemand",
            "conservative",
            "userspace",
        ]),
        refusals: &[fails(
            Errno::INVAL,
            "the CPU has no such governor: scaling_available_governors beside the file",
        )],
        writers: GOVERNORS,
        source: "admin-guide/pm/cpufreq.rst",
        ..OF_CPU
    },
    Knob {
        name: "energy-preference",
        doc: "What the processor itself prefers, energy or performance",
        path: "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
        aim: Aim::Value("performance"),
        accepts: Accepts::Either(
            0,
            255,
            &["performance", "balance_performance", "default", "balance_power", "power"],
        ),
        refusals: &[
            fails(
                Errno::INVAL,
                "the CPU has no such preference: energy_performance_available_preferences beside the file",
            ),
            stays(Errno::BUSY, "the governor performance decides it"),
        ],
        writers: GOVERNORS,
        source: "admin-guide/pm/intel_pstate.rst",
        ..OF_CPU
    },
    Knob {
        name: "minimum-frequency",
        doc: "The least frequency, in kHz",
        path: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_min_freq",
        encoding: Encoding::Number,
        aim: Aim::Named,
        accepts: Accepts::Number(1, MOST),
        scope: Scope::Group,
        refusals: &[fails(Errno::INVAL, "it is no number of kHz")],
        writers: GOVERNORS,
        source: "admin-guide/pm/cpufreq.rst",
        ..OF_CPU
    },
    Knob {
        name: "softirq-threads",
        doc: "Scheduling policy of the threads that do softirqs for the CPU when there are many",
        path: "ksoftirqd/*",
        per: Per::ThreadOfCpu,
        encoding: Encoding::Policy,
        aim: Aim::Named,
        accepts: Accepts::Policy,
        scope: Scope::Group,
        refusals: POLICY,
        writers: TUNED,
        source: "admin-guide/kernel-per-CPU-kthreads.rst",
        ..OF_CPU
    },
    Knob {
        name: "rcu-threads",
        doc: "Scheduling policy of the threads that do RCU's callbacks for the CPU, on real-time kernels and with rcutree.use_softirq=0",
        path: "rcuc/*",
        per: Per::ThreadOfCpu,
        encoding: Encoding::Policy,
        aim: Aim::Named,
        accepts: Accepts::Policy,
        scope: Scope::Group,
        refusals: POLICY,
        writers: TUNED,
        source: "admin-guide/kernel-parameters.txt",
        ..OF_CPU
    },
    Knob {
        name: "fair-server",
        doc: "Time of each second, in nanoseconds, that ordinary tasks get on the CPU beside real-time ones; 0 is none",
        path: "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
        encoding: Encoding::Number,
        aim: Aim::Value("0"),
        accepts: Accepts::Number(0, 1_000_000_000),
        scope: Scope::Full,
        refusals: &[
            fails(Errno::INVAL, "it is above the period"),
            stays(
                Errno::BUSY,
                "the kernel's check of deadline tasks' bandwidth refuses it, on Linux 6.12 without such a task too",
            ),
        ],
        since: "6.12",
        source: "scheduler/sched-deadline.rst",
        ..OF_CPU
    },
    Knob {
        name: "timer-migration",
        doc: "Whether timers of idle CPUs go to busy ones, isolated ones among them",
        path: "/proc/sys/kernel/timer_migration",
        aim: Aim::Value("0"),
        accepts: FLAG,
        by_kernel: "in isolated partitions, from 7.0 on",
        writers: SYSCTLS,
        source: "admin-guide/kernel-per-CPU-kthreads.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "nmi-watchdog",
        doc: "Whether a counter of each CPU raises an interrupt that can't be masked, to find lock-ups",
        path: "/proc/sys/kernel/nmi_watchdog",
        aim: Aim::Value("0"),
        accepts: FLAG,
        writers: SYSCTLS,
        source: "admin-guide/lockup-watchdogs.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "soft-watchdog",
        doc: "Whether a thread of each CPU runs every few seconds, to find lock-ups",
        path: "/proc/sys/kernel/soft_watchdog",
        aim: Aim::Value("0"),
        accepts: FLAG,
        writers: SYSCTLS,
        source: "admin-guide/lockup-watchdogs.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "hung-task",
        doc: "Seconds after which a task that waits is reported as hung; 0 looks for none",
        path: "/proc/sys/kernel/hung_task_timeout_secs",
        aim: Aim::Value("600"),
        accepts: Accepts::Number(0, 4_294_967),
        writers: SYSCTLS,
        source: SYSCTL_KERNEL,
        ..OF_MACHINE
    },
    Knob {
        name: "stat-interval",
        doc: "Seconds between two times that each CPU adds its counts of memory up",
        path: "/proc/sys/vm/stat_interval",
        aim: Aim::Value("10"),
        accepts: Accepts::Number(1, 4_294_967),
        refusals: &[fails(Errno::INVAL, "it is no number of seconds from 1 on")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "writeback-interval",
        doc: "Hundredths of a second between two looks for old dirty pages; 0 looks for none",
        path: "/proc/sys/vm/dirty_writeback_centisecs",
        aim: Aim::Value("1500"),
        accepts: Accepts::Number(0, MOST),
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "dirty-background",
        doc: "Share of free memory, in percent, that may be dirty before the kernel writes it in the background",
        path: "/proc/sys/vm/dirty_background_ratio",
        aim: Aim::Named,
        accepts: Accepts::Number(1, 100),
        never_from: Some((
            "0",
            "the limit is in vm.dirty_background_bytes here, and setting both ways one after the other can't be undone: name dirty-background-bytes",
        )),
        refusals: &[fails(Errno::INVAL, "it is out of range")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "dirty-background-bytes",
        doc: "Bytes that may be dirty before the kernel writes them in the background",
        path: "/proc/sys/vm/dirty_background_bytes",
        aim: Aim::Named,
        accepts: Accepts::Number(1, i64::MAX),
        never_from: Some((
            "0",
            "the limit is in vm.dirty_background_ratio here, and setting both ways one after the other can't be undone: name dirty-background",
        )),
        refusals: &[fails(Errno::INVAL, "it is out of range")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "dirty-limit",
        doc: "Share of free memory, in percent, that may be dirty before a program that writes has to wait",
        path: "/proc/sys/vm/dirty_ratio",
        aim: Aim::Named,
        accepts: Accepts::Number(1, 100),
        never_from: Some((
            "0",
            "the limit is in vm.dirty_bytes here, and setting both ways one after the other can't be undone: name dirty-limit-bytes",
        )),
        refusals: &[fails(Errno::INVAL, "it is out of range")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "dirty-limit-bytes",
        doc: "Bytes that may be dirty before a program that writes has to wait",
        path: "/proc/sys/vm/dirty_bytes",
        aim: Aim::Named,
        accepts: Accepts::Number(8192, i64::MAX),
        never_from: Some((
            "0",
            "the limit is in vm.dirty_ratio here, and setting both ways one after the other can't be undone: name dirty-limit",
        )),
        refusals: &[fails(Errno::INVAL, "it is out of range")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "dirty-expire",
        doc: "Hundredths of a second after which dirty memory is old enough to be written",
        path: "/proc/sys/vm/dirty_expire_centisecs",
        aim: Aim::Named,
        accepts: Accepts::Number(0, MOST),
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "compaction",
        doc: "How eagerly memory is compacted before anybody needs it, 0 to 100",
        path: "/proc/sys/vm/compaction_proactiveness",
        aim: Aim::Value("0"),
        accepts: Accepts::Number(0, 100),
        refusals: &[fails(Errno::INVAL, "it is 0 to 100")],
        writers: SYSCTLS,
        source: SYSCTL_VM,
        ..OF_MACHINE
    },
    Knob {
        name: "machine-checks",
        doc: "Seconds between two looks for corrected errors of the hardware; 0 looks for none",
        path: "/sys/devices/system/machinecheck/machinecheck0/check_interval",
        aim: Aim::Value("0"),
        accepts: Accepts::Number(0, 4_294_967),
        writers: TUNED,
        source: "arch/x86/x86_64/machinecheck.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "huge-pages",
        doc: "When memory comes in huge pages without being requested: always, madvise or never",
        path: "/sys/kernel/mm/transparent_hugepage/enabled",
        encoding: Encoding::Choice,
        aim: Aim::Value("madvise"),
        accepts: Accepts::Words(&["always", "madvise", "never"]),
        refusals: &[fails(Errno::INVAL, "it is always, madvise or never")],
        writers: TUNED,
        source: "admin-guide/mm/transhuge.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "huge-pages-defrag",
        doc: "Whether a page fault waits for memory to be compacted: always, defer, defer+madvise, madvise or never",
        path: "/sys/kernel/mm/transparent_hugepage/defrag",
        encoding: Encoding::Choice,
        aim: Aim::Value("never"),
        accepts: Accepts::Words(&["always", "defer", "defer+madvise", "madvise", "never"]),
        refusals: &[fails(Errno::INVAL, "it is always, defer, defer+madvise, madvise or never")],
        writers: TUNED,
        source: "admin-guide/mm/transhuge.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "khugepaged-defrag",
        doc: "Whether khugepaged compacts memory for huge pages, which interrupts every CPU",
        path: "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        aim: Aim::Value("0"),
        accepts: FLAG,
        refusals: &[fails(Errno::INVAL, "it is 0 or 1")],
        writers: TUNED,
        source: "admin-guide/mm/transhuge.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "same-pages",
        doc: "Whether pages with the same contents are merged (KSM), which interrupts every CPU: 0, 1, or 2 to undo it",
        path: "/sys/kernel/mm/ksm/run",
        aim: Aim::Value("0"),
        accepts: Accepts::Number(0, 2),
        refusals: &[fails(Errno::INVAL, "it is 0, 1 or 2")],
        writers: TUNED,
        source: "admin-guide/mm/ksm.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "numa-balancing",
        doc: "Whether pages move to the node that uses them, which unmaps them first",
        path: "/proc/sys/kernel/numa_balancing",
        aim: Aim::Value("0"),
        accepts: Accepts::Number(0, 2),
        refusals: &[fails(Errno::INVAL, "it is 0, 1 or 2")],
        writers: SYSCTLS,
        source: SYSCTL_KERNEL,
        ..OF_MACHINE
    },
    Knob {
        name: "interrupt-threads",
        doc: "Scheduling policy of the threads that handle devices' interrupts, on real-time kernels and with threadirqs at boot",
        path: "irq/*",
        per: Per::InterruptThread,
        encoding: Encoding::Policy,
        aim: Aim::Named,
        accepts: Accepts::Policy,
        refusals: POLICY,
        writers: TUNED,
        source: "core-api/genericirq.rst",
        ..OF_MACHINE
    },
    Knob {
        name: "rt-throttling",
        doc: "Microseconds of each period that real-time tasks may run; -1 is all of it",
        path: "/proc/sys/kernel/sched_rt_runtime_us",
        aim: Aim::Value("-1"),
        accepts: Accepts::Number(-1, MOST),
        refusals: &[
            fails(Errno::INVAL, "it is above the period"),
            fails(Errno::BUSY, "the budgets of groups or deadline tasks need the limit"),
        ],
        writers: SYSCTLS,
        source: "scheduler/sched-rt-group.rst",
        ..OF_MACHINE
    },
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

/// The rows that `isolate = "quiet"` and such contain; `None` if it is no such word.
pub fn of_level(word: &str) -> Option<impl Iterator<Item = &'static Knob>> {
    let level =
        [Scope::Cpus, Scope::Quiet, Scope::Full].into_iter().find(|scope| scope.word() == Some(word))?;
    Some(KNOBS.iter().filter(move |knob| knob.scope <= level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole() {
        for knob in KNOBS {
            let name = knob.name;
            assert!(!name.is_empty() && !knob.doc.is_empty() && !knob.source.is_empty(), "{name}");
            assert!(!knob.doc.ends_with('.'), "{name}");
            assert_eq!(KNOBS.iter().filter(|other| other.name == name).count(), 1, "{name}");
            let is_thread = matches!(knob.per, Per::Thread | Per::ThreadOfCpu | Per::InterruptThread);
            assert_eq!(is_thread, !knob.path.starts_with('/'), "{name}");
            assert_eq!(knob.encoding.is_cpus(), matches!(knob.aim, Aim::Off | Aim::OffOrNone), "{name}");
            assert_eq!(knob.encoding.is_cpus(), knob.accepts == Accepts::Nothing, "{name}");
            if let Aim::Value(usual) = knob.aim {
                assert!(knob.accepts.takes(usual), "{name}: {usual} is not among {}", knob.accepts);
            }
        }
        let count = |word: &str| of_level(word).unwrap().count();
        assert!(count("cpus") < count("quiet") && count("quiet") < count("full"));
        assert!(of_level("loud").is_none());
    }
}
