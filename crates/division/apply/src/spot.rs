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
    pub(crate) fn find<'h>(&self, host: &'h Host) -> Option<&'h Hierarchy> {
        let like = |at: &&Hierarchy| at.label() == self.label;
        // by its bytes: each record has all hierarchies, and paths are compared part by part
        let is_here = |at: &&Hierarchy| at.mount.as_os_str() == self.mount.as_os_str();
        let here = host.hierarchies().iter().filter(is_here).find(like);
        here.or_else(|| host.hierarchies().iter().find(like))
    }
}
