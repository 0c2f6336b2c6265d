//! How a systemd unit says what a file of its control group holds: lines of a unit's file for a text of the file.

use crate::{
    by_file,
    setting::{Form, UnitProperty},
};

/// systemd's own period, in microseconds.
const PERIOD: &str = "100000";

/// `NAME=VALUE` lines of a unit's file that say what `text` says in `file` of the unit's v2 group; `None` where systemd
/// has no property for it.
pub fn unit_lines(file: &str, text: &str) -> Option<Vec<String>> {
    let UnitProperty { name, form } = by_file::unit_property(file)?;
    let infinite = |text: &str| if text == "max" { "infinity".to_owned() } else { text.to_owned() };
    let text = text.trim();
    Some(match form {
        Form::Same | Form::List => vec![format!("{name}={}", infinite(text))],
        Form::Quota => quota(name, text),
        Form::Weights { device } => {
            let of_line = |line: &str| match line.split_once(' ') {
                Some(("default", weight)) => format!("{name}={}", weight.trim()),
                Some((number, "default")) => format!("{device}={} 100", path(number)),
                Some((number, weight)) => format!("{device}={} {}", path(number), weight.trim()),
                None => format!("{name}={line}"),
            };
            text.lines().map(of_line).collect()
        }
        Form::Devices(keys) => {
            let of_line = |line: &str| {
                let mut words = line.split_whitespace();
                let number = words.next().unwrap_or_default().to_owned();
                let limits: Vec<String> = words
                    .filter_map(|word| {
                        let (key, value) = word.split_once('=')?;
                        let (_, property) = keys.iter().find(|(known, _)| *known == key)?;
                        // a latency is in microseconds, which systemd takes for seconds without a unit
                        let unit = if key == "target" && value != "max" { "us" } else { "" };
                        Some(format!("{property}={} {}{unit}", path(&number), infinite(value)))
                    })
                    .collect();
                limits
            };
            text.lines().flat_map(of_line).collect()
        }
    })
}

/// The line that takes back what other files of the unit say, where lines add up.
pub fn unit_reset(file: &str) -> Option<String> {
    let UnitProperty { name, form } = by_file::unit_property(file)?;
    matches!(form, Form::List).then(|| format!("{name}="))
}

/// The names under which a property is known on the bus (org.freedesktop.systemd1(5)).
pub fn bus_names(file: &str) -> Vec<&'static str> {
    let Some(UnitProperty { name, form }) = by_file::unit_property(file) else { return Vec::new() };
    match form {
        Form::Same | Form::List => vec![name],
        Form::Quota => vec!["CPUQuotaPerSecUSec", "CPUQuotaPeriodUSec"],
        Form::Weights { device } => vec![name, device],
        Form::Devices(keys) => keys
            .iter()
            .map(|(_, property)| match *property {
                "IODeviceLatencyTargetSec" => "IODeviceLatencyTargetUSec",
                property => property,
            })
            .collect(),
    }
}

/// systemd takes a device by its node only.
fn path(number: &str) -> String {
    format!("/dev/block/{number}")
}

/// A share in hundredths of a per cent, as systemd counts it.
fn quota(name: &str, text: &str) -> Vec<String> {
    let mut words = text.split_whitespace();
    let (quota, period) = (words.next().unwrap_or("max"), words.next().unwrap_or(PERIOD));
    let share = match (quota.parse::<u128>(), period.parse::<u128>()) {
        (Ok(quota), Ok(period)) if period > 0 => {
            let share = (quota * 10_000).div_ceil(period);
            match (share / 100, share % 100) {
                (whole, 0) => format!("{whole}%"),
                (whole, part) => format!("{whole}.{part:02}%"),
            }
        }
        // without a quota
        _ => String::new(),
    };
    let mut lines = vec![format!("{name}={share}")];
    if period != PERIOD {
        lines.push(format!("CPUQuotaPeriodSec={period}us"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_says_what_the_file_does() {
        for (file, text, lines) in [
            ("memory.max", "1073741824", &["MemoryMax=1073741824"][..]),
            ("memory.high", "max", &["MemoryHigh=infinity"]),
            ("pids.max", "100", &["TasksMax=100"]),
            ("cpu.weight", "50", &["CPUWeight=50"]),
            ("cpu.max", "150000 100000", &["CPUQuota=150%"]),
            ("cpu.max", "16665 50000", &["CPUQuota=33.33%", "CPUQuotaPeriodSec=50000us"]),
            ("cpu.max", "max 100000", &["CPUQuota="]),
            ("cpuset.cpus", "0-3,8", &["AllowedCPUs=0-3,8"]),
            ("cpuset.mems", "1", &["AllowedMemoryNodes=1"]),
            ("io.weight", "default 200\n8:16 50", &["IOWeight=200", "IODeviceWeight=/dev/block/8:16 50"]),
            (
                "io.max",
                "8:16 rbps=1048576 wiops=max",
                &["IOReadBandwidthMax=/dev/block/8:16 1048576", "IOWriteIOPSMax=/dev/block/8:16 infinity"],
            ),
            ("io.latency", "8:16 target=10000", &["IODeviceLatencyTargetSec=/dev/block/8:16 10000us"]),
        ] {
            assert_eq!(unit_lines(file, text).unwrap_or_default(), lines, "{file} {text}");
        }
        assert_eq!(unit_lines("cpu.max.burst", "1"), None);
    }
}
