//! Whole experiments on the real kernel: run, rejected by a gate, interrupted and resumed, killed at any point. Each
//! is a process of its own, as on the command line.

mod endless;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{RecvTimeoutError, channel},
    },
    time::{Duration, Instant, SystemTime},
};

use ::workloads::{Program, Stop};
use experiment::{Note, Results, results::Run};
use kernel::{Host, Real};
use lab::{
    OwnDirectory,
    run::{self, Request, Step},
};
use layout::Source;
use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use topology::Machine;

use crate::{
    gates::Neighbour,
    real::{Test, Tested, check, wait_for},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("an_experiment_runs_every_condition_and_leaves_nothing", an_experiment_leaves_nothing),
        ("a_foreign_load_rejects_a_run_which_is_made_again_and_kept", a_foreign_load_rejects),
        ("an_interrupted_experiment_goes_on_where_it_ended", an_interrupted_one_goes_on),
        ("a_stop_ends_every_part_of_an_experiment_within_seconds", endless::a_stop_ends_what_is_long),
        ("a_stop_ends_the_analysis_of_thousands_of_runs", endless::a_stop_ends_the_analysis),
        ("a_flood_of_output_fills_neither_memory_nor_disk", endless::a_flood_of_output_is_bounded),
        ("a_killed_experiment_is_cleaned_up_by_the_next_command", a_killed_one_is_cleaned_up),
    ]
}

type Wrong = Box<dyn std::error::Error>;

/// `run-experiment FILE DIRECTORY [resume|DEVICE]`: as `ringfence lab run`.
pub fn run_experiment(words: &[std::ffi::OsString]) -> Result<(), Wrong> {
    let [file, directory, rest @ ..] = words else { return Err("a file and a directory".into()) };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let text = fs::read_to_string(file)?;
    let read = experiment::read(&Source::new("test.toml", &text));
    let experiment = read.experiment.ok_or_else(|| format!("{:?}", read.diagnostics))?;
    let host = Host::new(Box::new(Real::new()))?;
    let resume = rest.first().is_some_and(|word| word == "resume");
    let machine = Machine::live()?;
    let request = Request {
        cpus: experiment::rescale::rescale(&experiment, &machine)?,
        experiment,
        text,
        layouts: Default::default(),
        notes: Vec::new(),
        quick: false,
        repetitions: None,
        seed: Some(7),
        gates: Default::default(),
        built_in: false,
        move_others: false,
        device: rest.first().filter(|_| !resume).map(PathBuf::from),
        directory: PathBuf::from(directory),
        resume: resume.then(|| OwnDirectory::open(Path::new(directory)).map(Arc::new)).transpose()?,
        program: Program::this("worker"),
        stop: Stop::new(stop),
        progress: &mut |step| match step {
            Step::Preparing(what) => println!("{what}"),
            Step::Run { number, .. } => println!("run {number}"),
            Step::Rejected(why) => println!("rejected {why}"),
            Step::StillOpen(device) => println!("still open {}", device.display()),
        },
    };
    run::run(&host, &machine, request)?;
    Ok(())
}

/// `clean`: as the next `ringfence lab` command does it first.
pub fn clean() -> Result<(), Wrong> {
    let cleaned = run::clean(&Host::new(Box::new(Real::new()))?)?;
    println!("{}", cleaned.removed.join("; "));
    cleaned.left.first().map_or(Ok(()), |why| Err(why.as_str().into()))
}

/// An experiment's file, results and state of their own.
pub struct Place {
    directory: TempDir,
}

impl Place {
    pub fn with(text: &str) -> Result<Place, Failed> {
        let directory = tempfile::tempdir_in("/var/tmp")?;
        fs::write(directory.path().join("test.toml"), text)?;
        Ok(Place { directory })
    }

