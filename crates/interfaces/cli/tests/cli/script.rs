//! One script of get, set, run, move, freeze and kill, whose answers are the same on cgroup v1, v2 and hybrid: the
//! expected text is one for all.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::sleep_program,
    world::{Need, Scene, World},
};

/// What is set, by names of both versions, and how it reads back, whatever the version.
const SETTINGS: &[(&str, &str)] = &[
    ("cpu.max=50%", "cpu.max=50000 100000"),
    ("cpu.cfs_quota_us=30000", "cpu.max=30000 100000"),
    ("cpu.weight=200", "cpu.weight=200"),
    ("cpuset.mems=0", "cpuset.mems=0"),
    ("cpuset.cpus=0", "cpuset.cpus=0"),
    ("memory.max=64M", "memory.max=64M"),
    ("memory.limit_in_bytes=128M", "memory.max=128M"),
    ("pids.max=50", "pids.max=50"),
    ("pids.max=max", "pids.max=max"),
    ("cpu.max=max", "cpu.max=max 100000"),
];

type Body = fn(&mut Scene);
type Case = (&'static str, &'static [Need], Body);

/// What only some machines have.
const SPECIAL: &[Case] = &[
    ("threads of one process are spread over threaded groups", &[Need::AnyV2, Need::Plain], threads),
    ("a thread moves alone on v1", &[Need::V1("cpu")], v1_thread),
    ("who was given a subtree makes groups in it", &[Need::AnyV2, Need::Plain], delegated),
    ("a named hierarchy holds groups too", &[Need::V1("name=rf")], named),
    ("device access is the same on both versions", &[Need::Devices], devices),
    ("live topology equals numactl --hardware", &[Need::Program("numactl")], numactl),
    ("what ran in a group is counted", &[Need::Groups], counted),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("script: {name}"), lacks, move || case(&mut Scene::new(&world, name)))
    };
    SPECIAL.iter().chain(EVERYWHERE).map(trial).collect()
}

/// What is the same on every version.
const EVERYWHERE: &[Case] = &[
    ("what is set reads back the same on every version", &[Need::Usual], set_and_get),
    ("a program runs inside its group, and its status comes through", &[Need::Usual], run),
    ("processes and whole trees move", &[Need::Usual], moves),
    ("processes move by program, command line and user, after a look", &[Need::Usual], moves_by_name),
    ("a frozen group stands still until it is thawed", &[Need::Usual], freeze),
    ("killed groups are empty", &[Need::Usual], kill),
    ("an owner of the tasks kills them", &[Need::V1("freezer"), Need::Program("setpriv")], kill_own),
    ("a set that fails half way changes nothing", &[Need::Usual], all_or_nothing),
    ("settings are copied from another group, and to groups below", &[Need::Usual], copies),
    ("create is repeatable, list shows what is there, delete takes it away", &[Need::Usual], life),
];

const CONTROLLERS: &str = "cpu,cpuset,memory,pids,freezer";

fn ready(scene: &Scene) {
    scene.ok(&format!("create {{g}} --controllers {CONTROLLERS}"));
    scene.ok("set {g} cpuset.cpus=0 cpuset.mems=0");
}

fn set_and_get(scene: &mut Scene) {
    ready(scene);
    for (set, held) in SETTINGS {
        scene.ok(&format!("set {{g}} {set}"));
        let (name, value) = held.split_once('=').unwrap();
        let answer = scene.ok(&format!("get --values {{g}} {name}"));
        assert_eq!(answer.trim_end(), value, "after {set}");
        let json = scene.ok(&format!("get --json {{g}} {name}"));
        assert!(json.contains(&format!("\"text\": \"{value}\"")), "{json}");
    }
}

