//! Isolated CPUs as the layouts in effect have them: what was there before, what still stands there, what came since.
//! Only reads.

use std::collections::BTreeMap;

use kernel::GroupName;
use plan::{Action, Lint, LintKind, Plan, Step};
use serde::{Deserialize, Serialize};
use settings::knobs::{self, Encoding, Instance, Isolation, Knob, Per, Seen, Want};
use units::CpuSet;

use crate::{
    Drift, Target,
    entry::Before,
    knob::{is_ours, of_no_partition},
    performer::name,
    record::Record,
    remainder::Remainder,
};

/// What one place was given.
#[derive(Debug)]
pub(crate) struct Given {
    group: GroupName,
    /// What was there before the first.
    before: String,
    /// What was written, with what the kernel made of it.
    texts: Vec<String>,
    /// The last that was written, and what the kernel has in its place, where it refused.
    refused: Option<String>,
}

/// By row and place.
pub(crate) type Knobs = BTreeMap<(String, Instance), Given>;

/// What these generations gave, oldest first, behind what undos had to leave.
pub(crate) fn given<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    stayed: impl IntoIterator<Item = &'r Remainder>,
) -> Knobs {
    let left = stayed.into_iter().filter_map(|stayed| {
        let (Action::SetKnob { knob, instance, text }, Before::Knob(before)) =
            (&stayed.entry.action, &stayed.entry.before)
        else {
            return None;
        };
        let (group, texts) = (stayed.entry.group.clone(), vec![text.clone()]);
        let given = Given { group, before: before.clone(), texts, refused: None };
        Some(((knob.clone(), instance.clone()), given))
    });
    // the oldest knows what was there first
    let mut given: Knobs = left.collect::<Vec<_>>().into_iter().rev().collect();
    for record in records {
        for (step, entry) in record.entries.iter().enumerate() {
            let Action::SetKnob { knob, instance, text } = &entry.action else { continue };
            let key = (knob.clone(), instance.clone());
            let Before::Knob(before) = &entry.before else { continue };
            let actual = record.actual.iter().find(|(of, _)| *of == step).map(|(_, actual)| actual.clone());
            if entry.restores {
                // one that the kernel refused is ours still
                if actual.is_none() {
                    given.remove(&key);
                }
                continue;
            }
            let new = || Given {
                group: GroupName::base(),
                before: before.clone(),
                texts: Vec::new(),
                refused: None,
            };
            let known = given.entry(key).or_insert_with(new);
            known.group.clone_from(&entry.group);
            // what a later generation wrote over is no longer ours; partitions bring CPUs of threads back
            if knobs::find(knob).is_some_and(|row| row.per != Per::Thread) {
                known.texts.clear();
            }
            known.texts.push(text.clone());
            known.texts.extend(actual.clone());
            known.refused = actual;
        }
    }
    given
}

impl Given {
    /// Did an earlier layout take CPUs from the thread that the new one does not?
    fn is_narrower(&self, row: &Knob, want: &Want<'_>, now: &str) -> bool {
        let [has, gets] = [now, &want.text].map(|text| text.trim().parse::<CpuSet>());
        let is_part = matches!((has, gets), (Ok(has), Ok(gets)) if has != gets && has.is_subset(&gets));
        is_part && self.texts.iter().any(|text| row.same(text, now))
    }

    fn stands(&self, target: Target<'_>, row: &Knob, now: &str) -> bool {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        is_ours(target, row, &self.before, &texts, now)
    }
}

