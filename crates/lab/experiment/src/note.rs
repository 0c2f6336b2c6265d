//! What a reader of results must know beside the figures, as values: each says itself in words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number;

/// Of an experiment, or of one of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// The sets that stand for CPUs, with as many as they have on this machine.
    RescaledCpus {
        /// How many the study had, in words.
        study: String,
        /// How many there are here, in words.
        here: String,
        /// Of several CPUs.
        plural: bool,
    },
    /// The sets that stand for a share of CPU time.
    RescaledShares {
        /// How many CPUs the study had, in words.
        study: String,
        /// Of this many.
        of: u32,
        /// The share of a CPU's time here, in words.
        here: String,
        /// Of several CPUs.
        plural: bool,
    },
    /// A set that lies beside another has no CPU left.
    NoCpuLeft {
        /// The set.
        set: String,
        /// `before` or `behind`.
        side: String,
        /// The other.
        other: String,
        /// The CPU that both have.
        cpu: String,
    },
    /// A set of a fixed number of CPUs has fewer.
    FewerCpus {
        /// The set.
        set: String,
        /// CPUs here.
        here: u32,
        /// CPUs in the study.
        study: u32,
    },
    /// Two sets are the same here.
    SameCpus {
        /// One.
        set: String,
        /// The other.
        other: String,
        /// Their CPUs.
        cpus: String,
    },
    /// What NUMA nodes make can't be seen.
    OneNode {
        /// Nodes of the study's machine.
        study: u32,
        /// Sets that lie on one of them.
        sets: Vec<String>,
    },
    /// A condition needs more CPUs than there are.
    ConditionNeedsCpus {
        /// Which.
        condition: String,
        /// CPUs that it needs.
        needs: u32,
        /// CPUs here.
        here: u32,
    },
    /// A condition is the same as another here.
    SameCondition {
        /// It is not run.
        condition: String,
        /// It is.
        other: String,
    },
    /// A condition is a layout.
    Layout {
        /// What the layout asks for on this machine.
        text: String,
    },
    /// CPUs were isolated during the run.
    Isolated {
        /// Which, and what was set, in words.
        text: String,
    },
    /// Of a run: what interrupted the CPUs of what is measured.
    Interrupted {
        /// Which, how often, and by what, in words.
        text: String,
    },
    /// Of a condition: what is known of its longest latency.
    LongestLatency {
        /// The condition.
        condition: String,
        /// The load of its run.
        load: Option<String>,
        /// The latency's name.
        name: String,
        /// How long it was.
        seconds: f64,
        /// What interrupted the CPUs in that run, in words.
        meanwhile: String,
    },
    /// A built-in workload runs in place of a tool.
    Substitute {
        /// The workload.
        workload: String,
        /// What runs.
        by: String,
        /// In place of this.
        tool: String,
        /// Why.
        why: String,
    },
    /// A figure can't be measured here.
    NotMeasured {
        /// The figure.
        figure: String,
        /// Why.
        why: String,
    },
    /// A group has a real-time budget.
    RealTimeBudget {
        /// The group.
        group: String,
        /// Of a CPU's time, in percent.
        percent: f64,
    },
    /// Of results of an earlier version: foreign CPU time was not counted.
    KernelDoesTheIo,
    /// In runs with I/O the kernel's work is apart from other programs'.
    KernelThreadsApart {
        /// What does I/O, as messages name it.
        what: String,
        /// The limit of other programs' CPU time, of 1.
        at_most: f64,
    },
    /// The kernel's work can't be distinguished from other programs'.
    KernelThreadsUnseen {
        /// What does I/O, as messages name it.
        what: String,
        /// The limit of foreign CPU, of 1.
        at_most: f64,
    },
    /// Commands that run to their end: spans and gates follow them.
    RunsToTheEnd {
        /// Which workloads, as messages name them.
        workloads: String,
        /// Other workloads are measured beside.
        beside: bool,
    },
    /// Nobody looks for a steady rate.
    NoSteadyState {
        /// Because of these workloads, as messages name them.
        workloads: String,
    },
    /// Limits that no run can exceed.
    OpenGates {
        /// Their keys.
        gates: Vec<String>,
    },
    /// Gates that the command line gave.
    GatesGiven {
        /// Each with its value and the file's, in words.
        text: String,
    },
    /// What a run did not wait for.
    NotReached {
        /// When it was to be made, as the file has it, with its label.
        event: String,
    },
    /// No more runs were made, as hardly any would have counted.
    Stopped {
        /// Blocks that were begun.
        blocks: u32,
        /// Runs that were made.
        runs: u32,
        /// Of those, rejected.
        rejected: u32,
        /// Why the last one was rejected.
        last: String,
        /// What helps.
        hint: String,
    },
    /// Nothing was moved: it is not needed.
    PartitionsAreClosed,
    /// Others could run on CPUs that are a group's own.
    CpusWereOpen {
        /// Why.
        why: String,
        /// `--move-others` was not given.
        can_ask: bool,
    },
    /// Others are not ours to move.
    OthersNotOurs {
        /// Why they could run there.
        why: String,
    },
    /// Others were moved away.
    OthersRestricted {
        /// To these CPUs.
        cpus: String,
    },
    /// A program could not be moved.
    NotMoved {
        /// Its name.
        program: String,
        /// The kernel's words.
        why: String,
    },
    /// A tool's log is not whole.
    LogCutOff {
        /// The workload, as messages name it.
        workload: String,
        /// How much is there.
        mebibytes: u64,
    },
    /// What a workload's program says of its figures.
    Workload {
        /// The workload, as messages name it.
        workload: String,
        /// In its words.
        text: String,
    },
    /// Other programs disturbed all runs of some conditions.
    BusyMachine {
        /// Conditions, with their loads, in words.
        cells: Vec<String>,
        /// The least share of the machine's CPU time that others used, of 1.
        least: f64,
        /// The largest.
        most: f64,
        /// What is allowed.
        allowed: f64,
        /// Who used most, in words; empty if that is not known.
        busiest: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::RescaledCpus { .. }
            | Note::RescaledShares { .. }
            | Note::NoCpuLeft { .. }
            | Note::FewerCpus { .. }
            | Note::SameCpus { .. }
            | Note::OneNode { .. }
            | Note::ConditionNeedsCpus { .. }
            | Note::SameCondition { .. } => self.fmt_here(f),
            Note::PartitionsAreClosed
            | Note::CpusWereOpen { .. }
            | Note::OthersNotOurs { .. }
            | Note::OthersRestricted { .. }
            | Note::NotMoved { .. } => self.fmt_others(f),
            Note::Layout { text } | Note::Isolated { text } | Note::Interrupted { text } => f.write_str(text),
            Note::LongestLatency { condition, load, name, seconds, meanwhile } => {
                let under = load.as_ref().map_or(String::new(), |load| format!(", under '{load}'"));
                let micros = seconds * 1e6;
                write!(
                    f,
                    "the longest {name} of '{condition}' took {micros:.0} us{under}; in that run {meanwhile}"
                )
            }
            Note::Substitute { workload, by, tool, why } => {
                write!(f, "'{workload}' is {by} in place of {tool}: {why}")
            }
            Note::NotMeasured { figure, why } => write!(f, "'{figure}' is not measured: {why}"),
            Note::RealTimeBudget { group, percent } => {
                write!(
                    f,
                    "group '{group}' may use {percent:.0} % of a CPU for real-time tasks (RT_GROUP_SCHED)"
                )
            }
            Note::KernelDoesTheIo => {
                f.write_str("the kernel's threads do the workloads' I/O, so foreign CPU time rejects no run")
            }
            Note::KernelThreadsApart { what, at_most } => f.write_str(&kernel_threads_apart(what, *at_most)),
            Note::KernelThreadsUnseen { what, at_most } => {
                f.write_str(&kernel_threads_unseen(what, *at_most))
            }
            Note::RunsToTheEnd { workloads, beside } => f.write_str(&to_the_end(workloads, *beside)),
            Note::NoSteadyState { workloads } => write!(
                f,
                "{workloads}: no steady rate is looked for before what counts; the warm-up is as long as the file says"
            ),
            Note::OpenGates { gates } => {
                write!(f, "no run is rejected for {}: the limit is all of the CPU time", gates.join(" or "))
            }
            Note::GatesGiven { text } => write!(f, "gates given on the command line: {text}"),
            Note::NotReached { event } => {
                write!(f, "the change at {event} was not made in some run: its commands had ended before")
            }
            Note::Stopped { blocks, runs, rejected, last, hint } => {
                let after = match blocks {
                    1 => "the first block".to_owned(),
                    many => format!("{many} blocks"),
                };
                write!(
                    f,
                    "stopped after {after}: {rejected} of {runs} runs were rejected, the last one as {last}; {hint}"
                )
            }
            Note::LogCutOff { workload, mebibytes } => write!(
                f,
                "of the long logs of {workload} only the first {mebibytes} MiB are with the results"
            ),
            Note::Workload { workload, text } => write!(f, "{workload}: {text}"),
            Note::BusyMachine { cells, least, most, allowed, busiest } => {
                f.write_str(&busy_machine(cells, [*least, *most, *allowed], busiest))
            }
        }
    }
}

