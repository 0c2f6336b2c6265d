//! A setting that a group is to have, where it goes, and the write that comes of it.

use settings::{EncodeError, GroupName, NamedSetting, Value, Version, is_by_key};

/// A group's directory in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// `kernel::Hierarchy::id`.
    pub hierarchy: usize,
    /// The path below its mount.
    pub path: String,
    /// The hierarchy's version.
    #[serde(with = "crate::names::version")]
    pub version: Version,
}

/// One setting that is requested, at the place where its controller lives.
#[derive(Debug, Clone)]
pub struct SettingRequest {
    /// The group as the user named it.
    pub group: GroupName,
    /// Where.
    pub place: Place,
    /// The setting.
    pub found: NamedSetting,
    /// Its value; a partial one leaves the rest as it is.
    pub value: Value,
}

/// One write(2), with the reason why it stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The indexes of the requests that it serves, at least one: quota and period are one write on v2.
    pub requests: Vec<usize>,
    /// The directory.
    pub place: Place,
    /// The file in it.
    pub file: String,
    /// The text.
    pub text: String,
    /// Why it comes before or after others, where that matters.
    pub why: Option<&'static str>,
}

/// Why no writes can be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The value can't be written on this version.
    #[error("group '{group}': {error}")]
    Encode {
        /// The group.
        group: String,
        /// Why not.
        error: EncodeError,
    },
    /// Two requests want different things of one file.
    #[error("group '{group}': {first} and {second} both set {file}, to '{one}' and '{other}'")]
    Contradiction {
        /// The group.
        group: String,
        /// The setting named first.
        first: String,
        /// The setting named second.
        second: String,
        /// The file.
        file: String,
        /// What the first writes.
        one: String,
        /// What the second writes.
        other: String,
    },
}

impl PlanError {
    /// What to do instead, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            PlanError::Encode { error, .. } => error.hint(),
            PlanError::Contradiction { .. } => Some("ask for one of the two".to_owned()),
        }
    }
}

impl std::fmt::Display for SettingRequest {
    /// `cpu.cfs_quota_us = 15000`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.found.name, self.found.show(&self.value))
    }
}

impl Write {
    /// Does it write to the same file, and of a file of lines by device or resource to the same line, as `other`?
    pub fn has_target_of(&self, other: &Write) -> bool {
        self.place == other.place
            && self.file == other.file
            && key(&self.file, &self.text) == key(&other.file, &other.text)
    }

    /// Is it about one line of a file of lines by device or resource?
    pub fn is_of_line(&self) -> bool {
        key(&self.file, &self.text).is_some() && !self.file.starts_with("devices.")
    }
}

/// Reads what the kernel has: the content of a file at a place, `None` if there is no such file.
pub type ReadFile<'a> = &'a dyn Fn(&Place, &str) -> Option<String>;

/// In a file of lines by device or resource, the line's first word says which one it is about.
fn key<'t>(file: &str, text: &'t str) -> Option<&'t str> {
    (is_by_key(file) || merges(file)).then(|| text.split_whitespace().next()).flatten()
}

/// Which line of a file of lines by device or resource a text is about; empty for every other file.
pub fn target_key<'t>(file: &str, text: &'t str) -> &'t str {
    key(file, text).unwrap_or_default()
}

/// What of a line for a device another one for it, `set`, leaves as it is; `None` if nothing.
pub fn rest_of_line(file: &str, line: &str, set: &str) -> Option<String> {
    let name = |word: &str| word.split_once('=').map(|(name, _)| name.to_owned());
    let set: Vec<String> = set.split_whitespace().filter_map(name).collect();
    let words = line.split_whitespace();
    let rest: Vec<&str> = words.filter(|word| name(word).is_some_and(|name| !set.contains(&name))).collect();
    (!rest.is_empty()).then(|| format!("{} {}", target_key(file, line), rest.join(" ")))
}

/// Files whose lines add to each other.
pub(crate) fn merges(file: &str) -> bool {
    settings::adds_to_line(file)
        || matches!(file, "devices.allow" | "devices.deny" | "cgroup.subtree_control")
}
