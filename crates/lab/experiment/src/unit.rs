//! The unit of a measure: what its figure is in by itself, and how that becomes the unit that the file names. A unit that
//! does not fit the figure is refused with those that do; none is ever a label alone. Pure.

use std::collections::BTreeMap;

use crate::{
    Experiment,
    file::Measure,
    measure::{self, Formula, MeasureError, SETTLE, extreme_names},
    results::Run,
};

/// What a figure is made of: seconds and bytes, each above or below, and how many of them one is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dimension {
    seconds: i8,
    bytes: i8,
    /// In seconds and bytes: 0.001 of a figure in milliseconds.
    scale: f64,
}

/// What is known of figures that are not of workloads: a figure of a group or of the machine, and its unit.
pub type FigureUnits<'u> = &'u dyn Fn(&str) -> Option<String>;

/// A unit that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// What the figure is in.
    pub figure: &'static str,
    /// Units that fit it.
    pub possible: &'static str,
}

pub(crate) const PLAIN: Dimension = Dimension { seconds: 0, bytes: 0, scale: 1.0 };
pub(crate) const TIME: Dimension = Dimension { seconds: 1, ..PLAIN };
pub(crate) const RATE: Dimension = Dimension { seconds: -1, ..PLAIN };
pub(crate) const BYTES: Dimension = Dimension { bytes: 1, ..PLAIN };
pub(crate) const BYTE_RATE: Dimension = Dimension { bytes: 1, seconds: -1, ..PLAIN };
pub(crate) const MILLISECONDS: Dimension = Dimension { scale: 1e-3, ..TIME };

/// Units of time, and how many seconds one is.
const TIMES: [(&str, f64); 7] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)];

