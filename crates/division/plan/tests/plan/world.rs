//! What the tests have in common: layouts from text, machines made up or recorded, and a kernel that plans are carried
//! out on.

use std::collections::{BTreeMap, BTreeSet};

use fake::Fake;
use kernel::{GroupName, Host};
use layout::{Desired, Severity, Source, read_toml};
use plan::{
    Action, Anybody, MachineFacts, Need, Observed, Owned, Plan, Problem, SeenGroup, SeenHierarchy, Step,
    needs, plan as make_plan,
};
use settings::{Controller, Version};
use topology::Machine;
use units::CpuSet;

/// The layout in a text; panics if it has an error.
pub fn desired(text: &str) -> Desired {
    let reading = read_toml(&[Source::new("layout.toml", text)]);
    let errors: Vec<_> =
        reading.diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    reading.desired.unwrap()
}

/// A machine recorded for the topology crate; several listings are merged.
pub fn recorded(names: &[&str]) -> Machine {
    let machines = names.iter().map(|name| {
        let path = format!("{}/../../machine/topology/tests/machines/{name}", env!("CARGO_MANIFEST_DIR"));
        Machine::from_listing(name, &std::fs::read_to_string(path).unwrap()).unwrap()
    });
    machines.reduce(|one, other| one.merge(other).unwrap()).unwrap()
}

/// A machine of so many nodes, each with so many L3 groups of cores of threads; CPUs numbered node by node, siblings
/// side by side; 1 GiB of memory a CPU.
pub fn machine(nodes: usize, l3: usize, cores: usize, threads: usize) -> Machine {
    let per_node = l3 * cores * threads;
    let node = |node: usize| {
        let first = node * per_node;
        let distances: Vec<u32> = (0..nodes)
            .map(|other| if other == node { 10 } else { 20 + other.abs_diff(node) as u32 })
            .collect();
        serde_json::json!({
            "id": node,
            "cpus": format!("{first}-{}", first + per_node - 1),
            "memory_total": (per_node as u64) << 30,
            "distances": distances,
        })
    };
    let cpu = |id: usize| {
        let core = id / threads;
        serde_json::json!({
            "id": id, "online": true, "package": id / per_node, "core": core, "node": id / per_node,
            "l3": id / (cores * threads),
            "siblings": format!("{}-{}", core * threads, core * threads + threads - 1),
        })
    };
    let group = |index: usize| {
        let first = index * cores * threads;
        serde_json::json!({ "cpus": format!("{first}-{}", first + cores * threads - 1) })
    };
    let all = serde_json::json!({
        "sources": [],
        "cpus": (0..nodes * per_node).map(cpu).collect::<Vec<_>>(),
        "nodes": (0..nodes).map(node).collect::<Vec<_>>(),
        "l3": (0..nodes * l3).map(group).collect::<Vec<_>>(),
    });
    serde_json::from_value(all).unwrap()
}

/// The machine with the last CPU of every second core offline, so that cores differ in size.
pub fn with_small_cores(mut machine: Machine) -> Machine {
    let second = machine.cores().unwrap().into_iter().skip(1).step_by(2).filter(|core| core.cpus.len() > 1);
    let off: CpuSet = second.filter_map(|core| core.cpus.last()).collect();
    machine.nodes.iter_mut().for_each(|node| node.cpus = node.cpus.difference(&off));
    machine.l3.iter_mut().flatten().for_each(|group| group.cpus = group.cpus.difference(&off));
    for cpu in &mut machine.cpus {
        cpu.siblings = cpu.siblings.take().map(|siblings| siblings.difference(&off));
        if off.contains(cpu.id) {
            *cpu = topology::LogicalCpu { id: cpu.id, ..topology::LogicalCpu::default() };
        }
    }
    machine
}

/// The plan for a machine on which nobody made a group yet.
pub fn plan_on(version: Version, machine: &Machine, layout: &str) -> Result<Plan, Vec<Problem>> {
    make_plan(&desired(layout), machine, &Observed::empty(version), &MachineFacts(machine), &Anybody)
}

/// The CPUs that each group is assigned.
pub fn cpus(plan: &Plan) -> BTreeMap<String, String> {
    let all = plan.assignments.iter();
    all.map(|a| (a.group.to_string(), a.cpus.as_ref().map_or(String::new(), ToString::to_string))).collect()
}

/// Which in-memory kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    V1,
    /// Linux 6.1.
    V2,
    /// Linux 6.12.
    V2Exclusive,
    V2Firm,
}

pub const KINDS: [Kind; 4] = [Kind::V1, Kind::V2, Kind::V2Exclusive, Kind::V2Firm];

/// A machine with a kernel.
pub struct World {
    pub machine: Machine,
    pub fake: Fake,
    pub host: Host,
    /// Every state on the way is looked at, not only the last.
    pub watched: bool,
    kind: Kind,
}

