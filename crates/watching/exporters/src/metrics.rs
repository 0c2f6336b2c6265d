//! A sample as metrics: OpenMetrics 1.0, or the older text format of Prometheus for textfile collectors. Names and
//! units follow Prometheus' conventions: base units, `_total` on counters. The number of series is bounded. What was
//! requested of groups and how they differ from it is in [`Desired`]; the families that are no field's are in [`FAMILIES`].

mod accept;
mod desired;
mod energy;
pub mod families;
mod latencies;
mod page;
mod textfile;

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    time::SystemTime,
};

pub use desired::{Desired, DesiredGroup, InUnits, Partition};
pub use energy::write_energy;
pub use families::{FAMILIES, Family};
pub use latencies::write_latencies;
pub use page::markdown;
pub use textfile::replace;

use crate::view::{self, Derived, Value};
use monitor::{Column, Field, Instance, Kind, Per, Reading, Sample, Table, Unit, rates::in_unit};

/// Where a server of metrics listens, unless another port is named.
pub const PORT: u16 = 10947;

/// Which of the two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
    /// `text/plain; version=0.0.4`.
    Text,
}

impl Format {
    /// The content type of an answer over HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What bounds the number of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At most this number of groups: those that come first ([`write`]), then the others in the order of the table. How many
    /// are left out is a metric.
    pub groups: usize,
    /// At most this number of devices per group.
    pub devices: usize,
    /// Figures of each CPU of each group too.
    pub cpus_of_groups: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { groups: 1000, devices: 16, cpus_of_groups: false }
    }
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// It only grows.
    Counter,
    /// It is as it is.
    Gauge,
    /// Counts by upper bound, and their sum.
    Histogram,
    /// Always 1: what it says is in the labels.
    Info,
}

impl Type {
    /// Its word; the older text format knows no `info`.
    pub(crate) fn word(self, format: Format) -> &'static str {
        match self {
            Type::Counter => "counter",
            Type::Histogram => "histogram",
            Type::Info if format == Format::OpenMetrics => "info",
            Type::Info | Type::Gauge => "gauge",
        }
    }

    /// What a sample's name has behind its family's.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Type::Counter => "_total",
            Type::Info => "_info",
            Type::Gauge | Type::Histogram => "",
        }
    }
}

/// Writes families of metrics, one after the other.
#[derive(Debug)]
pub struct Writer<'t> {
    to: &'t mut String,
    format: Format,
    name: String,
    /// Behind each value: when it was so, in seconds since 1970.
    at: Option<f64>,
    /// Groups without series.
    hidden: HashSet<String>,
}

impl<'t> Writer<'t> {
    /// Writes behind what is in `to`.
    pub fn new(to: &'t mut String, format: Format) -> Writer<'t> {
        Writer { to, format, name: String::new(), at: None, hidden: HashSet::new() }
    }

    /// Leaves out every series of these groups from here on.
    pub fn hide(&mut self, groups: HashSet<String>) {
        self.hidden = groups;
    }

    /// Begins a family: `name` with its unit (`ringfence_drifts`, `ringfence_wait_seconds`) and without `_total`.
    pub fn family(&mut self, name: &str, kind: Type, unit: &str, help: &str) {
        let of_sample = format!("{name}{}", kind.suffix());
        let of_family = if self.format == Format::OpenMetrics { name } else { &of_sample };
        // writing to a String can't fail
        let _ = writeln!(self.to, "# TYPE {of_family} {}", kind.word(self.format));
        if self.format == Format::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.to, "# UNIT {of_family} {unit}");
        }
        let _ = writeln!(self.to, "# HELP {of_family} {}.", escaped(help));
        self.name = of_sample;
    }

    /// Begins a family of the table.
    pub fn begin(&mut self, family: &Family) {
        self.family(family.name, family.kind, family.unit, family.help);
    }

    /// A family of the table that has one series, without labels.
    pub fn one(&mut self, family: &Family, value: impl std::fmt::Display) {
        self.begin(family);
        self.sample(&[], value);
    }

    /// The family that was begun, a histogram without labels: upper bounds with how many were up to each and above the
    /// one before, how many were above all, and the sum of all.
    pub fn histogram(&mut self, buckets: &[(f64, u64)], above: u64, sum: f64) {
        let name = self.name.clone();
        let mut count = 0;
        self.name = format!("{name}_bucket");
        for (bound, more) in buckets {
            count += more;
            self.sample(&[("le", &bound.to_string())], count);
        }
        count += above;
        self.sample(&[("le", "+Inf")], count);
        self.name = format!("{name}_sum");
        self.sample(&[], sum);
        self.name = format!("{name}_count");
        self.sample(&[], count);
        self.name = name;
    }

    /// One series of the family that was begun.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        if labels.iter().any(|(name, text)| *name == "group" && self.hidden.contains(*text)) {
            return;
        }
        self.to.push_str(&self.name);
        for (index, (name, text)) in labels.iter().enumerate() {
            let _ = write!(self.to, "{}{name}=\"{}\"", if index == 0 { '{' } else { ',' }, escaped(text));
        }
        let _ = write!(self.to, "{} {value}", if labels.is_empty() { "" } else { "}" });
        let _ = match self.at {
            Some(at) => writeln!(self.to, " {at:.3}"),
            None => writeln!(self.to),
        };
    }

    /// Ends the whole; nothing may follow.
    pub fn end(self) {
        if self.format == Format::OpenMetrics {
            self.to.push_str("# EOF\n");
        }
    }
}

