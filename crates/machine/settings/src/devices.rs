//! Which devices a group's tasks may use, in the form of cgroup v1's devices controller: all devices but some
//! exceptions, or none but some exceptions, changed by one rule at a time. Pure: no system call here.
//!
//! The same rules give the same state, and the same refusals, as `security/device_cgroup.c` does, including what a
//! group's change does to the groups below it. A test holds it against a real v1 hierarchy.

use std::fmt;

use crate::{DeviceClass, DeviceRule};

/// `BPF_DEVCG_ACC_MKNOD`.
pub const MKNOD: u32 = 1;
/// `BPF_DEVCG_ACC_READ`.
pub const READ: u32 = 2;
/// `BPF_DEVCG_ACC_WRITE`.
pub const WRITE: u32 = 4;

/// What becomes of a device that no exception names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// It may be used; exceptions forbid (`DEVCG_DEFAULT_ALLOW`).
    DefaultAllow,
    /// It may not; exceptions allow (`DEVCG_DEFAULT_DENY`).
    DefaultDeny,
}

/// The device rules of a group after all its allows and denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAccess {
    behavior: Behavior,
    /// Block or character, never both.
    exceptions: Vec<DeviceRule>,
}

/// What a rule is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `devices.allow`.
    Allow,
    /// `devices.deny`.
    Deny,
}

/// Why a rule can't be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// `a` is for groups without groups below (EINVAL).
    HasChildren,
    /// The group above may not use the device itself (EPERM).
    Parent,
}

impl DeviceAccess {
    /// Every device, as a new hierarchy's root.
    pub fn all() -> DeviceAccess {
        DeviceAccess { behavior: Behavior::DefaultAllow, exceptions: Vec::new() }
    }

    /// What becomes of a device that no exception names.
    pub fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// The exceptions from that, in the order in which they came.
    pub fn exceptions(&self) -> &[DeviceRule] {
        &self.exceptions
    }

    /// Changes the group by one rule, as a write to `devices.allow` or `devices.deny` does; `parent` is `None` for
    /// a hierarchy's root.
    ///
    /// # Errors
    /// [`Forbidden`]; the group stays as it is.
    pub fn change(
        &mut self,
        verb: Verb,
        rule: &DeviceRule,
        parent: Option<&DeviceAccess>,
        has_children: bool,
    ) -> Result<(), Forbidden> {
        use Behavior::{DefaultAllow, DefaultDeny};
        if rule.class == DeviceClass::All {
            return self.change_all(verb, parent, has_children);
        }
        match (verb, self.behavior) {
            (Verb::Allow, DefaultAllow) => {
                if parent.is_some_and(|parent| parent.touches(rule)) {
                    return Err(Forbidden::Parent);
                }
                self.remove(rule);
            }
            (Verb::Allow, DefaultDeny) => {
                if !parent.is_none_or(|parent| parent.may_hand_down(rule, DefaultDeny)) {
                    return Err(Forbidden::Parent);
                }
                self.add(rule);
            }
            (Verb::Deny, DefaultAllow) => self.add(rule),
            (Verb::Deny, DefaultDeny) => self.remove(rule),
        }
        Ok(())
    }

    fn change_all(
        &mut self,
        verb: Verb,
        parent: Option<&DeviceAccess>,
        has_children: bool,
    ) -> Result<(), Forbidden> {
        if has_children {
            return Err(Forbidden::HasChildren);
        }
        *self = match (verb, parent) {
            (Verb::Deny, _) => DeviceAccess { behavior: Behavior::DefaultDeny, exceptions: Vec::new() },
            (Verb::Allow, None) => DeviceAccess::all(),
            (Verb::Allow, Some(parent)) if parent.behavior == Behavior::DefaultAllow => parent.clone(),
            (Verb::Allow, Some(_)) => return Err(Forbidden::Parent),
        };
        Ok(())
    }

    /// Follows a deny that was done to a group above: `above` is that group and `parent` the one directly above,
    /// both as they are now.
    pub fn narrow(&mut self, rule: &DeviceRule, above: &DeviceAccess, parent: &DeviceAccess) {
        if above.behavior == Behavior::DefaultAllow && self.behavior == Behavior::DefaultAllow {
            self.add(rule);
        } else {
            self.remove(rule);
        }
        let behavior = self.behavior;
        self.exceptions.retain(|exception| parent.may_hand_down(exception, behavior));
    }

