//! What a measurement found.

use serde::Serialize;

use crate::interruptions::noise::Noise;

/// Of one span of time.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How long it was.
    pub span_sec: f64,
    /// It was stopped before its time.
    pub stopped: bool,
    /// The most interruptions per second that a CPU may have.
    pub budget_per_sec: Option<f64>,
    /// The longest time, in microseconds, that anything else may take a CPU away at once.
    pub budget_longest_us: Option<f64>,
    /// A CPU has more; `None` without a budget.
    pub above_budget: Option<bool>,
    /// Each CPU, ascending.
    pub cpus: Vec<OfCpu>,
    /// What was not measured, and why.
    pub missing: Vec<String>,
}

/// One CPU.
#[derive(Debug, Clone, Serialize)]
pub struct OfCpu {
    /// Its number.
    pub cpu: usize,
    /// Interrupts, softirqs and context switches per second, all together.
    pub per_sec: f64,
    /// Those that occurred, the most frequent of each kind first.
    pub causes: Vec<Cause>,
    /// What the probe saw.
    pub noise: Option<Noise>,
}

/// What interrupted a CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Of which kind.
    pub kind: Kind,
    /// As the kernel names it.
    pub name: String,
    /// How often.
    pub count: u64,
    /// The same per second.
    pub per_sec: f64,
}

/// The kinds of interruptions, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Of a device, another CPU or the timer.
    Interrupt,
    /// What the kernel does at the end of an interrupt or in ksoftirqd.
    Softirq,
    /// From any task to another one.
    ContextSwitch,
}

impl Kind {
    /// As a reader calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Interrupt => "interrupt",
            Kind::Softirq => "softirq",
            Kind::ContextSwitch => "context switch",
        }
    }
}

/// Something that keeps a CPU quiet, and whether it is so: shown above what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Is it so?
    pub state: RowState,
    /// More about it: the reason of a refusal, the word for the kernel's command line.
    pub detail: String,
}

/// Who sees to it that a row is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowState {
    /// It was written, and reads back.
    Done,
    /// The kernel does it by itself.
    ByKernel,
    /// The kernel refused it.
    Refused,
    /// Somebody else changed it, or it came since.
    Drift,
    /// Only the kernel's command line can do it.
    BootOnly,
}

impl RowState {
    /// As a reader calls it.
    pub fn name(self) -> &'static str {
        match self {
            RowState::Done => "done",
            RowState::ByKernel => "by the kernel",
            RowState::Refused => "refused",
            RowState::Drift => "drift",
            RowState::BootOnly => "boot only",
        }
    }
}

impl Report {
    /// With a budget, and whether a CPU is above it.
    #[must_use]
    pub fn judged(self, per_sec: Option<f64>, longest_us: Option<f64>) -> Report {
        let mut report = Report { budget_per_sec: per_sec, budget_longest_us: longest_us, ..self };
        let above = report.cpus.iter().any(|one| report.is_too_often(one) || report.is_too_long(one));
        report.above_budget = (per_sec.is_some() || longest_us.is_some()).then_some(above);
        report
    }

    pub(crate) fn is_too_often(&self, one: &OfCpu) -> bool {
        self.budget_per_sec.is_some_and(|budget| one.per_sec > budget)
    }

    pub(crate) fn is_too_long(&self, one: &OfCpu) -> bool {
        let longest = one.noise.as_ref().map(|noise| noise.longest_us);
        self.budget_longest_us.zip(longest).is_some_and(|(budget, longest)| longest > budget)
    }
}
