//! The groups as a tree with bars of use against allotment, and curves of the last samples.

use exporters::view::{Heading, Measure, Row, Value, written};
use monitor::FigureUnit;
use ratatui_core::layout::Rect;

use super::{
    bars,
    header::bytes,
    look::{Look, Tone},
    pen::Pen,
};
use crate::{
    figures::{OWN, of_row},
    model::{MAPPED, Model, VisibleRow},
};

/// A column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Flags,
    CpuBar,
    Cpu,
    CpuCurve,
    Map,
    /// Of groups whose CPUs follow their load: how many they have, and may have.
    Elastic,
    MemoryBar,
    Memory,
    MemoryCurve,
    Io,
    IoCurve,
    Waits,
    Tasks,
    /// Of CPUs that a group has alone.
    Interrupted,
    /// One that the user named: its place among the picture's.
    Named(usize),
}

/// Names have this much before anything that can be left out, and grow to this much.
const NAME: u16 = 18;
const LONG_NAME: u16 = 48;
/// The widest curve, as many samples as a history keeps.
const CURVE: u16 = 240;
/// The widest number, such as `1023.9M/1023.9G`: a cut one would be another.
const LONG_NUMBER: u16 = 20;
/// The widest bar: more adds nothing to read.
const BAR: u16 = 12;

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let headings = model.tree.headings();
    let lines = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let (name, columns) = columns(model, area.width, usize::from(lines.height));
    heading(&columns, headings, name, pen, area);
    let mut any = false;
    for (y, (shown, row, is_selected)) in (lines.top()..).zip(model.tree.lines(usize::from(lines.height))) {
        any = true;
        let line = Rect { y, height: 1, ..area };
        label(model, shown, row, is_selected, pen, Rect { width: name, ..line });
        let mut x = area.x + name;
        for (column, width) in &columns {
            cell(model, *column, row, pen, Rect { x: x + 1, width: *width, ..line });
            x += width + 1;
        }
        if is_selected {
            pen.fill(line, Tone::Selected);
        }
    }
    if !any {
        let text = match model.tree.count() {
            0 => "no group",
            _ => "no group's name has that in it",
        };
        pen.text(area.x + 2, lines.y, area.width.saturating_sub(2), text, Tone::Plain);
    }
}

/// The names' width, and what fits beside them: first what can't be left out, then the rest by importance. What is left
/// goes to names that are longer, then to the curves.
fn columns(model: &Model, width: u16, height: usize) -> (u16, Vec<(Column, u16)>) {
    let headings = model.tree.headings();
    let has = |name: &str| {
        model.tree.lines(height).any(|(_, row, _)| of_row(headings, row, name) != Value::Missing)
    };
    let length = |(_, row, _): (&VisibleRow, &Row, bool)| {
        row.depth * 2 + 3 + units::printable(&row.label).chars().count()
    };
    let longest = model.tree.lines(height).map(length).max().unwrap_or(0);
    let longest = u16::try_from(longest).unwrap_or(u16::MAX).clamp(NAME, LONG_NAME);
    let number = |column: Column, least: u16| {
        let texts = model.tree.lines(height).filter_map(|(_, row, _)| number(model, column, row));
        let longest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
        (column, u16::try_from(longest).unwrap_or(u16::MAX).clamp(least, LONG_NUMBER.max(least)))
    };
    let mut columns = vec![
        (Column::Flags, 3),
        number(Column::Cpu, 11),
        number(Column::Memory, 11),
        number(Column::Tasks, 5),
    ];
    let taken = |columns: &[(Column, u16)]| columns.iter().map(|(_, width)| width + 1).sum::<u16>();
    let named = headings.iter().enumerate().skip(OWN).map(|(place, heading)| {
        let wanted = u16::try_from(heading.name.chars().count()).unwrap_or(u16::MAX).clamp(8, 16);
        let (column, wanted) = number(Column::Named(place), wanted);
        (column, wanted, true)
    });
    let has_io = has("io.rbytes") || has("io.wbytes");
    let elastic = elastic_width(model, height);
    let optional = [
        (Column::CpuBar, 8, true),
        (Column::Elastic, elastic, elastic > 0),
        (Column::Io, number(Column::Io, 11).1, has_io),
        (Column::CpuCurve, 6, true),
    ];
    let more = [
        (
            Column::Interrupted,
            number(Column::Interrupted, 6).1,
            model.tree.lines(height).any(|(_, row, _)| interrupted(model, &row.group).is_some()),
        ),
        (Column::MemoryBar, 6, true),
        (Column::Waits, 18, true),
        (Column::Map, map_width(model), model.owners.is_some() && width >= MAPPED),
        (Column::IoCurve, 6, has_io && width >= MAPPED),
        (Column::MemoryCurve, 6, width >= MAPPED),
    ];
    for (column, wanted, is_there) in optional.into_iter().chain(named).chain(more) {
        if is_there && wanted > 0 && NAME + taken(&columns) + wanted < width {
            columns.push((column, wanted));
        }
    }
    let mut free = width.saturating_sub(taken(&columns) + NAME);
    let name = NAME + free.min(longest - NAME);
    free -= name - NAME;
    let is_bar = |column: Column| matches!(column, Column::CpuBar | Column::MemoryBar);
    grow(&mut columns, is_bar, BAR, free / 3, &mut free);
    let is_curve =
        |column: Column| matches!(column, Column::CpuCurve | Column::MemoryCurve | Column::IoCurve);
    let all = free;
    grow(&mut columns, is_curve, CURVE, all, &mut free);
    columns.sort_by_key(|(column, _)| order(*column));
    (name + free, columns)
}

