//! What was measured against what was asked: medians over the runs, a verdict, and in words what is off and what
//! may have disturbed it. Pure.

use serde::Serialize;

use super::{Condition, Failure, Kind, Run};
use crate::{CpuReport, ReadReport, Spread, spread};

/// Two workers on each of two CPUs have the same CPU time up to the scheduler's slices.
const PINNED_WITHIN: f64 = 0.05;
/// CPUs that differ more than this in work for the same CPU time are told of. No setting here is to blame.
const SPEEDS_WITHIN: f64 = 0.05;
/// A quota is exact over whole periods; 5 % leaves room for the first and the last.
const QUOTA_WITHIN: f64 = 0.05;
/// 8 to 11 of 10: the throttle works in slices of 100 ms, and reads in flight at the end do not count.
const READS_WITHIN: (f64, f64) = (0.20, 0.10);
/// A CPU run is disturbed if others used more than this share of the machine.
const NOISE: f64 = 0.05;

/// How what was measured compares with what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As asked.
    Ok,
    /// Measured otherwise than asked; the row's note says how far. Timings are no failure.
    Off,
    /// Nothing was asked: the figure is there to compare with.
    Comparison,
    /// It could not be made or measured, or had no effect at all.
    Failed,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The condition's name.
    pub condition: String,
    /// What was asked.
    pub asked: String,
    /// What was measured, in words.
    pub measured: String,
    /// What was seen besides.
    pub details: String,
    /// The figure behind the words, over the runs; see `unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Spread>,
    /// What `figure` counts.
    pub unit: &'static str,
    /// Runs that the figure is of.
    pub runs: usize,
    /// Runs that others disturbed and that are left out.
    pub left_out: usize,
    /// No run was quiet: the figure is of disturbed ones.
    pub disturbed: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// What is off, what may have disturbed it, and what else must be known to read the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The table's rows. A setting that was accepted and had no effect joins the failures.
pub(super) fn rows(conditions: &[Condition], runs: &[Run], failures: &mut Vec<Failure>) -> Vec<Row> {
    let row = |condition: &Condition| {
        let name = condition.name();
        let all: Vec<&Run> = runs.iter().filter(|run| run.condition == name).collect();
        let quiet: Vec<&Run> = all.iter().copied().filter(|run| !is_disturbed(condition, run)).collect();
        let failed = failures.iter().any(|failure| failure.of == name);
        let disturbed = quiet.is_empty() && !all.is_empty();
        let counted = if disturbed { &all } else { &quiet };
        let row = if failed || all.is_empty() { failed_row(condition) } else { measured(condition, counted) };
        let row = Row { runs: counted.len(), left_out: all.len() - counted.len(), disturbed, ..row };
        if row.verdict == Verdict::Failed && !failed {
            let error = row.note.clone().unwrap_or_else(|| "not measured".to_owned());
            failures.push(Failure { of: name, error, hint: None });
        }
        row
    };
    conditions.iter().map(row).collect()
}

/// Did others use so much of the machine that the run is to be repeated? Reads are exempt: the kernel's own
/// threads work for them.
pub(super) fn is_disturbed(condition: &Condition, run: &Run) -> bool {
    condition.device.is_none() && run.others.other + run.others.steal > NOISE
}

fn row(condition: &Condition, measured: String, figure: Option<Spread>, unit: &'static str) -> Row {
    let (condition, asked) = (condition.name(), condition.asked());
    let (verdict, note) = (Verdict::Comparison, None);
    let details = String::new();
    Row {
        condition,
        asked,
        measured,
        details,
        figure,
        unit,
        runs: 0,
        left_out: 0,
        disturbed: false,
        verdict,
        note,
    }
}

fn failed_row(condition: &Condition) -> Row {
    Row { verdict: Verdict::Failed, ..row(condition, "-".to_owned(), None, "") }
}

fn measured(condition: &Condition, runs: &[&Run]) -> Row {
    match condition.kind {
        Kind::Free | Kind::Pinned => competing(condition, runs),
        Kind::Quota { percent } => quota(condition, runs, f64::from(percent)),
        Kind::Reads => reads(condition, runs, None),
        Kind::LimitedReads { per_second } => reads(condition, runs, Some(f64::from(per_second))),
    }
}

