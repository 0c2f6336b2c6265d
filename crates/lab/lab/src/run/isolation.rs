//! CPUs of a condition's groups, isolated for a run: the rows of the table of knobs at the places that this machine has,
//! each written down before it is set and put back after the run, also by the clean-up after a killed one.

use std::collections::BTreeMap;

use apply::{KnobFiles, MachineKnobs as _};
use experiment::{
    Note,
    file::{Condition, Settings},
    results::Setting,
};
use rustix::io::Errno;
use settings::knobs::{self, Encoding, Instance, Isolation, Knob, Per, Request, Want};
use units::CpuSet;

use super::{
    isolated_place::{At, Place},
    journal::{Entry, Journal},
};
use crate::Error;

/// The thread of the kernel that starts all others, which inherit its CPUs.
const STARTS_THREADS: u32 = 2;

/// What is to be done about a place.
enum Done {
    Set,
    Stays(&'static str),
    Gone,
}

/// What a condition requests, for groups with these settings; `None`: nothing.
pub(super) fn requested(
    condition: &Condition,
    settings: &BTreeMap<String, Settings>,
    fill: impl Fn(&str) -> Result<String, Error>,
    online: &CpuSet,
) -> Result<Option<Isolation>, Error> {
    let mut requests: Vec<Request> = Vec::new();
    let mut all = CpuSet::new();
    for (group, level) in &condition.isolate {
        let list = settings.get(group).and_then(|settings| settings.get(experiment::CPUS));
        let list =
            list.ok_or_else(|| Error::cannot(format!("group '{group}' is to be isolated and has no CPUs")))?;
        let cpus: CpuSet =
            fill(list)?.parse().map_err(|error| Error::cannot(format!("cpuset.cpus: {error}")))?;
        all = all.union(&cpus);
        for knob in knobs::of_level(level).into_iter().flatten() {
            match requests.iter_mut().find(|one| one.knob == knob.name) {
                Some(known) => known.cpus = known.cpus.union(&cpus),
                None => requests.push(request(knob, group, &cpus, None)),
            }
        }
    }
    let Some(first) = condition.isolate.keys().next() else { return Ok(None) };
    for (name, value) in &condition.isolate_machine {
        let Some(knob) = knobs::find(name) else { continue };
        let value = (value != "true").then(|| value.clone());
        requests.push(request(knob, first, &all, value));
    }
    let housekeeping = online.difference(&all);
    if housekeeping.is_empty() {
        return Err(Error::cannot(format!("CPUs {all} are to be isolated, and no other is online")));
    }
    Ok(Some(Isolation { requests, housekeeping, budgets: BTreeMap::new() }))
}

fn request(knob: &Knob, group: &str, cpus: &CpuSet, value: Option<String>) -> Request {
    Request { knob: knob.name.to_owned(), group: group.to_owned(), cpus: cpus.clone(), value }
}

/// Isolates; what is returned is to be put back, also if the run fails.
pub(super) fn isolate(
    isolation: &Isolation,
    journal: &mut Journal,
) -> Result<(Vec<Place>, Note, Vec<Setting>), Error> {
    let machine = KnobFiles::default();
    let seen: Vec<_> = isolation.knobs().into_iter().flat_map(|knob| machine.look(knob)).collect();
    let wants = isolation.wants(&seen);
    // a place that no owner may write stays as it is. Threads that are off the CPUs already are known ones afterwards, and the
    // end of a partition may move them
    let is_one = |want: &&Want<'_>| want.knob.per == Per::Thread || !want.is_so();
    let wants = wants.iter().filter(is_one).filter(|want| !want.seen.fixed && want.seen.read_only.is_none());
    let places: Vec<Place> = wants
        .map(|want| Place {
            knob: want.knob.name.to_owned(),
            at: At { at: want.instance().clone() },
            before: want.knob.plain(&want.seen.text).to_owned(),
            text: want.text.clone(),
        })
        .collect();
    journal.write(&Entry::Knobs(places.clone()))?;
    let mut stays: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, place) in places.iter().enumerate() {
        match set(&machine, place) {
            Ok(Done::Set) => *rows.entry(&place.knob).or_default() += 1,
            Ok(Done::Stays(why)) => stays.entry(&place.knob).or_insert((0, why)).0 += 1,
            Ok(Done::Gone) => {}
            Err(error) => {
                give_back(&places[..number])?;
                return Err(error);
            }
        }
    }
    let cpus = isolation.requests.iter().fold(CpuSet::new(), |all, one| all.union(&one.cpus));
    let mut text = format!(
        "CPUs {cpus} were isolated: {} places of {} rows were set",
        rows.values().sum::<usize>(),
        rows.len()
    );
    for (row, (count, why)) in stays {
        text.push_str(&format!("; {count} of {row} stayed ({why})"));
    }
    let settings = places.iter().filter(|place| rows.contains_key(&*place.knob));
    let settings = settings.map(|place| (&place.knob, &place.text));
    let settings: BTreeMap<_, _> = settings.collect();
    let reported = settings.into_iter().map(|(knob, text)| Setting {
        group: "machine".to_owned(),
        name: knob.clone(),
        requested: text.clone(),
        written: Vec::new(),
    });
    Ok((places.clone(), Note::Isolated { text }, reported.collect()))
}

