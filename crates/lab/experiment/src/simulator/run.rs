//! The model: see the page of [`crate::simulator`].

use std::time::Duration;

use policy::{Dealer, Elastic, GroupState};

use crate::simulator::queue::Queue;
use crate::simulator::walk::Seen;
use crate::simulator::{Load, Outcome, Point, STEP, percent};

/// A load with a rule.
pub fn run(division: &mut dyn Dealer, rule: &str, groups: &[Elastic], load: &Load) -> Outcome {
    let owned = |division: &dyn Dealer| -> Vec<usize> {
        let pool = division.pool();
        (0..groups.len()).map(|group| pool.size(group) * pool.units().width()).collect()
    };
    let cpus = |division: &dyn Dealer| -> Vec<usize> {
        (0..groups.len()).map(|group| division.cpus(group).len()).collect()
    };
    let (order, borrowers): (Vec<usize>, Vec<usize>) =
        (0..groups.len()).partition(|group| !groups[*group].borrows);
    let order: Vec<usize> = order.into_iter().chain(borrowers).collect();
    let machine = (division.pool().units().len() * division.pool().units().width()) as f64;
    let mut queues: Vec<Queue> = groups.iter().map(|_| Queue::default()).collect();
    let mut changes = vec![0_usize; groups.len()];
    let mut seen = Seen::new(division);
    let (mut requested, mut lost, mut stranded, mut had, mut used) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut own, mut has) = (owned(division), cpus(division));
    let mut points = vec![Point { at: 0.0, cpus: has.clone() }];
    for step in 0..load.steps() {
        let (mut served_all, mut could) = (0.0, 0.0);
        let mut states = vec![GroupState::default(); groups.len()];
        // owners run first: a borrower has what they leave of their CPUs
        let mut idle = machine * STEP
            - groups
                .iter()
                .zip(&own)
                .filter(|(group, _)| group.borrows)
                .map(|(_, own)| *own as f64 * STEP)
                .sum::<f64>();
        for group in order.iter().copied() {
            let queue = &mut queues[group];
            let work = load.demand(group, step) * STEP;
            requested += work;
            queue.add(step, work);
            let borrowed = (has[group] - own[group]) as f64 * STEP;
            let (before, room) = (queue.sum(), own[group] as f64 * STEP + borrowed.min(idle).max(0.0));
            let served = queue.serve(room);
            let from_own = served.min(own[group] as f64 * STEP);
            idle -= if groups[group].borrows { served - from_own } else { served };
            let left = queue.sum();
            let limit = groups[group].max as f64 * STEP;
            could += left.min((limit - served).max(0.0));
            served_all += served;
            had += room;
            lost += queue.expire(step);
            let waiting = if before > 0.0 { left / before } else { 0.0 };
            states[group] = GroupState { used: served / STEP, waiting, throttled: 0.0, slack: None };
        }
        used += served_all;
        stranded += could.min(machine * STEP - served_all).max(0.0);
        let now = Duration::from_secs_f64((step + 1) as f64 * STEP);
        let decisions = division.tick(now, &states);
        if decisions.is_empty() {
            continue;
        }
        for decision in &decisions {
            changes[decision.group] += 1;
            seen.look(division, decision.group);
        }
        (own, has) = (owned(division), cpus(division));
        points.push(Point { at: now.as_secs_f64(), cpus: has.clone() });
    }
    let seconds = load.steps() as f64 * STEP;
    Outcome {
        load: load.name.clone(),
        rule: rule.to_owned(),
        lost_percent: percent(lost, requested),
        stranded_percent: percent(stranded, machine * seconds),
        unused_percent: percent(had - used, had),
        changes: changes.iter().sum(),
        most_changes: changes.into_iter().max().unwrap_or(0),
        walk: seen.walk(),
        points,
        seconds,
    }
}
