//! `runs.csv`: a row per run with all its figures, readings, latencies and gates. `samples.csv`: a row per value over
//! time. Numbers have every digit.

use std::collections::BTreeSet;

use experiment::results::{Latency, Run};

use units::csv_cell as cell;

use crate::Error;
use crate::view::View;

/// A latency's columns.
type Column = (&'static str, fn(&Latency) -> String);
const LATENCY: [Column; 9] = [
    ("count", |latency| latency.count.to_string()),
    ("mean", |latency| latency.mean.to_string()),
    ("min", |latency| latency.min.to_string()),
    ("p50", |latency| latency.p50.to_string()),
    ("p95", |latency| latency.p95.to_string()),
    ("p99", |latency| latency.p99.to_string()),
    ("p999", |latency| latency.p999.map_or_else(String::new, |value| value.to_string())),
    ("max", |latency| latency.max.to_string()),
    ("missed", |latency| latency.missed.to_string()),
];

/// Every run.
///
/// # Errors
/// [`Error::Table`].
pub fn runs(view: View<'_>) -> Result<Vec<u8>, Error> {
    let runs = &view.results.runs;
    let names = |of: fn(&Run) -> Vec<&String>| -> Vec<String> {
        runs.iter().flat_map(of).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    };
    let measures: Vec<&String> =
        view.results.experiment.measure.iter().map(|measure| &measure.name).collect();
    let readings = names(|run| run.readings.keys().collect());
    let latencies = names(|run| run.latencies.keys().collect());
    let gates = names(|run| run.gates.iter().map(|gate| &gate.name).collect());

    let mut out = ::csv::Writer::from_writer(Vec::new());
    let fixed =
        ["run", "block", "attempt", "condition", "load", "began", "seconds", "warm_up", "steady", "rejected"];
    let mut head: Vec<String> = fixed.map(str::to_owned).into();
    head.extend(measures.iter().map(|name| format!("figure {name}")));
    head.extend(readings.iter().map(|name| format!("reading {name}")));
    head.extend(latencies.iter().flat_map(|name| LATENCY.map(|(part, _)| format!("seconds {name}.{part}"))));
    head.extend(gates.iter().map(|name| format!("gate {name}")));
    out.write_record(head.iter().map(|name| cell(name)))?;
    for run in runs {
        let number = |value: Option<&f64>| value.map_or_else(String::new, f64::to_string);
        let mut row = vec![
            run.number.to_string(),
            run.block.to_string(),
            run.attempt.to_string(),
            cell(&run.condition),
            cell(run.load.as_deref().unwrap_or_default()),
            cell(&run.began),
            run.seconds.to_string(),
            run.warm_up.to_string(),
            run.steady.map_or_else(String::new, |steady| steady.to_string()),
            cell(run.rejected.as_deref().unwrap_or_default()),
        ];
        row.extend(measures.iter().map(|name| number(run.figures.get(*name))));
        row.extend(readings.iter().map(|name| number(run.readings.get(name))));
        row.extend(latencies.iter().flat_map(|name| {
            LATENCY.map(|(_, part)| run.latencies.get(name).map_or_else(String::new, part))
        }));
        let gate = |name: &String| run.gates.iter().find(|gate| gate.name == *name).map(|gate| &gate.seen);
        row.extend(gates.iter().map(|name| number(gate(name))));
        out.write_record(&row)?;
    }
    finish(out)
}

/// Every value over time.
///
/// # Errors
/// [`Error::Table`].
pub fn samples(view: View<'_>) -> Result<Vec<u8>, Error> {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    out.write_record(["run", "time", "series", "value"])?;
    for run in &view.results.runs {
        let number = run.number.to_string();
        for series in &run.series {
            let name = cell(&series.name);
            for (time, value) in &series.points {
                out.write_record([&number, &time.to_string(), &name, &value.to_string()])?;
            }
        }
    }
    finish(out)
}

fn finish(out: ::csv::Writer<Vec<u8>>) -> Result<Vec<u8>, Error> {
    out.into_inner().map_err(|error| Error::Table(::csv::Error::from(error.into_error())))
}
