//! CPUs, memory and block devices that come and go, as the kernel and after it udev report (netlink(7),
//! NETLINK_KOBJECT_UEVENT). Says only that a division may no longer fit; the receiver then reads the machine again.
//! Nothing that a message says is used for more than that.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind,
        netlink::{self, SocketAddrNetlink},
        recv, socket_with,
    },
};

use crate::Error;

/// The kernel's messages, and udev's, which come once a device has its names in /dev.
const GROUPS: u32 = 0b11;
/// How udev's messages begin; the properties' place is in the header after it (`libudev-monitor.c`).
const UDEV: &[u8] = b"libudev\0";
/// Messages that one look takes at most.
const AT_ONCE: usize = 1024;

/// The subscription.
#[derive(Debug)]
pub(crate) struct Uevents(OwnedFd);

impl Uevents {
    /// Subscribes.
    pub fn open() -> Result<Uevents, Error> {
        let failed = |errno: Errno| Error::of("events of devices")(errno.into());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::KOBJECT_UEVENT);
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol).map_err(failed)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS)).map_err(failed)?;
        Ok(Uevents(socket))
    }

    /// Readable when there is something to take.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes what is queued, and says whether the division may depend on any of it; so it may on what was lost.
    pub fn take(&mut self) -> bool {
        let mut touched = false;
        let mut buffer = [0; 8192];
        for _ in 0..AT_ONCE {
            match recv(&self.0, &mut buffer, RecvFlags::empty()) {
                Ok((bytes, _)) => touched |= touches(&buffer[..bytes]),
                Err(Errno::NOBUFS) => touched = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        touched
    }
}

/// Is it about what divisions are made of?
fn touches(message: &[u8]) -> bool {
    let (mut action, mut subsystem, mut name) = (&b""[..], &b""[..], &b""[..]);
    for property in properties(message).split(|byte| *byte == 0) {
        match property.iter().position(|byte| *byte == b'=').map(|at| property.split_at(at)) {
            Some((b"ACTION", value)) => action = &value[1..],
            Some((b"SUBSYSTEM", value)) => subsystem = &value[1..],
            Some((b"DEVNAME", value)) => name = &value[1..],
            _ => {}
        }
    }
    match subsystem {
        b"cpu" | b"memory" | b"node" => matches!(action, b"online" | b"offline" | b"add" | b"remove"),
        b"block" if action == b"change" => is_made_after_its_name(name),
        b"block" => matches!(action, b"add" | b"remove"),
        _ => false,
    }
}

/// Of the device mapper's and of md's devices, which can be used only after a change: others are "changed" whenever
/// somebody has written to them.
fn is_made_after_its_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"/dev/").unwrap_or(name);
    name.starts_with(b"dm-") || name.starts_with(b"md")
}

fn properties(message: &[u8]) -> &[u8] {
    if !message.starts_with(UDEV) {
        return message;
    }
    let place = message.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
    let place = place.and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| message.get(place..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_divisions_are_made_of_touches_them() {
        let of = |action: &str, subsystem: &str, name: &str| {
            let text = format!(
                "{action}@/devices/x\0ACTION={action}\0DEVPATH=/devices/x\0SUBSYSTEM={subsystem}\0DEVNAME={name}\0"
            );
            touches(text.as_bytes())
        };
        assert!(of("offline", "cpu", "") && of("online", "memory", "") && of("add", "block", "sdb"));
        assert!(of("remove", "block", "sdb") && of("change", "block", "dm-3"));
        assert!(!of("change", "block", "sdb") && !of("change", "cpu", "") && !of("add", "net", "eth0"));
        assert!(!touches(b"") && !touches(b"\0\0=\0ACTION") && !touches(b"libudev\0"));
    }

    #[test]
    fn udevs_header_is_skipped() {
        let properties = b"ACTION=add\0SUBSYSTEM=block\0DEVNAME=/dev/sdb\0";
        let mut message = [UDEV, &[0; 32]].concat();
        let place = u32::try_from(message.len()).unwrap();
        message[16..20].copy_from_slice(&place.to_ne_bytes());
        message.extend(properties);
        assert!(touches(&message));
        message[16..20].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(!touches(&message));
    }
}
