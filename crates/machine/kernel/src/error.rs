//! What can go wrong, as values: each names the group, the file and the value, and carries the cause that was
//! checked on the spot and the command that fixes it.

use std::{fmt, path::PathBuf};

use rustix::io::Errno;
use settings::{Controller, unit_lines};
use units::hint::Command;

use crate::unit::{bound, set_property, size};

/// What was requested of the kernel when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Read a file.
    Read,
    /// Write a value to a file.
    Write,
    /// Make a group.
    Create,
    /// Remove a group.
    Delete,
    /// List groups or files.
    List,
    /// Put a process or thread into a group.
    Move {
        /// The process or thread.
        pid: u32,
    },
    /// Change owner or mode.
    Own,
    /// Start a program inside a group.
    Run,
    /// Mount a hierarchy.
    Mount,
}

/// The kernel said no. `cause` and `hint` are filled by [`crate::explain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What was requested.
    pub op: Op,
    /// The group as the user named it.
    pub group: String,
    /// The real directory, or file.
    pub path: PathBuf,
    /// The file's name, if a file was meant.
    pub file: Option<String>,
    /// What was to be written.
    pub value: Option<String>,
    /// What the kernel answered.
    pub errno: Errno,
    /// The likely cause, as found on the spot.
    pub cause: Option<String>,
    /// The command that fixes it.
    pub hint: Option<String>,
}

/// What was to be changed of a unit of systemd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfUnit {
    /// The unit's name.
    pub unit: String,
    /// Names with values as a user writes them; empty where something else was to be done.
    pub settings: Vec<(String, String)>,
}

