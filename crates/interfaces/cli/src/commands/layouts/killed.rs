//! Processes of the layout's groups that were killed for want of memory.

use ::why::{KernelKills, all_kills};
use answers::layouts::{Killed, KilledProcess};
use apply::{GroupStatus, State};
use kernel::Host;
use layout::UnitName;
use monitor::Kill;
use settings::Controller;

use crate::failure::Failure;

/// Kills in one group.
pub(super) struct InGroup {
    pub group: String,
    pub processes: usize,
    pub last: Kill,
}

impl From<InGroup> for Killed {
    fn from(all: InGroup) -> Killed {
        let last = KilledProcess::from(&all.last);
        Killed { group: all.group, processes: all.processes, last }
    }
}

/// Processes of these groups that were killed for want of memory since the last apply, as far as the caller may know.
pub(super) fn killed(state: &State, host: &Host, groups: &[GroupStatus]) -> Result<Vec<InGroup>, Failure> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let Some(since) = apply::last_done(state)?.map(|head| head.at * 1000) else { return Ok(Vec::new()) };
    let mut killed: Vec<InGroup> = Vec::new();
    let (kills, _) = all_kills(host, state, &mut KernelKills::default());
    for kill in kills.into_iter().filter(|kill| kill.at >= since) {
        let Some(group) = kill.group.as_deref().and_then(|path| of_kill(host, groups, path)) else {
            continue;
        };
        match killed.iter_mut().find(|one| one.group == group.group) {
            Some(one) => (one.processes, one.last) = (one.processes + 1, kill),
            None => killed.push(InGroup { group: group.group.clone(), processes: 1, last: kill }),
        }
    }
    Ok(killed)
}

/// The group of this path in the memory hierarchy, or the nearest one above it; of a unit that its template limits the template.
fn of_kill<'g>(host: &Host, groups: &'g [GroupStatus], path: &str) -> Option<&'g GroupStatus> {
    let at = host.hierarchy_of(Controller::Memory)?;
    let directory = at.mount.join(at.below_mount(path)?);
    let depth = |group: &GroupStatus| {
        let own = group.directories.iter().filter(|own| directory.starts_with(own));
        let own = own.map(|own| own.components().count());
        let template = group.unit.as_ref().and_then(|unit| UnitName::of_file_name(&unit.name).ok());
        let template = template.filter(UnitName::is_pattern);
        let of_template = directory.ancestors().find(|above| {
            let name = above.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| template.as_ref().is_some_and(|template| template.fits(name)))
        });
        own.chain(of_template.map(|above| above.components().count())).max()
    };
    groups
        .iter()
        .filter_map(|group| Some((depth(group)?, group)))
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, group)| group)
}
