//! A change that nobody confirms goes back, and what is said of a change is so: whatever happens to the processes, the
//! disk and the clock. Each was found by an attack on an earlier version, where it failed.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use nix::errno::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    desk::{answer, says},
    tracer::{self, Fault, Rule, Seen, changes},
    undoable::{Disk, Stage, all_of_them, is_emulated, works},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Stage));

const CASES: &[Case] = &[
    // attack finding 1
    (
        "apply that dies before it can say that it is done is reverted, or reported as in effect",
        &[],
        done_unsaid,
    ),
    // attack finding 4
    ("apply does not freeze its own process", &[Need::AnyFreezer], freezes_itself),
    ("the process that reverts is not frozen with its caller's group", &[Need::AnyFreezer], frozen_caller),
    // attack finding 8
    ("a change is reverted on a disk that became full", &[], disk_full),
    ("a change is reverted, or confirmed, on a disk without an inode left", &[], inodes_gone),
    ("a change that needs more room than there is begins nothing", &[], disk_too_small),
    ("status and history show a change whose reverting process was killed", &[], shown),
    // attack finding 10
    ("the wall clock decides nothing about a deadline", &[], clock),
    ("a deadline is by the clock since boot", &[], boot_clock),
    ("a clock since boot that is ahead in a namespace delays no deadline", &[], clock_of_a_namespace),
    // attack finding 15
    ("the exit status is true when the last write of the journal fails", &[], last_write),
    // attack finding 18
    ("an error while looking before a change is not taken for nothing to undo", &[], looking),
    // attack finding 8
    ("a change whose process hangs is reverted", &[], hung),
    // attack finding 30
    ("kill signals by descriptor and never by number", &[], by_descriptor),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let lacks = world.lacks(&[&[Need::Usual], needs].concat()).or_else(|| without_clock(name));
        let world = world.clone();
        suite::trial(format!("unconfirmed: {name}"), lacks, move || case(&mut Stage::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// Two hours ahead, for the program that follows.
const LATER: &[&str] = &["unshare", "--time", "--boottime", "7200", "--fork"];

fn without_clock(name: &str) -> Option<String> {
    let needs = name.contains("since boot") && !works(&[LATER, &["true"]].concat());
    needs.then(|| "time namespaces".to_owned())
}

fn traced(stage: &Stage, line: &str, rule: Rule) -> (Seen, String) {
    let out = stage.desk.path("out");
    let seen = tracer::run(stage.words(line), &out, rule).1.join().unwrap();
    (seen, fs::read_to_string(out).unwrap())
}

const fn rule(counts: fn(&str) -> bool, at: usize, fault: Fault) -> Rule {
    Rule { word: "apply", is_child: false, counts, at, fault }
}

const NEVER: usize = usize::MAX;

fn reverted(stage: &Stage) {
    stage.desk.scene.until("the end of the process that reverts", || stage.desk.reverters().is_empty());
    assert_eq!(stage.differing(), None);
}

fn begin_again(stage: &Stage) {
    assert_eq!(stage.differing(), None);
    fs::remove_dir_all(stage.desk.path("state")).unwrap();
}

fn done_unsaid(stage: &mut Stage) {
    let renames: fn(&str) -> bool = |call| call.starts_with("rename");
    let (seen, _) = traced(stage, "apply {d}/l.toml {s}", rule(renames, NEVER, Fault::Kill));
    let last = seen.calls.len() - 1;
    stage.desk.ends("undo {s}", 0);
    begin_again(stage);
    // with everything in the journal, and not yet among the finished ones
    let died = rule(renames, last, Fault::Kill);
    let (seen, _) = traced(stage, "apply {d}/l.toml {s} --confirm 1s", died.clone());
    assert!(seen.hit.is_some());
    reverted(stage);
    begin_again(stage);

    traced(stage, "apply {d}/l.toml {s}", died);
    assert!(stage.differing().is_some(), "all is done");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 0, "{out}{error}");
    says(&error, &["generation 1 was done when its process ended, and is in effect"]);
    assert!(!error.contains("back"), "nothing was rolled back before the undo: {error}");
    assert_eq!(stage.differing(), None);
}

/// Processes in a group of their own, thawed and gone at the end.
struct Shell<'s>(&'s Stage);

impl<'s> Shell<'s> {
    fn new(stage: &'s mut Stage) -> Shell<'s> {
        stage.desk.scene.ok("create {g}/shell -c freezer,pids");
        stage.look_again();
        Shell(stage)
    }

    /// Runs a command line of ours in there, beside a process that stays.
    fn start(&self, line: &str) -> std::process::Child {
        let line = format!("sleep 600 & exec {}", self.0.words(line).join(" "));
        let words = self.0.words("run {g}/shell -- sh -c");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(line).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(self.0.desk.path("out")).unwrap()).spawn().unwrap()
    }
}

impl Drop for Shell<'_> {
    fn drop(&mut self) {
        self.0.desk.run("thaw {g}/shell");
        self.0.desk.run("kill {g}/shell");
    }
}

