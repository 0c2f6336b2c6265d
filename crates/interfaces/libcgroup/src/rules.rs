//! Where processes belong by the rules below /etc, for commands without a group: read and decided by
//! `classify`, as the daemon does.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use classify::{ClassifyOptions, Configuration, Decision, Done, Facts, Files, KnownProcess, Placer, Rules};
use kernel::Host;
use system::{Accounts, ProcessReader, files::Trust};

use crate::failure::{BAD_RULES, Failure, NO_GROUP, SOME_FAILED, SYSTEM, warn};

/// The rules of this machine, ready for use.
pub(crate) struct ByRules {
    configuration: Configuration,
    rules: Rules,
    accounts: Accounts,
}

impl ByRules {
    /// Reads them.
    ///
    /// # Errors
    /// There are none, or they have errors, which are said.
    pub(crate) fn read() -> Result<ByRules, Failure> {
        let etc = Path::new("/etc");
        let unreadable = |text: String| Failure::new(BAD_RULES, text.trim_end());
        let files = Files::below(etc).map_err(|error| unreadable(layout::render(&[error], &[])))?;
        if files.rules.is_empty() {
            return Err(Failure::new(BAD_RULES, "there are no rules, and no group is given")
                .hint("write /etc/cgrules.conf, or give -g CONTROLLERS:PATH"));
        }
        let configuration = Configuration::read(&files, Trust::of_this_process()).map_err(|error| {
            warn(&layout::render(&error.diagnostics, &error.sources));
            Failure::new(BAD_RULES, error)
        })?;
        let accounts = Accounts::new();
        let (rules, _) = Rules::compile(&configuration.desired.all_rules(), &accounts);
        Ok(ByRules { configuration, rules, accounts })
    }

    /// Puts a running process where it belongs; where no rule fits it stays.
    ///
    /// # Errors
    /// It is gone, or could not be moved.
    pub(crate) fn place(&self, host: &Host, pid: u32) -> Result<(), Failure> {
        let mut reader = ProcessReader::new();
        let gone = || Failure::from(kernel::Error::NoProcess { pid }).status(SOME_FAILED);
        let mut process = reader.process(pid).map_err(|_| gone())?;
        let placer = Placer::new(host, &self.configuration.desired, &self.accounts);
        let outcome =
            placer.classify(&self.rules, &mut process, ClassifyOptions::default()).map_err(|_| gone())?;
        match outcome.done {
            Done::Failed(error) => Err(failed(&error).status(SOME_FAILED)),
            _ => Ok(()),
        }
    }

    /// Puts this process where the program belongs that it is about to become.
    ///
    /// # Errors
    /// It could not be moved.
    pub(crate) fn place_self(&self, host: &Host, words: &[OsString]) -> Result<(), Failure> {
        let program = words.first().map(in_path).unwrap_or_default();
        let command = words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect();
        let nobody =
            |gone: system::NoProcess| Failure::new(SYSTEM, format!("there is no process {}", gone.pid));
        let called = words.first().map(|word| word.as_bytes()).unwrap_or_default();
        let program = program.canonicalize().unwrap_or(program);
        let mut process =
            KnownProcess::to_run(program.as_os_str().as_bytes(), called, command).map_err(nobody)?;
        let Decision::To { rule } = self.rules.decide(&mut process).map_err(nobody)? else { return Ok(()) };
        let placer = Placer::new(host, &self.configuration.desired, &self.accounts);
        let facts: &mut dyn Facts = &mut process;
        placer.place(&self.rules, rule, facts).map(|_| ()).map_err(|error| failed(&error))
    }
}

fn failed(error: &classify::Error) -> Failure {
    let status = match error {
        classify::Error::Kernel(kernel::Error::NoGroup { .. } | kernel::Error::NotControlled { .. }) => {
            NO_GROUP
        }
        _ => SYSTEM,
    };
    error.hint().into_iter().fold(Failure::new(status, error), Failure::hint)
}

/// Where execvp(3) would find a program.
fn in_path(word: &OsString) -> PathBuf {
    let given = PathBuf::from(word);
    if word.as_bytes().contains(&b'/') {
        return given;
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).map(|at| at.join(word)).find(|path| path.is_file());
    found.unwrap_or(given)
}
