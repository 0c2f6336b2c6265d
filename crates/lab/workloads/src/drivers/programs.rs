//! Where tools are, which version they are, and which command installs one that is missing. It never installs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use experiment::drivers::{PGBENCH, Tool};

use crate::Failure;

/// The programs that install packages, in the order of [`Tool`]'s packages.
const INSTALLERS: [(&str, &str); 4] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("zypper", "zypper install"),
    ("pacman", "pacman -S"),
];

/// A tool's path.
///
/// # Errors
/// [`Failure::Missing`].
pub(crate) fn find(tool: &Tool) -> Result<PathBuf, Failure> {
    on_path(tool.program).ok_or_else(|| missing(tool))
}

/// That a tool is not there, with the command that installs it.
pub(crate) fn missing(tool: &Tool) -> Failure {
    let here = INSTALLERS.iter().zip(tool.packages).find(|((installer, _), _)| on_path(installer).is_some());
    let install = here.map(|((_, words), packages)| format!("{words} {packages}"));
    Failure::Missing { program: tool.program, install }
}

/// A program in the directories of `PATH`, or in those of the superuser, which a plain user's `PATH` may lack.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(beside).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// The newest PostgreSQL that has a server and pgbench: the directory of its programs. Debian and PostgreSQL's own
/// packages keep each version's programs out of `PATH`.
///
/// # Errors
/// [`Failure::Missing`].
pub(crate) fn postgresql() -> Result<PathBuf, Failure> {
    let has = |directory: &PathBuf| {
        ["initdb", "postgres", "pgbench"].iter().all(|name| directory.join(name).is_file())
    };
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix) in [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")] {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(prefix).and_then(|text| text.parse().ok());
            versions.extend(number.map(|number| (number, entry.path().join("bin"))));
        }
    }
    versions.retain(|(_, directory)| has(directory));
    versions.sort();
    let newest = versions.pop().map(|(_, directory)| directory);
    let elsewhere = || env::split_paths(&env::var_os("PATH").unwrap_or_default()).find(has);
    newest.or_else(elsewhere).ok_or_else(|| missing(&PGBENCH))
}

/// The first line that `PROGRAM --version` prints.
pub(crate) fn version(program: &Path) -> String {
    first_line(program, "--version")
}

/// The first line that a program prints for an option.
pub(crate) fn first_line(program: &Path, option: &str) -> String {
    let reported = Command::new(program).arg(option).stdin(Stdio::null()).output();
    let lines = reported.map(|reported| [reported.stdout, reported.stderr].concat()).unwrap_or_default();
    let lines = String::from_utf8_lossy(&lines).into_owned();
    lines.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_told_with_the_command_that_installs_it() {
        let tool = Tool { title: "No", program: "no-such-tool", packages: ["a", "b", "c", "d"] };
        let missing = find(&tool).err().unwrap();
        assert_eq!(missing.to_string(), "no-such-tool is not installed");
        if on_path("apt-get").is_some() {
            assert_eq!(missing.hint().as_deref(), Some("apt-get install a"));
        }
    }
}
