//! What an undo should have taken back and had to leave, since somebody is in it: it goes from generation to
//! generation until an undo can take it back, or nothing of it is there any more. Decides nothing of what has to stay.

use kernel::Host;
use plan::Place;
use serde::{Deserialize, Serialize};

use crate::record::{Act, Entry, Spot};

/// One step that is not yet undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stayed {
    /// The generation that did it, which is in effect no longer.
    pub generation: u32,
    /// Its number there, from 0.
    pub step: usize,
    /// Where the step's place is counted from.
    pub spot: Spot,
    /// The step, with what was there before.
    pub entry: Entry,
}

impl Stayed {
    /// The step with its hierarchy counted as it is now; `None` if nothing of it is there any more.
    pub(crate) fn here(&self, host: &Host) -> Option<Entry> {
        let at = self.spot.find(host)?;
        let there = host.kernel().exists(&at, &self.entry.act.place()?.path);
        there.then(|| Entry { act: self.entry.act.clone().at_hierarchy(at.id), ..self.entry.clone() })
    }

    /// The group that was made and is still there.
    pub(crate) fn group(&self, host: &Host) -> Option<Place> {
        match self.here(host)?.act {
            Act::CreateGroup { place } => Some(place),
            _ => None,
        }
    }
}
