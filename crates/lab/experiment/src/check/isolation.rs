//! What isolates the CPUs of a condition's groups: levels and rows that there are, for groups that have CPUs.

use plan::CPUS;
use settings::knobs;

use super::{Check, near};
use crate::file::Condition;

impl Check<'_> {
    pub(super) fn isolation(&mut self, index: usize, condition: &Condition) {
        for (group, level) in &condition.isolate {
            let path = format!("condition.{index}.isolate.{group}");
            self.one_of(&path, "group", group, self.experiment.group.keys().map(String::as_str));
            if layout::Isolate::of_level(level).is_none() {
                let hint = Some("cpus, quiet or full".to_owned());
                self.error(&path, format!("'{level}' is no level of isolation"), hint);
            }
            let own = [condition.settings.get(group), self.experiment.group.get(group)];
            let has_cpus = own.into_iter().flatten().any(|settings| settings.contains_key(CPUS));
            if !has_cpus && condition.layout.is_none() {
                let message =
                    format!("group '{group}' is to be isolated and has no {CPUS} in this condition");
                self.error_at_key(
                    &path,
                    message,
                    Some(format!("settings.{group}.\"{CPUS}\" = \"{{name}}\"")),
                );
            }
        }
        let rows: Vec<&str> =
            knobs::KNOBS.iter().filter(|knob| knob.is_of_machine()).map(|knob| knob.name).collect();
        for name in condition.isolate_machine.keys() {
            let path = format!("condition.{index}.isolate-machine.{name}");
            if !rows.contains(&name.as_str()) {
                let message = format!("there is no row '{name}' of the whole machine");
                self.error_at_key(&path, message, Some(near(name, &rows)));
            } else if condition.isolate.is_empty() {
                let message = "rows of the machine are set only while a group is isolated".to_owned();
                self.error_at_key(&path, message, Some("isolate.GROUP = \"full\"".to_owned()));
            }
        }
    }
}
