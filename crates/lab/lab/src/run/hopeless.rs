//! When an experiment ends early: hardly any of its runs would count, so that more of them only take time.

use std::collections::BTreeSet;

use experiment::{
    Note,
    results::{Gate, Run},
};

use super::gate;

/// So many rejected runs say enough, also of a single block.
const ENOUGH: usize = 4;

/// Why no more runs are made after these, which are of whole blocks: no run counts, or after two blocks at most one of four.
pub(super) fn stopped(runs: &[Run]) -> Option<Note> {
    let blocks = runs.iter().map(|run| run.block).collect::<BTreeSet<u32>>().len();
    let rejected = runs.iter().filter(|run| run.rejected.is_some()).count();
    let none_counts = rejected == runs.len() && (rejected >= ENOUGH || blocks >= 2);
    let few_count = blocks >= 2 && rejected * 4 >= runs.len() * 3;
    if rejected == 0 || !(none_counts || few_count) {
        return None;
    }
    let last = runs.iter().rev().find_map(|run| run.rejected.clone())?;
    let (blocks, rejected, made) = (blocks as u32, rejected as u32, runs.len() as u32);
    Some(Note::Stopped { blocks, runs: made, rejected, last, hint: hint(runs) })
}

/// What helps against the gate that rejected the most.
fn hint(runs: &[Run]) -> String {
    let beyond = |gate: &&Gate| gate.at_most.is_some_and(|at_most| gate.seen > at_most);
    let of = |name: &str| -> Vec<f64> {
        let gates = runs.iter().filter_map(|run| run.gates.iter().find(beyond));
        gates.filter(|gate| gate.name == name).map(|gate| gate.seen).collect()
    };
    let allowing = |seen: &[f64]| {
        let most = seen.iter().copied().fold(0.0, f64::max);
        (most * 1.2).clamp(0.01, 1.0) // a little more than was seen, and never more than all
    };
    let gates = [gate::FOREIGN, gate::STEAL, gate::LATE].map(|name| (name, of(name)));
    let [(name, seen), ..] = {
        let mut gates = gates;
        gates.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.len()));
        gates
    };
    match name {
        gate::FOREIGN => format!(
            "run it while the machine is idle, or allow more: lab run --foreign-cpu {:.2}",
            allowing(&seen)
        ),
        gate::STEAL => format!(
            "run it while the hypervisor's other machines are idle, or allow more: lab run --steal {:.2}",
            allowing(&seen)
        ),
        _ => "run it while the machine is idle".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(block: u32, rejected: usize, counted: usize) -> Vec<Run> {
        let gate = |seen| Gate { name: gate::FOREIGN.to_owned(), seen, at_most: Some(0.05), instead: None };
        let run = |rejected: bool| Run {
            block,
            gates: vec![gate(if rejected { 0.4 } else { 0.01 })],
            rejected: rejected.then(|| "other programs used 40.0 % of the CPU time (limit 5 %)".to_owned()),
            ..Run::default()
        };
        (0..rejected + counted).map(|number| run(number < rejected)).collect()
    }

    /// faults G5: 96 of 96 runs were rejected, and 323 of 363, in four to five times the planned time.
    #[test]
    fn what_cannot_be_saved_ends_within_two_blocks_with_what_helps() {
        let text = stopped(&runs(1, 16, 0)).unwrap().to_string();
        assert_eq!(
            text,
            "stopped after the first block: 16 of 16 runs were rejected, the last one as other programs used 40.0 % of the \
             CPU time (limit 5 %); run it while the machine is idle, or allow more: lab run --foreign-cpu 0.48"
        );
        // without retries a block of two runs is too little to give up
        assert_eq!(stopped(&runs(1, 2, 0)), None);
        assert!(stopped(&[runs(1, 2, 0), runs(2, 2, 0)].concat()).is_some());
        // as study S4 was: one of nine counts
        assert_eq!(stopped(&runs(1, 53, 7)), None, "some may count by their attempts");
        assert!(stopped(&[runs(1, 53, 7), runs(2, 50, 6)].concat()).is_some());
        assert_eq!(stopped(&[runs(1, 6, 6), runs(2, 10, 6)].concat()), None);
        assert_eq!(stopped(&runs(1, 0, 6)), None);
        assert_eq!(stopped(&[]), None);
    }
}
