//! The engine as a driver sees it: its options as an experiment has them, its report as figures.

use std::ffi::OsString;

use experiment::{file, results::Series};

use super::{LogicalIoReport, NAME, Work};
use crate::{
    Error, Outcome, Site, Timing,
    built_in::{Workload, by, given, readings},
};

/// The built-in logical-I/O engine, with its options.
pub struct LogicalIo(pub file::LogicalIo);

impl LogicalIo {
    fn options(&self) -> Vec<OsString> {
        let file::LogicalIo { readers, cpu_count, quantum_ms, memory, placement, words } = &self.0;
        given([
            ("--readers", Some(readers.clone())),
            ("--cpu-count", cpu_count.clone()),
            ("--quantum-ms", Some(quantum_ms.to_string())),
            ("--memory", memory.clone()),
            ("--placement", Some(placement.clone())),
            ("--words", Some(words.to_string())),
        ])
    }
}

impl Workload for LogicalIo {
    type Report = LogicalIoReport;
    const SUBCOMMAND: &'static str = "logical-io";
    const REPORT_FILE: Option<&'static str> = Some("logical-io.json");

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
    fn options_without_a_value_are_left_to_the_process() {
        let options = file::LogicalIo { quantum_ms: 50, ..file::LogicalIo::default() };
        let words = LogicalIo(options).options();
        assert!(words.windows(2).any(|words| words == ["--quantum-ms", "50"]), "{words:?}");
        assert!(!words.iter().any(|word| word == "--memory" || word == "--cpu-count"), "{words:?}");
    }
}