    /// May a task open (or make the node of) this device so? `access` is of [`READ`], [`WRITE`] and [`MKNOD`].
    pub fn permits(&self, class: DeviceClass, major: u32, minor: u32, access: u32) -> bool {
        let mut wanted = self.exceptions.iter().filter(|exception| {
            exception.class == class
                && exception.major.is_none_or(|number| number == major)
                && exception.minor.is_none_or(|number| number == minor)
        });
        match self.behavior {
            Behavior::DefaultAllow => !wanted.any(|exception| bits(exception) & access != 0),
            Behavior::DefaultDeny => wanted.any(|exception| access & !bits(exception) == 0),
        }
    }

    /// `devices.list`: the list of what is allowed. It can't show what is forbidden to a group that may use all
    /// other devices; [`DeviceAccess::exceptions`] does.
    pub fn list_text(&self) -> String {
        match self.behavior {
            Behavior::DefaultAllow => "a *:* rwm\n".to_owned(),
            Behavior::DefaultDeny => {
                self.exceptions.iter().map(|exception| format!("{exception}\n")).collect()
            }
        }
    }

    /// May a group below have this exception?
    fn may_hand_down(&self, rule: &DeviceRule, behavior: Behavior) -> bool {
        match (self.behavior, behavior) {
            // it only forbids more
            (Behavior::DefaultAllow, Behavior::DefaultAllow) => true,
            (Behavior::DefaultAllow, Behavior::DefaultDeny) => !self.touches(rule),
            (Behavior::DefaultDeny, _) => self.exceptions.iter().any(|exception| exception.covers(rule)),
        }
    }

    /// Is any device of the rule also one of an exception, with some of the same access?
    fn touches(&self, rule: &DeviceRule) -> bool {
        let meet = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
        self.exceptions.iter().any(|exception| {
            exception.class == rule.class
                && meet(exception.major, rule.major)
                && meet(exception.minor, rule.minor)
                && bits(exception) & bits(rule) != 0
        })
    }

    fn add(&mut self, rule: &DeviceRule) {
        match self.exceptions.iter_mut().find(|exception| same_devices(exception, rule)) {
            Some(exception) => set_bits(exception, bits(exception) | bits(rule)),
            None => self.exceptions.push(*rule),
        }
    }

    /// Only an exception for exactly these devices is taken back: denying `c 1:3` leaves `c 1:*` as it is.
    fn remove(&mut self, rule: &DeviceRule) {
        for exception in self.exceptions.iter_mut().filter(|exception| same_devices(exception, rule)) {
            set_bits(exception, bits(exception) & !bits(rule));
        }
        self.exceptions.retain(|exception| bits(exception) != 0);
    }
}

fn same_devices(one: &DeviceRule, other: &DeviceRule) -> bool {
    (one.class, one.major, one.minor) == (other.class, other.major, other.minor)
}

/// The access of a rule as the kernel's bits.
pub fn bits(rule: &DeviceRule) -> u32 {
    let bit = |may: bool, bit: u32| if may { bit } else { 0 };
    bit(rule.read, READ) | bit(rule.write, WRITE) | bit(rule.mknod, MKNOD)
}

fn set_bits(rule: &mut DeviceRule, bits: u32) {
    rule.read = bits & READ != 0;
    rule.write = bits & WRITE != 0;
    rule.mknod = bits & MKNOD != 0;
}

/// One rule as `devices.allow` and `devices.deny` take it: `c 1:3 rwm`, `b *:* r`, `a`. `None` for anything else.
pub fn rule(text: &str) -> Option<DeviceRule> {
    let mut words = text.split_whitespace();
    let class = match words.next()? {
        "a" => {
            let (class, major, minor) = (DeviceClass::All, None, None);
            return Some(DeviceRule { class, major, minor, read: true, write: true, mknod: true });
        }
        "b" => DeviceClass::Block,
        "c" => DeviceClass::Character,
        _ => return None,
    };
    let number = |text: &str| match text {
        "*" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    };
    let (major, minor) = words.next()?.split_once(':')?;
    let (major, minor) = (number(major)?, number(minor)?);
    let access = words.next().filter(|access| access.bytes().all(|byte| b"rwm".contains(&byte)))?;
    let may = |letter| access.contains(letter);
    let rule = DeviceRule { class, major, minor, read: may('r'), write: may('w'), mknod: may('m') };
    words.next().is_none().then_some(rule)
}

