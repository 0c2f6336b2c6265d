//! Memory between bounds: a quiet group gives a little back at a time, and what is protected follows what is left.

use std::{path::Path, rc::Rc, time::Duration};

use apply::{Ended, Originals, Resize, Target};
use kernel::{GroupName, Host, RECLAIM};
use layout::PROTECTED;
use monitor::{Beat, Descriptors, Groups, Options, Sample, Sampler, rates};
use plan::{Range, SettingRequest};
use policy::{
    GroupState,
    reclaim::{MemoryState, Numbers, Reclaim, Step},
};
use settings::{NamedSetting, Value};
use tracing::info;
use units::{Bytes, Limit};

use super::{
    part::{Outcome, Part, Start, cause, is_there},
    quotas::out_of_bounds,
};
use crate::watching::few;

/// The figures that are read, in the order in which [`state`] takes them.
const FIGURES: [&str; 3] = ["memory.current", "memory.pressure.some", "io.pressure.some"];

/// The time between two samples: the steps are seconds apart.
const PERIOD: Duration = Duration::from_secs(1);

/// The memory of a layout's groups.
pub(super) struct Memory {
    all: Vec<One>,
    originals: Rc<Originals>,
    sampler: Sampler<Descriptors>,
    before: Option<Sample>,
    sampled: Option<Duration>,
    /// What the last tick decided.
    steps: Vec<(usize, Step)>,
    /// Units that do not run have no group.
    missing: Vec<Range>,
}

/// One group's.
struct One {
    range: Range,
    group: GroupName,
    reclaim: Reclaim,
}

impl Memory {
    /// Starts with what is protected; what is out of its bounds becomes the min. `None`: the layout has none.
    ///
    /// # Errors
    /// In words: a group's memory can't be read or written.
    pub fn find(start: &mut Start<'_>, ranges: &[Range]) -> Result<Option<Memory>, String> {
        let host = start.target.host;
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        for range in ranges.iter().filter(|range| range.setting == PROTECTED) {
            let group = GroupName::new(range.directory()).map_err(|error| error.to_string())?;
            if range.unit.is_some() && !is_there(&start.originals, host, &group, PROTECTED) {
                missing.push(range.clone());
                continue;
            }
            if !start.has(&range.group, &group, PROTECTED)? {
                continue;
            }
            let has = low_of(host, &group)?;
            let reclaim = Reclaim::new(range.min, range.max, Numbers::default());
            let mut reclaim = reclaim.map_err(|error| error.to_string())?;
            if is_within(range, has) {
                reclaim.restore(has);
            } else {
                let low = request(host, &group, PROTECTED, range.min)?;
                if let Err(error) = apply::follow(start.target, &start.originals, &[low]) {
                    let why = format!("its protected memory is out of its bounds: {}", cause(&error));
                    start.leave(&range.group, PROTECTED, why);
                    continue;
                }
                let texts = (shown_low(has), range.show(range.min));
                start.changes.push(Resize::now(&range.group, PROTECTED, texts, out_of_bounds()));
            }
            all.push(One { range: range.clone(), group, reclaim });
        }
        if all.is_empty() && missing.is_empty() {
            return Ok(None);
        }
        let groups = all.iter().map(|one| one.group.clone()).collect();
        let options = Options { groups: Groups::Named(groups), slow_every: 1 };
        let mut sampler = Sampler::new(host, few(), options, true);
        sampler.only(host, |field| FIGURES.contains(&field.name));
        sampler.groups_alone();
        let originals = start.originals.clone();
        Ok(Some(Memory { all, originals, sampler, before: None, sampled: None, steps: Vec::new(), missing }))
    }

    /// What of a group's memory is protected, if it is still what it was.
    fn low(&self, host: &Host, group: &GroupName) -> Option<u64> {
        low_of(host, group).ok().filter(|_| is_there(&self.originals, host, group, PROTECTED))
    }

    fn states(&mut self, host: &Host) -> Result<Vec<Option<MemoryState>>, String> {
        let beat = Beat { late: Duration::ZERO, missed: 0 };
        let after = self.sampler.tick(host, beat).map_err(|error| error.to_string())?;
        let swap_free = swap_free(host);
        let of_one = |one: &One| {
            let before = self.before.as_ref()?;
            state(before, after, &one.group.to_string(), swap_free)
        };
        let states = self.all.iter().map(of_one).collect();
        self.before = Some(after.clone());
        Ok(states)
    }
}

impl Part for Memory {
    fn names(&self) -> Vec<&str> {
        self.all.iter().map(|one| one.range.group.as_str()).collect()
    }

    fn groups(&self) -> &[GroupName] {
        &[]
    }

    fn is_changed(&mut self, host: &Host) -> Result<bool, String> {
        for one in &self.all {
            if self.low(host, &one.group).is_none_or(|low| !is_same(low, one.reclaim.low())) {
                info!(
                    "{}: it is gone, or somebody made it again or changed its protected memory",
                    one.range.group
                );
                return Ok(true);
            }
        }
        let is_back = |range: &Range| {
            let group = GroupName::new(range.directory());
            group.is_ok_and(|group| is_there(&self.originals, host, &group, PROTECTED))
        };
        Ok(self.missing.iter().any(is_back))
    }

