//! Execs that wait for an answer (fanotify, `FAN_OPEN_EXEC_PERM`). Every answer is "allow", given once the caller's
//! callback has returned; on the way to it nothing logs, executes, or waits for anything but that callback.
//!
//! What raises an event: exec of a marked file by any path or hard link, by execveat and by descriptor. Exec of a
//! `#!` script asks for the script if that is marked, and for its interpreter if that is. What does not: a copy of the
//! file, and `ld.so FILE`, which maps the file without executing it.

use std::{
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, ioctl_fionread},
    pipe::{PipeFlags, pipe_with},
};

use crate::{Control, Error, control::Wish, deadman::Deadman, error::of_nix, places::Places};

/// The size of a queued event as FIONREAD counts it (`fanotify_event_metadata`), in bytes.
const EVENT_SIZE: u64 = 24;

/// A hold on the execs of some files. From [`open`](ExecGate::open) on they wait, so [`serve`](ExecGate::serve) must
/// follow at once; dropping it lets all go on.
///
/// A process that has a gate must not start another: until its exec the child has a copy of the descriptor, so that
/// our end is not the last close. It should do nothing else either: see [`Control::of_gate`] and [`crate::Watchdog`].
#[derive(Debug)]
pub struct ExecGate {
    fanotify: Fanotify,
    marker: Marker,
    control: Control,
    deadman: Option<Deadman>,
    not_gated: Vec<Error>,
}

/// How much a gate did until its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Execs answered.
    pub execs: u64,
}

impl ExecGate {
    /// Gates the execs of `executables`, absolute paths; one that does not exist is gated once it does. The watchdog
    /// counts from here on.
    ///
    /// # Errors
    /// [`Error::Gate`], [`Error::NotAbsolute`], [`Error::Call`]; [`Error::Executable`] if none can be gated.
    pub fn open(control: Control, executables: Vec<PathBuf>) -> Result<ExecGate, Error> {
        if let Some(path) = executables.iter().find(|path| !path.is_absolute()) {
            return Err(Error::NotAbsolute { path: path.clone() });
        }
        let flags = InitFlags::FAN_CLASS_CONTENT
            | InitFlags::FAN_UNLIMITED_QUEUE
            | InitFlags::FAN_UNLIMITED_MARKS
            | InitFlags::FAN_CLOEXEC
            | InitFlags::FAN_NONBLOCK;
        // non-blocking: a user with a lease on his executable (fcntl(2)) would stall the gate when the kernel opens it for
        // us, and with it the execs of all others; as it is, the kernel refuses that one exec
        let file_flags = EventFFlags::O_RDONLY
            | EventFFlags::O_LARGEFILE
            | EventFFlags::O_CLOEXEC
            | EventFFlags::O_NONBLOCK;
        let fanotify =
            Fanotify::init(flags, file_flags).map_err(|errno| Error::Gate { errno: of_nix(errno) })?;
        let places = Places::new().map_err(Error::of("inotify_init"))?;
        let mut marker = Marker { executables, places };
        // from the first mark on execs wait
        let deadman = control.within().map(Deadman::start).transpose()?;
        control.send_sign_of_life();
        let mut not_gated = marker.mark(&fanotify);
        match not_gated.pop() {
            Some(last) if not_gated.len() + 1 == marker.executables.len() => return Err(last),
            last => not_gated.extend(last),
        }
        Ok(ExecGate { fanotify, marker, control, deadman, not_gated })
    }

    /// Which executables can't be gated, and why; tried again whenever their paths change.
    pub fn not_gated(&self) -> &[Error] {
        &self.not_gated
    }

