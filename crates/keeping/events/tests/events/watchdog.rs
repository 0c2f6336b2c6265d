//! The gate in a process of its own, and what befalls it and its watchdog in a storm of execs. The cases decide by
//! whether every exec goes on; the longest one is printed.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

use events::{Limits, Notice, Watchdog};
use fake::suite;
use libtest_mimic::{Completion, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    processes::{Copies, GATE, SUPERVISOR, Storm, command, execs, gate_command, patient, storm, until},
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
        trial("watchdog::execs_go_on_in_time_while_gate_and_watchdog_are_both_stopped", both_stopped),
        needs_mount(
            "watchdog::execs_go_on_in_time_while_gate_and_watchdog_are_both_frozen_on_v2",
            V2,
            both_frozen,
        ),
        needs_mount(
            "watchdog::execs_wait_while_gate_and_watchdog_are_frozen_on_v1_and_can_be_killed",
            V1,
            on_v1,
        ),
        trial("watchdog::a_lease_on_one_executable_does_not_delay_the_execs_of_another", leased),
        trial("watchdog::its_end_ends_the_gate", ends),
        trial("watchdog::a_gate_that_can_t_start_is_told", not_started),
    ]
}

/// Ten times the limits that a daemon uses: a gate on busy CPUs may answer late.
fn hasty() -> Limits {
    let limits = Limits::default();
    Limits { answer: limits.answer * 10, ..limits }
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
        Supervisor::within(Duration::from_secs(60))
    }

    fn within(within: Duration) -> Supervisor {
        let copies = Copies::new();
        let mut process = Command::new("/proc/self/exe")
            .env(crate::processes::WITHIN, within.as_millis().to_string())
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

/// How long the kernel lets a gate live that is not watched, in these cases.
const WITHIN: Duration = Duration::from_millis(1000);

/// Execs while a watchdog and its gate can't run: each goes on within twice [`WITHIN`], and nobody else's help, which comes later
/// still. What is more is the machine's, whose CPUs may be busy or emulated.
fn none_of_both_runs(prepare: impl FnOnce(u32, u32)) {
    let supervisor = Supervisor::within(WITHIN);
    prepare(supervisor.process.id(), supervisor.gate);
    let machine = Duration::from_secs(20);
    let limit = WITHIN * 2 + machine;
    let (done, is_done) = channel::<()>();
    let (gate, times) = (supervisor.gate, Duration::from_secs(10));
    // execs that nobody lets go on would wait for ever
    let rescue = std::thread::spawn(move || {
        if is_done.recv_timeout(limit + times) == Err(RecvTimeoutError::Timeout) {
            signal(gate, Signal::KILL);
        }
    });
    let storm = storm(&supervisor.copies.program, 64, 16, || ());
    drop(done);
    rescue.join().unwrap();
    print("neither runs", &storm);
    assert!(storm.longest() <= limit, "{:?}", storm.longest());
    until("the gate's end", || !supervisor.gate_is_there());
    assert!(fs::exists(format!("/proc/{}", supervisor.process.id())).unwrap(), "nobody else ended it");
}

/// Attack finding 3.
fn both_stopped() {
    none_of_both_runs(|watchdog, gate| {
        signal(watchdog, Signal::STOP);
        signal(gate, Signal::STOP);
    });
}

/// A kind of mount, and a word of its options.
const V2: [&str; 2] = ["cgroup2", ""];
const V1: [&str; 2] = ["cgroup", "freezer"];

fn mounted([kind, option]: [&str; 2]) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let has_option = option.is_empty() || fields[3].split(',').any(|word| word == option);
        (fields[2] == kind && has_option).then(|| PathBuf::from(fields[1]))
    })
}

/// A case where there is such a mount; elsewhere it is skipped by its name.
fn needs_mount(name: &'static str, mount: [&'static str; 2], case: fn()) -> Trial {
    let here = mounted(mount).is_some();
    suite::ignorable(name, move || {
        if !here {
            return Ok(Completion::ignored_with(format!("no {} hierarchy", mount.join(" "))));
        }
        case();
        Ok(Completion::Completed)
    })
}

/// A group with processes that it freezes; thawed and removed in the end.
struct Frozen {
    directory: PathBuf,
    /// The file, and what thaws.
    thaw: (&'static str, &'static str),
}

