//! Completion of a command line as it is typed: options and commands from their definitions, and the names that this
//! machine has: groups, settings, fields, controllers, studies, generations. Shells call this program for it, as the
//! script that `completions` prints makes them. Reads only, and stays silent about failures: nobody waits for an error
//! between two key strokes.

use std::{ffi::OsString, io::Write};

use clap::{Arg, Command};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate,
    engine::{PathCompleter, ValueCompleter},
    env::Shells,
};
use exporters::view;
use kernel::{GroupName, Host, Real};
use settings::{Controller, Version};

use crate::{
    args::{ALIASES, Args},
    failure::Failure,
    studies,
};

/// Shells set this to their name.
const COMPLETE_VARIABLE: &str = "_RINGFENCE_COMPLETE";

/// Answers a shell that completes a line; `None` if this is a command like any other.
pub fn answered() -> Option<u8> {
    let shell = std::env::var(COMPLETE_VARIABLE).ok().filter(|shell| !shell.is_empty())?;
    let shells = Shells::builtins();
    let shell = shells.completer(&shell)?;
    // the shell's words stand behind `--`
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if is_value(&words) {
        return Some(0);
    }
    let mut answer = Vec::new();
    let mut definition = with_names(Args::definition());
    let here = std::env::current_dir().ok();
    if shell.write_complete(&mut definition, words, here.as_deref(), &mut answer).is_ok() {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&answer).and_then(|()| out.flush());
    }
    Some(0)
}

/// bash takes `memory.max=` apart: what follows is a value, which is not completed.
fn is_value(words: &[OsString]) -> bool {
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse::<usize>().ok());
    let Some(index) = index else { return false };
    let is_sign = |index: usize| words.get(index).is_some_and(|word| word == "=");
    is_sign(index) || index.checked_sub(1).is_some_and(is_sign)
}

/// The script that makes a shell ask.
pub fn script(shell: clap_complete::Shell) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("cannot print completions: {error}"));
    let shells = Shells::builtins();
    let name = shell.to_string();
    let found = shells.completer(&name).ok_or_else(|| failed(&format!("{name} is not supported")))?;
    let mut script = Vec::new();
    found
        .write_registration(COMPLETE_VARIABLE, "ringfence", "ringfence", "ringfence", &mut script)
        .map_err(|error| failed(&error))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// The definition, with what each argument may be on this machine.
fn with_names(command: Command) -> Command {
    // a new group is no unit
    let groups = if command.get_name() == "create" { groups } else { groups_and_units };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    // offered once, under its own name; the others complete their arguments all the same
    let own = command.get_name().to_owned();
    let aliases = ALIASES.iter().filter(|(_, name)| *name == own).map(|(alias, _)| *alias);
    let command = command.mut_args(|arg| completed(arg, groups)).visible_alias(None).aliases(aliases);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_names))
}

/// By what the argument's value is called in the help.
fn completed(arg: Arg, groups: fn(&str) -> Vec<CompletionCandidate>) -> Arg {
    let shown = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    let name = shown.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    if name == "STUDY|FILE" {
        return arg.add(ArgValueCompleter::new(study_or_file));
    }
    let list: Option<fn(&str) -> Vec<CompletionCandidate>> = match name.as_str() {
        "GROUP" | "GROUPS" => Some(groups),
        "SETTING" | "SETTINGS" => Some(readable),
        "SETTING=VALUE" => Some(assignments),
        "NAMES" if arg.get_help().is_some_and(|help| help.to_string().starts_with("Settings")) => {
            Some(readable)
        }
        "FIELD" | "FIELDS" | "NAMES" => Some(fields),
        "CONTROLLER" | "CONTROLLERS" => Some(controllers),
        "STUDY" => Some(|_| studies()),
        "GENERATION" => Some(|_| generations()),
        _ => None,
    };
    match list {
        Some(list) => arg.add(ArgValueCompleter::new(Named(list))),
        None => arg,
    }
}

