//! A layout is applied to groups with and without processes: is it in force for them?

use std::fs;

use serde_json::{Value, json};

use crate::{
    desk::sleep_program,
    reported::{Row, Stage, row, truth::ids},
    world::Need,
};

pub const ROWS: &[Row] = &[
    row("a process that enters after apply has the limits", entered_after),
    row("a process that was in the group before a second apply has its limits", entered_before),
    row("a controller that is added takes the tasks along", controller_added),
    row("several controllers that are added take the tasks along", controllers_added),
    row("a controller that is added below takes the tasks of both groups along", controller_added_below),
    row("a controller that is added takes along what was forked meanwhile", controller_added_to_family),
    row("a task that is in somebody else's group for an added controller is named", controller_of_others)
        .needs(&[Need::V1("memory")]),
    row("a process that ended is in no group", ended),
    row("a group without a process has none", empty),
    row("plan has nothing to do once everything holds", nothing_to_do),
    row("plan changes nothing", plan_only),
    row("nested groups each have their own tasks", nested),
    row("the CPUs of a group are those of its tasks", cpus_of_tasks).needs(&[Need::Cpus(2)]),
    row("other CPUs of a second layout are those of its tasks", other_cpus).needs(&[Need::Cpus(2)]),
    row("two layouts after each other leave what the second asks for", two_layouts),
    row("a layout, another one, and the first again are as the first alone", there_and_back),
    row("a limit below what a group uses kills nobody", below_use),
    row("memory that may be swapped stays as much when memory.max is raised", swap_beside_memory)
        .needs(&[Need::File("memory.memsw.limit_in_bytes")]),
    row("owners are those of the files", owners),
    row("a rule that fits a running process is carried out or reported", rule_fits),
    row("a rule is in force once its process was moved", rule_carried_out),
    row(
        "a rule that fits a process in a group that the layout does not know is reported",
        rule_fits_elsewhere,
    ),
    row("the CPU time of a group is what the kernel counts", cpu_time),
];

const PIDS: &str = "[groups.\"{g}\"]\npids.max = 100\n";
const MORE: &str = "[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\n";
const ALL: &str = "[groups.\"{g}\"]\npids.max = 100\nmemory.max = \"64M\"\ncpu.weight = 200\ncpus = \"0\"\nmems = \"local\"\n";

fn entered_after(stage: &mut Stage<'_>) {
    stage.apply(ALL);
    let pid = stage.sleeper("{one}", "{g}");
    for controller in ["pids", "memory", "cpu", "cpuset"] {
        assert!(stage.is_in(pid, "{g}", controller), "{controller}");
    }
    assert_eq!((stage.cpus(pid).as_str(), stage.holds("{g}", "pids.max").as_str()), ("0", "100"));
    stage.truth();
}

fn entered_before(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\npids.max = 50\n");
    assert_eq!(stage.holds("{g}", "pids.max"), "50");
    stage.truth();
}

fn controller_added(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    let pid = stage.sleeper("{one}", "{g}");
    stage.truth();
    stage.layout(MORE);
    assert!(!stage.planned().is_empty());
    stage.desk.ends("apply {d}/l.toml {s}", 0);
    let all = stage.is_in(pid, "{g}", "memory") && stage.is_in(pid, "{g}", "pids");
    assert!(all || !stage.drifts("{g}").is_empty(), "{pid} is not under memory, and status says nothing");
    assert_eq!(all, stage.planned().is_empty(), "plan after apply");
    stage.truth();
}

fn controllers_added(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    let pids = [stage.sleeper("{one}", "{g}"), stage.sleeper("{two}", "{g}")];
    stage.apply(ALL);
    for pid in pids {
        for controller in ["pids", "memory", "cpu", "cpuset"] {
            assert!(stage.is_in(pid, "{g}", controller), "{pid} under {controller}");
        }
        assert_eq!(stage.cpus(pid), "0");
    }
    stage.truth();
}

