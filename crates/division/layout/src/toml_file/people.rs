//! Users, groups of the system and file modes.

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::matcher::Who;
use crate::names::cut;
use crate::people::{Account, Mode};
use crate::reader::{Reader, Takes, Value, text};

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

impl Takes for Who {
    fn schema() -> Json {
        Account::schema()
    }

    /// A user, `*`, or `@group` as cgrules.conf writes it.
    fn read(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Who> {
        if let DeValue::String(text) = value.get_ref() {
            match text.strip_prefix('@') {
                None if text == "*" => return Some(Who::Anyone),
                Some(group) if Account::new(group).is_some() => {
                    return Account::new(group).map(Who::GroupMember);
                }
                _ => {}
            }
        }
        Account::read(reader, value).map(Who::User)
    }

    fn write(&self) -> Option<String> {
        match self {
            Who::Anyone => Some(text("*")),
            Who::User(account) | Who::GroupMember(account) => account.write(),
        }
    }
}
