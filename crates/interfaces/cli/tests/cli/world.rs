//! The machine that the suite runs on, and a scene of a test on it: a group of its own and processes that it
//! started, all gone when it ends, also by a panic.

use std::{
    collections::BTreeSet,
    fmt, fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// What a test needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Root, and any hierarchy.
    Groups,
    /// No hierarchy at all.
    NoHierarchy,
    /// A v1 hierarchy with this controller.
    V1(&'static str),
    /// The v2 hierarchy with this controller.
    V2(&'static str),
    /// The v2 hierarchy, whatever is in it.
    AnyV2,
    /// v1 files with this name.
    File(&'static str),
    /// This controller on no hierarchy.
    NotMounted(&'static str),
    /// At least so many CPUs.
    Cpus(usize),
    /// No swap in use, so that memory can't be taken away.
    NoSwap,
    /// A real-time process can be started.
    Realtime,
    /// No systemd, which would have our groups elsewhere.
    Plain,
    /// Device access can be controlled: v1's controller, or a v2 group's program.
    Devices,
    /// The time zones of tzdata.
    TimeZones,
    /// This program in `PATH`.
    Program(&'static str),
    /// Groups can be frozen: v1's controller, or v2.
    AnyFreezer,
    /// systemd is init.
    Systemd,
    /// PAM tells systemd of those who log in.
    Sessions,
    /// A machine that nobody else uses: a VM of the suite.
    OwnMachine,
    /// This controller on some hierarchy.
    On(&'static str),
    /// Root, and hierarchies for cpu, cpuset, memory and pids.
    Usual,
    /// The source tree.
    Sources,
    /// That all programs of the machine may be moved.
    OthersMoved,
    /// At least so many NUMA nodes.
    Nodes(usize),
    /// A Linux older than this.
    Before(u32, u32),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Groups => f.write_str("root and a hierarchy"),
            Need::NoHierarchy => f.write_str("a machine without any hierarchy"),
            Need::V1(controller) => write!(f, "{controller} on v1"),
            Need::V2(controller) => write!(f, "{controller} on v2"),
            Need::AnyV2 => f.write_str("controllers on v2"),
            Need::File(file) => write!(f, "the file {file}"),
            Need::NotMounted(controller) => write!(f, "{controller} on no hierarchy"),
            Need::Cpus(count) => write!(f, "{count} CPUs"),
            Need::NoSwap => f.write_str("no swap"),
            Need::Realtime => f.write_str("chrt"),
            Need::Plain => f.write_str("no systemd"),
            Need::Devices => f.write_str("device control"),
            Need::TimeZones => f.write_str("tzdata"),
            Need::Program(name) => f.write_str(name),
            Need::AnyFreezer => f.write_str("a freezer"),
            Need::Systemd => f.write_str("systemd"),
            Need::Sessions => f.write_str("pam_systemd"),
            Need::OwnMachine => f.write_str("a machine of its own"),
            Need::On(controller) => f.write_str(controller),
            Need::Usual => f.write_str("cpu, cpuset, memory and pids"),
            Need::Sources => f.write_str("the source tree"),
            Need::OthersMoved => f.write_str("RF_MOVE_OTHERS"),
            Need::Nodes(count) => write!(f, "{count} nodes"),
            Need::Before(major, minor) => write!(f, "a Linux before {major}.{minor}"),
        }
    }
}

/// What the machine has to have: all of one of these lists.
pub type Ways = &'static [&'static [Need]];

/// What the machine has.
#[derive(Debug, Clone)]
pub struct World {
    pub program: String,
    v1: BTreeSet<String>,
    v2: BTreeSet<String>,
    /// Where the v2 hierarchy is mounted.
    v2_at: Option<String>,
    cpus: usize,
    root: bool,
    swap: bool,
    systemd: bool,
}

impl World {
    pub fn look() -> Arc<World> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let of = |kind: &str| -> Vec<(String, String)> {
            let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            fields.filter(|f| f[2] == kind).map(|f| (f[1].to_owned(), f[3].to_owned())).collect()
        };
        let v2 = of("cgroup2");
        let controllers =
            v2.first().map(|(mount, _)| fs::read_to_string(format!("{mount}/cgroup.controllers")).unwrap());
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".to_owned());
        Arc::new(World {
            program: std::env::var("RINGFENCE")
                .unwrap_or_else(|_| env!("CARGO_BIN_EXE_ringfence").to_owned()),
            v1: of("cgroup").iter().flat_map(|(_, options)| options.split(',').map(str::to_owned)).collect(),
            v2: controllers.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect(),
            v2_at: v2.first().map(|(mount, _)| mount.clone()),
            cpus: online
                .trim()
                .rsplit(['-', ','])
                .next()
                .and_then(|last| last.parse::<usize>().ok())
                .unwrap_or(0)
                + 1,
            root: rustix::process::geteuid().is_root(),
            swap: fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1),
            systemd: Path::new("/run/systemd/system").is_dir(),
        })
    }

    /// Which of these needs this machine does not meet.
    pub fn lacks(&self, needs: &[Need]) -> Option<String> {
        let lacking = needs.iter().filter(|need| !self.has(**need)).map(Need::to_string);
        let lacking: Vec<String> = lacking.collect();
        (!lacking.is_empty()).then(|| lacking.join(", "))
    }

    /// What this machine lacks for each of these ways, if none is open.
    pub fn lacks_ways(&self, ways: &[&[Need]]) -> Option<String> {
        let lacking: Option<Vec<String>> = ways.iter().map(|needs| self.lacks(needs)).collect();
        Some(lacking?.join("; or ")).filter(|lacking| !lacking.is_empty())
    }

    pub fn has(&self, need: Need) -> bool {
        match need {
            Need::Groups => self.root && (self.v2_at.is_some() || !self.v1.is_empty()),
            Need::NoHierarchy => self.v2_at.is_none() && self.v1.is_empty(),
            Need::V1(controller) => self.root && self.v1.contains(controller),
            Need::V2(controller) => self.root && self.v2.contains(controller),
            Need::AnyV2 => self.root && self.v2_at.is_some() && !self.v2.is_empty(),
            Need::File(file) => {
                let controller = file.split('.').next().unwrap();
                Path::new(&format!("/sys/fs/cgroup/{controller}/{file}")).exists()
            }
            Need::NotMounted(controller) => !self.v1.contains(controller) && !self.v2.contains(controller),
            Need::Cpus(count) => self.cpus >= count,
            Need::NoSwap => !self.swap,
            Need::Realtime => {
                self.root && Path::new("/usr/bin/chrt").exists() || Path::new("/bin/chrt").exists()
            }
            Need::Plain => !self.systemd,
            Need::Devices => self.root && (self.v1.contains("devices") || self.v2_at.is_some()),
            Need::AnyFreezer => self.root && (self.v1.contains("freezer") || self.v2_at.is_some()),
            Need::Systemd => self.root && self.systemd,
            Need::Sessions => {
                let text = fs::read_to_string("/etc/pam.d/common-session").unwrap_or_default();
                text.lines().any(|line| !line.starts_with('#') && line.contains("pam_systemd.so"))
            }
            Need::OwnMachine => self.root && Path::new("/rf-vm/mode").exists(),
            Need::On(controller) => self.v1.contains(controller) || self.v2.contains(controller),
            Need::Usual => {
                self.has(Need::Groups)
                    && ["cpu", "cpuset", "memory", "pids"].into_iter().all(|name| self.has(Need::On(name)))
            }
            Need::Sources => Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").exists(),
            Need::OthersMoved => std::env::var_os("RF_MOVE_OTHERS").is_some(),
            Need::Nodes(count) => {
                let is_node =
                    |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
                let names = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
                names.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count() >= count
            }
            Need::Before(major, minor) => {
                let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
                let mut numbers = release.split(['.', '-']).map_while(|number| number.parse().ok());
                (numbers.next().unwrap(), numbers.next().unwrap()) < (major, minor)
            }
            Need::TimeZones => Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists(),
            Need::Program(name) => {
                std::env::var("PATH").unwrap().split(':').any(|at| Path::new(at).join(name).exists())
            }
        }
    }
}

/// One test's group and processes.
pub struct Scene {
    world: Arc<World>,
    pub group: String,
    children: Vec<Child>,
    names: Vec<(&'static str, String)>,
}

impl Scene {
    pub fn new(world: &Arc<World>, test: &str) -> Scene {
        let group = format!(
            "rf-test-{}-{}",
            test.chars().filter(char::is_ascii_alphanumeric).take(24).collect::<String>(),
            std::process::id()
        );
        let v2 = world.v2_at.iter().map(|mount| ("{v2}", mount.clone()));
        let names = [("{g}", group.clone())].into_iter().chain(v2).collect();
        Scene { world: world.clone(), names, group, children: Vec::new() }
    }

    /// Starts a process that sleeps, and names its number.
    pub fn start(&mut self, name: &'static str, words: &[&str]) -> u32 {
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        self.children.push(child);
        self.names.push((name, pid.to_string()));
        pid
    }

    /// Starts a process of another user, whose output [`Scene::output`] waits for.
    pub fn start_as(&mut self, user: u32, words: &[&str]) -> u32 {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).uid(user).gid(user).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        pid
    }

    /// What the process started last printed until its end.
    pub fn output(&mut self) -> String {
        let child = self.children.pop().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Gives a word a meaning in command lines.
    pub fn name(&mut self, name: &'static str, value: &str) {
        self.names.push((name, value.to_owned()));
    }

    pub fn program(&self) -> String {
        self.world.program.clone()
    }

    pub fn fill(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Runs a command line of ours; `'…'` keeps words together.
    pub fn ringfence(&self, line: &str, user: Option<u32>) -> Output {
        let mut command = Command::new(&self.world.program);
        command.args(words(&self.fill(line))).stdin(Stdio::null());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        command.output().unwrap()
    }

    /// The same, which must succeed; its standard output.
    pub fn ok(&self, line: &str) -> String {
        let output = self.ringfence(line, None);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "ringfence {} failed: {error}", self.fill(line));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < Duration::from_secs(120), "{what} did not come");
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let run = |arguments: &[&str]| {
            let _ = Command::new(&self.world.program)
                .args(arguments)
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status();
        };
        // what is frozen on v1 does not die
        run(&["thaw", &self.group]);
        let below = Command::new(&self.world.program).args(["list", &self.group]).output();
        let below = below.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
        below.unwrap_or_default().lines().for_each(|group| run(&["thaw", group]));
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        run(&["kill", &self.group]);
        run(&["delete", "--recursive", &self.group]);
    }
}

/// Splits at white space; single quotes keep words together.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            match words.last_mut() {
                Some(last) if !line.split('\'').nth(index - 1).unwrap().ends_with(' ') => {
                    let last: &mut String = last;
                    last.push_str(part);
                }
                _ => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
