//! What a user with a shell, a delegated subtree and an admin's rights on one group can do to root: a row for each way, and
//! all of them at once. Root meanwhile undoes a change, starts a strict program, scrapes and changes another group. Medians
//! are compared with those of the undisturbed machine: whoever else loads it, loads both.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use apply::{By, Meta, Running as System, State, Target};
use daemon::socket::{Assignments, client::Client};
use kernel::GroupName;
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process},
};

use crate::{
    Case, leases, metrics_scene,
    world::{Daemon, Running, World, end, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("attacker: each_way_and_all_at_once_delay_no_undo_start_scrape_or_change", attacked)]
}

/// The first argument of the attacker, before [`Means`] in its order.
pub const ATTACKER: &str = "rf-test-attacker";
/// A user that this machine need not know.
const UID: u32 = 4_000_007;
const ALL: &str = "all of them at once";

/// What he does until he is killed.
type Way = (&'static str, fn(&Means));

const WAYS: &[Way] = &[
    ("locks all that he can open of the state, the log and the socket's directory", locks),
    ("takes leases on the files of his groups", |means| leases::take(&means.files)),
    ("opens connections to the metrics and goes on slowly", slow_metrics),
    ("opens connections to the socket and goes on slowly, or reads no answer", slow_socket),
    ("changes his group as fast as he can", changes),
    ("changes a limit of memory that is in use", reclaims),
    ("asks for all there is to see as fast as he can", requests),
    ("asks for what is not his: groups, processes, signals, files", forbidden),
    ("starts a strict program as fast as he can", starts),
    ("stops and kills processes that wait for the gate", stops),
    ("makes, renames and removes groups below his own", churns),
    ("makes a thousand groups, and moves himself through them", thousand),
];

/// What he knows and has.
struct Means {
    state: PathBuf,
    log: PathBuf,
    socket: PathBuf,
    address: SocketAddr,
    group: String,
    program: PathBuf,
    daemon: i32,
    /// Another group's name.
    other: String,
    /// His group's directories.
    directories: Vec<PathBuf>,
    /// The files in them.
    files: Vec<PathBuf>,
}

impl Means {
    fn words(&self) -> Vec<OsString> {
        let (address, daemon) = (self.address.to_string(), self.daemon.to_string());
        let paths = [&self.state, &self.log, &self.socket, &self.program].map(|path| path.clone().into());
        let texts = [address, self.group.clone(), daemon, self.other.clone()].map(OsString::from);
        paths.into_iter().chain(texts).chain(self.directories.iter().map(OsString::from)).collect()
    }

    fn of(mut words: impl Iterator<Item = OsString>) -> Means {
        let mut path = || PathBuf::from(words.next().unwrap());
        let [state, log, socket, program] = [path(), path(), path(), path()];
        let mut text = || words.next().unwrap().into_string().unwrap();
        let (address, group) = (text().parse().unwrap(), text());
        let (daemon, other) = (text().parse().unwrap(), text());
        let directories: Vec<PathBuf> = words.map(PathBuf::from).collect();
        let files = directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
        let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
        Means { state, log, socket, address, group, program, daemon, other, directories, files }
    }

    fn client(&self) -> Client {
        Client::at(&self.socket)
    }

    /// Whether the daemon answers or refuses is not his concern.
    fn set(&self, group: &str, setting: &str, value: String) {
        let _ = self.client().set(&named(group), &one(setting, value));
    }
}

fn named(group: &str) -> GroupName {
    GroupName::new(group).unwrap()
}

fn one(setting: &str, value: String) -> Assignments {
    Assignments(vec![(setting.to_owned(), value)])
}

/// The process of the attacker. Words: the way, then his means.
pub fn attack(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let wanted = words.next().unwrap();
    let means = Means::of(words);
    // whoever has the CPU delays everybody: that is for CPU limits, and not what this is about
    rustix::process::setpriority_process(None, 19).unwrap();
    leases::no_signal();
    // he is in his group from the beginning
    std::io::stdin().read_exact(&mut [0]).unwrap();
    std::thread::scope(|scope| {
        for (name, way) in WAYS.iter().filter(|(name, _)| wanted == ALL || wanted == *name) {
            let means = &means;
            scope.spawn(move || {
                way(means);
                unreachable!("{name} goes on until he is killed");
            });
        }
    });
    ExitCode::SUCCESS
}

/// Again and again, as files come and go; what he has he never lets go.
fn locks(means: &Means) {
    let mut locked: BTreeMap<PathBuf, File> = BTreeMap::new();
    loop {
        let mut open: Vec<PathBuf> = vec![means.state.clone(), means.log.clone(), means.socket.clone()];
        while let Some(path) = open.pop() {
            open.extend(
                fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())),
            );
            if !locked.contains_key(&path)
                && let Ok(file) = File::open(&path)
                && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                locked.insert(path, file);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Forty connections whose heads never end.
fn slow_metrics(means: &Means) {
    loop {
        let open: Vec<TcpStream> = (0..40).filter_map(|_| TcpStream::connect(means.address).ok()).collect();
        drip(open, b"GET /metrics HTTP/1.1\r\nx: ");
    }
}

fn slow_socket(means: &Means) {
    loop {
        let connect = || UnixStream::connect(&means.socket).ok();
        let mut deaf: Vec<UnixStream> = (0..8).filter_map(|_| connect()).collect();
        deaf.iter_mut().for_each(|stream| _ = stream.write_all(b"GET /v1/openapi.json HTTP/1.1\r\n\r\n"));
        drip((0..200).filter_map(|_| connect()).collect(), b"PATCH /v1/groups/x/settings HTTP/1.1\r\nx: ");
    }
}

fn drip(mut open: Vec<impl Write>, bytes: &[u8]) {
    for _ in 0..4 {
        open.iter_mut().for_each(|stream| _ = stream.write_all(bytes));
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn several(one: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..3 {
            let one = &one;
            scope.spawn(move || {
                let mut next = number;
                loop {
                    one(next);
                    next += 3;
                }
            });
        }
    });
}

fn changes(means: &Means) {
    several(|number| means.set(&means.group, "pids.max", (100 + number % 300).to_string()));
}

/// He is in his group, and what he uses can't be taken away without swap.
fn reclaims(means: &Means) {
    let used = vec![1_u8; 64 << 20];
    several(|number| {
        let max = if number % 2 == 0 { "1M" } else { "1G" };
        means.set(&means.group, "memory.max", max.to_owned());
    });
    drop(used);
}

fn requests(means: &Means) {
    let own = named(&means.group);
    several(|number| {
        let client = means.client();
        match number % 5 {
            0 => drop(client.groups()),
            1 => drop(client.status()),
            2 => drop(client.counters()),
            3 => drop(client.group(&own, &[])),
            _ => drop(client.classification(std::process::id())),
        }
        drop(metrics_scene::get(means.address, "GET /metrics", ""));
    });
}

/// None of it is done, which is seen after each row.
fn forbidden(means: &Means) {
    let daemon = Pid::from_raw(means.daemon).unwrap();
    let other = named(&means.other);
    loop {
        let client = means.client();
        means.set(&means.other, "pids.max", "1".to_owned());
        drop(client.move_processes(&other, &[means.daemon.cast_unsigned()]));
        drop(client.reload());
        for signal in [Signal::STOP, Signal::KILL, Signal::HUP] {
            let _ = kill_process(daemon, signal);
        }
        for path in ["lock", "daemon.lock", "made-groups", "changes.jsonl", "generations/9999.journal"] {
            let _ = File::options().append(true).create(true).open(means.state.join(path));
            let _ = fs::remove_file(means.state.join(path));
        }
        let _ = fs::remove_file(&means.socket);
    }
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn starts(means: &Means) {
    several(|_| drop(quiet(&means.program).status()));
}

/// Each is between fork and the end of exec, or soon after.
fn stops(means: &Means) {
    for time in 0_u64.. {
        let mut waiting = Command::new("sh");
        let script = format!("exec '{}'", means.program.display());
        let Ok(mut child) = waiting.args(["-c", &script]).stdin(Stdio::null()).spawn() else { continue };
        let pid = Pid::from_child(&child);
        std::thread::sleep(Duration::from_micros(200 * (time % 20)));
        let _ = kill_process(pid, Signal::STOP);
        std::thread::sleep(Duration::from_millis(5));
        let _ = kill_process(pid, if time % 2 == 0 { Signal::KILL } else { Signal::CONT });
        let _ = child.wait();
    }
}

fn churns(means: &Means) {
    loop {
        for directory in &means.directories {
            let (one, other) = (directory.join("below"), directory.join("tasks\u{1b}[2J"));
            let _ = fs::create_dir(&one);
            let _ = fs::create_dir(one.join("deeper"));
            let _ = fs::rename(&one, &other); // v1 renames groups
            for group in [&one, &other] {
                let _ = fs::remove_dir(group.join("deeper"));
                let _ = fs::remove_dir(group);
            }
        }
    }
}

fn thousand(means: &Means) {
    loop {
        for directory in &means.directories {
            let groups = (0..1000).map(|number| directory.join(format!("many-{number}")));
            for group in groups.clone() {
                let _ = fs::create_dir(&group);
            }
            for file in groups.map(|group| group.join("cgroup.procs")) {
                let _ = fs::write(file, "0");
            }
            let _ = fs::write(directory.join("cgroup.procs"), "0");
        }
    }
}

/// What root does meanwhile.
struct Root {
    world: World,
    daemon: Daemon,
    address: SocketAddr,
    program: PathBuf,
    /// A group of root's.
    other: String,
    strict: String,
    his: String,
}

/// Medians of the times that root's doings took.
#[derive(Debug)]
struct Times {
    undo: Duration,
    start: Duration,
    scrape: Duration,
    change: Duration,
    his: Duration,
}

fn median(times: usize, mut one: impl FnMut() -> Duration) -> Duration {
    let mut each: Vec<Duration> = (0..times)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            one()
        })
        .collect();
    each.sort_unstable();
    each[times / 2]
}

fn timed(one: impl FnOnce()) -> Duration {
    let start = Instant::now();
    one();
    start.elapsed()
}

impl Root {
    fn new() -> Root {
        let mut world = World::new();
        let [his, strict] = ["his", "strict"].map(|last| world.group_name(last));
        let other = world.group("other");
        world.set_limit(&other, "111");
        let program = world.copy("true", "strict");
        let has_memory = world.host.hierarchy_of(settings::Controller::Memory).is_some();
        let memory = if has_memory { "memory.max = \"1G\"\n" } else { "" };
        let text = format!(
            "[groups.{his}]\npids.max = 500\n{memory}admin = {{ user = {UID}, group = {UID} }}\n\
             tasks = {{ user = {UID} }}\n\
             [groups.{strict}]\npids.max = 5000\nmatch = [{{ process = \"{}\", strict = true }}]\n",
            program.display()
        );
        world.write("layout.toml", &text);
        let [socket, log] = ["socket", "recorded"].map(|last| world.directory.join(last));
        let daemon = world.daemon(&[
            &format!("socket={}", socket.display()),
            &format!("record={}", log.display()),
            "metrics=127.0.0.1:0",
            "every=200",
            "keep=repair",
        ]);
        daemon.wait_for_log("strict rules are in force", 1);
        let address = metrics_scene::address(&daemon);
        Root { world, daemon, address, program, other, strict, his }
    }

    fn state(&self) -> PathBuf {
        self.world.directory.join("state")
    }

    fn client(&self) -> Client {
        Client::at(self.world.directory.join("socket"))
    }

    fn means(&self) -> Means {
        let name = named(&self.his);
        let seats = self.world.host.seats(&name);
        Means {
            state: self.state(),
            log: self.world.directory.join("recorded"),
            socket: self.world.directory.join("socket"),
            address: self.address,
            group: self.his.clone(),
            program: self.program.clone(),
            daemon: self.daemon.pid().cast_signed(),
            other: self.other.clone(),
            directories: seats.iter().map(kernel::Seat::directory).collect(),
            files: Vec::new(),
        }
    }

    /// The wait for the lock, and the undo of a change that was made meanwhile.
    fn undo(&self) -> Duration {
        let text = format!("[groups.{}]\npids.max = 222\n", self.other);
        let desired = layout::read_toml(&[layout::Source::new("layout.toml", &text)]).desired.unwrap();
        let system = System::new();
        let target = Target { host: &self.world.host, system: &system };
        let (machine, accounts) = (topology::Machine::live().unwrap(), system::Accounts::new());
        let none = apply::Earlier::none();
        let plan = apply::planned(target, &none, &desired, &machine, &system::Live, &accounts).unwrap();
        let meta = || Meta {
            by: By::caller(),
            what: "a test".to_owned(),
            confirm_within: None,
            layout: true,
            rules: None,
            file: None,
        };
        let start = Instant::now();
        let lock = State::open(self.state()).unwrap().lock(Duration::from_secs(60)).unwrap();
        let waited = start.elapsed();
        apply::execute(&lock, target, &plan, &meta()).unwrap();
        assert_eq!(self.world.limit(&self.other), "222");
        let undo = timed(|| drop(apply::undo(&lock, target, None, &meta()).unwrap()));
        assert_eq!(self.world.limit(&self.other), "111");
        waited + undo
    }

    fn times(&self, way: &str) -> Times {
        let (client, other) = (self.client(), named(&self.other));
        let undo = median(7, || self.undo());
        let start = median(21, || timed(|| assert!(Command::new(&self.program).status().unwrap().success())));
        let scrape = median(7, || {
            timed(|| {
                let answer = metrics_scene::get(self.address, "GET /metrics", "").expect("a seat for root");
                assert_eq!(answer.status, 200, "{way}: {answer:?}");
            })
        });
        let change =
            median(11, || timed(|| drop(client.set(&other, &one("pids.max", "111".to_owned())).unwrap())));
        // also his own group, where root may be refused
        let his = median(5, || timed(|| self.write_his()));
        let times = Times { undo, start, scrape, change, his };
        eprintln!("{way}: {times:?}");
        times
    }

    fn write_his(&self) {
        let name = named(&self.his);
        let seat = self.world.host.seat(&name, settings::Controller::Pids).unwrap();
        let _ = self.world.host.read(&seat, &name, "pids.max");
        let _ = self.world.host.write(&seat, &name, "pids.max", "500");
    }

    /// Nothing that is not his has changed, and root's changes are still written down.
    fn assert_untouched(&self, way: &str, changes: usize) {
        let log = self.daemon.log();
        assert_eq!(self.world.limit(&self.other), "111", "{way}\n{log}");
        assert_eq!(self.world.limit(&self.strict), "5000", "{way}\n{log}");
        let audit = fs::read_to_string(self.state().join("changes.jsonl")).unwrap();
        assert_eq!(audit.lines().count(), changes, "{way}");
        let state = fs::read_dir(self.state()).unwrap().map(|entry| entry.unwrap().path());
        let socket = self.world.directory.join("socket");
        for path in state.chain([self.state().join("generations"), socket]) {
            assert_eq!(fs::metadata(&path).unwrap().uid(), 0, "{way}: {}", path.display());
        }
        assert!(!self.state().join("generations/9999.journal").exists(), "{way}");
    }
}

fn attacked() {
    let root = Root::new();
    let own = root.world.directory.join("attacker");
    fs::copy("/proc/self/exe", &own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let before = root.times("undisturbed");
    let mut changes = 11;
    // an emulated machine is slow by itself
    let slow = if crate::is_vm() { 20 } else { 1 };
    let limits = events::Limits::default();
    for way in WAYS.iter().map(|(name, _)| *name).chain([ALL]) {
        let mut command = Command::new(&own);
        command.arg(ATTACKER).arg(way).args(root.means().words()).uid(UID).gid(UID);
        let mut attacker = Running(command.stdin(Stdio::piped()).spawn().unwrap());
        root.world.put(&root.his, attacker.pid());
        attacker.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let now = root.times(way);
        changes += 11;
        drop(attacker);
        for (what, before, now, more) in [
            ("an undo", before.undo, now.undo, Duration::from_millis(100)),
            ("a strict start", before.start, now.start, limits.period + limits.answer),
            ("a scrape", before.scrape, now.scrape, Duration::from_secs(1)),
            ("a change over the socket", before.change, now.change, Duration::from_millis(100)),
            ("a write to his group", before.his, now.his, Duration::from_millis(100)),
        ] {
            assert!(now <= before + more * slow, "{way}: {what} took {now:?}\n{}", root.daemon.log());
        }
        root.assert_untouched(way, changes);
        // what he leaves is in his group alone, and goes before the next one
        for directory in root.means().directories {
            end_all_in(&directory);
            for entry in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    eventually("it is empty", || {
                        // one that he stopped outlives him
                        for below in [entry.join("deeper"), entry.clone()] {
                            end_all_in(&below);
                            let _ = fs::remove_dir(below);
                        }
                        !entry.exists()
                    });
                }
            }
        }
    }
    root.daemon.end();
}

/// Ends the processes in a group.
fn end_all_in(group: &Path) {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.lines().filter_map(|pid| pid.parse().ok()) {
        end(pid, Signal::KILL);
    }
}
