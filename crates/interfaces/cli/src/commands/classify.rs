//! `classify`: processes by the rules.

use std::{fmt::Write, path::Path};

use apply::{Running, State, Target};
use classify::{ClassifyOptions, Configuration, Decision, Done, Files, Outcome, Placer, Rules};
use serde_json::json;
use system::{Accounts, ProcessReader, files::Trust};
use units::hint::Command;

use super::host;
use crate::{
    args,
    failure::{ATTENTION, Failure},
    output,
};

pub fn classify(args: &args::Classify, as_json: bool) -> Result<u8, Failure> {
    let configuration = configuration(args)?;
    let names = Accounts::new();
    let (rules, unknown) = Rules::compile(&configuration.desired.all_rules(), &names);
    for unknown in unknown {
        output::warning(&format!("{}: {unknown}", unknown.origin));
    }
    let host = host()?;
    if !args.dry_run && host.needs_unit() {
        systemd::ensure_unit(&host)?;
    }
    let placer = Placer::new(&host, &configuration.desired, &names);
    let named = !args.pids.is_empty();
    let options = ClassifyOptions { dry_run: args.dry_run, respect_manual_moves: !named };
    let pids = if named { args.pids.clone() } else { ProcessReader::all().map_err(Failure::new)? };
    let mut reader = ProcessReader::new();
    let (mut status, mut rows, mut text) = (0, Vec::new(), String::new());
    for pid in pids {
        let found =
            reader.process(pid).and_then(|mut process| placer.classify(&rules, &mut process, options));
        let found = match found {
            Ok(found) => found,
            // of all processes, some end meanwhile
            Err(_) if !named => continue,
            Err(gone) => {
                output::error(&Failure::new(gone).rendered());
                status = ATTENTION;
                continue;
            }
        };
        if !named && found.explained.decision == Decision::KernelThread {
            continue;
        }
        if let Done::Failed(error) = &found.done {
            let (process, error_text) = (format!("process {pid}"), error.to_string());
            // some name the process themselves
            let named = error_text.starts_with(&format!("{process} "));
            let failure = Failure::new(if named { error_text } else { format!("{process}: {error_text}") });
            output::error(&error.hint().into_iter().fold(failure, Failure::hint).rendered());
            status = ATTENTION;
        }
        if as_json {
            rows.push(row(&found, &rules, args.dry_run));
        } else {
            say(&found, &rules, (named || args.dry_run, args.dry_run), &mut text);
        }
    }
    if as_json {
        output::json(&rows)?
    } else {
        output::text(&text)?
    }
    Ok(status)
}

fn configuration(args: &args::Classify) -> Result<Configuration, Failure> {
    let files = match args.rules.as_slice() {
        [] => Files::below(Path::new("/etc")),
        named => Files::named(named),
    };
    let files = files.map_err(|error| Failure::new(layout::render(&[error], &[]).trim_end().to_owned()))?;
    match Configuration::read(&files, Trust::of_this_process()) {
        Ok(configuration) => {
            output::error(&layout::render(&configuration.warnings, &configuration.sources));
            if configuration.desired.all_rules().is_empty() {
                return Err(Failure::new("there are no rules").hint(with_rules_in_effect(args).map_or_else(
                    || "write [[rules]] or match into /etc/ringfence/layout.toml, or /etc/cgrules.conf, or name a file with --rules".to_owned(),
                    String::from,
                )));
            }
            Ok(configuration)
        }
        Err(unreadable) => {
            output::error(&layout::render(&unreadable.diagnostics, &unreadable.sources));
            Err(Failure::new(format!("{unreadable}; nothing was moved")))
        }
    }
}

/// The same with the rules of the layout in effect, which may be another file than is read by itself. `None`: it has none,
/// or files are named, or the caller may not read the history.
fn with_rules_in_effect(args: &args::Classify) -> Option<Command> {
    if !args.rules.is_empty() {
        return None;
    }
    let (host, running) = (host().ok()?, Running::new());
    let target = Target { host: &host, system: &running };
    let head = apply::layout_in_effect(&State::peek(apply::state_directory()), target).ok()??;
    let command = Command::ringfence("classify --rules").arg(head.rules?.path.display().to_string());
    let command = command.args(args.dry_run.then_some("--dry-run"));
    Some(match args.pids.as_slice() {
        [] => command.arg("--all"),
        pids => command.args(pids.iter().map(u32::to_string)),
    })
}

/// In a word, for programs and people.
fn done(found: &Outcome, dry_run: bool) -> &'static str {
    match (&found.done, found.explained.decision) {
        (Done::There, _) => "already there",
        (Done::WouldMove, _) => "would be moved",
        (Done::Moved, _) => "moved",
        (Done::Failed(_), _) if dry_run => "would not be moved",
        (Done::Failed(_), _) => "not moved",
        (Done::Left, Decision::Stays { .. }) => "left: it was put where it is by hand",
        (Done::Left, Decision::Ignored { .. }) => "left: the rule says ignore",
        (Done::Left, Decision::KernelThread) => "left: it is a thread of the kernel",
        (Done::Left, _) => "left: no rule takes it",
    }
}

fn rule(rules: &Rules, index: usize) -> String {
    let place = rules.origin(index).map(|origin| format!(", {}:{}", origin.file, origin.line));
    format!("rule {}{} ({})", index + 1, place.unwrap_or_default(), rules.shown(index))
}

fn say(found: &Outcome, rules: &Rules, (with_reasons, dry_run): (bool, bool), text: &mut String) {
    let done = done(found, dry_run);
    let (program, user) = (found.program.to_string(), found.user.to_string());
    let (program, user) = (units::printable(&program), units::printable(&user));
    let _ = writeln!(text, "{} ({program}, user {user}): {done}", found.pid); // a String takes everything
    if let Some(index) = found.explained.decision.rule() {
        let way = found.way();
        let way = if way.is_empty() { String::new() } else { format!(": {way}") };
        let _ = writeln!(text, "    {}{}", rule(rules, index), units::printable(&way));
    }
    for passed in found.explained.passed.iter().filter(|_| with_reasons) {
        let _ = writeln!(text, "    not {}: {}", rule(rules, passed.rule), units::printable(&passed.why));
    }
}

fn row(found: &Outcome, rules: &Rules, dry_run: bool) -> serde_json::Value {
    let one = |index: usize| json!({ "rule": index + 1, "origin": rules.origin(index), "takes": rules.shown(index) });
    let passed = found.explained.passed.iter().map(|passed| {
        let mut row = one(passed.rule);
        row["why"] = json!(passed.why);
        row
    });
    json!({
        "pid": found.pid,
        "program": found.program,
        "user": found.user,
        "done": done(found, dry_run),
        "rule": found.explained.decision.rule().map(one),
        "groups": found.goals.iter().map(|goal| goal.group.to_string()).collect::<Vec<_>>(),
        "passed": passed.collect::<Vec<_>>(),
    })
}
