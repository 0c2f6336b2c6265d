//! Groups in the group of a service, as its drop-in file has them ([`plan::Inside`]): made while the service runs, and
//! removed. Both can be repeated.

use kernel::{Error, GroupName, Hierarchy, Host, Op, Seat};
use layout::UnitName;
use plan::{Inside, MAIN, Place, target_key};
use rustix::io::Errno;
use settings::Version;
use units::group_path;

use crate::{UnitFiles, inverse, performer::SUBTREE_CONTROL, unit_files::has_own_file};

const PROCESSES: &str = "cgroup.procs";
/// How often processes are looked at again, as they may have forked meanwhile.
const MAX_PASSES: usize = 64;

/// The service's group that a group is in, where that is none of ours.
pub(crate) fn service_above(host: &Host, place: &Place) -> Option<Place> {
    let base = host.hierarchies().get(place.hierarchy).map(|at| host.base(at).path().to_owned());
    let is_ours = base.is_some_and(|base| !base.is_empty() && group_path::is_at_or_below(&place.path, &base));
    if is_ours { None } else { plan::service_above(place) }
}

/// The groups of the units that run of those whose drop-in file it is: of a template all that have none of their own. Each with
/// its unit's name. `place`: where the group is, or would be.
pub fn running_units(
    host: &Host,
    (unit, place): (&str, &Place),
    files: &dyn UnitFiles,
) -> Vec<(String, Place)> {
    let Some(at) = host.hierarchies().get(place.hierarchy) else { return Vec::new() };
    let Some(template) = UnitName::of_file_name(unit).ok().filter(UnitName::is_pattern) else {
        let is_there = host.kernel().exists(at, &place.path);
        return is_there.then(|| (unit.to_owned(), place.clone())).into_iter().collect();
    };
    let above = group_path::parent(&place.path).unwrap_or_default();
    let mut names = host.kernel().children(at, above).unwrap_or_default();
    names.retain(|name| template.fits(name) && !has_own_file(files, name));
    let unit_of = |name: String| {
        let path = group_path::join(above, &name);
        (name, Place { path, ..place.clone() })
    };
    names.into_iter().map(unit_of).collect()
}

/// The writes that make a file what it is in a new group, as far as `text` changed it.
fn unset(file: &str, text: &str) -> Vec<(String, String)> {
    let initial = settings::initial(Version::V2, file);
    let plain = || initial.map(|initial| vec![(file.to_owned(), initial.to_owned())]).unwrap_or_default();
    inverse::restoring(Version::V2, file, text, initial.unwrap_or_default()).unwrap_or_else(plain)
}

/// A service's group on v2.
pub struct Divided<'h> {
    host: &'h Host,
    at: &'h Hierarchy,
    path: String,
}

