//! A program under ptrace(2), in which something happens as it enters a system call: what strace(1) does with `--inject`,
//! on machines without it.

use std::{
    fs::File,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
};

use nix::{
    errno::Errno,
    libc,
    sys::{
        ptrace::{self, Options},
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

/// What happens at a call.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// kill -9, before the call is made.
    Kill,
    /// The call is not made, and this is its answer.
    Refuse(Errno),
    /// It waits for ever.
    Hang,
}

/// To which process, at which call.
#[derive(Debug, Clone)]
pub struct Rule {
    /// A word of the process's command line.
    pub word: &'static str,
    /// It is started by the program, and not the program itself.
    pub is_child: bool,
    /// Which calls count; [`changes`], one that is named, or all.
    pub counts: fn(&str) -> bool,
    /// The call's number, from 0.
    pub at: usize,
    pub fault: Fault,
}

/// What was seen of the process.
#[derive(Debug, Default)]
pub struct Seen {
    /// The calls that count, in their order.
    pub calls: Vec<&'static str>,
    /// Where the fault happened.
    pub hit: Option<&'static str>,
    /// How the program ended, if it was not killed.
    pub code: Option<i32>,
}

/// Does the call change something?
pub fn changes(call: &str) -> bool {
    !matches!(call, "openat2" | OTHER)
}

/// Any other call.
const OTHER: &str = "another";

/// How many system calls a command makes, with those of the same command that it starts.
pub fn count(words: Vec<String>, word: &'static str, output: &Path) -> (usize, Option<i32>) {
    let rule = Rule { word, is_child: true, counts: |_| true, at: usize::MAX, fault: Fault::Kill };
    let seen = run(words, output, rule).1.join().unwrap();
    (seen.calls.len(), seen.code)
}

/// Runs a program until it and the process of the rule have ended, with its output in a file. Its number comes first.
#[allow(clippy::zombie_processes, reason = "the tracer waits for it by its number")]
pub fn run(words: Vec<String>, output: &Path, rule: Rule) -> (Receiver<u32>, JoinHandle<Seen>) {
    let (send, receive) = channel();
    let output = File::create(output).unwrap();
    // only the thread that traces may look and wait
    let thread = std::thread::spawn(move || {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "read go; exec \"$@\"", "sh"])
            .args(&words)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let mut options =
            Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEEXEC;
        if rule.is_child {
            options |= Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
        }
        ptrace::seize(pid, options).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let _ = send.send(child.id()); // some don't want to know
        follow(pid, &rule)
    });
    (receive, thread)
}

fn follow(first: Pid, rule: &Rule) -> Seen {
    let mut seen = Seen::default();
    let mut refused = None;
    loop {
        // children of this thread and what it traces, nobody else's
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let status = match waitpid(None, Some(flags)) {
            Ok(status) => status,
            Err(Errno::ECHILD) => return seen,
            Err(Errno::EINTR) => continue,
            Err(errno) => panic!("{errno}"),
        };
        // one that is gone meanwhile is reported by the next wait
        let _ = match status {
            WaitStatus::PtraceSyscall(pid) => {
                if let Some((_, errno)) = refused.take_if(|(of, _)| *of == pid) {
                    answer(pid, errno);
                } else if let Some(call) = entered(pid).filter(|call| (rule.counts)(call)) {
                    seen.calls.push(call);
                    if seen.calls.len() == rule.at.wrapping_add(1) {
                        seen.hit = Some(call);
                        match rule.fault {
                            Fault::Kill => kill(pid, Signal::SIGKILL).unwrap(),
                            Fault::Hang => continue,
                            Fault::Refuse(errno) => {
                                skip(pid);
                                refused = Some((pid, errno));
                            }
                        }
                    }
                }
                ptrace::syscall(pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) if is_meant(pid, rule.word) => ptrace::syscall(pid, None),
            WaitStatus::PtraceEvent(pid, ..) => ptrace::cont(pid, None),
            WaitStatus::Stopped(pid, signal) if is_meant(pid, rule.word) => ptrace::syscall(pid, signal),
            WaitStatus::Stopped(pid, signal) => ptrace::cont(pid, signal),
            WaitStatus::Exited(pid, code) if pid == first => {
                seen.code = Some(code);
                Ok(())
            }
            _ => Ok(()),
        };
    }
}

/// The shell that waits to become the program has its words too.
fn is_meant(pid: Pid, word: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    words.next().is_some_and(|first| first != b"/bin/sh") && words.any(|other| other == word.as_bytes())
}

/// The call that a thread is about to make.
fn entered(pid: Pid) -> Option<&'static str> {
    let registers = ptrace::getregs(pid).ok()?;
    // until the call has returned this is its answer
    let is_entry = registers.rax.cast_signed() == -i64::from(libc::ENOSYS);
    let creates = |flags: u64| flags & u64::from((libc::O_CREAT | libc::O_TRUNC).unsigned_abs()) != 0;
    if !is_entry {
        return None;
    }
    match registers.orig_rax.cast_signed() {
        libc::SYS_open if creates(registers.rsi) => Some("open"),
        libc::SYS_openat if creates(registers.rdx) => Some("openat"),
        number => Some(CALLS.iter().find(|(known, _)| *known == number).map_or(OTHER, |(_, name)| *name)),
    }
}

fn skip(pid: Pid) {
    let registers = ptrace::getregs(pid).unwrap();
    ptrace::setregs(pid, libc::user_regs_struct { orig_rax: u64::MAX, ..registers }).unwrap();
}

fn answer(pid: Pid, errno: Errno) {
    let registers = ptrace::getregs(pid).unwrap();
    let rax = (-i64::from(errno as i32)).cast_unsigned();
    ptrace::setregs(pid, libc::user_regs_struct { rax, ..registers }).unwrap();
}

macro_rules! calls {
    ($($name:ident $number:ident),* $(,)?) => { &[$((libc::$number, stringify!($name))),*] };
}

/// What changes something; and how files of groups are opened.
const CALLS: &[(i64, &str)] = calls![
    bpf SYS_bpf,
    capset SYS_capset,
    chmod SYS_chmod,
    chown SYS_chown,
    clone SYS_clone,
    clone3 SYS_clone3,
    fallocate SYS_fallocate,
    fchmod SYS_fchmod,
    fchmodat SYS_fchmodat,
    fchown SYS_fchown,
    fchownat SYS_fchownat,
    fdatasync SYS_fdatasync,
    flock SYS_flock,
    fork SYS_fork,
    fsync SYS_fsync,
    ftruncate SYS_ftruncate,
    kill SYS_kill,
    link SYS_link,
    linkat SYS_linkat,
    mkdir SYS_mkdir,
    mkdirat SYS_mkdirat,
    mount SYS_mount,
    openat2 SYS_openat2,
    pidfd_send_signal SYS_pidfd_send_signal,
    pwrite64 SYS_pwrite64,
    pwritev SYS_pwritev,
    rename SYS_rename,
    renameat SYS_renameat,
    renameat2 SYS_renameat2,
    rmdir SYS_rmdir,
    sched_setaffinity SYS_sched_setaffinity,
    sendmsg SYS_sendmsg,
    sendto SYS_sendto,
    setresgid SYS_setresgid,
    setresuid SYS_setresuid,
    setsid SYS_setsid,
    symlink SYS_symlink,
    symlinkat SYS_symlinkat,
    tgkill SYS_tgkill,
    tkill SYS_tkill,
    truncate SYS_truncate,
    umount2 SYS_umount2,
    unlink SYS_unlink,
    unlinkat SYS_unlinkat,
    vfork SYS_vfork,
    write SYS_write,
    writev SYS_writev,
];
