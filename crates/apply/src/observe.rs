//! What the kernel holds, read for a planner: just the directories and files that it names. Only reads.

use std::path::Path;

use kernel::{Hierarchy, Seat};
use plan::{Need, Observed, Owned, SeenGroup, SeenHierarchy};

use crate::Target;

/// The files that put tasks into a group.
const TASK_FILES: [&str; 3] = ["cgroup.procs", "cgroup.threads", "tasks"];

/// The hierarchies alone: what [`plan::needs`] starts from.
pub fn hierarchies(target: Target<'_>) -> Observed {
    let host = target.host;
    let seen = |at: &Hierarchy| SeenHierarchy {
        version: at.version,
        controllers: at.controllers.clone(),
        name: at.name.clone(),
        mount: at.mount.display().to_string(),
        base: host.base(at).path().to_owned(),
        groups: Default::default(),
    };
    let outside = |path: &str| host.kernel().outside(Path::new(path)).ok();
    Observed {
        hierarchies: host.hierarchies().iter().map(seen).collect(),
        hostname: outside("/proc/sys/kernel/hostname").map(|name| name.trim_end().to_owned()),
        ..Observed::default()
    }
}

/// Reads what a planner needs. `devices`: block devices whose NUMA node is needed, as the layout calls them.
pub fn observe<'d>(
    target: Target<'_>,
    needs: &[Need],
    devices: impl IntoIterator<Item = &'d str>,
) -> Observed {
    let mut observed = hierarchies(target);
    let mut looking = Looking { target, listed: vec![None; target.host.hierarchies().len()] };
    for need in needs {
        let Some(at) = target.host.hierarchies().get(need.place.hierarchy) else { continue };
        looking.look(at, need, &mut observed.hierarchies[need.place.hierarchy]);
    }
    let node = |device: &str| Some((device.to_owned(), device_node(target, device)?));
    observed.device_nodes = devices.into_iter().filter_map(node).collect();
    observed.io_cost = io_cost(target);
    observed
}

struct Looking<'t> {
    target: Target<'t>,
    /// The files of a group other than the root, by hierarchy: on v1 they are the same for all.
    listed: Vec<Option<Vec<String>>>,
}

impl Looking<'_> {
    fn look(&mut self, at: &Hierarchy, need: &Need, seen: &mut SeenHierarchy) {
        let kernel = self.target.host.kernel();
        let path = &need.place.path;
        if !kernel.exists(at, path) {
            return;
        }
        let mut group = self.group(at, path, need.files.iter().map(String::as_str));
        if need.owners {
            self.owners(at, path, need, &mut group);
        }
        if need.devices {
            let filter = kernel.device_filter(at, path).ok().flatten();
            group.devices = filter.map(|filter| filter.access.to_string());
        }
        seen.groups.insert(path.clone(), group);
        if need.children.is_empty() {
            return;
        }
        for child in kernel.children(at, path).unwrap_or_default() {
            let below = if path.is_empty() { child } else { format!("{path}/{child}") };
            let group = self.group(at, &below, need.children.iter().map(String::as_str));
            // what is asked for by its own name tells more
            seen.groups.entry(below).or_insert(group);
        }
    }

    fn group<'f>(&self, at: &Hierarchy, path: &str, files: impl Iterator<Item = &'f str>) -> SeenGroup {
        let kernel = self.target.host.kernel();
        let content = |file: &str| {
            let text = kernel.read(at, path, file).ok()?;
            Some((file.to_owned(), text.trim_end_matches('\n').to_owned()))
        };
        let tasks = |path: String| self.target.host.tasks_in(&Seat { at, path }).len();
        let below = kernel.descendants(at, path).unwrap_or_default();
        SeenGroup {
            files: files.filter_map(content).collect(),
            tasks: tasks(path.to_owned()),
            // every task of the machine is in or below the root
            populated_below: !path.is_empty() && below.into_iter().any(|path| tasks(path) > 0),
            ..SeenGroup::default()
        }
    }

    /// The directory, the files that take tasks, those that the planner reads, and the first and the last of the
    /// others: a layout gives all others to one owner, and forty looks at each of thousands of groups take longer
    /// than everything else.
    fn owners(&mut self, at: &Hierarchy, path: &str, need: &Need, group: &mut SeenGroup) {
        let owned = |file: Option<&str>| self.target.system.owned(at, path, file).ok();
        group.directory = owned(None);
        let listed =
            self.listed[at.id].take().filter(|_| at.version == settings::Version::V1 && !path.is_empty());
        let listed = listed.unwrap_or_else(|| self.target.host.kernel().files(at, path).unwrap_or_default());
        let others = || listed.iter().filter(|file| !TASK_FILES.contains(&file.as_str()));
        let tasks = listed.iter().filter(|file| TASK_FILES.contains(&file.as_str()));
        let read = listed.iter().filter(|file| need.files.contains(*file));
        let chosen = tasks.chain(read).chain(others().next()).chain(others().next_back());
        let with = |file: &String| Some((file.clone(), owned(Some(file))?));
        group.owners = chosen.filter_map(with).collect::<std::collections::BTreeMap<String, Owned>>();
        if !path.is_empty() {
            self.listed[at.id] = Some(listed);
        }
    }
}

/// v2's devices with an I/O cost model.
fn io_cost(target: Target<'_>) -> Vec<String> {
    let v2 = target.host.hierarchies().iter().find(|at| at.version == settings::Version::V2);
    let text = v2.and_then(|at| target.host.kernel().read(at, "", "io.cost.qos").ok()).unwrap_or_default();
    let enabled = text.lines().filter(|line| line.split_whitespace().any(|word| word == "enable=1"));
    enabled.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// The NUMA node of a block device: of the nearest device above it in sysfs that has one.
fn device_node(target: Target<'_>, device: &str) -> Option<usize> {
    let link = match device.strip_prefix("/dev/") {
        Some(name) => format!("/sys/class/block/{}", name.replace('/', "!")),
        None => format!("/sys/dev/block/{device}"),
    };
    if link.contains("..") || link.matches('/').count() > 4 {
        return None; // neither a device's name nor its numbers
    }
    #[expect(clippy::disallowed_methods, reason = "sysfs's own link from a device to its place in the tree")]
    let place = std::fs::canonicalize(link).ok()?;
    let node = |place: &Path| target.host.kernel().outside(&place.join("numa_node")).ok();
    // -1: it belongs to no node in particular
    place.ancestors().find_map(node)?.trim().parse().ok()
}