fn run(scene: &mut Scene) {
    ready(scene);
    assert_eq!(scene.ringfence("run {g} -- sh -c 'exit 7'", None).status.code(), Some(7));
    let missing = scene.ringfence("run {g} -- /no/such/program", None);
    assert_eq!(missing.status.code(), Some(127));
    // of a script it may be the interpreter
    assert!(String::from_utf8_lossy(&missing.stderr).contains("interpreter"), "{missing:?}");
    assert_eq!(scene.ringfence("run {g} -- /etc/passwd", None).status.code(), Some(126));
    let killed = scene.ringfence("run {g} -- sh -c 'kill -9 $$'", None).status;
    // where the program took our place there is nobody to translate the signal
    assert!(
        killed.code() == Some(137) || std::os::unix::process::ExitStatusExt::signal(&killed) == Some(9),
        "{killed}"
    );
    // who waits for it is not counted in the group, nor killed for want of its memory
    let waiting = scene.ok("run {g} -- sh -c 'cat /proc/$PPID/cgroup'");
    assert!(!waiting.contains(&scene.group), "{waiting}");
    let inside = scene.ok("run {g} -- cat /proc/self/cgroup");
    let groups: Vec<&str> = inside.lines().filter(|line| line.ends_with(&scene.group)).collect();
    for controller in ["cpu", "cpuset", "memory", "pids"] {
        let here = groups.iter().any(|line| {
            let field = line.split(':').nth(1).unwrap();
            field.is_empty() || field.split(',').any(|name| name == controller)
        });
        assert!(here, "{controller}: {inside}");
    }
}

fn moves(scene: &mut Scene) {
    ready(scene);
    let one = scene.start("{one}", &["sleep", "60"]);
    let tree = scene.start("{tree}", &["sh", "-c", "sleep 60 & sh -c 'sleep 60 & wait' & wait"]);
    scene.until("the tree", || descendants(tree).len() == 3);
    scene.ok("move {g} {one}");
    scene.ok("move --tree {g} {tree}");
    let mut expected: Vec<u32> = descendants(tree);
    expected.extend([one, tree]);
    for pid in expected {
        let places = scene.ok(&format!("where --json {pid}"));
        let here = places.matches(&format!("\"group\": \"{}\"", scene.group)).count();
        assert!(here > 0, "{pid}: {places}");
    }
    scene.ok("move / {one}");
    let places = scene.ok("where {one}");
    assert!(!places.contains(&scene.group), "{places}");
}

