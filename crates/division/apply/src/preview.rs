//! What [`crate::set`] would write, beside what the files hold now, and what would put it back. Writes nothing.

use std::path::PathBuf;

use kernel::Host;
use plan::{Ask, Place};
use settings::Value;

use crate::{
    Error,
    reading::{self, content, readable, seat, uses_device_program},
};

/// A write that is not done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The file.
    pub path: PathBuf,
    /// What it holds now, of a file with a line per device that line; `None` if that can't be read.
    pub before: Option<String>,
    /// What would be written.
    pub text: String,
    /// Why it comes when it comes, where that matters.
    pub why: Option<&'static str>,
}

/// The writes of [`crate::set`], in their order.
///
/// # Errors
/// As [`crate::set`] before it writes anything.
pub fn preview(host: &Host, asks: &[Ask]) -> Result<Vec<Planned>, Error> {
    for ask in asks {
        let setting = (ask.found.setting.name, ask.found.show(&ask.value));
        kernel::refuse_foreign(&ask.group, kernel::Change::Settings(&[setting]))?;
    }
    let (programs, files): (Vec<&Ask>, Vec<&Ask>) =
        asks.iter().partition(|ask| uses_device_program(&ask.found, ask.place.version));
    let files: Vec<Ask> = files.into_iter().cloned().collect();
    let writes = plan::writes(&files, &|place: &Place, file| content(host, place, file))?;
    let mut planned: Vec<Planned> = writes
        .iter()
        .map(|write| {
            let text = write.text.trim_end().to_owned();
            let actual = content(host, &write.place, &write.file);
            let before = actual.map(|actual| match write.is_of_line() {
                true => line_of(&actual, &text),
                false => actual.trim_end().to_owned(),
            });
            Planned {
                path: seat(host, &write.place).directory().join(&write.file),
                before,
                text,
                why: write.why,
            }
        })
        .collect();
    planned.extend(programs.into_iter().map(|ask| Planned {
        path: seat(host, &ask.place).directory().join(ask.found.setting.name),
        before: None,
        text: ask.value.to_string(),
        why: None,
    }));
    Ok(planned)
}

/// The line of the same device or name as the one that is to be written; empty if there is none yet.
fn line_of(actual: &str, text: &str) -> String {
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let same = actual.lines().find(|line| name(line) == name(text));
    same.unwrap_or_default().to_owned()
}

/// The requests that would roll these back, as things are now. What can't be read can't be rolled back and is not among
/// them.
pub fn inverse(host: &Host, asks: &[Ask]) -> Vec<Ask> {
    asks.iter().flat_map(|ask| Before::of(host, ask).restoring(ask)).collect()
}

/// What has to be known to roll a request back.
pub(crate) struct Before {
    /// The setting's value; of device rules, the list.
    pub value: Option<Value>,
    /// What else the kernel changes along with it: an idle group loses its weight.
    along: Vec<Ask>,
}

impl Before {
    pub(crate) fn of(host: &Host, ask: &Ask) -> Before {
        let other = |name: &str| {
            let found = settings::lookup(name)?;
            let value = reading::value(host, &ask.group, &found, &ask.place).ok()?;
            Some(Ask { found, value, ..ask.clone() })
        };
        match ask.found.setting.name {
            "devices.allow" | "devices.deny" => {
                Before { value: other("devices.list").map(|list| list.value), along: Vec::new() }
            }
            "cpu.idle" => {
                Before { value: readable(host, ask), along: other("cpu.weight").into_iter().collect() }
            }
            _ => Before { value: readable(host, ask), along: Vec::new() },
        }
    }

    /// The requests that roll this one back; none if the earlier value is not known.
    pub(crate) fn restoring(&self, ask: &Ask) -> Vec<Ask> {
        let Some(value) = &self.value else { return Vec::new() };
        let values = plan::restoring(&ask.found, &ask.value, value).into_iter();
        let asks = values.map(|(found, value)| Ask { found, value, ..ask.clone() });
        asks.chain(self.along.iter().cloned()).collect()
    }
}
