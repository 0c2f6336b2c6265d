//! Groups in a service for its processes by role: what the drop-in file has of them is so in the kernel, over all that systemd and
//! a user do, and an undo leaves the service as it was.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use libtest_mimic::Trial;

use crate::{
    desk::says,
    units::{Case, NEEDS, Unit, of_cases, systemctl},
    units_patterns::Template,
    world::World,
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] = &[
        ("a service that runs is divided by role without a restart, and an undo leaves nothing", divided),
        (
            "a service divided by role that is restarted, stopped or reloaded is as its drop-in file says",
            restarted,
        ),
        ("a role's group that a layout changes, adds or no longer has follows it", changed),
        ("kill -9 of an apply that divides a service by role leaves nothing once it is undone", killed),
        (
            "each service that fits a pattern is divided by role, and a later one has the limits of all from its start",
            pattern,
        ),
        ("figures of a service's groups are shown without naming them, and where names each group", shown),
        ("what the service's user made in a role's group holds up no layout", made_by_user),
        ("a role's group is known after a reboot, and what was killed of a stopped service too", later),
        ("an apply reports a value that somebody's drop-in file sets after ours", overridden),
        ("what can't be a role's group in a service is refused with the reason", refused),
    ];
    of_cases(world, NEEDS, cases)
}

/// A server with processes that say what they do in their titles, as PostgreSQL's do: perl under the name of its program.
const SERVER: &str = r#"$SIG{CHLD} = 'IGNORE';
for my $title ('checkpointer', 'autovacuum launcher', 'alice shop [local] idle') {
    next if fork;
    $0 = "postgres: 15/main: $title ";
    sleep 1000;
}
sleep 1000;
"#;

/// The titles' ends, the first process without one, and the groups that [`LAYOUT`] has for them.
const ROLES: [(&str, &str); 4] =
    [("server", "main"), ("checkpointer", "writers"), ("launcher", "maintenance"), ("idle", "main")];

const LAYOUT: &str = "[groups.{g}]\nunit = \"{u}\"\npids.max = 500\n\
    [groups.{g}.groups.main]\ncpu.weight = 300\n\
    [groups.{g}.groups.maintenance]\npids.max = 50\ncpu.weight = 20\nmatch = [{ role = \"postgresql.autovacuum\" }]\n\
    [groups.{g}.groups.writers]\nmemory.high = \"200M\"\nmatch = [{ role = [\"postgresql.checkpointer\", \"postgresql.walwriter\"] }]\n";

struct Server {
    unit: Unit,
}

#[derive(Debug, PartialEq)]
struct Picture {
    inner: Vec<String>,
    handed: Option<String>,
    titles: BTreeMap<String, (u32, String)>,
    has_drop_in: bool,
}

impl Picture {
    /// Without the processes, which a restart replaces.
    fn of_groups(&self) -> (&[String], Option<&str>, bool) {
        (&self.inner, self.handed.as_deref(), self.has_drop_in)
    }
}

impl Server {
    fn new(world: &Arc<World>, test: &str) -> Server {
        let unit = Unit::new(world, test, "");
        let (program, script) = (unit.desk.path("postgres"), unit.desk.path("server"));
        fs::copy("/usr/bin/perl", &program).unwrap();
        unit.desk.write("server", SERVER);
        let lines = format!("[Service]\nExecStart={} {}\n", program.display(), script.display());
        fs::write(unit.file(), lines).unwrap();
        systemctl(&["daemon-reload"]);
        let server = Server { unit };
        server.control("restart");
        server
    }

    fn control(&self, verb: &str) {
        self.unit.control(verb);
        if verb != "stop" {
            self.unit.desk.scene.until("the server's processes", || self.titles().len() == ROLES.len());
        }
    }

    fn group(&self) -> PathBuf {
        Path::new("/sys/fs/cgroup/system.slice").join(&self.unit.name)
    }

