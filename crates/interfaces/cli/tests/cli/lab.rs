//! `lab`, as a user meets it: small experiments of built-in workloads, each with a state and a directory of its own. The
//! gates are open, so that nothing else on the machine decides a test.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::world::{Need, World};
use crate::{hints, undoable::works};

mod damaged_journal;
mod elastic;
mod foreign_files;
mod gates;
mod hostile_text;
mod isolated;
mod move_others;

type Body = fn(&Lab);

const PURE: &[(&str, Body)] = &[
    ("the studies are listed, and shown as the files that they are", studies),
    ("a file's mistakes are all reported, each at its place", mistakes),
    ("a directory without results is reported", no_results),
    ("a check says how long it takes and what it can't decide", lengths),
    (ENDLESS, foreign_files::endless),
    ("no mistake in a file reaches the terminal with what a terminal acts on", hostile_text::mistakes),
];

/// Its memory is bounded by a program of its own.
const GATES: &str = "what gates look at is said, and they can be given on the command line";
const ENDLESS: &str = "no FIFO, device or endless file is waited for or read to its end";

const WITH_GROUPS: &[(&str, Body)] = &[
    ("an experiment's results can be read, redrawn and compared, and no group is left", whole),
    ("a condition can be a layout, which is checked, run and kept", layout),
    ("root neither reads nor writes what belongs to another user", foreign_files::strangers),
    (
        "no text of results reaches the terminal or a table with what a terminal acts on",
        hostile_text::results,
    ),
    ("results of different experiments are not compared", different),
    ("Ctrl-C keeps the finished runs, and --resume makes the others", resumed),
    ("a machine that is too busy is reported once, with who it is and what to do", gates::busy),
    (GATES, gates::said),
    ("what a killed experiment left is removed", cleaned),
    ("a damaged journal is reported, and no other one is left because of it", damaged_journal::reported),
    (
        "of a damaged journal the other lines are carried out, and nothing else",
        damaged_journal::flipped_and_cut,
    ),
];

/// These give groups CPUs.
const WITH_CPUS: &[(&str, Body)] = &[
    ("groups of a condition are resized in its runs, and no group is left", elastic::resized),
    ("an experiment that is killed while it resizes leaves no group and no process", elastic::killed),
];

/// Only on a machine that nobody else uses (`RF_MOVE_OTHERS`): these move all its programs.
const ALONE: &[(&str, Body)] = &[
    ("--move-others keeps the machine's programs off exclusive CPUs for the runs", move_others::moved),
    ("a killed experiment's --move-others is undone by the next command", move_others::killed),
];

/// These set what the whole machine has.
const OWN: &[(&str, Body)] = &[
    ("isolated CPUs of a condition are isolated in its runs alone, and put back", isolated::put_back),
    ("isolated CPUs of a killed experiment are put back by the next command", isolated::killed),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    const CPUS: &[Need] = &[Need::On("cpu"), Need::On("cpuset")];
    let trials = |cases: &'static [(&'static str, Body)], needs: &[Need]| -> Vec<Trial> {
        let trial = |&(name, body): &(&'static str, Body)| {
            let bounded: &[Need] = if name == ENDLESS { &[Need::Program("prlimit")] } else { &[] };
            // a tool's start needs an option that busybox's setpriv has not
            let no_signal = || name == GATES && !works(&["setpriv", "--pdeathsig", "KILL", "true"]);
            let lacks = world.lacks(&[needs, bounded].concat());
            let lacks = lacks.or_else(|| no_signal().then(|| "setpriv of util-linux".to_owned()));
            let world = world.clone();
            suite::trial(format!("lab: {name}"), lacks, move || body(&Lab::new(&world)))
        };
        cases.iter().map(trial).collect()
    };
    let of = |need: Need| [CPUS, &[need]].concat();
    let lists = [
        trials(PURE, &[]),
        trials(WITH_GROUPS, &[Need::On("cpu")]),
        trials(WITH_CPUS, &of(Need::Cpus(2))),
        trials(ALONE, &[Need::OthersMoved]),
        trials(OWN, &of(Need::OwnMachine)),
    ];
    lists.into_iter().flatten().collect()
}

/// A directory of a test's own.
struct Lab {
    program: String,
    directory: TempDir,
}

