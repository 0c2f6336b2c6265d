//! The state before each step: read once for all steps before the first is done. Only reads.

use std::collections::{HashMap, HashSet};

use kernel::Hierarchy;
use plan::{Action, Owned, Place};
use rustix::io::Errno;
use settings::{Access, Version, devices, knobs::Instance};
use units::group_path;

use crate::{
    Failure,
    entry::{Before, Entry, OwnersBelow},
    inverse, ownership,
    performer::{DEVICES_V1, Performer, SUBTREE_CONTROL, drop_in_of_others},
};

/// Looks at what all steps will change.
pub(crate) struct Looking<'p, 't> {
    performer: &'p Performer<'t>,
    /// Groups that an earlier step makes.
    made: HashSet<Place>,
    /// Groups that an earlier step removes.
    removed: HashSet<Place>,
    /// What files hold after the steps so far.
    actual: HashMap<(Place, String), String>,
    /// Files that earlier steps change along with the one that they write.
    along: HashSet<(Place, String)>,
    /// Knobs after the steps so far.
    knobs: HashMap<Instance, String>,
    /// Whether a file of that name and version holds a setting: looked up once for all groups.
    settings: HashMap<(String, Version), bool>,
}

impl<'p, 't> Looking<'p, 't> {
    pub fn new(performer: &'p Performer<'t>) -> Looking<'p, 't> {
        Looking {
            performer,
            made: HashSet::new(),
            removed: HashSet::new(),
            actual: HashMap::new(),
            along: HashSet::new(),
            knobs: HashMap::new(),
            settings: HashMap::new(),
        }
    }

    /// Fills in what was before a step. `planned`: the content of its file at planning time, if known.
    ///
    /// # Errors
    /// [`Failure::Stale`]: the machine is not as the plan takes it to be; [`Failure::Refused`].
    pub fn look(&mut self, entry: &mut Entry, planned: Option<&str>) -> Result<(), Failure> {
        if let Action::SetKnob { instance, text, .. } = &entry.action {
            // what an earlier step of the same change leaves there; one that is gone by now is passed over
            let earlier = self.knobs.insert(instance.clone(), text.clone());
            let now = earlier.or_else(|| self.performer.system().knobs().read(instance).ok());
            entry.before = now.map_or(Before::Nothing, Before::Knob);
            return Ok(());
        }
        let Some(place) = entry.action.place().cloned() else { return Ok(()) };
        if let Action::WriteDropIn { path, text, .. } = &entry.action {
            let files = self.performer.system().unit_files();
            if !entry.restores && text.is_some() {
                files.refuse_others(path).map_err(crate::Error::from)?;
            }
            let now = files.read(path);
            if let (Some(planned), Some(now)) = (planned, &now)
                && planned != now
                && text.as_ref() != Some(now)
            {
                return Err(stale(format!("{} was changed since this was planned", path.display())));
            }
            // an undo goes on with the rest
            if let Some(now) = now.as_ref().filter(|now| !entry.restores && text.as_ref() != Some(*now))
                && !self.performer.drop_ins.wrote(path, now)
            {
                return Err(drop_in_of_others(path).into());
            }
            // before the first generation that names it, it was not there
            entry.before = Before::DropIn(now.filter(|_| self.performer.drop_ins.names(path)));
            return Ok(());
        }
        let unmounted = self.performer.at(&place).is_none(); // a step of this plan mounts it
        if let Action::CreateGroup { .. } = entry.action {
            if !unmounted && self.performer.exists(&place) && !self.removed.contains(&place) {
                return Err(stale(format!("{} already exists", self.performer.directory(&place))));
            }
            self.made.insert(place);
            return Ok(());
        }
        if let Action::RemoveGroup { .. } = entry.action {
            self.removed.insert(place.clone());
        }
        if unmounted || self.made.contains(&place) {
            entry.before = Before::New;
            return Ok(());
        }
        if !self.performer.exists(&place) {
            return Err(stale(format!(
                "group '{}' is gone ({})",
                entry.group,
                self.performer.directory(&place)
            )));
        }
        entry.before = self.of(entry, &place, planned)?;
        Ok(())
    }

