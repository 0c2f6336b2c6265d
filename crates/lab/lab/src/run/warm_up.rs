//! The time before what counts: until the rates of all measured workloads are steady, or as long as was allowed.

use std::time::{Duration, Instant};

use experiment::statistics::{self, Steady};

use super::{
    runner::{Beats, CellOf, Runner},
    sampling::Samples,
};
use crate::Error;

/// Rates are looked at five times a second, as the search for the steady state wants it.
const LOOK: Duration = Duration::from_millis(200);
/// With fewer rates than this it can't be decided whether they are steady: eight seconds of them.
const SHORT: usize = 40;

impl Runner<'_> {
    /// Waits until the rates of all measured workloads are steady.
    pub(super) fn warm_up(
        &mut self,
        cell: CellOf<'_>,
        samples: &mut Samples,
    ) -> Result<(Option<bool>, Duration), Error> {
        let begun = Instant::now();
        let own_clock = self.workloads.iter().any(|workload| workload.is_in(cell) && workload.has_own_clock);
        let mut rates: Vec<Rate> = Vec::new();
        let mut beats = Beats::new(self.context.lengths.sample, begun);
        // a workload with a clock of its own begins when the warm-up is over
        let mut look = begun + if own_clock { self.context.lengths.warm_up } else { LOOK };
        loop {
            self.nap(cell, look.min(beats.next()))?;
            beats.take(self.context.host, &mut self.meters.sampling, samples)?;
            let now = Instant::now();
            if now < look {
                continue;
            }
            look += LOOK;
            self.look(cell, &mut rates, now);
            let waited = now.duration_since(begun);
            if waited < self.context.lengths.warm_up {
                continue;
            }
            if own_clock {
                return Ok((None, waited));
            }
            let steady: Vec<Steady> = rates.iter().filter_map(Rate::steady).collect();
            let is_steady = |one: &Steady| matches!(one, Steady::From(_));
            if steady.is_empty() || steady.iter().all(|one| matches!(one, Steady::Idle)) {
                return Ok((None, waited));
            }
            if steady.iter().all(is_steady) {
                return Ok((Some(true), waited));
            }
            if waited >= self.context.lengths.steady_within {
                // one that was cut down to too few samples has been looked at for long enough
                let mut looked = rates.iter().filter_map(|rate| Some((rate.steady()?, rate)));
                let short = looked.all(|(one, rate)| is_steady(&one) || rate.is_short());
                return Ok(((!short).then_some(false), waited));
            }
        }
    }

    fn look(&mut self, cell: CellOf<'_>, rates: &mut Vec<Rate>, now: Instant) {
        let measured = self.workloads.iter_mut().filter(|workload| workload.name.is_some());
        for (index, workload) in measured.enumerate() {
            if rates.len() <= index {
                rates.push(Rate::default());
            }
            if let (true, Some(done)) = (workload.is_in(cell), workload.driver.done()) {
                rates[index].add(now, done);
            }
        }
    }
}

/// How much a workload has done over time, as rates.
#[derive(Default)]
struct Rate {
    last: Option<(Instant, f64)>,
    rates: Vec<f64>,
}

impl Rate {
    fn add(&mut self, at: Instant, done: f64) {
        if let Some((before, was)) = self.last.replace((at, done)) {
            let seconds = at.duration_since(before).as_secs_f64();
            self.rates.push(if seconds > 0.0 { (done - was) / seconds } else { 0.0 });
        }
    }

    /// There were too few samples from the beginning on.
    fn is_short(&self) -> bool {
        self.rates.len() < SHORT
    }

    /// `None` if it was never reported.
    fn steady(&self) -> Option<Steady> {
        self.last.map(|_| statistics::steady(&self.rates))
    }
}
