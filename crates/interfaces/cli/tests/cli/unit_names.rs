//! Units of systemd by their names: read wherever a group is read, and refused with a command that succeeds when it is
//! pasted where a group would be changed. The commands of the hints are run.

use std::{fs, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, says, sleep_program},
    world::{Need, World},
};

type Case = (&'static str, &'static [Need], fn(&mut Desk));

/// Units are made, and their properties set.
const ON_SYSTEMD: &[Need] = &[Need::Systemd, Need::OwnMachine];

const CASES: &[Case] = &[
    ("a unit's name stands for its group where it is read", ON_SYSTEMD, read),
    ("what a refusal offers succeeds when it is pasted", ON_SYSTEMD, pasted),
    ("a group of a layout that is a unit is that unit for every command", ON_SYSTEMD, bound),
    ("what why advises of a unit gives it more, in a layout and without one", ON_SYSTEMD, advised),
    ("a rule that meets a service's process names the service and its lines", ON_SYSTEMD, rules),
    ("eight steps of a newcomer on a host with systemd", ON_SYSTEMD, eight_steps),
    ("systemd's own groups, as cgsnapshot lists them, are no groups of a layout", ON_SYSTEMD, listed),
    ("layouts that name subtrees of others are refused with the owner", &[Need::Groups], owners),
    ("doctor names a program that writes what ringfence writes", &[Need::Groups, Need::OwnMachine], writers),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("names of units: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// A service that sleeps, as a package would bring it.
struct Service {
    name: String,
    pid: String,
}

impl Service {
    /// Names it `{u}`, and its process `{pid}`.
    fn start(desk: &mut Desk) -> Service {
        let name = format!("{}.service", desk.scene.group);
        fs::write(file(&name), "[Service]\nExecStart=/bin/sleep 3600\n").unwrap();
        succeeds(&format!("systemctl start {name}"));
        let pid = succeeds(&format!("systemctl show -P MainPID {name}")).trim().to_owned();
        desk.scene.name("{u}", &name);
        desk.scene.name("{pid}", &pid);
        Service { name, pid }
    }

    fn property(&self, property: &str) -> String {
        succeeds(&format!("systemctl show -P {property} {}", self.name)).trim().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = shell(&format!("systemctl thaw {0}; systemctl stop {0}; systemctl revert {0}", self.name));
        let _ = fs::remove_file(file(&self.name));
    }
}

fn file(name: &str) -> String {
    format!("/run/systemd/system/{name}")
}

fn shell(line: &str) -> (bool, String, String) {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn succeeds(line: &str) -> String {
    let (good, out, error) = shell(line);
    assert!(good, "{line}\n{out}{error}");
    out
}

/// The first line of the hint of what is refused with this status.
fn hint(desk: &Desk, line: &str, status: i32) -> String {
    let (code, out, error) = desk.run(line);
    assert_eq!(code, status, "{line}\n{out}{error}");
    let (_, hint) = error.split_once("\nhint: ").unwrap_or_else(|| panic!("{line}: no hint in {error}"));
    hint.lines().next().unwrap().to_owned()
}

fn read(desk: &mut Desk) {
    let service = Service::start(desk);
    says(&desk.ends("get {u} memory.max pids.max", 0), &["memory.max  max", "pids.max"]);
    lacks_a_controller(desk, &service);
    says(&desk.ends("stat {u} memory.current", 0), &["memory.current"]);
    says(&desk.ends("why {u} --for 100ms", 0), &[&service.name, "1 task"]);
    says(&desk.ends("watch system.slice --once --csv", 0), &[&service.name]);
    says(&desk.ends("list system.slice", 0), &[&format!("/system.slice/{}\n", service.name)]);
    says(&desk.ends("where {pid}", 0), &[&format!("of {}\n", service.name)]);
    let json = desk.json("where {pid} --json", 0);
    assert_eq!(json[0]["unit"]["name"], service.name);
    desk.ends("create {g}-rt", 0);
    desk.scene.start("{own}", &["/bin/sleep", "600"]);
    desk.ends("move {g}-rt {own}", 0);
    assert!(!desk.ends("where {own}", 0).contains("of ringfence.service"));
    desk.ends("kill {g}-rt", 0);
    // a group of our own has the name before any unit
    let (_, _, error) = desk.run("get {g} memory.max");
    says(&error, &["does not exist", &format!("did you mean {}?", service.name)]);
    desk.ends("create {g}", 0);
    desk.ends("set {g} memory.max=32M", 0);
    says(&desk.ends("get {g} memory.max", 0), &["32M"]);
    // units that have no group
    let (code, _, error) = desk.run("get {g}-none.service memory.max");
    assert_eq!(code, 1);
    says(&error, &["no unit of systemd with that name runs", "hint: systemctl start "]);
    let (code, _, error) = desk.run("run {g}-none.service -- true");
    assert_eq!(code, 125, "{error}");
}

/// A controller that systemd did not enable for it: what there is is shown, and the command gives it the rest.
fn lacks_a_controller(desk: &Desk, service: &Service) {
    let group = format!("/sys/fs/cgroup/system.slice/{}", service.name);
    // v2 alone has controllers for each group
    let Ok(controllers) = fs::read_to_string(format!("{group}/cgroup.controllers")) else { return };
    assert!(!controllers.split_whitespace().any(|name| name == "cpuset"), "{controllers}");
    let (code, out, error) = desk.run("get {u} memory.max cpuset.cpus");
    assert_eq!((code, out.as_str()), (3, "memory.max  max\n"), "{error}");
    says(&error, &["systemd has not enabled controller cpuset for it: it has no such limit"]);
    let command = hint(desk, "get {u} memory.max cpuset.cpus", 3);
    says(&command, &["systemctl set-property ", " AllowedCPUs=0"]);
    succeeds(&command);
    says(&desk.ends("get {u} memory.max cpuset.cpus", 0), &["cpuset.cpus  0"]);
    succeeds(&format!("systemctl revert {}", service.name));
}

fn pasted(desk: &mut Desk) {
    let service = Service::start(desk);
    let set = hint(desk, "set {u} memory.max=64M cpu.max=1.5cpu 'io.max=/dev/vda riops=10'", 1);
    succeeds(&set);
    assert_eq!(service.property("MemoryMax"), "67108864");
    assert_eq!(service.property("CPUQuotaPerSecUSec"), "1.500000s");
    says(&service.property("IOReadIOPSMax"), &["10"]);
    says(&desk.ends("get {u} memory.max cpu.max", 0), &["64M", "150000 100000"]);
    let run = hint(desk, "run {u} -- sh -c 'cat /proc/self/cgroup'", 125);
    says(&succeeds(&run), &["/system.slice/run-"]);
    succeeds(&hint(desk, "freeze {u}", 1));
    says(
        &fs::read_to_string(format!("/sys/fs/cgroup/system.slice/{}/cgroup.events", service.name)).unwrap(),
        &["frozen 1"],
    );
    succeeds(&hint(desk, "thaw {u}", 1));
    // what would hide the unit is not made
    let (code, _, error) = desk.run("create {u}");
    assert_eq!(code, 1);
    says(&error, &["belongs to systemd", &format!("unit = \"{}\"", service.name)]);
    assert!(!desk.ends("list", 0).lines().any(|line| line == service.name));
    let (code, _, error) = desk.run("set {u} cpu.max.burst=10ms");
    assert_eq!(code, 1);
    says(&error, &["systemd has no property for it"]);
    succeeds(&hint(desk, "kill {u}", 1));
    desk.scene.until("the end of the service", || service.property("MainPID") == "0");
}

fn bound(desk: &mut Desk) {
    let service = Service::start(desk);
    desk.write("layout.toml", "[groups.{g}-rt]\nunit = \"{u}\"\nmemory.max = \"64M\"\n");
    desk.ends("apply {d}/layout.toml", 0);
    says(&desk.ends("get {g}-rt memory.max", 0), &["64M"]);
    says(&desk.ends("why {g}-rt --for 100ms", 0), &[&service.name]);
    says(&desk.ends("watch {g}-rt --once --csv", 0), &[&service.name]);
    let group = format!("of {}, which is group '{}-rt' of the layout", service.name, desk.scene.group);
    says(&desk.ends("where {pid}", 0), &[&group]);
    says(&desk.ends("status {u}", 0), &["all as applied", "1 group with 1 process"]);
    succeeds(&hint(desk, "run {g}-rt -- true", 125));
    // by each of its names: what systemd would be given is not in force beside our drop-in file
    let already = format!("the layout in effect has this unit as group '{}-rt'", desk.scene.group);
    for name in ["{g}-rt", "{u}", "/system.slice/{u}"] {
        let (_, _, error) = desk.run(&format!("set {name} memory.max=96M"));
        says(&error, &["hint: set memory.max = \"96M\" of group ", &already]);
        assert!(!error.contains("systemctl set-property"), "{error}");
    }
    change_the_layout(desk, &hint(desk, "set {g}-rt memory.max=96M", 1));
    says(&desk.ends("get {g}-rt memory.max", 0), &["96M"]);
    assert_eq!(service.property("MemoryMax"), "100663296");
    desk.ends("undo", 0);
    succeeds(&format!("systemctl stop {}", service.name));
    let start = hint(desk, "get {g}-rt memory.max", 1);
    succeeds(&start);
    says(&desk.ends("get {g}-rt memory.max", 0), &["64M"]);
    desk.ends("undo", 0);
    says(&desk.ends("get {u} memory.max", 0), &["max"]);
}

/// A database's day, fault F3: `why` printed `ringfence set /system.slice/…`, which is refused, and what the refusal offered did
/// nothing beside our drop-in file.
fn advised(desk: &mut Desk) {
    let service = Service::start(desk);
    // it never ends its work
    let busy = "[Service]\nExecStart=/bin/sh -c 'while :; do :; done'\nCPUQuota=10%\n";
    fs::write(file(&service.name), busy).unwrap();
    succeeds(&format!("systemctl daemon-reload && systemctl restart {}", service.name));
    let quota = |desk: &Desk| {
        let text = desk.ends("get --values {u} cpu.max", 0);
        text.split(' ').next().unwrap().parse::<u64>().unwrap_or(u64::MAX)
    };
    let advice = |desk: &Desk| {
        let mut hint = None;
        desk.scene.until("a look in which the quota stops it", || {
            let answer = desk.json("why {u} --for 1s --json", 0);
            let causes = answer["causes"].as_array().unwrap();
            let cause = causes.iter().find(|cause| cause["kind"] == "quota");
            hint = cause.and_then(|cause| Some(cause["hint"].as_str()?.to_owned()));
            hint.is_some()
        });
        hint.unwrap()
    };
    assert_eq!(quota(desk), 10_000);
    let set = advice(desk);
    assert!(set.starts_with("systemctl set-property "), "{set}");
    succeeds(&set);
    assert!(quota(desk) > 10_000, "{set}");
    succeeds(&format!("systemctl revert {}", service.name));
    desk.write("layout.toml", "[groups.{g}-rt]\nunit = \"{u}\"\ncpu.max = \"10%\"\n");
    desk.ends("apply {d}/layout.toml", 0);
    assert_eq!(quota(desk), 10_000);
    let change = advice(desk);
    change_the_layout(desk, &change);
    assert!(quota(desk) > 10_000, "{change}");
    says(&desk.ends("status", 0), &["all as applied"]);
    desk.ends("undo 0", 0);
}

/// Does what a hint says that is a change of the layout: `set KEY = VALUE of group GROUP in FILE, then: COMMAND`.
fn change_the_layout(desk: &Desk, hint: &str) {
    let (line, rest) = hint.strip_prefix("set ").and_then(|rest| rest.split_once(" of group ")).unwrap();
    let (group, rest) = rest.split_once(" in ").unwrap();
    let (file, command) = rest.split_once(", then: ").unwrap();
    let key = line.split(" = ").next().unwrap();
    let text = fs::read_to_string(file).unwrap();
    let others = text.lines().filter(|other| !other.starts_with(&format!("{key} = ")));
    let title = format!("[groups.{group}]");
    let lines = others.flat_map(|other| [Some(other), (other == title).then_some(line)]).flatten();
    fs::write(file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    succeeds(&command.replacen("ringfence", &desk.scene.program(), 1));
}

fn rules(desk: &mut Desk) {
    let service = Service::start(desk);
    let layout = "[groups.{g}-rt]\nmatch = [{ unit = \"{u}\" }]\nmemory.max = \"64M\"\n";
    desk.write("layout.toml", layout);
    let lines = format!("[groups.{}-rt]\n  unit = \"{}\"\n", desk.scene.group, service.name);
    let names = |line: &str, status| {
        let (code, _, error) = desk.run(line);
        assert_eq!(code, status, "{line}: {error}");
        says(&error, &[&format!("belongs to {}", service.name), &lines]);
    };
    names("plan {d}/layout.toml", 0);
    names("apply {d}/layout.toml {s}", 0);
    names("status {s}", 3);
    // with the lines in place of the rule
    desk.write("layout.toml", &format!("{lines}memory.max = \"64M\"\n"));
    desk.ends("apply {d}/layout.toml {s}", 0);
    says(&desk.ends("status {s}", 0), &["all as applied"]);
    assert_eq!(service.property("MemoryMax"), "67108864");
    desk.ends("undo 0 {s}", 0);
}

/// Each ends in success, or in one command that succeeds when it is pasted.
fn eight_steps(desk: &mut Desk) {
    let service = Service::start(desk);
    says(&desk.ends("doctor", 0), &["systemd"]);
    desk.ends("create {g}", 0);
    desk.ends("set {g} memory.max=64M cpu.max=50%", 0);
    succeeds(&hint(desk, "move {g} {pid}", 1));
    assert_eq!(service.property("MemoryMax"), "67108864");
    assert_eq!(service.property("CPUQuotaPerSecUSec"), "500ms");
    let (_, _, error) = desk.run("move {g} {pid}");
    says(&error, &[&format!("unit = \"{}\"", service.name)]);
    desk.write("layout.toml", "[groups.{g}-rt]\nunit = \"{u}\"\nmemory.max = \"128M\"\npids.max = 50\n");
    says(&desk.ends("plan {d}/layout.toml", 0), &[&service.name, "memory.max"]);
    desk.ends("apply {d}/layout.toml", 0);
    says(&desk.ends("status", 0), &["all as applied"]);
    says(&desk.ends("why {u} --for 100ms", 0), &[&service.name]);
    assert_eq!(service.property("TasksMax"), "50");
    assert_ne!(service.pid, "0");
    desk.ends("undo", 0);
}

fn owners(desk: &mut Desk) {
    for (group, owner) in [
        ("/kubepods.slice/kubepods-pod1.slice", "kubelet"),
        ("/docker/0123", "the container runtime"),
        ("/system.slice/docker-0123.scope", "the container runtime"),
        ("/containerd/x", "the container runtime"),
        ("/slurm/uid_0", "Slurm"),
        ("/machine.slice/machine-qemu-1.scope", "libvirt"),
    ] {
        desk.write("layout.toml", &format!("[groups.\"{group}\"]\npids.max = 50\n"));
        for command in ["plan", "apply {s}"] {
            let (code, out, error) = desk.run(&format!("{command} {{d}}/layout.toml"));
            assert_eq!((code, out.as_str()), (2, ""), "{error}");
            says(&error, &[group, &format!("belongs to {owner}"), "hint: "]);
        }
    }
}

fn listed(desk: &mut Desk) {
    let limit = "{ memory { memory.max = 1073741824; } }";
    let groups = ["{g}", "system.slice", "system.slice/ssh.service", "init.scope"];
    let text: Vec<String> = groups.map(|group| format!("group {group} {limit}\n")).to_vec();
    desk.write("cgconfig.conf", &text.concat());
    for line in
        ["plan {d}/cgconfig.conf", "apply {d}/cgconfig.conf {s}", "cgconfigparser -l {d}/cgconfig.conf"]
    {
        let (code, _, error) = desk.run(line);
        assert_ne!(code, 0, "{line}");
        says(&error, &["'system.slice'", "'init.scope'", "its name is one of systemd's", "cgconfig.conf:2:"]);
        assert_eq!(error.matches("its name is one of systemd's").count(), 2, "one of each tree: {error}");
    }
    assert_eq!(desk.groups(), [""; 0]);
    // that of a unit is none of its names
    desk.write("layout.toml", "[groups.\"system.slice\"]\nunit = \"system.slice\"\npids.max = 9000\n");
    desk.ends("plan {d}/layout.toml", 0);
}

fn writers(desk: &mut Desk) {
    let (_, before, _) = desk.run("doctor");
    assert!(!before.contains("is in force"), "{before}");
    let program = desk.path("irqbalance");
    fs::copy(sleep_program(), &program).unwrap();
    let pid = desk.scene.start("{irqbalance}", &[program.to_str().unwrap(), "600"]);
    let seen = |desk: &Desk| desk.run("doctor").1.contains("irqbalance is in force");
    desk.scene.until("the finding", || seen(desk));
    let (_, out, _) = desk.run("doctor");
    let stops =
        out.contains(&format!("hint: kill {pid}\n")) || out.contains("hint: systemctl disable --now ");
    assert!(stops && out.contains("/etc/default/irqbalance"), "{out}");
}
