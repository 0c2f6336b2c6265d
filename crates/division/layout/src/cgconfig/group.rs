//! Groups and templates: permissions, controllers and their settings.

use settings::{Codec, Controller, Kind, NamedSetting, Version, Via};
use units::group_path;

use super::Reader;
use super::grammar::{Block, Item, What};
use crate::collect::{Collector, Twice};
use crate::desired::{Demands, Group, Template};
use crate::diagnostic::Diagnostic;
use crate::merge::Draft;
use crate::names::cut;
use crate::needs::needed;
use crate::origin::{Origin, Spanned};
use crate::pattern::NamePattern;
use crate::people::{Account, Mode, Person};
use crate::rule::{Subsystem, no_controller};
use crate::words::Token;

/// Controllers of kernels before 3.0 that old files still name.
const GONE: [&str; 2] = ["ns", "debug"];

/// A group or template so far.
pub(super) struct Body {
    collector: Collector,
    controllers: Vec<Spanned<Subsystem>>,
    tasks: Option<Spanned<Person>>,
    admin: Option<Spanned<Person>>,
    origin: Origin,
}

impl Body {
    pub(super) fn new(origin: Origin) -> Body {
        let collector = Collector::new(Twice::LastCounts);
        Body { collector, controllers: Vec::new(), tasks: None, admin: None, origin }
    }

    /// Who may do what; the collector keeps the rest.
    pub(super) fn people(&mut self) -> (&mut Option<Spanned<Person>>, &mut Option<Spanned<Person>>) {
        (&mut self.tasks, &mut self.admin)
    }

    fn finish(self) -> (Demands, Origin) {
        let mut demands = self.collector.finish();
        let needed = needed(&demands);
        let more = |subsystem: &Spanned<Subsystem>| match subsystem.value {
            Subsystem::Controller(controller) => !needed.contains(&controller),
            Subsystem::Named(_) => true,
        };
        demands.controllers = self.controllers.into_iter().filter(more).collect();
        (Demands { tasks: self.tasks, admin: self.admin, only_named: true, ..demands }, self.origin)
    }
}

impl<'r> Reader<'r> {
    pub(super) fn group(&mut self, keyword: Token<'r>) {
        let Some(token) = self.section_name(keyword) else { return };
        let Some(text) = token.word() else { return };
        let origin = self.grammar.origin(token);
        let what = What::Named("group", text);
        let Some(block) = self.grammar.open(what, token, self.report) else {
            self.grammar.skip_section();
            return;
        };
        let index = match crate::pattern::group_name(text) {
            Ok(name) => {
                let next = self.groups.len();
                let index = *self.group_index.entry(name.clone()).or_insert(next);
                if index == next {
                    self.groups.push((name, Body::new(origin)));
                }
                index
            }
            Err(error) => {
                let error = Diagnostic::error(error.to_string()).at(origin.clone()).hint(error.hint());
                self.report.push(error);
                // read on, to report errors in it too
                self.body(&block, &mut Body::new(origin));
                return;
            }
        };
        let empty = Body::new(self.groups[index].1.origin.clone());
        let mut body = std::mem::replace(&mut self.groups[index].1, empty);
        self.body(&block, &mut body);
        self.groups[index].1 = body;
    }

    pub(super) fn template(&mut self, keyword: Token<'r>) {
        let Some(token) = self.section_name(keyword) else { return };
        let Some(text) = token.word() else { return };
        let origin = self.grammar.origin(token);
        let what = What::Named("template", text);
        let Some(block) = self.grammar.open(what, token, self.report) else {
            self.grammar.skip_section();
            return;
        };
        let mut body = Body::new(origin.clone());
        let name = match NamePattern::new(without_slashes(text)) {
            Ok(name) => Some(name),
            Err(error) => {
                let error = Diagnostic::error(error.to_string()).at(origin);
                self.report.push(error.hint("codes are %u %U %g %G %p %P; \\% is a per cent sign"));
                None
            }
        };
        let index = name.as_ref().and_then(|name| self.template_index.get(name)).copied();
        if let Some(index) = index {
            let empty = Body::new(body.origin.clone());
            body = std::mem::replace(&mut self.templates[index].1, empty);
        }
        self.body(&block, &mut body);
        match (index, name) {
            (Some(index), _) => self.templates[index].1 = body,
            (None, Some(name)) => {
                self.template_index.insert(name.clone(), self.templates.len());
                self.templates.push((name, body));
            }
            (None, None) => {}
        }
    }

