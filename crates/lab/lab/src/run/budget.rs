//! CPU time for real-time workloads where the kernel wants it given: with RT_GROUP_SCHED a new group of the v1 cpu
//! controller has none, and SCHED_FIFO is refused in it. The experiment's groups get a part of what no other group has;
//! nothing is taken from others, and it is gone with the groups.

use std::collections::BTreeMap;

use experiment::{
    Experiment, Note,
    file::{Condition, Driver, Workload, applies},
    options,
};
use kernel::{Host, Seat};
use settings::{Controller, Version};
use units::group_path;

use crate::{Error, groups::Groups};

/// What a thread that wakes a thousand times a second gets of a CPU's time: ten times its need, so that it never waits for
/// the next period.
const SHARE: f64 = 0.2;
/// With less than that it is stopped for the rest of each period.
const LEAST: f64 = 0.02;
/// Of a new group, in microseconds.
const PERIOD: f64 = 1e6;

/// Gives real-time workloads' groups their budgets; what a reader must know of it.
pub(crate) fn give(host: &Host, experiment: &Experiment, groups: &Groups) -> Result<Vec<Note>, Error> {
    let wanted = wanted(experiment)?;
    let parent = groups.parent()?;
    let Ok(seat) = host.seat(&parent, Controller::Cpu) else { return Ok(Vec::new()) };
    let budget = |path: &str| budget(host, &seat, path);
    if wanted.is_empty() || seat.at.version != Version::V1 || budget(&seat.path).is_none() {
        return Ok(Vec::new());
    }
    let above = group_path::parent(&seat.path).unwrap_or_default();
    let whole = budget(above).unwrap_or(0.0);
    let below = host.kernel().children(seat.at, above).unwrap_or_default();
    let path = |name: &String| group_path::join(above, name);
    let given: BTreeMap<String, f64> = below
        .iter()
        .map(path)
        .filter(|path| *path != seat.path)
        .filter_map(|path| budget(&path).filter(|share| *share > 0.0).map(|share| (path, share)))
        .collect();
    let shares = divide(whole - given.values().sum::<f64>(), &wanted).map_err(|needed| Error::Cannot {
        text: format!(
            "no real-time budget is left for the experiment: it needs {:.0} % of a CPU, of {:.0} % altogether{}",
            needed * 100.0,
            whole * 100.0,
            given.iter().map(|(path, share)| format!(", {path} has {:.0} %", share * 100.0)).collect::<String>()
        ),
        hint: Some("see ringfence get GROUP cpu.rt_runtime_us of those groups".to_owned()),
    })?;
    let text = |share: f64| format!("{}us", (share * PERIOD).floor());
    groups.set_for_good(host, None, &[("cpu.rt_runtime_us".to_owned(), text(shares.values().sum()))])?;
    let mut reported = Vec::new();
    for (group, share) in shares {
        groups.set_for_good(host, Some(group), &[("cpu.rt_runtime_us".to_owned(), text(share))])?;
        reported.push(Note::RealTimeBudget { group: group.to_owned(), percent: share * 100.0 });
    }
    Ok(reported)
}

/// Group → how many threads that wake a thousand times a second its real-time workloads come to, where that is most: in
/// one condition with one load at a time.
fn wanted(experiment: &Experiment) -> Result<BTreeMap<&str, f64>, Error> {
    let loads: Vec<&[Workload]> = match experiment.load.as_slice() {
        [] => vec![&[]],
        loads => loads.iter().map(|load| load.workload.as_slice()).collect(),
    };
    let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
    for condition in &experiment.condition {
        let measured = measured(experiment, condition)?;
        for load in &loads {
            let beside = load.iter().filter(|of| applies(&of.conditions, &condition.name));
            let beside = beside.filter_map(|of| Some((of.group.as_deref()?, threads(&of.driver))));
            let mut here: BTreeMap<&str, f64> = BTreeMap::new();
            for (group, threads) in
                measured.iter().copied().chain(beside).filter(|(_, threads)| *threads > 0.0)
            {
                *here.entry(group).or_default() += threads;
            }
            for (group, threads) in here {
                let most = wanted.entry(group).or_default();
                *most = most.max(threads);
            }
        }
    }
    Ok(wanted)
}

