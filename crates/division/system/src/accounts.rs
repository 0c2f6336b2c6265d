//! Users and groups: names to numbers and back.
//!
//! The release program is linked statically, for its start-up time, and a static program can't load the name services
//! of this machine (sssd, LDAP): getent(1) does. Each answer is requested once and remembered. Without getent, as
//! beside busybox, there are no name services either: then the files are all.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    io,
    process::Command,
};

use plan::People;

/// Why an account is not known.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name services have no such name.
    #[error("there is no {kind} '{name}'")]
    Unknown {
        /// `user` or `group`.
        kind: &'static str,
        /// The name requested.
        name: String,
        /// Getent's word for the list that was searched.
        database: &'static str,
    },
    /// The name services can't be queried.
    #[error("the number of {kind} '{name}' can't be looked up: getent: {source}")]
    Getent {
        /// `user` or `group`.
        kind: &'static str,
        /// The name requested.
        name: String,
        /// Why getent did not run.
        source: io::Error,
    },
    /// `:` or nothing where `USER:GROUP` is expected.
    #[error("'{0}' names neither a user nor a group")]
    Nobody(String),
}

impl AccountError {
    /// What would fix it.
    pub fn hint(&self) -> String {
        match self {
            AccountError::Unknown { database, .. } => format!("getent {database} lists them"),
            AccountError::Getent { .. } => "give the number itself".to_owned(),
            AccountError::Nobody(_) => "use USER:GROUP".to_owned(),
        }
    }
}

/// The accounts of this machine.
#[derive(Debug, Default)]
pub struct Accounts {
    /// Getent's answers, by list and key; `None` where there is no such entry.
    known: RefCell<HashMap<(&'static str, String), Option<String>>>,
    /// nsswitch.conf, once it was needed.
    switch: OnceCell<String>,
}

const PASSWD: &str = "passwd";
const GROUP: &str = "group";

impl Accounts {
    /// An empty cache.
    pub fn new() -> Accounts {
        Accounts::default()
    }

    /// `USER:GROUP`, `USER` or `:GROUP`, as chown(1) writes them, by name or number.
    ///
    /// # Errors
    /// A name that is not known, and a text without one.
    pub fn owner(&self, text: &str) -> Result<(Option<u32>, Option<u32>), AccountError> {
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        if user.is_empty() && group.is_empty() {
            return Err(AccountError::Nobody(text.to_owned()));
        }
        Ok((self.number(user, "user", PASSWD)?, self.number(group, "group", GROUP)?))
    }

    /// The number of a user, by name or number.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn user_number(&self, name: &str) -> Result<Option<u32>, AccountError> {
        self.number(name, "user", PASSWD)
    }

