//! The sections that are no groups: `mount`, `default`, `namespace`, `systemd`.

use super::Reader;
use super::grammar::{Item, What};
use super::group::{Body, without_slashes};
use crate::desired::{Defaults, Mount, Systemd};
use crate::diagnostic::Diagnostic;
use crate::names::cut;
use crate::origin::{Origin, Spanned};
use crate::reader::Number;
use crate::words::Token;

/// Mount options that hierarchies always have.
const ALWAYS_MOUNTED_WITH: [&str; 3] = ["nodev", "nosuid", "noexec"];
/// Others that old files may name (kernel document `admin-guide/cgroup-v1/cgroups.rst`, mount(8)).
const MOUNT_OPTIONS: [&str; 7] =
    ["xattr", "clone_children", "cpuset_v2_mode", "noprefix", "relatime", "ro", "rw"];

impl<'r> Reader<'r> {
    /// The `name = value;` lines of a section; what is wrong is reported and left out.
    fn pairs(&mut self, keyword: Token<'r>) -> Vec<(Token<'r>, Token<'r>)> {
        let mut pairs = Vec::new();
        let what = What::Plain(keyword.text());
        let Some(block) = self.grammar.open(what, keyword, self.report) else {
            self.grammar.skip_section();
            return pairs;
        };
        while let Item::Word(name) = self.grammar.item(&block, self.report) {
            if let Some(value) = self.grammar.value(name, self.report) {
                pairs.push((name, value));
            }
        }
        pairs
    }

    pub(super) fn mount(&mut self, keyword: Token<'r>) {
        for (name, value) in self.pairs(keyword) {
            let path = value.text();
            if !path.starts_with('/') || path.contains(char::is_control) {
                let error = Diagnostic::error(format!("'{}' is no absolute path", cut(path)));
                self.report.push(error.at(self.grammar.origin(value)).hint("such as /cgroup/cpu"));
                continue;
            }
            // a named hierarchy's name may hold a comma
            let names = match name.text().starts_with("name=") {
                true => vec![name.text()],
                false => name.text().split(',').collect(),
            };
            names.into_iter().for_each(|name| self.mount_one(name, path));
        }
    }

    /// One controller of a mount, or a mount option: `"cpu,nodev,noexec" = /cgroup/cpu`.
    fn mount_one(&mut self, name: &'r str, path: &str) {
        let origin = self.grammar.origin_of(name);
        if ALWAYS_MOUNTED_WITH.contains(&name) {
            return;
        }
        if MOUNT_OPTIONS.contains(&name) {
            let warning = Diagnostic::warning(format!("the mount option '{name}' is left out")).at(origin);
            self.report.push(warning.hint("hierarchies are mounted with nodev, nosuid and noexec"));
            return;
        }
        let Some(subsystem) = self.subsystem(name, &origin) else { return };
        let mounts = &mut self.draft.desired.mounts;
        match mounts.iter_mut().find(|mount| mount.subsystem == subsystem) {
            Some(mount) => {
                let before = std::mem::replace(&mut mount.origin, origin.clone());
                path.clone_into(&mut mount.path);
                let warning = Diagnostic::warning(format!("'{}' is given twice", cut(name)));
                let warning = warning.at(origin).also(before, "first given here");
                self.report.push(warning.hint("the later one counts"));
            }
            None => mounts.push(Mount { subsystem, path: path.to_owned(), origin }),
        }
    }

