//! The proc connector: a netlink socket on which the kernel reports what happened to processes, after the fact. Under
//! a burst the kernel drops events; that is reported, so that the caller reads /proc again. Never allocates per event.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind,
        netlink::{self, SocketAddrNetlink},
        recvfrom, sendto, socket_with, sockopt,
    },
};
use socket2::SockRef;

use crate::{
    Error, Event, Kinds, filter,
    message::{self, Body, CN_IDX_PROC, Message, Request},
};

/// The least that a queued event takes of the receive buffer, in bytes: the kernel's own structure beside the data.
const LEAST_QUEUED: usize = 512;
/// Datagrams that one [`Connector::recv`] takes at most, so that a storm does not keep its caller from acting.
const AT_ONCE: usize = 4096;

/// A subscription to process events.
#[derive(Debug)]
pub struct Connector {
    socket: OwnedFd,
    kinds: Kinds,
    filters: Filters,
    buffer: usize,
    /// Datagrams that may still have been queued before the kernel said that it had dropped some.
    before_overrun: Option<usize>,
    /// The last sequence number of each CPU; stored only where nothing is filtered.
    sequences: BTreeMap<u32, u32>,
}

/// What keeps unasked events from us: what was requested at first, and what the kernel granted after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filters {
    /// The connector's own, by kind (Linux 6.6).
    pub kernel: bool,
    /// The socket's, by kind and thread: any kernel.
    pub socket: bool,
}

impl Filters {
    /// Both.
    pub const ALL: Filters = Filters { kernel: true, socket: true };
    /// None: the kinds are sorted out here. Only then sequence numbers show a loss that the socket does not know of
    /// (no memory for an event), as filtered events leave gaps too.
    pub const NONE: Filters = Filters { kernel: false, socket: false };
}

/// What one [`Connector::recv`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Events handed on.
    pub events: u64,
    /// The kernel dropped events, and all that it had queued before are handed on: what /proc shows from now on,
    /// together with the events still to come, is the whole truth again.
    pub overrun: bool,
    /// It stopped at its limit: more may be queued.
    pub more: bool,
}

impl Connector {
    /// Subscribes to `kinds`, with a receive buffer of `buffer` bytes (the kernel may give less: [`buffer`]).
    ///
    /// # Errors
    /// [`Error::Unanswered`], [`Error::Subscription`], [`Error::Call`].
    ///
    /// [`buffer`]: Connector::buffer
    pub fn open(kinds: Kinds, buffer: usize) -> Result<Connector, Error> {
        Connector::open_with(kinds, buffer, Filters::ALL)
    }

