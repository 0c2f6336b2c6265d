//! The order at boot under systemd: what a layout names as `unit` starts after the daemon has applied the layout. A
//! systemd.generator(7) says so, as it runs before any unit is loaded, also at the first boot with a new layout.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use files::{Trust, layout_files};
use toml::de::{DeTable, DeValue};

use crate::RuleFiles;

/// The name under which systemd starts this program as a generator.
pub const GENERATOR: &str = "ringfence-generator";

/// Where systemd looks for units.
const UNITS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// Writes drop-ins for the units that the layout below `root`'s /etc names into `to`, and returns these units. Left out
/// are units that the daemon itself starts after: an order against it would be a cycle.
///
/// # Errors
/// What can't be written. A layout that can't be read names nothing: the daemon reports it.
pub fn order_units(root: &Path, to: &Path) -> io::Result<Vec<String>> {
    let units: Vec<String> = units(root).into_iter().filter(|unit| !is_early(root, unit)).collect();
    for unit in &units {
        let directory = to.join(format!("{unit}.d"));
        fs::create_dir_all(&directory)?;
        let text = "# by ringfence-generator: the layout in /etc/ringfence names this unit\n[Unit]\nAfter=ringfenced.service\n";
        fs::write(directory.join("10-ringfence.conf"), text)?;
    }
    Ok(units)
}

/// The services of `unit` keys; a template for a pattern of its instances.
fn units(root: &Path) -> BTreeSet<String> {
    let layout = RuleFiles::Below(root.join("etc")).layout();
    let files = layout.and_then(|layout| layout_files(&layout).ok()).unwrap_or_default();
    let loaded = files::load(&files, Trust::of_this_process());
    let mut found = BTreeSet::new();
    for source in &loaded.sources {
        if let Ok(table) = DeTable::parse(&source.text) {
            collect(table.get_ref(), &mut found);
        }
    }
    found.iter().filter_map(|unit| service(unit)).collect()
}

/// Of the groups of a table and those below them.
fn collect(table: &DeTable<'_>, found: &mut BTreeSet<String>) {
    let Some(DeValue::Table(groups)) = table.get("groups").map(|groups| groups.get_ref()) else { return };
    for group in groups.values() {
        let DeValue::Table(group) = group.get_ref() else { continue };
        let values = match group.get("unit").map(|unit| unit.get_ref()) {
            Some(DeValue::Array(values)) => values.iter().map(|value| value.get_ref()).collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        };
        found.extend(values.into_iter().filter_map(|value| value.as_str().map(str::to_owned)));
        collect(group, found);
    }
}

/// The unit that a drop-in is for; nothing for a slice or scope, which nobody starts, and for a name that is none.
fn service(unit: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let (stem, instance) = match unit.strip_suffix(".service").unwrap_or(unit).split_once('@') {
        Some((stem, instance)) if instance.contains(['*', '?', '[']) => (stem, Some("")),
        Some((stem, instance)) => (stem, Some(instance)),
        None => (unit.strip_suffix(".service").unwrap_or(unit), None),
    };
    let kinds = [".slice", ".scope", ".socket", ".mount", ".swap", ".target", ".timer", ".path", ".device"];
    if unit.starts_with('.') || stem.is_empty() || kinds.iter().any(|kind| unit.ends_with(kind)) {
        return None;
    }
    let name = instance.map_or(stem.to_owned(), |instance| format!("{stem}@{instance}"));
    name.chars().all(is_plain).then(|| format!("{name}.service"))
}

/// Does a unit start before ordinary services, or does the daemon need it?
fn is_early(root: &Path, unit: &str) -> bool {
    if ["dbus.service", "dbus-broker.service", "ringfence.service", "ringfenced.service"].contains(&unit) {
        return true;
    }
    let template = unit.split_once('@').map(|(stem, _)| format!("{stem}@.service"));
    let files = UNITS.iter().flat_map(|directory| {
        let names = [Some(unit), template.as_deref()].into_iter().flatten();
        names.map(|name| root.join(directory).join(name)).collect::<Vec<PathBuf>>()
    });
    let text = files.into_iter().find_map(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    text.lines().any(|line| match line.split_once('=') {
        Some((key, value)) if key.trim() == "DefaultDependencies" => {
            ["no", "n", "false", "f", "off", "0"].contains(&value.trim().to_ascii_lowercase().as_str())
        }
        Some((key, value)) if key.trim() == "Before" => value.contains("nss-user-lookup.target"),
        _ => false,
    })
}
