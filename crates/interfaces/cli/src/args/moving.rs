//! The arguments of `move`.

use std::fmt;

use clap::Args as ClapArgs;
use units::hint::Command;

use super::{Socket, pid};

#[derive(Debug, ClapArgs)]
pub struct Move {
    /// The group; / for the root group
    pub group: String,
    /// Process numbers
    #[arg(value_name = "PID", value_parser = pid, required_unless_present = "selection", conflicts_with = "selection")]
    pub pids: Vec<u32>,
    #[command(flatten)]
    pub selection: Selection,
    /// Only show what --process, --command and --user name
    #[arg(long, short = 'n', requires = "selection")]
    pub dry_run: bool,
    /// Treat the numbers as thread IDs and move only those threads
    #[arg(long, conflicts_with_all = ["tree", "selection"])]
    pub threads: bool,
    /// Also all descendants of these processes
    #[arg(long)]
    pub tree: bool,
    #[command(flatten)]
    pub socket: Socket,
}

/// Processes by what they are.
#[derive(Debug, Clone, ClapArgs)]
#[group(id = "selection", multiple = true)]
pub struct Selection {
    /// The processes of this program: a path or a name; * is any text
    #[arg(long, value_name = "PROGRAM", value_parser = program)]
    pub process: Option<layout::Process>,
    /// The processes whose command line this regular expression occurs in
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    pub command: Option<layout::Expression>,
    /// The processes of this user, by name or number
    #[arg(long, value_name = "USER", value_parser = account)]
    pub user: Option<layout::Account>,
}

fn program(text: &str) -> Result<layout::Process, String> {
    let wrong = || match text.contains(|c| c != '*') {
        true => "expected a program's path or name, in which * is any text",
        false => "this would match every process",
    };
    layout::Process::pattern(text).ok_or_else(|| wrong().to_owned())
}

/// An empty variable in a script must not name all that runs.
fn expression(text: &str) -> Result<layout::Expression, String> {
    let expression = layout::Expression::new(text)?;
    if expression.is_in("") { Err("this would match every process".to_owned()) } else { Ok(expression) }
}

fn account(text: &str) -> Result<layout::Account, String> {
    layout::Account::new(text).ok_or_else(|| "expected a user's name or number".to_owned())
}

impl Selection {
    /// What a process must be like; `None` if nothing was said.
    pub fn matcher(&self) -> Option<layout::Matcher> {
        let Selection { process, command, user } = self.clone();
        if process.is_none() && command.is_none() && user.is_none() {
            return None;
        }
        Some(layout::Matcher {
            who: user.map_or(layout::Who::Anyone, layout::Who::User),
            process,
            also: command.into_iter().map(layout::Condition::Command).collect(),
            strict: false,
            origin: layout::Origin::outside_files("<command line>"),
        })
    }
}

impl fmt::Display for Selection {
    /// As it was typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            ("--process", self.process.as_ref().map(ToString::to_string)),
            ("--command", self.command.as_ref().map(ToString::to_string)),
            ("--user", self.user.as_ref().map(ToString::to_string)),
        ];
        let said =
            said.into_iter().filter_map(|(option, value)| Some(Command::new(option).arg(value?).to_string()));
        f.write_str(&said.collect::<Vec<_>>().join(" "))
    }
}
