//! Makes a group that a rule leads to and that is not there, with what its template asks. All of it or nothing: what was
//! made is removed again if its settings are refused. Values are written by `apply`, which reads them back.

use std::path::PathBuf;

use apply::SettingValue;
use kernel::{Access, Created, GroupName, Host, Who};
use layout::{
    Account, Assigned, Controllers, CpuDemand, Demands, Desired, Group, MemDemand, NamePattern, Person,
    Spanned, Subsystem,
};
use plan::{Assignment, SettingRequest};
use settings::{AdminFiles, Controller, NamedSetting, Value, Version};
use topology::Machine;

use crate::{Error, Goal, Names, NewDirectory, goals::needed};

/// What making groups needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'m> {
    pub host: &'m Host,
    pub desired: &'m Desired,
    pub names: &'m dyn Names,
}

impl Maker<'_> {
    /// Makes the group of a goal if it is to be made on demand and is not there. Only names with codes are: a group with
    /// a plain name that is missing is a mistake, or was removed on purpose. Returns the group's directories that were made.
    pub fn ready(&self, goal: &Goal) -> Result<Vec<NewDirectory>, Error> {
        if goal.pattern.name().is_some() || self.is_there(goal) {
            return Ok(Vec::new());
        }
        let demands = self.desired.template(&goal.pattern).map(|template| &template.demands);
        let created = self.create(goal, demands)?;
        let filled = self.fill(&goal.group, demands, &created.made);
        filled.inspect_err(|_| self.unmake(&goal.group, &created.made))?;
        // not the groups above it
        let made = created.directories.into_iter().filter(|directory| created.made.contains(directory));
        Ok(made.map(|directory| NewDirectory { group: goal.group.clone(), directory }).collect())
    }

    fn is_there(&self, goal: &Goal) -> bool {
        crate::seats(self.host, std::slice::from_ref(goal)).is_ok()
    }

    fn create(&self, goal: &Goal, demands: Option<&Demands>) -> Result<Created, Error> {
        let access = demands.map(|demands| self.access(demands)).transpose()?.unwrap_or_default();
        let Controllers::These(these) = &goal.controllers else {
            return Ok(self.host.create(&goal.group, None, &access)?);
        };
        let requested = demands.map(|demands| demands.controllers.as_slice()).unwrap_or_default();
        let requested = requested.iter().map(|subsystem| &subsystem.value);
        let (mut controllers, mut named) = (Vec::new(), Vec::new());
        for subsystem in these.iter().chain(requested) {
            match subsystem {
                Subsystem::Controller(controller) => controllers.push(*controller),
                Subsystem::Named(name) => named.push(name.as_str()),
            }
        }
        controllers.extend(demands.into_iter().flat_map(needed));
        let mut created = Created { directories: Vec::new(), made: Vec::new(), empty_cpusets: Vec::new() };
        if !controllers.is_empty() {
            created = created.and(self.host.create(&goal.group, Some(&controllers), &access)?);
        }
        if !named.is_empty() {
            let more = self.host.create_named(&goal.group, &named, &access);
            let more = more.inspect_err(|_| self.unmake(&goal.group, &created.made))?;
            created = created.and(more);
        }
        Ok(created)
    }

    fn access(&self, demands: &Demands) -> Result<Access, Error> {
        let account = |account: &Option<Account>, group: bool| match account {
            None => Ok(None),
            Some(Account::Id(number)) => Ok(Some(*number)),
            Some(Account::Name(name)) => {
                let found = if group { self.names.group(name) } else { self.names.user(name) };
                found.map(Some).map_err(Error::Nobody)
            }
        };
        let who = |person: &Option<Spanned<Person>>| -> Result<Who, Error> {
            match person {
                None => Ok(Who::default()),
                Some(Spanned { value, .. }) => {
                    Ok(Who { uid: account(&value.user, false)?, gid: account(&value.group, true)? })
                }
            }
        };
        let mode = |person: &Option<Spanned<Person>>| Some(person.as_ref()?.value.mode?.bits());
        Ok(Access {
            tasks: who(&demands.tasks)?,
            admin: who(&demands.admin)?,
            admin_files: demands.admin.as_ref().map_or(AdminFiles::Own, |admin| admin.value.files()),
            directory_mode: demands.admin.as_ref().and_then(|admin| Some(admin.value.directory_mode?.bits())),
            file_mode: mode(&demands.admin),
            tasks_mode: mode(&demands.tasks),
        })
    }

    /// Gives a new group what its template asks, and on v1 new cpusets what no task can run without.
    fn fill(&self, group: &GroupName, demands: Option<&Demands>, made: &[PathBuf]) -> Result<(), Error> {
        for parent in above(group) {
            self.inherit(&parent, made)?;
        }
        if let Some(demands) = demands {
            let mut requests = self.sets(group, demands, made)?;
            for assigned in &demands.settings {
                requests.extend(self.ask_assigned(group, assigned, made)?);
            }
            if !requests.is_empty() {
                apply::set(self.host, &requests)?;
            }
        }
        self.inherit(group, made)
    }

    fn ask_assigned(
        &self,
        group: &GroupName,
        assigned: &Assigned,
        made: &[PathBuf],
    ) -> Result<Option<SettingRequest>, Error> {
        self.request(group, parsed(group, assigned.found.clone(), &assigned.text)?, made)
    }

    /// The request for a group that was made just now; `None` in a hierarchy in which it was there before.
    fn request(
        &self,
        group: &GroupName,
        value: SettingValue,
        made: &[PathBuf],
    ) -> Result<Option<SettingRequest>, Error> {
        let request = value.request(self.host, group)?;
        let directory = self.host.hierarchies()[request.place.hierarchy].path(&request.place.path);
        Ok(made.contains(&directory).then_some(request))
    }

    /// CPUs and memory nodes: as they are said, or as a planner chooses them.
    fn sets(
        &self,
        group: &GroupName,
        demands: &Demands,
        made: &[PathBuf],
    ) -> Result<Vec<SettingRequest>, Error> {
        let cpus = demands.cpus.as_ref().map(|cpus| &cpus.value);
        let mems = demands.mems.as_ref().map(|mems| &mems.value);
        let (cpus, mems) = match (cpus, mems) {
            (None, None) => return Ok(Vec::new()),
            (Some(CpuDemand::These(cpus)), None) => (Some(cpus.clone()), None),
            (None, Some(MemDemand::These(mems))) => (None, Some(mems.clone())),
            (Some(CpuDemand::These(cpus)), Some(MemDemand::These(mems))) => {
                (Some(cpus.clone()), Some(mems.clone()))
            }
            _ => {
                let chosen = self.chosen(group, demands)?;
                (chosen.cpus, chosen.mems)
            }
        };
        let mut requests = Vec::new();
        let values = [("cpuset.cpus", cpus.map(Value::Cpus)), ("cpuset.mems", mems.map(Value::Nodes))];
        for (name, value) in values {
            if let (Some(found), Some(value)) = (settings::lookup(name), value) {
                requests.extend(self.request(group, SettingValue { found, value }, made)?);
            }
        }
        if let Some(found) = settings::lookup("cpuset.cpus.partition").filter(|_| demands.exclusive) {
            requests.extend(self.request(group, parsed(group, found, "root")?, made)?);
        }
        Ok(requests)
    }

    /// Asks the planner, as if the group stood in the layout beside the others.
    fn chosen(&self, group: &GroupName, demands: &Demands) -> Result<Assignment, Error> {
        let mut desired = self.desired.clone();
        let origin = layout::Origin::outside_files("a template");
        let demands = Demands { tasks: None, admin: None, ..demands.clone() };
        desired.groups.push(Group { name: group.clone(), demands, matches: Vec::new(), origin });
        let running = apply::Running::new();
        let target = apply::Target { host: self.host, system: &running };
        let machine =
            Machine::live().map_err(|error| Error::Cpus { group: group.clone(), why: error.to_string() })?;
        let planned = apply::planned(
            target,
            &apply::Earlier::none(),
            &desired,
            &machine,
            &system::Live,
            &plan::Anybody,
        );
        let why = |problems: Vec<plan::Problem>| {
            problems.iter().map(|problem| problem.diagnostic().message).collect::<Vec<_>>().join("; ")
        };
        let planned = planned.map_err(|problems| Error::Cpus { group: group.clone(), why: why(problems) })?;
        let chosen = planned.assignments.into_iter().find(|assignment| assignment.group == *group);
        chosen.ok_or_else(|| Error::Cpus { group: group.clone(), why: "nothing was chosen".to_owned() })
    }

    /// A new v1 cpuset is empty and takes no task: it gets its parent's CPUs and memory nodes.
    fn inherit(&self, group: &GroupName, made: &[PathBuf]) -> Result<(), Error> {
        let Some(at) = self.host.hierarchy_of(Controller::Cpuset).filter(|at| at.version == Version::V1)
        else {
            return Ok(());
        };
        let seat = self.host.seat_in(at, group);
        if !made.contains(&seat.directory()) {
            return Ok(());
        }
        let mut requests = Vec::new();
        for name in ["cpuset.cpus", "cpuset.mems"] {
            let empty = self.host.read(&seat, group, name)?.trim().is_empty();
            if let Some(found) = settings::lookup(name).filter(|_| empty) {
                let value = apply::get(self.host, &parent(group), &found)?.value;
                requests.extend(self.request(group, SettingValue { found, value }, made)?);
            }
        }
        if !requests.is_empty() {
            apply::set(self.host, &requests)?;
        }
        Ok(())
    }

    /// Removes what was made, the deepest first. What can't be removed is empty, and harmless.
    fn unmake(&self, group: &GroupName, made: &[PathBuf]) {
        let mut names = above(group);
        names.push(group.clone());
        for name in names.iter().rev() {
            let seats = self.host.seats(name);
            if !seats.is_empty() && seats.iter().all(|seat| made.contains(&seat.directory())) {
                let _ = self.host.delete(name, false);
            }
        }
    }
}

/// A template's value on this machine.
fn parsed(group: &GroupName, found: NamedSetting, text: &str) -> Result<SettingValue, Error> {
    let value = SettingValue::of(found, text, &system::Live);
    Ok(value.map_err(|error| Error::Value { group: group.clone(), error })?.0)
}

/// The groups above one, the highest first, without the place where our groups are.
fn above(group: &GroupName) -> Vec<GroupName> {
    let cuts = group.path().match_indices('/').map(|(at, _)| &group.path()[..at]);
    let slash = if group.is_from_root() { "/" } else { "" };
    cuts.filter_map(|path| GroupName::new(&format!("{slash}{path}")).ok()).collect()
}

fn parent(group: &GroupName) -> GroupName {
    let highest = if group.is_from_root() { GroupName::root() } else { GroupName::base() };
    above(group).pop().unwrap_or(highest)
}

/// Is there a template of that name, or a name with codes alone?
pub(crate) fn is_made_on_demand(pattern: &NamePattern) -> bool {
    pattern.name().is_none()
}