fn controller_added_below(stage: &mut Stage<'_>) {
    let both = |settings: &str| format!("[groups.\"{{g}}/a\"]\n{settings}[groups.\"{{g}}/b\"]\n{settings}");
    stage.apply(&both("pids.max = 100\n"));
    let (one, two) = (stage.sleeper("{one}", "{g}/a"), stage.sleeper("{two}", "{g}/b"));
    stage.apply(&both("pids.max = 100\nmemory.max = \"64M\"\n"));
    assert!(stage.is_in(one, "{g}/a", "memory") && stage.is_in(two, "{g}/b", "memory"));
    stage.truth();
}

fn controller_added_to_family(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    let shell = stage.desk.scene.start("{one}", &["sh", "-c", "sleep 300 & sleep 300 & wait"]);
    let children = || {
        let text = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()).collect::<Vec<u32>>()
    };
    stage.desk.scene.until("its children", || children().len() == 2);
    children().into_iter().chain([shell]).for_each(|pid| stage.free(pid));
    stage.desk.scene.ok("move {g} --tree {one}");
    stage.apply(MORE);
    stage.pids = children().into_iter().chain([shell]).collect();
    for pid in stage.pids.clone() {
        assert!(stage.is_in(pid, "{g}", "memory"), "{pid}");
    }
    stage.truth();
    stage.pids.clear();
}

fn controller_of_others(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    let pid = stage.sleeper("{one}", "{g}");
    stage.desk.scene.ok("create {g}-rt -c memory");
    stage.move_by_hand(pid, "{g}-rt", "memory");
    stage.layout(MORE);
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 3, "{out}{error}");
    assert!(!stage.is_in(pid, "{g}", "memory"));
    assert!(error.contains(&pid.to_string()), "{pid} stays outside, and nothing names it: {out}{error}");
    assert!(!stage.drifts("{g}").is_empty());
    let answer = stage.desk.json("apply --json {d}/l.toml {s}", 3);
    let outside = answer["outside"][0]["message"].as_str().unwrap();
    assert!(outside.contains(&pid.to_string()), "{answer:#}");
    assert_eq!((&answer["outside"][0]["kind"], &answer["left"]), (&json!("outside"), &json!([])));
    stage.truth();
    stage.move_by_hand(pid, "", "memory");
}

fn ended(stage: &mut Stage<'_>) {
    stage.apply(PIDS);
    stage.sleeper("{one}", "{g}");
    stage.desk.scene.ok("kill {g}");
    stage.desk.scene.until("its end", || {
        let tasks = stage.directory("{g}", "pids").join("cgroup.procs");
        fs::read_to_string(tasks).unwrap().is_empty()
    });
    stage.pids.clear();
    assert_eq!(stage.status_of("{g}").unwrap()["tasks"].as_array().unwrap().len(), 0);
    stage.truth();
}

fn empty(stage: &mut Stage<'_>) {
    stage.apply(ALL);
    stage.sleeper("{one}", "");
    assert_eq!(stage.status_of("{g}").unwrap()["tasks"].as_array().unwrap().len(), 0);
    stage.truth();
}

fn nothing_to_do(stage: &mut Stage<'_>) {
    stage.apply(ALL);
    stage.sleeper("{one}", "{g}");
    assert_eq!(stage.planned(), [Value::Null; 0]);
    assert_eq!(stage.holds("{g}", "pids.max"), "100");
    assert_eq!(stage.holds("{g}", "cpuset.cpus"), "0");
    stage.truth();
}

fn plan_only(stage: &mut Stage<'_>) {
    stage.layout(ALL);
    assert!(!stage.planned().is_empty());
    assert!(!stage.directory("{g}", "pids").exists());
    assert_eq!(stage.status().1["groups"].as_array().unwrap().len(), 0);
    stage.truth();
}