/// Those of a list that begin as what is typed.
struct Named(fn(&str) -> Vec<CompletionCandidate>);

impl ValueCompleter for Named {
    fn complete(&self, current: &std::ffi::OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = current.to_str() else { return Vec::new() };
        let mut found = self.0(typed);
        found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(typed));
        found
    }
}

fn described(name: impl Into<OsString>, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(help.to_owned().into()))
}

/// Ours; from the root after a slash. A shell gets them unquoted, so those that it would take apart are left out.
fn groups(typed: &str) -> Vec<CompletionCandidate> {
    let Ok(host) = Host::new(Box::new(Real::new())) else { return Vec::new() };
    let from_root = typed.starts_with('/');
    let below = if from_root { GroupName::new("/").ok() } else { Some(GroupName::base()) };
    let listed = below.and_then(|below| host.list(&below).ok()).unwrap_or_default();
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let slash = if from_root { "/" } else { "" };
    listed
        .into_keys()
        .filter(is_plain)
        .map(|name| CompletionCandidate::new(format!("{slash}{name}")))
        .collect()
}

/// And units of systemd, which most commands take in the place of a group.
fn groups_and_units(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = groups(typed);
    let host = Host::new(Box::new(Real::new())).ok().filter(|_| !typed.starts_with('/'));
    let units = host.map(|host| host.unit_names()).unwrap_or_default();
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "@:._-".contains(c));
    found.extend(units.into_iter().filter(is_plain).map(|name| described(name, "a unit of systemd")));
    found
}

/// The first sentence.
fn first(doc: &str) -> &str {
    doc.split(". ").next().unwrap_or(doc)
}

/// The table's names; v1's where none of them begins as what is typed.
fn named(typed: &str, rows: impl Iterator<Item = &'static settings::Setting>) -> Vec<(String, &'static str)> {
    let rows: Vec<&'static settings::Setting> = rows.collect();
    let own: Vec<(String, &str)> = rows
        .iter()
        .filter(|row| row.name.starts_with(typed))
        .map(|row| (row.name.to_owned(), first(row.doc)))
        .collect();
    if !own.is_empty() {
        return own;
    }
    let files = rows.iter().flat_map(|row| {
        let names = row.side(Version::V1).binding().map(settings::Binding::names).unwrap_or_default();
        names.iter().map(|name| ((*name).to_owned(), first(row.doc)))
    });
    files.collect()
}

fn readable(typed: &str) -> Vec<CompletionCandidate> {
    named(typed, settings::all()).iter().map(|(name, doc)| described(name, doc)).collect()
}

fn assignments(typed: &str) -> Vec<CompletionCandidate> {
    let rows = settings::all().filter(|setting| setting.can_be_set());
    named(typed, rows).iter().map(|(name, doc)| described(format!("{name}="), doc)).collect()
}

fn fields(_: &str) -> Vec<CompletionCandidate> {
    view::known().map(|of| described(of.name(), first(of.help()))).collect()
}

fn controllers(_: &str) -> Vec<CompletionCandidate> {
    let names = |controller: &Controller| [Version::V1, Version::V2].map(|version| controller.name(version));
    let mut all: Vec<&str> = Controller::ALL.iter().flat_map(names).flatten().collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(CompletionCandidate::new).collect()
}

fn studies() -> Vec<CompletionCandidate> {
    studies::names().map(CompletionCandidate::new).collect()
}

fn study_or_file(current: &std::ffi::OsStr) -> Vec<CompletionCandidate> {
    let studies = Named(|_| studies()).complete(current);
    studies.into_iter().chain(PathCompleter::file().complete(current)).collect()
}

/// Of the usual history: which directory `--state` names is not known here.
fn generations() -> Vec<CompletionCandidate> {
    let state = apply::State::peek(apply::state_directory());
    let all = apply::generations(&state).unwrap_or_default();
    all.iter().map(|kept| CompletionCandidate::new(kept.generation().to_string())).collect()
}
