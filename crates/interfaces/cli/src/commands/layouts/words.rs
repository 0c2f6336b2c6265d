//! The kernel's files as people write settings: under the layout's names, percent of a CPU, sizes, durations, devices by
//! name. Never asks a cgroup: texts of files come in, words go out.

use std::collections::BTreeMap;

use settings::{CpuMax, Facts, Hundredths, Kind, NamedSetting, Setting, Value, Version};
use units::{Bytes, Limit, Micros};

/// Texts of one directory's files, by name.
pub type Files = BTreeMap<String, String>;

/// The kernel's period of CPU limits in a group where nobody set one (admin-guide/cgroup-v2.rst, `cpu.max`).
const PERIOD: &str = "100000";

/// What a file belongs to, under the layout's name; a file that no setting has stands for itself.
pub fn setting_of(file: &str) -> String {
    settings::lookup(file).map_or_else(|| file.to_owned(), |found| found.canonical())
}

/// A file that says what another one means, and is not always written with it.
pub fn read_beside(file: &str) -> Option<&'static str> {
    (file == "cpu.cfs_quota_us").then_some("cpu.cfs_period_us")
}

/// `max` alone leaves the period as it is: with the period of what was there before, or the kernel's.
pub fn whole(file: &str, text: &str, before: Option<&str>) -> String {
    if file != layout::QUOTA || text.trim().contains(' ') {
        return text.to_owned();
    }
    let period = before.and_then(|before| before.trim().split_once(' ')).map_or(PERIOD, |(_, period)| period);
    format!("{} {period}", text.trim())
}

/// The value of the files of one setting, as a layout would write it; the texts themselves where they make no sense.
/// `only`: of a value by device, the devices that this one names.
pub fn value(files: &Files, version: Version, only: Option<&Value>, facts: &dyn Facts) -> String {
    match decoded(files, version) {
        Some((found, value)) => shown(&found, &restricted(value, only), facts),
        None => files.values().map(|text| first_line(text)).collect::<Vec<String>>().join(", "),
    }
}

/// The same as a value, with the setting that it is of.
pub fn decoded(files: &Files, version: Version) -> Option<(NamedSetting, Value)> {
    let (file, _) = files.first_key_value()?;
    let found = settings::lookup(file)?;
    let read = |name: &str| match files.get(name) {
        Some(text) => Some(text.clone()),
        // only one of the two is written where the other is the kernel's
        None if name == "cpu.cfs_period_us" => Some(PERIOD.to_owned()),
        None if matches!(found.setting.kind, Kind::PerDevice(_)) => Some(String::new()),
        None => None,
    };
    let value = found.decode(version, &read).ok()?;
    Some((found, value))
}

/// Of a value by device, the devices and keys that another names.
fn restricted(value: Value, only: Option<&Value>) -> Value {
    match (value, only) {
        (Value::PerDevice(mut devices), Some(Value::PerDevice(only))) => {
            devices.retain(|device, keys| {
                let named = only.get(device);
                keys.retain(|key, _| named.is_some_and(|named| named.contains_key(key)));
                !keys.is_empty()
            });
            Value::PerDevice(devices)
        }
        (value, _) => value,
    }
}

/// Does the value limit nothing?
pub fn is_no_limit(value: &Value) -> bool {
    match value {
        Value::Bytes(limit) => *limit == Limit::Max,
        Value::Micros(limit) => *limit == Limit::Max,
        Value::Count(limit) => *limit == Limit::Max,
        Value::CpuMax(CpuMax { quota, .. }) => *quota == Some(Limit::Max),
        Value::PerDevice(devices) => devices
            .values()
            .flat_map(BTreeMap::values)
            .all(|limit| matches!(limit, Limit::Max | Limit::At(0))),
        _ => false,
    }
}

/// Is it what a group has where nobody set anything: no limit, the usual share?
pub fn is_unset(value: &Value) -> bool {
    const USUAL: Hundredths = Hundredths(10_000);
    match value {
        Value::Weight(weight) => *weight == USUAL,
        Value::Weights { default, devices } => {
            default.is_none_or(|weight| weight == USUAL) && devices.values().all(Option::is_none)
        }
        value => is_no_limit(value),
    }
}

/// A value as a layout would write it.
pub fn shown(found: &NamedSetting, value: &Value, facts: &dyn Facts) -> String {
    match value {
        Value::CpuMax(max) => max.in_percent(),
        Value::Bytes(Limit::At(bytes)) => size(found, *bytes, facts),
        Value::Micros(Limit::At(micros)) => duration(*micros),
        // v1's way to say that a device has no limit
        Value::PerDevice(_) if is_no_limit(value) => "max".to_owned(),
        Value::PerDevice(devices) => {
            let device = |(device, keys): (&settings::DeviceNumber, &BTreeMap<&str, Limit<u64>>)| {
                let name = system::block_device_name(*device);
                let name = name.map_or_else(|| device.to_string(), |name| format!("/dev/{name}"));
                let keys = keys.iter().map(|(key, limit)| format!(" {key}={}", rate(key, *limit)));
                name + &keys.collect::<String>()
            };
            devices.iter().map(device).collect::<Vec<String>>().join("; ")
        }
        value => first_line(&value.to_string()),
    }
}

/// Bytes per second as sizes.
fn rate(key: &str, limit: Limit<u64>) -> String {
    match limit {
        Limit::At(bytes) if key.ends_with("bps") => Bytes(bytes).to_string(),
        limit => limit.to_string(),
    }
}

/// `8G`; what is no round size also as the percentage of the machine's memory that it is, or rounded.
fn size(found: &NamedSetting, bytes: Bytes, facts: &dyn Facts) -> String {
    let exact = bytes.to_string();
    if exact.chars().count() <= 4 {
        return exact;
    }
    let rounded = rounded(bytes.0);
    match percent_of_memory(found.setting, bytes, facts) {
        Some(percent) => format!("{percent}% ({rounded})"),
        None if exact.chars().count() <= 5 => exact,
        None => rounded,
    }
}

/// The whole percentage of the machine's memory that a layout would have to name for just this many bytes.
fn percent_of_memory(setting: &Setting, bytes: Bytes, facts: &dyn Facts) -> Option<u64> {
    let memory = facts.memory()?.0;
    let percent = (u128::from(bytes.0) * 100).div_ceil(u128::from(memory.max(1)));
    let found = settings::lookup(setting.name)?;
    let named = found.parse(&format!("{percent}%"), facts).ok()?;
    // written values are rounded down to pages
    let fits = matches!(&named, Value::Bytes(Limit::At(named)) if named.0 / 4096 == bytes.0 / 4096);
    fits.then(|| u64::try_from(percent).ok()).flatten()
}

/// With one digit after the point.
pub fn rounded(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    match UNITS.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            match tenths % 10 {
                0 => format!("{}{unit}", tenths / 10),
                tenth => format!("{}.{tenth}{unit}", tenths / 10),
            }
        }
        None => format!("{bytes}B"),
    }
}

fn duration(micros: Micros) -> String {
    match micros.0 {
        us if us > 0 && us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        us if us > 0 && us.is_multiple_of(1_000) => format!("{}ms", us / 1_000),
        us => format!("{us}us"),
    }
}

/// Of a text of several lines the first.
pub fn first_line(text: &str) -> String {
    match text.trim().split_once('\n') {
        Some((first, _)) => format!("{first} …"),
        None => text.trim().to_owned(),
    }
}
