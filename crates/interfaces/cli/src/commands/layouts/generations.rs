//! What people read of a generation: when it was, how it ended, what will become of it.

use std::time::{Duration, SystemTime};

use apply::{Ending, State};
use kernel::{GroupName, Host};

/// Of a moment in seconds since 1970: `2026-01-31 08:05:09 UTC`, the same for every reader.
pub fn time(seconds: u64) -> String {
    let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    // the year 10000 has no such form
    let moment = moment.filter(|_| seconds < 253_402_300_800);
    let written = moment.map(|moment| humantime::format_rfc3339_seconds(moment).to_string());
    written.map_or_else(|| format!("@{seconds}"), |text| text.replace('T', " ").replace('Z', " UTC"))
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
/// Without any group there is none.
pub fn unrecorded(state: &State, host: &Host) -> String {
    let directory = state.directory().display();
    if host.list(&GroupName::base()).is_ok_and(|groups| groups.is_empty()) {
        return format!(
            "nothing was applied yet: no generation is recorded in {directory}, and there is no group\n"
        );
    }
    format!(
        "no generation is recorded in {directory}. If there were records before, it is not known what they put in force:\n\
         `ringfence list` shows the groups that exist, `ringfence get GROUP` their settings\n",
    )
}

/// Somebody moved its record away.
pub fn without_record(generation: u32) -> String {
    format!(
        "generation {generation} is in effect and has no record: what it changed is not known (ringfence list, ringfence get GROUP)"
    )
}
