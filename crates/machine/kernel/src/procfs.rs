//! The few facts about processes that moving and explaining need, read from `/proc` (proc_pid_stat(5),
//! proc_pid_cgroup(5)). Never follows more than it is requested: these reads run once per process.

use std::path::Path;

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Errno,
};
use settings::{Controller, Version};
use units::ProcStat;

use crate::{Hierarchy, Process, descriptor::read_path};

const PF_NO_SETAFFINITY: u64 = 0x0400_0000;
const PF_KTHREAD: u64 = 0x0020_0000;

/// One file of `/proc/PID`.
pub(crate) fn read(pid: u32, file: &str) -> Result<String, Errno> {
    read_path(format!("/proc/{pid}/{file}")).map_err(gone)
}

/// A missing `/proc` entry means that the process is gone.
pub(crate) fn gone(errno: Errno) -> Errno {
    if errno == Errno::NOENT { Errno::SRCH } else { errno }
}

/// The lines of `/proc/PID/cgroup`: a hierarchy's number, its controllers, and the group from the hierarchy's root.
pub fn group_lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        // the kernel marks a group that is gone while the process ends
        Some((id, controllers, path.strip_suffix(b" (deleted)").unwrap_or(path)))
    })
}

/// The group of `/proc/PID/cgroup`'s text in one hierarchy, from the hierarchy's root.
pub fn group_in(at: &Hierarchy, text: &[u8]) -> Option<String> {
    let (_, _, path) = group_lines(text).find(|(id, controllers, _)| match (at.version, &at.name) {
        (Version::V2, _) => *id == b"0" && controllers.is_empty(),
        (Version::V1, Some(name)) => words(controllers).any(|word| word.strip_prefix("name=") == Some(name)),
        (Version::V1, None) => {
            words(controllers).filter_map(Controller::from_name).any(|one| at.controllers.contains(&one))
        }
    })?;
    Some(String::from_utf8_lossy(path).into_owned())
}

fn words(controllers: &[u8]) -> impl Iterator<Item = &str> {
    controllers.split(|byte| *byte == b',').filter_map(|word| std::str::from_utf8(word).ok())
}

/// A process from its `stat` and `status` texts; `None` if they were cut short by its end.
pub(crate) fn process(stat: &str, status: &str) -> Option<Process> {
    let stat = ProcStat::parse(stat.as_bytes())?;
    let status =
        |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next());
    let flags = stat.flags()?;
    Some(Process {
        pid: stat.pid()?,
        tgid: status("Tgid:")?.parse().ok()?,
        parent: stat.parent()?,
        comm: String::from_utf8_lossy(stat.name()).into_owned(),
        state: stat.state()?,
        kernel_thread: flags & PF_KTHREAD != 0,
        bound: flags & PF_NO_SETAFFINITY != 0,
        uid: status("Uid:")?.parse().ok()?,
        policy: stat.policy()?,
        last_cpu: stat.last_cpu()?,
    })
}

/// The numeric entries of a directory.
pub(crate) fn numbers(path: &Path) -> Result<Vec<u32>, Errno> {
    let directory =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut numbers = Vec::new();
    for entry in Dir::new(directory)? {
        let entry = entry?;
        numbers.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat = "42 (a) R 1 (x)) S 7 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 100 1000 10 18446744073709551615 \
                    1 1 1 1 1 0 0 0 0 0 0 0 17 3 90 1 0 0 0";
        let process = process(stat, "Name:\tx\nTgid:\t42\nUid:\t1000\t1000\t0\t0\n").unwrap();
        assert_eq!((process.comm.as_str(), process.state, process.parent), ("a) R 1 (x)", 'S', 7));
        assert_eq!((process.last_cpu, process.policy, process.uid), (3, 1, 1000));
        assert!(process.is_realtime() && !process.kernel_thread);
    }

    #[test]
    fn the_group_is_found_per_hierarchy() {
        let text = "5:name=systemd:/s\n4:cpu,cpuacct:/c\n3:memory:/m (deleted)\n0::/u/x:y\n";
        let at = |version, controllers: &[Controller], name: Option<&str>| Hierarchy {
            id: 0,
            version,
            mount: "/".into(),
            root: "/".into(),
            controllers: controllers.to_vec(),
            name: name.map(str::to_owned),
            read_only: false,
        };
        let group = |h: &Hierarchy| group_in(h, text.as_bytes());
        assert_eq!(group(&at(Version::V1, &[Controller::Cpuacct], None)).as_deref(), Some("/c"));
        assert_eq!(group(&at(Version::V1, &[Controller::Memory], None)).as_deref(), Some("/m"));
        assert_eq!(group(&at(Version::V1, &[], Some("systemd"))).as_deref(), Some("/s"));
        assert_eq!(group(&at(Version::V2, &[], None)).as_deref(), Some("/u/x:y"));
        assert_eq!(group(&at(Version::V1, &[Controller::Pids], None)), None);
    }
}
