//! The ways to a [`Machine`]: `/sys` and `/proc` below a root, or the text of a listing whose format is
//! recognised by its content. Never opens a listing's file itself, so that no path comes from a listing.

mod block;
pub(crate) mod bounded;
pub(crate) mod cpu_listing;
mod hwloc;
mod json;
mod line;
mod lscpu;
mod numactl;
mod sysfs;
mod tree;

use std::path::Path;

use crate::{Machine, Source, SourceKind, TopologyError, check};
use line::quoted;

/// The longest listing that is read, in bytes: hwloc's XML of 8192 CPUs is shorter.
pub const MAX_LISTING: usize = 8 << 20;

/// A reader of one format.
type Reader = fn(&str, &str) -> Result<Machine, TopologyError>;

impl Machine {
    /// This machine, from `/sys` and `/proc`. Reads some three files a core, starts no program.
    ///
    /// # Errors
    /// [`TopologyError::Read`] or [`TopologyError::Value`] if the kernel's files are not to be had or not
    /// understood.
    pub fn live() -> Result<Machine, TopologyError> {
        Machine::from_root(Path::new("/"))
    }

    /// The machine whose `sys` and `proc` are below `root`.
    ///
    /// # Errors
    /// As [`Machine::live`].
    pub fn from_root(root: &Path) -> Result<Machine, TopologyError> {
        let name =
            if root == Path::new("/") { "this machine".to_owned() } else { root.display().to_string() };
        let mut machine = sysfs::read(root)?;
        machine.block_devices = block::read(root)?;
        sourced(machine, SourceKind::Sysfs, &name)
    }

    /// The machine that a listing describes: `numactl --hardware`, `lscpu`, the per-CPU listing, hwloc's XML or
    /// our own JSON. `name` is for messages and for [`Machine::sources`].
    ///
    /// # Errors
    /// [`TopologyError::UnknownFormat`] for anything else; [`TopologyError::Listing`] with the line of the first
    /// thing that is wrong; [`TopologyError::Contradiction`] if its parts do not agree.
    pub fn from_listing(name: &str, text: &str) -> Result<Machine, TopologyError> {
        if text.len() > MAX_LISTING {
            let (bytes, most) = (text.len(), MAX_LISTING);
            return Err(TopologyError::TooLong { name: name.to_owned(), bytes, most });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match recognise(text) {
            Some((Format::Json, _)) => check::finish(json::read(name, text)?, name),
            Some((Format::Listing(kind), read)) => sourced(read(name, text)?, kind, name),
            None => {
                let first = text.lines().find(|line| !line.trim().is_empty());
                let begins = first.map_or("nothing".to_owned(), quoted);
                Err(TopologyError::UnknownFormat { name: name.to_owned(), begins })
            }
        }
    }

    /// This machine in our own JSON, which [`Machine::from_listing`] reads back to an equal one.
    pub fn to_json(&self) -> String {
        json::write(self)
    }
}

enum Format {
    /// Ours: it holds its sources.
    Json,
    Listing(SourceKind),
}

fn recognise(text: &str) -> Option<(Format, Reader)> {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let listing = |kind, reader: Reader| Some((Format::Listing(kind), reader));
    if first.starts_with('{') {
        return Some((Format::Json, json::read));
    }
    if first.starts_with('<') {
        return listing(SourceKind::Hwloc, hwloc::read);
    }
    if first.starts_with("available:") {
        return listing(SourceKind::Numactl, numactl::read);
    }
    let labelled = |label: &str| [first].into_iter().chain(lines.clone()).any(|line| line.starts_with(label));
    if labelled("processors  (OS CPU count)") {
        return listing(SourceKind::CpuListing, cpu_listing::read);
    }
    if labelled("CPU(s):") {
        return listing(SourceKind::Lscpu, lscpu::read);
    }
    None
}

fn sourced(mut machine: Machine, kind: SourceKind, name: &str) -> Result<Machine, TopologyError> {
    machine.sources = vec![Source { kind, name: name.to_owned() }];
    check::finish(machine, name)
}
