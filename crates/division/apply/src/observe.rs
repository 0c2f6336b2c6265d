//! What the kernel holds, read for a planner: just the directories and files that it names. Only reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kernel::{Hierarchy, Host, Listing, Seat};
use plan::{Need, Observed, Owned, SeenGroup, SeenHierarchy};
use settings::{Controller, Reach, Version};
use units::group_path;

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
        is_closed: is_closed(host, at),
        groups: Default::default(),
    };
    let outside = |path: &str| host.kernel().outside(Path::new(path)).ok();
    let of_cpu = host.hierarchy_of(Controller::Cpu).filter(|at| at.version == Version::V1);
    let is_without = |at: &Hierarchy| {
        let files = host.kernel().files(at, "").unwrap_or_default();
        !files.is_empty() && !files.iter().any(|file| file.starts_with("cpu.rt_"))
    };
    Observed {
        no_realtime_budgets: of_cpu.is_some_and(is_without),
        hierarchies: host.hierarchies().iter().map(seen).collect(),
        hostname: outside("/proc/sys/kernel/hostname").map(|name| name.trim_end().to_owned()),
        ..Observed::default()
    }
}

/// Is the caller unable to make groups where ours are in this hierarchy?
pub(crate) fn is_closed(host: &Host, at: &Hierarchy) -> bool {
    let base = host.base(at).path();
    let place = group_path::branch(base).find(|path| host.kernel().exists(at, path)).unwrap_or_default();
    !host.kernel().writable(at, place)
}

/// Reads what a planner needs. `devices`: block devices whose NUMA node is needed, as the layout calls them.
pub fn observe<'d>(
    target: Target<'_>,
    needs: &[Need],
    devices: impl IntoIterator<Item = &'d str>,
) -> Observed {
    let mut observed = hierarchies(target);
    observed.keeper = target.system.maker();
    let mut looking = Looking::new(target);
    for need in needs {
        let Some(at) = target.host.hierarchies().get(need.place.hierarchy) else { continue };
        looking.look(at, need, &mut observed.hierarchies[need.place.hierarchy]);
    }
    let node = |device: &str| Some((device.to_owned(), device_node(target, device)?));
    observed.device_nodes = devices.into_iter().filter_map(node).collect();
    observed.io_cost = io_cost(target);
    let involved: BTreeSet<usize> = needs.iter().map(|need| need.place.hierarchy).collect();
    let files = |at: usize| Some((at, child_files(target, target.host.hierarchies().get(at)?)?));
    observed.child_files = involved.into_iter().filter_map(files).collect();
    observed
}

/// Looks at the owners of all files where [`observe`] looked at some: a change of owners that was refused at one file
/// leaves those behind it as they were.
pub(crate) fn observe_all_owners(target: Target<'_>, needs: &[Need], observed: &mut Observed) {
    for need in needs.iter().filter(|need| need.owners) {
        let Some(at) = target.host.hierarchies().get(need.place.hierarchy) else { continue };
        let path = &need.place.path;
        let Some(group) = observed.hierarchies[at.id].groups.get_mut(path) else { continue };
        let files = target.host.kernel().files(at, path).unwrap_or_default();
        let each: Vec<Option<&str>> = files.iter().map(|file| Some(file.as_str())).collect();
        let owned = target.system.owned_each(at, path, &each).unwrap_or_default();
        group.owners.extend(owned.into_iter().filter_map(|(file, owned)| Some((file?.to_owned(), owned))));
    }
}

/// What files some groups directly below the root have together: on v2 each has those of the controllers that it was
/// given.
fn child_files(target: Target<'_>, at: &Hierarchy) -> Option<BTreeSet<String>> {
    const LOOKED_AT: usize = 4;
    let kernel = target.host.kernel();
    let looked = if at.version == Version::V1 { 1 } else { LOOKED_AT };
    let children = kernel.children(at, "").ok()?;
    if children.is_empty() && at.version == Version::V1 && at.controllers.contains(&Controller::Io) {
        return blkio_files(kernel.files(at, "").ok()?);
    }
    if children.is_empty() && at.version == Version::V1 && at.controllers.contains(&Controller::Cpu) {
        return Some(cpu_files(kernel.files(at, "").ok()?));
    }
    let files = children.iter().take(looked).filter_map(|child| kernel.files(at, child).ok()).flatten();
    Some(files.collect::<BTreeSet<String>>()).filter(|files| !files.is_empty())
}

