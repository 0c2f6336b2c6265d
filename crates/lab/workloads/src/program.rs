//! This program itself, re-executed by a hidden subcommand: how built-in workloads are started.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

/// The running program with the words before a workload's name. Also right if its file was replaced meanwhile.
#[derive(Debug, Clone)]
pub struct Program {
    words: Vec<OsString>,
}

impl Program {
    /// It with a hidden subcommand.
    pub fn this(subcommand: &str) -> Program {
        Program { words: vec![subcommand.into()] }
    }

    /// It as a command, up to the subcommand's words.
    pub fn command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ringfence").args(&self.words);
        command
    }

    /// The subcommand's words.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }
}
