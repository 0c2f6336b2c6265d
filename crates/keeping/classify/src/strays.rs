//! One rule decides for all hierarchies. On cgroup v1 the group that it leads to may be missing in one of them, where the
//! process is still in the group of another rule, whose limits would hold for it: it leaves that one for the nearest group
//! above its own that is there. Groups that no rule leads to are somebody's choice, and rules that name controllers are about
//! these alone, as libcgroup's are.

use kernel::{GroupName, Hierarchy, Host, Seat};
use layout::Controllers;
use settings::Version;
use units::group_path;

use crate::{Goal, Membership, Rules, goals::everywhere};

/// A hierarchy without the group that a rule leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    hierarchy: usize,
    /// The group that is missing, as a path below the mount.
    missing: String,
    /// The nearest group above it that is there.
    above: GroupName,
}

impl Other {
    /// The hierarchies without the groups that goals lead to; none where a goal names its controllers.
    pub fn of(host: &Host, goals: &[Goal]) -> Vec<Other> {
        others(host, goals)
    }

    /// The hierarchy ([`kernel::Hierarchy::id`]).
    pub fn hierarchy(&self) -> usize {
        self.hierarchy
    }

    /// Is the process in a group of another rule's there?
    pub fn holds(&self, rules: &Rules, host: &Host, member: &Membership) -> bool {
        let Some(path) = member.at(self.hierarchy).filter(|path| !path.is_empty()) else { return false };
        !group_path::is_at_or_below(&self.missing, path)
            && rules.led.holds(host, &host.hierarchies()[self.hierarchy], path)
    }

    /// Where it goes from there.
    pub(crate) fn seat<'h>(&self, host: &'h Host) -> Option<(Seat<'h>, GroupName)> {
        let at = host.hierarchies().get(self.hierarchy)?;
        Some((host.seat_in(at, &self.above), self.above.clone()))
    }
}

pub(crate) fn others(host: &Host, goals: &[Goal]) -> Vec<Other> {
    let [Goal { controllers: Controllers::All, group, .. }] = goals else { return Vec::new() };
    if group.path().is_empty() || host.hierarchies().len() == 1 {
        return Vec::new();
    }
    // a unit's own group on v2 takes no processes while it has groups
    let takes = |at: &Hierarchy| at.version == Version::V1 || host.base(at).path().is_empty();
    let other = |seat: Seat<'_>| {
        let above = group_path::ancestors(group.path()).map(|path| named(group, path));
        let above = above.filter(|name| host.kernel().exists(seat.at, &host.seat_in(seat.at, name).path));
        let above = above.into_iter().next().unwrap_or_else(GroupName::root);
        Other { hierarchy: seat.at.id, missing: seat.path, above }
    };
    let missing =
        everywhere(host, group).into_iter().filter(|seat| !host.kernel().exists(seat.at, &seat.path));
    missing.filter(|seat| takes(seat.at)).map(other).collect()
}

/// A group above another, given as that one is.
fn named(group: &GroupName, path: &str) -> GroupName {
    let text = if group.is_from_root() { format!("/{path}") } else { path.to_owned() };
    GroupName::new(&text).unwrap_or_else(|_| GroupName::root())
}
