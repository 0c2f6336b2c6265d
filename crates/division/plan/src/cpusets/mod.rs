//! From the sets that groups are to have to the steps that give them: memory nodes before CPUs, both in an order that
//! the kernel takes, and on v1 other tasks off CPUs that became exclusive.

mod affinity;
mod cells;
mod obstacles;
mod writes;

use settings::Version;

use crate::{
    Observed, Problem, Step,
    resolve::{Landscape, Resolved},
    sequence::{Rules, Stuck, sequence},
    tree::Tree,
};
use cells::{Field, Lane};
use writes::Writer;

pub(crate) use crate::cpuset_files::MEMS;
pub use crate::cpuset_files::{CPUS, EXCLUSIVE, ISOLATED, PARTITION};

/// The steps for all cpusets of the tree; no step for what is as it should be.
pub(crate) fn steps(
    land: &Landscape,
    tree: &Tree<'_>,
    resolved: &Resolved,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) -> Vec<Step> {
    let Some(field) = Field::new(land, tree, observed) else { return Vec::new() };
    let mut steps = Vec::new();
    for lane in [Lane::Mems, Lane::Cpus] {
        let cells = field.cells(lane, tree, resolved, observed);
        let found = obstacles::find(lane, &field, &cells, tree);
        if !found.is_empty() {
            problems.extend(found);
            continue;
        }
        let rules = match (field.version, lane) {
            (Version::V1, _) => Rules::v1(),
            (Version::V2, Lane::Cpus) => Rules::v2_cpus(field.names_exclusive),
            (Version::V2, Lane::Mems) => Rules::v2_nodes(),
        };
        let before = cells.clone();
        match sequence(cells, rules) {
            Ok(changes) => {
                steps.extend(Writer::new(lane, &field, &before, tree, resolved).steps(&changes));
                if lane == Lane::Cpus && field.version == Version::V1 {
                    steps.extend(affinity::steps(&field, &before, tree, observed));
                }
            }
            Err(Stuck(open)) => problems.push(obstacles::stuck(lane, &field, &open, tree)),
        }
    }
    steps
}