    /// The number of a group, by name or number.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn group_number(&self, name: &str) -> Result<Option<u32>, AccountError> {
        self.number(name, "group", GROUP)
    }

    /// The name of the user of that number.
    pub fn user_name(&self, number: u32) -> Option<String> {
        self.field(PASSWD, &number.to_string(), 0)
    }

    /// The name of the group of that number.
    pub fn group_name(&self, number: u32) -> Option<String> {
        self.field(GROUP, &number.to_string(), 0)
    }

    /// The number of a user's primary group; `None` for one that is not known.
    pub fn primary_group(&self, user: &str) -> Option<u32> {
        self.field(PASSWD, user, 3)?.parse().ok()
    }

    /// The numbers of the users that the name services list in a group, by its name or number. Who has it as his
    /// primary group need not be among them.
    pub fn members(&self, group: &str) -> Vec<u32> {
        let listed = self.field(GROUP, group, 3).unwrap_or_default();
        let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Vec::new();
        }
        // one question for all of them
        let requested = Command::new("getent").arg(PASSWD).arg("--").args(names).output();
        let text = requested
            .map(|requested| String::from_utf8_lossy(&requested.stdout).into_owned())
            .unwrap_or_default();
        text.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect()
    }

    fn number(
        &self,
        name: &str,
        kind: &'static str,
        database: &'static str,
    ) -> Result<Option<u32>, AccountError> {
        if name.is_empty() {
            return Ok(None);
        }
        if let Ok(number) = name.parse() {
            return Ok(Some(number));
        }
        let entry = self.entry(database, name).map_err(|source| AccountError::Getent {
            kind,
            name: name.to_owned(),
            source,
        })?;
        let number =
            entry.and_then(|entry| entry.split(':').nth(2).and_then(|number| number.trim().parse().ok()));
        number.map(Some).ok_or(AccountError::Unknown { kind, name: name.to_owned(), database })
    }

    /// Who can't be looked up is no fault of the layout.
    fn knows(&self, database: &'static str, name: &str) -> bool {
        self.entry(database, name).map_or(true, |entry| entry.is_some())
    }

    fn field(&self, database: &'static str, key: &str, place: usize) -> Option<String> {
        self.entry(database, key)
            .ok()?
            .and_then(|entry| entry.trim_end().split(':').nth(place).map(str::to_owned))
    }

    /// `NAME:PASSWORD:NUMBER:…`, in both lists.
    fn entry(&self, database: &'static str, key: &str) -> io::Result<Option<String>> {
        if let Some(known) = self.known.borrow().get(&(database, key.to_owned())) {
            return Ok(known.clone());
        }
        let local = || {
            let text = std::fs::read_to_string(format!("/etc/{database}"))?;
            Ok::<_, io::Error>(text.lines().find(|line| is_of(line, key)).map(str::to_owned))
        };
        let in_files = if self.files_first(database) { local().ok().flatten() } else { None };
        let entry = match in_files {
            Some(entry) => Some(entry),
            None => match Command::new("getent").args([database, "--", key]).output() {
                Ok(requested) => requested
                    .status
                    .success()
                    .then(|| String::from_utf8_lossy(&requested.stdout).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => local()?,
                Err(error) => return Err(error),
            },
        };
        self.known.borrow_mut().insert((database, key.to_owned()), entry.clone());
        Ok(entry)
    }

    /// Do the name services look in the local file first, and is what they find there all? Then there is no need to
    /// start getent, which takes longer than all else that making a group takes (nsswitch.conf(5)).
    fn files_first(&self, database: &str) -> bool {
        let switch =
            self.switch.get_or_init(|| std::fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default());
        let mut services = switch
            .lines()
            .filter_map(|line| line.trim().strip_prefix(database)?.trim_start().strip_prefix(':'))
            .flat_map(str::split_whitespace);
        // what follows in brackets may join the answers of several services
        services.next() == Some("files") && !services.next().is_some_and(|next| next.starts_with('['))
    }
}

impl People for Accounts {
    fn user(&self, name: &str) -> Option<u32> {
        self.user_number(name).ok().flatten()
    }

    fn group(&self, name: &str) -> Option<u32> {
        self.group_number(name).ok().flatten()
    }
}

impl layout::Accounts for Accounts {
    fn is_user(&self, name: &str) -> bool {
        self.knows(PASSWD, name)
    }

    fn is_group(&self, name: &str) -> bool {
        self.knows(GROUP, name)
    }

    fn users(&self) -> Vec<String> {
        names(PASSWD)
    }

    fn groups(&self) -> Vec<String> {
        names(GROUP)
    }
}

/// Is the entry that of this name or number?
fn is_of(entry: &str, key: &str) -> bool {
    let mut fields = entry.split(':');
    fields.next() == Some(key) || fields.nth(1) == Some(key)
}

/// The names in a list, as far as the name services list them.
fn names(database: &str) -> Vec<String> {
    let listed = Command::new("getent").arg(database).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.or_else(|_| std::fs::read_to_string(format!("/etc/{database}"))).unwrap_or_default();
    text.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_found_both_ways() {
        let accounts = Accounts::new();
        assert_eq!(accounts.owner("root:root").unwrap(), (Some(0), Some(0)));
        assert_eq!(accounts.owner("1234").unwrap(), (Some(1234), None));
        assert_eq!(accounts.owner(":0").unwrap(), (None, Some(0)));
        assert_eq!(accounts.user_name(0).as_deref(), Some("root"));
        assert_eq!(accounts.group_name(0).as_deref(), Some("root"));
    }

    #[test]
    fn an_entry_is_found_by_name_and_by_number() {
        let entry = "oracle:x:54321:54322:Oracle:/home/oracle:/bin/bash";
        assert!(is_of(entry, "oracle") && is_of(entry, "54321"));
        assert!(!is_of(entry, "x") && !is_of(entry, "54322") && !is_of(entry, "oracl"));
    }

    #[test]
    fn an_unknown_name_is_an_error_and_not_a_number() {
        let accounts = Accounts::new();
        assert!(matches!(accounts.owner("rf-test-nobody"), Err(AccountError::Unknown { kind: "user", .. })));
        assert!(matches!(accounts.owner(":"), Err(AccountError::Nobody(_))));
        assert_eq!(People::user(&accounts, "rf-test-nobody"), None);
        assert!(!layout::Accounts::is_user(&accounts, "rf-test-nobody"));
        assert!(layout::Accounts::users(&accounts).contains(&"root".to_owned()));
    }
}
