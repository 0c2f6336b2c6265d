//! `metrics`: one sample as OpenMetrics, or as a text file for a collector.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use watch::{
    Beat,
    metrics::{Bounds, Format, Writer, write},
};

use super::{host, sampler};
use crate::{args, failure::Failure, output};

pub fn metrics(args: &args::Metrics) -> Result<(), Failure> {
    let host = host()?;
    let mut sampler = sampler(&host, &args.groups, 1)?;
    let sample = sampler.tick(&host, Beat::default())?;
    // collectors of text files read the older format alone
    let format = if args.textfile.is_some() { Format::Text } else { Format::OpenMetrics };
    let mut text = String::new();
    let mut writer = Writer::new(&mut text, format);
    write(sample, Bounds { groups: args.most, ..Bounds::default() }, &mut writer);
    writer.end();
    match &args.textfile {
        None => output::text(&text),
        Some(path) => replace(path, &text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display()))),
    }
}

/// Whoever reads the file meanwhile has the old or the new one, whole.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
