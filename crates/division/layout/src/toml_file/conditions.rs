//! What else a process must be like: the keys of `match` and of rules beside user, group and program.

use toml::de::DeValue;

use crate::glob::{Expression, Glob};
use crate::keys;
use crate::matcher::{Condition, Matcher};
use crate::names::cut;
use crate::reader::{Reader, Value, entries};

impl Reader<'_> {
    /// The conditions of one key, if it is such a key.
    pub(super) fn condition(&mut self, key: &str, value: &Value<'_>, into: &mut Vec<Condition>) {
        let one = match key {
            "command" => self.expression(value).map(Condition::Command),
            "parent" => self.process(value).map(Condition::Parent),
            "ancestor" => self.process(value).map(Condition::Ancestor),
            "session" => self.process(value).map(Condition::Session),
            "unit" => self.glob(value, "a unit's name").map(Condition::Unit),
            "container" => self.glob(value, "a container's number or name").map(Condition::Container),
            "in" => self.glob(value, "a group's name").map(Condition::Present),
            "any" => self.inner(value).map(Condition::Any),
            "not" => self.inner(value).map(Condition::Not),
            "environment" => {
                into.extend(self.variables(value));
                None
            }
            _ => None,
        };
        into.extend(one);
    }

    fn expression(&mut self, value: &Value<'_>) -> Option<Expression> {
        let text = self.text(value, "a regular expression")?;
        match Expression::new(text) {
            Ok(expression) => Some(expression),
            Err(error) => {
                let hint = "a backslash before . * + ? ( ) [ ] { } | ^ $ takes it as it is";
                self.refuse(value, format!("'{}' is no regular expression: {error}", cut(text)), hint)
            }
        }
    }

    fn glob(&mut self, value: &Value<'_>, what: &str) -> Option<Glob> {
        let text = self.text(value, what)?;
        let glob = Glob::new(text);
        if glob.is_none() {
            self.wrong(value, format!("'{}' is not {what}", cut(text)), "* alone is any");
        }
        glob
    }

    fn variables(&mut self, value: &Value<'_>) -> Vec<Condition> {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(value, "a table of variables, such as { ORACLE_SID = \"prod*\" }");
            return Vec::new();
        };
        let mut conditions = Vec::new();
        for (name, value) in entries(table) {
            let name = name.get_ref().to_string();
            if name.is_empty() || name.contains(['=', '\0']) {
                self.wrong(value, format!("'{}' is no variable's name", cut(&name)), "such as ORACLE_SID");
                continue;
            }
            conditions.extend(
                self.glob(value, "a variable's value").map(|value| Condition::Environment { name, value }),
            );
        }
        conditions
    }

    fn inner(&mut self, value: &Value<'_>) -> Option<Vec<Matcher>> {
        let tables = self.tables(value, keys::MATCH);
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            self.wrong(value, "nothing to match is given".to_owned(), "such as [{ process = \"fio\" }]");
        }
        let mut inner: Vec<Matcher> = Vec::new();
        for table in tables {
            let matcher = self.matcher(table);
            if matcher.as_ref().is_some_and(|matcher| matcher.strict) {
                self.wrong(table, "strict is of a whole rule".to_owned(), "put it beside any or not");
            }
            inner.extend(matcher);
        }
        (!inner.is_empty()).then_some(inner)
    }
}
