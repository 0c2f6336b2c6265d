//! A real PostgreSQL under the studies' rules: its postmaster and all its backends are in the group, those that were
//! there before the daemon and those that come. The cluster has a user, a directory and a Unix socket of its own and
//! nothing else: no network, no cluster of the system's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use layout::Role;

use rustix::process::Signal;
use settings::Controller;
use system::ProcessReader;

use crate::{
    Case,
    world::{Running, World, end, eventually},
};

pub const TRIALS: &[Case] = &[
    ("study_2s_rule_takes_a_postgresql_that_runs_and_every_process_to_come", by_user),
    ("study_5s_postgresql_is_confined_to_a_cpu_and_set_free_while_it_runs", confined),
    ("each_process_of_a_postgresql_is_in_the_group_of_its_role", by_role),
];

/// The newest of Debian's.
fn programs() -> PathBuf {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| {
            let version = version.unwrap();
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("there is no PostgreSQL; hint: scripts/install test")).1
}

fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// A user of the test's own, gone with it.
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl User {
    fn add(home: &Path) -> User {
        let name = format!("rf-test-pg-{}", std::process::id());
        let words = ["--system", "--user-group", "--no-create-home", "--shell", "/bin/sh", "--home-dir"];
        succeeds(Command::new("useradd").args(words).arg(home).arg(&name));
        let number = |of: &str| {
            let reply = Command::new("id").args([of, &name]).output().unwrap();
            String::from_utf8(reply.stdout).unwrap().trim().parse().unwrap()
        };
        let (uid, gid) = (number("-u"), number("-g"));
        User { name, uid, gid }
    }

    /// All processes that are his.
    fn processes(&self) -> Vec<u32> {
        let is = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|held| held.uid() == self.uid);
        ProcessReader::all().unwrap().into_iter().filter(is).collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // nobody else is this user
        for pid in self.processes() {
            end(pid, Signal::KILL);
        }
        // another suite may have the file of users locked
        let is_gone = || {
            Command::new("userdel")
                .arg(&self.name)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|end| end.success())
        };
        (0..50).any(|_| {
            is_gone() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        });
    }
}

struct Cluster {
    bin: PathBuf,
    directory: PathBuf,
    user: User,
}

/// A postmaster with its children; its end is the cluster's.
struct Postmaster(Option<Child>);

impl Cluster {
    fn new(world: &World) -> Cluster {
        let directory = world.directory.join("cluster");
        fs::create_dir(&directory).unwrap();
        let user = User::add(&directory);
        std::os::unix::fs::chown(&directory, Some(user.uid), Some(user.gid)).unwrap();
        let cluster = Cluster { bin: programs(), directory, user };
        let words = ["--no-sync", "--auth=trust", "--username=rf", "--encoding=SQL_ASCII", "--no-locale"];
        succeeds(cluster.as_user("initdb").args(words).arg("-D").arg(cluster.directory.join("data")));
        cluster
    }

    fn as_user(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.uid(self.user.uid).gid(self.user.gid).current_dir(&self.directory).env_clear();
        command
    }

    fn start(&self) -> Postmaster {
        self.start_with(&[])
    }

    fn start_with(&self, settings: &[&str]) -> Postmaster {
        let log = fs::File::create(self.directory.join("log")).unwrap();
        let mut command = self.as_user("postgres");
        command.arg("-D").arg(self.directory.join("data")).arg("-k").arg(&self.directory);
        command.args(["-h", "", "-B", "16MB", "-F"]);
        settings.iter().for_each(|setting| _ = command.args(["-c", setting]));
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut postmaster = Postmaster(Some(child.spawn().unwrap()));
        eventually("PostgreSQL accepts connections", || {
            let ended = postmaster.0.as_mut().unwrap().try_wait().unwrap();
            let log = || fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "PostgreSQL ended: {ended:?}\n{}", log());
            let mut ready = Command::new(self.bin.join("pg_isready"));
            ready
                .args(["-q", "-U", "rf", "-d", "postgres", "-h"])
                .arg(&self.directory)
                .status()
                .unwrap()
                .success()
        });
        postmaster
    }

    fn connect(&self) -> Session {
        // as root, so that only the backend is the user's
        let mut command = Command::new(self.bin.join("psql"));
        command.args(["-X", "-q", "-t", "-A", "-U", "rf", "-d", "postgres", "-h"]).arg(&self.directory);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let request = client.stdin.take().unwrap();
        let reply = BufReader::new(client.stdout.take().unwrap());
        let mut session = Session { client: Running(client), request, reply, backend: 0 };
        session.backend = session.request("select pg_backend_pid()").parse().unwrap();
        session
    }
}

