//! What a layout no longer asks for, what is undone, and what nobody confirmed: does it still hold for the processes?

use std::fs;

use serde_json::json;

use crate::{
    desk::says,
    reported::{Row, Stage, row, truth::ids},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("a setting that is removed from the file is lifted", setting_removed),
    row("a setting that is removed is lifted for the tasks in the group", setting_removed_with_task),
    row("a setting that is removed goes back to what it was before", setting_back),
    row("a group that is removed from the file goes", group_removed),
    row(
        "a group with a task that is removed from the file is named, without its limits",
        group_removed_with_task,
    ),
    row("the last setting of a controller is removed", controller_removed),
    row("a layout that is emptied takes everything back or asks first", emptied),
    row("an undo takes values back that one command set", set_undone),
    row("an undo takes an empty group away", undone),
    row("an undo lifts the limits of a group with a task", undone_with_task),
    row("an undo lifts the limits of nested groups with tasks", undone_nested),
    row("an undo of all lifts limits that a later layout had lifted before", undone_past_a_removal),
    row("an undo of the second layout brings back the limits of the first", undone_to_first),
    row("an undo gives the tasks all CPUs of the parent back", undone_cpus).needs(&[Need::Cpus(2)]),
    row("an undo after the task has gone takes the rest away", undone_later),
    row("an undo leaves a value that was there before", undone_to_value),
    row("a group that an undo had to leave belongs to the next layout that names it", adopted)
        .needs(&[Need::Cpus(2)]),
    row("an undo names what it takes back, and what was set since", named),
    row("a change that nobody confirms is lifted for the tasks", unconfirmed),
    row("a change that nobody confirms is lifted under load", unconfirmed_under_load),
    row("a change that waits for its confirmation is shown as one", waiting),
    row("a change that was confirmed stays in force", confirmed),
    row("an undo of a change that is overdue undoes that change alone", overdue_undone_alone),
    row("a limit that an undo could not restore is reported as still in force", restore_refused)
        .needs(&[Need::V1("memory"), Need::NoSwap]),
    row("an undo kills nobody for a limit that was there before", restore_refused)
        .needs(&[Need::V2("memory")]),
    row("what an undo writes over is named if somebody had set it since", written_over),
    row("the parent's CPUs, which an undo wrote, are nobody else's value", inherited_again)
        .needs(&[Need::Cpus(2)]),
    row("a group that was made again keeps no value that a layout wrote to it later", made_again_and_written),
    row("a state directory that was lost is no reason to say that nothing holds", state_lost),
];

const LIMITS: &str = "[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\ncpu.max = \"20%\"\n";
const SETTINGS: [&str; 3] = ["pids.max", "memory.max", "cpu.max"];

/// No limit of the group holds for the process, whether the group is there or not.
fn nothing_holds(stage: &Stage<'_>, group: &str) {
    for setting in SETTINGS {
        let file = stage.file(group, setting);
        assert!(
            !file.exists() || stage.is_unlimited(group, setting),
            "{} is {} still",
            file.display(),
            stage.holds(group, setting)
        );
    }
}

