//! Who owns a group's files, which processes belong to it, and the rules.

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::diagnostic::Diagnostic;
use crate::keys;
use crate::matcher::{Condition, Matcher, Process, Who};
use crate::names::cut;
use crate::origin::Origin;
use crate::people::{Account, Mode};
use crate::reader::{Name, Reader, Takes, Value, text};
use crate::rule::{Controllers, Rule, Target};

type Entry<'v, 'i> = (&'v Name<'i>, &'v Value<'i>);

impl Takes for Account {
    fn schema() -> Json {
        json!({ "type": ["integer", "string"] })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Account> {
        let account = match value.get_ref() {
            DeValue::Integer(_) => Account::new(&reader.number(value, 0)?.to_string()),
            DeValue::String(text) => Account::new(text),
            _ => return reader.refuse_type(value, "the name or number of a user or group"),
        };
        if account.is_none() {
            let message = "that is no name or number of a user or group".to_owned();
            reader.wrong(value, message, "such as \"oracle\" or 1001");
        }
        account
    }

    fn write(&self) -> Option<String> {
        match self {
            Account::Name(name) => Some(text(name)),
            Account::Id(id) => Some(id.to_string()),
        }
    }
}

impl Takes for Mode {
    fn schema() -> Json {
        String::schema()
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Mode> {
        if let DeValue::Integer(number) = value.get_ref() {
            let hint = format!("put the octal digits in quotes: \"{}\"", number.as_str());
            return reader.refuse(value, "expected octal digits in a string".to_owned(), &hint);
        }
        let text = reader.text(value, "octal digits in a string, such as \"0664\"")?;
        let mode = Mode::new(text);
        if mode.is_none() {
            let message = format!("'{}' is no file mode", cut(text));
            reader.wrong(value, message, "up to four octal digits, such as \"0664\"");
        }
        mode
    }

    fn write(&self) -> Option<String> {
        Some(text(&self.to_string()))
    }
}

impl Reader<'_> {
    pub(super) fn matcher(&mut self, value: &Value<'_>) -> Option<Matcher> {
        if self.report.is_hopeless() {
            return None;
        }
        let before = self.report.errors();
        let entries = self.table(value, "in 'match'", keys::MATCH)?;
        self.matcher_of(value, &entries, before)
    }

    /// The matcher in a table's entries; `before`: the number of errors before them.
    fn matcher_of(&mut self, value: &Value<'_>, entries: &[Entry<'_, '_>], before: usize) -> Option<Matcher> {
        let (mut who, mut process, mut also, mut strict) = (None, None, Vec::new(), None);
        for (key, value) in entries {
            let this = match &**key.get_ref() {
                "user" => self.user(value),
                "group" => Account::read(self, value).map(Who::GroupMember),
                "process" => {
                    process = self.process(value);
                    continue;
                }
                "strict" => {
                    strict = bool::read(self, value).filter(|strict| *strict).map(|_| *value);
                    continue;
                }
                other => {
                    self.condition(other, value, &mut also);
                    continue;
                }
            };
            if who.is_some() {
                let error = Diagnostic::error("'user' and 'group' don't go together").at(self.origin(key));
                self.error(error.hint("write two entries if either will do"));
            }
            who = this.or(who);
        }
        if let Some(value) = strict {
            self.refuse_undelayable(value, process.as_ref(), &also);
        }
        if self.report.errors() > before {
            return None;
        }
        if who.is_none() && process.is_none() && also.is_empty() {
            let hint = "give user, group or process; user = \"*\" is anyone";
            return self.refuse(value, "nothing to match is given".to_owned(), hint);
        }
        let (who, strict) = (who.unwrap_or(Who::Anyone), strict.is_some());
        Some(Matcher { who, process, also, strict, origin: self.origin(value) })
    }

    /// Refuses a start that can't be delayed, or of which too little is known during the delay.
    fn refuse_undelayable(&mut self, strict: &Value<'_>, process: Option<&Process>, also: &[Condition]) {
        if !matches!(process, Some(Process::Path(_))) {
            let hint = "add process = \"/path/of/the/program\"";
            self.wrong(strict, "only the start of a certain program can wait for its group".to_owned(), hint);
        }
        if also.iter().any(Condition::is_of_running) {
            let hint = "command and environment are not, as parts of any and not either";
            self.wrong(strict, "a strict rule can only ask what is known before the start".to_owned(), hint);
        }
    }

