//! What an undo or a roll-back should have taken back and had to leave: it goes from generation to
//! generation until an undo can take it back, or nothing of it exists any more. Decides nothing of what has to stay.

use kernel::{Hierarchy, Host};
use plan::{Action, Place};
use serde::{Deserialize, Serialize};

use crate::{
    entry::{Before, Entry},
    spot::Spot,
    target::Target,
};

/// One step that is not yet undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remainder {
    /// The generation that did it, which is in effect no longer.
    pub generation: u32,
    /// Its number there, from 0.
    pub step: usize,
    /// Where the step's place is counted from; `None` of a knob, which is the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Spot>,
    /// The step, with what was there before.
    pub entry: Entry,
}

impl Remainder {
    /// `None` where the step's hierarchy is not mounted.
    pub(crate) fn of(
        generation: u32,
        step: usize,
        entry: &Entry,
        hierarchies: &[Option<Hierarchy>],
    ) -> Option<Remainder> {
        let spot = match &entry.action {
            Action::SetKnob { .. } => None,
            action => Some(Spot::of_act(action, hierarchies)?),
        };
        Some(Remainder { generation, step, spot, entry: entry.clone() })
    }

    /// The step with its hierarchy counted as it is now; `None` if nothing of it exists any more.
    pub(crate) fn here(&self, target: Target<'_>) -> Option<Entry> {
        match (&self.entry.action, &self.entry.before) {
            (Action::Mount { path, .. }, _) => {
                let is_mounted = target.host.hierarchies().iter().any(|at| at.mount == *path);
                is_mounted.then(|| self.entry.clone())
            }
            // one that is as before by now may be ours again once a later generation is undone
            (Action::SetKnob { instance, .. }, _) => {
                target.system.knobs().read(instance).is_ok().then(|| self.entry.clone())
            }
            // until it was seen that it is as before, and that systemd knows
            (Action::WriteDropIn { path, unit, .. }, Before::DropIn(before)) => {
                let at = self.at(target.host)?;
                let files = target.system.unit_files();
                let now = files.read(path);
                let is_ours = now.as_deref().is_none_or(plan::is_drop_in);
                let is_open = now != *before && is_ours || !files.is_read(unit);
                is_open.then(|| self.entry.at_hierarchy(at.id))
            }
            (action, _) => {
                let at = self.at(target.host)?;
                let there = target.host.kernel().exists(&at, &action.place()?.path);
                there.then(|| self.entry.at_hierarchy(at.id))
            }
        }
    }

    fn at(&self, host: &Host) -> Option<Hierarchy> {
        self.spot.as_ref()?.find(host).cloned()
    }

    /// The group that the step made, there or not.
    pub(crate) fn made(&self, host: &Host) -> Option<Place> {
        match &self.entry.action {
            Action::CreateGroup { place } => Some(Place { hierarchy: self.at(host)?.id, ..place.clone() }),
            _ => None,
        }
    }

    /// The group that was made and is still there.
    pub(crate) fn group(&self, host: &Host) -> Option<Place> {
        let (made, at) = (self.made(host)?, self.at(host)?);
        host.kernel().exists(&at, &made.path).then_some(made)
    }
}
