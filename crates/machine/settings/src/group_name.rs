//! A group's name as the user writes it: `db/oltp1` below the place where our groups live, or `/a/b` from the
//! hierarchy's own root. Checked once, so that no later part meets `..` or a control character.

use std::fmt;
use units::group_path;

/// The longest name of one part; `NAME_MAX` of every Linux file system.
const MAX_PART: usize = 255;
/// The longest whole name; leaves room for the mount point and a file below `PATH_MAX` (4096).
const MAX_NAME: usize = 3072;

/// Not a name that a group may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a group name: {reason}")]
pub struct GroupNameError {
    /// The name, control characters escaped.
    name: String,
    /// What is wrong with it.
    reason: String,
    /// The nearest name that would do.
    instead: Option<String>,
}

impl GroupNameError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        let instead = self.instead.as_ref().map(|name| format!("use '{name}'"));
        instead.unwrap_or_else(|| "a name consists of parts like 'db/oltp1'".to_owned())
    }
}

/// A checked group name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName {
    /// Without a leading slash; "" is the root (only if `from_root`).
    path: String,
    from_root: bool,
}

impl GroupName {
    /// Checks a name. `/` alone is the hierarchy's root.
    ///
    /// # Errors
    /// Empty, `.` or `..`, a doubled slash, a control character, too long, or the name of one of the kernel's files.
    pub fn new(name: &str) -> Result<GroupName, GroupNameError> {
        let wrong = |reason: &str, instead: Option<String>| GroupNameError {
            name: name.escape_debug().to_string(),
            reason: reason.to_owned(),
            instead,
        };
        let from_root = name.starts_with('/');
        let path = name.strip_prefix('/').unwrap_or(name);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return if name == "/" {
                Ok(GroupName { path: String::new(), from_root })
            } else {
                Err(wrong("it is empty", None))
            };
        }
        if path.len() > MAX_NAME {
            return Err(wrong("it is longer than 3072 bytes", None));
        }
        for part in path.split('/') {
            if part.is_empty() {
                let single: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
                return Err(wrong("it has an empty part (a doubled slash)", Some(single.join("/"))));
            }
            if part == "." || part == ".." {
                return Err(wrong("'.' and '..' are not allowed in it", None));
            }
            if let Some(c) = part.chars().find(|c| c.is_control()) {
                return Err(wrong(&format!("it holds the control character {}", c.escape_debug()), None));
            }
            if part.len() > MAX_PART {
                return Err(wrong("a part of it is longer than 255 bytes", None));
            }
            if is_kernel_file(part) {
                let parts: Vec<String> = path.split('/').map(instead_of_a_file).collect();
                let slash = if from_root { "/" } else { "" };
                return Err(wrong(
                    &format!("'{part}' is the name of a kernel file"),
                    Some(format!("{slash}{}", parts.join("/"))),
                ));
            }
        }
        Ok(GroupName { path: path.to_owned(), from_root })
    }

    /// The hierarchy's root group.
    pub fn root() -> GroupName {
        GroupName { path: String::new(), from_root: true }
    }

    /// The place below which our groups live, itself.
    pub fn base() -> GroupName {
        GroupName { path: String::new(), from_root: false }
    }

    /// Was it given from the hierarchy's root (`/a/b`)?
    pub fn is_from_root(&self) -> bool {
        self.from_root
    }

    /// The parts' path without a leading slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path below a hierarchy's mount, for the base below which our groups live there.
    pub fn below(&self, base: &str) -> String {
        group_path::join(if self.from_root { "" } else { base }, &self.path)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from_root { write!(f, "/{}", self.path) } else { f.write_str(&self.path) }
    }
}

/// `cgroup.procs`, `memory.max`, `tasks`: mkdir would fail with EEXIST, or hide a file that a later kernel adds
/// (cgroup-v2.rst, "Avoid Name Collisions").
fn is_kernel_file(part: &str) -> bool {
    // all others have their controller's name before a dot, and most groups' names have none: the table is not searched
    match part.split_once('.') {
        Some((prefix, _)) => prefix == "cgroup" || crate::lookup(part).is_some(),
        None => matches!(part, "tasks" | "notify_on_release" | "release_agent"),
    }
}

/// A part that is no file's name and looks like the one given.
fn instead_of_a_file(part: &str) -> String {
    match part.replace('.', "_") {
        _ if !is_kernel_file(part) => part.to_owned(),
        same if same == part => format!("{part}_"),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn names_that_could_lead_elsewhere_are_refused_with_the_reason() {
        for (name, reason) in [
            ("", "empty"),
            ("//", "empty"),
            ("..", "'..'"),
            ("a/../b", "'..'"),
            ("a/./b", "'.'"),
            ("a//b", "doubled slash"),
            ("a\nb", "control character"),
            ("a\u{1b}[2J", "control character"),
            ("cgroup.procs", "kernel file"),
            ("a/memory.max", "kernel file"),
            ("tasks", "kernel file"),
        ] {
            let error = GroupName::new(name).unwrap_err().to_string();
            assert!(error.contains(reason), "{name:?}: {error}");
        }
        assert!(GroupName::new(&"a".repeat(256)).is_err());
        assert!(GroupName::new(&"a/".repeat(2000)).is_err());
    }

    #[test]
    fn a_suggested_name_differs_and_is_valid() {
        for (name, suggested) in [
            ("tasks", "tasks_"),
            ("a/memory.max", "a/memory_max"),
            ("/mytasks/tasks", "/mytasks/tasks_"),
            ("tasks/cgroup.procs/db.1", "tasks_/cgroup_procs/db.1"),
        ] {
            let hint = GroupName::new(name).unwrap_err().hint();
            assert_eq!(hint, format!("use '{suggested}'"));
            assert!(GroupName::new(suggested).is_ok(), "{suggested}");
        }
    }

    #[test]
    fn every_file_that_holds_a_setting_is_refused() {
        for setting in crate::all() {
            let bindings = [Version::V1, Version::V2].map(|version| setting.side(version).binding());
            let files = bindings.into_iter().flatten().flat_map(|binding| binding.names());
            for file in files.filter(|file| !file.contains('<')) {
                assert!(GroupName::new(file).is_err(), "{file}");
            }
        }
    }

    #[test]
    fn a_name_resolves_below_the_base_unless_given_from_the_root() {
        let below = |name: &str, base: &str| GroupName::new(name).unwrap().below(base);
        assert_eq!(below("db/oltp1", ""), "db/oltp1");
        assert_eq!(below("db/oltp1", "ringfence.slice/x"), "ringfence.slice/x/db/oltp1");
        assert_eq!(below("/db/", "ringfence.slice/x"), "db");
        assert_eq!(below("/", "ringfence.slice/x"), "");
        assert_eq!(below("db.1-ü", ""), "db.1-ü");
    }
}