impl World {
    pub fn new(kind: Kind, machine: Machine) -> World {
        let (cpus, nodes) = (machine.cpus.len(), machine.nodes.len());
        let fake = match kind {
            Kind::V1 => Fake::v1(cpus, nodes),
            Kind::V2 => Fake::v2(cpus, nodes),
            Kind::V2Exclusive => Fake::v2_with_exclusive_cpus(cpus, nodes),
            Kind::V2Firm => Fake::v2_with_firm_partitions(cpus, nodes),
        };
        let host = Host::new(Box::new(fake.clone())).unwrap();
        World { machine, fake, host, watched: true, kind }
    }

    /// What a planner needs to know.
    pub fn observed(&self, desired: &Desired) -> Observed {
        let bare = |at: &kernel::Hierarchy| SeenHierarchy {
            version: at.version,
            controllers: at.controllers.clone(),
            name: at.name.clone(),
            mount: at.mount.display().to_string(),
            base: self.host.base(at).path().to_owned(),
            is_closed: false,
            groups: BTreeMap::new(),
        };
        let hierarchies: Vec<SeenHierarchy> = self.host.hierarchies().iter().map(bare).collect();
        let mut observed = Observed { hierarchies, ..Observed::default() };
        for need in needs(desired, &observed) {
            self.look(&need, &mut observed);
        }
        // Linux 6.7 and later have it in the root; the in-memory kernel does not know it
        if matches!(self.kind, Kind::V2Exclusive | Kind::V2Firm)
            && let Some(root) = observed.hierarchies[0].groups.get_mut("")
        {
            root.files.insert("cpuset.cpus.isolated".to_owned(), String::new());
        }
        observed
    }

    fn look(&self, need: &Need, observed: &mut Observed) {
        let at = &self.host.hierarchies()[need.place.hierarchy];
        let kernel = self.host.kernel();
        let groups = &mut observed.hierarchies[need.place.hierarchy].groups;
        if !kernel.exists(at, &need.place.path) {
            return;
        }
        let mut seen = self.seen(at, &need.place.path, need.files.iter());
        // the in-memory kernel does not show owners: root's are taken for granted
        seen.directory = need.owners.then_some(Owned { uid: 0, gid: 0, mode: 0o755 });
        let changing = need.below.iter().filter(|(held, _)| seen.files.get(&held.file) != Some(&held.text));
        let below = changing.flat_map(|(_, files)| files.iter().map(|file| (*file).to_owned()));
        let of_children: BTreeSet<String> = below.chain(need.children.iter().cloned()).collect();
        for (file, text) in groups.remove(&need.place.path).map(|before| before.files).unwrap_or_default() {
            seen.files.entry(file).or_insert(text);
        }
        groups.insert(need.place.path.clone(), seen);
        if of_children.is_empty() {
            return;
        }
        for child in kernel.children(at, &need.place.path).unwrap() {
            let path = join(&need.place.path, &child);
            let seen = self.seen(at, &path, of_children.iter());
            groups.entry(path).or_insert(seen);
        }
    }

