//! Facts that values need of a machine that is not at hand.

use settings::{DeviceNumber, Facts};
use topology::Machine;
use units::Bytes;

/// A described machine.
#[derive(Debug, Clone, Copy)]
pub struct MachineFacts<'m>(pub &'m Machine);

impl Facts for MachineFacts<'_> {
    fn memory(&self) -> Option<Bytes> {
        self.0.memory_total()
    }

    fn cpus(&self) -> Option<usize> {
        self.0.online().last().map(|last| last + 1)
    }

    /// By the kernel's name or the device mapper's; files and links of that machine are not known.
    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        let mapped = path.strip_prefix("/dev/mapper/");
        let by_mapper = |name: &str| {
            let all = self.0.block_devices.iter().flatten();
            all.clone().find(|device| device.mapper_name.as_deref() == Some(name))
        };
        let found = self.0.block_device(path).or_else(|| mapped.and_then(by_mapper));
        let number = found.map(|device| DeviceNumber { major: device.major, minor: device.minor });
        number.ok_or_else(|| format!("{path} is no block device that this machine's description names"))
    }
}
