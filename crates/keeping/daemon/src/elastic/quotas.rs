//! Quotas between bounds: how much CPU time each group may use, as it runs out of it or is quiet.

use std::{rc::Rc, time::Duration};

use apply::{Ended, Originals, Resize, Subject, Target};
use kernel::{GroupName, Host};
use layout::{BURST, QUOTA};
use plan::{Place, Range, SettingRequest};
use policy::{
    GroupState, Parameters, Refusals,
    quota::{Change, Numbers, Quota, Setting},
};
use settings::{NamedSetting, Value};
use tracing::info;
use units::{Limit, Micros};

use super::{
    contents::Contents,
    part::{Ending, Outcome, Part, Start, cause, is_there, refused_too_often},
};

/// The quotas of a layout.
pub(super) struct Quotas {
    quotas: Vec<One>,
    groups: Vec<GroupName>,
    contents: Contents,
    originals: Rc<Originals>,
    /// What the last tick decided.
    changes: Vec<(usize, Change)>,
    numbers: Parameters,
    /// Units that do not run have no group.
    missing: Vec<Range>,
}

/// One group's.
struct One {
    range: Range,
    quota: Quota,
    refusals: Refusals,
    /// Of this group alone: what is refused depends on the groups above and below it.
    ending: Ending,
}

impl Quotas {
    /// Starts with what the groups have; a quota that is out of its bounds gets its min. `None`: the layout has none.
    ///
    /// # Errors
    /// In words: a quota can't be read or written.
    pub fn find(
        start: &mut Start<'_>,
        ranges: &[Range],
        numbers: &Parameters,
    ) -> Result<Option<Quotas>, String> {
        let host = start.target.host;
        let (mut quotas, mut groups, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for range in ranges.iter().filter(|range| range.setting == QUOTA) {
            let group = name(range)?;
            if range.unit.is_some() && !is_there(&start.originals, host, &group, QUOTA) {
                missing.push(range.clone());
                continue;
            }
            if !start.has(&range.group, &group, QUOTA)? {
                continue;
            }
            let has = setting_of(host, &group, range)?;
            let cpus = |micros: u64| micros as f64 / period(range);
            let mut numbers = Numbers::default();
            if !range.burst {
                numbers.burst = 0.0;
            }
            let quota = Quota::new(cpus(range.min), cpus(range.max), numbers);
            let quota = quota.map_err(|error| error.to_string())?;
            let quota = match has {
                Some(has) => quota.starting_at(has),
                None => {
                    let had = shown(host, &group, QUOTA)?;
                    let first = requests(host, &group, range, quota.setting())?;
                    if let Err(error) = apply::follow(start.target, &start.originals, &first) {
                        let why = format!("its quota is out of its bounds: {}", cause(&error));
                        start.leave(&range.group, QUOTA, why);
                        continue;
                    }
                    let texts = (had, range.show(range.min));
                    start.changes.push(Resize::now(&range.group, QUOTA, texts, out_of_bounds()));
                    quota
                }
            };
            let (refusals, ending) = Default::default();
            quotas.push(One { range: range.clone(), quota, refusals, ending });
            groups.push(group);
        }
        let is_none = quotas.is_empty() && missing.is_empty();
        let (changes, numbers, originals) = (Vec::new(), numbers.clone(), start.originals.clone());
        let contents = Contents::of(groups.len());
        let all = Quotas { quotas, groups, contents, originals, changes, numbers, missing };
        Ok((!is_none).then_some(all))
    }

    /// What a group has, if it is still what it was and this is between the bounds.
    fn setting(&self, host: &Host, index: usize) -> Option<Setting> {
        let group = &self.groups[index];
        let is_there = is_there(&self.originals, host, group, QUOTA);
        setting_of(host, group, &self.quotas[index].range).ok().flatten().filter(|_| is_there)
    }
}

impl Part for Quotas {
    fn names(&self) -> Vec<&str> {
        self.quotas.iter().map(|one| one.range.group.as_str()).collect()
    }

    fn groups(&self) -> &[GroupName] {
        &self.groups
    }

    fn is_changed(&mut self, host: &Host) -> Result<bool, String> {
        for (index, (one, group)) in self.quotas.iter().zip(&self.groups).enumerate() {
            // what it wrote itself is looked at once
            if self.contents.are_as_noted(index) {
                continue;
            }
            if let Some((place, files)) = files_of(host, group, &one.range) {
                self.contents.note(host, index, &place, &files);
            }
            if self.setting(host, index).is_none_or(|has| !is_same(&one.range, has, one.quota.setting())) {
                self.contents.forget(index);
                info!("{}: it is gone, or somebody made it again or changed its quota", one.range.group);
                return Ok(true);
            }
        }
        let is_back =
            |range: &Range| name(range).is_ok_and(|group| is_there(&self.originals, host, &group, QUOTA));
        Ok(self.missing.iter().any(is_back))
    }

