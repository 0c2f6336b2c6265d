//! A report as people read it: a table per CPU by cause, and the verdict.

use std::fmt::{self, Write};

use crate::interruptions::{
    noise::{Noise, Policy},
    report::{OfCpu, Report, Row, RowState},
};

/// As wide as most names of interrupts.
const CAUSE: usize = 48;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.cpus {
            writeln!(f, "{:<CAUSE$} {:>12} {:>10}", format!("CPU {}", one.cpu), "per second", "count")?;
            f.write_str(&causes(one))?;
            if let Some(noise) = &one.noise {
                writeln!(f, "  {}", seen(noise))?;
            }
            f.write_char('\n')?;
        }
        for missing in &self.missing {
            writeln!(f, "{missing}")?;
        }
        if self.stopped {
            writeln!(f, "stopped after {:.1} s", self.span_sec)?;
        }
        f.write_str(&verdict(self))
    }
}

impl Report {
    /// With what keeps the CPUs quiet above it.
    pub fn with_rows(&self, rows: &[Row]) -> String {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for Row { name, state, detail } in rows {
            let line = format!("{name:width$}  {:13}  {detail}", state.name());
            text += line.trim_end();
            text.push('\n');
        }
        if !rows.is_empty() {
            text.push('\n');
        }
        format!("{text}{self}")
    }
}

/// How many rows are done, and which are not.
pub fn in_short(rows: &[Row]) -> String {
    let of = |state: RowState| rows.iter().filter(move |row| row.state == state);
    let mut parts = Vec::new();
    for state in [RowState::Done, RowState::ByKernel] {
        let count = of(state).count();
        parts.extend((count > 0).then(|| format!("{} {}", units::counted(count, "row"), state.name())));
    }
    for state in [RowState::Refused, RowState::Drift, RowState::BootOnly] {
        let name =
            |row: &Row| if state == RowState::BootOnly { row.detail.clone() } else { row.name.clone() };
        let which: Vec<String> = of(state).map(name).collect();
        let count = which.len();
        parts.extend((count > 0).then(|| format!("{count} {}: {}", state.name(), which.join(", "))));
    }
    parts.join("; ")
}

fn causes(one: &OfCpu) -> String {
    let mut text = String::new();
    let mut row = |name: &str, per_sec: f64, count: u64| {
        // a String takes everything
        let _ = writeln!(text, "  {name:<width$} {per_sec:>12.1} {count:>10}", width = CAUSE - 2);
    };
    let mut kind = None;
    for cause in &one.causes {
        let of = cause.kind.name();
        let name = match cause.name.is_empty() {
            true => of.to_owned(),
            false if kind == Some(cause.kind) => format!("{:width$} {}", "", cause.name, width = of.len()),
            false => format!("{of} {}", cause.name),
        };
        kind = Some(cause.kind);
        row(&units::printable(&name), cause.per_sec, cause.count);
    }
    row("all", one.per_sec, one.causes.iter().map(|cause| cause.count).sum());
    text
}

fn seen(noise: &Noise) -> String {
    let policy = match noise.policy {
        Policy::Fifo => "SCHED_FIFO",
        Policy::Other => "SCHED_OTHER, as SCHED_FIFO is not allowed here",
    };
    format!(
        "noise: {} gaps above {} us in {:.1} s ({:.1} per second), the longest {:.0} us, {:.3} % of the time ({policy})",
        noise.gaps,
        noise.threshold_us,
        noise.observed_sec,
        noise.per_sec(),
        noise.longest_us,
        noise.share() * 100.0,
    )
}

fn verdict(report: &Report) -> String {
    let per_sec = report.budget_per_sec.map(|budget| format!("{budget} interruptions per second"));
    let longest = report.budget_longest_us.map(|budget| format!("{budget} us at once"));
    let mut text = String::new();
    for one in &report.cpus {
        if let Some(budget) = report.budget_per_sec.filter(|_| report.is_too_often(one)) {
            let (cpu, per_sec) = (one.cpu, one.per_sec);
            let _ = writeln!(
                text,
                "CPU {cpu}: {per_sec:.1} interruptions per second, above the budget of {budget}"
            );
        }
        if let (Some(budget), Some(noise), true) =
            (report.budget_longest_us, &one.noise, report.is_too_long(one))
        {
            let (cpu, longest) = (one.cpu, noise.longest_us);
            let _ = writeln!(text, "CPU {cpu}: {longest:.0} us at once, above the budget of {budget}");
        }
    }
    let budgets: Vec<String> = per_sec.into_iter().chain(longest).collect();
    match budgets.as_slice() {
        [] => String::new(),
        budgets if text.is_empty() => format!("within the budget of {}\n", budgets.join(" and of ")),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use crate::interruptions::report::{Cause, Kind};

    use super::*;

    fn report(budget: Option<f64>) -> Report {
        let cause = |kind, name: &str, count: u64| Cause {
            kind,
            name: name.to_owned(),
            count,
            per_sec: count as f64 / 2.0,
        };
        let causes = vec![
            cause(Kind::Interrupt, "Local timer interrupts", 500),
            cause(Kind::Interrupt, "36 virtio1-req.0", 4),
            cause(Kind::ContextSwitch, "", 20),
        ];
        let one = OfCpu { cpu: 1, per_sec: 262.0, causes, noise: None };
        let (stopped, missing) = (false, vec!["softirqs not counted: x".to_owned()]);
        let report = Report {
            span_sec: 2.0,
            stopped,
            budget_per_sec: None,
            budget_longest_us: None,
            above_budget: None,
            cpus: vec![one],
            missing,
        };
        report.judged(budget, None)
    }

    #[test]
    fn a_table_by_cause_and_the_verdict() {
        let text = report(Some(100.0)).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "CPU 1                                              per second      count",
                "  interrupt Local timer interrupts                      250.0        500",
                "            36 virtio1-req.0                              2.0          4",
                "  context switch                                         10.0         20",
                "  all                                                   262.0        524",
                "",
                "softirqs not counted: x",
                "CPU 1: 262.0 interruptions per second, above the budget of 100",
            ]
        );
        assert!(
            report(Some(262.0)).to_string().ends_with("within the budget of 262 interruptions per second\n")
        );
        assert!(!report(None).to_string().contains("budget"));
    }

    #[test]
    fn rows_in_short() {
        let row =
            |name: &str, state, detail: &str| Row { name: name.to_owned(), state, detail: detail.to_owned() };
        let mut rows = vec![
            row("watchdog", RowState::Done, "x"),
            row("interrupts", RowState::Done, "20 places"),
            row("interrupts", RowState::Refused, "2 places"),
            row("boot", RowState::BootOnly, "nohz_full=3"),
            row("boot", RowState::BootOnly, "nosmt (optional)"),
        ];
        let boot = "2 boot only: nohz_full=3, nosmt (optional)";
        assert_eq!(in_short(&rows), format!("2 rows done; 1 refused: interrupts; {boot}"));
        rows.push(row("governor", RowState::Drift, "x"));
        assert_eq!(in_short(&rows), format!("2 rows done; 1 refused: interrupts; 1 drift: governor; {boot}"));
    }

    #[test]
    fn rows_come_first() {
        let row =
            |name: &str, state, detail: &str| Row { name: name.to_owned(), state, detail: detail.to_owned() };
        let rows = [row("workqueues", RowState::Done, ""), row("tick", RowState::BootOnly, "nohz_full=1")];
        let text = report(None).with_rows(&rows);
        assert!(
            text.starts_with("workqueues  done\ntick        boot only      nohz_full=1\n\nCPU 1 "),
            "{text}"
        );
    }
}
