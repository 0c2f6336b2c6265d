//! Power saving in the same model: general groups as one group on the CPUs that they have.

use std::time::Duration;

use policy::{GroupState, saving::Saving};
use serde::Serialize;

use crate::simulator::queue::Queue;
use crate::simulator::{Load, Point, STEP, percent};

/// What came out of one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// The load.
    pub load: String,
    /// CPU time that was requested and not served in time, in per cent of what was requested.
    pub lost_percent: f64,
    /// CPUs that general groups do not have, on average.
    pub idle: f64,
    /// The fewest of them at any time.
    pub least_idle: usize,
    /// The most of them at any time.
    pub most_idle: usize,
    /// CPUs that general groups can have.
    pub cpus: usize,
    /// Written CPU sets.
    pub changes: usize,
    /// CPUs of general groups over time; only where they change.
    pub points: Vec<Point>,
    /// How long it was, in seconds.
    pub seconds: f64,
}

/// A load, whose groups together are the general groups.
pub fn save(mut saving: Saving, load: &Load) -> Saved {
    let mut queue = Queue::default();
    let cpus = saving.units().len() * saving.units().width();
    let mut has = saving.cpus().len();
    let (mut requested, mut lost, mut idle, mut changes) = (0.0, 0.0, 0, 0);
    let (mut least, mut most) = (cpus, 0);
    let mut points = vec![Point { at: 0.0, cpus: vec![has] }];
    for step in 0..load.steps() {
        let work = (0..load.demands.len()).map(|group| load.demand(group, step)).sum::<f64>() * STEP;
        requested += work;
        queue.add(step, work);
        let before = queue.sum();
        let used = queue.serve(has as f64 * STEP) / STEP;
        let left = queue.sum();
        lost += queue.expire(step);
        let unused = cpus - has;
        idle += unused;
        (least, most) = (least.min(unused), most.max(unused));
        let waiting = if before > 0.0 { left / before } else { 0.0 };
        let now = Duration::from_secs_f64((step + 1) as f64 * STEP);
        if saving.tick(now, &GroupState { used, waiting, ..GroupState::default() }).is_some() {
            has = saving.cpus().len();
            changes += 1;
            points.push(Point { at: now.as_secs_f64(), cpus: vec![has] });
        }
    }
    Saved {
        load: load.name.clone(),
        lost_percent: percent(lost, requested),
        idle: idle as f64 / load.steps().max(1) as f64,
        least_idle: least,
        most_idle: most,
        cpus,
        changes,
        points,
        seconds: load.steps() as f64 * STEP,
    }
}