    /// The processes by the last word of their titles, each with the group in the service, "" for its own.
    fn titles(&self) -> BTreeMap<String, (u32, String)> {
        let of_group = |directory: PathBuf| {
            let name = directory.strip_prefix(self.group()).unwrap().to_str().unwrap().to_owned();
            let pids = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            let pids: Vec<u32> = pids.lines().map(|line| line.parse().unwrap()).collect();
            pids.into_iter().filter_map(move |pid| {
                let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?.replace('\0', " ");
                let last = words.split_whitespace().next_back()?.rsplit('/').next()?.to_owned();
                Some((last, (pid, name.clone())))
            })
        };
        let inner = self.inner().into_iter().map(|name| self.group().join(name));
        std::iter::once(self.group()).chain(inner).flat_map(of_group).collect()
    }

    /// The groups in the service.
    fn inner(&self) -> Vec<String> {
        let entries = fs::read_dir(self.group()).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<String> =
            directories.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn is_divided(&self, when: &str) {
        assert_eq!(self.inner(), ["main", "maintenance", "writers"], "{when}");
        for (file, expected) in [
            ("pids.max", "500"),
            ("main/cpu.weight", "300"),
            ("maintenance/pids.max", "50"),
            ("maintenance/cpu.weight", "20"),
            ("writers/memory.high", "209715200"),
            ("cgroup.procs", ""),
        ] {
            assert_eq!(self.unit.holds(file).as_deref(), Some(expected), "{file} {when}");
        }
    }

    /// All processes are where their roles belong, and `/proc` says so.
    fn is_placed(&self, when: &str) {
        let titles = self.titles();
        for (title, group) in ROLES {
            let Some((pid, is)) = titles.get(title) else { panic!("no {title} {when}: {titles:?}") };
            assert_eq!(is, group, "{title} {when}");
            let of_kernel = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
            assert!(of_kernel.trim_end().ends_with(&format!("{}/{group}", self.unit.name)), "{of_kernel}");
        }
    }

    /// A command that finds the history by itself: does it succeed, and what does it print?
    fn named(&self, line: &str) -> (bool, String) {
        let desk = &self.unit.desk;
        let line = desk.scene.fill(line);
        let mut command = Command::new(desk.scene.program());
        command.env("RINGFENCE_STATE", desk.path("state")).args(line.split_whitespace());
        let done = command.output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(text).unwrap())
    }

    fn place(&self) {
        self.unit.desk.ends("classify --rules {d}/l.toml --all", 0);
    }

    /// What an undo brings back.
    fn picture(&self) -> Picture {
        Picture {
            inner: self.inner(),
            handed: self.unit.holds("cgroup.subtree_control"),
            titles: self.titles(),
            has_drop_in: self.unit.drop_in().exists(),
        }
    }
}

fn shown(world: &Arc<World>) {
    let server = Server::new(world, "roles-shown");
    let desk = &server.unit.desk;
    desk.write("l.toml", LAYOUT);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.place();
    let from_root = |group: &str| format!("/system.slice/{}{group}", server.unit.name);
    let groups = ["", "/main", "/maintenance", "/writers"].map(from_root);
    let (success, text) = server.named("watch --once --json --fields pids.current,memory.current");
    let sample: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success, "{text}");
    for (group, count) in groups.iter().zip([4.0, 2.0, 1.0, 1.0]) {
        assert_eq!(sample["groups"][group]["pids.current"].as_f64(), Some(count), "{group}: {text}");
    }
    let (_, text) = server.named("metrics");
    for group in &groups {
        let tasks = format!("ringfence_group_pids_current{{group=\"{group}\"}} ");
        assert!(text.contains(&tasks), "{tasks}: {text}");
    }
    let (success, text) = server.named("record --count 2 --interval 100ms --directory {d}/log");
    assert!(success, "{text}");
    let (_, text) = server.named("dump --json --directory {d}/log");
    says(&text, &[&groups[2]]);
    for (pid, group) in server.titles().into_values() {
        let (_, text) = server.named(&format!("where {pid}"));
        let of = format!("in group '{}/{group}' of the layout", desk.scene.group);
        says(&text, &[&of]);
    }
    // where its memory is not counted, there is no figure
    desk.write("l.toml", &LAYOUT.replace("memory.high = \"200M\"\n", ""));
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(server.unit.holds("main/memory.current"), None);
    let (_, text) = server.named("why {g}/main --for 100ms");
    assert!(text.contains("cpu.usage") && !text.contains("memory.current"), "{text}");
}

