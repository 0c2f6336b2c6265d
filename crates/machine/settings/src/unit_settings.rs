//! What lines of a systemd unit's file mean as settings: the way back from [`crate::unit_lines`].

use std::borrow::Cow;

use units::Micros;

use crate::{
    setting::{Form, Setting, Version},
    table,
};

/// What limits a unit in systemd.resource-control(5) and is no setting of a unit's group here.
const WITHOUT_SETTING: [&str; 41] = [
    "BPFProgram",
    "CPUAffinity",
    "CPUSetPartition",
    "CoredumpReceive",
    "DefaultMemoryLow",
    "DefaultMemoryMin",
    "DefaultStartupMemoryLow",
    "Delegate",
    "DelegateSubgroup",
    "DeviceAllow",
    "DevicePolicy",
    "DisableControllers",
    "IPAddressAllow",
    "IPAddressDeny",
    "IPEgressFilterPath",
    "IPIngressFilterPath",
    "ManagedOOMMemoryPressure",
    "ManagedOOMMemoryPressureDurationSec",
    "ManagedOOMMemoryPressureLimit",
    "ManagedOOMPreference",
    "ManagedOOMSwap",
    "MemoryPressureThresholdSec",
    "MemoryPressureWatch",
    "NFTSet",
    "NUMAMask",
    "NUMAPolicy",
    "RestrictNetworkInterfaces",
    "Slice",
    "SocketBindAllow",
    "SocketBindDeny",
    "StartupAllowedCPUs",
    "StartupAllowedMemoryNodes",
    "StartupBlockIOWeight",
    "StartupCPUShares",
    "StartupCPUWeight",
    "StartupIOWeight",
    "StartupMemoryHigh",
    "StartupMemoryLow",
    "StartupMemoryMax",
    "StartupMemorySwapMax",
    "StartupMemoryZSwapMax",
];

/// What a unit's lines set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitSettings {
    /// Settings by their names, with the text that gives each the value.
    pub settings: Vec<(&'static str, String)>,
    /// Lines about resources that no setting of a unit says, as they were.
    pub others: Vec<String>,
}

/// The properties of one file of a unit's group, as they come together line by line.
struct Lines<'l> {
    setting: &'static Setting,
    form: Form,
    name: &'static str,
    /// Property and value, empty ones gone.
    found: Vec<(&'l str, &'l str)>,
}

/// What a unit's properties set, in the order in which systemd reads them: an empty value takes back those before it. `tasks`:
/// how many tasks the machine can have, of which `TasksMax=` may be a share.
pub fn unit_settings<'l>(
    properties: impl IntoIterator<Item = (&'l str, &'l str)>,
    tasks: Option<u64>,
) -> UnitSettings {
    let (mut all, mut of_unit) = (Vec::new(), UnitSettings::default());
    let properties: Vec<(&str, &str)> = properties.into_iter().collect();
    let properties: Vec<(&str, Cow<'_, str>)> =
        properties.iter().filter_map(|(name, value)| renamed(name, value, &properties)).collect();
    for (property, value) in &properties {
        let (property, value) = (*property, value.as_ref());
        match by_property(property) {
            Some((setting, name, form)) => {
                let is_same = |lines: &&mut Lines<'_>| lines.name == name;
                let lines = match all.iter_mut().find(is_same) {
                    Some(lines) => lines,
                    None => {
                        all.push(Lines { setting, form, name, found: Vec::new() });
                        let last = all.len() - 1;
                        &mut all[last]
                    }
                };
                lines.add(property, value);
            }
            None if WITHOUT_SETTING.contains(&property) => {
                of_unit.others.push(format!("{property}={value}"));
            }
            None => {}
        }
    }
    for lines in &mut all {
        of_unit.others.extend(lines.take_unknown_devices());
    }
    for lines in all.iter().filter(|lines| !lines.found.is_empty()) {
        match lines.text(tasks) {
            Some(text) => of_unit.settings.push((lines.setting.name, text)),
            None => of_unit.others.extend(lines.found.iter().map(|(name, value)| format!("{name}={value}"))),
        }
    }
    of_unit
}

/// A line under the name that its property has since systemd 230, with the value in today's range; `None` where a line of
/// that name is there, which then counts alone.
fn renamed<'l>(name: &'l str, value: &'l str, all: &[(&str, &str)]) -> Option<(&'l str, Cow<'l, str>)> {
    // as systemd converts them: shares around 1024 and weights around 500 become weights around 100
    let (today, usual) = match name {
        "MemoryLimit" => ("MemoryMax", None),
        "CPUShares" => ("CPUWeight", Some(1024)),
        "BlockIOWeight" => ("IOWeight", Some(500)),
        "BlockIODeviceWeight" => ("IODeviceWeight", Some(500)),
        "BlockIOReadBandwidth" => ("IOReadBandwidthMax", None),
        "BlockIOWriteBandwidth" => ("IOWriteBandwidthMax", None),
        _ => return Some((name, value.into())),
    };
    if all.iter().any(|(name, _)| *name == today) {
        return None;
    }
    let (device, number) = value.rsplit_once(char::is_whitespace).unwrap_or(("", value));
    match usual.zip(number.parse::<u64>().ok()) {
        Some((usual, number)) => {
            let weight = (number.saturating_mul(100) / usual).clamp(1, 10_000);
            Some((today, format!("{device} {weight}").trim().to_owned().into()))
        }
        None => Some((today, value.into())),
    }
}