impl Postmaster {
    fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// A fast shutdown, which ends all sessions.
    fn stop(mut self) {
        let mut child = self.0.take().unwrap();
        end(child.id(), Signal::INT);
        assert!(child.wait().unwrap().success());
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // an immediate shutdown: its children end with it
            end(child.id(), Signal::QUIT);
            let _ = child.wait();
        }
    }
}

/// A client's connection with its backend.
struct Session {
    client: Running,
    request: ChildStdin,
    reply: BufReader<ChildStdout>,
    backend: u32,
}

impl Session {
    fn request(&mut self, query: &str) -> String {
        writeln!(self.request, "{query};").unwrap();
        let mut line = String::new();
        self.reply.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

fn sessions(cluster: &Cluster, count: usize) -> Vec<Session> {
    (0..count).map(|_| cluster.connect()).collect()
}

fn by_user() {
    let mut world = World::new();
    let group = world.group_of(Controller::Io, "iothrottle");
    let cluster = Cluster::new(&world);
    world.write("cgrules.conf", &format!("{} blkio /{group}\n", cluster.user.name));
    let place = |pid: u32| world.place_by(Controller::Io, pid);
    let is_in = |pid: u32| place(pid).as_deref() == Some(group.as_str());
    let all = || {
        let all = cluster.user.processes();
        assert!(all.len() > 5, "postmaster, its helpers and backends: {all:?}");
        all
    };

    let postmaster = cluster.start();
    let before = sessions(&cluster, 4);
    assert!(!all().into_iter().any(is_in));
    let daemon = world.daemon(&[]);
    assert!(all().contains(&postmaster.pid()) && before.iter().all(|one| all().contains(&one.backend)));
    for pid in all() {
        assert!(is_in(pid), "at once, it is ready: {pid} is in {:?}\n{}", place(pid), daemon.log());
    }
    let after = sessions(&cluster, 8);
    for session in &after {
        assert!(is_in(session.backend), "born there: {:?}", place(session.backend));
        assert!(!is_in(session.client.pid()), "the client is another user's");
    }
    drop((before, after));
    postmaster.stop();

    // a new one, whose first children are forked while it is moved
    let postmaster = cluster.start();
    let sessions = sessions(&cluster, 8);
    eventually("the new postmaster and all that it started in the group", || all().into_iter().all(is_in));
    assert!(sessions.iter().all(|session| is_in(session.backend)) && is_in(postmaster.pid()));
    daemon.end();
    assert!(all().into_iter().all(is_in), "the daemon's end changes nothing");
}

fn confined() {
    let mut world = World::new();
    let cluster = Cluster::new(&world);
    let group = world.group_name("db");
    let allowed = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_owned()
    };
    let every = allowed(std::process::id());
    let last = every.rsplit([',', '-']).next().unwrap().to_owned();
    let layout = |cpus: &str| {
        let (user, program) = (&cluster.user.name, cluster.bin.join("postgres"));
        let text = format!(
            "[groups.{group}]\ncpuset.cpus = \"{cpus}\"\ncpuset.mems = \"0\"\nmatch = [{{ user = \"{user}\", process = \"{}\" }}]\n",
            program.display()
        );
        world.write("layout.toml", &text);
    };
    layout(&last);
    let postmaster = cluster.start();
    let mut all = sessions(&cluster, 4);
    let daemon = world.daemon(&[]);
    all.extend(sessions(&cluster, 4));
    for session in &mut all {
        assert_eq!(session.request("select count(*) from generate_series(1, 200000)"), "200000");
        assert_eq!(last_cpu(session.backend), last, "the CPU it used last\n{}", daemon.log());
    }
    for pid in cluster.user.processes() {
        let place = world.place_by(Controller::Cpuset, pid);
        assert_eq!((place.as_deref(), allowed(pid).as_str()), (Some(group.as_str()), last.as_str()));
    }
    layout(&every);
    daemon.signal(Signal::HUP);
    daemon.wait_for_log(" reloaded", 1);
    for pid in cluster.user.processes() {
        assert_eq!(allowed(pid), every);
    }
    daemon.end();
    drop(all);
    postmaster.stop();
}

/// What a process is by its title, and where it is; not of one whose title changed meanwhile.
fn role_and_place(world: &World, pid: u32) -> Option<(Role, String)> {
    let role = || {
        let executable = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Role::of(executable.as_os_str().as_encoded_bytes(), &command)
    };
    let before = role()?;
    let place = world.place(pid)?;
    (role() == Some(before)).then_some((before, place))
}

/// Sessions that come and go, workers of autovacuum, a restart, a restart of the daemon, and a title that changes late.
fn by_role() {
    let mut world = World::new();
    let cluster = Cluster::new(&world);
    let (group, user) = (world.group_name("db"), cluster.user.name.clone());
    let text = format!(
        "[groups.{group}]\npids.max = 900\nmatch = [{{ user = \"{user}\" }}]\n\
         [groups.\"{group}/sessions\"]\npids.max = 901\n\
         match = [{{ user = \"{user}\", role = [\"postgresql.postmaster\", \"postgresql.backend\", \"postgresql.parallel\"] }}]\n\
         [groups.\"{group}/maintenance\"]\npids.max = 902\n\
         match = [{{ user = \"{user}\", role = \"postgresql.autovacuum\" }}]\n\
         [groups.\"{group}/writers\"]\npids.max = 903\n\
         match = [{{ user = \"{user}\", role = [\"postgresql.checkpointer\", \"postgresql.writer\", \"postgresql.walwriter\"] }}]\n"
    );
    world.write("layout.toml", &text);
    let expected = |role: Role| match role.name() {
        "postgresql.postmaster" | "postgresql.backend" | "postgresql.parallel" => format!("{group}/sessions"),
        "postgresql.autovacuum" => format!("{group}/maintenance"),
        "postgresql.checkpointer" | "postgresql.writer" | "postgresql.walwriter" => {
            format!("{group}/writers")
        }
        _ => group.clone(),
    };
    let misplaced = || {
        let all = cluster.user.processes().into_iter();
        let wrong = all.filter_map(|pid| Some((pid, role_and_place(&world, pid)?)));
        wrong.filter(|(_, (role, place))| *place != expected(*role)).collect::<Vec<_>>()
    };
    // workers that take their time
    let slow = ["autovacuum_vacuum_cost_delay=50", "autovacuum_vacuum_cost_limit=1"];
    let postmaster =
        cluster.start_with(&[&["autovacuum_naptime=1", "max_connections=40"], &slow[..]].concat());
    let daemon = world.daemon(&[]);
    eventually("those that were there are in their groups", || misplaced().is_empty());
    let seconds = if std::env::var_os("RF_ALL").is_some() { 600 } else { 12 };
    let mut pgbench = cluster.as_user("pgbench");
    pgbench
        .args(["-n", "-C", "-c", "4", "-j", "2", "-U", "rf", "-d", "postgres", "-h"])
        .arg(&cluster.directory);
    let script = world.directory.join("one.sql");
    fs::write(&script, "select 1;\n").unwrap();
    pgbench.arg("-T").arg(seconds.to_string()).arg("-f").arg(&script);
    let mut load = Running(pgbench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut session = cluster.connect();
    session.request("create table t as select generate_series(1, 20000) as a; select 1");
    // who is in a wrong group at two looks in a row, a second apart
    let (mut before, mut looks, mut seen) = (BTreeSet::new(), 0, BTreeMap::<&str, usize>::new());
    while load.0.try_wait().unwrap().is_none() {
        session.request("with gone as (delete from t where a % 3 = 0 returning 1) select count(*) from gone");
        let wrong = misplaced();
        let now: BTreeSet<u32> = wrong.iter().map(|(pid, _)| *pid).collect();
        let stay: Vec<_> = now.intersection(&before).collect();
        assert!(stay.is_empty(), "{stay:?} of {wrong:?}\n{}", daemon.log());
        for pid in cluster.user.processes() {
            if let Some((role, _)) = role_and_place(&world, pid) {
                *seen.entry(role.name()).or_default() += 1;
            }
        }
        (before, looks) = (now, looks + 1);
        if [3, 5, 7].contains(&looks) {
            // it reads its configuration again, as all its children do
            end(postmaster.pid(), Signal::HUP);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    // the launcher, and a worker at some looks
    assert!(looks > 5 && seen["postgresql.autovacuum"] > looks, "{looks} looks: {seen:?}");
    drop(session);
    postmaster.stop();
    let postmaster = cluster.start();
    eventually("those of a new server are in their groups", || misplaced().is_empty());
    let session = cluster.connect();
    eventually("its session, too", || misplaced().is_empty() && world.place(session.backend).is_some());
    daemon.end();
    drop(session);
    postmaster.stop();
}

/// Field 39 of /proc/PID/stat.
fn last_cpu(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    after_name.split(' ').nth(36).unwrap().to_owned()
}
