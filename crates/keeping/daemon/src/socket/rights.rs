//! Who may ask for what, besides root: made from a layout once, when it is read, so that no request makes the daemon ask
//! for an account. A user added to a group of the system since counts from the next reload on, or at once where his
//! process has that group.

use std::collections::BTreeMap;

use answers::Problem;
use kernel::GroupName;
use layout::{Account, Desired, Person};
use settings::{Controller, NamedSetting, Reach, Version};
use system::Accounts;
use units::group_path;

use super::Peer;

/// The rights that a layout gives.
#[derive(Debug, Default)]
pub struct Rights {
    groups: BTreeMap<String, Limits>,
}

/// What one group of the layout says.
#[derive(Debug, Default)]
struct Limits {
    admin: Option<Holder>,
    tasks: Option<Holder>,
}

/// Who has a right.
#[derive(Debug, Default, PartialEq, Eq)]
struct Holder {
    user: Option<u32>,
    /// A group of the system.
    group: Option<u32>,
    /// Users that the name services list in that group.
    members: Vec<u32>,
}

impl Rights {
    /// The rights that a layout gives. A name that this machine does not know gives nobody a right.
    pub fn of(desired: &Desired, accounts: &Accounts) -> Rights {
        let holder = |person: &layout::Spanned<Person>| Holder::of(&person.value, accounts);
        let given = |group: &layout::Group| Limits {
            admin: group.demands.admin.as_ref().map(holder),
            tasks: group.demands.tasks.as_ref().map(holder),
        };
        // a group that is named from a hierarchy's root is not among what the socket reaches
        let ours = desired.groups.iter().filter(|group| !group.name.is_from_root());
        Rights { groups: ours.map(|group| (group.name.path().to_owned(), given(group))).collect() }
    }