/// The files of v1's blkio where only the root can be looked at: it has all that groups have (CFQ's weight too, as
/// long as there was one), but for BFQ's weight (`CFTYPE_NOT_ON_ROOT` in block/bfq-cgroup.c).
fn blkio_files(root: Vec<String>) -> Option<BTreeSet<String>> {
    if !root.iter().any(|file| file.starts_with("blkio.throttle.")) {
        return None;
    }
    let bfq = ["blkio.bfq.weight", "blkio.bfq.weight_device"].map(str::to_owned);
    Some(root.into_iter().chain(bfq).collect())
}

/// The same of v1's cpu: its root has all but the clamps (`CFTYPE_NOT_ON_ROOT` in kernel/sched/core.c).
fn cpu_files(root: Vec<String>) -> BTreeSet<String> {
    let clamps = settings::all().map(|setting| setting.name).filter(|name| name.starts_with("cpu.uclamp."));
    root.into_iter().chain(clamps.map(str::to_owned)).collect()
}

struct Looking<'t> {
    target: Target<'t>,
    listing: Listing<'t>,
    /// The files of a group other than the root, by hierarchy: on v1 they are the same for all.
    listed: Vec<Option<GroupFiles>>,
    /// The last group that was not there, by hierarchy: none is in it either.
    missing: Vec<Option<String>>,
}

impl<'t> Looking<'t> {
    fn new(target: Target<'t>) -> Looking<'t> {
        let count = target.host.hierarchies().len();
        let listing = Listing::new(target.host);
        Looking { target, listing, listed: (0..count).map(|_| None).collect(), missing: vec![None; count] }
    }

    fn look(&mut self, at: &Hierarchy, need: &Need, seen: &mut SeenHierarchy) {
        let kernel = self.target.host.kernel();
        let path = &need.place.path;
        let in_missing = |missing: &String| group_path::is_below(path, missing);
        if self.missing[at.id].as_ref().is_some_and(in_missing) {
            return;
        }
        // owners prove that a group exists; before the first of them a listing is needed, which is not made in vain
        let known = need.owners && self.listed[at.id].is_some();
        let exists = known || self.listing.holds(at, path);
        let (directory, owners) =
            if need.owners && exists { self.owners(at, path, need) } else { Default::default() };
        if directory.is_none() && (!exists || known && !kernel.exists(at, path)) {
            self.missing[at.id] = Some(path.clone());
            return;
        }
        let group = self.group(at, path, need.files.iter().map(String::as_str), need.tasks);
        let mut group = SeenGroup { directory, owners, ..group };
        for (file, unless) in &need.unless {
            if group.files.get(&unless.file) != Some(&unless.text)
                && let Some(text) = self.content(at, path, file)
            {
                group.files.insert((*file).to_owned(), text);
            }
        }
        if need.devices {
            let filter = kernel.device_filter(at, path).ok().flatten();
            group.devices_detached = filter.as_ref().is_some_and(|filter| !filter.attached);
            group.devices = filter.map(|filter| filter.access.to_string());
        }
        let changing =
            need.below.iter().filter(|(actual, _)| group.files.get(&actual.file) != Some(&actual.text));
        let mut of_children: BTreeSet<&str> = changing.flat_map(|(_, files)| files.iter().copied()).collect();
        of_children.extend(need.children.iter().map(String::as_str));
        // what was read of it because of the group above
        let before = seen.groups.remove(path).map(|before| before.files).unwrap_or_default();
        for (file, text) in before {
            group.files.entry(file).or_insert(text);
        }
        seen.groups.insert(path.clone(), group);
        if of_children.is_empty() {
            return;
        }
        let with_tasks = !need.children.is_empty();
        for child in kernel.children(at, path).unwrap_or_default() {
            let below = group_path::join(path, &child);
            let group = self.group(at, &below, of_children.iter().copied(), with_tasks);
            // a group requested by its own name has more data
            seen.groups.entry(below).or_insert(group);
        }
    }

    fn group<'f>(
        &self,
        at: &Hierarchy,
        path: &str,
        files: impl Iterator<Item = &'f str>,
        with_tasks: bool,
    ) -> SeenGroup {
        let kernel = self.target.host.kernel();
        let content = |file: &str| Some((file.to_owned(), self.content(at, path, file)?));
        let files = files.filter_map(content).collect();
        if !with_tasks {
            return SeenGroup { files, ..SeenGroup::default() };
        }
        let tasks = |path: String| self.target.host.tasks_in(&Seat { at, path }).len();
        let below = kernel.descendants(at, path).unwrap_or_default();
        SeenGroup {
            files,
            tasks: tasks(path.to_owned()),
            // every task of the machine is in or below the root
            populated_below: !path.is_empty() && below.into_iter().any(|path| tasks(path) > 0),
            ..SeenGroup::default()
        }
    }

