//! The engine as a driver sees it: its options as an experiment has them, its report as figures.

use std::ffi::OsString;

use experiment::{file, results::Series};

use super::{LogicalIoReport, NAME, Work};
use crate::{
    Error, Outcome, Site, Timing,
    workloads::built_in::{Workload, by, given, readings},
};

/// The built-in logical-I/O engine, with its options.
pub struct LogicalIo(pub file::LogicalIo);

impl LogicalIo {
    fn options(&self) -> Vec<OsString> {
        let file::LogicalIo { readers, cpu_count, quantum_ms, memory, placement, words } = &self.0;
        let number = |number: &Option<u32>| number.map(|number| number.to_string());
        given([
            ("--readers", readers.clone()),
            ("--cpu-count", cpu_count.clone()),
            ("--quantum-ms", number(quantum_ms)),
            ("--memory", memory.clone()),
            ("--placement", placement.clone()),
            ("--words", number(words)),
        ])
    }
}

impl Workload for LogicalIo {
    type Report = LogicalIoReport;
    const SUBCOMMAND: &'static str = "logical-io";
    const KEPT_AS: Option<&'static str> = Some("logical-io.json");

    fn name(&self) -> &'static str {
        NAME
    }

    fn words(&mut self, _: &Site<'_>, _: Timing) -> Result<Vec<OsString>, Error> {
        Ok(self.options())
    }

    fn outcome(&self, report: LogicalIoReport) -> Outcome {
        let Work {
            reads,
            executions,
            calls,
            transactions,
            db_time,
            db_cpu,
            run_queue,
            cpu_quantum_waits,
            cpu_quantum,
            unaccounted,
            ..
        } = report.total;
        let per_second = |number: f64| by(number, report.seconds);
        let readings = readings([
            ("reads", per_second(reads)),
            ("executions", per_second(executions)),
            ("calls", per_second(calls)),
            ("transactions", per_second(transactions)),
            ("db-time", per_second(db_time)),
            ("db-cpu", per_second(db_cpu)),
            ("run-queue", per_second(run_queue)),
            ("cpu-quantum", per_second(cpu_quantum)),
            ("cpu-quantum-waits", per_second(cpu_quantum_waits)),
            ("cpu-quantum-ms", by(cpu_quantum * 1e3, cpu_quantum_waits)),
            ("unaccounted", per_second(unaccounted)),
            ("reads-per-cpu", report.total.reads_per_cpu()),
            ("fairness", report.fairness),
        ]);
        let series = Series { name: "reads".to_owned(), unit: "1/s".to_owned(), points: report.series };
        Outcome { readings, series: vec![series], notes: report.warnings, ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_options_that_are_given_are_passed_on() {
        let options = file::LogicalIo {
            readers: Some("9".to_owned()),
            quantum_ms: Some(50),
            ..file::LogicalIo::default()
        };
        assert_eq!(LogicalIo(options).options(), ["--readers", "9", "--quantum-ms", "50"]);
    }
}
