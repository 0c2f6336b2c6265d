//! What people read of a generation: who applied it and when, how it ended, what will become of it.

use std::time::{Duration, SystemTime};

use apply::{By, Ending, Head, Kind, Pending, State};

/// Of a moment in seconds since 1970: `2026-01-31 08:05:09 UTC`, the same for every reader.
pub fn time(seconds: u64) -> String {
    let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    // the year 10000 has no such form
    let moment = moment.filter(|_| seconds < 253_402_300_800);
    let written = moment.map(|moment| humantime::format_rfc3339_seconds(moment).to_string());
    written.map_or_else(|| format!("@{seconds}"), |text| text.replace('T', " ").replace('Z', " UTC"))
}

/// The login name, else the user.
pub fn person(by: &By) -> String {
    by.login.clone().unwrap_or_else(|| if by.uid == 0 { "root".to_owned() } else { by.uid.to_string() })
}

/// `undo to 3: not confirmed within 60 s`.
pub fn what(head: &Head) -> String {
    match head.kind {
        Kind::Apply | Kind::Set => units::printable(&head.what).into_owned(),
        Kind::Undo { to } if head.what == "undo" => format!("undo to generation {to}"),
        Kind::Undo { to } => format!("undo to generation {to}: {}", units::printable(&head.what)),
    }
}

/// What became of a generation whose process ended before it could record its end, and what will become of it.
pub fn interrupted(process: u32, ended: Option<Ending>) -> String {
    match ended {
        None => format!("was interrupted (process {process}); the next apply or undo rolls it back"),
        Some(Ending::Done) => {
            format!(
                "was done when process {process} ended, and is in effect; the next apply or undo records that"
            )
        }
        Some(_) => {
            format!("was rolled back when process {process} ended; the next apply or undo records that")
        }
    }
}

/// Nothing was applied yet, or the directory of the history was lost: then no limit that is in force can be named as ours.
pub fn unrecorded(state: &State) -> String {
    format!(
        "no generation is recorded in {}. If there were records before, it is not known what they put in force:\n\
         `ringfence list` shows the groups that exist, `ringfence get GROUP` their settings\n",
        state.directory().display()
    )
}

/// Somebody moved its record away.
pub fn without_record(generation: u32) -> String {
    format!(
        "generation {generation} is in effect and has no record: what it changed is not known (ringfence list, ringfence get GROUP)"
    )
}

/// What will happen to a generation that was not confirmed yet.
pub fn waiting(pending: &Pending) -> String {
    let generation = pending.generation;
    if pending.overdue {
        return format!(
            "generation {generation} was not confirmed in time and is still in effect: run `ringfence undo`"
        );
    }
    let seconds = pending.remaining.as_secs().saturating_add(1);
    if pending.unwatched {
        return format!(
            "generation {generation} is not confirmed, and no process is left that would undo it in {seconds} s: it stays in effect until the next apply or undo, or until ringfenced starts. To undo it now: ringfence undo; to confirm it: ringfence confirm {generation}"
        );
    }
    format!(
        "generation {generation} will be undone in {seconds} s unless you run: ringfence confirm {generation}"
    )
}