/// The setting that a property is of; `devices.*` of a unit are systemd's.
fn by_property(property: &str) -> Option<(&'static Setting, &'static str, Form)> {
    table::all().filter(|setting| !setting.name.starts_with("devices.")).find_map(|setting| {
        let of_unit = setting.side(Version::V2).binding()?.unit_property?;
        let is_it = match of_unit.form {
            Form::Same | Form::List => of_unit.name == property,
            Form::Quota => [of_unit.name, "CPUQuotaPeriodSec"].contains(&property),
            Form::Weights { device } => [of_unit.name, device].contains(&property),
            Form::Devices(keys) => keys.iter().any(|(_, name)| *name == property),
        };
        is_it.then_some((setting, of_unit.name, of_unit.form))
    })
}

impl<'l> Lines<'l> {
    fn add(&mut self, property: &'l str, value: &'l str) {
        // lists and devices add up, of everything else the last counts
        let adds_up = self.is_list() || matches!(self.form, Form::Devices(_)) || property == "IODeviceWeight";
        if value.is_empty() || !adds_up {
            self.found.retain(|(known, _)| *known != property);
        }
        if !value.is_empty() {
            self.found.push((property, value));
        }
    }

    fn is_list(&self) -> bool {
        matches!(self.form, Form::List)
    }

    /// `None` where no setting says it.
    fn text(&self, tasks: Option<u64>) -> Option<String> {
        let all = || self.found.iter().map(|(_, value)| *value);
        match self.form {
            Form::List => Some(all().flat_map(str::split_whitespace).collect::<Vec<_>>().join(",")),
            Form::Same => same(self.name, self.found.last()?.1, tasks),
            Form::Quota => self.quota(),
            Form::Weights { .. } => {
                let one = |(name, value): &(&str, &str)| {
                    (*name == self.name || value.contains(' ')).then(|| by_number(value).to_owned())
                };
                Some(self.found.iter().map(one).collect::<Option<Vec<_>>>()?.join("; "))
            }
            Form::Devices(keys) => self.devices(keys),
        }
    }

    fn quota(&self) -> Option<String> {
        let last =
            |name: &str| self.found.iter().rev().find(|(known, _)| *known == name).map(|found| found.1);
        let share = last(self.name)?;
        let hundredths = hundredths(share.strip_suffix('%')?)?;
        match last("CPUQuotaPeriodSec") {
            None if hundredths.is_multiple_of(100) => {
                let (whole, part) = (hundredths / 10_000, hundredths / 100 % 100);
                let part = format!("{part:02}");
                let part = part.trim_end_matches('0');
                Some(if part.is_empty() { format!("{whole}cpu") } else { format!("{whole}.{part}cpu") })
            }
            None => Some(share.to_owned()),
            Some(period) => Some(format!("{share}/{}", time(period)?)),
        }
    }

