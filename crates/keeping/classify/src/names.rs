//! Who is who, as rules need it: names to numbers once, when they are compiled, and numbers to names where a group's
//! name holds them.

use system::Accounts;

/// The users and groups of a system.
pub trait Names {
    /// The number of a user.
    ///
    /// # Errors
    /// In words, why it is not known.
    fn user(&self, name: &str) -> Result<u32, String>;
    /// The number of a group.
    ///
    /// # Errors
    /// In words, why it is not known.
    fn group(&self, name: &str) -> Result<u32, String>;
    /// The users that are listed in a group, by its name or number. Those who have it as their primary group need not be
    /// among them: their processes have it.
    fn members(&self, group: &str) -> Vec<u32>;
    /// The name of a user.
    fn user_name(&self, number: u32) -> Option<String>;
    /// The name of a group.
    fn group_name(&self, number: u32) -> Option<String>;
}

impl Names for Accounts {
    fn user(&self, name: &str) -> Result<u32, String> {
        let number = self.user_number(name).map_err(|error| error.to_string())?;
        number.ok_or_else(|| "no user is named".to_owned())
    }

    fn group(&self, name: &str) -> Result<u32, String> {
        let number = self.group_number(name).map_err(|error| error.to_string())?;
        number.ok_or_else(|| "no group is named".to_owned())
    }

    fn members(&self, group: &str) -> Vec<u32> {
        self.members(group)
    }

    fn user_name(&self, number: u32) -> Option<String> {
        self.user_name(number)
    }

    fn group_name(&self, number: u32) -> Option<String> {
        self.group_name(number)
    }
}
