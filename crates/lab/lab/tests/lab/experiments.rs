//! Whole experiments on the real kernel: run, rejected by a gate, interrupted and resumed, killed at any point. Each
//! is a process of its own, as on the command line.

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
        ("a_stop_ends_every_part_of_an_experiment_within_seconds", a_stop_ends_what_is_long),
        ("a_stop_ends_the_analysis_of_thousands_of_runs", a_stop_ends_the_analysis),
        ("a_flood_of_output_fills_neither_memory_nor_disk", a_flood_of_output_is_bounded),
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

/// An experiment of one workload with all that a run can leave: a group, a loop device, a mount.
fn one_workload(lengths: &str, file_system: &str, workload: &str) -> String {
    format!(
        r#"
name = "long"
title = "What takes longer than anybody waits"
repetitions = 1
{lengths}
[gates]
foreign-cpu = 1.0
steal = 1.0
[device.disk]
kind = "loop"
size = "64M"
file-system = "{file_system}"
[group.server]
[workload.work]
{workload}
group = "server"
[[condition]]
name = "only"
[[measure]]
name = "CPUs"
is = "server.cpu"
"#
    )
}

/// Does a process below `pid` have a command line with this in it?
fn has_descendant(pid: u32, part: &str) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect();
    let is_it = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(part)
    };
    children.into_iter().any(|child| is_it(child) || has_descendant(child, part))
}

/// attack finding 11: a command that runs on was waited for to its end; only kill -9 ended the experiment.
fn a_stop_ends_what_is_long() -> Tested {
    let run = "duration = \"500ms\"\nwarm-up = \"100ms\"\nsample = \"0s\"";
    let warm_up = "duration = \"500ms\"\nwarm-up = \"1000s\"\nsteady-within = \"1000s\"";
    let command = |words: &str| format!("driver = \"command\"\ncommand = {words}");
    // a tool as pgbench and fio are: it has children, and a signal does not end it at once
    let stubborn = r#"["/bin/sh", "-c", "trap '' TERM INT HUP; /bin/sleep 1000.5 & while :; do /bin/sleep 1000.5; done"]"#;
    let cases = [
        (
            "a command to its end",
            one_workload(run, "ext4", &command(r#"["/bin/sleep", "1000.5"]"#)),
            "1000.5",
        ),
        (
            "a command with children that ignores signals",
            one_workload(run, "ext4", &command(stubborn)),
            "1000.5",
        ),
        (
            "the same where the lab ends it",
            one_workload("duration = \"1000s\"\nwarm-up = \"100ms\"", "ext4", &{
                command(stubborn) + "\nuntil-end = false"
            }),
            "1000.5",
        ),
        (
            "the warm-up",
            one_workload(warm_up, "ext4", &(command(stubborn) + "\nuntil-end = false")),
            "1000.5",
        ),
        // mkfs.slow is this test's own, on the path
        ("the making of a device", one_workload(run, "slow", "driver = \"cpu\""), "1000.5"),
        (
            "a built-in workload's data",
            one_workload(run, "ext4", "driver = \"oltp\"\nrows = 400000000"),
            "oltp",
        ),
        ("a tool's data", one_workload(run, "ext4", "driver = \"pgbench\"\nscale = 2000"), " -i -q -s "),
    ];
    for (index, (what, text, part)) in cases.iter().enumerate() {
        if *what == "a tool's data" && !Path::new("/usr/bin/pgbench").exists() {
            println!("skipped: {what}: pgbench is not installed");
            continue;
        }
        let place = Place::with(text)?;
        let slow = place.directory.path().join("mkfs.slow");
        fs::write(&slow, "#!/bin/sh\ntrap '' TERM INT HUP\n/bin/sleep 1000.5\n")?;
        fs::set_permissions(&slow, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = place.run(false)?;
        command.env("PATH", format!("{}:{path}", place.directory.path().display()));
        let child = command.spawn()?;
        let pid = child.id();
        if let Err(never) = wait_for(what, || has_descendant(pid, part)) {
            signal(pid, Signal::TERM)?;
            let output = child.wait_with_output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: {said}", never.message().unwrap_or_default()).into());
        }
        signal(pid, if index % 2 == 0 { Signal::TERM } else { Signal::INT })?;
        let sent = Instant::now();
        let output = place.end_of(child)?;
        let took = sent.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        check(!output.status.success(), || format!("{what}: it was not interrupted: {said}"))?;
        check(took.as_secs() < 5, || format!("{what}: it took {took:?} to end"))?;
        check(left_by(pid).is_empty(), || format!("{what}: {:?}", left_by(pid)))?;
        check(!is_running("1000.5"), || format!("{what}: its programs are still there"))?;
    }
    Ok(())
}

/// Is there any process with this in its command line?
fn is_running(part: &str) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|word| word == part.as_bytes()))
}

