//! What a process must be like: the keys of `match` and of rules.

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::diagnostic::Diagnostic;
use crate::glob::{Expression, Glob};
use crate::matcher::{Condition, Matcher, Process, Who};
use crate::names::cut;
use crate::origin::{Origin, Spanned};
use crate::people::Account;
use crate::reader::{
    Keyed as _, Reader, Said, Takes, Value, array, did_you_mean, entries, keyed, one_or_more, takes_text,
    text, toml_key,
};
use crate::role::Role;

keyed! {
    /// What a process must be like.
    #[derive(Default)]
    pub(crate) struct MatchTable in "in 'match'" {
        /// Whose the process is, by name or number; "*" is anyone.
        #[takes(r#""oracle" · 1001 · "*""#)]
        user: Option<Said<Who>>,
        /// The user is in this group of the system, primary or listed; instead of `user`.
        #[takes(r#""dba""#)]
        group: Option<Said<Account>>,
        /// The program: a path, or a name; * is any text.
        #[takes(r#""/usr/bin/fio" · "fio" · "ora_*" · "*/bin/ora*""#)]
        process: Option<Process>,
        /// A regular expression that occurs in the command line, words parted by spaces.
        #[takes(r#""postgres: .*(autovacuum|archiver)" · '--role=(db|web)\b'"#)]
        command: Option<Expression>,
        /// What it does for its database, by its title (docs/roles.md): one role or several.
        #[takes(r#""postgresql.autovacuum" · ["postgresql.archiver", "postgresql.walsender"]"#)]
        role: Option<Roles>,
        /// The program of its parent, as `process`.
        #[takes(r#""cron""#)]
        parent: Option<Process>,
        /// The program of any that it descends from, as `process`.
        #[takes(r#""/usr/sbin/sshd""#)]
        ancestor: Option<Process>,
        /// The program of its session's leader (setsid(2): mostly a login shell or daemon), as `process`.
        #[takes(r#""bash""#)]
        session: Option<Process>,
        /// The unit of systemd that it is in; * is any text. Processes of a service are only moved into groups in it (docs/roles.md): elsewhere
        /// systemd would lose them.
        #[takes(r#""session-*.scope""#)]
        unit: Option<Glob>,
        /// The container that it is in, by number, or by name where the group has that; * is any text.
        #[takes(r#""*" · "4f5e6d*""#)]
        container: Option<Glob>,
        /// The group that it is in already, in any hierarchy; with a slash before it from the hierarchy's root; * is any text.
        #[takes(r#""batch/*" · "/user.slice/*""#)]
        present as "in": Option<Glob>,
        /// At least one of these fits.
        #[takes(r#"[{ process = "fio" }, { parent = "fio" }]"#)]
        any: Option<Inner>,
        /// None of these fits.
        #[takes(r#"{ user = "root" } · [{ process = "sshd" }, { unit = "cron.service" }]"#)]
        not: Option<Inner>,
        /// Variables of the environment that its program began with; * is any text.
        #[takes(r#"{ ORACLE_SID = "prod*" }"#)]
        environment: Variables,
        /// The program never runs an instruction outside its group: the daemon delays its start until it has been moved.
        /// `process` is then a path, and the rule has no condition that is known only after the start (`command`,
        /// `role`, `environment`).
        #[takes("true")]
        pub(super) strict: Option<Spanned<()>>,
    }
}

