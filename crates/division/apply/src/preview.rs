//! What [`crate::set`] would write, beside what the files hold now, and what would put it back. Writes nothing.

use std::path::PathBuf;

use kernel::Host;
use plan::{Place, SettingRequest};
use settings::Value;

use crate::{
    Error,
    reading::{self, content, readable, seat, uses_device_program},
    request::refuse_foreign,
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
pub fn preview(host: &Host, requests: &[SettingRequest]) -> Result<Vec<Planned>, Error> {
    for request in requests {
        refuse_foreign(request)?;
    }
    let (programs, files): (Vec<&SettingRequest>, Vec<&SettingRequest>) =
        requests.iter().partition(|request| uses_device_program(&request.found, request.place.version));
    let files: Vec<SettingRequest> = files.into_iter().cloned().collect();
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
    planned.extend(programs.into_iter().map(|request| Planned {
        path: seat(host, &request.place).directory().join(request.found.setting.name),
        before: None,
        text: request.value.to_string(),
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
pub fn inverse(host: &Host, requests: &[SettingRequest]) -> Vec<SettingRequest> {
    requests.iter().flat_map(|request| Before::of(host, request).restoring(request)).collect()
}

/// What has to be known to roll a request back.
pub(crate) struct Before {
    /// The setting's value; of device rules, the list.
    pub value: Option<Value>,
    /// What else the kernel changes along with it: an idle group loses its weight.
    along: Vec<SettingRequest>,
}

impl Before {
    pub(crate) fn of(host: &Host, request: &SettingRequest) -> Before {
        let other = |name: &str| {
            let found = settings::lookup(name)?;
            let value = reading::value(host, &request.group, &found, &request.place).ok()?;
            Some(SettingRequest { found, value, ..request.clone() })
        };
        match request.found.setting.name {
            "devices.allow" | "devices.deny" => {
                Before { value: other("devices.list").map(|list| list.value), along: Vec::new() }
            }
            "cpu.idle" => {
                Before { value: readable(host, request), along: other("cpu.weight").into_iter().collect() }
            }
            _ => Before { value: readable(host, request), along: Vec::new() },
        }
    }

    /// The requests that roll this one back; none if the earlier value is not known.
    pub(crate) fn restoring(&self, request: &SettingRequest) -> Vec<SettingRequest> {
        let Some(value) = &self.value else { return Vec::new() };
        let values = plan::restoring(&request.found, &request.value, value).into_iter();
        let requests = values.map(|(found, value)| SettingRequest { found, value, ..request.clone() });
        requests.chain(self.along.iter().cloned()).collect()
    }
}
