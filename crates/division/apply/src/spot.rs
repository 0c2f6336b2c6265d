//! Where a place of a record is counted from: a hierarchy by what it has, not by its number.

use plan::Action;
use std::path::PathBuf;

use kernel::{Hierarchy, Host};
use serde::{Deserialize, Serialize};

/// A hierarchy as it is found again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// [`Hierarchy::label`].
    pub label: String,
    /// Where it is mounted.
    pub mount: PathBuf,
}

impl Spot {
    /// The hierarchy that a step changes or mounted, to be found again.
    pub(crate) fn of_act(action: &Action, all: &[Option<Hierarchy>]) -> Option<Spot> {
        let at = match action {
            Action::Mount { path, .. } => all.iter().flatten().find(|at| at.mount == *path)?,
            action => all.get(action.place()?.hierarchy)?.as_ref()?,
        };
        Spot::of(std::slice::from_ref(at)).pop()
    }

    /// The hierarchies of a host, to be found again.
    pub(crate) fn of(hierarchies: &[Hierarchy]) -> Vec<Spot> {
        hierarchies.iter().map(|at| Spot { label: at.label(), mount: at.mount.clone() }).collect()
    }

    /// The hierarchy that this one is now.
    pub(crate) fn find(&self, host: &Host) -> Option<Hierarchy> {
        let like = |at: &&Hierarchy| at.label() == self.label;
        let here = host.hierarchies().iter().filter(|at| at.mount == self.mount).find(like);
        here.or_else(|| host.hierarchies().iter().find(like)).cloned()
    }
}
