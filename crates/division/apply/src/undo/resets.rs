//! Groups that stay get their settings back: what of them is written, and what has to stay as it is.

use super::*;

impl Steps<'_> {
    /// Lifts a limit that the generation set on a group of its own, which has to stay as somebody is in it: the file
    /// gets back what it contained when the group was new.
    pub(super) fn reset(&mut self, entry: &Entry, fresh: &BTreeMap<(usize, String), String>) {
        let restored = |act: Act| Entry { act, before: Before::Nothing, ..entry.clone() };
        if let Some(place) = devices_of(&entry.act)
            && !self.written.insert((place.clone(), DEVICES_V1.to_owned()))
        {
            return; // all rules together
        }
        let maker = self.performer.system().maker();
        let lifted = lift(entry, |key| fresh.get(key).cloned(), maker);
        if let Some(cannot) = lifted.cannot {
            self.report(cannot);
        }
        for act in lifted.acts {
            match &act {
                Act::InheritSet { place, file } => {
                    // all parents come first
                    let key = (place.clone(), file.clone());
                    self.inherited.insert(key, (restored(act), self.source.clone()));
                }
                Act::DisableControllers { place, .. } => {
                    // the generation's own groups that stay have no settings any more
                    let own = self.ours.iter().filter(|own| {
                        own.hierarchy == place.hierarchy && group_path::parent(&own.path) == Some(&place.path)
                    });
                    let children = own.map(|own| group_path::name(&own.path).to_owned()).collect();
                    let (off, owners, lists) = Default::default();
                    let before = Before::Controllers { off, children, owners, lists };
                    if let Some(entry) = self.still_needed(Entry { before, ..restored(act) })
                        && !self.will_be_so(&entry.act)
                    {
                        self.push(restored(entry.act));
                    }
                }
                Act::RestoreDevices { .. } if self.is_repeated(&act) => {}
                Act::Write { .. } if self.will_be_so(&act) => {}
                _ => self.push(restored(act)),
            }
        }
    }

    /// Is it so once the steps so far are done? One of them may undo what makes it so now: a later generation may have
    /// lifted the limit that is lifted here.
    fn will_be_so(&self, act: &Act) -> bool {
        let subject = |act: &Act| match act {
            Act::Write { place, file, text } => {
                Some((place.clone(), file.clone(), plan::target_key(file, text).to_owned()))
            }
            Act::EnableControllers { place, .. } | Act::DisableControllers { place, .. } => {
                Some((place.clone(), "cgroup.subtree_control".to_owned(), String::new()))
            }
            _ => None,
        };
        let own = subject(act);
        let before = self.entries.iter().rev().find(|entry| own.is_some() && subject(&entry.act) == own);
        before.map_or_else(|| is_so(&self.performer, act), |before| before.act == *act)
    }

    /// Is the very same done already?
    pub(super) fn is_repeated(&self, act: &Act) -> bool {
        self.entries.iter().rev().any(|entry| entry.act == *act)
    }

    /// The cpusets of groups that stay get their parents', from the top down.
    pub(super) fn inherit_sets(&mut self) {
        let mut inherited: Vec<_> = std::mem::take(&mut self.inherited).into_iter().collect();
        // a v1 cpuset takes CPUs and memory nodes in any order, but its parent's first
        inherited.sort_by_key(|((place, _), _)| place.path.matches('/').count());
        for (_, (entry, source)) in inherited {
            self.source = source;
            self.push(entry);
        }
    }

    /// A step that could not be undone.
    pub(super) fn staying(&self, generation: u32, step: usize, entry: &Entry) -> Option<Remainder> {
        let place = entry.act.place()?;
        let stays = match &entry.act {
            Act::CreateGroup { .. } => self.ours.contains(place),
            Act::EnableControllers { .. } => self.unchanged.contains(&(place.clone(), Part::Controllers)),
            act => devices_of(act).is_some() && self.unchanged.contains(&(place.clone(), Part::Devices)),
        };
        Remainder::of(generation, step, entry, &self.performer.hierarchies).filter(|_| stays)
    }

    /// v1 gives everything back to a group, or takes it, only where no group is below. Where one stays, all device
    /// rules stay as they are, or it would lose what it has.
    pub(super) fn keeps_devices(&mut self, entry: &Entry) -> bool {
        let Some(place) = entry.act.place().cloned() else { return false };
        if self.spared.contains(&place) || self.removed.contains(&place) {
            return false;
        }
        let Some(at) = self.performer.at(&place) else { return false };
        let below = self.performer.host().kernel().descendants(at, &place.path).unwrap_or_default();
        let stays =
            |path: &&String| !self.removed.contains(&Place { path: (*path).clone(), ..place.clone() });
        let Some(other) = below.iter().find(stays) else { return false };
        let (group, directory) = (&entry.group, self.performer.directory(&place));
        self.report(format!(
            "the device rules of group '{group}' stay: group '{other}' is below it ({directory})"
        ));
        self.unchanged.insert((place, Part::Devices));
        true
    }

    /// Controllers that groups made since then use stay on.
    pub(super) fn still_needed(&mut self, entry: Entry) -> Option<Entry> {
        let (Act::DisableControllers { place, names }, Before::Controllers { children: were, .. }) =
            (&entry.act, &entry.before)
        else {
            return Some(entry);
        };
        let at = self.performer.at(place)?;
        let now = self.performer.host().kernel().children(at, &place.path).unwrap_or_default();
        let child = |name: &str| Place { path: group_path::join(&place.path, name), ..place.clone() };
        let stays = |name: &&String| !self.removed.contains(&child(name));
        let new: Vec<&String> = now.iter().filter(|name| !were.contains(name)).filter(stays).collect();
        if let Some(first) = new.first() {
            let verb = if names.len() == 1 { "stays" } else { "stay" };
            let (names, directory) = (names.join(", "), self.performer.directory(place));
            let left = format!("{names} {verb} enabled in {directory}: group '{first}' may use it");
            self.report(left);
            self.unchanged.insert((place.clone(), Part::Controllers));
            return None;
        }
        Some(entry)
    }
}
