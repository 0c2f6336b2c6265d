//! The proc connector's datagrams (`linux/netlink.h`, `linux/connector.h`, `linux/cn_proc.h`), decoded without
//! allocation and written for subscriptions. Never trusts a length in a datagram; does no I/O.

use std::{ops::BitOr, time::Duration};

/// The connector's index and value, and the multicast group, of process events.
pub(crate) const CN_IDX_PROC: u32 = 1;
const CN_VAL_PROC: u32 = 1;
const NLMSG_DONE: u16 = 3;

/// Where a datagram's parts begin, in bytes.
pub(crate) mod at {
    pub const CN: usize = 16;
    pub const EVENT: usize = CN + 20;
    /// `proc_event.what`.
    pub const WHAT: usize = EVENT;
    pub const DATA: usize = EVENT + 16;
}

/// What happened to one process (or thread, if requested).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When: time on `CLOCK_MONOTONIC`, to nanoseconds.
    pub at: Duration,
    /// What.
    pub kind: Kind,
}

/// The kinds of events, with the IDs of tasks in the first PID namespace. `tgid` is the process, `pid` the thread;
/// they are equal for a process's first thread, and only such events come unless [`Kinds::THREADS`] is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A task was born.
    #[allow(missing_docs, reason = "said above")]
    Fork { parent_pid: u32, parent_tgid: u32, child_pid: u32, child_tgid: u32 },
    /// A process has become another program.
    #[allow(missing_docs, reason = "said above")]
    Exec { pid: u32, tgid: u32 },
    /// A task's user IDs changed.
    #[allow(missing_docs, reason = "said above")]
    Uid { pid: u32, tgid: u32, ruid: u32, euid: u32 },
    /// A task's group IDs changed.
    #[allow(missing_docs, reason = "said above")]
    Gid { pid: u32, tgid: u32, rgid: u32, egid: u32 },
    /// A process began a session.
    #[allow(missing_docs, reason = "said above")]
    Sid { pid: u32, tgid: u32 },
    /// A task was renamed. An exec renames too, but is not reported as this.
    #[allow(missing_docs, reason = "said above")]
    Comm { pid: u32, tgid: u32, name: Name },
    /// A task ended; `code` as in wait(2). Other threads may outlive a process's first.
    #[allow(missing_docs, reason = "said above")]
    Exit { pid: u32, tgid: u32, code: u32 },
}

/// A task's name: at most 15 bytes, in no particular encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name([u8; 16]);

impl Name {
    /// The bytes, without NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// A set of kinds to subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// The kernel's bits, `enum proc_cn_event`.
    pub(crate) bits: u32,
    pub(crate) threads: bool,
}

impl Kinds {
    /// [`Kind::Fork`].
    pub const FORK: Kinds = Kinds::of(1);
    /// [`Kind::Exec`].
    pub const EXEC: Kinds = Kinds::of(2);
    /// [`Kind::Uid`].
    pub const UID: Kinds = Kinds::of(4);
    /// [`Kind::Gid`].
    pub const GID: Kinds = Kinds::of(0x40);
    /// [`Kind::Sid`].
    pub const SID: Kinds = Kinds::of(0x80);
    /// [`Kind::Comm`].
    pub const COMM: Kinds = Kinds::of(0x200);
    /// [`Kind::Exit`].
    pub const EXIT: Kinds = Kinds::of(0x8000_0000);
    /// The chosen kinds also of threads that are not their process's first.
    pub const THREADS: Kinds = Kinds { bits: 0, threads: true };

    const fn of(bits: u32) -> Kinds {
        Kinds { bits, threads: false }
    }

    /// The kernel's bits of all kinds, each alone.
    pub(crate) fn each(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).map(|bit| 1 << bit).filter(move |bit| self.bits & bit != 0)
    }

    /// Whether `kind` is in the set.
    pub fn has(self, kind: &Kind) -> bool {
        let (what, thread) = match *kind {
            Kind::Fork { child_pid, child_tgid, .. } => (Kinds::FORK, child_pid != child_tgid),
            Kind::Exec { pid, tgid } => (Kinds::EXEC, pid != tgid),
            Kind::Uid { pid, tgid, .. } => (Kinds::UID, pid != tgid),
            Kind::Gid { pid, tgid, .. } => (Kinds::GID, pid != tgid),
            Kind::Sid { pid, tgid } => (Kinds::SID, pid != tgid),
            Kind::Comm { pid, tgid, .. } => (Kinds::COMM, pid != tgid),
            Kind::Exit { pid, tgid, .. } => (Kinds::EXIT, pid != tgid),
        };
        self.bits & what.bits != 0 && (self.threads || !thread)
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds { bits: self.bits | other.bits, threads: self.threads || other.threads }
    }
}