/// All figures of a sample, without the end: more families may follow, which leave out the same groups. `first`: the groups
/// that are left out last, such as those of the layout.
pub fn write(sample: &Sample, bounds: Bounds, first: &dyn Fn(&str) -> bool, to: &mut Writer<'_>) {
    let left_out = left_out(sample.groups.rows(), bounds.groups, first, &to.hidden);
    let count = left_out.len();
    to.hidden.extend(left_out);
    to.begin(&families::BUILD);
    to.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    write_chosen(sample, bounds, &Selection::ALL, to);
    effective(sample, to);
    to.one(&families::GROUPS, sample.groups.rows().len());
    to.one(&families::GROUPS_LEFT_OUT, count);
    to.one(&families::SAMPLE_SECONDS, sample.took.as_secs_f64());
    let at = sample.at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    to.one(&families::SAMPLE_TIMESTAMP, at.unwrap_or_default().as_secs_f64());
}

/// The groups above the bound, the root's last; those that are hidden don't count.
fn left_out(
    rows: &[String],
    most: usize,
    first: &dyn Fn(&str) -> bool,
    hidden: &HashSet<String>,
) -> Vec<String> {
    let (own, others): (Vec<&String>, Vec<&String>) =
        rows.iter().filter(|group| !hidden.contains(*group)).partition(|group| *group == "/" || first(group));
    own.into_iter().chain(others).skip(most).cloned().collect()
}

/// What groups may use, by their own limits and those of the groups above them.
fn effective(sample: &Sample, to: &mut Writer<'_>) {
    let mut window = view::window_for(sample);
    window.push(sample);
    for (family, derived) in [
        (&families::EFFECTIVE_CPUS, Derived::CpuAllotment),
        (&families::EFFECTIVE_MEMORY, Derived::MemoryLimit),
    ] {
        let rows = sample.groups.rows().iter().enumerate().filter(|(_, group)| !to.hidden.contains(*group));
        let values = rows.map(|(row, group)| (group, derived.value(&window, row)));
        let values: Vec<_> = values.filter(|(_, value)| *value != Value::Missing).collect();
        if !values.is_empty() {
            to.begin(family);
        }
        for (group, value) in values {
            match value {
                // neither figure has words
                Value::Missing | Value::Absent(_) | Value::Text(_) => {}
                Value::Max => to.sample(&[("group", group)], "+Inf"),
                Value::At(number) => to.sample(&[("group", group)], number),
                Value::Whole(number) => to.sample(&[("group", group)], number),
            }
        }
    }
}

const MACHINE: &str = "ringfence_machine";
const GROUP: &str = "ringfence_group";

/// Which figures of which groups.
#[derive(Clone, Copy)]
pub struct Selection<'c> {
    /// Of these fields.
    pub field: &'c dyn Fn(&'static Field) -> bool,
    /// Of these groups.
    pub group: &'c dyn Fn(&str) -> bool,
}

impl std::fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chosen")
    }
}

impl Selection<'_> {
    /// Everything.
    pub const ALL: Selection<'static> = Selection { field: &|_| true, group: &|_| true };
}

fn write_chosen(sample: &Sample, bounds: Bounds, chosen: &Selection<'_>, to: &mut Writer<'_>) {
    table(&sample.machine, MACHINE, bounds, chosen, to);
    table(&sample.groups, GROUP, bounds, chosen, to);
}

fn table(table: &Table, prefix: &str, bounds: Bounds, chosen: &Selection<'_>, to: &mut Writer<'_>) {
    let mut fields: Vec<&'static Field> = Vec::new();
    for column in table.columns().list() {
        if !fields.contains(&column.field) && (chosen.field)(column.field) {
            fields.push(column.field);
        }
    }
    // the machine's only row is no group
    let is_shown = |row: &usize| {
        let name = &table.rows()[*row];
        prefix == MACHINE || ((chosen.group)(name) && !to.hidden.contains(name))
    };
    let rows: Vec<usize> = (0..table.rows().len()).filter(is_shown).take(bounds.groups).collect();
    for field in fields {
        if field.per == Per::Cpu && !field.is_of_machine() && !bounds.cpus_of_groups {
            continue;
        }
        let columns = columns_of(table, field, bounds);
        let has_value =
            |row: usize| columns.iter().any(|column| table.reading(row, *column) != Reading::Missing);
        if !rows.iter().copied().any(has_value) {
            continue;
        }
        let (name, unit) = name_of(prefix, field);
        to.family(
            &name,
            if field.kind == Kind::Counter { Type::Counter } else { Type::Gauge },
            unit,
            field.help,
        );
        for &row in &rows {
            columns.iter().for_each(|column| one(table, row, *column, to));
        }
    }
}