    /// May the peer change these settings of that group?
    ///
    /// # Errors
    /// 403 with the reason.
    pub(super) fn may_set(
        &self,
        peer: &Peer,
        group: &GroupName,
        settings: &[NamedSetting],
    ) -> Result<(), Problem> {
        self.holds(peer, group, "admin", |given| given.admin.as_ref())?;
        if peer.is_root() {
            return Ok(());
        }
        for found in settings {
            match reach(found) {
                Reach::Own => {}
                Reach::Beside(_) if self.is_admin_above(peer, group) => {}
                Reach::Beside(how) | Reach::Machine(how) => {
                    return Err(Problem::forbidden(format!(
                        "{} of group '{group}' is changed by root only: it reaches beyond the group ({how})",
                        found.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Is the group above this peer's to divide?
    fn is_admin_above(&self, peer: &Peer, group: &GroupName) -> bool {
        let above = group_path::branch(group.path()).skip(1);
        let admin = above.filter_map(|path| self.groups.get(path)?.admin.as_ref()).next();
        admin.is_some_and(|admin| admin.is(peer))
    }

    /// May the peer put processes into that group? Its own, if it is not root.
    ///
    /// # Errors
    /// 403 with the reason.
    pub(super) fn may_move(&self, peer: &Peer, group: &GroupName) -> Result<(), Problem> {
        self.holds(peer, group, "tasks", |given| given.tasks.as_ref())
    }

    /// The nearest group of the layout, the named one or one above it, that says who has the right decides.
    fn holds(
        &self,
        peer: &Peer,
        group: &GroupName,
        key: &str,
        of: impl Fn(&Limits) -> Option<&Holder>,
    ) -> Result<(), Problem> {
        if peer.is_root() {
            return Ok(());
        }
        let nearest = group_path::branch(group.path())
            .filter_map(|path| Some((path, of(self.groups.get(path)?)?)))
            .next();
        match nearest {
            Some((_, holder)) if holder.is(peer) => Ok(()),
            Some((path, _)) => Err(Problem::forbidden(format!(
                "user {} has no right to group '{group}': it is not the {key} of '{path}' in the layout",
                peer.uid
            ))
            .hint(format!(
                "root gives it: {key} of [groups.\"{path}\"] in the layout, then ringfence reload"
            ))),
            None => Err(Problem::forbidden(format!(
                "user {} has no right to group '{group}': no {key} in the layout covers it",
                peer.uid
            ))
            .hint(format!("root gives it: {key} in the layout, then ringfence reload"))),
        }
    }
}

/// How far a change of the setting reaches, in the version where it reaches farthest. What every group has and is no
/// value of it (a kill, tasks, controllers for groups below) has requests of its own, or is root's.
fn reach(found: &NamedSetting) -> Reach {
    let setting = found.setting;
    if setting.controller == Controller::Core && !setting.can_be_set() {
        return Reach::Machine("it is no value that the group has");
    }
    let sides = [Version::V1, Version::V2].map(|version| setting.side(version).binding());
    sides.into_iter().flatten().map(|binding| binding.reach).max().unwrap_or(Reach::Own)
}

impl Holder {
    fn of(person: &Person, accounts: &Accounts) -> Holder {
        // a mode of the files that does not let them write takes the right away
        let writes = |bit: u32| person.mode.is_none_or(|mode| mode.bits() & bit != 0);
        let user = person.user.as_ref().filter(|_| writes(0o200));
        let group = person.group.as_ref().filter(|_| writes(0o020));
        let number = |account: &Account, named: &dyn Fn(&str) -> Option<u32>| match account {
            Account::Id(id) => Some(*id),
            Account::Name(name) => named(name),
        };
        Holder {
            user: user.and_then(|user| number(user, &|name| accounts.user_number(name).ok().flatten())),
            group: group.and_then(|group| number(group, &|name| accounts.group_number(name).ok().flatten())),
            members: group.map(|group| accounts.members(&group.to_string())).unwrap_or_default(),
        }
    }

    fn is(&self, peer: &Peer) -> bool {
        self.user == Some(peer.uid)
            || self.group.is_some_and(|group| peer.is_in(group))
            || self.members.contains(&peer.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORACLE: Peer = Peer { uid: 1001, gid: 2001, pid: 1, groups: Vec::new() };
    const DBA: Peer = Peer { uid: 1002, gid: 2002, pid: 1, groups: Vec::new() };
    const NOBODY: Peer = Peer { uid: 65534, gid: 65534, pid: 1, groups: Vec::new() };
    const ROOT: Peer = Peer { uid: 0, gid: 0, pid: 1, groups: Vec::new() };

    fn rights() -> Rights {
        let text = "[groups.db]\nadmin = { user = 1001, group = 2002 }\ntasks = { group = 2001 }\nmemory.max = \"1G\"\n\
                    [groups.\"db/other\"]\nadmin = { user = 1003 }\n[groups.plain]\nmemory.max = \"1G\"\n";
        let read = layout::read_toml(&[layout::Source::new("layout.toml", text)]);
        Rights::of(&read.desired.unwrap_or_else(|| panic!("{:?}", read.diagnostics)), &Accounts::new())
    }

    fn found(setting: &str) -> Vec<NamedSetting> {
        vec![settings::find(setting).unwrap()]
    }

    fn group(name: &str) -> GroupName {
        GroupName::new(name).unwrap()
    }

    #[test]
    fn the_nearest_group_that_says_who_decides() {
        let rights = rights();
        for (peer, name, may) in [
            (ORACLE, "db", true),
            (DBA, "db", true),
            (ORACLE, "db/made/by/hand", true),
            (ORACLE, "db/other", false),
            (ORACLE, "db/other/below", false),
            (ORACLE, "dbx", false),
            (ORACLE, "plain", false),
            (ORACLE, "elsewhere", false),
            (NOBODY, "db", false),
            (ROOT, "elsewhere", true),
        ] {
            let result = rights.may_set(&peer, &group(name), &found("memory.max"));
            assert_eq!(result.is_ok(), may, "{peer:?} {name} {result:?}");
            assert!(result.is_ok() || result.is_err_and(|refused| refused.status == 403));
        }
        let in_group = Peer { groups: vec![7, 2002], ..NOBODY };
        assert!(rights.may_set(&in_group, &group("db"), &found("memory.max")).is_ok());
        assert!(rights.may_move(&in_group, &group("db")).is_err());
        assert!(
            rights.may_move(&ORACLE, &group("db")).is_ok() && rights.may_move(&DBA, &group("db")).is_err()
        );
    }

    #[test]
    fn what_the_kernel_keeps_for_root_stays_roots() {
        for setting in
            ["devices.allow", "devices.deny", "release_agent", "cgroup.kill", "cgroup.subtree_control"]
        {
            let result = rights().may_set(&ORACLE, &group("db"), &found(setting));
            assert!(
                result.is_err_and(|refused| refused.status == 403 && refused.message.contains("root only"))
            );
            assert!(rights().may_set(&ROOT, &group("db"), &found(setting)).is_ok());
        }
    }

    #[test]
    fn what_takes_from_the_groups_beside_is_for_the_admin_of_the_group_above() {
        let beside = [
            "cpu.weight",
            "cpu.rt_runtime_us",
            "cpuset.cpus",
            "cpuset.cpus.partition",
            "cpuset.cpu_exclusive",
            "cpuset.mem_exclusive",
            "memory.min",
            "memory.low",
            "io.weight",
            "blkio.bfq.weight",
            "cgroup.type",
        ];
        let machine = ["net_cls.classid", "cpuset.sched_load_balance", "io.cost.qos", "io.prio.class"];
        for setting in beside.into_iter().chain(machine) {
            let may = |peer: &Peer, name: &str| rights().may_set(peer, &group(name), &found(setting));
            let refused = may(&ORACLE, "db").unwrap_err();
            assert!(refused.status == 403 && refused.message.contains(setting), "{}", refused.message);
            assert_eq!(may(&ORACLE, "db/made/by/hand").is_ok(), beside.contains(&setting), "{setting}");
            // the group above is another's
            let other = Peer { uid: 1003, ..ORACLE };
            assert!(
                may(&other, "db/other").is_err()
                    && may(&other, "db/other/below").is_ok() == beside.contains(&setting)
            );
            assert!(may(&ROOT, "db").is_ok());
        }
        for setting in ["memory.max", "cpu.max", "pids.max", "io.max", "cgroup.freeze"] {
            assert!(rights().may_set(&ORACLE, &group("db"), &found(setting)).is_ok(), "{setting}");
        }
    }

    #[test]
    fn a_mode_without_write_gives_no_right() {
        let person = Person {
            user: Some(Account::Id(1001)),
            group: Some(Account::Id(2002)),
            mode: layout::Mode::new("0644"),
            directory_mode: None,
            all_files: false,
        };
        let holder = Holder::of(&person, &Accounts::new());
        assert!(holder.is(&ORACLE) && !holder.is(&DBA));
    }
}
