//! sd_notify(3): sends that this process is ready, reloads, lives or ends; and the other side of it, for a start in the
//! background. One datagram to the socket that the environment names; without one nothing is sent.

use std::{
    ffi::OsString,
    io::Read,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            net::{SocketAddr, UnixDatagram},
        },
    },
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

const SOCKET: &str = "NOTIFY_SOCKET";

/// Sends `state`, such as `READY=1`. A failure is no reason to stop.
pub(crate) fn send_state(state: &str) {
    let Some(name) = std::env::var_os(SOCKET) else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}

/// Signs of life for the service manager, as often as it wants them.
#[derive(Debug)]
pub(crate) struct Alive {
    every: Option<Duration>,
    next: Instant,
}

impl Alive {
    /// The first is due after a while.
    pub fn new() -> Alive {
        let every = watchdog();
        Alive { every, next: Instant::now() + every.unwrap_or_default() }
    }

    /// When the next is due; `None` if none is wanted.
    pub fn due(&self) -> Option<Instant> {
        self.every.map(|_| self.next)
    }

    /// Gives one, if it is time.
    pub fn sign(&mut self) {
        let Some(every) = self.every else { return };
        let now = Instant::now();
        if self.next <= now {
            send_state("WATCHDOG=1");
            self.next = now + every;
        }
    }
}

/// How often the service manager wants a sign of life; half of what it waits for one.
fn watchdog() -> Option<Duration> {
    let ours = |pid: String| pid.parse() == Ok(std::process::id());
    if !std::env::var("WATCHDOG_PID").map_or(true, ours) {
        return None;
    }
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (micros > 0).then(|| Duration::from_micros(micros) / 2)
}

/// A daemon that ended before it was ready.
#[derive(Debug)]
pub struct EarlyEnd {
    /// How.
    pub status: ExitStatus,
    /// What it said on its standard error, if that was piped.
    pub said: String,
}

/// Starts a daemon and waits until it is ready; how it ended if it is not to be.
///
/// # Errors
/// It can't be started.
pub fn wait_for_ready(command: &mut Command) -> std::io::Result<Result<Child, EarlyEnd>> {
    static STARTS: AtomicU32 = AtomicU32::new(0);
    let start = STARTS.fetch_add(1, Ordering::Relaxed);
    let name = format!("ringfenced-{}-{start}", std::process::id()).into_bytes();
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let shown = OsString::from_vec([b"@".to_vec(), name].concat());
    let mut child = command.env(SOCKET, shown).spawn()?;
    let mut text = [0; 256];
    loop {
        match socket.recv(&mut text) {
            Ok(length) if text[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") => {
                return Ok(Ok(child));
            }
            _ => {
                if let Some(status) = child.try_wait()? {
                    let mut said = Vec::new();
                    if let Some(mut error) = child.stderr.take() {
                        let _ = error.read_to_end(&mut said); // what could be read
                    }
                    return Ok(Err(EarlyEnd { status, said: String::from_utf8_lossy(&said).into_owned() }));
                }
            }
        }
    }
}
