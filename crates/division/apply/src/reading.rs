//! What the kernel holds: the place of a setting's files, and its value there.

use kernel::{GroupName, Host, Seat};
use plan::{Place, SettingRequest};
use settings::{Access, Codec, Controller, NamedSetting, Setting, Side, Value, Version};

use crate::Error;

/// A setting's value with where it was read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The value.
    pub value: Value,
    /// The place.
    pub place: Place,
    /// The files' paths.
    pub files: Vec<std::path::PathBuf>,
}

/// Where a group's setting lives: the hierarchy that holds its controller, as the version there names it.
///
/// # Errors
/// The group or the controller is not there ([`Error::Kernel`]), or that version has no such setting.
pub fn place(host: &Host, group: &GroupName, found: &NamedSetting) -> Result<Place, Error> {
    let controller = found.setting.controller;
    let at = match controller {
        Controller::Core => core_hierarchy(host, group, found)?,
        controller => match host.hierarchy_of(controller) {
            Some(at) => at,
            None => host.seat(group, controller)?.at, // the error that says what is missing
        },
    };
    match found.side(at.version) {
        Side::Lacks { instead } => Err(Error::Lacks {
            setting: found.name.clone(),
            group: group.clone(),
            version: at.version,
            instead: (*instead).to_owned(),
        }),
        Side::Has(_) => {
            let seat = match controller {
                Controller::Core => host.seat_in(at, group),
                controller => host.seat(group, controller)?,
            };
            Ok(Place { hierarchy: seat.at.id, path: seat.path, version: at.version })
        }
    }
}

/// The files that every group has are in each of its hierarchies: v2's, else v1's cpuset, which
/// cgroup.clone_children is about, else the last one whose version has this one.
fn core_hierarchy<'h>(
    host: &'h Host,
    group: &GroupName,
    found: &NamedSetting,
) -> Result<&'h kernel::Hierarchy, Error> {
    let seats = host.existing(group)?;
    let has = |seat: &&Seat<'_>| matches!(found.side(seat.at.version), Side::Has(_));
    let of_v2 = seats.iter().find(|seat| seat.at.version == Version::V2).filter(has);
    let is_of_cpusets = |seat: &&Seat<'_>| seat.at.controllers.contains(&Controller::Cpuset);
    let found = of_v2.or_else(|| seats.iter().find(is_of_cpusets).filter(has));
    Ok(found
        .or_else(|| seats.iter().rev().find(has))
        .or(seats.first())
        .map_or(&host.hierarchies()[0], |seat| seat.at))
}

/// The directory that a place stands for.
pub(crate) fn seat<'h>(host: &'h Host, place: &Place) -> Seat<'h> {
    Seat { at: &host.hierarchies()[place.hierarchy], path: place.path.clone() }
}

/// The content of a file at a place.
pub(crate) fn content(host: &Host, place: &Place, file: &str) -> Option<String> {
    host.kernel().read(&host.hierarchies()[place.hierarchy], &place.path, file).ok()
}

/// The value that a group holds.
///
/// # Errors
/// As [`place`]; [`Error::Kernel`] for a file that is missing or can't be read, with the cause.
pub fn get(host: &Host, group: &GroupName, found: &NamedSetting) -> Result<Reading, Error> {
    let place = place(host, group, found)?;
    let seat = seat(host, &place);
    let value = value(host, group, found, &place)?;
    let files = found.files(place.version).iter().map(|file| seat.directory().join(file)).collect();
    Ok(Reading { value, place, files })
}

/// The value that a group has in one of its directories; `None` also where it can't be read.
pub(crate) fn value_in(host: &Host, seats: &[Seat<'_>], setting: &str) -> Option<Value> {
    let found = settings::lookup(setting)?;
    let at = host.hierarchy_of(found.setting.controller)?;
    let seat = seats.iter().find(|seat| seat.at.id == at.id)?;
    found.decode(at.version, &|file| host.kernel().read(at, &seat.path, file).ok()).ok()
}

/// A group's values of the settings that are wanted, without those that its kernel lacks or can't report.
pub fn all(
    host: &Host,
    group: &GroupName,
    wanted: impl Fn(&Setting) -> bool,
) -> Vec<(NamedSetting, Reading)> {
    settings::all()
        .filter(|setting| wanted(setting))
        .filter_map(|setting| settings::find(setting.name).ok())
        .filter_map(|found| get(host, group, &found).ok().map(|reading| (found, reading)))
        .collect()
}

/// The value at a known place.
pub(crate) fn value(
    host: &Host,
    group: &GroupName,
    found: &NamedSetting,
    place: &Place,
) -> Result<Value, Error> {
    let seat = seat(host, place);
    if uses_device_program(found, place.version) {
        let text = host.read_devices(&seat, group)?;
        return Ok(Value::Text(text.trim_end().to_owned()));
    }
    let read = |file: &str| content(host, place, file);
    found.decode(place.version, &read).or_else(|error| {
        // a missing main file is the kernel's refusal, and explained as such
        let main = found.files(place.version);
        match main.first() {
            Some(file) => host.read(&seat, group, file).map_err(Error::from).and(Err(error_of(group, error))),
            None => Err(error_of(group, error)),
        }
    })
}

fn error_of(group: &GroupName, error: settings::DecodeError) -> Error {
    Error::Decode { group: group.clone(), error }
}

/// On v2 a BPF program attached to the group stands for v1's devices files.
pub(crate) fn uses_device_program(found: &NamedSetting, version: Version) -> bool {
    matches!(found.side(version), Side::Has(binding) if binding.codec == Codec::DeviceProgram)
}

/// The value that a request would change; `None` of an action, or if it can't be read.
pub(crate) fn readable(host: &Host, request: &SettingRequest) -> Option<Value> {
    (request.found.setting.access != Access::Write)
        .then(|| value(host, &request.group, &request.found, &request.place).ok())
        .flatten()
}
