//! Shares of time that v1 bounds by the parent's: CPU quotas one by one, real-time budgets added up. What the kernel
//! would refuse at the end of a plan is reported at its beginning.

use std::collections::HashMap;

use settings::{CpuMax, Value, Version};
use units::{Limit, Micros, hint::Command};

use crate::{Observed, Place, Problem, values::Valued};

/// A share of time as a fraction; no limit is infinite.
type Share = f64;

/// What all real-time budgets together may be (`/proc/sys/kernel/sched_rt_runtime_us` of its period by default).
const REAL_TIME: Share = 0.95;
/// The kernel counts shares in 2^-20.
const GRAIN: Share = 1.0 / 1_048_576.0;

/// Refuses what the kernel would.
pub(crate) fn check(values: &[Valued<'_>], observed: &Observed, problems: &mut Vec<Problem>) {
    let of_v1 = || values.iter().filter(|valued| valued.place.version == Version::V1);
    quotas(of_v1().filter(|valued| valued.found.setting.name == layout::QUOTA), observed, problems);
    real_time(of_v1().filter(|valued| valued.found.setting.name.starts_with("cpu.rt_")), observed, problems);
}

fn quotas<'v>(
    values: impl Iterator<Item = &'v Valued<'v>>,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) {
    let mut requests: HashMap<&Place, (CpuMax, &Valued<'_>)> = HashMap::new();
    for valued in values {
        let actual = match valued.actual {
            Some(Value::CpuMax(actual)) => actual,
            _ => CpuMax::default(),
        };
        let Value::CpuMax(requested) = valued.value else { continue };
        // quota and period may be two settings
        let (all, _) = requests.entry(&valued.place).or_insert((actual, valued));
        all.quota = requested.quota.or(all.quota);
        all.period = requested.period.or(all.period);
    }
    let share = |max: &CpuMax| {
        let period = max.period.unwrap_or(Micros(100_000)).0.max(1) as Share;
        max.quota.unwrap_or(Limit::Max).at().map_or(Share::INFINITY, |quota| quota.0 as Share / period)
    };
    let shares: HashMap<&Place, (Share, &Valued<'_>)> =
        requests.iter().map(|(place, (max, valued))| (*place, (share(max), *valued))).collect();
    let mut all: Vec<(&Place, Share, &Valued<'_>)> =
        shares.iter().map(|(place, (share, valued))| (*place, *share, *valued)).collect();
    all.sort_by_key(|(place, ..)| *place);
    let bound_of = |place: &Place| {
        ancestors(place).into_iter().find_map(|above| {
            let requested = shares.get(&above).map(|(share, _)| *share);
            requested
                .or_else(|| current_quota(&above, observed))
                .filter(|share| share.is_finite())
                .map(|share| (above, share))
        })
    };
    for (place, share, valued) in all.into_iter().filter(|(_, share, _)| share.is_finite()) {
        let above = bound_of(place);
        let Some((above, bound)) = above.filter(|(_, bound)| share > *bound + GRAIN) else { continue };
        problems.push(Problem::Refused {
            message: format!(
                "group '{}' gets {} of the time, but group /{} above it has {}",
                valued.group,
                percent(share),
                above.path,
                percent(bound)
            ),
            origin: valued.origin.clone(),
            hint: format!("give it at most {}, or its parent more", at_most(bound)),
            version: Version::V1,
        });
    }
    // groups that stay as they are
    for place in with_quota(observed).filter(|place| !shares.contains_key(place)) {
        let share = current_quota(&place, observed).filter(|share| share.is_finite());
        let Some((share, (above, bound))) = share.zip(bound_of(&place)) else { continue };
        let Some((_, valued)) = shares.get(&above).filter(|_| share > bound + GRAIN) else { continue };
        problems.push(Problem::Refused {
            message: format!(
                "group '{}' is to have {} of the time, but the group /{} in it, whose quota the layout does not set, has {}",
                valued.group,
                percent(bound),
                place.path,
                percent(share)
            ),
            origin: valued.origin.clone(),
            hint: format!(
                "{} cpu.max={}, or set it in the layout",
                Command::ringfence("set").group(format!("/{}", place.path)),
                at_most(bound).replace(' ', "")
            ),
            version: Version::V1,
        });
    }
}

/// The groups of v1 whose quotas were read.
fn with_quota(observed: &Observed) -> impl Iterator<Item = Place> + '_ {
    let of_v1 = observed.hierarchies.iter().enumerate().filter(|(_, at)| at.version == Version::V1);
    of_v1.flat_map(|(hierarchy, at)| {
        let read = at.groups.iter().filter(|(_, seen)| seen.files.contains_key("cpu.cfs_quota_us"));
        read.map(move |(path, _)| Place { hierarchy, path: path.clone(), version: Version::V1 })
    })
}

fn current_quota(place: &Place, observed: &Observed) -> Option<Share> {
    let number = |file: &str| observed.file(place, file)?.trim().parse::<f64>().ok();
    let quota = number("cpu.cfs_quota_us")?;
    Some(if quota < 0.0 { Share::INFINITY } else { quota / number("cpu.cfs_period_us")?.max(1.0) })
}

/// The directories above one, nearest first, without the root.
fn ancestors(place: &Place) -> Vec<Place> {
    let cuts = place.path.match_indices('/').map(|(at, _)| place.path[..at].to_owned());
    let mut all: Vec<Place> = cuts.map(|path| Place { path, ..place.clone() }).collect();
    all.reverse();
    all
}

/// What a user may type, which is no more than the share.
fn at_most(share: Share) -> String {
    percent((share * 10_000.0 + 1e-6).floor() / 10_000.0)
}

fn percent(share: Share) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A real-time budget on its way to be known: its two numbers may be two settings.
struct Budget<'v> {
    runtime: Option<f64>,
    period: Option<f64>,
    valued: &'v Valued<'v>,
}

/// The real-time share that a group is to have, in the layout's order.
pub(crate) fn real_time_shares<'v>(
    values: impl Iterator<Item = &'v Valued<'v>>,
    observed: &Observed,
) -> Vec<(&'v Valued<'v>, Share)> {
    let mut budgets: Vec<Budget<'v>> = Vec::new();
    for valued in values {
        let index =
            budgets.iter().position(|budget| budget.valued.place == valued.place).unwrap_or_else(|| {
                budgets.push(Budget { runtime: None, period: None, valued });
                budgets.len() - 1
            });
        let number = match &valued.value {
            Value::Micros(Limit::At(micros)) => micros.0 as f64,
            Value::Number(number) => *number as f64,
            _ => continue,
        };
        match valued.found.setting.name {
            "cpu.rt_runtime_us" => budgets[index].runtime = Some(number),
            _ => budgets[index].period = Some(number),
        }
    }
    let share = |budget: Budget<'v>| {
        let actual = |file: &str| observed.file(&budget.valued.place, file)?.trim().parse::<f64>().ok();
        let runtime = budget.runtime.or_else(|| actual("cpu.rt_runtime_us")).unwrap_or(0.0);
        let period = budget.period.or_else(|| actual("cpu.rt_period_us")).unwrap_or(1_000_000.0);
        (budget.valued, runtime / period.max(1.0))
    };
    budgets.into_iter().map(share).collect()
}

