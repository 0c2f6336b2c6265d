//! The real machine's part of a world: processes that are started, told what to do, and ended, and the removal of
//! whatever a case left behind.
#![allow(
    unsafe_code,
    reason = "policy and user of a thread can only be set by system calls without a safe wrapper"
)]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kernel::{Hierarchy, Kernel, Real};

use super::CHILD;

/// Real processes by number; all are gone when this is dropped.
#[derive(Default)]
pub struct Machine {
    children: HashMap<u32, Child>,
}

impl Machine {
    /// Starts the suite's own program as another process, in a process group of its own.
    pub fn start(&mut self, uid: u32) -> u32 {
        let mut command = Command::new("/proc/self/exe");
        command.arg(CHILD).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if uid != 0 {
            command.uid(uid);
        }
        let child = command.spawn().expect("the suite's own program runs");
        let pid = child.id();
        self.children.insert(pid, child);
        pid
    }

    /// Tells a process to do something and waits until it is done.
    pub fn tell(&mut self, pid: u32, order: &str) {
        self.order(pid, order);
        self.await_answer(pid);
    }

    pub fn order(&mut self, pid: u32, order: &str) {
        let input =
            self.children.get_mut(&pid).and_then(|child| child.stdin.as_mut()).expect("a started process");
        writeln!(input, "{order}").expect("the process reads orders");
    }

    pub fn await_answer(&mut self, pid: u32) {
        let output =
            self.children.get_mut(&pid).and_then(|child| child.stdout.as_mut()).expect("a started process");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the process answers");
        assert_eq!(line, "done\n", "process {pid} did not do what it was told");
    }

    /// Kills a process and waits for it. It must not be frozen.
    pub fn end(&mut self, pid: u32) {
        if let Some(mut child) = self.children.remove(&pid) {
            let group = rustix::process::Pid::from_raw(pid as i32).expect("a process number");
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = child.wait();
        }
    }

    /// Whether a process has ended by itself or was killed, waited for up to two seconds.
    pub fn has_ended(&mut self, pid: u32) -> bool {
        let Some(child) = self.children.get_mut(&pid) else { return true };
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(2) {
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for pid in self.children.keys().copied().collect::<Vec<_>>() {
            self.end(pid);
        }
    }
}

/// All processes of a process group (a storm's), dead ones left out.
pub fn process_group(group: u32) -> Vec<u32> {
    let member = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        fields.get(2).is_some_and(|pgrp| *pgrp == group.to_string()) && fields[0] != "Z"
    };
    Real::new().processes().unwrap_or_default().into_iter().filter(member).collect()
}

/// sched_setscheduler(2); priority 10 for SCHED_FIFO.
pub fn set_policy(pid: u32, policy: u32) -> Result<(), rustix::io::Errno> {
    // SAFETY: all-zero is a valid sched_param, and the call only reads it.
    let result = unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = if policy == 1 { 10 } else { 0 };
        libc::sched_setscheduler(pid as i32, policy as i32, &raw const parameter)
    };
    if result == 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Err(rustix::io::Errno::from_raw_os_error(errno))
}

/// Makes the calls of this thread another user's until it is dropped.
pub struct OtherUser;

impl OtherUser {
    pub fn new(uid: u32) -> OtherUser {
        set_user(uid);
        OtherUser
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        set_user(0);
    }
}

/// The bare system calls change one thread only, unlike those of the C library. Root stays in the saved numbers,
/// from where it comes back.
fn set_user(uid: u32) {
    // SAFETY: these calls take numbers only.
    let set = |call: i64, number: u32| unsafe { libc::syscall(call, number, number, -1) };
    // a group can be left while root, and taken again once root
    let order = if uid == 0 {
        [libc::SYS_setresuid, libc::SYS_setresgid]
    } else {
        [libc::SYS_setresgid, libc::SYS_setresuid]
    };
    assert_eq!(order.map(|call| set(call, uid)), [0, 0], "the thread's user can be changed");
}

/// Removes the group `top` and all below it from a hierarchy; ends nobody.
pub fn remove(kernel: &Real, at: &Hierarchy, top: &str) {
    let mut paths = match kernel.descendants(at, top) {
        Ok(below) => below,
        Err(_) => return,
    };
    paths.insert(0, top.to_owned());
    for path in paths.iter().rev() {
        let started = Instant::now();
        while kernel.rmdir(at, path).is_err() && kernel.exists(at, path) {
            if started.elapsed() > Duration::from_secs(3) {
                eprintln!("could not remove {}", at.path(path).display());
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Lets everything below `top` run, so that it can be ended.
pub fn thaw(kernel: &Real, at: &Hierarchy, top: &str) {
    let below = kernel.descendants(at, top).unwrap_or_default();
    for path in std::iter::once(top.to_owned()).chain(below) {
        let _ = kernel.write(at, &path, "freezer.state", "THAWED");
        let _ = kernel.write(at, &path, "cgroup.freeze", "0");
    }
}
