//! The built-in workloads as processes, through their drivers: they start, report, keep to what their group
//! has, and leave nothing. What their figures mean is tested where they are worked out.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child as Process, Command, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use ::workloads::{
    BuiltIn, Cpu, Cyclic, CyclicReport, Driver, Launch, Load, LoadReport, LogicalIo, LogicalIoReport,
    Outcome, Program, Reader, Site, Span, Stop, Timing, Workload,
};
use experiment::file;
use lab::LoopDevice;
use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use crate::{
    drivers::Plain,
    real::{self, Group, Test, Tested, check, wait_for},
};

/// The tests that need no right.
pub const TESTS: [(&str, Test); 6] = [
    ("the_logical_io_engine_reports_of_the_span_that_is_asked_for", the_engine_is_asked),
    ("the_cyclic_measurement_says_under_which_policy_it_ran", the_measurement_says_its_policy),
    ("loads_work_until_they_are_stopped_and_leave_no_file", loads_leave_no_file),
    ("sigterm_asks_a_workload_for_its_report", sigterm_asks_for_the_report),
    ("a_workload_that_can_not_begin_tells_why", a_workload_that_fails_tells_why),
    ("a_workload_dies_with_the_thread_that_started_it", a_workload_dies_with_its_starter),
];

/// Those that make groups.
pub const AS_ROOT: [(&str, Test); 3] = [
    ("cpu_work_under_a_quota_is_throttled", cpu_work_under_a_quota_is_throttled),
    ("pinned_cpu_work_runs_on_its_cpu_only", pinned_cpu_work_runs_on_its_cpu_only),
    ("a_throttled_reader_reports_its_few_reads", a_throttled_reader_reports_its_few_reads),
];

/// In a group by plain writes, or where the test runs.
struct Here;

impl Launch for Here {
    fn command(&self, group: Option<&str>, program: &OsStr) -> Command {
        // what is between us and our program has another exe
        let this = OsString::from(format!("/proc/{}/exe", std::process::id()));
        match group {
            Some(_) => Plain.command(group, if program == "/proc/self/exe" { &this } else { program }),
            None => Command::new(program),
        }
    }

    fn stop(&self) -> Stop {
        Stop::default()
    }
}

/// Where and how long a driver works.
struct Stay<'s> {
    directory: &'s Path,
    devices: BTreeMap<String, PathBuf>,
    group: Option<&'s Group>,
    /// Until it has done so much, and half a second at least.
    enough: f64,
}

impl Stay<'_> {
    /// What the driver says of its work; `look` is called before it is stopped.
    fn of(&self, driver: &mut dyn Driver, look: impl FnOnce() -> Tested) -> Result<Outcome, Failed> {
        let group = self.group.map(|group| group.0.as_str());
        let (directory, devices) = (self.directory, &self.devices);
        let site = Site { directory, devices, launch: &Here, group, clients_group: None };
        let second = Duration::from_secs(1);
        driver.prepare(&site)?;
        driver.start(&site, Timing { warm_up: second, steady_within: second, duration: second })?;
        driver.wait()?;
        let from = Instant::now();
        let enough = |driver: &mut dyn Driver| driver.done().is_none_or(|done| done >= self.enough);
        while !enough(driver) || from.elapsed() < Duration::from_millis(500) {
            check(from.elapsed() < Duration::from_secs(60), || "it does nothing for a minute".to_owned())?;
            std::thread::sleep(Duration::from_millis(10));
        }
        let looked = look();
        let outcome = driver.stop(Span { from, to: Instant::now() })?;
        driver.clean_up();
        looked.map(|()| outcome)
    }
}

/// Lets a driver work where the test runs until it has done something, and says of that.
fn run(driver: &mut dyn Driver, directory: &Path) -> Result<Outcome, Failed> {
    Stay { directory, devices: BTreeMap::new(), group: None, enough: 1000.0 }.of(driver, || Ok(()))
}

fn built_in<W: Workload>(workload: W) -> BuiltIn<W> {
    BuiltIn::new(Program::this("worker"), workload)
}

fn reading(outcome: &Outcome, name: &str) -> Result<f64, Failed> {
    let number = outcome.readings.get(name).copied();
    number.ok_or_else(|| format!("no '{name}' in {:?}", outcome.readings).into())
}