fn real_time<'v>(
    values: impl Iterator<Item = &'v Valued<'v>>,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) {
    let shares = real_time_shares(values, observed);
    let mut sums: HashMap<Place, (Share, &Valued<'_>)> = HashMap::new();
    for (valued, share) in &shares {
        let above = ancestors(&valued.place).into_iter().next();
        let above = above.unwrap_or_else(|| Place { path: String::new(), ..valued.place.clone() });
        sums.entry(above).or_insert((0.0, valued)).0 += share;
    }
    let mut sums: Vec<(Place, (Share, &Valued<'_>))> = sums.into_iter().collect();
    sums.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (above, (sum, valued)) in sums {
        let requested = shares.iter().find(|(valued, _)| valued.place == above).map(|(_, share)| *share);
        let actual = || {
            let number = |file: &str| observed.file(&above, file)?.trim().parse::<f64>().ok();
            Some(number("cpu.rt_runtime_us")? / number("cpu.rt_period_us")?.max(1.0))
        };
        let none = if above.path.is_empty() { REAL_TIME } else { 0.0 };
        let bound = requested.or_else(actual).unwrap_or(none);
        if sum > bound + GRAIN {
            let whose = if above.path.is_empty() {
                "the machine".to_owned()
            } else {
                format!("group /{} above them", above.path)
            };
            problems.push(Problem::Refused {
                message: format!(
                    "group '{}' and the groups beside it have real-time budgets of {} of the time together, but {whose} has {}",
                    valued.group,
                    percent(sum),
                    percent(bound)
                ),
                origin: valued.origin.clone(),
                hint: if above.path.is_empty() {
                    format!("lower them to {} together", at_most(bound))
                } else {
                    // of the kernel's period of a second
                    let runtime = (sum * 1000.0).ceil();
                    format!("add [groups.\"/{}\"] with cpu.rt_runtime_us = \"{runtime}ms\", or lower them", above.path)
                },
                version: Version::V1,
            });
        }
    }
}