impl Note {
    /// What this machine makes of a study for another one.
    fn fmt_here(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = |plural: bool| if plural { "CPUs run" } else { "CPU runs" };
        match self {
            Note::RescaledCpus { study, here, plural } => {
                write!(f, "the study's {study} {} here as {here}", run(*plural))
            }
            Note::RescaledShares { study, of, here, plural } => {
                write!(f, "the study's {study} of {of} {} here as {here} of a CPU's time", run(*plural))
            }
            Note::NoCpuLeft { set, side, other, cpu } => {
                write!(f, "no CPU is left for '{set}' {side} '{other}': it shares CPU {cpu}")
            }
            Note::FewerCpus { set, here, study } => {
                write!(f, "'{set}' gets {here} CPUs; the study used {study} and this machine has no more")
            }
            Note::SameCpus { set, other, cpus } => {
                write!(f, "'{set}' and '{other}' are the same CPUs here: {cpus}")
            }
            Note::OneNode { study, sets } => {
                let sets: Vec<String> = sets.iter().map(|set| format!("'{set}'")).collect();
                write!(
                    f,
                    "the study's machine had {study} NUMA nodes and used one of them for {}; this one has a single \
                     node, so what near and far memory make is not reproducible here",
                    sets.join(" and ")
                )
            }
            Note::ConditionNeedsCpus { condition, needs, here } => write!(
                f,
                "'{condition}' is not reproducible here: it needs {needs} CPUs, and this machine has {here}"
            ),
            Note::SameCondition { condition, other } => {
                write!(f, "'{condition}' is not run: it is the same as '{other}' here")
            }
            _ => Ok(()), // not asked here
        }
    }