fn report_of<R: DeserializeOwned>(outcome: &Outcome) -> Result<R, Failed> {
    let path = outcome.files.first().ok_or("there is no report")?;
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn the_engine_is_asked() -> Tested {
    let directory = tempfile::tempdir()?;
    let options = file::LogicalIo {
        readers: "3".to_owned(),
        cpu_count: Some("1".to_owned()),
        quantum_ms: 5,
        memory: Some("8M".to_owned()),
        placement: "interleave".to_owned(),
        ..file::LogicalIo::default()
    };
    let outcome = run(&mut built_in(LogicalIo(options)), directory.path())?;
    let report: LogicalIoReport = report_of(&outcome)?;
    check(reading(&outcome, "reads")? > 0.0, || format!("{report:?}"))?;
    let per_second = report.total.reads / report.seconds;
    check((reading(&outcome, "reads")? / per_second - 1.0).abs() < 1e-9, || format!("{report:?}"))?;
    // half a second less the time that the question took on its way to the engine
    check(report.seconds > 0.49 && report.each.len() == 3 && report.wrong == 0.0, || format!("{report:?}"))?;
    check(report.cpu_count == Some(1) && report.placement.starts_with("interleave:0"), || {
        format!("{report:?}")
    })?;
    check(reading(&outcome, "db-time")? > 0.0, || format!("{report:?}"))?;
    check(reading(&outcome, "cpu-quantum")? > 0.0, || format!("{report:?}"))?;
    check(outcome.series.first().is_some_and(|series| series.points.len() >= 2), || format!("{report:?}"))
}

fn the_measurement_says_its_policy() -> Tested {
    let directory = tempfile::tempdir()?;
    let options = file::Cyclic { interval_us: 1000, priority: 0, threads: 2 };
    let outcome = run(&mut built_in(Cyclic(options)), directory.path())?;
    let report: CyclicReport = report_of(&outcome)?;
    check(report.policy == "SCHED_OTHER with timer slack 1", || format!("{report:?}"))?;
    check(reading(&outcome, "priority")? == 0.0 && report.each.len() == 2, || format!("{report:?}"))?;
    let latency = outcome.latencies.get("latency").ok_or("no latency")?;
    check(latency.count > 0 && latency.p99 >= latency.p50, || format!("{latency:?}"))?;
    check(latency.bins.iter().map(|(_, count)| count).sum::<u64>() == latency.count, || {
        format!("{latency:?}")
    })?;

    // as real-time as this machine lets it be, and reported either way
    let options = file::Cyclic { interval_us: 1000, ..file::Cyclic::default() };
    let outcome = run(&mut built_in(Cyclic(options)), directory.path())?;
    let report: CyclicReport = report_of(&outcome)?;
    let reported = report.warnings.iter().any(|warning| warning.starts_with("not real-time: "));
    check((report.priority == 90) != reported, || format!("{report:?}"))?;
    check((report.policy == "SCHED_FIFO") == (report.priority == 90), || format!("{report:?}"))
}

fn loads_leave_no_file() -> Tested {
    let directory = tempfile::tempdir_in("/var/tmp")?;
    let threads = || "3".to_owned();
    let busy = || file::Busy { threads: threads() };
    let writers = file::Writers { threads: threads(), device: None };
    let mut loads =
        [Load::busy(busy()), Load::sleepers(busy()), Load::idle_poll(busy()), Load::writers(writers)]
            .map(built_in);
    for load in &mut loads {
        let outcome = run(load, directory.path())?;
        check(reading(&outcome, "rate")? > 0.0, || format!("{outcome:?}"))?;
    }
    let left: Vec<_> = fs::read_dir(directory.path())?.collect();
    check(left.is_empty(), || format!("{left:?}"))
}

/// A workload by hand, killed at the latest when the test ends.
pub struct Killed(pub Process);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sigterm_asks_for_the_report() -> Tested {
    let mut command = Command::new("/proc/self/exe");
    command.args(["worker", "load", "--kind", "sleepers", "--threads", "2"]);
    let mut load = Killed(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let pid = i32::try_from(load.0.id()).ok().and_then(Pid::from_raw).ok_or("no number")?;
    let mut lines = BufReader::new(load.0.stdout.take().ok_or("no output")?).lines();
    check(lines.next().transpose()?.as_deref() == Some("ready"), || "it is not ready".to_owned())?;
    lines.next().transpose()?;
    kill_process(pid, Signal::TERM)?;
    let last = lines.last().transpose()?.ok_or("no report")?;
    let report: LoadReport = serde_json::from_str(&last)?;
    check(report.threads == 2 && report.kind == "sleepers", || last)?;
    check(load.0.wait()?.success(), || "it ended badly".to_owned())
}

fn reader(device: &str) -> BuiltIn<Reader> {
    built_in(Reader { device: device.to_owned(), block: 4096, depth: 4 })
}

fn a_workload_that_fails_tells_why() -> Tested {
    let directory = tempfile::tempdir()?;
    let said = |driver: &mut dyn Driver| {
        let error = run(driver, directory.path()).err();
        error.and_then(|error| error.message().map(str::to_owned)).unwrap_or_default()
    };
    let options = file::LogicalIo { placement: "bind:999".to_owned(), ..file::LogicalIo::default() };
    let message = said(&mut built_in(LogicalIo(options)));
    check(message.contains("this machine has no node 999"), || message.clone())?;
    let message = said(&mut reader("/nonexistent"));
    let expected = "the reader ended with exit status: 1: cannot open /nonexistent: No such file";
    check(message.starts_with(expected), || message.clone())?;
    let message = said(&mut built_in(Cpu { threads: 0 }));
    check(message.ends_with("--threads: '0' is no number from 1 to 8192"), || message.clone())
}

fn a_workload_dies_with_its_starter() -> Tested {
    // a thread is the parent that counts, and it ends without killing anybody
    let started = std::thread::spawn(|| {
        let mut command = Command::new("/proc/self/exe");
        command.args(["worker", "cpu", "--parent", &std::process::id().to_string()]);
        let mut worker = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(worker.stdout.take().expect("it has a pipe"));
        out.read_line(&mut String::new())?; // it is at work
        let pid = worker.id();
        // a pipe that closes would end it, too
        std::mem::forget((worker, out));
        Ok::<u32, std::io::Error>(pid)
    });
    let pid = started.join().map_err(|_| "the thread panicked")??;
    wait_for("the workload is dead", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    })?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())?;
    Ok(())
}

