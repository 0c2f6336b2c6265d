//! Makes and lists groups, in every hierarchy that is meant, and wholly or not at all.

use std::{collections::BTreeMap, path::PathBuf};

use rustix::io::Errno;
use settings::{AdminFiles, Controller, Version};
use units::{IdSet, group_path};

use crate::{
    Change, Error, GroupName, Hierarchy, Host, Op, Ownership, Seat,
    control_files::{CONTROLLERS, SUBTREE_CONTROL},
    host::missing_controller,
    refuse_foreign,
};

/// A user and a group, as numbers; `None` leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Who {
    /// User.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
}

/// Who may use a new group, and how (libcgroup's `perm` section).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// Owner of the files that take tasks (`tasks`, `cgroup.procs`, `cgroup.threads`).
    pub tasks: Who,
    /// Owner of the directory and of `admin_files`.
    pub admin: Who,
    /// Which of the other files are his.
    pub admin_files: AdminFiles,
    /// Mode of the directory.
    pub directory_mode: Option<u32>,
    /// Mode of all files but those that take tasks.
    pub file_mode: Option<u32>,
    /// Mode of the files that take tasks.
    pub tasks_mode: Option<u32>,
}

/// A group to be made in one hierarchy.
#[derive(Debug, Clone)]
pub struct Wanted<'h> {
    /// Where.
    pub at: &'h Hierarchy,
    /// What is enabled for it on v2.
    pub controllers: Vec<Controller>,
    /// The group.
    pub group: GroupName,
    /// A v2 controller that a parent lacks is left out instead of refused.
    pub optional: bool,
}

/// What [`Host::create`] did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Created {
    /// The directories of the group; all there now.
    pub directories: Vec<PathBuf>,
    /// Those of them, and of its parents, that were made just now.
    pub made: Vec<PathBuf>,
    /// v1 cpusets that take no task until both their CPUs and memory nodes are set.
    pub empty_cpusets: Vec<PathBuf>,
}

impl Created {
    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Created) -> Created {
        self.directories.extend(other.directories);
        self.made.extend(other.made);
        self.empty_cpusets.extend(other.empty_cpusets);
        self
    }
}

/// The two lists that a v1 cpuset must have before it takes a task.
const CPUSET: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

/// The files that put tasks into a group.
const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

impl Host {
    /// Makes a group, with missing parents, where the given controllers live (all hierarchies with a controller
    /// if `None`), and on v2 enables them down to it. A group that is there already stays as it is and gains
    /// what it lacks. On failure, what was made is removed again.
    ///
    /// # Errors
    /// [`Error::NoController`], [`Error::Refused`].
    pub fn create(
        &self,
        group: &GroupName,
        controllers: Option<&[Controller]>,
        access: &Access,
    ) -> Result<Created, Error> {
        let wanted = self.wanted(controllers)?;
        let optional = controllers.is_none();
        let place = |(at, controllers)| Wanted { at, controllers, group: group.clone(), optional };
        self.create_at(&wanted.into_iter().map(place).collect::<Vec<_>>(), access)
    }

