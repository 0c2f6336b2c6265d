//! Starts a program inside a group, so that not one of its instructions runs outside. On v1 this process puts
//! itself in by `tasks` (no RCU grace period) and becomes the program; on v2 the child is born there by
//! clone3(2) with CLONE_INTO_CGROUP, puts itself into groups on v1 beside it, and this process waits outside of all: in the group it
//! would be counted, and killed for want of memory in place of the program.
#![allow(unsafe_code, reason = "clone3 and execvp have no safe wrapper; each call says what holds")]

use std::{
    ffi::{CString, OsString},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
};

use rustix::{fs::OFlags, io::Errno};
use settings::Version;

use crate::{Change, Error, GroupName, Host, Op, Real, Seat, refuse_foreign};

/// A program with its arguments, ready to be executed.
#[derive(Debug)]
pub struct Program {
    words: Vec<CString>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It could not be executed; the errno of execvp(3).
    NotStarted(Errno),
}

impl Program {
    /// A program from its words; the first is looked up in `PATH`.
    ///
    /// # Errors
    /// `EINVAL` for no word at all or a NUL byte in one.
    pub fn new(words: impl IntoIterator<Item = OsString>) -> Result<Program, Errno> {
        let words: Result<Vec<CString>, _> =
            words.into_iter().map(|word| CString::new(word.into_vec()).map_err(|_| Errno::INVAL)).collect();
        let words = words?;
        if words.is_empty() { Err(Errno::INVAL) } else { Ok(Program { words }) }
    }

    /// The program's name as given.
    pub fn name(&self) -> String {
        self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// All words as given.
    fn words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Becomes the program; returns only if it could not be executed.
    fn exec(&self) -> Errno {
        let mut words: Vec<*const libc::c_char> = self.words.iter().map(|word| word.as_ptr()).collect();
        words.push(std::ptr::null());
        // SAFETY: `words` is a null-terminated array of C strings that live as long as `self`.
        unsafe {
            libc::execvp(words[0], words.as_ptr());
        }
        last_errno()
    }
}

impl Host {
    /// Runs `program` inside `group`. Where the group is on v1 only, this process itself goes in and becomes
    /// the program, and the call returns only if that failed. Must be called with a single thread.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::Frozen`], [`Error::Refused`]; a program that can't be executed is [`ProgramEnd::NotStarted`].
    pub fn run(&self, real: &Real, group: &GroupName, program: &Program) -> Result<ProgramEnd, Error> {
        refuse_foreign(group, Change::Run(&|| program.words()))?;
        let seats = self.existing(group)?;
        crate::control::refuse_frozen(self, &seats, group)?;
        let inside: Vec<_> = seats.into_iter().map(|seat| (seat, group.clone())).collect();
        self.run_at(real, &inside, program)
    }

