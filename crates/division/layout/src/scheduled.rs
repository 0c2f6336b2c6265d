//! What changes by itself, and when. Data only.

use settings::GroupName;

use crate::assigned::Assigned;
use crate::demand::{CpuDemand, MemDemand};
use crate::origin::{Origin, Spanned};
use crate::reader::Word;
use crate::schedule::{Missed, When};

/// A change of some groups that is made and taken back by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name; no two have the same.
    pub name: String,
    /// When.
    pub when: Spanned<When>,
    /// Where the moments at which it is taken back were said.
    pub until: Option<Origin>,
    /// What the groups have meanwhile; each group once, and each is in the layout.
    pub overlays: Vec<Overlay>,
    /// Where its name was said.
    pub origin: Origin,
}

/// What a group has instead of what the layout says. `None` and what is not among the settings stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// The group.
    pub group: GroupName,
    /// CPUs.
    pub cpus: Option<Spanned<CpuDemand>>,
    /// NUMA nodes for memory.
    pub mems: Option<Spanned<MemDemand>>,
    /// Settings.
    pub settings: Vec<Assigned>,
    /// Where the group was named.
    pub origin: Origin,
}

impl Word for Missed {
    const WORDS: &'static [(&'static str, Missed)] = &[("run", Missed::Run), ("skip", Missed::Skip)];
}

impl Schedule {
    pub(crate) fn forget_origins(&mut self, no_origin: &Origin) {
        self.origin = no_origin.clone();
        self.when.origin = no_origin.clone();
        self.until = self.until.as_ref().map(|_| no_origin.clone());
        for overlay in &mut self.overlays {
            overlay.origin = no_origin.clone();
            overlay.cpus.iter_mut().for_each(|cpus| cpus.origin = no_origin.clone());
            overlay.mems.iter_mut().for_each(|mems| mems.origin = no_origin.clone());
            overlay.settings.iter_mut().for_each(|assigned| assigned.origin = no_origin.clone());
        }
    }
}
