//! What is desired of a machine: what every configuration is read into and every plan is made from. Data only; it
//! knows no machine; a planner resolves it against one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZeroUsize;

use settings::GroupName;
use units::{Bytes, Limit, group_path};

use crate::assigned::Assigned;
use crate::demand::{CpuDemand, MemDemand, MemoryAmount, Placement, Pool, Smt};
use crate::isolate::Isolate;
use crate::latency::Latency;
use crate::matcher::{Condition, Matcher};
use crate::origin::{Origin, Spanned};
use crate::pattern::NamePattern;
use crate::people::Person;
use crate::reader::{Number, Word, keyed};
use crate::rule::{Controllers, Rule, Subsystem, Target};
use crate::scheduled::Schedule;
use crate::unit_name::UnitName;

/// The largest number a process can have (`PID_MAX_LIMIT` in `linux/threads.h`).
pub(crate) const LARGEST_PID: u32 = 4_194_304;

/// A whole configuration, from one file or many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// Groups with parents before their children, else in the order of the files. A parent that is only part of a
    /// name is not among them; it is made as needed. No name occurs twice.
    pub groups: Vec<Group>,
    /// Groups that are made when a rule first needs them.
    pub templates: Vec<Template>,
    /// Rules in order, the first that matches counts. They go before the groups' own [`Group::matches`];
    /// [`Desired::all_rules`] joins both.
    pub rules: Vec<Rule>,
    /// What the rest of the system keeps.
    pub reserve: Reserve,
    /// Whether general groups are to have fewer CPUs at low use.
    pub power: Power,
    /// Knobs of the whole machine that are set for the sake of isolated groups.
    pub isolate: Option<Spanned<Isolate>>,
    /// What the machine must be like.
    pub assertions: Assertions,
    /// What groups and templates got that did not say otherwise. They have it already; this is used by exports only.
    pub defaults: Defaults,
    /// v1 hierarchies to be mounted if they are not (cgconfig.conf's `mount`).
    pub mounts: Vec<Mount>,
    /// cgconfig.conf's `systemd` sections.
    pub systemd: Vec<Spanned<Systemd>>,
    /// What changes by itself, in order; [`Desired::with`] makes the changes.
    pub schedules: Vec<Schedule>,
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

/// What a group or template is to have. `None` and empty mean no request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demands {
    /// CPUs.
    pub cpus: Option<Spanned<CpuDemand>>,
    /// NUMA nodes for memory.
    pub mems: Option<Spanned<MemDemand>>,
    /// Nobody else may use its CPUs: a partition on v2, `cpu_exclusive` on v1. Then `cpus` is not `None`.
    pub exclusive: bool,
    /// What is kept off its CPUs beside tasks. Then they stay the same: they are named, or exclusive and not elastic.
    pub isolate: Option<Spanned<Isolate>>,
    /// Its latency, which decides about its CPUs. Then it is elastic.
    pub latency: Option<Box<Spanned<Latency>>>,
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
    /// The unit of systemd whose control group it is: its settings are the unit's properties. A pattern is a group for
    /// each unit that fits.
    pub unit: Option<Spanned<UnitName>>,
    /// On v1, is it made only where its own controllers are, so that its processes escape what the groups above it
    /// limit elsewhere? That is the meaning of libcgroup's files; a layout's groups live wherever one above them does.
    pub only_named: bool,
}

/// What the daemon does about a group that is no longer as it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// `repair`: drift is reported and repaired.
    Repair,
    /// `report`: drift is reported, once for each difference.
    Report,
    /// `off`: drift is ignored.
    Off,
}

impl Word for Keep {
    const WORDS: &'static [(&'static str, Keep)] =
        &[("repair", Keep::Repair), ("report", Keep::Report), ("off", Keep::Off)];
}

/// What groups get that do not say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// Memory nodes of groups that request CPUs.
    pub mems: Option<Spanned<MemDemand>>,
    /// For demands of a number of CPUs.
    pub placement: Option<Placement>,
    /// For demands of a number of CPUs.
    pub smt: Option<Smt>,
    /// For demands of a number of CPUs.
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

keyed! {
    /// What the rest of the system keeps: no group of the layout is given it.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Reserve in "in 'reserve'" {
        /// CPUs that no group is given.
        #[takes(r#"2 · "0-1" · "10%" · { count = 2, near = "node:0", smt = "whole-cores" }"#)]
        pub cpus: Option<Spanned<CpuDemand>>,
        /// Memory that the groups' limits and protections leave free.
        #[takes(r#""4G" · "10%""#)]
        pub memory: Option<Spanned<MemoryAmount>>,
    }
}

