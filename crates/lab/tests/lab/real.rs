//! The tests, one after another: they share the machine's CPUs, loop devices and groups.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child as Process, Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use lab::{Child, CpuReport, Division, LoopDevice, Program, ReadReport, run_together};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::division::Cgroupfs;

type Outcome = Result<(), Failed>;
type Test = fn() -> Outcome;

pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root();
    let mut trials = vec![
        Trial::test("workers_begin_together_and_report", workers_begin_together_and_report),
        Trial::test("a_worker_that_fails_tells_why", a_worker_that_fails_tells_why),
        Trial::test("a_worker_dies_with_the_process_that_started_it", a_worker_dies_with_its_starter),
    ];
    let as_root: [(&str, Test); 9] = [
        ("a_worker_under_a_quota_is_throttled", a_worker_under_a_quota_is_throttled),
        ("a_pinned_worker_runs_on_its_cpu_only", a_pinned_worker_runs_on_its_cpu_only),
        ("a_loop_device_is_gone_after_its_use", a_loop_device_is_gone_after_its_use),
        ("a_loop_device_is_gone_after_sigkill", a_loop_device_is_gone_after_sigkill),
        ("a_throttled_reader_reports_on_time", a_throttled_reader_reports_on_time),
        ("the_demonstration_shows_every_condition_and_leaves_nothing", the_demonstration_leaves_nothing),
        ("ctrl_c_ends_the_demonstration_and_leaves_nothing", ctrl_c_leaves_nothing),
        ("sigterm_ends_the_demonstration_and_leaves_nothing", sigterm_leaves_nothing),
        ("the_next_demonstration_removes_what_a_killed_one_left", the_next_removes_what_a_killed_one_left),
    ];
    // what needs root is told as ignored, never passed over in silence
    trials.extend(
        as_root.map(|(name, test)| Trial::test(name, test).with_ignored_flag(!root).with_kind("root")),
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// Waits for what must come true; timing decides nothing but how long a failure takes.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
    let begun = Instant::now();
    while !holds() {
        check(begun.elapsed() < Duration::from_secs(30), || format!("not within 30 s: {what}"))?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn start(workload: &str, options: &[&str]) -> Result<Child, Failed> {
    Ok(Child::start(&Program::this("worker"), workload, options)?)
}

fn finish(children: &mut [Child]) -> Result<Vec<String>, lab::Error> {
    run_together(children, Duration::from_secs(5), &AtomicBool::new(false))
}

fn workers_begin_together_and_report() -> Outcome {
    let mut children = Vec::new();
    for _ in 0..3 {
        children.push(start("cpu", &["--seconds", "0.2", "--threads", "2", "--interval-ms", "50"])?);
    }
    for line in finish(&mut children)? {
        let report: CpuReport = serde_json::from_str(&line)?;
        check(report.units > 0 && report.cpu_ns > 0 && report.wall_ns >= 200_000_000, || line.clone())?;
        check(report.threads == 2 && !report.cpus.is_empty(), || line.clone())?;
        check(report.units_per_interval.iter().sum::<u64>() == report.units, || line.clone())?;
    }
    Ok(())
}

fn a_worker_that_fails_tells_why() -> Outcome {
    let mut children = [start("read", &["--seconds", "1", "--device", "/nonexistent"])?];
    let error = finish(&mut children).map(drop).expect_err("there is no such device").to_string();
    let expected = "the read workload ended with exit status: 1: cannot open /nonexistent: No such file";
    check(error.starts_with(expected), || error.clone())?;
    let mut children = [start("cpu", &["--seconds", "-1"])?];
    let error = finish(&mut children).map(drop).expect_err("no such time").to_string();
    check(error.contains("'-1' is no time"), || error)
}

fn a_worker_dies_with_its_starter() -> Outcome {
    // a thread is the parent that counts, and it ends without killing anybody
    let start = || Child::start(&Program::this("worker"), "cpu", ["--seconds", "60"]);
    let child = std::thread::spawn(move || {
        let mut children = [start()?];
        // the worker is at work before its parent goes
        let _ = run_together(&mut children, Duration::ZERO, &stop_after(Duration::from_millis(300)));
        let [child] = children;
        let pid = child.pid();
        std::mem::forget(child);
        Ok::<u32, lab::Error>(pid)
    });
    let pid = child.join().map_err(|_| "the thread panicked")??;
    wait_for("the worker is dead", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    })?;
    rustix::process::waitpid(pid_of(pid), rustix::process::WaitOptions::empty())?;
    Ok(())
}

/// A flag that somebody sets after a while.
fn stop_after(time: Duration) -> std::sync::Arc<AtomicBool> {
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stop);
    std::thread::spawn(move || {
        std::thread::sleep(time);
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    stop
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A group that is removed when the test ends, however it ends.
struct Group(String);

impl Group {
    fn new(name: &str, controller: &str, settings: &[(&str, &str)]) -> Result<Group, Failed> {
        let group = Group(format!("{name}-{}", std::process::id()));
        Cgroupfs.create(&group.0, &[controller])?;
        Cgroupfs.set(&group.0, settings)?;
        Ok(group)
    }

    fn directory(&self) -> PathBuf {
        Cgroupfs::directories(&self.0).remove(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        Cgroupfs.remove(&self.0).expect("the group can be removed");
    }
}

fn a_worker_under_a_quota_is_throttled() -> Outcome {
    // so little that it is reached on the busiest machine
    let group = Group::new("quota", "cpu", &[("cpu.max", "5%")])?;
    let mut children = [start("cpu", &["--seconds", "1", "--threads", "2"])?];
    Cgroupfs.enter(&group.0, children[0].pid())?;
    let line = finish(&mut children)?.remove(0);
    let report: CpuReport = serde_json::from_str(&line)?;
    check(report.cpus_used() < 0.2, || line)?;
    let stat = fs::read_to_string(group.directory().join("cpu.stat"))?;
    let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    check(throttled > Some(0), || stat)
}

fn a_pinned_worker_runs_on_its_cpu_only() -> Outcome {
    let online = topology::Machine::live()?.online();
    let cpu = online.last().ok_or("no CPU")?;
    let node = topology::Machine::live()?.node_of_cpu(cpu).unwrap_or(0).to_string();
    let settings = [("cpuset.cpus", &*cpu.to_string()), ("cpuset.mems", &*node)];
    let group = Group::new("pinned", "cpuset", &settings)?;
    let mut children = [start("cpu", &["--seconds", "0.2"])?];
    Cgroupfs.enter(&group.0, children[0].pid())?;
    let line = finish(&mut children)?.remove(0);
    let report: CpuReport = serde_json::from_str(&line)?;
    check(report.cpus == units::CpuSet::range(cpu, cpu), || line)
}

/// A directory on a disk, where there is one.
fn directory() -> Result<TempDir, Failed> {
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

fn a_loop_device_is_gone_after_its_use() -> Outcome {
    let directory = directory()?;
    let attach = || LoopDevice::attach(directory.path(), 4 << 20, &AtomicBool::new(false));
    let device = attach()?;
    check(is_empty(directory.path()), || "its file has a name".to_owned())?;
    check(attached(directory.path()).len() == 1, || "it is not attached".to_owned())?;
    let file = fs::File::open(device.path())?;
    let mut sector = [0; 512];
    file.read_exact_at(&mut sector, (4 << 20) - 512)?;
    check(sector.iter().any(|byte| *byte != 0), || "it holds no data".to_owned())?;
    check(file.read_at(&mut sector, 4 << 20)? == 0, || "it is longer than asked".to_owned())?;
    drop(file);
    device.detach()?;
    check(attached(directory.path()).is_empty(), || "it is still attached".to_owned())?;
    drop(attach()?);
    wait_for("it is detached when dropped", || attached(directory.path()).is_empty())
}

/// This program as something that a test kills. It is killed at the end at the latest.
struct Victim(Process);

impl Victim {
    fn start(words: &[&str]) -> Result<Victim, Failed> {
        let command = &mut Command::new("/proc/self/exe");
        let command = command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Victim(command.spawn()?))
    }

    fn signal(&self, signal: Signal) -> Outcome {
        Ok(kill_process(pid_of(self.0.id()).ok_or("no process")?, signal)?)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_loop_device_is_gone_after_sigkill() -> Outcome {
    let directory = directory()?;
    let mut victim = Victim::start(&["hold-loop-device", directory.path().to_str().ok_or("no path")?])?;
    let mut line = String::new();
    BufReader::new(victim.0.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    check(line.starts_with("/dev/loop"), || format!("it said: {line}"))?;
    check(attached(directory.path()).len() == 1, || "it is not attached".to_owned())?;
    victim.signal(Signal::KILL)?;
    victim.0.wait()?;
    wait_for("it is detached", || attached(directory.path()).is_empty())?;
    check(is_empty(directory.path()), || "a file is left".to_owned())
}

fn a_throttled_reader_reports_on_time() -> Outcome {
    let directory = directory()?;
    let device = LoopDevice::attach(directory.path(), 4 << 20, &AtomicBool::new(false))?;
    let path = device.path().display().to_string();
    let group = Group::new("reader", "io", &[("io.max", &format!("{path} riops=4"))])?;
    let mut children =
        [start("read", &["--seconds", "1", "--depth", "4", "--block", "4096", "--device", &path])?];
    Cgroupfs.enter(&group.0, children[0].pid())?;
    let line = finish(&mut children)?.remove(0);
    let report: ReadReport = serde_json::from_str(&line)?;
    check(report.wall_ns == 1_000_000_000 && report.reads <= 10, || line.clone())?;
    check(report.in_flight > 0 && report.in_flight <= 4 && report.in_flight_ns > 0, || line.clone())?;
    check(report.bytes == report.reads * 4096, || line)?;
    Ok(device.detach()?)
}

fn the_demonstration_leaves_nothing() -> Outcome {
    let directory = directory()?;
    let mut demo = demonstration(&directory, &["--short", "--json"])?;
    let (out, err) = output(&mut demo)?;
    check(demo.0.wait()?.success(), || err.clone())?;
    let result: serde_json::Value = serde_json::from_str(&out)?;
    let rows = result["rows"].as_array().ok_or("no rows")?;
    let names: Vec<&str> = rows.iter().filter_map(|row| row["condition"].as_str()).collect();
    let expected =
        ["CPU, no limit", "CPU, pinned", "CPU, quota of 50 %", "CPU, quota of 25 %", "reads, no limit"];
    check(names == [&expected[..], &["reads, 10 a second"]].concat(), || format!("{names:?}"))?;
    check(rows.iter().all(|row| row["verdict"] != "failed"), || out.clone())?;
    check(result["settings"].as_array().is_some_and(|settings| settings.len() == 5), || out.clone())?;
    nothing_is_left(demo.0.id(), &directory)
}

/// Reads both pipes to their ends; what a demonstration says on standard error is short.
fn output(victim: &mut Victim) -> Result<(String, String), Failed> {
    let (mut out, mut err) = (String::new(), String::new());
    victim.0.stdout.take().ok_or("no pipe")?.read_to_string(&mut out)?;
    victim.0.stderr.take().ok_or("no pipe")?.read_to_string(&mut err)?;
    Ok((out, err))
}

fn groups_of(pid: u32) -> Vec<PathBuf> {
    ["a", "b"].iter().flat_map(|letter| Cgroupfs::directories(&format!("rf-demo-{pid}-{letter}"))).collect()
}

fn processes_in(groups: &[PathBuf]) -> Vec<u32> {
    let read = |path: &PathBuf| fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let mut all: Vec<u32> = groups
        .iter()
        .map(read)
        .flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>())
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn demonstration(directory: &TempDir, options: &[&str]) -> Result<Victim, Failed> {
    let path = directory.path().to_str().ok_or("no path")?;
    Victim::start(&[&["demo", path], options].concat())
}

fn nothing_is_left(pid: u32, directory: &TempDir) -> Outcome {
    check(groups_of(pid).is_empty(), || format!("groups: {:?}", groups_of(pid)))?;
    check(is_empty(directory.path()), || "a file is left".to_owned())?;
    wait_for("its loop device is detached", || attached(directory.path()).is_empty())
}

/// A demonstration whose workers are at work, and their numbers.
fn running_demonstration(directory: &TempDir) -> Result<(Victim, Vec<u32>), Failed> {
    let demo = demonstration(directory, &[])?;
    let pid = demo.0.id();
    let mut workers = Vec::new();
    wait_for("workers are in both groups", || {
        let groups = groups_of(pid);
        workers = processes_in(&groups);
        groups.len() >= 2 && groups.iter().all(|group| !processes_in(std::slice::from_ref(group)).is_empty())
    })?;
    std::thread::sleep(Duration::from_millis(200));
    Ok((demo, workers))
}

fn are_gone(workers: &[u32]) -> Outcome {
    wait_for("the workers are dead", || {
        workers.iter().all(|pid| {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !comm.starts_with("rf-") || stat.contains(") Z ") || stat.is_empty()
        })
    })
}

fn ctrl_c_leaves_nothing() -> Outcome {
    interrupted_by(Signal::INT)
}

fn sigterm_leaves_nothing() -> Outcome {
    interrupted_by(Signal::TERM)
}

fn interrupted_by(signal: Signal) -> Outcome {
    let directory = directory()?;
    let (mut demo, workers) = running_demonstration(&directory)?;
    demo.signal(signal)?;
    let (_, err) = output(&mut demo)?;
    let status = demo.0.wait()?;
    check(status.code() == Some(1) && err.ends_with("error: interrupted\n"), || format!("{status}: {err}"))?;
    are_gone(&workers)?;
    nothing_is_left(demo.0.id(), &directory)
}

fn the_next_removes_what_a_killed_one_left() -> Outcome {
    let directory = directory()?;
    let (mut demo, workers) = running_demonstration(&directory)?;
    let pid = demo.0.id();
    demo.signal(Signal::KILL)?;
    demo.0.wait()?;
    are_gone(&workers)?;
    check(!groups_of(pid).is_empty(), || "SIGKILL can't remove groups: the test tests nothing".to_owned())?;
    let mut next = demonstration(&directory, &["--short"])?;
    let (out, err) = output(&mut next)?;
    check(next.0.wait()?.success(), || err.clone())?;
    check(out.contains(&format!("removed rf-demo-{pid}-a, left by a killed demonstration")), || out.clone())?;
    nothing_is_left(pid, &directory)?;
    nothing_is_left(next.0.id(), &directory)
}