    pub fn command(&self, word: &str) -> Result<Command, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(word).env("RINGFENCE_STATE", self.directory.path().join("state"));
        Ok(command)
    }

    /// Waits for the end of an experiment that was asked to stop. One that goes on is ended, and what it made removed.
    fn end_of(&self, child: Child) -> Result<Output, Failed> {
        let (pid, (ended, is_ended)) = (child.id(), channel::<()>());
        let mut clean = self.command("clean")?;
        std::thread::scope(|threads| {
            threads.spawn(move || {
                if is_ended.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                    let _ = signal(pid, Signal::KILL);
                    let _ = clean.status();
                }
            });
            let output = child.wait_with_output();
            drop(ended);
            Ok(output?)
        })
    }

    pub fn results(&self) -> PathBuf {
        self.directory.path().join("results")
    }

    pub fn run(&self, resume: bool) -> Result<Command, Failed> {
        let mut command = self.command("run-experiment")?;
        command.arg(self.directory.path().join("test.toml")).arg(self.results());
        if resume {
            command.arg("resume");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// To its end, after which nothing of it is left.
    pub fn run_whole(&self) -> Tested {
        let child = self.run(false)?.spawn()?;
        let pid = child.id();
        finish(child)?;
        leaves_nothing(pid)
    }

    pub fn runs(&self) -> Result<Vec<Run>, Failed> {
        let text = fs::read_to_string(self.results().join("runs.jsonl"))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

/// Without gates: other tests, or whatever else runs, must not decide these.
pub const OPEN: &str = "[gates]\nforeign-cpu = 1.0\nsteal = 1.0\n";

/// How an experiment's file begins: brief, and looked at often.
pub fn head(repetitions: u32, duration: &str, gates: &str) -> String {
    format!(
        r#"
name = "test"
title = "A test"
repetitions = {repetitions}
duration = "{duration}"
warm-up = "200ms"
steady-within = "200ms"
sample = "50ms"
{gates}
"#
    )
}

fn two_conditions(gates: &str, duration: &str) -> String {
    head(2, duration, gates)
        + r#"
[group.server]
[workload.work]
driver = "cpu"
group = "server"
[workload.outside]
driver = "cpu"
[[condition]]
name = "free"
[[condition]]
name = "a quarter"
settings.server."cpu.max" = "25%"
[[event]]
at = "90%"
conditions = ["a quarter"]
label = "half"
settings.server."cpu.max" = "50%"
[[measure]]
name = "work"
is = "work.rate"
[[measure]]
name = "CPUs"
is = "server.cpu"
[[comparison]]
measure = "work"
baseline = "free"
condition = "a quarter"
"#
}

fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_groups = mounts.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        fields[2].starts_with("cgroup").then(|| Path::new(fields[1]).join(format!("rf-lab-{pid}")))
    });
    of_groups.filter(|path| path.is_dir()).collect()
}

/// What an experiment of that process may have left.
fn left_by(pid: u32) -> Vec<String> {
    let mine = format!("rf-lab-{pid}");
    let mut left: Vec<String> = groups_of(pid).iter().map(|path| path.display().to_string()).collect();
    let scratch = fs::read_dir("/var/tmp").into_iter().flatten().flatten();
    left.extend(
        scratch
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(&format!("{mine}-"))),
    );
    for file in ["/proc/self/mounts", "/proc/swaps"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        left.extend(text.lines().filter(|line| line.contains(&format!("{mine}-"))).map(str::to_owned));
    }
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if file.contains(&format!("{mine}-")) {
            left.push(format!("{} on {}", device.path().display(), file.trim()));
        }
    }
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let of_it = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if of_it.contains(&format!("--parent\0{pid}\0")) {
            left.push(format!("process {}", process.file_name().to_string_lossy()));
        }
    }
    left
}

/// Its program is started once its output's file is there.
fn starts_swapon(pid: u32) -> bool {
    left_by(pid).iter().any(|name| Path::new("/var/tmp").join(name).join("swapon.out").exists())
}

pub fn leaves_nothing(pid: u32) -> Tested {
    let mut left = Vec::new();
    let gone = wait_for("everything is gone", || {
        left = left_by(pid);
        left.is_empty()
    });
    gone.map_err(|failed| format!("{}: {left:?}", failed.message().unwrap_or_default()).into())
}

