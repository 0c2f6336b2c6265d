//! Who is at the other end of a TCP connection: over loopback the user, as the kernel knows the socket
//! (sock_diag(7)); elsewhere only the address. Decides nothing.

use std::{
    cell::Cell,
    fs::File,
    io::{BufRead, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{self, SocketAddrNetlink},
        recv, sendto, socket_with,
    },
};

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A user of this machine.
    User(u32),
    /// A user of this machine, but nobody knows which: the connection is closed at its end.
    Unknown,
    /// Somebody at another machine.
    Address(IpAddr),
}

/// Looks peers up. One socket in the kernel's table costs the same whatever else is in it: a list of all sockets, read
/// for each connection, would let one user delay all others.
pub struct Peers {
    diag: Option<OwnedFd>,
    /// The kernel has found a socket: what it does not find is not there.
    works: Cell<bool>,
}

impl Peers {
    /// Nobody was looked up yet.
    pub fn open() -> Peers {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let diag = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG));
        Peers { diag: diag.ok(), works: Cell::new(false) }
    }

    /// The peer of a connection from `theirs` to `ours`.
    pub fn of(&self, theirs: SocketAddr, ours: SocketAddr) -> Peer {
        let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (theirs, ours) = (plain(theirs), plain(ours));
        if !theirs.ip().is_loopback() && theirs.ip() != ours.ip() {
            return Peer::Address(theirs.ip());
        }
        let found = self.diag.as_ref().and_then(|diag| looked_up(diag, theirs, ours).ok()).flatten();
        if found.is_some() {
            self.works.set(true);
        }
        // a kernel without sock_diag for TCP finds nothing either
        let found = if found.is_some() || self.works.get() { found } else { listed(theirs, ours) };
        found.map_or(Peer::Unknown, Peer::User)
    }
}

const REQUEST: usize = 72;
const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// The owner of the socket at `theirs` that is connected to `ours` (linux/inet_diag.h).
fn looked_up(diag: &OwnedFd, theirs: SocketAddr, ours: SocketAddr) -> Result<Option<u32>, Errno> {
    let family = if theirs.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let address = |ip: IpAddr| {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        bytes
    };
    let mut request = Vec::with_capacity(REQUEST);
    request.extend((REQUEST as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    // struct inet_diag_req_v2: the family, TCP, nothing more than the socket itself, in any state
    request.extend([family.as_raw() as u8, 6, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(theirs.port().to_be_bytes());
    request.extend(ours.port().to_be_bytes());
    request.extend(address(theirs.ip()));
    request.extend(address(ours.ip()));
    request.extend([0; 4]);
    request.extend([0xff; 8]); // INET_DIAG_NOCOOKIE
    // the kernel has answered when this returns
    sendto(diag, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 1024];
    let (length, _) = recv(diag, &mut answer, RecvFlags::DONTWAIT)?;
    Ok(owner_in(&answer[..length.min(answer.len())]))
}

/// The owner in a struct inet_diag_msg.
fn owner_in(answer: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let (state, uid, inode) = (*answer.get(17)?, number(80)?, number(84)?);
    (kind == SOCK_DIAG_BY_FAMILY && is_open(state, inode)).then_some(uid)
}

/// A closed socket has no inode, and 0 as its owner; one that listens is another.
fn is_open(state: u8, inode: u32) -> bool {
    // established, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT
    inode != 0 && matches!(state, 1 | 4 | 5 | 8)
}

/// The same out of the list of all sockets (proc_pid_net(5)).
fn listed(theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|file| File::open(file).ok());
    let mut lines = files.flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
    lines.find_map(|line| owner(&line, theirs, ours))
}

/// The owner of the socket at `theirs` that is connected to `ours`, if the line is of it.
fn owner(line: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, state, _, _, _, uid, _, inode, ..] = words.as_slice() else { return None };
    let is = |text: &str, address: SocketAddr| {
        parsed(text).is_some_and(|one| {
            one.port() == address.port() && one.ip().to_canonical() == address.ip().to_canonical()
        })
    };
    let open = is_open(u8::from_str_radix(state, 16).ok()?, inode.parse().unwrap_or(u32::MAX));
    (open && is(local, theirs) && is(remote, ours)).then(|| uid.parse().ok())?
}

/// `0100007F:2AC3`: words of the address in the machine's order of bytes.
fn parsed(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words: Vec<[u8; 4]> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<_>>()?;
    let ip = match words.as_slice() {
        [v4] => IpAddr::from(Ipv4Addr::from(*v4)),
        [a, b, c, d] => {
            let bytes: Vec<u8> = [a, b, c, d].into_iter().flatten().copied().collect();
            IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_a_connection_over_loopback_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, theirs) = listener.accept().unwrap();
            let own = rustix::process::geteuid().as_raw();
            let here = ours.local_addr().unwrap();
            let peers = Peers::open();
            assert_eq!(listed(theirs, here), Some(own), "{address}");
            assert_eq!(peers.of(theirs, here), Peer::User(own), "{address}");
            if let Some(diag) = peers.diag.as_ref().filter(|_| peers.works.get()) {
                assert_eq!(looked_up(diag, theirs, here), Ok(Some(own)), "{address}");
            }
            drop(client);
            // nobody's any more, and not root's
            assert_eq!((listed(theirs, here), peers.of(theirs, here)), (None, Peer::Unknown), "{address}");
        }
    }

    #[test]
    fn a_line_of_another_or_a_closed_socket_names_nobody() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let line = |state: &str, inode: &str| {
            format!(
                "  1: 0100007F:0050 0100007F:0051 {state} 00000000:00000000 00:00000000 00000000  1001 0 {inode} 1"
            )
        };
        if cfg!(target_endian = "little") {
            assert_eq!(owner(&line("01", "77"), at(80), at(81)), Some(1001));
            assert_eq!(owner(&line("01", "77"), at(81), at(80)), None);
            assert_eq!(owner(&line("06", "0"), at(80), at(81)), None, "TIME_WAIT");
        }
        assert_eq!(owner("  sl  local_address rem_address   st", at(80), at(81)), None);
    }

    #[test]
    fn a_peer_elsewhere_is_its_address() {
        let theirs = SocketAddr::from(([192, 0, 2, 7], 1));
        assert_eq!(
            Peers::open().of(theirs, SocketAddr::from(([192, 0, 2, 1], 2))),
            Peer::Address(theirs.ip())
        );
    }
}