/// Where a column stands.
fn order(column: Column) -> usize {
    match column {
        Column::Flags => 0,
        Column::CpuBar => 1,
        Column::Cpu => 2,
        Column::CpuCurve => 3,
        Column::Map => 4,
        Column::Elastic => 5,
        Column::MemoryBar => 6,
        Column::Memory => 7,
        Column::MemoryCurve => 8,
        Column::Io => 9,
        Column::IoCurve => 10,
        Column::Tasks => 11,
        Column::Waits => 12,
        Column::Interrupted => 13,
        Column::Named(place) => 14 + place,
    }
}

/// Widens columns of a kind by at most `by` in all.
fn grow(columns: &mut [(Column, u16)], is_it: impl Fn(Column) -> bool, most: u16, by: u16, free: &mut u16) {
    let count = columns.iter().filter(|(column, _)| is_it(*column)).count();
    let each = u16::try_from(count).ok().and_then(|count| by.checked_div(count)).unwrap_or(0);
    for (_, width) in columns.iter_mut().filter(|(column, _)| is_it(*column)) {
        let wider = each.min(most.saturating_sub(*width)).min(*free);
        *width += wider;
        *free -= wider;
    }
}

/// `2/1-14`: CPUs now, and the least and the most; `-1` behind it: it lends one, `+1`: it borrows one.
fn elastic(model: &Model, group: &str) -> Option<String> {
    let following = model.following(group)?;
    let bounds = following.bounds.as_ref()?;
    let has = following.cpus.as_ref().map_or_else(|| "-".to_owned(), |cpus| cpus.len().to_string());
    let mut text = format!("{has}/{}-{}", bounds.min, bounds.max);
    for (sign, cpus) in [('-', &following.lent), ('+', &following.borrowed)] {
        if !cpus.is_empty() {
            text.push_str(&format!(" {sign}{}", cpus.len()));
        }
    }
    Some(text)
}

fn elastic_width(model: &Model, height: usize) -> u16 {
    let texts = model.tree.lines(height).filter_map(|(_, row, _)| elastic(model, &row.group));
    let longest = texts.map(|text| text.chars().count()).max();
    longest.map_or(0, |longest| u16::try_from(longest).unwrap_or(u16::MAX).max(7))
}

/// A place of a map of CPUs stands for as many as make it no wider than this.
const MAP: usize = 32;

fn per_place(cpus: usize) -> usize {
    cpus.div_ceil(MAP).max(1)
}

fn map_width(model: &Model) -> u16 {
    let cpus = model.topology.online().len();
    let places = cpus.div_ceil(per_place(cpus));
    u16::try_from(places).unwrap_or(u16::MAX).max(if places > 0 { 4 } else { 0 })
}

/// Which of the machine's CPUs a group may use.
fn map(model: &Model, group: &str, look: Look) -> String {
    let all: Vec<usize> = model.topology.online().iter().collect();
    let own = model.owners.as_ref().and_then(|owners| owners.cpus_of(group));
    let (full, part, none) = if look.unicode { ('█', '▒', '·') } else { ('#', '+', '.') };
    let place = |cpus: &[usize]| {
        let has = |cpu: &&usize| own.is_none_or(|own| own.contains(**cpu));
        match cpus.iter().filter(has).count() {
            0 => none,
            some if some == cpus.len() => full,
            _ => part,
        }
    };
    all.chunks(per_place(all.len())).map(place).collect()
}