    /// The controllers with which the caller may make a group: of the hierarchies where he may write the nearest group above it
    /// that is there; of v2's those that are handed down to there, or `core`.
    pub fn creatable(&self, group: &GroupName) -> Vec<&'static str> {
        let of = |at: &Hierarchy| {
            let path = self.seat_in(at, group).path;
            let above = group_path::ancestors(&path).find(|above| self.kernel.exists(at, above));
            let Some(above) = above.filter(|above| self.kernel.writable(at, above)) else {
                return Vec::new();
            };
            let handed = self.kernel.read(at, above, CONTROLLERS).unwrap_or_default();
            let is_there =
                |name: &&str| at.version == Version::V1 || handed.split_whitespace().any(|one| one == *name);
            let names = at.controllers.iter().filter(|controller| **controller != Controller::Core);
            let names: Vec<&str> =
                names.filter_map(|controller| controller.name(at.version)).filter(is_there).collect();
            if names.is_empty() && at.version == Version::V2 { vec!["core"] } else { names }
        };
        self.hierarchies().iter().flat_map(of).collect()
    }

    /// Makes a group in named v1 hierarchies (`name=systemd`), which have no controller.
    ///
    /// # Errors
    /// [`Error::NoNamed`], [`Error::Refused`].
    pub fn create_named(&self, group: &GroupName, names: &[&str], access: &Access) -> Result<Created, Error> {
        let named = |name: &&str| {
            let at = self.hierarchies().iter().find(|at| at.name.as_deref() == Some(*name));
            let known = || self.hierarchies().iter().filter_map(|at| at.name.clone()).collect();
            let wanted = |at| Wanted { at, controllers: Vec::new(), group: group.clone(), optional: false };
            at.map(wanted).ok_or_else(|| Error::NoNamed { name: (*name).to_owned(), known: known() })
        };
        let wanted: Vec<_> = names.iter().map(named).collect::<Result<_, _>>()?;
        self.create_at(&wanted, access)
    }

    /// Makes groups each in one hierarchy, as [`Host::create`] does, all of them or none.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Refused`].
    pub fn create_at(&self, wanted: &[Wanted<'_>], access: &Access) -> Result<Created, Error> {
        for Wanted { group, .. } in wanted {
            refuse_foreign(group, Change::Create)?;
        }
        let mut made: Vec<Seat<'_>> = Vec::new();
        let mut enabled: Vec<(Seat<'_>, String)> = Vec::new();
        let result = wanted.iter().try_for_each(|Wanted { at, controllers, group, optional }| {
            let at = &self.hierarchies()[at.id];
            self.make_path(at, group, &mut made)?;
            if at.version == Version::V2 {
                self.enable(at, group, controllers, *optional, &mut enabled)?;
            }
            self.own(&self.seat_in(at, group), group, access)
        });
        if let Err(error) = result {
            self.unmake(&made, &enabled);
            return Err(error);
        }
        let seats: Vec<Seat<'_>> =
            wanted.iter().map(|wanted| self.seat_in(wanted.at, &wanted.group)).collect();
        Ok(Created {
            directories: seats.iter().map(Seat::directory).collect(),
            made: made.iter().map(Seat::directory).collect(),
            empty_cpusets: seats
                .iter()
                .filter(|seat| self.is_empty_cpuset(seat))
                .map(Seat::directory)
                .collect(),
        })
    }

    /// Gives the v1 cpusets that were made just now the CPUs and memory nodes of their parents, but for those that a group
    /// beside has for itself, as v2's groups have them from the start. What can't be given stays in
    /// [`Created::empty_cpusets`].
    pub fn fill_cpusets(&self, created: &mut Created) {
        let Some(at) = self.hierarchy_of(Controller::Cpuset).filter(|at| at.version == Version::V1) else {
            return;
        };
        // parents come first
        for directory in &created.made {
            let Ok(path) = directory.strip_prefix(&at.mount) else { continue };
            let seat = Seat { at, path: path.to_string_lossy().into_owned() };
            if self.is_empty_cpuset(&seat) {
                CPUSET.iter().for_each(|file| self.fill_list(&seat, file));
            }
        }
        let is_empty = |directory: &PathBuf| {
            let path = directory.strip_prefix(&at.mount).ok();
            path.is_some_and(|path| {
                self.is_empty_cpuset(&Seat { at, path: path.to_string_lossy().into_owned() })
            })
        };
        created.empty_cpusets.retain(is_empty);
    }

    /// The groups of the branch that lack lists in v1's cpuset hierarchy, from the top down, and what each may have: what is above.
    pub fn missing_lists(&self, name: &GroupName) -> Vec<(String, Vec<String>)> {
        let Ok(seat) = self.seat(name, Controller::Cpuset) else { return Vec::new() };
        let read = |path: &str, file: &str| {
            self.kernel.read(seat.at, path, file).unwrap_or_default().trim().to_owned()
        };
        let mut above = CPUSET.map(|file| read("", file));
        let mut branch: Vec<&str> = group_path::branch(&seat.path).collect();
        branch.reverse();
        let lacking = branch.into_iter().map(|path| {
            let mut given = Vec::new();
            for (value, file) in above.iter_mut().zip(CPUSET) {
                match read(path, file) {
                    now if now.is_empty() => given.push(format!("{file}={value}")),
                    now => *value = now,
                }
            }
            (self.named(seat.at, path), given)
        });
        lacking.filter(|(_, given)| !given.is_empty()).collect()
    }

    /// A write that is refused leaves the list as it was: empty, which is reported.
    fn fill_list(&self, seat: &Seat<'_>, file: &str) {
        let read = |path: &str, file: &str| {
            self.kernel.read(seat.at, path, file).unwrap_or_default().trim().to_owned()
        };
        let list = |path: &str| -> IdSet<()> { read(path, file).parse().unwrap_or_default() };
        if !list(&seat.path).is_empty() {
            return;
        }
        let parent = group_path::parent(&seat.path).unwrap_or_default();
        let flag = if file == "cpuset.cpus" { "cpuset.cpu_exclusive" } else { "cpuset.mem_exclusive" };
        let siblings = self.kernel.children(seat.at, parent).unwrap_or_default();
        let beside = siblings.iter().map(|name| group_path::join(parent, name));
        let exclusive = beside.filter(|path| *path != seat.path && read(path, flag) == "1");
        let free = exclusive.fold(list(parent), |free, path| free.difference(&list(&path)));
        if !free.is_empty() {
            let _ = self.kernel.write(seat.at, &seat.path, file, &free.to_string());
        }
    }

    /// The hierarchies that a create is about, each with the v2 controllers to enable.
    fn wanted(
        &self,
        controllers: Option<&[Controller]>,
    ) -> Result<Vec<(&Hierarchy, Vec<Controller>)>, Error> {
        let Some(controllers) = controllers else {
            let with_controller =
                |at: &&Hierarchy| at.controllers.iter().any(|controller| *controller != Controller::Core);
            let all = self.hierarchies().iter().filter(with_controller);
            return Ok(all.map(|at| (at, at.controllers.clone())).collect());
        };
        let mut wanted: BTreeMap<usize, Vec<Controller>> = BTreeMap::new();
        for &controller in controllers {
            let at = self.hierarchy_of(controller).ok_or_else(|| Error::NoController {
                controller,
                hint: missing_controller(self.kernel(), self.hierarchies(), controller),
            })?;
            wanted.entry(at.id).or_default().push(controller);
        }
        Ok(wanted.into_iter().map(|(id, controllers)| (&self.hierarchies()[id], controllers)).collect())
    }

    fn make_path<'h>(
        &'h self,
        at: &'h Hierarchy,
        group: &GroupName,
        made: &mut Vec<Seat<'h>>,
    ) -> Result<(), Error> {
        let seat = self.seat_in(at, group);
        if self.kernel.exists(at, &seat.path) {
            return Ok(());
        }
        for path in prefixes(&seat.path) {
            let seat = Seat { at, path: path.to_owned() };
            match self.kernel.mkdir(at, path) {
                Ok(()) => made.push(seat),
                Err(Errno::EXIST) if self.kernel.exists(at, path) => {}
                Err(errno) => return Err(self.refused(Op::Create, &seat, group, None, None, errno)),
            }
        }
        Ok(())
    }

    /// Enables controllers in every ancestor's `cgroup.subtree_control`. A controller that an ancestor does not
    /// have is an error only if it was named.
    fn enable<'h>(
        &'h self,
        at: &'h Hierarchy,
        group: &GroupName,
        controllers: &[Controller],
        optional: bool,
        enabled: &mut Vec<(Seat<'h>, String)>,
    ) -> Result<(), Error> {
        let path = self.seat_in(at, group).path;
        let mut ancestors: Vec<&str> = vec![""];
        ancestors.extend(prefixes(&path));
        ancestors.pop();
        let base = self.base(at).path();
        // those that a threaded group can have come last: with one of them a group that holds a process becomes the domain of
        // threads, and the next one's refusal would be about that
        let (threaded, first): (Vec<Controller>, Vec<Controller>) =
            controllers.iter().partition(|controller| is_threaded(**controller));
        let controllers = [first, threaded].concat();
        for ancestor in ancestors {
            let seat = Seat { at, path: ancestor.to_owned() };
            let available = self.read(&seat, group, CONTROLLERS)?;
            let present = self.read(&seat, group, SUBTREE_CONTROL)?;
            let has = |text: &str, name: &str| text.split_whitespace().any(|word| word == name);
            for name in controllers.iter().filter_map(|controller| controller.name(Version::V2)) {
                if has(&present, name) || (optional && !has(&available, name)) {
                    continue;
                }
                let write = format!("+{name}");
                match self.kernel.write(at, ancestor, SUBTREE_CONTROL, &write) {
                    Ok(()) => enabled.push((seat.clone(), format!("-{name}"))),
                    // above our base it is for its owner (systemd, a container's host) to enable
                    Err(_) if optional && !group_path::is_at_or_below(ancestor, base) => {}
                    // v2's cpu needs all real-time tasks in the root group, and the like: not requested by name
                    Err(Errno::INVAL) if optional => {}
                    Err(errno) => {
                        let file = Some(SUBTREE_CONTROL);
                        return Err(self.refused(Op::Write, &seat, group, file, Some(&write), errno));
                    }
                }
            }
        }
        Ok(())
    }

    fn own(&self, seat: &Seat<'_>, group: &GroupName, access: &Access) -> Result<(), Error> {
        if *access == Access::default() {
            return Ok(());
        }
        let change = |file: Option<&str>, who: Who, mode: Option<u32>| {
            let to = Ownership { uid: who.uid, gid: who.gid, mode };
            if to == Ownership::default() {
                return Ok(());
            }
            self.kernel
                .set_ownership(seat.at, &seat.path, file, to)
                .map_err(|errno| self.refused(Op::Own, seat, group, file, None, errno))
        };
        let listed = self.kernel.files(seat.at, &seat.path);
        let files = listed.map_err(|errno| self.refused(Op::List, seat, group, None, None, errno))?;
        for file in &files {
            if TASK_FILES.contains(&file.as_str()) {
                change(Some(file), access.tasks, access.tasks_mode)?;
            } else if access.admin_files.has(seat.at.version, file) {
                change(Some(file), access.admin, access.file_mode)?;
            } else {
                // what reaches beyond the group stays its keeper's alone to write
                change(Some(file), Who::default(), access.file_mode.map(|mode| mode & !0o022))?;
            }
        }
        change(None, access.admin, access.directory_mode)
    }

    fn unmake(&self, made: &[Seat<'_>], enabled: &[(Seat<'_>, String)]) {
        // the first error is what the user hears; what can't be undone here stays empty and harmless
        for seat in made.iter().rev() {
            let _ = self.kernel.rmdir(seat.at, &seat.path);
        }
        for (seat, write) in enabled.iter().rev() {
            let _ = self.kernel.write(seat.at, &seat.path, SUBTREE_CONTROL, write);
        }
    }

    /// The processes in one directory (of a threaded v2 group, the threads).
    pub fn tasks_in(&self, seat: &Seat<'_>) -> Vec<u32> {
        let read = |file| self.kernel.read(seat.at, &seat.path, file);
        let text = read("cgroup.procs").or_else(|_| read("cgroup.threads")).unwrap_or_default();
        let mut tasks: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        tasks.dedup();
        tasks
    }

    /// All groups below `below` (our groups' place, or `/` for everything), each with the hierarchies that have it.
    ///
    /// # Errors
    /// [`Error::Refused`] if a hierarchy's root can't be listed.
    pub fn list(&self, below: &GroupName) -> Result<BTreeMap<String, Vec<usize>>, Error> {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in self.hierarchies() {
            let seat = self.seat_in(at, below);
            let found = match self.kernel.descendants(at, &seat.path) {
                Ok(found) => found,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(self.refused(Op::List, &seat, below, None, None, errno)),
            };
            for path in found {
                let name = path.get(seat.path.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
                groups.entry(name).or_default().push(at.id);
            }
        }
        Ok(groups)
    }

    fn is_empty_cpuset(&self, seat: &Seat<'_>) -> bool {
        let empty =
            |file| self.kernel.read(seat.at, &seat.path, file).is_ok_and(|text| text.trim().is_empty());
        seat.at.version == Version::V1
            && seat.at.controllers.contains(&Controller::Cpuset)
            && (empty("cpuset.cpus") || empty("cpuset.mems"))
    }
}

/// `a/b/c` → `a`, `a/b`, `a/b/c`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain((!path.is_empty()).then_some(path))
}

/// Has a controller of v2 an effect in groups of threads (cgroup-v2.rst, Threads)?
fn is_threaded(controller: Controller) -> bool {
    matches!(controller, Controller::Cpu | Controller::Cpuset | Controller::Pids | Controller::PerfEvent)
}
