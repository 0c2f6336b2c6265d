//! Experiments for tests: conditions, one measure, nothing that is run.

use crate::{
    Experiment,
    file::{Better, Comparison, Condition, Gates, Lengths, Load, Measure},
};

/// With the measure `rate`, of which more is better.
pub fn experiment(conditions: &[&str]) -> Experiment {
    Experiment {
        name: "test".to_owned(),
        title: "a test".to_owned(),
        about: String::new(),
        lengths: Lengths::default(),
        quick: Lengths::default(),
        gates: Gates::default(),
        machine: None,
        cpus: Default::default(),
        device: Default::default(),
        group: Default::default(),
        others: None,
        workload: Default::default(),
        condition: conditions
            .iter()
            .map(|name| Condition { name: (*name).to_owned(), ..Condition::default() })
            .collect(),
        load: Vec::new(),
        event: Vec::new(),
        measure: vec![Measure {
            name: "rate".to_owned(),
            is: "load.rate".to_owned(),
            unit: "1/s".to_owned(),
            better: Better::Higher,
            between: None,
            target: Default::default(),
        }],
        comparison: Vec::new(),
        published: Vec::new(),
        chart: Vec::new(),
        table: Vec::new(),
    }
}

/// Loads without workloads.
pub fn loads(names: &[&str]) -> Vec<Load> {
    names.iter().map(|name| Load { name: (*name).to_owned(), workload: Vec::new() }).collect()
}

/// Of the measure `rate`.
pub fn comparison(baseline: &str, condition: &str) -> Comparison {
    Comparison {
        measure: "rate".to_owned(),
        baseline: baseline.to_owned(),
        condition: condition.to_owned(),
        load: None,
        margin: 0.05,
        note: None,
        at_most: None,
        meaning: crate::file::Meaning::default(),
    }
}
