//! Facts of this machine that values need: its memory, its CPUs, and the number of a device at a path.

use std::{fs, os::unix::fs::FileTypeExt, os::unix::fs::MetadataExt, path::Path};

use settings::{DeviceNumber, Facts, Value};
use units::{Bytes, CpuSet};

/// This machine.
pub struct Live;

impl Facts for Live {
    fn memory(&self) -> Option<Bytes> {
        let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
        let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(Bytes(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024))
    }

    fn cpus(&self) -> Option<usize> {
        let online: CpuSet = fs::read_to_string("/sys/devices/system/cpu/online").ok()?.parse().ok()?;
        online.last().map(|last| last + 1)
    }

    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        let found = fs::metadata(path).map_err(|error| format!("{path}: {error}"))?;
        let number = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
        let number = DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
        // overlay, btrfs and tmpfs have numbers that no block device has
        if number.major == 0 {
            return Err(format!("{path} is not on a block device of its own (lsblk lists them)"));
        }
        Ok(number)
    }
}

/// How many tasks this machine can have, of which systemd's `TasksMax=33%` is a share (`system_tasks_max()` in its
/// `limits-util.c`).
pub fn tasks_max() -> Option<u64> {
    let limits = ["pid_max", "threads-max"].map(|name| format!("/proc/sys/kernel/{name}"));
    limits.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok()).min()
}

/// The kernel limits whole disks only: partitions become their disk, each with a warning.
pub fn whole_disks(value: Value) -> (Value, Vec<String>) {
    let mut warnings = Vec::new();
    let mut whole = |device: DeviceNumber| match disk_of(device) {
        Some((disk, name)) => {
            warnings.push(format!("{device} is a partition: the whole disk {name} ({disk}) is limited"));
            disk
        }
        None => device,
    };
    let value = match value {
        Value::PerDevice(devices) => {
            Value::PerDevice(devices.into_iter().map(|(device, keys)| (whole(device), keys)).collect())
        }
        Value::Weights { default, devices } => Value::Weights {
            default,
            devices: devices.into_iter().map(|(device, weight)| (whole(device), weight)).collect(),
        },
        other => other,
    };
    (value, warnings)
}

/// The disk that a partition is on, with its name; `None` for whole disks.
fn disk_of(device: DeviceNumber) -> Option<(DeviceNumber, String)> {
    let link = format!("/sys/dev/block/{device}");
    Path::new(&link).join("partition").exists().then_some(())?;
    // the partition's directory lies in its disk's
    let target = fs::read_link(&link).ok()?;
    let name = target.parent()?.file_name()?.to_str()?.to_owned();
    let number = fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok()?;
    Some((number.trim().parse().ok()?, name))
}

/// The number of a block device by its kernel's name, `sda` or `nvme0n1p2`; `None` if there is none.
pub fn block_device(name: &str) -> Option<DeviceNumber> {
    // a name is no path
    (!name.is_empty() && !name.contains(['/', '.'])).then_some(())?;
    fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok()?.trim().parse().ok()
}

/// The kernel's name of a block device; `None` if there is none of that number.
pub fn block_device_name(device: DeviceNumber) -> Option<String> {
    let target = fs::read_link(format!("/sys/dev/block/{device}")).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}
