//! What an undo or a roll-back should have taken back and had to leave: it goes from generation to
//! generation until an undo can take it back, or nothing of it exists any more. Decides nothing of what has to stay.

use kernel::Host;
use plan::Place;
use serde::{Deserialize, Serialize};

use crate::{
    act::{Act, Entry},
    spot::Spot,
};

/// One step that is not yet undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remainder {
    /// The generation that did it, which is in effect no longer.
    pub generation: u32,
    /// Its number there, from 0.
    pub step: usize,
    /// Where the step's place is counted from.
    pub spot: Spot,
    /// The step, with what was there before.
    pub entry: Entry,
}

impl Remainder {
    /// The step with its hierarchy counted as it is now; `None` if nothing of it exists any more.
    pub(crate) fn here(&self, host: &Host) -> Option<Entry> {
        if let Act::Mount { path, .. } = &self.entry.act {
            let is_mounted = host.hierarchies().iter().any(|at| at.mount == *path);
            return is_mounted.then(|| self.entry.clone());
        }
        let at = self.spot.find(host)?;
        if let Act::WriteDropIn { path, .. } = &self.entry.act {
            return path.exists().then(|| self.entry.at_hierarchy(at.id));
        }
        let there = host.kernel().exists(&at, &self.entry.act.place()?.path);
        there.then(|| self.entry.at_hierarchy(at.id))
    }

    /// The group that the step made, there or not.
    pub(crate) fn made(&self, host: &Host) -> Option<Place> {
        match self.entry.at_hierarchy(self.spot.find(host)?.id).act {
            Act::CreateGroup { place } => Some(place),
            _ => None,
        }
    }

    /// The group that was made and is still there.
    pub(crate) fn group(&self, host: &Host) -> Option<Place> {
        self.here(host).and_then(|_| self.made(host))
    }
}
