//! Which processes belong to a group: rules, as libcgroup's cgrules.conf has them too.

use std::fmt;

use settings::Controller;

use crate::matcher::Matcher;
use crate::origin::Origin;
use crate::pattern::NamePattern;

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
    /// It is in a unit of systemd: the group of this name in the group of the process's own unit.
    pub within: Option<String>,
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
