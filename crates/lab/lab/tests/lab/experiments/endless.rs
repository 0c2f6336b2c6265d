//! Experiments that take longer than anybody waits, or print more than anybody reads: a stop ends each of their parts, and
//! what they print has a largest size.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{OPEN, Place, leaves_nothing, left_by, signal, two_conditions};
use crate::real::{Tested, check, wait_for};

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
pub fn a_stop_ends_what_is_long() -> Tested {
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
pub fn a_stop_ends_the_analysis() -> Tested {
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
pub fn a_flood_of_output_is_bounded() -> Tested {
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
    check(said.contains("run 1 ('"), || format!("which run failed is not said: {said}"))?;
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
