//! Units of systemd: which one a group belongs to, how a layout binds one, and why there is none for our groups.

use std::{fmt::Write, path::PathBuf};

use topology::facts::{UNIT_NAME, UNIT_SLICE};
use units::{
    Bytes, group_path,
    hint::{Command, toml, toml_key},
};

/// Why there is no unit for our groups.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The system bus does not answer, or systemd is not on it.
    #[error("cannot reach systemd, which owns the control groups here: {reason}")]
    NoBus {
        /// What the connection said.
        reason: String,
    },
    /// systemd or polkit refused.
    #[error("systemd does not let this user {what}: {reason}")]
    Denied {
        /// What was requested, with the unit's name.
        what: String,
        /// systemd's words.
        reason: String,
    },
    /// systemd knows no delegation for a service that is made on the fly.
    #[error("this systemd can't make {UNIT_NAME}: {reason}")]
    TooOld {
        /// systemd's words.
        reason: String,
    },
    /// Somebody masked the unit.
    #[error("{UNIT_NAME} is masked: systemd never starts it")]
    Masked,
    /// systemd tried and failed.
    #[error("systemd could not start {UNIT_NAME} (state {state}, result {result})")]
    Failed {
        /// The unit's `ActiveState`.
        state: String,
        /// The service's `Result`: `resources`, `exit-code`, `start-limit-hit`…
        result: String,
    },
    /// Started, but systemd made no control group for it.
    #[error("systemd started {UNIT_NAME} but made no control group for it ({path} is missing)", path = .path.display())]
    NoGroup {
        /// What would be there.
        path: PathBuf,
    },
    /// systemd did not finish in time.
    #[error("systemd did not start {UNIT_NAME} within {seconds} s (state {state})")]
    Timeout {
        /// How long was waited.
        seconds: u64,
        /// The unit's `ActiveState`, if systemd still reports it.
        state: String,
    },
    /// Any other answer.
    #[error("systemd did not {what}: {reason}")]
    Answer {
        /// What was requested.
        what: String,
        /// The answer.
        reason: String,
    },
}

impl UnitError {
    /// What to do about it, for a separate `hint:` line.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            UnitError::NoBus { .. } => {
                "systemctl start dbus.socket; where there is none: apt-get install dbus".to_owned()
            }
            UnitError::Denied { .. } => {
                "call it as root, or let a polkit rule allow org.freedesktop.systemd1.manage-units and reload-daemon".to_owned()
            }
            UnitError::TooOld { .. } => {
                "systemctl --version; Delegate= for such a service came with 218".to_owned()
            }
            UnitError::Masked => units::hint::unmask(UNIT_NAME),
            UnitError::Failed { result, .. } if result == "resources" => format!(
                "journalctl -u {UNIT_NAME}; it may hold processes from before it was stopped: systemd-cgls /{UNIT_SLICE}"
            ),
            UnitError::Failed { .. } | UnitError::Timeout { .. } => {
                format!("systemctl status {UNIT_NAME}; journalctl -u {UNIT_NAME}")
            }
            UnitError::NoGroup { .. } => format!("systemctl status {UNIT_NAME}; systemd-cgls /{UNIT_SLICE}"),
            UnitError::Answer { .. } => return None,
        })
    }
}

/// Does a name end as those of units that have a control group do?
pub fn is_unit_name(name: &str) -> bool {
    let kinds = [".service", ".slice", ".scope", ".socket", ".mount", ".swap"];
    let stem = |kind: &&str| name.strip_suffix(*kind).filter(|stem| !stem.is_empty() && !stem.contains('/'));
    kinds.iter().find_map(stem).is_some()
}

/// The unit of the system's service manager that a group belongs to, by its path from the hierarchy's root: the
/// service, scope or other unit, or the slice where there is only that; `None` outside any unit. A user's own
/// units belong to that user's `user@UID.service`.
pub fn unit_of(path: &str) -> Option<String> {
    let mut unit = None;
    let is_slice = |name: &str| name.ends_with(".slice");
    for part in group_path::names(path) {
        // systemd puts "_" before a name that would clash with a kernel file
        let name = part.strip_prefix('_').unwrap_or(part);
        if is_unit_name(name) {
            unit = Some(name.to_owned());
        }
        if !(is_unit_name(name) && is_slice(name)) {
            break;
        }
    }
    unit
}

