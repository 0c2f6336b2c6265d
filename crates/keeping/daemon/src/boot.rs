//! What a boot under systemd does before it starts a unit, by a systemd.generator(7), which runs before any unit is loaded. The
//! order: a service that a layout names starts after the daemon has applied the layout, and a slice that gets CPUs of its own
//! before that, as nothing makes a partition at a slice's start. And units start without a change that nobody confirmed.

use std::{ffi::OsStr, fs, io, path::Path};

use layout::{Desired, UnitName};
use system::files::{Trust, read_layout};

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

/// What the daemon needs when it starts, and itself.
const OWN: [&str; 4] = ["dbus.service", "dbus-broker.service", "ringfence.service", DAEMON];
const DAEMON: &str = "ringfenced.service";

/// What stands in the place of a drop-in file that was not there before.
const NOTHING: &str = "# by ringfence-generator: the change of this file was not confirmed before the boot\n";

/// What stands at the top of each drop-in file.
const HEADER: &str = "# by ringfence-generator: the layout in /etc/ringfence names this unit\n[Unit]\n";

/// Writes drop-in files into `to` for the services that the layout below `root`'s /etc names, and for the daemon if it names
/// slices with CPUs of their own, and returns these services. Left out are those that the daemon itself starts after: an
/// order against it would be a cycle.
///
/// # Errors
/// What can't be written. A layout with errors names nothing: the daemon reports it.
pub fn order_units(root: &Path, to: &Path) -> io::Result<Vec<String>> {
    let layout = RuleFiles::Below(root.join("etc")).layout();
    let desired = layout.and_then(|layout| read_layout(&layout, Trust::of_this_process()).0.desired);
    let Some(desired) = desired else { return Ok(Vec::new()) };
    let slices = exclusive_slices(&desired).join(" ");
    if !slices.is_empty() {
        drop_in(to, DAEMON, &format!("Wants={slices}\nAfter={slices}\n"))?;
    }
    let named = plan::units(&desired);
    let mut units: Vec<String> = named.into_iter().filter_map(file_of).collect();
    units.sort();
    // nobody starts a slice or a scope
    units.retain(|unit| unit.ends_with(".service") && !is_early(root, unit));
    for unit in &units {
        drop_in(to, unit, &format!("After={DAEMON}\n"))?;
    }
    Ok(units)
}

/// Writes into `early`, which systemd prefers to /etc, what the drop-in files of units below `root` had before a change of an
/// earlier boot than `boot` that was neither confirmed nor ended. The daemon, or the next command, takes the files back.
///
/// # Errors
/// What can't be written.
pub fn keep_out(root: &Path, early: &Path, boot: &str) -> io::Result<()> {
    let of_units = root.join("etc/systemd/system");
    let unsettled = apply::unsettled(&of_units, boot);
    for (path, before) in &unsettled {
        let (Some(directory), Some(name)) = (path.parent().and_then(Path::file_name), path.file_name())
        else {
            continue;
        };
        let put = |directory: &OsStr, text: &str| {
            let directory = early.join(directory);
            fs::create_dir_all(&directory)?;
            fs::write(directory.join(name), text)
        };
        put(directory, before.as_deref().unwrap_or(NOTHING))?;
        // of a template it would go before the files that units of it have in /etc
        let template = directory
            .to_str()
            .and_then(|directory| UnitName::of_file_name(directory.strip_suffix(".d")?).ok());
        let Some(pattern) = template.filter(UnitName::is_pattern) else { continue };
        for entry in fs::read_dir(&of_units)?.flatten() {
            let own = entry.path().join(name);
            let is_of_it = entry
                .file_name()
                .to_str()
                .and_then(|one| one.strip_suffix(".d"))
                .is_some_and(|one| pattern.fits(one));
            if is_of_it
                && !unsettled.contains_key(&own)
                && let Ok(text) = fs::read_to_string(&own)
            {
                put(&entry.file_name(), &text)?;
            }
        }
    }
    Ok(())
}

fn drop_in(to: &Path, unit: &str, lines: &str) -> io::Result<()> {
    let directory = to.join(format!("{unit}.d"));
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("10-ringfence.conf"), format!("{HEADER}{lines}"))
}

fn exclusive_slices(desired: &Desired) -> Vec<&str> {
    let groups = desired.groups.iter().filter(|group| group.demands.exclusive);
    let units = groups.filter_map(|group| Some(&group.demands.unit.as_ref()?.value));
    units
        .filter(|unit| !unit.is_pattern())
        .map(UnitName::as_str)
        .filter(|unit| unit.ends_with(".slice"))
        .collect()
}

/// The name under which systemd reads drop-in files for it: of a pattern the template of the units that fit. Others are not
/// ordered: they would take in what the daemon needs.
fn file_of(unit: &UnitName) -> Option<String> {
    let file = unit.file_name()?;
    (!unit.is_pattern() || file.contains("@.")).then_some(file)
}

/// Does a unit start before ordinary services, or does the daemon need it?
fn is_early(root: &Path, unit: &str) -> bool {
    if OWN.contains(&unit) {
        return true;
    }
    let template = unit.split_once('@').map(|(stem, _)| format!("{stem}@.service"));
    let text_of = |name: &str| UNITS.iter().find_map(|at| fs::read_to_string(root.join(at).join(name)).ok());
    let text = text_of(unit).or_else(|| text_of(template.as_deref()?)).unwrap_or_default();
    text.lines().any(|line| match line.split_once('=') {
        Some((key, value)) if key.trim() == "DefaultDependencies" => {
            ["no", "n", "false", "f", "off", "0"].contains(&value.trim().to_ascii_lowercase().as_str())
        }
        Some((key, value)) if key.trim() == "Before" => value.contains("nss-user-lookup.target"),
        _ => false,
    })
}
