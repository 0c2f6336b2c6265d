//! systemd in memory: files on a disk that outlives a boot, what it read of them, and one limit that it sets by them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use apply::UnitFiles;
use fake::Fake;
use kernel::{Error, Kernel};
use layout::UnitName;
use plan::SeenUnit;
use rustix::io::Errno;

use crate::machine::Faults;

/// The units that it knows.
pub const UNITS: [&str; 2] = ["one.service", "two.service"];

#[derive(Default)]
struct Disk {
    files: BTreeMap<PathBuf, String>,
    read: BTreeMap<PathBuf, String>,
    /// What files had before changes that are not settled, and in which boot.
    before: BTreeMap<PathBuf, (u32, Option<String>)>,
    boot: u32,
    no_reload: bool,
    read_only: bool,
    reloads: usize,
}

impl Disk {
    /// The files as systemd reads them: the generator hides what was not settled before the boot.
    fn shown(&self) -> BTreeMap<PathBuf, String> {
        let mut shown = self.files.clone();
        for (path, before) in self.hidden() {
            shown.remove(&path);
            shown.extend(before.map(|text| (path, text)));
        }
        shown
    }

    fn hidden(&self) -> BTreeMap<PathBuf, Option<String>> {
        let earlier = self.before.iter().filter(|(path, (boot, before))| {
            let now = self.files.get(*path);
            *boot < self.boot && now != before.as_ref() && now.is_none_or(|text| plan::is_drop_in(text))
        });
        earlier.map(|(path, (_, before))| (path.clone(), before.clone())).collect()
    }
}

/// A handle: clones are of the same one.
#[derive(Clone)]
pub struct Units {
    fake: Fake,
    disk: Arc<Mutex<Disk>>,
    /// Of the command that runs: what happens at which of its changes.
    faults: Arc<Faults>,
}

impl Units {
    pub fn new(fake: &Fake) -> Units {
        let units = Units { fake: fake.clone(), disk: Arc::default(), faults: Faults::at(Vec::new()) };
        units.start();
        units
    }

    /// As a command sees it to which that happens.
    pub fn with(&self, faults: &Arc<Faults>) -> Units {
        Units { faults: faults.clone(), ..self.clone() }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// The same disk in the next boot: systemd reads all files, and starts the units.
    pub fn booted(&self, fake: &Fake) -> Units {
        let units = Units { fake: fake.clone(), disk: self.disk.clone(), faults: Faults::at(Vec::new()) };
        units.disk().boot += 1;
        let shown = units.disk().shown();
        units.disk().read = shown;
        units.start();
        units
    }

    fn start(&self) {
        let at = &self.fake.hierarchies().unwrap()[0];
        self.fake.write(at, "", "cgroup.subtree_control", "+pids").unwrap();
        self.fake.mkdir(at, "system.slice").unwrap();
        self.fake.write(at, "system.slice", "cgroup.subtree_control", "+pids").unwrap();
        for unit in UNITS {
            self.fake.mkdir(at, &format!("system.slice/{unit}")).unwrap();
        }
        self.set_all();
    }

    /// Sets what the files say that it read: as it does at a start, and at a reload.
    pub fn set_all(&self) {
        let at = &self.fake.hierarchies().unwrap()[0];
        for unit in UNITS {
            let file = self.disk().read.get(&file(unit)).cloned().unwrap_or_default();
            let limit = file.lines().rev().find_map(|line| line.strip_prefix("TasksMax=")).unwrap_or("max");
            let limit = if limit == "infinity" { "max" } else { limit };
            self.fake.write(at, &format!("system.slice/{unit}"), "pids.max", limit).unwrap();
        }
    }

    pub fn limit(&self, unit: &str) -> String {
        let at = &self.fake.hierarchies().unwrap()[0];
        let text = self.fake.read(at, &format!("system.slice/{unit}"), "pids.max").unwrap();
        text.trim_end().to_owned()
    }

    pub fn file(&self, unit: &str) -> Option<String> {
        self.disk().files.get(&file(unit)).cloned()
    }

    /// An administrator writes the file.
    pub fn edit(&self, unit: &str, text: Option<&str>) {
        let mut disk = self.disk();
        disk.files.remove(&file(unit));
        disk.files.extend(text.map(|text| (file(unit), text.to_owned())));
    }

    pub fn refuse_reloads(&self, refuse: bool) {
        self.disk().no_reload = refuse;
    }

    pub fn make_read_only(&self, read_only: bool) {
        self.disk().read_only = read_only;
    }

    pub fn reloads(&self) -> usize {
        self.disk().reloads
    }
}

pub fn file(unit: &str) -> PathBuf {
    PathBuf::from(plan::drop_in(unit, false))
}

fn refused(what: &str, errno: Errno) -> Error {
    Error::Outside { what: what.to_owned(), errno, hint: None }
}

impl UnitFiles for Units {
    fn units(&self, names: &[&UnitName]) -> Result<BTreeMap<String, SeenUnit>, Error> {
        let seen = names.iter().map(|name| {
            let unit = name.as_str();
            let seen = SeenUnit {
                delegates: false,
                undividable: None,
                load: if UNITS.contains(&unit) { "loaded" } else { "not-found" }.to_owned(),
                near: Vec::new(),
                path: format!("system.slice/{unit}"),
                root: String::new(),
                properties: BTreeSet::from(["TasksMax".to_owned()]),
                drop_in: plan::drop_in(unit, false),
                text: self.file(unit),
                others: None,
            };
            (unit.to_owned(), seen)
        });
        Ok(seen.collect())
    }