/// attack finding 11: also while the results are worked out, of more runs than anybody makes.
fn a_stop_ends_the_analysis() -> Tested {
    const REPETITIONS: usize = 3000;
    let text =
        two_conditions(OPEN, "100ms").replacen("repetitions = 2", &format!("repetitions = {REPETITIONS}"), 1);
    let place = Place::with(&text)?;
    let mut child = place.run(false)?.spawn()?;
    let pid = child.id();
    let output = child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line == "run 3" {
            signal(pid, Signal::INT)?;
        }
    }
    child.wait()?;
    let first = place.runs()?;
    let mut lines = String::new();
    for block in 0..REPETITIONS {
        for (index, condition) in ["free", "a quarter"].iter().enumerate() {
            let like =
                first.iter().find(|run| run.condition == *condition).ok_or("a condition has no run")?;
            let mut run = like.clone();
            run.number = (2 * block + index + 1) as u32;
            run.block = block as u32 + 1;
            run.figures.values_mut().for_each(|figure| *figure *= 1.0 + (block * 7919 % 1000) as f64 / 1e4);
            run.series.clear();
            // all but the last run are there: after it everything is worked out
            if run.number as usize != 2 * REPETITIONS {
                lines += &(serde_json::to_string(&run)? + "\n");
            }
        }
    }
    fs::write(place.results().join("runs.jsonl"), lines)?;
    let mut child = place.run(true)?.spawn()?;
    let pid = child.id();
    let output = child.stdout.take().ok_or("no output")?;
    let mut sent = None;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line == format!("run {}", 2 * REPETITIONS) {
            // the run takes longer than this, what it is worked out with much longer
            let lines = place.results().join("runs.jsonl");
            let all = || {
                fs::read(&lines)
                    .is_ok_and(|text| text.iter().filter(|byte| **byte == b'\n').count() >= 2 * REPETITIONS)
            };
            wait_for("the last run", all)?;
            signal(pid, Signal::TERM)?;
            sent = Some(Instant::now());
        }
    }
    let output = child.wait_with_output()?;
    let took = sent.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?.elapsed();
    check(took.as_secs() < 5, || format!("it took {took:?} to end"))?;
    check(left_by(pid).is_empty(), || format!("{:?}", left_by(pid)))
}

/// attack finding 25: all that a failing tool had printed was read into memory, twice, and its log had no largest size.
fn a_flood_of_output_is_bounded() -> Tested {
    let run = "duration = \"500ms\"\nwarm-up = \"100ms\"\nsample = \"0s\"";
    let flood = r#"driver = "command"
command = ["/bin/sh", "-c", "head -c 1500000000 /dev/zero | tr '\\0' x; echo; echo it is over >&2; exit 3"]
figure = "([0-9]+)""#;
    let place = Place::with(&one_workload(run, "ext4", flood))?;
    let plain = place.run(false)?;
    // no room for the whole output
    let mut command = Command::new("prlimit");
    command.arg("--as=1200000000").arg(plain.get_program()).args(plain.get_args());
    command.env("RINGFENCE_STATE", place.directory.path().join("state"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = child.id();
    let mut largest = 0;
    let output = std::thread::scope(|threads| {
        let waiting = threads.spawn(|| child.wait_with_output());
        while !waiting.is_finished() {
            largest = largest.max(largest_output(pid));
            std::thread::sleep(Duration::from_millis(20));
        }
        waiting.join()
    });
    let output = output.map_err(|_| "the wait failed")??;
    let said = String::from_utf8_lossy(&output.stderr);
    check(output.status.code() == Some(1), || format!("{}: {said}", output.status))?;
    check(said.contains("it is over"), || format!("why it failed is not said: {said}"))?;
    check(largest > 0, || "its log was never seen".to_owned())?;
    check(largest <= 64 << 20, || format!("a log of {largest} bytes"))?;
    leaves_nothing(pid)
}

/// Bytes of the longest `.out` among an experiment's files.
fn largest_output(pid: u32) -> u64 {
    let of = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = of(Path::new("/var/tmp"))
        .filter(|path| path.to_string_lossy().contains(&format!("/rf-lab-{pid}-")))
        .flat_map(|path| of(&path).collect::<Vec<_>>())
        .flat_map(|path| of(&path).collect::<Vec<_>>());
    let outs = ours.filter(|path| path.extension().is_some_and(|end| end == "out"));
    outs.filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).max().unwrap_or(0)
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
    for _ in 0..10 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        fs::remove_dir_all(place.results())?;
        let mut child = place.run(false)?.spawn()?;
        let pid = child.id();
        std::thread::sleep(whole.mul_f64(f64::from(random >> 8) / f64::from(1_u32 << 24)));
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