fn setting_removed(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.layout("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    assert!(!stage.planned().is_empty(), "cpu.max is to be lifted");
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let file = stage.file("{g}", "cpu.max");
    assert!(!file.exists() || stage.is_unlimited("{g}", "cpu.max"), "{}", stage.holds("{g}", "cpu.max"));
    let status = stage.status_of("{g}").unwrap();
    let requested = status["settings"].as_array().unwrap().iter();
    let requested: Vec<_> = requested.filter(|setting| setting["file"] == file.to_str().unwrap()).collect();
    assert!(requested.is_empty(), "nobody asks for it any more: {requested:?}");
    assert!(stage.planned().is_empty());
    stage.truth();
}

fn setting_removed_with_task(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    let pid = stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    for setting in ["memory.max", "cpu.max"] {
        let holds = stage.file("{g}", setting).exists() && !stage.is_unlimited("{g}", setting);
        assert!(!holds, "{setting} of {pid} is {}", stage.holds("{g}", setting));
    }
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    assert!(stage.is_in(pid, "{g}", "pids"));
    stage.truth();
}

fn setting_back(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c pids,cpu");
    stage.by_hand("{g}", "pids.max", "77");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\ncpu.weight = 200\n");
    stage.apply("[groups.\"{g}\"]\ncpu.weight = 200\n");
    assert_eq!(stage.holds("{g}", "pids.max"), "77");
    stage.truth();
}

fn group_removed(stage: &mut Stage<'_>) {
    stage.apply(
        "[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/b\"]\npids.max = 50\nmemory.max = \"64M\"\n",
    );
    stage.layout("[groups.\"{g}/a\"]\npids.max = 100\n");
    assert!(!stage.planned().is_empty());
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    for controller in ["pids", "memory"] {
        assert!(!stage.directory("{g}/b", controller).exists(), "{controller}");
    }
    assert!(stage.directory("{g}/a", "pids").is_dir());
    assert!(stage.planned().is_empty());
    stage.truth();
}

fn group_removed_with_task(stage: &mut Stage<'_>) {
    stage.apply(&format!("[groups.\"{{g}}/a\"]\npids.max = 100\n{}", LIMITS.replace("{g}", "{g}/b")));
    let pid = stage.sleeper("{one}", "{g}/b");
    stage.layout("[groups.\"{g}/a\"]\npids.max = 100\n");
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 3, "{out}{error}");
    assert!(stage.is_in(pid, "{g}/b", "pids"));
    let name = stage.fill("{g}/b");
    assert!(error.contains(&name), "it stays, and is not named: {out}{error}");
    assert!(!stage.drifts("{g}/b").is_empty());
    nothing_holds(stage, "{g}/b");
    stage.truth();
    let answer = stage.desk.json("apply --json {d}/l.toml {s}", 3);
    let left = answer["left"].as_array().unwrap();
    assert!(left.iter().any(|left| left.as_str().unwrap().contains(&name)), "{answer:#}");
    says(&stage.desk.ends("history {s}", 0), &["done in part", &name]);
}

fn controller_removed(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let still = stage.file("{g}", "memory.max").exists();
    assert!(!still || stage.is_unlimited("{g}", "memory.max"));
    // on v1 its processes stay one set
    assert!(!stage.is_v1("memory") || stage.is_in(pid, "{g}", "memory"));
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn emptied(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.layout("# nothing\n");
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    let holds = stage.holds("{g}", "pids.max") == "100";
    let says = format!("{out}{error}");
    if holds {
        assert!(code != 0 && says.contains("--yes"), "it still holds, and apply ended with {code}: {says}");
    } else {
        nothing_holds(stage, "{g}");
    }
    stage.truth();
}

/// Beside a layout, which goes on to decide what it decides.
fn set_undone(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c pids,memory,cpu");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.desk.ends("set {g} pids.max=50 memory.max=64M cpu.max=20% --quiet {s}", 0);
    assert!(!stage.is_unlimited("{g}", "cpu.max") && !stage.is_unlimited("{g}", "memory.max"));
    let history = stage.desk.ends("history {s}", 0);
    assert!(history.lines().last().unwrap().contains("set "), "{history}");
    let status = stage.desk.json("status --json {s}", 3);
    assert!(status.to_string().contains("50"), "the layout's own value is not as applied: {status}");
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    assert!(stage.is_unlimited("{g}", "cpu.max") && stage.is_unlimited("{g}", "memory.max"), "of {pid}");
    stage.desk.ends("status {s}", 0);
    stage.truth();
}

fn undone(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.desk.ends("undo {s}", 0);
    for controller in ["pids", "memory", "cpu"] {
        assert!(!stage.directory("{g}", controller).exists(), "{controller}");
    }
    assert!(stage.status_of("{g}").is_none());
    stage.truth();
}

fn undone_with_task(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.sleeper("{one}", "{g}");
    let (_, out, error) = stage.desk.run("undo {s}");
    nothing_holds(stage, "{g}");
    if stage.directory("{g}", "pids").exists() {
        assert!(error.contains(&stage.fill("{g}")), "it stays, and is not named: {out}{error}");
        assert!(!stage.drifts("{g}").is_empty());
    }
    stage.truth();
}

fn undone_nested(stage: &mut Stage<'_>) {
    stage.apply(&format!("{}{}", LIMITS.replace("{g}", "{g}/a"), LIMITS.replace("{g}", "{g}/b")));
    stage.sleeper("{one}", "{g}/a");
    stage.desk.run("undo {s}");
    nothing_holds(stage, "{g}/a");
    assert!(!stage.directory("{g}/b", "pids").exists());
    stage.truth();
}

fn undone_past_a_removal(stage: &mut Stage<'_>) {
    let first = "[groups.\"{g}/a\"]\npids.max = 100\n";
    stage.apply(&format!("{first}{}", LIMITS.replace("{g}", "{g}/b")));
    stage.sleeper("{one}", "{g}/b");
    stage.layout(first);
    stage.desk.ends("apply {d}/l.toml {s}", 3);
    nothing_holds(stage, "{g}/b");
    stage.desk.run("undo 0 {s}");
    nothing_holds(stage, "{g}/b");
    stage.truth();
}

fn undone_to_first(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 50\nmemory.max = \"64M\"\n");
    stage.desk.run("undo {s}");
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    let file = stage.file("{g}", "memory.max");
    assert!(!file.exists() || stage.is_unlimited("{g}", "memory.max"));
    stage.truth();
}

