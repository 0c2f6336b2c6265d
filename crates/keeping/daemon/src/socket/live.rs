//! The service on this machine: settings and moves by `apply` and `kernel`, as a command does them, with a record of who
//! requested them; the main loop answers what only it knows. Each request looks at the hierarchies again: they come and
//! go.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use answers::Problem;
use answers::{
    SettingJson,
    socket::{
        Classification, Counters, GroupSummary, MovedProcesses, Reloaded, SettingChange, SettingReading,
        Status,
    },
};
use apply::{Reading, SettingValue};
use kernel::{GroupName, Host, Real, What};
use serde::Serialize;
use settings::{Access, DeviceNumber, Facts, NamedSetting};
use system::ProcessReader;
use units::Bytes;

use super::{
    Control, Peer, Rights, Service,
    assignments::Assignments,
    audit::{Audit, Line},
    visible::{View, shows_as_own},
};

/// The service on this machine.
#[derive(Debug)]
pub struct Live<C> {
    control: C,
    audit: Audit,
    /// By group, one change at a time: what one reads before it writes is not another's half. A change that takes long, as
    /// the kernel reclaims memory, delays no other group's.
    changing: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl<C: Control> Live<C> {
    /// `state`: the directory that records changes (`apply::STATE`).
    pub fn new(control: C, state: &Path) -> Live<C> {
        Live { control, audit: Audit::within(state), changing: Mutex::default() }
    }

    /// The way to the main loop.
    pub fn control(&self) -> &C {
        &self.control
    }

    fn turn_of(&self, group: &GroupName) -> Arc<Mutex<()>> {
        let mut turns = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // those that no request has or waits for
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(group.to_string()).or_default())
    }

    /// Makes a change, and records who requested what, and what came of it.
    fn audited<R: Serialize, D: Serialize>(
        &self,
        what: &'static str,
        group: &GroupName,
        requested: &R,
        peer: &Peer,
        change: impl FnOnce() -> Result<D, Problem>,
    ) -> Result<D, Problem> {
        let turn = self.turn_of(group);
        let _one = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |error| Problem::new(500, format!("cannot record who sent the request: {error}"));
        let mut audit = self.audit.open(peer.uid).map_err(|error| lost(error).hint("nothing was changed"))?;
        let by = peer.by();
        let result = change();
        let (done, refused) = match &result {
            Ok(done) => (Some(done), None),
            // nothing was written to the kernel: refused requests must not fill the file
            Err(Problem { status: 400 | 403 | 404, .. }) => return result,
            Err(problem) => (None, Some(problem.message.as_str())),
        };
        audit
            .write(&Line { by: &by, what, group: group.to_string(), requested, done, refused })
            .map_err(|error| lost(error).hint("the change was made"))?;
        result
    }
}

impl<C: Control> Service for Live<C> {
    fn rights(&self) -> Arc<Rights> {
        self.control.rights()
    }

    fn status(&self) -> Result<Status, Problem> {
        self.control.status()
    }

    fn counters(&self) -> Result<Counters, Problem> {
        self.control.counters()
    }

    fn groups(&self, peer: &Peer) -> Result<Vec<GroupSummary>, Problem> {
        let host = host()?;
        let mut view = View::of(peer);
        let mut listed = Vec::new();
        for (name, at) in host.list(&GroupName::base())? {
            let Ok(group) = GroupName::new(&name) else { continue };
            let hierarchies = at.into_iter().map(|id| &host.hierarchies()[id]);
            let seen = hierarchies.filter(|at| view.lists(&host.seat_in(at, &group).directory()));
            let hierarchies: Vec<String> = seen.map(kernel::Hierarchy::label).collect();
            if !hierarchies.is_empty() {
                listed.push(GroupSummary { group: name, hierarchies });
            }
        }
        Ok(listed)
    }

    fn get(
        &self,
        group: &GroupName,
        settings: &[NamedSetting],
        peer: &Peer,
    ) -> Result<Vec<SettingReading>, Problem> {
        let host = host()?;
        let mut view = View::of(peer);
        let seats = host.existing(group).map_err(|error| missing(error, peer))?;
        if !seats.iter().any(|seat| view.lists(&seat.directory())) {
            return Err(unseen(group, peer));
        }
        if settings.is_empty() {
            let known = settings::all().filter(|setting| setting.access == Access::ReadWrite);
            let readings = known.filter_map(|setting| {
                let found = settings::find(setting.name).ok()?;
                let reading = apply::get(&host, group, &found).ok()?;
                reading.files.iter().all(|file| view.reads(file)).then(|| read(&found, &reading))
            });
            return Ok(readings.collect());
        }
        let one = |found: &NamedSetting| {
            let reading = apply::get(&host, group, found)?;
            if reading.files.iter().all(|file| view.reads(file)) {
                return Ok(read(found, &reading));
            }
            Err(Problem::forbidden(format!(
                "user {} may not read {} of group '{group}'",
                peer.uid, found.name
            )))
        };
        settings.iter().map(one).collect()
    }