/// Everything this crate refuses or is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Not a name that a group may have.
    #[error(transparent)]
    BadName(#[from] settings::GroupNameError),
    /// The group is in none of the hierarchies.
    #[error("group '{group}' does not exist (looked for {looked})", looked = list(.looked))]
    NoGroup {
        /// The group as the user named it.
        group: String,
        /// The directories that were looked for.
        looked: Vec<PathBuf>,
        /// Groups with names near to it.
        near: Vec<String>,
    },
    /// The group exists, but not where this controller lives.
    #[error("group '{group}' is not controlled by {controller} ({path} is missing)", controller = .controller, path = .path.display())]
    NotControlled {
        /// The group as the user named it.
        group: String,
        /// The controller's name on this host.
        controller: String,
        /// What would be there.
        path: PathBuf,
    },
    /// The controller is on no mounted hierarchy.
    #[error("controller {} is on no mounted hierarchy", .controller.name(settings::Version::V1).or(.controller.name(settings::Version::V2)).unwrap_or("core"))]
    NoController {
        /// The controller.
        controller: Controller,
        /// What the kernel says of it, and what would bring it.
        hint: String,
    },
    /// No v1 hierarchy has that name.
    #[error("no v1 hierarchy is named '{name}'")]
    NoNamed {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No cgroup file system is mounted.
    #[error("no cgroup hierarchy is mounted")]
    NoHierarchy,
    /// The process is gone, or was never there.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The number.
        pid: u32,
    },
    /// Kernel threads stay in the root group.
    #[error("process {pid} ({comm}) is a kernel thread, which stays where the kernel put it")]
    KernelThread {
        /// The number.
        pid: u32,
        /// Its name.
        comm: String,
    },
    /// The root group holds everything that is not ours.
    #[error("{}", of_root(.what))]
    RootGroup {
        /// What was requested.
        what: &'static str,
    },
    /// Some groups are gone, one could not be removed.
    #[error("{error}\ndeleted before that: {gone}", gone = list(.gone))]
    PartlyDeleted {
        /// The refusal.
        error: Box<Error>,
        /// What is gone.
        gone: Vec<PathBuf>,
    },
    /// The subtree is somebody else's.
    #[error("group '{group}' belongs to {owner}, which would undo the change or be broken by it")]
    Foreign {
        /// The group.
        group: String,
        /// Whose it is.
        owner: &'static str,
        /// How to have its owner change it instead.
        hint: String,
        /// The unit of systemd that the group belongs to, with the settings that were to be changed.
        unit: Option<Box<OfUnit>>,
    },
    /// A process is in a group that this mount does not show, and could not be put back there.
    #[error("process {pid} is in group '{path}', which is outside of what {mount} shows", mount = .mount.display())]
    OutOfSight {
        /// The process.
        pid: u32,
        /// Its group as the kernel names it.
        path: String,
        /// The mount.
        mount: PathBuf,
    },
    /// A move was refused half way, and not all could be put back.
    #[error("{error}\npartly moved: {left}", left = .left.join("; "))]
    NotMovedBack {
        /// The refusal.
        error: Box<Error>,
        /// What could not be put back.
        left: Vec<String>,
    },
    /// A process of a service stays where systemd put it.
    #[error("process {pid} ({comm}) belongs to {unit}: systemd would lose it, or put it back")]
    OfUnit {
        /// The process.
        pid: u32,
        /// Its name.
        comm: String,
        /// The service.
        unit: String,
        /// What the group that it was to go into was given, of what a unit can have: the file and its text.
        given: Vec<(String, String)>,
    },
    /// systemd runs no unit of this name that has a control group.
    #[error("there is no group '{unit}', and no unit of systemd with that name runs")]
    NoUnit {
        /// As it was typed.
        unit: String,
        /// Units with a control group that are named almost so.
        near: Vec<String>,
    },
    /// The daemon and its exec gate stay where they are.
    #[error(
        "process {pid} is {role}, which ringfence never moves: in a group with limits it could delay program starts"
    )]
    Protected {
        /// The process.
        pid: u32,
        /// What it is.
        role: String,
    },
    /// The group holds the process that asks.
    #[error("group '{group}' holds this very program, which could not tell what came of it")]
    HoldsCaller {
        /// The group.
        group: String,
        /// The process that started this one, a shell mostly.
        parent: u32,
    },
    /// The freezer does not reach processes of the group.
    #[error(
        "{tasks} of group '{group}' {are} not in its freezer group but in '{at}' of {mount}, and would not stop",
        tasks = units::counted(.pids.len(), "process"),
        are = if .pids.len() == 1 { "is" } else { "are" },
        mount = .mount.display()
    )]
    OutOfReach {
        /// The group.
        group: String,
        /// The processes.
        pids: Vec<u32>,
        /// Where the freezer has the first of them.
        at: String,
        /// Where the freezer is mounted.
        mount: PathBuf,
    },
    /// What starts in a frozen group stops before its first instruction.
    #[error("group '{group}' is frozen: a program started in it would not run")]
    Frozen {
        /// The group.
        group: String,
        /// The group, itself or one above, that is to be thawed.
        by: String,
    },
    /// A signal did not reach all processes.
    #[error("{sent} of {all} processes of group '{group}' got the signal; process {pid}: {errno}", errno = describe(*.errno))]
    NotSignalled {
        /// The group.
        group: String,
        /// The first process that did not get it.
        pid: u32,
        /// Why.
        errno: Errno,
        /// How many got it.
        sent: usize,
        /// How many there are.
        all: usize,
    },
    /// A state was requested and not reached in time.
    #[error("{what} of group '{group}' did not finish within {seconds} s: {left}")]
    Timeout {
        /// What was requested.
        what: &'static str,
        /// The group.
        group: String,
        /// How long was waited.
        seconds: u64,
        /// What is left.
        left: String,
    },
    /// Processes fork faster than they are moved: those that were moved are put back.
    #[error(
        "the processes fork faster than they can be moved into group '{group}': {moved} were moved, {left} new ones were still outside"
    )]
    ForkFaster {
        /// The group that they go into.
        group: String,
        /// How many were moved.
        moved: usize,
        /// How many were outside after that.
        left: usize,
    },
    /// systemd did not make the unit that our groups go below.
    #[error(transparent)]
    Unit(#[from] crate::UnitError),
    /// Something outside cgroupfs could not be read or done.
    #[error("{what}: {errno}", errno = describe(*.errno))]
    Outside {
        /// What was tried.
        what: String,
        /// The answer.
        errno: Errno,
        /// What fixes it, if known.
        hint: Option<String>,
    },
}

