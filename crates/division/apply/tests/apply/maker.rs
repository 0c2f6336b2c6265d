//! Plans made by hand: data, that they make sense is the planner's part. Files are called as v1 calls them, where both
//! versions have them.

use kernel::{GroupName, Host};
use plan::{Action, Ownership, Place, Plan, Step};
use settings::{Controller, Version};

/// A file of v1 as a version calls it. The values of the tests are in both versions' ranges.
pub fn spoken(file: &str, version: Version) -> &str {
    match (file, version) {
        ("cpu.shares", Version::V2) => "cpu.weight",
        ("memory.limit_in_bytes", Version::V2) => "memory.max",
        _ => file,
    }
}

fn named(group: &str) -> GroupName {
    if group.is_empty() { GroupName::root() } else { GroupName::new(group).unwrap() }
}

/// A plan made by hand.
pub struct Maker<'h> {
    host: &'h Host,
    pub steps: Vec<Step>,
}

impl<'h> Maker<'h> {
    pub fn new(host: &'h Host) -> Maker<'h> {
        Maker { host, steps: Vec::new() }
    }

    pub fn place(&self, controller: Controller, group: &str) -> Place {
        let at = self.host.hierarchy_of(controller).unwrap();
        let path = self.host.seat_in(at, &named(group)).path;
        Place { hierarchy: at.id, path, version: at.version }
    }

    fn step(&mut self, group: &str, action: Action) -> &mut Self {
        let step = Step::new(named(group), action, "a test asks for it");
        self.steps.push(step);
        self
    }

    pub fn create(&mut self, controller: Controller, group: &str) -> &mut Self {
        let place = self.place(controller, group);
        self.step(group, Action::CreateGroup { place })
    }

    pub fn remove(&mut self, controller: Controller, group: &str) -> &mut Self {
        let place = self.place(controller, group);
        self.step(group, Action::RemoveGroup { place })
    }

    pub fn write(&mut self, controller: Controller, group: &str, file: &str, text: &str) -> &mut Self {
        let place = self.place(controller, group);
        let file = spoken(file, place.version).to_owned();
        let at = &self.host.hierarchies()[place.hierarchy];
        let before = self.host.kernel().read(at, &place.path, &file).ok();
        let before = before.map(|text| text.trim_end().to_owned());
        let text = text.to_owned();
        let step = Step::new(named(group), Action::Write { place, file, text }, "a test asks for it");
        self.steps.push(step.was(before));
        self
    }

    pub fn enable(&mut self, group: &str, names: &[&str]) -> &mut Self {
        let place = self.place(Controller::Core, group);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.step(group, Action::EnableControllers { place, names })
    }

    pub fn own(&mut self, controller: Controller, group: &str, tasks: u32, admin: u32) -> &mut Self {
        let place = self.place(controller, group);
        let access = Ownership {
            tasks_uid: Some(tasks),
            tasks_gid: Some(tasks),
            admin_uid: Some(admin),
            admin_gid: Some(admin),
            directory_mode: Some(0o750),
            ..Ownership::default()
        };
        self.step(group, Action::SetOwnership { place, access })
    }

    pub fn away(&mut self, group: &str, cpus: &str, to: &str) -> &mut Self {
        let place = self.place(Controller::Cpuset, group);
        let (cpus, to) = (cpus.parse().unwrap(), to.parse().unwrap());
        self.step(group, Action::MoveTasksAway { place, cpus, to })
    }

    pub fn plan(&mut self) -> Plan {
        Plan { steps: std::mem::take(&mut self.steps), ..Plan::default() }
    }
}