    fn of(&mut self, entry: &Entry, place: &Place, planned: Option<&str>) -> Result<Before, Failure> {
        Ok(match &entry.action {
            Action::EnableControllers { names, .. } | Action::DisableControllers { names, .. } => {
                let on = self.performer.content(place, SUBTREE_CONTROL).unwrap_or_default();
                let is_on = |name: &&String| on.split_whitespace().any(|word| word == name.as_str());
                let off = names.iter().filter(|name| !is_on(name)).cloned().collect();
                let children = self.children(entry, place)?;
                let (owners, lists) = match &entry.action {
                    Action::DisableControllers { names, .. } => {
                        (self.others(entry, place, names, &children)?, self.lists(place, names, &children))
                    }
                    _ => Default::default(),
                };
                Before::Controllers { off, children, owners, lists }
            }
            Action::Write { file, text, .. } => {
                let before = self.files(entry, place, (file, text), planned)?;
                let below = self.lists_below(entry, place, (file, text))?;
                match before {
                    Before::Files(own) if !below.is_empty() => Before::ListsBelow { own, below },
                    before => before,
                }
            }
            Action::SetDevices { .. } => self.devices(entry, place)?,
            Action::RestoreDevices { .. } => {
                let Some(at) = self.performer.at(place) else { return Ok(Before::Nothing) };
                Before::Devices(self.own_devices(entry, at, &place.path)?)
            }
            Action::SetOwnership { access, .. } => {
                let listed = self.listed(entry, place)?;
                let names: Vec<Option<&str>> =
                    listed.iter().map(|file| Some(file.as_str())).chain([None]).collect();
                let mut owners = self.owners(entry, place, &names)?;
                let given: Vec<(String, Owned)> =
                    owners.iter().filter_map(|(file, now)| Some((file.clone()?, *now))).collect();
                let keeper = self.performer.system().maker();
                let each = ownership::each(access, place.version, &given, None, keeper);
                owners.retain(|(file, _)| each.iter().any(|(given, _)| *given == file.as_deref()));
                Before::Owners(owners)
            }
            Action::RestoreOwners { owners, .. } => {
                // files that came since then change their owner as well
                let listed = self.listed(entry, place)?;
                let named = owners.iter().map(|(file, _)| file.as_deref());
                let others = listed.iter().map(|file| Some(file.as_str()));
                let mut names: Vec<Option<&str>> = named.clone().collect();
                names.extend(others.filter(|file| !named.clone().any(|name| name == *file)));
                Before::Owners(self.owners(entry, place, &names)?)
            }
            Action::InheritSet { file, .. } => match self.performer.content(place, file) {
                Some(now) => Before::Files(vec![(file.clone(), now)]),
                None => Before::Absent,
            },
            Action::RemoveGroup { .. } => self.group(entry, place)?,
            _ => Before::Nothing,
        })
    }

    fn own_devices(&self, entry: &Entry, at: &Hierarchy, path: &str) -> Result<Option<String>, Failure> {
        let filter = self.performer.host().kernel().device_filter(at, path);
        Ok(self.seen(kernel::Op::Read, entry, filter)?.map(|filter| filter.access.to_string()))
    }

    fn devices(&self, entry: &Entry, place: &Place) -> Result<Before, Failure> {
        let Some(at) = self.performer.at(place) else { return Ok(Before::Nothing) };
        let own = self.own_devices(entry, at, &place.path)?;
        let descendants = self.performer.host().kernel().descendants(at, &place.path);
        let mut below = Vec::new();
        for path in self.seen(kernel::Op::List, entry, descendants)? {
            below.extend(self.own_devices(entry, at, &path)?.map(|rules| (path, rules)));
        }
        Ok(if below.is_empty() { Before::Devices(own) } else { Before::DevicesBelow { own, below } })
    }