    fn seen<'f>(
        &self,
        at: &kernel::Hierarchy,
        path: &str,
        files: impl Iterator<Item = &'f String>,
    ) -> SeenGroup {
        let kernel = self.host.kernel();
        let read =
            |file: &String| Some((file.clone(), kernel.read(at, path, file).ok()?.trim_end().to_owned()));
        let tasks = |path: &str| kernel.read(at, path, "cgroup.procs").unwrap_or_default().lines().count();
        let below = kernel.descendants(at, path).unwrap_or_default();
        SeenGroup {
            files: files.filter_map(read).collect(),
            tasks: tasks(path),
            populated_below: below.iter().any(|below| tasks(below) > 0),
            ..SeenGroup::default()
        }
    }

    pub fn plan(&self, layout: &str) -> Result<Plan, Vec<Problem>> {
        self.plan_of(&desired(layout))
    }

    pub fn plan_of(&self, desired: &Desired) -> Result<Plan, Vec<Problem>> {
        self.plan_observed(desired, &self.observed(desired))
    }

    pub fn plan_observed(&self, desired: &Desired, observed: &Observed) -> Result<Plan, Vec<Problem>> {
        make_plan(desired, &self.machine, observed, &MachineFacts(&self.machine), &Anybody)
    }

    /// Plans and carries out; panics on a problem or a refusal.
    pub fn apply(&self, layout: &str) -> Plan {
        let plan = self.plan(layout).unwrap_or_else(|problems| panic!("{problems:#?}\n{layout}"));
        self.carry_out(&plan);
        plan
    }

    /// Every step is taken by the kernel, and no state on the way is one that it should not be in.
    pub fn carry_out(&self, plan: &Plan) {
        for (number, step) in plan.steps.iter().enumerate() {
            if let Err(errno) = self.step(step) {
                panic!("step {number} refused with {errno}: {step:#?}\nof {:#?}", plan.steps);
            }
            if self.watched {
                self.look_for_harm(number, plan);
            }
        }
        self.look_for_harm(plan.steps.len(), plan);
    }

    fn step(&self, step: &Step) -> Result<(), rustix::io::Errno> {
        let kernel = self.host.kernel();
        let at = |hierarchy: usize| &self.host.hierarchies()[hierarchy];
        match &step.action {
            Action::CreateGroup { place } => kernel.mkdir(at(place.hierarchy), &place.path),
            Action::EnableControllers { place, names } => {
                let text: Vec<String> = names.iter().map(|name| format!("+{name}")).collect();
                kernel.write(at(place.hierarchy), &place.path, "cgroup.subtree_control", &text.join(" "))
            }
            Action::Write { place, file, text } => {
                let at = at(place.hierarchy);
                let held = kernel.read(at, &place.path, file).map(|held| held.trim_end().to_owned());
                if let (Some(before), Ok(held)) = (&step.before, held) {
                    assert_eq!(*before, held, "{step:#?}");
                }
                kernel.write(at, &place.path, file, text)
            }
            Action::MoveTasksAway { to, .. } => {
                assert!(!to.is_empty());
                Ok(())
            }
            Action::SetOwnership { .. } | Action::SetDevices { .. } | Action::Mount { .. } => Ok(()),
            other => panic!("a plan without a history has no such step: {other:?}"),
        }
    }

    /// No group with tasks lacks CPUs or memory nodes, no partition is invalid, and no exclusive group's CPUs are
    /// another's beside it.
    fn look_for_harm(&self, number: usize, plan: &Plan) {
        let Some(at) = self.host.hierarchy_of(Controller::Cpuset) else { return };
        let kernel = self.host.kernel();
        let list = |path: &str, file: &str| -> CpuSet {
            kernel.read(at, path, file).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        let (cpus_in, mems_in, flag_in) = match at.version {
            Version::V1 => ("cpuset.cpus", "cpuset.mems", "cpuset.cpu_exclusive"),
            Version::V2 => ("cpuset.cpus.effective", "cpuset.mems.effective", "cpuset.cpus.partition"),
        };
        let groups = kernel.descendants(at, "").unwrap();
        let flag = |path: &str| kernel.read(at, path, flag_in).unwrap_or_default().trim_end().to_owned();
        for path in &groups {
            let tasks = kernel.read(at, path, "cgroup.procs").unwrap_or_default();
            // v2: a group that cpuset was not handed to has its parent's
            if !tasks.is_empty() && kernel.read(at, path, cpus_in).is_ok() {
                let starved = list(path, cpus_in).is_empty() || list(path, mems_in).is_empty();
                assert!(
                    !starved,
                    "after step {number} {path} has tasks, but no CPUs or memory nodes: {:#?}",
                    plan.steps
                );
            }
            assert!(
                !flag(path).contains("invalid"),
                "after step {number} {path} is {}: {:#?}",
                flag(path),
                plan.steps
            );
        }
        let parent = |path: &str| path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
        for path in groups.iter().filter(|path| ["1", "root", "isolated"].contains(&flag(path).as_str())) {
            for other in groups.iter().filter(|other| *other != path && parent(other) == parent(path)) {
                let (own, theirs) = (list(path, "cpuset.cpus"), list(other, "cpuset.cpus"));
                assert!(
                    own.is_disjoint(&theirs),
                    "after step {number} {path} and {other} overlap: {:#?}",
                    plan.steps
                );
            }
        }
    }

    /// What a group's file holds.
    pub fn file(&self, group: &str, controller: Controller, file: &str) -> String {
        let group = GroupName::new(group).unwrap();
        let seat = self.host.seat(&group, controller).unwrap();
        self.host.read(&seat, &group, file).unwrap().trim_end().to_owned()
    }

    pub fn cpus(&self, group: &str) -> String {
        self.file(group, Controller::Cpuset, "cpuset.cpus")
    }

    /// A task in the group, in the hierarchy of that controller.
    pub fn put_task_in(&self, group: &str, controller: Controller) -> u32 {
        let pid = self.fake.spawn(1).unwrap();
        let group = GroupName::new(group).unwrap();
        let seat = self.host.seat(&group, controller).unwrap();
        self.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &pid.to_string()).unwrap();
        pid
    }

    /// Nothing is left to be done.
    pub fn is_done(&self, layout: &str) {
        let plan = self.plan(layout).unwrap_or_else(|problems| panic!("{problems:#?}\n{layout}"));
        assert!(plan.steps.is_empty(), "a second plan has steps: {:#?}\n{layout}", plan.steps);
    }
}

pub fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}
