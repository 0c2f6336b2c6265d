//! The host as one thing: its hierarchies, where our groups live in each, and the way from a group's name and a
//! controller to a real directory.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use settings::{Controller, Version};
use topology::facts::{self, Base, ControllerRow, UNIT_NAME};
use units::nearest;

use crate::{Error, GroupName, Hierarchy, Kernel, mounts, owners::systemd_manages, unit::unit_of};

/// One real directory of a group: a hierarchy and the path in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat<'h> {
    /// The hierarchy.
    pub at: &'h Hierarchy,
    /// The path below its mount.
    pub path: String,
}

impl Seat<'_> {
    /// The directory as the user finds it.
    pub fn directory(&self) -> PathBuf {
        self.at.path(&self.path)
    }
}

/// A kernel with its hierarchies and the places of our groups.
pub struct Host {
    pub(crate) kernel: Box<dyn Kernel>,
    hierarchies: Vec<Hierarchy>,
    /// Looked at when first requested: a command that names one controller touches one hierarchy.
    bases: Vec<OnceCell<Base>>,
    pub(crate) systemd: bool,
}

impl Host {
    /// Looks at the kernel's hierarchies and decides where groups live in each.
    ///
    /// # Errors
    /// [`Error::NoHierarchy`] if none is mounted, [`Error::Outside`] if the mounts can't be read.
    pub fn new(kernel: Box<dyn Kernel>) -> Result<Host, Error> {
        let host = Host::even_without_hierarchies(kernel)?;
        if host.hierarchies.is_empty() { Err(Error::NoHierarchy) } else { Ok(host) }
    }

    /// As [`Host::new`], also where none is mounted: for what mounts some, or has found them unmounted again.
    ///
    /// # Errors
    /// [`Error::Outside`] if the mounts can't be read.
    pub fn even_without_hierarchies(kernel: Box<dyn Kernel>) -> Result<Host, Error> {
        let hierarchies = kernel.hierarchies().map_err(|errno| Error::Outside {
            what: "cannot read /proc/self/mountinfo".to_owned(),
            errno,
            hint: Some(
                if errno == Errno::MFILE { "ulimit -n 1024" } else { "mount -t proc proc /proc" }.to_owned(),
            ),
        })?;
        // sd_booted(3): this directory is there if and only if systemd is init
        let systemd = kernel.outside(Path::new("/run/systemd/system")) == Err(Errno::ISDIR);
        let bases = hierarchies.iter().map(|_| OnceCell::new()).collect();
        Ok(Host { kernel, hierarchies, bases, systemd })
    }

    /// The kernel itself.
    pub fn kernel(&self) -> &dyn Kernel {
        self.kernel.as_ref()
    }

    /// All hierarchies, v1 first.
    pub fn hierarchies(&self) -> &[Hierarchy] {
        &self.hierarchies
    }