keyed! {
    /// Power saving: groups without CPUs of their own have fewer of them at low use.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Power in "in 'power'" {
        /// `ringfenced` gives general groups, those without CPUs of their own, fewer CPUs while they use little
        /// (docs/elastic.md).
        #[takes("true")]
        pub saving: bool,
        /// CPUs that general groups have in any case, in whole cores; 1 by default.
        #[takes("2")]
        pub floor: Option<Spanned<NonZeroUsize>>,
        /// With `saving`: CPUs that general groups leave idle get the governor `powersave` and the energy preference `power`,
        /// as far as the machine has them; CPUs in use have what they had.
        #[takes("true")]
        pub frequency: Option<Spanned<()>>,
    }
}

keyed! {
    /// What the machine must be like; on another one the layout is refused.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Assertions in "in 'host'" {
        /// The host's name; * stands for any text.
        #[takes(r#""db1" · "db*""#)]
        pub hostname: Option<Spanned<String>>,
        /// The CPU's model name holds this; * stands for any text.
        #[takes(r#""X7560""#)]
        pub model: Option<Spanned<String>>,
        /// Number of NUMA nodes.
        #[takes("4 · { min = 2 } · { min = 2, max = 4 }")]
        pub nodes: Option<Spanned<Expected<usize>>>,
        /// Number of online CPUs.
        #[takes("32 · { min = 32 }")]
        pub cpus: Option<Spanned<Expected<usize>>>,
        /// Memory as the kernel counts it; a plain amount allows a tenth more or less, since firmware keeps a part.
        #[takes(r#""128G" · { min = "100G" }"#)]
        pub memory: Option<Spanned<Expected<Bytes>>>,
    }
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

keyed! {
    /// cgconfig.conf's `systemd` section: below which unit libcgroup had its groups. Ringfence requests from systemd a
    /// unit of its own; this is used by exports only.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Systemd in "in 'systemd'" {
        /// The slice that libcgroup had its groups below.
        #[takes(r#""db.slice""#)]
        pub slice: Option<String>,
        /// The scope in it.
        #[takes(r#""db.scope""#)]
        pub scope: Option<String>,
        /// Whether libcgroup's commands took it as the place of groups.
        #[takes("true")]
        pub set_default: bool,
        /// A process that was put into the scope.
        #[takes("4711")]
        pub pid: Option<Number<1, LARGEST_PID>>,
    }
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

impl Desired {
    /// Does anything live in a group of our own? Else all groups are systemd's units, or others' by a name from the root.
    pub fn has_own_groups(&self) -> bool {
        let units = self.units();
        let is_systemds = |group: &Group| group.demands.unit.is_some() || units.above(group).is_some();
        let own = |group: &Group| !is_systemds(group) && !group.name.is_from_root();
        self.groups.iter().any(own) || !self.templates.is_empty() || !self.rules.is_empty()
    }

