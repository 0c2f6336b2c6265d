//! What is advised where a cause is a setting that ringfenced changes with the group's load: never to write it, as that is drift, or
//! undone by the next change. Pure.

use apply::{Ended, LeftAlone};
use units::{
    CpuSet,
    hint::{Command, in_layout},
};

use super::{
    facts::{Facts, Halt, Level, Resized},
    words::cpus,
};

/// What is said and advised instead of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instead {
    /// To follow the cause's sentence.
    pub ending: String,
    /// What gives the group more, if something does.
    pub hint: Option<String>,
}

/// How a layout writes an elastic group's CPUs.
const CPUS: &str = "cpus = { min, max, weight }";
const QUOTA: &str = "cpu.max";

impl Instead {
    /// Of a level's CPUs; `None`: their number does not follow its load.
    pub fn of_cpus(facts: &Facts, level: &Level) -> Option<Instead> {
        let resized = resized(facts, level)?;
        let bounds = resized.group.bounds.as_ref()?;
        let has = resized.group.cpus.as_ref().map_or(0, CpuSet::len);
        let (is_most, is_all) = (has >= bounds.max, bounds.max >= bounds.pool.len());
        Some(match (bounds.saves_power, is_most, halted(facts, apply::CPUS, resized)) {
            (true, true, _) => says("these are all that general groups may have"),
            (true, false, Some(halt)) => Instead {
                ending: format!("; power saving has confined it to these, and {}", halt.why),
                hint: halt.hint,
            },
            (true, false, None) => says("power saving gives it more as soon as it waits"),
            (false, true, _) if is_all => says("it is elastic, and has all CPUs that elastic groups share"),
            (false, true, _) => Instead {
                ending: format!("; it is elastic, and {} is its max", bounds.max),
                hint: Some(raise(facts, "max", CPUS, resized)),
            },
            (false, false, Some(halt)) => Instead {
                ending: format!("; it is elastic up to {}, but {}", bounds.max, halt.why),
                hint: halt.hint,
            },
            (false, false, None) if !resized.free.is_empty() => {
                says(&format!("it is elastic, and ringfenced gives it up to {} while it waits", bounds.max))
            }
            (false, false, None) => Instead {
                ending: "; it is elastic, and other groups have the rest of the CPUs that they share"
                    .to_owned(),
                hint: Some(raise(
                    facts,
                    &format!("weight ({}) or min ({})", bounds.weight, bounds.min),
                    CPUS,
                    resized,
                )),
            },
        })
    }

    /// Of a level's quota; `None`: it does not follow its load.
    pub fn of_quota(facts: &Facts, level: &Level) -> Option<Instead> {
        let resized = resized(facts, level)?;
        let range = resized.group.ranges.iter().find(|range| range.setting == QUOTA)?;
        let (min, max) = (cpus(range.numbers.min), cpus(range.numbers.max));
        let key = format!("{QUOTA} = {{ min, max }}");
        let last = resized.group.last.as_ref().filter(|last| last.setting == range.setting);
        let is_spent = last.is_some_and(|last| last.numbers["reason"] == "spent");
        Some(match halted(facts, QUOTA, resized) {
            _ if range.numbers.now.is_some_and(|now| now >= range.numbers.max) => Instead {
                ending: format!("; it follows the load, and {max} is its max"),
                hint: Some(raise(facts, "max", &key, resized)),
            },
            Some(halt) => Instead {
                ending: format!("; it follows the load up to {max}, but {}", halt.why),
                hint: halt.hint,
            },
            None if is_spent => Instead {
                ending: "; it follows the load, and what the group may use above its min is spent".to_owned(),
                hint: Some(raise(facts, &format!("min ({min})"), &key, resized)),
            },
            None => says(&format!("it follows the load, and ringfenced raises it up to {max}")),
        })
    }
}

fn says(words: &str) -> Instead {
    Instead { ending: format!("; {words}"), hint: None }
}

fn resized<'f>(facts: &'f Facts, level: &Level) -> Option<&'f Resized> {
    facts.by_load.groups.iter().find(|one| one.level == level.group)
}

/// Why this setting of a group stays as it is.
fn halted(facts: &Facts, setting: &str, of: &Resized) -> Option<Halt> {
    let by_load = &facts.by_load;
    let group = of.group.group.as_str();
    let left_alone = || {
        let is_it = |left: &&LeftAlone| left.group == group && left.setting == setting;
        let LeftAlone { why, .. } = by_load.left_alone.iter().find(is_it)?;
        let hint = Some(by_load.again.apply().to_string());
        Some(Halt { why: format!("it is not resized: {why}"), hint })
    };
    let ended = || {
        let Ended { of, why } = by_load.ended.iter().find(|ended| ended.of.is(group, setting))?;
        let hint = Some(by_load.again.resume().to_string());
        Some(Halt { why: format!("resizing of {of} has ended: {why}"), hint })
    };
    let halt = || match by_load.halt.clone()? {
        // the layout may be none for this machine any more, which a plan says
        Halt { why, hint: None } => {
            Some(Halt { why, hint: of_layout(facts, "plan").map(|plan| plan.to_string()) })
        }
        halt => Some(halt),
    };
    halt().or_else(left_alone).or_else(ended)
}

/// A command with the layout's file.
fn of_layout(facts: &Facts, command: &'static str) -> Option<Command> {
    let path = facts.bound.layout.as_ref()?.display().to_string();
    Some(Command::ringfence(command).arg(path.as_str()))
}

/// What to change in the layout.
fn raise(facts: &Facts, what: &str, key: &str, of: &Resized) -> String {
    in_layout(&format!("raise {what} in {key}"), &of.group.group, facts.bound.layout.as_deref())
}
