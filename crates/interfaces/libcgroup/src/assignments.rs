//! What `cgset` and `cgxset` have in common: names and values, the groups they are for, and the one change that makes
//! all of it so or nothing.

use std::fmt::Write;

use apply::SettingValue;
use clap::{Arg, ArgAction, ArgMatches, Command};
use kernel::{GroupName, Host};
use plan::SettingRequest;
use settings::{NamedSetting, Side, Value, ValueError, Version};

use crate::{
    arguments::{flag, ignore_default, texts, verbose},
    core_files::{Back, CoreFile, Step},
    failure::{BAD_ARGUMENTS, Failure, NO_GROUP, NO_SETTING, warn},
    machine,
    raw::Raw,
};

/// The arguments of both.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("variable")
                .short('r')
                .long("variable")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("The setting and its value; by its v1 or v2 name on any host"),
        )
        .arg(
            Arg::new("copy-from")
                .long("copy-from")
                .value_name("GROUP")
                .conflicts_with("variable")
                .help("Take over the settings of this group, where both have them"),
        )
        .arg(flag("recursive", 'R', "Also all groups below").long("recursive"))
        .arg(ignore_default())
        .arg(verbose())
        .arg(
            Arg::new("groups").value_name("GROUP").action(ArgAction::Append).num_args(1..).help("The groups"),
        )
}

/// Which names are meant, and what happens with those that the host can't have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names {
    /// Only names of this version.
    pub only: Option<Version>,
    /// What the host's version lacks is left out.
    pub ignore_unmappable: bool,
}

pub(crate) fn run(matches: &ArgMatches, names: Names) -> Result<u8, Failure> {
    let (variables, groups) = (texts(matches, "variable"), texts(matches, "groups"));
    let from = matches.get_one::<String>("copy-from");
    if groups.is_empty() && variables.is_empty() && from.is_none() {
        return Err(Failure::new(BAD_ARGUMENTS, "Usage is cgset -r <name=value> <relative path to cgroup>"));
    }
    if groups.is_empty() {
        return Err(Failure::new(BAD_ARGUMENTS, "no cgroup specified"));
    }
    if variables.is_empty() && from.is_none() {
        let failure = Failure::new(BAD_ARGUMENTS, "no name-value pair was set");
        return Err(failure.hint("-r cpu.shares=512, or --copy-from GROUP"));
    }
    let wanted = Wanted::read(&variables, names)?;
    let host = machine::host()?;
    let named = |path: &&str| {
        machine::group(&host, host.hierarchies(), &machine::resolved(path)).map_err(as_reference)
    };
    let groups: Vec<GroupName> = groups.iter().map(named).collect::<Result<_, _>>()?;
    let from = from.map(|from| named(&from.as_str())).transpose()?;
    let mut requests = Vec::new();
    let mut notes = String::new();
    let mut texts = Vec::new();
    let targets = targets(&host, &groups, matches.get_flag("recursive"))?;
    let mut steps = Vec::new();
    for core in &wanted.core {
        steps.extend(core.steps(&host, &targets)?);
    }
    for (group, _) in targets {
        for raw in &wanted.raw {
            texts.push(raw.text_for(&host, &group)?);
        }
        if from.is_some() && !group.path().is_empty() {
            host.existing(&group).map_err(|error| as_reference(error.into()))?;
        }
        let copied = from.as_ref().map(|from| apply::copies(&host, from, &group)).transpose()?;
        for value in copied.into_iter().flatten().chain(wanted.values.iter().cloned()) {
            match value.request(&host, &group) {
                Ok(request) => requests.push(request),
                Err(apply::Error::Lacks { setting, version, .. }) if names.ignore_unmappable => {
                    let _ = writeln!(notes, "{setting}: left out, cgroup {version} has none");
                }
                Err(error) => return Err(as_reference(error.into())),
            }
        }
    }
    // what is left to the kernel goes first: only it can refuse these, and then nothing else was changed
    let done = Step::do_all(&host, &steps)?;
    let written = Raw::write_all(&host, &texts).inspect_err(|_| Back::take_back(&host, &done))?;
    let changes = apply::set(&host, &requests).map_err(|error| {
        Raw::put_back(&host, &written);
        Back::take_back(&host, &done);
        as_reference(error.into())
    })?;
    if matches.get_flag("verbose") {
        notes.push_str(&notes_of(&changes, &requests));
        warn(&notes);
    }
    Ok(0)
}

/// What all `NAME=VALUE` ask for.
#[derive(Default)]
struct Wanted {
    values: Vec<SettingValue>,
    raw: Vec<Raw>,
    core: Vec<CoreFile>,
}

