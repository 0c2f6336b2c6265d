//! The groups as a tree with bars of use against allotment, and curves of the last samples.

use ratatui_core::layout::Rect;
use watch::{
    FigureUnit,
    view::{Heading, Measure, Row, Value, written},
};

use super::{
    bars,
    header::bytes,
    look::{Look, Tone},
    pen::Pen,
};
use crate::{
    figures::{OWN, of_row},
    model::{Model, Shown},
};

/// A column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Flags,
    CpuBar,
    Cpu,
    Curve,
    MemoryBar,
    Memory,
    Io,
    Waits,
    Tasks,
    /// One that the user named: its place among the picture's.
    Named(usize),
}

/// The least that names have.
const NAME: u16 = 18;

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let headings = model.tree.headings();
    let columns = columns(headings, area.width);
    let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum();
    let name = area.width.saturating_sub(taken);
    heading(&columns, headings, name, pen, area);
    let lines = Rect { y: area.y + 1, height: area.height - 1, ..area };
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
    }
    if !any {
        let text = match model.tree.count() {
            0 => "no group",
            _ => "no group's name has that in it",
        };
        pen.text(area.x + 2, lines.y, area.width.saturating_sub(2), text, Tone::Plain);
    }
}

/// What fits: the widths grow with the screen.
fn columns(headings: &[Heading], width: u16) -> Vec<(Column, u16)> {
    use Column::{Cpu, CpuBar, Curve, Flags, Io, Memory, MemoryBar, Tasks, Waits};
    let is_wide = width >= 116;
    let mut columns = vec![
        (Flags, 3),
        (CpuBar, if is_wide { 12 } else { 8 }),
        (Cpu, 11),
        (Curve, if is_wide { 16 } else { 6 }),
        (MemoryBar, if is_wide { 10 } else { 6 }),
        (Memory, 11),
    ];
    if width >= 100 {
        columns.push((Io, 13));
    }
    columns.push((Tasks, 5));
    if width >= 136 {
        columns.push((Waits, 14));
    }
    let mut free = width.saturating_sub(columns.iter().map(|(_, width)| width + 1).sum::<u16>() + NAME);
    for (place, heading) in headings.iter().enumerate().skip(OWN) {
        let wanted = u16::try_from(heading.name.chars().count()).unwrap_or(u16::MAX).clamp(8, 16);
        if wanted + 1 > free {
            break;
        }
        free -= wanted + 1;
        columns.push((Column::Named(place), wanted));
    }
    columns
}

fn heading(columns: &[(Column, u16)], headings: &[Heading], name: u16, pen: &mut Pen<'_>, area: Rect) {
    pen.text(area.x, area.y, name, "  GROUP", Tone::Strong);
    let mut x = area.x + name + 1;
    for (column, width) in columns {
        let text = match column {
            Column::Flags => "",
            Column::CpuBar => "CPU",
            Column::Cpu => "used/may",
            Column::Curve => "last",
            Column::MemoryBar => "MEMORY",
            Column::Memory => "used/may",
            Column::Io => "I/O in+out",
            Column::Waits => "WAITS c m i",
            Column::Tasks => "TASKS",
            Column::Named(place) => {
                let text = &headings[*place].name;
                pen.right(x, area.y, *width, text, Tone::Strong);
                x += width + 1;
                continue;
            }
        };
        match column {
            Column::Cpu | Column::Memory | Column::Tasks | Column::Io => {
                pen.right(x, area.y, *width, text, Tone::Strong)
            }
            _ => _ = pen.text(x, area.y, *width, text, Tone::Strong),
        }
        x += width + 1;
    }
}

fn label(model: &Model, shown: &Shown, row: &Row, is_selected: bool, pen: &mut Pen<'_>, area: Rect) {
    let mark = if is_selected { ">" } else { " " };
    let fold = match (model.tree.is_tree(), shown.is_parent, shown.is_folded, pen.look.unicode) {
        (false, ..) => "",
        (_, false, ..) => "  ",
        (_, _, true, true) => "▸ ",
        (_, _, true, false) => "+ ",
        (_, _, false, true) => "▾ ",
        (_, _, false, false) => "- ",
    };
    let tone = match (is_selected, shown.is_context) {
        (true, _) => Tone::Selected,
        (_, true) => Tone::Faint,
        _ => Tone::Plain,
    };
    let text = format!("{mark}{:indent$}{fold}", "", indent = row.depth * 2);
    let x = pen.text(area.x, area.y, area.width, &text, Tone::Plain);
    let room = area.right().saturating_sub(x);
    let name = shortened(&row.label.escape_debug().to_string(), usize::from(room), pen.look);
    pen.text(x, area.y, room, &name, tone);
}

/// The end of a name tells more than its beginning.
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
        Column::Cpu => {
            pen.right(x, y, width, &of(figure("cpu.usage"), figure("cpu.allotment"), cpus), Tone::Plain)
        }
        Column::Memory => {
            pen.right(x, y, width, &of(figure("memory.current"), figure("memory.limit"), bytes), Tone::Plain);
        }
        Column::Curve => {
            let top = figure("cpu.allotment").number().filter(|top| top.is_finite());
            if let Some(history) = model.histories.get(&row.group) {
                let text = bars::curve(history.cpu.iter(), usize::from(width), top, pen.look);
                pen.text(x, y, width, &text, Tone::Plain);
            }
        }
        Column::Io => {
            let both = [figure("io.rbytes"), figure("io.wbytes")];
            let text = both.map(|value| value.number().map_or_else(|| "-".to_owned(), bytes)).join("+");
            pen.right(x, y, width, &text, Tone::Plain);
        }
        Column::Waits => {
            let shown = ["cpu", "memory", "io"].map(|name| {
                let share = figure_of_pressure(headings, row, name);
                share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0))
            });
            let text = format!("{:>4} {:>4} {:>4}", shown[0], shown[1], shown[2]);
            pen.text(x, y, width, &text, Tone::Plain);
        }
        Column::Tasks => {
            let text = written(figure("pids.current"), Measure::Figure(FigureUnit::Count));
            pen.right(x, y, width, &text, Tone::Plain);
        }
        Column::Named(place) => {
            let (value, heading) =
                (row.values.get(place).copied().unwrap_or(Value::Missing), &headings[place]);
            pen.right(x, y, width, &written(value, heading.measure), Tone::Plain);
        }
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
    // whoever holds all is no partition of anything
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
        (None, _) => "-".to_owned(),
    }
}

fn cpus(number: f64) -> String {
    if number.fract() == 0.0 && number >= 1.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}
