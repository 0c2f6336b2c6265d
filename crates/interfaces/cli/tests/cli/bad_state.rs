//! State directories and machines on which little works: a change is carried out, or refused before anything was changed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde_json::Value;

use crate::{
    desk::{answer, says},
    undoable::{Disk, Stage, works},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Stage));

const CASES: &[Case] = &[
    ("a file system without xattrs and without room set aside is enough", &[], plain_file_system),
    ("a read-only file system is refused with what to do", &[], read_only),
    ("a directory of another user is refused with what to do", &[], foreign),
    ("a directory that others can write to is refused with what to do", &[], open_to_others),
    ("a link into another user's directory is refused with what to do", &[], linked),
    ("a file instead of a directory is refused with what to do", &[], a_file),
    ("a record under another one's name is refused, with what to do", &[], copied),
    ("a FIFO in place of a record makes nobody wait", &[], fifo),
    ("what is no regular file in place of a record is named, with what to do", &[], irregular),
    ("a FIFO in place of the file that the reverter locks makes nobody wait", &[], fifo_of_watch),
    ("a process that undoes takes any time and any generation", &[], any_time),
    ("only root reads what the state says, also of an earlier version's", &[], private),
    ("doctor warns of a strict rule for a shell", &[], strict_shell),
    ("without CAP_SYS_ADMIN nothing is mounted, and nothing changed", &[], no_admin),
    (
        "a clock at the beginning of 1970, and one that is set while a change waits",
        &[Need::OwnMachine],
        clock,
    ),
];

