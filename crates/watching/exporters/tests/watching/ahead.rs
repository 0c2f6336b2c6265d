//! A group for the suite itself: in the root group it would share one weight with the whole session (sched(7), autogroup), and what
//! spins in a test's group of the greatest weight would leave it a hundredth of a CPU.

use kernel::{Access, GroupName, Host, Real};
use settings::Controller;

/// This process is in a group of the greatest weight as long as this lives.
pub struct Ahead {
    host: Host,
    group: GroupName,
    before: String,
}

impl Ahead {
    /// None where no such group can be made.
    pub fn new() -> Option<Ahead> {
        let host = Host::new(Box::new(Real::new())).ok()?;
        let at = host.hierarchy_of(Controller::Cpu)?;
        let path = host.kernel().group_of(at, std::process::id()).ok()?;
        let before = at.below_mount(&path)?.to_owned();
        let group = GroupName::new(&format!("rf-test-ahead-{}", std::process::id())).ok()?;
        host.create(&group, Some(&[Controller::Cpu]), &Access::default()).ok()?;
        let ahead = Ahead { host, group, before };
        let weight = settings::find("cpu.weight").ok()?;
        let value = weight.parse("10000", &settings::NoMachine).ok()?;
        let place = apply::place(&ahead.host, &ahead.group, &weight).ok()?;
        let request = plan::SettingRequest { group: ahead.group.clone(), place, found: weight, value };
        apply::set(&ahead.host, &[request]).ok()?;
        ahead.move_to(&ahead.host.seat(&ahead.group, Controller::Cpu).ok()?.path);
        Some(ahead)
    }

    fn move_to(&self, path: &str) {
        if let Some(at) = self.host.hierarchy_of(Controller::Cpu) {
            let _ = self.host.kernel().write(at, path, "cgroup.procs", "0");
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.move_to(&self.before);
        if let Ok(seat) = self.host.seat(&self.group, Controller::Cpu) {
            let _ = self.host.kernel().rmdir(seat.at, &seat.path);
        }
    }
}