/// Units of amounts, and how many bytes one is.
const AMOUNTS: [(&str, f64); 9] = [
    ("bytes", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];

impl Dimension {
    /// Of a unit as a file writes it; `None` without one.
    fn of_unit(unit: &str) -> Option<Dimension> {
        let one = |unit: &str| {
            let find = |all: &[(&str, f64)]| all.iter().find(|(name, _)| *name == unit).map(|(_, by)| *by);
            match (find(&TIMES), find(&AMOUNTS)) {
                (Some(scale), _) => Dimension { scale, ..TIME },
                (_, Some(scale)) => Dimension { scale, ..BYTES },
                _ if unit == "%" => Dimension { scale: 0.01, ..PLAIN },
                // a word for what is counted: CPUs, reads
                _ => PLAIN,
            }
        };
        match unit.trim() {
            "" => None,
            unit => Some(match unit.split_once('/') {
                Some((above, below)) => one(above.trim()).by(one(below.trim())),
                None => one(unit),
            }),
        }
    }

    fn by(self, below: Dimension) -> Dimension {
        Dimension {
            seconds: self.seconds - below.seconds,
            bytes: self.bytes - below.bytes,
            scale: self.scale / below.scale,
        }
    }

    fn fits(self, other: Dimension) -> bool {
        (self.seconds, self.bytes) == (other.seconds, other.bytes)
    }

    /// For a list of figures: ` (seconds)`.
    pub(crate) fn words(self) -> String {
        let words = match (self.seconds, self.bytes) {
            (1, 0) if self.scale < 1.0 => "milliseconds",
            (1, 0) => "seconds",
            (-1, 0) => "per second",
            (0, 1) => "bytes",
            (-1, 1) => "bytes per second",
            _ => return String::new(),
        };
        format!(" ({words})")
    }

    fn misfit(self) -> Misfit {
        let (figure, possible) = match (self.seconds, self.bytes) {
            (1, 0) => ("a time", "ns, us, ms, s, min"),
            (0, 1) => ("an amount of memory", "bytes, KiB, MiB, GiB, kB, MB, GB"),
            (-1, 0) => ("a rate", "1/s, 1/min, or a word for what is counted, as in reads/s"),
            (-1, 1) => ("an amount per time", "bytes/s, KiB/s, MiB/s, GiB/s, kB/s, MB/s, GB/s"),
            (0, 0) => ("a number", "%, or a word for what is counted, such as CPUs"),
            _ => ("a quotient", "none"),
        };
        Misfit { figure, possible }
    }
}

/// By what a figure is multiplied to be in its measure's unit; 1 where nothing is known of the figure.
///
/// # Errors
/// The unit does not fit the figure.
pub(crate) fn factor(
    experiment: &Experiment,
    measure: &Measure,
    units: FigureUnits<'_>,
) -> Result<f64, Misfit> {
    let (Some(figure), Some(unit)) =
        (of_measure(experiment, measure, units), Dimension::of_unit(&measure.unit))
    else {
        return Ok(1.0);
    };
    if figure.fits(unit) { Ok(figure.scale / unit.scale) } else { Err(figure.misfit()) }
}

/// What a measure's figure is in; `None` where that is not known, as of what a command prints.
fn of_measure(experiment: &Experiment, measure: &Measure, units: FigureUnits<'_>) -> Option<Dimension> {
    let Formula { above, below } = measure::formula(measure).ok()?;
    let sum = |terms: &[String]| -> Option<Dimension> {
        let mut all =
            terms.iter().flat_map(|term| extreme_names(term)).map(|name| of_figure(experiment, name, units));
        let first = all.next()??;
        all.all(|other| other.is_some_and(|other| other == first)).then_some(first)
    };
    let above = sum(&above)?;
    if below.is_empty() { Some(above) } else { Some(above.by(sum(&below)?)) }
}

fn of_figure(experiment: &Experiment, name: &str, units: FigureUnits<'_>) -> Option<Dimension> {
    let (of, figure) = name.split_once('.')?;
    if name.ends_with(&format!(".{SETTLE}")) {
        return Some(TIME);
    }
    if let Some(workload) = experiment.workload.get(of) {
        return workload.driver.row().dimension(figure.split('.').next().unwrap_or(figure));
    }
    match figure {
        "memory" => Some(BYTES),
        "cpu" | "throttled" => Some(PLAIN),
        figure if figure.starts_with("cpu-on.") => Some(PLAIN),
        figure => Some(match units(measure::node(figure).0)?.as_str() {
            "s" => TIME,
            "B" | "bytes" => BYTES,
            "B/s" | "bytes/s" => BYTE_RATE,
            "/s" | "1/s" => RATE,
            _ => PLAIN,
        }),
    }
}

/// All measures of a run that have a figure, each in its unit, for [`Run::figures`], and why the others have none.
pub fn figures(
    experiment: &Experiment,
    run: &Run,
    units: FigureUnits<'_>,
) -> (BTreeMap<String, f64>, Vec<MeasureError>) {
    let (mut known, mut errors) = (BTreeMap::new(), Vec::new());
    for of in &experiment.measure {
        // a unit that does not fit was refused when the file was checked
        let factor = factor(experiment, of, units).unwrap_or(1.0);
        match measure::figure(of, run) {
            Ok(figure) => _ = known.insert(of.name.clone(), figure * factor),
            Err(error) => errors.push(error),
        }
    }
    (known, errors)
}

#[cfg(test)]
mod tests {
    use layout::Source;

    use super::*;

    const TEXT: &str = r#"
name = "x"
title = "x"
[group.server]
[workload.load]
driver = "oltp"
[workload.engine]
driver = "logical-io"
[workload.mine]
driver = "command"
command = ["true"]
[workload.disk]
driver = "read"
device = "/dev/null"
[[condition]]
name = "a"
[[measure]]
name = "m"
is = "IS"
unit = "UNIT"
"#;

    fn factor_of(is: &str, unit: &str) -> Result<f64, Misfit> {
        let text = TEXT.replace("IS", is).replace("UNIT", unit);
        let experiment = crate::read(&Source::new("x.toml", &text)).experiment.unwrap();
        let units = |figure: &str| {
            let known =
                [("memory.current", "B"), ("io.rbps", "B/s"), ("cpu.usage", "cpu"), ("io.rios", "/s")];
            known.iter().find(|(name, _)| *name == figure).map(|(_, unit)| (*unit).to_owned())
        };
        factor(&experiment, &experiment.measure[0], &units)
    }

    /// newcomers A9: `unit = "ms"` of a latency printed 249 us as 0.000249 ms.
    #[test]
    fn a_unit_that_fits_is_converted_to() {
        for (is, unit, expected) in [
            ("load.latency.p99", "ms", 1e3),
            ("load.latency.p99", "us", 1e6),
            ("load.latency.p99", "µs", 1e6),
            ("load.latency.p99", "ns", 1e9),
            ("load.latency.p99", "s", 1.0),
            ("load.latency.p99", "", 1.0),
            ("load.tps.settle", "ms", 1e3),
            ("engine.cpu-quantum-ms", "ms", 1.0),
            ("engine.cpu-quantum-ms", "s", 1e-3),
            ("engine.db-time", "s/s", 1.0),
            ("load.tps", "1/s", 1.0),
            ("load.tps", "1/min", 60.0),
            ("load.tps", "transactions/s", 1.0),
            ("load.tps / server.cpu", "1/s", 1.0),
            ("disk.bytes-per-second", "MiB/s", 1.0 / 1_048_576.0),
            ("disk.bytes-per-second / disk.iops", "KiB", 1.0 / 1024.0),
            ("server.memory", "GiB", 1.0 / 1_073_741_824.0),
            ("server.memory.current.0", "MB", 1e-6),
            ("server.io.rbps", "kB/s", 1e-3),
            ("server.cpu", "CPUs", 1.0),
            ("server.cpu-on.all", "CPUs", 1.0),
            ("engine.db-cpu / engine.db-time", "%", 100.0),
            ("min(load.latency.p50, load.latency.p99)", "ms", 1e3),
            ("mine.seconds", "min", 1.0 / 60.0),
            // what a command prints is in the unit that it prints
            ("mine.value", "furlongs", 1.0),
            ("mine.value", "ms", 1.0),
        ] {
            let found = factor_of(is, unit).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{is} in {unit}: {found}");
        }
    }

    #[test]
    fn a_unit_of_something_else_is_refused_with_those_that_fit() {
        for (is, unit, possible) in [
            ("load.latency.p99", "msec", "ns, us, ms, s, min"),
            ("load.latency.p99", "1/s", "ns, us, ms, s, min"),
            ("load.tps", "ms", "1/s, 1/min, or a word for what is counted, as in reads/s"),
            ("server.memory", "MiB/s", "bytes, KiB, MiB, GiB, kB, MB, GB"),
            ("disk.bytes-per-second", "MiB", "bytes/s, KiB/s, MiB/s, GiB/s, kB/s, MB/s, GB/s"),
            ("server.cpu", "s", "%, or a word for what is counted, such as CPUs"),
            ("load.latency.p50 / load.latency.p99", "ms", "%, or a word for what is counted, such as CPUs"),
        ] {
            assert_eq!(factor_of(is, unit).unwrap_err().possible, possible, "{is} in {unit}");
        }
    }
}