    fn content(&self, at: &Hierarchy, path: &str, file: &str) -> Option<String> {
        let mut text = self.target.host.kernel().read(at, path, file).ok()?;
        text.truncate(text.trim_end_matches('\n').len());
        Some(settings::as_written(at.version, file, text))
    }

    /// Of the directory, the files that take tasks, and of all others those that the planner reads, or the first and
    /// the last if it reads none, and one that reaches beyond the group: a layout gives all others to one owner, and
    /// forty looks at each of thousands of groups take longer than everything else. On v2 files come and go with their
    /// controller: one of each.
    fn owners(
        &mut self,
        at: &Hierarchy,
        path: &str,
        need: &Need,
    ) -> (Option<Owned>, BTreeMap<String, Owned>) {
        let alike = at.version == Version::V1 && !path.is_empty();
        let listed = self.listed[at.id].take().filter(|_| alike);
        let listed = listed.unwrap_or_else(|| GroupFiles::new(self.target, at, path));
        let read = need.files.iter().filter(|file| listed.others.contains(*file));
        let mut chosen: Vec<Option<&str>> = vec![None];
        chosen.extend(listed.tasks.iter().chain(read).map(|file| Some(file.as_str())));
        if at.version == Version::V2 {
            let kind = |file: &str| {
                let controller = file.split_once('.').map(|(controller, _)| controller.to_owned());
                (controller, settings::reach(at.version, file))
            };
            let mut known: BTreeSet<_> = chosen.iter().flatten().map(|file| kind(file)).collect();
            let others = listed.others.iter().map(String::as_str);
            chosen.extend(others.filter(|file| known.insert(kind(file))).map(Some));
        } else {
            let reads = chosen.len() > 1 + listed.tasks.len();
            let ends = listed.others.first().into_iter().chain(listed.others.last());
            let beyond =
                listed.others.iter().find(|file| settings::reach(at.version, file) != Some(Reach::Own));
            chosen.extend(ends.filter(|_| !reads).chain(beyond).map(|file| Some(file.as_str())));
        }
        let mut directory = None;
        let mut owners = BTreeMap::new();
        for (file, owned) in self.target.system.owned_each(at, path, &chosen).unwrap_or_default() {
            match file {
                None => directory = Some(owned),
                Some(file) => drop(owners.insert(file.to_owned(), owned)),
            }
        }
        self.listed[at.id] = Some(listed).filter(|_| alike);
        (directory, owners)
    }
}

/// The files of a group: those that take tasks, and the others.
struct GroupFiles {
    tasks: Vec<String>,
    others: BTreeSet<String>,
}

impl GroupFiles {
    fn new(target: Target<'_>, at: &Hierarchy, path: &str) -> GroupFiles {
        let all = target.host.kernel().files(at, path).unwrap_or_default();
        let (tasks, others) = all.into_iter().partition(|file| TASK_FILES.contains(&file.as_str()));
        GroupFiles { tasks, others: Vec::into_iter(others).collect() }
    }
}

/// v2's devices with an I/O cost model.
fn io_cost(target: Target<'_>) -> Vec<String> {
    let v2 = target.host.hierarchies().iter().find(|at| at.version == Version::V2);
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
