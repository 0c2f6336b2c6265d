//! The layout with the changes of schedules, and what can be wrong with these whatever the machine.

use settings::GroupName;

use crate::assigned::{Assigned, same};
use crate::check::check;
use crate::desired::Desired;
use crate::diagnostic::{Diagnostic, Report, Severity};
use crate::merge::give_cpus;
use crate::schedule::Compared;
use crate::scheduled::{Overlay, Schedule};

/// The limit of schedules: each is checked as a layout of its own, and compared with all others.
const MOST: usize = 100;

impl Desired {
    /// The same with the changes of these schedules, by name; the last counts most. A name that is not among them is
    /// passed over.
    #[must_use]
    pub fn with(&self, names: &[&str]) -> Desired {
        let mut changed = self.clone();
        for name in names {
            let schedule = self.schedules.iter().find(|schedule| schedule.name == **name);
            schedule
                .into_iter()
                .flat_map(|schedule| &schedule.overlays)
                .for_each(|overlay| changed.put(overlay));
        }
        changed
    }

    fn put(&mut self, overlay: &Overlay) {
        let Some(group) = self.groups.iter_mut().find(|group| group.name == overlay.group) else { return };
        let demands = &mut group.demands;
        demands.cpus = overlay.cpus.clone().or(demands.cpus.take());
        demands.mems = overlay.mems.clone().or(demands.mems.take());
        demands.settings.retain(|own| !overlay.settings.iter().any(|new| same(own, new)));
        demands.settings.extend(overlay.settings.iter().cloned());
        give_cpus(&self.defaults, demands);
        // what has a number of CPUs for a while has no use for it then
        demands.latency = demands.latency.take().filter(|_| demands.is_elastic());
    }
}

/// Reports what is wrong with the schedules of a layout that is right without them.
pub(crate) fn check_schedules(desired: &Desired, report: &mut Report) {
    let before = report.errors();
    if let Some(beyond) = desired.schedules.get(MOST) {
        let error =
            Diagnostic::error(format!("a layout has at most {MOST} schedules")).at(beyond.origin.clone());
        report.push(error.hint("one schedule changes any number of groups, at all moments of its calendar"));
        return;
    }
    for schedule in &desired.schedules {
        schedule.overlays.iter().for_each(|overlay| exists(desired, overlay, report));
    }
    let all: Vec<(&Schedule, Compared<'_>)> =
        desired.schedules.iter().map(|schedule| (schedule, Compared::new(&schedule.when.value))).collect();
    for (index, schedule) in all.iter().enumerate() {
        all[..index].iter().for_each(|other| same_moment(other, schedule, report));
    }
    if report.errors() > before {
        return;
    }
    for schedule in &desired.schedules {
        let mut changed = Report::default();
        check(&desired.with(&[&schedule.name]), &mut changed);
        let wrong = changed.finish(&[]).into_iter().filter(|one| one.severity == Severity::Error);
        for mut one in wrong {
            one.message = format!("with schedule '{}', {}", schedule.name, one.message);
            report.push(one.also(schedule.origin.clone(), "the schedule is here"));
        }
    }
}

fn exists(desired: &Desired, overlay: &Overlay, report: &mut Report) {
    if desired.group(&overlay.group).is_some() {
        return;
    }
    let name = overlay.group.to_string();
    let known: Vec<String> = desired.groups.iter().take(10_000).map(|group| group.name.to_string()).collect();
    let hint = match units::nearest(&name, known.iter().map(String::as_str)).as_slice() {
        [] => format!("a schedule changes groups of the layout: add [groups.'{name}']"),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let error = Diagnostic::error(format!("group '{name}' is not in the layout")).at(overlay.origin.clone());
    report.push(error.hint(hint));
}

/// Which of two changes counts where both are made at the same moment? Of those made one after the other, the later.
fn same_moment(
    (one, one_due): &(&Schedule, Compared<'_>),
    (other, other_due): &(&Schedule, Compared<'_>),
    report: &mut Report,
) {
    let Some((group, what)) = common(one, other) else { return };
    let Some(moment) = one_due.meets(other_due) else { return };
    let message = format!(
        "schedules '{}' and '{}' both change {what} of group '{group}' {moment}",
        one.name, other.name
    );
    let error = Diagnostic::error(message).at(other.when.origin.clone());
    let error = error.also(one.when.origin.clone(), "the other is here");
    report.push(error.hint("give one of them another time, the later counts; or join the two"));
}

/// The first field of a group that both change.
fn common<'s>(one: &'s Schedule, other: &'s Schedule) -> Option<(&'s GroupName, &'s str)> {
    one.overlays.iter().find_map(|first| {
        let second = other.overlays.iter().find(|second| second.group == first.group)?;
        let setting = first.settings.iter().find(|own| second.settings.iter().any(|new| same(own, new)));
        let what = match setting {
            _ if first.cpus.is_some() && second.cpus.is_some() => "cpus",
            _ if first.mems.is_some() && second.mems.is_some() => "mems",
            Some(Assigned { found, .. }) => &found.name,
            None => return None,
        };
        Some((&first.group, what))
    })
}
