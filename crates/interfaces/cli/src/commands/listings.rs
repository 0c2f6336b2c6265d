//! A machine as its listings describe it: `lscpu`, `numactl --hardware`, hwloc's XML, our own JSON.

use std::{
    fs,
    io::Read,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use topology::Machine;

use crate::failure::Failure;

/// No listing of a machine is longer; a larger file was named by mistake.
const MAX_LISTING: u64 = 64 << 20;

/// A machine from its listings, merged.
pub fn merged(paths: &[PathBuf]) -> Result<Machine, Failure> {
    let mut merged: Option<Machine> = None;
    for path in paths {
        let machine = listing(path)?;
        merged = Some(match merged {
            Some(first) => first.merge(machine)?,
            None => machine,
        });
    }
    merged.ok_or_else(|| Failure::usage("no listing is named"))
}

fn listing(path: &Path) -> Result<Machine, Failure> {
    let failed = |error: String| Failure::new(format!("cannot read {}: {error}", path.display()));
    if fs::metadata(path).map_err(|error| failed(error.to_string()))?.file_type().is_fifo() {
        return Err(failed("it is a named pipe, which may never end: save the listing to a file".to_owned()));
    }
    let file = fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_LISTING + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > MAX_LISTING {
        return Err(failed("it is larger than 64 MiB, no listing of a machine".to_owned()));
    }
    Ok(Machine::from_listing(&path.display().to_string(), &text)?)
}