fn divided(world: &Arc<World>) {
    let server = Server::new(world, "roles");
    let desk = &server.unit.desk;
    let before = server.picture();
    desk.write("l.toml", LAYOUT);
    let planned = desk.ends("plan {d}/l.toml {s}", 0);
    says(&planned, &["/maintenance", "cpu.weight  20", "/writers", "memory.high", "unit file"]);
    assert_eq!(server.picture(), before, "a plan changes nothing");
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after the apply");
    let titles = server.titles();
    assert!(titles.values().all(|(_, group)| group == "main"), "{titles:?}");
    let same = |one: &BTreeMap<String, (u32, String)>| one.values().map(|(pid, _)| *pid).collect::<Vec<_>>();
    server.place();
    server.is_placed("by their rules");
    assert_eq!(same(&server.titles()), same(&titles), "nothing was restarted");
    says(&desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    let shown = desk.ends("status {s}", 0);
    says(&shown, &[&desk.scene.fill("{g}/maintenance"), "4 groups with 4 processes", "all as applied"]);
    let status = desk.json("status --json {s}", 0);
    let count = |name: &str| {
        let groups = status["groups"].as_array().unwrap();
        let group = groups.iter().find(|one| one["group"] == desk.scene.fill(name).as_str()).unwrap();
        group["tasks"].as_array().unwrap().len()
    };
    assert_eq!((count("{g}/main"), count("{g}/maintenance"), count("{g}/writers")), (2, 1, 1));
    // names of the layout lead there
    let (success, text) = server.named("get {g}/maintenance pids.max");
    assert!(success && text.contains("50"), "{text}");
    let checkpointer = titles["checkpointer"].0;
    let (success, text) = server.named(&format!("move {{g}}/main {checkpointer}"));
    assert!(success && server.titles()["checkpointer"].1 == "main", "{text}");
    // nobody else's processes
    let (success, text) = server.named(&format!("move {{g}}/main {}", std::process::id()));
    assert!(!success && server.titles().len() == ROLES.len(), "{text}");
    desk.ends("undo {s}", 0);
    assert_eq!(server.picture(), before);
    says(&desk.ends("status {s}", 0), &["nothing that was applied is in effect"]);
}

fn restarted(world: &Arc<World>) {
    let server = Server::new(world, "roles-restart");
    let desk = &server.unit.desk;
    let before = server.picture();
    desk.write("l.toml", LAYOUT);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.place();
    for verb in ["daemon-reload", "daemon-reexec"] {
        systemctl(&[verb]);
        server.is_divided(verb);
        server.is_placed(verb);
        desk.ends("status {s}", 0);
    }
    server.control("restart");
    // without the daemon nobody divides it again, and status says so
    desk.ends("status {s}", 3);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a restart");
    server.place();
    server.is_placed("after a restart");
    desk.ends("status {s}", 0);
    server.control("stop");
    says(&desk.ends("status {s}", 0), &["does not run"]);
    says(&desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    server.control("start");
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a start");
    // a value that somebody changed is drift, and goes back
    fs::write(server.group().join("maintenance/pids.max"), "7").unwrap();
    desk.ends("status {s}", 3);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a change by hand");
    // and a group that somebody removed is made again
    fs::remove_dir(server.group().join("writers")).unwrap();
    desk.ends("status {s}", 3);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a removal by hand");
    desk.ends("undo 0 {s}", 0);
    assert_eq!(server.picture().of_groups(), before.of_groups());
    assert!(server.titles().values().all(|(_, group)| group.is_empty()));
}

fn changed(world: &Arc<World>) {
    let server = Server::new(world, "roles-change");
    let desk = &server.unit.desk;
    let before = server.picture();
    desk.write("l.toml", LAYOUT);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.place();
    let other =
        LAYOUT.replace("pids.max = 50\ncpu.weight = 20\n", "pids.max = 60\n").replace("writers", "others");
    desk.write("l.toml", &other);
    let (code, _, error) = desk.run("apply {d}/l.toml {s}");
    assert!(code == 0 && !error.contains("no longer in the layout"), "{error}");
    assert_eq!(server.unit.holds("maintenance/cpu.weight").as_deref(), Some("100"), "as in a new group");
    assert_eq!(server.inner(), ["main", "maintenance", "others"]);
    assert_eq!(server.unit.holds("maintenance/pids.max").as_deref(), Some("60"));
    // who was in the group that is gone
    assert_eq!(server.titles()["checkpointer"].1, "main");
    server.place();
    assert_eq!(server.titles()["checkpointer"].1, "others");
    let shown = desk.ends("status {s}", 0);
    assert!(!shown.contains("writers"), "{shown}");
    desk.ends("undo {s}", 0);
    server.is_divided("after an undo of the change");
    desk.write("l.toml", LAYOUT);
    server.place();
    desk.ends("status {s}", 0);
    // a layout without the service
    desk.write("l.toml", "[groups.{g}-rt]\npids.max = 5\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(server.picture().of_groups(), before.of_groups());
    desk.ends("status {s}", 0);
    // what an earlier layout ended stays ended
    desk.write("l.toml", "[groups.{g}-rt]\npids.max = 6\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.ends("status {s}", 0);
    desk.ends("undo 0 {s}", 0);
    assert_eq!(server.picture(), before);
    // nor is a group that the undone change ended missed by an undo
    let twice = [LAYOUT.to_owned(), LAYOUT.replace("cpu.weight = 20", "cpu.weight = 30"), WHOLE.to_owned()];
    for layout in twice {
        desk.write("l.toml", &layout);
        desk.ends("apply {d}/l.toml {s}", 0);
    }
    let (code, _, error) = desk.run("undo {s}");
    assert!(code == 0 && error.is_empty(), "{error}");
    assert_eq!(server.unit.holds("maintenance/cpu.weight").as_deref(), Some("30"));
    desk.ends("undo 0 {s}", 0);
    assert_eq!(server.picture(), before);
}

/// The service as a whole.
const WHOLE: &str = "[groups.{g}]\nunit = \"{u}\"\npids.max = 400\n";

/// The groups are the user's who runs the service (`User=`).
fn made_by_user(world: &Arc<World>) {
    let server = Server::new(world, "roles-user");
    let desk = &server.unit.desk;
    let without_main = LAYOUT.replace("[groups.{g}.groups.main]\ncpu.weight = 300\n", "");
    desk.write("l.toml", &without_main);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.place();
    says(&desk.ends("status {s}", 0), &[&desk.scene.fill("{g}/main"), "4 groups with 4 processes"]);
    fs::create_dir_all(server.group().join("main/x/y")).unwrap();
    for (pid, _) in server.titles().values().filter(|(_, group)| group == "main") {
        fs::write(server.group().join("main/x/y/cgroup.procs"), pid.to_string()).unwrap();
    }
    desk.write("l.toml", WHOLE);
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!((server.inner(), server.unit.holds("pids.max")), (Vec::new(), Some("400".to_owned())));
    assert_eq!(server.titles().len(), ROLES.len());
    // with controllers handed down beside processes no group in it takes any
    fs::write(server.group().join("cgroup.subtree_control"), "+pids").unwrap();
    fs::create_dir(server.group().join("theirs")).unwrap();
    fs::write(server.group().join("theirs/cgroup.type"), "threaded").unwrap();
    desk.write("l.toml", LAYOUT);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a user's change");
    // nor do controllers that no group of the layout needs
    desk.write("l.toml", &LAYOUT.replace("memory.high = \"200M\"\n", ""));
    desk.ends("apply {d}/l.toml {s}", 0);
    fs::write(server.group().join("cgroup.subtree_control"), "+memory").unwrap();
    desk.ends("undo 0 {s}", 0);
    assert_eq!(server.inner(), [""; 0]);
}

/// As a reboot leaves it: the record is of another boot, and the service has no groups.
fn later(world: &Arc<World>) {
    let server = Server::new(world, "roles-later");
    let desk = &server.unit.desk;
    desk.write("l.toml", LAYOUT);
    // the apply is of another boot
    desk.write("boot", "00000000-0000-4000-8000-000000000000\n");
    let other_boot = "mount --bind $1 /proc/sys/kernel/random/boot_id && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", other_boot, "sh"])
        .args([desk.path("boot"), desk.scene.program().into()]);
    let line = desk.scene.fill("apply {d}/l.toml {s}");
    let applied = command.args(line.split_whitespace()).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
    server.control("restart");
    says(&desk.ends("status {s}", 3), &[&desk.scene.fill("{g}/maintenance"), "is gone"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    server.is_divided("after a reboot");
    server.place();
    desk.ends("status {s}", 0);
    let kill = serde_json::json!({
        "boot": "x", "number": 7, "at": 1_000_000_000_000_u64, "pid": 4711, "comm": "perl", "uid": 0, "resident": 1 << 20,
        "group": format!("/system.slice/{}", server.unit.name), "limited": null, "limit": null, "with_group": false,
    });
    fs::create_dir_all(desk.path("state/kills")).unwrap();
    desk.write("state/kills/kills.jsonl", &kill.to_string());
    server.control("stop");
    for name in ["{g}", "{u}"] {
        let (success, text) = server.named(&format!("why {name} --for 100ms"));
        assert!(success, "{text}");
        says(&text, &["does not exist now", "process 4711 (perl, user root)"]);
    }
    desk.ends("undo 0 {s}", 0);
}

fn overridden(world: &Arc<World>) {
    let server = Server::new(world, "roles-overridden");
    let desk = &server.unit.desk;
    let other = server.unit.drop_in().with_file_name("99-z.conf");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "[Service]\nTasksMax=333\n").unwrap();
    systemctl(&["daemon-reload"]);
    desk.write("l.toml", WHOLE);
    let (code, _, error) = desk.run("apply {d}/l.toml {s}");
    assert_eq!((code, server.unit.holds("pids.max").as_deref()), (3, Some("333")), "{error}");
    says(
        &error,
        &[
            "pids.max: 400 was written, the kernel has 333: ",
            &desk.scene.fill("systemctl cat {u} shows its files"),
        ],
    );
    let (code, text, _) = desk.run("apply {d}/l.toml {s} --json");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["differences"][0]["actual"]), (3, &"333".into()));
    fs::remove_file(&other).unwrap();
    systemctl(&["daemon-reload"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(server.unit.holds("pids.max").as_deref(), Some("400"));
    desk.ends("undo 0 {s}", 0);
}

fn killed(world: &Arc<World>) {
    let server = Server::new(world, "roles-killed");
    let desk = &server.unit.desk;
    let before = server.picture();
    desk.write("l.toml", LAYOUT);
    let start = std::time::Instant::now();
    desk.ends("apply {d}/l.toml {s}", 0);
    let whole = start.elapsed();
    desk.ends("undo {s}", 0);
    assert_eq!(server.picture(), before);
    let (tries, mut broken) = (8, 0);
    for (round, time) in (0..6).flat_map(|round| (1..=tries).map(move |time| (round, time))) {
        if round > 0 && broken > 0 {
            break;
        }
        let mut apply = desk.spawn("apply {d}/l.toml {s}");
        std::thread::sleep(whole * time / tries);
        apply.kill().unwrap();
        let was_killed = !apply.wait().unwrap().success();
        broken += u32::from(was_killed && server.unit.drop_in().exists());
        desk.run("undo 0 {s}");
        assert_eq!(server.picture(), before, "killed at {time} of {tries}");
    }
    assert!(broken > 0, "no kill came between the file and the end");
}

fn pattern(world: &Arc<World>) {
    let mut template = Template::new(world, "roles-pattern", &["a", "b"]);
    let group = |template: &Template, instance: &str| {
        let slice = format!("system-{}.slice", template.desk.scene.group.replace('-', r"\x2d"));
        Path::new("/sys/fs/cgroup/system.slice").join(slice).join(template.unit(instance))
    };
    let file = |template: &Template, instance: &str, file: &str| {
        let text = fs::read_to_string(group(template, instance).join(file)).ok();
        text.map(|text| text.trim_end().to_owned())
    };
    let layout = "[groups.{g}]\nunit = \"{g}@*.service\"\npids.max = 77\n\
        [groups.{g}.groups.maintenance]\npids.max = 5\nmatch = [{ role = \"postgresql.autovacuum\" }]\n";
    template.desk.write("l.toml", layout);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    for instance in ["a", "b"] {
        assert_eq!(file(&template, instance, "maintenance/pids.max").as_deref(), Some("5"), "{instance}");
        assert_eq!(file(&template, instance, "main/cgroup.procs").unwrap().lines().count(), 1, "{instance}");
    }
    template.desk.ends("status {s}", 0);
    template.start("c");
    assert_eq!(file(&template, "c", "pids.max").as_deref(), Some("77"), "of its template, from its start");
    // the division of its template's file is ours
    template.desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!(file(&template, "c", "maintenance/pids.max").as_deref(), Some("5"));
    template.desk.ends("status {s}", 0);
    template.desk.ends("undo 0 {s}", 0);
    for instance in ["a", "b", "c"] {
        assert_eq!(file(&template, instance, "maintenance/pids.max"), None, "{instance}");
        assert_ne!(file(&template, instance, "pids.max").as_deref(), Some("77"), "{instance}");
        assert_eq!(file(&template, instance, "cgroup.procs").unwrap().lines().count(), 1, "{instance}");
    }
}

fn refused(world: &Arc<World>) {
    let server = Server::new(world, "roles-refused");
    let desk = &server.unit.desk;
    let delegating = Path::new("/run/systemd/system/rf-test-delegating.service");
    let template = Path::new("/run/systemd/system/rf-test-delegating@.service");
    for file in [delegating, template] {
        fs::write(file, "[Service]\nExecStart=/bin/sleep 1000\nDelegate=yes\n").unwrap();
    }
    systemctl(&["daemon-reload"]);
    let inside = |unit: &str, name: &str, lines: &str| {
        format!(
            "[groups.{{g}}]\nunit = \"{unit}\"\npids.max = 7\n[groups.{{g}}.groups.\"{name}\"]\n{lines}\n"
        )
    };
    systemctl(&["start", "rf-test-delegating@x.service"]);
    let before = server.picture();
    for (layout, words) in [
        (inside("rf-test-delegating@x.service", "a", "pids.max = 3"), "divides its group itself"),
        (inside("rf-test-delegating@*.service", "a", "pids.max = 3"), "divides its group itself"),
        (inside("{u}", "a/b", "pids.max = 3"), "'a/b' can't be a group in"),
        (inside("{u}", ".control", "pids.max = 3"), "'.control' can't be a group in"),
        (inside("{u}", "x.service", "pids.max = 3"), "'x.service' can't be a group in"),
        (inside("rf-test.slice", "a", "pids.max = 3"), "only services can be divided"),
        (inside("{u}", "a", "admin = { user = 0 }"), "can't have owners"),
        (inside("{u}", "a", "devices.deny = \"a\""), "can't have rules of devices"),
        (inside("{u}", "a", "controllers = [\"pids\"]"), "can't have controllers by name"),
        (inside("{u}", "a", "cpus = { min = 1, max = 2, weight = 1 }"), "can't have elastic CPUs"),
        (inside("{u}", "a", "cpus = 1\nexclusive = true"), "can't have CPUs of its own"),
        (inside("{u}", "a", "match = [{ role = \"postgresql.vacuum\" }]"), "'postgresql.vacuum' is no role"),
        (inside("{u}", "a", "match = [{ role = [] }]"), "no role is given"),
        (inside("rf-test-delegating.service", "a", "pids.max = 3"), "divides its group itself"),
    ] {
        desk.write("l.toml", &layout);
        for command in ["plan {d}/l.toml {s}", "apply {d}/l.toml {s}"] {
            let (code, _, error) = desk.run(command);
            assert!(code == 1 || code == 2, "{layout}: {code}\n{error}");
            says(&error, &[words, "hint:"]);
        }
    }
    systemctl(&["stop", "rf-test-delegating@x.service"]);
    [delegating, template].into_iter().for_each(|file| fs::remove_file(file).unwrap());
    systemctl(&["daemon-reload"]);
    assert_eq!(server.picture(), before);
}
