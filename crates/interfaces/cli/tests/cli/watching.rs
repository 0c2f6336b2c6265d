//! Groups watched, recorded and printed as metrics, on real groups. No figure that depends on time decides a test.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Need, Scene, Ways, World, words};

type Body = fn(&mut Scene);

const CASES: &[(&str, Body)] = &[
    ("limits of groups above hold for those below", limits),
    ("a quota that stops a group is seen", throttled),
    ("a picture of the log is the one that was seen", replay),
    ("groups come and go while they are watched, and Ctrl-C ends it well", come_and_go),
    ("a reader that goes away ends it", no_reader),
    ("comma-separated values have one heading and a line per group", csv),
    ("groups are a tree, or sorted by a figure", order),
    ("what was recorded is dumped in every form", record_and_dump),
    ("one recorder writes at a time, also after one that was killed", one_recorder),
    ("a record that was cut off is told and taken away", torn),
    ("the daemon records and shows metrics if it is asked to", daemon_watches),
    ("metrics tell the groups, to standard output and into a file", metrics),
    ("the tasks' last CPUs follow the group's", tasks),
    ("freezer, CPU time and memory are watched by the kernel's names", by_kernel_names),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let usual = [Need::Usual];
    let counts_time: Ways = &[&[Need::V1("cpuacct")], &[Need::V2("cpu")]];
    let counts_events: Ways = &[&[Need::V1("perf_event")], &[Need::AnyV2]];
    let trial = |&(name, body): &(&'static str, Body), ways: Ways| {
        let lacks =
            world.lacks(&usual).or_else(|| world.lacks_ways(counts_time)).or_else(|| world.lacks_ways(ways));
        let world = world.clone();
        suite::trial(format!("watching: {name}"), lacks, move || body(&mut Scene::new(&world, name)))
    };
    let events =
        ("events of a group are counted, and what this machine does not count is told", events as Body);
    let (lacks, of) = (world.lacks(&[Need::NoHierarchy]), world.clone());
    let nothing = "watching: without any hierarchy it is said what is missing";
    let nothing = suite::trial(nothing, lacks, move || nothing_mounted(&of));
    CASES.iter().map(|case| trial(case, &[])).chain([trial(&events, counts_events), nothing]).collect()
}

/// A group with one below it, and a process in that.
fn ready(scene: &mut Scene) {
    for group in ["{g}", "{g}/a"] {
        scene.ok(&format!("create {group}"));
        scene.ok(&format!("set {group} cpuset.cpus=0 cpuset.mems=0"));
    }
    scene.start("{pid}", &["sleep", "600"]);
    scene.ok("move {g}/a {pid}");
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// One picture's figure.
fn figure<'p>(picture: &'p Value, group: &str, field: &str) -> &'p Value {
    &picture["groups"][group][field]
}