    fn section_name(&mut self, keyword: Token<'r>) -> Option<Token<'r>> {
        match self.grammar.peek() {
            Some(token @ (Token::Bare(_) | Token::Quoted(_))) => {
                self.grammar.next();
                Some(token)
            }
            other => {
                let message = format!(
                    "expected a name after '{}', found {}",
                    keyword.text(),
                    super::grammar::found(other)
                );
                let origin = self.grammar.origin(other.unwrap_or(keyword));
                self.report.push(Diagnostic::error(message).at(origin));
                self.grammar.skip_section();
                None
            }
        }
    }

    fn body(&mut self, block: &Block<'r>, body: &mut Body) {
        while let Item::Word(token) = self.grammar.item(block, self.report) {
            match token {
                Token::Bare("perm") => {
                    if let Some(block) = self.grammar.open(What::Plain("perm"), token, self.report) {
                        self.perm(&block, body);
                    } else {
                        self.grammar.skip_statement();
                    }
                }
                token => self.controller(token, body),
            }
        }
    }

    fn controller(&mut self, token: Token<'r>, body: &mut Body) {
        let name = token.text();
        let origin = self.grammar.origin(token);
        let subsystem = self.subsystem(name, &origin);
        let what = What::Named("controller", name);
        let Some(block) = self.grammar.open(what, token, self.report) else {
            self.grammar.skip_statement();
            return;
        };
        if let Some(subsystem) = &subsystem
            && body.controllers.iter().all(|other| other.value != *subsystem)
        {
            body.controllers.push(Spanned::new(subsystem.clone(), origin));
        }
        while let Item::Word(name) = self.grammar.item(&block, self.report) {
            let Some(value) = self.grammar.value(name, self.report) else { continue };
            self.setting(name, value, subsystem.as_ref(), body);
        }
    }

    /// The controller of that name; reported if there is none.
    pub(super) fn subsystem(&mut self, name: &str, origin: &Origin) -> Option<Subsystem> {
        let found = Subsystem::new(name);
        if found.is_none() {
            let diagnostic = if GONE.contains(&name) {
                let warning = Diagnostic::warning(format!("no kernel since 3.0 has a controller '{name}'"));
                warning.hint("it is left out")
            } else {
                let (message, hint) = no_controller(name);
                Diagnostic::error(message).hint(hint)
            };
            self.report.push(diagnostic.at(origin.clone()));
        }
        found
    }

    fn setting(&mut self, name: Token<'r>, value: Token<'r>, of: Option<&Subsystem>, body: &mut Body) {
        let (name, value) = (name.text(), value.text());
        let (name_at, value_at) = (self.grammar.origin_of(name), self.grammar.origin_of(value));
        let Some(found) = self.names.find(name) else {
            self.names.unknown(name, name_at, self.report);
            return;
        };
        if let Some(Subsystem::Controller(controller)) = of
            && !belongs(&found, *controller)
        {
            let warning =
                Diagnostic::warning(format!("'{name}' is no setting of controller '{}'", shown(*controller)));
            self.report.push(warning.at(name_at.clone()).hint("it is set where it belongs"));
        }
        // cgsnapshot writes "" of a file without a line, as of limits for no device, and of one that can't be read
        if value.trim().is_empty() {
            return;
        }
        if found.setting.is_counter() {
            self.leave_out_counter(name, name_at);
            return;
        }
        let value = if is_printed_unlimited(&found, value) { "-1" } else { value };
        let value = line_in_printed(&found, value).unwrap_or(value);
        body.collector.assign(found, value, name_at, value_at, self.report);
    }

    /// Said once: cgsnapshot writes several for each group.
    fn leave_out_counter(&mut self, name: &str, at: Origin) {
        if !std::mem::replace(&mut self.counter_reported, true) {
            let warning = Diagnostic::warning(format!("'{name}' is a counter and no limit"));
            self.report.push(warning.at(at).hint("counters are left out; cgset -r NAME=0 resets one"));
        }
    }

    /// `task { uid gid fperm } admin { uid gid dperm fperm }`, in either order, each once.
    pub(super) fn perm(&mut self, block: &Block<'r>, body: &mut Body) {
        while let Item::Word(token) = self.grammar.item(block, self.report) {
            let admin = match token.text() {
                "task" => false,
                "admin" => true,
                other => {
                    let error = Diagnostic::error(format!("unknown name '{}' in 'perm'", cut(other)));
                    self.report.push(error.at(self.grammar.origin(token)).hint("known are task and admin"));
                    if let Some(block) = self.grammar.open(What::It, token, self.report) {
                        self.skip_block(&block);
                    }
                    continue;
                }
            };
            let what = What::Plain(token.text());
            let Some(block) = self.grammar.open(what, token, self.report) else {
                self.grammar.skip_statement();
                continue;
            };
            let person = Spanned::new(self.person(&block, admin), self.grammar.origin(token));
            let (tasks, admins) = body.people();
            let slot = if admin { admins } else { tasks };
            if let Some(before) = slot.replace(person) {
                let warning = Diagnostic::warning(format!("'{}' is given twice", token.text()));
                let warning = warning.at(self.grammar.origin(token)).also(before.origin, "first given here");
                self.report.push(warning.hint("the later one counts"));
            }
        }
    }

    pub(super) fn skip_block(&mut self, block: &Block<'r>) {
        while let Item::Word(name) = self.grammar.item(block, self.report) {
            self.grammar.value(name, self.report);
        }
    }

    fn person(&mut self, block: &Block<'r>, admin: bool) -> Person {
        let mut person = Person { all_files: admin, ..Person::default() };
        while let Item::Word(name) = self.grammar.item(block, self.report) {
            let Some(value) = self.grammar.value(name, self.report) else { continue };
            let (text, origin) = (value.text(), self.grammar.origin_of(value.text()));
            match name.text() {
                "uid" => person.user = self.account(text, origin),
                "gid" => person.group = self.account(text, origin),
                "fperm" => person.mode = self.mode(text, origin),
                "dperm" if admin => person.directory_mode = self.mode(text, origin),
                other => {
                    let known = if admin { "uid, gid, dperm and fperm" } else { "uid, gid and fperm" };
                    let error = Diagnostic::error(format!("unknown name '{}' in 'perm'", cut(other)));
                    let error = error.at(self.grammar.origin(name));
                    self.report.push(error.hint(format!("known are {known}")));
                }
            }
        }
        person
    }

    fn account(&mut self, text: &str, origin: Origin) -> Option<Account> {
        let account = Account::new(text);
        if account.is_none() {
            let error = Diagnostic::error(format!("'{}' is no name or number of a user or group", cut(text)));
            self.report.push(error.at(origin).hint("such as oracle or 1001"));
        }
        account
    }

    fn mode(&mut self, text: &str, origin: Origin) -> Option<Mode> {
        let mode = Mode::new(text);
        if mode.is_none() {
            let error = Diagnostic::error(format!("'{}' is no file mode", cut(text))).at(origin);
            self.report.push(error.hint("up to four octal digits, such as 775"));
        }
        mode
    }

    /// What all sections together say.
    pub(super) fn finish(mut self) -> Draft {
        let prefix = self.namespace_prefix();
        for (name, body) in std::mem::take(&mut self.groups) {
            let name = match &prefix {
                Some(prefix) if !name.is_from_root() => {
                    settings::GroupName::new(&group_path::join(prefix, name.path())).unwrap_or(name)
                }
                _ => name,
            };
            let (demands, origin) = body.finish();
            self.draft.desired.groups.push(Group { name, demands, matches: Vec::new(), origin });
        }
        let has_defaults = self.draft.sections.iter().any(|(section, _)| *section == "defaults");
        for (name, body) in std::mem::take(&mut self.templates) {
            let (mut demands, origin) = body.finish();
            if has_defaults {
                // libcgroup's defaults do not hold for templates: these belong to root unless they say otherwise
                let root = || Some(Spanned::new(Person::root(), origin.clone()));
                demands.tasks = demands.tasks.or_else(root);
                demands.admin = demands.admin.or_else(root);
            }
            self.draft.desired.templates.push(Template { name, demands, origin });
        }
        self.draft
    }
}

/// Names begin at our base, with or without libcgroup's slash.
pub(super) fn without_slashes(name: &str) -> &str {
    match name.trim_matches('/') {
        "" => name,
        name => name,
    }
}

/// v1 prints "no limit" as the largest number, rounded down to whole pages of up to 1 GiB, and `cgsnapshot` writes what
/// it prints (`mm/page_counter.c`, PAGE_COUNTER_MAX).
fn is_printed_unlimited(found: &NamedSetting, value: &str) -> bool {
    const LOWEST: u64 = i64::MAX as u64 - (1 << 30);
    let of_v1 = matches!(found.via, Via::File { version: Version::V1, .. });
    of_v1 && found.setting.kind == Kind::Bytes && value.parse::<u64>().is_ok_and(|number| number > LOWEST)
}

/// v1 prints `memory.oom_control` as three lines, of which one can be set, and `cgsnapshot` writes all of them.
fn line_in_printed<'v>(found: &NamedSetting, value: &'v str) -> Option<&'v str> {
    let Codec::FlagInStat(line) = found.side(Version::V1).binding()?.codec else { return None };
    value.lines().find_map(|one| Some(one.trim().strip_prefix(line)?.trim()))
}

fn belongs(found: &NamedSetting, controller: Controller) -> bool {
    // these two are mounted together almost everywhere
    let same = |one: Controller| match (one, controller) {
        (Controller::Core, _) => true,
        (Controller::Cpu | Controller::Cpuacct, Controller::Cpu | Controller::Cpuacct) => true,
        (one, other) => one == other,
    };
    let of_sides = [Version::V1, Version::V2].into_iter().filter_map(|version| found.side(version).binding());
    same(found.setting.controller) || of_sides.into_iter().any(|binding| same(binding.controller))
}

fn shown(controller: Controller) -> &'static str {
    controller.name(Version::V1).unwrap_or("core")
}
