//! Knobs of the machine: they go back where what a generation wrote still stands there.

use settings::knobs;

use super::*;

impl Steps<'_> {
    /// A knob goes back where what the generation wrote is still there.
    pub(super) fn knob_back(&mut self, entry: &Entry, actual: Option<&str>) {
        let (Action::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.action, &entry.before)
        else {
            return;
        };
        let is_planned = self.knobs.contains_key(instance);
        // what is gone needs nothing
        let (Some(row), Some(now)) = (knobs::find(knob), self.stands(&entry.action)) else { return };
        // the end of a partition resets the CPUs of threads
        let is_reset = row.encoding == Encoding::Affinity;
        let texts: Vec<&str> = [text.as_str()].into_iter().chain(actual).collect();
        if self.foreign.contains(instance) {
            if is_reset {
                self.keep(entry, instance);
            }
            return;
        }
        if row.same(&now, before) && !is_reset {
            // somebody set it to that, as it is not what the generation left: earlier ones have no say any more
            if !is_planned && !texts.iter().any(|text| row.same(text, &now)) {
                self.foreign.insert(instance.clone());
            }
            return;
        }
        // of a thread, what a later generation found is what the kernel made of the one before it
        let may_write = is_reset && is_planned || is_ours(self.target, row, before, &texts, &now);
        if !may_write {
            let now = row.plain(&now);
            self.foreign.insert(instance.clone());
            self.skipped
                .push(format!("{instance} stays {now}: it was changed to that since it was set to {text}"));
            if is_reset {
                self.knobs.insert(instance.clone(), now.to_owned());
                self.keep(entry, instance);
            }
            return;
        }
        let text = row.plain(before).to_owned();
        self.knobs.insert(instance.clone(), text.clone());
        let action = Action::SetKnob { knob: knob.clone(), instance: instance.clone(), text };
        self.push(Entry { action, before: Before::Nothing, ..entry.clone() });
    }

    /// Gives a thread the CPUs that it has now, which the end of a partition takes.
    fn keep(&mut self, entry: &Entry, instance: &Instance) {
        let (Action::SetKnob { knob, .. }, Some(text)) = (&entry.action, self.knobs.get(instance).cloned())
        else {
            return;
        };
        let action = Action::SetKnob { knob: knob.clone(), instance: instance.clone(), text };
        self.push(Entry { action, before: Before::Nothing, ..entry.clone() });
    }

    /// Does a generation after `since` that stays in effect set the same knob?
    pub(super) fn sets_since(
        &self,
        action: &Action,
        wanted: &[u32],
        since: u32,
        state: &State,
    ) -> Result<bool, Failure> {
        for &later in wanted.iter().filter(|later| **later > since) {
            let record = lasting::record(state, self.target, later)?;
            if record.is_some_and(|record| record.entries.iter().any(|entry| covers(&entry.action, action))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What stands at the place of a knob, as the steps so far leave it.
    pub(super) fn stands(&self, action: &Action) -> Option<String> {
        let Action::SetKnob { instance, .. } = action else { return None };
        let planned = self.knobs.get(instance).cloned();
        planned.or_else(|| self.performer.system().knobs().read(instance).ok())
    }

    /// Threads that kthreadd started since have the CPUs that it had then: they go back with it. `then`: what it had
    /// before the step that takes it back.
    pub(super) fn started_since(&mut self, entry: &Entry, steps: &[(usize, Entry)], then: Option<&str>) {
        let (Action::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.action, &entry.before)
        else {
            return;
        };
        let is_first = matches!(instance, Instance::Thread { thread, .. } if *thread == system::KTHREADD);
        let Some(row) = knobs::find(knob).filter(|_| is_first) else { return };
        let back = row.plain(before);
        if self.knobs.get(instance).is_none_or(|planned| planned != back) {
            return;
        }
        let of = |entry: &Entry| match &entry.action {
            Action::SetKnob { instance, .. } => Some(instance.clone()),
            _ => None,
        };
        let known: BTreeSet<Instance> = steps.iter().filter_map(|(_, entry)| of(entry)).collect();
        let is_as = |now: &str| row.same(now, text) || then.is_some_and(|then| row.same(now, then));
        for seen in self.performer.system().knobs().look(row) {
            let now = self.knobs.get(&seen.instance).unwrap_or(&seen.text);
            if seen.fixed || known.contains(&seen.instance) || !is_as(now) {
                continue;
            }
            self.knobs.insert(seen.instance.clone(), back.to_owned());
            let action =
                Action::SetKnob { knob: knob.clone(), instance: seen.instance, text: back.to_owned() };
            self.push(Entry { action, before: Before::Nothing, ..entry.clone() });
        }
    }
}
