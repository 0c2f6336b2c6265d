//! libcgroup's cgconfig.conf.

use std::fmt::Write as _;

use settings::{Controller, Facts, GroupName, Version};

use super::writes::{FileText, comment, role_lost, unit_lost, writes};
use super::{Export, without_schedules};
use crate::desired::{Demands, Desired, Systemd};
use crate::diagnostic::Diagnostic;
use crate::needs::needed;
use crate::origin::{Origin, Spanned};
use crate::people::Person;
use crate::rule::Subsystem;
use crate::words::is_bare;

/// A cgconfig.conf for a host with cgroup `version`. CPUs and nodes must be sets: what only a planner can resolve is
/// lost, as is what the file has no words for. Rules go to [`super::to_cgrules`].
pub fn to_cgconfig(desired: &Desired, version: Version, facts: &dyn Facts) -> Export {
    let mut out = Writer { text: String::new(), lost: Vec::new(), version, facts };
    out.mounts(desired);
    desired.systemd.iter().for_each(|systemd| out.systemd(&systemd.value));
    let Desired { defaults, reserve, power, assertions, .. } = desired;
    if defaults.tasks.is_some() || defaults.admin.is_some() {
        out.text.push_str("default {\n");
        out.perm(defaults.tasks.as_ref(), defaults.admin.as_ref());
        out.text.push_str("}\n\n");
    }
    if *reserve != Default::default() {
        out.lose("", Diagnostic::warning("cgconfig.conf has no reserve"));
    }
    if power.saving {
        out.lose("", Diagnostic::warning("cgconfig.conf has no power saving"));
    }
    if *assertions != Default::default() {
        out.lose("", Diagnostic::warning("cgconfig.conf has no assertions about the host"));
    }
    without_schedules(desired).for_each(|warning| out.lose("", warning));
    for group in &desired.groups {
        if let Some(warning) = role_lost(group, desired) {
            out.lose("", warning);
            continue;
        }
        out.section("group", &group.name.to_string(), Some(&group.name), &group.demands, desired);
    }
    for template in &desired.templates {
        out.section("template", &template.name.to_string(), None, &template.demands, desired);
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
        pid.iter().for_each(|pid| self.pair("\t", "pid", &pid.0.to_string()));
        self.text.push_str("}\n\n");
    }

    /// `group`: `None` of a template.
    fn section(
        &mut self,
        keyword: &str,
        name: &str,
        group: Option<&GroupName>,
        demands: &Demands,
        desired: &Desired,
    ) {
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
        self.lost.extend(unit_lost(demands));
        let (controllers, sets) = self.of_groups_above(group, demands, &files, desired);
        let files: Vec<FileText> = sets.into_iter().chain(files).collect();
        let comments: String = self.lost[before..].iter().map(|warning| comment("\t", warning)).collect();
        self.text.push_str(&comments);
        self.controllers(&controllers, &files);
        self.text.push_str("}\n\n");
    }

    /// The group's controllers, and on v1 those of the groups above it, so that what these limit holds for it, too;
    /// with the CPUs and nodes that a cpuset made for that needs.
    fn of_groups_above(
        &self,
        group: Option<&GroupName>,
        demands: &Demands,
        files: &[FileText],
        desired: &Desired,
    ) -> (Vec<Spanned<Subsystem>>, Vec<FileText>) {
        let (mut all, mut sets) = (demands.controllers.clone(), Vec::new());
        let own = needed(demands);
        let asks_for_nothing = own.is_empty() && all.is_empty();
        let Some(name) =
            group.filter(|_| !asks_for_nothing && !demands.only_named && self.version == Version::V1)
        else {
            return (all, sets);
        };
        let is_above = |above: &GroupName| {
            let rest = name.path().strip_prefix(above.path());
            !above.path().is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
        };
        // the nearest first
        let above =
            desired.groups.iter().rev().filter(|group| is_above(&group.name)).map(|group| &group.demands);
        for demands in above {
            let controllers =
                needed(demands).into_iter().filter(|controller| *controller != Controller::Core);
            let named = demands.controllers.iter().map(|named| named.value.clone());
            for value in controllers.map(Subsystem::Controller).chain(named) {
                let is_own = matches!(&value, Subsystem::Controller(name) if own.contains(name));
                if !is_own && all.iter().all(|known| known.value != value) {
                    all.push(Spanned::new(value, Origin::outside_files("<a group above>")));
                }
            }
            // its own requests stay; lost ones are reported where they stand
            let of_above = writes(demands, self.version, self.facts, &mut Vec::new()).into_iter();
            let is_set = |file: &FileText| matches!(file.file.as_str(), "cpuset.cpus" | "cpuset.mems");
            for file in of_above.filter(is_set) {
                if files.iter().chain(&sets).all(|known| known.file != file.file) {
                    sets.push(file);
                }
            }
        }
        let is_filled = !sets.is_empty();
        all.retain(|known| !is_filled || known.value != Subsystem::Controller(Controller::Cpuset));
        (all, sets)
    }

    fn controllers(&mut self, controllers: &[Spanned<Subsystem>], files: &[FileText]) {
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
        for Spanned { value, origin } in controllers {
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