fn cpu_work_under_a_quota_is_throttled() -> Tested {
    let directory = tempfile::tempdir()?;
    // so little that it is reached on the busiest machine
    let group = Group::new("quota", "cpu", &[("cpu.max", "5%")])?;
    let stay =
        Stay { directory: directory.path(), devices: BTreeMap::new(), group: Some(&group), enough: 1.0 };
    let outcome = stay.of(&mut built_in(Cpu { threads: 2 }), || Ok(()))?;
    check(reading(&outcome, "cpus")? < 0.2, || format!("{outcome:?}"))?;
    check(reading(&outcome, "rate")? > 0.0, || format!("{outcome:?}"))?;
    check(reading(&outcome, "rate-per-cpu")? > reading(&outcome, "rate")?, || format!("{outcome:?}"))?;
    let stat = fs::read_to_string(group.directory().join("cpu.stat"))?;
    let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    check(throttled > Some(0), || stat)
}

fn pinned_cpu_work_runs_on_its_cpu_only() -> Tested {
    let directory = tempfile::tempdir()?;
    let machine = topology::Machine::live()?;
    let cpu = machine.online().last().ok_or("no CPU")?;
    let node = machine.node_of_cpu(cpu).unwrap_or(0).to_string();
    let settings = [("cpuset.cpus", &*cpu.to_string()), ("cpuset.mems", &*node)];
    let group = Group::new("pinned", "cpuset", &settings)?;
    let stay =
        Stay { directory: directory.path(), devices: BTreeMap::new(), group: Some(&group), enough: 1.0 };
    stay.of(&mut built_in(Cpu { threads: 2 }), || {
        let [pid] = group.processes()[..] else {
            return Err(format!("not one process: {:?}", group.processes()).into());
        };
        let mut threads = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            // proc(5): the CPU on which it ran last is the 39th field, the 37th behind its name
            let last = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(36));
            check(last == Some(&*cpu.to_string()), || stat.clone())?;
            threads += 1;
        }
        check(threads >= 2, || format!("{threads} threads"))
    })?;
    Ok(())
}

fn a_throttled_reader_reports_its_few_reads() -> Tested {
    let directory = real::directory()?;
    let device = LoopDevice::attach(directory.path(), 4 << 20, &AtomicBool::new(false))?;
    let path = device.path().display().to_string();
    let group = Group::new("reader", "io", &[("io.max", &format!("{path} riops=4"))])?;
    let devices = BTreeMap::from([("disk".to_owned(), device.path())]);
    let stay = Stay { directory: directory.path(), devices, group: Some(&group), enough: 4.0 };
    let outcome = stay.of(&mut reader("disk"), || Ok(()))?;
    check(reading(&outcome, "iops")? <= 10.0, || format!("{outcome:?}"))?;
    let bytes = reading(&outcome, "bytes-per-second")? - 4096.0 * reading(&outcome, "iops")?;
    check(bytes.abs() < 1e-6, || format!("{outcome:?}"))?;
    let counted = outcome.latencies.get("latency").map_or(0, |latency| latency.count);
    check(counted as f64 == reading(&outcome, "operations")?, || format!("{outcome:?}"))?;
    check(device.detach(Duration::from_secs(30)).is_none(), || "it is still open".to_owned())
}
