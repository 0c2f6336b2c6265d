//! The proc connector on this kernel.

use std::{os::unix::process::CommandExt, process::Command};

use events::{Connector, Event, Filters, Kind, Kinds, Received};
use libtest_mimic::Trial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    processes::{CHILD, Copies, command, storm, this},
    trial,
};

const BUFFER: usize = 1 << 20;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("connector::a_child_s_birth_exec_and_end_are_told", birth_exec_and_end),
        trial("connector::changes_of_identity_session_and_name_are_told", changes),
        trial("connector::threads_are_told_only_when_asked_for", threads),
        trial("connector::each_filter_alone_keeps_unasked_kinds_away", filters),
        trial("connector::the_kernel_s_filter_is_used_where_it_exists", kernel_filter),
        trial("connector::another_subscription_does_not_disturb_the_first", two),
        trial("connector::an_overrun_is_told_and_later_events_come_again", overrun),
        trial("connector::sequence_gaps_tell_a_loss_where_nothing_is_filtered", gaps),
    ]
}

fn all() -> Kinds {
    Kinds::FORK | Kinds::EXEC | Kinds::UID | Kinds::GID | Kinds::SID | Kinds::COMM | Kinds::EXIT
}

/// All that is queued, and what is told beside it.
fn drain(connector: &mut Connector) -> (Vec<Event>, Received) {
    let (mut events, mut total) = (Vec::new(), Received::default());
    loop {
        let received = connector.recv(|event| events.push(event)).unwrap();
        total.events += received.events;
        total.overrun |= received.overrun;
        if received.events == 0 {
            return (events, total);
        }
    }
}

fn kinds(connector: &mut Connector) -> Vec<Kind> {
    let (events, received) = drain(connector);
    assert!(!received.overrun && received.events == events.len() as u64);
    events.into_iter().map(|event| event.kind).collect()
}

/// The events of one process among `kinds`.
fn of(kinds: &[Kind], process: u32) -> Vec<Kind> {
    let about = |kind: &&Kind| match **kind {
        Kind::Fork { child_tgid: tgid, .. }
        | Kind::Exec { tgid, .. }
        | Kind::Uid { tgid, .. }
        | Kind::Gid { tgid, .. }
        | Kind::Sid { tgid, .. }
        | Kind::Comm { tgid, .. }
        | Kind::Exit { tgid, .. } => tgid == process,
    };
    kinds.iter().filter(about).copied().collect()
}

