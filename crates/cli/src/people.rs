//! User and group names to numbers, as chown(1) writes them: `USER`, `USER:GROUP`, `:GROUP`.
//!
//! The release program is linked statically, for its start-up time, and a static program can't load the name services
//! of this machine (sssd, LDAP): getent(1) asks them.

use std::process::Command;

use kernel::Who;

use crate::failure::Failure;

pub fn who(text: &str) -> Result<Who, Failure> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && group.is_empty() {
        return Err(
            Failure::usage(format!("'{text}' names neither a user nor a group")).hint("use USER:GROUP")
        );
    }
    Ok(Who { uid: lookup(user, "user", "passwd")?, gid: lookup(group, "group", "group")? })
}

fn lookup(name: &str, kind: &str, database: &str) -> Result<Option<u32>, Failure> {
    if name.is_empty() {
        return Ok(None);
    }
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let asked = Command::new("getent").args([database, "--", name]).output();
    let entry = asked.map_err(|error| {
        Failure::new(format!("the number of {kind} '{name}' can't be looked up: getent: {error}"))
            .hint("give the number itself")
    })?;
    // NAME:PASSWORD:NUMBER:…, in both databases
    let number = String::from_utf8_lossy(&entry.stdout)
        .split(':')
        .nth(2)
        .and_then(|number| number.trim().parse().ok());
    let none = || {
        Failure::usage(format!("there is no {kind} '{name}'")).hint(format!("getent {database} lists them"))
    };
    number.map(Some).ok_or_else(none)
}
