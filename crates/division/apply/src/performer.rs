//! The host for one change: where places of a record are now, what exists, and what the change did so far.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use kernel::{GroupName, Hierarchy, Host, Op, Seat};
use plan::{Action, Outsider, Owned, Place};
use rustix::io::Errno;
use units::{CpuSet, group_path};

use crate::{
    Error,
    entry::{Before, Entry},
    lasting::Known,
    record::Affinity,
    spot::Spot,
    system::System,
    target::Target,
};

/// What a group of v2 hands down to the groups in it.
pub(crate) const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// Shows what v1's `devices.allow` and `devices.deny` made of each other.
pub(crate) const DEVICES_V1: &str = "devices.list";

/// Carries out actions one after the other.
pub(crate) struct Performer<'t> {
    pub(crate) target: Target<'t>,
    /// The host as it is since a hierarchy was mounted.
    pub(crate) remounted: Option<Host>,
    /// By their position in the record; `None` for one that is not mounted (any more).
    pub hierarchies: Vec<Option<Hierarchy>>,
    /// To whom new groups will be given, so that they can be made as his.
    pub heirs: HashMap<Place, plan::Ownership>,
    /// Who made the groups of this run.
    pub(crate) makers: HashMap<Place, (u32, u32)>,
    /// The files of a new group and their modes: the same for all groups of a v1 hierarchy, or of one v2 parent.
    pub(crate) files: HashMap<(usize, String), Vec<(String, Owned)>>,
    /// Threads whose CPUs were changed, with the step.
    pub affinities: Vec<(usize, Affinity)>,
    /// Processes that were moved, with the step.
    pub moved: Vec<(usize, Outsider)>,
    /// What the kernel made of knobs, with the step.
    pub actual: Vec<(usize, String)>,
    /// Inode numbers of the directories that were made.
    pub inodes: HashMap<Place, Vec<u64>>,
    /// Groups of units whose drop-in files were written.
    pub of_units: HashSet<Place>,
    /// Units with drop-in files that were written and that systemd did not read yet.
    pub unread: Vec<String>,
    /// The groups of services whose drop-in files have groups for their processes.
    pub divided: Vec<(String, Place, plan::Inside)>,
    /// What drop-in files contain by the records.
    pub drop_ins: Known,
    /// What files of new groups contain by default, by hierarchy; `None`: they can't be read.
    pub(crate) fresh: HashMap<(usize, String), Option<String>>,
}

impl<'t> Performer<'t> {
    pub fn new(target: Target<'t>, hierarchies: Vec<Option<Hierarchy>>) -> Performer<'t> {
        let (heirs, makers, files) = Default::default();
        let (affinities, moved, inodes, fresh) = Default::default();
        Performer {
            target,
            remounted: None,
            hierarchies,
            heirs,
            makers,
            files,
            affinities,
            moved,
            actual: Vec::new(),
            inodes,
            of_units: HashSet::new(),
            unread: Vec::new(),
            divided: Vec::new(),
            drop_ins: Known::default(),
            fresh,
        }
    }

    /// Is it the group of a unit whose drop-in file was written, or above it? systemd brings about its controllers.
    pub fn is_of_unit(&self, place: &Place) -> bool {
        self.of_units.iter().any(|unit| is_at_or_below(unit, place))
    }

    /// For a record that counts hierarchies in its own way.
    pub fn of(target: Target<'t>, spots: &[Spot]) -> Performer<'t> {
        Performer::new(target, spots.iter().map(|spot| spot.find(target.host).cloned()).collect())
    }

    /// Counts the hierarchies that the steps of a record mounted, as they were counted then.
    pub fn count_mounted(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Action::Mount { path, .. } = &entry.action {
                let found = self.host().hierarchies().iter().find(|at| at.mount == *path).cloned();
                self.hierarchies.push(found);
            }
        }
    }

    pub fn host(&self) -> &Host {
        self.remounted.as_ref().unwrap_or(self.target.host)
    }

    pub fn system(&self) -> &'t dyn System {
        self.target.system
    }

    pub fn at(&self, place: &Place) -> Option<&Hierarchy> {
        self.hierarchies.get(place.hierarchy)?.as_ref()
    }

    pub fn exists(&self, place: &Place) -> bool {
        self.at(place).is_some_and(|at| self.host().kernel().exists(at, &place.path))
    }

