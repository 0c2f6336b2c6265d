//! The pieces of TOML that the writers of our own form put together.

use toml_writer::TomlWrite as _;

use crate::people::Account;

/// Keys with their values, as TOML.
pub(super) type Pairs = Vec<(&'static str, String)>;

pub(super) fn text(text: &str) -> String {
    let mut out = String::new();
    let _ = out.value(text); // a String takes everything
    out
}

pub(super) fn key(name: &str) -> String {
    let mut out = String::new();
    let _ = out.key(name);
    out
}

pub(super) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(", "))
}

pub(super) fn table(pairs: &Pairs) -> String {
    match pairs.as_slice() {
        [] => "{}".to_owned(),
        pairs => {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

pub(super) fn account(account: &Account) -> String {
    match account {
        Account::Name(name) => text(name),
        Account::Id(id) => id.to_string(),
    }
}
