//! What administrators do beside the program and what others call their groups, as the second newcomers' review met it.

use std::{fs, path::PathBuf};

use crate::{
    desk::says,
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("an undo names a value that somebody set before the undone change", set_between),
    row("a process with some of its threads in the group is drift", some_threads).needs(THREADS),
    row("threads in another group of the layout are no drift", threads_apart).needs(THREADS),
    row("a process whose first thread alone came in is drift", first_thread).needs(THREADS),
    row("a group that was renamed by hand is named where it is now", renamed).needs(&[Need::V1("pids")]),
    row("where --cpu escapes names that steer a terminal", steering_name),
];

const THREADS: &[Need] = &[Need::V1("pids"), Need::Program("python3")];

/// Finding 12.
fn set_between(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.by_hand("{g}", "pids.max", "77");
    stage.apply("[groups.\"{g}\"]\npids.max = 50\n");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(stage.holds("{g}", "pids.max"), "77");
    let file = stage.file("{g}", "pids.max").display().to_string();
    says(
        &error,
        &[&format!("{file}: 77 is back, "), "A generation in effect applied 100, so status shows drift"],
    );
    says(&stage.desk.ends("status {s}", 3), &["pids.max: applied 100, now 77"]);
    stage.truth();
    // what was applied and is back is nothing to mention
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.apply("[groups.\"{g}\"]\npids.max = 50\n");
    let undone = stage.desk.json("undo --json {s}", 0);
    assert_eq!(undone["foreign"], serde_json::json!([]));
    stage.desk.ends("status {s}", 0);
}

/// A process with three threads, the first of which has its number; it belongs to the row.
fn threaded(stage: &mut Stage<'_>) -> Vec<u32> {
    let script = "import threading, time\nfor _ in range(2): threading.Thread(target=time.sleep, args=(600,)).start()\ntime.sleep(600)";
    let pid = stage.desk.scene.start("{many}", &["python3", "-c", script]);
    stage.free(pid);
    let threads = || {
        let all = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let mut all: Vec<u32> =
            all.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        all.sort_unstable();
        all
    };
    stage.desk.scene.until("three threads", || threads().len() == 3);
    threads()
}

fn move_thread(stage: &Stage<'_>, thread: u32, group: &str, controller: &str) {
    let directory = match group {
        "" => stage.mount(controller).to_owned(),
        group => stage.directory(group, controller),
    };
    fs::write(directory.join("tasks"), thread.to_string()).unwrap();
}

/// Finding 13.
fn some_threads(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let threads = threaded(stage);
    stage.desk.scene.ok("move {g} {many}");
    stage.desk.ends("status {s}", 0);
    move_thread(stage, threads[1], "", "pids");
    let directory = stage.directory("{g}", "pids").display().to_string();
    let words = format!(
        "1 of 3 threads of process {} is not in {directory}: what is set there does not hold for {}",
        threads[0], threads[1]
    );
    says(&stage.desk.ends("status {s}", 3), &[&words]);
    let drift = &stage.drifts("{g}")[0];
    assert_eq!((&drift["drift"], &drift["processes"]), (&"outside".into(), &serde_json::json!([])));
    assert_eq!(
        drift["split"],
        serde_json::json!([{ "process": threads[0], "outside": [threads[1]], "of": 3 }])
    );
    stage.truth();
    // the layout's next apply brings it back, and its undo takes no process along
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    assert!(stage.is_in(threads[1], "{g}", "pids"));
    stage.desk.ends("status {s}", 0);
    stage.desk.ends("undo {s}", 0);
    assert!(threads.iter().all(|thread| stage.is_in(*thread, "{g}", "pids")));
}

fn threads_apart(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/b\"]\npids.max = 50\n");
    let threads = threaded(stage);
    stage.desk.scene.ok("move {g}/a {many}");
    move_thread(stage, threads[2], "{g}/b", "pids");
    stage.desk.ends("status {s}", 0);
    // above both, the limits of neither hold for it
    move_thread(stage, threads[2], "{g}", "pids");
    let words = format!("1 of 3 threads of process {} is not in ", threads[0]);
    says(&stage.desk.ends("status {s}", 3), &[&words]);
}

