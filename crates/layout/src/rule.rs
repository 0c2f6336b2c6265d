//! Which processes belong to a group: what a process must match, and the rules of libcgroup's cgrules.conf.

use std::fmt;

use settings::Controller;

use crate::condition::{Condition, Glob};
use crate::origin::Origin;
use crate::pattern::NamePattern;
use crate::people::Account;

/// What a process must be like; all parts must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// Whose it is.
    pub who: Who,
    /// Which program it runs; any where not said.
    pub process: Option<Process>,
    /// What else must hold, in the order it was said.
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

/// Processes that match go to these groups. The first rule that matches counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What a process must be like.
    pub matcher: Matcher,
    /// Where it is put; several where controllers have groups of their own (`%` lines). Empty only if `ignore`.
    pub targets: Vec<Target>,
    /// Leave such processes where they are, and look at no further rule (option `ignore`).
    pub ignore: bool,
    /// Leave them where they are while they are scheduled in real time (option `ignore_rt`).
    pub ignore_rt: bool,
}

/// A group that a rule puts processes into, for some controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// For which controllers (on v1, in which hierarchies).
    pub controllers: Controllers,
    /// The group.
    pub group: NamePattern,
    /// Where it was said.
    pub origin: Origin,
}

/// For which controllers something holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Controllers {
    /// All (`*`).
    All,
    /// These, never empty, none twice.
    These(Vec<Subsystem>),
}

/// A controller, or a v1 hierarchy without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subsystem {
    /// A controller of either version.
    Controller(Controller),
    /// A named hierarchy of v1, without the `name=`.
    Named(String),
}

impl Subsystem {
    /// `cpu`, `io` or `blkio`, `name=x`; `None` if there is no such controller.
    pub fn new(name: &str) -> Option<Subsystem> {
        match name.strip_prefix("name=") {
            Some(name) if !name.is_empty() => Some(Subsystem::Named(name.to_owned())),
            Some(_) => None,
            None => Controller::from_name(name).map(Subsystem::Controller),
        }
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

    pub(crate) fn forget_places(&mut self, nowhere: &Origin) {
        self.origin = nowhere.clone();
        self.also.iter_mut().for_each(|condition| match condition {
            Condition::Any(inner) | Condition::Not(inner) => {
                inner.iter_mut().for_each(|matcher| matcher.forget_places(nowhere));
            }
            _ => {}
        });
    }
}

impl fmt::Display for Subsystem {
    /// The v1 name, which libcgroup's files use; both versions' are read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subsystem::Controller(controller) => {
                f.write_str(controller.name(settings::Version::V1).unwrap_or_default())
            }
            Subsystem::Named(name) => write!(f, "name={name}"),
        }
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

/// What to say of a name that is no controller, and the hint.
pub(crate) fn no_controller(name: &str) -> (String, String) {
    let known = Controller::ALL.into_iter().flat_map(|controller| {
        [settings::Version::V1, settings::Version::V2]
            .into_iter()
            .filter_map(move |version| controller.name(version))
    });
    let mut known: Vec<&str> = known.collect();
    known.dedup();
    let cut = crate::names::cut(name);
    let hint = match units::nearest(&cut, known.iter().copied()).as_slice() {
        [] => format!("known are {}, and name=x for a named hierarchy", known.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    (format!("'{cut}' is no controller"), hint)
}
