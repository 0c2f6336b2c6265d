//! `record`: samples into the log, until it is told to stop.

use std::path::Path;

use serde_json::json;
use watch::{Recorder, RecorderOptions, Sample};

use super::{beats::Beats, host, sampler, warn_of};
use crate::{args, failure::Failure, output};

pub fn record(args: &args::Record, as_json: bool) -> Result<(), Failure> {
    let directory = args.log.directory.clone().unwrap_or_else(watch::log::directory);
    let host = host()?;
    let mut sampler = sampler(&host, &args.groups, watch::Options::default().slow_every)?;
    let options = RecorderOptions { size: args.size, ..RecorderOptions::default() };
    let (recorder, torn) = Recorder::open(&directory, options)?;
    warn_of(torn.as_slice());
    let mut log = Kept { recorder, samples: 0, lost: 0, missed: 0, failing: false };
    let mut beats = Beats::new(args.interval)?;
    while let Some(beat) = beats.next()? {
        log.keep(sampler.tick(&host, beat)?);
        if args.count.is_some_and(|count| log.samples + log.lost >= count) {
            break;
        }
    }
    log.told(&directory, as_json)
}

/// What became of the samples.
struct Kept {
    recorder: Recorder,
    samples: u64,
    lost: u64,
    missed: u64,
    failing: bool,
}

impl Kept {
    /// A full disk may have room again: what can't be written is told once, and later samples are tried.
    fn keep(&mut self, sample: &Sample) {
        self.missed += sample.missed;
        match self.recorder.append(sample) {
            Ok(()) => {
                self.samples += 1;
                if std::mem::take(&mut self.failing) {
                    output::warning("samples are recorded again");
                }
            }
            Err(error) => {
                self.lost += 1;
                if !std::mem::replace(&mut self.failing, true) {
                    output::warning(&format!("samples are lost: {error}"));
                }
            }
        }
    }

    fn told(&self, directory: &Path, as_json: bool) -> Result<(), Failure> {
        let Kept { recorder, samples, lost, missed, .. } = self;
        let bytes = recorder.written();
        if *lost > 0 {
            return Err(Failure::new(format!("{lost} of {} samples were lost", samples + lost))
                .hint(format!("is there room in {}?", directory.display()))
                .code(crate::failure::ATTENTION));
        }
        if as_json {
            return output::json(
                &json!({ "samples": samples, "missed": missed, "bytes": bytes, "directory": directory }),
            );
        }
        output::text(&format!(
            "{samples} samples, {missed} missed, {} in {}\n",
            units::Bytes(bytes),
            directory.display()
        ))
    }
}
