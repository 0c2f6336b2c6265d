//! Commands that a hint offers to paste. A user who may make a group chooses its name, `a $(touch x)` for example,
//! and root pastes the hint: only this builder puts words of others into a command. Never runs anything.

use std::{fmt, path::Path};

use crate::shell_quote;

/// A group's name as one word of a command: quoted where it must be, and never taken for an option.
pub fn group(name: impl fmt::Display) -> String {
    let name = name.to_string();
    match name.starts_with('-') {
        true => shell_quote(&format!("/{name}")).into_owned(),
        false => shell_quote(&name).into_owned(),
    }
}

/// A text as a string of TOML, for lines of a layout.
///
/// ```
/// assert_eq!(units::hint::toml(r"a\x2db.service"), r#""a\\x2db.service""#);
/// ```
pub fn toml(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

/// The last part of a table's name in TOML: `db`, or `"db/oltp1"`.
pub fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { toml(name) }
}

/// What is to be written into a layout, with the command that applies it: the hint where a layout decides about a group.
/// `file`: the layout's file or directory, if that is known.
///
/// ```
/// let hint = units::hint::in_layout("set pids.max = \"8\"", "db", Some("/etc/l.toml".as_ref()));
/// assert_eq!(hint, "set pids.max = \"8\" of group db in /etc/l.toml, then: ringfence apply /etc/l.toml");
/// ```
pub fn in_layout(change: &str, name: &str, file: Option<&Path>) -> String {
    match file.map(|file| file.display().to_string()) {
        Some(file) => {
            format!("{change} of group {name} in {file}, then: {}", Command::ringfence("apply").arg(&file))
        }
        None => format!("{change} of group {name} in its layout, and apply that"),
    }
}

/// The lines of a layout that give a group these settings, each a name with a value as a user writes it.
///
/// ```
/// let lines = units::hint::layout_lines(&[("cpu.max", "50%".to_owned()), ("cpuset.cpus", "0-3".to_owned())]);
/// assert_eq!(lines, r#"set cpu.max = "50%", cpus = "0-3""#);
/// ```
pub fn layout_lines(settings: &[(&str, String)]) -> String {
    // a layout has keys of its own for these
    let key = |name: &str| match name.strip_prefix("cpuset.") {
        Some(list @ ("cpus" | "mems")) => list.to_owned(),
        _ => name.to_owned(),
    };
    let lines = settings.iter().map(|(name, value)| format!("{} = {}", key(name), toml(value)));
    format!("set {}", lines.collect::<Vec<_>>().join(", "))
}

/// A command line for a shell, grown word by word.
///
/// ```
/// let hint = units::hint::Command::ringfence("set").group("a $(touch x)").arg("cpu.max=max");
/// assert_eq!(hint.to_string(), "ringfence set 'a $(touch x)' cpu.max=max");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Command(String);

impl Command {
    /// The fixed words that a command begins with, such as `systemctl stop`. They are not quoted.
    pub fn new(words: &'static str) -> Command {
        Command(words.to_owned())
    }

    /// `ringfence` with a subcommand and its fixed options.
    pub fn ringfence(words: &'static str) -> Command {
        Command(format!("ringfence {words}"))
    }

    /// The same command as root.
    pub fn sudo(self) -> Command {
        Command(format!("sudo {}", self.0))
    }

    /// Adds one word, quoted where it must be.
    pub fn arg(mut self, word: impl AsRef<str>) -> Command {
        self.0.push(' ');
        self.0.push_str(&shell_quote(word.as_ref()));
        self
    }

    /// Adds each of the words.
    pub fn args(self, words: impl IntoIterator<Item = impl AsRef<str>>) -> Command {
        words.into_iter().fold(self, Command::arg)
    }

    /// Adds the words that another command prints.
    ///
    /// ```
    /// use units::hint::Command;
    /// let hint = Command::ringfence("move /").printed_by(Command::new("cat").arg("a b"));
    /// assert_eq!(hint.to_string(), "ringfence move / $(cat 'a b')");
    /// ```
    pub fn printed_by(self, command: Command) -> Command {
        Command(format!("{} $({})", self.0, command.0))
    }

    /// Adds a group's name, which must not be taken for an option.
    pub fn group(mut self, name: impl fmt::Display) -> Command {
        self.0.push(' ');
        self.0.push_str(&group(name));
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lets systemd start a masked unit again, however it was masked: without `--runtime` a mask until the next boot stays.
///
/// ```
/// assert_eq!(units::hint::unmask("a.service"), "systemctl unmask a.service && systemctl unmask --runtime a.service");
/// ```
pub fn unmask(unit: &str) -> String {
    all([Command::new("systemctl unmask").arg(unit), Command::new("systemctl unmask --runtime").arg(unit)])
}

/// The command that shows the files of a unit of systemd, in the order in which it reads them.
pub fn files(unit: &str) -> String {
    Command::new("systemctl cat").arg(unit).into()
}

/// Commands one after the other, each only if the one before it succeeded.
pub fn all(commands: impl IntoIterator<Item = Command>) -> String {
    commands.into_iter().map(String::from).collect::<Vec<_>>().join(" && ")
}

impl From<Command> for String {
    fn from(command: Command) -> String {
        command.0
    }
}
