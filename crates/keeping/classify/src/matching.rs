//! The processes that fit a matcher, for commands that name processes by what they are instead of by number.

use layout::{Matcher, Rule};
use system::{NoProcess, ProcessReader};

use crate::{Decision, Facts, Names, Rules};

/// A process that fits.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Match {
    /// Its number.
    pub pid: u32,
    /// Its program, as rules mean it.
    pub program: String,
    /// Its effective user, by number.
    pub user: u32,
    /// Its command line, words separated by spaces.
    pub command: String,
}

/// The processes that fit, ascending. Never threads of the kernel, this process, or one that it descends from, PID 1 among them: the
/// command lines of these may contain what is looked for.
///
/// # Errors
/// In words: an account that does not exist, or a `/proc` that can't be listed.
pub fn matching(matcher: Matcher, names: &dyn Names) -> Result<Vec<Match>, String> {
    let rule = Rule { matcher, targets: Vec::new(), ignore: false, ignore_rt: false };
    let (rules, unknown) = Rules::compile(&[rule], names);
    if let Some(unknown) = unknown.into_iter().next() {
        return Err(unknown.error);
    }
    let mut reader = ProcessReader::new();
    let own = with_ancestors(&mut reader, std::process::id());
    let all = ProcessReader::all().map_err(|error| format!("cannot list /proc: {error}"))?;
    let mut found = Vec::new();
    for pid in all.into_iter().filter(|pid| !own.contains(pid)) {
        // it may end meanwhile
        let fits = reader.process(pid).and_then(|mut process| fits(&rules, &mut process));
        found.extend(fits.ok().flatten());
    }
    Ok(found)
}

fn with_ancestors(reader: &mut ProcessReader, pid: u32) -> Vec<u32> {
    let mut own = vec![pid];
    while let Some(&last) = own.last()
        && let Ok(parent) =
            reader.process(last).and_then(|mut process| Ok(Facts::status(&mut process)?.parent))
        && parent > 0
        && !own.contains(&parent)
    {
        own.push(parent);
    }
    own
}

fn fits(rules: &Rules, process: &mut dyn Facts) -> Result<Option<Match>, NoProcess> {
    let Decision::To { .. } = rules.decide(process)? else { return Ok(None) };
    let words = process.command()?;
    let words = words.strip_suffix(b"\0").unwrap_or(words);
    let command = String::from_utf8_lossy(words).replace('\0', " ");
    let program = String::from_utf8_lossy(process.program()?.path()).into_owned();
    Ok(Some(Match { pid: process.pid(), program, user: process.status()?.uid, command }))
}
