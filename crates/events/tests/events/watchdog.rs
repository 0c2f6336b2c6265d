//! The gate in a process of its own, and what befalls it and its watchdog in a storm of execs. The cases decide by
//! whether every exec goes on; the longest one is printed.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use events::{Limits, Notice, Watchdog};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    processes::{
        Copies, GATE, SUPERVISOR, Storm, command, emulated, execs, gate_command, patient, storm, until,
    },
    trial,
};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("watchdog::a_gate_in_its_own_process_answers_each_exec", answers),
        trial("watchdog::no_exec_hangs_when_the_gate_is_killed_in_a_storm", gate_killed),
        trial("watchdog::no_exec_hangs_when_the_gate_is_stopped_in_a_storm", gate_stopped),
        trial("watchdog::no_exec_hangs_when_the_callback_hangs_in_a_storm", callback_hangs),
        trial("watchdog::no_exec_hangs_when_the_gate_holds_but_never_answers", never_answers),
        trial("watchdog::no_exec_hangs_when_the_watchdog_is_killed_in_a_storm", watchdog_killed),
        trial("watchdog::a_stopped_watchdog_does_not_hold_the_gate", watchdog_stopped),
        trial("watchdog::killing_a_stopped_watchdog_frees_execs_of_a_stopped_gate", both_stopped),
        trial("watchdog::its_end_ends_the_gate", ends),
        trial("watchdog::a_gate_that_can_t_start_is_told", not_started),
    ]
}

