//! Mistakes on the command line, said so that the next try is right: commands that people know from other programs,
//! arguments in the wrong order. Tips that would do harm are left out.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use units::{hint::Command, shell_quote};

use crate::{
    failure::{Failure, USAGE},
    output,
};

/// What is wrong with a command line, or the help that it asks for.
#[derive(Debug)]
pub enum Mistake {
    /// As clap says it: help, version, and most mistakes.
    Clap(Box<clap::Error>),
    /// In our own words.
    Ours(Failure),
}

impl Mistake {
    /// Says it, and the exit status.
    pub fn reported(&self) -> u8 {
        let as_json =
            std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
        match self {
            Mistake::Ours(failure) => output::failure(failure, as_json),
            Mistake::Clap(error) if as_json && error.use_stderr() => {
                // clap's paragraphs: what is wrong, with what is missing a line each; tips, the usage
                let text = error.render().to_string();
                let wrong = text.split("\n\n").next().unwrap_or_default();
                let mut lines = wrong.lines().map(str::trim);
                let first = lines.next().unwrap_or_default();
                let named: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
                let message = format!("{first} {}", named.join(" ")).trim_end().to_owned();
                let hint = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
                let failure = Failure::usage(message.strip_prefix("error: ").unwrap_or(&message));
                output::failure(&hint.into_iter().fold(failure, Failure::hint), true)
            }
            Mistake::Clap(error) => {
                // a closed standard output is the reader's wish
                let _ = error.print();
                if error.use_stderr() { USAGE } else { 0 }
            }
        }
    }
}

/// Commands that people try, and what does it here.
const GUESSES: [(&[&str], &str); 20] = [
    (&["add", "new", "mkdir"], "ringfence create GROUP"),
    (&["destroy", "remove", "rmdir"], "ringfence delete GROUP"),
    (&["show", "cat"], "ringfence get GROUP, or ringfence status GROUP"),
    (&["inspect", "info"], "ringfence status GROUP -v"),
    (
        &["ps", "procs", "tasks"],
        "ringfence where GROUP for a group's processes, ringfence where PID for one process",
    ),
    (&["tree"], "ringfence list --tree"),
    (&["attach", "mv", "assign"], "ringfence move GROUP PID"),
    (&["stop", "suspend"], "ringfence freeze GROUP"),
    (&["unpause", "unfreeze", "continue"], "ringfence thaw GROUP"),
    (
        &["start", "enable"],
        "ringfence apply once, or ringfenced to apply at boot and keep it (docs/start.md)",
    ),
    (&["restart"], "ringfence reload"),
    (&["revert", "back"], "ringfence undo"),
    (&["log", "logs"], "ringfence history for changes, ringfence dump for recorded figures"),
    (&["stats", "usage"], "ringfence stat GROUP, or ringfence watch GROUP"),
    (&["describe", "explain"], "ringfence settings SETTING"),
    (&["edit"], "ringfence top, then e"),
    (&["init"], "ringfence import, or docs/start.md for a first layout"),
    (&["lint", "verify"], "ringfence check LAYOUT"),
    (&["config", "configure"], "ringfence check LAYOUT, ringfence apply LAYOUT"),
    (&["version"], "ringfence --version"),
];

/// `run GROUP --cpus 0 -- COMMAND`: what looks like an option of `run` would be taken for the program.
pub fn of_run(words: &[OsString]) -> Option<Mistake> {
    let [_, command, group, option, ..] = words else { return None };
    let (group, option) = (group.to_str()?, option.to_str()?);
    let is_run = command == "run" || command == "exec";
    if !is_run || group.starts_with('-') || !option.starts_with('-') || option == "--" || is_help(option) {
        return None;
    }
    let failure = Failure::usage(format!("'{option}' is not a program, and run takes no such option"));
    Some(Mistake::Ours(failure.hint(format!(
        "{} SETTING=VALUE, then {} -- COMMAND",
        Command::ringfence("set").group(group),
        Command::ringfence("run").group(group)
    ))))
}

fn is_help(option: &str) -> bool {
    ["-h", "--help", "--json"].contains(&option)
}

/// clap's error, without tips that lead astray and with those that help.
pub fn explained(mut error: clap::Error, words: &[OsString]) -> Mistake {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let unknown = match error.get(ContextKind::InvalidSubcommand) {
                Some(ContextValue::String(name)) => name.clone(),
                _ => return Mistake::Clap(Box::new(error)),
            };
            match unknown_command(&unknown, words) {
                Some(failure) => Mistake::Ours(failure),
                None => Mistake::Clap(Box::new(error)),
            }
        }
        ErrorKind::ValueValidation => match swapped(words) {
            Some(failure) => Mistake::Ours(failure),
            None => Mistake::Clap(Box::new(error)),
        },
        _ => {
            // "to pass '--dry-run' as a value, use '-- --dry-run'" would name a file --dry-run
            error.remove(ContextKind::Suggested);
            Mistake::Clap(Box::new(error))
        }
    }
}

/// A command of ours that does not exist; `None` below `lab` and the like, where clap knows the near names.
fn unknown_command(unknown: &str, words: &[OsString]) -> Option<Failure> {
    if words.iter().skip(1).find(|word| !word.to_string_lossy().starts_with('-'))? != unknown {
        return None;
    }
    let failure = Failure::usage(format!("unknown command '{unknown}'"));
    if let Some((_, instead)) = GUESSES.iter().find(|(guesses, _)| guesses.contains(&unknown)) {
        return Some(failure.hint(instead));
    }
    let definition = super::Args::definition();
    let visible = definition.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: Vec<&str> =
        visible.flat_map(|sub| std::iter::once(sub.get_name()).chain(sub.get_visible_aliases())).collect();
    let near = units::nearest(unknown, names.iter().copied());
    Some(match near.is_empty() {
        true => failure.hint("ringfence help lists the commands"),
        false => failure.hint(format!("did you mean {}?", near.join(" or "))),
    })
}

/// `move 4711 db/oltp1`: the numbers before the group.
fn swapped(words: &[OsString]) -> Option<Failure> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let ["move", rest @ ..] = words.as_slice() else { return None };
    let (options, named): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with('-'));
    let is_number = |word: &&&str| word.parse::<u32>().is_ok();
    let (pids, groups): (Vec<&str>, Vec<&str>) = named.iter().partition(|word| is_number(word));
    let ([group], false, true) =
        (groups.as_slice(), pids.is_empty(), named.first().is_some_and(|word| is_number(&word)))
    else {
        return None;
    };
    let line: Vec<&str> =
        ["ringfence", "move"].into_iter().chain(options).chain([*group]).chain(pids).collect();
    Some(
        Failure::usage(format!("'{group}' is not a process number: the group comes first"))
            .hint(line.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")),
    )
}
