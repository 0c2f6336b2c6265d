//! Which controllers demands need by themselves.

use std::collections::BTreeSet;

use settings::{Controller, NamedSetting, Version};

use crate::desired::Demands;

/// The controllers that hold what is requested, by their v1 names where v1 has them.
pub(crate) fn needed(demands: &Demands) -> BTreeSet<Controller> {
    let cpuset = demands.cpus.is_some() || demands.mems.is_some() || demands.exclusive;
    let of_settings = demands.settings.iter().map(|assigned| controller(&assigned.found));
    cpuset.then_some(Controller::Cpuset).into_iter().chain(of_settings).collect()
}

/// The controller whose section a setting stands in.
pub(crate) fn controller(found: &NamedSetting) -> Controller {
    let bindings = [Version::V1, Version::V2].into_iter().filter_map(|version| found.side(version).binding());
    let mut controllers = bindings.map(|binding| binding.controller);
    controllers.find(|controller| *controller != Controller::Core).unwrap_or(found.setting.controller)
}