    fn fitting(&self, _: &[&UnitName]) -> Result<Option<BTreeSet<String>>, Error> {
        Ok(Some(BTreeSet::new()))
    }

    fn pinned(&self) -> Vec<String> {
        Vec::new()
    }

    fn drop_ins(&self) -> Vec<(String, PathBuf)> {
        let there = UNITS.iter().filter(|unit| self.file(unit).is_some());
        there.map(|unit| ((*unit).to_owned(), file(unit))).collect()
    }

    fn is_set(&self, _: &str, _: &str) -> bool {
        false
    }

    fn read(&self, path: &Path) -> Option<String> {
        self.disk().files.get(path).cloned()
    }

    fn write(&self, path: &Path, text: Option<&str>) -> Result<(), Error> {
        if self.read(path).as_deref() == text {
            return Ok(());
        }
        self.faults.change(|| self.put(path, text), |errno| refused("cannot write", errno))
    }

    fn reload(&self, _: &[String]) -> Result<(), Error> {
        self.faults.change(|| self.load(), |errno| refused("systemd does not read its files again", errno))
    }

    fn is_read(&self, unit: &str) -> bool {
        let disk = self.disk();
        disk.shown().get(&file(unit)) == disk.read.get(&file(unit))
    }

    fn settle(&self) -> Result<(), Error> {
        if self.disk().before.is_empty() {
            return Ok(());
        }
        let settle = || {
            let is_hidden = !self.disk().hidden().is_empty();
            self.disk().before.clear();
            if is_hidden { self.load() } else { Ok(()) }
        };
        self.faults.change(settle, |errno| refused("cannot settle", errno))
    }

    fn kept_out(&self) -> Vec<String> {
        let hidden = self.disk().hidden();
        UNITS.iter().filter(|unit| hidden.contains_key(&file(unit))).map(|unit| (*unit).to_owned()).collect()
    }
}

impl Units {
    fn put(&self, path: &Path, text: Option<&str>) -> Result<(), Error> {
        let mut disk = self.disk();
        if disk.read_only && disk.files.get(path).map(String::as_str) != text {
            return Err(refused(&format!("cannot write {}", path.display()), Errno::ROFS));
        }
        let note = (disk.boot, disk.files.remove(path));
        disk.before.entry(path.to_owned()).or_insert(note);
        disk.files.extend(text.map(|text| (path.to_owned(), text.to_owned())));
        Ok(())
    }

    fn load(&self) -> Result<(), Error> {
        let mut disk = self.disk();
        if disk.no_reload {
            return Err(refused("systemd does not read its files again", Errno::TIMEDOUT));
        }
        disk.reloads += 1;
        disk.read = disk.shown();
        drop(disk);
        self.set_all();
        Ok(())
    }
}
