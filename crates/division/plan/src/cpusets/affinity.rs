//! v1 keeps other groups off exclusive CPUs, but not the tasks of the groups above: steps move these away.

use units::CpuSet;

use super::cells::Field;
use crate::{Action, Observed, Step, sequence::Cell, tree::Tree};

/// For every group with exclusive groups directly in it, of which some are new: its own tasks leave.
pub(super) fn steps(field: &Field, before: &[Cell], tree: &Tree<'_>, observed: &Observed) -> Vec<Step> {
    let mut steps = Vec::new();
    for (above, seat) in field.seats.iter().enumerate() {
        let below = before.iter().enumerate().filter(|(_, cell)| cell.parent == Some(above));
        let mut exclusive = CpuSet::new();
        let mut newly = CpuSet::new();
        let mut whose = None;
        for (index, cell) in below {
            let branch = field.seats[index].branch.map(|branch| &tree.branches[branch]);
            // where the layout sets v1's flag alone, tasks above stay
            if branch.is_some_and(|branch| branch.flag.is_some() && !branch.is_exclusive()) {
                continue;
            }
            let goal = cell.goal.as_ref().unwrap_or(&cell.now);
            if !cell.goal_flag.unwrap_or(cell.flag).holds() {
                continue;
            }
            exclusive = exclusive.union(goal);
            let fresh = if cell.flag.holds() { goal.difference(&cell.now) } else { goal.clone() };
            if !fresh.is_empty() {
                newly = newly.union(&fresh);
                whose = whose.or(field.seats[index].branch);
            }
        }
        // the root always has tasks: of a machine that is not at hand, too
        let tasks = observed.group(&seat.place).is_some_and(|seen| seen.tasks > 0) || seat.parent.is_none();
        let Some(branch) = whose.filter(|_| tasks) else { continue };
        let all = before[above].goal.as_ref().unwrap_or(&before[above].now);
        let to = all.difference(&exclusive);
        if to.is_empty() {
            continue;
        }
        let who = if seat.parent.is_none() {
            "the rest of the system".to_owned()
        } else {
            format!("tasks in /{} itself", seat.place.path)
        };
        let action = Action::MoveTasksAway { place: seat.place.clone(), cpus: newly, to };
        let why = format!("cpu_exclusive keeps other groups off, but not {who}");
        steps.push(Step::new(tree.branches[branch].name.clone(), action, why));
    }
    steps
}
