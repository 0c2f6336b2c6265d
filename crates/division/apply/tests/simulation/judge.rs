//! The rules, looked at after each command: is the state what it should be, and does `status` say so?

use std::time::Duration;

use apply::{State, Target, execute, status};
use fake::{Fake, Snapshot};
use kernel::{Hierarchy, Kernel};
use units::{CpuSet, group_path};

use crate::{
    layouts::Layout,
    machine::{Affinities, Faults, Sim},
    rules::{Difference, differences, names, wrong_words},
    run::{Checked, LAYOUT, Run, meta, planned},
    world::CPUS,
};

/// v2: the controllers that a group hands to those below it.
pub const HANDED: &str = "cgroup.subtree_control";

impl Run {
    /// What the kernel would hold if only this layout had ever been applied.
    pub fn reference(&mut self, layout: Option<&Layout>) -> Option<Snapshot> {
        let fake = self.base.copy();
        let base = fake.snapshot();
        let Some(layout) = layout else { return Some(base) };
        if let Some((of, on, known)) = &self.known
            && (of, on) == (layout, &base)
        {
            return known.clone();
        }
        let known = self.alone(&fake, layout);
        self.known = Some((layout.clone(), base, known.clone()));
        known
    }

    pub fn alone(&self, fake: &Fake, layout: &Layout) -> Option<Snapshot> {
        let (host, sim) = Sim::new(fake, &Faults::at(Vec::new()), self.clocks, &Affinities::default(), CPUS);
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let state = State::open(directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let target = Target { host: &host, system: &sim };
        let plan = planned(&state, target, &self.machine, layout).ok()?;
        execute(&lock, target, &plan, &meta(LAYOUT, None)).ok()?;
        Some(fake.snapshot())
    }

    /// Is a group named as one that could not be put right?
    pub fn is_named(&self, at: &Hierarchy, group: &str, file: Option<&str>, also: &[String]) -> bool {
        self.left.iter().chain(also).any(|text| names(text, at, group, file))
    }

    /// Compares; what is excused is left out.
    pub fn compare(&mut self, what: &str, wanted: &[&Snapshot], named: &[String]) -> Checked {
        self.compare_since(what, None, wanted, named)
    }

    /// The same, where what others had changed before may still be so.
    pub fn compare_since(
        &mut self,
        what: &str,
        before: Option<&Snapshot>,
        wanted: &[&Snapshot],
        named: &[String],
    ) -> Checked {
        let now = self.fake.snapshot();
        let unchanged = |difference: &Difference| {
            let of = |snapshot: &Snapshot| {
                let group = snapshot.groups[difference.tree].get(&difference.group);
                match &difference.file {
                    None => group.map(|_| String::new()),
                    Some(file) => group.and_then(|values| values.get(file).cloned()),
                }
            };
            before.is_some_and(|before| of(before) == of(&now))
        };
        let hierarchies = self.fake.hierarchies().unwrap();
        let excused = |difference: &Difference| {
            let file = difference.file.clone().unwrap_or_default();
            let key = (difference.tree, difference.group.clone(), file);
            // a v1 group loses a CPU that is switched off for good, whoever gave it
            let is_switched = self.switched && key.2.starts_with("cpuset.cpus");
            // files come and go with their controller, with their values and owners: where that could not be switched, this is
            // named
            let file = difference.file.as_deref().unwrap_or_default();
            let file = file.strip_prefix("owner of ").unwrap_or(file);
            let comes_along = group_path::ancestors(&difference.group).any(|above| {
                let hands = |snapshot: &Snapshot| {
                    let text = snapshot.groups[difference.tree].get(above)?.get(HANDED)?;
                    Some(text.split(' ').any(|word| Some(word) == file.split('.').next()))
                };
                let is_on = |snapshot: &Snapshot| hands(snapshot) == Some(true);
                !wanted.iter().any(|wanted| is_on(wanted) == is_on(&now))
                    && self.is_named(&hierarchies[difference.tree], above, Some(HANDED), named)
            });
            is_switched
                || comes_along
                || is_parents(&now, difference)
                || self.theirs.contains(&key)
                || self.drifted.contains(&key) && unchanged(difference)
                || self.is_named(
                    &hierarchies[difference.tree],
                    &difference.group,
                    difference.file.as_ref().map(|_| file),
                    named,
                )
        };
        let wrong: Vec<String> = differences(&now, wanted)
            .iter()
            .filter(|difference| !excused(difference))
            .map(ToString::to_string)
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("{what}: {}", wrong.join("; "))) }
    }

    /// Groups that `status` names as ones that had to stay.
    pub fn stayed(&mut self) -> Checked<Vec<String>> {
        let (host, sim) = self.look();
        let statuses = status(&self.state(), Target { host: &host, system: &sim })
            .map_err(|failure| format!("status: {failure}"))?;
        let stays = |drift: &apply::Drift| matches!(drift, apply::Drift::Stayed { .. });
        let stayed = statuses.iter().filter(|status| status.drift.iter().any(stays));
        Ok(stayed.map(|status| format!("'{}'", status.group)).collect())
    }

    pub fn look(&self) -> (kernel::Host, Sim) {
        Sim::new(&self.fake, &Faults::at(Vec::new()), self.clocks, &self.affinities, CPUS)
    }

    /// `status` against the kernel and against what the layout in force alone would have made.
    pub fn status_is_true(&mut self) -> Checked {
        let last = self.in_effect()?.last().copied();
        let layout = last.and_then(|last| self.made.get(&last)).map(|made| made.layout.clone());
        let Some(wanted) = self.reference(layout.as_ref()) else { return Ok(()) };
        let (host, sim) = self.look();
        let statuses = status(&self.state(), Target { host: &host, system: &sim })
            .map_err(|failure| format!("status: {failure}"))?;
        let mut wrong = wrong_words(&self.fake, &statuses, &self.base.snapshot(), &wanted, |at, group| {
            self.is_named(at, group, None, &[])
        });
        // which CPUs a v1 group has after one was switched off depends on when it got them
        wrong.retain(|word| !(self.switched && word.contains("cpuset.cpus")));
        if wrong.is_empty() { Ok(()) } else { Err(format!("status: {}", wrong.join("; "))) }
    }

    /// After an undo: as before what was undone, or as the layout that is in force then alone would have made it.
    pub fn taken_back(&mut self, what: &str, was: &[u32], before: &Snapshot, left: &[String]) -> Checked {
        let now = self.in_effect()?;
        let layout = now.last().and_then(|last| self.made.get(last)).map(|made| made.layout.clone());
        let undone = was.iter().find(|generation| !now.contains(generation));
        let mut named = self.stayed()?;
        named.extend(left.iter().cloned());
        let is_nothing = undone.is_none();
        let reference = self.reference(layout.as_ref());
        let undone = undone.and_then(|generation| self.made.get(generation));
        let then = undone.map(|made| made.before.clone());
        // what others had changed before it is so again
        let drifted = undone.map(|made| made.drifted.clone());
        self.drifted.extend(drifted.into_iter().flatten());
        let mut wanted: Vec<&Snapshot> = reference.iter().chain(&then).collect();
        // where nothing is undone all stays as it is, also what earlier commands had to leave
        if is_nothing || wanted.is_empty() {
            wanted.push(before);
        }
        self.compare_since(what, Some(before), &wanted, &named)
    }

    /// Every task that was there before is in the groups that it was in.
    pub fn tasks_are_back(&self, what: &str, before: &Snapshot) -> Checked {
        let now = self.fake.snapshot();
        for (pid, groups) in &before.tasks {
            if let Some(is) = now.tasks.get(pid).filter(|is| *is != groups) {
                return Err(format!("tasks after a failed {what}: {pid} is in {is:?}, was in {groups:?}"));
            }
        }
        Ok(())
    }
}