fn freezes_itself(stage: &mut Stage) {
    let setting = if stage.has_v1("freezer") { "freezer.state = \"FROZEN\"" } else { "cgroup.freeze = 1" };
    stage.desk.write("freeze.toml", &format!("[groups.\"{{g}}/shell\"]\n{setting}\npids.max = 60\n"));
    let shell = Shell::new(stage);
    let mut child = shell.start("apply {d}/freeze.toml {s} --confirm 1s");
    let mut code = None;
    for _ in 0..3000 {
        code = child.try_wait().unwrap();
        if code.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let said = fs::read_to_string(shell.0.desk.path("out")).unwrap();
    assert_eq!(code.and_then(|code| code.code()), Some(1), "{said}");
    says(&said, &["holds ringfence itself", "hint: "]);
    shell.0.desk.run("kill {g}/shell");
    shell.0.desk.scene.until("the state before", || shell.0.differing().is_none());
}

fn frozen_caller(stage: &mut Stage) {
    let shell = Shell::new(stage);
    let code = shell.start("apply {d}/l.toml {s} --confirm 3s").wait().unwrap();
    assert!(code.success(), "{}", fs::read_to_string(shell.0.desk.path("out")).unwrap());
    shell.0.desk.scene.ok("freeze {g}/shell");
    for pid in shell.0.desk.reverters() {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap_or_default();
        assert!(!groups.contains(&shell.0.desk.scene.group), "{groups}");
    }
    shell.0.desk.scene.until("the end of the process that reverts", || shell.0.desk.reverters().is_empty());
    drop(shell);
    let gone = || stage.differing().is_none();
    stage.desk.scene.until("the state before", gone);
}

fn disk_full(stage: &mut Stage) {
    let disk = Disk::of(stage, "tmpfs", "size=1M,mode=755");
    stage.desk.ends("apply {d}/l.toml --state {d}/disk/state --confirm 3s", 0);
    disk.fill();
    assert!(stage.differing().is_some());
    reverted(stage);
    let history = stage.desk.ends("history --state {d}/disk/state", 0);
    says(&history, &["not confirmed within 3 s"]);
}

fn inodes_gone(stage: &mut Stage) {
    let _disk = Disk::of(stage, "tmpfs", "size=1M,nr_inodes=40,mode=755");
    let files: Vec<_> = (0..40).map(|number| stage.desk.path(&format!("disk/{number}"))).collect();
    let fill = || files.iter().take_while(|file| fs::write(file, "").is_ok()).count();
    stage.desk.ends("apply {d}/l.toml --state {d}/disk/state --confirm 3s", 0);
    let made = fill();
    assert!(made < files.len() && stage.differing().is_some());
    reverted(stage);
    files.iter().take(made).for_each(|file| fs::remove_file(file).unwrap());
    stage.desk.ends("apply {d}/l.toml --state {d}/disk/state --confirm 60s", 0);
    fill();
    stage.desk.ends("confirm --state {d}/disk/state", 0);
    says(&stage.desk.ends("status --state {d}/disk/state", 0), &["all as applied"]);
}

fn disk_too_small(stage: &mut Stage) {
    // of the larger ones the room for the undo would do for the change alone
    for size in ["100k", "140k", "180k"] {
        let _disk = Disk::of(stage, "tmpfs", &format!("size={size},mode=755"));
        let (code, out, error) = stage.desk.run("apply {d}/l.toml --state {d}/disk/state --confirm 3s");
        assert_eq!(code, 1, "{size}: {out}{error}");
        says(&error, &["no space left on device", "hint: make room there"]);
        reverted(stage);
        let history = stage.desk.ends("history --state {d}/disk/state", 0);
        says(&history, &["no generation is recorded"]);
        assert!(!stage.desk.path("disk/state/generations/reserve").exists(), "{size}");
    }
}

fn shown(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
    says(&stage.desk.ends("status {s}", 0), &["generation 1 will be undone in "]);
    stage.desk.kill_reverters();
    // finding 11 of the second newcomers' review: nobody is left that would keep this promise
    for (line, code) in [("status {s}", 3), ("history {s}", 0), ("plan {d}/l.toml {s}", 0)] {
        let out = stage.desk.ends(line, code);
        says(
            &out,
            &[
                "generation 1 is not confirmed, and no process is left that would undo it in ",
                "it stays in effect until the next apply or undo",
                "To undo it now: ringfence undo --state ",
                "; to confirm it: ringfence confirm 1 --state ",
            ],
        );
        assert!(!out.contains("will be undone"), "{out}");
    }
    assert_eq!(stage.desk.json("status {s} --json", 3)["pending"]["unwatched"], true);
    stage.desk.ends("undo {s}", 0);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 2s", 0);
    stage.desk.kill_reverters();
    let words = "generation 3 was not confirmed in time and is still in effect: run `ringfence undo --state ";
    stage.desk.scene.until("its time is over", || {
        let (code, out, _) = stage.desk.run("status {s}");
        let over = out.contains(words);
        assert!(!over || code == 3, "{code}");
        over
    });
    says(&stage.desk.ends("history {s}", 0), &[words]);
    let status = stage.desk.json("status {s} --json", 3);
    assert_eq!(status["pending"]["overdue"], true, "{status}");
    assert!(stage.differing().is_some());
    stage.desk.run("undo {s}");
    assert_eq!(stage.differing(), None);
}

/// Writes a record as if the wall clock had been another when it was made.
fn set_back(record: &Path, seconds: i64) {
    let mut text = Vec::new();
    for (number, line) in fs::read_to_string(record).unwrap().lines().enumerate() {
        let (json, sum) = line.rsplit_once('\t').map_or((line, None), |(json, sum)| (json, Some(sum)));
        let mut value: Value = serde_json::from_str(json).unwrap();
        for pointer in ["/at", "/result/at"] {
            if let Some(at) = value.pointer_mut(pointer) {
                *at = (at.as_i64().unwrap() - seconds).into();
            }
        }
        let json = value.to_string();
        text.extend_from_slice(json.as_bytes());
        if sum.is_some() {
            let mut sum = crc32fast::Hasher::new();
            sum.update(&(number as u64).to_le_bytes());
            sum.update(json.as_bytes());
            text.extend_from_slice(format!("\t{:08x}", sum.finalize()).as_bytes());
        }
        text.push(b'\n');
    }
    let beside = record.with_extension("edited");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, record).unwrap();
}