/// How far the workers are apart in CPU time, which is what a division gives, and in work.
fn competing(condition: &Condition, runs: &[&Run]) -> Row {
    let shares = medians(runs, |report| report.cpus_used() * 100.0 / report.threads.max(1) as f64);
    let work = medians(runs, CpuReport::units_per_second);
    let (Some(share), Some(work)) = (spread(&shares), spread(&work)) else { return failed_row(condition) };
    let (lowest, highest) = (share.lowest, share.highest);
    let words =
        format!("{lowest:.1} to {highest:.1} % of a CPU for each, {} apart", percent(share.relative()));
    let mut row = row(condition, words, Some(share), "% of a CPU for each worker");
    let (count, work) = (shares.len(), percent(work.relative()));
    row.details = format!("{count} workers, their work {work} apart; {}", seen(condition, runs));
    row.note = unequal_speeds(runs);
    if condition.kind == Kind::Pinned {
        let within = share.relative() <= PINNED_WITHIN;
        row.verdict = if within { Verdict::Ok } else { Verdict::Off };
        if !within {
            row.note = Some(with_noise(format!("workers are {} apart", percent(share.relative())), runs));
        }
        if let Some(strayed) = strayed(condition, runs) {
            (row.verdict, row.note) = (Verdict::Failed, Some(strayed));
        }
    }
    row
}

/// Each worker's median over the runs.
fn medians(runs: &[&Run], of: impl Fn(&CpuReport) -> f64) -> Vec<f64> {
    let reports =
        |run: &Run| -> Vec<CpuReport> { run.groups.iter().flat_map(|group| group.cpu.clone()).collect() };
    let runs: Vec<Vec<CpuReport>> = runs.iter().map(|run| reports(run)).collect();
    let count = runs.iter().map(Vec::len).min().unwrap_or(0);
    let of_worker = |worker: usize| {
        let values: Vec<f64> = runs.iter().map(|reports| of(&reports[worker])).collect();
        spread(&values).map(|values| values.median)
    };
    (0..count).filter_map(of_worker).collect()
}

/// Work for the same CPU time differs with the CPU's clock, with what its core's other thread does, and in a
/// virtual machine with what its host does: no group's setting changes that.
fn unequal_speeds(runs: &[&Run]) -> Option<String> {
    let apart = spread(&medians(runs, CpuReport::units_per_cpu_second))?.relative();
    let text =
        format!("the CPUs are not equally fast: work for the same CPU time differs by {}", percent(apart));
    (apart > SPEEDS_WITHIN).then_some(text)
}

/// The CPUs that each group's workers were seen on, in all runs.
fn seen(condition: &Condition, runs: &[&Run]) -> String {
    let of_group = |place: usize| {
        let reports = runs.iter().filter_map(|run| run.groups.get(place)).flat_map(|group| &group.cpu);
        reports.fold(units::CpuSet::new(), |all, report| all.union(&report.cpus))
    };
    let each = (condition.groups.iter().enumerate())
        .map(|(place, group)| format!("{} on {}", group.letter, of_group(place)));
    format!("ran {}", each.collect::<Vec<_>>().join(", "))
}

/// A worker seen outside the CPUs it was given.
fn strayed(condition: &Condition, runs: &[&Run]) -> Option<String> {
    let of_run = |run: &&Run| condition.groups.iter().cloned().zip(run.groups.clone()).collect::<Vec<_>>();
    runs.iter().flat_map(of_run).find_map(|(group, run)| {
        let given = group.cpus?;
        let report = run.cpu.iter().find(|report| !report.cpus.is_subset(&given))?;
        Some(format!("a worker of {} on CPU {given} ran on {}", group.letter, report.cpus))
    })
}

