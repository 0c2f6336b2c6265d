//! The families of metrics that are no field of a group or of the machine, one row each: what was requested, how it is now,
//! and what the daemon counts. Data only; `docs/metrics.md` is made of it.

use super::Type::{self, Counter, Gauge, Histogram, Info};

/// A family of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Its name with its unit, without `_total` and `_info`.
    pub name: &'static str,
    /// What it is.
    pub kind: Type,
    /// Its unit; empty for counts.
    pub unit: &'static str,
    /// What it says, without the last full stop.
    pub help: &'static str,
    /// What distinguishes its series.
    pub labels: &'static [&'static str],
    /// Who can write it.
    pub by: By,
}

/// Who can write a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The kernel: `ringfence metrics` and the daemon.
    Kernel,
    /// The kernel and the history of what was applied: `ringfence metrics` and the daemon.
    History,
    /// The daemon alone.
    Daemon,
    /// The daemon while it records.
    Recorder,
}

const fn row(name: &'static str, kind: Type, by: By, help: &'static str) -> Family {
    Family { name, kind, unit: "", help, labels: &[], by }
}

const fn seconds(name: &'static str, kind: Type, by: By, help: &'static str) -> Family {
    Family { unit: "seconds", ..row(name, kind, by, help) }
}

const fn bytes(name: &'static str, kind: Type, by: By, help: &'static str) -> Family {
    Family { unit: "bytes", ..row(name, kind, by, help) }
}

const fn by(labels: &'static [&'static str], family: Family) -> Family {
    Family { labels, ..family }
}

const GROUP: &[&str] = &["group"];

