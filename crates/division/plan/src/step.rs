//! What a plan consists of: steps in the order in which the kernel accepts them, each with its reason, and which CPUs
//! and memory nodes each group was assigned. Data only.

use std::collections::BTreeMap;

use layout::{Desired, Latency};
use serde::{Deserialize, Serialize};
use settings::{GroupName, knobs};
use units::{CpuSet, NodeSet};

use crate::{Action, Lint, Place};

/// What has to be done so that a machine is as desired. Without steps, it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// In this order; after each of them, every task has CPUs and memory nodes.
    pub steps: Vec<Step>,
    /// The CPUs and memory nodes of every group that requests some, and of parents that must have some for their
    /// sake; in the layout's order. The reserve is not among them.
    pub assignments: Vec<Assignment>,
    /// The CPUs reserved for the rest of the system; empty if none were requested.
    pub reserved: CpuSet,
    /// What it asks for after its steps.
    #[serde(flatten)]
    pub upkeep: Upkeep,
    /// What works, but perhaps not as meant.
    pub lints: Vec<Lint>,
    /// What the layout decides about and no step changes, as it is so already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<Step>,
    /// The partitions among these, also where an earlier layout decided the same: their state is read at the end.
    #[serde(skip)]
    pub partitions: Vec<Step>,
    /// What earlier layouts in effect decided about and this one does not.
    #[serde(skip)]
    pub dropped: Dropped,
}

/// What a layout asks for after its steps, as long as it is in effect: the daemon, `status` and the next plan read it from the
/// layout's record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Upkeep {
    /// Groups whose CPUs change with their load, and the CPUs that they share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elastic: Vec<policy::Scope>,
    /// Isolated CPUs, and what is kept off them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<knobs::Isolation>,
    /// Settings of groups that follow their load between bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<crate::Range>,
    /// By the names of elastic groups: the latency that decides about their CPUs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latency>,
}

/// What becomes of what earlier generations left: what a layout no longer decides about, and what it takes over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dropped {
    /// Files; of a file of lines by device or resource, with the line's first word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(Place, String, String)>,
    /// Groups that an earlier layout made, and that stay since somebody is in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Place>,
    /// Groups that an earlier layout made and somebody else removed, or that were there before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<Place>,
    /// Groups that a generation made which was undone, that had to stay, and that the layout names: they are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<Place>,
    /// Groups whose owners an earlier layout decided about, and that had them before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Place>,
}

impl Plan {
    /// Does a layout without groups take back what earlier ones applied? More often a mistake than a wish: a file
    /// that was cut off or commented out.
    pub fn empties(&self, desired: &Desired) -> bool {
        desired.groups.is_empty() && self.steps.iter().any(|step| step.restores)
    }
}

impl Dropped {
    /// Is nothing dropped?
    pub fn is_empty(&self) -> bool {
        let Dropped { files, groups, gone, adopted, owners } = self;
        files.is_empty() && [groups, gone, adopted, owners].iter().all(|places| places.is_empty())
    }
}

/// One step, done wholly or not at all. `B` is what was there before it: of a plan, what was seen when it was made; of a
/// record, all that a roll-back needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step<B: Default + PartialEq = Option<String>> {
    /// The group for whose sake it is done.
    #[serde(with = "crate::names::group")]
    pub group: GroupName,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
    /// Why, and why here where that matters: lower-case, no full stop.
    pub why: String,
    /// It takes back what an earlier generation requested and the layout does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// Of a plan: what the file or knob contains before this step, without the newline at its end: when the plan was
    /// made, or what an earlier step writes. `None` if that is not known, as in a group that is yet to be made.
    #[serde(skip_serializing_if = "is_default")]
    pub before: B,
}

fn is_default<B: Default + PartialEq>(before: &B) -> bool {
    *before == B::default()
}

/// The CPUs and memory nodes that a group is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The group.
    #[serde(with = "crate::names::group")]
    pub group: GroupName,
    /// Its CPUs; `None` if nothing about them is written.
    pub cpus: Option<CpuSet>,
    /// Its memory nodes; `None` if nothing about them is written.
    pub mems: Option<NodeSet>,
    /// Does no other group have one of its CPUs, by the kernel's keeping?
    pub exclusive: bool,
    /// How it comes to these: lower-case, no full stop.
    pub why: String,
}

impl Step {
    /// A step towards the layout's state.
    pub fn new(group: GroupName, action: Action, why: impl Into<String>) -> Step {
        Step { group, action, why: why.into(), restores: false, before: None }
    }

    /// The same with what was there.
    pub fn was(self, before: Option<String>) -> Step {
        Step { before, ..self }
    }
}

impl<B: Clone + Default + PartialEq> Step<B> {
    /// The same with something else known of what was there before.
    pub fn with<C: Default + PartialEq>(self, before: C) -> Step<C> {
        let Step { group, action, why, restores, .. } = self;
        Step { group, action, why, restores, before }
    }

    /// The same where its place is counted from another hierarchy.
    pub fn at_hierarchy(&self, position: usize) -> Step<B> {
        let mut step = self.clone();
        if let Some(place) = step.action.place_mut() {
            place.hierarchy = position;
        }
        step
    }

    /// The same in the directory by its name of now.
    pub fn renamed(mut self, renamed: &BTreeMap<Place, Place>) -> Step<B> {
        if let Some(place) = self.action.place_mut()
            && let Some(now) = renamed.get(place)
        {
            now.clone_into(place);
        }
        self
    }
}

impl std::fmt::Display for Step {
    /// In words, with the directory below its mount, and what was there.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.action, &self.before) {
            (Action::WriteDropIn { path, text: Some(_), .. }, Some(_)) => {
                write!(f, "change {}", path.display())
            }
            (Action::Write { .. } | Action::SetKnob { .. }, Some(before)) => {
                write!(f, "{} (was {})", self.action, before.trim_end())
            }
            _ => self.action.fmt(f),
        }
    }
}
