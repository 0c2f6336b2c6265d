//! Gates that the command line gives in place of the file's, so that a study that comes with the program can be run on a
//! machine that is never idle.

use experiment::{Note, file::Gates};
use serde::{Deserialize, Serialize};

/// Those that are given. Shares are of 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenGates {
    /// CPU time of others.
    pub foreign_cpu: Option<f64>,
    /// What the hypervisor took.
    pub steal: Option<f64>,
    /// Variation that comparisons name.
    pub variation: Option<f64>,
    /// How many times a rejected run is made again.
    pub retries: Option<u32>,
}

impl GivenGates {
    /// Puts them in place of the file's. Returns what a reader must know of that.
    pub(super) fn apply(&self, gates: &mut Gates) -> Option<Note> {
        let mut said = Vec::new();
        let shares = [
            ("foreign-cpu", self.foreign_cpu, &mut gates.foreign_cpu),
            ("steal", self.steal, &mut gates.steal),
            ("variation", self.variation, &mut gates.variation),
        ];
        for (key, given, of_file) in shares {
            if let Some(given) = given {
                said.push(format!("{key} {given} in place of {of_file}"));
                *of_file = given;
            }
        }
        if let Some(retries) = self.retries {
            said.push(format!("retries {retries} in place of {}", gates.retries));
            gates.retries = retries;
        }
        (!said.is_empty()).then(|| Note::GatesGiven { text: said.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_gates_take_the_place_of_the_files_and_are_named() {
        let mut gates = Gates::default();
        assert_eq!(GivenGates::default().apply(&mut gates), None);
        assert_eq!(gates, Gates::default());
        let given = GivenGates { foreign_cpu: Some(0.5), retries: Some(0), ..GivenGates::default() };
        let note = given.apply(&mut gates).unwrap().to_string();
        assert_eq!(
            note,
            "gates given on the command line: foreign-cpu 0.5 in place of 0.05, retries 0 in place of 3"
        );
        assert_eq!((gates.foreign_cpu, gates.steal, gates.retries), (0.5, 0.05, 0));
    }
}
