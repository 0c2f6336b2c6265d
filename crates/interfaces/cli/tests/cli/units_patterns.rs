//! Groups of a layout that are bound to units by a pattern: each unit that fits is as if it was named.

use std::{
    collections::BTreeSet,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    desk::{Desk, says},
    units::{Case, NEEDS, may_use, of_cases, shows, systemctl},
    world::{Need, World},
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let cases: &[Case] = &[
        ("each loaded unit that fits a pattern is a group, and status names one that comes later", instances),
        (
            "each loaded unit that starts later has its template's limits from its first process on",
            from_the_start,
        ),
        ("each unit of a pattern has CPUs of its own, and all of them together a share of memory", counted),
        ("an undo gives all units of a pattern their CPUs back", cpus_back),
        ("a unit that was bound by a pattern and is stopped keeps its settings", stopped),
        ("a pattern that no loaded unit fits is a warning", nobody),
        ("a pattern binds slices and transient scopes too", slices_and_scopes),
        ("a unit that a pattern and a name bind is refused with both places", both),
        ("a unit that two layout files bind is refused with both places", two_files),
        ("an export of a pattern is a drop-in file of the template", exported),
        ("an import reads from systemd's files the layout that was exported", imported),
    ];
    let with_sessions: &[Case] =
        &[("twenty users that log in are limited from their first process on, also during an apply", logins)];
    let mut trials = of_cases(world, NEEDS, cases);
    trials.extend(of_cases(world, &[NEEDS, &[Need::Sessions]].concat(), with_sessions));
    trials
}

/// A trial with a template, and instances of it that run.
pub struct Template {
    pub desk: Desk,
    instances: Vec<&'static str>,
}