impl Lab {
    fn new(world: &World) -> Lab {
        Lab { program: world.program.clone(), directory: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `ringfence lab LINE` in the directory.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("lab").args(line.split_whitespace()).current_dir(self.directory.path());
        command.env("RINGFENCE_STATE", self.path("state")).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// It must succeed; what it printed.
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "lab {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} --json"))).unwrap()
    }

    /// Runs the command that begins so in what was said, as it stands there.
    fn obey(&self, said: &str, words: &str) {
        let at = said.find(words).unwrap_or_else(|| panic!("no {words} in: {said}"));
        let line = said[at..].split(['\n', '<']).next().unwrap();
        let command = hints::command(line).unwrap_or_else(|| panic!("no command in: {line}"));
        let directory = self.directory.path().display();
        let done =
            hints::obey(&self.program, &format!("cd {directory} && {command}"), Some(&self.path("state")));
        assert!(done.status.success(), "{command}: {done:?}");
    }

    /// Two conditions of a second each, so often.
    fn experiment(&self, repetitions: u32) {
        let text = format!(
            r#"
name = "small"
title = "A small experiment"
repetitions = {repetitions}
duration = "1s"
warm-up = "200ms"
steady-within = "200ms"
sample = "100ms"
[gates]
foreign-cpu = 1.0
steal = 1.0
retries = 20
[group.server]
[workload.work]
driver = "cpu"
group = "server"
[workload.wakes]
driver = "cyclic"
priority = 0
[[condition]]
name = "light"
settings.server."cpu.weight" = "50"
[[condition]]
name = "heavy"
settings.server."cpu.weight" = "200"
[[measure]]
name = "rate"
is = "work.rate"
[[comparison]]
measure = "rate"
baseline = "light"
condition = "heavy"
"#
        );
        fs::write(self.path("small.toml"), text).unwrap();
    }

    /// Starts an experiment that is ended early.
    fn start(&self) -> Running {
        self.experiment(5);
        self.spawn("run small.toml --directory out")
    }

    fn spawn(&self, line: &str) -> Running {
        let mut command = self.command(line);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Running { child, lines }
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("out/runs.jsonl")).unwrap().lines().count()
    }
}

/// An experiment while it runs.
struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Running {
    fn until(&mut self, begin: &str) {
        let mut said = String::new();
        while !said.lines().next_back().is_some_and(|line| line.starts_with(begin)) {
            assert!(self.lines.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Its exit status, `None` after a signal, and the rest of what it said.
    fn ended(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An experiment's groups in any hierarchy.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of_groups = mounts.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        fields[2].starts_with("cgroup").then(|| PathBuf::from(fields[1]))
    });
    // with systemd they are below a unit of a slice
    let below = |directory: &PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let tops: Vec<PathBuf> = of_groups.collect();
    let slices: Vec<PathBuf> = tops.iter().flat_map(below).collect();
    let units: Vec<PathBuf> = slices.iter().flat_map(below).collect();
    let all = tops.into_iter().chain(slices).chain(units);
    all.map(|above| above.join(format!("rf-lab-{pid}"))).filter(|group| group.is_dir()).collect()
}

/// Every file below a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn studies(lab: &Lab) {
    let listed = lab.json("list");
    let studies = listed["studies"].as_array().unwrap();
    let plain = lab.ok("list");
    assert!(studies.iter().any(|study| study["name"] == "tour"), "{listed}");
    for study in studies {
        let (name, title) = (study["name"].as_str().unwrap(), study["title"].as_str().unwrap());
        assert!(!title.is_empty() && plain.contains(title), "{plain}");
        let shown = lab.ok(&format!("show {name}"));
        fs::write(lab.path("shown.toml"), &shown).unwrap();
        assert!(shown.contains(&format!("title = \"{title}\"")), "{shown}");
        assert!(lab.ok("check shown.toml").starts_with("shown.toml: no error"));
    }
    // results that were kept under a study's name are not in its way
    fs::create_dir(lab.path("tour")).unwrap();
    assert!(lab.ok("check tour").starts_with("tour.toml: no error"));
    let unknown = lab.run("show tuor");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean tour?"), "{}", text(&unknown.stderr));
}

fn mistakes(lab: &Lab) {
    lab.experiment(1);
    assert!(lab.ok("check small.toml").contains("2 runs of 2 conditions, 1 s each"));
    let right = fs::read_to_string(lab.path("small.toml")).unwrap();
    let wrong = right.replace("duration = \"1s\"", "duration = \"soon\"").replace("work.rate", "work.rats");
    fs::write(lab.path("small.toml"), wrong).unwrap();
    // nothing is run of a file with a mistake either
    for line in ["check small.toml", "run small.toml --directory out"] {
        let output = lab.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in
            ["small.toml:5:", "duration = \"soon\"", "^^^^^^", "small.toml:28:", "work.rats", "2 errors"]
        {
            assert!(said.contains(part), "no {part} in: {said}");
        }
        assert!(!lab.path("out").exists());
    }
    let output = lab.run("check small.toml --json");
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reported["diagnostics"].as_array().unwrap().len(), 2, "{reported}");
    assert_eq!(output.status.code(), Some(2));
}

