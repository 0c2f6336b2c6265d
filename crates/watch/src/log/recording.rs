//! A log that goes on when samples can't be written: a full disk may have room again. What is lost is counted, and told
//! once until it is over. The loop of `ringfence record` and of the daemon is here; what is told where, is theirs.

use std::{ops::ControlFlow, os::fd::AsFd};

use kernel::Host;
use rustix::io::Errno;

use super::{LogError, Recorder};
use crate::{cadence::Cadence, files::Files, sample::Sample, sampler::Sampler};

/// A log that is kept.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    counts: Recorded,
    failing: bool,
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

/// What is to be told.
#[derive(Debug)]
pub enum Turn {
    /// From now on samples are lost.
    Lost(LogError),
    /// From now on samples are written again.
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
        Recording { recorder, counts: Recorded::default(), failing: false }
    }

    /// Appends a sample or counts it as lost.
    pub fn keep(&mut self, sample: &Sample) -> Option<Turn> {
        self.counts.missed += sample.missed;
        let appended = self.recorder.append(sample);
        self.counts.bytes = self.recorder.written();
        match appended {
            Ok(()) => {
                self.counts.samples += 1;
                std::mem::take(&mut self.failing).then_some(Turn::Again)
            }
            Err(error) => {
                self.counts.lost += 1;
                let first = !std::mem::replace(&mut self.failing, true);
                first.then_some(Turn::Lost(error))
            }
        }
    }

    /// What became of samples so far.
    pub fn counts(&self) -> Recorded {
        self.counts
    }

    /// Is the last sample lost?
    pub fn is_failing(&self) -> bool {
        self.failing
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
