//! The files of systemd's units: the unit's own and its drop-in files, in the order in which systemd reads them
//! (systemd.unit(5)). Only those of the administrator: what comes with packages holds without a layout.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use layout::{Diagnostic, UnitName, UnitSource};

use crate::files::{Trust, load};

/// Directories of files that somebody wrote on this machine, the first counts most.
const WRITTEN: [&str; 4] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/etc/systemd/system",
    "/run/systemd/system",
];
/// And of units that were made on the fly.
const TRANSIENT: &str = "/run/systemd/transient";

/// The files of these units, those of their templates and kinds among them; without names, of all units that have any.
/// The diagnostics say which can't be read.
pub fn unit_sources(named: &[UnitName]) -> (Vec<UnitSource>, Vec<Diagnostic>) {
    let (mut units, mut diagnostics) = (Vec::new(), Vec::new());
    let all = if named.is_empty() { names() } else { named.iter().map(ToString::to_string).collect() };
    for name in all {
        let Ok(unit) = UnitName::of_file_name(&name) else { continue };
        let (of, roots) = match named.is_empty() {
            true => (vec![name], WRITTEN.to_vec()),
            false => (above(&unit), WRITTEN.into_iter().chain([TRANSIENT]).collect()),
        };
        let loaded = load(&paths(&of, &roots), Trust::Lenient);
        diagnostics.extend(loaded.diagnostics);
        units.push(UnitSource { name: unit, sources: loaded.sources });
    }
    (units, diagnostics)
}

/// All that has a file or a directory of drop-in files.
fn names() -> BTreeSet<String> {
    let entries = WRITTEN.iter().filter_map(|root| std::fs::read_dir(root).ok()).flatten().flatten();
    // a link is another name of a unit, or switches it on or off
    let own = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory { name.strip_suffix(".d").map(str::to_owned) } else { Some(name) }
    };
    own.filter_map(name).collect()
}

/// The names whose drop-in files systemd reads for a unit, its own first.
fn above(unit: &UnitName) -> Vec<String> {
    let file = unit.file_name().unwrap_or_else(|| unit.to_string());
    let mut names = vec![file.clone()];
    let Some((stem, kind)) = file.rsplit_once('.') else { return names };
    let prefix = match stem.split_once('@') {
        Some((prefix, instance)) if !instance.is_empty() => {
            names.push(format!("{prefix}@.{kind}"));
            prefix
        }
        Some((prefix, _)) => prefix,
        None => stem,
    };
    let dashes = prefix.rmatch_indices('-').map(|(at, _)| format!("{}.{kind}", &prefix[..=at]));
    names.extend(dashes.filter(|name| *name != file));
    names.push(kind.to_owned());
    names.dedup();
    names
}

/// The unit's file, and of drop-in files of one name the first.
fn paths(names: &[String], roots: &[&str]) -> Vec<PathBuf> {
    let in_roots = |name: &str| roots.iter().map(|root| Path::new(root).join(name)).collect::<Vec<_>>();
    let is_template = |name: &&String| name.contains("@.");
    let own = names.iter().take(1).chain(names.iter().skip(1).filter(is_template));
    let own = own.flat_map(|name| in_roots(name)).find(|path| path.is_file());
    let mut by_name: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for directory in names.iter().flat_map(|name| in_roots(&format!("{name}.d"))) {
        for path in crate::files::files_in(&directory, "conf").unwrap_or_default() {
            let Some(file) = path.file_name() else { continue };
            by_name.entry(file.to_owned()).or_insert(path);
        }
    }
    // a link to /dev/null takes one away
    own.into_iter().chain(by_name.into_values().filter(|path| path.is_file())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_in_files_of_templates_and_prefixes_count_after_the_units_own() {
        let of = |name: &str| above(&UnitName::new(name).unwrap());
        assert_eq!(of("a-b@1.service"), ["a-b@1.service", "a-b@.service", "a-.service", "service"]);
        assert_eq!(of("a-b-c.slice"), ["a-b-c.slice", "a-b-.slice", "a-.slice", "slice"]);
        assert_eq!(of("pg@*.service"), ["pg@.service", "service"]);
        assert_eq!(of("*.slice"), ["slice"]);
    }
}
