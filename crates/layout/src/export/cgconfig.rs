//! libcgroup's cgconfig.conf.

use std::fmt::Write as _;

use settings::{Controller, Facts, Version};

use super::Export;
use super::writes::{FileText, comment, writes};
use crate::desired::{Demands, Desired, Systemd};
use crate::diagnostic::Diagnostic;
use crate::origin::Spanned;
use crate::people::Person;
use crate::rule::Subsystem;
use crate::words::is_bare;

/// A cgconfig.conf for a host with cgroup `version`. CPUs and nodes must be sets: what only a planner can tell is lost,
/// as is what the file has no words for. Rules go to [`super::to_cgrules`].
pub fn to_cgconfig(desired: &Desired, version: Version, facts: &dyn Facts) -> Export {
    let mut out = Writer { text: String::new(), lost: Vec::new(), version, facts };
    out.mounts(desired);
    desired.systemd.iter().for_each(|systemd| out.systemd(&systemd.value));
    let Desired { defaults, reserve, assertions, .. } = desired;
    if defaults.tasks.is_some() || defaults.admin.is_some() {
        out.text.push_str("default {\n");
        out.perm(defaults.tasks.as_ref(), defaults.admin.as_ref());
        out.text.push_str("}\n\n");
    }
    if *reserve != Default::default() {
        out.lose("", Diagnostic::warning("cgconfig.conf has no reserve"));
    }
    if *assertions != Default::default() {
        out.lose("", Diagnostic::warning("cgconfig.conf has no assertions about the host"));
    }
    for group in &desired.groups {
        out.section("group", &group.name.to_string(), &group.demands, desired);
    }
    for template in &desired.templates {
        out.section("template", &template.name.to_string(), &template.demands, desired);
    }
    let text = match out.text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    };
    Export { text, lost: out.lost }
}

struct Writer<'d> {
    text: String,
    lost: Vec<Diagnostic>,
    version: Version,
    facts: &'d dyn Facts,
}

impl Writer<'_> {
    fn lose(&mut self, indent: &str, warning: Diagnostic) {
        self.text.push_str(&comment(indent, &warning));
        self.lost.push(warning);
    }

    fn mounts(&mut self, desired: &Desired) {
        if desired.mounts.is_empty() {
            return;
        }
        self.text.push_str("mount {\n");
        for mount in &desired.mounts {
            self.pair("\t", &mount.subsystem.to_string(), &mount.path);
        }
        self.text.push_str("}\n\n");
    }

    fn systemd(&mut self, systemd: &Systemd) {
        self.text.push_str("systemd {\n");
        let Systemd { slice, scope, set_default, pid } = systemd;
        slice.iter().for_each(|slice| self.pair("\t", "slice", slice));
        scope.iter().for_each(|scope| self.pair("\t", "scope", scope));
        if *set_default {
            self.pair("\t", "setdefault", "yes");
        }
        pid.iter().for_each(|pid| self.pair("\t", "pid", &pid.to_string()));
        self.text.push_str("}\n\n");
    }

    fn section(&mut self, keyword: &str, name: &str, demands: &Demands, desired: &Desired) {
        let Some(name) = word(name.trim_start_matches('/')) else {
            self.lose("", Diagnostic::warning(format!("cgconfig.conf has no way to write the name {name}")));
            return;
        };
        let name = if name == "\"\"" { "." } else { name.as_str() };
        let _ = writeln!(self.text, "{keyword} {name} {{"); // a String takes everything
        let by_default = &desired.defaults;
        if (&demands.tasks, &demands.admin) != (&by_default.tasks, &by_default.admin) {
            self.perm(demands.tasks.as_ref(), demands.admin.as_ref());
        }
        let before = self.lost.len();
        let files = writes(demands, self.version, self.facts, &mut self.lost);
        let comments: String = self.lost[before..].iter().map(|warning| comment("\t", warning)).collect();
        self.text.push_str(&comments);
        self.controllers(demands, &files);
        self.text.push_str("}\n\n");
    }

    fn controllers(&mut self, demands: &Demands, files: &[FileText]) {
        let mut names: Vec<Controller> = files.iter().map(|file| file.controller).collect();
        names.sort();
        names.dedup();
        for controller in names {
            let name = controller.name(self.version).or(controller.name(Version::V1)).unwrap_or("cpu");
            let _ = writeln!(self.text, "\t{name} {{");
            for file in files.iter().filter(|file| file.controller == controller) {
                self.pair("\t\t", &file.file, &file.text);
            }
            self.text.push_str("\t}\n");
        }
        for Spanned { value, origin } in &demands.controllers {
            let name = match value {
                Subsystem::Controller(controller) => controller.name(self.version).map(str::to_owned),
                Subsystem::Named(_) if self.version == Version::V2 => None,
                named => Some(named.to_string()),
            };
            match name.as_deref().and_then(word) {
                Some(name) => {
                    let _ = writeln!(self.text, "\t{name} {{\n\t}}");
                }
                None => {
                    let warning = format!("cgroup {} has no controller '{value}'", self.version);
                    self.lose("\t", Diagnostic::warning(warning).at(origin.clone()));
                }
            }
        }
    }

    fn perm(&mut self, tasks: Option<&Spanned<Person>>, admin: Option<&Spanned<Person>>) {
        if tasks.is_none() && admin.is_none() {
            return;
        }
        self.text.push_str("\tperm {\n");
        for (name, person) in [("task", tasks), ("admin", admin)] {
            let Some(Spanned { value: person, .. }) = person else { continue };
            let _ = writeln!(self.text, "\t\t{name} {{");
            let pairs = [
                ("uid", person.user.as_ref().map(ToString::to_string)),
                ("gid", person.group.as_ref().map(ToString::to_string)),
                ("dperm", person.directory_mode.map(|mode| mode.to_string())),
                ("fperm", person.mode.map(|mode| mode.to_string())),
            ];
            for (name, value) in pairs {
                value.iter().for_each(|value| self.pair("\t\t\t", name, value));
            }
            self.text.push_str("\t\t}\n");
        }
        self.text.push_str("\t}\n");
    }

    fn pair(&mut self, indent: &str, name: &str, value: &str) {
        match (word(name), word(value)) {
            (Some(name), Some(value)) => {
                let _ = writeln!(self.text, "{indent}{name} = {value};");
            }
            _ => self.lose(
                indent,
                Diagnostic::warning(format!("cgconfig.conf has no way to write {name}={value}")),
            ),
        }
    }
}

/// A word of cgconfig.conf as it is, or in quotes; `None` if it can't be written, since there is no way to write a
/// quote.
pub fn word(text: &str) -> Option<String> {
    // signs over several lines would look like a quote that was forgotten
    let signs = text.contains('\n') && text.contains([';', '{', '}']);
    match !text.is_empty() && text.chars().all(is_bare) {
        true => Some(text.to_owned()),
        false => (!text.contains('"') && !signs).then(|| format!("\"{text}\"")),
    }
}
