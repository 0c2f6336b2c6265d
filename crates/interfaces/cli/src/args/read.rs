//! How a command line is read: the frequent commands by their own definitions alone, everything else, help and mistakes by
//! the whole definition.

use std::ffi::OsString;

use clap::{Args as ClapArgs, CommandFactory, FromArgMatches};

use super::{
    Apply, Args, Check, Command, Create, Delete, Everywhere, Get, History, Kill, List, Metrics, Mistake,
    Move, PlanArgs, Run, Set, Settings, Status, Undo, Wait, Where, help, mistakes,
};

/// Adds a command's arguments.
type Definition = fn(clap::Command) -> clap::Command;

/// The commands that scripts and people call most. Building the definitions of all commands takes longer than most of
/// these do, so they are read with their own alone.
const FREQUENT: [(&str, Definition); 20] = [
    ("apply", Apply::augment_args),
    ("check", Check::augment_args),
    ("create", Create::augment_args),
    ("delete", Delete::augment_args),
    ("freeze", Wait::augment_args),
    ("get", Get::augment_args),
    ("history", History::augment_args),
    ("kill", Kill::augment_args),
    ("list", List::augment_args),
    ("metrics", Metrics::augment_args),
    ("move", Move::augment_args),
    ("plan", PlanArgs::augment_args),
    ("run", Run::augment_args),
    ("set", Set::augment_args),
    ("settings", Settings::augment_args),
    ("stat", Get::augment_args),
    ("status", Status::augment_args),
    ("thaw", Wait::augment_args),
    ("undo", Undo::augment_args),
    ("where", Where::augment_args),
];

/// Other names of commands; in step with `visible_alias` below.
pub const ALIASES: [(&str, &str); 6] = [
    ("diff", "plan"),
    ("exec", "run"),
    ("ls", "list"),
    ("rm", "delete"),
    ("rollback", "undo"),
    ("validate", "check"),
];

impl Args {
    /// Reads the command line.
    pub fn read() -> Result<Args, Mistake> {
        let mut words: Vec<OsString> = std::env::args_os().collect();
        if crate::program_name().as_deref() == Some("ringfenced") {
            words.insert(1, "daemon".into());
        }
        if let Some(mistake) = mistakes::of_run(&words) {
            return Err(mistake);
        }
        if let Some(args) = Self::read_run(&words).or_else(|| Self::read_frequent(&words)) {
            return Ok(args.with_files());
        }
        let is_version = matches!(words.as_slice(), [_, word] if word == "--version" || word == "-V");
        let definition = match is_version {
            true => clap::Command::new("ringfence").version(env!("CARGO_PKG_VERSION")),
            false => Self::definition(),
        };
        let matches = definition.try_get_matches_from(&words);
        let read = matches.and_then(|matches| Args::from_arg_matches(&matches));
        read.map(Args::with_files).map_err(|error| mistakes::explained(error, &words))
    }

    /// The whole definition, as help, completions and manual pages want it.
    pub fn definition() -> clap::Command {
        help::grouped(Args::command())
    }

    /// `--file` is the positional argument by another name.
    fn with_files(mut self) -> Args {
        match &mut self.command {
            Command::Apply(apply) => apply.file.replace_layout(&mut apply.layout),
            Command::Plan(plan) => plan.file.replace_layout(&mut plan.layout),
            Command::Check(check) => check.file.replace_layout(&mut check.layout),
            Command::Schedule(schedule) => {
                schedule.layout = schedule.file.file.take().or(schedule.layout.take())
            }
            Command::Simulate(simulate) => simulate.file.replace_layout(&mut simulate.layout),
            _ => {}
        }
        self
    }

    /// `run GROUP -- COMMAND…` as it stands: each process that is started waits for this.
    fn read_run(words: &[OsString]) -> Option<Args> {
        let [_, run, group, dashes, command @ ..] = words else { return None };
        let group = group.to_str().filter(|group| !group.starts_with('-'))?;
        (run == "run" && dashes == "--" && !command.is_empty()).then(|| Args {
            everywhere: Everywhere { json: false },
            command: Command::Run(Run { group: group.to_owned(), command: command.to_vec() }),
        })
    }

    /// `None` for any other command, for help, and for mistakes: the whole definition explains those better.
    fn read_frequent(words: &[OsString]) -> Option<Args> {
        let typed = words.get(1)?.to_str()?;
        let alias = ALIASES.iter().find(|(alias, _)| *alias == typed);
        let name = alias.map_or(typed, |(_, name)| *name);
        let (name, augment) = FREQUENT.iter().find(|(frequent, _)| *frequent == name)?;
        let mut command = augment(clap::Command::new(*name)).disable_help_flag(true);
        if let Some((alias, _)) = alias {
            command = command.alias(*alias);
        }
        let whole = Everywhere::augment_args(clap::Command::new("ringfence"))
            .disable_help_flag(true)
            .subcommand(command);
        Args::from_arg_matches(&whole.try_get_matches_from(words).ok()?).ok()
    }
}
