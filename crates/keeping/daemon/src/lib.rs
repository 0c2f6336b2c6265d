//! `ringfenced`: applies the layout, puts present and future processes into their groups, keeps the division, and
//! answers over a socket. It decides by `classify` and `plan`, and changes by `apply` and `kernel`: it holds no second
//! way of either, and opens no cgroup file itself.

// in the order of the data: options, logs, the rules, the division, the processes, the loop
mod error;
mod options;

mod boot;

mod counters;
mod failure_log;
mod history_events;
mod journal;
mod log;
mod notify;
mod services;
mod signals;
mod tally;
mod timespec;
mod titles;
mod uevents;

mod loaded_rules;
mod put;

mod division;

mod alarm;
mod running_programs;

mod listener;
mod made;
mod memories;
mod stays;

mod classifier;
mod strict;

pub mod http;
pub mod peers;

mod drift_monitor;
mod handle;
mod takeover;

mod unit_states;

mod schedules;

mod interface;
mod watching;

mod worker;

mod kills;

// what decides about some elastic groups
pub mod latency;

mod elastic;

mod sources;

mod run;

pub use boot::{GENERATOR, keep_out, order_units};
pub use counters::{Counters, Figures};
pub use division::{Applied, Division, Repaired};
pub use elastic::{Resized, Resizer};
pub use error::{ConfigurationError, Error};
pub use handle::{Handle, ReloadResult};
pub use log::{Level, Log, Target as LogTarget};
pub use notify::{EarlyEnd, wait_for_ready};
pub use options::{Gate, Keep, METRICS, Options, Paces, Record, RuleFiles, Watching};
pub use run::{is_running, run};
pub use signals::ReloadScope;
pub use strict::{GATE, gate};

pub mod socket;
