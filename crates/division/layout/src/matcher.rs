//! What a process must match: its user, its program, and conditions beyond these (its command line, its relatives,
//! where it is, what it was started with), which may be made of matchers again.

use std::fmt;

use crate::glob::{Expression, Glob};
use crate::origin::Origin;
use crate::people::Account;
use crate::role::Role;
use crate::unit_name::UnitName;

/// What a process must be like; all parts must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// Whose it is.
    pub who: Who,
    /// Which program it runs; any where not said.
    pub process: Option<Process>,
    /// What else must hold.
    pub also: Vec<Condition>,
    /// Such a program never runs an instruction elsewhere: its start waits until it is in its group. Only with
    /// [`Process::Path`] and conditions that are known before the start; never of an inner one ([`Condition::inner`]).
    pub strict: bool,
    /// Where it was said.
    pub origin: Origin,
}

/// Whose a process is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Who {
    /// Anyone's (`*`).
    Anyone,
    /// A user's.
    User(Account),
    /// Of a user who is in this group, primary or listed (`@dba`).
    GroupMember(Account),
}

/// Which program a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Process {
    /// The executable at this absolute path.
    Path(String),
    /// An executable or process of this name, wherever it lies.
    Name(String),
    /// One whose name begins so (`ora_*`, without the `*`), or whose path does if it holds a slash.
    Prefix(String),
    /// One whose name is like this, or whose path is if it holds a slash; only our own layouts have it.
    Glob(Glob),
}

/// Something that must hold of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Its command line, words parted by spaces, holds this.
    Command(Expression),
    /// Its title says that it has one of these roles; never empty.
    Role(Vec<Role>),
    /// Its parent runs this program.
    Parent(Process),
    /// One of those that it descends from runs this program.
    Ancestor(Process),
    /// The leader of its session (setsid(2)) runs this program.
    Session(Process),
    /// It is in such a unit of systemd (`session-*.scope`).
    Unit(Glob),
    /// It is in this unit, or one that fits: a layout's group in the unit says so, no file does.
    OfUnit(UnitName),
    /// It is in a container of such a number, or name where the container is named.
    Container(Glob),
    /// Its environment had this variable when the program began.
    Environment {
        /// The variable.
        name: String,
        /// What it must be like.
        value: Glob,
    },
    /// It is in such a group in one of the hierarchies; with a slash before it, from the hierarchy's root.
    Present(Glob),
    /// One of these fits; never empty.
    Any(Vec<Matcher>),
    /// None of these fits; never empty.
    Not(Vec<Matcher>),
}

impl Condition {
    /// The matchers that it is made of.
    pub fn inner(&self) -> &[Matcher] {
        match self {
            Condition::Any(inner) | Condition::Not(inner) => inner,
            _ => &[],
        }
    }

    /// Does it, or a condition inside it, need a fact that is known only once the program runs?
    pub(crate) fn is_of_running(&self) -> bool {
        matches!(self, Condition::Environment { .. })
            || self.is_of_title()
            || self.inner().iter().flat_map(|matcher| &matcher.also).any(Condition::is_of_running)
    }

    /// Does it, or a condition inside it, need the title of a process, which it may change at any time without the kernel telling?
    pub fn is_of_title(&self) -> bool {
        matches!(self, Condition::Command(_) | Condition::Role(_))
            || self.inner().iter().flat_map(|matcher| &matcher.also).any(Condition::is_of_title)
    }
}

impl Process {
    /// `/usr/bin/fio`, `fio`, `ora_*`; `None` if empty, or a `*` stands elsewhere than at the end.
    pub fn new(text: &str) -> Option<Process> {
        if text.is_empty() || text.contains(char::is_control) {
            return None;
        }
        match text.strip_suffix('*') {
            Some(prefix) if prefix.is_empty() || prefix.contains('*') => None,
            Some(prefix) => Some(Process::Prefix(prefix.to_owned())),
            None if text.contains('*') => None,
            None if text.starts_with('/') => Some(Process::Path(text.to_owned())),
            None => Some(Process::Name(text.to_owned())),
        }
    }

    /// The same, and with a `*` anywhere: `*/bin/ora*`. `None` if empty, or all of it is stars.
    pub fn pattern(text: &str) -> Option<Process> {
        Process::new(text).or_else(|| {
            let some = text.contains('*') && text.chars().any(|c| c != '*');
            some.then(|| Glob::new(text)).flatten().map(Process::Glob)
        })
    }
}

impl Matcher {
    /// This one and those that its conditions are made of.
    pub fn with_inner(&self) -> Vec<&Matcher> {
        let inner = self.also.iter().flat_map(Condition::inner).flat_map(Matcher::with_inner);
        std::iter::once(self).chain(inner).collect()
    }

    pub(crate) fn forget_origins(&mut self, no_origin: &Origin) {
        self.origin = no_origin.clone();
        self.also.iter_mut().for_each(|condition| match condition {
            Condition::Any(inner) | Condition::Not(inner) => {
                inner.iter_mut().for_each(|matcher| matcher.forget_origins(no_origin));
            }
            _ => {}
        });
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Process::Path(text) | Process::Name(text) => f.write_str(text),
            Process::Prefix(text) => write!(f, "{text}*"),
            Process::Glob(glob) => glob.fmt(f),
        }
    }
}

impl fmt::Display for Who {
    /// As cgrules.conf writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Anyone => f.write_str("*"),
            Who::User(account) => account.fmt(f),
            Who::GroupMember(account) => write!(f, "@{account}"),
        }
    }
}