pub fn finish(child: Child) -> Result<String, Failed> {
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    check(output.status.success(), || format!("{}: {said}", output.status))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn an_experiment_leaves_nothing() -> Tested {
    let text = two_conditions(OPEN, "1s");
    let place = Place::with(&text)?;
    place.run_whole()?;
    let results: Results = serde_json::from_str(&fs::read_to_string(place.results().join("results.json"))?)?;
    check(results.complete && results.runs.len() == 4, || format!("{:?}", results.runs))?;
    check(fs::read_to_string(place.results().join("experiment.toml"))? == text, || {
        "another file".to_owned()
    })?;
    check(place.runs()? == results.runs, || "the lines are not the results".to_owned())?;
    for run in &results.runs {
        let quarter = run.condition == "a quarter";
        let cpus = *run.figures.get("CPUs").ok_or("no CPUs")?;
        check(run.figures["work"] > 0.0 && cpus > 0.0, || format!("{run:?}"))?;
        // the worker's own count and the group's accounting are of nearly the same span
        let own = run.readings["work.cpus"];
        check((own - cpus).abs() < 0.1, || format!("the worker had {own}, its group {cpus}"))?;
        // a quarter for nine tenths of the time, then half; a period more at either end
        check(!quarter || cpus < 0.4, || format!("{run:?}"))?;
        check(run.settings.len() == usize::from(quarter), || format!("{:?}", run.settings))?;
        check(run.events.len() == usize::from(quarter), || format!("{:?}", run.events))?;
        check(run.seconds >= 1.0 && run.warm_up >= 0.2, || format!("{run:?}"))?;
        check(run.tasks.iter().any(|task| task.group == "server" && task.name == "rf-cpu"), || {
            format!("{:?}", run.tasks)
        })?;
        let has =
            |name: &str| run.series.iter().any(|series| series.name == name && !series.points.is_empty());
        check(has("work.rate") && has("server.cpu"), || format!("{:?}", run.series))?;
    }
    let blocks: Vec<u32> = results.runs.iter().map(|run| run.block).collect();
    check(blocks == [1, 1, 2, 2], || format!("{blocks:?}"))?;
    check(results.comparisons.len() == 1 && results.cells.len() == 4, || format!("{:?}", results.cells))
}

/// faults G5: 96 of 96 runs were rejected, each made four times. What can't be saved ends within two blocks.
fn a_foreign_load_rejects() -> Tested {
    let place =
        Place::with(&two_conditions("[gates]\nforeign-cpu = 0.1\nsteal = 1.0\nretries = 1\n", "500ms"))?;
    let neighbour = Neighbour::begin()?;
    let child = place.run(false)?.spawn()?;
    let pid = child.id();
    let said = finish(child);
    drop(neighbour);
    let said = said?;
    leaves_nothing(pid)?;
    let runs = place.runs()?;
    let rejected =
        |run: &&Run| run.rejected.as_ref().is_some_and(|why| why.starts_with("other programs used "));
    check(runs.len() == 4 && runs.iter().filter(rejected).count() == 4, || said.clone())?;
    let attempts: Vec<(u32, u32)> = runs.iter().map(|run| (run.block, run.attempt)).collect();
    check(attempts == [(1, 1), (1, 2), (1, 1), (1, 2)], || format!("{attempts:?}"))?;
    let results: Results = serde_json::from_str(&fs::read_to_string(place.results().join("results.json"))?)?;
    check(!results.complete, || "complete without a run that counts".to_owned())?;
    let stopped =
        matches!(results.notes.first(), Some(Note::Stopped { blocks: 1, runs: 4, rejected: 4, .. }));
    check(stopped, || format!("{:?}", results.notes))?;
    let reported = results
        .notes
        .iter()
        .filter(|note| matches!(note, Note::BusyMachine { cells, .. } if cells.len() == 2));
    let reported: Vec<&Note> = reported.collect();
    check(reported.len() == 1 && reported[0].to_string().contains(" (most by "), || {
        format!("{:?}", results.notes)
    })?;
    let kept = |cell: &experiment::results::Cell| cell.values.is_empty() && cell.rejected_values.len() == 2;
    check(results.cells.iter().all(|cell| cell.rejected == 2 && kept(cell)), || {
        format!("{:?}", results.cells)
    })
}

fn signal(pid: u32, signal: Signal) -> Tested {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process")?;
    Ok(kill_process(pid, signal)?)
}

fn an_interrupted_one_goes_on() -> Tested {
    let place = Place::with(&two_conditions(OPEN, "500ms"))?;
    let mut child = place.run(false)?.spawn()?;
    let pid = child.id();
    let output = child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line == "run 2" {
            signal(pid, Signal::INT)?;
        }
    }
    check(!child.wait()?.success(), || "it was not interrupted".to_owned())?;
    leaves_nothing(pid)?;
    let before = place.runs()?;
    check((1..4).contains(&before.len()), || format!("{} runs", before.len()))?;
    // a line that was cut off, as by a full disk
    let lines = place.results().join("runs.jsonl");
    fs::write(&lines, fs::read_to_string(&lines)? + "{\"number\": 9")?;
    let child = place.run(true)?.spawn()?;
    let pid = child.id();
    finish(child)?;
    leaves_nothing(pid)?;
    let runs = place.runs()?;
    check(runs.len() == 4 && runs[..before.len()] == before[..], || format!("{} runs", runs.len()))?;
    let numbers: Vec<u32> = runs.iter().map(|run| run.number).collect();
    check(numbers == [1, 2, 3, 4], || format!("{numbers:?}"))
}

