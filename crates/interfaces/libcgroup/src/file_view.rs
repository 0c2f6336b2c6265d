//! What a group holds under the name of a kernel file: the file as it is, or, where only the other cgroup version has a
//! file of that name, what the table of settings makes of the host's own. Only reads.

use kernel::{GroupName, Hierarchy, Host, Op, Seat};
use rustix::io::Errno;
use settings::{Access, Codec, Controller, NamedSetting, Value, Version};
use units::Limit;

use crate::{
    failure::{Failure, INVALID, NO_SETTING, NOT_CONVERTED, SYSTEM},
    machine,
};

/// A file's name and content.
pub(crate) type Pair = (String, String);

/// The controller that a file's name begins with; `None` for a name without a dot.
pub(crate) fn controller(name: &str) -> Result<Controller, Failure> {
    let Some((prefix, _)) = name.split_once('.') else {
        let failure = Failure::new(INVALID, format!("'{name}' is not the name of a setting"));
        return Err(failure.hint("it begins with its controller: cpu.shares"));
    };
    if prefix == "cgroup" {
        return Ok(Controller::Core);
    }
    Controller::from_name(prefix).ok_or_else(|| {
        Failure::new(SYSTEM, format!("controller '{prefix}' is on no mounted hierarchy"))
            .hint("lssubsys lists the mounted ones")
    })
}

/// What the group at `path` holds under `name`, whichever version's name that is.
///
/// # Errors
/// Not the name of a setting, no such group or controller, no such file.
pub(crate) fn one(host: &Host, path: &str, name: &str) -> Result<String, Failure> {
    let controller = controller(name)?;
    let at = place(host, path, controller, name)?;
    let group = machine::group(host, [at], path)?;
    match file(host, at, &group, name)? {
        Some(text) => Ok(text),
        None => converted(host, at, &group, name, other(at.version)),
    }
}

/// The same, the name being that of `version` whatever the host has.
///
/// # Errors
/// As [`one`]; that version has no setting of that name.
pub(crate) fn one_of(host: &Host, path: &str, name: &str, version: Version) -> Result<String, Failure> {
    let controller = controller(name)?;
    let known = settings::lookup(name).is_some_and(|found| is_named(&found, name, version));
    if !known {
        let failure = Failure::new(NOT_CONVERTED, format!("cgroup {version} has no setting '{name}'"));
        return Err(failure.hint(format!("without -{} its name may be of either version", digit(version))));
    }
    let at = place(host, path, controller, name)?;
    if at.version == version {
        return one(host, path, name);
    }
    let group = machine::group(host, [at], path)?;
    converted(host, at, &group, name, version)
}

/// The files of one controller that a group has in a hierarchy, in the kernel's order; what can't be read is empty.
/// Where the version has no files of that controller, what the table makes of the others.
///
/// # Errors
/// The group can't be listed.
pub(crate) fn all(
    host: &Host,
    at: &Hierarchy,
    group: &GroupName,
    controller: Controller,
) -> Result<Vec<Pair>, Failure> {
    let prefix = match controller {
        Controller::Core => "cgroup",
        controller => match controller.name(at.version) {
            Some(name) => name,
            None => return Ok(all_of(host, at, group, controller, other(at.version))),
        },
    };
    let seat = host.seat_in(at, group);
    let files = host.kernel().files(at, &seat.path);
    let files = files.map_err(|errno| host.refused(Op::List, &seat, group, None, None, errno))?;
    let own = |file: &String| file.split_once('.').is_some_and(|(before, _)| before == prefix);
    let read = |file: String| {
        let text = host.kernel().read(at, &seat.path, &file).unwrap_or_default();
        (file, text)
    };
    Ok(files.into_iter().filter(own).map(read).collect())
}

/// What the group has of a controller's settings under the names of `version`; what can't be converted is left out.
pub(crate) fn all_of(
    host: &Host,
    at: &Hierarchy,
    group: &GroupName,
    controller: Controller,
    version: Version,
) -> Vec<Pair> {
    let bindings = settings::all().filter_map(|setting| setting.side(version).binding());
    let names = bindings.filter(|binding| binding.controller == controller).flat_map(|one| one.names());
    let mut found: Vec<Pair> = Vec::new();
    for name in names {
        if found.iter().any(|(known, _)| known == name) {
            continue;
        }
        if let Ok(text) = converted(host, at, group, name, version) {
            found.push(((*name).to_owned(), text));
        }
    }
    found
}

