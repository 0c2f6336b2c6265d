//! The delegated unit on a host where systemd is the first process; elsewhere there is nothing to test.

use std::process::Command;

use fake::suite;
use kernel::{Access, GroupName, Host, Real};
use libtest_mimic::{Failed, Trial};
use settings::{Controller, Version};
use systemd::ensure_unit;

const UNIT: &str = "ringfence.service";

/// Tests for a host that keeps our groups below a unit.
pub fn trials() -> Vec<Trial> {
    let is_below = Host::new(Box::new(Real::new())).is_ok_and(|host| host.needs_unit());
    let lacks = (!is_below).then(|| "systemd, with groups below a unit".to_owned());
    vec![suite::fallible("groups_below_the_unit_outlive_what_systemd_does", lacks, groups_outlive_systemd)]
}

/// A group of a test, removed when it ends.
struct Group(Host, GroupName);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.0.delete(&self.1, true);
    }
}

fn groups_outlive_systemd() -> Result<(), Failed> {
    let host = Host::new(Box::new(Real::new()))?;
    ensure_unit(&host)?;
    if std::fs::read_dir("/proc/self/task")?.count() > 2 {
        return Err("a thread of the bus connection is left, and run() may have but one".into());
    }
    let name = GroupName::new("rf-test-unit/empty")?;
    let group = Group(host, GroupName::new("rf-test-unit")?);
    let host = &group.0;
    let controllers =
        [Controller::Cpu, Controller::Cpuset, Controller::Io, Controller::Memory, Controller::Pids];
    host.create(&name, Some(&controllers), &Access::default())?;
    let seat = host.seat(&name, Controller::Pids)?;
    host.write(&seat, &name, "pids.max", "77")?;
    for words in [
        ["daemon-reload"].as_slice(),
        &["daemon-reexec"],
        &["set-property", "--runtime", UNIT, "CPUWeight=100"],
    ] {
        if !Command::new("systemctl").args(words).status()?.success() {
            return Err(format!("systemctl {} failed", words.join(" ")).into());
        }
        // what systemd still does after it has answered
        std::thread::sleep(std::time::Duration::from_secs(1));
        ensure_unit(host)?;
        for controller in controllers {
            host.seat(&name, controller)?;
        }
        let held = host.read(&seat, &name, "pids.max")?;
        if held.trim() != "77" {
            return Err(format!("after {}: pids.max is {held}", words.join(" ")).into());
        }
    }
    let stopped = Command::new("systemctl").args(["stop", UNIT]).output()?;
    if stopped.status.success() {
        return Err("systemctl stop took the groups away".into());
    }
    let own = host.seat(&GroupName::new("/")?, Controller::Pids)?;
    let inside = host.kernel().read(own.at, "ringfence.slice/ringfence.service", "cgroup.procs")?;
    if own.at.version == Version::V2 && !inside.is_empty() {
        return Err(
            format!("the unit itself holds processes, which v2 forbids above groups: {inside}").into()
        );
    }
    Ok(())
}
