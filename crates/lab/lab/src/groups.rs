//! The groups of one experiment: below one group of its own, made where their controllers live, given settings that are
//! put back after each run, and removed with everything in them. How all that is written is `apply`'s and `kernel`'s.

use std::time::{Duration, Instant};

use apply::{InvalidSetting, SettingValue};
use experiment::results::Setting;
use kernel::{Access, GroupName, Host};
use plan::SettingRequest;
use settings::{Controller, Value};
use units::group_path;

use crate::Error;

/// How long killed processes may take to be gone. Reads that a limit holds back keep them.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts at it.
const AGAIN: Duration = Duration::from_millis(10);

/// What is always accounted, where there is such a controller.
const ACCOUNTED: [&str; 3] = ["cpu", "cpuacct", "memory"];

/// Makes them, sets them, removes them.
pub(crate) struct Groups {
    parent: String,
    /// One per call of [`Groups::set`]: what was requested, and what was there before.
    done: Vec<Vec<(SettingRequest, Option<Value>)>>,
    /// Programs of the machine are in a group below: nothing may be killed.
    pub holds_others: bool,
}

impl Groups {
    /// Those of an experiment that will be below this group. Nothing is made yet.
    pub fn below(parent: &str) -> Groups {
        Groups { parent: parent.to_owned(), done: Vec::new(), holds_others: false }
    }

    /// The group above all.
    pub fn parent(&self) -> Result<GroupName, Error> {
        Ok(GroupName::new(&self.parent)?)
    }

    /// A group's whole name.
    pub fn name(&self, group: &str) -> Result<GroupName, Error> {
        Ok(GroupName::new(&group_path::join(&self.parent, group))?)
    }

    /// Makes the parent and these groups, where the controllers of these settings are. On cgroup v1 they may use all
    /// CPUs and memory nodes at first, as on v2.
    pub fn make<'s>(
        &self,
        host: &Host,
        names: impl Iterator<Item = &'s str>,
        settings: impl Iterator<Item = &'s str>,
    ) -> Result<(), Error> {
        let mut controllers: Vec<Controller> = Vec::new();
        let accounted = ACCOUNTED.iter().filter_map(|name| Controller::from_name(name));
        controllers.extend(accounted.filter(|controller| host.hierarchy_of(*controller).is_some()));
        for setting in settings {
            let found = settings::find(setting).map_err(InvalidSetting::from)?;
            controllers.push(found.setting.controller);
        }
        controllers.sort_unstable_by_key(|controller| format!("{controller:?}"));
        controllers.dedup();
        if host.needs_unit() {
            systemd::ensure_unit(host)?;
        }
        let mut all = vec![GroupName::new(&self.parent)?];
        for name in names {
            all.push(self.name(name)?);
        }
        for name in &all {
            let made = host.create(name, Some(&controllers), &Access::default())?;
            if !made.empty_cpusets.is_empty() {
                fill_cpuset(host, name)?;
            }
        }
        Ok(())
    }

    /// Gives settings to a group, all of them or none.
    pub fn set(
        &mut self,
        host: &Host,
        group: &str,
        wanted: &[(String, String)],
    ) -> Result<Vec<Setting>, Error> {
        let changes = self.write(host, &self.name(group)?, wanted)?;
        let reported = wanted.iter().map(|(setting, value)| {
            let written = changes.iter().filter(|change| change.setting == *setting).flat_map(|change| {
                let writes = change.written.iter();
                let writes =
                    writes.map(|write| format!("{} <- {}", write.path.display(), write.text.trim_end()));
                writes.chain(change.differences.iter().cloned())
            });
            Setting {
                group: group.to_owned(),
                name: setting.clone(),
                requested: value.clone(),
                written: written.collect(),
            }
        });
        Ok(reported.collect())
    }

    /// The same for the group above them.
    pub fn set_parent(&mut self, host: &Host, wanted: &[(String, String)]) -> Result<(), Error> {
        self.write(host, &self.parent()?, wanted).map(drop)
    }

    /// The same for a group or, without one, for the group above; it is never put back, but goes with the group.
    pub fn set_for_good(
        &self,
        host: &Host,
        group: Option<&str>,
        wanted: &[(String, String)],
    ) -> Result<(), Error> {
        let name = group.map_or_else(|| self.parent(), |group| self.name(group))?;
        let requests = requests(host, &name, wanted)?;
        Ok(apply::set(host, &requests).map(drop)?)
    }

    /// Makes a group that only has CPUs, these, and the memory nodes of the group above it.
    pub fn make_cpuset(&self, host: &Host, name: &GroupName, cpus: &str) -> Result<(), Error> {
        let made = host.create(name, Some(&[Controller::Cpuset]), &Access::default())?;
        let mut wanted = vec![(experiment::CPUS.to_owned(), cpus.to_owned())];
        if !made.empty_cpusets.is_empty() {
            wanted.push(("cpuset.mems".to_owned(), above(host, name, "cpuset.mems")?));
        }
        Ok(apply::set(host, &requests(host, name, &wanted)?).map(drop)?)
    }

    /// Writes and remembers what was there.
    fn write(
        &mut self,
        host: &Host,
        name: &GroupName,
        wanted: &[(String, String)],
    ) -> Result<Vec<apply::Change>, Error> {
        let requests = requests(host, name, wanted)?;
        let changes = apply::set(host, &requests)?;
        let before = |request: &SettingRequest| {
            let change = changes.iter().find(|change| change.setting == request.found.name);
            change.and_then(|change| change.before.clone())
        };
        self.done.push(requests.iter().map(|request| (request.clone(), before(request))).collect());
        Ok(changes)
    }

    /// Puts back what was set since the last time, the last first. Everything is tried; the first refusal is reported.
    pub fn put_back(&mut self, host: &Host) -> Result<(), Error> {
        let mut result = Ok(());
        for step in std::mem::take(&mut self.done).into_iter().rev() {
            let requests: Vec<SettingRequest> = step
                .iter()
                .filter_map(|(request, before)| Some((request, before.as_ref()?)))
                .flat_map(|(request, before)| {
                    let values = plan::restoring(&request.found, &request.value, before).into_iter();
                    values.map(|(found, value)| SettingRequest { found, value, ..request.clone() })
                })
                .collect();
            let done = apply::set(host, &requests);
            if let (Err(error), true) = (done, result.is_ok()) {
                result = Err(error.into());
            }
        }
        result
    }

    /// Kills what is in them, and removes them.
    pub fn remove(&mut self, host: &Host) -> Result<(), Error> {
        self.done.clear();
        if self.holds_others {
            return Err(Error::cannot(format!(
                "programs of the machine are still in a group below {}",
                self.parent
            )));
        }
        remove(host, &self.parent)
    }
}