/// Interrupts and softirqs per second of the CPUs that a group has alone.
pub(super) fn interrupted(model: &Model, group: &str) -> Option<f64> {
    let owner =
        model.owners.as_ref()?.list.iter().find(|owner| owner.group == group && owner.is_exclusive)?;
    let of_cpus: Option<Vec<f64>> =
        owner.cpus.iter().map(|cpu| model.interrupted.get(&cpu).copied()).collect();
    of_cpus.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

fn heading(columns: &[(Column, u16)], headings: &[Heading], name: u16, pen: &mut Pen<'_>, area: Rect) {
    pen.text(area.x, area.y, name, "  GROUP", Tone::Strong);
    let has = |one: Column| columns.iter().any(|(column, _)| *column == one);
    let mut x = area.x + name + 1;
    for (column, width) in columns {
        let text = match column {
            Column::Flags => "",
            Column::CpuBar => "CPU",
            Column::Cpu if !has(Column::CpuBar) => "CPU",
            Column::Memory if !has(Column::MemoryBar) => "MEMORY",
            Column::Cpu | Column::Memory => "used/limit",
            Column::CpuCurve if *width < 11 => "last",
            Column::CpuCurve => "CPU history",
            Column::Map => "CPUS",
            Column::Elastic => "ELASTIC",
            Column::MemoryBar => "MEMORY",
            Column::MemoryCurve if *width < 14 => "memory",
            Column::MemoryCurve => "memory history",
            Column::Io => "I/O in+out",
            Column::IoCurve => "I/O history",
            Column::Waits => "WAIT cpu  mem   io",
            Column::Tasks => "TASKS",
            Column::Interrupted => "INTR/s",
            Column::Named(place) => {
                let text = &headings[*place].name;
                pen.right(x, area.y, *width, text, Tone::Strong);
                x += width + 1;
                continue;
            }
        };
        match column {
            Column::Cpu
            | Column::Memory
            | Column::Tasks
            | Column::Io
            | Column::Elastic
            | Column::Interrupted => pen.right(x, area.y, *width, text, Tone::Strong),
            _ => _ = pen.text(x, area.y, *width, text, Tone::Strong),
        }
        x += width + 1;
    }
}

fn label(model: &Model, shown: &VisibleRow, row: &Row, is_selected: bool, pen: &mut Pen<'_>, area: Rect) {
    let mark = if is_selected { ">" } else { " " };
    let fold = match (model.tree.is_tree(), shown.is_parent, shown.is_folded, pen.look.unicode) {
        (false, ..) => "",
        (_, false, ..) => "  ",
        (_, _, true, true) => "▸ ",
        (_, _, true, false) => "+ ",
        (_, _, false, true) => "▾ ",
        (_, _, false, false) => "- ",
    };
    let tone = if shown.is_context && !is_selected { Tone::Faint } else { Tone::Plain };
    let text = format!("{mark}{:indent$}{fold}", "", indent = row.depth * 2);
    let x = pen.text(area.x, area.y, area.width, &text, Tone::Plain);
    let room = area.right().saturating_sub(x);
    let name = shortened(&units::printable(&row.label), usize::from(room), pen.look);
    pen.text(x, area.y, room, &name, tone);
}

/// The end of a name says more than its beginning.
pub(super) fn shortened(name: &str, width: usize, look: Look) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let mark = if look.unicode { "…" } else { "~" };
    let rest: String = name.chars().skip(length - width.saturating_sub(1)).collect();
    format!("{mark}{rest}")
}

/// What of the machine stands for an allotment that there is none of.
pub(super) fn shares(model: &Model, headings: &[Heading], row: &Row) -> [Option<f64>; 2] {
    let figure = |name| of_row(headings, row, name);
    let share = |used: Value, may: Value, all: Option<f64>| {
        let may = may.number().filter(|may| may.is_finite()).or(all).filter(|may| *may > 0.0)?;
        Some(used.number()? / all.map_or(may, |all| may.min(all)))
    };
    let cpus = Some(model.figures.busy.len() as f64).filter(|cpus| *cpus > 0.0);
    [
        share(figure("cpu.usage"), figure("cpu.allotment"), cpus),
        share(figure("memory.current"), figure("memory.limit"), model.figures.get("memory.total")),
    ]
}

