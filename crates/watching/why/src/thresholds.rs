//! From where on something is a cause: numbers for the judges, words and reasons for `docs/why.md`.

/// A number that the facts are compared with.
#[derive(Debug)]
pub struct Threshold {
    /// The number.
    pub(crate) at: f64,
    /// Is it a part of a whole?
    is_part: bool,
    /// What is compared with it.
    of: &'static str,
    /// Why this number.
    reason: &'static str,
}

impl Threshold {
    const fn part(at: f64, of: &'static str, reason: &'static str) -> Threshold {
        Threshold { at, is_part: true, of, reason }
    }

    /// `2 % of the time`: the number with what is compared with it.
    pub(crate) fn words(&self) -> String {
        let number =
            if self.is_part { format!("{:.0} %", self.at * 100.0) } else { format!("{:.0}", self.at) };
        format!("{number} {}", self.of)
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }
}

/// The grain is of ticks of 10 ms in one second, or one of [`super::scan::STATES`] looks at the tasks' states.
pub(crate) const LEAST_SHARE: Threshold = Threshold::part(
    0.02,
    "of the span lost, where a bound counts half",
    "the grain of the figures themselves is half of it",
);

/// What was waited for the limit is what was not waited at the device; seen on a busy machine: 2 of 5 operations a second.
pub(crate) const AT_IO_LIMIT: Threshold = Threshold::part(
    0.2,
    "of a limit of `io.max` used, and time waited for it",
    "a group may have been at the limit for a part of the span only, and on a busy machine each operation that is let \
     through also waits for the kernel's workers",
);

/// Seen on a busy machine: 0.91.
pub(crate) const MET_IO_LIMIT: Threshold = Threshold::part(
    0.8,
    "of a limit of `io.max` used over the whole span, whatever the tasks' states were",
    "the kernel lets operations through in slices of a tenth of a second, of which the first and the last of a span are \
     seen in part, and a busy machine lets some pass late",
);

pub(crate) const LEAST_MET: Threshold = Threshold {
    at: 2.0,
    is_part: false,
    of: "operations, for a limit that was met over the whole span",
    reason: "fewer meet a limit by chance",
};

pub(crate) const AT_RT_BUDGET: Threshold = Threshold::part(
    0.9,
    "of the budget used in the whole periods of the span",
    "the kernel may stop real-time tasks a tick early",
);

pub(crate) const LEAST_REMOTE: Threshold = Threshold::part(
    0.1,
    "of its memory remote",
    "the kernel's own per-CPU data and shared pages of files lie on any node",
);

pub(crate) const AT_MEMSW_LIMIT: Threshold = Threshold::part(
    0.9,
    "of `memory.memsw.limit_in_bytes` in use (v1), which counts as met",
    "Linux 6.18 counts no failures of this limit, and a group that reclaims is at most some batches of pages below it",
);