/// The record stored with a group: the default for other devices, then one exception per line.
impl fmt::Display for DeviceAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.behavior {
            Behavior::DefaultAllow => "allow\n",
            Behavior::DefaultDeny => "deny\n",
        })?;
        self.exceptions.iter().try_for_each(|exception| writeln!(f, "{exception}"))
    }
}

impl std::str::FromStr for DeviceAccess {
    type Err = ();

    /// Reads such a record.
    fn from_str(text: &str) -> Result<DeviceAccess, ()> {
        let mut lines = text.lines();
        let behavior = match lines.next() {
            Some("allow") => Behavior::DefaultAllow,
            Some("deny") => Behavior::DefaultDeny,
            _ => return Err(()),
        };
        let one = |line| rule(line).filter(|rule| rule.class != DeviceClass::All).ok_or(());
        Ok(DeviceAccess { behavior, exceptions: lines.map(one).collect::<Result<_, ()>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_but(rules: &[(Verb, &str)]) -> DeviceAccess {
        let mut access = DeviceAccess::all();
        for (verb, text) in rules {
            access.change(*verb, &rule(text).unwrap(), Some(&DeviceAccess::all()), false).unwrap();
        }
        access
    }

    #[test]
    fn a_group_starts_with_every_device_and_deny_a_empties_it() {
        assert_eq!(DeviceAccess::all().list_text(), "a *:* rwm\n");
        let mut access = all_but(&[(Verb::Deny, "a"), (Verb::Allow, "c 1:3 rw"), (Verb::Allow, "c 1:3 m")]);
        assert_eq!(access.list_text(), "c 1:3 rwm\n", "access to the same devices is joined");
        access.change(Verb::Deny, &rule("c 1:3 w").unwrap(), None, false).unwrap();
        assert_eq!(access.list_text(), "c 1:3 rm\n");
        access.change(Verb::Deny, &rule("c 1:* rwm").unwrap(), None, false).unwrap();
        assert_eq!(access.list_text(), "c 1:3 rm\n", "v1 takes back exact rules only");
    }

    #[test]
    fn an_open_for_both_needs_one_exception_that_has_both() {
        let access = all_but(&[(Verb::Deny, "a"), (Verb::Allow, "c 1:3 r"), (Verb::Allow, "c 1:* w")]);
        let may = |bits| access.permits(DeviceClass::Character, 1, 3, bits);
        assert!(may(READ) && may(WRITE) && !may(READ | WRITE) && !may(MKNOD));
        let access = all_but(&[(Verb::Deny, "c 1:3 w")]);
        let may = |bits| access.permits(DeviceClass::Character, 1, 3, bits);
        assert!(may(READ) && !may(WRITE) && !may(READ | WRITE) && may(MKNOD));
        assert_eq!(access.list_text(), "a *:* rwm\n", "what v1 prints, too");
    }

    #[test]
    fn a_group_can_not_allow_what_its_parent_may_not_use() {
        let parent = all_but(&[(Verb::Deny, "c 1:3 w")]);
        let mut child = parent.clone();
        assert_eq!(
            child.change(Verb::Allow, &rule("c 1:* w").unwrap(), Some(&parent), false),
            Err(Forbidden::Parent)
        );
        let parent = all_but(&[(Verb::Deny, "a"), (Verb::Allow, "c 1:3 rw")]);
        let mut child = parent.clone();
        assert_eq!(
            child.change(Verb::Allow, &rule("a").unwrap(), Some(&parent), false),
            Err(Forbidden::Parent)
        );
        assert_eq!(
            child.change(Verb::Allow, &rule("c 1:5 r").unwrap(), Some(&parent), false),
            Err(Forbidden::Parent)
        );
        assert_eq!(
            child.change(Verb::Deny, &rule("a").unwrap(), Some(&parent), true),
            Err(Forbidden::HasChildren)
        );
        assert_eq!(child, parent);
    }

    #[test]
    fn a_record_reads_back_as_itself_and_nonsense_is_refused() {
        for access in [
            DeviceAccess::all(),
            all_but(&[(Verb::Deny, "b 8:* rwm"), (Verb::Deny, "c *:* m")]),
            all_but(&[(Verb::Deny, "a"), (Verb::Allow, "c 1:3 rwm")]),
        ] {
            assert_eq!(access.to_string().parse(), Ok(access));
        }
        for text in ["", "allow\nx", "c 1:3 rwm", "deny\na *:* rwm", "deny\nc 1:+3 r", "deny\nc 1:3 r w"] {
            assert_eq!(text.parse::<DeviceAccess>(), Err(()), "{text}");
        }
    }
}
