//! What is wrong with the workloads: their groups, conditions, devices, sizes and numbers of threads.

use std::collections::BTreeMap;

use layout::{Diagnostic, Role};
use units::NodeSet;

use super::{Check, keys, near};
use crate::{
    file::{Driver, Pgbench, Workload},
    options,
};

/// Settings that the lab gives a server of its own, or that would make it another server; with the option that decides, if any.
const OF_THE_LAB: [(&str, Option<&str>); 10] = [
    ("shared_buffers", Some("shared-buffers")),
    ("max_connections", Some("clients")),
    ("config_file", None),
    ("data_directory", None),
    ("external_pid_file", None),
    ("hba_file", None),
    ("ident_file", None),
    ("listen_addresses", None),
    ("port", None),
    ("unix_socket_directories", None),
];

/// The role of the process that starts all others.
const POSTMASTER: &str = "postgresql.postmaster";

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
        self.driver(path, workload.group.as_deref(), &workload.driver);
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
                        let of = self.experiment.workload.get(name);
                        let group = of.and_then(|of| of.group.as_deref());
                        if let Some(of) = of {
                            self.driver(&path, group, &of.driver);
                        }
                        let of_workload = std::mem::take(&mut self.found);
                        self.driver(&path, group, &driver);
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

    fn driver(&mut self, path: &str, group: Option<&str>, driver: &Driver) {
        self.ranges(path, driver);
        if let Driver::Pgbench(pgbench) = driver {
            self.server(path, group, pgbench);
        }
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

    /// What only a server of the lab's own can have, and in which groups its processes are.
    fn server(&mut self, path: &str, group: Option<&str>, pgbench: &Pgbench) {
        let theirs = pgbench.dsn.is_some();
        let given = [
            ("partitions", pgbench.partitions.is_some()),
            ("settings", !pgbench.settings.is_empty()),
            ("roles", !pgbench.roles.is_empty()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| theirs && *is_given) {
            let hint = Some("leave out dsn, or let a layout divide that server".to_owned());
            let path = format!("{path}.{key}");
            self.error_at_key(&path, format!("'{key}' is for a server of the lab's own"), hint);
        }
        for (name, value) in &pgbench.settings {
            let path = format!("{path}.settings.{name}");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
            if name.is_empty() || !name.bytes().all(plain) {
                self.error_at_key(&path, format!("{name:?} is no setting of PostgreSQL"), None);
            }
            if let Some((_, option)) = OF_THE_LAB.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                let hint = option.map(|option| format!("the option {option} decides it"));
                self.error_at_key(&path, format!("'{name}' is set by the lab"), hint);
            }
            if value.contains(['{', '}', '\0']) {
                let hint = Some("names of sets of CPUs are not filled in here".to_owned());
                self.error(&path, format!("{value:?} is no value of a setting"), hint);
            }
        }
        if group.is_none() && !pgbench.roles.is_empty() {
            let hint = Some("group = \"…\" names where all other processes are".to_owned());
            self.error_at_key(&format!("{path}.roles"), "roles need the server's own group".to_owned(), hint);
        }
        for (role, group) in &pgbench.roles {
            let path = format!("{path}.roles.{role}");
            let is_one = |name: &str| name.starts_with("postgresql.") && name != POSTMASTER;
            if role == POSTMASTER {
                let hint = Some("it is in `group`, and so is what it starts".to_owned());
                self.error_at_key(
                    &path,
                    "the server's first process has no group of its own".to_owned(),
                    hint,
                );
            } else if !is_one(role) || Role::new(role).is_none() {
                let known: Vec<&str> =
                    Role::all().map(|(name, _)| name).filter(|name| is_one(name)).collect();
                let hint = Some(near(role, &known));
                self.error_at_key(&path, format!("PostgreSQL has no processes with the role '{role}'"), hint);
            }
            self.one_of(&path, "group", group, self.experiment.group.keys().map(String::as_str));
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
