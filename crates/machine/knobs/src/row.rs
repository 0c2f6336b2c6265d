//! What a row of the table says. Data only.

pub use rustix::io::Errno;

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
    /// What this errno means of this row.
    pub fn refusal(&self, errno: Errno) -> Option<&'static Refusal> {
        self.refusals.iter().find(|refusal| refusal.errno == errno)
    }

    /// Is it for the whole machine, whichever group is isolated?
    pub fn is_of_machine(&self) -> bool {
        self.scope == Scope::Machine
    }
}
