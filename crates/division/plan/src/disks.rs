//! Limits and weights by block device as those of whole disks: the kernel knows no others.

use std::collections::BTreeMap;

use layout::Assigned;
use settings::{DeviceNumber, GroupName, Value};
use topology::Machine;
use units::Limit;

use crate::{Lint, LintKind};

/// A value by device as one of whole disks; what is said of a disk under several names is named.
pub(crate) fn whole(
    group: &GroupName,
    assigned: &Assigned,
    value: Value,
    machine: &Machine,
    lints: &mut Vec<Lint>,
) -> Value {
    let whole = |device: DeviceNumber, lints: &mut Vec<Lint>| {
        let found = machine.block_device_numbered(device.major, device.minor);
        let disk = found.and_then(|found| machine.whole_disk(found)).filter(|disk| Some(*disk) != found);
        let Some((disk, part)) = disk.zip(found) else { return device };
        let message = format!(
            "{} of group '{group}' names the partition {}, but holds for the whole disk {}",
            assigned.found.name, part.name, disk.name
        );
        let lint = Lint::new(LintKind::Partition, Some(group), message).at(&assigned.origin);
        lints.push(lint.hint(format!("name the disk, /dev/{}", disk.name)));
        DeviceNumber { major: disk.major, minor: disk.minor }
    };
    match value {
        Value::PerDevice(devices) => {
            let mut disks: BTreeMap<DeviceNumber, BTreeMap<&'static str, Limit<u64>>> = BTreeMap::new();
            for (device, keys) in devices {
                let number = whole(device, lints);
                let disk = disks.entry(number).or_default();
                for (key, limit) in keys {
                    let Some(known) = disk.get(key).copied().filter(|known| *known != limit) else {
                        disk.insert(key, limit);
                        continue;
                    };
                    let tightest = known.min(limit);
                    disk.insert(key, tightest);
                    let message = format!(
                        "{} of group '{group}' has {key}={known} and {key}={limit} for one disk, {number}: {tightest} counts",
                        assigned.found.name
                    );
                    let lint = Lint::new(LintKind::Partition, Some(group), message).at(&assigned.origin);
                    lints.push(lint.hint("keep one of them"));
                }
            }
            Value::PerDevice(disks)
        }
        Value::Weights { default, devices } => {
            let disks = devices.into_iter().map(|(device, weight)| (whole(device, lints), weight));
            Value::Weights { default, devices: disks.collect() }
        }
        other => other,
    }
}
