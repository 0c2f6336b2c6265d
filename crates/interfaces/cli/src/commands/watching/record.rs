//! `record`: samples into the log, until a signal stops it.

use std::{ops::ControlFlow, path::Path};

use exporters::view::{Measure, Value, written};
use monitor::{
    FigureUnit, Recorder, RecorderOptions,
    log::{Broken, Recorded, Recording, Turn},
};
use serde_json::json;

use super::{beats::Beats, directory, host, sampler, warn_of};
use crate::{args, failure::Failure, output};

pub fn record(args: &args::Record, as_json: bool) -> Result<(), Failure> {
    let directory = directory(&args.log);
    let host = host()?;
    let slow_every = monitor::Options::every(args.interval, monitor::Groups::Ours).slow_every;
    let mut sampler = sampler(&host, &args.groups, slow_every)?;
    let options = RecorderOptions { size: args.size, ..RecorderOptions::default() };
    let (recorder, torn) = Recorder::open(&directory, options)?;
    warn_of(torn.as_slice());
    let mut recording = Recording::new(recorder);
    let mut beats = Beats::new(args.interval)?;
    recording
        .run(&host, &mut sampler, beats.parts(), |recording, turn| {
            match turn {
                Some(Turn::Lost(error)) => output::warning(&format!("samples are lost: {error}")),
                Some(Turn::Again) => output::warning("samples are recorded again"),
                None => {}
            }
            let Recorded { samples, lost, .. } = recording.counts();
            let is_enough = args.count.is_some_and(|count| samples + lost >= count);
            if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(|broken| match broken {
            Broken::Groups(error) => Failure::from(error),
            Broken::Timer(_) => Failure::new(broken),
        })?;
    counted(recording.counts(), &directory, as_json)
}

fn counted(counts: Recorded, directory: &Path, as_json: bool) -> Result<(), Failure> {
    let Recorded { samples, lost, missed, bytes } = counts;
    if lost > 0 {
        return Err(Failure::new(format!("{lost} of {} samples were lost", samples + lost))
            .hint(units::hint::Command::new("df").arg(directory.display().to_string()).to_string())
            .code(crate::failure::ATTENTION));
    }
    if as_json {
        return output::json(
            &json!({ "samples": samples, "missed": missed, "bytes": bytes, "directory": directory }),
        );
    }
    let samples = units::counted(samples, "sample");
    output::text(&format!(
        "{samples} recorded in {}: {}, {missed} missed\n",
        units::printable(&directory.display().to_string()),
        written(Value::At(bytes as f64), Measure::Figure(FigureUnit::Bytes))
    ))
}