fn nested(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n[groups.\"{g}/b\"]\npids.max = 50\n");
    let (one, two) = (stage.sleeper("{one}", "{g}/a"), stage.sleeper("{two}", "{g}/b"));
    for (group, pid) in [("{g}/a", one), ("{g}/b", two)] {
        let tasks = stage.status_of(group).unwrap()["tasks"].clone();
        assert_eq!(tasks.as_array().unwrap().len(), 1);
        assert_eq!(tasks[0]["pid"], pid);
    }
    stage.truth();
}

fn cpus_of_tasks(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"1\"\nmems = \"local\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    assert_eq!(stage.cpus(pid), "1");
    assert_eq!(stage.status_of("{g}").unwrap()["cpus"], "1");
    stage.truth();
}

fn other_cpus(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\ncpus = \"1\"\nmems = \"local\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.apply("[groups.\"{g}\"]\ncpus = \"0\"\nmems = \"local\"\n");
    assert_eq!(stage.cpus(pid), "0");
    assert_eq!(stage.status_of("{g}").unwrap()["cpus"], "0");
    stage.truth();
}

fn two_layouts(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}/a\"]\npids.max = 100\n");
    stage.apply("[groups.\"{g}/b\"]\npids.max = 50\n");
    assert!(stage.directory("{g}/b", "pids").is_dir());
    let stays = stage.directory("{g}/a", "pids").exists();
    assert!(!stays, "the second layout says nothing of {{g}}/a, which has no task");
    assert!(stage.status_of("{g}/a").is_none());
    assert!(stage.planned().is_empty());
    stage.truth();
}

fn there_and_back(stage: &mut Stage<'_>) {
    let first = "[groups.\"{g}/a\"]\npids.max = 100\nmemory.max = \"64M\"\n";
    stage.apply(first);
    stage.apply("[groups.\"{g}/a\"]\npids.max = 50\ncpu.weight = 200\n[groups.\"{g}/b\"]\npids.max = 7\n");
    stage.apply(first);
    assert_eq!(stage.holds("{g}/a", "pids.max"), "100");
    assert_eq!(stage.holds("{g}/a", "memory.max"), (64 << 20).to_string());
    assert!(!stage.directory("{g}/b", "pids").exists());
    let weight = stage.file("{g}/a", "cpu.weight");
    assert!(!weight.exists() || stage.is_unlimited("{g}/a", "cpu.weight"), "{}", weight.display());
    stage.truth();
}

fn below_use(stage: &mut Stage<'_>) {
    stage.apply("[groups.\"{g}\"]\nmemory.max = \"64M\"\n");
    let pid = stage.sleeper("{one}", "{g}");
    stage.layout("[groups.\"{g}\"]\nmemory.max = \"4K\"\n");
    for line in ["apply {d}/l.toml {s}", "set {g} memory.max=4K {s}"] {
        let (code, out, error) = stage.desk.run(line);
        let now = stage.holds("{g}", "memory.max");
        // with swap there may be room for it
        assert_eq!(now == "4096", code == 0, "{line}: {now}; {out}{error}");
        let alive = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        assert!(!alive.contains(") Z "), "{line} killed it: {out}{error}");
        stage.truth();
    }
}

fn swap_beside_memory(stage: &mut Stage<'_>) {
    let layout =
        |memory: &str| format!("[groups.\"{{g}}\"]\nmemory.max = \"{memory}\"\nmemory.swap.max = \"10M\"\n");
    stage.apply(&layout("60M"));
    for memory in ["65M", "80M", "20M"] {
        stage.apply(&layout(memory));
        let (_, out, _) = stage.desk.run("get {g} memory.swap.max");
        assert!(out.contains("10M"), "{memory}: {out}");
        stage.truth();
    }
}

