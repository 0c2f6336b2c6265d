//! Limits on the one block device of the fake machine, on v1 and v2.

use rustix::io::Errno;
use settings::Controller::Io;

use crate::{
    numbers,
    state::{File, Place, State, file},
};

/// The machine's disk, a whole one; it has no I/O scheduler that knows weights.
pub(super) const DEVICE: &str = "254:0";

pub(super) const V1_FILES: &[File] = &[
    file("blkio.throttle.read_bps_device", Io, "").everywhere().reads(show_throttle).writes(set_throttle),
    file("blkio.throttle.write_bps_device", Io, "").everywhere().reads(show_throttle).writes(set_throttle),
    file("blkio.throttle.read_iops_device", Io, "").everywhere().reads(show_throttle).writes(set_throttle),
    file("blkio.throttle.write_iops_device", Io, "").everywhere().reads(show_throttle).writes(set_throttle),
    file("blkio.throttle.io_serviced", Io, "Total 0").everywhere(),
    file("blkio.throttle.io_service_bytes", Io, "Total 0").everywhere(),
    file("blkio.bfq.weight", Io, "100").writes(|state, place, file, text| match numbers::unsigned(text)? {
        weight @ 1..=1000 => {
            state.set(place, file.name, weight.to_string());
            Ok(())
        }
        _ => Err(Errno::RANGE),
    }),
    file("blkio.bfq.weight_device", Io, "default 100")
        .writes(|_, _, _, text| Err(device(text).err().unwrap_or(Errno::OPNOTSUPP))),
];

pub(super) const V2_FILES: &[File] = &[
    file("io.max", Io, "").reads(show_max).writes(set_max),
    file("io.weight", Io, "100")
        .reads(show_weight)
        .writes(|state, place, file, text| set_weight(state, place, file, text, 10_000, Errno::INVAL)),
    file("io.bfq.weight", Io, "100")
        .reads(show_weight)
        .writes(|state, place, file, text| set_weight(state, place, file, text, 1_000, Errno::RANGE)),
    file("io.stat", Io, "").everywhere().reads(show_stat).counted(),
];

/// Splits `MAJOR:MINOR REST` and finds the device.
fn device(text: &str) -> Result<&str, Errno> {
    let text = text.trim_start();
    let (name, rest) = text.split_once(|c: char| c.is_ascii_whitespace()).ok_or(Errno::INVAL)?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match name.split_once(':') {
        Some((major, minor)) if is_number(major) && is_number(minor) => {}
        _ => return Err(Errno::INVAL),
    }
    if name == DEVICE { Ok(rest) } else { Err(Errno::NODEV) }
}

fn is_iops(file: &str) -> bool {
    file.contains("iops")
}

/// 0 and the largest number take the limit away; operations are counted in 32 bits.
fn set_throttle(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let rest = device(text)?;
    let limit = rest.split_ascii_whitespace().next().and_then(numbers::leading).ok_or(Errno::INVAL)?;
    let limit = match limit {
        0 => u64::MAX,
        limit if is_iops(file.name) => u64::from(limit as u32),
        limit => limit,
    };
    let unlimited = if is_iops(file.name) { limit >= u64::from(u32::MAX) } else { limit == u64::MAX };
    state.set(place, file.name, if unlimited { String::new() } else { limit.to_string() });
    Ok(())
}

fn show_throttle(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    Ok(match state.value(place, file.name) {
        "" => String::new(),
        limit => format!("{DEVICE} {limit}\n"),
    })
}

const KEYS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// The four limits as they are stored: numbers or `max`.
fn limits(state: &State, place: &Place) -> [String; 4] {
    let mut limits = KEYS.map(|_| "max".to_owned());
    for (limit, word) in limits.iter_mut().zip(state.value(place, "io.max").split_ascii_whitespace()) {
        word.clone_into(limit);
    }
    limits
}

fn show_max(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    let limits = limits(state, place);
    if limits.iter().all(|limit| limit == "max") {
        return Ok(String::new());
    }
    let words: Vec<String> = KEYS.iter().zip(&limits).map(|(key, limit)| format!("{key}={limit}")).collect();
    Ok(format!("{DEVICE} {}\n", words.join(" ")))
}

/// Keys that are not named keep their limit. 1 is refused like nonsense, 0 with ERANGE.
fn set_max(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let rest = device(text)?;
    let mut limits = limits(state, place);
    for word in rest.split_ascii_whitespace() {
        let (key, value) = word.split_once('=').ok_or(Errno::INVAL)?;
        let limit = match value {
            "max" => u64::MAX,
            value => numbers::leading(value).ok_or(Errno::INVAL)?,
        };
        if limit == 0 {
            return Err(Errno::RANGE);
        }
        let index = KEYS.iter().position(|known| *known == key).ok_or(Errno::INVAL)?;
        if limit == 1 {
            return Err(Errno::INVAL);
        }
        let most = if is_iops(key) { u64::from(u32::MAX) } else { u64::MAX };
        limits[index] = if limit >= most { "max".to_owned() } else { limit.to_string() };
    }
    state.set(place, file.name, limits.join(" "));
    Ok(())
}

fn show_weight(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    Ok(format!("default {}\n", state.value(place, file.name)))
}

/// `[default] WEIGHT`; for one device only where a scheduler knows weights, which none does here.
fn set_weight(
    state: &mut State,
    place: &Place,
    file: &'static File,
    text: &str,
    most: u64,
    outside: Errno,
) -> Result<(), Errno> {
    if text.contains(':') {
        return Err(device(text).err().unwrap_or(Errno::OPNOTSUPP));
    }
    let text = text.trim();
    let weight = numbers::leading(text.strip_prefix("default ").unwrap_or(text)).ok_or(Errno::INVAL)?;
    if !(1..=most).contains(&weight) {
        return Err(outside);
    }
    state.set(place, file.name, weight.to_string());
    Ok(())
}

fn show_stat(state: &State, place: &Place, file: &'static File) -> Result<String, Errno> {
    let stat = state.value(place, file.name);
    Ok(if stat.is_empty() { String::new() } else { format!("{stat}\n") })
}
