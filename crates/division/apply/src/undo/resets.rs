//! Groups that stay get their settings back: what of them is written, and what has to stay as it is.

use super::*;

impl Steps<'_> {
    /// Lifts a limit that the generation set on a group of its own, which has to stay as somebody is in it: the file
    /// gets back what it contained when the group was new.
    pub(super) fn reset(&mut self, entry: &Entry, fresh: &BTreeMap<(usize, String), String>) {
        let restored = |action: Action| Entry { action, before: Before::Nothing, ..entry.clone() };
        if let Some(place) = devices_of(&entry.action)
            && !self.written.insert((place.clone(), DEVICES_V1.to_owned()))
        {
            return; // all rules together
        }
        let maker = self.performer.system().maker();
        let lifted = lift(entry, |key| fresh.get(key).cloned(), maker);
        if let Some(cannot) = lifted.cannot {
            self.report(cannot);
        }
        for action in lifted.actions {
            match &action {
                Action::InheritSet { place, file } => {
                    // all parents come first
                    let key = (place.clone(), file.clone());
                    self.inherited.insert(key, (restored(action), self.source.clone()));
                }
                Action::DisableControllers { place, .. } => {
                    // the generation's own groups that stay have no settings any more
                    let own = self.ours.iter().filter(|own| {
                        own.hierarchy == place.hierarchy && group_path::parent(&own.path) == Some(&place.path)
                    });
                    let children = own.map(|own| group_path::name(&own.path).to_owned()).collect();
                    let (off, owners, lists) = Default::default();
                    let before = Before::Controllers { off, children, owners, lists };
                    if let Some(entry) = self.still_needed(Entry { before, ..restored(action) })
                        && !self.will_be_so(&entry.action)
                    {
                        self.push(restored(entry.action));
                    }
                }
                Action::RestoreDevices { .. } if self.is_repeated(&action) => {}
                Action::Write { .. } if self.will_be_so(&action) => {}
                _ => self.push(restored(action)),
            }
        }
    }

    /// Is it so once the steps so far are done? One of them may undo what makes it so now: a later generation may have
    /// lifted the limit that is lifted here.
    fn will_be_so(&self, action: &Action) -> bool {
        let subject = |action: &Action| match action {
            Action::Write { place, file, text } => {
                Some((place.clone(), file.clone(), plan::target_key(file, text).to_owned()))
            }
            Action::EnableControllers { place, .. } | Action::DisableControllers { place, .. } => {
                Some((place.clone(), SUBTREE_CONTROL.to_owned(), String::new()))
            }
            _ => None,
        };
        let own = subject(action);
        let before = self.entries.iter().rev().find(|entry| own.is_some() && subject(&entry.action) == own);
        before.map_or_else(|| is_so(&self.performer, action), |before| before.action == *action)
    }

    /// Is the very same done already?
    pub(super) fn is_repeated(&self, action: &Action) -> bool {
        self.entries.iter().rev().any(|entry| entry.action == *action)
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
        let place = entry.action.place()?;
        let stays = match &entry.action {
            Action::CreateGroup { .. } => self.ours.contains(place),
            Action::EnableControllers { .. } => self.unchanged.contains(&(place.clone(), Part::Controllers)),
            action => {
                devices_of(action).is_some() && self.unchanged.contains(&(place.clone(), Part::Devices))
            }
        };
        Remainder::of(generation, step, entry, &self.performer.hierarchies).filter(|_| stays)
    }

    /// v1 gives everything back to a group, or takes it, only where no group is below. Where one stays, all device
    /// rules stay as they are, or it would lose what it has.
    pub(super) fn keeps_devices(&mut self, entry: &Entry) -> bool {
        let Some(place) = entry.action.place().cloned() else { return false };
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
        let (Action::DisableControllers { place, names }, Before::Controllers { children: were, .. }) =
            (&entry.action, &entry.before)
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
