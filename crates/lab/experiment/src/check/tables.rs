//! What is wrong with the tables of the report: what they are of, and their conditions.

use super::Check;
use crate::file::TableKind;

/// What a load profile and the top events are drawn from at least.
const TIMES: [&str; 2] = ["db-time", "db-cpu"];

impl Check<'_> {
    pub(super) fn tables(&mut self) {
        for (index, table) in self.experiment.table.iter().enumerate() {
            let path = format!("table.{index}");
            self.conditions_named(&path, &table.conditions);
            let of = format!("{path}.of");
            if table.kind == TableKind::Ranking {
                let measures = self.experiment.measure.iter().map(|measure| measure.name.as_str());
                self.one_of(&of, "measure", &table.of, measures);
                continue;
            }
            match self.experiment.workload.get(&table.of) {
                None => {
                    let workloads = self.experiment.workload.keys().map(String::as_str);
                    self.one_of(&of, "workload", &table.of, workloads);
                }
                Some(workload) if !TIMES.iter().all(|time| workload.driver.row().names().contains(time)) => {
                    let hint = Some("driver = \"logical-io\" does".to_owned());
                    self.error(&of, format!("workload '{}' has no {}", table.of, TIMES.join(", no ")), hint);
                }
                Some(_) => {}
            }
        }
    }
}
