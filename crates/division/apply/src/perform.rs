//! Does one action on the machine and reads it back. Never decides which, and never undoes.

mod owners;
pub(crate) mod refill;

use std::collections::HashMap;

use kernel::{Hierarchy, Op, Seat};
use layout::UnitName;
use plan::{Action, Inside, Owned, PARTITION, Place, SettingRequest};
use rustix::io::Errno;
use settings::{Access, AdminFiles, Controller, Value, Version, devices};
use units::{Bytes, CpuSet, group_path, hint::Command};

use crate::{
    Difference, Error, affinity,
    already::is_so,
    entry::Entry,
    inside::{Divided, running_units},
    journal::Journal,
    knob, membership,
    outcome::Done,
    ownership, partitions,
    performer::{DEVICES_V1, Performer, SUBTREE_CONTROL, Unread, drop_in_of_others, not_mounted, unwritable},
    read_back::reason,
};

/// How often a file is looked for that systemd is about to bring, every 10 ms.
const PATIENCE: usize = 1000;

impl<'t> Performer<'t> {
    /// Does it. `step` is its number in the journal.
    pub fn perform(&mut self, step: usize, entry: &Entry, journal: &mut Journal<'_>) -> Result<Done, Error> {
        let is_mounted = |place: &Place| self.at(place).is_some();
        // our file of a unit is written whether its group is there or not
        if !matches!(entry.action, Action::WriteDropIn { .. }) && !entry.action.place().is_none_or(is_mounted)
        {
            return Err(not_mounted(entry));
        }
        match &entry.action {
            Action::Mount { controllers, name, path } => self.mount(controllers, name.as_deref(), path)?,
            Action::Unmount { path, .. } => {
                self.refuse_to_hide_groups(path)?;
                self.target.host.kernel().let_go(path);
                self.host().kernel().let_go(path);
                self.system().unmount(path).map_err(|errno| unmountable(path, errno))?;
            }
            Action::WriteDropIn { place, path, text, unit } => {
                self.write_drop_in(entry, place, (unit, path, text.as_deref()))?;
            }
            Action::SetKnob { knob: row, instance, text } => {
                return knob::set(self, step, entry, (row, instance, text), journal);
            }
            Action::CreateGroup { place } => self.create(step, place, entry, journal)?,
            Action::RemoveGroup { place } => self.remove(place, entry)?,
            Action::EnableControllers { place, names } => self.switch('+', place, names, entry)?,
            Action::DisableControllers { place, names } => self.switch('-', place, names, entry)?,
            // a step before it may have brought it back, and the kernel may take no such value: an idle group's weight
            Action::Write { .. } if entry.restores && is_so(self, &entry.action) => {}
            Action::Write { place, file, text } => {
                return self.write(step, entry, place, file, text, journal);
            }
            Action::SetDevices { place, setting, rule } => self.set_devices(place, entry, setting, rule)?,
            Action::RestoreDevices { place, rules } => {
                self.restore_devices(place, entry, rules.as_deref())?
            }
            Action::SetOwnership { place, access } => self.give(place, entry, access)?,
            Action::RestoreOwners { place, owners } => self.give_back(place, entry, owners)?,
            Action::MoveTasksAway { place, cpus, to } => {
                let unmoved = affinity::move_away(self, step, entry, (place.clone(), cpus, to), journal)?;
                return Ok(Done { unmoved, ..Done::default() });
            }
            Action::RestoreAffinities { place, threads } => {
                let note = affinity::restore(self, step, entry, (place, threads), journal)?;
                return Ok(Done { note, ..Done::default() });
            }
            Action::MoveTasks { place, .. } => membership::bring(self, step, entry, place, journal)?,
            Action::ReturnTasks { place, tasks } => {
                membership::give_back(self, step, entry, (place, tasks), journal)?;
            }
            Action::Refill { place, files } => {
                let left = refill::refill(self, journal, step, entry, (place, files));
                if !left.is_empty() {
                    return Err(Error::NotAsBefore { left });
                }
            }
            Action::InheritSet { place, file } => {
                let note = self.inherit(entry, place, file)?;
                return Ok(Done { note, ..Done::default() });
            }
        }
        Ok(Done::default())
    }

