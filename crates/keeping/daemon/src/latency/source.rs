//! One source, whatever its kind.

use std::{
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use layout::{Latency, LatencySource, LatencyUnit};

use crate::latency::{
    WINDOW,
    answer::{Answer, Error},
    command,
    log::Log,
    metric::Scraped,
    wait::Wait,
};

/// A source that is looked at again and again.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    start: Instant,
    target: f64,
    every: Duration,
}

#[derive(Debug)]
enum Kind {
    Command(Vec<String>, LatencyUnit),
    Log(Log),
    Metric(Scraped),
}

impl Source {
    /// Nothing is run or opened yet.
    ///
    /// # Errors
    /// In words: a pattern or an address is none.
    pub fn new(latency: &Latency) -> Result<Source, Error> {
        let every = Duration::from_micros(latency.every.0);
        let span = WINDOW.max(every);
        let kind = match &latency.source {
            LatencySource::Command { command } => Kind::Command(command.clone(), latency.unit),
            LatencySource::Log { log, pattern } => Kind::Log(Log::new(log, pattern, latency.unit, span)?),
            LatencySource::Prometheus { prometheus, metric } => {
                Kind::Metric(Scraped::new(prometheus, metric, latency.unit.per_second(), span)?)
            }
        };
        let target = Duration::from_micros(latency.p99.0).as_secs_f64();
        Ok(Source { kind, start: Instant::now(), target, every })
    }

    /// Looks at it once, for at most the time between two looks.
    ///
    /// # Errors
    /// [`Error`]. `stopped` becomes readable when the caller ends.
    pub fn look(&mut self, stopped: BorrowedFd<'_>) -> Result<Answer, Error> {
        let now = self.start.elapsed();
        let wait = Wait { stopped, until: Instant::now() + self.every };
        match &mut self.kind {
            Kind::Command(words, unit) => command::look(words, *unit, &wait),
            Kind::Log(log) => log.look(now, &wait),
            Kind::Metric(metric) => metric.look(now, self.target, &wait),
        }
    }
}