/// Runs a command to its end; its process ID.
fn run(command: &mut Command) -> u32 {
    let mut child = command.spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn birth_exec_and_end() {
    let copies = Copies::new();
    let mut connector = Connector::open(Kinds::FORK | Kinds::EXEC | Kinds::EXIT, BUFFER).unwrap();
    assert!(connector.buffer() >= BUFFER);
    let pid = run(&mut command(&copies.program));
    let mut poll_fd = [PollFd::from_borrowed_fd(connector.fd(), PollFlags::IN)];
    assert_eq!(poll(&mut poll_fd, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1));
    let (events, _) = drain(&mut connector);
    assert!(events.windows(2).any(|pair| pair[0].at < pair[1].at));
    let told: Vec<Kind> = events.iter().map(|event| event.kind).collect();
    let [birth, exec, end] = of(&told, pid)[..] else { panic!("{told:?}") };
    let Kind::Fork { parent_tgid, child_pid, .. } = birth else { panic!("{birth:?}") };
    assert_eq!((parent_tgid, child_pid), (std::process::id(), pid));
    assert_eq!(exec, Kind::Exec { pid, tgid: pid });
    assert_eq!(end, Kind::Exit { pid, tgid: pid, code: 0 });
    assert_eq!(connector.dropped().unwrap(), Some(0));
    let code = {
        let pid = run(command(&copies.program).arg0("false").env("LC_ALL", "C").arg("--"));
        let told = kinds(&mut connector);
        of(&told, pid).last().copied()
    };
    assert!(matches!(code, Some(Kind::Exit { .. })));
}

fn changes() {
    let copies = Copies::new();
    std::fs::set_permissions(copies.directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let wanted = Kinds::UID | Kinds::GID | Kinds::SID | Kinds::COMM;
    let mut connector = Connector::open(wanted, BUFFER).unwrap();
    let pid = run(command(&copies.program).uid(4001).gid(4002));
    let (tgid, told) = (pid, kinds(&mut connector));
    let told = of(&told, pid);
    assert!(told.contains(&Kind::Uid { pid, tgid, ruid: 4001, euid: 4001 }), "{told:?}");
    assert!(told.contains(&Kind::Gid { pid, tgid, rgid: 4002, egid: 4002 }), "{told:?}");
    let pid = run(&mut this("session"));
    let told = kinds(&mut connector);
    assert_eq!(of(&told, pid), [Kind::Sid { pid, tgid: pid }]);
    let pid = run(&mut this("name"));
    let told = kinds(&mut connector);
    let told = of(&told, pid);
    let [Kind::Comm { name, .. }] = told[..] else { panic!("{told:?}") };
    assert_eq!(name.as_bytes(), b"rf-test-name");
}

fn threads() {
    for (requested, births) in [(Kinds::FORK, 1), (Kinds::FORK | Kinds::THREADS, 2)] {
        for filters in [Filters::ALL, Filters::NONE] {
            let mut connector = Connector::open_with(requested, BUFFER, filters).unwrap();
            let pid = run(&mut this("thread"));
            let told = kinds(&mut connector);
            assert_eq!(of(&told, pid).len(), births, "{requested:?} {filters:?}");
        }
    }
}

fn filters() {
    let copies = Copies::new();
    for kernel in [false, true] {
        for socket in [false, true] {
            let filters = Filters { kernel, socket };
            let mut connector = Connector::open_with(Kinds::EXEC, BUFFER, filters).unwrap();
            assert_eq!(connector.filters().socket, socket);
            let pid = run(&mut command(&copies.program));
            let told = kinds(&mut connector);
            assert!(told.iter().all(|kind| matches!(kind, Kind::Exec { .. })), "{filters:?}: {told:?}");
            assert_eq!(of(&told, pid), [Kind::Exec { pid, tgid: pid }], "{filters:?}");
        }
    }
}

/// With the kernel's filter alone, events of other kinds do not even wake.
fn kernel_filter() {
    let version = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    let filters = Filters { kernel: true, socket: false };
    let connector = Connector::open_with(Kinds::SID, BUFFER, filters).unwrap();
    assert_eq!(connector.filters().kernel, version >= (6, 6));
    run(&mut this("thread"));
    let mut poll_fd = [PollFd::from_borrowed_fd(connector.fd(), PollFlags::IN)];
    let woken = poll(&mut poll_fd, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    assert_eq!(woken == 0, version >= (6, 6));
}

fn two() {
    let copies = Copies::new();
    let mut first = Connector::open(Kinds::EXEC, BUFFER).unwrap();
    let mut second = Connector::open(Kinds::EXIT, BUFFER).unwrap();
    let pid = run(&mut command(&copies.program));
    let (told_first, told_second) = (kinds(&mut first), kinds(&mut second));
    assert_eq!(of(&told_first, pid), [Kind::Exec { pid, tgid: pid }]);
    assert_eq!(of(&told_second, pid), [Kind::Exit { pid, tgid: pid, code: 0 }]);
    drop(second);
    let pid = run(&mut command(&copies.program));
    let told = kinds(&mut first);
    assert_eq!(of(&told, pid), [Kind::Exec { pid, tgid: pid }]);
}

fn overrun() {
    let copies = Copies::new();
    let mut connector = Connector::open(Kinds::EXEC | Kinds::EXIT, 4096).unwrap();
    for round in 1..=2 {
        storm(&copies.program, 100, 4, || ());
        let (events, received) = drain(&mut connector);
        assert!(received.overrun && events.len() < 200, "{round}: {received:?}");
        let dropped = connector.dropped().unwrap().unwrap();
        assert!(dropped > 0 && dropped as usize + events.len() >= 200 * round.min(1), "{dropped} dropped");
        let pid = run(&mut command(&copies.program));
        let told = kinds(&mut connector);
        assert_eq!(of(&told, pid).len(), 2, "after overrun {round}");
    }
}

fn gaps() {
    let copies = Copies::new();
    let mut connector = Connector::open_with(all() | Kinds::THREADS, BUFFER, Filters::NONE).unwrap();
    storm(&copies.program, 100, 4, || ());
    let (events, received) = drain(&mut connector);
    assert!(!received.overrun && events.len() >= 300);
    // what nobody requested counts as well: a tracer's event is no gap
    run(Command::new("/proc/self/exe").args([CHILD, "session"]));
    assert!(!drain(&mut connector).1.overrun);
}
