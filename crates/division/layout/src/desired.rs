//! What is desired of a machine: what every configuration is read into and every plan is made from. Data only; it
//! knows no machine, and whoever has one resolves it.

use std::cmp::Reverse;

use settings::GroupName;
use settings::{Found, Via};
use units::{Bytes, Limit};

use crate::demand::{CpuDemand, MemDemand, MemoryAmount, Placement, Pool, Smt};
use crate::matcher::Matcher;
use crate::origin::{Origin, Spanned};
use crate::pattern::NamePattern;
use crate::people::Person;
use crate::rule::{Controllers, Rule, Subsystem, Target};

/// The largest number a process can have (`PID_MAX_LIMIT` in `linux/threads.h`).
pub(crate) const LARGEST_PID: u32 = 4_194_304;

/// A whole configuration, from one file or many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// Groups with parents before their children, else in the order of the files. A parent that is only part of a
    /// name is not among them; it is made as needed. No name is there twice.
    pub groups: Vec<Group>,
    /// Groups that are made when a rule first needs them.
    pub templates: Vec<Template>,
    /// Rules in order, the first that matches counts. They go before the groups' own [`Group::matches`];
    /// [`Desired::all_rules`] joins both.
    pub rules: Vec<Rule>,
    /// What the rest of the system keeps.
    pub reserve: Reserve,
    /// What the machine must be like.
    pub assertions: Assertions,
    /// What groups and templates got that did not say otherwise. They have it already; this is used by exports only.
    pub defaults: Defaults,
    /// v1 hierarchies to be mounted if they are not (cgconfig.conf's `mount`).
    pub mounts: Vec<Mount>,
    /// cgconfig.conf's `systemd` sections.
    pub systemd: Vec<Spanned<Systemd>>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name, `db/oltp1`.
    pub name: GroupName,
    /// What it is to have.
    pub demands: Demands,
    /// Which processes belong to it, wherever they start.
    pub matches: Vec<Matcher>,
    /// Where its name was said.
    pub origin: Origin,
}

/// A group that is made for a process when a rule first needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its name, with codes such as `%u`.
    pub name: NamePattern,
    /// What such groups are to have.
    pub demands: Demands,
    /// Where its name was said.
    pub origin: Origin,
}

/// What a group or template is to have. `None` and empty mean that nothing is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demands {
    /// CPUs.
    pub cpus: Option<Spanned<CpuDemand>>,
    /// NUMA nodes for memory.
    pub mems: Option<Spanned<MemDemand>>,
    /// Nobody else may use its CPUs: a partition on v2, `cpu_exclusive` on v1. Then `cpus` is there.
    pub exclusive: bool,
    /// Settings in the order they were given; no two speak of the same, except rules of `devices.*`, which add up.
    /// `cpuset.cpus` and `cpuset.mems` are never among them: they are `cpus` and `mems`.
    pub settings: Vec<Assigned>,
    /// Controllers that it is to have beyond those that its settings need.
    pub controllers: Vec<Spanned<Subsystem>>,
    /// Who may put tasks in.
    pub tasks: Option<Spanned<Person>>,
    /// Who may change its settings and make groups in it.
    pub admin: Option<Spanned<Person>>,
    /// What the daemon does where it is no longer as requested; the daemon's own option where not said.
    pub keep: Option<Keep>,
    /// On v1, is it made only where its own controllers are, so that its processes escape what the groups above it limit
    /// elsewhere? That is the meaning of libcgroup's files; a layout's groups live wherever one above them does.
    pub only_named: bool,
}

/// What the daemon does about a group that is no longer as it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// `repair`: it is told and made as the layout asks again.
    Repair,
    /// `report`: it is told, once for each difference.
    Report,
    /// `off`: it is not looked at.
    Off,
}

