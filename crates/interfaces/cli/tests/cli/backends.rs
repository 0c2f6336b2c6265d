//! Study S5's proof, with a PostgreSQL of the test's own: one command tells on which CPU each backend ran last, before and
//! after the group's CPUs are changed while they work. The cluster has a user, a directory and a Unix socket of its own.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    watching::Running,
    world::{Need, Scene, World},
};

/// Backends that work: two for each of two CPUs.
const BACKENDS: usize = 4;

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let lacks = world.lacks(&[Need::On("cpuset"), Need::Cpus(2)]);
    let postgresql = Path::new("/usr/lib/postgresql").is_dir();
    let lacks = lacks.or_else(|| (!postgresql).then(|| "PostgreSQL".to_owned()));
    let world = world.clone();
    let name =
        "watching: study 5's backends run on one CPU, and on two after a live change, told by one command";
    vec![suite::trial(name, lacks, move || spread(&mut Scene::new(&world, "backends")))]
}

fn spread(scene: &mut Scene) {
    scene.ok("create {g}");
    scene.ok("set {g} cpuset.cpus=0 cpuset.mems=0");
    let cluster = Cluster::start(scene);
    let _sessions: Vec<Client> = (0..BACKENDS).map(|_| cluster.work()).collect();

    let mut watch = Running::start(scene, "watch --tasks {g} --interval 200ms --json");
    let before = watch.until("all backends at work on CPU 0", |picture| {
        let at_work = at_work(picture);
        at_work.len() == BACKENDS && at_work.iter().all(|task| task["last_cpu"] == 0)
    });
    scene.ok("set {g} cpuset.cpus=0-1");
    // each picture lists the CPUs of earlier looks
    let on_second = |picture: &Value| of_clients(picture).into_iter().find(|task| task["last_cpu"] == 1);
    let moved = watch.until("a backend on CPU 1", |picture| on_second(picture).is_some());
    let moved = on_second(&moved).unwrap();
    let trail: Vec<u64> = moved["cpus_before"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(trail.contains(&0) && trail.iter().all(|cpu| *cpu < 2), "{moved}");
    let after = watch.until("backends at work on both CPUs", |picture| {
        let at_work = at_work(picture);
        let cpus: BTreeSet<u64> = at_work.iter().filter_map(|task| task["last_cpu"].as_u64()).collect();
        at_work.len() == BACKENDS && cpus == BTreeSet::from([0, 1])
    });
    watch.signal(Signal::INT);
    watch.done();

    let pids = |picture| at_work(picture).iter().map(|task| task["pid"].as_u64()).collect::<BTreeSet<_>>();
    assert_eq!(pids(&before), pids(&after), "the same backends");
}

/// The backends of the clients: PostgreSQL's own processes work, too, now and then.
fn of_clients(picture: &Value) -> Vec<Value> {
    let serves_client = |task: &&Value| {
        let title = fs::read_to_string(format!("/proc/{}/cmdline", task["pid"])).unwrap_or_default();
        title.starts_with("postgres: rf postgres")
    };
    picture["tasks"].as_array().unwrap().iter().filter(serves_client).cloned().collect()
}

/// Those that ran since the look before.
fn at_work(picture: &Value) -> Vec<Value> {
    let is_at_work = |task: &Value| task["state"] == "R" && task["running"].as_f64().is_some();
    of_clients(picture).into_iter().filter(is_at_work).collect()
}

/// A cluster whose processes are all in the scene's group; gone when dropped.
struct Cluster {
    postmaster: Child,
    bin: PathBuf,
    directory: TempDir,
    user: u32,
}

impl Cluster {
    fn start(scene: &mut Scene) -> Cluster {
        let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .unwrap()
            .map(|version| version.unwrap().path().join("bin"))
            .filter(|bin| bin.join("initdb").exists())
            .collect();
        found.sort();
        let bin = found.pop().unwrap_or_else(|| panic!("there is no PostgreSQL; hint: scripts/install test"));
        // PostgreSQL refuses root, and asks for its user's name
        let user = fs::read_to_string("/etc/passwd").unwrap();
        let user = user.lines().find_map(|line| line.strip_prefix("postgres:x:"));
        let user: u32 = user.and_then(|rest| rest.split(':').next()?.parse().ok()).unwrap();
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(directory.path(), Some(user), None).unwrap();
        let data = directory.path().join("data");
        let mut initdb = as_user(&bin.join("initdb"), user);
        let words = ["--no-sync", "--auth=trust", "--username=rf", "--encoding=SQL_ASCII", "--no-locale"];
        let made = initdb.args(words).arg("-D").arg(&data).output().unwrap();
        assert!(made.status.success(), "{made:?}");

        let log = fs::File::create(directory.path().join("log")).unwrap();
        // it waits until it is in the group, where its children are born
        let mut command = as_user("sh".as_ref(), user);
        command.args(["-c", "read line && exec \"$@\"", "sh"]).arg(bin.join("postgres")).arg("-D").arg(&data);
        command.arg("-k").arg(directory.path()).args(["-h", "", "-B", "16MB", "-F", "-c", "jit=off"]);
        command.args(["-c", "max_parallel_workers_per_gather=0"]);
        let child = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let mut cluster = Cluster { postmaster: child.unwrap(), bin, directory, user };
        scene.name("{postmaster}", &cluster.postmaster.id().to_string());
        scene.ok("move {g} {postmaster}");
        let input = cluster.postmaster.stdin.take().unwrap();
        std::io::Write::write_all(&mut &input, b"go\n").unwrap();
        scene.until("PostgreSQL", || {
            let ended = cluster.postmaster.try_wait().unwrap();
            let log = || fs::read_to_string(cluster.directory.path().join("log")).unwrap_or_default();
            assert!(ended.is_none(), "PostgreSQL ended: {ended:?}\n{}", log());
            cluster.client("pg_isready", &["-q"]).status().unwrap().success()
        });
        cluster
    }

    fn client(&self, program: &str, words: &[&str]) -> Command {
        let mut command = as_user(&self.bin.join(program), self.user);
        command.args(words).args(["-U", "rf", "-d", "postgres", "-h"]).arg(self.directory.path());
        command
    }

    /// A backend that computes until its client or the postmaster ends.
    fn work(&self) -> Client {
        let forever = "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b";
        let mut command = self.client("psql", &["-X", "-q", "-c", forever]);
        Client(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

fn as_user(program: &Path, user: u32) -> Command {
    let mut command = Command::new(program);
    command.uid(user).current_dir("/").env("LC_ALL", "C");
    command
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // an immediate shutdown: all backends end with it
        let _ = Pid::from_raw(self.postmaster.id().cast_signed()).map(|pid| kill_process(pid, Signal::QUIT));
        let _ = self.postmaster.wait();
    }
}

/// A client; it ends with its backend, or when dropped.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
