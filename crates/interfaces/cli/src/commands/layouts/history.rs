//! `history`: who changed what when, and how it ended.

use std::fmt::Write;

use answers::layouts::{Generation as Row, Record};
use apply::{Generation, Running, Target};
use units::counted;

use super::{
    generations::{interrupted, time, unrecorded, without_record},
    history_of,
};
use crate::{args, commands::host_even_unmounted, failure::Failure, output};

pub fn history(args: &args::History, as_json: bool) -> Result<(), Failure> {
    let state = history_of(&args.state);
    let (host, running) = (host_even_unmounted()?, Running::new());
    let target = Target { host: &host, system: &running };
    let mut all = apply::generations_or_lost(&state, target)?;
    let mut in_effect = apply::in_effect_now(&state, target, &all);
    in_effect.retain(|generation| !apply::is_gone(&state, target, *generation));
    let is_empty = all.is_empty();
    if let Some(wanted) = args.generation {
        all.retain(|kept| kept.generation() == wanted);
        if all.is_empty() {
            return Err(
                Failure::new(format!("there is no generation {wanted}")).hint("ringfence history lists them")
            );
        }
    }
    all.drain(..all.len().saturating_sub(args.last.unwrap_or(usize::MAX)));
    let pending = apply::pending(&state, target).ok().flatten();
    if as_json {
        let row = |kept: Generation| {
            let is_in_effect = in_effect.contains(&kept.generation());
            row(kept, is_in_effect)
        };
        let mut rows: Vec<Row> = all.into_iter().map(row).collect();
        // of one alone: they may be thousands
        if let (Some(generation), [row]) = (args.generation, rows.as_mut_slice())
            && let Ok(steps) = state.steps(generation)
        {
            row.steps = Some(steps);
        }
        if let Some(last) = rows.last_mut() {
            last.pending = pending;
        }
        return output::json_by_name(&rows);
    }
    if is_empty {
        return output::text(&unrecorded(&state, &host));
    }
    let width = all
        .iter()
        .filter_map(Generation::head)
        .map(|head| head.by.person().chars().count())
        .max()
        .unwrap_or(0);
    let mark = |kept: &Generation| if in_effect.contains(&kept.generation()) { '*' } else { ' ' };
    let mut text: String = all.iter().map(|kept| format!("{}{}", mark(kept), line(kept, width))).collect();
    if let Some(pending) = &pending {
        let _ = writeln!(text, "      {}", pending); // a String takes everything
    }
    output::text(&text)
}

/// One line, and below it what went wrong; `width`: of the names.
fn line(kept: &Generation, width: usize) -> String {
    let mut text = match kept.head() {
        None => format!("{:3}  {}\n", kept.generation(), kept.state()),
        Some(head) => format!(
            "{:3}  {}  {:width$}  {:12}  {:>9}  {}\n",
            head.generation,
            time(head.at),
            head.by.person(),
            kept.state(),
            counted(head.steps, "step"),
            head.words()
        ),
    };
    for wrong in wrong(kept) {
        // writing to a String never fails
        let _ = writeln!(text, "      {}", wrong.replace('\n', "\n      "));
    }
    text
}

fn wrong(kept: &Generation) -> Vec<String> {
    match kept {
        Generation::Finished(summary) => {
            let result = &summary.result;
            // an error has in it what is left
            let left = if result.error.is_none() { result.left.as_slice() } else { &[] };
            result.error.iter().chain(left).chain(&result.replaced).cloned().collect()
        }
        Generation::Unfinished { head, lives: false, ended } => {
            vec![format!("generation {} {}", head.generation, interrupted(head.by.pid, *ended))]
        }
        Generation::Unfinished { head, lives: true, .. } => vec![format!("by process {}", head.by.pid)],
        Generation::Lost { generation } => vec![without_record(*generation)],
        Generation::Damaged { failure, .. } => {
            let hint = failure.hint().map(|hint| format!("hint: {hint}"));
            [failure.to_string()].into_iter().chain(hint).collect()
        }
    }
}

/// The whole head with the result, and the state in a word.
fn row(kept: Generation, in_effect: bool) -> Row {
    let state = kept.state().to_owned();
    let record = match kept {
        Generation::Finished(summary) => {
            Record::Read { head: Box::new(summary.head), result: Some(summary.result) }
        }
        Generation::Unfinished { head, .. } => Record::Read { head: Box::new(head), result: None },
        Generation::Lost { generation } => {
            Record::Unread { generation, error: without_record(generation), hint: None }
        }
        Generation::Damaged { generation, failure } => {
            Record::Unread { generation, error: failure.to_string(), hint: failure.hint() }
        }
    };
    Row { record, state, in_effect, steps: None, pending: None }
}