    /// A step that takes an entry back; one for a group below its own is that group's, and none if that is gone.
    pub fn for_group_of(&self, entry: &Entry, action: Action) -> Option<Entry> {
        let mut back = Entry { action, ..entry.clone() };
        let of_below = matches!(entry.before, Before::DevicesBelow { .. } | Before::ListsBelow { .. });
        if let Some(place) =
            back.action.place().filter(|place| of_below && Some(*place) != entry.action.place())
        {
            let at = self.at(place).filter(|at| self.host().kernel().exists(at, &place.path))?;
            back.group = GroupName::new(&self.host().named(at, &place.path)).unwrap_or(back.group);
        }
        Some(back)
    }

    /// A file's content without the newline at its end.
    pub fn content(&self, place: &Place, file: &str) -> Option<String> {
        let mut text = self.host().kernel().read(self.at(place)?, &place.path, file).ok()?;
        text.truncate(text.trim_end_matches('\n').len());
        Some(settings::as_written(place.version, file, text))
    }

    /// The CPUs that are online, if the kernel says so.
    pub(crate) fn online(&self) -> Option<CpuSet> {
        self.cpus("online")
    }

    /// Those that are there, online or not.
    pub(crate) fn present(&self) -> Option<CpuSet> {
        self.cpus("present")
    }

    fn cpus(&self, list: &str) -> Option<CpuSet> {
        let text = self.host().kernel().outside(&Path::new("/sys/devices/system/cpu").join(list));
        text.ok()?.trim().parse().ok()
    }

    /// The directory as the user finds it.
    pub fn directory(&self, place: &Place) -> String {
        self.at(place).map_or_else(|| place.path.clone(), |at| at.path(&place.path).display().to_string())
    }

    /// An errno with its cause.
    pub fn refused(
        &self,
        op: Op,
        entry: &Entry,
        file: Option<&str>,
        value: Option<&str>,
        errno: Errno,
    ) -> Error {
        let group = entry.group.clone();
        match entry.action.place().and_then(|place| Some((place, self.at(place)?))) {
            Some((place, at)) => {
                let seat = Seat { at, path: place.path.clone() };
                Error::Kernel(self.host().refused(op, &seat, &group, file, value, errno))
            }
            None => not_mounted(entry),
        }
    }
}

/// The command that brings a CPU online.
pub(crate) fn bring_online(cpu: usize) -> String {
    format!("echo 1 > /sys/devices/system/cpu/cpu{cpu}/online")
}

/// In the same hierarchy.
pub(crate) fn is_at_or_below(place: &Place, above: &Place) -> bool {
    place.hierarchy == above.hierarchy && group_path::is_at_or_below(&place.path, &above.path)
}

/// A group's name as it was recorded; our groups' own place has the empty one.
pub(crate) fn name(group: &str) -> GroupName {
    GroupName::new(group).unwrap_or_else(|_| GroupName::base())
}

pub(crate) fn not_mounted(entry: &Entry) -> Error {
    Error::Kernel(kernel::Error::Outside {
        what: format!("the hierarchy of group '{}' is not mounted", entry.group),
        errno: Errno::NOENT,
        hint: Some("ringfence doctor shows where each controller is".to_owned()),
    })
}

/// The journal could not be written, so nothing more may be changed.
pub(crate) fn unwritable(error: std::io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let what = "cannot write the journal".to_owned();
    Error::Kernel(kernel::Error::Outside {
        what,
        errno,
        hint: Some("df shows where the disk is full".to_owned()),
    })
}

/// Units whose drop-in files systemd did not read.
#[derive(Debug)]
pub(crate) struct Unread {
    pub units: Vec<String>,
    pub error: kernel::Error,
    /// It did, and the groups in the services could not be made.
    pub is_read: bool,
}

impl Unread {
    /// The steps that wrote the files, each with what is to be said of it.
    pub fn steps(&self, entries: &[Entry]) -> Vec<(usize, String)> {
        let of = |(step, entry): (usize, &Entry)| match &entry.action {
            Action::WriteDropIn { unit, path, .. } if self.units.contains(unit) => {
                let error = Error::Kernel(self.error.clone()).in_words();
                let what = if self.is_read {
                    "not all groups were made that are in"
                } else {
                    "systemd did not read what changed in"
                };
                Some((step, format!("{what} {}: {error}", path.display())))
            }
            _ => None,
        };
        entries.iter().enumerate().filter_map(of).collect()
    }
}

/// Somebody made the file, or changed it: what is in it stays.
pub(crate) fn drop_in_of_others(path: &Path) -> Error {
    Error::DropInOfOthers { path: path.to_owned() }
}
