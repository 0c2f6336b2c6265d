//! What is wrong with the workloads: their groups, conditions, devices, sizes and numbers of threads.

use std::collections::BTreeMap;

use layout::Diagnostic;
use units::NodeSet;

use super::{Check, keys, near};
use crate::{
    file::{Driver, Workload},
    options,
};

impl Check<'_> {
    pub(super) fn workloads(&mut self) {
        for (name, workload) in &self.experiment.workload {
            self.workload(&format!("workload.{name}"), workload);
        }
        for (index, load) in self.experiment.load.iter().enumerate() {
            for (number, workload) in load.workload.iter().enumerate() {
                self.workload(&format!("load.{index}.workload.{number}"), workload);
            }
        }
    }

    fn workload(&mut self, path: &str, workload: &Workload) {
        let experiment = self.experiment;
        let groups = || experiment.group.keys().map(String::as_str);
        for (key, group) in [("group", &workload.group), ("clients-group", &workload.clients_group)] {
            if let Some(group) = group {
                self.one_of(&format!("{path}.{key}"), "group", group, groups());
            }
        }
        self.conditions_named(path, &workload.conditions);
        self.driver(path, &workload.driver);
    }

    /// What a condition's options make of the drivers. What is wrong with a workload itself is reported there alone.
    pub(super) fn options(&mut self) {
        for (index, condition) in self.experiment.condition.iter().enumerate() {
            for name in condition.options.keys() {
                let path = format!("condition.{index}.options.{name}");
                match options::driver(self.experiment, name, condition) {
                    Err(error) => self.error_at_key(&path, error.reason, None),
                    Ok(Some(driver)) => {
                        let before = std::mem::take(&mut self.found);
                        if let Some(of) = self.experiment.workload.get(name) {
                            self.driver(&path, &of.driver);
                        }
                        let of_workload = std::mem::take(&mut self.found);
                        self.driver(&path, &driver);
                        let is_new =
                            |one: &Diagnostic| of_workload.iter().all(|of| of.message != one.message);
                        let new = std::mem::replace(&mut self.found, before);
                        self.found.extend(new.into_iter().filter(is_new));
                    }
                    Ok(None) => {
                        let known = self.experiment.workload.keys().map(String::as_str);
                        self.one_of(&path, "workload", name, known);
                    }
                }
            }
        }
    }

    fn driver(&mut self, path: &str, driver: &Driver) {
        self.ranges(path, driver);
        for (option, text) in driver.clone().counts() {
            self.threads(&format!("{path}.{option}"), text);
        }
        if let Some(device) = driver.device() {
            self.device_named(path, device.name);
        }
        if let Driver::LogicalIo(engine) = driver {
            self.placement(&format!("{path}.placement"), &engine.placement);
        }
        if let Driver::Command(command) = driver
            && command.command.is_empty()
        {
            let hint = Some("command = [\"true\"]".to_owned());
            self.error_at_key(path, "no command is named".to_owned(), hint);
        }
    }

    /// Whether the machine has the nodes is seen where it runs.
    fn placement(&mut self, path: &str, text: &str) {
        let filled = match self.known.cpus.fill(text, &BTreeMap::new()) {
            Ok(filled) => filled,
            Err(unknown) => {
                let hint = near(&unknown, &keys(&self.experiment.cpus));
                return self.error(path, format!("nothing is named '{{{unknown}}}'"), Some(hint));
            }
        };
        let nodes = |list: &str| list.parse::<NodeSet>().is_ok_and(|nodes| !nodes.is_empty());
        let known = match filled.split_once(':') {
            None => matches!(filled.as_str(), "first-touch" | "interleave"),
            Some(("bind" | "interleave", list)) => nodes(list),
            Some(_) => false,
        };
        if !known {
            let hint = "first-touch, bind:NODES, interleave or interleave:NODES";
            self.error(path, format!("'{filled}' is no placement of memory"), Some(hint.to_owned()));
        }
    }

    pub(super) fn threads(&mut self, path: &str, text: &str) {
        let named = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        match named {
            Some(name) => {
                self.one_of(path, "set of CPUs", name, self.experiment.cpus.keys().map(String::as_str))
            }
            None if text.parse::<u32>().is_ok_and(|count| (1..=8192).contains(&count)) => {}
            None => self.error(path, format!("'{text}' is no number of threads"), None),
        }
    }

    fn device_named(&mut self, path: &str, device: &str) {
        if device.is_empty() {
            self.error_at_key(path, "no device is named".to_owned(), Some("device = \"disk\"".to_owned()));
        } else if !device.starts_with('/') {
            let known = self.experiment.device.keys().map(String::as_str);
            self.one_of(&format!("{path}.device"), "device", device, known);
        }
    }
}