/// Megabytes of swap on this machine.
pub fn swap_there() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let number = |line: &str| line.strip_prefix("SwapTotal:")?.split_whitespace().next()?.parse::<u64>().ok();
    text.lines().find_map(number).unwrap_or(0) / 1024
}

/// With all that can be left: groups, processes, a mount on a loop device, swap.
fn everything() -> String {
    // the lab makes a swap file only if there is less swap than that
    let swap = swap_there() + 8;
    two_conditions(OPEN, "500ms")
        + &format!(
            r#"
[device.files]
kind = "loop"
size = "16M"
file-system = "ext4"
[device.disk]
kind = "loop"
size = "4M"
[device.swap]
kind = "swap"
size = "{swap}M"
[group.reader]
[workload.reads]
driver = "read"
device = "disk"
group = "reader"
"#
        )
}

fn a_killed_one_is_cleaned_up() -> Tested {
    let place = Place::with(&everything())?;
    // how long one takes from its start to its end, so that any point of it is met
    let begun = Instant::now();
    place.run_whole()?;
    let whole = begun.elapsed();
    let mut random = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.subsec_nanos();
    let mut met = 0;
    for turn in 0..10 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        fs::remove_dir_all(place.results())?;
        let mut child = place.run(false)?.spawn()?;
        let pid = child.id();
        match turn % 3 {
            // a swapon goes on without who started it
            0 => wait_for("swapon", || starts_swapon(pid))?,
            _ => std::thread::sleep(whole.mul_f64(f64::from(random >> 8) / f64::from(1_u32 << 24))),
        }
        met += usize::from(!left_by(pid).is_empty());
        let _ = child.kill(); // one that has ended already has left nothing
        child.wait()?;
        let mut next = place.command("clean")?;
        let done = next.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        check(done.status.success(), || String::from_utf8_lossy(&done.stderr).into_owned())?;
        leaves_nothing(pid)?;
        fs::create_dir_all(place.results())?;
    }
    check(met > 0, || "none was killed while it had made something".to_owned())?;
    let journals = fs::read_dir(place.directory.path().join("state/lab"))?.count();
    check(journals == 0, || format!("{journals} journals are left"))
}
