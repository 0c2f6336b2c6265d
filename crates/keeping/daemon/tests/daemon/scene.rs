//! A test's socket, group and processes, all gone when it ends, also by a panic.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use answers::{
    Problem,
    socket::{Classification, Counters, Reloaded, Status, Verdict},
};
use apply::By;
use daemon::socket::{Control, Handle, Limits, Live, Rights, serve_within};
use kernel::{GroupName, Host};
use serde_json::Value;
use settings::Controller;
use system::Accounts;

use crate::client;

/// A user and a group of the system that this machine need not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User(pub u32, pub u32);

/// A process whose classification panics.
pub const DEFECT: u32 = 4_194_300;

pub const ROOT: User = User(0, 0);
pub const ADMIN: User = User(64001, 64001);
/// By his group alone.
pub const ADMINS: User = User(64004, 64010);
pub const TASKS: User = User(64002, 64002);
pub const STRANGER: User = User(64003, 64003);

/// What the main loop would answer.
pub struct Main {
    rights: Arc<Rights>,
    pub reloads: Mutex<Vec<By>>,
    /// While this is true, a question for the status is not answered.
    pub held: (Mutex<bool>, Condvar),
}

impl Control for Shared {
    fn rights(&self) -> Arc<Rights> {
        self.0.rights.clone()
    }

    fn status(&self) -> Result<Status, Problem> {
        let mut held = self.0.held.0.lock().unwrap();
        while *held {
            held = self.0.held.1.wait(held).unwrap();
        }
        Ok(Status { version: "1".to_owned(), pid: std::process::id(), ready: true, ..Status::default() })
    }

    fn counters(&self) -> Result<Counters, Problem> {
        Ok([("moved".to_owned(), 3)].into())
    }

    fn reload(&self, by: By) -> Result<Reloaded, Problem> {
        self.0.reloads.lock().unwrap().push(by);
        Err(Problem::new(409, "layout.toml:3: what is this?").hint("ringfence check"))
    }

    fn classify(&self, pid: u32) -> Result<Classification, Problem> {
        assert_ne!(pid, DEFECT, "a defect");
        Ok(Classification {
            pid,
            user: 0,
            program: "x".to_owned(),
            would: Verdict::Leave,
            rule: None,
            groups: Vec::new(),
            passed: Vec::new(),
        })
    }
}

/// The main loop's end, held by the service and by the test.
#[derive(Clone)]
pub struct Shared(pub Arc<Main>);

pub struct Scene {
    pub group: String,
    pub host: Host,
    pub directory: tempfile::TempDir,
    pub main: Shared,
    pub handle: Option<Handle>,
    children: Vec<Child>,
}

static SCENES: AtomicUsize = AtomicUsize::new(0);

impl Scene {
    pub fn new() -> Scene {
        Scene::within(Limits::default())
    }

    /// A group with an admin and a tasks user, one below with its own admin, one beside it of nobody, all with pids.
    pub fn within(limits: Limits) -> Scene {
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let group = format!("rf-test-socket-{}-{number}", std::process::id());
        let host = crate::host::host();
        let directory = tempfile::Builder::new().prefix("rf-test-socket").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let layout = format!(
            "[groups.\"{group}/db\"]\nadmin = {{ user = {}, group = {} }}\ntasks = {{ user = {} }}\n\
             [groups.\"{group}/db/own\"]\nadmin = {{ user = {} }}\n[groups.\"{group}/nobodys\"]\npids.max = 50\n",
            ADMIN.0, ADMINS.1, TASKS.0, STRANGER.0
        );
        let read = layout::read_toml(&[layout::Source::new("layout.toml", &layout)]);
        let desired = read.desired.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        let rights = Arc::new(Rights::of(&desired, &Accounts::new()));
        let main = Shared(Arc::new(Main {
            rights,
            reloads: Mutex::default(),
            held: (Mutex::new(false), Condvar::new()),
        }));
        let mut scene = Scene { group, host, directory, main, handle: None, children: Vec::new() };
        for name in ["db", "db/own", "db/below", "nobodys"] {
            scene.create(name);
        }
        let live = Live::new(scene.main.clone(), &scene.state());
        scene.handle = Some(serve_within(scene.path().as_ref(), limits, Arc::new(live)).unwrap());
        scene
    }