/// A command of ours that runs beside the test, ended with it.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(scene: &Scene, line: &str) -> Running {
        let mut child = Command::new(scene.program())
            .args(words(&scene.fill(line)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    /// The next picture that holds.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2000 {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended: {}", self.error());
            let picture = serde_json::from_str(&line).unwrap();
            if holds(&picture) {
                return picture;
            }
        }
        panic!("{what} did not come")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Waits for its end, and tells what it warned of.
    fn end(mut self) -> String {
        self.out.read_to_end(&mut Vec::new()).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.error()
    }

    /// Waits for its end, which must be a good one; the rest of what it printed.
    pub fn done(mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.error());
        rest
    }

    fn error(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn limits(scene: &mut Scene) {
    ready(scene);
    scene.ok("set {g} cpu.max=50% memory.max=64M");
    let group = scene.group.clone();
    let below = format!("{group}/a");
    let fields = "cpu.allotment,memory.limit,memory.max,pids.current";
    let text = scene.ok(&format!("watch {{g}} --once --interval 20ms --json --fields {fields}"));
    let pictures = json_lines(&text);
    assert_eq!(pictures.len(), 1, "{text}");
    for name in [&group, &below] {
        assert_eq!(figure(&pictures[0], name, "cpu.allotment"), 0.5, "{text}");
        assert_eq!(figure(&pictures[0], name, "memory.limit"), 67_108_864.0, "{text}");
        assert_eq!(figure(&pictures[0], name, "pids.current"), 1.0, "{text}");
    }
    assert_eq!(figure(&pictures[0], &below, "memory.max"), "max", "{text}");
    assert_eq!(pictures[0]["units"]["memory.limit"], "bytes");
    let text = scene.ok("watch {g} --once --interval 20ms");
    let line = text.lines().find(|line| line.trim_start().starts_with("a ")).unwrap();
    assert!(line.contains("0.50") && line.contains("64M"), "{text}");
    assert!(!text.contains('\x1b'), "colour where there is no terminal: {text}");
}

fn throttled(scene: &mut Scene) {
    ready(scene);
    scene.ok("set {g} cpu.max=10%");
    scene.start("{busy}", &["sh", "-c", "while :; do :; done"]);
    scene.ok("move {g}/a {busy}");
    let group = scene.group.clone();
    scene.until("a share of throttled periods", || {
        let text = scene.ok("watch {g} --once --interval 300ms --json --fields cpu.throttled");
        figure(&json_lines(&text)[0], &group, "cpu.throttled").as_f64().is_some_and(|share| share > 0.0)
    });
}

fn come_and_go(scene: &mut Scene) {
    ready(scene);
    let new = format!("{}/new", scene.group);
    let mut watch = Running::start(scene, "watch {g} --interval 20ms --json --fields pids.current");
    let is_there = |picture: &Value| picture["groups"].get(&new).is_some();
    assert!(!is_there(&watch.until("a first picture", |_| true)));
    scene.ok("create {g}/new");
    watch.until("the new group", is_there);
    scene.ok("delete {g}/new");
    watch.until("its end", |picture| !is_there(picture));
    watch.signal(Signal::INT);
    watch.done();
}

fn no_reader(scene: &mut Scene) {
    ready(scene);
    let mut watch = Running::start(scene, "watch {g} --interval 20ms --json");
    watch.until("a first picture", |_| true);
    // what reads is closed, as head(1) does after its lines
    let (read, _) = std::io::pipe().unwrap();
    drop(std::mem::replace(&mut watch.out, BufReader::new(ChildStdout::from(OwnedFd::from(read)))));
    let mut status = None;
    scene.until("its end", || {
        status = watch.child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert!(status.success() || status.signal() == Some(Signal::PIPE.as_raw()), "{status}");
}

fn csv(scene: &mut Scene) {
    ready(scene);
    let text =
        scene.ok("watch {g} --count 2 --interval 20ms --csv --fields pids.current,memory.max,machine.load");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["time", "group", "pids.current", "memory.max", "machine.load"]);
    assert_eq!(lines.len(), 1 + 2 * 3, "{text}");
    assert_eq!(lines[1][1..], [&scene.group, "1", "max", ""], "{text}");
    assert_eq!(lines[3][1..4], ["", "", ""], "{text}");
    assert!(lines[3][4].parse::<f64>().is_ok(), "{text}");
}

fn order(scene: &mut Scene) {
    ready(scene);
    scene.ok("create {g}/a-1");
    scene.ok("create {g}/b");
    for pid in ["{p1}", "{p2}"] {
        scene.start(pid, &["sleep", "600"]);
        scene.ok("set {g}/b cpuset.cpus=0 cpuset.mems=0");
        scene.ok(&format!("move {{g}}/b {pid}"));
    }
    let tree = scene.ok("watch {g} --once --interval 20ms --fields pids.current");
    let lines: Vec<Vec<&str>> = tree.lines().map(|line| line.split_whitespace().collect()).collect();
    let words = &lines[lines.len() - 4..];
    assert_eq!(words, [[scene.group.as_str(), "3"], ["a", "1"], ["a-1", "0"], ["b", "2"]], "{tree}");
    let sorted = scene.ok("watch {g} --once --interval 20ms --fields memory.max --sort pids.current --csv");
    let order: Vec<&str> = sorted.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    let full = ["", "/b", "/a", "/a-1"].map(|below| format!("{}{below}", scene.group));
    assert_eq!(order, full, "{sorted}");
}

/// A log of this test.
fn log(scene: &mut Scene) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    scene.name("{log}", log.to_str().unwrap());
    (directory, log)
}

fn segments(log: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(log).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "rflog"));
    found.sort();
    found
}