fn clock(stage: &mut Stage) {
    let record = stage.desk.path("state/generations/0001.jsonl");
    stage.desk.ends("apply {d}/l.toml {s} --confirm 60s", 0);
    set_back(&record, 3600);
    says(&stage.desk.ends("status {s}", 0), &["generation 1 will be undone in "]);
    assert_eq!(stage.desk.ends("confirm {s}", 0), "generation 1 is confirmed\n");
    assert!(stage.differing().is_some());
    stage.desk.ends("undo {s}", 0);
    begin_again(stage);

    stage.desk.ends("apply {d}/l.toml {s} --confirm 3s", 0);
    set_back(&record, -86_400 * 3650);
    reverted(stage);
}

fn boot_clock(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
    says(&stage.desk.ends("status {s}", 0), &["generation 1 will be undone in "]);
    let mut command = Command::new(LATER[0]);
    command.args(&LATER[1..]).args(stage.words("status {s}")).stdin(Stdio::null());
    let (code, out, error) = answer(command.output().unwrap());
    assert_eq!(code, 3, "{out}{error}");
    says(&out, &["generation 1 was not confirmed in time"]);
    stage.desk.ends("undo {s}", 0);
    reverted(stage);
}

/// The deadline came two hours later for everybody outside of that namespace.
fn clock_of_a_namespace(stage: &mut Stage) {
    let mut command = Command::new(LATER[0]);
    command.args(&LATER[1..]).args(stage.words("apply {d}/l.toml {s} --confirm 2s")).stdin(Stdio::null());
    let (code, out, error) = answer(command.output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    stage.desk.kill_reverters();
    stage.desk.scene.until("its time is over", || {
        let (code, out, _) = stage.desk.run("status {s}");
        code == 3 && out.contains("generation 1 was not confirmed in time")
    });
    stage.desk.ends("undo {s}", 0);
    reverted(stage);
}

fn last_write(stage: &mut Stage) {
    let calls: [fn(&str) -> bool; 4] = [
        |call| call == "pwrite64" || call == "write",
        |call| call == "ftruncate",
        |call| call == "fdatasync" || call == "fsync",
        |call| call.starts_with("rename"),
    ];
    for counts in calls {
        let (seen, _) = traced(stage, "apply {d}/l.toml {s} --json", rule(counts, NEVER, Fault::Kill));
        assert_eq!(seen.code, Some(0));
        let count = seen.calls.len();
        stage.desk.ends("undo {s}", 0);
        begin_again(stage);
        for (back, errno) in [(1, Errno::ENOSPC), (2, Errno::EIO)] {
            let Some(at) = count.checked_sub(back) else { continue };
            let (seen, said) =
                traced(stage, "apply {d}/l.toml {s} --json", rule(counts, at, Fault::Refuse(errno)));
            let what = format!("{:?} number {at} of {count}: {said}", seen.hit);
            match seen.code {
                Some(0) => {
                    assert!(stage.differing().is_some(), "{what}");
                    stage.desk.ends("undo {s}", 0);
                }
                // to say what was done is not what was requested
                Some(1) if said.contains("standard output") => drop(stage.desk.run("undo {s}")),
                Some(1) => {
                    assert_eq!(stage.differing(), None, "{what}");
                    let (code, _, error) = stage.desk.run("undo {s}");
                    assert!(code == 1 && error.contains("nothing to undo"), "{what}: {error}");
                }
                code => panic!("{code:?}: {what}"),
            }
            begin_again(stage);
        }
    }
}

fn looking(stage: &mut Stage) {
    let opens: fn(&str) -> bool = |call| call == "openat2";
    let (seen, _) = traced(stage, "apply {d}/l.toml {s}", rule(opens, NEVER, Fault::Kill));
    let count = seen.calls.len();
    stage.desk.ends("undo {s}", 0);
    begin_again(stage);
    let sample = if is_emulated() { 5 } else { 30 };
    let mut refused = 0;
    for at in (0..count).step_by(if all_of_them() { 1 } else { count.div_ceil(sample) }) {
        let fault = rule(opens, at, Fault::Refuse(Errno::ENOMEM));
        let (seen, said) = traced(stage, "apply {d}/l.toml {s}", fault);
        let what = format!("open {at} of {count}: {:?}: {said}", seen.code);
        if seen.code == Some(0) {
            assert!(stage.differing().is_some(), "{what}");
            stage.desk.ends("undo {s}", 0);
        } else {
            refused += 1;
            assert_eq!(stage.differing(), None, "{what}");
            stage.desk.run("undo {s}");
        }
        assert_eq!(stage.differing(), None, "{what}");
        let _ = fs::remove_dir_all(stage.desk.path("state")); // it may have failed before that was made
    }
    eprintln!("{count} opens, {refused} of those tried refused the change");
}

fn hung(stage: &mut Stage) {
    let makes: fn(&str) -> bool = |call| call == "mkdirat";
    let words = stage.words("apply {d}/l.toml {s} --confirm 1s");
    let (started, tracer) = tracer::run(words, &stage.desk.path("out"), rule(makes, 1, Fault::Hang));
    let pid = Pid::from_raw(i32::try_from(started.recv().unwrap()).unwrap()).unwrap();
    stage.desk.scene.until("the process that reverts", || !stage.desk.reverters().is_empty());
    // it waits for half a minute beyond the deadline
    let started = std::time::Instant::now();
    while !stage.desk.reverters().is_empty() && started.elapsed().as_secs() < 100 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (back, ended) = (stage.differing(), tracer.is_finished());
    let _ = kill_process(pid, Signal::KILL); // a version that does not
    stage.desk.kill_reverters();
    let seen = tracer.join().unwrap();
    assert!(seen.hit.is_some());
    assert_eq!((back, ended), (None, true));
}

fn by_descriptor(stage: &mut Stage) {
    let killing = Rule { word: "kill", ..rule(changes, NEVER, Fault::Kill) };
    let (seen, said) = traced(stage, "kill {g}/old", killing);
    assert_eq!(seen.code, Some(0), "{said}");
    assert!(!seen.calls.iter().any(|call| matches!(*call, "kill" | "tkill" | "tgkill")), "{:?}", seen.calls);
    // a directory of v2 is killed whole by a file
    let has_v1 = ["cpu", "cpuset", "memory", "pids"].iter().any(|controller| stage.has_v1(controller));
    assert_eq!(seen.calls.contains(&"pidfd_send_signal"), has_v1, "{:?}", seen.calls);
}