    pub(super) fn default(&mut self, keyword: Token<'r>) {
        let origin = self.grammar.origin(keyword);
        let Some(block) = self.grammar.open(What::Plain("default"), keyword, self.report) else {
            self.grammar.skip_section();
            return;
        };
        let mut body = Body::new(origin.clone());
        while let Item::Word(token) = self.grammar.item(&block, self.report) {
            let perm = token == Token::Bare("perm");
            if !perm {
                let error = Diagnostic::error(format!("unknown name '{}' in 'default'", cut(token.text())));
                self.report.push(error.at(self.grammar.origin(token)).hint("known is perm"));
            }
            match self.grammar.open(What::Plain(token.text()), token, self.report) {
                Some(block) if perm => self.perm(&block, &mut body),
                Some(block) => self.skip_block(&block),
                None => self.grammar.skip_statement(),
            }
        }
        let (tasks, admin) = body.people();
        let defaults = Defaults { tasks: tasks.take(), admin: admin.take(), ..Defaults::default() };
        let sections = &mut self.draft.sections;
        if let Some((_, before)) = sections.iter_mut().find(|(section, _)| *section == "defaults") {
            let warning = Diagnostic::warning("'default' is given twice").at(origin.clone());
            let before = std::mem::replace(before, origin);
            self.report.push(warning.also(before, "first given here").hint("the later one counts"));
        } else {
            sections.push(("defaults", origin));
        }
        self.draft.desired.defaults = defaults;
    }

    pub(super) fn namespace(&mut self, keyword: Token<'r>) {
        for (name, value) in self.pairs(keyword) {
            let origin = self.grammar.origin(name);
            if self.subsystem(name.text(), &origin).is_some() {
                let path = without_slashes(value.text()).to_owned();
                self.namespaces.push((path, self.grammar.origin(value)));
            }
        }
    }

    /// A namespace is a group that all groups of the file are in. libcgroup has one for each controller; ours are the
    /// same for all.
    pub(super) fn namespace_prefix(&mut self) -> Option<String> {
        let (first, rest) = self.namespaces.split_first()?;
        if let Some(other) = rest.iter().find(|other| other.0 != first.0) {
            let message = "a group can't be at different places for different controllers";
            let error =
                Diagnostic::error(message).at(other.1.clone()).also(first.1.clone(), "another place is here");
            self.report.push(error.hint("give all controllers the same namespace"));
            return None;
        }
        if let Err(error) = settings::GroupName::new(&first.0) {
            let error = Diagnostic::error(error.to_string()).at(first.1.clone()).hint(error.hint());
            self.report.push(error);
            return None;
        }
        let warning = Diagnostic::warning(format!(
            "the namespace becomes a group '{}' for all controllers",
            cut(&first.0)
        ));
        let (prefix, warning) = (first.0.clone(), warning.at(first.1.clone()));
        self.report.push(warning.hint("all groups of this file are made in it"));
        Some(prefix)
    }

    pub(super) fn systemd(&mut self, keyword: Token<'r>) {
        let origin = self.grammar.origin(keyword);
        let mut systemd = Systemd::default();
        for (name, value) in self.pairs(keyword) {
            let (text, at) = (value.text(), self.grammar.origin(value));
            match name.text() {
                "slice" => systemd.slice = Some(text.to_owned()),
                "scope" => systemd.scope = Some(text.to_owned()),
                "setdefault" => systemd.set_default = self.yes(text, at),
                "pid" => systemd.pid = self.pid(text, at).map(Number),
                other => {
                    let error = Diagnostic::error(format!("unknown name '{}' in 'systemd'", cut(other)));
                    let error = error.at(self.grammar.origin(name));
                    self.report.push(error.hint("known are slice, scope, setdefault and pid"));
                }
            }
        }
        self.draft.desired.systemd.push(Spanned::new(systemd, origin.clone()));
        let warning = Diagnostic::warning("'systemd' is only for exports").at(origin.clone());
        self.report.push(warning.hint("groups live below a unit that Ringfence asks systemd for"));
    }

    fn yes(&mut self, text: &str, origin: Origin) -> bool {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" | "on" => true,
            "no" | "false" | "0" | "off" => false,
            _ => {
                let error = Diagnostic::error(format!("'{}' is neither yes nor no", cut(text)));
                self.report.push(error.at(origin));
                false
            }
        }
    }

    fn pid(&mut self, text: &str, origin: Origin) -> Option<u32> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let pid = text.parse().ok().filter(|pid| digits && (1..=crate::desired::LARGEST_PID).contains(pid));
        if pid.is_none() {
            self.report.push(Diagnostic::error(format!("'{}' is no process number", cut(text))).at(origin));
        }
        pid
    }
}