    /// Lines for devices whose limit can't be read, so that those beside them count.
    fn take_unknown_devices(&mut self) -> Vec<String> {
        let is_known = |(property, value): &(&str, &str)| match self.form {
            Form::Devices(keys) => Lines { found: vec![(property, value)], ..*self }.devices(keys).is_some(),
            _ => true,
        };
        let (known, others): (Vec<_>, Vec<_>) = self.found.iter().partition(|line| is_known(line));
        self.found = known;
        others.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    fn devices(&self, keys: &[(&str, &str)]) -> Option<String> {
        let mut devices: Vec<(&str, Vec<String>)> = Vec::new();
        for (property, value) in &self.found {
            let (device, limit) = value.split_once(char::is_whitespace)?;
            let (key, _) = keys.iter().find(|(_, name)| name == property)?;
            let limit = match limit.trim() {
                "infinity" => "max".to_owned(),
                limit if *key == "target" => time(limit)?.to_string(),
                limit => thousands(limit)?.to_string(),
            };
            let device = by_number(device);
            let word = format!("{key}={limit}");
            match devices.iter_mut().find(|(known, _)| *known == device) {
                Some((_, words)) => words.push(word),
                None => devices.push((device, vec![word])),
            }
        }
        let lines: Vec<String> =
            devices.iter().map(|(device, words)| format!("{device} {}", words.join(" "))).collect();
        Some(lines.join("; "))
    }
}

/// A device by its number, as an export writes it.
fn by_number(device: &str) -> &str {
    device.strip_prefix("/dev/block/").unwrap_or(device)
}

fn same(name: &str, value: &str, tasks: Option<u64>) -> Option<String> {
    match (name, value) {
        (_, "infinity") => Some("max".to_owned()),
        ("TasksMax", value) => match value.strip_suffix('%') {
            Some(share) => {
                let share = u128::from(tasks?) * u128::from(hundredths(share)?) / 10_000;
                Some(share.to_string())
            }
            None => Some(value.to_owned()),
        },
        ("MemoryZSwapWriteback", value) => match value {
            "1" | "yes" | "y" | "true" | "t" | "on" => Some("1".to_owned()),
            "0" | "no" | "n" | "false" | "f" | "off" => Some("0".to_owned()),
            _ => None,
        },
        // such a group has no weight, and systemd no property that is one of ours
        ("CPUWeight", "idle") => None,
        (_, value) => Some(value.to_owned()),
    }
}

/// A number with at most two decimals, in hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let part = match part.len() {
        1 => part.parse::<u64>().ok()? * 10,
        2 => part.parse().ok()?,
        _ => return None,
    };
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part)
}