/// For the program that follows.
const WITHOUT_ADMIN: &[&str] = &["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let lacks = world.lacks(&[&[Need::Usual], needs].concat());
        let rights = || name.contains("CAP_SYS_ADMIN") && !works(&[WITHOUT_ADMIN, &["true"]].concat());
        let mounts = || name.contains("doctor") && !works(&["unshare", "-m", "true"]);
        let lacks = lacks.or_else(|| rights().then(|| "setpriv of util-linux".to_owned()));
        let lacks = lacks.or_else(|| mounts().then(|| "unshare of util-linux".to_owned()));
        let world = world.clone();
        suite::trial(format!("bad state: {name}"), lacks, move || case(&mut Stage::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// As NFS before 4.2: no fallocate(2).
fn plain_file_system(stage: &mut Stage) {
    let _disk = Disk::of(stage, "ramfs", "mode=755");
    stage.desk.ends("apply {d}/l.toml --state {d}/disk/state --confirm 3600s", 0);
    assert!(stage.differing().is_some());
    stage.desk.ends("confirm --state {d}/disk/state", 0);
    stage.desk.ends("undo --state {d}/disk/state", 0);
    assert_eq!(stage.differing(), None);
    stage.desk.scene.until("the end of the process that reverts", || stage.desk.reverters().is_empty());
}

/// Nothing was changed; standard error.
fn refused(stage: &Stage, line: &str) -> String {
    let (code, out, error) = stage.desk.run(line);
    assert_eq!(code, 1, "{out}{error}");
    assert_eq!(stage.differing(), None, "{error}");
    says(&error, &["hint: "]);
    error
}

fn read_only(stage: &mut Stage) {
    let _disk = Disk::of(stage, "tmpfs", "size=1M,mode=755,ro");
    let error = refused(stage, "apply {d}/l.toml --state {d}/disk/state");
    says(&error, &["read-only file system", "keep the state where it can be written: --state DIR"]);
}

fn foreign(stage: &mut Stage) {
    let state = stage.desk.path("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(65534), Some(65534)).unwrap();
    let error = refused(stage, "apply {d}/l.toml {s}");
    says(&error, &["cannot trust", "owner 65534", "must be a directory that only you can write to"]);
    // the history in it is another's too
    fs::remove_dir_all(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::create_dir(state.join("generations")).unwrap();
    chown(state.join("generations"), Some(65534), Some(65534)).unwrap();
    says(&refused(stage, "apply {d}/l.toml {s}"), &["generations", "owner 65534"]);
}

fn copied(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let record = |number: u32| stage.desk.path(&format!("state/generations/{number:04}.jsonl"));
    fs::copy(record(1), record(2)).unwrap();
    for line in ["undo {s}", "status {s}", "apply {d}/l.toml {s}"] {
        let (code, _, error) = stage.desk.run(line);
        assert_ne!(code, 0, "{line}: {error}");
        says(&error, &["0002.jsonl", "it is the record of generation 1", "hint: "]);
    }
    assert!(stage.differing().is_some(), "nothing was undone");
    fs::remove_file(record(2)).unwrap();
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
}

fn fifo(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let record = stage.desk.path("state/generations/0001.jsonl");
    let aside = stage.desk.path("aside");
    fs::rename(&record, &aside).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    for line in ["undo {s}", "status {s}"] {
        let (code, _, error) = stage.desk.run(line);
        assert_ne!(code, 0, "{line}: {error}");
        says(&error, &["0001.jsonl", "it is not a regular file"]);
    }
    fs::rename(&aside, &record).unwrap();
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
}

fn irregular(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let record = stage.desk.path("state/generations/0001.jsonl");
    let aside = stage.desk.path("aside");
    fs::rename(&record, &aside).unwrap();
    let makes: [&dyn Fn(&Path); 3] =
        [&|record| fs::create_dir(record).unwrap(), &|record| symlink(&aside, record).unwrap(), &|record| {
            symlink("nowhere", record).unwrap()
        }];
    for make in makes {
        make(&record);
        for line in ["undo {s}", "status {s}", "apply {d}/l.toml {s}"] {
            let (code, out, error) = stage.desk.run(line);
            assert_eq!(code, 1, "{line}: {out}{error}");
            says(&error, &["0001.jsonl: it is not a regular file", "hint: to continue without", "mv "]);
        }
        let history = stage.desk.ends("history {s}", 0);
        says(&history, &["1  damaged", "it is not a regular file"]);
        assert!(stage.differing().is_some(), "nothing was undone");
        if record.is_dir() && !record.is_symlink() {
            fs::remove_dir(&record).unwrap();
        } else {
            fs::remove_file(&record).unwrap();
        }
    }
    fs::rename(&aside, &record).unwrap();
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
}

fn fifo_of_watch(stage: &mut Stage) {
    stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
    stage.desk.kill_reverters();
    let watch = stage.desk.path("state/watch");
    fs::remove_file(&watch).unwrap();
    assert!(Command::new("mkfifo").arg(&watch).status().unwrap().success());
    let status = stage.desk.scene.fill("status {s}");
    let program = stage.desk.scene.program();
    let mut line = vec!["10", &program];
    line.extend(status.split_whitespace());
    let (code, out, error) = answer(Command::new("timeout").args(&line).output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    says(&format!("{out}{error}"), &["generation 1 will be undone", "ringfence confirm 1"]);
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
}

/// It panicked on a time that the clock can't be added to.
fn any_time(stage: &mut Stage) {
    for line in
        ["revert-unless-confirmed 7 18446744073709551615 {s}", "revert-unless-confirmed 4294967295 0 {s}"]
    {
        let (code, out, error) = stage.desk.run(line);
        assert_eq!((code, out.as_str(), error.as_str()), (0, "\n", ""), "{line}");
    }
}

fn linked(stage: &mut Stage) {
    let others = stage.desk.path("others");
    fs::create_dir_all(others.join("generations")).unwrap();
    chown(&others, Some(5), None).unwrap();
    symlink(others.join("state"), stage.desk.path("link")).unwrap();
    fs::create_dir(others.join("state")).unwrap();
    says(&refused(stage, "apply {d}/l.toml --state {d}/link"), &["others belongs to user 5", "chown root"]);
    fs::create_dir(stage.desk.path("own")).unwrap();
    symlink(others.join("generations"), stage.desk.path("own/generations")).unwrap();
    says(&refused(stage, "apply {d}/l.toml --state {d}/own"), &["others belongs to user 5", "chown root"]);
}

fn open_to_others(stage: &mut Stage) {
    let state = stage.desk.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    says(&refused(stage, "apply {d}/l.toml {s}"), &["cannot trust", "mode 777"]);
}

fn a_file(stage: &mut Stage) {
    stage.desk.write("state", "");
    says(&refused(stage, "apply {d}/l.toml {s}"), &["--state names a directory"]);
}

/// Attack finding 27: the records name root's commands with their arguments. A confirmation, the room that is set aside,
/// a journal that was interrupted and the lock are beside them.
fn private(stage: &mut Stage) {
    let (state, generations) = (stage.desk.path("state"), stage.desk.path("state/generations"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let all_private = |names: &[&str]| {
        let files =
            [&state, &generations].map(|directory| fs::read_dir(directory).unwrap()).into_iter().flatten();
        let files: Vec<PathBuf> =
            files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
        for name in names {
            assert!(files.iter().any(|file| file.ends_with(name)), "{name} is not among {files:?}");
        }
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        assert_eq!((mode(&state), mode(&generations)), (0o755, 0o700));
    };
    stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
    all_private(&["lock", "0001.jsonl", "reserve"]);
    stage.desk.ends("confirm {s}", 0);
    all_private(&["0001.confirmed"]);
    // as an earlier version left it
    fs::set_permissions(&generations, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(state.join("lock"), fs::Permissions::from_mode(0o644)).unwrap();
    stage.desk.ends("undo {s}", 0);
    all_private(&["lock", "0002.jsonl"]);
}

/// Attack finding 3, as far as the kernel leaves no bound: who makes such a rule gets a warning. Below an `/etc` of its own.
fn strict_shell(stage: &mut Stage) {
    let doctor = |rule: &str| {
        stage.desk.write("etc/ringfence/layout.toml", &format!("[groups.{{g}}]\nmatch = [{rule}]\n"));
        let script = stage.desk.scene.fill("mount --bind {d}/etc /etc && exec \"$0\" doctor --json");
        let program = stage.desk.scene.program();
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script, &program]).output().unwrap();
        let (code, out, error) = answer(output);
        assert!(matches!(code, 0 | 3), "{code}: {out}{error}");
        let found: Value = serde_json::from_str(&out).unwrap();
        let shells =
            |finding: &&Value| finding["what"].as_str().unwrap().ends_with("strict rule for a shell");
        found["findings"].as_array().unwrap().iter().find(shells).cloned()
    };
    let finding = doctor("{ process = \"/bin/sh\", strict = true }").unwrap();
    says(finding["what"].as_str().unwrap(), &["/etc/ringfence/layout.toml:2:"]);
    says(finding["consequence"].as_str().unwrap(), &["up to 2 s", "without limit while root keeps the gate"]);
    says(finding["hint"].as_str().unwrap(), &["name the programs that the shell starts"]);
    assert_eq!(doctor("{ process = \"/bin/sh\" }"), None);
    // of a guest with busybox even cat is a shell
    assert_eq!(doctor("{ process = \"/opt/server\", strict = true }"), None);
}

/// As in a container: what needs no mount is done, and what does is refused.
fn no_admin(stage: &mut Stage) {
    stage.desk.write("mount.conf", "mount {\n  \"name=rf-test-admin\" = {d}/named;\n}\n");
    let without = |line: &str| {
        let mut command = Command::new(WITHOUT_ADMIN[0]);
        command.args(&WITHOUT_ADMIN[1..]);
        answer(command.args(stage.words(line)).stdin(Stdio::null()).output().unwrap())
    };
    let (code, out, error) = without("apply {d}/mount.conf {s}");
    assert_eq!(code, 1, "{out}{error}");
    says(&error, &["rf-test-admin", "hint: mounting needs root (CAP_SYS_ADMIN)", "all is as before"]);
    assert!(!stage.desk.path("named").exists());
    let (code, out, error) = without("apply {d}/l.toml {s}");
    if code == 0 {
        assert!(stage.differing().is_some());
        let (code, out, error) = without("undo {s}");
        assert_eq!(code, 0, "{out}{error}");
    }
    assert_eq!(stage.differing(), None, "{out}{error}");
}

/// The wall clock of a machine that nobody else uses, as it should be again at the end.
struct Clock {
    offset: i64,
}

impl Clock {
    fn new() -> Clock {
        Clock { offset: clock_gettime(ClockId::Realtime).tv_sec - clock_gettime(ClockId::Boottime).tv_sec }
    }

    fn set(seconds: i64) {
        clock_settime(ClockId::Realtime, Timespec { tv_sec: seconds, tv_nsec: 0 }).unwrap();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        Clock::set(self.offset + clock_gettime(ClockId::Boottime).tv_sec);
    }
}

fn clock(stage: &mut Stage) {
    let clock = Clock::new();
    // the kernel takes no time before its own start was in 1970
    Clock::set(clock_gettime(ClockId::Boottime).tv_sec + 1);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 3600s", 0);
    says(&stage.desk.ends("history {s}", 0), &["1970-01-01 00:"]);
    // a day ahead: the hour is not over
    Clock::set(86_400);
    stage.desk.ends("confirm {s}", 0);
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.differing(), None);
    drop(clock);
    let _clock = Clock::new();
    stage.desk.ends("apply {d}/l.toml {s} --confirm 5s", 0);
    Clock::set(86_400);
    stage.desk.scene.until("the end of the process that reverts", || stage.desk.reverters().is_empty());
    assert_eq!(stage.differing(), None);
}