/// As libcgroup's cgclassify moves it.
fn first_thread(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let threads = threaded(stage);
    move_thread(stage, threads[0], "{g}", "pids");
    let words = format!("2 of 3 threads of process {} are not in ", threads[0]);
    says(
        &stage.desk.ends("status {s}", 3),
        &[&words, &format!("does not hold for {}, {}", threads[1], threads[2])],
    );
    stage.truth();
    let status = stage.desk.ends("status {s}", 3);
    let hint = status.lines().find_map(|line| line.trim().strip_prefix("hint: ringfence ")).unwrap();
    stage.desk.ends(hint, 0);
    stage.desk.ends("status {s}", 0);
}

/// Finding 16.
fn renamed(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/b\"]\npids.max = 50\n");
    let pid = stage.sleeper("{one}", "{g}/a");
    let (from, to) = (stage.directory("{g}/a", "pids"), stage.directory("{g}/other", "pids"));
    fs::rename(&from, &to).unwrap();
    assert!(stage.is_in(pid, "{g}/other", "pids"));
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let words = format!("{from} was renamed to {to}");
    says(&stage.desk.ends("status {s}", 3), &[&words]);
    stage.truth();
    // whatever its limit is
    fs::write(format!("{to}/pids.max"), "99").unwrap();
    says(&stage.desk.ends("status {s}", 3), &[&words]);
    fs::write(format!("{to}/pids.max"), "100").unwrap();
    fs::rename(&to, &from).unwrap();
    stage.desk.ends("status {s}", 0);
    stage.truth();
}

/// Finding 14.
fn steering_name(stage: &mut Stage<'_>) {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpu = online.split(['-', ',', '\n']).next().unwrap();
    stage.desk.scene.ok("create {g}");
    stage.desk.scene.ok(&format!("set {{g}} cpuset.mems=0 cpuset.cpus={cpu}"));
    let name = format!("{}\u{1b}[31m\rx", stage.fill("{g}"));
    let directory = stage.directory("{g}", "cpuset").join(&name);
    fs::create_dir(&directory).unwrap();
    let made = ForeignGroup { directory: directory.clone(), root: stage.mount("cpuset").to_owned() };
    let copy = |file: &str| {
        let text = fs::read_to_string(directory.parent().unwrap().join(file)).unwrap();
        fs::write(directory.join(file), text).unwrap();
    };
    if stage.is_v1("cpuset") {
        ["cpuset.cpus", "cpuset.mems"].iter().for_each(|file| copy(file));
    } else {
        fs::write(directory.parent().unwrap().join("cgroup.subtree_control"), "+cpuset").unwrap();
    }
    let pid = stage.desk.scene.start("{one}", &["sleep", "300"]);
    fs::write(directory.join("cgroup.procs"), pid.to_string()).unwrap();
    let (code, out, error) = stage.desk.run(&format!("where --cpu {cpu}"));
    assert_eq!(code, 0, "{error}");
    let escaped = stage.fill("{g}/{g}\\u{1b}[31m\\rx");
    assert!(
        out.lines().any(|line| line.starts_with(&format!("  {escaped}")) && line.contains("  CPUs ")),
        "{out}"
    );
    assert!(out.chars().all(|letter| letter == '\n' || !letter.is_control()), "{out:?}");
    let json = stage.desk.json(&format!("where --cpu {cpu} --json"), 0);
    let whole = format!("{}/{name}", stage.fill("{g}"));
    assert!(
        json["groups"].as_array().unwrap().iter().any(|group| group["group"] == whole.as_str()),
        "{json}"
    );
    let task = json["tasks"].as_array().unwrap().iter().find(|task| task["pid"] == pid).unwrap();
    assert_eq!(task["group"], whole.as_str());
    drop(made);
}

/// A group that our commands can't name, so that the desk would leave it behind.
struct ForeignGroup {
    directory: PathBuf,
    root: PathBuf,
}

impl Drop for ForeignGroup {
    fn drop(&mut self) {
        for pid in fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(self.root.join("cgroup.procs"), pid); // it may have ended
        }
        let _ = fs::remove_dir(&self.directory);
    }
}
