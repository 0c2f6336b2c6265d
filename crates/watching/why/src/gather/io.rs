//! What a group and its neighbours did with block devices between two moments. Decides nothing.

use std::time::Duration;

use settings::{Controller, DeviceNumber, Value, Version};
use units::Limit;

use super::{Looked, Moment, parent};
use crate::facts::{Busiest, DeviceFacts, IoFacts, Throttle};
use monitor::Instance;

impl Looked<'_> {
    pub(super) fn io(&self) -> IoFacts {
        let name = self.name();
        let own = self.growth(&name, "io.pressure.some").filter(|_| self.own_pressure);
        IoFacts {
            pressure: own.map(Duration::from_nanos),
            blocked: self.blocked,
            devices: self.devices(&name),
            busiest: self.busiest(),
        }
    }

    fn devices(&self, name: &str) -> Vec<DeviceFacts> {
        let after = &self.last.sample.groups;
        let mut devices: Vec<DeviceFacts> = Vec::new();
        for column in after.columns().list() {
            let Instance::Device(device) = column.instance else { continue };
            if devices.iter().any(|known| known.device == device) {
                continue;
            }
            let of = |group: &str, field: &str| self.device_growth(group, field, device);
            let others = self.neighbours().into_iter().filter_map(|group| {
                let operations = of(&group, "io.rios") + of(&group, "io.wios");
                (operations > 0).then_some((group, operations))
            });
            let mut others: Vec<(String, u64)> = others.collect();
            others.sort_by_key(|(_, operations)| std::cmp::Reverse(*operations));
            devices.push(DeviceFacts {
                device,
                name: self.device_name(device),
                service: self.service(device),
                rbytes: of(name, "io.rbytes"),
                wbytes: of(name, "io.wbytes"),
                rios: of(name, "io.rios"),
                wios: of(name, "io.wios"),
                others,
            });
        }
        devices.retain(|device| device.rios + device.wios > 0);
        devices
    }

    /// The limits that a group has, with what passed them. A limit of v1 is for the tasks directly in its group alone, while its
    /// counters include those below.
    pub(super) fn throttles(&self, name: &str) -> Vec<Throttle> {
        let is_flat = self.version(Controller::Io) != Some(Version::V2);
        if is_flat && name != self.name() {
            return Vec::new();
        }
        let Some(Value::PerDevice(devices)) = self.value(name, "io.max") else { return Vec::new() };
        let children: Vec<&String> = match is_flat {
            true => self.last.sample.groups.rows().iter().filter(|row| parent(row) == Some(name)).collect(),
            false => Vec::new(),
        };
        let of = |device: DeviceNumber, (key, limit): (&'static str, Limit<u64>)| {
            let field = match key {
                "rbps" => "io.rbytes",
                "wbps" => "io.wbytes",
                "riops" => "io.rios",
                _ => "io.wios",
            };
            let below: u64 = children.iter().map(|child| self.device_growth(child, field, device)).sum();
            let done = self.device_growth(name, field, device).saturating_sub(below);
            Some(Throttle { device, key, limit: limit.at()?, done })
        };
        devices
            .into_iter()
            .flat_map(|(device, keys)| keys.into_iter().filter_map(move |key| of(device, key)))
            .collect()
    }

    fn device_growth(&self, group: &str, field: &str, device: DeviceNumber) -> u64 {
        let of = |moment: &Moment| {
            let table = &moment.sample.groups;
            let row = table.row(group)?;
            let column = table
                .columns()
                .named(field)
                .find(|at| table.columns().list()[*at].instance == Instance::Device(device))?;
            table.reading(row, column).at()
        };
        // a device that was never used before has no figure before
        of(&self.last).unwrap_or(0).saturating_sub(of(&self.first).unwrap_or(0))
    }

    /// The groups that are neither above nor below this one, each as the highest of its own.
    fn neighbours(&self) -> Vec<String> {
        let own = self.names();
        let is_beside = |name: &&String| {
            let above = parent(name);
            !own.contains(name)
                && *name != "/"
                && above.is_none_or(|above| own[1..].iter().any(|one| one == above))
        };
        if own.is_empty() {
            return Vec::new();
        }
        self.last.sample.groups.rows().iter().filter(is_beside).cloned().collect()
    }

    /// By the time that operations took. Parts of a disk, and what is made of disks, count once more as that disk.
    fn busiest(&self) -> Option<Busiest> {
        let numbers = self.last.disks.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let device =
                DeviceNumber { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
            Some((device, words.next()?))
        });
        let grown = numbers.filter_map(|(device, name)| {
            let (operations, millis) = done(&self.last.disks, device)?;
            let (earlier, earlier_millis) = done(&self.first.disks, device).unwrap_or_default();
            let operations = operations.checked_sub(earlier)?;
            Some((millis.checked_sub(earlier_millis)?, Busiest { name: name.to_owned(), operations }))
        });
        let worked = grown.filter(|(_, busiest)| busiest.operations > 0);
        worked.max_by_key(|(millis, busiest)| (*millis, busiest.operations)).map(|(_, busiest)| busiest)
    }

    /// What an operation took at the device on average, of all who used it.
    fn service(&self, device: DeviceNumber) -> Option<Duration> {
        let (operations, millis) = done(&self.last.disks, device)?;
        let (earlier, earlier_millis) = done(&self.first.disks, device).unwrap_or_default();
        let operations = u32::try_from(operations.checked_sub(earlier)?).ok().filter(|number| *number > 0)?;
        Some(Duration::from_millis(millis.checked_sub(earlier_millis)?) / operations)
    }

    fn device_name(&self, device: DeviceNumber) -> Option<String> {
        let path = format!("/sys/dev/block/{device}/uevent");
        let text = self.host.kernel().outside(path.as_ref()).ok()?;
        text.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
    }
}

/// Reads and writes that a device did, and the milliseconds that they took in sum.
fn done(disks: &str, device: DeviceNumber) -> Option<(u64, u64)> {
    disks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let is_it = number(0)? == u64::from(device.major) && number(1)? == u64::from(device.minor);
        if !is_it {
            return None;
        }
        Some((number(3)?.checked_add(number(7)?)?, number(6)?.checked_add(number(10)?)?))
    })
}
