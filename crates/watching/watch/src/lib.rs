//! What each group gets, uses and waits for: figures of groups and of the machine, sampled, derived, written as
//! metrics and kept in a log; and what held a group back ([`mod@why`]). Reads only: nothing is changed here.
//!
//! The way of a figure: a row of the field table ([`GROUP_FIELDS`], [`MACHINE_FIELDS`]) names its file on either
//! version of cgroups; [`Sampler::tick`] reads it into a [`Sample`], raw; [`rates`] makes a [`Figure`] of two samples;
//! [`metrics`] and [`log`] take the sample as it is.
//!
//! How the interfaces are made of it:
//! - a loop of `watch` and of `top`: `Cadence::wait` → `Sampler::tick(&host, beat)` → `Window::push(sample)` →
//!   [`view::Picture`] of the chosen figures, as text or CSV. Cell by cell: for every row of `sample.groups.rows()` and
//!   column of `sample.groups.columns().list()`: `Window::group(row, column)`. Headings, units and help are the column's
//!   [`Field`]. [`tasks()`] fills a group's page.
//! - `--at MOMENT`: `Log::at(MOMENT)`, then `Log::leading_to` that sample, each pushed to the same `Window`.
//! - `dump --since … --fields …`: `Log::since`, then the same `Window` and pictures, or [`metrics::History`].
//! - `why GROUP`: `why::gather(&host, files, &group, span)?`, then `why::why(&facts)`, which prints itself.
//! - `record` and the daemon: the loop above with `Recorder::append(sample)`. [`Cadence`] has a descriptor for a loop
//!   that waits for other things too; the daemon adds its own families with [`metrics::Writer`] before `end`.

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

pub mod log;
pub mod metrics;
mod per_cpu;
mod perf;
pub mod rates;
pub mod view;
pub mod why;

pub use cadence::{Beat, Cadence};
pub use docs::markdown;
pub use field::{Field, From, Instance, Kind, Pace, Per, Shape, Side, Source, Unit};
pub use files::{Anew, Buffer, Descriptors, Files, Named};
pub use group_fields::GROUP_FIELDS;
pub use log::{Log, LogError, Recorder, RecorderOptions, Torn};
pub use machine_fields::MACHINE_FIELDS;
pub use members::{Members, complete, members};
pub use per_cpu::PerCpu;
pub use perf::Perf;
pub use rates::{Figure, FigureUnit, Window};
pub use rows::Groups;
pub use sample::{Column, Columns, Parts, Reading, Sample, Table, Times};
pub use sampler::{Options, Sampler};
pub use tasks::{Scheduled, Task, tasks};