/// The hierarchy that holds a name: its controller's; of the files that every group has, one where the group has it.
fn place<'h>(
    host: &'h Host,
    path: &str,
    controller: Controller,
    name: &str,
) -> Result<&'h Hierarchy, Failure> {
    if controller == Controller::Core {
        let has = |at: &&Hierarchy| {
            let group = machine::group(host, [*at], path);
            group.is_ok_and(|group| host.kernel().read(at, &host.seat_in(at, &group).path, name).is_ok())
        };
        if let Some(at) = host.hierarchies().iter().rev().find(has) {
            return Ok(at);
        }
    }
    let missing = || host.seat(&GroupName::root(), controller).map(|seat| seat.at);
    host.hierarchy_of(controller)
        .map_or_else(missing, Ok)
        .map_err(|error| Failure::from(error).status(SYSTEM))
}

/// The content of a file; `None` if the group is there without it.
fn file(host: &Host, at: &Hierarchy, group: &GroupName, name: &str) -> Result<Option<String>, Failure> {
    let seat = host.seat_in(at, group);
    match host.kernel().read(at, &seat.path, name) {
        Ok(text) => Ok(Some(text)),
        // it can only be written, or the kernel was built without what it counts
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::IO) => Ok(Some(String::new())),
        Err(Errno::NOENT) => there(host, &seat, group).map(|()| None),
        Err(errno) => Err(host.refused(Op::Read, &seat, group, Some(name), None, errno).into()),
    }
}

fn there(host: &Host, seat: &Seat<'_>, group: &GroupName) -> Result<(), Failure> {
    match host.refuse_missing(seat, group) {
        Ok(()) => return Ok(()),
        Err(kernel::Error::NotControlled { .. }) => {}
        Err(error) => return Err(Failure::from(error).status(SYSTEM)),
    }
    let label = seat.at.label();
    let message = format!(
        "group '{group}' is not in the hierarchy of {label} ({} is missing)",
        seat.directory().display()
    );
    Err(Failure::new(SYSTEM, message).hint(format!("cgcreate -g {label}:{group}")))
}

fn is_text(codec: Codec) -> bool {
    matches!(codec, Codec::Text)
}

/// A setting under the name that `version` has for it, from the host's files of the other version.
fn converted(
    host: &Host,
    at: &Hierarchy,
    group: &GroupName,
    name: &str,
    version: Version,
) -> Result<String, Failure> {
    let found = settings::find(name).map_err(|error| Failure::from(error).status(SYSTEM))?;
    if at.version == version || !is_named(&found, name, version) {
        let seat = host.seat_in(at, group);
        return Err(Failure::new(
            SYSTEM,
            format!("the kernel gives group '{group}' no {name} ({} has none)", seat.directory().display()),
        ));
    }
    // what one version counts is not what the other does, also under the same name
    if found
        .side(at.version)
        .binding()
        .is_some_and(|binding| is_text(binding.codec) && found.setting.access == Access::Read)
    {
        let message = format!("cgroup {} has no equivalent of '{name}' of cgroup {version}", at.version);
        return Err(Failure::new(NOT_CONVERTED, message)
            .hint(format!("{name} without -1 and -2 is what the kernel has")));
    }
    let reading = apply::get(host, group, &found).map_err(|error| {
        let failure = Failure::from(error);
        if failure.status == NO_SETTING { failure.status(NOT_CONVERTED) } else { failure }
    })?;
    // what another file of that version would hold is requested one step deep: two files may ask for each other
    let beside = |file: &str| {
        let found = settings::lookup(file)?;
        let value = apply::get(host, group, &found).ok()?.value;
        written(&found, file, version, &value, &|_| None)
    };
    Ok(written(&found, name, version, &reading.value, &beside)
        .unwrap_or_else(|| plain(&found, &reading.value)))
}

/// What would be written to a file of `version` to have that value; `None` if nothing can be.
fn written(
    found: &NamedSetting,
    name: &str,
    version: Version,
    value: &Value,
    beside: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    // v1 takes -1 for no limit, and prints a number
    if let (Version::V1, Value::Bytes(Limit::Max)) = (version, value) {
        return Some(found.v1_without_limit().to_string());
    }
    let writes = found.encode(version, value, beside).ok()?;
    let own: Vec<&str> =
        writes.iter().filter(|write| write.file == name).map(|write| write.text.trim()).collect();
    (!own.is_empty()).then(|| own.join("\n"))
}

