//! The calling thread's scheduling policy (sched(7)) and the CPUs that it may run on; the policy of another thread as text, and its
//! CPUs.
#![allow(
    unsafe_code,
    reason = "sched_setscheduler(2) and its like have no safe wrapper; each call says what holds"
)]

use std::{ffi::c_int, fs, io};

use rustix::{
    process::Pid,
    thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity},
};
use units::CpuSet;

/// SCHED_RR of the lowest priority, which processes and threads that it starts do not get.
///
/// # Errors
/// The kernel's refusal: it needs CAP_SYS_NICE, and a budget of the thread's group where groups have one.
pub fn set_urgent() -> io::Result<()> {
    set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)
}

/// SCHED_OTHER: as every other thread.
///
/// # Errors
/// The kernel's refusal.
pub fn set_other() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

/// SCHED_FIFO: runs before all others, until it sleeps.
///
/// # Errors
/// The kernel's refusal: it needs CAP_SYS_NICE, and a budget of the thread's group where groups have one.
pub fn set_fifo(priority: u32) -> io::Result<()> {
    set(libc::SCHED_FIFO, i32::try_from(priority).unwrap_or(0))
}

/// SCHED_IDLE: runs where nobody else of the group wants to.
///
/// # Errors
/// The kernel's refusal.
pub fn set_idle() -> io::Result<()> {
    set(libc::SCHED_IDLE, 0)
}

/// The CPUs that it may run on.
///
/// # Errors
/// The kernel's refusal.
pub fn cpus() -> io::Result<CpuSet> {
    let mask = sched_getaffinity(None)?;
    Ok((0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// The CPUs that a thread may run on, also those of them that are offline, which sched_getaffinity(2) leaves out.
///
/// # Errors
/// `ESRCH` if it is gone.
pub fn cpus_of(thread: u32) -> io::Result<CpuSet> {
    let mask = sched_getaffinity(Some(pid(thread)?))?;
    let cpus: CpuSet = (0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect();
    if list("offline").is_none_or(|offline| offline.is_empty()) {
        return Ok(cpus);
    }
    // that list has the CPUs, too, that the kernel has room for alone
    let (Some(present), Some(online)) = (list("present"), list("online")) else { return Ok(cpus) };
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed: CpuSet = allowed.and_then(|list| list.trim().parse().ok()).unwrap_or_default();
    Ok(cpus.union(&allowed.intersection(&present.difference(&online))))
}

fn list(name: &str) -> Option<CpuSet> {
    fs::read_to_string(format!("/sys/devices/system/cpu/{name}")).ok()?.trim().parse().ok()
}

/// Makes a thread run on these CPUs alone.
///
/// # Errors
/// `ESRCH` if it is gone; `EINVAL` if it can't leave its CPUs, or its group has none of these; `EOVERFLOW` for a CPU above those of
/// the kernel's masks.
pub fn set_cpus_of(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        if cpu >= Mask::MAX_CPU {
            return Err(io::Error::from_raw_os_error(libc::EOVERFLOW));
        }
        mask.set(cpu);
    }
    Ok(sched_setaffinity(Some(pid(thread)?), &mask)?)
}

/// Makes it run on these CPUs alone.
///
/// # Errors
/// The kernel's refusal: `EINVAL` where its group has none of them.
pub fn set_cpus(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    cpus.iter().filter(|cpu| *cpu < Mask::MAX_CPU).for_each(|cpu| mask.set(cpu));
    Ok(sched_setaffinity(None, &mask)?)
}

/// The policies that have a text, with whether they have a priority from 1 to 99.
const POLICIES: [(&str, c_int, bool); 5] = [
    ("other", libc::SCHED_OTHER, false),
    ("batch", libc::SCHED_BATCH, false),
    ("idle", libc::SCHED_IDLE, false),
    ("fifo", libc::SCHED_FIFO, true),
    ("rr", libc::SCHED_RR, true),
];

/// The policy of a thread: `other`, `batch`, `idle`, `fifo:1` to `fifo:99`, `rr:1` to `rr:99`.
///
/// # Errors
/// `ESRCH` if it is gone; `EINVAL` for SCHED_DEADLINE and others, which have more than a priority.
pub fn policy_of(thread: u32) -> io::Result<String> {
    let thread = number(thread)?;
    // SAFETY: a call without pointers
    let policy = unsafe { libc::sched_getscheduler(thread) };
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel writes the parameters, which live until it returns
    if policy < 0 || unsafe { libc::sched_getparam(thread, &raw mut parameters) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let policy = policy & !libc::SCHED_RESET_ON_FORK;
    match POLICIES.iter().find(|(_, number, _)| *number == policy) {
        Some((name, _, true)) => Ok(format!("{name}:{}", parameters.sched_priority)),
        Some((name, _, false)) => Ok((*name).to_owned()),
        None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// Gives a thread a policy, as [`policy_of`] writes it. Its nice value stays.
///
/// # Errors
/// `ESRCH` if it is gone, `EPERM` without CAP_SYS_NICE, `EINVAL` for another text.
pub fn set_policy_of(thread: u32, text: &str) -> io::Result<()> {
    let wrong = || io::Error::from_raw_os_error(libc::EINVAL);
    let (name, priority) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let (_, policy, has_priority) = POLICIES.iter().find(|(known, ..)| *known == name).ok_or_else(wrong)?;
    let priority = match (has_priority, priority.map(str::parse::<c_int>)) {
        (true, Some(Ok(priority))) => priority,
        (false, None) => 0,
        _ => return Err(wrong()),
    };
    set_of(number(thread)?, *policy, priority)
}

fn number(thread: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(thread).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))
}

fn pid(thread: u32) -> io::Result<Pid> {
    Pid::from_raw(number(thread)?).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

fn set(policy: c_int, priority: c_int) -> io::Result<()> {
    // 0 is the calling thread
    set_of(0, policy, priority)
}

fn set_of(thread: libc::pid_t, policy: c_int, sched_priority: c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the kernel only reads the parameters, which live until it returns
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_set_as_it_is_read() {
        let (said, numbers) = std::sync::mpsc::channel();
        let (end, waits) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = said.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
            let _ = waits.recv();
        });
        let number = numbers.recv().unwrap();
        assert_eq!(policy_of(number).unwrap(), "other");
        for text in ["batch", "idle"] {
            set_policy_of(number, text).unwrap();
            assert_eq!(policy_of(number).unwrap(), text);
        }
        for wrong in ["fifo", "fifo:x", "other:1", "deadline", ""] {
            assert_eq!(
                set_policy_of(number, wrong).unwrap_err().raw_os_error(),
                Some(libc::EINVAL),
                "{wrong}"
            );
        }
        drop(end);
        thread.join().unwrap();
    }
}
