//! All or nothing: writes what was asked of a set of groups, reads it back, and on the first refusal puts back
//! what it had changed.

use bpf::DeviceFilter;
use kernel::Host;
use plan::{Ask, Place, Write};
use settings::{Access, Fidelity, OutOfRange, ReadBack, Side, Value};

use crate::{
    Error,
    reading::{self, content, held_by_program, seat},
};

/// One setting that was made so.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Change {
    /// The group.
    pub group: String,
    /// The setting as it was named.
    pub setting: String,
    /// What it held before, if it can be read.
    pub before: Option<Value>,
    /// What was requested.
    pub requested: Value,
    /// What the kernel holds now, if it can be read.
    pub actual: Option<Value>,
    /// What was written where, in this order.
    pub written: Vec<Written>,
    /// What the kernel holds otherwise than asked, and why.
    pub differences: Vec<String>,
    /// What the version that controls the group does otherwise than the setting says.
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

/// Makes everything requested so, or nothing of it.
///
/// # Errors
/// [`Error::Plan`] before anything is written; [`Error::Undone`] with the refusal and what could not be put back.
pub fn set(host: &Host, asks: &[Ask]) -> Result<Vec<Change>, Error> {
    for ask in asks {
        let setting = (ask.found.setting.name, ask.found.show(&ask.value));
        kernel::refuse_foreign(&ask.group, kernel::Change::Settings(&[setting]))?;
    }
    let (programs, files): (Vec<&Ask>, Vec<&Ask>) =
        asks.iter().partition(|ask| held_by_program(&ask.found, ask.place.version));
    let files: Vec<Ask> = files.into_iter().cloned().collect();
    let writes = plan::writes(&files, &|place, file| content(host, place, file))?;
    let before: Vec<Before> = files.iter().map(|ask| Before::of(host, ask)).collect();
    let filters = programs.iter().map(|ask| filters(host, ask)).collect::<Vec<_>>();
    let undone = |error: Error, done: usize| {
        let mut left = put_back(host, &files, &before, &writes[..done]);
        left.extend(filters.iter().flat_map(|filters| put_filters_back(host, filters)));
        Error::Undone { error: Box::new(error), left }
    };
    carry_out(host, &files, &writes).map_err(|(done, error)| undone(error, done))?;
    let programmed = programs.iter().try_for_each(|ask| write_program(host, ask));
    let changes = programmed.and_then(|()| {
        let told = |(index, ask)| told(host, index, ask, before[index].value.clone(), &writes);
        files.iter().enumerate().map(told).collect::<Result<Vec<Change>, Error>>()
    });
    let mut changes = changes.map_err(|error| undone(error, writes.len()))?;
    changes.extend(programs.into_iter().map(|ask| Change {
        group: ask.group.to_string(),
        setting: ask.found.name.clone(),
        before: None,
        requested: ask.value.clone(),
        actual: readable(host, ask),
        written: Vec::new(),
        differences: Vec::new(),
        approximations: approximation(ask),
    }));
    Ok(changes)
}

/// What has to be known to put an ask back.
pub(crate) struct Before {
    /// What the setting held; of device rules, the list.
    value: Option<Value>,
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

    /// What puts the ask back; nothing if it is not known what was there.
    pub(crate) fn restoring(&self, ask: &Ask) -> Vec<Ask> {
        let Some(value) = &self.value else { return Vec::new() };
        let values = plan::restoring(&ask.found, &ask.value, value).into_iter();
        let asks = values.map(|(found, value)| Ask { found, value, ..ask.clone() });
        asks.chain(self.along.iter().cloned()).collect()
    }
}

/// The device filters of a v2 group and of the groups below it, which a deny reaches too.
fn filters(host: &Host, ask: &Ask) -> Vec<(Place, Option<DeviceFilter>)> {
    let at = &host.hierarchies()[ask.place.hierarchy];
    let below = host.kernel().descendants(at, &ask.place.path).unwrap_or_default();
    let paths = std::iter::once(ask.place.path.clone()).chain(below);
    let filter = |path: String| {
        let filter = host.kernel().device_filter(at, &path).ok()?;
        Some((Place { path, ..ask.place.clone() }, filter))
    };
    paths.filter_map(filter).collect()
}

fn put_filters_back(host: &Host, filters: &[(Place, Option<DeviceFilter>)]) -> Vec<String> {
    let put = |(place, filter): &(Place, Option<DeviceFilter>)| {
        let at = &host.hierarchies()[place.hierarchy];
        let access = filter.as_ref().map(|filter| &filter.access);
        let refused = host.kernel().set_device_filter(at, &place.path, access).err()?;
        Some(format!("device rules of {}: {}", at.path(&place.path).display(), kernel::describe(refused)))
    };
    filters.iter().filter_map(put).collect()
}