fn moves_by_name(scene: &mut Scene) {
    ready(scene);
    let directory = tempfile::Builder::new().prefix("rf-test-by-name").tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join(format!("rfn{}", std::process::id()));
    fs::copy(sleep_program(), &program).unwrap();
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let words = |time| [program.to_str().unwrap(), time];
    let roots = [scene.start("{one}", &words("61")), scene.start("{two}", &words("62"))];
    let [others, busy] = [words("63"), words("64")].map(|words| scene.start_as(65534, &words));
    // what they run is seen once the exec is done
    scene.until("four programs", || {
        scene
            .ringfence(&format!("move {{g}} --process {name} -n"), None)
            .stdout
            .iter()
            .filter(|c| **c == b'\n')
            .count()
            == 4
    });
    let inside = |scene: &Scene| -> BTreeSet<u32> {
        let listed = scene.ok("get --values {g} cgroup.procs");
        listed.lines().filter_map(|line| line.trim().parse().ok()).collect()
    };

    // a look changes nothing, and names each with its user
    let look = scene.ok(&format!("move {{g}} --process {name} --dry-run"));
    assert!(
        look.contains(&format!(
            "{} ({}, user root) would be moved: {}",
            roots[0],
            program.display(),
            program.display()
        )),
        "{look}"
    );
    assert!(look.contains(&format!("{others} (")) && inside(scene).is_empty(), "{look}");
    // all that is said has to fit
    scene.ok(&format!("move {{g}} --process {name} --user 65534 --command ' 64$'"));
    assert_eq!(inside(scene), BTreeSet::from([busy]));
    scene.ok(&format!("move {{g}} --process 'rfn*{}' --user nobody", std::process::id()));
    assert_eq!(inside(scene), BTreeSet::from([busy, others]));
    // this command's own line contains what is looked for, and so may those above it
    let moved = scene.ok(&format!("move {{g}} --command {}", program.display()));
    assert_eq!(inside(scene), BTreeSet::from([busy, others, roots[0], roots[1]]), "{moved}");
    assert_eq!(moved.matches(" moved: ").count(), 2, "{moved}");
    assert_eq!(moved.matches(" is already in the group: ").count(), 2, "{moved}");
    let json = scene.ok(&format!("move --json {{g}} --process {name}"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["already_in_group"].as_array().unwrap().len(), 4, "{json}");
    assert_eq!(
        (&json["matched"], &json["tasks"]),
        (&serde_json::json!([]), &serde_json::json!([])),
        "{json}"
    );
    scene.ok(&format!("move / --process {name}"));
    assert_eq!(inside(scene), BTreeSet::new());

    for (words, code, said) in [
        (format!("move {{g}} --process {name}x"), 1, format!("no process fits --process {name}x")),
        (format!("move {{g}} --process {name} --user nosuchuser"), 1, "no user 'nosuchuser'".to_owned()),
        ("move {g} --command (".to_owned(), 2, "--command".to_owned()),
        ("move {g} --process *".to_owned(), 2, "this would match every process".to_owned()),
        ("move {g} --command ''".to_owned(), 2, "this would match every process".to_owned()),
        ("move {g} --command x|".to_owned(), 2, "this would match every process".to_owned()),
        (format!("move {{g}} {} --process {name}", roots[0]), 2, "cannot be used with".to_owned()),
        (format!("move {{g}} --threads --process {name}"), 2, "cannot be used with".to_owned()),
        ("move {g} --dry-run 1".to_owned(), 2, "required arguments".to_owned()),
        (format!("move {{g}}x --process {name}"), 1, "does not exist".to_owned()),
    ] {
        let output = scene.ringfence(&words, None);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && error.contains(&said), "{words}: {output:?}");
    }
    assert_eq!(inside(scene), BTreeSet::new());
    while_they_come_and_go(scene, &name, &program);
}

/// One stays while others of its program begin and end: it is moved, and what ended meanwhile is no failure.
fn while_they_come_and_go(scene: &mut Scene, name: &str, program: &Path) {
    let one = scene.start("{stays}", &[program.to_str().unwrap(), "65"]);
    let churn = format!("while :; do {} 0.002; done", program.display());
    scene.start("{churn}", &["sh", "-c", &churn]);
    for _ in 0..20 {
        scene.ok(&format!("move {{g}} --process {name}"));
        let listed = scene.ok("get --values {g} cgroup.procs");
        assert!(listed.lines().any(|line| line.trim() == one.to_string()), "{listed}");
        scene.ok(&format!("move / {one}"));
    }
    // those below one that is in the group already
    let parent = scene.start("{parent}", &["sh", "-c", &format!("{} 66 & wait; :", program.display())]);
    scene.until("its child", || descendants(parent).len() == 1);
    let child = descendants(parent)[0];
    scene.ok(&format!("move {{g}} {parent}"));
    scene.ok(&format!("move / {child}"));
    scene.ok("move {g} --tree --command ' 66 & wait; :$'");
    assert!(scene.ok(&format!("where {child}")).contains(&scene.group));
}

fn descendants(root: u32) -> Vec<u32> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let mut found = vec![root];
    let mut at = 0;
    let all: Vec<u32> =
        fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    while at < found.len() {
        found.extend(all.iter().filter(|&&pid| parent(pid) == Some(found[at])).copied().collect::<Vec<_>>());
        at += 1;
    }
    found.split_off(1)
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn freeze(scene: &mut Scene) {
    ready(scene);
    let pid = scene.start("{busy}", &["sh", "-c", "while :; do :; done"]);
    scene.ok("move {g} {busy}");
    scene.until("work", || cpu_ticks(pid) > 2);
    assert!(scene.ok("freeze --json {g}").contains("\"frozen\""));
    let before = cpu_ticks(pid);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(cpu_ticks(pid), before, "a frozen task runs");
    assert!(scene.ok("thaw --json {g}").contains("\"thawed\""));
    scene.until("work after the thaw", || cpu_ticks(pid) > before);
}