impl From<&Matcher> for MatchTable {
    fn from(matcher: &Matcher) -> MatchTable {
        let Matcher { who, process, also, strict, .. } = matcher.clone();
        let mut table = MatchTable { process, ..MatchTable::default() };
        table.strict = strict.then(|| Spanned::new((), matcher.origin.clone()));
        match who {
            Who::GroupMember(group) => table.group = Some(Said::of(group)),
            Who::Anyone if table.process.is_some() || !also.is_empty() => {}
            who => table.user = Some(Said::of(who)),
        }
        for condition in also {
            match condition {
                Condition::Command(expression) => table.command = Some(expression),
                Condition::Role(roles) => table.role = Some(Roles(roles)),
                Condition::Parent(process) => table.parent = Some(process),
                Condition::Ancestor(process) => table.ancestor = Some(process),
                Condition::Session(process) => table.session = Some(process),
                Condition::Unit(glob) => table.unit = Some(glob),
                // said by the group
                Condition::OfUnit(_) => {}
                Condition::Container(glob) => table.container = Some(glob),
                Condition::Environment { name, value } => table.environment.0.push((name, value)),
                Condition::Present(glob) => table.present = Some(glob),
                Condition::Any(inner) => table.any = Some(Inner(inner)),
                Condition::Not(inner) => table.not = Some(Inner(inner)),
            }
        }
        table
    }
}

impl MatchTable {
    fn conditions(self) -> Vec<Condition> {
        let plain = [
            self.command.map(Condition::Command),
            self.role.map(|roles| Condition::Role(roles.0)),
            self.parent.map(Condition::Parent),
            self.ancestor.map(Condition::Ancestor),
            self.session.map(Condition::Session),
            self.unit.map(Condition::Unit),
            self.container.map(Condition::Container),
            self.present.map(Condition::Present),
            self.any.map(|inner| Condition::Any(inner.0)),
            self.not.map(|inner| Condition::Not(inner.0)),
        ];
        let variables = self.environment.0.into_iter();
        let variables = variables.map(|(name, value)| Condition::Environment { name, value });
        plain.into_iter().flatten().chain(variables).collect()
    }
}

impl Takes for Matcher {
    fn schema() -> Json {
        json!({ "$ref": "#/$defs/match" })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Matcher> {
        if reader.report.is_hopeless() {
            return None;
        }
        let before = reader.report.errors();
        let table = MatchTable::read(reader, value)?;
        reader.matcher_of(value, table, before)
    }

    fn write(&self) -> Option<String> {
        MatchTable::from(self).write()
    }
}

takes_text!(Process, "a program's path or name", |text| {
    let message = || (format!("'{}' is no program", cut(text)), "a path or a name; * is any text".to_owned());
    Process::pattern(text).ok_or_else(message)
});

takes_text!(Expression, "a regular expression", |text| {
    let hint = "a backslash before . * + ? ( ) [ ] { } | ^ $ takes it as it is";
    let expression = Expression::new(text)
        .map_err(|error| (format!("'{}' is no regular expression: {error}", cut(text)), hint.to_owned()))?;
    // as an empty variable in a script that writes the file
    if expression.is_in("") {
        let hint = "a part that only the meant ones have; leave it out if other conditions say enough";
        return Err((format!("'{}' occurs in every command line", cut(text)), hint.to_owned()));
    }
    Ok(expression)
});

/// Roles, never none.
pub(super) struct Roles(Vec<Role>);

impl Takes for Roles {
    fn schema() -> Json {
        let names: Vec<&str> = Role::all().map(|(name, _)| name).collect();
        one_or_more(json!({ "enum": names }))
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Roles> {
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            return reader.refuse(value, "no role is given".to_owned(), "such as \"postgresql.autovacuum\"");
        }
        let mut roles = Vec::new();
        for (text, value) in reader.texts(value, "a role, such as \"postgresql.autovacuum\"") {
            match Role::new(text) {
                Some(role) if roles.contains(&role) => {}
                Some(role) => roles.push(role),
                None => {
                    let known: Vec<&str> = Role::all().map(|(name, _)| name).collect();
                    let text = cut(text);
                    reader.wrong(value, format!("'{text}' is no role"), &did_you_mean(&text, &known));
                }
            }
        }
        (!roles.is_empty()).then_some(Roles(roles))
    }

