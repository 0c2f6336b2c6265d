//! Removes groups that were made on demand and are empty: no task in them, no group below. Only directories that it is
//! given: a name alone does not say who made a group.

use std::path::PathBuf;

use kernel::{Contents, GroupName, Host, Seat};

/// A directory of a group that a rule made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewDirectory {
    /// The group.
    pub group: GroupName,
    /// Its directory in one hierarchy.
    pub directory: PathBuf,
}

/// Removes those of `made` whose group is empty in all of them, and returns them. What is filled meanwhile stays.
pub fn sweep(host: &Host, made: &[NewDirectory]) -> Vec<NewDirectory> {
    let mut groups: Vec<&GroupName> = made.iter().map(|made| &made.group).collect();
    groups.sort();
    groups.dedup();
    let mut swept = Vec::new();
    for group in groups {
        let is_made = |seat: &Seat<'_>| {
            let directory = seat.directory();
            made.iter().any(|made| made.group == *group && made.directory == directory)
        };
        let seats: Vec<Seat<'_>> = host.seats(group).into_iter().filter(is_made).collect();
        if seats.is_empty() || !seats.iter().all(|seat| is_empty(host, seat)) {
            continue;
        }
        for seat in seats {
            let directory = seat.directory();
            if host
                .delete_at(&[(seat, group.clone())], Contents { groups: false, tasks_move_up: false })
                .is_ok()
            {
                swept.push(NewDirectory { group: group.clone(), directory });
            }
        }
    }
    swept
}

fn is_empty(host: &Host, seat: &Seat<'_>) -> bool {
    let children = host.kernel().children(seat.at, &seat.path);
    host.tasks_in(seat).is_empty() && children.is_ok_and(|children| children.is_empty())
}