    pub fn create(&self, name: &str) {
        self.host.create(&self.name(name), Some(&[Controller::Pids]), &Default::default()).unwrap();
    }

    pub fn name(&self, below: &str) -> GroupName {
        GroupName::new(&format!("{}/{below}", self.group)).unwrap()
    }

    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub fn path(&self) -> String {
        self.directory.path().join("run/ringfenced.sock").to_str().unwrap().to_owned()
    }

    /// `{g}` in the path is the scene's group.
    pub fn request(&self, user: User, method: &str, path: &str, body: &str) -> (u16, Value) {
        let path = path.replace("{g}", &self.group);
        let (status, body) = if user == ROOT {
            client::request(&self.path(), method, &path, body)
        } else {
            let arguments = client::arguments(&self.path(), method, &path, body);
            let output = as_user(user, &arguments).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let (status, body) = text.trim_end().split_once(' ').unwrap_or_else(|| panic!("{text}"));
            (status.parse().unwrap(), body.to_owned())
        };
        let json = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{status} {body}: {error}"));
        (status, json)
    }

    pub fn answers(&self) {
        let (status, reply) = self.request(ROOT, "GET", "/v1/groups/{g}/db?settings=pids.max", "");
        assert_eq!(status, 200, "{reply}");
    }

    /// What the kernel holds.
    pub fn pids_max(&self, name: &str) -> String {
        let found = settings::find("pids.max").unwrap();
        apply::get(&self.host, &self.name(name), &found).unwrap().value.to_string()
    }

    /// A process that sleeps.
    pub fn process_of(&mut self, User(uid, gid): User) -> u32 {
        let mut command = Command::new("sleep");
        command.arg("600").uid(uid).gid(gid).stdin(Stdio::null());
        self.keep(command)
    }

    pub fn keep(&mut self, mut command: Command) -> u32 {
        let child = command.spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        pid
    }

    pub fn is_in(&self, pid: u32, name: &str) -> bool {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        groups.lines().any(|line| line.ends_with(&format!("{}/{name}", self.group)))
    }

    pub fn changes(&self) -> Vec<Value> {
        let files = fs::read_dir(self.state()).into_iter().flatten().map(|entry| entry.unwrap());
        let of_changes = |entry: &fs::DirEntry| entry.file_name().to_str().unwrap().starts_with("changes");
        let text: String =
            files.filter(of_changes).map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        *self.main.0.held.0.lock().unwrap() = false;
        self.main.0.held.1.notify_all();
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = self.host.delete(&GroupName::new(&self.group).unwrap(), true);
    }
}

static COPY: OnceLock<tempfile::TempDir> = OnceLock::new();

/// Takes away what all scenes share; nothing does that for what is static.
pub fn tidy() {
    if let Some(directory) = COPY.get() {
        let _ = fs::remove_dir_all(directory.path());
    }
}

/// This program as another user, who need not be able to reach it where it was built.
pub fn as_user(User(uid, gid): User, arguments: &[String]) -> Command {
    let directory = COPY.get_or_init(|| {
        let directory = tempfile::Builder::new().prefix("rf-test-socket").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy("/proc/self/exe", directory.path().join("client")).unwrap();
        directory
    });
    let mut command = Command::new(directory.path().join("client"));
    command.args(arguments).uid(uid).gid(gid).current_dir("/");
    command
}

/// Descriptors of this process.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Resident memory of this process, in KiB.
pub fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits until it holds; panics with the words if it never does.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}");
}

/// A test's figures, for whoever looks at them.
pub fn tell(figures: &str) {
    let _ = writeln!(std::io::stderr(), "{figures}");
}