/// The limits that a daemon uses, or ten times them where a virtual machine is emulated.
fn hasty() -> Limits {
    let limits = Limits::default();
    if emulated() { Limits { answer: limits.answer * 10, ..limits } } else { limits }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// A watchdog of this process, with its gate.
struct Watched {
    copies: Copies,
    notices: Receiver<Notice>,
    watchdog: Watchdog,
}

impl Watched {
    fn new(limits: Limits) -> Watched {
        Watched::of(Copies::new(), limits)
    }

    fn of(copies: Copies, limits: Limits) -> Watched {
        let words = [copies.log(), copies.program.clone()];
        let (tell, notices) = channel();
        let told = move |notice| _ = tell.send(notice);
        let watchdog = Watchdog::start(limits, move || gate_command(&words), told).unwrap();
        Watched { copies, notices, watchdog }
    }

    fn notice(&self) -> Notice {
        self.notices.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    fn serving(&self) -> u32 {
        match self.notice() {
            Notice::Serving(pid) => pid,
            other => panic!("{other:?}"),
        }
    }
}

fn print(what: &str, storm: &Storm) {
    eprintln!("{what}: {} execs, the longest {:?}", storm.times.len(), storm.longest());
}

fn answers() {
    let watched = Watched::new(patient());
    let gate = watched.serving();
    let descriptors = || fs::read_dir(format!("/proc/{gate}/fd")).unwrap().count();
    let before = descriptors();
    let storm = storm(&watched.copies.program, execs(), 16, || ());
    until("a close of each executed file", || descriptors() == before);
    let (mut seen, mut pids) = (watched.copies.seen(), storm.pids.clone());
    seen.sort_unstable();
    pids.sort_unstable();
    assert_eq!(seen, pids);
    print("answered", &storm);
    let field = |name: &str| {
        let status = fs::read_to_string(format!("/proc/{gate}/status")).unwrap();
        status.lines().find(|line| line.starts_with(name)).map(str::to_owned)
    };
    eprintln!("the gate: {:?}", field("VmRSS"));
    let session = rustix::process::getsid(Pid::from_raw(gate as i32)).unwrap();
    assert_eq!(session.as_raw_nonzero().get(), gate as i32);
    assert!(watched.notices.try_recv().is_err());
}

fn gate_killed() {
    let watched = Watched::new(patient());
    let gate = watched.serving();
    let storm = storm(&watched.copies.program, execs(), 16, || signal(gate, Signal::KILL));
    print("gate killed", &storm);
    assert!(matches!(watched.notice(), Notice::Ended(pid, _) if pid == gate));
    assert_ne!(watched.serving(), gate);
    let before = watched.copies.seen().len();
    assert!(before >= execs() / 2 - 16);
    command(&watched.copies.program).status().unwrap();
    assert_eq!(watched.copies.seen().len(), before + 1);
}

fn gate_stopped() {
    let watched = Watched::new(hasty());
    let gate = watched.serving();
    let storm = storm(&watched.copies.program, execs(), 16, || signal(gate, Signal::STOP));
    print("gate stopped", &storm);
    assert!(matches!(watched.notice(), Notice::Late(pid) if pid == gate));
    assert!(matches!(watched.notice(), Notice::Ended(pid, _) if pid == gate));
    watched.serving();
}

fn callback_hangs() {
    let watched = Watched::new(hasty());
    let gate = watched.serving();
    let hang = watched.copies.log().with_extension("hang");
    let storm = storm(&watched.copies.program, execs(), 16, || fs::write(&hang, "").unwrap());
    print("callback hangs", &storm);
    assert!(matches!(watched.notice(), Notice::Late(pid) if pid == gate));
    fs::remove_file(&hang).unwrap();
}

fn never_answers() {
    let copies = Copies::new();
    let idle = copies.log().with_extension("idle");
    fs::write(&idle, "").unwrap();
    let watched = Watched::of(copies, hasty());
    let first = watched.notice();
    let Notice::Late(gate) = first else { panic!("{first:?}") };
    assert!(matches!(watched.notice(), Notice::Ended(pid, _) if pid == gate));
    let storm = storm(&watched.copies.program, 100, 16, || fs::remove_file(&idle).unwrap());
    print("never answered", &storm);
    while !matches!(watched.notice(), Notice::Serving(_)) {}
}

/// A watchdog in a process of its own; killed with the gate at the end of the case.
struct Supervisor {
    copies: Copies,
    process: Child,
    gate: u32,
}

impl Supervisor {
    fn new() -> Supervisor {
        let copies = Copies::new();
        let mut process = Command::new("/proc/self/exe")
            .args([SUPERVISOR.as_ref(), copies.log().as_os_str(), copies.program.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Supervisor { copies, process, gate: line.trim().parse().unwrap() }
    }

    /// Whether the gate's process is still there, and no other under its number.
    fn gate_is_there(&self) -> bool {
        let arguments = fs::read(format!("/proc/{}/cmdline", self.gate)).unwrap_or_default();
        arguments.split(|&byte| byte == 0).any(|word| word == GATE.as_bytes())
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn watchdog_killed() {
    let supervisor = Supervisor::new();
    assert!(supervisor.gate_is_there());
    let pid = supervisor.process.id();
    let storm = storm(&supervisor.copies.program, execs(), 16, || signal(pid, Signal::KILL));
    print("watchdog killed", &storm);
    until("the gate's end", || !supervisor.gate_is_there());
}

fn watchdog_stopped() {
    let supervisor = Supervisor::new();
    let pid = supervisor.process.id();
    let storm = storm(&supervisor.copies.program, execs(), 16, || signal(pid, Signal::STOP));
    print("watchdog stopped", &storm);
    assert_eq!(supervisor.copies.seen().len(), execs());
    signal(pid, Signal::CONT);
}

fn both_stopped() {
    let mut supervisor = Supervisor::new();
    signal(supervisor.process.id(), Signal::STOP);
    signal(supervisor.gate, Signal::STOP);
    let program = supervisor.copies.program.clone();
    let execs = std::thread::spawn(move || storm(&program, 16, 16, || ()));
    std::thread::sleep(Duration::from_secs(2));
    assert!(!execs.is_finished());
    supervisor.process.kill().unwrap();
    execs.join().unwrap();
    until("the gate's end", || !supervisor.gate_is_there());
}

fn ends() {
    let watched = Watched::new(patient());
    let gate = watched.serving();
    let Watched { copies, watchdog, .. } = watched;
    drop(watchdog);
    assert!(!fs::exists(format!("/proc/{gate}/fd")).unwrap());
    command(&copies.program).status().unwrap();
    assert!(copies.seen().is_empty());
}

fn not_started() {
    let (tell, notices) = channel();
    let told = move |notice| _ = tell.send(notice);
    let none = || Command::new("/nonexistent/rf-test-gate");
    let _watchdog = Watchdog::start(Limits::default(), none, told).unwrap();
    for _ in 0..2 {
        let notice = notices.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(matches!(notice, Notice::NotStarted(_)));
    }
}