/// Does the writes in order; the error comes with how many were done.
fn carry_out(host: &Host, asks: &[Ask], writes: &[Write]) -> Result<(), (usize, Error)> {
    for (done, write) in writes.iter().enumerate() {
        let ask = &asks[write.ask];
        host.write(&seat(host, &write.place), &ask.group, &write.file, &write.text)
            .map_err(|error| (done, error.into()))?;
    }
    Ok(())
}

fn readable(host: &Host, ask: &Ask) -> Option<Value> {
    (ask.found.setting.access != Access::Write)
        .then(|| reading::value(host, &ask.group, &ask.found, &ask.place).ok())
        .flatten()
}

/// Puts back what the done writes changed, and reads it; returns what could not be put back.
fn put_back(host: &Host, asks: &[Ask], before: &[Before], done: &[Write]) -> Vec<String> {
    let mut touched: Vec<usize> = done.iter().map(|write| write.ask).collect();
    touched.sort_unstable();
    touched.dedup();
    let mut left = Vec::new();
    let mut restoring = Vec::new();
    for index in touched {
        let (ask, before) = (&asks[index], &before[index]);
        match &before.value {
            Some(_) => restoring.extend(before.restoring(ask)),
            None => {
                left.push(format!("{} of group '{}' was done and can't be undone", ask.found.name, ask.group))
            }
        }
    }
    match plan::writes(&restoring, &|place: &Place, file| content(host, place, file)) {
        Err(error) => left.push(error.to_string()),
        // a line that was not written yet is not put back: its device may not even be there
        Ok(writes) => left.extend(writes.iter().filter(|write| written(write, done)).filter_map(|write| {
            let ask = &restoring[write.ask];
            host.write(&seat(host, &write.place), &ask.group, &write.file, &write.text)
                .err()
                .map(|e| e.to_string())
        })),
    }
    left.extend(restoring.iter().filter_map(|ask| {
        let actual = readable(host, ask)?;
        (!ask.found.satisfied(&ask.value, &actual))
            .then(|| format!("{} of group '{}' is {actual}", ask.found.name, ask.group))
    }));
    left
}

fn written(write: &Write, done: &[Write]) -> bool {
    !write.is_of_line() || done.iter().any(|done| done.has_target_of(write))
}

fn write_program(host: &Host, ask: &Ask) -> Result<(), Error> {
    let Value::Rules(rules) = &ask.value else { return Ok(()) };
    for rule in rules {
        host.write_devices(&seat(host, &ask.place), &ask.group, ask.found.setting.name, &rule.to_string())?;
    }
    Ok(())
}

/// Reads back, and says what the kernel made of it.
fn told(
    host: &Host,
    index: usize,
    ask: &Ask,
    before: Option<Value>,
    writes: &[Write],
) -> Result<Change, Error> {
    let directory = seat(host, &ask.place).directory();
    let written = writes.iter().filter(|write| write.ask == index);
    let written = written
        .map(|write| Written { path: directory.join(&write.file), text: write.text.clone(), why: write.why })
        .collect();
    let actual = readable(host, ask);
    if let (Some(Value::Word(state)), "cpuset.cpus.partition") = (&actual, ask.found.setting.name)
        && state.contains("invalid")
    {
        return Err(Error::InvalidPartition { group: ask.group.clone(), state: state.clone() });
    }
    let differences = actual.as_ref().map(|actual| difference(ask, actual)).unwrap_or_default();
    Ok(Change {
        group: ask.group.to_string(),
        setting: ask.found.name.clone(),
        before,
        requested: ask.value.clone(),
        actual,
        written,
        differences,
        approximations: approximation(ask),
    })
}

/// What the row of the table says of this version.
fn approximation(ask: &Ask) -> Vec<String> {
    let Side::Has(binding) = ask.found.side(ask.place.version) else { return Vec::new() };
    match binding.fidelity {
        Fidelity::Exact => Vec::new(),
        Fidelity::Approximate(difference) => vec![format!("on cgroup {}: {difference}", ask.place.version)],
    }
}

/// What the kernel rounded, clamped or left out.
pub(crate) fn difference(ask: &Ask, actual: &Value) -> Vec<String> {
    let exact = ask.value == *actual;
    if exact || matches!(ask.value, Value::Rules(_)) {
        return Vec::new();
    }
    let Side::Has(binding) = ask.found.side(ask.place.version) else { return Vec::new() };
    let (requested, now) = (ask.found.show(&ask.value), ask.found.show(actual));
    let reason = match (binding.read_back, binding.out_of_range) {
        (ReadBack::Rounded(how) | ReadBack::Rescaled(how), _) if ask.found.satisfied(&ask.value, actual) => {
            how.to_owned()
        }
        _ if ask.found.satisfied(&ask.value, actual) => return Vec::new(),
        (_, OutOfRange::Clamped) => "the kernel takes the nearest value in its range".to_owned(),
        (_, OutOfRange::Misread(how)) => how.to_owned(),
        _ => "the kernel has another value than was written".to_owned(),
    };
    if requested == now {
        Vec::new()
    } else {
        vec![format!("{requested} was written, the kernel has {now}: {reason}")]
    }
}
