//! cset's commands: the lines of its tutorial, with what they print and what the kernel then has.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::Desk,
    world::{Need, World, words},
};

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const ANYWHERE: &[Need] = &[Need::Groups, Need::Plain, Need::Cpus(2)];
const OWN: &[Need] = &[Need::Groups, Need::Plain, Need::OwnMachine, Need::Cpus(4)];

const BELOW_SYSTEMD: &[Need] =
    &[Need::Groups, Need::Systemd, Need::V2("cpuset"), Need::OwnMachine, Need::Cpus(4)];

const CASES: &[Case] = &[
    ("set makes, changes, renames, lists and removes", ANYWHERE, sets),
    ("set works in a hierarchy, by name and by path", ANYWHERE, hierarchy),
    ("proc lists and moves tasks, and starts programs", ANYWHERE, tasks),
    ("shortcuts mean what the tutorial says", ANYWHERE, shortcuts),
    ("what is wrong is said behind **>, with exit status 2", ANYWHERE, refused),
    ("shield is made, used and removed", OWN, shield),
    ("shielding by set and proc, as the tutorial has it", OWN, by_hand),
    ("sets that are no shield are not changed by shield", OWN, of_others),
    ("below systemd shield points to ringfence's own, which works", BELOW_SYSTEMD, below_systemd),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(&[&[Need::On("cpuset")], needs].concat()), world.clone());
        suite::trial(format!("cset: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// Runs a line of cset by its link; standard output and exit status.
fn run(desk: &Desk, line: &str) -> (i32, String) {
    let link = desk.path("cset");
    if !link.exists() {
        symlink(std::path::absolute(desk.scene.program()).unwrap(), &link).unwrap();
    }
    let line = desk.scene.fill(line);
    let output = Command::new(link).args(words(&line).iter().skip(1)).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!error.contains("panicked"), "{line}: {error}");
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stdout).unwrap())
}

/// What it prints, which must be this; `…` stands for anything within a line.
fn prints(desk: &Desk, line: &str, status: i32, wanted: &[&str]) {
    let (code, out) = run(desk, line);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(code, status, "{line}: {out}");
    assert_eq!(lines.len(), wanted.len(), "{line}: {out}");
    for (line, wanted) in lines.iter().zip(wanted) {
        let wanted = desk.scene.fill(wanted);
        let mut rest = *line;
        let parts: Vec<&str> = wanted.split('…').collect();
        assert!(
            rest.starts_with(parts[0]) && rest.ends_with(parts[parts.len() - 1]),
            "'{line}' is not '{wanted}'"
        );
        for part in parts {
            let at = rest.find(part).unwrap_or_else(|| panic!("'{line}' is not '{wanted}'"));
            rest = &rest[at + part.len()..];
        }
    }
}

/// The directory of a set.
fn directory(desk: &Desk, set: &str) -> PathBuf {
    let root = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"];
    let root = root.into_iter().find(|at| PathBuf::from(at).join("cgroup.procs").exists()).unwrap();
    PathBuf::from(root).join(desk.scene.fill(set))
}

fn file(desk: &Desk, set: &str, name: &str) -> String {
    fs::read_to_string(directory(desk, set).join(name)).unwrap().trim().to_owned()
}

fn has(desk: &Desk, set: &str) -> bool {
    directory(desk, set).exists()
}

/// Where a process may run, as the kernel says it.
fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

const HEADING: [&str; 3] = [
    "cset: ",
    "         Name       CPUs-X    MEMs-X Tasks Subs Path",
    " ------------ ---------- - ------- - ----- ---- ----------",
];

fn listed(desk: &Desk, line: &str, rows: &[&str]) {
    let wanted: Vec<&str> = HEADING.into_iter().chain(rows.iter().copied()).collect();
    prints(desk, line, 0, &wanted);
}