    /// What was done about other programs on the groups' CPUs.
    fn fmt_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::PartitionsAreClosed => {
                f.write_str("nothing was moved: the kernel keeps all else off a partition's CPUs")
            }
            Note::CpusWereOpen { why, can_ask } => {
                let hint = if *can_ask { "; --move-others moves them away for each such run" } else { "" };
                write!(f, "other programs may have run on CPUs that are a group's own: {why}{hint}")
            }
            Note::OthersNotOurs { why } => write!(
                f,
                "nothing was moved, as the machine's programs are not ours to move (systemd's units, a container): {why}"
            ),
            Note::OthersRestricted { cpus } => {
                write!(f, "all other programs were restricted to CPUs {cpus} where a group had its own")
            }
            Note::NotMoved { program, why } => {
                write!(f, "{program} could not be moved to other CPUs: {why}")
            }
            _ => Ok(()),
        }
    }
}

fn kernel_threads_apart(what: &str, at_most: f64) -> String {
    format!(
        "{what}: CPU time of the kernel's threads and interrupts may be this I/O's, so it is recorded in these runs as \
         'kernel threads' and rejects none; the limit of {} on foreign CPU is for other programs alone there",
        percent(at_most)
    )
}

fn kernel_threads_unseen(what: &str, at_most: f64) -> String {
    format!(
        "{what}: the kernel's threads can't be seen from this container, so what they use for this I/O counts as \
         foreign CPU (at most {})",
        percent(at_most)
    )
}

