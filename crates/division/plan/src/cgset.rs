//! A plan as commands of libcgroup's cgset, for those who set groups by hand or by script.

use std::collections::HashMap;

use layout::cgset_line;
use settings::GroupName;

use crate::{Action, Plan};

/// The plan's writes as cgset commands, one a line. New groups come one after another with their CPUs
/// first; what changes groups that have something already stays in the plan's order, which the kernel demands. Steps
/// that cgset knows nothing of (groups that are made, owners, tasks that leave CPUs) are not among them.
pub fn as_cgset(plan: &Plan) -> String {
    let mut writes: Vec<(&GroupName, &str, &str)> = Vec::new();
    let mut all_new = true;
    for step in &plan.steps {
        match &step.action {
            Action::Write { file, text, .. } => {
                all_new &= step.before.as_ref().is_none_or(|before| before.is_empty());
                writes.push((&step.group, file, text.trim()));
            }
            Action::MoveTasksAway { .. } => all_new = false,
            _ => {}
        }
    }
    if all_new {
        let mut order: HashMap<&GroupName, usize> = HashMap::new();
        let of_layout = plan.assignments.iter().map(|assignment| &assignment.group);
        for group in of_layout.chain(writes.iter().map(|(group, ..)| *group)) {
            let next = order.len();
            order.entry(group).or_insert(next);
        }
        writes.sort_by_key(|(group, file, _)| (order[group], *file != "cpuset.cpus", *file != "cpuset.mems"));
    }
    writes.iter().map(|(group, file, text)| cgset_line(file, text, group) + "\n").collect()
}
