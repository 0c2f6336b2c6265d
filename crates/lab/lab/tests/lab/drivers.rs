//! The drivers with the real tools: short runs whose figures are counted a second time, by other means, from what the
//! tool itself wrote; and nothing left of any of them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ::workloads::{Driver, Launch, Outcome, Program, Site, Span, Stop, Timing};
use experiment::file::{self, Driver as Named};
use lab::LoopDevice;
use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::{
    division::Cgroupfs,
    real::{Group, Test, Tested, check, wait_for},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("pgbench_is_counted_as_its_own_log_says", pgbench_is_counted_as_its_own_log_says),
        ("pgbench_with_a_rate_tells_how_late_it_was", pgbench_with_a_rate_tells_how_late_it_was),
        ("pgbench_on_a_running_server_leaves_it_running", pgbench_on_a_running_server_leaves_it_running),
        ("nothing_is_left_of_a_driver_that_is_dropped", nothing_is_left_of_a_driver_that_is_dropped),
        ("nothing_runs_on_after_a_lab_is_killed", nothing_runs_on_after_a_lab_is_killed),
        ("fio_is_counted_as_its_own_report_says", fio_is_counted_as_its_own_report_says),
        ("fio_is_held_to_ten_operations_a_second", fio_is_held_to_ten_operations_a_second),
        ("fio_writes_only_to_what_is_the_labs_own", fio_writes_only_to_what_is_the_labs_own),
    ]
}

/// Starts programs in the tests' groups by plain writes.
pub struct Plain;

impl Launch for Plain {
    fn command(&self, group: Option<&str>, program: &OsStr) -> Command {
        let files = group.map(Cgroupfs::directories).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "while [ \"$1\" != -- ]; do echo $$ >\"$1\" || exit 1; shift; done; shift; exec \"$@\"",
            "sh",
        ]);
        command.args(files.iter().map(|path| path.join("cgroup.procs"))).arg("--").arg(program);
        command
    }

    fn stop(&self) -> Stop {
        Stop::default()
    }
}

/// A driver with its site; its directory is one that the user postgres can reach.
pub struct Trial {
    pub driver: Box<dyn Driver>,
    has_own_clock: bool,
    pub directory: TempDir,
    pub devices: BTreeMap<String, PathBuf>,
    pub groups: [Option<String>; 2],
}

impl Trial {
    pub fn new(options: &Named) -> Result<Trial, Failed> {
        let directory = tempfile::Builder::new().prefix("rf-test-").tempdir_in("/var/tmp")?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711))?;
        Ok(Trial {
            driver: workloads::drivers::new(options, &Program::this("worker"))?,
            has_own_clock: options.has_own_clock(),
            directory,
            devices: BTreeMap::new(),
            groups: [None, None],
        })
    }

    pub fn with<T>(
        &mut self,
        run: impl FnOnce(&mut dyn Driver, &Site<'_>) -> Result<T, ::workloads::Error>,
    ) -> Result<T, Failed> {
        let [group, clients_group] = &self.groups;
        let site = Site {
            directory: self.directory.path(),
            devices: &self.devices,
            launch: &Plain,
            group: group.as_deref(),
            clients_group: clients_group.as_deref(),
        };
        run(self.driver.as_mut(), &site).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}; hint: {hint}").into(),
            None => error.to_string().into(),
        })
    }

    pub fn begin(&mut self, timing: Timing) -> Tested {
        self.with(|driver, site| {
            driver.prepare(site)?;
            driver.start(site, timing)?;
            driver.wait()
        })
    }

    /// A run of a driver that can be stopped at any time; a second of it counts.
    pub fn second(&mut self) -> Result<(Outcome, Span), Failed> {
        self.begin(TIMING)?;
        let from = Instant::now();
        let before = self.driver.done().ok_or("it can't say what it has done")?;
        std::thread::sleep(TIMING.duration);
        let span = Span { from, to: Instant::now() };
        wait_for("it has done more", || self.driver.done().is_some_and(|done| done > before))?;
        Ok((self.driver.stop(span)?, span))
    }

    /// A run of a driver with a clock of its own.
    pub fn whole(&mut self, timing: Timing) -> Result<Outcome, Failed> {
        check(self.has_own_clock, || "it has no clock of its own".to_owned())?;
        let from = Instant::now() + timing.warm_up;
        self.begin(timing)?;
        self.driver.begin();
        Ok(self.driver.stop(Span { from, to: from + timing.duration })?)
    }

    /// A run of a driver that can't say how far it is.
    pub fn unasked(&mut self, time: Duration) -> Result<Outcome, Failed> {
        check(!self.has_own_clock, || "it has a clock of its own".to_owned())?;
        self.begin(TIMING)?;
        let from = Instant::now();
        std::thread::sleep(time);
        Ok(self.driver.stop(Span { from, to: Instant::now() })?)
    }

    /// Processes that work in the site's directory.
    pub fn processes(&self) -> Vec<u32> {
        working_in(self.directory.path())
    }

    pub fn nothing_is_left(&self) -> Tested {
        wait_for("its processes are gone", || self.processes().is_empty())?;
        let is_left = |name: &&str| self.directory.path().join(name).exists();
        let left: Vec<&str> = ["postgresql", "oltp"].into_iter().filter(is_left).collect();
        check(left.is_empty(), || format!("data is left: {left:?}"))
    }
}

