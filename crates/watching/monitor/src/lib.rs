//! What each group gets, uses and waits for: figures of groups and of the machine, sampled, derived, and recorded in a log.
//! Reads only: nothing is changed here.
//!
//! The way of a figure: a row of the field table ([`GROUP_FIELDS`], [`MACHINE_FIELDS`]) names its file on either
//! version of cgroups; [`Sampler::tick`] reads it into a [`Sample`], raw; [`rates`] makes a [`Figure`] of two samples;
//! [`log`] takes the sample as it is.
//!
//! - Cell by cell: for every row of `sample.groups.rows()` and column of `sample.groups.columns().list()`:
//!   `Window::group(row, column)`. Headings, units and help are the column's [`Field`]. [`tasks()`] fills a group's page.
//! - `--at MOMENT`: `Log::at(MOMENT)`, then `Log::leading_to` that sample, each pushed to the same `Window`.
//! - `record` and the daemon: the sampling loop with `Recorder::append(sample)`. [`Cadence`] has a descriptor for a loop
//!   that waits for other things too.

mod field;
mod group_fields;
mod machine_fields;

mod docs;

mod files;
mod parse;
mod sample;
mod sources;

mod cadence;
mod changes;
mod members;
mod rows;
mod sampler;
mod tasks;

mod open_files;
mod run_delays;

mod families;
mod loads;

mod energy;
mod kills;

pub mod interruptions;
pub mod log;
mod per_cpu;
mod perf;
pub mod rates;

pub use cadence::{Beat, Cadence};
pub use docs::markdown;
pub use energy::{Energy, EnergyUse};
pub use field::{Field, From, Instance, Kind, Pace, Per, Shape, Side, Source, Unit};
pub use files::{Buffer, Descriptors, Files, Named, Uncached};
pub use group_fields::GROUP_FIELDS;
pub use kills::{KernelLog, Kill};
pub use loads::{Load, Loads};
pub use log::{Log, LogError, Recorder, RecorderOptions, Torn};
pub use machine_fields::MACHINE_FIELDS;
pub use members::{Members, counting, is_uncounted, members};
pub use per_cpu::PerCpu;
pub use perf::{Event, Perf, Uncounted};
pub use rates::{Figure, FigureUnit, Window};
pub use rows::{Elsewhere, Groups};
pub use sample::{Column, Columns, Parts, Reading, Sample, Table, Times};
pub use sampler::{Options, Sampler, slow_every};
pub use tasks::{Scheduled, Task, scheduled, tasks};
