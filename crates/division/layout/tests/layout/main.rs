//! Configurations in, what is desired or what is wrong out: the studies' files as they are, bad ones with what is said
//! of them, the way out and back in, and texts that nobody would write.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod bad;
mod exports;
mod latencies;
mod libcgroup;
mod memory;
mod own;
mod pages;
mod random;
mod studies;
mod verified;

use layout::{Desired, Reading, Source};
use settings::{DeviceNumber, Facts};
use units::Bytes;

/// A machine of 256 GiB and 32 CPUs with one disk.
struct Machine;

impl Facts for Machine {
    fn memory(&self) -> Option<Bytes> {
        Some(Bytes(256 << 30))
    }
    fn cpus(&self) -> Option<usize> {
        Some(32)
    }
    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        match path {
            "/dev/sdb" => Ok(DeviceNumber { major: 8, minor: 16 }),
            path => Err(format!("{path} does not exist")),
        }
    }
}

/// What a text without errors or warnings asks.
fn desired(name: &str, text: &str) -> Desired {
    let sources = [Source::new(name, text)];
    let reading = layout::read(&sources);
    assert!(reading.diagnostics.is_empty(), "{}", layout::render(&reading.diagnostics, &sources));
    reading.desired.unwrap()
}

/// What is said of texts, as a user sees it.
fn said(files: &[(&str, &str)]) -> (Reading, String) {
    let sources: Vec<Source> = files.iter().map(|(name, text)| Source::new(name, text)).collect();
    let reading = layout::read(&sources);
    let text = layout::render(&reading.diagnostics, &sources);
    (reading, text)
}
