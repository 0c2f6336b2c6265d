//! A log that goes on when samples can't be written: a full disk may have room again. What is lost is counted, and reported
//! once until samples have been written for a while. The loop of `ringfence record` and of the daemon is here; how an outage
//! is reported is theirs.

use std::{ops::ControlFlow, os::fd::AsFd, time::Duration};

use kernel::Host;
use rustix::io::Errno;

use super::{LogError, Recorder};
use crate::{cadence::Cadence, files::Files, sample::Sample, sampler::Sampler};

/// A log that is being written.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    counts: Recorded,
    is_failing: bool,
    outage: Outage,
}

/// An outage lasts until nothing was lost for this long: on a nearly full disk a small sample still fits now and then.
const STEADY: Duration = Duration::from_secs(10);

/// A time in which samples are lost. Its clock is that of the samples.
#[derive(Debug, Default)]
struct Outage {
    /// When a sample was lost last, while it lasts.
    last_lost: Option<Duration>,
}

impl Outage {
    /// A sample is lost; true if that begins an outage.
    fn lose(&mut self, now: Duration) -> bool {
        self.last_lost.replace(now).is_none()
    }

    /// A sample is written; true if that ends an outage.
    fn write(&mut self, now: Duration) -> bool {
        self.last_lost.take_if(|last| now.saturating_sub(*last) >= STEADY).is_some()
    }
}

/// What became of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Samples that are in the log.
    pub samples: u64,
    /// Samples that were taken and could not be written.
    pub lost: u64,
    /// Samples that were due and not taken.
    pub missed: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// What is to be reported.
#[derive(Debug)]
pub enum Turn {
    /// From now on samples are lost, all or some of them.
    Lost(LogError),
    /// All samples have been written again for a while.
    Again,
}

/// Why sampling ended before it was to.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A hierarchy's groups can't be listed.
    #[error(transparent)]
    Groups(#[from] kernel::Error),
    /// There is no timer.
    #[error("there is no timer: {}", kernel::describe(*.0))]
    Timer(Errno),
}

impl Recording {
    /// Into this log.
    pub fn new(recorder: Recorder) -> Recording {
        Recording { recorder, counts: Recorded::default(), is_failing: false, outage: Outage::default() }
    }

    /// Appends a sample or counts it as lost.
    pub fn keep(&mut self, sample: &Sample) -> Option<Turn> {
        self.counts.missed += sample.missed;
        let appended = self.recorder.append(sample);
        self.counts.bytes = self.recorder.written();
        match appended {
            Ok(()) => {
                self.counts.samples += 1;
                self.is_failing = false;
                self.outage.write(sample.clock).then_some(Turn::Again)
            }
            Err(error) => {
                self.counts.lost += 1;
                self.is_failing = true;
                self.outage.lose(sample.clock).then_some(Turn::Lost(error))
            }
        }
    }

    /// What became of samples so far.
    pub fn counts(&self) -> Recorded {
        self.counts
    }

    /// Is the last sample lost?
    pub fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// Has no sample been lost for a while?
    pub fn is_steady(&self) -> bool {
        self.outage.last_lost.is_none()
    }

    /// A sample with every beat, until `stopped` becomes readable or `after` each sample says so.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn run<F: Files>(
        &mut self,
        host: &Host,
        sampler: &mut Sampler<F>,
        (cadence, stopped): (&mut Cadence, &impl AsFd),
        mut after: impl FnMut(&Recording, Option<Turn>) -> ControlFlow<()>,
    ) -> Result<(), Broken> {
        while let Some(beat) = cadence.until(stopped).map_err(Broken::Timer)? {
            let turn = self.keep(sampler.tick(host, beat)?);
            if after(self, turn).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue R, point 11: every other sample fits on a nearly full disk for a minute, then there is room.
    #[test]
    fn an_outage_is_reported_once_and_ends_when_samples_were_written_for_a_while() {
        let mut outage = Outage::default();
        let mut reports = Vec::new();
        let beat = Duration::from_millis(500);
        for number in 0..200 {
            let now = beat * number;
            let is_lost = number < 120 && number % 2 == 0;
            let is_report = if is_lost { outage.lose(now) } else { outage.write(now) };
            if is_report {
                reports.push((number, is_lost));
            }
        }
        // the last one that was lost is number 118
        assert_eq!(reports, [(0, true), (138, false)]);
        assert!(outage.lose(beat * 200), "a new outage is reported");
    }
}
