//! Time without a CPU: by a quota, by others, by too few CPUs for its own tasks, by a real-time budget.
//!
//! A task's wait (`/proc/PID/schedstat`) goes on while a quota stops its group, so the wait is divided: see
//! [`Waits::divide`].

use std::time::Duration;

use units::{CpuSet, Limit, counted, hint::Command};

use super::{
    advice::Advice,
    answer::{Cause, Certainty, Lost, Note, NoteKind, Number, count, seconds},
    by_load::Instead,
    causes::Kind,
    facts::{Facts, Level, Other},
    room::Room,
    thresholds::AT_RT_BUDGET,
    words::{cpus, exact, set, time, whose},
};
use monitor::FigureUnit;

/// The largest number of groups that are named as users of the CPUs; nobody reads more.
const NAMED: usize = 4;

pub(crate) fn causes(facts: &Facts) -> Vec<Cause> {
    let waits = Waits::divide(facts);
    let quotas = waits.quotas.iter().enumerate().filter_map(|(place, cost)| quota(facts, place, cost));
    quotas
        .chain(neighbours(facts, waits.neighbours))
        .chain(few_cpus(facts, waits.own))
        .chain(realtime(facts))
        .collect()
}

/// The group's wait for CPUs, by what would have ended it.
struct Waits {
    /// By the quota of each level.
    quotas: Vec<ByQuota>,
    neighbours: Duration,
    /// For each other.
    own: Duration,
}

/// What a quota cost.
#[derive(Default)]
struct ByQuota {
    lost: Duration,
    /// The part of it in which others ran.
    beside: Duration,
    /// The part of it in which its own tasks ran.
    crowd: Duration,
}

impl Waits {
    /// A CPU that is throttled stops all tasks that wait there, so its throttled time counts once per waiting task:
    /// `k = (used + waited) / (used + throttled + others)` tasks on average for each CPU that was used, stopped or taken. What
    /// others ran is lost once, as only one task could have run instead. The rest is the group's own crowd.
    fn divide(facts: &Facts) -> Waits {
        let throttled: Vec<Duration> = facts.levels.iter().map(|level| level.throttled).collect();
        let Some(waited) = facts.cpu.waited else {
            let quotas = throttled.into_iter().map(|lost| ByQuota { lost, ..ByQuota::default() });
            return Waits { quotas: quotas.collect(), neighbours: Duration::ZERO, own: Duration::ZERO };
        };
        let mut rest = waited;
        let mut quotas = Vec::with_capacity(throttled.len());
        for (level, time) in throttled.into_iter().enumerate() {
            // a group above is also stopped on CPUs that this one does not want
            let time = if level == 0 { time } else { time.min(rest) };
            let others = facts.cpu.foreign.min(rest.saturating_sub(time));
            let whole = (facts.cpu.used + time + others).as_secs_f64();
            let crowd =
                if whole > 0.0 { ((facts.cpu.used + rest).as_secs_f64() / whole).max(1.0) } else { 1.0 };
            // tasks that ended meanwhile took their wait with them: then the throttled time is more
            let lost = time.max(rest.min(time.mul_f64(crowd)));
            rest = rest.saturating_sub(lost);
            quotas.push(lost);
        }
        let mut neighbours = if is_alone(facts, waited) { rest } else { rest.min(facts.cpu.foreign) };
        let mut own = rest.saturating_sub(neighbours);
        let mut by_quota = Vec::with_capacity(quotas.len());
        for (place, lost) in quotas.into_iter().enumerate() {
            let beside = neighbours.mul_f64(part_of_others(facts, place) * used_up(&facts.levels[place]));
            let crowd = own.mul_f64(used_up(&facts.levels[place]));
            neighbours = neighbours.saturating_sub(beside);
            own = own.saturating_sub(crowd);
            by_quota.push(ByQuota { lost: lost + beside + crowd, beside, crowd });
        }
        Waits { quotas: by_quota, neighbours, own }
    }
}

/// A single task waits for others only, also where the kernel's ticks count less for these than it waited.
fn is_alone(facts: &Facts, waited: Duration) -> bool {
    facts.tasks == 1 && !facts.cpu.foreign.is_zero() && facts.cpu.used + waited <= facts.span.mul_f64(1.05)
}

/// The part of the periods in which a quota was used up. Whatever its tasks waited for in one of these, without that wait
/// they would have run no more: neither fewer neighbours nor more CPUs let a group have more than its quota.
fn used_up(level: &Level) -> f64 {
    (level.throttled_periods as f64 / level.periods.max(1) as f64).min(1.0)
}

