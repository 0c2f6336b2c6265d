//! The commands that watch groups, and what they share: which figures and groups, the beat, and how a picture is
//! printed.

mod beats;
mod dump;
mod fields;
mod metrics;
mod printer;
mod record;
mod tasks;
mod top;
mod watch;

pub use dump::dump;
pub use fields::fields;
pub use metrics::metrics;
pub use record::record;
pub use top::top;
pub use watch::watch;

use std::{path::PathBuf, time::SystemTime};

use exporters::{
    layout_units,
    view::{self, Choice},
};
use kernel::{GroupName, Host};
use monitor::{Descriptors, Groups, Options, Sampler};

use super::{group, host};
use crate::{args, failure::Failure, output};

/// The figures that were named; without any, those of the overview.
fn chosen(fields: &[String]) -> Result<Vec<Choice>, Failure> {
    if fields.is_empty() {
        return Ok(view::overview());
    }
    let mut all = Vec::new();
    for name in fields {
        for choice in view::choices(name)? {
            let choice = with_device(choice)?;
            if !all.contains(&choice) {
                all.push(choice);
            }
        }
    }
    Ok(all)
}

/// A device that was named is known by its number on this machine: that is what is sampled and recorded.
fn with_device(choice: Choice) -> Result<Choice, Failure> {
    let Some(name) = choice.device_name().map(str::to_owned) else { return Ok(choice) };
    match system::block_device(&name) {
        Some(number) => Ok(choice.by_number(name, number)),
        None => Err(Failure::usage(format!("there is no block device '{name}'"))
            .hint("lsblk lists them; a recorded one that is gone is named by its number, such as 8:16")),
    }
}

/// A sampler of the groups that were named, which must be there; without any, of all of ours, and of
/// the units that the layout has as groups.
fn sampler(host: &Host, names: &[String], slow_every: u64) -> Result<Sampler<Descriptors>, Failure> {
    let named = self::names(names)?;
    for name in named.iter().filter(|name| !name.path().is_empty()) {
        host.existing(name)?;
    }
    // where that is refused, files are opened again each time
    let _ = Descriptors::allow_more();
    let sampler = |groups| Sampler::new(host, Descriptors::new(), Options { groups, slow_every }, true);
    if named.is_empty() {
        return Ok(sampler(Groups::Ours).also(layout_units(apply::state_directory())));
    }
    Ok(sampler(Groups::Named(named)))
}

fn names(groups: &[String]) -> Result<Vec<GroupName>, Failure> {
    groups.iter().map(|name| group(name)).collect()
}

/// Where the log is.
fn directory(args: &args::LogArgs) -> PathBuf {
    args.directory.clone().unwrap_or_else(monitor::log::directory)
}

/// `2026-01-31T08:05:09.120Z`.
fn time(at: Option<SystemTime>) -> String {
    humantime::format_rfc3339_millis(at.unwrap_or(SystemTime::UNIX_EPOCH)).to_string()
}

pub(super) fn warn_of(torn: &[monitor::Torn]) {
    torn.iter().for_each(|torn| output::warning(&torn.to_string()));
}
