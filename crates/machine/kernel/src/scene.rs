//! What the search for a cause may look at, and how it reads it.

use std::{fmt, path::Path};

use settings::Version;
use units::{CpuSet, NodeSet, group_path, hint::Command};

use crate::{GroupName, Host, Refusal, Seat};

/// A cause in words and the command that removes it.
pub(crate) type Finding = Option<(String, Option<String>)>;

/// What a check may look at.
pub(crate) struct Scene<'a> {
    pub host: &'a Host,
    pub seat: &'a Seat<'a>,
    pub group: &'a GroupName,
    pub refusal: &'a Refusal,
}

/// A cause that was found, with the command that removes it.
pub(crate) fn found(cause: impl Into<String>, hint: impl Into<String>) -> Finding {
    Some((cause.into(), Some(hint.into())))
}

impl Scene<'_> {
    /// The trimmed content of another file of the same group; "" if it can't be read.
    pub fn text(&self, file: &str) -> String {
        self.text_in(&self.seat.path, file)
    }

    /// The same of another group in the hierarchy.
    pub fn text_in(&self, path: &str, file: &str) -> String {
        self.host.kernel.read(self.seat.at, path, file).unwrap_or_default().trim().to_owned()
    }

    /// Does the group have a file of that name?
    pub fn has_file(&self, file: &str) -> bool {
        let files = self.host.kernel.files(self.seat.at, &self.seat.path);
        files.is_ok_and(|files| files.iter().any(|name| name == file))
    }

    /// The parent's path below the mount; `None` for the root.
    pub fn parent(&self) -> Option<&str> {
        group_path::parent(&self.seat.path)
    }

    /// A group's path as the user would name it, for a sentence.
    pub fn named(&self, path: &str) -> String {
        units::printable(&self.host.named(self.seat.at, path)).into_owned()
    }

    /// A command about the group.
    pub fn command(&self, words: &'static str) -> Command {
        Command::ringfence(words).group(self.group)
    }

    /// A command about the group at that path.
    pub fn command_at(&self, words: &'static str, path: &str) -> Command {
        Command::ringfence(words).group(self.host.named(self.seat.at, path))
    }

    /// The command that sets a value of the group.
    pub fn set(&self, file: &str, value: impl fmt::Display) -> Command {
        self.command("set").arg(format!("{file}={value}"))
    }

    /// The same for the group at that path.
    pub fn set_at(&self, path: &str, file: &str, value: impl fmt::Display) -> Command {
        self.command_at("set", path).arg(format!("{file}={value}"))
    }

    pub fn v1(&self) -> bool {
        self.seat.at.version == Version::V1
    }

    pub fn is_root_user(&self) -> bool {
        self.host.kernel.caller().1 == 0
    }

    /// "17 (postgres), 18 (postgres)": the first tasks of the group.
    pub fn some_tasks(&self) -> String {
        let tasks = self.host.tasks_in(self.seat);
        let shown: Vec<String> = tasks
            .iter()
            .take(4)
            .map(|&pid| match self.host.kernel.process(pid) {
                Ok(process) => format!("{pid} ({})", units::printable(&process.comm)),
                Err(_) => pid.to_string(),
            })
            .collect();
        let more = if tasks.len() > 4 { format!(" and {} more", tasks.len() - 4) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    }

    pub fn outside(&self, path: &str) -> String {
        self.host.kernel.outside(Path::new(path)).unwrap_or_default().trim().to_owned()
    }
}

/// The groups above, the nearest first, the root ("") last.
pub(crate) fn ancestors<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a str> {
    group_path::ancestors(&scene.seat.path)
}

/// The CPUs of a list file, empty if it can't be read.
pub(crate) fn cpus(text: &str) -> CpuSet {
    text.parse().unwrap_or_default()
}

/// The nodes of a list file.
pub(crate) fn nodes(text: &str) -> NodeSet {
    text.parse().unwrap_or_default()
}
