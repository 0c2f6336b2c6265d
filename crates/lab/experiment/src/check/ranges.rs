//! Sizes, counts and rates of devices and workloads: what is too little or too much to be meant.

use units::Bytes;

use super::Check;
use crate::file::{Device, Driver};

/// Of a loop device or a swap file.
const DEVICE: (u64, u64) = (1 << 20, 16 << 40);

/// Of a name that becomes a part of a path or of a command.
const LONGEST_NAME: usize = 64;

impl Check<'_> {
    pub(super) fn device(&mut self, name: &str, device: &Device) {
        let path = format!("device.{name}");
        if !is_plain(name) {
            let hint = Some("letters, digits, '-' and '_', at most 64".to_owned());
            self.error_at_key(&path, format!("{name:?} is not a name for a device"), hint);
        }
        let (Device::Loop { size, .. } | Device::Swap { size }) = device;
        self.size(&format!("{path}.size"), size, DEVICE);
        if let Device::Loop { scheduler, file_system, .. } = device {
            for (key, word, such) in [("scheduler", scheduler, "bfq"), ("file-system", file_system, "ext4")] {
                // mkfs.NAME is run as root
                if let Some(word) = word.as_ref().filter(|word| !is_plain(word)) {
                    let hint = Some(format!("such as {such}"));
                    self.error(&format!("{path}.{key}"), format!("{word:?} is not a name"), hint);
                }
            }
        }
    }

    /// What every driver itself would refuse later, or could never do.
    pub(super) fn ranges(&mut self, path: &str, driver: &Driver) {
        match driver {
            Driver::Read(read) => {
                self.size(&format!("{path}.block"), &read.block, (512, 1 << 20));
                self.count(path, "depth", read.depth, (1, 1024));
            }
            Driver::Fio(fio) => {
                self.size(&format!("{path}.block"), &fio.block, (512, 64 << 20));
                self.count(path, "jobs", fio.jobs, (1, 1024));
                self.count(path, "depth", fio.depth, (1, 65_536));
            }
            Driver::Pgbench(pgbench) => {
                self.count(path, "clients", pgbench.clients, (1, 10_000));
                self.count(path, "threads", pgbench.threads, (1, 8192));
                self.count(path, "scale", pgbench.scale, (1, 100_000));
                if let Some(partitions) = pgbench.partitions {
                    self.count(path, "partitions", partitions, (1, 1000));
                }
                self.rate(path, "rate", pgbench.rate);
            }
            Driver::Oltp(oltp) => {
                self.count(path, "clients", oltp.clients, (1, 8192));
                if let Some(workers) = oltp.workers {
                    self.count(path, "workers", workers, (1, 8192));
                }
                self.count(path, "rows", oltp.rows, (1, 1_000_000_000));
                self.size(&format!("{path}.memory"), &oltp.memory, (0, 16 << 40));
                self.rate(path, "rate", oltp.rate);
                self.rate(path, "burst-rate", oltp.burst_rate);
                if oltp.burst_rate.is_some() && oltp.rate.is_none() {
                    let hint = Some("give the rate between bursts, as rate".to_owned());
                    self.error(&format!("{path}.burst-rate"), "bursts need a rate".to_owned(), hint);
                }
                self.count(path, "burst-every-ms", oltp.burst_every_ms, (1, 3_600_000));
                self.count(path, "burst-ms", oltp.burst_ms, (1, u64::from(oltp.burst_every_ms)));
            }
            Driver::Cyclic(cyclic) | Driver::Cyclictest(cyclic) => {
                self.count(path, "interval-us", cyclic.interval_us, (10, 1_000_000));
                self.count(path, "priority", cyclic.priority, (0, 99));
                self.count(path, "threads", cyclic.threads, (1, 1024));
            }
            Driver::LogicalIo(engine) => {
                self.count(path, "quantum-ms", engine.quantum_ms, (1, 60_000));
                self.count(path, "words", engine.words, (1, 1024));
                if let Some(memory) = &engine.memory {
                    self.size(&format!("{path}.memory"), memory, (1 << 20, 16 << 40));
                }
            }
            Driver::Cpu(_)
            | Driver::Busy(_)
            | Driver::Sleepers(_)
            | Driver::Writers(_)
            | Driver::IdlePoll(_)
            | Driver::Sysbench(_)
            | Driver::StressNg(_)
            | Driver::Rtla(_)
            | Driver::Command(_) => {}
        }
    }

    fn size(&mut self, path: &str, text: &str, (least, most): (u64, u64)) {
        match text.parse::<Bytes>() {
            Err(why) => self.error(path, why.to_string(), None),
            Ok(size) if !(least..=most).contains(&size.0) => {
                let hint = Some(format!("from {} to {}", Bytes(least), Bytes(most)));
                let what = if size.0 < least { "too small" } else { "too large" };
                self.error(path, format!("'{text}' is {what}"), hint);
            }
            Ok(_) => {}
        }
    }

    fn count(&mut self, path: &str, key: &str, value: impl Into<u64>, (least, most): (u64, u64)) {
        let value = value.into();
        if !(least..=most).contains(&value) {
            let hint = Some(format!("from {least} to {most}"));
            self.error(&format!("{path}.{key}"), format!("{key} {value} is out of range"), hint);
        }
    }

    fn rate(&mut self, path: &str, key: &str, rate: Option<f64>) {
        if let Some(rate) = rate.filter(|rate| !(0.001..=1e9).contains(rate)) {
            let hint = Some("from 0.001 to 1,000,000,000 a second".to_owned());
            self.error(&format!("{path}.{key}"), format!("{key} {rate} is out of range"), hint);
        }
    }
}

/// Can it be a part of a path and of a command without being anything else?
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-')
}
