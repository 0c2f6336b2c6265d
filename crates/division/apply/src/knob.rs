//! One knob of the machine at one place: set and read back, and whether what stands there is ours.

use knobs::{Encoding, Instance, Knob};
use rustix::io::Errno;

use crate::{
    Difference, Error,
    act::{Act, Before, Entry},
    journal::Journal,
    performer::{Performer, unwritable},
};

/// Sets it. What can't be moved stays and is reported; what is gone by now needs nothing.
pub(crate) fn set(
    performer: &Performer<'_>,
    step: usize,
    entry: &Entry,
    (knob, instance, text): (&str, &Instance, &str),
    journal: &mut Journal<'_>,
) -> Result<Option<Difference>, Error> {
    let row = row(knob)?;
    let machine = performer.system().knobs();
    let difference = |actual: String, reason: &str| Difference {
        group: entry.group.clone(),
        file: instance.to_string(),
        requested: text.to_owned(),
        actual,
        reason: reason.to_owned(),
    };
    let refused = match machine.write(instance, text) {
        Ok(()) => None,
        Err(errno) if is_gone(instance, errno) => return Ok(None),
        Err(errno) => match row.refusal(errno) {
            Some(refusal) if refusal.stays => Some(refusal.means),
            _ => return Err(unset(row, instance, text, errno)),
        },
    };
    let Ok(actual) = machine.read(instance) else { return Ok(None) };
    if row.same(&actual, text) {
        return Ok(None);
    }
    journal.actual(step, &actual).map_err(unwritable)?;
    Ok(Some(difference(actual, refused.unwrap_or("the kernel made this of it"))))
}

/// Is what a step wrote, or what the kernel made of that, still there? Threads' CPUs change with partitions: those that
/// are off the CPUs which the step took are as it left them.
pub(crate) fn is_ours(row: &Knob, before: &str, texts: &[&str], now: &str) -> bool {
    let is_off = |text: &&str| {
        let [before, text, now] = [before, *text, now].map(|text| text.trim().parse::<units::CpuSet>());
        match (before, text, now) {
            (Ok(before), Ok(text), Ok(now)) => now.is_disjoint(&before.difference(&text)),
            _ => false,
        }
    };
    texts.iter().any(|text| row.same(text, now))
        || row.encoding == Encoding::Affinity && texts.iter().any(is_off)
}

/// Is it as the act would make it?
pub(crate) fn is_so(performer: &Performer<'_>, (knob, instance, text): (&str, &Instance, &str)) -> bool {
    let now = performer.system().knobs().read(instance);
    match (knobs::find(knob), now) {
        (Some(row), Ok(now)) => row.same(&now, text),
        _ => true, // gone
    }
}

/// Takes a step back that was done or not. What stands there and is neither ours nor as before stays, and is named.
pub(crate) fn put_back(performer: &Performer<'_>, entry: &Entry) -> Option<String> {
    let (Act::SetKnob { knob, instance, text }, Before::Knob(before)) = (&entry.act, &entry.before) else {
        return None;
    };
    let (row, machine) = (knobs::find(knob)?, performer.system().knobs());
    let now = machine.read(instance).ok()?;
    if row.same(&now, before) {
        return None;
    }
    // the end of a partition has reset the CPUs of threads
    if row.encoding != Encoding::Affinity && !is_ours(row, before, &[text], &now) {
        return Some(format!("{instance} stays {}: it was changed to that meanwhile", row.plain(&now)));
    }
    match machine.write(instance, row.plain(before)) {
        Ok(()) => None,
        Err(errno) if is_gone(instance, errno) => None,
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

fn is_gone(instance: &Instance, errno: Errno) -> bool {
    match instance {
        Instance::Thread { .. } => errno == Errno::SRCH,
        Instance::File(_) => matches!(errno, Errno::NOENT | Errno::NODEV),
    }
}

fn unset(row: &Knob, instance: &Instance, text: &str, errno: Errno) -> Error {
    let means = row.refusal(errno).map(|refusal| format!(": {}", refusal.means)).unwrap_or_default();
    let leave = format!("leave it out: {} = false", row.name);
    let hint = match errno {
        Errno::ROFS => format!("it is read-only here, as in a container; set it on the host, or {leave}"),
        Errno::ACCESS | Errno::PERM => format!("call it as root, or {leave}"),
        _ => leave,
    };
    let what = format!("cannot set {instance} to {text}{means}");
    Error::Kernel(kernel::Error::Outside { what, errno, hint: Some(hint) })
}
