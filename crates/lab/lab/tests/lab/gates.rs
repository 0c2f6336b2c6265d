//! Gates and spans of runs in which they did not hold: a neighbour beside I/O and beside commands, and commands that are
//! shorter and longer than the file's duration. The neighbour keeps all CPUs busy, so that it is seen however the kernel
//! divides them.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use experiment::{
    Note,
    results::{Gate, Run},
};
use libtest_mimic::Failed;

use crate::{
    experiments::{OPEN, Place, head},
    real::{Test, Tested, check},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("a_busy_neighbour_of_io_and_of_commands_rejects_their_runs", a_neighbour_rejects),
        ("fio_beside_a_busy_neighbour_is_rejected", fio_beside_a_neighbour),
        ("a_command_is_measured_from_its_start_to_its_end", a_command_is_measured_whole),
        ("a_neighbour_that_comes_behind_the_duration_rejects_a_command", a_late_neighbour_rejects),
        ("what_runs_beside_a_command_is_measured_until_both_are_over", both_are_over),
    ]
}

/// Busy threads of this test's own on every CPU, twice, until it is dropped.
pub struct Neighbour {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Neighbour {
    pub fn begin() -> Result<Neighbour, Failed> {
        let stop = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..2 * std::thread::available_parallelism()?.get()).map(busy).collect();
        Ok(Neighbour { stop, threads })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// One condition of one workload, of which half of the CPUs' time may be others'.
fn one(workload: &str) -> String {
    head(1, "500ms", "[gates]\nforeign-cpu = 0.5\nsteal = 1.0\nretries = 0\n")
        + &format!(
            r#"
[device.disk]
kind = "loop"
size = "16M"
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

fn gate<'r>(run: &'r Run, name: &str) -> Result<&'r Gate, String> {
    run.gates.iter().find(|gate| gate.name == name).ok_or_else(|| format!("no {name}: {:?}", run.gates))
}

/// faults G1: the gate was off in each of these, also where the file set it.
fn rejects(workload: &str) -> Tested {
    let place = Place::with(&one(workload))?;
    let neighbour = Neighbour::begin()?;
    place.run_whole()?;
    drop(neighbour);
    let runs = place.runs()?;
    let [run] = &runs[..] else { return Err(format!("{} runs", runs.len()).into()) };
    let foreign = gate(run, "foreign CPU")?;
    check(foreign.at_most == Some(0.5) && foreign.seen > 0.5, || format!("{workload}: {:?}", run.gates))?;
    check(run.rejected.as_ref().is_some_and(|why| why.starts_with("other programs used ")), || {
        format!("{workload}: {:?}", run.rejected)
    })?;
    check(!run.busiest.is_empty(), || format!("{workload}: nobody is named"))
}

const IO: [&str; 2] = ["driver = \"read\"\ndevice = \"disk\"", "driver = \"writers\""];

fn a_neighbour_rejects() -> Tested {
    for workload in IO {
        rejects(workload)?;
        let place = Place::with(&one(workload).replacen("foreign-cpu = 0.5", "foreign-cpu = 1.0", 1))?;
        place.run_whole()?;
        let runs = place.runs()?;
        let kernel = gate(&runs[0], "kernel threads")?;
        check(kernel.at_most.is_none() && kernel.instead.is_some(), || format!("{:?}", runs[0].gates))?;
        check(runs[0].rejected.is_none(), || format!("{:?}", runs[0].rejected))?;
        let text = fs::read_to_string(place.results().join("results.json"))?;
        let results: experiment::Results = serde_json::from_str(&text)?;
        let named = results.notes.iter().any(|note| matches!(note, Note::KernelThreadsApart { .. }));
        check(named, || format!("{:?}", results.notes))?;
    }
    rejects("driver = \"command\"\ncommand = [\"/bin/sleep\", \"1\"]")
}

fn fio_beside_a_neighbour() -> Tested {
    rejects("driver = \"fio\"\ndevice = \"disk\"\njobs = 1")
}

/// Runs with all gates open.
fn opened(workload: &str, more: &str) -> String {
    one(workload).replacen("[gates]\nforeign-cpu = 0.5\nsteal = 1.0\nretries = 0\n", OPEN, 1) + more
}

/// A loop, and the nanoseconds of CPU time that the kernel says the shell used so far.
const BUSY: &str =
    "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; read -r used rest </proc/$$/schedstat; echo $used";

/// faults G2: 3.25 s with 2 s of CPU were 0.0037 CPUs, and 0.35 s were spread over a second. The program itself says what
/// it used, and the group's figure times its seconds is that.
fn a_command_is_measured_whole() -> Tested {
    for (what, before, after) in
        [("longer", "sleep 1.2;", ""), ("shorter", "", ""), ("idle at its end", "", "; sleep 1")]
    {
        let shell = format!("{before} {BUSY} {after}");
        let workload = format!(
            "driver = \"command\"\ncommand = [\"/bin/sh\", \"-c\", {shell:?}]\nfigure = \"([0-9]+)\""
        );
        let place = Place::with(&opened(&workload, ""))?;
        place.run_whole()?;
        let runs = place.runs()?;
        let [run] = &runs[..] else { return Err(format!("{} runs", runs.len()).into()) };
        let seconds = run.readings["work.seconds"];
        let (said, counted) = (run.readings["work.value"] / 1e9, run.readings["server.cpu"] * seconds);
        // the shell's process was this program before it entered the group, and what ends it is behind what it says
        check(counted >= said * 0.9 && counted < said + 0.5, || {
            format!("{what}: its own {said} s, its group's {counted} s in {seconds} s")
        })?;
        let (from, to) = run.spans.get("server").copied().ok_or_else(|| format!("{:?}", run.spans))?;
        check((to - from - seconds).abs() < 1e-6, || format!("{what}: {from} to {to}, not {seconds}"))?;
        check((run.seconds - to).abs() < 1e-6, || format!("{what}: the run took {}", run.seconds))?;
        let late = gate(run, "late end")?;
        check(late.at_most.is_none() && late.instead.is_some() && run.rejected.is_none(), || {
            format!("{what}: {:?}", run.gates)
        })?;
    }
    Ok(())
}

/// The neighbour's work begins behind the duration: it makes the file that the command waits for.
fn a_late_neighbour_rejects() -> Tested {
    let directory = tempfile::tempdir_in("/var/tmp")?;
    let (begin, end) = (directory.path().join("begin"), directory.path().join("end"));
    let shell =
        format!("sleep 1; touch {}; while [ ! -e {} ]; do sleep 0.05; done", begin.display(), end.display());
    let place =
        Place::with(&one(&format!("driver = \"command\"\ncommand = [\"/bin/sh\", \"-c\", {shell:?}]")))?;
    let child = place.run(false)?.spawn()?;
    let waited = crate::real::wait_for("what counts is beyond its duration", || begin.exists());
    let neighbour = Neighbour::begin()?;
    // longer than all before, so that most of the CPU time is the neighbour's
    std::thread::sleep(std::time::Duration::from_secs(4));
    drop(neighbour);
    fs::write(&end, "")?;
    crate::experiments::finish(child)?;
    waited?;
    let runs = place.runs()?;
    check(runs.len() == 1 && runs[0].rejected.is_some(), || format!("{:?}", runs[0].gates))?;
    check(runs[0].seconds > 5.0, || format!("{} s", runs[0].seconds))
}

fn both_are_over() -> Tested {
    let more = "[group.other]\n[workload.beside]\ndriver = \"cpu\"\ngroup = \"other\"\n\
        [[measure]]\nname = \"beside\"\nis = \"other.cpu\"\n";
    for (sleep, least) in [("0.1", 0.5), ("1", 1.0)] {
        let workload = format!("driver = \"command\"\ncommand = [\"/bin/sleep\", \"{sleep}\"]");
        let place = Place::with(&opened(&workload, more))?;
        place.run_whole()?;
        let runs = place.runs()?;
        let run = &runs[0];
        check(run.seconds >= least, || format!("{sleep}: the run took {}", run.seconds))?;
        let (from, to) = run.spans["work"];
        check((to - from - run.readings["work.seconds"]).abs() < 1e-6, || format!("{:?}", run.spans))?;
        check(run.figures["beside"] > 0.0 && !run.spans.contains_key("other"), || format!("{run:?}"))?;
    }
    Ok(())
}