fn undone_cpus(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"1\"\nmems = \"local\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    let before = stage.cpus(std::process::id());
    assert_eq!(stage.cpus(pid), "1");
    stage.desk.run("undo {s}");
    let now = ids(&stage.cpus(pid));
    assert!(ids(&before).is_subset(&now), "{pid} runs on {now:?}, this process on {before}");
    stage.truth();
}

fn undone_later(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.sleeper("{one}", "{g}");
    stage.desk.run("undo {s}");
    stage.truth();
    stage.desk.scene.ok("kill {g}");
    stage.pids.clear();
    let tasks = stage.directory("{g}", "pids").join("cgroup.procs");
    stage.desk.scene.until("its end", || fs::read_to_string(&tasks).unwrap_or_default().is_empty());
    stage.desk.run("undo {s}");
    assert!(!stage.directory("{g}", "pids").exists());
    assert!(stage.status_of("{g}").is_none());
    stage.truth();
}

fn undone_to_value(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c pids");
    stage.by_hand("{g}", "pids.max", "77");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.sleeper("{one}", "{g}");
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "77");
    stage.truth();
}

/// A group that an undo had to leave belongs to the next layout that names it.
fn adopted(stage: &mut Stage<'_>) {
    let layout = |limit: u32| format!("[groups.\"{{g}}\"]\ncpus = \"0-1\"\npids.max = {limit}\n");
    stage.apply(&layout(50));
    stage.sleeper("{one}", "{g}");
    assert_eq!(stage.desk.run("undo {s}").0, 3, "somebody is in it");
    stage.apply(&layout(50));
    assert_eq!(stage.drifts("{g}"), [""; 0]);
    stage.desk.ends("status {s}", 0);
    stage.truth();
    stage.apply(&layout(60));
    stage.desk.scene.ok("kill {g}");
    stage.pids.clear();
    let tasks = stage.directory("{g}", "pids").join("cgroup.procs");
    stage.desk.scene.until("its end", || fs::read_to_string(&tasks).unwrap_or_default().is_empty());
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "50");
    assert!(stage.directory("{g}", "cpuset").is_dir(), "the generation that is in effect has it");
    stage.layout(&layout(50));
    assert_eq!(stage.planned(), [""; 0]);
    stage.desk.ends("undo {s}", 0);
    assert!(!stage.directory("{g}", "pids").exists() && !stage.directory("{g}", "cpuset").exists());
    stage.truth();
}