fn no_results(lab: &Lab) {
    for line in ["report .", "compare . ."] {
        let output = lab.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(text(&output.stderr).contains("has no results of an experiment"), "{line}");
    }
}

/// newcomers A8, B "lab list": an experiment that can decide nothing did not say so.
fn lengths(lab: &Lab) {
    lab.experiment(1);
    let said = lab.ok("check small.toml");
    assert!(said.contains("lab run --quick: about 3 s\n"), "{said}");
    let few = "no comparison can be decided: 1 repetition is too few for 1 comparison, at least 4 are needed";
    assert!(said.contains(few), "{said}");
    lab.experiment(4);
    let said = lab.ok("check small.toml");
    assert!(!said.contains("decided"), "{said}");
    let listed = lab.json("list");
    let s4 = listed["studies"].as_array().unwrap().iter().find(|study| study["name"] == "s4").unwrap();
    assert_eq!((&s4["needs_cpus"], &s4["tools"]), (&2.into(), &serde_json::json!(["cyclictest"])), "{s4}");
    let quick = s4["quick_planned_sec"].as_f64().unwrap();
    assert!(quick <= 170.0, "{s4}");
    let seconds = format!(" {quick} s ");
    let plain = lab.ok("list");
    let line = plain.lines().find(|line| line.starts_with("s4 ")).unwrap();
    assert!(line.contains("cyclictest") && line.contains("2 CPUs") && line.contains(&seconds), "{plain}");
}

/// newcomers A14: `lab compare` of two experiments printed 100 lines of "not there"; `--quick` without [quick] changed
/// nothing and said nothing.
fn different(lab: &Lab) {
    lab.experiment(1);
    let output = lab.run("run small.toml --directory out --quick");
    let said = text(&output.stderr);
    assert!(said.contains("the experiment has no [quick]: --quick changes nothing"), "{said}");
    assert!(said.contains("no comparison can be decided"), "{said}");
    let other = fs::read_to_string(lab.path("small.toml")).unwrap().replace("\"small\"", "\"other\"");
    fs::write(lab.path("other.toml"), other).unwrap();
    lab.ok("run other.toml --directory other");
    let output = lab.run("compare out other");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("'small'") && said.contains("'other'"), "{said}");
    assert!(output.stdout.is_empty());
}

fn whole(lab: &Lab) {
    lab.experiment(1);
    let mut command = lab.command("run small.toml --directory out --seed 1");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(said.starts_with("A small experiment\n"), "{said}");
    assert!(said.contains("rate: heavy against light: inconclusive"), "one run of each says nothing: {said}");
    assert!(said.contains("report: out/report.html"), "{said}");
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());

    let before = files(&lab.path("out"));
    for name in ["experiment.toml", "results.json", "runs.jsonl", "report.html", "runs.csv", "samples.csv"] {
        assert!(before.contains_key(&lab.path("out").join(name)), "no {name} in {:?}", before.keys());
    }
    assert_eq!(lab.ok("report out"), said);
    let again = files(&lab.path("out"));
    assert!(before == again, "the redrawn report differs");

    let results = lab.json("report out");
    assert_eq!(results["complete"], true);
    let kept: Value = serde_json::from_slice(&before[&lab.path("out/results.json")]).unwrap();
    assert_eq!(results, kept);
    let page = text(&before[&lab.path("out/report.html")]);
    for run in results["runs"].as_array().unwrap() {
        let report = format!("runs/{}/wakes.cyclic.json", run["number"]);
        assert_eq!(run["files"], serde_json::json!([report]));
        let reported: Value = serde_json::from_slice(&before[&lab.path("out").join(&report)]).unwrap();
        assert_eq!(reported["cycles"].as_f64(), run["readings"]["wakes.cycles"].as_f64(), "{reported}");
        assert!(page.contains(&format!("href=\"{report}\"")), "{report} is not on the page");
    }
    for cell in results["cells"].as_array().unwrap() {
        assert!(cell["median"].as_f64().unwrap() > 0.0, "{cell}");
    }

    let second = lab.json("run small.toml --directory other --seed 2");
    assert_eq!(second["design"]["seed"], 2);
    assert_eq!(second["cells"].as_array().unwrap().len(), 2);
    let compared = lab.json("compare out other");
    for (cell, beside) in
        compared["cells"].as_array().unwrap().iter().zip(second["cells"].as_array().unwrap())
    {
        assert_eq!(cell["second"]["median"], beside["median"], "{compared}");
    }
    let plain = lab.ok("compare out other");
    assert!(["out", "other", "light", "heavy"].iter().all(|name| plain.contains(name)), "{plain}");

    let taken = lab.run("run small.toml --directory out");
    assert_eq!(taken.status.code(), Some(1));
    assert!(text(&taken.stderr).contains("--resume out"), "{}", text(&taken.stderr));
}