impl Frozen {
    fn new(mount: [&str; 2], [file, freeze, thaw]: [&'static str; 3], processes: [u32; 2]) -> Frozen {
        let name = format!("rf-test-events-{}-{file}", std::process::id());
        let group = Frozen { directory: mounted(mount).unwrap().join(name), thaw: (file, thaw) };
        fs::create_dir(&group.directory).unwrap();
        for pid in processes {
            fs::write(group.directory.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        fs::write(group.directory.join(file), freeze).unwrap();
        group
    }

    fn content(&self, file: &str) -> String {
        fs::read_to_string(self.directory.join(file)).unwrap()
    }

    fn thaw(&self) {
        let _ = fs::write(self.directory.join(self.thaw.0), self.thaw.1);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
        for _ in 0..500 {
            if fs::remove_dir(&self.directory).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Attack finding 3, in a group of cgroup v2 that is frozen with both in it.
fn both_frozen() {
    let mut group = None;
    none_of_both_runs(|watchdog, gate| {
        let frozen = group.insert(Frozen::new(V2, ["cgroup.freeze", "1", "0"], [watchdog, gate]));
        until("both are frozen", || frozen.content("cgroup.events").contains("frozen 1"));
    });
}

/// The one way that the kernel leaves: nothing ends a process in a group that v1's freezer froze. An exec waits for the
/// thaw, and can be killed meanwhile. A kernel that ends such a gate fails this: then docs/rules.md promises too little.
fn on_v1() {
    let mut group = None;
    let supervisor = Supervisor::within(WITHIN);
    let words = ["freezer.state", "FROZEN", "THAWED"];
    let group: &Frozen = group.insert(Frozen::new(V1, words, [supervisor.process.id(), supervisor.gate]));
    // also when this fails: the supervisor can't be ended before
    struct Thaw<'g>(&'g Frozen);
    impl Drop for Thaw<'_> {
        fn drop(&mut self) {
            self.0.thaw();
        }
    }
    let _thaw = Thaw(group);
    until("both are frozen", || group.content("freezer.state").trim() == "FROZEN");
    let start = || {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "exec \"$0\""])
            .arg(&supervisor.copies.program)
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    };
    let [mut first, mut second] = [start(), start()];
    std::thread::sleep(WITHIN * 3);
    let waits = |child: &mut Child| child.try_wait().unwrap().is_none();
    assert!(waits(&mut first) && waits(&mut second) && supervisor.gate_is_there());
    first.kill().unwrap();
    until("a waiting exec is killed", || !waits(&mut first));
    assert!(waits(&mut second));
    group.thaw();
    assert!(second.wait().unwrap().success());
    until("the gate's end", || !supervisor.gate_is_there());
}

/// A user may have a lease on his file, and whoever opens it waits for him (fcntl(2)).
fn leased() {
    let copies = Copies::new();
    let own = copies.directory.path().join("leased");
    fs::copy(&copies.program, &own).unwrap();
    // fcntl(2) with a lease has no safe form, and Perl is on every Debian
    let script = "$SIG{IO} = 'IGNORE'; $| = 1; open(my $f, '<', $ARGV[0]) or die $!;
        fcntl($f, 1024, 1) or die $!; print \"leased\\n\"; sleep 600";
    let mut holder = Command::new("perl");
    let mut holder = holder.args(["-e", script]).arg(&own).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "leased\n");
    let (tell, notices) = channel();
    let words = [copies.log(), copies.program.clone(), own.clone()];
    let told = move |notice| _ = tell.send(notice);
    let watchdog = Watchdog::start(hasty(), move || gate_command(&words), told).unwrap();
    let first = notices.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(matches!(first, Notice::Serving(_)), "{first:?}");
    for _ in 0..5 {
        let refused = command(&own).status();
        assert!(refused.is_err(), "{refused:?}");
        assert!(command(&copies.program).status().unwrap().success());
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(command(&own).status().unwrap().success(), "without the lease");
    assert_eq!(copies.seen().len(), 6);
    drop(watchdog);
    let rest: Vec<Notice> = notices.try_iter().collect();
    assert!(matches!(rest.as_slice(), [Notice::Stopped(..)]), "one gate all the time: {rest:?}");
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
