//! Where nothing happens the daemon sleeps, and is small.

use std::{fs, time::Duration};

use daemon::socket::client::Client;

use crate::{
    Case,
    world::{World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![("where_nothing_happens_it_sleeps_and_is_small", idle)]
}

/// In KiB: what is its own. The program's text is shared, and twice as long without optimisation.
const LARGEST: u64 = 15 << 10;
/// How long is looked: longer than any period that a thread might wake in by mistake.
const LOOK: Duration = Duration::from_secs(10);

fn idle() {
    let mut world = World::new();
    let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
    world.write(
        "layout.toml",
        &format!("[groups.{group}]\npids.max = 500\nmatch = [{{ process = \"{}\" }}]\n", program.display()),
    );
    let socket = world.directory.join("socket");
    let daemon = world.daemon(&[&format!("socket={}", socket.display())]);
    let client = Client::at(&socket);
    // others' processes go on meanwhile: each event may wake it once
    let events = || client.counters().unwrap()["events"];
    for task in switches(daemon.pid()).keys() {
        eventually(&format!("thread {task} sleeps without an end"), || sleeps(daemon.pid(), task));
    }
    let (events_before, before) = (events(), switches(daemon.pid()));
    std::thread::sleep(LOOK);
    let (after, events) = (switches(daemon.pid()), events() - events_before);
    let woken: u64 = after.iter().map(|(task, now)| now - before.get(task).copied().unwrap_or(0)).sum();
    let resident = field(daemon.pid(), "VmRSS");
    let own = field(daemon.pid(), "RssAnon");
    eprintln!("{woken} wake-ups with {events} events in {LOOK:?}; {resident} KiB resident, {own} its own");
    // the questions themselves, of which the first one's threads may end within the time
    assert!(woken <= events + 30, "{woken} wake-ups with {events} events");
    let counted = if cfg!(debug_assertions) { own } else { resident };
    assert!(counted < LARGEST, "{counted} KiB");
    daemon.end();
}

fn field(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Does the thread wait until something happens, however long that takes? What it waits in and how long is told by
/// proc(5), `/proc/PID/syscall`, for one that is asleep.
fn sleeps(pid: u32, task: &str) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{task}/syscall")) else {
        return true; // one of the threads that end when there is nothing to do
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (ppoll, epoll) =
        if cfg!(target_arch = "x86_64") { ("271", ["232", "281"]) } else { ("73", ["22", "22"]) };
    match words.as_slice() {
        [call, _, _, time, ..] if *call == ppoll => *time == "0x0",
        // an int
        [call, _, _, _, time, ..] if epoll.contains(call) => time.ends_with("ffffffff"),
        _ => false,
    }
}

/// How often each thread went to sleep by itself.
fn switches(pid: u32) -> std::collections::BTreeMap<String, u64> {
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((task.file_name().into_string().ok()?, line.trim().parse().ok()?))
    };
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().filter_map(|task| of(task.unwrap())).collect()
}
