//! How a process of an experiment comes into its group: this program itself goes into the group and then becomes the
//! other program, so that its first instruction already counts there, and its number stays.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    process::Command,
};

use kernel::{GroupName, Host, Real, What};

use units::group_path;
use workloads::{Launch, Program, Stop};

use crate::Error;

/// Starts processes in the groups of one experiment.
pub(crate) struct Spawner {
    program: Program,
    /// The group that the experiment's groups are in.
    parent: String,
    stop: Stop,
}

impl Spawner {
    pub fn new(program: Program, parent: &str, stop: Stop) -> Spawner {
        Spawner { program, parent: parent.to_owned(), stop }
    }
}

impl Launch for Spawner {
    fn command(&self, group: Option<&str>, program: &OsStr) -> Command {
        let Some(group) = group else { return Command::new(program) };
        let mut command = self.program.command();
        command.arg("enter").arg(group_path::join(&self.parent, group)).arg("--").arg(program);
        command
    }

    fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

/// The words after the hidden subcommand: `GROUP -- PROGRAM ARGUMENTS…`. Returns only if it failed.
///
/// # Errors
/// [`Error::Workload`], [`Error::Group`].
pub fn main_enter(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut words = words.into_iter();
    let lacks =
        |what: &str| workloads::Error::Option { option: what.to_owned(), reason: "is needed".to_owned() };
    let group = words.next().ok_or_else(|| lacks("GROUP"))?;
    let program = words.find(|word| word != "--").ok_or_else(|| lacks("PROGRAM"))?;
    let name = GroupName::new(&group.to_string_lossy())?;
    let host = Host::new(Box::new(Real::new()))?;
    host.move_tasks(&name, &[std::process::id()], What::Process)?;
    let mut command = Command::new(&program);
    command.args(words);
    if program == "/proc/self/exe" {
        command.arg0("ringfence");
    }
    let source = command.exec();
    Err(workloads::Error::Start { name: program.to_string_lossy().into_owned(), source }.into())
}