/// A setting with the value requested. The value stays the user's text until there is a machine to ask (percentages,
/// device paths): [`Found::parse`] reads it. Its syntax has been checked.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// The setting, by the name that was used.
    pub found: Found,
    /// The value, as [`Found::parse`] takes it.
    pub text: String,
    /// Where the setting was named.
    pub origin: Origin,
}

/// What groups get that do not say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// Memory nodes of groups that ask for CPUs.
    pub mems: Option<Spanned<MemDemand>>,
    /// For demands of so many CPUs.
    pub placement: Option<Placement>,
    /// For demands of so many CPUs.
    pub smt: Option<Smt>,
    /// For demands of so many CPUs.
    pub pool: Option<Pool>,
    /// Who may put tasks in.
    pub tasks: Option<Spanned<Person>>,
    /// Who may change settings.
    pub admin: Option<Spanned<Person>>,
    /// What the daemon does about groups that are no longer as requested.
    pub keep: Option<Keep>,
    /// Settings.
    pub settings: Vec<Assigned>,
}

/// What the rest of the system keeps: no group of the layout is given it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reserve {
    /// CPUs; never [`CpuDemand::All`] or [`CpuDemand::Like`].
    pub cpus: Option<Spanned<CpuDemand>>,
    /// Memory that the sum of the groups' limits and reservations leaves free.
    pub memory: Option<Spanned<MemoryAmount>>,
}

/// What the machine must be like; on another one the layout is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assertions {
    /// The host's name, with `*` for any text.
    pub hostname: Option<Spanned<String>>,
    /// The CPU's model name holds this, in any case of letters, with `*` for any text.
    pub model: Option<Spanned<String>>,
    /// Number of NUMA nodes.
    pub nodes: Option<Spanned<Expected<usize>>>,
    /// Number of online logical CPUs.
    pub cpus: Option<Spanned<Expected<usize>>>,
    /// Memory as the kernel counts it (`MemTotal`). A plain amount in the file allows a tenth more or less, since
    /// the firmware keeps a part.
    pub memory: Option<Spanned<Expected<Bytes>>>,
}

/// A number that is expected: from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<T> {
    /// The least.
    pub min: T,
    /// The most, not below `min`.
    pub max: Limit<T>,
}

/// A v1 hierarchy to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What it holds. Mounts of the same path are one hierarchy with all their controllers.
    pub subsystem: Subsystem,
    /// Where; absolute.
    pub path: String,
    /// Where it was said.
    pub origin: Origin,
}

/// cgconfig.conf's `systemd` section: below which unit libcgroup had its groups. Ringfence asks systemd for a unit of
/// its own; this is used by exports only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Systemd {
    /// The slice.
    pub slice: Option<String>,
    /// The scope.
    pub scope: Option<String>,
    /// Is it where groups live by default?
    pub set_default: bool,
    /// A process to be put in, `1..=4194304`.
    pub pid: Option<u32>,
}

impl<T: PartialOrd> Expected<T> {
    /// Is `actual` within?
    pub fn holds(&self, actual: &T) -> bool {
        *actual >= self.min
            && match &self.max {
                Limit::At(max) => actual <= max,
                Limit::Max => true,
            }
    }
}

impl PartialEq for Assigned {
    /// By name and text: a name decides which setting is meant.
    fn eq(&self, other: &Assigned) -> bool {
        (&self.found.name, &self.text, &self.origin) == (&other.found.name, &other.text, &other.origin)
    }
}
impl Eq for Assigned {}

