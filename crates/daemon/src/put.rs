//! The short way into a group that is there: one write per hierarchy. What is refused is done again the long way
//! ([`kernel::Host::move_into`]), which explains the refusal, once what was written here is taken back.

use kernel::{Hierarchy, Host};
use rustix::io::Errno;
use settings::Version;

/// What came of the short way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is there with all its threads.
    Done,
    /// It ended.
    Gone,
    /// Refused; it is where it was.
    Refused,
}

/// Puts a process into places that are there. `from`: its `/proc/PID/cgroup`.
pub(crate) fn put(host: &Host, places: &[(usize, String)], pid: u32, from: &[u8]) -> Put {
    let number = pid.to_string();
    for (done, (at, path)) in places.iter().enumerate() {
        let Some(at) = host.hierarchies().get(*at) else { return Put::Refused };
        let failed = match host.kernel().write(at, path, "cgroup.procs", &number) {
            Ok(()) => continue,
            Err(Errno::SRCH) => Put::Gone,
            Err(_) => Put::Refused,
        };
        for (at, _) in places[..done].iter().rev() {
            let at = &host.hierarchies()[*at];
            if let Some(path) = place(at, from) {
                let _ = host.kernel().write(at, &path, "cgroup.procs", &number);
            }
        }
        return failed;
    }
    Put::Done
}

/// Is it in all of these places, by its `/proc/PID/cgroup`?
pub(crate) fn is_in(host: &Host, places: &[(usize, String)], text: &[u8]) -> bool {
    places.iter().all(|(at, path)| {
        host.hierarchies().get(*at).and_then(|at| place(at, text)).is_some_and(|here| here == *path)
    })
}

/// Where it is in one hierarchy, below its mount.
fn place(at: &Hierarchy, text: &[u8]) -> Option<String> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        is_of(at, controllers).then_some(path)
    })?;
    at.below_mount(&String::from_utf8_lossy(line))
}

fn is_of(at: &Hierarchy, controllers: &[u8]) -> bool {
    let mut words = controllers.split(|byte| *byte == b',').filter_map(|word| std::str::from_utf8(word).ok());
    match (at.version, &at.name) {
        (Version::V2, _) => controllers.is_empty(),
        (Version::V1, Some(name)) => words.any(|word| word.strip_prefix("name=") == Some(name)),
        (Version::V1, None) => words
            .filter_map(settings::Controller::from_name)
            .any(|controller| at.controllers.contains(&controller)),
    }
}
