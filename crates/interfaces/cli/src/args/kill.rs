//! The arguments of `kill`.

use clap::Args as ClapArgs;
use signal_hook::low_level::signal_name;

use super::Wait;

#[derive(Debug, ClapArgs)]
pub struct Kill {
    #[command(flatten)]
    pub wait: Wait,
    /// Send this signal, such as TERM or HUP, once to each process, and do not wait
    #[arg(short, long, value_name = "SIGNAL", value_parser = signal, conflicts_with = "timeout")]
    pub signal: Option<i32>,
}

/// A signal by its name, with or without SIG, or by its number.
fn signal(text: &str) -> Result<i32, String> {
    let known = || (1..=31).filter_map(|number| Some((number, signal_name(number)?)));
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let found = known().find(|(number, name)| name[3..] == *bare || number.to_string() == text);
    found.map(|(number, _)| number).ok_or_else(|| {
        let names: Vec<String> = known().map(|(_, name)| name[3..].to_ascii_lowercase()).collect();
        match units::nearest(bare, names.iter().map(String::as_str)).as_slice() {
            [] => "not a signal; kill -l lists them".to_owned(),
            near => format!("not a signal; did you mean {}?", near.join(", ").to_ascii_uppercase()),
        }
    })
}