fn create(group: impl fmt::Display) -> Command {
    Command::ringfence("create").group(group)
}

impl Error {
    /// Was something changed and left so?
    pub fn is_partial(&self) -> bool {
        match self {
            Error::NotMovedBack { .. } | Error::PartlyDeleted { .. } => true,
            Error::NotSignalled { sent, .. } => *sent > 0,
            _ => false,
        }
    }

    /// The unit of systemd that it is about, with what was to be changed of it.
    pub fn of_unit(&self) -> Option<OfUnit> {
        match self {
            Error::Foreign { unit, .. } => unit.as_deref().cloned(),
            Error::OfUnit { unit, given, .. } => {
                Some(OfUnit { unit: unit.clone(), settings: as_typed(given) })
            }
            Error::NotMovedBack { error, .. } | Error::PartlyDeleted { error, .. } => error.of_unit(),
            _ => None,
        }
    }

    /// What to do about it, for a separate `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Refused(refusal) => refusal.hint.clone(),
            Error::BadName(error) => Some(error.hint()),
            Error::NoGroup { near, .. } => Some(match near.as_slice() {
                [] => "ringfence list shows the groups".to_owned(),
                near => format!("did you mean {}? ringfence list shows the groups", near.join(" or ")),
            }),
            Error::NotControlled { group, controller, .. } => {
                Some(create(group).arg("--controllers").arg(controller).into())
            }
            Error::NoController { hint, .. } => Some(hint.clone()),
            Error::NoNamed { name, known } => Some(match known.as_slice() {
                [] => {
                    let mount = Command::new("mount -t cgroup -o").arg(format!("none,name={name}")).arg(name);
                    mount.arg("DIRECTORY").into()
                }
                known => format!("there is {}", known.join(", ")),
            }),
            Error::NoHierarchy => Some("mount -t cgroup2 none /sys/fs/cgroup".to_owned()),
            Error::NoProcess { .. } => Some("ps -e lists what runs".to_owned()),
            Error::KernelThread { .. } => Some(
                "its CPUs, where it allows that, are set with taskset or isolcpus, not by groups".to_owned(),
            ),
            Error::RootGroup { .. } => Some("name a group of your own; ringfence list shows them".to_owned()),
            Error::Foreign { hint, .. } => Some(hint.clone()),
            Error::OutOfSight { .. } => Some("move it from where the whole hierarchy is mounted".to_owned()),
            Error::NotMovedBack { error, .. } | Error::PartlyDeleted { error, .. } => error.hint(),
            Error::OfUnit { unit, given, .. } => {
                let typed = as_typed(given);
                let in_layout: Vec<(&str, String)> =
                    typed.iter().map(|(file, text)| (file.as_str(), text.replace('\n', "; "))).collect();
                let bound = bound(unit, &in_layout);
                Some(match given.as_slice() {
                    [] => bound.trim_start_matches("or ").to_owned(),
                    _ => {
                        let properties =
                            given.iter().filter_map(|(file, text)| unit_lines(file, text)).flatten();
                        let set = set_property(unit, properties.collect());
                        format!("{set}\n{bound}")
                    }
                })
            }
            Error::NoUnit { unit, near } => Some(match near.as_slice() {
                [] => Command::new("systemctl start").arg(unit).to_string(),
                near => {
                    let start = Command::new("systemctl start").arg(unit);
                    format!("{start}\nor did you mean {}?", near.join(" or "))
                }
            }),
            Error::HoldsCaller { parent, .. } => {
                Some(format!("call it from outside: ringfence move / {parent}"))
            }
            Error::OutOfReach { group, pids, .. } => {
                let pids = pids.iter().map(u32::to_string);
                Some(Command::ringfence("move").group(group).args(pids).into())
            }
            Error::Frozen { by, .. } => Some(Command::ringfence("thaw").group(by).into()),
            Error::NotSignalled { errno: Errno::PERM, group, .. } => {
                Some(Command::ringfence("kill").group(group).sudo().into())
            }
            Error::Protected { .. } => Some("leave it out of the processes to move".to_owned()),
            Error::NotSignalled { .. } | Error::Timeout { .. } => None,
            Error::ForkFaster { .. } => {
                Some("stop the one that forks first: kill -STOP PID, move it, kill -CONT PID".to_owned())
            }
            Error::Unit(error) => error.hint(),
            Error::Outside { hint, .. } => hint.clone(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = &self.group;
        let file = self.file.as_deref().unwrap_or_default();
        let value = self.value.as_deref().unwrap_or_default().trim_end().escape_debug();
        match &self.op {
            Op::Read => write!(f, "cannot read {file} of group '{group}'")?,
            Op::Write => write!(f, "cannot write '{value}' to {file} of group '{group}'")?,
            Op::Create => write!(f, "cannot create group '{group}'")?,
            Op::Delete => write!(f, "cannot delete group '{group}'")?,
            Op::List => write!(f, "cannot list group '{group}'")?,
            Op::Move { pid } => write!(f, "cannot move process {pid} into group '{group}'")?,
            Op::Own => write!(f, "cannot change the owner or mode of group '{group}'")?,
            Op::Run => write!(f, "cannot start a program in group '{group}'")?,
            Op::Mount => write!(f, "cannot mount {group}")?,
        }
        write!(f, " ({}): ", self.path.display())?;
        match &self.cause {
            Some(cause) => write!(f, "{cause} [{}]", name(self.errno)),
            None => write!(f, "{}", describe(self.errno)),
        }
    }
}

