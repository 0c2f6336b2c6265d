//! Which files of this host give which columns: every field on the version that its controller lives on, files
//! of one name read once. Decides nothing that a reading could: a file that is not there is left out by its reader.

use kernel::{Host, Kernel};
use settings::Version;
use units::IdSet;

use crate::{
    field::{Field, From, Pace, Per, Source},
    group_fields::MOVE_TOGETHER,
    parse::Want,
    sample::{Columns, Parts},
};

/// A file that every group may have.
#[derive(Debug)]
pub(crate) struct GroupFile {
    /// The hierarchy's position.
    pub hierarchy: usize,
    pub file: &'static str,
    pub wants: Vec<Want>,
    pub role: Role,
}

/// Whether a file of every sample is read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// With every sample.
    Alone,
    /// So too, and the one behind that follows it is read if this one says something new.
    Leads,
    /// Only then, and in the turn of what is read less often.
    Follows,
}

/// The groups' files by how often they are read.
#[derive(Debug, Default)]
pub(crate) struct GroupFiles {
    pub tick: Vec<GroupFile>,
    pub slow: Vec<GroupFile>,
    pub seldom: Vec<GroupFile>,
}

/// A file of the machine, or one of several for its nodes.
#[derive(Debug)]
pub(crate) struct MachineFile {
    pub path: String,
    /// The node's place among the nodes.
    pub node: usize,
    pub pace: Pace,
    pub wants: Vec<Want>,
}

/// `wanted`: the fields that are read; the others' columns are there, and missing in every sample.
pub(crate) fn group_files(
    host: &Host,
    fields: &'static [Field],
    columns: &Columns,
    wanted: impl Fn(&Field) -> bool,
) -> GroupFiles {
    let mut files = GroupFiles::default();
    let mut of_device = 0;
    for field in fields {
        let column = match field.per {
            // devices have columns once they are used: the distance from a device's first
            Per::Device => {
                of_device += 1;
                Some(of_device - 1)
            }
            _ => columns.first(field),
        };
        let (Some(column), Some((hierarchy, source))) = (column, on_host(host, field)) else { continue };
        if !wanted(field) {
            continue;
        }
        let list = match source.pace {
            Pace::Tick => &mut files.tick,
            Pace::Slow => &mut files.slow,
            Pace::Seldom => &mut files.seldom,
        };
        let want = Want { shape: source.shape, kind: field.kind, scale: source.scale, column };
        match list.iter_mut().find(|known| known.hierarchy == hierarchy && known.file == source.file) {
            Some(known) => known.wants.push(want),
            None => {
                let (file, wants, role) = (source.file, vec![want], Role::Alone);
                list.push(GroupFile { hierarchy, file, wants, role });
            }
        }
    }
    let (leader, follower) = MOVE_TOGETHER;
    let place = |name| files.tick.iter().position(|known| known.file == name);
    if let Some((leads, follows)) = place(leader).zip(place(follower)).filter(|(one, other)| one < other) {
        files.tick[leads].role = Role::Leads;
        files.tick[follows].role = Role::Follows;
    }
    files
}

/// The hierarchy and file of a field: where v1 holds its controller, v1's; else v2's.
pub(crate) fn on_host(host: &Host, field: &Field) -> Option<(usize, Source)> {
    [Version::V1, Version::V2].into_iter().find_map(|version| {
        let side = field.side(version)?;
        let at = host.hierarchy_of(side.controller).filter(|at| at.version == version)?;
        Some((at.id, side.source))
    })
}

/// How often a field is read on this host, and whether it is read of a v1 hierarchy.
pub(crate) fn pace_of(host: &Host, field: &Field) -> (Pace, bool) {
    match field.from {
        From::Machine(source) => (source.pace, false),
        From::Group { .. } => on_host(host, field).map_or((Pace::Slow, false), |(hierarchy, source)| {
            (source.pace, host.hierarchies()[hierarchy].version == Version::V1)
        }),
    }
}

pub(crate) fn machine_files(fields: &'static [Field], columns: &Columns, parts: &Parts) -> Vec<MachineFile> {
    let mut files: Vec<MachineFile> = Vec::new();
    for field in fields {
        let (From::Machine(source), Some(column)) = (field.from, columns.first(field)) else { continue };
        let copies = if source.file.contains("<N>") { parts.nodes.len() } else { 1 };
        for node in 0..copies {
            let id = parts.nodes.get(node).copied().unwrap_or(0);
            let path = source.file.replace("<N>", &id.to_string());
            // `Keyed` sets its own column: a file of one node has its node's
            let column =
                if matches!(source.shape, crate::field::Shape::Keyed(_)) { column + node } else { column };
            let want = Want { shape: source.shape, kind: field.kind, scale: source.scale, column };
            match files.iter_mut().find(|known| known.path == path) {
                Some(known) => known.wants.push(want),
                None => files.push(MachineFile { path, node, pace: source.pace, wants: vec![want] }),
            }
        }
    }
    files
}

/// The CPUs that the kernel may have and the nodes that have memory.
pub(crate) fn parts(kernel: &dyn Kernel) -> Parts {
    let list = |paths: &[&str]| {
        let text = paths.iter().find_map(|path| kernel.outside(path.as_ref()).ok());
        let set: Option<IdSet<units::Cpu>> = text.and_then(|text| text.trim().parse().ok());
        let ids = set.map(|set| set.iter().filter_map(|id| u32::try_from(id).ok()).collect::<Vec<_>>());
        ids.filter(|ids| !ids.is_empty()).unwrap_or_else(|| vec![0])
    };
    Parts {
        cpus: list(&["/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/online"]),
        nodes: list(&["/sys/devices/system/node/has_memory", "/sys/devices/system/node/online"]),
    }
}