fn layout(lab: &Lab) {
    lab.experiment(1);
    let plain = fs::read_to_string(lab.path("small.toml")).unwrap();
    let divided = plain.replace("settings.server.\"cpu.weight\" = \"200\"", "layout = \"mine.toml\"");
    fs::write(lab.path("small.toml"), divided.replace("[group.server]\n", "")).unwrap();

    fs::write(lab.path("mine.toml"), "[groups.server]\ncpus = 5000\n").unwrap();
    let wrong = lab.run("check small.toml");
    let said = text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains("mine.toml:2:"), "{said}");

    fs::write(lab.path("mine.toml"), "[groups.server]\ncpu.weight = 200\n[groups.rest]\n").unwrap();
    let results = lab.json("run small.toml --directory out");
    let of = |name: &str| {
        let runs = results["runs"].as_array().unwrap();
        runs.iter().find(|run| run["condition"] == name).unwrap()["settings"][0].clone()
    };
    assert_eq!(
        (of("light")["group"].as_str(), of("light")["requested"].as_str()),
        (Some("server"), Some("50"))
    );
    assert_eq!(
        (of("heavy")["name"].as_str(), of("heavy")["requested"].as_str()),
        (Some("cpu.weight"), Some("200"))
    );
    let notes = results["notes"].to_string();
    assert!(notes.contains("'heavy' is the layout mine.toml"), "{notes}");
    // what was requested holds when it is resumed, whatever has become of the file
    fs::remove_file(lab.path("mine.toml")).unwrap();
    let resumed = lab.json("run --resume out");
    // a busy machine has a run rejected, which is made again: one of each condition counts
    let accepted = resumed["runs"].as_array().unwrap().iter().filter(|run| run["rejected"].is_null());
    let mut conditions: Vec<&str> = accepted.map(|run| run["condition"].as_str().unwrap()).collect();
    conditions.sort_unstable();
    assert_eq!(conditions, ["heavy", "light"], "{resumed}");
}

fn resumed(lab: &Lab) {
    let mut running = lab.start();
    running.until("run 2 of 10");
    running.signal(Signal::INT);
    let (code, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(groups_of(running.child.id()), Vec::<PathBuf>::new());
    let finished = lab.runs();
    assert!((1..10).contains(&finished), "{finished}");
    lab.obey(&said, "ringfence lab report out");
    assert_eq!(lab.json("report out")["complete"], false);
    let first = fs::read_to_string(lab.path("out/runs.jsonl")).unwrap();
    let page = fs::read_to_string(lab.path("out/report.html")).unwrap();
    let again = lab.run("run small.toml --directory out");
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let copied = |from: &str, to: &str| {
        let _ = fs::remove_dir_all(lab.path(to));
        assert!(
            Command::new("cp").arg("-a").args([lab.path(from), lab.path(to)]).status().unwrap().success()
        );
    };
    copied("out", "stopped");
    // what each of the three says completes it
    for offer in [said, page, text(&again.stderr)] {
        copied("stopped", "out");
        lab.obey(&offer, "ringfence lab run --resume");
        let results = lab.json("report out");
        assert_eq!(results["complete"], true);
        let all = fs::read_to_string(lab.path("out/runs.jsonl")).unwrap();
        assert!(all.starts_with(&first), "finished runs remain as they are");
        assert_eq!(lab.runs(), results["runs"].as_array().unwrap().len());
    }
}

fn cleaned(lab: &Lab) {
    let mut running = lab.start();
    running.until("run 2 of 10");
    let pid = running.child.id();
    assert!(!groups_of(pid).is_empty());
    running.signal(Signal::KILL);
    running.child.wait().unwrap();
    let cleaned = lab.ok("clean");
    assert!(cleaned.contains(&format!("removed group rf-lab-{pid}\n")), "{cleaned}");
    assert_eq!(groups_of(pid), Vec::<PathBuf>::new());
    assert_eq!(lab.ok("clean"), "", "there is nothing left to remove");
}
