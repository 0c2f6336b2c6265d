//! `get`, `stat`, `set`.

use std::fmt::Write;

use apply::{Change, Reading};
use kernel::{GroupName, Host};
use plan::Ask;
use serde_json::{Value as Json, json};
use settings::{Access, Found, Setting, Value};

use super::{asking, group, host};
use crate::{args, failure::Failure, output};

/// Which rows are shown when none is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What can be set.
    Settings,
    /// What can only be read.
    Statistics,
}

pub fn get(args: &args::Get, as_json: bool, which: Which) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let named: Vec<Found> =
        args.settings.iter().map(|name| settings::find(name)).collect::<Result<_, _>>()?;
    let host = host()?;
    let readings: Vec<(Found, Reading)> = if named.is_empty() {
        if !name.path().is_empty() {
            host.existing(&name)?;
        }
        all(&host, &name, which)
    } else {
        let read = |found: Found| apply::get(&host, &name, &found).map(|reading| (found, reading));
        named.into_iter().map(read).collect::<Result<_, _>>()?
    };
    if as_json {
        let rows: Vec<Json> = readings.iter().map(|(found, reading)| row(found, reading)).collect();
        return output::json(&json!({ "group": name.to_string(), "settings": rows }));
    }
    let width = readings.iter().map(|(found, _)| found.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (found, reading) in &readings {
        let shown = found.show(&reading.value);
        if args.values {
            let _ = writeln!(text, "{shown}");
        } else if shown.contains('\n') {
            let _ = writeln!(text, "{}\n    {}", found.name, shown.trim_end().replace('\n', "\n    "));
        } else {
            let _ = writeln!(text, "{:width$}  {shown}", found.name);
        }
    }
    output::text(&text)
}

fn row(found: &Found, reading: &Reading) -> Json {
    json!({
        "setting": found.name,
        "canonical": found.setting.name,
        "value": reading.value,
        "text": found.show(&reading.value),
        "version": reading.place.version,
        "files": reading.files,
    })
}

/// What the group has of the table; what its kernel lacks is left out.
fn all(host: &Host, name: &GroupName, which: Which) -> Vec<(Found, Reading)> {
    apply::all(host, name, |setting: &Setting| match which {
        Which::Settings => setting.can_be_set(),
        Which::Statistics => !setting.can_be_set() && setting.access != Access::Write,
    })
}

pub fn set(args: &args::Set, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let mut values = Vec::new();
    let mut warnings = Vec::new();
    for text in &args.settings {
        let (setting, value) = assignment(text)?;
        let (found, value, warned) = parsed(setting, value)?;
        values.push((found, value));
        warnings.extend(warned);
    }
    let changes = match changed(args, &name, &values) {
        // what the daemon is asked for is what was typed
        Err(failure) if failure.denied && args.from.is_none() && !args.recursive => {
            let typed: Result<Vec<_>, _> = args.settings.iter().map(|text| assignment(text)).collect();
            let typed: Vec<_> =
                typed?.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return asking::set(&name, &typed, failure, args.quiet, as_json);
        }
        other => other?,
    };
    warnings.iter().for_each(|warning| output::warning(warning));
    if as_json {
        return output::json(&json!({ "changes": changes }));
    }
    let mut text = String::new();
    for change in &changes {
        change.differences.iter().for_each(|note| output::warning(&format!("{}: {note}", change.setting)));
        for write in &change.written {
            let _ = writeln!(text, "{} <- {}", write.path.display(), write.text.trim_end());
        }
        for note in &change.approximations {
            let _ = writeln!(text, "  {} {note}", change.setting);
        }
    }
    if args.quiet { Ok(()) } else { output::text(&text) }
}

fn changed(args: &args::Set, name: &GroupName, values: &[(Found, Value)]) -> Result<Vec<Change>, Failure> {
    let host = host()?;
    let mut asks = Vec::new();
    for target in targets(&host, name, args.recursive)? {
        let copied = match &args.from {
            Some(from) => apply::copies(&host, &group(from)?, &target)?,
            None => Vec::new(),
        };
        let named = |found: &Found| values.iter().any(|(other, _)| other.canonical() == found.canonical());
        let rest = copied.into_iter().filter(|(found, _)| !named(found));
        asks.extend(self::asks(&host, &target, rest.chain(values.iter().cloned()))?);
    }
    Ok(apply::set(&host, &asks)?)
}

/// `SETTING=VALUE` in two.
fn assignment(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=').ok_or_else(|| {
        let hint = match settings::find(text) {
            Ok(found) => format!("for example {text}={}", found.setting.example),
            Err(error) => error.hint(),
        };
        Failure::usage(format!("'{text}' is not SETTING=VALUE")).hint(hint)
    })
}

/// A setting and its value from their texts, for this machine, with warnings.
pub fn parsed(setting: &str, value: &str) -> Result<(Found, Value, Vec<String>), Failure> {
    let found = settings::find(setting)?;
    let (value, warnings) = system::whole_disks(found.parse(value, &system::Live)?);
    Ok((found, value, warnings))
}

/// The values as asked for one group, each at its place.
pub fn asks(
    host: &Host,
    name: &GroupName,
    values: impl IntoIterator<Item = (Found, Value)>,
) -> Result<Vec<Ask>, Failure> {
    let ask = |(found, value)| {
        let place = apply::place(host, name, &found)?;
        Ok(Ask { group: name.clone(), place, found, value })
    };
    values.into_iter().map(ask).collect()
}

fn targets(host: &Host, name: &GroupName, recursive: bool) -> Result<Vec<GroupName>, Failure> {
    let mut targets = vec![name.clone()];
    if recursive {
        if !name.path().is_empty() {
            host.existing(name)?;
        }
        let prefix = if name.path().is_empty() { "/".to_owned() } else { format!("{name}/") };
        for below in host.list(name)?.keys() {
            targets.push(group(&format!("{prefix}{below}"))?);
        }
    }
    Ok(targets)
}