    fn tick(&mut self, _: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String> {
        let of_one = |(one, state): (&mut One, &GroupState)| match one.ending.has_begun() {
            false => one.quota.tick(now, state),
            true if one.ending.is_over() => None,
            true => one.quota.reset(),
        };
        let changes = self.quotas.iter_mut().zip(states).map(of_one).enumerate();
        let changes = changes.filter_map(|(index, change)| Some((index, change?)));
        let changes: Vec<(usize, Change)> = changes.collect();
        self.changes = changes;
        Ok(self.changes.iter().map(|(index, change)| resize(&self.quotas[*index].range, change)).collect())
    }

    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String> {
        let (index, change) = self.changes[change];
        self.contents.forget(index);
        let One { range, .. } = &self.quotas[index];
        if self.setting(target.host, index).is_none_or(|has| !is_same(range, has, change.from)) {
            return Ok(Outcome::Unexpected);
        }
        let requests = requests(target.host, &self.groups[index], range, change.to)?;
        let Err(error) = apply::follow(target, &self.originals, &requests) else {
            return Ok(Outcome::Written);
        };
        let cause = cause(&error);
        let One { quota, refusals, ending, .. } = &mut self.quotas[index];
        quota.withdraw(&change);
        ending.refused();
        if refusals.add(now, self.numbers.refusals, self.numbers.given_up_within) {
            ending.begin(refused_too_often(&cause));
        }
        Ok(Outcome::Refused(cause))
    }

    fn withdraw(&mut self) {
        for (index, change) in std::mem::take(&mut self.changes) {
            self.quotas[index].quota.withdraw(&change);
        }
    }

    fn end(&mut self) -> Vec<Ended> {
        let of_one = |one: &mut One| {
            let why = one.ending.say(one.quota.is_least(), "its min is back")?;
            Some(Ended { of: Subject::Quota(one.range.group.clone()), why })
        };
        self.quotas.iter_mut().filter_map(of_one).collect()
    }

    fn goes_on(&self) -> Option<&'static str> {
        let on = self.quotas.iter().filter(|one| !one.ending.has_begun()).count();
        match on {
            0 => None,
            all if all == self.quotas.len() => Some("quotas"),
            _ => Some("other quotas"),
        }
    }
}

/// Why a setting gets its min at first.
pub(super) fn out_of_bounds() -> (String, serde_json::Value) {
    ("what it had is out of its bounds".to_owned(), serde_json::Value::Null)
}

/// What a group has, as it is shown.
fn shown(host: &Host, group: &GroupName, setting: &str) -> Result<String, String> {
    let found = found(setting)?;
    let reading = apply::get(host, group, &found).map_err(|error| error.to_string())?;
    Ok(match &reading.value {
        Value::CpuMax(max) => max.in_percent(),
        other => found.show(other),
    })
}

fn name(range: &Range) -> Result<GroupName, String> {
    GroupName::new(range.directory()).map_err(|error| error.to_string())
}

/// The period in microseconds.
fn period(range: &Range) -> f64 {
    range.period.unwrap_or(1) as f64
}

/// CPUs as microseconds of a period.
fn micros(range: &Range, cpus: f64) -> u64 {
    (cpus * period(range)).round() as u64
}

fn quota_of(range: &Range, setting: Setting) -> u64 {
    micros(range, setting.quota).clamp(range.min, range.max)
}

fn is_same(range: &Range, one: Setting, other: Setting) -> bool {
    let both = |setting: Setting| (quota_of(range, setting), micros(range, setting.burst));
    both(one) == both(other)
}

fn found(setting: &str) -> Result<NamedSetting, String> {
    settings::find(setting).map_err(|error| error.to_string())
}

/// The files that have a group's quota and burst.
fn files_of(host: &Host, group: &GroupName, range: &Range) -> Option<(Place, Vec<String>)> {
    let quota = found(QUOTA).ok()?;
    let place = apply::place(host, group, &quota).ok()?;
    let names = if range.burst { &[QUOTA, BURST][..] } else { &[QUOTA] };
    let found: Vec<NamedSetting> = names.iter().filter_map(|name| found(name).ok()).collect();
    let files = found.iter().flat_map(|found| found.files(place.version)).collect();
    Some((place, files))
}

/// What a group has; `None`: not between the bounds.
fn setting_of(host: &Host, group: &GroupName, range: &Range) -> Result<Option<Setting>, String> {
    let get = |setting: &str| apply::get(host, group, &found(setting)?).map_err(|error| cause(&error));
    let quota = range.number(&get(QUOTA)?.value);
    let burst = match range.burst {
        true => match get(BURST)?.value {
            Value::Micros(Limit::At(burst)) => burst.0,
            _ => 0,
        },
        false => 0,
    };
    let cpus = |micros: u64| micros as f64 / period(range);
    Ok(quota.map(|quota| Setting { quota: cpus(quota), burst: cpus(burst) }))
}

fn requests(
    host: &Host,
    group: &GroupName,
    range: &Range,
    setting: Setting,
) -> Result<Vec<SettingRequest>, String> {
    let request = |name: &str, value: Value| {
        let found = found(name)?;
        let place = apply::place(host, group, &found).map_err(|error| error.to_string())?;
        Ok::<SettingRequest, String>(SettingRequest { group: group.clone(), place, found, value })
    };
    let quota = quota_of(range, setting);
    let mut requests = vec![request(QUOTA, range.value(quota))?];
    if range.burst {
        let burst = micros(range, setting.burst).min(quota);
        requests.push(request(BURST, Value::Micros(Limit::At(Micros(burst))))?);
    }
    Ok(requests)
}

fn resize(range: &Range, change: &Change) -> Resize {
    let quota = |setting: Setting| range.show(quota_of(range, setting));
    let burst = |setting: Setting| Micros(micros(range, setting.burst)).to_string();
    let (name, texts) = match quota(change.from) == quota(change.to) {
        true => (BURST, (burst(change.from), burst(change.to))),
        false => (QUOTA, (quota(change.from), quota(change.to))),
    };
    let numbers = serde_json::to_value(change.reason).unwrap_or_default();
    Resize::now(&range.group, name, texts, (change.reason.to_string(), numbers))
}