fn kill(scene: &mut Scene) {
    ready(scene);
    scene.start("{one}", &["sh", "-c", "trap '' TERM INT; while :; do sleep 0.01; done"]);
    scene.start("{two}", &["sleep", "60"]);
    scene.ok("move --tree {g} {one} {two}");
    let answer = scene.ok("kill --json {g}");
    let killed: u32 =
        answer.split("\"killed\": ").nth(1).unwrap().trim_end_matches(['\n', '}', ' ']).parse().unwrap();
    assert!(killed >= 2, "{answer}");
    scene.ok("delete {g}");
}

/// He may not freeze the group for it.
fn kill_own(scene: &mut Scene) {
    scene.ok("create {g} --controllers pids,freezer --tasks 65534");
    let pid = scene.start("{own}", &["setpriv", "--reuid=65534", "sleep", "60"]);
    scene.ok("move {g} {own}");
    let output = scene.ringfence("kill {g}", Some(65534));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    scene.ok("delete {g}");
}

fn all_or_nothing(scene: &mut Scene) {
    ready(scene);
    scene.ok("set {g} memory.max=64M pids.max=50");
    // the last one is beyond what the kernel takes
    let output = scene.ringfence("set {g} memory.max=32M pids.max=20 cpuset.cpus=4000", None);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was changed"));
    assert_eq!(scene.ok("get --values {g} memory.max pids.max cpuset.cpus"), "64M\n50\n0\n");
    // one that is nonsense is found before anything is written
    let output = scene.ringfence("set {g} memory.max=32M pids.max=many", None);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(scene.ok("get --values {g} memory.max pids.max"), "64M\n50\n");
}

fn copies(scene: &mut Scene) {
    // on v2 a group with tasks below can't be its own leaf, so the two are siblings
    scene.ok(&format!("create {{g}}/a --controllers {CONTROLLERS}"));
    scene.ok(&format!("create {{g}}/b --controllers {CONTROLLERS}"));
    scene.ok("set {g} cpuset.cpus=0 cpuset.mems=0");
    scene.ok("set {g}/a cpuset.cpus=0 cpuset.mems=0 pids.max=17 memory.max=32M cpu.max=20%");
    scene.ok("set {g}/b --from {g}/a pids.max=18");
    let held = scene.ok("get --values {g}/b cpuset.cpus cpuset.mems pids.max memory.max cpu.max");
    assert_eq!(held, "0\n0\n18\n32M\n20000 100000\n");
    scene.ok("set --recursive {g} pids.max=99");
    assert_eq!(scene.ok("get --values {g}/a pids.max"), "99\n");
    assert_eq!(scene.ok("get --values {g}/b pids.max"), "99\n");
}

fn life(scene: &mut Scene) {
    scene.ok(&format!("create {{g}}/x/y --controllers {CONTROLLERS}"));
    scene.ok(&format!("create {{g}}/x/y --controllers {CONTROLLERS}"));
    assert_eq!(scene.ok("list {g}"), scene.fill("{g}/x\n{g}/x/y\n"));
    let listed = scene.ok("list");
    assert!(listed.lines().any(|line| line == scene.group), "{listed}");
    scene.ok("delete {g}/x/y");
    scene.ok("delete -r {g}");
    assert_eq!(scene.ringfence("list {g}", None).status.code(), Some(1));
}

/// A process with a second thread: the test itself has one.
fn other_thread() -> u32 {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        send.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
    });
    receive.recv().unwrap()
}