    /// Writes or removes our file of a unit, unless somebody made or changed it.
    fn write_drop_in(
        &mut self,
        entry: &Entry,
        place: &Place,
        (unit, path, text): (&str, &std::path::Path, Option<&str>),
    ) -> Result<(), Error> {
        let files = self.system().unit_files();
        self.of_units.insert(place.clone());
        let was = files.read(path);
        let was = was.as_deref();
        if was.is_some_and(|was| text != Some(was) && !self.drop_ins.wrote(path, was)) {
            return Err(drop_in_of_others(path));
        }
        // systemd has what it says, or not, from the next reload on: before any other step
        self.unread.push(unit.to_owned());
        self.divided.retain(|(_, of, _)| of != place);
        let inside = text.and_then(Inside::of_text);
        self.divided.extend(inside.map(|inside| (unit.to_owned(), place.clone(), inside)));
        if was != text {
            self.end_drop_in((unit, place), entry, (was, text))?;
        }
        files.write(path, text)?;
        Ok(())
    }

    fn set_devices(&self, place: &Place, entry: &Entry, setting: &str, rule: &str) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let seat = Seat { at, path: place.path.clone() };
        self.host().write_devices(&seat, &entry.group, setting, rule)?;
        Ok(())
    }

    fn restore_devices(&self, place: &Place, entry: &Entry, rules: Option<&str>) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let access = rules.and_then(|rules| rules.parse::<devices::DeviceAccess>().ok());
        let restored = self.host().kernel().set_device_filter(at, &place.path, access.as_ref());
        restored.map_err(|errno| self.refused(Op::Write, entry, None, None, errno))
    }

    /// Ends what a unit's drop-in file made of its group, as far as it is to do so no more.
    fn end_drop_in(
        &self,
        (unit, place): (&str, &Place),
        entry: &Entry,
        was_then: (Option<&str>, Option<&str>),
    ) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let (was, then) = (was_then.0.and_then(Inside::of_text), was_then.1.and_then(Inside::of_text));
        let files = self.system().unit_files();
        // of a unit that does not run, the slices above it may be left
        let of_it = match UnitName::of_file_name(unit).is_ok_and(|name| name.is_pattern()) {
            true => running_units(self.host(), (unit, place), files),
            false => vec![(unit.to_owned(), place.clone())],
        };
        if let Some(was) = was {
            self.services((unit, place)).try_for_each(|service| service.end(&was, then.as_ref()))?;
        }
        let kernel = self.host().kernel();
        let children = |place: &Place| {
            let names = kernel.children(at, &place.path).unwrap_or_default();
            let child = |name: &String| group_path::join(&place.path, name);
            names.iter().map(|name| Place { path: child(name), ..place.clone() }).collect()
        };
        let read = |place: &Place, file: &str| self.content(place, file);
        let is_in_force = || files.is_read(unit);
        let scene = plan::UnitScene { read: &read, children: &children, is_in_force: &is_in_force };
        let ends = |(_, place): &(_, Place)| plan::drop_in_ends(place, was_then, &scene);
        for (place, file, text) in of_it.iter().flat_map(ends) {
            let written = kernel.write(at, &place.path, file, &text);
            if written.is_err() && !kernel.exists(at, &place.path) {
                continue;
            }
            written.map_err(|errno| self.refused(Op::Write, entry, Some(file), Some(&text), errno))?;
        }
        Ok(())
    }

    /// Lets systemd read the drop-in files that were written since it read them last.
    ///
    /// # Errors
    /// Those that it did not read.
    pub fn reload_units(&mut self) -> Result<(), Unread> {
        let units = std::mem::take(&mut self.unread);
        if units.is_empty() {
            return Ok(());
        }
        let divided = std::mem::take(&mut self.divided);
        let unread = |error, is_read| Unread { units: units.clone(), error, is_read };
        self.system().unit_files().reload(&units).map_err(|error| unread(error, false))?;
        self.divide(&divided).map_err(|error| unread(error, true))
    }

    /// Makes the groups in services that run.
    fn divide(&self, divided: &[(String, Place, Inside)]) -> Result<(), kernel::Error> {
        divided.iter().try_for_each(|(unit, place, inside)| {
            self.services((unit, place)).try_for_each(|service| service.make(inside))
        })
    }

    /// The services whose drop-in file it is, as far as they run.
    fn services(&self, of: (&str, &Place)) -> impl Iterator<Item = Divided<'_>> {
        let running = running_units(self.host(), of, self.system().unit_files());
        running.into_iter().filter_map(|(_, place)| Divided::new(self.host(), self.at(&place)?, &place.path))
    }

    /// Notes in the journal what a file of a new group contains before this generation writes it: the kernel's
    /// default, alike for all new groups of a hierarchy.
    pub fn note_default(
        &mut self,
        place: &Place,
        file: &str,
        journal: &mut Journal<'_>,
    ) -> std::io::Result<()> {
        let shown = if matches!(file, "devices.allow" | "devices.deny") { DEVICES_V1 } else { file };
        let key = (place.hierarchy, shown.to_owned());
        if self.fresh.contains_key(&key) {
            return Ok(());
        }
        let content = self.content(place, shown);
        if let Some(content) = &content {
            journal.fresh(place.hierarchy, shown, content)?;
        }
        self.fresh.insert(key, content);
        Ok(())
    }

    /// Empties the list, which is the parent's then; where the kernel refuses that, as tasks need one (v1, and v2
    /// before 7.0), it is spelled out.
    fn inherit(&self, entry: &Entry, place: &Place, file: &str) -> Result<Option<String>, Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let kernel = self.host().kernel();
        // where its controller is off there is no list
        if matches!(kernel.write(at, &place.path, file, "\n"), Ok(()) | Err(Errno::NOENT)) {
            return Ok(None);
        }
        let above = group_path::parent(&place.path).unwrap_or_default();
        let above = Place { path: above.to_owned(), ..place.clone() };
        let effective = format!("{file}.effective");
        let all = match place.version {
            Version::V1 => self.content(&above, file),
            Version::V2 => self.content(&above, &effective).or_else(|| self.content(&above, file)),
        };
        let all: CpuSet = all.and_then(|text| text.parse().ok()).unwrap_or_default();
        let all = match (place.version, file) {
            (Version::V2, plan::CPUS) => all.union(&self.offline(&above)),
            _ => all,
        };
        let rest = all.difference(&self.exclusive_beside(place, &above, file));
        let text = if rest.is_empty() { &all } else { &rest }.to_string();
        let written = kernel.write(at, &place.path, file, &text);
        written.map_err(|errno| self.refused(Op::Write, entry, Some(file), Some(&text), errno))?;
        let group = self.host().named(at, &place.path);
        Ok(Some(format!(
            "{file} of group '{group}' is {text} now, as its parent's: the kernel takes no empty list while processes are in the group"
        )))
    }

    /// The CPUs that v2's group gets as soon as they are online.
    fn offline(&self, group: &Place) -> CpuSet {
        let (Some(present), Some(online)) = (self.present(), self.online()) else { return CpuSet::new() };
        let offline = present.difference(&online);
        let list = |path: &str| -> Option<CpuSet> {
            self.content(&Place { path: path.to_owned(), ..group.clone() }, plan::CPUS)?.parse().ok()
        };
        match group_path::branch(&group.path).filter_map(list).find(|cpus| !cpus.is_empty()) {
            Some(own) => own.intersection(&offline),
            None => offline,
        }
    }

    /// What siblings have for themselves.
    fn exclusive_beside(&self, place: &Place, above: &Place, file: &str) -> CpuSet {
        let Some(at) = self.at(place) else { return CpuSet::new() };
        let children = self.host().kernel().children(at, &above.path).unwrap_or_default();
        let flag = match (place.version, file) {
            (Version::V1, "cpuset.mems") => "cpuset.mem_exclusive",
            (Version::V1, _) => "cpuset.cpu_exclusive",
            (Version::V2, _) => "cpuset.cpus.partition",
        };
        let siblings =
            children.iter().map(|name| Place { path: group_path::join(&above.path, name), ..place.clone() });
        let siblings = siblings.filter(|sibling| sibling != place);
        let holds = |sibling: &Place| {
            matches!(self.content(sibling, flag).as_deref(), Some("1" | "root" | "isolated"))
        };
        let sets = siblings.filter(holds).filter_map(|sibling| self.content(&sibling, file)?.parse().ok());
        sets.fold(CpuSet::new(), |all, set: CpuSet| all.union(&set))
    }

    fn mount(
        &mut self,
        controllers: &[Controller],
        name: Option<&str>,
        path: &std::path::Path,
    ) -> Result<(), Error> {
        self.system().mount(controllers, name, path)?;
        let host = self.system().look()?;
        // later steps count it after those that were there
        self.hierarchies.push(host.hierarchies().iter().find(|at| at.mount == *path).cloned());
        self.remounted = Some(host);
        Ok(())
    }

    /// A v1 hierarchy with groups can be unmounted, and then goes on unseen: with its limits, and with its controllers,
    /// which no other hierarchy gets.
    fn refuse_to_hide_groups(&self, path: &std::path::Path) -> Result<(), Error> {
        let kernel = self.host().kernel();
        let at = kernel.hierarchies().unwrap_or_default().into_iter().find(|at| at.mount == *path);
        let groups = at.and_then(|at| kernel.children(&at, "").ok()).unwrap_or_default();
        if groups.is_empty() {
            return Ok(());
        }
        Err(Error::Kernel(kernel::Error::Outside {
            what: format!("{} stays mounted: it has groups ({})", path.display(), groups.join(", ")),
            errno: Errno::BUSY,
            hint: Some("ringfence undo unmounts it once they are gone".to_owned()),
        }))
    }

    fn create(
        &mut self,
        step: usize,
        place: &Place,
        entry: &Entry,
        journal: &mut Journal<'_>,
    ) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let kernel = self.host().kernel();
        // who makes a group owns all of it, and could open what he is not to keep before it is taken from him
        let heir = self.heirs.get(place).filter(|access| access.admin_files == AdminFiles::Every);
        let (uid, gid) = heir.map_or((None, None), |access| (access.admin_uid, access.admin_gid));
        let (own_uid, own_gid) = self.system().maker();
        let (uid, gid) = (uid.unwrap_or(own_uid), gid.unwrap_or(own_gid));
        let mut make = || kernel.mkdir(at, &place.path);
        let as_heir = ((uid, gid) != (own_uid, own_gid))
            .then(|| self.system().as_owner(Some(uid), Some(gid), &mut make))
            .flatten();
        // what root may not do as the heir (a directory that a security module keeps), it may as itself
        let (made, maker) = match as_heir {
            Some(Ok(())) => (Ok(()), (uid, gid)),
            Some(Err(Errno::ACCESS | Errno::PERM)) | None => (make(), (own_uid, own_gid)),
            Some(Err(errno)) => (Err(errno), (uid, gid)),
        };
        made.map_err(|errno| self.refused(Op::Create, entry, None, None, errno))?;
        self.makers.insert(place.clone(), maker);
        self.note_made(step, place, journal);
        Ok(())
    }

    /// Notes in the journal that a directory is this generation's own.
    pub fn note_made(&mut self, step: usize, place: &Place, journal: &mut Journal<'_>) {
        let inode = self.at(place).and_then(|at| self.host().kernel().inode(at, &place.path).ok());
        if let Some(inode) = inode {
            // without the mark every directory of that name counts as its own
            let _ = journal.made(step, inode);
            self.inodes.entry(place.clone()).or_default().push(inode);
        }
    }

    /// In words.
    pub fn remade(&self, place: &Place) -> String {
        let group = self.at(place).map(|at| self.host().named(at, &place.path)).unwrap_or_default();
        let directory = self.directory(place);
        format!("group '{group}' stays: it was removed and made again since ({directory})")
    }

    /// Did somebody remove the directory that this generation made, and make it again?
    pub fn is_remade(&self, place: &Place) -> bool {
        let Some(own) = self.inodes.get(place) else { return false };
        let now = self.at(place).and_then(|at| self.host().kernel().inode(at, &place.path).ok());
        now.is_some_and(|now| !own.contains(&now))
    }

    /// Tasks that ended a moment ago may still hold their group: EBUSY without a task listed is tried again.
    pub fn remove(&self, place: &Place, entry: &Entry) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let partition = self.end_partition(at, place);
        let mut attempts = 0;
        loop {
            match self.host().kernel().rmdir(at, &place.path) {
                Ok(()) | Err(Errno::NOENT) => {
                    return Ok(());
                }
                Err(Errno::BUSY) if attempts < 100 && self.is_unused(at, place) => {
                    attempts += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(errno) => {
                    // the group stays: so does its partition, as far as the kernel lets it
                    let back =
                        partition.map(|text| self.host().kernel().write(at, &place.path, PARTITION, &text));
                    let _ = back.transpose();
                    return Err(self.refused(Op::Delete, entry, None, None, errno));
                }
            }
        }
    }

    /// Of a removed group the kernel ends the partition some time later, and resets the CPUs of its own threads then
    /// (seen on 6.1). It ends first here, so that what follows is not undone by that. What it was, if it was one.
    fn end_partition(&self, at: &Hierarchy, place: &Place) -> Option<String> {
        let none = plan::no_partition(PARTITION).filter(|_| place.version == Version::V2)?;
        let state = self.content(place, PARTITION).filter(|state| state != none)?;
        if !self.is_unused(at, place) {
            return None;
        }
        self.host().kernel().write(at, &place.path, PARTITION, none).ok()?;
        Some(settings::partition(&state).0.to_owned())
    }

    fn is_unused(&self, at: &Hierarchy, place: &Place) -> bool {
        let below = self.host().kernel().children(at, &place.path).is_ok_and(|children| !children.is_empty());
        !below && self.host().tasks_in(&Seat { at, path: place.path.clone() }).is_empty()
    }

    fn switch(&self, sign: char, place: &Place, names: &[String], entry: &Entry) -> Result<(), Error> {
        let words: Vec<String> = names.iter().map(|name| format!("{sign}{name}")).collect();
        let text = words.join(" ");
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let written = self.host().kernel().write(at, &place.path, SUBTREE_CONTROL, &text);
        written.map_err(|errno| self.refused(Op::Write, entry, Some(SUBTREE_CONTROL), Some(&text), errno))
    }

    fn write(
        &self,
        step: usize,
        entry: &Entry,
        place: &Place,
        file: &str,
        text: &str,
        journal: &mut Journal<'_>,
    ) -> Result<Done, Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        if let Some(used) = kernel::use_above(self.host().kernel(), at, &place.path, file, text) {
            let (group, limit) = (entry.group.clone(), Bytes(text.trim().parse().unwrap_or_default()));
            return Err(Error::WouldKill { group, used: Bytes(used), limit });
        }
        let written = self.write_settled(at, place, file, text);
        written.map_err(|errno| self.refused(Op::Write, entry, Some(file), Some(text), errno))?;
        let Some(actual) = self.content(place, file).filter(|actual| actual != text) else {
            return Ok(Done::default()); // as written, or it can't be read
        };
        // a partition that the kernel keeps invalid was taken, but is none
        if file == PARTITION && settings::partition(&actual).1.is_some() {
            return Err(partitions::invalid(self, entry, &actual));
        }
        journal.actual(step, &actual).map_err(unwritable)?;
        Ok(Done { difference: self.compare(entry, place, file, text, &actual), ..Done::default() })
    }

    /// A group that was just removed may still count as one below, where v1 refuses a rule for all devices: EINVAL
    /// without a group listed is tried again.
    fn write_settled(&self, at: &Hierarchy, place: &Place, file: &str, text: &str) -> Result<(), Errno> {
        let kernel = self.host().kernel();
        let all = matches!(file, "devices.allow" | "devices.deny") && text.trim_start().starts_with('a');
        let mut attempts = 0;
        // systemd answers before it has given the controllers of what it read to the groups
        while self.is_of_unit(place)
            && attempts < PATIENCE
            && kernel.read(at, &place.path, file) == Err(Errno::NOENT)
            && kernel.exists(at, &place.path)
        {
            attempts += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        attempts = 0;
        loop {
            match kernel::write_reclaiming(kernel, at, &place.path, file, text) {
                Err(Errno::INVAL)
                    if all
                        && attempts < 100
                        && kernel.children(at, &place.path).is_ok_and(|below| below.is_empty()) =>
                {
                    attempts += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                written => return written,
            }
        }
    }

    /// What the kernel made of a text, if that is not what the text means.
    pub fn compare(
        &self,
        entry: &Entry,
        place: &Place,
        file: &str,
        text: &str,
        actual: &str,
    ) -> Option<Difference> {
        let found = settings::lookup(file).filter(|found| found.setting.access != Access::Write)?;
        // a limit that was removed leaves no line
        if settings::is_by_key(file) && self.means(place, file, text, actual) {
            return None;
        }
        let request = SettingRequest {
            group: entry.group.clone(),
            place: place.clone(),
            value: self.meaning(place, file, text)?,
            found,
        };
        let reason = reason(&request, &self.meaning(place, file, actual)?)?;
        let file = format!("{}/{file}", self.directory(place));
        Some(Difference {
            group: entry.group.to_string(),
            file,
            requested: text.to_owned(),
            actual: actual.to_owned(),
            reason,
        })
    }

    /// Does a file that contains `actual` differ from what `text` requests? `None` where the text alone does not
    /// say it all, as a quota without its period.
    pub fn differs(&self, place: &Place, file: &str, text: &str, actual: &str) -> Option<bool> {
        let (requested, actual) = (self.meaning(place, file, text)?, self.meaning(place, file, actual)?);
        Some(!settings::lookup(file)?.satisfied(&requested, &actual))
    }

    /// Does a file that contains `actual` have what `text` requests, but for the kernel's rounding?
    pub fn means(&self, place: &Place, file: &str, text: &str, actual: &str) -> bool {
        self.differs(place, file, text, actual).map_or(text == actual, |differs| !differs)
    }

    /// What a file with this content says, together with those beside it.
    fn meaning(&self, place: &Place, file: &str, content: &str) -> Option<Value> {
        let read =
            |name: &str| if name == file { Some(content.to_owned()) } else { self.content(place, name) };
        settings::lookup(file)?.decode(place.version, &read).ok()
    }
}

fn unmountable(path: &std::path::Path, errno: Errno) -> Error {
    Error::Kernel(kernel::Error::Outside {
        what: format!("cannot unmount {}", path.display()),
        errno,
        hint: (errno == Errno::BUSY).then(|| {
            let users = Command::new("fuser -vm").arg(path.to_string_lossy());
            format!("{users} shows who uses it; ringfence undo tries again")
        }),
    })
}
