//! The pieces of TOML that values are written with.

use toml_writer::TomlWrite as _;

/// Keys with their values, as TOML.
pub(crate) type Pairs = Vec<(&'static str, String)>;

pub(crate) fn text(text: &str) -> String {
    let mut out = String::new();
    let _ = out.value(text); // a String takes everything
    out
}

pub(crate) fn toml_key(name: &str) -> String {
    let mut out = String::new();
    let _ = out.key(name);
    out
}

pub(crate) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(", "))
}

pub(crate) fn table(pairs: &Pairs) -> String {
    match pairs.as_slice() {
        [] => "{}".to_owned(),
        pairs => {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}
