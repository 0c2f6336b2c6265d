//! From changes of sets and flags to writes of files, for the version at hand; each with the file's content before and
//! why it is written.

use std::collections::HashMap;

use settings::{GroupName, Version};
use units::CpuSet;

use super::cells::{Field, Lane};
use crate::cpuset_files::EXCLUSIVE;
use crate::{
    Action, Step,
    resolve::Resolved,
    sequence::{Cell, Change, Flag, To, Why},
    tree::Tree,
};

/// Writes one lane's changes.
pub(super) struct Writer<'w> {
    lane: Lane,
    field: &'w Field,
    cells: &'w [Cell],
    tree: &'w Tree<'w>,
    resolved: &'w Resolved,
    /// What files hold by now, by cell and file.
    written: HashMap<(usize, &'static str), String>,
    /// v2's lists of exclusive CPUs by now.
    named: Vec<CpuSet>,
    now: Vec<CpuSet>,
    flags: Vec<Flag>,
    steps: Vec<Step>,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        lane: Lane,
        field: &'w Field,
        cells: &'w [Cell],
        tree: &'w Tree<'w>,
        resolved: &'w Resolved,
    ) -> Writer<'w> {
        Writer {
            lane,
            field,
            cells,
            tree,
            resolved,
            written: HashMap::new(),
            named: field.seats.iter().map(|seat| seat.named.clone()).collect(),
            now: cells.iter().map(|cell| cell.now.clone()).collect(),
            flags: cells.iter().map(|cell| cell.flag).collect(),
            steps: Vec::new(),
        }
    }

    /// The steps of all changes.
    pub(super) fn steps(mut self, changes: &[Change]) -> Vec<Step> {
        for change in changes {
            match &change.to {
                To::Set(set) => self.set(change.cell, set, change.why),
                To::Flag(flag) => self.flag(change.cell, *flag, change.why),
            }
        }
        self.name_partitions();
        self.steps
    }

    fn set(&mut self, cell: usize, set: &CpuSet, why: Why) {
        let text = if set.is_empty() { "\n".to_owned() } else { set.to_string() };
        let reason = match why {
            Why::Wanted => self.wanted(cell),
            Why::Widened => "old and new together, so that the groups in it can move".to_owned(),
            Why::Released => "gives up first what another group is to have".to_owned(),
            Why::Opened | Why::Closed => String::new(),
        };
        self.write(cell, self.lane.file(), text, reason);
        self.now[cell].clone_from(set);
        if self.flags[cell].holds() || !self.named[cell].is_empty() {
            self.name(cell, set);
        }
    }

    fn wanted(&self, cell: usize) -> String {
        let Some(branch) = self.field.seats[cell].branch else { return String::new() };
        let why = &self.resolved.sets[branch].why;
        let demands = self.tree.branches[branch].demands();
        match self.lane {
            Lane::Cpus => why.clone(),
            Lane::Mems => match demands.and_then(|demands| demands.mems.as_ref()).map(|mems| &mems.value) {
                Some(layout::MemDemand::Local) => "the nodes of its CPUs".to_owned(),
                Some(layout::MemDemand::These(_)) => "as given".to_owned(),
                Some(layout::MemDemand::All) => "all that its parent has".to_owned(),
                Some(layout::MemDemand::Like(other)) => format!("the same as '{other}'"),
                None => "all that its parent has: v1 takes no task without memory nodes".to_owned(),
            },
        }
    }

    fn flag(&mut self, cell: usize, flag: Flag, why: Why) {
        let Some(file) = self.lane.flag_file(self.field.version) else { return };
        let text = match (self.field.version, flag) {
            (Version::V1, flag) => {
                if flag.holds() {
                    "1"
                } else {
                    "0"
                }
            }
            (Version::V2, Flag::On) => "root",
            (Version::V2, Flag::Isolated) => "isolated",
            (Version::V2, Flag::Off | Flag::Invalid) => "member",
        };
        let reason = match why {
            Why::Opened => "not exclusive while sets change hands",
            _ if flag.holds() => "exclusive once its set is its own",
            _ if self.flags[cell] == Flag::Invalid => "the kernel calls it invalid: it is made again",
            _ => "no longer exclusive",
        };
        if flag.holds() {
            let set = self.now[cell].clone();
            self.name(cell, &set);
        }
        self.write(cell, file, text.to_owned(), reason.to_owned());
        self.flags[cell] = flag;
        if !flag.holds() && !self.named[cell].is_empty() {
            self.name(cell, &CpuSet::new());
        }
    }

    /// Partitions that were there already get their list.
    fn name_partitions(&mut self) {
        for cell in 0..self.cells.len() {
            if self.field.seats[cell].branch.is_some()
                && self.flags[cell].holds()
                && self.cells[cell].goal_flag.is_some()
            {
                let set = self.now[cell].clone();
                self.name(cell, &set);
            }
        }
    }

    /// Names the CPUs of a partition (Linux 6.7), so that no other group can take them: in the groups above it, too,
    /// as far as these are no partitions themselves; above first where it grows, last where it shrinks.
    fn name(&mut self, cell: usize, set: &CpuSet) {
        if self.lane == Lane::Mems || !self.field.names_exclusive || self.named[cell] == *set {
            return;
        }
        let up =
            std::iter::successors(self.field.seats[cell].parent, |above| self.field.seats[*above].parent);
        let members: Vec<usize> = up
            .take_while(|above| self.field.seats[*above].parent.is_some() && !self.flags[*above].holds())
            .collect();
        let gone = self.named[cell].difference(set);
        for above in members.iter().rev() {
            let wide = self.named[*above].union(set);
            self.name_one(*above, wide);
        }
        self.name_one(cell, set.clone());
        for above in members {
            let narrow = self.named[above].difference(&gone);
            self.name_one(above, narrow);
        }
    }

    fn name_one(&mut self, cell: usize, set: CpuSet) {
        if self.named[cell] != set {
            let text = if set.is_empty() { "\n".to_owned() } else { set.to_string() };
            let why = if set.is_empty() {
                "no longer reserved for a partition"
            } else {
                "reserved for a partition, so that no other group can take them"
            };
            self.write(cell, EXCLUSIVE, text, why.to_owned());
            self.named[cell] = set;
        }
    }

    fn write(&mut self, cell: usize, file: &'static str, text: String, why: String) {
        let seat = &self.field.seats[cell];
        let before = self.written.insert((cell, file), text.trim().to_owned());
        let before = before.or_else(|| seat.files.get(file).cloned());
        let group = match seat.branch {
            Some(branch) => self.tree.branches[branch].name.clone(),
            None => GroupName::new(&format!("/{}", seat.place.path)).unwrap_or_else(|_| GroupName::root()),
        };
        let action = Action::Write { place: seat.place.clone(), file: file.to_owned(), text };
        self.steps.push(Step::new(group, action, why).was(before));
    }
}
