//! The ways to a [`Machine`]: `/sys` and `/proc` below a root, or the text of a listing whose format is
//! recognised by its content. Never opens a listing's file itself, so that no path comes from a listing.

mod block;
mod cpu_listing;
mod hwloc;
mod json;
mod line;
mod lscpu;
mod lscpu_table;
mod lstopo;
mod numactl;
mod recognise;
mod sysfs;
mod tree;

use std::path::Path;

use crate::{Machine, Source, SourceKind, TopologyError, check};
use line::quoted;
use recognise::Format;

/// The longest listing that is read, in bytes: hwloc's XML of 8192 CPUs is shorter.
pub const MAX_LISTING: usize = 8 << 20;

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

    /// The machine that a listing describes: `numactl --hardware`, `lscpu` (also with -e, -p or -J), the per-CPU
    /// listing, hwloc's XML or text, or our own JSON. Lines before its first one, and a prompt, comment or code fence
    /// behind its last one, are left out. `name` is for messages and for [`Machine::sources`].
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
        match recognise::listing(text) {
            Some((Format::Json, text)) => match json::read(name, &text)? {
                (machine, None) => check::finish(machine, name),
                (machine, Some(kind)) => sourced(machine, kind, name),
            },
            Some((Format::Listing(kind, read), text)) => sourced(read(name, &text)?, kind, name),
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

fn sourced(mut machine: Machine, kind: SourceKind, name: &str) -> Result<Machine, TopologyError> {
    machine.sources = vec![Source { kind, name: name.to_owned() }];
    check::finish(machine, name)
}