fn threads(scene: &mut Scene) {
    let own = std::process::id();
    let tid = other_thread();
    scene.ok("create {g}/a -c core");
    scene.ok(&format!("move {{g}} {own}"));
    scene.ok("set {g}/a cgroup.type=threaded");
    scene.ok(&format!("move --threads {{g}}/a {tid}"));
    let place = fs::read_to_string(format!("/proc/{own}/task/{tid}/cgroup")).unwrap();
    assert!(place.contains(&format!("{}/a", scene.group)), "{place}");
    scene.ok(&format!("move / {own}"));
}

fn v1_thread(scene: &mut Scene) {
    let tid = other_thread();
    scene.ok("create {g} -c cpu");
    scene.ok(&format!("move --threads {{g}} {tid}"));
    let inside = |pid: u32| scene.ok(&format!("where {pid}")).contains(&scene.group);
    assert!(inside(tid) && !inside(std::process::id()));
    scene.ok(&format!("move --threads / {tid}"));
}

fn delegated(scene: &mut Scene) {
    scene.ok("create {g} -c core --tasks 1000:1000 --admin 1000:1000");
    let script = "sleep 1; \"$0\" create sub -c core && \"$0\" list && \"$0\" where";
    let program = scene.program();
    let child = scene.start_as(1000, &["sh", "-c", script, &program]);
    scene.ok(&format!("move {{g}} {child}"));
    let output = scene.output();
    assert!(output.lines().any(|line| line == "sub"), "{output}");
    // the user writes a name, and the real place is told
    assert!(scene.ok("list {g}").contains("{g}/sub".replace("{g}", &scene.group).as_str()));
}

fn named(scene: &mut Scene) {
    scene.start("{pid}", &["sleep", "60"]);
    scene.ok("create {g} --controllers name=rf");
    scene.ok("move {g} {pid}");
    assert!(scene.ok("where {pid}").contains("name=rf"));
    assert!(scene.ok("where {pid}").contains(&scene.group));
    let output = scene.ringfence("create {g} --controllers name=nosuch", None);
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: there is"), "{output:?}");
}

fn devices(scene: &mut Scene) {
    scene.ok("create {g} --controllers devices");
    let may = |scene: &Scene, what: &str| {
        scene.ringfence(&format!("run {{g}} -- sh -c '{what}'"), None).status.success()
    };
    let (zero, full) = (": < /dev/zero", ": < /dev/full");
    assert!(may(scene, zero) && may(scene, full));
    scene.ok("set {g} 'devices.deny=c 1:7 rwm'");
    assert!(may(scene, zero) && !may(scene, full));
    scene.ok("set {g} devices.deny=a");
    assert!(!may(scene, zero) && !may(scene, full));
    scene.ok("set {g} 'devices.allow=c 1:5 r'");
    assert!(may(scene, zero) && !may(scene, full) && !may(scene, ": > /dev/zero"));
    assert_eq!(scene.ok("get --values {g} devices.list").trim(), "c 1:5 r");
    scene.ok("set {g} devices.allow=a");
    assert!(may(scene, full));
}

fn numactl(scene: &mut Scene) {
    let theirs = std::process::Command::new("numactl").arg("--hardware").output().unwrap();
    let ours = scene.ok("topology --format numactl");
    // free memory changes between the two
    let steady = |text: &str| {
        text.lines().filter(|line| !line.contains(" free: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(steady(&ours), steady(&String::from_utf8_lossy(&theirs.stdout)));
}

fn counted(scene: &mut Scene) {
    scene.ok("create {g} --controllers cpu,cpuacct,pids");
    scene.ok("run {g} -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'");
    let text = scene.ok("stat {g}");
    assert!(text.contains("pids.current"), "{text}");
    let json = scene.ok("get --json {g} cpuacct.usage");
    let used = json
        .split("\"value\": ")
        .nth(1)
        .and_then(|rest| rest.split([',', '\n']).next()?.trim().trim_matches('"').parse::<u64>().ok());
    assert!(used.is_some_and(|used| used > 1000), "{json}");
}
