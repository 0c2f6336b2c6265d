//! Programs that write what a division of the machine writes too, a row each: how they are recognised, what of ours they
//! change, where that is configured.

/// A program that is known to write what we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWriter {
    /// Its name for people.
    pub name: &'static str,
    /// The kernel's name of its process, at most 15 bytes.
    pub process: Option<&'static str>,
    /// A file that is there only while it is in force.
    pub mark: Option<&'static str>,
    /// What of ours it writes.
    pub writes: &'static str,
    /// The file that configures it.
    pub file: &'static str,
    /// The file with the name of what it has chosen, such as tuned's profile.
    pub choice: Option<&'static str>,
    /// The command that stops it where no unit or process is known.
    pub stop: &'static str,
}

const DAEMON: KnownWriter =
    KnownWriter { name: "", process: None, mark: None, writes: "", file: "", choice: None, stop: "" };

/// The file that says whether a scheduler of sched_ext is in force (sched-ext.rst).
pub const SCHED_EXT_STATE: &str = "/sys/kernel/sched_ext/state";

/// All of them.
pub const WRITERS: [KnownWriter; 11] = [
    KnownWriter {
        name: "tuned",
        process: Some("tuned"),
        writes: "frequency governors, the affinity of interrupts and, with a partitioning profile, of tasks",
        file: "/etc/tuned/tuned-main.conf and the profile's tuned.conf",
        choice: Some("/etc/tuned/active_profile"),
        ..DAEMON
    },
    KnownWriter {
        name: "irqbalance",
        process: Some("irqbalance"),
        writes: "the CPUs of interrupts, which may be those that a group has for itself",
        file: "/etc/default/irqbalance (IRQBALANCE_BANNED_CPULIST=CPUS)",
        ..DAEMON
    },
    KnownWriter {
        name: "power-profiles-daemon",
        process: Some("power-profiles-"),
        writes: "frequency governors and energy preferences of all CPUs",
        file: "/var/lib/power-profiles-daemon/state.ini",
        ..DAEMON
    },
    KnownWriter {
        name: "TLP",
        mark: Some("/run/tlp/last_pwr"),
        writes: "frequency governors of all CPUs and the schedulers of disks",
        file: "/etc/tlp.conf",
        stop: "systemctl disable --now tlp.service",
        ..DAEMON
    },
    KnownWriter {
        name: "intel-lpmd",
        process: Some("intel_lpmd"),
        writes: "the CPUs of system.slice, user.slice and machine.slice (AllowedCPUs=)",
        file: "/etc/intel_lpmd/intel_lpmd_config.xml",
        ..DAEMON
    },
    KnownWriter {
        name: "auto-cpufreq",
        process: Some("auto-cpufreq"),
        writes: "frequency governors of all CPUs",
        file: "/etc/auto-cpufreq.conf",
        ..DAEMON
    },
    KnownWriter {
        name: "ananicy",
        process: Some("ananicy"),
        writes: "nice values, scheduling policies, and the groups of processes",
        file: "/etc/ananicy.d",
        ..DAEMON
    },
    KnownWriter {
        name: "ananicy-cpp",
        process: Some("ananicy-cpp"),
        writes: "nice values, scheduling policies, and the groups of processes",
        file: "/etc/ananicy.d",
        ..DAEMON
    },
    KnownWriter {
        name: "a scheduler of sched_ext",
        mark: Some(SCHED_EXT_STATE),
        writes: "which task runs where: cpu.weight and cpu.max count only as far as it looks at them",
        file: "/etc/default/scx",
        choice: Some("/sys/kernel/sched_ext/root/ops"),
        stop: "echo S >/proc/sysrq-trigger",
        ..DAEMON
    },
    KnownWriter {
        name: "cgrulesengd",
        process: Some("cgrulesengd"),
        writes: "the groups of processes, by rules of its own",
        file: "/etc/cgrules.conf",
        ..DAEMON
    },
    KnownWriter {
        name: "numad",
        process: Some("numad"),
        writes: "the CPUs and memory nodes of processes, away from those of their group",
        file: "/etc/numad.conf",
        ..DAEMON
    },
];

/// One of [`WRITERS`] that is in force here.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Writer {
    /// Its [`KnownWriter::name`].
    pub name: String,
    /// Its first process.
    pub pid: Option<u32>,
    /// The unit of systemd that this process is in.
    pub unit: Option<String>,
    /// What it has chosen, such as tuned's profile.
    pub choice: Option<String>,
}