impl std::error::Error for Refusal {}

/// An errno as words with its name: `no space left on device [ENOSPC]`.
pub fn describe(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.raw_os_error()).to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    format!("{words} [{}]", name(errno))
}

/// The errno's name in the manual pages.
pub fn name(errno: Errno) -> String {
    // rustix prints `Errno::NOSPC`-like names only in its own spelling
    let known = [
        (Errno::PERM, "EPERM"),
        (Errno::NOENT, "ENOENT"),
        (Errno::SRCH, "ESRCH"),
        (Errno::INTR, "EINTR"),
        (Errno::IO, "EIO"),
        (Errno::TOOBIG, "E2BIG"),
        (Errno::NOEXEC, "ENOEXEC"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::ACCESS, "EACCES"),
        (Errno::BUSY, "EBUSY"),
        (Errno::EXIST, "EEXIST"),
        (Errno::NODEV, "ENODEV"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::INVAL, "EINVAL"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::ROFS, "EROFS"),
        (Errno::RANGE, "ERANGE"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::LOOP, "ELOOP"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::OVERFLOW, "EOVERFLOW"),
        (Errno::NXIO, "ENXIO"),
        (Errno::TIMEDOUT, "ETIMEDOUT"),
    ];
    known
        .iter()
        .find(|(known, _)| *known == errno)
        .map_or_else(|| format!("errno {}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}

fn of_root(what: &str) -> String {
    match what {
        "deletion" => "the root group cannot be deleted: it is the hierarchy itself".to_owned(),
        what => format!("{what} the root group would reach every process of the machine"),
    }
}

/// Files' texts with sizes as people type them.
fn as_typed(given: &[(String, String)]) -> Vec<(String, String)> {
    let typed = |(file, text): &(String, String)| {
        (file.clone(), if file.starts_with("memory.") { size(text) } else { text.clone() })
    };
    given.iter().map(typed).collect()
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