fn sets(desk: &mut Desk) {
    prints(desk, "cset set -c 0-1 -s {g}", 0, &["cset: --> created cpuset \"{g}\""]);
    assert_eq!(file(desk, "{g}", "cpuset.cpus"), "0-1");
    prints(desk, "cset set -c 1 -s {g}", 0, &["cset: --> modified cpuset \"{g}\""]);
    assert_eq!(file(desk, "{g}", "cpuset.cpus"), "1");
    listed(desk, "cset set -l -v -s {g}", &["…          1 n…n     0    0 /{g}"]);
    listed(desk, "cset set -x -v {g}", &["…          2 n…n     0    0 /{g}"]);
    prints(
        desk,
        "cset -m set -l {g}",
        0,
        &["cset: cpuset_list_start", "{g};1;n;…;n;0;0;/{g}", "cpuset_list_end"],
    );
    let (other, value) = ["cpuset.memory_migrate", "cgroup.max.descendants"]
        .into_iter()
        .zip(["1", "7"])
        .find(|(name, _)| directory(desk, "{g}").join(name).exists())
        .unwrap();
    fs::write(directory(desk, "{g}").join(other), value).unwrap();
    prints(desk, "cset set -s {g} -n {g}-rt", 0, &["cset: --> renaming \"…/{g}\" to \"{g}-rt\""]);
    assert!(has(desk, "{g}-rt") && !has(desk, "{g}"));
    assert_eq!(file(desk, "{g}-rt", other), value);
    assert_eq!(file(desk, "{g}-rt", "cpuset.cpus"), "1");
    let removed = [
        "cset: --> processing cpuset \"{g}-rt\", moving 0 tasks to parent \"/\"...",
        "cset: --> deleting cpuset \"/{g}-rt\"",
        "cset: done",
    ];
    prints(desk, "cset set -d {g}-rt", 0, &removed);
    assert!(!has(desk, "{g}-rt"));
}

fn hierarchy(desk: &mut Desk) {
    prints(desk, "cset set -c 0-1 -s {g}", 0, &["cset: --> created cpuset \"{g}\""]);
    prints(desk, "cset set -c 1 -s /{g}/sub_set_{g}", 0, &["cset: --> created cpuset \"/{g}/sub_set_{g}\""]);
    // its name is enough, as it is the only one
    prints(desk, "cset set -c 0-1 -s sub_set_{g}", 0, &["cset: --> modified cpuset \"sub_set_{g}\""]);
    assert_eq!(file(desk, "{g}/sub_set_{g}", "cpuset.cpus"), "0-1");
    listed(desk, "cset set -l -r -v {g}", &["…0-1 n…    1 /{g}", "…0-1 n…    0 /{g}/sub_set_{g}"]);
    prints(
        desk,
        "cset set -d {g}",
        2,
        &["cset: **> cpuset \"/{g}\" has subsets, delete them first, or use --recurse"],
    );
    prints(desk, "cset set -d -r {g}", 2, &["cset: **> cpuset \"/{g}\" has subsets, use --force to destroy"]);
    assert!(has(desk, "{g}"));
    assert_eq!(run(desk, "cset set -d -r --force {g}").0, 0);
    assert!(!has(desk, "{g}"));
}

fn tasks(desk: &mut Desk) {
    run(desk, "cset set -c 1 -s {g}");
    run(desk, "cset set -c 0 -s {g}-rt");
    let pid = desk.scene.start("{p}", &["sleep", "1000"]);
    let before = allowed(pid);
    let none = ["cset: \"{g}\" cpuset of CPUSPEC(1) with 0 tasks running"];
    prints(desk, "cset proc -l -s {g}", 0, &none);
    let moved =
        ["cset: moving following pidspec: {p}", "cset: moving 1 userspace tasks to /{g}", "cset: done"];
    prints(desk, "cset proc -m -p {p} -t {g}", 0, &moved);
    assert_eq!(allowed(pid), "1");
    let table = [
        "cset: \"{g}\" cpuset of CPUSPEC(1) with 1 task running",
        " USER       PID  PPID SPPr TASK NAME",
        " -------- ----- ----- ---- ---------",
        " root     … Soth sleep 1000 ",
    ];
    prints(desk, "cset proc -l -s {g}", 0, &table);
    let all = [
        "cset: moving all tasks from {g} to /{g}-rt",
        "cset: moving 1 userspace tasks to /{g}-rt",
        "cset: done",
    ];
    prints(desk, "cset proc -m -f {g} -t {g}-rt", 0, &all);
    assert_eq!(allowed(pid), "0");
    let back = ["cset: moving following pidspec: {p}", "cset: moving 1 userspace tasks to /", "cset: done"];
    prints(desk, "cset proc -m -p {p} -t root", 0, &back);
    assert_eq!(allowed(pid), before);
    let started = [
        "cset: --> last message, executed args into cpuset \"/{g}\", new pid is: …",
        "Cpus_allowed_list:\t1",
    ];
    prints(desk, "cset proc -s {g} -e grep Cpus_allowed_list /proc/self/status", 0, &started);
    prints(desk, "cset proc -s {g} -e grep -- -w Cpus_allowed_list /proc/self/status", 0, &started);
    let is_known = |user: &str| {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        users.lines().any(|line| line.split(':').next() == Some(user))
    };
    let (code, out) = run(desk, "cset proc -s {g} -e -u nobody grep Gid: /proc/self/status");
    match is_known("nobody") {
        true => assert!(code == 0 && out.contains("Gid:\t") && !out.contains("\t0"), "root's group: {out}"),
        false => assert!(code == 2 && !out.contains("Gid:"), "{out}"),
    }
    let failed = [started[0], "cset: **> [Errno 2] No such file or directory"];
    prints(desk, "cset proc -s {g} -e blah-blah", 2, &failed);
    assert_eq!(run(desk, "cset set -d {g} {g}-rt").0, 0);
}

