//! `get`, `stat`, `set`.

use std::fmt::Write;

use apply::{Change, Reading, SettingValue};
use kernel::{GroupName, Host};
use plan::{Place, SettingRequest};
use rustix::io::Errno;
use serde_json::{Value as Json, json};
use settings::{Access, NamedSetting, Setting, Value, Version};
use units::{IdSet, group_path, hint::Command};

use super::{group, host, layouts, requests};
use crate::{
    args,
    failure::{ATTENTION, Failure},
    output,
};

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
    // a bare controller, or a pattern, stands for what the group has of it
    let is_list = |name: &str| settings::all().any(|setting| settings::is_of(setting, name));
    let (lists, single): (Vec<&str>, Vec<&str>) =
        args.settings.iter().map(String::as_str).partition(|name| is_list(name));
    let named: Vec<NamedSetting> = single.into_iter().map(settings::find).collect::<Result<_, _>>()?;
    let host = host()?;
    let mut readings: Vec<(NamedSetting, Reading)> = Vec::new();
    if named.is_empty() || !lists.is_empty() {
        if !name.path().is_empty() {
            host.existing(&name)?;
        }
        readings.extend(all(&host, &name, which, &lists));
    }
    let mut missing: Vec<Failure> = Vec::new();
    for found in named {
        match apply::get(&host, &name, &found) {
            Ok(reading) => readings.push((found, reading)),
            Err(error) => missing.push(error.into()),
        }
    }
    if readings.is_empty() && !missing.is_empty() {
        return Err(missing.swap_remove(0));
    }
    print(&readings, &name, args.values, as_json)?;
    let last = missing.pop();
    missing.iter().for_each(|failure| output::error(&failure.rendered()));
    last.map_or(Ok(()), |failure| Err(failure.code(ATTENTION)))
}

