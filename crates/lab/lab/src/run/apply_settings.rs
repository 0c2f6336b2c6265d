//! What a run is given before its workloads start: settings of its groups, CPUs that are a group's own, and what of the
//! machine's is moved away from them.

use std::collections::BTreeMap;

use experiment::{
    Note,
    file::{Condition, Settings},
    results::{Run, Setting},
};

use topology::Machine;

use super::{
    bystanders,
    exclusive::{self, Closed, Filled},
    isolation,
    runner::{CellOf, Runner},
};
use crate::Error;

impl Runner<'_> {
    /// Gives settings of groups, with names of CPUs and devices filled in.
    pub(super) fn set(
        &mut self,
        wanted: &BTreeMap<String, Settings>,
    ) -> Result<(Vec<Setting>, Closed), Error> {
        let mut filled = Filled::new();
        for (group, settings) in wanted {
            let values = settings.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
            filled.insert(group.clone(), values.collect::<Result<_, Error>>()?);
        }
        let closed = exclusive::prepare(self.context.host, &mut self.groups, &mut filled)?;
        let mut reported = Vec::new();
        for (group, settings) in exclusive::in_order(&filled) {
            reported.extend(self.groups.set(self.context.host, group, settings)?);
        }
        Ok((reported, closed))
    }

    pub(super) fn fill(&self, value: &str) -> Result<String, Error> {
        let filled = self.context.cpus.fill(value, &self.devices.blocks);
        filled.map_err(|unknown| Error::cannot(format!("nothing is named '{{{unknown}}}'")))
    }

    /// Where the kernel leaves CPUs open that are to be a group's own: moves the machine's other programs away from them
    /// if that was requested, and says it if not.
    pub(super) fn others_away(
        &mut self,
        closed: Closed,
        wanted: &BTreeMap<String, Settings>,
        run: &mut Run,
    ) -> Result<(), Error> {
        let Some(why) = closed.why_open() else {
            if closed == Closed::ByKernel && self.bystanders.may_move {
                run.notes.push(Note::PartitionsAreClosed);
            }
            return Ok(());
        };
        let to = self
            .context
            .experiment
            .others
            .as_ref()
            .and_then(|group| wanted.get(group)?.get(experiment::CPUS));
        let (true, Some(to)) = (self.bystanders.may_move, to) else {
            run.notes.push(Note::CpusWereOpen { why, can_ask: !self.bystanders.may_move });
            return Ok(());
        };
        if !bystanders::can_move(self.context.host) {
            run.notes.push(Note::OthersNotOurs { why });
            return Ok(());
        }
        let to = self.fill(to)?;
        self.groups.holds_others = true;
        let (away, notes) = bystanders::move_away(self.context.host, &self.groups, &to, self.journal)?;
        self.bystanders.moved = Some(away);
        run.notes.push(Note::OthersRestricted { cpus: to });
        run.notes.extend(notes);
        Ok(())
    }

    pub(super) fn others_back(&mut self) -> Result<(), Error> {
        let Some(away) = self.bystanders.moved.take() else {
            return Ok(());
        };
        away.put_back(self.context.host)?;
        self.groups.holds_others = false;
        Ok(())
    }

    /// Keeps the kernel's own work off the CPUs of groups that are to be isolated.
    pub(super) fn isolate(
        &mut self,
        wanted: &Condition,
        settings: &BTreeMap<String, Settings>,
        run: &mut Run,
    ) -> Result<(), Error> {
        let machine = Machine::live().map_err(|error| Error::cannot(error.to_string()))?;
        let fill = |value: &str| self.fill(value);
        let Some(requested) = isolation::requested(wanted, settings, fill, &machine.online())? else {
            return Ok(());
        };
        let (places, note, reported) = isolation::isolate(&requested, self.journal)?;
        self.isolated = places;
        run.notes.push(note);
        run.settings.extend(reported);
        Ok(())
    }

    /// Options of the workloads that differ between conditions, reported as settings are.
    pub(super) fn options(&self, cell: CellOf<'_>) -> Vec<Setting> {
        let running = self.workloads.iter().filter(|workload| workload.is_in(cell));
        let reported = running.filter_map(|workload| Some((workload.name.as_ref()?, &workload.options)));
        reported
            .flat_map(|(name, options)| {
                options.iter().map(|(option, value)| Setting {
                    group: name.clone(),
                    name: option.clone(),
                    requested: value.clone(),
                    written: Vec::new(),
                })
            })
            .collect()
    }
}