fn shortcuts(desk: &mut Desk) {
    prints(desk, "cset se -c 0,1 {g}", 0, &["cset: --> created cpuset \"{g}\""]);
    run(desk, "cset se -c 0 {g}-rt");
    let pid = desk.scene.start("{p}", &["sleep", "1000"]);
    assert_eq!(run(desk, "cset p -m {p} {g}-rt").0, 0);
    assert_eq!(allowed(pid), "0");
    assert_eq!(run(desk, "cset p -m {g}-rt {g}").0, 0);
    assert_eq!(allowed(pid), "0-1");
    assert_eq!(run(desk, "cset proc -m -p {p} -s {g}-rt").0, 0);
    assert_eq!(allowed(pid), "0");
    listed(desk, "cset se -v {g} {g}-rt", &["…0-1 n…     0    0 /{g}", "…  0 n…     1    0 /{g}-rt"]);
    let first = |line: &str| run(desk, line).1.lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("cset p {g}-rt"), first("cset proc --list --set {g}-rt"));
    let (code, out) = run(desk, "cset p {g} -e grep Cpus_allowed_list /proc/self/status");
    assert!(code == 0 && out.ends_with("\t0-1\n"), "{out}");
    assert_eq!(run(desk, "cset set -d {g} {g}-rt").0, 0);
    prints(desk, "cset -x 0-3,8", 0, &["10f"]);
}

fn refused(desk: &mut Desk) {
    for (line, said) in [
        ("cset set -c 0-4096 -s {g}", "CPUSPEC \"0-4096\" specifies higher max(4096) than available("),
        ("cset set -c a -s {g}", "CPUSPEC \"a\" contains invalid characters: a"),
        ("cset set -c 0", "cpuset not specified"),
        ("cset set -l {g}-nosuch", "cpuset \"{g}-nosuch\" not found in cpusets"),
        ("cset set -c 0 -s root", "the root cpuset has all CPUs"),
        ("cset set -c 0 -s ../{g}", ".."),
        ("cset proc -m -p 1", "destination cpuset not specified"),
        ("cset proc -l", "cpuset(s) to list not specified"),
        ("cset proc -m -p x -t root", "pidspec=x has bad group=x"),
    ] {
        let (code, out) = run(desk, line);
        let said = desk.scene.fill(said);
        assert!(code == 2 && out.contains("cset: **> ") && out.contains(&said), "{line}: {code} {out}");
    }
    assert!(!has(desk, "{g}"));
    // nothing is left of a set that can't be made, and of those above it
    assert_eq!(run(desk, "cset set -c 0 -m 4000 -s {g}/x/y").0, 2);
    assert!(!has(desk, "{g}"));
    let (code, version) = run(desk, "cset --version");
    assert!(code == 0 && version.starts_with("cset 1.6"), "{version}");
    assert_eq!(run(desk, "cset nosuch").0, 1);
    assert_eq!(run(desk, "cset set --nosuch").0, 2);
}

