//! The host that all commands work on, and the names by which libcgroup's users know its groups and people.

use kernel::{GroupName, Hierarchy, Host, Owner, Real, Who};

use std::path::Path;

use crate::failure::{Failure, NO_GROUP};

/// The running kernel's hierarchies.
pub(crate) fn host() -> Result<Host, Failure> {
    Ok(Host::new(Box::new(Real::new()))?)
}

/// The same, and where nothing is mounted, none.
pub(crate) fn even_without_hierarchies() -> Result<Host, Failure> {
    Ok(Host::even_without_hierarchies(Box::new(Real::new()))?)
}

/// A group by the path that libcgroup's users write: with or without a leading slash it is the same one. Where our
/// groups live below a unit or a subtree, one that is not there but at that path from the root is that one; so is a
/// path of somebody else (`system.slice/…`), which then is read, but not changed.
///
/// # Errors
/// Not a name that a group can have.
pub(crate) fn group<'h>(
    host: &Host,
    hierarchies: impl IntoIterator<Item = &'h Hierarchy>,
    path: &str,
) -> Result<GroupName, Failure> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if let Some(below) = below_mount(host, path) {
        let failure = Failure::new(NO_GROUP, format!("'{path}' is a directory and no group's name"));
        return Err(failure.hint(format!("a group is named without its hierarchy's directory: {below}")));
    }
    if parts.is_empty() {
        return Ok(GroupName::root());
    }
    let path = parts.join("/");
    let ours = GroupName::new(&path)?;
    let from_root = GroupName::new(&format!("/{path}"))?;
    if Owner::of(&from_root).is_some() {
        return Ok(from_root);
    }
    let there = |at: &Hierarchy, name: &GroupName| host.kernel().exists(at, &host.seat_in(at, name).path);
    let mut elsewhere = false;
    for at in hierarchies {
        if host.base(at).path().is_empty() || there(at, &ours) {
            return Ok(ours);
        }
        elsewhere |= there(at, &from_root);
    }
    Ok(if elsewhere { from_root } else { ours })
}

/// The name in a path that begins with a hierarchy's directory.
fn below_mount(host: &Host, path: &str) -> Option<String> {
    host.hierarchies().iter().find_map(|at| {
        let below = Path::new(path).strip_prefix(&at.mount).ok()?.to_str()?.trim_matches('/');
        (!below.is_empty()).then(|| host.named(at, below))
    })
}

/// `a/..` by its text, as the kernel would resolve it: for groups that are there already.
pub(crate) fn resolved(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "." | "..")) => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { "/".to_owned() } else { parts.join("/") }
}

/// `USER:GROUP`, or one of the two, as numbers.
///
/// # Errors
/// Nobody has that name.
pub(crate) fn who(owner: Option<&String>) -> Result<Who, Failure> {
    let Some(owner) = owner else { return Ok(Who::default()) };
    let (uid, gid) = system::Accounts::new().owner(owner)?;
    Ok(Who { uid, gid })
}

/// An octal mode, for clap.
pub(crate) fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "expected an octal mode such as 0755".to_owned())?;
    if mode <= 0o7777 { Ok(mode) } else { Err("a mode has at most four octal digits".to_owned()) }
}
