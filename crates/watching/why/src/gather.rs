//! Looks at a group at two moments and makes facts of it. The only part of `why` that reads the machine; it decides
//! nothing and changes nothing.

mod io;
mod memory_stops;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use apply::Bound;
use kernel::{Error, GroupName, Host, Seat};
use monitor::interruptions::{Counts, Interrupted};
use settings::{Controller, Value, Version};
use units::{CpuSet, Limit, NodeSet, group_path};

use super::{
    facts::{
        ByLoad, CpuFacts, Facts, FrozenPart, InvalidPartition, Level, MemoryFacts, NodeFacts, Other, Quota,
    },
    scan::{self, Own, Scan},
};
use monitor::{Beat, Files, Groups, Instance, Options, Reading, Sample, Sampler, Table, Task, tasks};

/// The distance of a node from itself, and what is taken where the kernel gives none.
const LOCAL: u32 = 10;
const REMOTE: u32 = 20;

/// The file by whose read the kernel adds up all of a group's pressures.
const PRESSURE: &str = "io.pressure";
/// How often the kernel is made to add up a pressure: rarely next to what a read costs, often next to a task's changes of CPU.
const PRESSURE_EVERY: Duration = Duration::from_millis(50);

/// Pages of a file, or their shadows, in one of the kernel's nodes (XA_CHUNK_SIZE).
const NODE_PAGES: u64 = 64;

/// One moment.
struct Moment {
    sample: Sample,
    tasks: Vec<Task>,
    /// What each thread of the machine had run and waited.
    scan: Scan,
    /// `/proc/diskstats` (iostats.rst).
    disks: String,
    /// The group's tasks that a frozen group stops, with that group.
    frozen: BTreeMap<u32, String>,
    /// What interrupted CPUs so far, where some are isolated.
    interrupts: Option<Counts>,
    /// The group, those above and those below it whose memory is used up while the kernel may kill nobody there.
    out_of_memory: BTreeSet<String>,
}

impl Moment {
    /// Always in the same order, so that the spans between the parts of two moments are the same.
    fn now<F: Files>(
        host: &Host,
        group: &GroupName,
        sampler: &mut Sampler<F>,
        isolated: &CpuSet,
    ) -> Result<Moment, Error> {
        let interrupts = if isolated.is_empty() { None } else { Counts::now().ok() };
        let sample = sampler.tick(host, Beat::default())?.clone();
        let disks = host.kernel().outside("/proc/diskstats".as_ref()).unwrap_or_default();
        let tasks = tasks(host, group)?;
        let frozen = scan::frozen(host, tasks.iter().map(|task| task.process.pid));
        let out_of_memory = memory_stops::under_oom(host, group);
        Ok(Moment { sample, tasks, scan: scan::scan(host), disks, frozen, interrupts, out_of_memory })
    }
}

/// Looks at `group` for `span`, and at all others too: they are its neighbours. `isolated`: the CPUs that a layout isolates.
///
/// # Errors
/// [`Error::NoGroup`], [`Error::Refused`]. A figure that can't be read is missing in the facts.
pub fn gather<F: Files>(
    host: &Host,
    files: F,
    group: &GroupName,
    isolated: &CpuSet,
    span: Duration,
) -> Result<Facts, Error> {
    gather_while(host, files, group, isolated, |pressure_is_counted| {
        if pressure_is_counted {
            wait_for_pressure(host, group, span);
            return None;
        }
        Some(scan::blocked(host, group, span))
    })
}

/// Waits for `span` and reads the group's pressure meanwhile. At each read (else every two seconds) the kernel adds up what
/// its CPUs counted since the one before, each weighed by how long it was busy: of a task that slept as long on one CPU as
/// then on another, that is half of the time (1.03 of 2.08 s were seen).
fn wait_for_pressure(host: &Host, group: &GroupName, span: Duration) {
    let end = Instant::now() + span;
    let seat = v2_seat(host, group);
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return;
        }
        std::thread::sleep(rest.min(PRESSURE_EVERY));
        // only the read matters: a group that is gone is found at the end
        _ = seat.as_ref().map(|seat| host.kernel().read(seat.at, &seat.path, PRESSURE));
    }
}