/// No kernel empties the CPUs or nodes of a group with tasks in it or below: it gets those of the group above, less what
/// others beside it have for themselves, which is the same for its tasks.
fn is_parents(now: &Snapshot, difference: &Difference) -> bool {
    let (tree, group) = (difference.tree, difference.group.as_str());
    let Some(file) = difference.file.as_deref().filter(|file| matches!(*file, "cpuset.cpus" | "cpuset.mems"))
    else {
        return false;
    };
    let groups = &now.groups[tree];
    let set = |path: &str| groups.get(path).and_then(|values| values.get(file)?.parse::<CpuSet>().ok());
    let is_exclusive = |path: &str| {
        let value = |file: &str| groups.get(path).and_then(|values| values.get(file)).map(String::as_str);
        value("cpuset.cpus.partition").is_some_and(|kind| kind != "member")
            || value("cpuset.cpu_exclusive") == Some("1")
    };
    let mut taken = CpuSet::new();
    let mut of_parents = if file == "cpuset.cpus" { CpuSet::range(0, CPUS - 1) } else { CpuSet::range(0, 0) };
    let mut path = group;
    while let Some(above) = group_path::parent(path) {
        let beside = groups.keys().filter(|other| group_path::parent(other) == Some(above) && *other != path);
        if file == "cpuset.cpus" {
            let own = beside.filter(|other| is_exclusive(other)).filter_map(|other| set(other));
            taken = own.fold(taken, |taken, own| taken.union(&own));
        }
        if let Some(list) = set(above) {
            of_parents = list;
            break;
        }
        path = above;
    }
    let is_in = |groups: &Vec<String>| group_path::is_at_or_below(&groups[tree], group);
    let real: Option<CpuSet> = difference.real.as_ref().and_then(|real| real.parse().ok());
    difference.wanted.is_none()
        && real.is_some_and(|real| real == of_parents || real == of_parents.difference(&taken))
        && now.tasks.values().any(is_in)
}
