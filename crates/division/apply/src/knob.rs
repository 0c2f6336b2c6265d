//! One knob of the machine at one place: set and read back, and whether what stands there is ours.

use plan::Action;
use rustix::io::Errno;
use settings::{
    Version,
    knobs::{self, Encoding, Instance, Knob},
};
use units::CpuSet;

use crate::{
    Difference, Error, Target,
    entry::{Before, Entry},
    journal::Journal,
    outcome::Done,
    performer::{Performer, unwritable},
};

/// Sets it. What can't be moved stays and is reported; what is gone by now needs nothing. What an undo, or a layout
/// without it, can't put back is a note: the next one tries again.
pub(crate) fn set(
    performer: &mut Performer<'_>,
    step: usize,
    entry: &Entry,
    (knob, instance, text): (&str, &Instance, &str),
    journal: &mut Journal<'_>,
) -> Result<Done, Error> {
    let row = row(knob)?;
    let machine = performer.system().knobs();
    let difference = |actual: String, reason: &str| Difference {
        group: entry.group.to_string(),
        file: instance.to_string(),
        requested: text.to_owned(),
        actual,
        reason: reason.to_owned(),
    };
    let refused = match machine.write(instance, text) {
        Ok(()) => None,
        Err(errno) if is_gone(performer, instance, errno) => return Ok(Done::default()),
        Err(errno) if entry.restores => {
            let Ok(actual) = machine.read(instance) else { return Ok(Done::default()) };
            if row.same(&actual, text) {
                return Ok(Done::default());
            }
            note_actual(performer, step, &actual, journal)?;
            return Ok(Done { note: Some(unset(row, instance, text, errno).in_words()), ..Done::default() });
        }
        Err(errno) => match row.refusal(errno.raw_os_error()) {
            Some(refusal) if refusal.stays => Some(refusal.means),
            _ => return Err(unset(row, instance, text, errno)),
        },
    };
    let Ok(actual) = machine.read(instance) else { return Ok(Done::default()) };
    if row.same(&actual, text) {
        return Ok(Done::default());
    }
    note_actual(performer, step, &actual, journal)?;
    let difference = Some(difference(actual, refused.unwrap_or("the kernel made this of it")));
    Ok(Done { difference, ..Done::default() })
}

fn note_actual(
    performer: &mut Performer<'_>,
    step: usize,
    actual: &str,
    journal: &mut Journal<'_>,
) -> Result<(), Error> {
    performer.actual.push((step, actual.to_owned()));
    journal.actual(step, actual).map_err(unwritable)
}

/// What a step wrote and what the kernel made of that.
fn written<'e>(performer: &'e Performer<'_>, step: usize, text: &'e str) -> Vec<&'e str> {
    let actual = performer.actual.iter().filter(|(of, _)| *of == step).map(|(_, actual)| actual.as_str());
    [text].into_iter().chain(actual).collect()
}

/// Is what a step wrote there still, so that it is to be put back by the next undo or apply?
pub(crate) fn is_left(performer: &Performer<'_>, step: usize, entry: &Entry) -> bool {
    let (Action::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.action, &entry.before)
    else {
        return false;
    };
    let (Some(row), Ok(now)) = (knobs::find(knob), performer.system().knobs().read(instance)) else {
        return false;
    };
    !row.same(&now, before) && is_ours(performer.target, row, before, &written(performer, step, text), &now)
}

/// Is what a step wrote, or what the kernel made of that, still there? Threads' CPUs change with partitions: those that
/// are off the CPUs which the step took are as it left them, and the kernel gives all threads the CPUs that are no
/// partition's whenever one comes or goes.
pub(crate) fn is_ours(target: Target<'_>, row: &Knob, before: &str, texts: &[&str], now: &str) -> bool {
    let is_off = |text: &&str| {
        let [before, text, now] = [before, *text, now].map(|text| text.trim().parse::<CpuSet>());
        match (before, text, now) {
            (Ok(before), Ok(text), Ok(now)) => now.is_disjoint(&before.difference(&text)),
            _ => false,
        }
    };
    texts.iter().any(|text| row.same(text, now))
        || row.encoding == Encoding::Affinity
            && (texts.iter().any(is_off) || now.trim().parse().ok() == of_no_partition(target))
}

/// The CPUs of no partition, which all threads of the root group have; `None` without cgroup v2's cpusets.
pub(crate) fn of_no_partition(target: Target<'_>) -> Option<CpuSet> {
    let file = format!("{}.effective", plan::CPUS);
    let mut v2 = target.host.hierarchies().iter().filter(|at| at.version == Version::V2);
    let text = v2.find_map(|at| target.host.kernel().read(at, "", &file).ok())?;
    text.trim().parse().ok()
}

/// Is it as the action would make it?
pub(crate) fn is_so(performer: &Performer<'_>, (knob, instance, text): (&str, &Instance, &str)) -> bool {
    let now = performer.system().knobs().read(instance);
    match (knobs::find(knob), now) {
        (Some(row), Ok(now)) => row.same(&now, text),
        _ => true, // gone
    }
}

/// Takes a step back that was done or not. What stands there and is neither ours nor as before stays, and is named.
pub(crate) fn put_back(performer: &Performer<'_>, step: usize, entry: &Entry) -> Option<String> {
    let (Action::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.action, &entry.before)
    else {
        return None;
    };
    let (row, machine) = (knobs::find(knob)?, performer.system().knobs());
    let now = machine.read(instance).ok()?;
    if row.same(&now, before) {
        return None;
    }
    // the end of a partition has reset the CPUs of threads
    if row.encoding != Encoding::Affinity
        && !is_ours(performer.target, row, before, &written(performer, step, text), &now)
    {
        return Some(format!("{instance} stays {}: it was changed to that meanwhile", row.plain(&now)));
    }
    match machine.write(instance, row.plain(before)) {
        Ok(()) => None,
        Err(errno) if is_gone(performer, instance, errno) => None,
        Err(errno) => Some(unset(row, instance, row.plain(before), errno).in_words()),
    }
}

fn row(knob: &str) -> Result<&'static Knob, Error> {
    knobs::find(knob).ok_or_else(|| {
        Error::Kernel(kernel::Error::Outside {
            what: format!("this version of Ringfence has no knob '{knob}'"),
            errno: Errno::INVAL,
            hint: Some("use the version that wrote the history".to_owned()),
        })
    })
}

fn is_gone(performer: &Performer<'_>, instance: &Instance, errno: Errno) -> bool {
    let says_so = match instance {
        Instance::Thread { .. } | Instance::Policy { .. } => errno == Errno::SRCH,
        Instance::File(_) => matches!(errno, Errno::NOENT | Errno::NODEV),
    };
    says_so && performer.system().knobs().read(instance).is_err()
}

fn unset(row: &Knob, instance: &Instance, text: &str, errno: Errno) -> Error {
    let means =
        row.refusal(errno.raw_os_error()).map(|refusal| format!(": {}", refusal.means)).unwrap_or_default();
    let leave = format!("leave it out: {} = false", row.name);
    let hint = match errno {
        Errno::ROFS => format!("it is read-only here, as in a container; set it on the host, or {leave}"),
        Errno::ACCESS | Errno::PERM => format!("call it as root, or {leave}"),
        _ => leave,
    };
    let what = format!("cannot set {instance} to {text}{means}");
    Error::Kernel(kernel::Error::Outside { what, errno, hint: Some(hint) })
}