/// The groups of the workloads that run in a condition, and what each comes to there.
fn measured<'e>(experiment: &'e Experiment, condition: &Condition) -> Result<Vec<(&'e str, f64)>, Error> {
    let mut found = Vec::new();
    for (name, workload) in &experiment.workload {
        let runs = applies(&workload.conditions, &condition.name);
        let Some(group) = workload.group.as_deref().filter(|_| runs) else { continue };
        let driver =
            options::driver(experiment, name, condition).map_err(|error| Error::cannot(error.to_string()))?;
        found.push((group, driver.as_ref().map_or(0.0, threads)));
    }
    Ok(found)
}

/// How many threads that wake a thousand times a second a driver's real-time threads come to.
fn threads(driver: &Driver) -> f64 {
    match driver {
        Driver::Cyclic(cyclic) | Driver::Cyclictest(cyclic) if cyclic.priority > 0 => {
            let per_second = 1e6 / f64::from(cyclic.interval_us.max(1));
            f64::from(cyclic.threads) * per_second / 1000.0
        }
        _ => 0.0,
    }
}

/// What each gets of what is left. The error is what is needed at least.
fn divide<'g>(left: f64, wanted: &BTreeMap<&'g str, f64>) -> Result<BTreeMap<&'g str, f64>, f64> {
    let sum: f64 = wanted.values().sum();
    if left < sum * LEAST {
        return Err(sum * LEAST);
    }
    let each = SHARE.min(left / sum);
    Ok(wanted.iter().map(|(group, threads)| (*group, threads * each)).collect())
}

/// The share of a CPU that a group's real-time tasks may use.
fn budget(host: &Host, seat: &Seat<'_>, path: &str) -> Option<f64> {
    let number = |file| host.kernel().read(seat.at, path, file).ok()?.trim().parse::<f64>().ok();
    let (runtime, period) = (number("cpu.rt_runtime_us")?, number("cpu.rt_period_us")?);
    // -1: no bound, which the machine's own still is
    let runtime = if runtime < 0.0 { period } else { runtime };
    (period > 0.0).then(|| runtime / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_ten_times_its_need_or_its_part_of_what_is_left() {
        let wanted = BTreeMap::from([("a", 1.0), ("b", 2.0)]);
        assert_eq!(divide(0.95, &wanted).unwrap(), BTreeMap::from([("a", 0.2), ("b", 0.4)]));
        let tight = divide(0.3, &wanted).unwrap();
        assert!((tight["a"] - 0.1).abs() < 1e-9 && (tight["b"] - 0.2).abs() < 1e-9, "{tight:?}");
        assert_eq!(divide(0.05, &wanted), Err(0.06));
        assert_eq!(divide(-0.1, &wanted), Err(0.06));
    }

    #[test]
    fn real_time_workloads_want_it_by_threads_and_interval() {
        let text = "name='x'\ntitle='x'\n[group.a]\n[group.b]\n[workload.w]\ndriver='cyclic'\ngroup='a'\nthreads=2\n\
            interval-us=500\n[workload.v]\ndriver='cyclictest'\ngroup='b'\npriority=0\n[[condition]]\nname='c'\n\
            [[measure]]\nname='m'\nis='w.cycles'\n";
        let read = |text: &str| experiment::read(&layout::Source::new("x", text)).experiment.unwrap();
        let experiment = read(text);
        assert_eq!(wanted(&experiment).unwrap(), BTreeMap::from([("a", 4.0)]));
        // options of a condition count where it requests most; so does the one load that does
        let more = "[[condition]]\nname='d'\noptions.w.threads=3\n\
            [[load]]\nname='l'\n[[load.workload]]\ndriver='cyclic'\ngroup='a'\n\
            [[load]]\nname='k'\n[[load.workload]]\ndriver='cyclic'\ngroup='b'\n\
            [[load.workload]]\ndriver='cyclic'\ngroup='a'\nthreads=9\nconditions=['c']\n";
        let experiment = read(&(text.to_owned() + more));
        assert_eq!(wanted(&experiment).unwrap(), BTreeMap::from([("a", 13.0), ("b", 1.0)]));
    }
}