/// systemd counts what goes to devices by thousands.
fn thousands(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power: u32 = match text[digits.len()..].trim_end_matches('B') {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    let (whole, part) = digits.trim().split_once('.').unwrap_or((digits.trim(), ""));
    if part.len() > 18 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let scale = 1000_u64.pow(power);
    // rounded down, as systemd does
    let part = u128::from(scale) * part.parse::<u128>().unwrap_or(0) / 10_u128.pow(part.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?)
}

/// A time span (systemd.time(7)); a number without a unit is of seconds.
fn time(text: &str) -> Option<Micros> {
    let (mut rest, mut sum) = (text.trim(), 0_u64);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.len() - rest.trim_start_matches(char::is_alphabetic).len();
        let micros = match &rest[..letters] {
            "us" | "usec" | "µs" | "μs" => 1,
            "ms" | "msec" => 1000,
            "" | "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            _ => return None,
        };
        sum = sum.checked_add(number.checked_mul(micros)?)?;
        rest = rest[letters..].trim_start();
    }
    (!text.trim().is_empty()).then_some(Micros(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoMachine, find, unit_lines};

    fn read(lines: &[&str]) -> UnitSettings {
        unit_settings(lines.iter().map(|line| line.split_once('=').unwrap()), Some(32_768))
    }

    #[test]
    fn lines_are_settings() {
        for (lines, name, text) in [
            (&["MemoryMax=1G"][..], "memory.max", "1G"),
            (&["MemoryMax=10%"], "memory.max", "10%"),
            (&["MemoryHigh=1G", "MemoryHigh=infinity"], "memory.high", "max"),
            (&["TasksMax=33%"], "pids.max", "10813"),
            (&["TasksMax=100"], "pids.max", "100"),
            (&["CPUQuota=150%"], "cpu.max", "1.5cpu"),
            (&["CPUQuota=200%"], "cpu.max", "2cpu"),
            (&["CPUQuota=33.33%"], "cpu.max", "33.33%"),
            (&["CPUQuotaPeriodSec=50ms", "CPUQuota=20%"], "cpu.max", "20%/50ms"),
            (&["AllowedCPUs=0-3 8", "AllowedCPUs=9"], "cpuset.cpus", "0-3,8,9"),
            (&["AllowedCPUs=0", "AllowedCPUs=", "AllowedCPUs=9"], "cpuset.cpus", "9"),
            (&["IOWeight=200", "IODeviceWeight=/dev/block/8:16 50"], "io.weight", "200; 8:16 50"),
            (
                &[
                    "IOReadBandwidthMax=/dev/vda 5M",
                    "IOWriteIOPSMax=/dev/vda 10",
                    "IOReadIOPSMax=/dev/vdb infinity",
                ],
                "io.max",
                "/dev/vda rbps=5000000 wiops=10; /dev/vdb riops=max",
            ),
            (&["IODeviceLatencyTargetSec=/dev/block/8:16 1s 500ms"], "io.latency", "8:16 target=1500ms"),
            (&["IOWriteBandwidthMax=/dev/vda 1.5G"], "io.max", "/dev/vda wbps=1500000000"),
            (&["IOReadBandwidthMax=/dev/vda 0.5K"], "io.max", "/dev/vda rbps=500"),
            // the names of before systemd 230
            (&["MemoryLimit=2G"], "memory.max", "2G"),
            (&["MemoryLimit=2G", "MemoryMax=1G"], "memory.max", "1G"),
            (&["CPUShares=512"], "cpu.weight", "50"),
            (&["BlockIOWeight=300", "BlockIODeviceWeight=/dev/vda 1000"], "io.weight", "60; /dev/vda 200"),
            (
                &["BlockIOReadBandwidth=/dev/vda 10M", "BlockIOWriteBandwidth=/dev/vda 5M"],
                "io.max",
                "/dev/vda rbps=10000000 wbps=5000000",
            ),
            (&["MemoryZSwapWriteback=no"], "memory.zswap.writeback", "0"),
        ] {
            let found = read(lines);
            assert_eq!(found.settings, [(name, text.to_owned())], "{lines:?}");
            assert_eq!(found.others, [""; 0], "{lines:?}");
        }
    }

    #[test]
    fn what_no_setting_says_stays_a_line() {
        let lines = ["CPUWeight=idle", "DeviceAllow=/dev/null rw", "Restart=always", "TasksMax=1"];
        let found = read(&lines);
        assert_eq!(found.settings, [("pids.max", "1".to_owned())]);
        assert_eq!(found.others, ["DeviceAllow=/dev/null rw", "CPUWeight=idle"]);
        // a line that can't be read leaves those beside it
        let found = read(&["IOReadBandwidthMax=/dev/vda much", "IOWriteIOPSMax=/dev/vda 10"]);
        assert_eq!(found.settings, [("io.max", "/dev/vda wiops=10".to_owned())]);
        assert_eq!(found.others, ["IOReadBandwidthMax=/dev/vda much"]);
        assert_eq!(unit_settings([("TasksMax", "5%")], None).others, ["TasksMax=5%"]);
    }

    #[test]
    fn what_an_export_writes_comes_back_as_the_same_value() {
        for (name, text) in [
            ("memory.max", "1073741824"),
            ("memory.high", "max"),
            ("pids.max", "100"),
            ("cpu.weight", "50"),
            ("cpu.max", "150000 100000"),
            ("cpu.max", "12345 50000"),
            ("io.max", "8:16 rbps=1048576 wiops=max\n8:0 riops=7"),
            ("io.latency", "8:16 target=10500"),
            ("io.weight", "default 200\n8:16 50"),
        ] {
            let lines = unit_lines(name, text).unwrap();
            let found = read(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            let [(same, back)] = found.settings.as_slice() else { panic!("{lines:?}: {found:?}") };
            let value = find(same).unwrap().parse(back, &NoMachine).unwrap();
            let written = find(name).unwrap().encode(Version::V2, &value, &|_| None).unwrap();
            let again: Vec<String> =
                written.iter().flat_map(|write| unit_lines(name, &write.text).unwrap()).collect();
            let sorted = |mut lines: Vec<String>| {
                lines.sort();
                lines
            };
            assert_eq!(sorted(again), sorted(lines), "{name} {text}: {back}");
        }
    }
}
