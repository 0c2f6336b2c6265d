//! From the words `memory.max` and `8G` to a request at its place: the one way to it, for every command. Writes nothing.

use kernel::{GroupName, Host};
use plan::SettingRequest;
use settings::{Facts, NamedSetting, UnknownSetting, Value, ValueError};

use crate::{Error, reading::place};
use ::system::whole_disks;

/// A setting with a value for this machine.
#[derive(Debug, Clone)]
pub struct SettingValue {
    /// The setting as it was named.
    pub found: NamedSetting,
    /// Its value; of limits by device, of whole disks.
    pub value: Value,
}

/// Why words name no setting or no value of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// No such setting.
    #[error(transparent)]
    Unknown(#[from] UnknownSetting),
    /// No value of it.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl InvalidSetting {
    /// The nearest right answer, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            InvalidSetting::Unknown(error) => Some(error.hint()),
            InvalidSetting::Value(error) => error.hint(),
        }
    }
}

impl SettingValue {
    /// Reads both from their texts; warnings come with them, such as a partition that stands for its disk.
    ///
    /// # Errors
    /// [`InvalidSetting`], with the nearest right answer.
    pub fn parse(
        setting: &str,
        text: &str,
        facts: &dyn Facts,
    ) -> Result<(SettingValue, Vec<String>), InvalidSetting> {
        Ok(SettingValue::of(settings::find(setting)?, text, facts)?)
    }

    /// The same for a setting that was found already.
    ///
    /// # Errors
    /// See [`ValueError`].
    pub fn of(
        found: NamedSetting,
        text: &str,
        facts: &dyn Facts,
    ) -> Result<(SettingValue, Vec<String>), ValueError> {
        let (value, warnings) = whole_disks(found.parse(text, facts)?);
        Ok((SettingValue { found, value }, warnings))
    }

    /// What a group is to have, where its controller is.
    ///
    /// # Errors
    /// As [`place`].
    pub fn request(self, host: &Host, group: &GroupName) -> Result<SettingRequest, Error> {
        let place = place(host, group, &self.found)?;
        Ok(SettingRequest { group: group.clone(), place, found: self.found, value: self.value })
    }
}

/// Refuses a group that somebody else manages.
pub(crate) fn refuse_foreign(request: &SettingRequest) -> Result<(), kernel::Error> {
    let setting = || vec![(request.found.setting.name, request.found.show(&request.value))];
    kernel::refuse_foreign(&request.group, kernel::Change::Settings(&setting))
}