    fn set(
        &self,
        group: &GroupName,
        values: Vec<(NamedSetting, String)>,
        peer: &Peer,
    ) -> Result<Vec<SettingChange>, Problem> {
        let named = values.iter().map(|(found, text)| (found.name.clone(), text.clone()));
        let requested = Assignments(named.collect());
        self.audited("set", group, &requested, peer, || {
            let host = host()?;
            let (mut requests, mut warnings) = (Vec::new(), HashMap::new());
            for (found, text) in values {
                let (value, warned) = SettingValue::of(found, &text, &For(peer))?;
                warnings.insert(value.found.name.clone(), warned);
                requests.push(value.request(&host, group)?);
            }
            let changes = apply::set(&host, &requests)?.into_iter();
            let changes = changes.map(|change| {
                let warnings = warnings.remove(&change.setting).unwrap_or_default();
                SettingChange::of(change, warnings)
            });
            Ok(changes.collect())
        })
    }

    fn move_processes(
        &self,
        group: &GroupName,
        pids: &[u32],
        peer: &Peer,
    ) -> Result<MovedProcesses, Problem> {
        self.audited("move", group, &pids, peer, || {
            let host = host()?;
            let before = pids.iter().map(|pid| own(&host, *pid, peer)).collect::<Result<Vec<_>, _>>()?;
            // a PID may be reused meanwhile by another user's process
            let is_same = |index: &usize| kernel::started(pids[*index]) == Some(before[*index]);
            let (same, ended): (Vec<usize>, Vec<usize>) = (0..pids.len()).partition(is_same);
            let living: Vec<u32> = same.into_iter().map(|index| pids[index]).collect();
            let moved = host.move_tasks(group, &living, What::Process)?;
            let mut gone = moved.gone;
            gone.extend(ended.into_iter().map(|index| pids[index]));
            // a process that is no longer the one that was checked had ended
            let (same, other): (Vec<u32>, Vec<u32>) = moved.tasks.into_iter().partition(|pid| {
                let checked = pids.iter().position(|requested| requested == pid);
                checked.is_some_and(|index| kernel::started(*pid) == Some(before[index]))
            });
            gone.extend(other);
            let directories = moved.directories.iter().map(|path| path.display().to_string()).collect();
            Ok(MovedProcesses { moved: same, gone, directories })
        })
    }

    fn reload(&self, peer: &Peer) -> Result<Reloaded, Problem> {
        self.control.reload(peer.by())
    }

    fn classify(&self, pid: u32, peer: &Peer) -> Result<Classification, Problem> {
        if !shows_as_own(peer, pid) {
            return Err(Problem::forbidden(format!("process {pid} is not of user {}", peer.uid)));
        }
        self.control.classify(pid)
    }
}

fn host() -> Result<Host, Problem> {
    Ok(Host::new(Box::new(Real::new()))?)
}

/// A process that the peer may move: whose users all are the peer's, so that no program that runs with another's rights is
/// taken along. Returns when it started.
fn own(host: &Host, pid: u32, peer: &Peer) -> Result<u64, Problem> {
    let mut reader = ProcessReader::new();
    // open by its directory: what is read now is all of one process
    let mut process = reader.process(pid)?;
    let started = process.stat()?.started;
    if peer.is_root() {
        return Ok(started);
    }
    let real = host.kernel().process(pid).map_err(|_| system::NoProcess { pid })?.uid;
    let status = process.status()?;
    if status.process != pid {
        return Err(Problem::invalid(format!("{pid} is a thread of process {}", status.process)));
    }
    if (status.uid, real) != (peer.uid, peer.uid) {
        return Err(Problem::forbidden(format!("process {pid} is not of user {}", peer.uid))
            .hint("only one's own processes are put into a group"));
    }
    // still the same, after its real user was read by its number
    reader
        .process(pid)?
        .stat()
        .ok()
        .filter(|stat| stat.started == started)
        .ok_or(system::NoProcess { pid })?;
    Ok(started)
}