fn segment(log: &Path) -> PathBuf {
    segments(log).pop().unwrap()
}

fn record_and_dump(scene: &mut Scene) {
    ready(scene);
    let (_kept, _) = log(scene);
    let told = scene.ok("record {g} --directory {log} --interval 20ms --count 5 --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["samples"], 5);
    let group = scene.group.clone();
    let dumped = json_lines(&scene.ok("dump --directory {log} --json --fields pids.current,memory.max"));
    assert_eq!(dumped.len(), 5);
    for picture in &dumped {
        assert_eq!(figure(picture, &group, "pids.current"), 1.0, "{picture}");
        assert_eq!(figure(picture, &group, "memory.max"), "max", "{picture}");
    }
    // between two of them, by their own times
    let (from, to) = (dumped[1]["at"].as_str().unwrap(), dumped[3]["at"].as_str().unwrap());
    scene.name("{from}", from);
    scene.name("{to}", to);
    let part = scene.ok("dump --directory {log} --since {from} --until {to} --json --fields pids.current");
    let times: Vec<Value> = json_lines(&part).into_iter().map(|picture| picture["at"].clone()).collect();
    assert_eq!(times.first(), Some(&dumped[1]["at"]), "{part}");
    assert!((2..=3).contains(&times.len()), "{part}"); // the last is some microseconds behind what is printed
    let raw = json_lines(&scene.ok("dump --directory {log} --json --raw --fields cpu.usage --groups {g}/a"));
    assert_eq!(raw[0]["units"]["cpu.usage"], "nanos");
    assert!(raw.iter().all(|picture| picture["groups"].as_object().unwrap().len() == 1), "{raw:?}");
    assert!(figure(&raw[4], &format!("{group}/a"), "cpu.usage").is_u64(), "{raw:?}");
    let csv = scene.ok("dump --directory {log} --csv --fields pids.current");
    assert_eq!(csv.lines().count(), 1 + 5 * 2, "{csv}");
    let people = scene.ok("dump --directory {log} --fields pids.current");
    assert_eq!(people.matches("current").count(), 5, "{people}");
    let metrics =
        scene.ok("dump --directory {log} --openmetrics --fields pids.current,cpu.usage --groups {g}/a");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    assert_eq!(metrics.matches("ringfence_group_pids_current{group=").count(), 5, "{metrics}");
    assert_eq!(metrics.matches("# TYPE").count(), 2, "{metrics}");
    let none = scene.ringfence("dump --directory {log} --groups {g}/none --json", None);
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("nothing was recorded of these groups"),
        "{none:?}"
    );
}

fn replay(scene: &mut Scene) {
    ready(scene);
    let (_kept, _) = log(scene);
    scene.ok("record {g} --directory {log} --interval 20ms --count 3");
    let picture = scene.ok("watch --at now --directory {log} --json --fields pids.current");
    let dumped = scene.ok("dump --directory {log} --json --fields pids.current");
    assert_eq!(json_lines(&picture)[0], json_lines(&dumped)[2]);
    let early = scene.ringfence("watch --at 2001-01-01T00:00:00Z --directory {log}", None);
    let error = String::from_utf8_lossy(&early.stderr);
    assert_eq!(early.status.code(), Some(1), "{error}");
    assert!(
        error.contains("nothing was recorded at 2001-01-01") && error.contains("hint: the log begins"),
        "{error}"
    );
}