    /// Answers execs until the watchdog ends it. `callback` is given the process that executes and the file, open for
    /// reading; its answer to that exec is given when it returns.
    ///
    /// In the callback, /proc/PID still shows the program before (`exe`, `cmdline`, `comm`), and whatever needs the
    /// right to trace that process waits for its exec, that is, forever. An exec of a marked file by the callback's
    /// process waits for itself.
    ///
    /// # Errors
    /// [`Error::Call`]: then the caller ends, which lets all execs go on.
    pub fn serve(self, mut callback: impl FnMut(u32, BorrowedFd<'_>)) -> Result<Served, Error> {
        let ExecGate { fanotify, mut marker, control, mut deadman, .. } = self;
        let (until, end) = pipe_with(PipeFlags::CLOEXEC).map_err(Error::of("pipe"))?;
        let (fanotify, until) = (&fanotify, &until);
        thread::scope(|scope| {
            // marks in a thread of its own: a file system that stalls must not delay answers
            let marks = scope.spawn(move || marker.keep(fanotify, until));
            let served = answer_all(fanotify, &control, deadman.as_mut(), &mut callback);
            drop(end);
            let _ = marks.join();
            served
        })
    }
}

fn answer_all(
    fanotify: &Fanotify,
    control: &Control,
    mut deadman: Option<&mut Deadman>,
    callback: &mut impl FnMut(u32, BorrowedFd<'_>),
) -> Result<Served, Error> {
    let mut served = Served::default();
    // when the watchdog may get a sign of life: after that many answers
    let mut proof_at: Option<u64> = None;
    // the same for the timer: it is put off only once every exec that waited the last time has its answer
    let mut postpone_at = 0;
    let rest = deadman.as_ref().map(|deadman| timespec(deadman.rest()));
    loop {
        let mut both =
            [PollFd::new(fanotify, PollFlags::IN), PollFd::from_borrowed_fd(control.fd(), PollFlags::IN)];
        match poll(&mut both, rest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::Call { call: "poll", errno }),
        }
        if !both[1].revents().is_empty() {
            match control.wish() {
                Some(Wish::End) => return Ok(served),
                // the queue is first in, first out
                Some(Wish::Proof) => {
                    proof_at = Some(served.execs + queued(fanotify)?);
                }
                None => {}
            }
        }
        let waiting = !both[0].revents().is_empty();
        if waiting {
            served.execs += answer_some(fanotify, callback)?;
        }
        if proof_at.is_some_and(|at| served.execs >= at || !waiting) {
            proof_at = None;
            control.send_sign_of_life();
        }
        if let Some(deadman) = deadman.as_mut().filter(|_| served.execs >= postpone_at || !waiting) {
            deadman.postpone()?;
            postpone_at = served.execs + queued(fanotify)?;
        }
    }
}

/// How many execs wait.
fn queued(fanotify: &Fanotify) -> Result<u64, Error> {
    Ok(ioctl_fionread(fanotify).map_err(Error::of("ioctl(FIONREAD)"))? / EVENT_SIZE)
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Answers what one read gives, at most 170 events.
fn answer_some(fanotify: &Fanotify, callback: &mut impl FnMut(u32, BorrowedFd<'_>)) -> Result<u64, Error> {
    let events = match fanotify.read_events() {
        Ok(events) => events,
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(0),
        // an event that could not be delivered (no descriptor): the kernel has refused that exec; others go on
        Err(nix::errno::Errno::EMFILE | nix::errno::Errno::ENFILE | nix::errno::Errno::ENOMEM) => {
            return Ok(1);
        }
        Err(errno) => return Err(Error::Call { call: "read of fanotify", errno: of_nix(errno) }),
    };
    let mut answered = 0;
    for event in events {
        answered += 1;
        let Some(file) = event.fd() else { continue };
        callback(event.pid().unsigned_abs(), file);
        // fails only if nobody waits any more: the process was killed
        let _ = fanotify.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW));
    }
    Ok(answered)
}

/// Keeps the marks where the paths lead.
#[derive(Debug)]
struct Marker {
    executables: Vec<PathBuf>,
    places: Places,
}

impl Marker {
    /// Marks all executables that exist; which could not be. Marks that are there already stay.
    fn mark(&mut self, fanotify: &Fanotify) -> Vec<Error> {
        let places = &mut self.places;
        self.executables.iter().filter_map(|path| mark(fanotify, places, path).err()).collect()
    }

    /// Marks again after every change, until the other end of `until` is closed.
    fn keep(&mut self, fanotify: &Fanotify, until: &OwnedFd) {
        loop {
            let mut both = [
                PollFd::from_borrowed_fd(self.places.fd(), PollFlags::IN),
                PollFd::new(until, PollFlags::empty()),
            ];
            let polled = poll(&mut both, None);
            if !both[1].revents().is_empty() || polled.is_err_and(|errno| errno != Errno::INTR) {
                return;
            }
            // what can't be marked now (no right, a file system that fails) is tried again at the next change
            if self.places.changed() == Ok(true) {
                self.mark(fanotify);
            }
        }
    }
}

fn mark(fanotify: &Fanotify, places: &mut Places, path: &Path) -> Result<(), Error> {
    let failed = |call| move |errno| Error::Executable { path: path.to_owned(), call, errno };
    // watched before it is marked: what changes in between is seen after
    places.watch(path).map_err(failed("inotify_add_watch"))?;
    let file = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(failed("open")(errno)),
    };
    mark_file(fanotify, &file).map_err(failed("fanotify_mark"))
}

fn mark_file(fanotify: &Fanotify, file: &OwnedFd) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    fanotify
        .mark(MarkFlags::FAN_MARK_ADD, MaskFlags::FAN_OPEN_EXEC_PERM, rustix::fs::CWD, Some(path.as_str()))
        .map_err(of_nix)
}