    fn write(&self) -> Option<String> {
        match self.0.as_slice() {
            [role] => Some(text(role.name())),
            roles => Some(array(&roles.iter().map(|role| text(role.name())).collect::<Vec<_>>())),
        }
    }
}

impl Takes for Glob {
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Glob> {
        let what = match &reader.places.text()[reader.key.clone()] {
            "unit" => "a unit's name",
            "container" => "a container's number or name",
            "in" => "a group's name",
            _ => "a variable's value",
        };
        let text = reader.text(value, what)?;
        let wrong = || reader.wrong(value, format!("'{}' is not {what}", cut(text)), "* alone is any");
        Glob::new(text).ok_or_else(wrong).ok()
    }

    fn write(&self) -> Option<String> {
        Some(text(self.as_str()))
    }
}

/// Variables of the environment by name.
#[derive(Default)]
pub(super) struct Variables(Vec<(String, Glob)>);

impl Takes for Variables {
    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": String::schema() })
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Variables> {
        let DeValue::Table(table) = value.get_ref() else {
            return reader.refuse_type(value, "a table of variables, such as { ORACLE_SID = \"prod*\" }");
        };
        let variables = entries(table).into_iter().filter_map(|(name, value)| {
            let name = name.get_ref().to_string();
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("'{}' is no variable's name", cut(&name));
                return reader.refuse(value, message, "such as ORACLE_SID");
            }
            Some((name, Glob::read(reader, value)?))
        });
        Some(Variables(variables.collect()))
    }

    fn write(&self) -> Option<String> {
        let pair = |(name, value): &(String, Glob)| format!("{} = {}", toml_key(name), text(value.as_str()));
        let pairs: Vec<String> = self.0.iter().map(pair).collect();
        (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
    }
}

/// The matchers that a condition is made of, never none.
pub(super) struct Inner(Vec<Matcher>);

impl Takes for Inner {
    fn schema() -> Json {
        one_or_more(Matcher::schema())
    }

    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Inner> {
        let tables = reader.tables(value, MatchTable::KEYS);
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            reader.wrong(value, "nothing to match is given".to_owned(), "such as [{ process = \"fio\" }]");
        }
        let mut inner: Vec<Matcher> = Vec::new();
        for table in tables {
            let matcher = Matcher::read(reader, table);
            if matcher.as_ref().is_some_and(|matcher| matcher.strict) {
                reader.wrong(table, "strict is of a whole rule".to_owned(), "put it beside any or not");
            }
            inner.extend(matcher);
        }
        (!inner.is_empty()).then_some(Inner(inner))
    }

    fn write(&self) -> Option<String> {
        Some(array(&self.0.iter().filter_map(Takes::write).collect::<Vec<_>>()))
    }
}

impl Reader<'_> {
    /// The matcher in a table; `before`: the number of errors before it.
    pub(super) fn matcher_of(
        &mut self,
        value: &Value<'_>,
        table: MatchTable,
        before: usize,
    ) -> Option<Matcher> {
        let MatchTable { user, group, process, strict, .. } = &table;
        if let (Some(user), Some(group)) = (user, group) {
            let place = (&user.key).max(&group.key).clone();
            let error = Diagnostic::error("'user' and 'group' don't go together").at(place);
            self.error(error.hint("write two entries if either will do"));
        }
        let group = group.clone().and_then(|group| group.value).map(Who::GroupMember);
        let (who, process) = (user.clone().and_then(|user| user.value).or(group), process.clone());
        let (strict, also) = (strict.clone(), table.conditions());
        if let Some(strict) = &strict {
            self.refuse_undelayable(&strict.origin, process.as_ref(), &also);
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
    fn refuse_undelayable(&mut self, strict: &Origin, process: Option<&Process>, also: &[Condition]) {
        if !matches!(process, Some(Process::Path(_))) {
            let error = Diagnostic::error("only the start of a certain program can wait for its group");
            self.error(error.at(strict.clone()).hint("add process = \"/path/of/the/program\""));
        }
        if also.iter().any(Condition::is_of_running) {
            let error = Diagnostic::error("a strict rule can only ask what is known before the start");
            let hint = "command, role and environment are not, as parts of any and not either";
            self.error(error.at(strict.clone()).hint(hint));
        }
    }
}
