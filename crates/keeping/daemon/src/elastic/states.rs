//! What elastic groups did since the sample before, as the policy takes it.

use kernel::{GroupName, Host};
use monitor::{Beat, Buffer, Descriptors, Groups, Options, RunDelays, Sample, Sampler, rates};
use policy::GroupState;
use settings::Controller;

use crate::watching::few;

/// The figures that are read: what [`state`] takes, in its order.
const FIGURES: [&str; 4] = ["cpu.usage", "cpu.pressure.some", "cpu.periods", "cpu.throttled.periods"];

/// Who uses fewer CPUs hardly waits: its tasks' delays are read with every tenth sample only.
const IDLE: f64 = 0.05;
const SELDOM: u64 = 10;

/// The figures of some groups.
pub(super) struct States {
    groups: Vec<(GroupName, String)>,
    sampler: Sampler<Descriptors>,
    /// By group; none where the kernel counts waits by group.
    waits: Option<Vec<RunDelays<Descriptors>>>,
    files: Descriptors,
    buffer: Buffer,
    looks: u64,
    before: Option<Sample>,
    states: Vec<GroupState>,
}

impl States {
    pub fn new(host: &Host, groups: Vec<GroupName>) -> States {
        let options = Options { groups: Groups::Named(groups.clone()), slow_every: 1 };
        let mut sampler = Sampler::new(host, few(), options, true);
        sampler.only(host, |field| FIGURES.contains(&field.name));
        sampler.groups_alone();
        let by_task = host.hierarchy_of(Controller::Cpuacct).is_some();
        let waits = by_task.then(|| groups.iter().map(|_| RunDelays::default()).collect());
        let states = vec![GroupState::default(); groups.len()];
        let groups = groups.into_iter().map(|group| (group.clone(), group.to_string())).collect();
        let (files, buffer) = (few(), Buffer::default());
        States { groups, sampler, waits, files, buffer, looks: 0, before: None, states }
    }

    /// In the groups' order. One of which nothing is known, as at first, has no numbers in its state.
    pub fn all(&self) -> &[GroupState] {
        &self.states
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// The hierarchies can't be listed.
    pub fn look(&mut self, host: &Host, beat: Beat) -> Result<(), kernel::Error> {
        let after = self.sampler.tick(host, beat)?;
        let elapsed =
            self.before.as_ref().map_or(0.0, |before| after.clock.saturating_sub(before.clock).as_secs_f64());
        let columns = FIGURES.map(|name| after.groups.columns().first_named(name));
        self.looks += 1;
        for (index, (group, name)) in self.groups.iter().enumerate() {
            let state = self.before.as_ref().and_then(|before| state(before, after, name, &columns));
            let Some(mut state) = state else {
                self.states[index] = GroupState { used: f64::NAN, ..GroupState::default() };
                continue;
            };
            if let Some(waits) = &mut self.waits
                && (state.used > IDLE || (self.looks + index as u64).is_multiple_of(SELDOM))
            {
                let waited = waits[index].look(host, &self.files, group, &mut self.buffer);
                state.waiting = (waited / elapsed).clamp(0.0, 1.0);
            }
            self.states[index] = state;
        }
        match &mut self.before {
            Some(before) => before.clone_from(after),
            None => self.before = Some(after.clone()),
        }
        Ok(())
    }
}

/// `columns`: of [`FIGURES`].
fn state(before: &Sample, after: &Sample, group: &str, columns: &[Option<usize>; 4]) -> Option<GroupState> {
    let row = after.groups.row(group)?;
    let figure = |column: Option<usize>| rates::between(&before.groups, &after.groups, row, column?)?.value;
    let [used, waited, periods, throttled] = columns.map(figure);
    let (periods, throttled) = (periods.unwrap_or(0.0), throttled.unwrap_or(0.0));
    Some(GroupState {
        used: used?,
        waiting: waited.unwrap_or(0.0).clamp(0.0, 1.0),
        throttled: if periods > 0.0 { throttled / periods } else { 0.0 },
        slack: None,
    })
}