/// A datagram of the proc connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    /// Counts the messages of `cpu`.
    pub seq: u32,
    pub ack: u32,
    pub cpu: u32,
    pub body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// The answer to a subscription, anyone's: an errno or 0.
    Answer {
        errno: u32,
    },
    Event(Event),
    /// A kind that nobody here asks for.
    Other,
}

/// Decodes a datagram; `None` for what is not a whole message of the proc connector.
pub(crate) fn decode(datagram: &[u8]) -> Option<Message> {
    let word = |at: usize| Some(u32::from_ne_bytes(*datagram.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u16::from_ne_bytes(*datagram.get(at..)?.first_chunk()?));
    let whole = word(0)? as usize <= datagram.len() && half(4)? == NLMSG_DONE;
    let ours = word(at::CN)? == CN_IDX_PROC && word(at::CN + 4)? == CN_VAL_PROC;
    if !whole || !ours {
        return None;
    }
    let time = *datagram.get(at::EVENT + 8..)?.first_chunk()?;
    let data = |index: usize| word(at::DATA + 4 * index);
    let kind = match Kinds::of(word(at::WHAT)?) {
        Kinds { bits: 0, .. } => None,
        Kinds::FORK => Some(Kind::Fork {
            parent_pid: data(0)?,
            parent_tgid: data(1)?,
            child_pid: data(2)?,
            child_tgid: data(3)?,
        }),
        Kinds::EXEC => Some(Kind::Exec { pid: data(0)?, tgid: data(1)? }),
        Kinds::UID => Some(Kind::Uid { pid: data(0)?, tgid: data(1)?, ruid: data(2)?, euid: data(3)? }),
        Kinds::GID => Some(Kind::Gid { pid: data(0)?, tgid: data(1)?, rgid: data(2)?, egid: data(3)? }),
        Kinds::SID => Some(Kind::Sid { pid: data(0)?, tgid: data(1)? }),
        Kinds::COMM => {
            let name = Name(*datagram.get(at::DATA + 8..)?.first_chunk()?);
            Some(Kind::Comm { pid: data(0)?, tgid: data(1)?, name })
        }
        Kinds::EXIT => Some(Kind::Exit { pid: data(0)?, tgid: data(1)?, code: data(2)? }),
        _ => return message(&word, Body::Other),
    };
    let body = match kind {
        None => Body::Answer { errno: data(0)? },
        Some(kind) => Body::Event(Event { at: Duration::from_nanos(u64::from_ne_bytes(time)), kind }),
    };
    message(&word, body)
}

fn message(word: &impl Fn(usize) -> Option<u32>, body: Body) -> Option<Message> {
    Some(Message { seq: word(at::CN + 8)?, ack: word(at::CN + 12)?, cpu: word(at::EVENT + 4)?, body })
}

/// A change of the subscription.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// All events; understood by every kernel.
    Listen,
    /// The events of these bits; understood since Linux 6.6, ignored without an answer before.
    ListenTo(u32),
    /// None any more.
    Ignore,
}

impl Request {
    /// Every bit of `enum proc_cn_event`.
    pub const ALL: u32 = 0xe000_03c7;
}