/// Kills what is in a group and below, and removes it all. One that is not there is as good as removed.
pub(crate) fn remove(host: &Host, group: &str) -> Result<(), Error> {
    let name = GroupName::new(group)?;
    let begun = Instant::now();
    while !host.seats(&name).is_empty() {
        kernel::kill(host, &name, PATIENCE)?;
        match host.delete(&name, true) {
            // a process of a killed experiment was on its way in, through one hierarchy after the other
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => std::thread::sleep(AGAIN),
            deleted => return Ok(deleted.map(drop)?),
        }
    }
    Ok(())
}

fn is_busy(error: &kernel::Error) -> bool {
    match error {
        kernel::Error::Refused(refusal) => refusal.errno == rustix::io::Errno::BUSY,
        kernel::Error::PartlyDeleted { error, .. } => is_busy(error),
        _ => false,
    }
}

fn requests(
    host: &Host,
    name: &GroupName,
    wanted: &[(String, String)],
) -> Result<Vec<SettingRequest>, Error> {
    wanted.iter().map(|(setting, value)| request(host, name, setting, value)).collect()
}

fn request(host: &Host, name: &GroupName, setting: &str, value: &str) -> Result<SettingRequest, Error> {
    let (value, _) = SettingValue::parse(setting, value, &system::Live)?;
    Ok(value.request(host, name)?)
}

/// As much as the group above it has.
fn fill_cpuset(host: &Host, name: &GroupName) -> Result<(), Error> {
    let wanted = ["cpuset.cpus", "cpuset.mems"]
        .map(|setting| above(host, name, setting).map(|value| (setting.to_owned(), value)));
    let wanted = wanted.into_iter().collect::<Result<Vec<_>, Error>>()?;
    Ok(apply::set(host, &requests(host, name, &wanted)?).map(drop)?)
}

/// A file of the cpuset above.
fn above(host: &Host, name: &GroupName, file: &str) -> Result<String, Error> {
    let seat = host.seat(name, Controller::Cpuset)?;
    let path = group_path::parent(&seat.path).unwrap_or_default();
    let text = host.kernel().read(seat.at, path, file);
    let text = text.map_err(|errno| Error::system("cannot read the cpuset above", errno))?;
    Ok(text.trim().to_owned())
}