/// As [`gather`], for as long as `meanwhile` takes. Its argument: does the kernel count the pressure of this group? If
/// not, it answers how long the group's tasks slept uninterruptibly, if it knows.
///
/// # Errors
/// As [`gather`].
pub fn gather_while<F: Files>(
    host: &Host,
    files: F,
    group: &GroupName,
    isolated: &CpuSet,
    meanwhile: impl FnOnce(bool) -> Option<Duration>,
) -> Result<Facts, Error> {
    let own_pressure = has_pressure(host, group, &tasks(host, group)?);
    let mut sampler = Sampler::new(host, files, Options { groups: Groups::All, slow_every: 1 }, false);
    let first = Moment::now(host, group, &mut sampler, isolated)?;
    let blocked = meanwhile(own_pressure);
    sampler.refresh();
    let last = Moment::now(host, group, &mut sampler, isolated)?;
    Ok(Looked { host, group, isolated, first, last, blocked, own_pressure }.facts())
}

/// Does the kernel count the waiting of this group's tasks? On a host with both versions they may be in it on v1 alone.
fn has_pressure(host: &Host, group: &GroupName, tasks: &[Task]) -> bool {
    let Some(seat) = v2_seat(host, group) else { return false };
    if host.kernel().read(seat.at, &seat.path, PRESSURE).is_err() {
        return false;
    }
    let is_there = |task: &Task| {
        let path = host.kernel().group_of(seat.at, task.process.pid).ok()?;
        let rest = seat.at.below_mount(&path)?.strip_prefix(seat.path.as_str())?.to_owned();
        (rest.is_empty() || rest.starts_with('/')).then_some(())
    };
    !tasks.is_empty() && tasks.iter().all(|task| is_there(task).is_some() || is_gone(host, task))
}

/// The directory that the group has, or would have, where the kernel counts pressure.
fn v2_seat<'h>(host: &'h Host, group: &GroupName) -> Option<Seat<'h>> {
    let at = host.hierarchies().iter().find(|at| at.version == Version::V2)?;
    Some(host.seat_in(at, group))
}

fn is_gone(host: &Host, task: &Task) -> bool {
    host.kernel().process(task.process.pid).is_err()
}

/// Everything that was read.
struct Looked<'h> {
    host: &'h Host,
    group: &'h GroupName,
    isolated: &'h CpuSet,
    first: Moment,
    last: Moment,
    blocked: Option<Duration>,
    own_pressure: bool,
}