/// Until the change was taken back, by whichever process.
fn until_taken_back(stage: &Stage<'_>) {
    stage.desk.scene.until("the undo", || {
        let (_, history, _) = stage.desk.run("history {s}");
        // it is listed from its begin on
        history.contains("undo to generation 0") && !history.contains("under way")
    });
}

fn named(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    stage.desk.ends("set {g} pids.max=50", 0);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("undone: generation 1, layout "), "{out}");
    assert!(error.contains("pids.max: 50 is gone") && error.contains("after 100 was applied"), "{error}");
    // of a change by hand that is recorded nothing is lost but itself
    stage.apply("[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n");
    stage.desk.ends("set {g} pids.max=50 memory.max=32M {s}", 0);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.contains("undone: generation 4, set "), "{out}");
    stage.truth();
}

fn unconfirmed(stage: &mut Stage<'_>) {
    stage.layout(LIMITS);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 2s", 0);
    stage.sleeper("{one}", "{g}");
    until_taken_back(stage);
    nothing_holds(stage, "{g}");
    stage.truth();
}

fn unconfirmed_under_load(stage: &mut Stage<'_>) {
    stage.layout(LIMITS);
    // before it is in the group, its load would outlast the deadline
    let go = stage.desk.path("go");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    let script = format!("{wait}; exec 2>/dev/null; while :; do (sleep 0.01 &); done");
    let pid = stage.desk.scene.start("{one}", &["sh", "-c", &script]);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 4s", 0);
    stage.desk.scene.ok("move {g} {one}");
    fs::write(go, "").unwrap();
    until_taken_back(stage);
    nothing_holds(stage, "{g}");
    // it has to be able to end
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

fn waiting(stage: &mut Stage<'_>) {
    stage.layout(LIMITS);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 60s", 0);
    stage.sleeper("{one}", "{g}");
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    let (_, text, error) = stage.desk.run("status {s}");
    assert!(format!("{text}{error}").contains("confirm"), "{text}{error}");
    let (_, history, _) = stage.desk.run("history {s}");
    assert!(history.contains("confirm"), "{history}");
    stage.truth();
    stage.desk.ends("confirm {s}", 0);
    let (_, text, error) = stage.desk.run("status {s}");
    assert!(!format!("{text}{error}").contains("ringfence confirm"), "{text}{error}");
}

fn confirmed(stage: &mut Stage<'_>) {
    stage.layout(LIMITS);
    stage.desk.ends("apply {d}/l.toml {s} --confirm 2s", 0);
    stage.desk.ends("confirm {s}", 0);
    stage.sleeper("{one}", "{g}");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    assert!(stage.drifts("{g}").is_empty());
    stage.truth();
}

fn state_lost(stage: &mut Stage<'_>) {
    stage.apply(LIMITS);
    stage.sleeper("{one}", "{g}");
    fs::remove_dir_all(stage.desk.path("state")).unwrap();
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    let (code, out, error) = stage.desk.run("status {s}");
    let says = format!("{out}{error}");
    assert!(
        !says.contains("as asked")
            && (code != 0 || says.contains("nothing was applied") || says.contains("not known")),
        "{code}: {says}"
    );
    let plan = stage.planned();
    assert!(plan.is_empty(), "everything that the file asks for holds: {plan:?}");
}

/// Ends the process that waits for the confirmation, as `kill -9` would.
fn kill_waiting(stage: &Stage<'_>) {
    let state = stage.desk.path("state").display().to_string();
    let waiting = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("revert-unless-confirmed") && line.contains(&state)
    };
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let found: Vec<u32> = pids.filter(waiting).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let pid = rustix::process::Pid::from_raw(i32::try_from(found[0]).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn overdue_undone_alone(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 128\n");
    stage.apply("[groups.\"{g}\"]\npids.max = 64\n");
    stage.layout("[groups.\"{g}\"]\npids.max = 32\n");
    stage.desk.ends("apply {d}/l.toml {s} --confirm 1s", 0);
    kill_waiting(stage);
    stage.desk.scene.until("its deadline", || {
        let (_, out, error) = stage.desk.run("status {s}");
        format!("{out}{error}").contains("not confirmed in time")
    });
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "pids.max"), "64", "the generation before it stays");
    stage.truth();
}