    /// The group of that name.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == *name)
    }

    /// The group of that name, or the one whose pattern of units it comes from ([`UnitName::is_pattern`]).
    pub fn group_or_pattern(&self, name: &str) -> Option<&Group> {
        let find = |name: &str| self.groups.iter().find(|group| group.name.to_string() == name);
        let is_pattern =
            |group: &&Group| group.demands.unit.as_ref().is_some_and(|unit| unit.value.is_pattern());
        find(name).or_else(|| find(group_path::parent(name)?).filter(is_pattern))
    }

    /// Does what it means depend on processes or units that come later?
    pub fn is_about_later(&self) -> bool {
        let mut units = self.groups.iter().filter_map(|group| group.demands.unit.as_ref());
        units.any(|unit| unit.value.is_pattern()) || !self.all_rules().is_empty()
    }

    /// The groups that are units.
    pub fn units(&self) -> Units<'_> {
        let units = self.groups.iter().filter(|group| group.demands.unit.is_some());
        Units(units.map(|group| (group.name.path(), group)).collect())
    }

    /// The template that a rule's group is made from: the one of the same name, codes included.
    pub fn template(&self, name: &NamePattern) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == *name)
    }

    /// All rules in the order in which they count: [`Desired::rules`], then what the groups match, deeper groups first.
    pub fn all_rules(&self) -> Vec<Rule> {
        let units = self.units();
        let of_group = |group: &Group| {
            let name = NamePattern::of(&group.name);
            // rules of a group in a unit take the unit's processes only
            let above = units.above(group);
            let unit = above.and_then(|(above, name)| {
                Some((above.demands.unit.as_ref()?.value.clone(), name.to_owned()))
            });
            group.matches.clone().into_iter().map(move |mut matcher| {
                let origin = matcher.origin.clone();
                let within = unit.as_ref().map(|(_, name)| name.clone());
                matcher.also.extend(unit.as_ref().map(|(unit, _)| Condition::OfUnit(unit.clone())));
                let target = Target { controllers: Controllers::All, group: name.clone(), within, origin };
                Rule { matcher, targets: vec![target], ignore: false, ignore_rt: false }
            })
        };
        let (in_units, others): (Vec<&Group>, Vec<&Group>) =
            self.deepest().into_iter().partition(|group| units.above(group).is_some());
        let groups = in_units.into_iter().flat_map(&of_group).collect::<Vec<_>>().into_iter();
        groups.chain(self.rules.iter().cloned()).chain(others.into_iter().flat_map(&of_group)).collect()
    }

    fn deepest(&self) -> Vec<&Group> {
        let mut deepest: Vec<&Group> = self.groups.iter().filter(|group| !group.matches.is_empty()).collect();
        deepest.sort_by_cached_key(|group| Reverse(depth(&group.name)));
        deepest
    }

    /// The same without its origins, to compare the requests of two configurations.
    #[must_use]
    pub fn without_places(&self) -> Desired {
        let mut same = self.clone();
        let no_origin = Origin::outside_files("");
        same.groups.iter_mut().for_each(|group| {
            group.origin = no_origin.clone();
            group.demands.forget_origins(&no_origin);
            group.matches.iter_mut().for_each(|matcher| matcher.forget_origins(&no_origin));
        });
        same.templates.iter_mut().for_each(|template| {
            template.origin = no_origin.clone();
            template.demands.forget_origins(&no_origin);
        });
        same.rules.iter_mut().for_each(|rule| {
            rule.matcher.forget_origins(&no_origin);
            rule.targets.iter_mut().for_each(|target| target.origin = no_origin.clone());
        });
        same.mounts.iter_mut().for_each(|mount| mount.origin = no_origin.clone());
        same.schedules.iter_mut().for_each(|schedule| schedule.forget_origins(&no_origin));
        same.systemd.iter_mut().for_each(|section| section.origin = no_origin.clone());
        forget(&mut same.isolate, &no_origin);
        forget(&mut same.power.floor, &no_origin);
        forget(&mut same.power.frequency, &no_origin);
        forget(&mut same.reserve.cpus, &no_origin);
        forget(&mut same.reserve.memory, &no_origin);
        let host = &mut same.assertions;
        forget(&mut host.hostname, &no_origin);
        forget(&mut host.model, &no_origin);
        forget(&mut host.nodes, &no_origin);
        forget(&mut host.cpus, &no_origin);
        forget(&mut host.memory, &no_origin);
        let defaults = &mut same.defaults;
        forget(&mut defaults.mems, &no_origin);
        forget(&mut defaults.tasks, &no_origin);
        forget(&mut defaults.admin, &no_origin);
        defaults.settings.iter_mut().for_each(|assigned| assigned.origin = no_origin.clone());
        same
    }
}

/// Groups that are units of systemd.
#[derive(Debug, Clone)]
pub struct Units<'d>(HashMap<&'d str, &'d Group>);

impl<'d> Units<'d> {
    /// The unit that a group is in: its group, and the name in it.
    pub fn above<'g>(&self, group: &'g Group) -> Option<(&'d Group, &'g str)> {
        if self.0.is_empty() || group.name.is_from_root() {
            return None;
        }
        let path = group.name.path();
        let above = group_path::ancestors(path).find_map(|above| self.0.get(above).copied())?;
        Some((above, path.strip_prefix(above.name.path())?.strip_prefix('/')?))
    }
}

impl Demands {
    /// Do its tasks run only where no task of a group beside it wants to?
    pub fn is_idle(&self) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|assigned| assigned.found.setting.name == "cpu.idle" && assigned.text == "1")
    }

    /// Do its CPUs change with its load?
    pub fn is_elastic(&self) -> bool {
        self.cpus.as_ref().is_some_and(|cpus| cpus.value.elastic().is_some())
    }

    fn forget_origins(&mut self, no_origin: &Origin) {
        // a property of the file's kind, not a request
        self.only_named = false;
        forget(&mut self.cpus, no_origin);
        forget(&mut self.mems, no_origin);
        forget(&mut self.tasks, no_origin);
        forget(&mut self.admin, no_origin);
        forget(&mut self.unit, no_origin);
        forget(&mut self.isolate, no_origin);
        self.latency.iter_mut().for_each(|latency| latency.origin = no_origin.clone());
        self.settings.iter_mut().for_each(|assigned| assigned.origin = no_origin.clone());
        self.controllers.iter_mut().for_each(|controller| controller.origin = no_origin.clone());
    }
}

fn forget<T>(spanned: &mut Option<Spanned<T>>, no_origin: &Origin) {
    if let Some(spanned) = spanned {
        spanned.origin = no_origin.clone();
    }
}

/// How many groups a group is in; the root is in none, and all others in it.
pub(crate) fn depth(name: &GroupName) -> usize {
    group_path::names(name.path()).count()
}