fn columns_of(table: &Table, field: &Field, bounds: Bounds) -> Vec<usize> {
    let columns = table.columns().list().iter().enumerate().filter(|(_, column)| column.field == field);
    let at_most = if field.per == Per::Device { bounds.devices } else { usize::MAX };
    columns.map(|(index, _)| index).take(at_most).collect()
}

fn one(table: &Table, row: usize, column: usize, to: &mut Writer<'_>) {
    let Column { field, instance, .. } = table.columns().list()[column];
    let (instance_name, text) = (instance.label(), instance.to_string());
    let group = (!field.is_of_machine()).then_some(("group", table.rows()[row].as_str()));
    let of_instance = instance_name.map(|name| (name, text.as_str()));
    let labels: Vec<(&str, &str)> = group.into_iter().chain(of_instance).collect();
    match table.reading(row, column) {
        Reading::Missing => {}
        Reading::Max => to.sample(&labels, "+Inf"),
        // a device that another group used
        Reading::At(0) if matches!(instance, Instance::Device(_)) => {}
        Reading::At(number) => match field.unit {
            Unit::Nanos | Unit::Hundredths => to.sample(&labels, in_unit(field.unit, number)),
            Unit::Bytes | Unit::Count | Unit::Flag => to.sample(&labels, number),
        },
    }
}

/// A metric's name without `_total`, and its unit.
fn name_of(prefix: &str, field: &Field) -> (String, &'static str) {
    let unit = match field.unit {
        Unit::Nanos => "seconds",
        Unit::Bytes => "bytes",
        Unit::Count | Unit::Hundredths | Unit::Flag => "",
    };
    let separator = if unit.is_empty() { "" } else { "_" };
    // "bytes" and "time" in a field's name would stand beside the unit
    let name = field.name.replace('.', "_");
    let name = match (field.name, name.strip_suffix("_time")) {
        ("io.rbytes", _) => "io_read",
        ("io.wbytes", _) => "io_written",
        ("io.dbytes", _) => "io_discarded",
        ("io.rios", _) => "io_reads",
        ("io.wios", _) => "io_writes",
        ("io.dios", _) => "io_discards",
        // a gauge must not end like a counter
        ("memory.total", _) => "memory_size",
        ("swap.total", _) => "swap_size",
        ("memory.node.total", _) => "memory_node_size",
        (_, Some(name)) => name,
        (_, None) => &name,
    };
    (format!("{prefix}_{name}{separator}{unit}"), unit)
}

/// The figures of many samples with their times, as OpenMetrics wants them: all of a family together, and in it all of
/// a series.
#[derive(Debug, Default)]
pub struct History {
    /// Each with its heading, in the order of the first sample.
    families: Vec<(String, BTreeMap<String, String>)>,
    scratch: String,
}

impl History {
    /// Takes a sample that is younger than those before.
    pub fn add(&mut self, sample: &Sample, bounds: Bounds, chosen: &Selection<'_>) {
        let at = sample.at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        self.scratch.clear();
        let mut writer = Writer::new(&mut self.scratch, Format::OpenMetrics);
        writer.at = Some(at.unwrap_or_default().as_secs_f64());
        write_chosen(sample, bounds, chosen, &mut writer);
        let mut rest = self.scratch.as_str();
        while !rest.is_empty() {
            let heading = length_of(rest, |line| line.starts_with('#'));
            let (heading, behind) = rest.split_at(heading);
            let (lines, next) = behind.split_at(length_of(behind, |line| !line.starts_with('#')));
            rest = next;
            let place = self.families.iter().position(|(known, _)| known == heading);
            let place = place.unwrap_or_else(|| {
                self.families.push((heading.to_owned(), BTreeMap::new()));
                self.families.len() - 1
            });
            for line in lines.split_inclusive('\n') {
                // the value and the time are the last two words
                let series = line.rsplitn(3, ' ').last().unwrap_or(line);
                self.families[place].1.entry(series.to_owned()).or_default().push_str(line);
            }
        }
    }

    /// The whole.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (heading, series) in &self.families {
            text.push_str(heading);
            series.values().for_each(|lines| text.push_str(lines));
        }
        text.push_str("# EOF\n");
        text
    }
}

/// How long the lines at the beginning are that are so.
fn length_of(text: &str, is_so: impl Fn(&str) -> bool) -> usize {
    text.split_inclusive('\n').take_while(|line| is_so(line)).map(str::len).sum()
}

/// Backslash, quote and line end, as both formats want them in labels and help.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
