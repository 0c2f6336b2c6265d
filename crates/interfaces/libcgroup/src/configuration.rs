//! The files in cgconfig.conf's language that `-l` and `-L` name, read as one.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use layout::{Account, Desired, Diagnostic, Mode, Origin, Person, Severity, Source, Spanned};
use system::files::{self, Trust};

use crate::failure::{BAD_CONFIGURATION, Failure, SYSTEM, warn};

/// A configuration with its texts, to show places in.
pub(crate) struct Configuration {
    pub desired: Desired,
    pub sources: Vec<Source>,
    /// What is worth knowing, and no error.
    pub warnings: Vec<Diagnostic>,
}

/// The files that `-l` and `-L` name, in the order given.
///
/// # Errors
/// A directory that can't be read.
pub(crate) fn files(matches: &ArgMatches) -> Result<Vec<PathBuf>, Failure> {
    let given = |name| {
        let values = matches.get_many::<PathBuf>(name).into_iter().flatten();
        matches.indices_of(name).into_iter().flatten().zip(values).map(move |(at, path)| (at, name, path))
    };
    let mut given: Vec<_> = given("load").chain(given("load-directory")).collect();
    given.sort_by_key(|(at, ..)| *at);
    let mut files = Vec::new();
    for (_, name, path) in given {
        if name == "load" {
            files.push(path.clone());
        } else {
            let listed = files::files_in(path, "conf");
            files.extend(
                listed.map_err(|error| Failure::new(SYSTEM, layout::render(&[error], &[]).trim_end()))?,
            );
        }
    }
    Ok(files)
}

/// Reads files as one configuration; all that is wrong with them is said.
///
/// # Errors
/// A file that is missing, or has an error.
pub(crate) fn read(files: &[PathBuf]) -> Result<Configuration, Failure> {
    let missing = |path: &&PathBuf| Path::new(path).metadata().is_err();
    let status = if files.iter().any(|path| missing(&path)) { SYSTEM } else { BAD_CONFIGURATION };
    let loaded = files::load(files, Trust::of_this_process());
    let unread = !loaded.diagnostics.is_empty();
    let mut reading = layout::read_cgconfigs(&loaded.sources);
    reading.diagnostics.splice(0..0, loaded.diagnostics);
    match reading.desired.filter(|_| !unread) {
        Some(desired) => {
            Ok(Configuration { desired, sources: loaded.sources, warnings: reading.diagnostics })
        }
        None => {
            warn(&layout::render(&reading.diagnostics, &loaded.sources));
            let errors = layout::errors(&reading.diagnostics);
            let mut wrong = reading.diagnostics.iter().filter(|one| one.severity == Severity::Error);
            // libcgroup reads any value, and the kernel refuses it
            if wrong.all(|one| one.is_of_value) {
                let message = format!("Invalid argument: {errors}; nothing was changed");
                return Err(Failure::new(SYSTEM, message));
            }
            Err(Failure::new(status, format!("{errors}; nothing was changed")))
        }
    }
}

/// Gives groups that do not say otherwise the owners and modes of the command line.
///
/// # Errors
/// A text that is no account.
pub(crate) fn default_access(desired: &mut Desired, matches: &ArgMatches) -> Result<(), Failure> {
    let mode = |name| matches.get_one::<u32>(name).and_then(|mode| Mode::new(&format!("{mode:o}")));
    // no file of a group is a program
    let file_mode =
        |name| matches.get_one::<u32>(name).and_then(|mode| Mode::new(&format!("{:o}", mode & 0o666)));
    let owner = |name: &str| person(matches.get_one::<String>(name).map(String::as_str));
    let tasks = Person { mode: file_mode("tasks-mode"), ..owner("tasks")? };
    let mut admin =
        Person { mode: file_mode("file-mode"), directory_mode: mode("directory-mode"), ..owner("admin")? };
    admin.all_files = admin != Person::default();
    let demands = desired.groups.iter_mut().map(|group| &mut group.demands);
    for demands in demands.chain(desired.templates.iter_mut().map(|template| &mut template.demands)) {
        fill(&mut demands.tasks, &tasks);
        fill(&mut demands.admin, &admin);
    }
    Ok(())
}

fn person(owner: Option<&str>) -> Result<Person, Failure> {
    let Some(owner) = owner else { return Ok(Person::default()) };
    let (user, group) = owner.split_once(':').unwrap_or((owner, ""));
    let account = |name: &str| match name {
        "" => Ok(None),
        name => Account::new(name)
            .map(Some)
            .ok_or_else(|| Failure::usage(format!("'{name}' is no user or group")).hint("use USER:GROUP")),
    };
    Ok(Person { user: account(user)?, group: account(group)?, ..Person::default() })
}

fn fill(said: &mut Option<Spanned<Person>>, default: &Person) {
    if *default == Person::default() {
        return;
    }
    match said {
        None => *said = Some(Spanned::new(default.clone(), Origin::outside_files("<command line>"))),
        Some(Spanned { value, .. }) => {
            value.user = value.user.take().or_else(|| default.user.clone());
            value.group = value.group.take().or_else(|| default.group.clone());
            value.mode = value.mode.or(default.mode);
            value.directory_mode = value.directory_mode.or(default.directory_mode);
            value.all_files |= default.all_files;
        }
    }
}
