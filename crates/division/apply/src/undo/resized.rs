//! The end of a generation's resizing: the files that it wrote contain again what they did after the generation's own steps,
//! which are undone behind it.

use units::CpuSet;

use super::*;
use crate::{
    Resizes,
    elastic::{entries, lists},
    originals::Original,
    performer::is_at_or_below,
};

impl Steps<'_> {
    /// What the generation made is left out: it goes, or loses its limits, unless somebody made it again. So are units: systemd sets
    /// their lists once their drop-in files are gone.
    pub(super) fn end_resizing(&mut self, record: &Record, originals: &[Original]) -> Result<(), Failure> {
        let generation = record.head.generation;
        let now = record.hierarchies(self.performer.host());
        self.remade.extend(remade([record], self.state, self.target)?);
        let made = record.entries.iter().filter_map(|entry| match &entry.action {
            Action::CreateGroup { place } => {
                Some(Place { hierarchy: now.get(place.hierarchy)?.as_ref()?.id, ..place.clone() })
            }
            _ => None,
        });
        let made = made.filter(|place| !self.remade.contains(place));
        let made: Vec<Place> = made.collect();
        self.note_units(record);
        let left_out: Vec<Place> = made.into_iter().chain(self.of_units.iter().cloned()).collect();
        let is_left_out = |place: &Place| left_out.iter().any(|group| is_at_or_below(place, group));
        let of_it = originals.iter().filter(|line| line.generation == generation);
        let of_it = of_it.filter_map(|line| Some((line.place(self.performer.host())?, line)));
        let of_it: Vec<(Place, &Original)> = of_it.collect();
        if of_it.is_empty() {
            self.report_lost(record);
        }
        let of_it: Vec<(Place, &Original)> =
            of_it.into_iter().filter(|(place, _)| !is_left_out(place)).collect();
        let why = format!("ends the resizing of generation {generation}");
        let (of_cpus, others): (Vec<_>, Vec<_>) =
            of_it.into_iter().partition(|(_, line)| line.file == plan::CPUS);
        for back in self.lists_back(&of_cpus, &why).into_iter().chain(self.others_back(others, &why)) {
            if let Action::Write { place, file, .. } | Action::InheritSet { place, file } = &back.action {
                self.written.insert((place.clone(), file.clone()));
            }
            self.source = None;
            self.push(Entry { restores: true, ..back });
        }
        Ok(())
    }

    /// Groups that were resized, though nothing says what they had before: somebody emptied or removed the file.
    fn report_lost(&mut self, record: &Record) {
        if record.head.upkeep.elastic.is_empty() && record.head.upkeep.ranges.is_empty() {
            return;
        }
        // of a unit systemd does: what it had before goes with its directory at each stop
        let is_made = |group: &str| {
            let is_it = |entry: &Entry| entry.group.to_string() == group;
            let is_unit = |entry: &Entry| matches!(entry.action, Action::WriteDropIn { .. }) && is_it(entry);
            let made = |entry: &Entry| matches!(entry.action, Action::CreateGroup { .. }) && is_it(entry);
            record.entries.iter().any(|entry| made(entry) || is_unit(entry))
                || record.decided.iter().any(is_unit)
        };
        let resizes = Resizes::of(self.state).last(usize::MAX).unwrap_or_default();
        let of_it = resizes.iter().filter(|resize| resize.generation == record.head.generation);
        let groups: BTreeSet<&str> =
            of_it.map(|resize| resize.group.as_str()).filter(|group| !is_made(group)).collect();
        for group in groups {
            let path = originals::path(self.state);
            self.left.push(format!(
                "group '{group}' stays as resizing left it: {}, which said what it had before, is empty or gone",
                path.display()
            ));
        }
    }

    fn lists_back(&self, originals: &[(Place, &Original)], why: &str) -> Vec<Entry> {
        let first = |place: &Place| {
            originals.iter().find(|(of, _)| of == place).map(|(_, line)| Original::clone(line))
        };
        let is_below = |place: &Place| {
            let above =
                |of: &Place| of.hierarchy == place.hierarchy && group_path::is_below(&place.path, &of.path);
            originals.iter().any(|(of, _)| above(of))
        };
        let mut all = Vec::new();
        // those below follow
        for (place, line) in originals.iter().filter(|(place, _)| !is_below(place)) {
            let to: CpuSet = line.text.trim().parse().unwrap_or_default();
            if to.is_empty() {
                // the kernel takes no empty list where tasks are in the group or below it
                all.push(Entry {
                    group: name(&line.group),
                    action: Action::InheritSet { place: place.clone(), file: plan::CPUS.to_owned() },
                    why: why.to_owned(),
                    restores: true,
                    before: Before::Nothing,
                });
                continue;
            }
            let now = |place: &Place| self.content_then(place, plan::CPUS);
            all.extend(entries(&line.group, why, &lists(self.performer.host(), &first, &now, place, &to)));
        }
        all
    }

    fn others_back(&self, mut originals: Vec<(Place, &Original)>, why: &str) -> Vec<Entry> {
        originals.sort_by_key(|(place, line)| {
            let now = self.content_then(place, &line.file).unwrap_or_default();
            order(place, &line.file, &now, &line.text)
        });
        let back = originals.into_iter().filter_map(|(place, line)| {
            let (file, text) = (line.file.clone(), line.text.clone());
            let is_so = self.content_then(&place, &file).is_some_and(|now| now == text);
            let action = Action::Write { place, file, text };
            let (group, why, before) = (name(&line.group), why.to_owned(), Before::Nothing);
            (!is_so).then_some(Entry { group, action, why, restores: true, before })
        });
        back.collect()
    }

    /// What a file contains once the steps so far are done.
    fn content_then(&self, place: &Place, file: &str) -> Option<String> {
        let written = self.entries.iter().rev().find_map(|entry| match &entry.action {
            Action::Write { place: of, file: same, text } if of == place && same == file => {
                Some(text.clone())
            }
            _ => None,
        });
        written.or_else(|| self.performer.content(place, file))
    }
}

/// The kernel takes no burst above its quota, and on v1 no quota above that of the group above.
fn order(place: &Place, file: &str, now: &str, then: &str) -> (u8, isize) {
    let depth = isize::try_from(place.path.matches('/').count()).unwrap_or(isize::MAX);
    let number = |text: &str| {
        let first = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        first.unwrap_or(u64::MAX) // `max`, and -1 on v1
    };
    let grows = number(now) <= number(then);
    match (file.contains("burst"), grows) {
        (true, false) => (0, 0),
        (false, true) => (1, depth),
        (false, false) => (2, -depth),
        (true, true) => (3, 0),
    }
}
