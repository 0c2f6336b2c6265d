//! What a user with a shell, a delegated subtree and an admin's rights on one group can do to others: nothing of root's
//! waits for him. He has locks of all that he can open, slow connections, floods of requests and starts, and churns his
//! subtree, all at once.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Write,
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use apply::State;
use daemon::socket::client::Client;
use rustix::fs::{FlockOperation, flock};

use crate::{
    Case, metrics_scene,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("a_user_with_a_delegated_group_delays_no_undo_start_or_scrape", stranger)]
}

/// The first argument of the attacker: STATE SOCKET ADDRESS GROUP DIRECTORY PROGRAM.
pub const STRANGER: &str = "rf-test-stranger";
/// A user that this machine need not know.
const UID: u32 = 4_000_007;

/// All of it, until it is killed.
pub fn attack(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
    let [state, socket, address, group, directory, program] = words.as_slice() else { panic!("{words:?}") };
    let address: SocketAddr = address.parse().unwrap();
    // whoever has the CPU delays everybody: that is for CPU limits, and not what this is about
    rustix::process::setpriority_process(None, 19).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| locks(Path::new(state)));
        scope.spawn(|| slow(address));
        for number in 0..3 {
            scope.spawn(move || {
                let client = Client::at(socket);
                let path = format!("/v1/groups/{group}/settings");
                for max in 100.. {
                    let body = serde_json::json!({ "pids.max": max + number });
                    let _ = client.ask::<serde_json::Value>("PATCH", &path, Some(&body));
                }
            });
        }
        scope.spawn(|| {
            let below = Path::new(directory).join("below");
            loop {
                let _ = fs::create_dir(&below).and_then(|()| fs::remove_dir(&below));
            }
        });
        loop {
            let _ = Command::new(program).stdout(Stdio::null()).stdin(Stdio::null()).status();
        }
    })
}

/// Locks whatever can be opened there, again and again: files come and go.
fn locks(state: &Path) {
    let mut held: Vec<File> = Vec::new();
    loop {
        held.clear();
        let mut open: Vec<PathBuf> = vec![state.to_owned()];
        while let Some(path) = open.pop() {
            open.extend(
                fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())),
            );
            if let Ok(file) = File::open(&path) {
                let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                held.push(file);
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Forty connections whose heads never end.
fn slow(address: SocketAddr) {
    loop {
        let mut open: Vec<TcpStream> = (0..40).filter_map(|_| TcpStream::connect(address).ok()).collect();
        for _ in 0..4 {
            open.iter_mut().for_each(|stream| _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nx: "));
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

/// The time that nine of ten stay below: the slowest may be the machine's, which others load as well.
fn most(what: &str, times: usize, one: impl Fn()) -> Duration {
    let each = (0..times).map(|_| {
        std::thread::sleep(Duration::from_millis(30));
        let start = Instant::now();
        one();
        start.elapsed()
    });
    let mut each: Vec<Duration> = each.collect();
    each.sort_unstable();
    let most = each[times * 9 / 10];
    eprintln!("{what}: nine of ten below {most:?}, the longest of {times} took {:?}", each[times - 1]);
    most
}

fn stranger() {
    let mut world = World::new();
    let (group, strict_group) = (world.group_name("his"), world.group_name("strict"));
    let program = world.copy("true", "strict");
    let text = format!(
        "[groups.{group}]\npids.max = 500\nadmin = {{ user = {UID}, group = {UID} }}\ntasks = {{ user = {UID} }}\n\
         [groups.{strict_group}]\npids.max = 5000\nmatch = [{{ process = \"{}\", strict = true }}]\n",
        program.display()
    );
    world.write("layout.toml", &text);
    let socket = world.directory.join("socket");
    let daemon = world.daemon(&[
        &format!("socket={}", socket.display()),
        "metrics=127.0.0.1:0",
        "every=200",
        "keep=repair",
    ]);
    daemon.wait_for_log("strict rules are in force", 1);
    let address = metrics_scene::address(&daemon);
    let own = world.directory.join("stranger");
    fs::copy("/proc/self/exe", &own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let state = world.directory.join("state");
    let name = kernel::GroupName::new(&group).unwrap();
    let directory = world.host.seat(&name, settings::Controller::Pids).unwrap().directory();
    let mut command = Command::new(&own);
    command.arg(STRANGER).args([&state, &socket]).arg(address.to_string()).arg(&group);
    let undo = || drop(State::open(&state).unwrap().lock(Duration::from_secs(60)).unwrap());
    let before = most("the lock of an undo without him", 50, undo);
    let attacker = Running(command.args([&directory, &program]).uid(UID).gid(UID).spawn().unwrap());
    eventually("he changes his group", || state.join(format!("changes-{UID}.jsonl")).exists());
    std::thread::sleep(Duration::from_secs(1));

    // an undo waits for the lock first
    let lock = most("the lock of an undo", 100, undo);
    let start = most("a strict start", 100, || assert!(Command::new(&program).status().unwrap().success()));
    let scrape = most("a scrape", 30, || {
        let answer = metrics_scene::get(address, "GET /metrics", "").expect("a seat for root");
        assert_eq!(answer.status, 200, "{answer:?}");
    });
    let refused = Client::at(&socket).ask::<serde_json::Value>("GET", "/v1/status", None);
    refused.unwrap();
    drop(attacker);
    // an emulated machine is slow by itself
    let slow = if crate::is_vm() { 20 } else { 1 };
    assert!(lock <= before + Duration::from_millis(100) * slow, "{lock:?}\n{}", daemon.log());
    assert!(start <= events::Limits::default().unwatched() * 2 * slow, "{start:?}");
    assert!(scrape <= Duration::from_secs(1) * slow, "{scrape:?}");
    daemon.end();
}
