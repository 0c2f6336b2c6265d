//! Every cgroup setting in one table: what it is called, what values it takes, and which files hold it on cgroup
//! v1 and v2, with the conversions between the two. A difference between the versions is a row's data.
//! Never opens a file and never asks the machine: what it must know of either is handed in.

// in the order of the data's way: the table, a name found in it, a text read for it, files written and read
mod laws;
mod setting;
mod table;

mod by_file;
mod unit_lines;
mod unit_settings;

mod names;

mod rule;
mod value;

mod join;

mod error;
mod parse;
mod show;

mod decode;
mod encode;
mod partition;

// a group may not have the name of a file that holds a setting
mod group_name;

// what is no setting of a group: the rules of devices one by one, and the knobs of the machine
pub mod devices;
pub mod knobs;

mod docs;

pub use by_file::{
    AdminFiles, adds_to_line, as_written, changes, has_period, initial, is_by_key, is_changed_by_others,
    pairs, reach, suspends, turn, usage,
};
pub use decode::DecodeError;
pub use docs::{describe, markdown, range};
pub use encode::{EncodeError, FileWrite};
pub use error::ValueError;
pub use group_name::{GroupName, GroupNameError};
pub use join::{Clash, Joined, join};
pub use laws::{Both, Law, Order, Pair, Stage, Turn, is_at_most};
pub use names::{NamedSetting, UnknownSetting, Via, find, is_of, lookup};
pub use parse::Facts;
pub use partition::partition;
pub use rule::{DeviceClass, DeviceRule};
pub use setting::{
    Access, Binding, Codec, Controller, Fidelity, Form, Key, Kind, OutOfRange, Range, Reach, ReadBack,
    Setting, Side, Unit, UnitProperty, Version,
};
pub use show::NoMachine;
pub use table::all;
pub use unit_lines::{bus_names, unit_lines, unit_reset};
pub use unit_settings::{UnitSettings, unit_settings};
pub use value::{CpuMax, DeviceNumber, Hundredths, Value};