impl Template {
    pub fn new(world: &Arc<World>, test: &str, instances: &[&'static str]) -> Template {
        let mut template = Template { desk: Desk::new(world, test), instances: Vec::new() };
        fs::write(template.file(), "[Service]\nExecStart=/bin/sleep 1000\n").unwrap();
        for instance in instances {
            template.start(instance);
        }
        template
    }

    pub fn start(&mut self, instance: &'static str) {
        systemctl(&["start", &self.unit(instance)]);
        self.instances.push(instance);
    }

    fn file(&self) -> PathBuf {
        Path::new("/run/systemd/system").join(self.unit(""))
    }

    pub fn unit(&self, instance: &str) -> String {
        format!("{}@{instance}.service", self.desk.scene.group)
    }

    fn drop_in(&self, instance: &str) -> PathBuf {
        Path::new("/etc/systemd/system").join(format!("{}.d/90-ringfence.conf", self.unit(instance)))
    }

    /// The limit of tasks of an instance, as the kernel and as systemd have it.
    fn limit(&self, instance: &str) -> (Option<String>, String) {
        let unit = self.unit(instance);
        // systemd makes a slice for the instances of a template, its dashes escaped
        let slice = format!("system-{}.slice", self.desk.scene.group.replace('-', r"\x2d"));
        let file = Path::new("/sys/fs/cgroup/system.slice").join(slice).join(&unit).join("pids.max");
        let text = fs::read_to_string(file).ok().map(|text| text.trim_end().to_owned());
        (text, show(&unit, "TasksMax"))
    }

    fn is_limited(&self, instance: &str, to: &str) {
        assert_eq!(self.limit(instance), (Some(to.to_owned()), to.to_owned()), "{instance}");
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        for instance in &self.instances {
            let _ = Command::new("systemctl").args(["stop", &self.unit(instance)]).status();
            let _ = fs::remove_dir_all(self.drop_in(instance).parent().unwrap());
        }
        let _ = fs::remove_file(self.file());
    }
}

fn show(unit: &str, property: &str) -> String {
    let [value] = shows(unit, [property]);
    value
}

/// systemd has no file for just these.
const LAYOUT: &str = "[groups.{g}]\nunit = \"{g}@?.service\"\npids.max = 77\n";
/// It has one for these.
const ALL: &str = "[groups.{g}]\nunit = \"{g}@*.service\"\npids.max = 77\n";

fn from_the_start(world: &Arc<World>) {
    let mut template = Template::new(world, "pattern-later", &["a"]);
    let directory = template.desk.path("").display().to_string();
    let script = "cat \"/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/pids.max\" >\"$1\"";
    template.desk.write("first", script);
    let start = format!(
        "[Service]\nExecStartPre=/bin/sh {directory}/first {directory}/first-%i\nExecStart=/bin/sleep 1000\n"
    );
    fs::write(template.file(), start).unwrap();
    systemctl(&["daemon-reload"]);
    let first = |template: &Template, instance: &str| {
        fs::read_to_string(template.desk.path(&format!("first-{instance}"))).unwrap().trim_end().to_owned()
    };
    let before = template.limit("a");
    let file = template.drop_in("");
    template.desk.write("l.toml", ALL);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.is_limited("a", "77");
    assert!(file.exists());
    template.start("b");
    assert_eq!(first(&template, "b"), "77");
    template.is_limited("b", "77");
    let shown = template.desk.ends("status {s}", 0);
    says(
        &shown,
        &[&template
            .desk
            .scene
            .fill("each {g}@*.service that starts later has these settings from its start")],
    );
    assert_eq!(template.desk.json("status --json {s}", 0)["new_units"], serde_json::json!([]));
    assert!(!template.drop_in("b").exists(), "it needs none");
    // and is shown with its process
    let group =
        template.desk.json("status --json {s}", 0)["groups"].as_array().unwrap().iter().find_map(|one| {
            (one["group"] == template.desk.scene.fill("{g}/{g}@").as_str()).then(|| one.clone())
        });
    let group = group.unwrap();
    assert_eq!(group["unit"]["instances"], serde_json::json!([template.unit("b")]));
    assert_eq!(group["tasks"].as_array().unwrap().len(), 1, "{group}");
    killed_of_units(&template);
    // what somebody gave one of them since is drift of the layout, which the next apply ends
    systemctl(&["set-property", "--runtime", &template.unit("b"), "TasksMax=99"]);
    template.desk.ends("status {d}/l.toml {s}", 3);
    says(&template.desk.ends("status {s}", 3), &["pids.max: applied 77, now 99"]);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.is_limited("b", "77");
    systemctl(&["revert", &template.unit("b")]);
    // an apply changes all that run, and those to come
    template.desk.write("l.toml", &ALL.replace("77", "66"));
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.start("c");
    assert_eq!(first(&template, "c"), "66");
    ["a", "b", "c"].iter().for_each(|instance| template.is_limited(instance, "66"));
    template.desk.ends("status {d}/l.toml {s}", 0);
    template.desk.ends("undo {s}", 0);
    assert_eq!(template.limit("a"), (Some("77".to_owned()), "77".to_owned()));
    template.desk.ends("undo 0 {s}", 0);
    ["a", "b", "c"].iter().for_each(|instance| assert_eq!(template.limit(instance), before, "{instance}"));
    assert!(!file.parent().unwrap().exists());
    assert!(["a", "b", "c"].iter().all(|instance| !template.drop_in(instance).exists()));
    // of a pattern that no unit fits yet there is its file all the same, and the next layout without it takes it away
    ["a", "b", "c"].iter().for_each(|instance| systemctl(&["stop", &template.unit(instance)]));
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.start("d");
    assert_eq!(first(&template, "d"), "66");
    template.desk.write("l.toml", "[groups.{g}-rt]\npids.max = 5\n");
    template.desk.ends("apply {d}/l.toml {s}", 0);
    assert!(!file.exists());
    assert_eq!(template.limit("d"), before);
    template.desk.ends("undo 0 {s}", 0);
}

fn instances(world: &Arc<World>) {
    let mut template = Template::new(world, "pattern", &["a", "b"]);
    let before = (template.limit("a"), template.limit("b"));
    template.desk.write("l.toml", LAYOUT);
    assert_eq!(template.desk.ends("check {d}/l.toml", 0).lines().count(), 1);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.is_limited("a", "77");
    template.is_limited("b", "77");
    let shown = template.desk.ends("status {s}", 0);
    says(
        &shown,
        &["{g}/{g}@a", "{g}/{g}@b", "2 groups"]
            .map(|name| template.desk.scene.fill(name))
            .each_ref()
            .map(String::as_str),
    );
    says(&template.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    systemctl(&["daemon-reload"]);
    template.desk.ends("status {s}", 0);
    // one that comes later
    template.start("c");
    let shown = template.desk.ends("status {s}", 3);
    says(&shown, &[&template.unit("c"), "not bound yet", "ringfence apply"]);
    let new = &template.desk.json("status --json {s}", 3)["new_units"];
    assert_eq!(new[0]["unit"], template.unit("c"));
    says(&template.desk.ends("plan {d}/l.toml {s}", 0), &[&template.unit("c")]);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.is_limited("c", "77");
    template.desk.ends("status {s}", 0);
    // another file of the same name is not looked into
    template.desk.write("l.toml", &LAYOUT.replace("77", "66"));
    let (code, _, error) = template.desk.run("status {s}");
    assert_eq!(code, 0);
    says(&error, &["changed since it was applied", "ringfence plan "]);
    template.desk.ends("undo 0 {s}", 0);
    assert_eq!((template.limit("a"), template.limit("b")), before);
    assert!(["a", "b", "c"].iter().all(|instance| !template.drop_in(instance).exists()));
}

fn stopped(world: &Arc<World>) {
    let template = Template::new(world, "pattern-stopped", &["a", "b"]);
    template.desk.write("l.toml", LAYOUT);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    systemctl(&["stop", &template.unit("a")]);
    says(&template.desk.ends("apply {d}/l.toml {s}", 0), &["nothing to do"]);
    says(&template.desk.ends("status {s}", 0), &["does not run"]);
    systemctl(&["start", &template.unit("a")]);
    template.is_limited("a", "77");
    template.desk.ends("status {d}/l.toml {s}", 0);
    template.desk.ends("undo 0 {s}", 0);
}

/// Kills in a unit with a drop-in file of its own, and in one that its template limits, as ringfenced writes them down.
fn killed_of_units(template: &Template) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() * 1000;
    let lines = ["a", "b", "b"].iter().zip(1..).map(|(instance, pid)| {
        let group = show(&template.unit(instance), "ControlGroup");
        serde_json::json!({
            "boot": "x", "number": pid, "at": now + pid, "pid": pid, "comm": "sleep", "uid": 0, "resident": 1, "group": group,
            "limited": group, "limit": 1, "with_group": false,
        })
        .to_string()
    });
    let lines: Vec<String> = lines.collect();
    template.desk.write("state/kills/kills.jsonl", &lines.join("\n"));
    let killed = template.desk.json("status --json {s}", 0)["killed"].clone();
    let of = |name: &str| {
        let name = template.desk.scene.fill(name);
        let all = killed.as_array().unwrap();
        all.iter().find(|one| one["group"] == name.as_str()).map(|one| one["processes"].as_u64().unwrap())
    };
    assert_eq!((of("{g}/{g}@a"), of("{g}/{g}@")), (Some(1), Some(2)), "{killed}");
    fs::remove_dir_all(template.desk.path("state/kills")).unwrap();
}

fn counted(world: &Arc<World>) {
    let mut template = Template::new(world, "pattern-counted", &["a", "b"]);
    let slice = format!("system-{}.slice", template.desk.scene.group.replace('-', r"\x2d"));
    let above = Path::new("/sys/fs/cgroup/system.slice").join(&slice);
    let holds = |file: &str| fs::read_to_string(above.join(file)).unwrap_or_default().trim().to_owned();
    let cpus =
        |template: &Template, instance: &str| holds(&format!("{}/cpuset.cpus", template.unit(instance)));
    let layout = format!(
        "[groups.\"{{g}}-rt\"]\nunit = '{slice}'\nmemory.max = \"50%\"\n[groups.{{g}}]\nunit = \"{{g}}@?.service\"\ncpus = 1\n"
    );
    template.desk.write("l.toml", &layout);
    let each_has_one = |template: &Template, instances: &[&str]| {
        let all: Vec<String> = instances.iter().map(|instance| cpus(template, instance)).collect();
        assert!(all.iter().all(|cpus| cpus.parse::<u32>().is_ok()), "{all:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    };
    template.desk.ends("apply {d}/l.toml {s}", 0);
    each_has_one(&template, &["a", "b"]);
    template.start("c");
    assert_eq!(cpus(&template, "c"), "", "which CPUs are left is known with the next apply");
    says(&template.desk.ends("status {s}", 3), &[&template.unit("c")]);
    template.desk.ends("apply {d}/l.toml {s}", 0);
    each_has_one(&template, &["a", "b", "c"]);
    let half: u64 = holds("memory.max").parse().unwrap();
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(half.abs_diff(total * 512) <= 4096, "{half} of {total} KiB");
    says(&template.desk.ends("status {s}", 0), &["all as applied"]);
    // its list was there before, and the kernel takes no empty one while processes are in the group
    systemctl(&["stop", &template.unit("c")]);
    template.desk.ends("undo 0 {s}", 0);
    assert_eq!(["a", "b"].map(|instance| cpus(&template, instance)), ["", ""]);
    assert_eq!(holds("memory.max"), "max");
}

/// Users that log in as by a terminal: PAM opens a session, and systemd-logind makes a slice for each of them. None may run
/// a process without the limit.
struct Users {
    sessions: Vec<Child>,
}

impl Users {
    const COUNT: u32 = 20;
    const FIRST: u32 = 3001;

    fn new() -> Users {
        let users = Users { sessions: Vec::new() };
        for uid in Users::uids() {
            let name = Users::name(uid);
            run("useradd", &["--no-create-home", "--home-dir", "/", "--uid", &uid.to_string(), &name]);
        }
        users
    }

    fn uids() -> RangeInclusive<u32> {
        Users::FIRST..=Users::FIRST + Users::COUNT - 1
    }

    fn name(uid: u32) -> String {
        format!("rf-test-{uid}")
    }

    fn slice(uid: u32) -> PathBuf {
        PathBuf::from(format!("/sys/fs/cgroup/user.slice/user-{uid}.slice"))
    }

    /// The first command of the session says which limit its user has, and in which group it is.
    fn log_in(&mut self, uid: u32, said: &Path) {
        let limit = Users::slice(uid).join("pids.max");
        let script = format!("cat {} /proc/self/cgroup; exec sleep 1000", limit.display());
        let mut session = Command::new("su");
        session.args(["--login", &Users::name(uid), "--command", &script]);
        let error = fs::File::create(said.with_extension("error")).unwrap();
        session.stdin(Stdio::null()).stdout(fs::File::create(said).unwrap()).stderr(error);
        self.sessions.push(session.spawn().unwrap());
    }

    fn log_out(&mut self) {
        for session in &mut self.sessions {
            let _ = kill_process(Pid::from_child(session), Signal::TERM);
        }
        for mut session in self.sessions.drain(..) {
            session.wait().unwrap();
        }
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        self.log_out();
        for uid in Users::uids() {
            let _ = Command::new("loginctl").args(["terminate-user", &uid.to_string()]).output();
            let _ = Command::new("systemctl").args(["stop", &format!("user-{uid}.slice")]).output();
            let _ = Command::new("userdel").arg(Users::name(uid)).output();
        }
    }
}

fn logins(world: &Arc<World>) {
    let desk = Desk::new(world, "pattern-logins");
    let (directory, layout) = (desk.path(""), "[groups.{g}]\nunit = \"user-*.slice\"\npids.max = 55\n");
    desk.write("l.toml", layout);
    desk.ends("apply {d}/l.toml {s}", 0);
    let mut users = Users::new();
    let file = |uid: u32| directory.join(format!("said-{uid}"));
    let half = Users::FIRST + Users::COUNT / 2;
    (Users::FIRST..half).for_each(|uid| users.log_in(uid, &file(uid)));
    desk.write("l.toml", &layout.replace("55", "66"));
    let mut apply = desk.spawn("apply {d}/l.toml {s}");
    Users::uids().filter(|uid| *uid >= half).for_each(|uid| users.log_in(uid, &file(uid)));
    assert!(apply.wait().unwrap().success());
    let said = |uid: u32| fs::read_to_string(file(uid)).unwrap_or_default();
    desk.scene.until("all have begun", || {
        let error = |uid: u32| fs::read_to_string(file(uid).with_extension("error")).unwrap_or_default();
        let refused: Vec<String> = Users::uids().map(error).filter(|error| !error.is_empty()).collect();
        assert!(refused.is_empty(), "{refused:?}");
        Users::uids().all(|uid| said(uid).lines().count() == 2)
    });
    for uid in Users::uids() {
        let (said, slice) = (said(uid), Users::slice(uid));
        let (first, group) = said.split_once('\n').unwrap();
        assert!(["55", "66"].contains(&first), "{uid}: {said}");
        assert!(group.contains(&format!("/user.slice/user-{uid}.slice/session-")), "{uid}: {group}");
        assert_eq!(fs::read_to_string(slice.join("pids.max")).unwrap(), "66\n", "{uid}");
    }
    says(&desk.ends("status {s}", 0), &["all as applied"]);
    users.log_out();
    let is_gone = |uid: u32| !Users::slice(uid).exists();
    desk.scene.until("all have logged out", || Users::uids().all(is_gone));
    desk.ends("status {s}", 0);
    desk.ends("undo 0 {s}", 0);
    let left = fs::read_dir("/etc/systemd/system").unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("user-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// systemd takes the controller off again, and the kernel alone may leave a process the CPUs that it had.
fn cpus_back(world: &Arc<World>) {
    let mut template = Template::new(world, "pattern-cpus", &[]);
    // beside services without a list
    fs::write(template.file(), "[Service]\nExecStart=/bin/sleep 1000\nSlice=system.slice\n").unwrap();
    template.start("a");
    let allowed = |template: &Template, instance: &str| {
        may_use(show(&template.unit(instance), "MainPID")).unwrap().to_string()
    };
    let all = allowed(&template, "a");
    assert!(all != "0", "one CPU");
    template.desk.write("l.toml", "[groups.{g}]\nunit = \"{g}@*.service\"\ncpuset.cpus = 0\n");
    template.desk.ends("apply {d}/l.toml {s}", 0);
    template.start("b");
    ["a", "b"].iter().for_each(|instance| assert_eq!(allowed(&template, instance), "0", "{instance}"));
    template.desk.ends("undo 0 {s}", 0);
    ["a", "b"].iter().for_each(|instance| assert_eq!(allowed(&template, instance), all, "{instance}"));
}

fn nobody(world: &Arc<World>) {
    let template = Template::new(world, "pattern-nobody", &["a"]);
    template.desk.write("l.toml", &LAYOUT.replace("@?", "@x?"));
    for command in ["plan {d}/l.toml", "apply {d}/l.toml {s}"] {
        let (code, _, error) = template.desk.run(command);
        assert_eq!(code, 0, "{error}");
        says(&error, &["no loaded unit fits", "systemctl list-units --all"]);
    }
    assert!(!template.drop_in("a").exists());
    // nobody means all of them
    template.desk.write("l.toml", "[groups.{g}]\nunit = \"*.scope\"\npids.max = 9999\n");
    let (code, _, error) = template.desk.run("apply {d}/l.toml {s}");
    assert_eq!(code, 1, "{error}");
    says(&error, &["*.scope is all of the machine", "nothing was changed", "ringfence apply --yes "]);
    let (_, _, error) = template.desk.run("plan {d}/l.toml {s}");
    says(&error, &["*.scope is all of the machine", "only with --yes"]);
}

fn slices_and_scopes(world: &Arc<World>) {
    let desk = Desk::new(world, "pattern-kinds");
    let group = &desk.scene.group;
    let (service, slice, scope) =
        (format!("{group}.service"), format!("{group}-x.slice"), format!("{group}-1.scope"));
    run("systemd-run", &["--quiet", "--unit", &service, "--slice", &slice, "sleep", "1000"]);
    let mut scope_program = Command::new("systemd-run");
    scope_program.args(["--quiet", "--scope", "--unit", &scope, "sleep", "1000"]);
    let mut scope_program = scope_program.spawn().unwrap();
    desk.scene.until("the scope", || show(&scope, "ActiveState") == "active");
    let limit = |unit: &str| show(unit, "TasksMax");
    let before = (limit(&slice), limit(&scope));
    desk.write(
        "l.toml",
        "[groups.{g}]\nunit = \"{g}-*.slice\"\npids.max = 55\n[groups.\"{g}-rt\"]\nunit = \"{g}-?.scope\"\npids.max = 44\n",
    );
    desk.ends("apply {d}/l.toml {s}", 0);
    assert_eq!((limit(&slice).as_str(), limit(&scope).as_str()), ("55", "44"));
    // what a reboot forgets is where a reboot removes it
    assert!(Path::new(&format!("/run/systemd/system/{scope}.d/90-ringfence.conf")).exists());
    let at = format!("/sys/fs/cgroup/system.slice/{scope}/pids.max");
    assert_eq!(fs::read_to_string(at).unwrap(), "44\n");
    systemctl(&["daemon-reload"]);
    desk.ends("status {s}", 0);
    desk.ends("undo 0 {s}", 0);
    assert_eq!((limit(&slice), limit(&scope)), before);
    systemctl(&["stop", &service, &scope]);
    scope_program.wait().unwrap();
}

fn both(world: &Arc<World>) {
    let template = Template::new(world, "pattern-both", &["a"]);
    let named = "[groups.\"{g}-rt\"]\nunit = \"{g}@a.service\"\npids.max = 7\n";
    template.desk.write("l.toml", &format!("{LAYOUT}{named}"));
    template.desk.ends("check {d}/l.toml", 0);
    for command in ["plan {d}/l.toml", "apply {d}/l.toml {s}"] {
        let (code, _, error) = template.desk.run(command);
        assert_eq!(code, 1, "{error}");
        says(&error, &["are both", &template.unit("a"), "l.toml:2:", "l.toml:5:", "hint:"]);
    }
    assert!(!template.drop_in("a").exists());
}

fn two_files(world: &Arc<World>) {
    let template = Template::new(world, "pattern-files", &["a"]);
    let named = "[groups.\"{g}-rt\"]\nunit = \"{g}@a.service\"\npids.max = 7\n";
    template.desk.write("etc/layout.d/a.toml", LAYOUT);
    template.desk.write("etc/layout.d/b.toml", named);
    let (code, _, error) = template.desk.run("plan {d}/etc");
    assert_eq!(code, 1, "{error}");
    says(&error, &["are both", "a.toml:2:", "b.toml:2:"]);
    // by name nothing of the machine needs to be known
    template.desk.write("etc/layout.d/a.toml", &named.replace("-rt", ""));
    let (code, _, error) = template.desk.run("check {d}/etc");
    assert_eq!(code, 2, "{error}");
    says(&error, &["are both", "a.toml:", "b.toml:"]);
}

fn exported(world: &Arc<World>) {
    let template = Template::new(world, "pattern-exported", &[]);
    template.desk.write("l.toml", ALL);
    let text = template.desk.ends("export --to systemd {d}/l.toml", 0);
    let file = format!("/etc/systemd/system/{}.d/90-layout.conf", template.unit(""));
    says(&text, &[&file, "[Service]\nTasksMax=77\n"]);
    template.desk.write("l.toml", &ALL.replace("@*", "@a*"));
    let (_, _, error) = template.desk.run("export --to systemd {d}/l.toml");
    says(&error, &["systemd has no drop-in file for all units that fit"]);
}

fn imported(world: &Arc<World>) {
    let template = Template::new(world, "pattern-imported", &["a"]);
    let desk = &template.desk;
    let layout = "[groups.{g}]\nunit = \"{g}@*.service\"\npids.max = 77\nmemory.max = 268435456\ncpu.max = \"1.5cpu\"\n\
        io.max = \"254:0 rbps=1000000\"\n";
    desk.write("l.toml", layout);
    let text = desk.ends("export --to systemd {d}/l.toml", 0);
    let (path, text) = text.strip_prefix("# ").unwrap().split_once('\n').unwrap();
    let directory = Path::new(path).parent().unwrap();
    fs::create_dir(directory).unwrap();
    fs::write(path, text).unwrap();
    let name = format!("import --from systemd {}", template.unit(""));
    assert_eq!(desk.ends(&name, 0), desk.scene.fill(layout));
    // without names those of all units, this one among them
    says(&desk.ends("import --from systemd", 0), &[&desk.scene.fill("[groups.{g}]")]);
    // shares of this machine, and what is no setting
    fs::write(
        directory.join("95-more.conf"),
        "[Service]\nTasksMax=33%\nMemoryMax=10%\nDeviceAllow=/dev/null rw\nCPUQuota=\nIOReadBandwidthMax=\n",
    )
    .unwrap();
    systemctl(&["daemon-reload"]);
    let unit = template.unit("a");
    let properties = || shows(&unit, ["TasksMax", "MemoryMax", "CPUQuotaPerSecUSec"]);
    let before = properties();
    let imported = desk.ends(&format!("import --from systemd {unit}"), 0);
    let number = format!("pids.max = {}\n", before[0]);
    says(
        &imported,
        &[
            &number,
            "memory.max = \"10%\"",
            "# not carried over, as no setting says it: DeviceAllow=/dev/null rw",
            "# TasksMax=33%",
        ],
    );
    assert!(!imported.contains("cpu.max") && !imported.contains("io.max"), "{imported}");
    fs::remove_dir_all(directory).unwrap();
    systemctl(&["daemon-reload"]);
    desk.write("again.toml", &imported);
    desk.ends("apply {d}/again.toml {s}", 0);
    assert_eq!(properties(), before);
    desk.ends("undo 0 {s}", 0);
    let (code, _, error) = desk.run(&format!("import --from systemd {unit}"));
    assert_eq!(code, 1, "{error}");
    says(&error, &["no file in /etc or /run limits", "hint:"]);
}

fn run(program: &str, words: &[&str]) {
    let done = Command::new(program).args(words).output().unwrap();
    assert!(done.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}
