//! Which datagrams a socket of ours takes, as a classic BPF program (`linux/filter.h`): the kernel then neither queues
//! the others nor wakes us for them. Builds the program; the socket's owner attaches it.

use socket2::SockFilter;

use crate::message::{Kinds, at};

/// Codes of instructions (`linux/bpf_common.h`).
mod code {
    /// A ← the word at k of the datagram, from network order.
    pub const LOAD: u16 = 0x20;
    /// X ← A.
    pub const TAX: u16 = 0x07;
    /// A = k?
    pub const EQUAL: u16 = 0x15;
    /// A = X?
    pub const EQUAL_X: u16 = 0x1d;
    /// Ends: takes k bytes of the datagram.
    pub const RETURN: u16 = 0x06;
}

/// Where the IDs of the task that an event is about begin: thread, then process.
const FIRST: u32 = at::DATA as u32;
const CHILD: u32 = FIRST + 8;

/// The program that takes answers to subscriptions and events of `kinds`, without those of threads unless requested.
pub(crate) fn program(kinds: Kinds) -> Vec<SockFilter> {
    let mut program = vec![SockFilter::new(code::LOAD, 0, 0, at::WHAT as u32)];
    // each kind: one comparison, which on a match goes on to that kind's end, and else to the next comparison
    program.extend(if_equal(0, take()));
    for what in kinds.each() {
        let ids = if what == Kinds::FORK.bits { CHILD } else { FIRST };
        let end = if kinds.threads { take() } else { take_first_thread(ids) };
        program.extend(if_equal(what, end));
    }
    program.push(drop());
    program
}

fn if_equal(what: u32, then: Vec<SockFilter>) -> Vec<SockFilter> {
    // a load is in network order: compare with what the bytes of `what` are in it
    let what = u32::from_be_bytes(what.to_ne_bytes());
    let mut program = vec![SockFilter::new(code::EQUAL, 0, then.len() as u8, what)];
    program.extend(then);
    program
}

fn take_first_thread(ids: u32) -> Vec<SockFilter> {
    vec![
        SockFilter::new(code::LOAD, 0, 0, ids),
        SockFilter::new(code::TAX, 0, 0, 0),
        SockFilter::new(code::LOAD, 0, 0, ids + 4),
        SockFilter::new(code::EQUAL_X, 0, 1, 0),
        SockFilter::new(code::RETURN, 0, 0, u32::MAX),
        drop(),
    ]
}

fn take() -> Vec<SockFilter> {
    vec![SockFilter::new(code::RETURN, 0, 0, u32::MAX)]
}

fn drop() -> SockFilter {
    SockFilter::new(code::RETURN, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::message::{self, Body, tests::datagram};

    /// What comes through a filtered socket of those kinds and threads that exist.
    fn taken(kinds: Kinds) -> Vec<(u32, bool)> {
        let (sender, receiver) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
        receiver.attach_filter(&program(kinds)).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut taken = Vec::new();
        for what in (0..32).map(|bit| 1 << bit).chain([0]) {
            for thread in [false, true] {
                let pid = if thread { 8 } else { 7 };
                let ids = if what == 1 { [1, 2, pid, 7] } else { [pid, 7, 5, 6] };
                let bytes = datagram(what, &ids);
                sender.send(&bytes).unwrap();
                let mut buffer = [0; 128];
                let mut read: &Socket = &receiver;
                if let Ok(length) = std::io::Read::read(&mut read, &mut buffer) {
                    assert_eq!(buffer[..length], bytes);
                    taken.push((what, thread));
                }
            }
        }
        taken
    }

    #[test]
    fn only_the_asked_kinds_of_processes_and_the_answers_pass() {
        let kinds = Kinds::FORK | Kinds::EXEC | Kinds::EXIT;
        let expected = [(1, false), (2, false), (0x8000_0000, false), (0, false), (0, true)];
        assert_eq!(taken(kinds), expected);
    }

    #[test]
    fn threads_pass_when_asked_for() {
        assert_eq!(
            taken(Kinds::COMM | Kinds::THREADS),
            [(0x200, false), (0x200, true), (0, false), (0, true)]
        );
    }

    #[test]
    fn the_filter_and_the_set_agree_on_every_kind() {
        let all =
            Kinds::FORK | Kinds::EXEC | Kinds::UID | Kinds::GID | Kinds::SID | Kinds::COMM | Kinds::EXIT;
        for kinds in all.each().map(|bits| Kinds { bits, threads: false }).chain([all]) {
            for (what, thread) in taken(kinds).into_iter().filter(|(what, _)| *what != 0) {
                assert!(!thread);
                let bytes = datagram(what, &[7; 4]);
                let Body::Event(event) = message::decode(&bytes).unwrap().body else { panic!("no event") };
                assert!(kinds.has(&event.kind));
            }
        }
    }
}