/// The part of a path that is the group of its unit ([`unit_of`]); `None` outside any unit.
pub fn unit_group(path: &str) -> Option<&str> {
    let (mut group, mut length) = (None, 0);
    for part in path.split('/') {
        length += part.len();
        let name = part.strip_prefix('_').unwrap_or(part);
        if is_unit_name(name) {
            group = Some(length);
        }
        if !(part.is_empty() || is_unit_name(name) && name.ends_with(".slice")) {
            break;
        }
        length += 1;
    }
    Some(&path[..group?])
}

/// Sets properties of the unit, sizes as people type them: of memory, systemd takes powers of 1024 too.
pub(crate) fn set_property(unit: &str, lines: Vec<String>) -> Command {
    let readable = |line: String| match line.split_once('=') {
        Some((name, value)) if name.starts_with("Memory") => format!("{name}={}", size(value)),
        _ => line,
    };
    Command::new("systemctl set-property").arg(unit).args(lines.into_iter().map(readable))
}

/// A number of bytes as `1G`; any other text as it is.
pub(crate) fn size(text: &str) -> String {
    text.trim().parse().map_or_else(|_| text.to_owned(), |bytes| Bytes(bytes).to_string())
}

/// The lines of a layout that bind a group to the unit, with these settings.
pub(crate) fn bound(unit: &str, settings: &[(&str, String)]) -> String {
    let stem = unit.split(['@', '.']).next().unwrap_or_default();
    let (group, name) = (toml_key(if stem.is_empty() { unit } else { stem }), toml(unit));
    let mut lines = format!("or in a layout, for ringfence apply:\n  [groups.{group}]\n  unit = {name}");
    for (setting, value) in settings.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(lines, "\n  {setting} = {}", toml(value)); // a String takes everything
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_told_by_the_unit_that_it_belongs_to() {
        for (path, unit) in [
            ("/system.slice/ssh.service", Some("ssh.service")),
            ("system.slice/system-getty.slice/getty@tty1.service", Some("getty@tty1.service")),
            ("/init.scope", Some("init.scope")),
            ("/machine.slice/machine-a.scope/libvirt/emulator", Some("machine-a.scope")),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", Some("user@1000.service")),
            ("/user.slice/user-1000.slice", Some("user-1000.slice")),
            ("/system.slice/_cpu.service", Some("cpu.service")),
            ("/system.slice/db", Some("system.slice")),
            ("/kubepods/burstable", None),
            ("/.service", None),
            ("/", None),
        ] {
            assert_eq!(unit_of(path).as_deref(), unit, "{path}");
        }
    }

    #[test]
    fn the_group_of_a_unit_is_the_beginning_of_what_is_in_it() {
        for (path, group) in [
            ("/system.slice/ssh.service", Some("/system.slice/ssh.service")),
            ("/system.slice/pg@1.service/main", Some("/system.slice/pg@1.service")),
            (
                "system.slice/system-pg.slice/pg@1.service/a/b",
                Some("system.slice/system-pg.slice/pg@1.service"),
            ),
            ("/system.slice/_cpu.service/x.service", Some("/system.slice/_cpu.service")),
            ("/system.slice/db", Some("/system.slice")),
            ("/db/x.service", None),
            ("/", None),
        ] {
            assert_eq!(unit_group(path), group, "{path}");
        }
    }

    #[test]
    fn sizes_of_a_property_are_as_people_type_them() {
        let lines = ["MemoryMax=1610612736", "MemoryHigh=infinity", "CPUQuota=50%", "TasksMax=1024"];
        let set = set_property("pg.service", lines.map(str::to_owned).to_vec());
        let expected = "systemctl set-property pg.service MemoryMax=1536M MemoryHigh=infinity CPUQuota=50% TasksMax=1024";
        assert_eq!(set.to_string(), expected);
    }
}