fn one_recorder(scene: &mut Scene) {
    ready(scene);
    let (_kept, directory) = log(scene);
    let record = Running::start(scene, "record {g} --directory {log} --interval 20ms");
    let size = || {
        segments(&directory).pop().is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 100))
    };
    scene.until("a first record", size);
    let second = scene.ringfence("record {g} --directory {log} --count 1", None);
    let error = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{error}");
    assert!(error.contains("another recorder writes to") && error.contains("hint: "), "{error}");
    // killed at any moment it leaves nothing that is in the way of the next
    record.signal(Signal::KILL);
    drop(record);
    let before = json_lines(&scene.ok("dump --directory {log} --json")).len();
    assert!(before > 0);
    let record = Running::start(scene, "record {g} --directory {log} --interval 20ms");
    let all = || json_lines(&scene.ok("dump --directory {log} --json")).len();
    scene.until("a record behind the old ones", || all() > before);
    record.signal(Signal::TERM);
    let told = record.done();
    assert!(told.contains(" recorded in ") && told.contains("missed"), "{told}");
}

fn torn(scene: &mut Scene) {
    ready(scene);
    let (_kept, directory) = log(scene);
    scene.ok("record {g} --directory {log} --interval 20ms --count 4");
    let last = segment(&directory);
    let length = fs::metadata(&last).unwrap().len();
    fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(length - 3).unwrap();
    let says = |line: &str| {
        let output = scene.ringfence(line, None);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        (json_lines(&String::from_utf8(output.stdout).unwrap()).len(), error)
    };
    let dump = "dump --directory {log} --json --fields pids.current";
    let (left, error) = says(dump);
    assert_eq!(left, 3, "{error}");
    assert!(error.contains("warning: ") && error.contains("cut off"), "{error}");
    let output = scene.ringfence("record {g} --directory {log} --interval 20ms --count 2", None);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("cut off"), "{error}");
    assert_eq!(says(dump), (5, String::new()));
}