/// The part of what others ran that was not under the quota at `place`: those under it took their part of it.
fn part_of_others(facts: &Facts, place: usize) -> f64 {
    let under_it = facts.cpu.others.iter().filter(|other| other.meets < place);
    let beside = facts.cpu.foreign.saturating_sub(under_it.map(|other| other.ran).sum());
    beside.as_secs_f64() / facts.cpu.foreign.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn quota(facts: &Facts, place: usize, cost: &ByQuota) -> Option<Cause> {
    let level = facts.levels.get(place)?;
    if level.throttled_periods == 0 && level.throttled.is_zero() {
        return None;
    }
    let span = facts.span.as_secs_f64();
    let limit = level.quota.and_then(|limit| Some((limit.quota.at()?, limit.period)));
    let words = match limit {
        Some((quota, period)) if !period.is_zero() => {
            let part = quota.as_secs_f64() / period.as_secs_f64();
            format!(" ({}: {} of each {})", cpus(part), exact(quota), exact(period))
        }
        _ => String::new(), // taken off meanwhile
    };
    // what it waited for others too: without the quota it would want that as well
    let could_have = facts.cpu.used + cost.lost.max(facts.cpu.waited.unwrap_or_default());
    let wanted = could_have.as_secs_f64() / span.max(f64::MIN_POSITIVE);
    let beside = match (cost.beside.is_zero(), cost.crowd.is_zero()) {
        (true, true) => String::new(),
        (false, _) => format!(
            "; others ran on its CPUs meanwhile ({}), but without them it would have used up the same quota",
            time(cost.beside)
        ),
        (true, false) => format!(
            "; its tasks waited {} for each other meanwhile, but on more CPUs they would have used up the same quota",
            time(cost.crowd)
        ),
    };
    let Instead { ending, hint } =
        Instead::of_quota(facts, level).unwrap_or_else(|| larger_quota(facts, place, wanted));
    Some(Cause {
        lost: Some(Lost::new(cost.lost, Certainty::Measured)),
        numbers: vec![
            count("cpu.periods", level.periods),
            count("cpu.throttled.periods", level.throttled_periods),
            seconds("cpu.throttled.time", level.throttled),
            Number { name: "wanted", value: wanted, unit: FigureUnit::Cpus },
        ],
        sentence: format!(
            "{}{words} stopped it in {} of {}, for {} of CPU time; it wanted {}{beside}{ending}",
            whose(facts, level, "quota"),
            level.throttled_periods,
            counted(level.periods, "period"),
            time(level.throttled),
            cpus(wanted)
        ),
        hint,
        ..Cause::new(Kind::Quota, &level.group)
    })
}

/// What a quota lets through, in CPUs; `None` without a limit.
fn allowed(level: &Level) -> Option<f64> {
    let quota = level.quota?;
    let part = quota.quota.at()?.as_secs_f64() / quota.period.as_secs_f64();
    part.is_finite().then_some(part)
}

/// A larger quota for the group at `place`. Quotas above it hold for it too, and v1 refuses one above the parent's: it is
/// raised to the least of them, and where that is no more than it has, the others first, from the top.
fn larger_quota(facts: &Facts, place: usize, wanted: f64) -> Instead {
    let level = &facts.levels[place];
    let Some(own) = allowed(level) else { return Instead { ending: String::new(), hint: None } };
    let value = |part| format!("cpu.max={}", enough(part, facts));
    let above = facts.levels[place + 1..].iter().filter_map(|level| Some((level, allowed(level)?)));
    let narrow: Vec<(&Level, f64)> = above.filter(|(_, part)| *part < wanted).collect();
    let Some((least, part)) = narrow.iter().copied().min_by(|(_, one), (_, other)| one.total_cmp(other))
    else {
        return Instead { ending: String::new(), hint: set(facts, &level.group, &[value(wanted)]) };
    };
    let ending = format!("; {} above it may use {}", least.group, cpus(part));
    // the hundredth of a percent below, as v1 refuses what is above
    let percent = (part * 10_000.0 + 1e-6).floor() / 100.0;
    if percent > own * 100.0 + 0.005 {
        return Instead { ending, hint: set(facts, &level.group, &[format!("cpu.max={percent}%")]) };
    }
    // one that follows its load is raised in its layout
    if let Some(instead) = narrow.iter().rev().find_map(|(level, _)| Instead::of_quota(facts, level)) {
        return Instead { ending: format!("{ending}{}", instead.ending), hint: instead.hint };
    }
    let raised = narrow.iter().rev().map(|(level, _)| *level).chain([level]);
    let raised: Vec<&Level> = raised.collect();
    let each: Option<Vec<String>> =
        raised.iter().map(|level| set(facts, &level.group, &[value(wanted)])).collect();
    let in_layout = raised.iter().any(|level| facts.bound.at(&level.group).is_some());
    let between = if in_layout { "; then " } else { " && " };
    Instead { ending, hint: each.map(|each| each.join(between)) }
}

/// A quota in steps of 10 % that lets `wanted` CPUs through; none where that is all there are.
fn enough(wanted: f64, facts: &Facts) -> String {
    let all = facts.cpu.cpus.len().max(1) as f64;
    let percent = (wanted * 10.0).ceil().max(1.0) * 10.0;
    if percent >= all * 100.0 { "max".to_owned() } else { format!("{percent:.0}%") }
}

fn neighbours(facts: &Facts, lost: Duration) -> Option<Cause> {
    let cpu = &facts.cpu;
    let known: Duration = cpu.others.iter().map(|other| other.ran).sum::<Duration>() + cpu.steal;
    let gone = cpu.foreign.saturating_sub(known);
    let mut named: Vec<String> = cpu.others.iter().take(NAMED).map(other).collect();
    let rest = [("the hypervisor", cpu.steal), ("tasks that have ended or moved", gone)];
    let is_much = |(_, time): &&(&str, Duration)| *time * 10 > cpu.foreign;
    named.extend(rest.iter().filter(is_much).map(|(who, ran)| format!("{who} {}", time(*ran))));
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let mut numbers = vec![
        seconds("waited", cpu.waited.unwrap_or_default()),
        seconds("others", cpu.foreign),
        seconds("cpu.steal", cpu.steal),
    ];
    numbers.extend(cpu.others.first().map(|first| seconds("largest other", first.ran)));
    let advice = Advice::on_cpus(facts);
    (!lost.is_zero()).then(|| Cause {
        lost: Some(Lost::new(lost, Certainty::Measured)),
        numbers,
        sentence: format!(
            "its tasks waited {} for {} while others ran there for {}{named}{}",
            time(lost),
            cpus_by_number(&cpu.cpus),
            time(cpu.foreign),
            advice.sentence
        ),
        hint: advice.hint,
        choices: advice.choices,
        ..Cause::new(Kind::Neighbours, cpu.others.first().map_or("/", |first| &first.group))
    })
}

fn other(other: &Other) -> String {
    let group = if other.group == "/" { "tasks of the root group" } else { &other.group };
    format!("{group} {} (most of it {})", time(other.ran), other.task)
}

fn cpus_by_number(set: &CpuSet) -> String {
    format!("CPU{} {set}", if set.len() == 1 { "" } else { "s" })
}

fn few_cpus(facts: &Facts, lost: Duration) -> Option<Cause> {
    let cpu = &facts.cpu;
    let wanted = (cpu.used + lost).as_secs_f64() / facts.span.as_secs_f64().max(f64::MIN_POSITIVE);
    let room = Room::of(facts);
    let at = room.as_ref().and_then(|room| room.levels.first()).map_or(&facts.group, |level| &level.group);
    let possible = room.as_ref().filter(|room| !room.more.is_empty());
    // the group itself before those above it
    let instead =
        possible.and_then(|room| room.levels.iter().rev().find_map(|level| Instead::of_cpus(facts, level)));
    let by_hand = || {
        let room = possible?;
        let all = larger(facts, &room.more, wanted);
        let each = room.levels.iter().map(|level| set(facts, &level.group, &[format!("cpuset.cpus={all}")]));
        Some(each.collect::<Option<Vec<_>>>()?.join(" && "))
    };
    let ending = match (&instead, &room) {
        (Some(instead), _) => instead.ending.as_str(),
        (None, Some(room)) => room.limit.as_str(),
        (None, None) if cpu.online.is_subset(&cpu.cpus) => ", which are all there are",
        (None, None) => "",
    };
    // fewer on average: they wake up together, or may not run everywhere (sched_setaffinity(2))
    let at_times = if wanted < cpu.cpus.len() as f64 { " at times, though on average" } else { ":" };
    (!lost.is_zero()).then(|| Cause {
        lost: Some(Lost::new(lost, Certainty::Measured)),
        numbers: vec![
            Number { name: "wanted", value: wanted, unit: FigureUnit::Cpus },
            count("cpuset.cpus", cpu.cpus.len() as u64),
            seconds("waited", cpu.waited.unwrap_or_default()),
        ],
        sentence: format!(
            "its tasks waited {} for each other{at_times} they wanted {} and have {} ({}){ending}",
            time(lost),
            cpus(wanted),
            cpus(cpu.cpus.len() as f64),
            cpu.cpus
        ),
        hint: instead.as_ref().map_or_else(by_hand, |instead| instead.hint.clone()),
        ..Cause::new(Kind::FewCpus, at)
    })
}

/// The CPUs that it has, and as many of `more` as it wanted, first those of the nodes that it runs on.
fn larger(facts: &Facts, more: &CpuSet, wanted: f64) -> CpuSet {
    let mut set = facts.cpu.cpus.clone();
    let own_nodes = facts.cpu.nodes.iter().filter(|(_, cpus)| !cpus.is_disjoint(&facts.cpu.cpus));
    let own_nodes = own_nodes.fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
    let (near, far) = (more.intersection(&own_nodes), more.difference(&own_nodes));
    for cpu in near.iter().chain(far.iter()) {
        if set.len() as f64 >= wanted && set.len() > facts.cpu.cpus.len() {
            break;
        }
        set.insert(cpu);
    }
    set
}

fn realtime(facts: &Facts) -> Option<Cause> {
    let tasks = facts.realtime.as_ref()?;
    let budget = |level: &Level| match level.realtime {
        Some((Limit::At(budget), period)) if !period.is_zero() => {
            Some(budget.as_secs_f64() / period.as_secs_f64())
        }
        _ => None,
    };
    let budgets = facts.levels.iter().filter_map(|level| Some((level, budget(level)?)));
    let (level, part) = budgets.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let ran = tasks.ran_most.as_secs_f64();
    let (Limit::At(budget), period) = level.realtime? else { return None };
    // of the first and the last period only a part was looked at, in which there may have been nothing left
    let periods = facts.span.as_secs_f64() / period.as_secs_f64();
    let periods = if periods < 1.0 { periods } else { periods.floor() };
    if ran < AT_RT_BUDGET.at * budget.as_secs_f64() * periods {
        return None;
    }
    let wanted = (part * 1.5 + 0.02).min(0.95);
    let runtime = units::Micros((period.as_secs_f64() * wanted * 1000.0).round() as u64 * 1000);
    Some(Cause {
        lost: Some(Lost::new(tasks.waited, Certainty::Measured)),
        numbers: vec![
            seconds("cpu.rt_runtime_us", budget),
            seconds("cpu.rt_period_us", period),
            seconds("ran", tasks.ran_most),
            seconds("waited", tasks.waited),
            count("realtime tasks", tasks.tasks as u64),
        ],
        sentence: format!(
            "its {} used up {} ({} of each {} on each CPU): they ran {} on CPU {}, which is all that they may, \
             and waited {}",
            counted(tasks.tasks as u64, "real-time task"),
            whose(facts, level, "real-time budget"),
            exact(budget),
            exact(period),
            time(tasks.ran_most),
            tasks.cpu,
            time(tasks.waited)
        ),
        hint: (wanted > part)
            .then(|| set(facts, &level.group, &[format!("cpu.rt_runtime_us={runtime}")]))
            .flatten(),
        ..Cause::new(Kind::RealtimeBudget, &level.group)
    })
}

/// A kernel with real-time budgets refuses real-time tasks (EPERM) where there is none, and counts no refusals: so this
/// can't be a cause.
pub(crate) fn no_realtime(facts: &Facts) -> Option<Note> {
    let none = |level: &&Level| matches!(level.realtime, Some((Limit::At(budget), _)) if budget.is_zero());
    facts.levels.iter().rev().find(none).map(|level| Note {
        kind: NoteKind::NoRealtimeBudget,
        sentence: format!(
            "a real-time task would be refused, as {} is 0",
            whose(facts, level, "cpu.rt_runtime_us")
        ),
        hint: set(facts, &level.group, &["cpu.rt_runtime_us=50ms".to_owned()]),
    })
}

/// On v1 CPU time is counted by a controller that may be in another hierarchy.
pub(crate) fn uncounted(facts: &Facts) -> Option<Note> {
    facts.cpu.uncounted.as_ref().map(|command| Note {
        kind: NoteKind::UncountedCpuTime,
        sentence: "it is not in the hierarchy of cpuacct, which counts CPU time: cpu.usage is what its present tasks ran"
            .to_owned(),
        hint: Some(command.clone()),
    })
}

/// What interrupted the isolated CPUs takes no task's time that is counted: it is said beside the causes.
pub(crate) fn interrupted(facts: &Facts) -> Option<Note> {
    facts.interrupted.as_ref().map(|interrupted| Note {
        kind: NoteKind::Interrupted,
        sentence: format!("its isolated {interrupted}"),
        hint: Some(Command::ringfence("isolate check").group(&facts.group).args(["--for", "30s"]).into()),
    })
}