impl<'h> Divided<'h> {
    /// At this path below the mount; `None` if it is not there: the service does not run.
    pub fn new(host: &'h Host, at: &'h Hierarchy, path: &str) -> Option<Divided<'h>> {
        host.kernel().exists(at, path).then(|| Divided { host, at, path: path.to_owned() })
    }

    /// Are all its groups there?
    pub fn is_made(&self, inside: &Inside) -> bool {
        inside.groups.keys().all(|name| self.has(name))
    }

    /// Makes the groups that are missing, with their settings. All processes in the service's own group go to [`MAIN`]: v2 has
    /// them only where there are no groups.
    ///
    /// # Errors
    /// The kernel's refusal; what was made stays.
    pub fn make(&self, inside: &Inside) -> Result<(), Error> {
        self.unless_stopped(self.make_all(inside))
    }

    fn make_all(&self, inside: &Inside) -> Result<(), Error> {
        self.make_group(MAIN)?;
        if !inside.starts_in_main && self.is_starting() {
            return Ok(());
        }
        self.hand_down(inside)?;
        for (name, writes) in &inside.groups {
            self.make_group(name)?;
            for (file, text) in writes {
                let is_so = self.read(name, file).is_some_and(|now| now.trim() == text.trim());
                if !is_so {
                    self.write(name, file, text)?;
                }
            }
        }
        Ok(())
    }

    /// Has no process of the service come yet? One that systemd puts into the service's own group is refused once that hands down
    /// controllers.
    fn is_starting(&self) -> bool {
        let mut names = ["", MAIN].into_iter();
        names.all(|name| self.host.tasks_in(&Seat { at: self.at, path: self.at_name(name) }).is_empty())
    }

    /// A service that stopped meanwhile has no groups.
    fn unless_stopped(&self, done: Result<(), Error>) -> Result<(), Error> {
        done.or_else(|error| if self.host.kernel().exists(self.at, &self.path) { Err(error) } else { Ok(()) })
    }

    /// Ends the groups that are no more: all of them if `then` is `None`. Their processes go to [`MAIN`], or back to the service's own
    /// group.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn end(&self, was: &Inside, then: Option<&Inside>) -> Result<(), Error> {
        self.unless_stopped(self.end_all(was, then))
    }

    fn end_all(&self, was: &Inside, then: Option<&Inside>) -> Result<(), Error> {
        self.reset(was, then)?;
        let stays = |name: &str| then.is_some_and(|then| then.groups.contains_key(name));
        let handed = self.read("", SUBTREE_CONTROL).unwrap_or_default();
        let mut needed = then.map(Inside::controllers).unwrap_or_default();
        // what it hands down besides is not ours; but with that its own group can't have the processes back
        if then.is_some() {
            needed.extend(handed.split_whitespace().filter(|name| !was.controllers().contains(name)));
        }
        let off =
            handed.split_whitespace().filter(|name| !needed.contains(name)).map(|name| format!("-{name}"));
        let off: Vec<String> = off.collect();
        self.take_back(&off)?;
        let (mut gone, main): (Vec<&String>, Vec<&String>) =
            was.groups.keys().filter(|name| !stays(name)).partition(|name| *name != MAIN);
        gone.extend(main);
        let to = if then.is_some() { MAIN } else { "" };
        for name in gone.into_iter().filter(|name| self.has(name)) {
            self.remove(name, to)?;
        }
        Ok(())
    }

    /// Hands down no longer: `-NAME` of each controller.
    fn take_back(&self, off: &[String]) -> Result<(), Error> {
        if off.is_empty() {
            return Ok(());
        }
        // what the service's user made below may hand them down
        for path in self.below("") {
            let handed = self.host.kernel().read(self.at, &path, SUBTREE_CONTROL).unwrap_or_default();
            let own = off.iter().filter(|name| handed.split_whitespace().any(|one| one == &name[1..]));
            let own: Vec<&str> = own.map(String::as_str).collect();
            if !own.is_empty() {
                let _ = self.host.kernel().write(self.at, &path, SUBTREE_CONTROL, &own.join(" "));
            }
        }
        self.write("", SUBTREE_CONTROL, &off.join(" "))
    }

    /// The groups below one, the deepest first.
    fn below(&self, name: &str) -> Vec<String> {
        let mut below = self.host.kernel().descendants(self.at, &self.at_name(name)).unwrap_or_default();
        below.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
        below
    }

    /// What groups that stay no longer are to have is as in a new group.
    fn reset(&self, was: &Inside, then: Option<&Inside>) -> Result<(), Error> {
        let Some(then) = then else { return Ok(()) };
        for (name, writes) in &was.groups {
            let Some(stays) = then.groups.get(name).filter(|_| self.has(name)) else { continue };
            let key = |(file, text): &(String, String)| (file.clone(), target_key(file, text).to_owned());
            let gone = writes.iter().filter(|write| !stays.iter().any(|stays| key(stays) == key(write)));
            for (file, text) in gone.filter(|(file, _)| self.read(name, file).is_some()) {
                for (file, text) in unset(file, text) {
                    self.write(name, &file, &text)?;
                }
            }
        }
        Ok(())
    }

    /// Hands down what the groups need.
    fn hand_down(&self, inside: &Inside) -> Result<(), Error> {
        let mut before = Vec::new();
        for pass in 0.. {
            before.extend(self.untangle()?);
            self.empty("", MAIN)?;
            let handed = self.read("", SUBTREE_CONTROL).unwrap_or_default();
            let handed: Vec<&str> = handed.split_whitespace().collect();
            let mut needed = inside.controllers();
            needed.extend(before.iter().map(String::as_str));
            let missing = needed.into_iter().filter(|name| !handed.contains(name));
            let missing: Vec<String> = missing.map(|name| format!("+{name}")).collect();
            if missing.is_empty() {
                return Ok(());
            }
            let text = missing.join(" ");
            let written = self.host.kernel().write(self.at, &self.path, SUBTREE_CONTROL, &text);
            match written {
                // a child that was forked before its parent was moved
                Err(Errno::BUSY) if pass < MAX_PASSES => {}
                Err(errno) => {
                    return Err(self.refused("", Some((SUBTREE_CONTROL, &text)), Op::Write, errno));
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn make_group(&self, name: &str) -> Result<(), Error> {
        match self.host.kernel().mkdir(self.at, &self.at_name(name)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.refused(name, None, Op::Create, errno)),
        }
    }

    fn remove(&self, name: &str, to: &str) -> Result<(), Error> {
        for _ in 0..MAX_PASSES {
            self.remove_below(name, to)?;
            self.empty(name, to)?;
            match self.host.kernel().rmdir(self.at, &self.at_name(name)) {
                Err(Errno::BUSY) => {}
                Err(errno) if errno != Errno::NOENT => {
                    return Err(self.refused(name, None, Op::Delete, errno));
                }
                _ => return Ok(()),
            }
        }
        Err(self.refused(name, None, Op::Delete, Errno::BUSY))
    }

    /// The service's user may have made groups in one of ours.
    fn remove_below(&self, name: &str, to: &str) -> Result<(), Error> {
        for path in self.below(name) {
            let inner = path.strip_prefix(&self.path).unwrap_or_default().trim_start_matches('/').to_owned();
            self.empty(&inner, to)?;
            // one that was made meanwhile is seen by the next pass
            let _ = self.host.kernel().rmdir(self.at, &path);
        }
        Ok(())
    }

    /// A service's group that is threaded, as when its user handed controllers down beside processes or made a threaded group, has no
    /// group in it that takes a process. Returns what it handed down before that was ended.
    fn untangle(&self) -> Result<Vec<String>, Error> {
        let is = |path: &str, kind: &str| {
            let found = self.host.kernel().read(self.at, path, "cgroup.type");
            found.is_ok_and(|found| found.trim() == kind)
        };
        if !is(&self.at_name(MAIN), "domain invalid") {
            return Ok(Vec::new());
        }
        let handed = self.read("", SUBTREE_CONTROL).unwrap_or_default();
        let handed: Vec<String> = handed.split_whitespace().map(str::to_owned).collect();
        self.take_back(&handed.iter().map(|name| format!("-{name}")).collect::<Vec<_>>())?;
        for name in self.host.kernel().children(self.at, &self.path).unwrap_or_default() {
            if is(&self.at_name(&name), "threaded") {
                self.remove(&name, "")?;
            }
        }
        Ok(handed)
    }

    /// Moves all processes of one group into another.
    fn empty(&self, from: &str, to: &str) -> Result<(), Error> {
        let seat = Seat { at: self.at, path: self.at_name(from) };
        for _ in 0..MAX_PASSES {
            let tasks = self.host.tasks_in(&seat);
            if tasks.is_empty() {
                return Ok(());
            }
            for pid in tasks {
                match self.host.kernel().write(self.at, &self.at_name(to), PROCESSES, &pid.to_string()) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(errno) => {
                        return Err(self.refused(
                            to,
                            Some((PROCESSES, &pid.to_string())),
                            Op::Move { pid },
                            errno,
                        ));
                    }
                }
            }
        }
        let left = self.host.tasks_in(&seat).len();
        Err(Error::ForkFaster { group: self.named(from).to_string(), moved: 0, left })
    }

    fn has(&self, name: &str) -> bool {
        self.host.kernel().exists(self.at, &self.at_name(name))
    }

    fn read(&self, name: &str, file: &str) -> Option<String> {
        self.host.kernel().read(self.at, &self.at_name(name), file).ok()
    }

    fn write(&self, name: &str, file: &str, text: &str) -> Result<(), Error> {
        let written = self.host.kernel().write(self.at, &self.at_name(name), file, text);
        written.map_err(|errno| self.refused(name, Some((file, text)), Op::Write, errno))
    }

    fn at_name(&self, name: &str) -> String {
        if name.is_empty() { self.path.clone() } else { group_path::join(&self.path, name) }
    }

    fn named(&self, name: &str) -> GroupName {
        GroupName::new(&format!("/{}", self.at_name(name))).unwrap_or_else(|_| GroupName::root())
    }

    fn refused(&self, name: &str, written: Option<(&str, &str)>, op: Op, errno: Errno) -> Error {
        let seat = Seat { at: self.at, path: self.at_name(name) };
        let (file, text) = written.map_or((None, None), |(file, text)| (Some(file), Some(text)));
        self.host.refused(op, &seat, &self.named(name), file, text, errno)
    }
}