pub const TIMING: Timing = Timing {
    warm_up: Duration::from_millis(500),
    steady_within: Duration::from_secs(2),
    duration: Duration::from_secs(1),
};

/// By their working directory: all that a driver starts has the site's or one below it.
fn working_in(directory: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let works =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    pids.filter(works).collect()
}

pub fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

pub fn pgbench(change: impl FnOnce(&mut file::Pgbench)) -> Named {
    let mut options = file::Pgbench { clients: 3, scale: 1, ..file::Pgbench::default() };
    options.shared_buffers = "16MB".to_owned();
    change(&mut options);
    Named::Pgbench(options)
}

pub fn reading(outcome: &Outcome, name: &str) -> Result<f64, Failed> {
    Ok(*outcome.readings.get(name).ok_or_else(|| format!("no {name} in {:?}", outcome.readings))?)
}

/// Counts with awk(1) what ended between two times in the logs.
pub fn counted(logs: &[&PathBuf], from: &str, to: &str) -> Result<u64, Failed> {
    let program =
        "{ t = $5 * 1000000 + $6 } $3 ~ /^[0-9]+$/ && t >= from && t < to { n++ } END { print n + 0 }";
    let mut awk = Command::new("awk");
    awk.args(["-v", &format!("from={from}"), "-v", &format!("to={to}"), program]).args(logs);
    Ok(String::from_utf8(awk.output()?.stdout)?.trim().parse()?)
}

