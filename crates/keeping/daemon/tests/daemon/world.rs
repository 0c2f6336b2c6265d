//! What a case needs: a directory with programs and configuration of its own, groups that only it has, processes that it
//! started, and a daemon that follows its rules. All of it goes when the case ends, also if it fails.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use kernel::{GroupName, Host, What};
use rustix::process::{Pid, Signal, kill_process};
use settings::Controller;
use system::ProcessReader;

use crate::{daemon_process::DAEMON, host};

pub struct World {
    pub directory: PathBuf,
    pub host: Host,
    name: String,
    groups: Vec<String>,
}

pub struct Daemon {
    child: Option<Child>,
    directory: PathBuf,
}

/// A process that is killed in the end.
pub struct Running(pub Child);

impl World {
    pub fn new() -> World {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let name = format!("rf-test-d{}-{}", std::process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        World { directory, host: host::host(), name, groups: Vec::new() }
    }

    /// The name of a group of ours.
    pub fn group_name(&mut self, last: &str) -> String {
        let name = format!("{}-{last}", self.name);
        self.groups.push(name.clone());
        name
    }

    /// A group that is there.
    pub fn group(&mut self, last: &str) -> String {
        self.group_of(Controller::Pids, last)
    }

    /// The same where this controller is.
    pub fn group_of(&mut self, controller: Controller, last: &str) -> String {
        let name = self.group_name(last);
        let group = GroupName::new(&name).unwrap();
        self.host.create(&group, Some(&[controller]), &kernel::Access::default()).unwrap();
        name
    }

    /// A copy of a program in `PATH` that nobody else runs. A VM brings real ones there: busybox's know themselves by
    /// their names alone.
    pub fn copy(&self, of: &str, last: &str) -> PathBuf {
        let path = self.directory.join(format!("{}-{last}", self.name));
        let places = std::env::var("PATH").unwrap();
        let found = places.split(':').map(|at| Path::new(at).join(of)).find(|file| file.is_file());
        fs::copy(found.unwrap_or_else(|| panic!("no {of} in {places}")), &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.directory.join(file), text).unwrap();
    }

    pub fn daemon(&self, words: &[&str]) -> Daemon {
        self.daemon_of(Path::new("/proc/self/exe"), words)
    }

    /// The daemon as this file, a copy of this binary.
    pub fn daemon_of(&self, program: &Path, words: &[&str]) -> Daemon {
        let mut command = Command::new(program);
        command.arg(DAEMON).arg(&self.directory).args(words).stdin(Stdio::null());
        let child = daemon::wait_for_ready(&mut command).unwrap();
        let child = child
            .unwrap_or_else(|ended| panic!("the daemon did not start: {ended:?}\n{}", log(&self.directory)));
        Daemon { child: Some(child), directory: self.directory.clone() }
    }

    /// The group that a process is in, by the pids controller; `None` if it is gone.
    pub fn place(&self, pid: u32) -> Option<String> {
        self.place_by(Controller::Pids, pid)
    }

    /// The same by another controller.
    pub fn place_by(&self, controller: Controller, pid: u32) -> Option<String> {
        let at = self.host.hierarchy_of(controller).unwrap();
        let path = at.below_mount(&self.host.kernel().group_of(at, pid).ok()?)?;
        // below systemd ours are in a unit; what is outside of it is named from the root, as everywhere
        let base = self.host.base(at).path();
        if base.is_empty() {
            return Some(path);
        }
        let own = path.strip_prefix(base).and_then(|own| own.strip_prefix('/')).map(str::to_owned);
        Some(own.unwrap_or_else(|| format!("/{path}")))
    }

    /// A group's `pids.max`, as the kernel has it.
    pub fn limit(&self, group: &str) -> String {
        let name = GroupName::new(group).unwrap();
        let seat = self.host.seat(&name, Controller::Pids).unwrap();
        self.host.read(&seat, &name, "pids.max").unwrap().trim().to_owned()
    }

    /// The `pids.max` of the group that a process is in; the root has none.
    pub fn limit_of(&self, pid: u32) -> String {
        let at = self.host.hierarchy_of(Controller::Pids).unwrap();
        let path = self.host.kernel().group_of(at, pid).unwrap();
        let path = at.below_mount(&path).unwrap();
        let limit = self.host.kernel().read(at, &path, "pids.max");
        limit.map_or_else(|_| "max".to_owned(), |limit| limit.trim().to_owned())
    }

    /// Is the group in any hierarchy?
    pub fn exists(&self, group: &str) -> bool {
        !self.host.seats(&GroupName::new(group).unwrap()).is_empty()
    }

    /// Writes it, as somebody else would.
    pub fn set_limit(&self, group: &str, value: &str) {
        let name = GroupName::new(group).unwrap();
        let seat = self.host.seat(&name, Controller::Pids).unwrap();
        self.host.write(&seat, &name, "pids.max", value).unwrap();
    }

    pub fn put(&self, group: &str, pid: u32) {
        self.host.move_tasks(&GroupName::new(group).unwrap(), &[pid], What::Process).unwrap();
    }

    /// All that run this program.
    pub fn running(&self, program: &Path) -> Vec<u32> {
        let is = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        ProcessReader::all().unwrap().into_iter().filter(is).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for pid in ProcessReader::all().unwrap_or_default() {
            let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            if exe.starts_with(&self.directory) {
                end(pid, Signal::KILL);
            }
        }
        let ours = format!("{}-", self.name);
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let left: Vec<String> =
                self.host.list(&GroupName::base()).unwrap_or_default().into_keys().collect();
            let left: Vec<String> = left.into_iter().filter(|name| name.starts_with(&ours)).collect();
            for name in left.iter().rev() {
                let _ = self.host.delete(&GroupName::new(name).unwrap(), true);
            }
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Daemon {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: Signal) {
        end(self.pid(), signal);
    }

    pub fn log(&self) -> String {
        log(&self.directory)
    }

    /// Waits until the log holds this so often.
    pub fn wait_for_log(&self, text: &str, times: usize) {
        eventually(&format!("'{text}' {times} times in the log"), || {
            self.log().matches(text).count() >= times
        });
    }

    pub fn is_alive(&mut self) -> bool {
        self.ended().is_none()
    }

    /// How it ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().unwrap().try_wait().unwrap()
    }

    /// As systemd ends it.
    pub fn end(mut self) {
        self.signal(Signal::TERM);
        let status = self.child.take().unwrap().wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.log());
    }

    /// As a crash does.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if std::thread::panicking() {
                eprintln!("{}", self.log());
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    pub fn start(program: &Path, words: &[&str]) -> Running {
        Running(Command::new(program).args(words).stdin(Stdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn log(directory: &Path) -> String {
    fs::read_to_string(directory.join("log")).unwrap_or_default()
}

pub fn end(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

/// Waits for something that is to become true soon; an emulated machine may need long for it.
pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    // the look itself must not keep a slow machine busy
    let mut pause = Duration::from_millis(5);
    while !is() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
