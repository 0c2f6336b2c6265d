//! `cgset` command lines, as an old runbook has them.

use settings::GroupName;
use settings::{Facts, Version};
use units::shell_quote;

use super::writes::{comment, unit_lost, writes};
use super::{Export, without_schedules};
use crate::desired::Desired;
use crate::diagnostic::Diagnostic;

/// One `cgset` command a setting, groups in order, in the names of `version`. CPUs and nodes must be sets: what only a
/// planner can resolve is lost.
pub fn to_cgset(desired: &Desired, version: Version, facts: &dyn Facts) -> Export {
    let mut lost: Vec<Diagnostic> = without_schedules(desired).collect();
    let mut text: String = lost.iter().map(|warning| comment("", warning)).collect();
    for group in &desired.groups {
        let before = lost.len();
        let files = writes(&group.demands, version, facts, &mut lost);
        lost.extend(unit_lost(&group.demands));
        lost[before..].iter().for_each(|warning| text.push_str(&comment("", warning)));
        for file in files {
            for line in file.text.split('\n') {
                text.push_str(&cgset_line(&file.file, line, &group.name));
                text.push('\n');
            }
        }
    }
    Export { text, lost }
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
