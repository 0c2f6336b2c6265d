//! Limits and weights by block device that the kernel of this machine would refuse: there is no such device, or it has
//! another scheduler than a weight needs.

use std::collections::BTreeMap;

use settings::{DeviceNumber, Value};
use topology::{BlockDevice, Machine};
use units::Limit;

use crate::{
    Observed, Problem,
    values::{Valued, parts},
};

/// All that the kernel does not hold already. Of a machine that is not at hand nothing is said.
pub(crate) fn check(
    values: &[Valued<'_>],
    machine: &Machine,
    observed: &Observed,
    problems: &mut Vec<Problem>,
) {
    let known = machine.block_devices.as_ref().filter(|_| observed.hostname.is_some());
    let Some(known) = known else { return };
    problems.extend(values.iter().filter_map(|valued| refused(valued, known)));
}

fn refused(valued: &Valued<'_>, known: &[BlockDevice]) -> Option<Problem> {
    let problem = |message: String, hint: String| Problem::Value {
        group: valued.group.to_string(),
        message,
        origin: valued.origin.clone(),
        hint: Some(hint),
    };
    let name = &valued.found.name;
    parts(&valued.value).into_iter().filter(|(_, part)| !valued.holds(part)).find_map(|(_, part)| {
        let (number, is_weight) = named(&part)?;
        let is_it = |device: &&BlockDevice| (device.major, device.minor) == (number.major, number.minor);
        let Some(device) = known.iter().find(is_it) else {
            return Some(problem(
                format!("{name}: there is no block device {number}"),
                "lsblk lists them".to_owned(),
            ));
        };
        let other = device.scheduler.as_ref().filter(|scheduler| *scheduler != "bfq")?;
        let of_bfq = is_weight && valued.found.setting.name == "io.bfq.weight";
        of_bfq.then(|| {
            let message = format!(
                "{name}: /dev/{} has the scheduler {other}, and a weight of its own only with bfq",
                device.name
            );
            let name = device.name.replace('/', "!");
            problem(message, format!("echo bfq > /sys/block/{name}/queue/scheduler"))
        })
    })
}

/// The device that a part is about; whether it has a weight. What takes a limit or a weight away is no matter.
fn named(part: &Value) -> Option<(DeviceNumber, bool)> {
    match part {
        Value::PerDevice(devices) => {
            let is_limited =
                |keys: &BTreeMap<&str, Limit<u64>>| keys.values().any(|limit| *limit != Limit::Max);
            devices.iter().find(|(_, keys)| is_limited(keys)).map(|(device, _)| (*device, false))
        }
        Value::Weights { devices, .. } => {
            devices.iter().find(|(_, weight)| weight.is_some()).map(|(device, _)| (*device, true))
        }
        _ => None,
    }
}