fn quota(condition: &Condition, runs: &[&Run], asked: f64) -> Row {
    let used = |run: &&Run| {
        run.groups.iter().flat_map(|group| &group.cpu).map(|report| report.cpus_used()).sum::<f64>()
    };
    let figures: Vec<f64> = runs.iter().map(|run| used(run) * 100.0).collect();
    let Some(figure) = spread(&figures) else { return failed_row(condition) };
    let words = format!("{:.1} % ({:.1} to {:.1})", figure.median, figure.lowest, figure.highest);
    let row = row(condition, words, Some(figure), "% of a CPU");
    judge(row, asked, (QUOTA_WITHIN, QUOTA_WITHIN), runs)
}

fn reads(condition: &Condition, runs: &[&Run], asked: Option<f64>) -> Row {
    let reports: Vec<&ReadReport> =
        runs.iter().flat_map(|run| run.groups.iter().filter_map(|group| group.read.as_ref())).collect();
    let figures: Vec<f64> = reports.iter().map(|report| report.reads_per_second()).collect();
    let Some(figure) = spread(&figures) else { return failed_row(condition) };
    let median = |pick: fn(&crate::Latency) -> u64| {
        let of: Vec<f64> = reports.iter().filter_map(|report| Some(pick(&report.latency?) as f64)).collect();
        spread(&of).map_or_else(|| "none".to_owned(), |of| time(of.median))
    };
    let range = format!("{} to {}", count(figure.lowest), count(figure.highest));
    let words = format!("{} a second ({range})", count(figure.median));
    let mut row = row(condition, words, Some(figure), "reads/s");
    row.details = format!(
        "a read took {}, 99 % up to {}",
        median(|latency| latency.p50_ns),
        median(|latency| latency.p99_ns)
    );
    match asked {
        Some(asked) => judge(row, asked, READS_WITHIN, runs),
        None => row,
    }
}

/// `within`: how far below and above, as shares of what was asked.
fn judge(mut row: Row, asked: f64, within: (f64, f64), runs: &[&Run]) -> Row {
    let Some(figure) = row.figure else { return row };
    if (asked * (1.0 - within.0)..=asked * (1.0 + within.1)).contains(&figure.median) {
        return Row { verdict: Verdict::Ok, ..row };
    }
    let off = figure.median / asked - 1.0;
    let way = if off < 0.0 { "below" } else { "above" };
    let text = format!("{} {way} what was asked", percent(off.abs()));
    row.note = Some(with_noise(text, runs));
    Row { verdict: Verdict::Off, ..row }
}

/// Adds what disturbed the runs, if anything did.
fn with_noise(mut text: String, runs: &[&Run]) -> String {
    let worst = |of: fn(&Run) -> f64| runs.iter().map(|run| of(run)).fold(0.0, f64::max);
    let (other, steal) = (worst(|run| run.others.other), worst(|run| run.others.steal));
    if other > NOISE {
        text += &format!("; other processes used up to {} of all CPUs meanwhile", percent(other));
    }
    if steal > NOISE {
        text += &format!("; the hypervisor took up to {}", percent(steal));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `9.4`, `43,812`.
fn count(number: f64) -> String {
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let first = digits.len() % 3;
    let groups = std::iter::once(&digits[..first]).filter(|head| !head.is_empty());
    let rest = (first..digits.len()).step_by(3).map(|at| &digits[at..at + 3]);
    groups.chain(rest).collect::<Vec<_>>().join(",")
}

/// `85 us`, `12 ms`, `1.2 s`, of nanoseconds.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        ns if ns < 1e7 => format!("{:.1} ms", ns / 1e6),
        ns if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_read_well() {
        let counts = [(9.44, "9.4"), (99.9, "99.9"), (100.0, "100"), (1234.0, "1,234"), (43_812.4, "43,812")];
        counts.iter().for_each(|(number, text)| assert_eq!(count(*number), *text));
        assert_eq!(count(1_234_567.0), "1,234,567");
        let times =
            [(85_400.0, "85 us"), (2_340_000.0, "2.3 ms"), (399_600_000.0, "400 ms"), (1.24e9, "1.2 s")];
        times.iter().for_each(|(ns, text)| assert_eq!(time(*ns), *text));
    }
}
