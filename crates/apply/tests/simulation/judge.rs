//! The rules, looked at after each command: is the state what it should be, and does `status` say so?

use std::time::Duration;

use apply::{State, Target, execute, status};
use fake::{Fake, Snapshot};
use kernel::{Hierarchy, Kernel};

use crate::{
    layouts::Layout,
    machine::{Affinities, Faults, Sim},
    rules::{Difference, differences, names, wrong_words},
    run::{Checked, LAYOUT, Run, meta, planned},
    world::CPUS,
};

/// v2: the controllers that a group hands to those below it.
const HANDED: &str = "cgroup.subtree_control";

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
            // files come and go with their controller: where that could not be switched, which is named, they are given to
            // users as all else, or are not there to be given
            let comes_along = difference.file.as_deref().and_then(|file| file.strip_prefix("owner of "));
            let comes_along = comes_along.is_some_and(|file| {
                let above = difference.group.rsplit_once('/').map_or("", |(above, _)| above);
                let controller = file.split('.').next();
                let hands = |snapshot: &Snapshot| {
                    let text = snapshot.groups[difference.tree].get(above)?.get(HANDED)?;
                    Some(text.split(' ').any(|word| Some(word) == controller))
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
                    difference.file.as_deref(),
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
        let mut wrong =
            wrong_words(&self.fake, &statuses, &wanted, |at, group| self.is_named(at, group, None, &[]));
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
        let reference = self.reference(layout.as_ref());
        let undone = undone.and_then(|generation| self.made.get(generation));
        let then = undone.map(|made| made.before.clone());
        // what others had changed before it is so again
        let drifted = undone.map(|made| made.drifted.clone());
        self.drifted.extend(drifted.into_iter().flatten());
        let mut wanted: Vec<&Snapshot> = reference.iter().chain(&then).collect();
        if wanted.is_empty() {
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

/// No kernel empties the CPUs or nodes of a group with tasks in it or below: it gets those of the group above, which is the
/// same for its tasks.
fn is_parents(now: &Snapshot, difference: &Difference) -> bool {
    let (tree, group) = (difference.tree, difference.group.as_str());
    let Some(file) = difference.file.as_deref().filter(|file| matches!(*file, "cpuset.cpus" | "cpuset.mems"))
    else {
        return false;
    };
    let above = std::iter::successors(Some(group), |path| path.rsplit_once('/').map(|(above, _)| above));
    let all = if file == "cpuset.cpus" { format!("0-{}", CPUS - 1) } else { "0".to_owned() };
    let of_parents = above.skip(1).find_map(|path| now.groups[tree].get(path)?.get(file)).unwrap_or(&all);
    let prefix = format!("{group}/");
    let is_in = |groups: &Vec<String>| groups[tree] == group || groups[tree].starts_with(&prefix);
    difference.wanted.is_none()
        && difference.real.as_ref() == Some(of_parents)
        && now.tasks.values().any(is_in)
}