    /// The lists of groups below that v1 narrows along with one that is denied a device.
    fn lists_below(
        &self,
        entry: &Entry,
        place: &Place,
        (file, text): (&str, &str),
    ) -> Result<Vec<(String, String)>, Failure> {
        let rule = devices::rule(text).filter(|_| file == "devices.deny");
        let (Some(rule), Some(at)) = (rule, self.performer.at(place)) else { return Ok(Vec::new()) };
        let kernel = self.performer.host().kernel();
        let mut paths = self.seen(kernel::Op::List, entry, kernel.descendants(at, &place.path))?;
        paths.sort();
        let mut below = Vec::new();
        for path in paths {
            let list = match kernel.read(at, &path, DEVICES_V1) {
                Err(Errno::NOENT | Errno::NODEV) => continue, // it went meanwhile
                list => self.seen(kernel::Op::Read, entry, list)?,
            };
            let list = list.trim_end().to_owned();
            if list.lines().filter_map(devices::rule).any(|line| inverse::denied(&rule, &line).is_some()) {
                below.push((path, list));
            }
        }
        Ok(below)
    }

    fn files(
        &mut self,
        entry: &Entry,
        place: &Place,
        (file, text): (&str, &str),
        planned: Option<&str>,
    ) -> Result<Before, Failure> {
        let key = (place.clone(), file.to_owned());
        let earlier = self.actual.insert(key, text.to_owned());
        let shown = if matches!(file, "devices.allow" | "devices.deny") { DEVICES_V1 } else { file };
        let Some(now) = self.performer.content(place, shown) else {
            let readable = settings::lookup(file).is_some_and(|found| found.setting.access != Access::Write);
            return Ok(if readable { Before::Absent } else { Before::Files(Vec::new()) });
        };
        if let (Some(planned), None) = (planned, &earlier)
            && planned.trim_end() != now.trim_end()
        {
            let group = entry.group.clone();
            return Err(stale(format!(
                "{file} of group '{group}' was '{planned}' when this was planned and is '{now}' now"
            )));
        }
        let with = settings::changes(place.version, file);
        self.along.extend(with.iter().map(|other| (place.clone(), (*other).to_owned())));
        // the earlier step has what it contained: what this one finds is the other file's doing
        if earlier.is_none() && self.along.contains(&(place.clone(), file.to_owned())) {
            return Ok(Before::Nothing);
        }
        // of a file of lines by device each write changes its own line only
        let before = earlier.filter(|_| !now.contains('\n') && !settings::is_by_key(file)).unwrap_or(now);
        let with = with
            .iter()
            .filter_map(|other| Some(((*other).to_owned(), self.performer.content(place, other)?)));
        Ok(Before::Files(std::iter::once((shown.to_owned(), before)).chain(with).collect()))
    }

    /// What can't be looked at before a change can't be rolled back after it: the change is refused.
    fn seen<T>(&self, op: kernel::Op, entry: &Entry, looked: Result<T, Errno>) -> Result<T, Failure> {
        looked.map_err(|errno| self.performer.refused(op, entry, None, None, errno).into())
    }

    fn children(&self, entry: &Entry, place: &Place) -> Result<Vec<String>, Failure> {
        let Some(at) = self.performer.at(place) else { return Ok(Vec::new()) };
        let children = self.performer.host().kernel().children(at, &place.path);
        let mut children = self.seen(kernel::Op::List, entry, children)?;
        // one that an earlier step removes comes back with all that it had, after what is rolled back here
        children.retain(|name| {
            let path = group_path::join(&place.path, name);
            !self.removed.contains(&Place { path, ..place.clone() })
        });
        Ok(children)
    }

    /// Files of those controllers in groups below that are another's than the maker's: they come back as the maker's.
    fn others(
        &self,
        entry: &Entry,
        place: &Place,
        names: &[String],
        children: &[String],
    ) -> Result<Vec<OwnersBelow>, Failure> {
        let (uid, gid) = self.performer.system().maker();
        let mut all = Vec::new();
        for child in children {
            let path = group_path::join(&place.path, child);
            let below = Place { path, ..place.clone() };
            let files = self.listed(entry, &below)?;
            let of_names = |file: &&String| {
                file.split_once('.').is_some_and(|(prefix, _)| names.iter().any(|name| name == prefix))
            };
            let files: Vec<Option<&str>> =
                files.iter().filter(of_names).map(|file| Some(file.as_str())).collect();
            let mut owners = self.owners(entry, &below, &files)?;
            owners.retain(|(_, owned)| (owned.uid, owned.gid) != (uid, gid));
            if !owners.is_empty() {
                all.push((below.path, owners));
            }
        }
        Ok(all)
    }

