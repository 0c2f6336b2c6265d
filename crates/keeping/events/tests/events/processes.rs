//! The processes that the cases are about: this binary under other names, copies of executables, and storms of execs.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use events::{Control, ExecGate, Limits, Notice, Watchdog};
use tempfile::TempDir;

/// The first argument of a process that answers execs: LOG EXECUTABLE...
pub const GATE: &str = "rf-test-gate";
/// The log of a gate that has none.
pub const NOTHING: &str = "-";
/// The first argument of a process that watches such a one: LOG EXECUTABLE...
pub const SUPERVISOR: &str = "rf-test-supervisor";
/// The first argument of a process that does something to be told of: WHAT.
pub const CHILD: &str = "rf-test-child";

/// Answers execs; writes each process's ID to LOG, and hangs while LOG.hang exists. If LOG.idle exists, it holds them
/// and never answers. With [`NOTHING`] as LOG it does nothing but answer.
pub fn gate(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let log = PathBuf::from(words.next().unwrap());
    if log == Path::new(NOTHING) {
        let gate =
            ExecGate::open(Control::of_gate(within()).unwrap(), words.map(PathBuf::from).collect()).unwrap();
        gate.serve(|_, _| ()).unwrap();
        return ExitCode::SUCCESS;
    }
    let (hang, idle) = (log.with_extension("hang"), log.with_extension("idle"));
    let mut log = OpenOptions::new().append(true).create(true).open(log).unwrap();
    let control = Control::of_gate(within()).unwrap();
    let gate = ExecGate::open(control, words.map(PathBuf::from).collect()).unwrap();
    if idle.exists() {
        thread::sleep(Duration::from_secs(60));
    }
    let served = gate.serve(|pid, _| {
        log.write_all(format!("{pid}\n").as_bytes()).unwrap();
        while hang.exists() {
            thread::sleep(Duration::from_secs(1));
        }
    });
    served.unwrap();
    ExitCode::SUCCESS
}

/// The variable that says how long the kernel lets a gate live that does not answer, in milliseconds.
pub const WITHIN: &str = "RF_TEST_GATE_WITHIN";

fn within() -> Duration {
    let within = std::env::var(WITHIN).map_or(60_000, |millis| millis.parse().unwrap());
    Duration::from_millis(within)
}

/// Watches a gate and prints what befalls it, until its standard input ends.
pub fn supervisor(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    let notice = |notice| {
        if let Notice::Serving(pid) = notice {
            println!("{pid}");
        }
    };
    let _watchdog = Watchdog::start(patient(), move || gate_command(&words), notice).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

/// The command of a gate with these words: LOG EXECUTABLE...
pub fn gate_command(words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(GATE).args(words);
    command
}

/// Limits for what is not about lateness: a machine that is slow for other reasons does not disturb.
pub fn patient() -> Limits {
    Limits { answer: Duration::from_secs(30), start: Duration::from_secs(30), ..Limits::default() }
}

/// Does what the connector tells.
pub fn child(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    match words.next().unwrap().to_str().unwrap() {
        "session" => _ = rustix::process::setsid().unwrap(),
        "name" => rustix::thread::set_name(c"rf-test-name").unwrap(),
        "thread" => thread::spawn(|| ()).join().unwrap(),
        other => panic!("{other}?"),
    }
    ExitCode::SUCCESS
}

/// This binary as a child that does `what`.
pub fn this(what: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([CHILD, what]);
    command
}

/// A directory of our own with a copy of true(1).
pub struct Copies {
    pub directory: TempDir,
    /// In memory where that can be: a gate that writes must not wait for a disk.
    logs: TempDir,
    pub program: PathBuf,
}

impl Copies {
    pub fn new() -> Copies {
        let directory = TempDir::with_prefix("rf-test-strict-").unwrap();
        let program = directory.path().join("program");
        copy(&program);
        let logs = TempDir::with_prefix_in("rf-test-strict-", "/dev/shm");
        let logs = logs.or_else(|_| TempDir::with_prefix("rf-test-strict-")).unwrap();
        Copies { directory, logs, program }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The log of a gate.
    pub fn log(&self) -> PathBuf {
        self.logs.path().join("log")
    }

    /// Process IDs that the gate has seen.
    pub fn seen(&self) -> Vec<u32> {
        let mut text = String::new();
        let _ = File::open(self.log()).and_then(|mut file| file.read_to_string(&mut text));
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

/// Makes `path` a copy of an executable that ends at once.
pub fn copy(path: &Path) {
    let source = if emulated() { "/rf-vm/busybox" } else { "/bin/true" };
    fs::copy(source, path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `path` as `true`, whatever it is a copy of.
pub fn command(path: &Path) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(path);
    command.arg0("true").stdin(Stdio::null());
    command
}

/// Whether this is an emulated virtual machine, where all takes long.
pub fn emulated() -> bool {
    Path::new("/rf-vm").exists()
}

/// How many execs make a storm here.
pub fn execs() -> usize {
    if emulated() { 200 } else { 2000 }
}

/// What a storm of execs did.
pub struct Storm {
    /// The processes, in no order.
    pub pids: Vec<u32>,
    /// From before the fork until the end of each.
    pub times: Vec<Duration>,
}

impl Storm {
    pub fn longest(&self) -> Duration {
        self.times.iter().copied().max().unwrap_or_default()
    }
}

/// Executes `program` `count` times, `width` at a time; all must succeed. Calls `at` once, when half of them ran.
pub fn storm(program: &Path, count: usize, width: usize, at: impl FnOnce() + Send) -> Storm {
    let (next, at) = (AtomicUsize::new(0), Mutex::new(Some(at)));
    let storm = Mutex::new(Storm { pids: Vec::new(), times: Vec::new() });
    thread::scope(|scope| {
        for _ in 0..width {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    if number == count / 2 {
                        let at = at.lock().unwrap().take().unwrap();
                        at();
                    }
                    let start = Instant::now();
                    let mut child = command(program).spawn().unwrap();
                    assert!(child.wait().unwrap().success());
                    let mut storm = storm.lock().unwrap();
                    storm.pids.push(child.id());
                    storm.times.push(start.elapsed());
                }
            });
        }
    });
    storm.into_inner().unwrap()
}

/// Waits until `condition` holds; fails after half a minute.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come to be");
}