fn shield(desk: &mut Desk) {
    let pid = desk.scene.start("{p}", &["sleep", "1000"]);
    let before = allowed(pid);
    prints(desk, "cset shield", 2, &["cset: **> shielding not active on system"]);
    let (code, out) = run(desk, "cset shield -c 1-3");
    assert_eq!(code, 0, "{out}");
    let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("cset: ")).collect();
    assert_eq!(lines[0], "cset: --> activating shielding:");
    assert!(out.contains("\"user\" cpuset of CPUSPEC(1-3) with 0 tasks running"), "{out}");
    assert_eq!(file(desk, "user", "cpuset.cpus"), "1-3");
    let outside = allowed(pid);
    assert!(outside.starts_with('0') && outside != before && !outside.contains("1-3"), "{outside}");
    let kept = [
        "cset: --> shielding system active with",
        "cset: \"system\" cpuset of CPUSPEC(…) with … tasks running",
        "cset: \"user\" cpuset of CPUSPEC(1-3) with 0 tasks running",
    ];
    prints(desk, "cset shield", 0, &kept);
    prints(desk, "cset shield -s", 0, &[kept[2], "cset: done"]);
    let (code, out) = run(desk, "cset shield -e grep Cpus_allowed_list /proc/self/status");
    assert!(code == 0 && out.ends_with("\t1-3\n"), "{out}");
    prints(desk, "cset shield -s -p {p}", 0, &["cset: --> shielding following pidspec: {p} ", "cset: done"]);
    assert_eq!(allowed(pid), "1-3");
    prints(desk, "cset shield -u {p}", 0, &["cset: --> unshielding following pidspec: {p} ", "cset: done"]);
    assert_eq!(allowed(pid), outside);
    let (code, out) = run(desk, "cset shield -k on");
    assert!(code == 0 && out.contains("--> activating kthread shielding"), "{out}");
    let (code, out) = run(desk, "cset shield --reset");
    assert!(
        code == 0 && out.ends_with("cset: deleting \"/user\" and \"/system\" sets\ncset: done\n"),
        "{out}"
    );
    assert!(!has(desk, "user") && !has(desk, "system"));
    assert_eq!(allowed(pid), before);
}

fn by_hand(desk: &mut Desk) {
    prints(desk, "cset set -c 0 -s system", 0, &["cset: --> created cpuset \"system\""]);
    prints(desk, "cset set -c 1-3 -s user", 0, &["cset: --> created cpuset \"user\""]);
    let pid = desk.scene.start("{p}", &["sleep", "1000"]);
    let (code, out) = run(desk, "cset proc -m -f root -t system");
    assert!(
        code == 0 && out.starts_with("cset: moving all tasks from root to /system\ncset: moving "),
        "{out}"
    );
    assert_eq!(allowed(pid), "0");
    let (code, out) = run(desk, "cset proc -k -f root -t system");
    assert!(code == 0 && out.contains("cset: --> not moving "), "{out}");
    assert_eq!(run(desk, "cset proc -m -k --force -f system -t root").0, 0);
    assert_eq!(run(desk, "cset set -d user system").0, 0);
    assert!(!has(desk, "user") && !has(desk, "system"));
}

fn of_others(desk: &mut Desk) {
    run(desk, "cset set -c 0 -s user");
    let (code, out) = run(desk, "cset shield -c 1-3");
    assert!(code == 2 && out.contains("nothing was changed"), "{out}");
    assert!(file(desk, "user", "cpuset.cpus") == "0" && !has(desk, "system"), "{out}");
    run(desk, "cset set -c 1 -s system");
    let (code, out) = run(desk, "cset shield -c 1-3");
    assert!(code == 2 && out.contains("\"/user\" has no CPUs of its own"), "{out}");
    assert_eq!(
        (file(desk, "user", "cpuset.cpus"), file(desk, "system", "cpuset.cpus")),
        ("0".into(), "1".into())
    );
    assert_eq!(run(desk, "cset set -d user system").0, 0);
    assert_eq!(run(desk, "cset shield -c 1-3 --userset /{g} --sysset /{g}-rest").0, 0);
    assert_eq!(file(desk, "{g}", "cpuset.cpus"), "1-3");
    assert_eq!(run(desk, "cset shield --reset --userset /{g} --sysset /{g}-rest").0, 0);
}

fn below_systemd(desk: &mut Desk) {
    let (code, out) = run(desk, "cset shield -c 1-3");
    assert!(code == 2 && out.contains("cset: **> ") && out.contains("hint: ringfence shield 1-3"), "{out}");
    let listed = || desk.ends("list", 0);
    assert!(!listed().lines().any(|group| matches!(group.trim(), "user" | "system")), "{}", listed());
    desk.ends("shield 1-3 {s}", 0);
    // where it is depends on the kernel, and both names are not there
    let (inside, other) = if listed().lines().any(|group| group.trim() == "shield") {
        ("shield", "/shield")
    } else {
        ("/shield", "shield")
    };
    let own = desk.ends(&format!("run {inside} -- grep Cpus_allowed_list /proc/self/status"), 0);
    assert!(own.ends_with("\t1-3\n"), "{own}");
    let (code, _, error) = desk.run(&format!("run {other} -- true"));
    assert_eq!(code, 125, "it runs outside of the shield: {error}");
    desk.ends("unshield {s}", 0);
}