impl Wanted {
    fn read(variables: &[&str], names: Names) -> Result<Wanted, Failure> {
        let mut wanted = Wanted::default();
        for text in variables {
            // the words that scripts know
            let wrong = || {
                let wrong = Failure::new(BAD_ARGUMENTS, format!("wrong parameter of option -r: {text}"));
                wrong.hint("-r NAME=VALUE, for example cpu.shares=512")
            };
            let (name, value) = text.split_once('=').ok_or_else(wrong)?;
            let value = value.trim_matches(['"', '\'']);
            if name.is_empty() || value.is_empty() {
                return Err(wrong());
            }
            match CoreFile::read(name, value) {
                Some(core) if names.only != Some(Version::V1) => wanted.core.push(core?),
                _ => wanted.add(name, value, names)?,
            }
        }
        wanted.values = last_of_each(wanted.values);
        Ok(wanted)
    }

    fn add(&mut self, name: &str, value: &str, names: Names) -> Result<(), Failure> {
        match setting(name, value, names)? {
            Read::Value(value) => self.values.push(value),
            Read::Raw(raw) => self.raw.push(raw),
        }
        Ok(())
    }
}

enum Read {
    Value(SettingValue),
    Raw(Raw),
}

/// A setting with its value, for this machine.
fn setting(name: &str, value: &str, names: Names) -> Result<Read, Failure> {
    let found = settings::find(name)?;
    if let Some(version) = names.only.filter(|version| !is_name_of(&found, *version)) {
        let other = if version == Version::V1 { "-2" } else { "-1" };
        return Err(Failure::new(NO_SETTING, format!("{name} is no name of cgroup {version}"))
            .hint(format!("use {other}, or neither: names of both versions are known")));
    }
    match SettingValue::of(found.clone(), value, &system::Live) {
        Ok((value, _)) => Ok(Read::Value(value)),
        // libcgroup has no ranges: the kernel decides; it knows how many CPUs `0-N` are
        Err(error)
            if (is_number(value) || (matches!(error, ValueError::List { .. }) && is_last_word(value)))
                && !matches!(error, ValueError::ReadOnly { .. }) =>
        {
            Ok(Read::Raw(Raw::new(found, value, error)))
        }
        Err(error) => Err(error.into()),
    }
}

/// A list up to the last CPU or node there is (`0-N`), or of all.
fn is_last_word(list: &str) -> bool {
    list == "all"
        || (list.contains('N') && list.replace('N', "0").bytes().all(|byte| !byte.is_ascii_alphabetic()))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Does that version call the setting so? Controllers whose files have the same name in both do twice.
fn is_name_of(found: &NamedSetting, version: Version) -> bool {
    match found.side(version) {
        Side::Has(binding) => {
            let files = found.files(version);
            files.iter().take(binding.names().len()).any(|file| *file == found.name)
                || (binding.names().is_empty() && found.canonical() == found.name)
        }
        Side::Lacks { .. } => false,
    }
}

/// Of a setting that was given several times the last counts, as one write after the other would have it. Values that
/// name devices or rules add up.
fn last_of_each(values: Vec<SettingValue>) -> Vec<SettingValue> {
    let mut last: Vec<SettingValue> = Vec::new();
    for value in values {
        let adds = matches!(value.value, Value::PerDevice(_) | Value::Weights { .. } | Value::Rules(_));
        if !adds {
            last.retain(|other| other.found.name != value.found.name);
        }
        last.push(value);
    }
    last
}

/// The groups, each before those below it, which are marked.
fn targets(host: &Host, groups: &[GroupName], recursive: bool) -> Result<Vec<(GroupName, bool)>, Failure> {
    let mut targets = Vec::new();
    for group in groups {
        targets.push((group.clone(), false));
        if recursive {
            if !group.path().is_empty() {
                host.existing(group)?;
            }
            let prefix = if group.path().is_empty() { "/".to_owned() } else { format!("{group}/") };
            for below in host.list(group)?.keys() {
                targets.push((GroupName::new(&format!("{prefix}{below}"))?, true));
            }
        }
    }
    Ok(targets)
}

/// The reference says of a group that is not there that it has no such setting.
fn as_reference(failure: Failure) -> Failure {
    if failure.status == NO_GROUP { failure.status(NO_SETTING) } else { failure }
}

fn notes_of(changes: &[apply::Change], requests: &[SettingRequest]) -> String {
    let mut text = String::new();
    for change in changes {
        let version = requests.iter().find(|request| {
            request.found.name == change.setting && request.group.to_string() == change.group
        });
        let version = version.map(|request| request.place.version);
        for write in &change.written {
            let file = write.path.file_name().unwrap_or_default().to_string_lossy();
            if file != change.setting {
                let version = version.map(|version| format!(" (cgroup {version})")).unwrap_or_default();
                let _ = writeln!(text, "{}: {file} <- {}{version}", change.setting, write.text.trim_end());
            }
        }
        for note in change.differences.iter().chain(&change.approximations) {
            let _ = writeln!(text, "{}: {note}", change.setting);
        }
    }
    text
}