fn metrics(scene: &mut Scene) {
    ready(scene);
    let line = format!("ringfence_group_pids_current{{group=\"{}/a\"}} 1\n", scene.group);
    let text = scene.ok("metrics {g}");
    assert!(text.contains(&line) && text.ends_with("# EOF\n"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ringfence.prom");
    scene.name("{file}", file.to_str().unwrap());
    for _ in 0..2 {
        scene.ok("metrics {g} --textfile {file}");
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(&line) && !text.contains("# EOF"), "{text}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "something is left beside it");
    let bounded = scene.ok("metrics {g} --most 1");
    assert!(bounded.contains("ringfence_groups_left_out 1\n") && !bounded.contains(&line), "{bounded}");
}

/// It has no rule, so that it moves nobody.
fn daemon_watches(scene: &mut Scene) {
    ready(scene);
    let (kept, _) = log(scene);
    let rules = kept.path().join("cgrules.conf");
    fs::write(&rules, "").unwrap();
    scene.name("{rules}", rules.to_str().unwrap());
    let plain = "daemon --rules {rules} --no-apply --no-socket";
    let refused = scene.ringfence(&format!("{plain} --record-interval 1s"), None);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let watching = "--record {log} --record-interval 20ms --record-size 1M --metrics 127.0.0.1:0";
    let mut daemon = Running::start(scene, &format!("{plain} {watching}"));
    let mut told = BufReader::new(daemon.child.stderr.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert!(told.read_line(&mut line).unwrap() > 0, "it ended");
        if let Some((_, rest)) = line.split_once("serving metrics at http://") {
            break rest.trim().strip_suffix("/metrics").unwrap().to_owned();
        }
    };
    // it must not wait for a reader
    let rest = std::thread::spawn(move || told.read_to_string(&mut String::new()));
    let shown = || {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    // of groups there may be more than it shows
    scene.until("its metrics", || {
        let text = shown();
        text.contains("\nringfence_rules 0\n") && text.contains("\nringfence_recorder_up 1\n")
    });
    let group = format!("{}/a", scene.group);
    scene.until("samples in its log", || {
        let dumped = scene.ringfence("dump --directory {log} --json --fields pids.current", None);
        let dumped = json_lines(&String::from_utf8_lossy(&dumped.stdout));
        dumped.len() > 3 && dumped.iter().all(|picture| figure(picture, &group, "pids.current") == 1.0)
    });
    daemon.signal(Signal::TERM);
    let status = daemon.child.wait().unwrap();
    rest.join().unwrap().unwrap();
    assert!(status.success(), "{status}");
}

/// Study S5's proof, in one command.
fn tasks(scene: &mut Scene) {
    ready(scene);
    for pid in ["{busy}", "{other}"] {
        scene.start(pid, &["sh", "-c", "while :; do :; done"]);
        scene.ok(&format!("move {{g}}/a {pid}"));
    }
    let seen = || {
        let text = scene.ok("watch --tasks {g} --once --interval 20ms --json");
        json_lines(&text).remove(0)
    };
    let busy = |picture: &Value| -> Vec<Value> {
        let all = picture["tasks"].as_array().unwrap().clone();
        all.into_iter().filter(|task| task["comm"] == "sh").collect()
    };
    // a task that waits is still where it was until it runs again
    let all_on_cpu_0 = |picture: &Value| {
        let busy = busy(picture);
        busy.len() == 2 && busy.iter().all(|task| task["last_cpu"] == 0)
    };
    scene.until("both on CPU 0", || all_on_cpu_0(&seen()));
    let picture = seen();
    assert_eq!(picture["tasks"].as_array().unwrap().len(), 3, "{picture}");
    let group = format!("{}/a", scene.group);
    assert!(busy(&picture).iter().all(|task| task["group"] == group.as_str()), "{picture}");
    let text = scene.ok("watch --tasks {g} {g}/a --once --interval 20ms");
    assert!(text.lines().next().unwrap().contains("3 tasks, last on CPU "), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with(&group)).count(), 3, "{text}");
}

/// Study S4's second use case: the files that it names, of several groups, in one command.
fn by_kernel_names(scene: &mut Scene) {
    ready(scene);
    scene.ok("freeze {g}");
    let fields = "freezer.state,cpuacct.usage,memory.usage_in_bytes,memory.limit_in_bytes";
    let text = scene.ok(&format!("watch {{g}} --once --interval 20ms --json --fields {fields}"));
    let picture = json_lines(&text).remove(0);
    let below = format!("{}/a", scene.group);
    assert_eq!(figure(&picture, &below, "frozen"), 1.0, "{text}");
    for field in ["cpu.usage", "memory.current"] {
        assert!(figure(&picture, &below, field).is_f64(), "{field}: {text}");
    }
    assert_eq!(figure(&picture, &below, "memory.max"), "max", "{text}");
    scene.ok("thaw {g}");
}

/// The same use case's last controller.
fn events(scene: &mut Scene) {
    scene.ok("create {g} --controllers perf_event,cpuset,pids");
    scene.ok("set {g} cpuset.cpus=0 cpuset.mems=0");
    scene.start("{busy}", &["sh", "-c", "while :; do (:); done"]);
    scene.ok("move {g} {busy}");
    let fields = "pids.current";
    let mut watch =
        Running::start(scene, &format!("watch {{g}} --perf --interval 50ms --json --fields {fields}"));
    let group = scene.group.clone();
    let count = |picture: &Value, event: &str| figure(picture, &group, event).as_f64();
    let software = ["perf.task-clock", "perf.context-switches", "perf.page-faults"];
    let picture = watch.until("events of all kinds that kernels count", |picture| {
        software.iter().all(|event| count(picture, event).is_some_and(|rate| rate > 0.0))
    });
    let hardware = count(&picture, "perf.instructions");
    watch.signal(Signal::INT);
    let told = watch.end();
    match hardware {
        Some(rate) => assert!(rate > 0.0, "{picture}"),
        None => assert!(told.contains("instructions") && told.contains(" not counted: "), "{told}"),
    }
}

fn nothing_mounted(world: &Arc<World>) {
    let scene = Scene::new(world, "nothing");
    for line in ["watch --once", "metrics", "record --directory /no/such/log"] {
        let output = scene.ringfence(line, None);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert!(error.contains("error: ") && !error.contains("panicked"), "{line}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let mut scene = scene;
    scene.name("{log}", directory.path().to_str().unwrap());
    let output = scene.ringfence("dump --directory {log} --json", None);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the log is empty"), "{output:?}");
}
