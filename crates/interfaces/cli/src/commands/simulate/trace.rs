//! A load as the recorder's log has it. Its times are those of the monotonic clock: somebody may have set the other one.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use experiment::simulator::{Load, STEP};
use monitor::{Log, Sample, rates};

use crate::{commands::watching::warn_of, failure::Failure, output};

/// The field that a trace is read from.
const FIELD: &str = "cpu.usage";

/// The recorder's longest interval: nothing was recorded for longer, and that time is left out.
const GAP: Duration = Duration::from_secs(86_400);

/// The most steps of all groups together: a quarter of a gigabyte.
const MOST: f64 = 32e6;

/// What a log says that the groups used. A group that is not in it requests nothing, which is said.
pub fn recorded(directory: &Path, groups: &[&str], kind: &str) -> Result<Load, Failure> {
    let log = Log::open(directory)?;
    let mut samples = log.since(SystemTime::UNIX_EPOCH);
    let mut uses: Vec<Vec<(f64, f64)>> = vec![Vec::new(); groups.len()];
    let mut known = vec![false; groups.len()];
    let longest = MOST / groups.len().max(1) as f64 * STEP;
    let (mut before, mut end): (Option<Sample>, f64) = (None, 0.0);
    while let Some(sample) = samples.next_sample()? {
        // after a reboot that clock begins again
        let elapsed = before.as_ref().and_then(|before| sample.clock.checked_sub(before.clock));
        if let (Some(before), Some(elapsed)) = (&before, elapsed.filter(|elapsed| *elapsed <= GAP)) {
            end += elapsed.as_secs_f64();
            if end > longest {
                return Err(too_long(directory, groups.len(), longest));
            }
            for ((group, uses), known) in groups.iter().zip(&mut uses).zip(&mut known) {
                let used = used(before, &sample, group);
                *known |= used.is_some();
                // it was not there, or not for the whole time
                uses.push((end, used.unwrap_or(0.0)));
            }
        }
        before = Some(sample);
    }
    warn_of(samples.torn());
    if !known.contains(&true) {
        return Err(Failure::usage(format!(
            "{} has no CPU use of the layout's {kind} groups",
            directory.display()
        ))
        .hint("record it: ringfence record; names are those of the layout"));
    }
    for (group, _) in groups.iter().zip(&known).filter(|(_, known)| !**known) {
        output::warning(&format!("group '{group}' is not in the log: it requests nothing"));
    }
    Ok(Load::recorded("recorded", &uses))
}

fn too_long(directory: &Path, groups: usize, longest: f64) -> Failure {
    let (directory, hours) = (directory.display(), (longest / 3600.0).floor());
    let groups = units::counted(groups, "group");
    Failure::usage(format!("{directory}: the log is longer than {hours} hours, the most for {groups}"))
        .hint("give a directory with the files of a part of that time: their names begin with its start in milliseconds since 1970")
}

fn used(before: &Sample, after: &Sample, group: &str) -> Option<f64> {
    // a log has no slash before names from the root
    let row = after.groups.row(group.trim_start_matches('/'))?;
    let column = after.groups.columns().first_named(FIELD)?;
    rates::between(&before.groups, &after.groups, row, column)?.value
}