impl Looked<'_> {
    fn facts(&self) -> Facts {
        let name = self.name();
        let (before, after) = (&self.first.sample.groups, &self.last.sample.groups);
        let time = |table: &Table| table.row(&name).map(|row| table.times(row).tick);
        let span = time(after).zip(time(before)).map(|(after, before)| after.saturating_sub(before));
        let span = span.unwrap_or_else(|| self.last.sample.clock.saturating_sub(self.first.sample.clock));
        let own = scan::own(&self.first.tasks, &self.last.tasks, &self.first.scan, span);
        let levels: Vec<Level> = self.names().iter().map(|name| self.level(name)).collect();
        let cpu = self.cpu(&own, &levels);
        Facts {
            group: self.group.to_string(),
            span,
            tasks: self.last.tasks.len(),
            frozen_parts: self.frozen_parts(),
            memory_stops: self.memory_stops(),
            memory: self.memory(&cpu.cpus),
            io: self.io(),
            realtime: own.realtime,
            interrupted: self.interrupted(&cpu.cpus),
            by_load: ByLoad::default(),
            bound: Bound::default(),
            levels,
            cpu,
        }
    }

    /// What interrupted those of these CPUs that are isolated.
    fn interrupted(&self, cpus: &CpuSet) -> Option<Interrupted> {
        let isolated = cpus.intersection(self.isolated);
        let (first, last) = (self.first.interrupts.as_ref()?, self.last.interrupts.as_ref()?);
        (!isolated.is_empty()).then(|| last.since(first, &isolated))
    }

    /// The one that stops most tasks first.
    fn frozen_parts(&self) -> Vec<FrozenPart> {
        let names = self.names();
        let stopped = |moment: &Moment, by: &str| moment.frozen.values().filter(|name| *name == by).count();
        let all: BTreeSet<&String> = self.first.frozen.values().chain(self.last.frozen.values()).collect();
        let part = |group: &String| {
            let (begin, end) = (stopped(&self.first, group), stopped(&self.last, group));
            FrozenPart {
                group: group.clone(),
                is_below: names.first().is_some_and(|own| group_path::is_at_or_below(group, own)),
                tasks: if end > 0 { end } else { begin },
                frozen: (begin > 0, end > 0),
            }
        };
        let mut parts: Vec<FrozenPart> =
            all.into_iter().filter(|group| !names.contains(*group)).map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.tasks));
        parts
    }

    /// The group as the sampler names it.
    fn name(&self) -> String {
        self.names().into_iter().next().unwrap_or_else(|| self.group.to_string())
    }

    /// The group and those above it, without the root.
    fn names(&self) -> Vec<String> {
        let seats = self.host.seats(self.group);
        let Some(seat) = seats.first() else { return Vec::new() };
        let mut paths = Vec::new();
        let mut path = seat.path.as_str();
        while !path.is_empty() {
            paths.push(self.host.named(seat.at, path));
            path = group_path::parent(path).unwrap_or_default();
        }
        paths
    }

    /// How much a counter grew; `None` if it is missing, or was set back.
    fn growth(&self, row: &str, field: &str) -> Option<u64> {
        let of = |moment: &Moment| moment.sample.groups.get(row, field).at();
        of(&self.last)?.checked_sub(of(&self.first)?)
    }

    fn grown(&self, row: &str, field: &str) -> u64 {
        self.growth(row, field).unwrap_or(0)
    }

    fn machine_growth(&self, field: &str) -> Option<u64> {
        let of = |moment: &Moment| moment.sample.machine.get("", field).at();
        of(&self.last)?.checked_sub(of(&self.first)?)
    }

    fn now(&self, row: &str, field: &str) -> Reading {
        self.last.sample.groups.get(row, field)
    }

    fn limit(&self, row: &str, field: &str) -> Option<Limit<u64>> {
        match self.now(row, field) {
            Reading::Missing => None,
            Reading::Max => Some(Limit::Max),
            Reading::At(limit) => Some(Limit::At(limit)),
        }
    }

    /// The value of a group's setting; `None` where its kernel has none.
    fn value(&self, group: &str, setting: &str) -> Option<Value> {
        let found = settings::find(setting).ok()?;
        let name = GroupName::new(group).ok()?;
        apply::get(self.host, &name, &found).ok().map(|reading| reading.value)
    }

    fn level(&self, name: &str) -> Level {
        let frozen = |moment: &Moment| {
            let stops = moment.frozen.values().any(|by| by == name);
            stops || moment.sample.groups.get(name, "frozen") == Reading::At(1)
        };
        let micros = |limit: units::Micros| Duration::from_micros(limit.0);
        let quota = self.limit(name, "cpu.max.quota").zip(self.now(name, "cpu.max.period").at());
        let memsw = match self.value(name, "memory.memsw.limit_in_bytes") {
            Some(Value::Bytes(limit)) => Some(limit.map(|bytes| bytes.0)),
            _ => None,
        };
        Level {
            group: name.to_owned(),
            weight: self.weight(name),
            quota: quota.map(|(quota, period)| Quota {
                quota: quota.map(Duration::from_nanos),
                period: Duration::from_nanos(period),
            }),
            periods: self.grown(name, "cpu.periods"),
            throttled_periods: self.grown(name, "cpu.throttled.periods"),
            throttled: Duration::from_nanos(self.grown(name, "cpu.throttled.time")),
            cpus: match self.value(name, "cpuset.cpus.effective") {
                Some(Value::Cpus(cpus)) => Some(cpus),
                _ => None,
            },
            own_cpus: self.own_cpus(name),
            taken: self.taken(name),
            mems: match self.value(name, "cpuset.mems.effective") {
                Some(Value::Nodes(nodes)) => Some(nodes),
                _ => None,
            },
            invalid_partition: self.invalid_partition(name),
            memory_max: self.limit(name, "memory.max"),
            memory_high: self.limit(name, "memory.high"),
            memsw_max: memsw.filter(|_| self.version(Controller::Memory) == Some(Version::V1)),
            memory: ["memory.current", "memory.swap"]
                .iter()
                .filter_map(|field| self.now(name, field).at())
                .fold(0, u64::saturating_add),
            met_max: self.grown(name, "memory.events.max"),
            met_high: self.grown(name, "memory.events.high"),
            met_swap_max: self.grown(name, "memory.swap.events.max"),
            oom_kills: self.grown(name, "memory.events.oom_kill"),
            pids_max: self.limit(name, "pids.max"),
            pids: self.now(name, "pids.current").at().unwrap_or(0),
            failed_forks: self.grown(name, "pids.events.max"),
            frozen: (frozen(&self.first), frozen(&self.last)),
            io_max: self.throttles(name),
            realtime: match (self.value(name, "cpu.rt_runtime_us"), self.value(name, "cpu.rt_period_us")) {
                (Some(Value::Micros(budget)), Some(Value::Micros(Limit::At(period)))) => {
                    Some((budget.map(micros), micros(period)))
                }
                _ => None,
            },
        }
    }

    /// `root invalid (why)`, with what its surroundings show of the cause.
    fn invalid_partition(&self, name: &str) -> Option<InvalidPartition> {
        let Some(Value::Word(state)) = self.value(name, "cpuset.cpus.partition") else { return None };
        let (wanted, Some(reason)) = settings::partition(&state) else { return None };
        let own = self.own_cpus(name)?;
        let overlapping = self.beside(name).filter_map(|group| {
            let theirs = self.own_cpus(group)?;
            (!theirs.is_disjoint(&own)).then(|| (group.clone(), theirs.difference(&own)))
        });
        let above = parent(name).and_then(|above| self.value(above, "cpuset.cpus.partition"));
        Some(InvalidPartition {
            wanted: wanted.to_owned(),
            reason: reason.to_owned(),
            overlapping: overlapping.collect(),
            is_below_member: above == Some(Value::Word("member".to_owned())),
        })
    }

    /// The group's own list of CPUs.
    fn own_cpus(&self, group: &str) -> Option<CpuSet> {
        match self.value(group, apply::CPUS) {
            Some(Value::Cpus(cpus)) => Some(cpus),
            _ => None,
        }
    }

    /// The groups directly below the same one.
    fn beside<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s String> {
        let rows = self.last.sample.groups.rows().iter();
        rows.filter(move |group| *group != name && *group != "/" && parent(group) == parent(name))
    }

    /// CPUs of groups beside this one, as far as the kernel lets the two share none (v1).
    fn taken(&self, name: &str) -> CpuSet {
        if self.version(Controller::Cpuset) != Some(Version::V1) {
            return CpuSet::new();
        }
        let is_exclusive = |group: &str| self.value(group, "cpuset.cpu_exclusive") == Some(Value::Flag(true));
        let is_own = is_exclusive(name);
        let apart = self.beside(name).filter(|group| is_own || is_exclusive(group));
        apart.filter_map(|group| self.own_cpus(group)).fold(CpuSet::new(), |all, cpus| all.union(&cpus))
    }

    fn version(&self, controller: Controller) -> Option<Version> {
        self.host.hierarchy_of(controller).map(|at| at.version)
    }

    fn cpu(&self, own: &Own, levels: &[Level]) -> CpuFacts {
        let name = self.name();
        let online: CpuSet = self.outside("/sys/devices/system/cpu/online").unwrap_or_default();
        let cpus = levels.iter().find_map(|level| level.cpus.clone()).unwrap_or_else(|| online.clone());
        let used = self.growth(&name, "cpu.usage").map_or(own.ran, Duration::from_nanos);
        let scans = (&self.first.scan, &self.last.scan);
        let group = (self.group, self.last.tasks.as_slice());
        let others = scan::others(self.host, group, &cpus, scans, |group| self.weight(group));
        let ran: Duration = others.iter().map(|other| other.ran).sum();
        let foreign = foreign(self.busy(&cpus, BUSY).saturating_sub(used), ran, self.uncounted(&cpus));
        CpuFacts {
            used,
            waited: own.waited,
            foreign,
            steal: self.busy(&cpus, &["cpu.steal"]),
            others: self.others(&cpus, foreign, others),
            idle: self.idle(&online),
            uncounted: monitor::is_uncounted(self.host, &name).then(|| monitor::counting(&name)),
            nodes: self.cpus_of_nodes(),
            cpus,
            online,
        }
    }

    fn cpus_of_nodes(&self) -> Vec<(u32, CpuSet)> {
        let online: NodeSet = self.outside("/sys/devices/system/node/online").unwrap_or_default();
        let nodes = online.iter().filter_map(|node| u32::try_from(node).ok());
        nodes.filter_map(|node| Some((node, self.cpus_of(node)?))).collect()
    }

    fn cpus_of(&self, node: u32) -> Option<CpuSet> {
        self.outside(&format!("/sys/devices/system/node/node{node}/cpulist"))
    }

    /// Who else ran on these CPUs. A task that moved is counted where it was last, so no group had more than the kernel
    /// counted for it there (v1), and all together no more than `foreign`.
    fn others(&self, cpus: &CpuSet, foreign: Duration, mut others: Vec<Other>) -> Vec<Other> {
        let mut left = foreign;
        // the root's tasks have no count of their own: they have what is left
        others.sort_by_key(|other| (other.group == "/", std::cmp::Reverse(other.ran)));
        for other in &mut others {
            let counted = if other.group == "/" { None } else { self.on_cpus(&other.group, cpus) };
            other.ran = other.ran.min(counted.unwrap_or(left)).min(left);
            left -= other.ran;
        }
        others.retain(|other| !other.ran.is_zero());
        others.sort_by_key(|other| std::cmp::Reverse(other.ran));
        others
    }

    /// CPU time of a group on these CPUs, where the kernel counts it.
    fn on_cpus(&self, group: &str, cpus: &CpuSet) -> Option<Duration> {
        let (before, after) = (&self.first.sample.groups, &self.last.sample.groups);
        let (was, row) = (before.row(group)?, after.row(group)?);
        let mut nanos = None;
        for at in after.columns().named("cpu.percpu") {
            let Instance::Cpu(cpu) = after.columns().list()[at].instance else { continue };
            let grown = after.reading(row, at).at().zip(before.reading(was, at).at());
            if let Some((now, earlier)) = grown.filter(|_| cpus.contains(cpu as usize)) {
                *nanos.get_or_insert(0) += now.saturating_sub(earlier);
            }
        }
        nanos.map(Duration::from_nanos)
    }

    /// `cpu.weight`.
    fn weight(&self, group: &str) -> Option<u64> {
        match self.value(group, "cpu.weight") {
            Some(Value::Weight(weight)) => Some(weight.0 / 100),
            _ => None,
        }
    }

    /// The CPUs that idled for at least half of the span.
    fn idle(&self, online: &CpuSet) -> CpuSet {
        let span = self.last.sample.clock.saturating_sub(self.first.sample.clock);
        let mut idle = CpuSet::new();
        for cpu in online.iter() {
            let mut one = CpuSet::new();
            one.insert(cpu);
            if !span.is_zero() && self.busy(&one, IDLE) * 2 >= span {
                idle.insert(cpu);
            }
        }
        idle
    }

    /// What CPUs spent in these ways.
    fn busy(&self, cpus: &CpuSet, fields: &[&str]) -> Duration {
        let (before, after) = (&self.first.sample.machine, &self.last.sample.machine);
        let nanos = after
            .columns()
            .list()
            .iter()
            .enumerate()
            .filter(|(_, column)| fields.contains(&column.field.name))
            .filter(
                |(_, column)| matches!(column.instance, Instance::Cpu(cpu) if cpus.contains(cpu as usize)),
            )
            .filter_map(|(at, _)| after.reading(0, at).at()?.checked_sub(before.reading(0, at).at()?))
            .fold(0, u64::saturating_add);
        Duration::from_nanos(nanos)
    }

    /// Time of these CPUs that `/proc/stat` counts as nothing: ticks that came late (a virtual machine's) are lost.
    fn uncounted(&self, cpus: &CpuSet) -> Duration {
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let span = self.last.sample.clock.saturating_sub(self.first.sample.clock);
        let counted = self.busy(cpus, BUSY) + self.busy(cpus, IDLE);
        span.saturating_mul(count).saturating_sub(counted)
    }

    fn outside<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.host.kernel().outside(path.as_ref()).ok()?.trim().parse().ok()
    }

    fn memory(&self, cpus: &CpuSet) -> MemoryFacts {
        let name = self.name();
        let grown = |field| self.grown(&name, field);
        let now = |field| self.now(&name, field).at();
        let current = now("memory.current");
        let own_pressure = self.growth(&name, "memory.pressure.some").filter(|_| self.own_pressure);
        MemoryFacts {
            version: self.version(Controller::Memory),
            is_counted: current.is_some(),
            current: current.unwrap_or(0),
            swap: now("memory.swap").unwrap_or(0),
            refaults_file: grown("memory.refaults.file"),
            refaults_anon: grown("memory.refaults.anon"),
            forgotten: self
                .machine_growth("memory.refaults.forgotten")
                .unwrap_or(0)
                .saturating_mul(NODE_PAGES),
            major_faults: grown("memory.faults.major"),
            pressure: own_pressure.map(Duration::from_nanos),
            machine_pressure: self.machine_growth("memory.pressure.some").map(Duration::from_nanos),
            system: self.growth(&name, "cpu.system").map(Duration::from_nanos),
            nodes: self.nodes(&name, cpus),
        }
    }

    fn nodes(&self, name: &str, cpus: &CpuSet) -> Vec<NodeFacts> {
        let table = &self.last.sample.groups;
        let Some(row) = table.row(name) else { return Vec::new() };
        let mut nodes: Vec<NodeFacts> = Vec::new();
        for (at, column) in table.columns().list().iter().enumerate() {
            let Instance::Node(node) = column.instance else { continue };
            let bytes = table.reading(row, at).at().unwrap_or(0);
            match nodes.iter_mut().find(|known| known.node == node) {
                Some(known) => known.bytes += bytes,
                None => nodes.push(NodeFacts { node, bytes, distance: LOCAL }),
            }
        }
        let near: NodeSet = nodes
            .iter()
            .map(|node| node.node)
            .filter(|node| self.has_cpus(*node, cpus))
            .fold(NodeSet::new(), |mut near, node| {
                near.insert(node as usize);
                near
            });
        for node in &mut nodes {
            node.distance = self.distance(node.node, &near);
        }
        nodes
    }

    fn has_cpus(&self, node: u32, cpus: &CpuSet) -> bool {
        self.cpus_of(node).is_some_and(|own| !own.is_disjoint(cpus))
    }

    /// From the nearest of the group's nodes; a machine that lists no nodes has one.
    fn distance(&self, node: u32, near: &NodeSet) -> u32 {
        if near.is_empty() || near.contains(node as usize) {
            return LOCAL;
        }
        let text =
            self.host.kernel().outside(format!("/sys/devices/system/node/node{node}/distance").as_ref());
        let online: Option<NodeSet> = self.outside("/sys/devices/system/node/online");
        let (Ok(text), Some(online)) = (text, online) else { return REMOTE };
        let distances = online.iter().zip(text.split_whitespace().filter_map(|word| word.parse().ok()));
        distances.filter(|(other, _)| near.contains(*other)).map(|(_, far)| far).min().unwrap_or(REMOTE)
    }
}

/// What others ran: what ticks count, and of the time that they do not count as much as the others' own counts say.
pub(crate) fn foreign(by_ticks: Duration, by_counts: Duration, uncounted: Duration) -> Duration {
    by_ticks + by_counts.saturating_sub(by_ticks).min(uncounted)
}

/// The group above, by name.
fn parent(name: &str) -> Option<&str> {
    group_path::parent(name).filter(|parent| !parent.is_empty())
}

/// What a CPU does that is not idling.
const BUSY: &[&str] = &["cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq", "cpu.steal"];
const IDLE: &[&str] = &["cpu.idle", "cpu.iowait"];