    /// All mount points of a hierarchy, in mount order; the one that is used here is [`Hierarchy::mount`].
    pub fn mount_points(&self, at: &Hierarchy) -> Vec<PathBuf> {
        let mountinfo = self.kernel.outside(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        mounts::points(&mountinfo, at)
    }

    /// Whatever is mounted at a path, which leads through no link, or below it.
    ///
    /// # Errors
    /// [`Error::Outside`]: the mounts can't be read.
    pub fn mounts_in(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let mountinfo = self.kernel.outside(Path::new("/proc/self/mountinfo"));
        let what = || "cannot read /proc/self/mountinfo".to_owned();
        let mountinfo = mountinfo.map_err(|errno| Error::Outside { what: what(), errno, hint: None })?;
        Ok(mounts::within(&mountinfo, path))
    }

    /// All hierarchies, v2 among the others where it was mounted.
    pub fn in_mount_order(&self) -> Vec<&Hierarchy> {
        let mountinfo = self.kernel.outside(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        let mut hierarchies: Vec<&Hierarchy> = self.hierarchies.iter().collect();
        hierarchies.sort_by_cached_key(|at| mounts::position(&mountinfo, at));
        hierarchies
    }

    /// The controllers that the kernel lists, in its order; empty without `/proc`.
    pub fn listed(&self) -> Vec<ControllerRow> {
        facts::listed(&self.kernel.outside(Path::new("/proc/cgroups")).unwrap_or_default())
    }

    /// Where our groups live in a hierarchy.
    pub fn base(&self, at: &Hierarchy) -> &Base {
        self.bases[at.id].get_or_init(|| base(self.kernel.as_ref(), at, self.systemd))
    }

    /// Is systemd init?
    pub fn has_systemd(&self) -> bool {
        self.systemd
    }

    /// Do our groups live below a unit that systemd must make?
    pub fn needs_unit(&self) -> bool {
        let requested = self.systemd && self.kernel.caller().1 == 0;
        requested && self.hierarchies.iter().any(|at| *self.base(at) == Base::Unit)
    }

    /// The hierarchy that holds a controller: chosen per controller, v1 before v2 as the kernel gives it to only
    /// one of them. `Core` is v2's, where that is mounted, else the first v1 hierarchy. The freezer and the
    /// device filter are part of v2's core where no v1 hierarchy has them.
    pub fn hierarchy_of(&self, controller: Controller) -> Option<&Hierarchy> {
        let holds = |at: &&Hierarchy| at.controllers.contains(&controller);
        let v2 = || self.hierarchies.iter().find(|at| at.version == Version::V2);
        let in_core = matches!(
            controller,
            Controller::Core
                | Controller::Freezer
                | Controller::Devices
                | Controller::Cpuacct
                | Controller::PerfEvent
        );
        let v1 =
            || self.hierarchies.iter().find(|at| at.version == Version::V1 && controller == Controller::Core);
        self.hierarchies.iter().find(holds).or_else(|| in_core.then(v2).flatten()).or_else(v1)
    }

    /// The directory that a group has, or would have, in a hierarchy.
    pub fn seat_in<'h>(&'h self, at: &'h Hierarchy, group: &GroupName) -> Seat<'h> {
        Seat { at, path: group.below(self.base(at).path()) }
    }

    /// The directories that a group has now; empty if it does not exist.
    pub fn seats(&self, group: &GroupName) -> Vec<Seat<'_>> {
        self.hierarchies
            .iter()
            .map(|at| self.seat_in(at, group))
            .filter(|seat| self.kernel.exists(seat.at, &seat.path))
            .collect()
    }

    /// The directories that a group has now.
    ///
    /// # Errors
    /// [`Error::NoGroup`] with names near to it.
    pub fn existing(&self, group: &GroupName) -> Result<Vec<Seat<'_>>, Error> {
        let seats = self.seats(group);
        if seats.is_empty() { Err(self.no_group(group)) } else { Ok(seats) }
    }