fn pgbench_is_counted_as_its_own_log_says() -> Tested {
    let groups = [Group::new("server", "cpu", &[])?, Group::new("clients", "cpu", &[])?];
    let mut trial = Trial::new(&pgbench(|options| options.script = "tpcb-like".to_owned()))?;
    trial.groups = groups.each_ref().map(|group| Some(group.0.clone()));
    trial.begin(TIMING)?;

    // who is where, while it works
    let members = groups.each_ref().map(|group| group.processes());
    for (members, name, at_least) in [(&members[0], "postgres", 3 + 4), (&members[1], "pgbench", 1)] {
        let names: Vec<String> = members.iter().map(|pid| name_of(*pid)).collect();
        check(names.len() >= at_least && names.iter().all(|each| each == name), || format!("{names:?}"))?;
    }

    let begun = trial.driver.done().ok_or("it says what it has done")?;
    let from = Instant::now();
    let day = SystemTime::now().duration_since(UNIX_EPOCH)?;
    wait_for("a hundred transactions", || trial.driver.done().is_some_and(|done| done > begun + 100.0))?;
    std::thread::sleep(Duration::from_millis(300));
    let span = Span { from, to: Instant::now() };
    let outcome = trial.driver.stop(span)?;
    let transactions = reading(&outcome, "transactions")?;

    let file = |part: &str| {
        outcome.files.iter().filter(|path| path.display().to_string().contains(part)).collect::<Vec<_>>()
    };
    let bounds = fs::read_to_string(file("pgbench.span")[0])?;
    let [from_us, to_us] = bounds.lines().collect::<Vec<_>>()[..] else { return Err(bounds.into()) };
    let logs = file("pgbench_log.");
    check(logs.len() == 2, || format!("a log for each thread: {logs:?}"))?;
    let again = counted(&logs, from_us, to_us)?;
    check(again as f64 == transactions, || format!("{transactions} reported, {again} counted"))?;
    let latency = outcome.latencies.get("latency").ok_or("no latency")?;
    check(latency.count == again && latency.min > 0.0 && latency.p50 <= latency.p99, || {
        format!("{latency:?}")
    })?;
    let seconds = span.to.duration_since(span.from).as_secs_f64();
    check((reading(&outcome, "tps")? * seconds - transactions).abs() < 1.0, || {
        format!("{:?}", outcome.readings)
    })?;
    // the span was where it should be: the clocks were read apart, and may be slewed
    let off = (from_us.parse::<f64>()? - day.as_micros() as f64).abs();
    check(off < 50_000.0, || format!("the span is off by {off} us"))?;

    // the whole run, as pgbench itself says it
    let summary = fs::read_to_string(file("pgbench.out")[0])?;
    let reported =
        summary.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let all = counted(&logs, "0", "9e15")?;
    check(reported.is_some_and(|reported| reported == all.to_string()), || {
        format!("{all} counted\n{summary}")
    })?;
    check(all >= again, || format!("{all} < {again}"))?;

    check(trial.processes().is_empty(), || "something runs after the run".to_owned())?;
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn pgbench_with_a_rate_tells_how_late_it_was() -> Tested {
    let mut trial = Trial::new(&pgbench(|options| options.rate = Some(300.0)))?;
    let (outcome, _) = trial.second()?;
    let (latency, lag) = (&outcome.latencies["latency"], &outcome.latencies["lag"]);
    check(latency.count == lag.count && latency.count > 0, || format!("{latency:?} {lag:?}"))?;
    // from the intended start: how late it was is in it
    check(latency.mean > lag.mean && latency.max >= lag.max, || format!("{latency:?} {lag:?}"))?;
    check(outcome.readings["failed"] == 0.0 && outcome.readings["skipped"] == 0.0, || {
        format!("{outcome:?}")
    })?;
    let series = outcome.series.iter().find(|series| series.name == "tps").ok_or("no tps over time")?;
    check(series.points.iter().any(|(at, tps)| *at > 0.0 && *tps > 0.0), || format!("{series:?}"))?;
    // a second run begins again
    trial.with(|driver, site| driver.start(site, TIMING).and_then(|()| driver.wait()))?;
    drop(trial.driver.stop(Span { from: Instant::now(), to: Instant::now() + Duration::from_millis(1) })?);
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn pgbench_on_a_running_server_leaves_it_running() -> Tested {
    let mut theirs = Trial::new(&pgbench(|options| options.rate = Some(20.0)))?;
    theirs.begin(TIMING)?;
    let postmaster = fs::read_to_string(theirs.directory.path().join("postgresql/data/postmaster.pid"))?;
    let postmaster: u32 = postmaster.lines().next().ok_or("no number")?.parse()?;
    let dsn = format!("host={}/postgresql user=ringfence dbname=postgres", theirs.directory.path().display());
    let mut ours = Trial::new(&pgbench(|options| {
        (options.dsn, options.pid) = (Some(dsn.clone()), Some(postmaster));
    }))?;
    let (outcome, _) = ours.second()?;
    check(reading(&outcome, "transactions")? > 0.0, || format!("{:?}", outcome.readings))?;
    let server = ours.driver.running_server();
    // its helpers, and their three clients' backends
    let names: Vec<String> = server.iter().map(|pid| name_of(*pid)).collect();
    check(server[0] == postmaster && names.len() >= 1 + 3 + 4, || format!("{server:?} {names:?}"))?;
    check(names.iter().all(|name| name == "postgres"), || format!("{names:?}"))?;
    ours.driver.clean_up();
    ours.nothing_is_left()?;
    check(name_of(postmaster) == "postgres", || "the server is gone".to_owned())?;

    let mut wrong = Trial::new(&pgbench(|options| {
        (options.dsn, options.pid) = (Some(dsn.clone()), Some(std::process::id()));
    }))?;
    let error = wrong.begin(TIMING).err().ok_or("we are no server")?;
    let text = error.message().unwrap_or_default();
    check(text.contains("is no PostgreSQL server"), || text.to_owned())?;
    theirs.driver.clean_up();
    theirs.nothing_is_left()
}

fn nothing_is_left_of_a_driver_that_is_dropped() -> Tested {
    let mut trial = Trial::new(&pgbench(|_| {}))?;
    trial.begin(TIMING)?;
    check(trial.processes().len() > 5, || "it does not run".to_owned())?;
    trial.driver = workloads::drivers::new(&pgbench(|_| {}), &Program::this("worker"))?;
    trial.nothing_is_left()
}

/// A lab in the middle of a run, for [`nothing_runs_on_after_a_lab_is_killed`]: `hold-pgbench DIRECTORY`.
pub fn hold_pgbench(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut driver = workloads::drivers::new(&pgbench(|_| {}), &Program::this("worker"))?;
    let devices = BTreeMap::new();
    let site = Site { directory, devices: &devices, launch: &Plain, group: None, clients_group: None };
    driver.prepare(&site)?;
    driver.start(&site, TIMING)?;
    driver.wait()?;
    fs::write(directory.join("works"), "")?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

fn nothing_runs_on_after_a_lab_is_killed() -> Tested {
    let trial = Trial::new(&pgbench(|_| {}))?;
    let mut lab = Command::new("/proc/self/exe").arg("hold-pgbench").arg(trial.directory.path()).spawn()?;
    let works = wait_for("it works", || trial.directory.path().join("works").exists());
    let running = trial.processes().len();
    lab.kill()?;
    lab.wait()?;
    works?;
    check(running > 5, || format!("only {running} processes"))?;
    wait_for("its processes are gone", || trial.processes().is_empty())
}

fn fio(device: &str, change: impl FnOnce(&mut file::Fio)) -> Named {
    let mut options = file::Fio { device: device.to_owned(), ..file::Fio::default() };
    change(&mut options);
    Named::Fio(options)
}

pub fn loop_device(directory: &Path) -> Result<LoopDevice, Failed> {
    Ok(LoopDevice::attach(directory, 16 << 20, &AtomicBool::new(false))?)
}

fn fio_is_counted_as_its_own_report_says() -> Tested {
    let mut trial = Trial::new(&fio("disk", |options| options.rw = "randread".to_owned()))?;
    let device = loop_device(trial.directory.path())?;
    trial.devices.insert("disk".to_owned(), device.path().to_owned());
    let outcome = trial.whole(TIMING)?;
    let report = fs::read_to_string(&outcome.files[0])?;
    let report: serde_json::Value = serde_json::from_str(&report[report.find('{').ok_or("no JSON")?..])?;
    let jobs = report["jobs"].as_array().ok_or("no jobs")?;
    let sum = |key: &str| jobs.iter().filter_map(|job| job["read"][key].as_f64()).sum::<f64>();
    check(jobs.len() == 4 && sum("total_ios") > 0.0, || report.to_string())?;
    check(reading(&outcome, "operations")? == sum("total_ios"), || format!("{:?}", outcome.readings))?;
    check((reading(&outcome, "iops")? / sum("iops") - 1.0).abs() < 1e-6, || {
        format!("{:?}", outcome.readings)
    })?;
    let bytes = reading(&outcome, "bytes-per-second")?;
    // not by the operation: those that are under way when its ramp ends fio counts as bytes only
    // and it cuts each job's to whole bytes
    let cut = jobs.len() as f64;
    check((bytes - sum("bw_bytes")).abs() < cut, || format!("{bytes} {:?}", sum("bw_bytes")))?;
    let latency = &outcome.latencies["latency"];
    check(latency.count as f64 == sum("total_ios"), || format!("{latency:?}"))?;
    check(latency.min <= latency.p50 && latency.p50 <= latency.p99, || format!("{latency:?}"))?;
    let names: Vec<&str> = outcome.series.iter().map(|series| series.name.as_str()).collect();
    check(names == ["iops", "bytes-per-second"], || format!("{names:?}"))?;
    drop(device);
    trial.nothing_is_left()
}

fn fio_is_held_to_ten_operations_a_second() -> Tested {
    let mut trial = Trial::new(&fio("disk", |_| {}))?;
    let device = loop_device(trial.directory.path())?;
    let path = device.path().display().to_string();
    let group = Group::new("fio", "io", &[("io.max", &format!("{path} riops=10"))])?;
    trial.devices.insert("disk".to_owned(), device.path().to_owned());
    trial.groups[0] = Some(group.0.clone());
    let timing = Timing { duration: Duration::from_secs(3), ..TIMING };
    let outcome = trial.whole(timing)?;
    let iops = reading(&outcome, "iops")?;
    // the kernel lets no more through, however busy the machine is
    check(iops > 0.0 && iops <= 11.0, || format!("{:?}", outcome.readings))?;
    let latency = &outcome.latencies["latency"];
    check(latency.p50 > 0.1, || format!("four wait for ten a second: {latency:?}"))?;
    let reported: f64 = outcome.series[0].points.iter().map(|(_, rate)| rate).sum();
    check(reported > 0.0 && reported <= 45.0, || format!("{:?}", outcome.series))?;
    drop(device);
    trial.nothing_is_left()
}

fn fio_writes_only_to_what_is_the_labs_own() -> Tested {
    let mut trial = Trial::new(&fio("/dev/null", |options| options.rw = "randwrite".to_owned()))?;
    let error = trial.begin(TIMING).err().ok_or("it writes")?;
    let text = error.message().unwrap_or_default();
    check(text.starts_with("/dev/null is not the lab's own: nothing is written to it; hint: "), || {
        text.to_owned()
    })?;

    let mut trial = Trial::new(&fio("files", |options| options.rw = "randwrite".to_owned()))?;
    trial.devices.insert("files".to_owned(), trial.directory.path().to_owned());
    let outcome = trial.whole(TIMING)?;
    check(reading(&outcome, "operations")? > 0.0, || format!("{:?}", outcome.readings))?;
    trial.nothing_is_left()
}