/// A value that can't be written, as the kernel would print it.
fn plain(found: &NamedSetting, value: &Value) -> String {
    let number = |limit: Limit<u64>| limit.at().map_or("max".to_owned(), |number| number.to_string());
    match value {
        Value::Bytes(limit) => number(limit.map(|bytes| bytes.0)),
        Value::Micros(limit) => number(limit.map(|micros| micros.0)),
        Value::Count(limit) => number(*limit),
        value => found.show(value),
    }
}

/// Has `version` a file of that name?
fn is_named(found: &NamedSetting, name: &str, version: Version) -> bool {
    found.files(version).iter().any(|file| file == name)
}

fn other(version: Version) -> Version {
    match version {
        Version::V1 => Version::V2,
        Version::V2 => Version::V1,
    }
}

fn digit(version: Version) -> u8 {
    match version {
        Version::V1 => 1,
        Version::V2 => 2,
    }
}

#[cfg(test)]
mod tests {
    use fake::Fake;
    use kernel::Access;

    use super::*;

    /// A host of one version with a group that has some settings.
    fn host(kernel: Fake, written: &[(Controller, &str, &str)]) -> Host {
        let host = Host::new(Box::new(kernel)).unwrap();
        let group = GroupName::new("db").unwrap();
        let controllers: Vec<Controller> = written.iter().map(|(controller, ..)| *controller).collect();
        host.create(&group, Some(&controllers), &Access::default()).unwrap();
        for (controller, file, text) in written {
            let seat = host.seat(&group, *controller).unwrap();
            host.write(&seat, &group, file, text).unwrap();
        }
        host
    }

    fn v2() -> Host {
        let written = [
            (Controller::Cpu, "cpu.weight", "200"),
            (Controller::Cpu, "cpu.max", "20000 50000"),
            (Controller::Memory, "memory.max", "67108864"),
            (Controller::Pids, "pids.max", "17"),
        ];
        host(Fake::v2(4, 2), &written)
    }

    #[test]
    fn v1_names_are_read_from_v2_files() {
        let host = v2();
        for (name, text) in [
            ("cpu.shares", "2048"),
            ("cpu.cfs_quota_us", "20000"),
            ("cpu.cfs_period_us", "50000"),
            ("memory.limit_in_bytes", "67108864"),
            ("pids.max", "17"),
            ("freezer.state", "THAWED"),
        ] {
            assert_eq!(one(&host, "/db", name).unwrap().trim_end(), text, "{name}");
            assert_eq!(one_of(&host, "db", name, Version::V1).unwrap().trim_end(), text, "{name}");
        }
        assert_eq!(one_of(&host, "db", "cpu.shares", Version::V2).unwrap_err().status, NOT_CONVERTED);
    }

    #[test]
    fn v2_names_are_read_from_v1_files() {
        let written = [
            (Controller::Cpu, "cpu.shares", "2048"),
            (Controller::Cpu, "cpu.cfs_quota_us", "20000"),
            (Controller::Memory, "memory.limit_in_bytes", "67108864"),
        ];
        let host = host(Fake::v1(4, 2), &written);
        for (name, text) in [
            ("cpu.weight", "200"),
            ("cpu.max", "20000 100000"),
            ("memory.max", "67108864"),
            ("memory.high", "max"),
        ] {
            assert_eq!(one(&host, "db", name).unwrap().trim_end(), text, "{name}");
        }
        assert_eq!(one_of(&host, "db", "memory.max", Version::V1).unwrap_err().status, NOT_CONVERTED);
    }

    #[test]
    fn what_is_not_there_ends_with_the_references_status() {
        let host = v2();
        for (path, name, status) in [
            ("db", "cpu.nosuch", SYSTEM),
            ("db", "nosuch.x", SYSTEM),
            ("db", "tasks", INVALID),
            ("absent", "cpu.weight", SYSTEM),
            ("../db", "cpu.weight", INVALID),
        ] {
            assert_eq!(one(&host, path, name).unwrap_err().status, status, "{path} {name}");
        }
    }

    #[test]
    fn all_files_of_a_controller_are_those_that_begin_with_its_name() {
        let host = v2();
        let at = &host.hierarchies()[0];
        let group = GroupName::new("db").unwrap();
        let files = all(&host, at, &group, Controller::Cpu).unwrap();
        assert!(
            files.iter().any(|(file, text)| file == "cpu.weight" && text.trim_end() == "200"),
            "{files:?}"
        );
        assert!(files.iter().all(|(file, _)| file.starts_with("cpu.")), "{files:?}");
        let core = all(&host, at, &group, Controller::Core).unwrap();
        assert!(core.iter().all(|(file, _)| file.starts_with("cgroup.")) && !core.is_empty(), "{core:?}");
    }
}