fn print(
    readings: &[(NamedSetting, Reading)],
    name: &GroupName,
    values: bool,
    as_json: bool,
) -> Result<(), Failure> {
    if as_json {
        let rows: Vec<Json> = readings.iter().map(|(found, reading)| row(found, reading)).collect();
        return output::json(&json!({ "group": name.to_string(), "settings": rows }));
    }
    let width = readings.iter().map(|(found, _)| found.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (found, reading) in readings {
        let shown = found.show(&reading.value);
        if values {
            let _ = writeln!(text, "{shown}");
        } else if shown.contains('\n') {
            let _ = writeln!(text, "{}\n    {}", found.name, shown.trim_end().replace('\n', "\n    "));
        } else {
            let _ = writeln!(text, "{:width$}  {shown}", found.name);
        }
    }
    output::text(&text)
}

fn row(found: &NamedSetting, reading: &Reading) -> Json {
    json!({
        "setting": found.name,
        "canonical": found.setting.name,
        "value": reading.value,
        "text": found.show(&reading.value),
        "version": reading.place.version,
        "files": reading.files,
    })
}

/// What the group has of the table, or of these controllers; what its kernel lacks is left out.
fn all(host: &Host, name: &GroupName, which: Which, lists: &[&str]) -> Vec<(NamedSetting, Reading)> {
    apply::all(host, name, |setting: &Setting| {
        let of_kind = match which {
            Which::Settings => setting.can_be_set(),
            Which::Statistics => !setting.can_be_set() && setting.access != Access::Write,
        };
        of_kind && (lists.is_empty() || lists.iter().any(|list| settings::is_of(setting, list)))
    })
}

pub fn set(args: &args::Set, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let mut values = Vec::new();
    let mut warnings = Vec::new();
    for text in &args.settings {
        let (setting, value) = assignment(text)?;
        let (value, warned) = SettingValue::parse(setting, value, &system::Live)?;
        let starving = plan::starving(&value.found, &value.value, &name);
        warnings.extend(starving.map(|(message, hint)| format!("{message}\nhint: {hint}")));
        values.push(value);
        warnings.extend(warned);
    }
    let changes = match changed(args, &name, &values) {
        // the request to the daemon has what was typed
        Err(failure) if failure.denied && args.from.is_none() && !args.recursive => {
            let typed: Result<Vec<_>, _> = args.settings.iter().map(|text| assignment(text)).collect();
            let typed: Vec<_> =
                typed?.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return requests::set(&args.socket, &name, typed, failure, args.quiet, as_json);
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

fn changed(args: &args::Set, name: &GroupName, values: &[SettingValue]) -> Result<Vec<Change>, Failure> {
    let host = host()?;
    // all of them, as the refusal has the command that sets them; each by itself is refused below
    if name.is_from_root() {
        let settings =
            || values.iter().map(|one| (one.found.setting.name, one.found.show(&one.value))).collect();
        kernel::refuse_foreign(name, kernel::Change::Settings(&settings))?;
    }
    let mut requests = Vec::new();
    for target in targets(&host, name, args.recursive)? {
        let copied = match &args.from {
            Some(from) => apply::copies(&host, &group(from)?, &target)?,
            None => Vec::new(),
        };
        let named = |copied: &SettingValue| {
            values.iter().any(|other| other.found.canonical() == copied.found.canonical())
        };
        let rest = copied.into_iter().filter(|copied| !named(copied));
        for value in rest.chain(values.iter().cloned()) {
            requests.push(value.request(&host, &target)?);
        }
    }
    if !args.recursive {
        let below: Vec<SettingRequest> =
            requests.iter().flat_map(|request| followers(&host, request)).collect();
        requests.extend(below);
    }
    // one write can't be half done; a user without the state directory has no history
    if rustix::process::geteuid().is_root() && apply::is_several(&host, &requests)? {
        let words = args.settings.iter().map(String::as_str);
        let from = args.from.iter().flat_map(|from| ["--from", from]);
        let what = Command::new("set").args(from).group(name).args(words).to_string();
        return layouts::set(&host, &requests, what, args);
    }
    let _lock = layouts::unchanged(args)?;
    apply::set(&host, &requests).map_err(|error| {
        let denied = is_denied(&error);
        let failure = Failure::from(error);
        if !denied {
            return failure;
        }
        // as it was typed: the kernel's own files may have other names
        let typed = args.settings.iter().map(String::as_str);
        let options = args.recursive.then_some("--recursive");
        let from = args.from.iter().flat_map(|from| ["--from", from]);
        let set = Command::ringfence("set").args(options).args(from).group(name).args(typed);
        failure.hint(set.sudo())
    })
}

/// The groups below that have exactly their parent's CPUs or memory nodes, as `create` gave them on v1, follow a parent
/// that is to have fewer: on v2 they do by themselves, and v1 would refuse it.
fn followers(host: &Host, request: &SettingRequest) -> Vec<SettingRequest> {
    let file = match (&request.value, request.place.version) {
        (Value::Cpus(_), Version::V1) => "cpuset.cpus",
        (Value::Nodes(_), Version::V1) => "cpuset.mems",
        _ => return Vec::new(),
    };
    let list = |text: &str| text.trim().parse::<IdSet<()>>().unwrap_or_default();
    let Some(at) = host.hierarchies().get(request.place.hierarchy) else { return Vec::new() };
    let now = |path: &str| list(&host.kernel().read(at, path, file).unwrap_or_default());
    let (before, after) = (now(&request.place.path), list(&request.value.to_string()));
    if before.is_empty() || after.is_empty() || before.is_subset(&after) || request.found.setting.name != file
    {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut parents = vec![request.place.path.clone()];
    while let Some(parent) = parents.pop() {
        for name in host.kernel().children(at, &parent).unwrap_or_default() {
            let path = group_path::join(&parent, &name);
            let Ok(group) = GroupName::new(&host.named(at, &path)) else { continue };
            if now(&path) == before {
                let place = Place { path: path.clone(), ..request.place.clone() };
                found.push(SettingRequest { group, place, ..request.clone() });
                parents.push(path);
            }
        }
    }
    found
}

fn is_denied(error: &apply::Error) -> bool {
    match error {
        apply::Error::Kernel(kernel::Error::Refused(refusal)) => {
            matches!(refusal.errno, Errno::ACCESS | Errno::PERM) && !rustix::process::geteuid().is_root()
        }
        apply::Error::Undone { error, .. } => is_denied(error),
        _ => false,
    }
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