impl Desired {
    /// The group of that name.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == *name)
    }

    /// The template that a rule's group is made from: the one of the same name, codes included.
    pub fn template(&self, name: &NamePattern) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == *name)
    }

    /// All rules in the order in which they count: [`Desired::rules`], then what the groups match, deeper groups first.
    pub fn all_rules(&self) -> Vec<Rule> {
        let of_group = |group: &Group| {
            let name = NamePattern::of(&group.name);
            group.matches.clone().into_iter().map(move |matcher| {
                let origin = matcher.origin.clone();
                let target = Target { controllers: Controllers::All, group: name.clone(), origin };
                Rule { matcher, targets: vec![target], ignore: false, ignore_rt: false }
            })
        };
        let mut deepest: Vec<&Group> = self.groups.iter().collect();
        deepest.sort_by_cached_key(|group| Reverse(depth(&group.name)));
        self.rules.iter().cloned().chain(deepest.into_iter().flat_map(of_group)).collect()
    }

    /// The same with every place forgotten, to compare what two configurations ask.
    #[must_use]
    pub fn without_places(&self) -> Desired {
        let mut same = self.clone();
        let nowhere = Origin::outside_files("");
        same.groups.iter_mut().for_each(|group| {
            group.origin = nowhere.clone();
            group.demands.forget_places(&nowhere);
            group.matches.iter_mut().for_each(|matcher| matcher.forget_places(&nowhere));
        });
        same.templates.iter_mut().for_each(|template| {
            template.origin = nowhere.clone();
            template.demands.forget_places(&nowhere);
        });
        same.rules.iter_mut().for_each(|rule| {
            rule.matcher.forget_places(&nowhere);
            rule.targets.iter_mut().for_each(|target| target.origin = nowhere.clone());
        });
        same.mounts.iter_mut().for_each(|mount| mount.origin = nowhere.clone());
        same.systemd.iter_mut().for_each(|section| section.origin = nowhere.clone());
        forget(&mut same.reserve.cpus, &nowhere);
        forget(&mut same.reserve.memory, &nowhere);
        let host = &mut same.assertions;
        forget(&mut host.hostname, &nowhere);
        forget(&mut host.model, &nowhere);
        forget(&mut host.nodes, &nowhere);
        forget(&mut host.cpus, &nowhere);
        forget(&mut host.memory, &nowhere);
        let defaults = &mut same.defaults;
        forget(&mut defaults.mems, &nowhere);
        forget(&mut defaults.tasks, &nowhere);
        forget(&mut defaults.admin, &nowhere);
        defaults.settings.iter_mut().for_each(|assigned| assigned.origin = nowhere.clone());
        same
    }
}

impl Demands {
    fn forget_places(&mut self, nowhere: &Origin) {
        // the kind of file that it stood in, and nothing that was asked
        self.only_named = false;
        forget(&mut self.cpus, nowhere);
        forget(&mut self.mems, nowhere);
        forget(&mut self.tasks, nowhere);
        forget(&mut self.admin, nowhere);
        self.settings.iter_mut().for_each(|assigned| assigned.origin = nowhere.clone());
        self.controllers.iter_mut().for_each(|controller| controller.origin = nowhere.clone());
    }
}

fn forget<T>(spanned: &mut Option<Spanned<T>>, nowhere: &Origin) {
    if let Some(spanned) = spanned {
        spanned.origin = nowhere.clone();
    }
}

/// How many groups a group is in; the root is in none, and all others in it.
pub(crate) fn depth(name: &GroupName) -> usize {
    if *name == GroupName::root() { 0 } else { name.path().split('/').count() }
}

/// Is each of its values one more, rather than another?
pub(crate) fn adds_up(found: &Found) -> bool {
    found.setting.name.starts_with("devices.")
}

/// Which part of its setting a name stands for: the file's index where a setting has several, `None` for the whole.
pub(crate) fn part(found: &Found) -> Option<usize> {
    let Via::File { version, index } = found.via else { return None };
    let names = found.side(version).binding().map_or(0, |binding| binding.names().len());
    (names > 1).then_some(index)
}

/// Do two names speak of the same setting, or of the same part of it?
pub(crate) fn same(one: &Assigned, other: &Assigned) -> bool {
    let (one, other) = (&one.found, &other.found);
    let parts = (part(one), part(other));
    let overlap = parts.0 == parts.1 || parts.0.is_none() || parts.1.is_none();
    overlap && one.setting.name == other.setting.name && one.size == other.size
}
