//! The tests, one after another: they share the machine's CPUs, loop devices and groups.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use fake::suite;
use lab::LoopDevice;
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

use crate::{
    borrowed, conditions, division::Cgroupfs, drivers, experiments, gates, oltp, roles, tools, workloads,
};

pub type Tested = Result<(), Failed>;
pub type Test = fn() -> Tested;

pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root();
    let mut trials: Vec<Trial> =
        workloads::TESTS.map(|(name, test)| suite::fallible(name, None, test)).into();
    let as_root: [(&str, Test); 2] = [
        ("a_loop_device_is_gone_after_its_use", a_loop_device_is_gone_after_its_use),
        ("a_loop_device_is_gone_after_sigkill", a_loop_device_is_gone_after_sigkill),
    ];
    let as_root = as_root
        .into_iter()
        .chain(borrowed::tests())
        .chain(workloads::AS_ROOT)
        .chain(drivers::tests())
        .chain(experiments::tests())
        .chain(conditions::tests())
        .chain(gates::tests())
        .chain(roles::tests())
        .chain(tools::tests())
        .chain(oltp::tests());
    // with a single CPU nobody can have one alone
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    // what can't be tested is reported as ignored, never passed over in silence
    trials.extend(as_root.map(|(name, test)| {
        let missing = missing_tool(name);
        let kind = missing.map_or_else(|| "root".to_owned(), |tool| format!("root, {tool}"));
        suite::fallible(name, None, test).with_ignored_flag(!root || missing.is_some()).with_kind(kind)
    }));
    let (name, test) = conditions::CPU_OF_ITS_OWN;
    trials.push(
        suite::fallible(name, None, test).with_ignored_flag(!root || cpus < 2).with_kind("root, 2 CPUs"),
    );
    suite::run(&arguments, trials).exit_code()
}

/// The tool that a test is named after, where it is not installed.
fn missing_tool(test: &str) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |tool: &str| std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    let tools = ["fio", "cyclictest", "sysbench", "stress-ng", "pgbench"];
    tools.into_iter().find(|tool| test.starts_with(&tool.replace('-', "_")) && !is_there(tool))
}

pub fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Tested {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// Waits for what must come true; timing decides nothing but how long a failure takes.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) -> Tested {
    let begun = Instant::now();
    while !holds() {
        check(begun.elapsed() < Duration::from_secs(30), || format!("not within 30 s: {what}"))?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A group that is removed when the test ends, however it ends.
pub struct Group(pub String);

impl Group {
    pub fn new(name: &str, controller: &str, settings: &[(&str, &str)]) -> Result<Group, Failed> {
        let group = Group(format!("{name}-{}", std::process::id()));
        Cgroupfs::create(&group.0, &[controller])?;
        Cgroupfs::set(&group.0, settings)?;
        Ok(group)
    }

    /// Who is in it.
    pub fn processes(&self) -> Vec<u32> {
        let read = |path: PathBuf| fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        let texts: Vec<String> = Cgroupfs::directories(&self.0).into_iter().map(read).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        let mut all: Vec<u32> = lines.filter_map(|line| line.parse().ok()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    pub fn directory(&self) -> PathBuf {
        Cgroupfs::directories(&self.0).remove(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        Cgroupfs::remove(&self.0).expect("the group can be removed");
    }
}

/// A directory on a disk, where there is one.
pub fn directory() -> Result<TempDir, Failed> {
    let disk = Path::new("/var/tmp");
    Ok(if disk.is_dir() { tempfile::tempdir_in(disk)? } else { tempfile::tempdir()? })
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|entries| entries.count() == 0)
}

/// The files behind all attached loop devices that lie in `directory`.
fn attached(directory: &Path) -> Vec<String> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    let backing = |device: fs::DirEntry| fs::read_to_string(device.path().join("loop/backing_file")).ok();
    let files = devices.flatten().filter_map(backing);
    files.filter(|file| Path::new(file).starts_with(directory)).collect()
}

fn a_loop_device_is_gone_after_its_use() -> Tested {
    let directory = directory()?;
    let attach = || LoopDevice::attach(directory.path(), 4 << 20, &AtomicBool::new(false));
    let device = attach()?;
    check(is_empty(directory.path()), || "its file has a name".to_owned())?;
    check(attached(directory.path()).len() == 1, || "it is not attached".to_owned())?;
    let file = fs::File::open(device.path())?;
    let mut sector = [0; 512];
    file.read_exact_at(&mut sector, (4 << 20) - 512)?;
    check(sector.iter().any(|byte| *byte != 0), || "it holds no data".to_owned())?;
    check(file.read_at(&mut sector, 4 << 20)? == 0, || "it is longer than requested".to_owned())?;
    drop(file);
    check(device.detach(Duration::from_secs(30)).is_none(), || "it is still open".to_owned())?;
    check(attached(directory.path()).is_empty(), || "it is still attached".to_owned())?;
    drop(attach()?);
    wait_for("it is detached when dropped", || attached(directory.path()).is_empty())?;
    // faults G9: what somebody else looks at at the end was the experiment's failure
    let device = attach()?;
    let (path, looks) = (device.path(), fs::File::open(device.path())?);
    check(device.detach(Duration::from_millis(50)) == Some(path), || "it is not named".to_owned())?;
    drop(looks);
    wait_for("it is detached when the other one closes it", || attached(directory.path()).is_empty())
}

fn a_loop_device_is_gone_after_sigkill() -> Tested {
    let directory = directory()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("hold-loop-device").arg(directory.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut victim = workloads::Killed(command.spawn()?);
    let mut line = String::new();
    BufReader::new(victim.0.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    check(line.starts_with("/dev/loop"), || format!("it said: {line}"))?;
    check(attached(directory.path()).len() == 1, || "it is not attached".to_owned())?;
    victim.0.kill()?;
    victim.0.wait()?;
    wait_for("it is detached", || attached(directory.path()).is_empty())?;
    check(is_empty(directory.path()), || "a file is left".to_owned())
}