/// The datagram for `ask`; the kernel's answer has the acknowledgement number `ack + 1`.
pub(crate) fn encode(request: Request, ack: u32) -> Vec<u8> {
    let (operation, mask) = match request {
        Request::Listen => (1_u32, None),
        Request::ListenTo(mask) => (1, Some(mask)),
        Request::Ignore => (2, None),
    };
    let data: Vec<u8> = [Some(operation), mask].into_iter().flatten().flat_map(u32::to_ne_bytes).collect();
    let length = (at::EVENT + data.len()) as u32;
    let mut datagram = Vec::with_capacity(length as usize);
    let mut put = |bytes: &[u8]| datagram.extend_from_slice(bytes);
    put(&length.to_ne_bytes());
    put(&NLMSG_DONE.to_ne_bytes());
    put(&[0; 2 + 4 + 4]); // flags, sequence, port: the kernel knows
    for word in [CN_IDX_PROC, CN_VAL_PROC, 0, ack] {
        put(&word.to_ne_bytes());
    }
    put(&(data.len() as u16).to_ne_bytes());
    put(&[0; 2]); // flags
    put(&data);
    datagram
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An event's datagram as the kernel writes it.
    pub(crate) fn datagram(what: u32, data: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [76, NLMSG_DONE.into(), 5, 0, CN_IDX_PROC, CN_VAL_PROC, 5, 9, 40, what, 1, 7, 0] {
            bytes.extend_from_slice(&u32::to_ne_bytes(word));
        }
        data.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
        bytes.resize(76, 0);
        bytes
    }

    fn kind(what: u32, data: &[u32]) -> Option<Kind> {
        match decode(&datagram(what, data))?.body {
            Body::Event(Event { kind, .. }) => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn each_kind_is_decoded_with_its_ids() {
        let (pid, tgid) = (4, 3);
        assert_eq!(
            kind(1, &[1, 2, 3, 4]),
            Some(Kind::Fork { parent_pid: 1, parent_tgid: 2, child_pid: 3, child_tgid: 4 })
        );
        assert_eq!(kind(2, &[4, 3]), Some(Kind::Exec { pid, tgid }));
        assert_eq!(kind(4, &[4, 3, 5, 6]), Some(Kind::Uid { pid, tgid, ruid: 5, euid: 6 }));
        assert_eq!(kind(0x40, &[4, 3, 5, 6]), Some(Kind::Gid { pid, tgid, rgid: 5, egid: 6 }));
        assert_eq!(kind(0x80, &[4, 3]), Some(Kind::Sid { pid, tgid }));
        assert_eq!(kind(0x8000_0000, &[4, 3, 256, 17]), Some(Kind::Exit { pid, tgid, code: 256 }));
        let text = u32::from_ne_bytes(*b"fd-7");
        let Some(Kind::Comm { name, .. }) = kind(0x200, &[4, 3, text]) else { panic!("no rename") };
        assert_eq!(name.as_bytes(), b"fd-7");
        let Some(Kind::Comm { name, .. }) = kind(0x200, &[4, 3, text, text, text, text]) else { panic!() };
        assert_eq!(name.as_bytes(), b"fd-7fd-7fd-7fd-7");
    }

    #[test]
    fn the_envelope_is_decoded() {
        let message = decode(&datagram(2, &[4, 3])).unwrap();
        assert_eq!((message.seq, message.ack, message.cpu), (5, 9, 1));
        let Body::Event(event) = message.body else { panic!("no event") };
        assert_eq!(event.at, Duration::from_nanos(7));
    }

    #[test]
    fn an_answer_and_an_unknown_kind_are_no_events() {
        assert_eq!(decode(&datagram(0, &[22])).unwrap().body, Body::Answer { errno: 22 });
        assert_eq!(decode(&datagram(0x100, &[1, 2, 3, 4])).unwrap().body, Body::Other);
        assert_eq!(decode(&datagram(3, &[1, 2, 3, 4])).unwrap().body, Body::Other);
    }

    #[test]
    fn a_datagram_of_another_kind_or_cut_short_is_nothing() {
        let good = datagram(1, &[1, 2, 3, 4]);
        assert!(decode(&good).is_some());
        for length in 0..good.len() {
            assert_eq!(decode(&good[..length]), None, "{length} bytes");
        }
        for (at, value) in [(0, 77), (4, 4), (at::CN, 2), (at::CN + 4, 2)] {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
            assert_eq!(decode(&bad), None, "{value} at {at}");
        }
    }

    #[test]
    fn only_a_process_s_first_thread_is_in_a_set_without_threads() {
        let fork = |child_pid| Kind::Fork { parent_pid: 1, parent_tgid: 1, child_pid, child_tgid: 5 };
        assert!(Kinds::FORK.has(&fork(5)) && !Kinds::FORK.has(&fork(6)));
        assert!((Kinds::FORK | Kinds::THREADS).has(&fork(6)));
        assert!(!(Kinds::EXEC | Kinds::EXIT).has(&fork(5)));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn garbage_in_a_whole_envelope_never_panics(
            what in any::<u32>(), data in proptest::collection::vec(any::<u32>(), 0..12), cut in 0_usize..100,
        ) {
            let bytes = datagram(what, &data);
            let _ = decode(&bytes[..cut.min(bytes.len())]);
            let _ = decode(&bytes);
        }
    }
}
