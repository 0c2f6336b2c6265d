//! `cgset` command lines, as an old runbook has them.

use settings::GroupName;
use settings::{Facts, Version};
use units::shell_quote;

use super::writes::{FileText, comment, role_lost, unit_lost, writes};
use super::{Export, without_schedules};
use crate::desired::{Demands, Desired};
use crate::diagnostic::Diagnostic;
use crate::rule::Subsystem;

/// One `cgcreate` command a group, as `cgset` makes none, and behind it one `cgset` command a setting; groups in order, in
/// the names of `version`. CPUs and nodes must be sets: what only a planner can resolve is lost.
pub fn to_cgset(desired: &Desired, version: Version, facts: &dyn Facts) -> Export {
    let mut lost: Vec<Diagnostic> = without_schedules(desired).collect();
    let mut text: String = lost.iter().map(|warning| comment("", warning)).collect();
    for group in &desired.groups {
        let before = lost.len();
        if let Some(warning) = role_lost(group, desired) {
            text.push_str(&comment("", &warning));
            lost.push(warning);
            continue;
        }
        let files = writes(&group.demands, version, facts, &mut lost);
        lost.extend(unit_lost(&group.demands));
        lost[before..].iter().for_each(|warning| text.push_str(&comment("", warning)));
        text.push_str(&cgcreate_line(&group.name, &group.demands, &files, version));
        for file in files {
            for line in file.text.split('\n') {
                text.push_str(&cgset_line(&file.file, line, &group.name));
                text.push('\n');
            }
        }
    }
    Export { text, lost }
}

/// The command that makes a group with the controllers of its files and those that it asks for besides; nothing for one
/// that has none.
fn cgcreate_line(group: &GroupName, demands: &Demands, files: &[FileText], version: Version) -> String {
    let of_files = files.iter().map(|file| Subsystem::Controller(file.controller));
    let named = demands.controllers.iter().map(|named| named.value.clone());
    let mut names: Vec<String> = Vec::new();
    for wanted in of_files.chain(named) {
        let name = match wanted {
            Subsystem::Controller(controller) => controller.name(version).map(str::to_owned),
            // only v1 has named hierarchies
            named => (version == Version::V1).then(|| named.to_string()),
        };
        names.extend(name.filter(|name| !names.contains(name)));
    }
    if names.is_empty() && files.is_empty() {
        return String::new();
    }
    format!("cgcreate -g {}\n", shell_quote(&format!("{}:{group}", names.join(","))))
}

/// One command, quoted for a shell; lists of CPUs and nodes in single quotes, as cgset's manual has them.
pub fn cgset_line(file: &str, value: &str, group: &GroupName) -> String {
    let joined = value.replace(' ', "");
    let value = match file.starts_with("cpuset.") && !value.contains(['\'', '\n']) {
        true if value.starts_with(|c: char| c.is_ascii_digit()) && is_list(file) => format!("'{value}'"),
        // in the quotes that runbooks have
        _ if joined != value && shell_quote(&joined) == joined => format!("\"{value}\""),
        _ => shell_quote(value).into_owned(),
    };
    format!("cgset -r {file}={value} {}", shell_quote(&group.to_string()))
}

fn is_list(file: &str) -> bool {
    file.starts_with("cpuset.cpus") || file.starts_with("cpuset.mems")
}
