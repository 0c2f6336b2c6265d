//! Quotas between bounds: how much CPU time each group may use, as it runs out of it or is quiet.

use std::{rc::Rc, time::Duration};

use apply::{Originals, Resize, Target};
use kernel::{GroupName, Host};
use layout::{BURST, QUOTA};
use plan::{Place, Range, SettingRequest};
use policy::{
    GroupState, Parameters, Refusals,
    quota::{Change, Numbers, Quota, Setting},
};
use settings::{CpuMax, NamedSetting, Value};
use tracing::info;
use units::{Limit, Micros};

use super::{
    contents::Contents,
    part::{Outcome, Part, Start},
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
    refusals: Refusals,
    end: End,
    /// Units that do not run have no group.
    missing: Vec<Range>,
}

/// One group's.
struct One {
    range: Range,
    quota: Quota,
}

/// How far it has ended by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Not,
    /// Each is to have its min again.
    Returns,
    Said,
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
            let Some(has) = setting_of(host, &group, range)? else {
                missing.push(range.clone());
                continue;
            };
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
                    apply::follow(start.target, &start.originals, &first)
                        .map_err(|error| error.to_string())?;
                    let texts = (had, range.show(range.min));
                    start.changes.push(Resize::now(&range.group, QUOTA, texts, out_of_bounds()));
                    quota
                }
            };
            quotas.push(One { range: range.clone(), quota });
            groups.push(group);
        }
        let is_none = quotas.is_empty() && missing.is_empty();
        let (changes, refusals, numbers) = (Vec::new(), Refusals::default(), numbers.clone());
        let originals = start.originals.clone();
        let contents = Contents::of(groups.len());
        let all = Quotas {
            quotas,
            groups,
            contents,
            originals,
            changes,
            numbers,
            refusals,
            end: End::Not,
            missing,
        };
        Ok((!is_none).then_some(all))
    }

    fn count_refusal(&mut self, now: Duration) {
        let are_many = self.refusals.add(now, self.numbers.refusals, self.numbers.given_up_within);
        if are_many && self.end == End::Not {
            self.end = End::Returns;
        }
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
            let has = setting_of(host, group, &one.range)?;
            if has.flatten().is_none_or(|has| !is_same(&one.range, has, one.quota.setting())) {
                self.contents.forget(index);
                info!("{}: it is gone, or somebody else changed its quota", one.range.group);
                return Ok(true);
            }
        }
        for range in &self.missing {
            if setting_of(host, &name(range)?, range)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tick(&mut self, _: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String> {
        let of_one = |(one, state): (&mut One, &GroupState)| match self.end {
            End::Not => one.quota.tick(now, state),
            End::Returns => one.quota.reset(),
            End::Said => None,
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
        let One { range, quota } = &mut self.quotas[index];
        let has = setting_of(target.host, &self.groups[index], range)?.flatten();
        if has.is_none_or(|has| !is_same(range, has, change.from)) {
            return Ok(Outcome::Unexpected);
        }
        let requests = requests(target.host, &self.groups[index], range, change.to)?;
        match apply::follow(target, &self.originals, &requests) {
            Ok(()) => Ok(Outcome::Written),
            Err(error) => {
                quota.withdraw(&change);
                self.count_refusal(now);
                Ok(Outcome::Refused(error.to_string()))
            }
        }
    }

    fn withdraw(&mut self) {
        for (index, change) in std::mem::take(&mut self.changes) {
            self.quotas[index].quota.withdraw(&change);
        }
    }

    fn end(&mut self) -> Option<String> {
        if self.end != End::Returns || self.quotas.iter().any(|one| !one.quota.is_least()) {
            return None;
        }
        self.end = End::Said;
        Some("too many quotas were refused within a minute".to_owned())
    }

    fn has_ended(&self) -> bool {
        self.end != End::Not
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
        Value::CpuMax(CpuMax { quota: Some(Limit::At(quota)), period: Some(period) }) => {
            format!("{quota}/{period}")
        }
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

/// What a group has; `None` within: not between the bounds; `None`: there is no such group.
fn setting_of(host: &Host, group: &GroupName, range: &Range) -> Result<Option<Option<Setting>>, String> {
    let get = |setting: &str| apply::get(host, group, &found(setting)?).map_err(|error| error.to_string());
    let quota = match get(QUOTA) {
        Ok(reading) => range.number(&reading.value),
        Err(_) if host.seats(group).is_empty() => return Ok(None),
        Err(why) => return Err(why),
    };
    let burst = match range.burst {
        true => match get(BURST)?.value {
            Value::Micros(Limit::At(burst)) => burst.0,
            _ => 0,
        },
        false => 0,
    };
    let cpus = |micros: u64| micros as f64 / period(range);
    Ok(Some(quota.map(|quota| Setting { quota: cpus(quota), burst: cpus(burst) })))
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