    /// A user, `*`, or `@group` as cgrules.conf writes it.
    fn user(&mut self, value: &Value<'_>) -> Option<Who> {
        if let DeValue::String(text) = value.get_ref() {
            match text.strip_prefix('@') {
                None if text == "*" => return Some(Who::Anyone),
                Some(group) if Account::new(group).is_some() => {
                    return Account::new(group).map(Who::GroupMember);
                }
                _ => {}
            }
        }
        Account::read(self, value).map(Who::User)
    }

    pub(super) fn process(&mut self, value: &Value<'_>) -> Option<Process> {
        let text = self.text(value, "a program's path or name")?;
        let process = Process::pattern(text);
        if process.is_none() {
            let hint = "a path or a name; * is any text";
            self.wrong(value, format!("'{}' is no program", cut(text)), hint);
        }
        process
    }

    pub(super) fn rules(&mut self, value: &Value<'_>) -> Vec<Rule> {
        let tables = self.tables(value, keys::RULE);
        tables.into_iter().filter_map(|value| self.rule(value)).collect()
    }

    fn rule(&mut self, value: &Value<'_>) -> Option<Rule> {
        if self.report.is_hopeless() {
            return None;
        }
        let before = self.report.errors();
        let entries = self.table(value, "in a rule", keys::RULE)?;
        let find =
            |name: &str| entries.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| *value);
        let matcher = self.matcher_of(value, &entries, before);
        let ignore = find("ignore").and_then(|value| bool::read(self, value)).unwrap_or(false);
        let ignore_rt = find("ignore_rt").and_then(|value| bool::read(self, value)).unwrap_or(false);
        let controllers = match find("controllers") {
            Some(value) => self.rule_controllers(value)?,
            None => Controllers::All,
        };
        let targets = match find("to") {
            Some(to) => self.targets(to, controllers),
            None if ignore => Vec::new(),
            None => {
                let hint = "add to = \"a/group\", or ignore = true";
                return self.refuse(value, "the group that such processes go to is missing".to_owned(), hint);
            }
        };
        if let (Some(strict), Some(to)) = (find("strict"), find("to"))
            && matcher.as_ref().is_some_and(|matcher| matcher.strict)
            && targets.iter().any(|target| target.group.name().is_none())
        {
            let error = Diagnostic::error("a strict rule needs a group that exists").at(self.origin(to));
            let hint = "name a group without codes; making one would keep the start waiting";
            self.error(error.also(self.origin(strict), "strict here").hint(hint));
            return None;
        }
        Some(Rule { matcher: matcher?, targets, ignore, ignore_rt })
    }

    fn rule_controllers(&mut self, value: &Value<'_>) -> Option<Controllers> {
        if matches!(value.get_ref(), DeValue::String(text) if text == "*") {
            return Some(Controllers::All);
        }
        let these: Vec<_> = self.controllers(value).into_iter().map(|subsystem| subsystem.value).collect();
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            self.wrong(
                value,
                "the list of controllers is empty".to_owned(),
                "leave it out for all controllers",
            );
        }
        (!these.is_empty()).then_some(Controllers::These(these))
    }

    fn targets(&mut self, value: &Value<'_>, controllers: Controllers) -> Vec<Target> {
        if let DeValue::String(text) = value.get_ref() {
            return self.target(text, controllers, self.places.origin(value.span())).into_iter().collect();
        }
        let tables = self.tables(value, keys::TO);
        let targets = tables.into_iter().filter_map(|value| {
            let entries = self.table(value, "in 'to'", keys::TO)?;
            let mut controllers = controllers.clone();
            let mut group = None;
            for (key, value) in &entries {
                match &**key.get_ref() {
                    "group" => group = Some((self.text(value, "the name of a group")?, *value)),
                    _ => controllers = self.rule_controllers(value)?,
                }
            }
            let Some((text, at)) = group else {
                return self.refuse(value, "no group is given".to_owned(), "such as { group = \"fast\" }");
            };
            self.target(text, controllers, self.places.origin(at.span()))
        });
        targets.collect()
    }

    fn target(&mut self, text: &str, controllers: Controllers, origin: Origin) -> Option<Target> {
        self.pattern(text, origin.clone()).map(|group| Target { controllers, group, origin })
    }
}
