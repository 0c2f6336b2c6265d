//! The few facts about processes that moving and explaining need, read from `/proc` (proc_pid_stat(5),
//! proc_pid_cgroup(5)). Never follows more than it is asked for: these reads run once per process.

use std::path::Path;

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Errno,
};
use settings::{Controller, Version};

use crate::{Hierarchy, Process, real::read_path};

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

/// The group of `/proc/PID/cgroup`'s text in one hierarchy.
pub(crate) fn group_of(at: &Hierarchy, text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let here = match at.version {
            Version::V2 => id == "0" && controllers.is_empty(),
            Version::V1 => match &at.name {
                Some(name) => controllers.split(',').any(|part| part.strip_prefix("name=") == Some(name)),
                None => controllers
                    .split(',')
                    .filter_map(Controller::from_name)
                    .any(|c| at.controllers.contains(&c)),
            },
        };
        // the kernel marks a group that is gone while the process ends
        (here && !(id == "0" && at.version == Version::V1))
            .then(|| path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
    })
}

/// A process from its `stat` and `status` texts; `None` if they were cut short by its end.
pub(crate) fn process(stat: &str, status: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    // the name may hold anything, also ") "
    let (comm, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let status =
        |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next());
    let flags = number(6)?;
    Some(Process {
        pid: pid.parse().ok()?,
        tgid: status("Tgid:")?.parse().ok()?,
        parent: u32::try_from(number(1)?).ok()?,
        comm: comm.to_owned(),
        state: fields.first()?.chars().next()?,
        kernel_thread: flags & PF_KTHREAD != 0,
        bound: flags & PF_NO_SETAFFINITY != 0,
        uid: status("Uid:")?.parse().ok()?,
        policy: u32::try_from(number(38)?).ok()?,
        last_cpu: u32::try_from(number(36)?).ok()?,
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
        let group = |h: &Hierarchy| group_of(h, text);
        assert_eq!(group(&at(Version::V1, &[Controller::Cpuacct], None)).as_deref(), Some("/c"));
        assert_eq!(group(&at(Version::V1, &[Controller::Memory], None)).as_deref(), Some("/m"));
        assert_eq!(group(&at(Version::V1, &[], Some("systemd"))).as_deref(), Some("/s"));
        assert_eq!(group(&at(Version::V2, &[], None)).as_deref(), Some("/u/x:y"));
        assert_eq!(group(&at(Version::V1, &[Controller::Pids], None)), None);
    }
}