    /// Lists of CPUs and memory nodes that children have and that go with the controller.
    fn lists(
        &self,
        place: &Place,
        names: &[String],
        children: &[String],
    ) -> Vec<(String, Vec<(String, String)>)> {
        if !names.iter().any(|name| name == "cpuset") {
            return Vec::new();
        }
        let of = |child: &String| {
            let path = group_path::join(&place.path, child);
            let below = Place { path, ..place.clone() };
            let text = |file: &str| Some((file.to_owned(), self.performer.content(&below, file)?));
            let lists = ["cpuset.cpus", "cpuset.mems"].into_iter().filter_map(text);
            let lists: Vec<(String, String)> = lists.filter(|(_, list)| !list.is_empty()).collect();
            (!lists.is_empty()).then_some((below.path, lists))
        };
        children.iter().filter_map(of).collect()
    }

    fn listed(&self, entry: &Entry, place: &Place) -> Result<Vec<String>, Failure> {
        let Some(at) = self.performer.at(place) else { return Ok(Vec::new()) };
        let files = self.performer.host().kernel().files(at, &place.path);
        self.seen(kernel::Op::List, entry, files)
    }

    fn owners(
        &self,
        entry: &Entry,
        place: &Place,
        names: &[Option<&str>],
    ) -> Result<Vec<(Option<String>, Owned)>, Failure> {
        let Some(at) = self.performer.at(place) else { return Ok(Vec::new()) };
        let each = self.performer.system().owned_each(at, &place.path, names);
        let each = self.seen(kernel::Op::Read, entry, each)?;
        Ok(each.into_iter().map(|(file, owned)| (file.map(str::to_owned), owned)).collect())
    }

    /// Everything of a group that can be set.
    fn group(&mut self, entry: &Entry, place: &Place) -> Result<Before, Failure> {
        let listed = self.listed(entry, place)?;
        let known = &mut self.settings;
        let settable = listed.iter().filter(|file| {
            if *file == DEVICES_V1 {
                return true; // what it shows is written to two others
            }
            let key = ((*file).clone(), place.version);
            *known.entry(key).or_insert_with(|| is_setting(file, place.version))
        });
        let settable: Vec<&String> = settable.collect();
        let files = settable
            .into_iter()
            .filter_map(|file| Some((file.clone(), self.performer.content(place, file)?)))
            .collect();
        let mut names: Vec<Option<&str>> = listed.iter().map(|file| Some(file.as_str())).collect();
        names.push(None);
        let (mut devices, mut controllers) = (None, Vec::new());
        if let (Version::V2, Some(at)) = (place.version, self.performer.at(place)) {
            let filter = self.performer.host().kernel().device_filter(at, &place.path);
            let filter = self.seen(kernel::Op::Read, entry, filter)?;
            devices = filter.map(|filter| filter.access.to_string());
            let on = self.performer.content(place, SUBTREE_CONTROL).unwrap_or_default();
            controllers = on.split_whitespace().map(str::to_owned).collect();
        }
        let owners = self.owners(entry, place, &names)?;
        Ok(Before::Group { files, owners, devices, controllers })
    }
}

fn stale(what: String) -> Failure {
    Failure::Stale { what }
}

/// Is it a file that holds what was written to it? A counter that a write sets back is none.
fn is_setting(file: &str, version: Version) -> bool {
    settings::lookup(file).is_some_and(|found| {
        let settable = found.setting.access == Access::ReadWrite && !found.setting.is_counter();
        settable && found.files(version).iter().any(|own| own == file)
    })
}
