//! A service that a layout divides by role: its processes are where their roles belong, over restarts, crashes and titles that change,
//! and no instance of a template is left out.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Case,
    world::{World, eventually},
};

pub const TRIALS: &[Case] = &[
    ("a_service_is_divided_by_role_over_restarts_crashes_and_new_titles", restarted),
    ("a_service_of_a_template_that_starts_later_is_divided", template),
];

/// Perl under the name of PostgreSQL's program: a first process, and two that say what they do. The last one has another role once it
/// gets a signal.
const SERVER: &str = r#"for my $title ('checkpointer', 'alice shop [local] idle') {
    next if fork;
    $0 = "postgres: 15/main: $title ";
    $SIG{USR1} = sub { $0 = 'postgres: 15/main: autovacuum worker shop' };
    sleep 1000 while 1;
}
sleep 1000 while 1;
"#;

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

struct Service {
    unit: String,
    file: PathBuf,
}

impl Service {
    fn new(world: &World, unit: String) -> Service {
        let script = world.directory.join("server");
        fs::write(&script, SERVER).unwrap();
        let program = world.directory.join("postgres");
        fs::copy("/usr/bin/perl", &program).unwrap();
        let file = Path::new("/run/systemd/system").join(&unit);
        let start = format!("ExecStart={} {}", program.display(), script.display());
        fs::write(&file, format!("[Service]\n{start}\nRestart=on-failure\nRestartSec=100ms\n")).unwrap();
        run("systemctl", &["daemon-reload"]);
        Service { unit, file }
    }

    /// The group's directory of a unit that runs.
    fn group(unit: &str) -> PathBuf {
        let path = run("systemctl", &["show", unit, "--value", "--property=ControlGroup"]);
        Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'))
    }

    /// The processes by the last word of their titles, each with the group in the service.
    fn titles(unit: &str) -> BTreeMap<String, (u32, String)> {
        let group = Service::group(unit);
        let pids = |name: &str| {
            let text = fs::read_to_string(group.join(name).join("cgroup.procs")).unwrap_or_default();
            text.lines().map(|line| line.parse().unwrap()).collect::<Vec<u32>>()
        };
        let mut titles = BTreeMap::new();
        for name in ["", "main", "maintenance", "writers"] {
            for pid in pids(name) {
                let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let words = words.replace('\0', " ");
                let last = words.split_whitespace().next_back().unwrap_or_default();
                titles.insert(last.rsplit('/').next().unwrap_or_default().to_owned(), (pid, name.to_owned()));
            }
        }
        titles
    }

    fn are(unit: &str, expected: &[(&str, &str)]) -> bool {
        let titles = Service::titles(unit);
        let is = |(title, group): &(&str, &str)| titles.get(*title).is_some_and(|(_, is)| is == group);
        titles.len() == expected.len() && expected.iter().all(is)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let all = self.unit.replace("@.", "@*.");
        let _ = Command::new("systemctl").args(["stop", &all]).status();
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_dir_all(format!("/etc/systemd/system/{}.d", self.unit));
    }
}

fn layout(group: &str, unit: &str) -> String {
    format!(
        "[groups.{group}]\nunit = \"{unit}\"\npids.max = 99\n\
         [groups.{group}.groups.maintenance]\npids.max = 9\nmatch = [{{ role = \"postgresql.autovacuum\" }}]\n\
         [groups.{group}.groups.writers]\npids.max = 8\nmatch = [{{ role = \"postgresql.checkpointer\" }}]\n"
    )
}

const PLACED: &[(&str, &str)] = &[("server", "main"), ("checkpointer", "writers"), ("idle", "main")];

fn restarted() {
    let mut world = World::new();
    let group = world.group_name("db");
    let service = Service::new(&world, format!("{group}.service"));
    let unit = service.unit.as_str();
    run("systemctl", &["start", unit]);
    world.write("layout.toml", &layout(&group, unit));
    let daemon = world.daemon(&[]);
    eventually("each process is in its role's group", || Service::are(unit, PLACED));
    let limit = |file: &str| fs::read_to_string(Service::group(unit).join(file)).unwrap_or_default();
    assert_eq!((limit("pids.max").trim(), limit("writers/pids.max").trim()), ("99", "8"), "{}", daemon.log());
    // another role
    let (session, _) = Service::titles(unit)["idle"];
    crate::world::end(session, rustix::process::Signal::USR1);
    let worker = [("server", "main"), ("checkpointer", "writers"), ("shop", "maintenance")];
    eventually("a new title is a new role", || Service::are(unit, &worker));
    run("systemctl", &["restart", unit]);
    eventually("after a restart", || Service::are(unit, PLACED));
    assert_eq!(limit("maintenance/pids.max").trim(), "9", "{}", daemon.log());
    // a crash, after which systemd starts it again
    let (first, _) = Service::titles(unit)["server"];
    crate::world::end(first, rustix::process::Signal::KILL);
    eventually("after a crash", || {
        Service::titles(unit).get("server").is_some_and(|(pid, _)| *pid != first)
            && Service::are(unit, PLACED)
    });
    run("systemctl", &["daemon-reload"]);
    assert!(Service::are(unit, PLACED), "{:?}", Service::titles(unit));
    // a reload of a layout that changes a role's limit
    world.write("layout.toml", &layout(&group, unit).replace("pids.max = 8\n", "pids.max = 7\n"));
    daemon.signal(rustix::process::Signal::HUP);
    eventually("the new limit", || limit("writers/pids.max").trim() == "7");
    assert!(Service::are(unit, PLACED), "{:?}", Service::titles(unit));
    let log = daemon.log();
    assert!(!log.contains("ERROR") && !log.contains(" WARN process "), "{log}");
    daemon.end();
}

fn template() {
    let mut world = World::new();
    let group = world.group_name("pg");
    let service = Service::new(&world, format!("{group}@.service"));
    let instance = |name: &str| service.unit.replace("@.", &format!("@{name}."));
    let (a, b) = (instance("a"), instance("b"));
    run("systemctl", &["start", &a]);
    world.write("layout.toml", &layout(&group, &format!("{group}@*.service")));
    let daemon = world.daemon(&[]);
    eventually("the one that ran", || Service::are(&a, PLACED));
    run("systemctl", &["start", &b]);
    eventually("one that came later", || Service::are(&b, PLACED));
    let limit = fs::read_to_string(Service::group(&b).join("writers/pids.max")).unwrap();
    assert_eq!(limit.trim(), "8", "{}", daemon.log());
    run("systemctl", &["stop", &a]);
    assert!(Service::are(&b, PLACED), "{:?}", Service::titles(&b));
    daemon.end();
    let _ = fs::remove_dir_all(format!("/etc/systemd/system/{a}.d"));
}