fn cell(model: &Model, column: Column, row: &Row, pen: &mut Pen<'_>, area: Rect) {
    let headings = model.tree.headings();
    let figure = |name| of_row(headings, row, name);
    let Rect { x, y, width, .. } = area;
    let draw_bar = |pen: &mut Pen<'_>, share| {
        let text = bars::bar(share, usize::from(width), pen.look);
        pen.text(x, y, width, &text, bars::tone(share));
    };
    match column {
        Column::Flags => _ = pen.text(x, y, width, &flags(headings, row), Tone::Strong),
        Column::CpuBar => draw_bar(pen, shares(model, headings, row)[0]),
        Column::MemoryBar => draw_bar(pen, shares(model, headings, row)[1]),
        Column::Cpu
        | Column::Memory
        | Column::Io
        | Column::Tasks
        | Column::Interrupted
        | Column::Elastic
        | Column::Named(_) => {
            pen.right(x, y, width, &number(model, column, row).unwrap_or_default(), Tone::Plain);
        }
        Column::CpuCurve | Column::MemoryCurve | Column::IoCurve => {
            let top = figure("cpu.allotment").number().filter(|top| top.is_finite());
            if let Some(history) = model.histories.get(&row.group) {
                let (values, top) = match column {
                    Column::CpuCurve => (&history.cpu, top),
                    Column::MemoryCurve => (&history.memory, None),
                    _ => (&history.io, None),
                };
                let text = bars::curve(values.iter(), usize::from(width), top, pen.look);
                pen.text(x, y, width, &text, Tone::Plain);
            }
        }
        Column::Map => _ = pen.text(x, y, width, &map(model, &row.group, pen.look), Tone::Plain),
        Column::Waits => {
            let shown = ["cpu", "memory", "io"].map(|name| {
                let share = figure_of_pressure(headings, row, name);
                share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0))
            });
            let text = format!("{:>8} {:>4} {:>4}", shown[0], shown[1], shown[2]);
            pen.text(x, y, width, &text, Tone::Plain);
        }
    }
}

/// What stands at the right of its column; `None`: the column has no such text.
fn number(model: &Model, column: Column, row: &Row) -> Option<String> {
    let headings = model.tree.headings();
    let figure = |name| of_row(headings, row, name);
    let dash = || "-".to_owned();
    match column {
        Column::Cpu => Some(of(figure("cpu.usage"), figure("cpu.allotment"), cpus)),
        Column::Memory => Some(of(figure("memory.current"), figure("memory.limit"), bytes)),
        Column::Io => {
            let both = [figure("io.rbytes"), figure("io.wbytes")];
            Some(both.map(|value| value.number().map_or_else(dash, bytes)).join("+"))
        }
        Column::Tasks => Some(written(figure("pids.current"), Measure::Figure(FigureUnit::Count))),
        Column::Interrupted => {
            Some(interrupted(model, &row.group).map_or_else(dash, |count| format!("{count:.0}")))
        }
        Column::Elastic => elastic(model, &row.group),
        Column::Named(place) => {
            let value = row.values.get(place).copied().unwrap_or(Value::Missing);
            Some(written(value, headings.get(place)?.measure))
        }
        Column::Flags
        | Column::CpuBar
        | Column::CpuCurve
        | Column::Map
        | Column::MemoryBar
        | Column::MemoryCurve
        | Column::IoCurve
        | Column::Waits => None,
    }
}

fn figure_of_pressure(headings: &[Heading], row: &Row, name: &str) -> Option<f64> {
    of_row(headings, row, &format!("{name}.pressure.some")).number()
}

/// Frozen, a partition of its own, and stopped by a limit since the last sample.
pub(super) fn flags(headings: &[Heading], row: &Row) -> String {
    let is = |name: &str| of_row(headings, row, name).number().is_some_and(|number| number > 0.0);
    let limits = ["memory.events.max", "memory.events.oom_kill", "pids.events.max"];
    let meets = is("cpu.throttled") || limits.into_iter().any(is);
    // the root has all CPUs and is no partition
    let is_partition = row.group != "/" && is("cpuset.partition");
    [(is("frozen"), 'F'), (is_partition, 'P'), (meets, '!')]
        .map(|(is, letter)| if is { letter } else { ' ' })
        .iter()
        .collect()
}

/// `0.50/2`, or the use alone where there is no limit.
fn of(used: Value, may: Value, shown: fn(f64) -> String) -> String {
    match (used.number(), may.number().filter(|may| may.is_finite())) {
        (Some(used), Some(may)) => format!("{}/{}", shown(used), shown(may)),
        (Some(used), None) => shown(used),
        (None, _) => match used {
            Value::Absent(reason) => reason.to_owned(),
            _ => "-".to_owned(),
        },
    }
}

fn cpus(number: f64) -> String {
    if number.fract() == 0.0 && number >= 1.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}