/// The memory that a process uses does not fit into the old limit, which v1 refuses, and for which v2 would kill.
fn restore_refused(stage: &mut Stage<'_>) {
    stage.desk.scene.ok("create {g} -c memory");
    stage.by_hand("{g}", "memory.max", "20971520");
    stage.apply("[groups.\"{g}\"]\nmemory.max = \"200M\"\n");
    let directory = stage.directory("{g}", "memory");
    let swap = directory.join("memory.swap.max");
    if swap.exists() {
        fs::write(swap, "0").unwrap();
    }
    let script = format!(
        "echo $$ > {}; (head -c 95000000 /dev/zero; exec sleep 300) | tail -c 95000000",
        directory.join("cgroup.procs").display()
    );
    stage.desk.scene.start("{one}", &["sh", "-c", &script]);
    let usage = ["memory.usage_in_bytes", "memory.current"].map(|file| directory.join(file));
    let usage = usage.iter().find(|file| file.exists()).unwrap();
    let used = || fs::read_to_string(usage).unwrap().trim().parse::<u64>().unwrap();
    stage.desk.scene.until("95 MB", || used() > 90_000_000);
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}", "memory.max").as_str()), (3, "209715200"), "{out}{error}");
    assert!(used() > 90_000_000, "nobody was killed: {out}{error}");
    let (code, out, error) = stage.desk.run("status {s}");
    assert_eq!(code, 3, "{out}{error}");
    says(&out, &["memory.", " still has 209715200"]);
    stage.desk.scene.ok("kill {g}");
    stage.desk.scene.until("its end", || used() < 20_000_000);
    stage.desk.ends("undo {s}", 0);
    assert_eq!(stage.holds("{g}", "memory.max"), "20971520");
    stage.desk.ends("status {s}", 0);
}

fn written_over(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 60\n");
    stage.by_hand("{g}", "pids.max", "30");
    let (code, out, error) = stage.desk.run("undo {s}");
    assert_eq!((code, stage.holds("{g}", "pids.max").as_str()), (0, "100"), "{out}{error}");
    says(&error, &["pids.max", "30 is gone", "the file was changed to it after"]);
    let (_, history, _) = stage.desk.run("history {s}");
    says(&history, &["30 is gone"]);
    stage.truth();
    stage.layout("[groups.\"{g}\"]\npids.max = 50\n");
    stage.desk.ends("apply {d}/l.toml {s} --confirm 1s", 0);
    stage.by_hand("{g}", "pids.max", "20");
    stage.desk.scene.until("its undo", || stage.holds("{g}", "pids.max") == "100");
    stage.desk.scene.until("its record", || stage.desk.run("history {s}").1.contains("20 is gone"));
    stage.truth();
}

/// What an undo wrote is not somebody else's value.
fn inherited_again(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"0\"\n");
    stage.sleeper("{one}", "{g}");
    let (_, out, error) = stage.desk.run("undo {s}");
    assert_eq!(stage.status_of("{g}").unwrap()["settings"], json!([]), "{out}{error}");
    let (_, out, error) = stage.desk.run("undo {s}");
    assert!(!format!("{out}{error}").contains("was changed to it"), "{out}{error}");
    stage.truth();
}

/// The directory is somebody else's; what was written to it later is the layout's.
fn made_again_and_written(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.desk.scene.ok("delete {g}");
    stage.desk.scene.ok("create {g} -c pids");
    stage.by_hand("{g}", "pids.max", "33");
    let pid = stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 100\n");
    stage.layout("");
    let (code, out, error) = stage.desk.run("apply --yes {d}/l.toml {s}");
    assert_eq!(code, 3, "{out}{error}");
    says(&error, &["it was removed and made again"]);
    assert_eq!(stage.holds("{g}", "pids.max"), "33", "{out}{error}");
    assert!(stage.is_in(pid, "{g}", "pids"));
    assert!(stage.status_of("{g}").is_none());
    stage.truth();
}
