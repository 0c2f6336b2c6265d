//! Single settings: from requests to the steps that a whole layout has, too, carried out by the same code, and what the
//! kernel made of them.

use kernel::Host;
use plan::{Action, SettingRequest, Write};
use settings::{Fidelity, Side, Value};

use crate::{
    Error, Failure, Lock, Meta, Originals, Running, Target,
    carry_out::{self, carry_out, carry_out_unrecorded},
    entry::Entry,
    originals::written,
    pending::refuse_while_waiting,
    preview::Before,
    read_back::difference,
    reading::{content, readable, seat, uses_device_program},
    record::Kind,
    recover::recover,
    request::refuse_foreign,
};

/// One setting that was changed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Change {
    /// The group.
    pub group: String,
    /// The setting as it was named.
    pub setting: String,
    /// What it was before, if it can be read.
    pub before: Option<Value>,
    /// What was requested.
    pub requested: Value,
    /// What it is now, if it can be read.
    pub actual: Option<Value>,
    /// What was written where, in this order.
    pub written: Vec<Written>,
    /// Where what the kernel has is not what was requested, and why.
    pub differences: Vec<String>,
    /// Where the version that controls the group does not do exactly what the setting says.
    pub approximations: Vec<String>,
}

/// One write that was done.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Written {
    /// The file.
    pub path: std::path::PathBuf,
    /// The text.
    pub text: String,
    /// Why it came when it came, where that matters.
    pub why: Option<&'static str>,
}

/// Sets all that is requested, or nothing of it.
///
/// # Errors
/// [`Error::Plan`] before anything is written; [`Error::Undone`] with the refusal and what could not be rolled back.
pub fn set(host: &Host, requests: &[SettingRequest]) -> Result<Vec<Change>, Error> {
    let requested = Requested::new(host, requests)?;
    let running = Running::new();
    carry_out_unrecorded(Target { host, system: &running }, requested.entries())?;
    Ok(requested.changes(host))
}

/// Sets what follows a group's load, also of a unit of systemd: that is the layout's request, and no generation is made, but
/// `originals` has what the files contained.
///
/// # Errors
/// As [`set`].
pub fn follow(target: Target<'_>, originals: &Originals, requests: &[SettingRequest]) -> Result<(), Error> {
    let entries = Requested::of_anybody(target.host, requests)?.entries();
    originals.note(target, written(&entries))?;
    carry_out_unrecorded(target, entries)
}

/// The same as a generation of the history: an undo takes it back, and the next command rolls it back if this process
/// is killed in the middle.
///
/// # Errors
/// As [`crate::execute`].
pub fn set_recorded(
    lock: &Lock,
    target: Target<'_>,
    requests: &[SettingRequest],
    meta: &Meta,
) -> Result<Vec<Change>, Failure> {
    recover(lock, target)?;
    refuse_while_waiting(lock.state(), target)?;
    let requested = Requested::new(target.host, requests)?;
    let change = carry_out::Change::new(Kind::Set, target, requested.entries());
    carry_out(lock, target, change, meta).map_err(|failure| match failure {
        Failure::RolledBack { error, left, .. } => Failure::Refused(Error::Undone { error, left }),
        other => other,
    })?;
    Ok(requested.changes(target.host))
}

/// Are these several writes, so that a process that is killed can leave a part of them?
///
/// # Errors
/// As [`set`] before it writes anything.
pub fn is_several(host: &Host, requests: &[SettingRequest]) -> Result<bool, Error> {
    match requests {
        [one] if one.found.files(one.place.version).len() == 1 && !matches!(one.value, Value::Rules(_)) => {
            Ok(false)
        }
        _ => Ok(Requested::new(host, requests)?.entries().len() > 1),
    }
}

/// Requests with the writes that they come to.
struct Requested<'a> {
    requests: &'a [SettingRequest],
    /// What each setting was.
    before: Vec<Option<Value>>,
    writes: Vec<Write>,
}

impl<'a> Requested<'a> {
    fn new(host: &Host, requests: &'a [SettingRequest]) -> Result<Requested<'a>, Error> {
        for request in requests {
            refuse_foreign(request)?;
        }
        Requested::of_anybody(host, requests)
    }

    fn of_anybody(host: &Host, requests: &'a [SettingRequest]) -> Result<Requested<'a>, Error> {
        let files: Vec<usize> =
            (0..requests.len()).filter(|index| !is_by_program(&requests[*index])).collect();
        let of_files: Vec<SettingRequest> = files.iter().map(|index| requests[*index].clone()).collect();
        let mut writes = plan::writes(&of_files, &|place, file| content(host, place, file))?;
        for request in writes.iter_mut().flat_map(|write| &mut write.requests) {
            *request = files[*request];
        }
        let before = requests.iter().map(|request| Before::of(host, request).value).collect();
        Ok(Requested { requests, before, writes })
    }

    /// Files first, in the order of their writes, then device programs.
    fn entries(&self) -> Vec<Entry> {
        let entry = |request: &SettingRequest, action: Action, why: Option<&str>| Entry {
            group: request.group.clone(),
            action,
            why: why.unwrap_or("requested").to_owned(),
            restores: false,
            before: crate::entry::Before::default(),
        };
        let written = self.writes.iter().map(|write| {
            let (place, file, text) = (write.place.clone(), write.file.clone(), write.text.clone());
            entry(&self.requests[write.requests[0]], Action::Write { place, file, text }, write.why)
        });
        let programs = self.requests.iter().filter(|request| is_by_program(request));
        let programmed = programs.flat_map(|request| {
            let rules = match &request.value {
                Value::Rules(rules) => rules.as_slice(),
                _ => &[],
            };
            rules.iter().map(move |rule| {
                let (place, setting) = (request.place.clone(), request.found.setting.name.to_owned());
                entry(request, Action::SetDevices { place, setting, rule: rule.to_string() }, None)
            })
        });
        written.chain(programmed).collect()
    }

    /// Reads back, and says what the kernel made of it.
    fn changes(&self, host: &Host) -> Vec<Change> {
        let change = |(index, request): (usize, &SettingRequest)| {
            let directory = seat(host, &request.place).directory();
            let written =
                self.writes.iter().filter(move |write| write.requests.contains(&index)).map(|write| {
                    Written { path: directory.join(&write.file), text: write.text.clone(), why: write.why }
                });
            let actual = readable(host, request);
            Change {
                group: request.group.to_string(),
                setting: request.found.name.clone(),
                before: self.before[index].clone(),
                requested: request.value.clone(),
                differences: actual.as_ref().map(|actual| difference(request, actual)).unwrap_or_default(),
                actual,
                written: written.collect(),
                approximations: approximation(request),
            }
        };
        self.requests.iter().enumerate().map(change).collect()
    }
}

fn is_by_program(request: &SettingRequest) -> bool {
    uses_device_program(&request.found, request.place.version)
}

/// What the row of the table says of this version.
fn approximation(request: &SettingRequest) -> Vec<String> {
    let Side::Has(binding) = request.found.side(request.place.version) else { return Vec::new() };
    match binding.fidelity {
        Fidelity::Exact => Vec::new(),
        Fidelity::Approximate(difference) => {
            vec![format!("on cgroup {}: {difference}", request.place.version)]
        }
    }
}
