//! What to request of one group, so that it is like another.

use kernel::{GroupName, Host};
use settings::{Access, Setting};

use crate::{Error, SettingValue, get};

/// The settings of which `from` and `to` have different values, with those of `from`. What holds tasks or describes the tree is no
/// setting of a group.
///
/// # Errors
/// `from` is not there.
pub fn copies(host: &Host, from: &GroupName, to: &GroupName) -> Result<Vec<SettingValue>, Error> {
    host.existing(from)?;
    let wanted = |setting: &&Setting| {
        let tree = setting.name.starts_with("cgroup.")
            || matches!(setting.name, "tasks" | "notify_on_release" | "release_agent");
        // it holds less than the weight that it is another form of
        let coarse = setting.name == "cpu.weight.nice";
        setting.access == Access::ReadWrite && !setting.is_counter() && !tree && !coarse
    };
    let read = |setting: &Setting| {
        let found = settings::find(setting.name).ok()?;
        let value = get(host, from, &found).ok()?.value;
        let differs = get(host, to, &found).is_ok_and(|actual| actual.value != value);
        differs.then_some(SettingValue { found, value })
    };
    Ok(settings::all().filter(wanted).filter_map(read).collect())
}
