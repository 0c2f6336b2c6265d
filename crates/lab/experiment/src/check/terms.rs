//! The terms of measures and charts: do the workload, the group and the figure exist?

use super::{Check, near};
use crate::measure::{self, SETTLE};

/// Of groups, under short names.
const GROUP_FIGURES: [&str; 3] = ["cpu", "memory", "throttled"];

/// What stands before the machine's figures.
const MACHINE: &str = "machine";

/// Figures of workloads that are distributions.
const DISTRIBUTIONS: [&str; 2] = ["latency", "lag"];

/// Of latencies.
const QUANTILES: [&str; 7] = ["mean", "min", "p50", "p95", "p99", "p999", "max"];

impl Check<'_> {
    /// `WORKLOAD.FIGURE`, `GROUP.FIGURE`, `machine.FIGURE`.
    pub(super) fn term(&mut self, path: &str, term: &str) {
        let Some((of, figure)) = term.split_once('.') else {
            let hint = Some("such as load.tps or server.cpu".to_owned());
            return self.error(path, format!("'{term}' is no figure"), hint);
        };
        if let Some(workload) = self.experiment.workload.get(of) {
            let known = workload.driver.row().names();
            let name = figure.split('.').next().unwrap_or(figure);
            let quantile = figure.split_once('.').map(|(_, quantile)| quantile);
            if !known.contains(&name) {
                let hint = near(name, &known);
                self.error(path, format!("workload '{of}' has no figure '{name}'"), Some(hint));
            } else if !DISTRIBUTIONS.contains(&name) && quantile.is_some() {
                if quantile != Some(SETTLE) {
                    let hint = Some(format!("'{of}.{name}' is a number, '{of}.{name}.{SETTLE}' a time"));
                    self.error(path, format!("'{term}' is no figure"), hint);
                }
            } else if quantile.is_some_and(|quantile| !QUANTILES.contains(&quantile)) {
                let quantile = quantile.unwrap_or_default();
                self.error(path, format!("'{quantile}' is no quantile"), Some(near(quantile, &QUANTILES)));
            }
        } else if self.experiment.group.contains_key(of) {
            let known: Vec<&str> =
                self.known.group_figures.iter().map(|(name, _)| *name).chain(GROUP_FIGURES).collect();
            if let Some(set) = figure.strip_prefix("cpu-on.") {
                self.one_of(path, "set of CPUs", set, self.experiment.cpus.keys().map(String::as_str));
            } else if !known.contains(&measure::node(figure).0) {
                let hint = near(figure, &known);
                self.error(path, format!("group '{of}' has no figure '{figure}'"), Some(hint));
            }
        } else if of == MACHINE {
            let known: Vec<&str> = self.known.machine_figures.iter().map(|(name, _)| *name).collect();
            if !known.contains(&measure::node(figure).0) {
                let hint = near(figure, &known);
                self.error(path, format!("the machine has no figure '{figure}'"), Some(hint));
            }
        } else {
            let known: Vec<&str> = self
                .experiment
                .workload
                .keys()
                .chain(self.experiment.group.keys())
                .map(String::as_str)
                .collect();
            let hint = near(of, &known);
            self.error(path, format!("'{of}' is no workload and no group"), Some(hint));
        }
    }
}