/// Near names are for those who may list them.
fn missing(error: kernel::Error, peer: &Peer) -> Problem {
    match error {
        kernel::Error::NoGroup { group, .. } if !peer.is_root() => unseen(&group, peer),
        error => error.into(),
    }
}

/// The same answer whether there is such a group or not: no user learns the names in a directory that he may not list.
fn unseen(group: &impl std::fmt::Display, peer: &Peer) -> Problem {
    Problem::new(404, format!("group '{group}' does not exist, or user {} may not see it", peer.uid))
}

fn read(found: &NamedSetting, reading: &Reading) -> SettingReading {
    SettingReading {
        setting: found.name.clone(),
        canonical: found.canonical(),
        value: SettingJson::from(&reading.value),
        text: found.show(&reading.value),
        version: reading.place.version.into(),
        files: reading.files.iter().map(|file| file.display().to_string()).collect(),
    }
}

/// What values may need to know of the machine, for a peer. A path is looked up only where others than root can put
/// nothing: else the daemon would reveal what is in directories that the peer can't see, or wait for a file system of the
/// peer's own.
struct For<'p>(&'p Peer);

impl Facts for For<'_> {
    fn memory(&self) -> Option<Bytes> {
        system::Live.memory()
    }

    fn cpus(&self) -> Option<usize> {
        system::Live.cpus()
    }

    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        if self.0.is_root() || is_of_roots_directories(path) {
            return system::Live.device(path);
        }
        Err(format!("{path}: for others than root, a device is /dev/NAME, /dev/mapper/NAME or MAJOR:MINOR"))
    }
}

fn is_of_roots_directories(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    let name = name.strip_prefix("mapper/").unwrap_or(name);
    !name.is_empty() && !name.contains('/') && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_somebody_else_is_not_looked_up_for_him() {
        let stranger = Peer { uid: 65534, gid: 65534, pid: 1, groups: Vec::new() };
        for path in
            ["/root", "/etc/shadow", "/dev/shm/x", "/dev/../root", "/dev/..", "/dev/", "/dev/mapper/../x"]
        {
            let refused = For(&stranger).device(path).unwrap_err();
            assert!(refused.contains("for others than root"), "{path}: {refused}");
        }
        assert!(is_of_roots_directories("/dev/sda") && is_of_roots_directories("/dev/mapper/vg-data"));
    }

    struct Nothing;

    impl Control for Nothing {
        fn rights(&self) -> Arc<Rights> {
            Arc::default()
        }

        fn status(&self) -> Result<Status, Problem> {
            Err(Problem::new(503, "nothing"))
        }

        fn counters(&self) -> Result<Counters, Problem> {
            Err(Problem::new(503, "nothing"))
        }

        fn reload(&self, _: apply::By) -> Result<Reloaded, Problem> {
            Err(Problem::new(503, "nothing"))
        }

        fn classify(&self, _: u32) -> Result<Classification, Problem> {
            Err(Problem::new(503, "nothing"))
        }
    }

    /// Attack finding 26: a change that waits for the kernel to reclaim memory.
    #[test]
    fn a_slow_change_of_one_group_delays_no_other_group() {
        let directory = tempfile::tempdir().unwrap();
        let live = Live::new(Nothing, directory.path());
        let root = Peer { uid: 0, gid: 0, pid: 1, groups: Vec::new() };
        let admin = Peer { uid: 1000, gid: 1000, pid: 1, groups: Vec::new() };
        let [slow, other] = ["slow", "other"].map(|name| GroupName::new(name).unwrap());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (live, admin, slow) = (&live, &admin, &slow);
            let change = move || {
                begin.send(()).unwrap();
                ended.recv().unwrap();
                Ok(())
            };
            let slowly = scope.spawn(move || live.audited("set", slow, &(), admin, change));
            begun.recv().unwrap();
            let (made, is_made) = std::sync::mpsc::channel();
            let (root, other) = (&root, &other);
            scope.spawn(move || {
                made.send(live.audited("set", other, &(), root, || Ok(()))).unwrap();
            });
            // one that waits goes on after the slow one
            let made = is_made.recv_timeout(std::time::Duration::from_secs(30));
            assert!(live.turn_of(slow).try_lock().is_err(), "the same group waits");
            end.send(()).unwrap();
            slowly.join().unwrap().unwrap();
            made.unwrap().unwrap();
        });
    }
}
