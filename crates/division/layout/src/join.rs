//! What two of libcgroup's files say of one group, as one: the settings of both, and of what both say, the later one,
//! with a warning.

use crate::assigned::{Assigned, adds_up, same};
use crate::desired::{Demands, Template};
use crate::diagnostic::{Diagnostic, Report};
use crate::needs::needed;
use crate::origin::{Origin, Spanned};
use crate::people::Person;
use crate::rule::Subsystem;

/// Adds to `whole` what a later file says.
pub(crate) fn demands(whole: &mut Demands, later: Demands, report: &mut Report) {
    let Demands {
        cpus,
        mems,
        exclusive,
        isolate,
        latency,
        settings,
        controllers,
        tasks,
        admin,
        keep,
        unit,
        only_named,
    } = later;
    replace(&mut whole.cpus, cpus, "cpuset.cpus", report);
    replace(&mut whole.mems, mems, "cpuset.mems", report);
    replace(&mut whole.tasks, tasks, "task", report);
    replace(&mut whole.admin, admin, "admin", report);
    replace(&mut whole.unit, unit, "unit", report);
    replace(&mut whole.isolate, isolate, "isolate", report);
    whole.latency = latency.or(whole.latency.take()); // no file of libcgroup has one
    whole.exclusive |= exclusive;
    whole.only_named &= only_named;
    whole.keep = keep.or(whole.keep);
    settings.into_iter().for_each(|assigned| assign(&mut whole.settings, assigned, report));
    let sections = std::mem::take(&mut whole.controllers);
    let needed = needed(whole);
    for section in sections.into_iter().chain(controllers) {
        let is_needed = matches!(&section.value, Subsystem::Controller(name) if needed.contains(name));
        if !is_needed && whole.controllers.iter().all(|other| other.value != section.value) {
            whole.controllers.push(section);
        }
    }
}

/// The same for a template, whose implied owners, found at its name, give way to those that are said.
pub(crate) fn templates(whole: &mut Template, mut later: Template, report: &mut Report) {
    let people = [
        (&mut whole.demands.tasks, &mut later.demands.tasks),
        (&mut whole.demands.admin, &mut later.demands.admin),
    ];
    for (earlier, new) in people {
        let is_implied = |person: &Option<Spanned<Person>>, at: &Origin| {
            person.as_ref().is_some_and(|person| person.origin == *at)
        };
        if earlier.is_some() && is_implied(new, &later.origin) {
            *new = None;
        } else if new.is_some() && is_implied(earlier, &whole.origin) {
            *earlier = None;
        }
    }
    demands(&mut whole.demands, later.demands, report);
}

/// Warns of what was given before.
pub(crate) fn later_counts(what: &str, origin: &Origin, before: &Origin, report: &mut Report) {
    let warning = Diagnostic::warning(format!("{what} is given twice")).at(origin.clone());
    report.push(warning.also(before.clone(), "first given here").hint("the later one counts"));
}

fn replace<T>(earlier: &mut Option<Spanned<T>>, later: Option<Spanned<T>>, name: &str, report: &mut Report) {
    let Some(later) = later else { return };
    if let Some(before) = earlier {
        later_counts(&format!("'{name}'"), &later.origin, &before.origin, report);
    }
    *earlier = Some(later);
}

/// Whatever of the earlier settings the later one overlaps gives way, but for rules that add up.
fn assign(settings: &mut Vec<Assigned>, later: Assigned, report: &mut Report) {
    if adds_up(&later.found)
        && let Some(rules) = settings.iter_mut().find(|earlier| same(earlier, &later))
    {
        rules.text = format!("{}; {}", rules.text, later.text);
        return;
    }
    settings.retain(|earlier| {
        let stays = !same(earlier, &later);
        if !stays {
            later_counts(&format!("'{}'", later.found.name), &later.origin, &earlier.origin, report);
        }
        stays
    });
    settings.push(later);
}
