//! Slices and drop-in files of systemd that do the same without Ringfence.

use std::fmt::Write;

use settings::{Facts, GroupName, Version};

use super::writes::{comment, role_lost, writes};
use super::{Export, without_schedules};
use crate::desired::{Desired, Group};
use crate::diagnostic::Diagnostic;

/// Each file behind a comment with its path, as `systemctl cat` prints them. CPUs and nodes must be sets: what only a
/// planner can resolve is lost, and so is what systemd has no property for.
pub fn to_systemd(desired: &Desired, facts: &dyn Facts) -> Export {
    let mut lost: Vec<Diagnostic> = without_schedules(desired).collect();
    let mut text: String = lost.iter().map(|warning| comment("", warning)).collect();
    for group in &desired.groups {
        let before = lost.len();
        if let Some(warning) = role_lost(group, desired) {
            text.push_str(&comment("", &warning));
            lost.push(warning);
            continue;
        }
        let (path, section) = file(group);
        let mut lines = Vec::new();
        for file in writes(&group.demands, Version::V2, facts, &mut lost) {
            match settings::unit_lines(&file.file, &file.text) {
                Some(of_file) => lines.extend(of_file),
                None => lost.push(missing(group, &file.file)),
            }
        }
        if !group.matches.is_empty() || group.demands.tasks.is_some() || group.demands.admin.is_some() {
            let warning = Diagnostic::warning(format!(
                "which processes are in group '{}', and whose it is, is not part of a slice",
                group.name
            ));
            let hint = format!("Slice={} in a service's file puts it there", slice(&group.name));
            lost.push(warning.at(group.origin.clone()).hint(hint));
        }
        if let Some(unit) = group.demands.unit.as_ref().filter(|unit| unit.value.file_name().is_none()) {
            let message = format!("systemd has no drop-in file for all units that fit {}", unit.value);
            let hint = "those end in a star: pg@*.service, app-*.service, *.slice";
            lost.push(Diagnostic::warning(message).at(unit.origin.clone()).hint(hint));
        }
        let _ = writeln!(text, "# {path}\n[{section}]"); // a String takes everything
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
        lost[before..].iter().for_each(|warning| text.push_str(&comment("", warning)));
        text.push('\n');
    }
    if !desired.rules.is_empty() {
        let warning =
            Diagnostic::warning("rules are not part of a slice: systemd has no rules for processes");
        text.push_str(&comment("", &warning));
        lost.push(warning);
    }
    Export { text: text.trim_end_matches('\n').to_owned() + if text.is_empty() { "" } else { "\n" }, lost }
}

fn missing(group: &Group, file: &str) -> Diagnostic {
    let demands = &group.demands;
    let is_it = |name: String| name == file;
    let assigned =
        demands.settings.iter().find(|assigned| assigned.found.files(Version::V2).into_iter().any(is_it));
    let origin = assigned.map_or(&group.origin, |assigned| &assigned.origin);
    Diagnostic::warning(format!("systemd has no property for {file}")).at(origin.clone())
}

/// Where its file goes, and the section of its properties.
fn file(group: &Group) -> (String, String) {
    match &group.demands.unit {
        Some(unit) => {
            let name = unit.value.file_name().unwrap_or_else(|| unit.value.to_string());
            (format!("/etc/systemd/system/{name}.d/90-layout.conf"), unit.value.section())
        }
        None => (format!("/etc/systemd/system/{}", slice(&group.name)), "Slice".to_owned()),
    }
}

/// The slice that is where the group is: a dash leads from a slice to one in it, so that one in a name is escaped.
fn slice(group: &GroupName) -> String {
    let escaped = |part: &str| -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ":_.".contains(c);
        part.bytes()
            .map(|byte| match char::from(byte) {
                c if allowed(c) => c.to_string(),
                _ => format!("\\x{byte:02x}"),
            })
            .collect()
    };
    let parts: Vec<String> = units::group_path::names(group.path()).map(escaped).collect();
    format!("{}.slice", parts.join("-"))
}