/// What is there of some rows.
pub(crate) fn look(target: Target<'_>, rows: &[&Knob], given: &Knobs) -> Vec<Seen> {
    let machine = target.system.knobs();
    let with_past = |row: &Knob, mut seen: Seen| {
        if let Some(known) = given.get(&(row.name.to_owned(), seen.instance.clone())) {
            seen.before = known.stands(target, row, &seen.text).then(|| known.before.clone());
            seen.fixed |= known.refused.as_ref().is_some_and(|refused| row.same(refused, &seen.text));
        }
        seen
    };
    let of_row = |row: &&Knob| {
        let row: &Knob = row;
        machine.look(row).into_iter().map(move |seen| with_past(row, seen)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

/// Threads with fewer CPUs than most lose this when a partition comes or goes: steps that leave them as they are, so that
/// a roll-back and an undo bring them back. `steps`: those of the plan, which set some threads already.
pub(crate) fn narrow_threads(target: Target<'_>, given: &Knobs, plan: &Plan) -> Vec<Step> {
    let of_partition = |step: &Step| match &step.action {
        Action::Write { file, .. } => file.starts_with(plan::CPUS),
        Action::RemoveGroup { .. } => true,
        _ => false,
    };
    let row = knobs::KNOBS.iter().find(|row| row.encoding == Encoding::Affinity);
    let group = plan.upkeep.isolation.as_ref().and_then(|isolation| isolation.requests.first());
    let group = group.map(|request| name(&request.group));
    let group = group.or_else(|| given.values().next().map(|known| known.group.clone()));
    let (Some(row), Some(group), Some(usual)) = (row, group, of_no_partition(target)) else {
        return Vec::new();
    };
    let Some(first) = plan.steps.iter().position(of_partition) else { return Vec::new() };
    let set = |instance: &Instance| {
        plan.steps[..first]
            .iter()
            .any(|step| matches!(&step.action, Action::SetKnob { instance: of, .. } if of == instance))
    };
    let seen = target.system.knobs().look(row).into_iter();
    let narrow = seen.filter(|seen| seen.text.parse().ok().as_ref() != Some(&usual) && !set(&seen.instance));
    let step = |seen: Seen| {
        let (knob, text, before) = (seen.knob, seen.text.clone(), Some(seen.text));
        let action = Action::SetKnob { knob, instance: seen.instance, text };
        Step::new(group.clone(), action, "has these CPUs after a roll-back and an undo too").was(before)
    };
    narrow.map(step).collect()
}

/// What earlier layouts set and a new one does not: the steps before those of the layout, those behind, and what stays.
pub(crate) fn leftovers(
    target: Target<'_>,
    given: &Knobs,
    isolation: Option<&Isolation>,
    seen: &[Seen],
) -> (Vec<Step>, Vec<Step>, Vec<Lint>) {
    let (mut before, mut behind, mut lints) = (Vec::new(), Vec::new(), Vec::new());
    let wants = isolation.map(|isolation| isolation.wants(seen)).unwrap_or_default();
    for ((knob, instance), known) in given {
        let want = wants.iter().find(|want| want.knob.name == knob && want.instance() == instance);
        let wanted = want.is_some();
        let (Some(row), Ok(now)) = (knobs::find(knob), target.system.knobs().read(instance)) else {
            continue;
        };
        // once the partition has ended that took them from it: the kernel widens only threads with all CPUs
        if let Some(want) = want.filter(|want| row.per == Per::Thread && known.is_narrower(row, want, &now)) {
            let action =
                Action::SetKnob { knob: knob.clone(), instance: instance.clone(), text: want.text.clone() };
            let step = Step::new(known.group.clone(), action, "these CPUs are no longer isolated");
            behind.push(step.was(Some(now)));
            continue;
        }
        // the end of a partition resets the CPUs of threads
        if wanted || row.same(&now, &known.before) && row.per != Per::Thread {
            continue;
        }
        if !known.stands(target, row, &now) {
            let message = format!(
                "{instance} is no longer in the layout and stays {}: somebody else changed it since",
                row.plain(&now)
            );
            lints.push(Lint::new(LintKind::Stays, Some(&known.group.clone()), message));
            continue;
        }
        let action = Action::SetKnob {
            knob: knob.clone(),
            instance: instance.clone(),
            text: row.plain(&known.before).to_owned(),
        };
        let step = Step::new(known.group.clone(), action, "no longer in the layout: as it was before");
        let into = if row.per == Per::Thread { &mut behind } else { &mut before };
        into.push(Step { restores: true, ..step.was(Some(now)) });
    }
    (before, behind, lints)
}

/// One place of a knob that isolates a group's CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobStatus {
    /// The row of the table of knobs.
    pub knob: String,
    /// A file, or a thread of the kernel.
    pub instance: String,
    /// The isolated CPUs that it is set for, of all groups.
    pub cpus: CpuSet,
    /// What is to be there.
    pub requested: String,
    /// What is there.
    pub actual: String,
    /// How that comes.
    pub state: KnobState,
    /// Of one that somebody changed: programs that run and set it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

/// How one place of a knob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobState {
    /// As requested.
    Done,
    /// The same of one that came since: the kernel did it by itself.
    ByKernel,
    /// The kernel refuses: it stays.
    Refused,
    /// Somebody changed it since.
    Changed,
    /// It came since.
    New,
}

/// Each place of the knobs in effect, with the group for whose sake it is set.
pub(crate) fn status(
    target: Target<'_>,
    isolation: &Isolation,
    records: &[Record],
) -> Vec<(String, KnobStatus)> {
    let given = given(records, []);
    let seen = look(target, &isolation.knobs(), &given);
    let wants = isolation.wants(&seen);
    let running = std::cell::OnceCell::new();
    let writers = |knob: &Knob| {
        let all: Vec<&str> = knobs::KNOBS.iter().flat_map(|knob| knob.writers).copied().collect();
        let running: &Vec<(String, u32)> = running.get_or_init(|| target.system.knobs().running(&all));
        let of_row = running.iter().filter(|(name, _)| knob.writers.contains(&name.as_str()));
        of_row.map(|(name, process)| format!("{name} (process {process})")).collect()
    };
    let of_want = |want: &Want<'_>| {
        let known = given.contains_key(&(want.knob.name.to_owned(), want.instance().clone()));
        let is_off = || {
            want.knob.encoding == Encoding::Affinity
                && want.seen.text.parse().is_ok_and(|now: CpuSet| now.is_disjoint(&want.request.cpus))
        };
        let state = match known {
            // a thread has the CPUs of the one that started it, which a step wrote
            false if want.is_so() && want.knob.per == Per::Workqueue => KnobState::ByKernel,
            _ if want.is_so() || is_off() => KnobState::Done,
            _ if want.seen.fixed => KnobState::Refused,
            true => KnobState::Changed,
            false => KnobState::New,
        };
        let status = KnobStatus {
            knob: want.knob.name.to_owned(),
            instance: want.instance().to_string(),
            cpus: want.request.cpus.clone(),
            requested: want.text.clone(),
            actual: want.knob.plain(&want.seen.text).to_owned(),
            state,
            writers: if state == KnobState::Changed { writers(want.knob) } else { Vec::new() },
        };
        (want.request.group.clone(), status)
    };
    wants.iter().map(of_want).collect()
}

impl KnobStatus {
    /// The drift that it is.
    pub(crate) fn drift(&self) -> Option<Drift> {
        let is_new = match self.state {
            KnobState::Done | KnobState::ByKernel | KnobState::Refused => return None,
            KnobState::Changed => false,
            KnobState::New => true,
        };
        let KnobStatus { knob, instance, requested, actual, writers, .. } = self.clone();
        Some(Drift::Knob { knob, instance, requested, actual, is_new, writers })
    }
}

/// The drift of a knob that an undo had to leave.
pub(crate) fn not_restored(target: Target<'_>, stayed: &Remainder) -> Option<Drift> {
    let (Action::SetKnob { knob, instance, .. }, Before::Knob(before)) =
        (&stayed.entry.action, &stayed.entry.before)
    else {
        return None;
    };
    let (row, now) = (knobs::find(knob)?, target.system.knobs().read(instance).ok()?);
    if row.same(&now, before) {
        return None;
    }
    let (before, actual) = (row.plain(before).to_owned(), row.plain(&now).to_owned());
    Some(Drift::NotRestored {
        file: instance.to_string().into(),
        before,
        actual,
        generation: stayed.generation,
    })
}