macro_rules! families {
    ($($id:ident = $row:expr;)*) => {
        $(#[doc = concat!("The row of that name: `", stringify!($id), "`.")] pub static $id: Family = $row;)*
        /// All of them.
        pub static FAMILIES: &[&Family] = &[$(&$id),*];
    };
}

families! {
    BUILD = by(&["version"], row("ringfence_build", Info, By::Kernel, "The version of ringfence"));
    GROUPS = row("ringfence_groups", Gauge, By::Kernel, "Groups that are watched");
    GROUPS_LEFT_OUT =
        row("ringfence_groups_left_out", Gauge, By::Kernel, "Groups above the bound, without metrics");
    SAMPLE_SECONDS =
        seconds("ringfence_sample_seconds", Gauge, By::Kernel, "How long the last sample took");
    SAMPLE_TIMESTAMP =
        seconds("ringfence_sample_timestamp_seconds", Gauge, By::Kernel, "When the last sample was taken, since 1970");
    EFFECTIVE_CPUS = by(GROUP, row(
        "ringfence_group_effective_cpus", Gauge, By::Kernel,
        "CPUs that the group may use: the least of its quota, of its CPUs and of those of the watched groups above",
    ));
    EFFECTIVE_MEMORY = by(GROUP, bytes(
        "ringfence_group_effective_memory_bytes", Gauge, By::Kernel,
        "Memory that the group may use: the least limit of it and of the watched groups above",
    ));
    PARTITION_VALID = by(&["group", "type", "reason"], row(
        "ringfence_group_partition_valid", Gauge, By::Kernel,
        "Is the group's partition valid? If not, the kernel's reason is the label; only of groups that are to be one, on v2",
    ));
    REQUESTED_CPUS = by(GROUP, row(
        "ringfence_group_requested_cpus", Gauge, By::History,
        "CPUs that the applied layout gives the group: the least of its quota and of its CPUs",
    ));
    ELASTIC_MIN = by(GROUP, row(
        "ringfence_group_elastic_min_cpus", Gauge, By::History,
        "CPUs that the elastic group always has; only of elastic groups",
    ));
    ELASTIC_MAX = by(GROUP, row(
        "ringfence_group_elastic_max_cpus", Gauge, By::History,
        "CPUs that the elastic group has at most; only of elastic groups",
    ));
    ELASTIC_QUOTA = by(GROUP, row(
        "ringfence_group_elastic_quota_cpus", Gauge, By::History,
        "CPUs that the group's quota allows now; only of quotas that follow the load",
    ));
    ELASTIC_QUOTA_MIN = by(GROUP, row(
        "ringfence_group_elastic_quota_min_cpus", Gauge, By::History,
        "CPUs that the group's quota always allows; only of quotas that follow the load",
    ));
    ELASTIC_QUOTA_MAX = by(GROUP, row(
        "ringfence_group_elastic_quota_max_cpus", Gauge, By::History,
        "CPUs that the group's quota allows at most; only of quotas that follow the load",
    ));
    CPU_IDLE_SECONDS = by(&["cpu", "state"], seconds(
        "ringfence_cpu_idle_state_seconds", Counter, By::Daemon,
        "Time that the CPU was in the idle state; only where the machine shows idle states",
    ));
    ENERGY = by(&["domain"], Family { unit: "joules", ..row(
        "ringfence_energy_joules", Counter, By::Daemon,
        "Energy that the processor used, as its counters (RAPL) have it; only where the machine has them",
    ) });
    LATENCY = by(GROUP, seconds(
        "ringfence_group_latency_p99_seconds", Gauge, By::Daemon,
        "The 99th percentile that the group's latency source reports; only while there are requests",
    ));
    LATENCY_TARGET = by(GROUP, seconds(
        "ringfence_group_latency_target_seconds", Gauge, By::Daemon,
        "What that is not to exceed, by the applied layout",
    ));
    LATENCY_SOURCE_UP = by(GROUP, row(
        "ringfence_group_latency_source_up", Gauge, By::Daemon,
        "Does the group's latency source answer? If not, its waiting decides about its CPUs",
    ));
    REQUESTED_MEMORY = by(GROUP, bytes(
        "ringfence_group_requested_memory_bytes", Gauge, By::History,
        "Limit of memory that the applied layout gives the group",
    ));
    REQUESTED_PIDS = by(GROUP, row(
        "ringfence_group_requested_pids", Gauge, By::History,
        "Limit of tasks that the applied layout gives the group",
    ));
    DRIFTS = by(GROUP, row(
        "ringfence_group_drifts", Gauge, By::History,
        "Values, owners and directories of the group that are not as they were applied; ringfence status names them",
    ));
    LAYOUT_GROUP = by(&["group", "layout_group", "unit"], row(
        "ringfence_layout_group", Info, By::History,
        "The name in the applied layout of a unit's group or of a group in it, which has its figures under its name from the root",
    ));
    COMPARED_TIMESTAMP = seconds(
        "ringfence_compared_timestamp_seconds", Gauge, By::History,
        "When the groups were last compared with what was applied, since 1970",
    );
    MISPLACED = by(&["group", "by_hand"], row(
        "ringfence_misplaced_processes", Gauge, By::Daemon,
        "Processes that are not in the group to which a rule leads them; by_hand: as somebody put them into another of ours",
    ));
    MISPLACED_LEFT_OUT = row(
        "ringfence_misplaced_processes_left_out", Gauge, By::Daemon,
        "Misplaced processes of groups above the bound",
    );
    MISPLACED_TIMESTAMP = seconds(
        "ringfence_misplaced_timestamp_seconds", Gauge, By::Daemon,
        "When all processes were last compared with the rules, since 1970",
    );
    RULES = row("ringfence_rules", Gauge, By::Daemon, "Rules in force");
    EVENTS = row("ringfence_process_events", Counter, By::Daemon, "Process events that were received");
    OVERRUNS = row(
        "ringfence_process_event_overruns", Counter, By::Daemon,
        "Times that the kernel dropped process events for want of room; all processes were looked at then",
    );
    SCANS = row("ringfence_process_scans", Counter, By::Daemon, "Full process scans");
    DECISIONS = row("ringfence_decisions", Counter, By::Daemon, "Processes that were compared with the rules");
    CLASSIFIED = by(&["outcome"], row(
        "ringfence_classified_processes", Counter, By::Daemon,
        "Processes that a rule takes: moved, already there, left where they were put by_hand, missed as they ended, failed to be moved",
    ));
    MOVE_SECONDS = seconds(
        "ringfence_move_latency_seconds", Histogram, By::Daemon,
        "Time from a process event to the end of the move",
    );
    SWEPT = row("ringfence_swept_groups", Counter, By::Daemon, "Groups made on demand that were removed again");
    RELOADS = by(&["result"], row(
        "ringfence_reloads", Counter, By::Daemon, "Reloads that were followed or refused",
    ));
    DRIFTS_FOUND = row(
        "ringfence_drifts_found", Counter, By::Daemon, "Values that were found to be no longer as applied",
    );
    REPAIRS = row("ringfence_repairs", Counter, By::Daemon, "Drift repairs");
    TAKEOVERS = row(
        "ringfence_takeovers", Counter, By::Daemon,
        "Changes that the daemon rolled back because nobody confirmed or finished them",
    );
    KILLED = by(&["by"], row(
        "ringfence_killed_processes", Counter, By::Daemon,
        "Processes that the kernel killed for want of memory, in a group at its limit or on the whole machine, found in its log since the daemon's start",
    ));
    RESIZES = by(&["result"], row(
        "ringfence_resizes", Counter, By::Daemon,
        "Changes of elastic groups' CPUs that were written, or that the kernel refused",
    ));
    QUOTA_RESIZES = by(&["result"], row(
        "ringfence_quota_resizes", Counter, By::Daemon,
        "Changes of quotas that follow the load, the bursts that they allow among them: written, or refused by the kernel",
    ));
    MEMORY_RESIZES = by(&["result"], row(
        "ringfence_memory_resizes", Counter, By::Daemon,
        "Changes of protected memory that follows the load: written, or refused by the kernel",
    ));
    RESIZING_ENDED = row(
        "ringfence_resizing_ended", Counter, By::Daemon,
        "Times that resizing ended, as changes were refused or did harm; ringfence resume starts it again",
    );
    GATES = row("ringfence_exec_gate_restarts", Counter, By::Daemon, "Exec gates that became ready");
    GATES_LATE = row("ringfence_exec_gate_timeouts", Counter, By::Daemon, "Exec gates that timed out and were killed");
    GATE_DECISIONS = by(&["outcome"], row(
        "ringfence_exec_gate_decisions", Counter, By::Daemon,
        "Starts that the exec gate decided: moved, left where they were, or let_go because the move failed",
    ));
    GATE_SECONDS = seconds(
        "ringfence_exec_gate_seconds", Counter, By::Daemon, "Time for which the exec gate delayed starts",
    );
    RECORDER_UP = row(
        "ringfence_recorder_up", Gauge, By::Recorder, "1 if the last sample was written; 0 means the disk is full or not writable",
    );
    RECORDER_SAMPLES = row("ringfence_recorder_samples", Counter, By::Recorder, "Samples that were recorded");
    RECORDER_LOST = row(
        "ringfence_recorder_lost_samples", Counter, By::Recorder, "Samples that were taken and could not be written",
    );
    RECORDER_MISSED = row(
        "ringfence_recorder_missed_samples", Counter, By::Recorder, "Samples that were due and not taken",
    );
    RECORDER_BYTES = bytes(
        "ringfence_recorder_written_bytes", Counter, By::Recorder, "Bytes of records that were written",
    );
}
