//! What earlier undos had to leave: which of it is tried again, and which stays as something later has to do with it.

use super::*;

impl Steps<'_> {
    /// Of what earlier undos had to leave, that which is tried again. What a generation made that comes back is that
    /// generation's again; what one has to do with that came later, and stays in effect, is left as it is.
    pub(super) fn take_up(
        &mut self,
        stayed: &[Remainder],
        undone: &[u32],
        wanted: &[u32],
        state: &State,
    ) -> Result<Vec<Remainder>, Failure> {
        let mut tried = Vec::new();
        // what wrote the files that could not be restored, then or since then
        let mut ours: Vec<Entry> = stayed.iter().filter_map(|one| one.here(self.target)).collect();
        let is_write = |entry: &Entry| matches!(entry.action, Action::Write { .. });
        if ours.iter().any(is_write) {
            for &generation in undone {
                let Some(record) = lasting::record(state, self.target, generation)? else { continue };
                let now = record.hierarchies(self.performer.host());
                let writes = record.entries.iter().filter(|entry| is_write(entry));
                ours.extend(writes.filter_map(|entry| self.here(&now, entry)).collect::<Vec<_>>());
            }
        }
        for stayed in stayed {
            let Some(entry) = stayed.here(self.target) else { continue };
            if let Action::SetKnob { .. } = &entry.action {
                // what a generation that stays in effect set since then is that one's
                let again = !wanted.contains(&stayed.generation)
                    && !self.sets_since(&entry.action, wanted, stayed.generation, state)?;
                if again { &mut tried } else { &mut self.stayed }.push(stayed.clone());
                continue;
            }
            let Some(place) = entry.action.place() else {
                // a hierarchy that stayed mounted, which one that comes back mounts
                if !wanted.contains(&stayed.generation) {
                    tried.push(stayed.clone());
                }
                continue;
            };
            if wanted.contains(&stayed.generation) {
                self.ours.insert(place.clone());
            } else if self.is_used(place, wanted, stayed.generation, state)? {
                self.stayed.push(stayed.clone());
            } else if let Some(note) = self.changed_since(&entry.action, &ours) {
                self.report(note);
            } else {
                tried.push(stayed.clone());
            }
        }
        Ok(tried)
    }

    /// A value that could not be restored, and that somebody changed since then, is theirs: what is said of it.
    fn changed_since(&self, action: &Action, ours: &[Entry]) -> Option<String> {
        let Action::Write { place, file, text } = action else { return None };
        let now = self.performer.content(place, file)?;
        let is_of_us = |entry: &Entry| match &entry.action {
            Action::Write { place: of, file: other, text } => {
                (of, other) == (place, file) && self.performer.means(place, file, text, &now)
            }
            _ => false,
        };
        let is_state = !settings::is_by_key(file) && !text.trim().is_empty();
        (is_state && !self.is_inherited(place, file, now.trim()) && !ours.iter().any(is_of_us)).then(|| {
            let directory = self.performer.directory(place);
            let now = now.trim();
            format!("{directory}/{file} stays {now}: it was changed after an undo could not restore it")
        })
    }

    /// A group that stays has its parent's CPUs and nodes: an undo wrote them.
    fn is_inherited(&self, place: &Place, file: &str, now: &str) -> bool {
        if !matches!(file, "cpuset.cpus" | "cpuset.mems") {
            return false;
        }
        let above = group_path::parent(&place.path).unwrap_or_default();
        let above = Place { path: above.to_owned(), ..place.clone() };
        let files = [format!("{file}.effective"), file.to_owned()];
        files.iter().any(|file| self.performer.content(&above, file).is_some_and(|text| text.trim() == now))
    }

    /// Does a generation after `since` that stays in effect change the group or one below it?
    fn is_used(&self, place: &Place, wanted: &[u32], since: u32, state: &State) -> Result<bool, Failure> {
        for &later in wanted.iter().filter(|later| **later > since) {
            let Some(record) = lasting::record(state, self.target, later)? else { continue };
            let now = record.hierarchies(self.performer.host());
            let adopted = record.head.dropped.adopted.iter();
            let places = record.entries.iter().filter_map(|entry| entry.action.place()).chain(adopted);
            let places = places.filter_map(|place| {
                Some(Place { hierarchy: now.get(place.hierarchy)?.as_ref()?.id, ..place.clone() })
            });
            let places: BTreeSet<Place> = places.collect();
            if !at_or_below(places.range(place..), place).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
