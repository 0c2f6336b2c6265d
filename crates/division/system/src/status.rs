//! What the texts of `/proc/PID/status` and `/proc/PID/stat` say (proc_pid_status(5), proc_pid_stat(5)). Pure; a text
//! that was cut short by the process's end says nothing.

use units::ProcStat;

/// The number of the thread that starts all others of the kernel, and is their parent.
pub const KTHREADD: u32 = 2;

/// The facts of one read of `/proc/PID/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// The process that it is a thread of; its own number if it is a process.
    pub process: u32,
    /// Its parent; 0 for the first of a PID namespace.
    pub parent: u32,
    /// A thread of the kernel's own.
    pub kernel_thread: bool,
}

/// Further facts from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// When it started, in clock ticks since boot: together with the number, this identifies a process.
    pub started: u64,
    /// The leader of its session (setsid(2)).
    pub session: u32,
    /// Scheduled as SCHED_FIFO or SCHED_RR.
    pub realtime: bool,
}

/// `None` if it was cut short, or the process has ended.
pub(crate) fn status(text: &[u8], comm: &mut Vec<u8>, groups: &mut Vec<u32>) -> Option<Status> {
    let (mut uid, mut gid, mut process, mut parent) = (None, None, None, None);
    let (mut ended, mut memory, mut kernel, mut threads) = (false, false, None, 1);
    for line in text.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = &line[colon + 1..];
        match &line[..colon] {
            b"Name" => name(value.strip_prefix(b"\t").unwrap_or(value), comm),
            b"State" => ended = matches!(value.trim_ascii_start().first(), Some(b'Z' | b'X')),
            b"Tgid" => process = number(value),
            b"PPid" => parent = number(value),
            // real, effective, saved, file system
            b"Uid" => uid = words(value).nth(1).and_then(number),
            b"Gid" => gid = words(value).nth(1).and_then(number),
            b"Groups" => groups.extend(words(value).filter_map(number::<u32>)),
            b"VmSize" => memory = true,
            b"Kthread" => kernel = number::<u8>(value),
            b"Threads" => {
                threads = number(value)?;
                break;
            }
            _ => {}
        }
    }
    let (process, parent): (u32, u32) = (process?, parent?);
    // kernels before 6.8 don't say it; their own threads have no memory, and are born of kthreadd
    let born_of_kthreadd = process == KTHREADD || parent == KTHREADD;
    let kernel_thread = kernel.map_or(!memory && !ended && born_of_kthreadd, |kernel| kernel != 0);
    // on its way to the end a process gives back its memory first; a leader may end before its threads
    let ending = ended || (!memory && !kernel_thread);
    if ending && threads <= 1 {
        return None;
    }
    Some(Status { uid: uid?, gid: gid?, process, parent, kernel_thread })
}

/// The kernel writes a line feed as `\n` and a backslash twice.
fn name(escaped: &[u8], comm: &mut Vec<u8>) {
    comm.clear();
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        comm.push(match (byte, bytes.as_slice().first()) {
            (b'\\', Some(b'n')) => {
                bytes.next();
                b'\n'
            }
            (b'\\', Some(b'\\')) => {
                bytes.next();
                b'\\'
            }
            (byte, _) => byte,
        });
    }
}

pub(crate) fn stat(text: &[u8]) -> Option<Stat> {
    let stat = ProcStat::parse(text)?;
    let realtime = matches!(stat.policy()?, 1 | 2);
    Some(Stat { started: stat.started()?, session: stat.session()?, realtime })
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &[u8] = b"Name:\tora\\n\\\\x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nNgid:\t0\nPid:\t42\n\
        PPid:\t7\nTracerPid:\t0\nUid:\t1\t1001\t3\t4\nGid:\t5\t1002\t6\t7\nFDSize:\t64\nGroups:\t20 30 \nVmSize:\t  5 kB\nThreads:\t1\n";

    fn parsed(text: &[u8]) -> Option<(Status, Vec<u8>, Vec<u32>)> {
        let (mut comm, mut groups) = (Vec::new(), Vec::new());
        status(text, &mut comm, &mut groups).map(|status| (status, comm, groups))
    }

    #[test]
    fn the_effective_user_and_group_are_taken() {
        let (status, comm, groups) = parsed(STATUS).unwrap();
        let expected = Status { uid: 1001, gid: 1002, process: 42, parent: 7, kernel_thread: false };
        assert_eq!((status, comm.as_slice(), groups.as_slice()), (expected, &b"ora\n\\x"[..], &[20, 30][..]));
    }

    #[test]
    fn a_status_that_was_cut_short_is_of_nobody() {
        for end in 0..STATUS.len() - 60 {
            if let Some((status, ..)) = parsed(&STATUS[..end]) {
                assert_eq!((status.uid, status.process), (1001, 42), "{end}");
            }
        }
        assert_eq!(parsed(b""), None);
    }

    #[test]
    fn kernel_threads_and_the_dead_are_told_from_the_living() {
        let text = String::from_utf8(STATUS.to_vec()).unwrap();
        let zombie = text.replace("S (sleeping)", "Z (zombie)").replace("VmSize:\t  5 kB\n", "");
        assert_eq!(parsed(zombie.as_bytes()), None);
        let leader = zombie.replace("Threads:\t1", "Threads:\t3");
        assert!(!parsed(leader.as_bytes()).unwrap().0.kernel_thread);
        // it runs still, and has given back its memory
        let ending = text.replace("VmSize:\t  5 kB\n", "");
        assert_eq!(parsed(ending.as_bytes()), None);
        let kernel = ending.replace("PPid:\t7", "PPid:\t2");
        assert!(parsed(kernel.as_bytes()).unwrap().0.kernel_thread);
        let named = text.replace("Groups", "Kthread:\t1\nGroups");
        assert!(parsed(named.as_bytes()).unwrap().0.kernel_thread);
    }

    #[test]
    fn a_hostile_name_does_not_shift_the_fields_of_stat() {
        let text = b"42 (a) R 1 (x)) S 7 42 99 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 12345 1000 10 18446744073709551615 \
                     1 1 1 1 1 0 0 0 0 0 0 0 17 3 90 1 0 0 0";
        assert_eq!(stat(text), Some(Stat { started: 12345, session: 99, realtime: true }));
        assert_eq!(stat(b"42 (x) S 7"), None);
    }
}
