//! Reads the block devices from `/sys/block`, below a root: whole disks, their partitions, and what device-mapper,
//! RAID and loop devices are made of. Never opens a device.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-block`.

use std::path::Path;

use units::Bytes;

use super::tree::Tree;
use crate::{BlockDevice, TopologyError};

const BLOCK: &str = "sys/block";
/// `size` counts in these, whatever the device's own sectors are.
const SECTOR: u64 = 512;

/// Whole disks by name, each followed by its partitions; `None` if there is no `/sys/block`.
pub(super) fn read(root: &Path) -> Result<Option<Vec<BlockDevice>>, TopologyError> {
    if !root.join(BLOCK).is_dir() {
        return Ok(None);
    }
    let mut tree = Tree::new(root);
    let mut names = tree.names(BLOCK)?;
    names.sort_by(|a, b| natural(a).cmp(&natural(b)));
    let mut devices = Vec::new();
    for name in names {
        // no number: hidden (a path of a multipath NVMe), or unplugged just now
        if let Some(disk) = disk(&mut tree, &name)? {
            let partitions = partitions(&mut tree, &name, &disk)?;
            devices.push(disk);
            devices.extend(partitions);
        }
    }
    Ok(Some(devices))
}

fn disk(tree: &mut Tree<'_>, name: &str) -> Result<Option<BlockDevice>, TopologyError> {
    let at = format!("{BLOCK}/{name}");
    let Some(mut disk) = device(tree, &at, name)? else { return Ok(None) };
    disk.rotational = tree.number::<u8>(&format!("{at}/queue/rotational"))?.map(|flag| flag != 0);
    disk.scheduler = tree.text(&format!("{at}/queue/scheduler"))?.map(chosen).filter(|s| !s.is_empty());
    disk.mapper_name = tree.text(&format!("{at}/dm/name"))?.map(str::to_owned);
    disk.backing_file = tree.text(&format!("{at}/loop/backing_file"))?.map(str::to_owned);
    disk.made_of = tree.names(&format!("{at}/slaves"))?.iter().map(|name| kernel_name(name)).collect();
    disk.made_of.sort_by(|a, b| natural(a).cmp(&natural(b)));
    Ok(Some(disk))
}

fn partitions(
    tree: &mut Tree<'_>,
    disk_name: &str,
    disk: &BlockDevice,
) -> Result<Vec<BlockDevice>, TopologyError> {
    let mut partitions = Vec::new();
    let mut names = tree.names(&format!("{BLOCK}/{disk_name}"))?;
    // the kernel names a partition after its disk; only those have the file `partition`
    names.retain(|name| name.starts_with(disk_name));
    names.sort_by(|a, b| natural(a).cmp(&natural(b)));
    for name in names {
        let at = format!("{BLOCK}/{disk_name}/{name}");
        if tree.number::<u32>(&format!("{at}/partition"))?.is_none() {
            continue;
        }
        if let Some(partition) = device(tree, &at, &name)? {
            partitions.push(BlockDevice {
                rotational: disk.rotational,
                scheduler: disk.scheduler.clone(),
                partition_of: Some(disk.name.clone()),
                ..partition
            });
        }
    }
    Ok(partitions)
}

/// What disks and partitions have in common.
fn device(tree: &mut Tree<'_>, at: &str, name: &str) -> Result<Option<BlockDevice>, TopologyError> {
    let path = format!("{at}/dev");
    let Some(number) = tree.text(&path)? else { return Ok(None) };
    let parts =
        number.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) = parts.ok_or_else(|| tree.wrong(&path, "a device number as in '8:16'"))?;
    let sectors: u64 = tree.number(&format!("{at}/size"))?.unwrap_or(0);
    let size = Bytes(sectors.saturating_mul(SECTOR));
    Ok(Some(BlockDevice { name: kernel_name(name), major, minor, size, ..BlockDevice::default() }))
}

/// `none [mq-deadline] kyber`: the one in brackets is in use; a single word without stands for itself.
fn chosen(list: &str) -> String {
    let marked = list.split_whitespace().find_map(|name| name.strip_prefix('[')?.strip_suffix(']'));
    marked.unwrap_or(list).to_owned()
}

/// sysfs writes a slash of a device's name (`cciss/c0d0`) as an exclamation mark.
fn kernel_name(name: &str) -> String {
    name.replace('!', "/")
}

/// Sorts `sda2` before `sda10`: text and numbers by turns.
fn natural(name: &str) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        parts.push((text, tail[..end].parse().unwrap_or(u64::MAX)));
        rest = &tail[end..];
    }
    parts
}