/// `beside`: other workloads run beside those.
fn to_the_end(workloads: &str, beside: bool) -> String {
    let others = if beside { "; all else is measured for the `duration` at least" } else { "" };
    format!(
        "{workloads}: measured from the start to the end, however long that takes; the group's figures and the \
         gates cover that time, and there is no limit on a late end{others}"
    )
}

fn busy_machine(cells: &[String], [least, most, allowed]: [f64; 3], busiest: &str) -> String {
    format!(
        "no run of {} counts: other programs used {:.1} % to {:.1} % of the machine's CPU time, and {:.1} % is \
         allowed{busiest}; run it while the machine is idle, or allow more: lab run --foreign-cpu {:.2}",
        cells.join(", "),
        least * 100.0,
        most * 100.0,
        allowed * 100.0,
        // a little more than was seen, and never more than all
        (most * 1.2).min(1.0),
    )
}

fn percent(share: f64) -> String {
    format!("{} %", number::significant(share * 100.0, 2))
}

/// What makes a cell's figures less than they seem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The rate was not steady before what counts.
    Unsteady {
        /// In as many runs.
        runs: u32,
        /// Of those that count.
        of: u32,
    },
    /// No run counts.
    AllRejected {
        /// How many there were.
        runs: u32,
        /// Why the last one was rejected.
        last: String,
    },
    /// Fewer runs count than were planned.
    RunsMissing {
        /// Those that count.
        runs: u32,
        /// Those planned.
        of: u32,
    },
    /// Runs count and lack this figure.
    NoFigure {
        /// As many.
        runs: u32,
        /// Of those that count.
        of: u32,
    },
    /// The figure differs much between runs.
    Varies {
        /// The coefficient of variation, in percent.
        percent: f64,
    },
    /// A quantile of so few latencies that it is nearly a longest one.
    FewLatencies {
        /// `p999`.
        quantile: String,
        /// Latencies of the run that has the fewest.
        count: u64,
        /// Which of the longest it is about: 1 is the longest.
        place: u64,
    },
    /// With few runs an interval covers less than 95 %.
    Coverage {
        /// What it covers, in percent.
        percent: f64,
        /// Of as many runs.
        runs: u32,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Unsteady { runs, of } => write!(f, "no steady state in {runs} of {of} runs"),
            Warning::AllRejected { runs, last } => {
                write!(f, "all {runs} runs were rejected, the last one: {last}")
            }
            Warning::RunsMissing { runs, of } => write!(f, "{runs} of {of} runs count"),
            Warning::NoFigure { runs, of } => write!(f, "{runs} of {of} runs have no figure"),
            Warning::Varies { percent } => write!(f, "varies by {percent:.0} %"),
            Warning::FewLatencies { quantile, count, place } => {
                let which = match place {
                    1 => "the longest".to_owned(),
                    2 => "the second longest".to_owned(),
                    3 => "the third longest".to_owned(),
                    more => format!("the {more}th longest"),
                };
                write!(f, "{quantile} of {count} latencies is about {which}")
            }
            Warning::Coverage { percent, runs } => write!(f, "the interval covers {percent} % ({runs} runs)"),
        }
    }
}
