//! Decides what is written, where, and in which order the kernel accepts it: a pure function of what is requested
//! and what the kernel has. Never touches the machine; what it must know of it is handed in.

// single settings: what is requested, in which order, and back
mod cpuset_files;
mod order;
mod request;
mod restore;
mod writes;

// a whole layout: what is known and what comes of it, as data
mod action;
mod lint;
mod names;
mod observed;
mod ownership;
mod people;
mod problem;
mod read_step;
mod step;

// from the one to the other: the groups as a tree, the CPUs and memory nodes of each, the order of their writes
mod tree;

mod resolve;

mod sequence;

mod cpusets;

// everything else of a group
mod budgets;
mod devices;
mod disks;
mod homes;
mod mounts;
mod owners;
mod unit_partition;
mod unit_place;
mod values;

// what the kernel would refuse of it
mod absent;

mod coverage;
mod decided;
mod drop_ins;
mod elastic;
mod expand;
mod inside;
mod isolate;
mod lints;
mod needs;
mod planning;
mod power;
mod range;
mod schedules;

mod cgset;
mod facts;

pub mod doctor;

pub use action::{Action, Affinity, Instead, Outsider};
pub use cgset::as_cgset;
pub use coverage::{Coverage, coverage};
pub use cpusets::{CPUS, EXCLUSIVE, ISOLATED, PARTITION};
pub use drop_ins::{drop_in, first_cpuset, is_drop_in, is_of_other_history, keep_lines};
pub use expand::{Expansion, expand, patterns, patterns_without_file};
pub use facts::MachineFacts;
pub use homes::{Placed, is_shared, places};
pub use inside::{Inside, MAIN, service_above, steps_inside};
pub use isolate::knobs_of;
pub use lint::{Lint, LintKind};
pub use lints::starving;
pub use needs::{Need, devices, needs};
pub use observed::{Observed, Owned, SeenGroup, SeenHierarchy, SeenUnit};
pub use order::in_order;
pub use ownership::{Ownership, file_mode};
pub use people::{Anybody, People};
pub use planning::{plan, scopes};
pub use power::{FLOOR, general, with_general};
pub use problem::{Against, Problem};
pub use range::{Range, range_of};
pub use request::{Place, PlanError, ReadFile, SettingRequest, Write, rest_of_line, target_key};
pub use restore::restoring;
pub use schedules::{unschedulable, with_each_schedule};
pub use step::{Assignment, Dropped, Plan, Step, Upkeep};
pub use unit_partition::{UnitScene, ends as drop_in_ends, is_partition, is_reserve, no_partition};
pub use unit_place::units;
pub use writes::writes;