    /// As [`open`](Connector::open), with chosen filters: for tests and measurements.
    ///
    /// # Errors
    /// As of [`open`](Connector::open).
    pub fn open_with(kinds: Kinds, buffer: usize, filters: Filters) -> Result<Connector, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::CONNECTOR);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)
            .map_err(|errno| Error::Subscription { errno })?;
        let buffer = grow(&socket, buffer).map_err(Error::of("receive buffer"))?;
        let mut filters = filters;
        filters.socket =
            filters.socket && SockRef::from(&socket).attach_filter(&filter::program(kinds)).is_ok();
        bind(&socket, &SocketAddrNetlink::new(0, CN_IDX_PROC))
            .map_err(|errno| Error::Subscription { errno })?;
        let mut connector =
            Connector { socket, kinds, filters, buffer, before_overrun: None, sequences: BTreeMap::new() };
        connector.subscribe()?;
        Ok(connector)
    }

    /// The descriptor to poll: readable when [`recv`](Connector::recv) has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The receive buffer in bytes, as the kernel accounts it (twice what may be requested).
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// The filters in force.
    pub fn filters(&self) -> Filters {
        self.filters
    }

    /// Hands on what is queued, at most some thousand events, and does not wait. After a reported overrun, the
    /// caller reads /proc.
    ///
    /// # Errors
    /// [`Error::Call`]; not for an overrun.
    pub fn recv(&mut self, mut f: impl FnMut(Event)) -> Result<Received, Error> {
        let mut received = Received { more: true, ..Received::default() };
        for _ in 0..AT_ONCE {
            match self.next() {
                Ok(message) => {
                    received.overrun |= self.last_before_overrun();
                    let Some(message) = message else { continue };
                    received.overrun |= self.is_gap(&message);
                    let Body::Event(event) = message.body else { continue };
                    if self.kinds.has(&event.kind) {
                        received.events += 1;
                        f(event);
                    }
                }
                Err(Errno::AGAIN) => {
                    received.overrun |= self.before_overrun.take().is_some();
                    received.more = false;
                    break;
                }
                // nothing new is queued until the queue has been emptied, and until then nothing more is reported
                Err(Errno::NOBUFS) => self.before_overrun = Some(self.buffer / LEAST_QUEUED),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::Call { call: "recvfrom", errno }),
            }
        }
        Ok(received)
    }

    /// How many datagrams the kernel has dropped so far for want of room. Reads /proc/net/netlink: for counters, not
    /// for every event.
    ///
    /// # Errors
    /// Those of reading that file; `None` if it does not list this socket.
    pub fn dropped(&self) -> std::io::Result<Option<u64>> {
        let inode = rustix::fs::fstat(&self.socket)?.st_ino.to_string();
        let table = fs::read_to_string("/proc/thread-self/net/netlink")?;
        let row = table.lines().find(|line| line.split_ascii_whitespace().next_back() == Some(&inode));
        Ok(row.and_then(|row| row.split_ascii_whitespace().rev().nth(1)?.parse().ok()))
    }

    /// The next datagram; `None` for one that is not the kernel's or not whole.
    fn next(&self) -> Result<Option<Message>, Errno> {
        let mut buffer = [0; 256];
        let (length, _, sender) = recvfrom(&self.socket, &mut buffer, RecvFlags::empty())?;
        let sender = sender.and_then(|any| SocketAddrNetlink::try_from(any).ok());
        let of_kernel = sender.is_some_and(|address| address.pid() == 0);
        Ok(buffer.get(..length).filter(|_| of_kernel).and_then(message::decode))
    }

    /// Whether the datagram just taken is the last that could have been queued before a drop.
    fn last_before_overrun(&mut self) -> bool {
        let Some(left) = &mut self.before_overrun else { return false };
        *left = left.saturating_sub(1);
        let last = *left == 0;
        if last {
            self.before_overrun = None;
        }
        last
    }

    fn is_gap(&mut self, message: &Message) -> bool {
        if self.filters != Filters::NONE {
            return false;
        }
        let last = self.sequences.insert(message.cpu, message.seq);
        last.is_some_and(|last| message.seq != last.wrapping_add(1))
    }

    /// Asks by kind where the kernel knows that, else for all.
    fn subscribe(&mut self) -> Result<(), Error> {
        // A kernel that knows kinds answers this, as all of them include the answer's; an older one ignores it.
        self.filters.kernel = self.filters.kernel && self.request(Request::ListenTo(Request::ALL))?;
        if self.filters.kernel {
            // sent without asking for an ACK: the filter would drop it
            self.send(Request::ListenTo(self.kinds.bits), 0)
        } else if self.request(Request::Listen)? {
            Ok(())
        } else {
            Err(Error::Unanswered)
        }
    }

    /// Whether the kernel agreed. It answers before the request returns; what else happens until then is dropped.
    fn request(&mut self, request: Request) -> Result<bool, Error> {
        let own = std::process::id();
        self.send(request, own)?;
        loop {
            match self.next() {
                Ok(Some(Message { ack, body: Body::Answer { errno }, .. })) if ack == own.wrapping_add(1) => {
                    return match errno {
                        0 => Ok(true),
                        errno => Err(Error::Subscription { errno: Errno::from_raw_os_error(errno as i32) }),
                    };
                }
                Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(Error::Call { call: "recvfrom", errno }),
            }
        }
    }

    fn send(&self, request: Request, ack: u32) -> Result<(), Error> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &message::encode(request, ack), SendFlags::empty(), &kernel)
            .map(|_| ())
            .map_err(|errno| Error::Subscription { errno })
    }
}

impl Drop for Connector {
    /// Kernels before 6.6 do not count a closed socket out, and would make events for nobody.
    fn drop(&mut self) {
        let _ = self.send(Request::Ignore, 0);
    }
}

/// Requests a receive buffer and returns the size granted.
fn grow(socket: &OwnedFd, bytes: usize) -> Result<usize, Errno> {
    // beyond the system's limit only with CAP_NET_ADMIN
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?;
    sockopt::socket_recv_buffer_size(socket)
}
