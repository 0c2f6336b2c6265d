//! What goes back that is no value of a file: owners, device rules, threads' CPUs, controllers.

use super::{steps::restoring, *};
use plan::Action;

const AS_BEFORE: &str = "no longer in the layout: as it was before";

impl Past<'_> {
    /// Owners and device rules.
    pub(super) fn others(&self, stays: &dyn Fn(&Place) -> bool, left: &mut Leftovers) {
        for ((place, _), entry) in &self.others {
            if !stays(place) || !self.performer.exists(place) {
                continue;
            }
            let action = match (&entry.action, &entry.before) {
                (Action::SetOwnership { .. }, Before::Owners(owners)) => self.owners_back(place, owners),
                (Action::SetOwnership { access, .. }, Before::New) => self.to_maker(place, access),
                (Action::SetDevices { .. }, before) => self.devices_back(place, before),
                _ => None,
            };
            left.before.extend(action.map(|action| restoring(&entry.group, action, AS_BEFORE)));
        }
    }

    fn owners_back(&self, place: &Place, owners: &[(Option<String>, Owned)]) -> Option<Action> {
        let at = self.performer.at(place);
        let names: Vec<Option<&str>> = owners.iter().map(|(file, _)| file.as_deref()).collect();
        let now = at.and_then(|at| self.performer.system().owned_each(at, &place.path, &names).ok());
        let same = now.is_some_and(|now| {
            now.iter().zip(owners).all(|(now, then)| (now.0, now.1) == (then.0.as_deref(), then.1))
        });
        let came = self.performer.came_since(place, owners);
        let differs = !same || came.is_ok_and(|came| !came.is_empty());
        differs.then(|| Action::RestoreOwners { place: place.clone(), owners: owners.to_vec() })
    }

    /// Takes a group that a generation made from those to whom it gave it.
    fn to_maker(&self, place: &Place, access: &plan::Ownership) -> Option<Action> {
        let system = self.performer.system();
        let (uid, gid) = system.maker();
        let is_makers = || {
            let at = self.performer.at(place)?;
            let files = self.performer.host().kernel().files(at, &place.path).ok()?;
            let each = files.iter().map(|file| Some(file.as_str())).chain([None]);
            let owned = system.owned_each(at, &place.path, &each.collect::<Vec<_>>()).ok()?;
            Some(owned.iter().all(|(_, owned)| (owned.uid, owned.gid) == (uid, gid)))
        };
        if is_makers() == Some(true) {
            return None;
        }
        let access = plan::Ownership {
            tasks_uid: Some(uid),
            tasks_gid: Some(gid),
            admin_uid: Some(uid),
            admin_gid: Some(gid),
            tasks_mode: access.tasks_mode.map(|_| 0o644),
            file_mode: access.file_mode.map(|_| 0o644),
            directory_mode: access.directory_mode.map(|_| 0o755),
            admin_files: settings::AdminFiles::Every,
        };
        Some(Action::SetOwnership { place: place.clone(), access })
    }

    fn devices_back(&self, place: &Place, before: &Before) -> Option<Action> {
        let rules = match before {
            Before::Devices(rules) | Before::DevicesBelow { own: rules, .. } => rules.clone(),
            _ => None,
        };
        let at = self.performer.at(place);
        let kernel = self.performer.host().kernel();
        let now = at.and_then(|at| kernel.device_filter(at, &place.path).ok().flatten());
        let is_so = now.map(|filter| filter.access.to_string()) == rules;
        (!is_so).then(|| Action::RestoreDevices { place: place.clone(), rules })
    }

    pub(super) fn affinities(&self, exclusive: &dyn Fn(&Place) -> CpuSet, left: &mut Leftovers) {
        let system = self.performer.system();
        for (place, (entry, threads)) in &self.affinities {
            let taken = exclusive(place);
            // those whose makers are gone by now, too
            let came = affinity::came_since(&self.performer, place, threads);
            let back = threads.iter().chain(&came).filter_map(|affinity| {
                let cpus = affinity.cpus.difference(&taken);
                let cpus = if cpus.is_empty() { return None } else { cpus };
                let alive = system.started(affinity.thread) == Ok(affinity.started);
                // one that refused to leave its CPUs has them still
                let same =
                    system.affinity(affinity.thread).is_ok_and(|now| now == cpus || now == affinity.cpus);
                (alive && !same).then(|| Affinity { cpus, ..affinity.clone() })
            });
            let threads: Vec<Affinity> = back.collect();
            if !threads.is_empty() {
                let action = Action::RestoreAffinities { place: place.clone(), threads };
                left.before.push(restoring(&entry.group, action, AS_BEFORE));
            }
        }
    }

    pub(super) fn controllers(&self, stays: &dyn Fn(&Place) -> bool, left: &mut Leftovers) {
        // a group can't take back what one below it hands on
        let mut controllers: Vec<_> = self.controllers.iter().collect();
        controllers.sort_by_key(|(place, _)| std::cmp::Reverse(group_path::names(&place.path).count()));
        let mut off: BTreeMap<Place, BTreeSet<String>> = BTreeMap::new();
        for (place, (group, names)) in controllers {
            let (idle, used) = self.idle(place, names, stays, &off);
            for (name, by) in used {
                let directory = self.performer.directory(place);
                let message = format!("{name} stays enabled in {directory}: group '{by}' may use it");
                left.lints.push(Lint::new(LintKind::Stays, None, message));
            }
            if !idle.is_empty() {
                let names = idle.iter().cloned().collect();
                let action = Action::DisableControllers { place: place.clone(), names };
                left.after.push(restoring(group, action, "no group of the layout needs it"));
                off.insert(place.clone(), idle);
            }
        }
    }

    /// The controllers that nobody below uses, and the others with who may use them: groups that came since then and
    /// are not the layouts'. `off`: what groups below stop to hand on.
    fn idle(
        &self,
        place: &Place,
        names: &BTreeMap<String, Vec<String>>,
        stays: &dyn Fn(&Place) -> bool,
        off: &BTreeMap<Place, BTreeSet<String>>,
    ) -> (BTreeSet<String>, BTreeMap<String, String>) {
        let on = |place: &Place| -> BTreeSet<String> {
            let text = self.performer.content(place, SUBTREE_CONTROL).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        let Some(at) = self.performer.at(place).filter(|_| stays(place)) else { return Default::default() };
        let Ok(children) = self.performer.host().kernel().children(at, &place.path) else {
            return Default::default();
        };
        let mut used = BTreeMap::new();
        let now = on(place);
        let mut idle: BTreeSet<String> = names.keys().filter(|name| now.contains(*name)).cloned().collect();
        for name in children {
            let path = group_path::join(&place.path, &name);
            let child = Place { path, ..place.clone() };
            if !stays(&child) {
                continue;
            }
            let stopped = off.get(&child).cloned().unwrap_or_default();
            let handed = on(&child);
            let others = !self.covered.groups.contains(&child) && !self.made.contains_key(&child);
            idle.retain(|controller| {
                // one that is neither ours nor was there before may have come to use it
                let came = others && !names.get(controller).is_some_and(|were| were.contains(&name));
                let uses = came || handed.contains(controller) && !stopped.contains(controller);
                if uses {
                    used.insert(controller.clone(), self.performer.host().named(at, &child.path));
                }
                !uses
            });
        }
        (idle, used)
    }
}