fn owners(stage: &mut Stage<'_>) {
    use std::os::unix::fs::MetadataExt;
    stage.apply("[groups.\"{g}\"]\npids.max = 100\ntasks = { user = 65534 }\n");
    let file = stage.directory("{g}", "pids").join("cgroup.procs");
    assert_eq!(fs::metadata(&file).unwrap().uid(), 65534);
    assert!(stage.drifts("{g}").is_empty());
    std::os::unix::fs::chown(&file, Some(1), None).unwrap();
    assert!(stage.drifts("{g}").iter().any(|drift| drift["file"] == file.to_str().unwrap()));
    assert!(!stage.planned().is_empty());
    stage.truth();
}

/// A process with a name that only this trial's rule fits.
pub fn named_process(stage: &mut Stage<'_>) -> u32 {
    let program = stage.desk.path("rf-test-named");
    fs::copy(sleep_program(), &program).unwrap();
    let path = program.to_str().unwrap().to_owned();
    let pid = stage.desk.scene.start("{one}", &[&path, "300"]);
    stage.pids.push(pid);
    pid
}

pub fn rule_layout(stage: &Stage<'_>) {
    let program = stage.desk.path("rf-test-named");
    stage.layout(&format!(
        "[groups.\"{{g}}\"]\npids.max = 100\nmatch = [{{ process = \"{}\" }}]\n",
        program.display()
    ));
}

fn rule_fits(stage: &mut Stage<'_>) {
    let pid = named_process(stage);
    rule_layout(stage);
    let (code, out, error) = stage.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 0, "{out}{error}");
    let (status, text, _) = stage.desk.run("status {s} {d}/l.toml");
    let is_reported = status == 3 || error.contains(&pid.to_string()) || error.contains("classify");
    assert!(stage.is_in(pid, "{g}", "pids") || is_reported, "{out}{error}{text}");
    stage.truth();
}

fn rule_fits_elsewhere(stage: &mut Stage<'_>) {
    let pid = named_process(stage);
    stage.desk.scene.ok("create {g}-other -c pids");
    stage.desk.scene.ok(&format!("move {{g}}-other {pid}"));
    rule_layout(stage);
    for command in ["plan {d}/l.toml {s} --json", "status {s} --layout {d}/l.toml --json"] {
        let (_, text, error) = stage.desk.run(command);
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"));
        let misplaced = answer["misplaced"].as_array().unwrap();
        assert!(misplaced.iter().any(|one| one["pid"] == pid), "{command}: {answer}");
    }
    stage.truth();
    stage.desk.scene.ok("kill {g}-other");
    stage.desk.scene.ok("delete {g}-other");
}

fn cpu_time(stage: &mut Stage<'_>) {
    let of_v1 = stage.is_v1("cpuacct");
    let settings = if of_v1 { "controllers = [\"cpuacct\"]" } else { "cpu.weight = 200" };
    stage.apply(&format!("[groups.\"{{g}}\"]\n{settings}\n"));
    stage.desk.ends("run {g} -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'", 0);
    let micros = if of_v1 {
        let nanos = fs::read_to_string(stage.directory("{g}", "cpuacct").join("cpuacct.usage")).unwrap();
        nanos.trim().parse::<u64>().unwrap() / 1000
    } else {
        let stat = fs::read_to_string(stage.directory("{g}", "cpu").join("cpu.stat")).unwrap();
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        usage.parse().unwrap()
    };
    assert!(micros > 10_000, "{micros}");
    assert_eq!(stage.status_of("{g}").unwrap()["cpu_usec"], micros);
    stage.truth();
}

fn rule_carried_out(stage: &mut Stage<'_>) {
    let pid = named_process(stage);
    rule_layout(stage);
    stage.desk.run("apply {d}/l.toml {s}");
    stage.desk.ends("classify --rules {d}/l.toml {one}", 0);
    assert!(stage.is_in(pid, "{g}", "pids"));
    assert!(stage.drifts("{g}").is_empty(), "{:?}", stage.drifts("{g}"));
    assert!(!ids(&stage.cpus(pid)).is_empty());
    stage.truth();
}