    /// The group's directory where `controller` lives.
    ///
    /// # Errors
    /// [`Error::NoController`], [`Error::NoGroup`], [`Error::NotControlled`].
    pub fn seat(&self, group: &GroupName, controller: Controller) -> Result<Seat<'_>, Error> {
        let Some(at) = self.hierarchy_of(controller) else {
            return Err(Error::NoController {
                controller,
                hint: missing_controller(self.kernel(), self.hierarchies(), controller),
            });
        };
        let seat = self.seat_in(at, group);
        if self.kernel.exists(at, &seat.path) {
            return Ok(seat);
        }
        if self.seats(group).is_empty() {
            return Err(self.no_group_at(group, &seat));
        }
        let name = controller.name(at.version).unwrap_or("unified");
        Err(Error::NotControlled {
            group: group.to_string(),
            controller: name.to_owned(),
            path: seat.directory(),
        })
    }

    /// Is the group there, in this hierarchy?
    ///
    /// # Errors
    /// [`Error::NoGroup`] if it is in no hierarchy, [`Error::NotControlled`] if it is in others only.
    pub fn refuse_missing(&self, seat: &Seat<'_>, group: &GroupName) -> Result<(), Error> {
        if self.kernel.exists(seat.at, &seat.path) {
            return Ok(());
        }
        let (controller, path) = (seat.at.label(), seat.directory());
        if self.seats(group).is_empty() {
            return Err(self.no_group_at(group, seat));
        }
        Err(Error::NotControlled { group: group.to_string(), controller, path })
    }

    /// As [`Host::no_group`], where only one hierarchy was requested.
    fn no_group_at(&self, group: &GroupName, seat: &Seat<'_>) -> Error {
        match self.no_group(group) {
            Error::NoGroup { group, near, .. } => {
                Error::NoGroup { group, looked: vec![seat.directory()], near }
            }
            other => other,
        }
    }

    /// The group that a path of a directory stands for, as `/sys/fs/cgroup/cpu/db`.
    fn by_directory(&self, group: &GroupName) -> Option<String> {
        let path = PathBuf::from("/").join(group.path());
        self.hierarchies.iter().find_map(|at| {
            let below = path.strip_prefix(&at.mount).ok()?.to_str()?;
            let is_there = !below.is_empty() && self.kernel.exists(at, below);
            is_there.then(|| self.named(at, below))
        })
    }

    fn no_group(&self, group: &GroupName) -> Error {
        let known: std::collections::BTreeSet<String> = self
            .hierarchies
            .iter()
            .filter_map(|at| {
                let base = self.base(at).path();
                let found = self.kernel.descendants(at, base).ok()?;
                Some(found.into_iter().map(move |path| match base {
                    "" => path,
                    base => path[base.len()..].trim_start_matches('/').to_owned(),
                }))
            })
            .flatten()
            .collect();
        let mut looked: Vec<PathBuf> =
            self.hierarchies.iter().map(|at| self.seat_in(at, group).directory()).collect();
        if looked.len() > 2 {
            looked.truncate(1);
        }
        let name = group.to_string();
        let units = if group.is_from_root() { Vec::new() } else { self.units() };
        let service = format!("{name}.service");
        let by_directory = self.by_directory(group);
        let near = match (by_directory, units.iter().any(|(unit, _)| *unit == service)) {
            (Some(group), _) => vec![group],
            (None, true) => vec![service],
            (None, false) => {
                let known = known.iter().chain(units.iter().map(|(unit, _)| unit));
                nearest(&name, known.map(String::as_str)).into_iter().map(str::to_owned).collect()
            }
        };
        Error::NoGroup { group: name, looked, near }
    }

    /// A path below a hierarchy's mount as the user writes it: below our place without, elsewhere with a leading
    /// slash.
    pub fn named(&self, at: &Hierarchy, path: &str) -> String {
        let base = self.base(at).path();
        match path.strip_prefix(base) {
            _ if path.is_empty() => GroupName::root().to_string(),
            Some(rest) if base.is_empty() => rest.to_owned(),
            Some(rest) if rest.starts_with('/') => rest[1..].to_owned(),
            _ => format!("/{path}"),
        }
    }

    /// The service that a process runs in on a systemd host, if it is not ours.
    pub(crate) fn service_of(&self, pid: u32) -> Option<String> {
        let mut managed = self.hierarchies.iter().filter(|at| self.systemd && systemd_manages(at));
        let path = managed.find_map(|at| self.kernel.group_of(at, pid).ok())?;
        // processes of sessions and scopes may leave: nothing restarts or counts them by their group
        let is_supervised = |unit: &String| unit.ends_with(".service") || unit == "init.scope";
        unit_of(&path).filter(|unit| is_supervised(unit) && unit != UNIT_NAME && !unit.starts_with("user@"))
    }
}

/// What would bring a controller that no mounted hierarchy has.
pub(crate) fn missing_controller(
    kernel: &dyn Kernel,
    hierarchies: &[Hierarchy],
    controller: Controller,
) -> String {
    let name = controller.name(Version::V1);
    let v2_name = controller.name(Version::V2).unwrap_or_default();
    let known = kernel.outside(Path::new("/proc/cgroups")).unwrap_or_default();
    let line = known.lines().find(|line| line.split_whitespace().next() == name && name.is_some());
    let v2 = hierarchies.iter().find(|at| at.version == Version::V2);
    match (line.map(|line| line.split_whitespace().nth(3) == Some("1")), name) {
        (Some(true), Some(name)) => {
            format!("ringfence mount {name} mounts it as a v1 hierarchy, if no v2 group uses it")
        }
        (Some(false), Some(name)) => {
            format!(
                "it is off: remove cgroup_disable={name} from the kernel's command line (or add cgroup_enable={name})"
            )
        }
        _ if v2.is_some() && !v2_name.is_empty() => {
            "this kernel's cgroup v2 does not offer it; ringfence settings shows what does".to_owned()
        }
        _ => "this kernel was built without it; ringfence doctor shows what it has".to_owned(),
    }
}

/// Decides where groups live in one hierarchy, from what is seen there.
pub fn base(kernel: &dyn Kernel, at: &Hierarchy, systemd: bool) -> Base {
    if systemd && systemd_manages(at) && at.root == "/" && kernel.caller().1 == 0 {
        return Base::Unit;
    }
    if kernel.writable(at, "") {
        return Base::Root;
    }
    let own = kernel.group_of(at, kernel.caller().0).ok().and_then(|path| at.below_mount(&path));
    match own {
        Some(own) if !own.is_empty() && kernel.writable(at, &own) => Base::Own(own),
        // a group below it may have been given to the caller
        _ if systemd && systemd_manages(at) && kernel.exists(at, Base::Unit.path()) => Base::Unit,
        _ => Base::Root,
    }
}