    /// The same inside groups each in one hierarchy.
    ///
    /// # Errors
    /// As [`Host::run`]; [`Error::NotControlled`].
    pub fn run_at(
        &self,
        real: &Real,
        inside: &[(Seat<'_>, GroupName)],
        program: &Program,
    ) -> Result<ProgramEnd, Error> {
        for (seat, group) in inside {
            refuse_foreign(group, Change::Run(&|| program.words()))?;
            self.refuse_missing(seat, group)?;
        }
        let (v2, v1): (Vec<_>, Vec<_>) = inside.iter().partition(|(seat, _)| seat.at.version == Version::V2);
        let enter = || {
            let mut each = v1.iter().enumerate();
            each.try_for_each(|(number, (seat, _))| {
                self.kernel
                    .write(seat.at, &seat.path, "tasks", "0")
                    .map_err(|errno| NotReady { number, errno })
            })
        };
        let not_entered = |NotReady { number, errno }: NotReady| match v1.get(number) {
            Some((seat, group)) => Err(self.refused_run(seat, group, Some("tasks"), errno)),
            None => Ok(ProgramEnd::NotStarted(errno)),
        };
        if let Some((seat, group)) = v2.first() {
            let directory = real
                .open(seat.at, &seat.path, "", OFlags::RDONLY | OFlags::DIRECTORY)
                .map_err(|errno| self.refused_run(seat, group, None, errno))?;
            let child = start_in(&directory, program, &enter)
                .map_err(|errno| self.refused_run(seat, group, None, errno))?;
            if let Some(end) = child.wait() {
                return end.or_else(not_entered);
            }
            // Linux 6.1 and 7.2 kill what is born in a group whose processes cgroup.kill once killed; a move is no birth
            self.kernel
                .write(seat.at, &seat.path, "cgroup.procs", "0")
                .map_err(|errno| self.refused_run(seat, group, Some("cgroup.procs"), errno))?;
        }
        enter().map_or_else(not_entered, |()| Ok(ProgramEnd::NotStarted(program.exec())))
    }

    fn refused_run(&self, seat: &Seat<'_>, group: &GroupName, file: Option<&str>, errno: Errno) -> Error {
        self.refused(Op::Run, seat, group, file, None, errno)
    }
}

/// `linux/sched.h`; libc's own constant is cut to 32 bits.
pub const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What a child that lives writes before it becomes the program.
const ALIVE: [u8; 1] = [0];

/// Why a child does not become the program.
#[derive(Debug, Clone, Copy)]
struct NotReady {
    /// Of the groups on v1, the one that it can't enter; of none: the program can't be executed.
    number: usize,
    errno: Errno,
}

impl NotReady {
    /// The number and the errno, each as an i32.
    fn to_bytes(self) -> [u8; 8] {
        let number = i32::try_from(self.number).unwrap_or(i32::MAX).to_ne_bytes();
        let errno = self.errno.raw_os_error().to_ne_bytes();
        std::array::from_fn(|at| if at < 4 { number[at] } else { errno[at - 4] })
    }

    fn from_bytes(bytes: [u8; 8]) -> NotReady {
        let [a, b, c, d, e, f, g, h] = bytes;
        let number = usize::try_from(i32::from_ne_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        NotReady { number, errno: Errno::from_raw_os_error(i32::from_ne_bytes([e, f, g, h])) }
    }
}

struct Child {
    pid: libc::pid_t,
    /// The read end of a pipe that exec closes: [`ALIVE`] comes through it first, then a [`NotReady`] if there is no exec.
    report: OwnedFd,
    /// The signal mask before this process began to pass signals on.
    mask: libc::sigset_t,
}

/// clone3(2) into the cgroup of `directory`; the child enters other groups before it becomes the program.
fn start_in(
    directory: &OwnedFd,
    program: &Program,
    enter: &dyn Fn() -> Result<(), NotReady>,
) -> Result<Child, Errno> {
    let (report, reporter) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mask = block_all_signals();
    // SAFETY: all-zero is a valid clone_args; it asks for nothing.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = directory.as_raw_fd() as u64;
    // SAFETY: `args` is a valid clone_args of the size given. Without CLONE_VM the child has its own copy of
    // this single-threaded process, as after fork(2), so ordinary code may run in it.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match pid {
        0 => {
            // as on v1, where the program takes our place, it does not outlive us
            let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
            restore_mask(&mask);
            let _ = rustix::io::write(&reporter, &ALIVE);
            let not_ready = match enter() {
                Ok(()) => NotReady { number: usize::MAX, errno: program.exec() },
                Err(not_entered) => not_entered,
            };
            let _ = rustix::io::write(&reporter, &not_ready.to_bytes());
            // SAFETY: _exit(2) ends the child without running the parent's clean-up.
            unsafe { libc::_exit(127) }
        }
        -1 => {
            let errno = last_errno();
            restore_mask(&mask);
            Err(errno)
        }
        pid => Ok(Child { pid: pid as libc::pid_t, report, mask }),
    }
}

impl Child {
    /// Passes signals on to the child until it has ended; `None` if the kernel killed it before its first instruction.
    fn wait(self) -> Option<Result<ProgramEnd, NotReady>> {
        let (mut alive, mut not_ready) = (ALIVE, [0; 8]);
        let lived = rustix::io::read(&self.report, &mut alive) == Ok(ALIVE.len());
        if !lived {
            self.reap();
            restore_mask(&self.mask);
            return None;
        }
        if rustix::io::read(&self.report, &mut not_ready) == Ok(not_ready.len()) {
            self.reap();
            restore_mask(&self.mask);
            return Some(Err(NotReady::from_bytes(not_ready)));
        }
        let ended = loop {
            // SAFETY: both sets and the info are valid for the call; blocked signals are only waited for.
            let signal = unsafe {
                let mut all = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
                // the terminal sends these to the child, too: passing them on would send them twice
                let both = matches!(
                    signal,
                    libc::SIGINT | libc::SIGQUIT | libc::SIGHUP | libc::SIGWINCH | libc::SIGCONT
                );
                if info.si_code == libc::SI_KERNEL && both { 0 } else { signal }
            };
            match signal {
                // stop with the child, so that the shell gets its terminal back; SIGCONT wakes both
                libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
                    // SAFETY: raise(3) touches no memory.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
                libc::SIGCHLD => {
                    if let Some(ended) = self.reap_now() {
                        break ended;
                    }
                }
                signal if signal > 0 => {
                    // SAFETY: kill(2) touches no memory; the child is not reaped yet, so its number is its own.
                    unsafe { libc::kill(self.pid, signal) };
                }
                _ => {}
            }
        };
        restore_mask(&self.mask);
        Some(Ok(ended))
    }

    fn reap(&self) {
        // SAFETY: a null status pointer is allowed.
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) } == -1 && last_errno() == Errno::INTR
        {
        }
    }

    fn reap_now(&self) -> Option<ProgramEnd> {
        let mut status = 0;
        // SAFETY: `status` is valid for the call.
        if unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) } != self.pid {
            return None;
        }
        if libc::WIFSIGNALED(status) {
            Some(ProgramEnd::Signalled(libc::WTERMSIG(status)))
        } else {
            Some(ProgramEnd::Exited(libc::WEXITSTATUS(status)))
        }
    }
}

fn block_all_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid for the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore_mask(mask: &libc::sigset_t) {
    // SAFETY: `mask` was filled by sigprocmask.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
    }
}

/// What the last system call of this thread failed with.
pub fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
