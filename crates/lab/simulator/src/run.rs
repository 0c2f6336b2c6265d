//! The model: see the crate's page.

use std::collections::VecDeque;
use std::time::Duration;

use policy::{Division, Elastic, GroupState};

use crate::walk::Seen;
use crate::{Load, Outcome, PATIENCE, Point, STEP};

/// A group's work that waits.
#[derive(Debug, Default)]
struct Queue {
    /// Since which step, and how much CPU time of it is left.
    waiting: VecDeque<(usize, f64)>,
}

impl Queue {
    /// Work of a step.
    fn add(&mut self, step: usize, work: f64) {
        if work > 0.0 {
            self.waiting.push_back((step, work));
        }
    }

    fn sum(&self) -> f64 {
        self.waiting.iter().map(|(_, work)| work).sum()
    }

    /// Serves the oldest, and says how much.
    fn serve(&mut self, room: f64) -> f64 {
        let mut left = room;
        while let Some((_, work)) = self.waiting.front_mut() {
            let served = work.min(left);
            left -= served;
            *work -= served;
            if *work > 1e-9 {
                break;
            }
            self.waiting.pop_front();
        }
        room - left
    }

    /// Drops what has waited too long, and says how much.
    fn expire(&mut self, step: usize) -> f64 {
        let mut lost = 0.0;
        while let Some((_, work)) = self.waiting.front().filter(|(since, _)| step - since >= PATIENT) {
            lost += work;
            self.waiting.pop_front();
        }
        lost
    }
}

/// [`PATIENCE`] in steps.
const PATIENT: usize = (PATIENCE / STEP) as usize;

/// A load with a rule.
pub fn run(division: &mut dyn Division, rule: &str, groups: &[Elastic], load: &Load) -> Outcome {
    let owned = |division: &dyn Division| -> Vec<usize> {
        let pool = division.pool();
        (0..groups.len()).map(|group| pool.size(group) * pool.units().width()).collect()
    };
    let cpus = |division: &dyn Division| -> Vec<usize> {
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
            states[group] = GroupState { used: served / STEP, waiting, throttled: 0.0 };
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
    let percent = |part: f64, whole: f64| if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
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
