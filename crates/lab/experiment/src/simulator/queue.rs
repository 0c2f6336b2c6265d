//! Work that could not be served at once.

use std::collections::VecDeque;

use crate::simulator::{PATIENCE, STEP};

/// A group's work that waits.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Since which step, and how much CPU time of it is left.
    waiting: VecDeque<(usize, f64)>,
}

impl Queue {
    /// Work of a step.
    pub fn add(&mut self, step: usize, work: f64) {
        if work > 0.0 {
            self.waiting.push_back((step, work));
        }
    }

    /// What is queued.
    pub fn sum(&self) -> f64 {
        self.waiting.iter().map(|(_, work)| work).sum()
    }

    /// Serves the oldest, and says how much.
    pub fn serve(&mut self, room: f64) -> f64 {
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
    pub fn expire(&mut self, step: usize) -> f64 {
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
