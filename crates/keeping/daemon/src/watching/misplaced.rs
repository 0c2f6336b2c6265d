//! Which processes are not where the rules lead them: all are checked at intervals, with rules compiled for it, so that
//! the loop does nothing for it. Moves nobody.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use classify::{ClassifyOptions, Decision, Done, Outcome, Placer, Rules};
use exporters::metrics::{Writer, families};
use kernel::Host;
use system::{Accounts, ProcessReader};

use super::{Followed, Shared};

/// Groups by which misplaced processes are counted, at most: templates can lead to very many.
const GROUPS: usize = 100;

/// The last look.
#[derive(Default)]
pub(super) struct Misplaced {
    judge: Option<Judge>,
    last: Option<(Instant, SystemTime)>,
    /// By the group where they belong, and whether somebody put them elsewhere.
    counts: BTreeMap<(String, bool), u64>,
    left_out: u64,
}

/// The rules, compiled.
struct Judge {
    followed: Arc<Followed>,
    rules: Rules,
    accounts: Accounts,
}

impl Misplaced {
    /// Looks at all processes, unless that was done so shortly ago.
    pub fn look(&mut self, host: &Host, shared: &Shared, every: Duration) {
        let followed = shared.followed();
        let is_same = self.judge.as_ref().is_some_and(|judge| Arc::ptr_eq(&judge.followed, &followed));
        if is_same && self.last.is_some_and(|(at, _)| at.elapsed() < every) {
            return;
        }
        if !is_same {
            let accounts = Accounts::new();
            // the loop reported which accounts of it are unknown
            let (rules, _) = Rules::compile(&followed.rules, &accounts);
            self.judge = Some(Judge { followed, rules, accounts });
        }
        let Some(judge) = &self.judge else { return }; // made above
        (self.counts, self.left_out) = bounded(judge.counts(host));
        self.last = Some((Instant::now(), SystemTime::now()));
    }

    /// The groups that it names.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.counts.keys().map(|(group, _)| group.as_str())
    }

    /// Its families.
    pub fn write(&self, to: &mut Writer<'_>) {
        let Some((_, at)) = self.last else { return };
        to.begin(&families::MISPLACED);
        for ((group, by_hand), count) in &self.counts {
            to.sample(&[("group", group), ("by_hand", if *by_hand { "true" } else { "false" })], count);
        }
        to.one(&families::MISPLACED_LEFT_OUT, self.left_out);
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        to.one(&families::MISPLACED_TIMESTAMP, at.as_secs_f64());
    }
}

impl Judge {
    /// Every group that a rule names is there, if with nobody.
    fn counts(&self, host: &Host) -> BTreeMap<(String, bool), u64> {
        let mut counts = BTreeMap::new();
        for target in self.followed.rules.iter().flat_map(|rule| &rule.targets) {
            if let Some(group) = target.group.name() {
                counts.insert((group.to_string(), false), 0);
            }
        }
        let placer = Placer::new(host, &self.followed.desired, &self.accounts);
        let mut reader = ProcessReader::new();
        for pid in ProcessReader::all().unwrap_or_default() {
            let Ok(mut process) = reader.process(pid) else { continue };
            // why each rule fits or not is worth its time only of a process that one takes
            if !matches!(self.rules.decide(&mut process), Ok(Decision::To { .. })) {
                continue;
            }
            // no rule moves these
            if kernel::protected(host.kernel(), pid).is_some() {
                continue;
            }
            let options = ClassifyOptions { dry_run: true, respect_manual_moves: true };
            let Ok(outcome) = placer.classify(&self.rules, &mut process, options) else { continue };
            let by_hand = match outcome.done {
                Done::WouldMove | Done::Failed(_) => false,
                Done::Left if matches!(outcome.explained.decision, Decision::Stays { .. }) => true,
                _ => continue,
            };
            *counts.entry((goal(&outcome), by_hand)).or_default() += 1;
        }
        counts
    }
}

fn goal(outcome: &Outcome) -> String {
    let mut groups: Vec<String> = outcome.goals.iter().map(|goal| goal.group.to_string()).collect();
    groups.dedup();
    groups.join(",")
}

/// Those with the most, and how many processes are of the others.
fn bounded(mut counts: BTreeMap<(String, bool), u64>) -> (BTreeMap<(String, bool), u64>, u64) {
    if counts.len() <= GROUPS {
        return (counts, 0);
    }
    let mut by_count: Vec<((String, bool), u64)> = std::mem::take(&mut counts).into_iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let left_out = by_count[GROUPS..].iter().map(|(_, count)| count).sum();
    by_count.truncate(GROUPS);
    (by_count.into_iter().collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_above_the_bound_are_counted_together() {
        let counts: BTreeMap<_, u64> =
            (0..GROUPS as u64 + 3).map(|n| ((format!("g{n:03}"), false), n)).collect();
        let (listed, left_out) = bounded(counts);
        assert_eq!((listed.len(), left_out), (GROUPS, 1 + 2));
        assert!(
            listed.contains_key(&("g102".to_owned(), false))
                && !listed.contains_key(&("g000".to_owned(), false))
        );
    }
}