fn set(machine: &KnobFiles, place: &Place) -> Result<Done, Error> {
    let Some(row) = knobs::find(&place.knob) else { return Ok(Done::Gone) };
    match machine.write(&place.at.at, &place.text) {
        Ok(()) => Ok(Done::Set),
        Err(errno) if is_gone(errno) => Ok(Done::Gone),
        Err(errno) => match row.refusal(errno.raw_os_error()) {
            Some(refusal) if refusal.stays => Ok(Done::Stays(refusal.means)),
            _ => Err(refused(place, &place.text, errno)),
        },
    }
}

fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NODEV | Errno::SRCH)
}

fn refused(place: &Place, text: &str, errno: Errno) -> Error {
    Error::cannot(format!("cannot set {} to {text}: {}", place.at.at, std::io::Error::from(errno)))
}

/// Puts all places back, the last first, and with the thread that starts others those which it started since. Goes on behind
/// a refusal and reports the first.
pub(super) fn give_back(places: &[Place]) -> Result<usize, Error> {
    let machine = KnobFiles::default();
    let (mut count, mut first) = (0, Ok(()));
    for place in places.iter().rev() {
        let Some(row) = knobs::find(&place.knob) else { continue };
        let Ok(now) = machine.read(&place.at.at) else { continue };
        // the end of a partition sets threads' CPUs; anything else that is not ours is somebody's who changed it since
        let ours = row.same(&now, &place.text) || row.encoding == Encoding::Affinity;
        if row.same(&now, &place.before) || !ours {
            continue;
        }
        match machine.write(&place.at.at, &place.before) {
            Ok(()) => count += 1,
            Err(errno)
                if is_gone(errno)
                    || row.refusal(errno.raw_os_error()).is_some_and(|refusal| refusal.stays) => {}
            Err(errno) => first = first.and(Err(refused(place, &place.before, errno))),
        }
    }
    started_since(&machine, places);
    first.map(|()| count)
}

fn started_since(machine: &KnobFiles, places: &[Place]) {
    let starts = |place: &&Place| matches!(place.at.at, Instance::Thread { thread: STARTS_THREADS, .. });
    let Some(place) = places.iter().find(starts) else { return };
    let Some(row) = knobs::find(&place.knob).filter(|row| row.per == Per::Thread) else { return };
    for seen in machine.look(row) {
        let is_new = places.iter().all(|place| place.at.at != seen.instance);
        if is_new && !seen.fixed && row.same(&seen.text, &place.text) {
            // it may have ended by now
            let _ = machine.write(&seen.instance, &place.before);
        }
    }
}
