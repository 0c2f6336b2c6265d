//! What a row of the table says. Data only.

/// A number of errno(3), as Linux has it on every architecture that has Rust's standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// `EPERM`.
    pub const PERM: Errno = Errno(1);
    /// `ENOENT`.
    pub const NOENT: Errno = Errno(2);
    /// `EIO`.
    pub const IO: Errno = Errno(5);
    /// `EBUSY`.
    pub const BUSY: Errno = Errno(16);
    /// `EINVAL`.
    pub const INVAL: Errno = Errno(22);
    /// `ENOSPC`.
    pub const NOSPC: Errno = Errno(28);
}

/// A knob: one thing of a machine that disturbs CPUs, and where it is set.
#[derive(Debug)]
pub struct Knob {
    /// As layouts name it.
    pub name: &'static str,
    /// One sentence without the full stop.
    pub doc: &'static str,
    /// Its files; `*` stands for one name of a directory. Of threads, which ones.
    pub path: &'static str,
    /// What it is set for.
    pub per: Per,
    /// How its text is written.
    pub encoding: Encoding,
    /// What it is to be.
    pub aim: Aim,
    /// What a layout may name for it.
    pub accepts: Accepts,
    /// A text from which it can't be changed in a way that an undo restores, and why.
    pub never_from: Option<(&'static str, &'static str)>,
    /// Which word of a layout contains it.
    pub scope: Scope,
    /// What the kernel's refusals mean.
    pub refusals: &'static [Refusal],
    /// The first version of Linux with it, as `uname -r` begins; empty where every supported one has it.
    pub since: &'static str,
    /// When the kernel does it by itself.
    pub by_kernel: &'static str,
    /// Programs that write it too.
    pub writers: &'static [&'static str],
    /// The kernel's documentation or source that says so.
    pub source: &'static str,
}

/// What a knob is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// The machine, once.
    Machine,
    /// Each CPU, by the number behind the last `cpu` of a directory's name.
    Cpu,
    /// Each interrupt.
    Interrupt,
    /// Each queue of each network interface.
    NicQueue,
    /// Each queue of work that shows its mask.
    Workqueue,
    /// Each thread of the kernel that may run elsewhere.
    Thread,
    /// A thread of the kernel for each CPU, by its number behind the name.
    ThreadOfCpu,
    /// Each thread of an interrupt.
    InterruptThread,
}

/// How a knob's text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// CPUs as hexadecimal words, `ff,00000000`.
    Mask,
    /// CPUs as a list, `0-3,8`.
    List,
    /// A whole number.
    Number,
    /// A word.
    Word,
    /// A word of several, all of which the file shows: `always [madvise] never`.
    Choice,
    /// No file: the CPUs of a thread, by sched_setaffinity(2).
    Affinity,
    /// No file: the policy of a thread, by sched_setscheduler(2): `other`, `fifo:2`.
    Policy,
}

impl Encoding {
    /// Is it a set of CPUs?
    pub fn is_cpus(self) -> bool {
        matches!(self, Encoding::Mask | Encoding::List | Encoding::Affinity)
    }
}

/// What a knob is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The CPUs that it has less the isolated ones; if none is left, those that are not isolated.
    Off,
    /// The same, where no CPU at all has a meaning of its own.
    OffOrNone,
    /// This, unless the layout names another value.
    Value(&'static str),
    /// What the layout names.
    Named,
}

/// What a layout may name for a row. What a machine takes may be less: it says so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Nothing: CPUs follow from the groups.
    Nothing,
    /// Whole numbers from the first to the second.
    Number(i64, i64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A number, or one of these words.
    Either(i64, i64, &'static [&'static str]),
    /// A scheduling policy: `other`, or `fifo:` and `rr:` with a priority from 1 to 99.
    Policy,
}

impl Accepts {
    /// The words.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Accepts::Words(words) | Accepts::Either(_, _, words) => words,
            Accepts::Nothing | Accepts::Policy | Accepts::Number(..) => &[],
        }
    }

    /// The least and the largest number.
    pub fn range(self) -> Option<(i64, i64)> {
        match self {
            Accepts::Number(from, to) | Accepts::Either(from, to, _) => Some((from, to)),
            Accepts::Nothing | Accepts::Policy | Accepts::Words(_) => None,
        }
    }

    /// Is this text among it?
    pub fn takes(self, text: &str) -> bool {
        let in_range =
            |(from, to): (i64, i64)| text.parse::<i64>().is_ok_and(|number| (from..=to).contains(&number));
        if self == Accepts::Policy {
            let priority = text.strip_prefix("fifo:").or_else(|| text.strip_prefix("rr:"));
            return text == "other"
                || priority
                    .is_some_and(|text| text.parse::<u8>().is_ok_and(|number| (1..100).contains(&number)));
        }
        self.words().contains(&text) || self.range().is_some_and(in_range)
    }
}

impl std::fmt::Display for Accepts {
    /// `0 to 100`, `always, madvise or never`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Accepts::Policy {
            return f.write_str("other, fifo:1 to fifo:99, or rr:1 to rr:99");
        }
        let range = self.range().map(|(from, to)| match to {
            i64::MAX => format!("whole numbers from {from} on"),
            _ if from + 1 == to => format!("{from} or {to}"),
            _ => format!("{from} to {to}"),
        });
        let words = match self.words() {
            [] => None,
            [one] => Some((*one).to_owned()),
            [first @ .., last] => Some(format!("{} or {last}", first.join(", "))),
        };
        let parts: Vec<String> = range.into_iter().chain(words).collect();
        f.write_str(&parts.join(", or "))
    }
}

/// Which word of a layout contains a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `isolate = "cpus"`: only where things run.
    Cpus,
    /// `isolate = "quiet"`: and what the isolated CPUs do while nothing runs.
    Quiet,
    /// `isolate = "full"`: and what takes away protections of the isolated CPUs.
    Full,
    /// Of a group, only by its name.
    Group,
    /// Of the whole machine, only by its name in `[isolate]`.
    Machine,
}

impl Scope {
    /// The word of a layout.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Scope::Cpus => Some("cpus"),
            Scope::Quiet => Some("quiet"),
            Scope::Full => Some("full"),
            Scope::Group | Scope::Machine => None,
        }
    }
}

/// What a refusal of the kernel means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The errno.
    pub errno: Errno,
    /// Its cause: lower-case, no full stop.
    pub means: &'static str,
    /// Is that one instance as it is, reported, and no failure of the change?
    pub stays: bool,
}

impl Knob {
    /// What this number of errno(3) means of this row.
    pub fn refusal(&self, errno: i32) -> Option<&'static Refusal> {
        self.refusals.iter().find(|refusal| refusal.errno.0 == errno)
    }

    /// What a layout that names this value, or none, requests; `None` of a row without values.
    pub fn value<'v>(&self, named: Option<&'v str>) -> Option<&'v str> {
        match self.aim {
            Aim::Value(usual) => Some(named.unwrap_or(usual)),
            Aim::Named => named,
            Aim::Off | Aim::OffOrNone => None,
        }
    }

    /// Is it for the whole machine, whichever group is isolated?
    pub fn is_of_machine(&self) -> bool {
        self.scope == Scope::Machine
    }
}