    fn tick(&mut self, host: &Host, now: Duration, _: &[GroupState]) -> Result<Vec<Resize>, String> {
        self.steps.clear();
        if self.sampled.is_some_and(|last| now < last + PERIOD) {
            return Ok(Vec::new());
        }
        self.sampled = Some(now);
        let states = self.states(host)?;
        let mut changes = Vec::new();
        for (index, (one, state)) in self.all.iter_mut().zip(states).enumerate() {
            let Some(state) = state else { continue };
            let Some(step) = one.reclaim.tick(now, &state) else { continue };
            self.steps.push((index, step));
            changes.push(resize(&one.range, &step, state.current));
        }
        Ok(changes)
    }

    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String> {
        let (index, step) = self.steps[change];
        let low = self.low(target.host, &self.all[index].group);
        let (setting, bytes) = match (step, low) {
            (Step::Reclaim { bytes }, Some(_)) => (RECLAIM, bytes),
            (Step::Low { from, to }, Some(low)) if is_same(low, from) => (PROTECTED, to),
            _ => return Ok(Outcome::Unexpected),
        };
        let One { group, reclaim, .. } = &mut self.all[index];
        let request = request(target.host, group, setting, bytes)?;
        match (apply::follow(target, &self.originals, &[request]), step) {
            (Ok(()), _) => Ok(Outcome::Written),
            (Err(error), Step::Low { from, .. }) => {
                reclaim.restore(from);
                Ok(Outcome::Refused(cause(&error)))
            }
            (Err(error), Step::Reclaim { .. }) => {
                reclaim.refused(now);
                Ok(Outcome::Refused(cause(&error)))
            }
        }
    }

    fn withdraw(&mut self) {
        for (index, step) in std::mem::take(&mut self.steps) {
            if let Step::Low { from, .. } = step {
                self.all[index].reclaim.restore(from);
            }
        }
    }

    fn end(&mut self) -> Vec<Ended> {
        Vec::new()
    }

    fn goes_on(&self) -> Option<&'static str> {
        (!self.all.is_empty()).then_some("protected memory")
    }
}

/// Largest page of a kernel, to which it rounds what is written.
const PAGE: u64 = 65_536;

fn is_same(one: u64, other: u64) -> bool {
    one.abs_diff(other) < PAGE
}

/// Also where the kernel rounded a bound.
fn is_within(range: &Range, low: u64) -> bool {
    low.saturating_add(PAGE) > range.min && low <= range.max
}

fn found(setting: &str) -> Result<NamedSetting, String> {
    settings::find(setting).map_err(|error| error.to_string())
}

/// What of a group's memory is protected; all: the largest number.
fn low_of(host: &Host, group: &GroupName) -> Result<u64, String> {
    let reading = apply::get(host, group, &found(PROTECTED)?).map_err(|error| cause(&error))?;
    Ok(match reading.value {
        Value::Bytes(Limit::At(bytes)) => bytes.0,
        _ => u64::MAX,
    })
}

fn shown_low(low: u64) -> String {
    if low == u64::MAX { "max".to_owned() } else { Bytes(low).to_string() }
}

fn request(host: &Host, group: &GroupName, setting: &str, bytes: u64) -> Result<SettingRequest, String> {
    let found = found(setting)?;
    let place = apply::place(host, group, &found).map_err(|error| error.to_string())?;
    Ok(SettingRequest { group: group.clone(), place, found, value: Value::Bytes(Limit::At(Bytes(bytes))) })
}

fn state(before: &Sample, after: &Sample, group: &str, swap_free: Option<f64>) -> Option<MemoryState> {
    let row = after.groups.row(group)?;
    let figure = |name: &str| {
        let column = after.groups.columns().first_named(name)?;
        rates::between(&before.groups, &after.groups, row, column)?.value
    };
    let [current, pressure, io_pressure] = FIGURES.map(figure);
    // without pressure nothing says that a group is quiet
    Some(MemoryState { current: current? as u64, pressure: pressure?, io_pressure: io_pressure?, swap_free })
}

/// The free share of the swap; `None`: there is none.
fn swap_free(host: &Host) -> Option<f64> {
    let text = host.kernel().outside(Path::new("/proc/meminfo")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let total = field("SwapTotal:").filter(|total| *total > 0.0)?;
    Some(field("SwapFree:")? / total)
}

fn resize(range: &Range, step: &Step, current: u64) -> Resize {
    let (name, from, to) = match step {
        Step::Reclaim { bytes } => (FIGURES[0], current, current.saturating_sub(*bytes)),
        Step::Low { from, to } => (PROTECTED, *from, *to),
    };
    let why = match step {
        Step::Reclaim { .. } => "nobody waits for memory",
        Step::Low { .. } => "it follows the working set",
    };
    let texts = (Bytes(from).to_string(), Bytes(to).to_string());
    Resize::now(&range.group, name, texts, (why.to_owned(), serde_json::to_value(step).unwrap_or_default()))
}
