//! Configuration to [`Desired`]: reads our TOML, libcgroup's cgconfig.conf and cgrules.conf, reports every error at
//! once with its place, and writes a [`Desired`] out again. Touches the machine in one file only (`read`, which opens
//! configuration files safely); everything else is text in, data out.

// in the order of the data's way: where something was said, what may be said, texts read, joined and checked
mod diagnostic;
mod origin;
mod source;

mod names;
mod reader;

mod assigned;
mod demand;
mod desired;
mod glob;
mod isolate;
mod latency;
mod matcher;
mod pattern;
mod people;
mod role;
mod rule;
pub mod schedule;
mod scheduled;
mod selector;
mod unit_name;

mod collect;

mod needs;
mod words;

mod cgconfig;
mod cgrules;
mod toml_file;

mod check;
mod dead_rules;
mod join;
mod merge;
mod overlay;

mod reading;

mod export;
mod from_systemd;
mod verify;

mod docs;
mod schema;

pub use assigned::{Assigned, BURST, PROTECTED, QUOTA};
pub use demand::{CpuAmount, CpuDemand, CpuSpec, MemDemand, MemoryAmount, Near, Placement, Pool, Smt};
pub use desired::{
    Assertions, Defaults, Demands, Desired, Expected, Group, Keep, Mount, Power, Reserve, Systemd, Template,
    Units,
};
pub use diagnostic::{Diagnostic, Severity, errors, render};
pub use docs::markdown;
pub use export::{
    Export, cgconfig_word, cgset_line, changes, to_cgconfig, to_cgrules, to_cgset, to_systemd, to_toml,
};
pub use from_systemd::{UnitSource, from_systemd};
pub use glob::{Expression, Glob};
pub use isolate::Isolate;
pub use latency::{Latency, LatencySource, LatencyUnit};
pub use matcher::{Condition, Matcher, Process, Who};
pub use origin::{Origin, Spanned};
pub use pattern::{Code, NamePattern, Part, PatternError};
pub use people::{Account, Mode, Person};
pub use reader::did_you_mean;
pub use reading::{Grammar, Reading, read, read_cgconfig, read_cgconfigs, read_cgrules, read_toml};
pub use role::{Role, command_words};
pub use rule::{Controllers, Rule, Subsystem, Target};
pub use scheduled::{Overlay, Schedule};
pub use schema::schema;
pub use selector::{Selector, series};
pub use source::Source;
pub use toml_file::{http_address, toml_table};
pub use unit_name::{UnitName, UnitNameError};
pub use verify::{Accounts, HostFacts};
