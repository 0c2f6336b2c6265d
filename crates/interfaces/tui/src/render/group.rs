//! A group's page: its figures with their bars and curves, what throttled it, its settings and its tasks.

use std::time::{Duration, SystemTime};

use exporters::view::{Heading, Measure, Row, Value, task_table, written};
use ratatui_core::layout::Rect;

use super::{
    bars,
    look::Tone,
    pen::{Pen, wrapped},
    tree,
};
use crate::{
    figures::of_row,
    model::{GroupPage, Mode, Model, Pane},
};

/// Where both lists stand beside each other.
const WIDE: u16 = 116;
/// Columns of a figure's name and of its numbers.
const NAME: u16 = 8;
const NUMBERS: u16 = 24;

pub(super) fn draw(model: &Model, page: &GroupPage, pen: &mut Pen<'_>, area: Rect) {
    let used = match model.row(&page.group) {
        Some((headings, row)) => figures(model, page, headings, row, pen, area),
        None => {
            let text = format!("group '{}' does not exist", units::printable(&page.group));
            pen.text(area.x + 1, area.y, area.width, &text, Tone::Strong);
            2
        }
    };
    let lists = Rect { y: area.y + used, height: area.height.saturating_sub(used), ..area };
    if lists.height == 0 {
        return;
    }
    if area.width >= WIDE {
        let left = Rect { width: area.width * 2 / 5, ..lists };
        let right = Rect { x: left.right() + 1, width: area.width - left.width - 1, ..lists };
        title(page, &[(Pane::Settings, left.x)], pen, left);
        title(page, &[(Pane::Tasks, right.x)], pen, right);
        settings(model, page, pen, left);
        tasks(model, page, pen, right);
    } else {
        title(page, &[(Pane::Settings, lists.x), (Pane::Tasks, lists.x + 20)], pen, lists);
        match page.pane {
            Pane::Settings => settings(model, page, pen, lists),
            Pane::Tasks => tasks(model, page, pen, lists),
        }
    }
}

/// Draws the upper part; returns its lines.
fn figures(
    model: &Model,
    page: &GroupPage,
    headings: &[Heading],
    row: &Row,
    pen: &mut Pen<'_>,
    area: Rect,
) -> u16 {
    let is = |name: &str| of_row(headings, row, name).number().is_some_and(|number| number > 0.0);
    let mut words = vec![units::printable(&page.group).into_owned()];
    words.extend(is("frozen").then(|| "frozen".to_owned()));
    words.extend(is("cpuset.partition").then(|| "partition with CPUs of its own".to_owned()));
    pen.text(area.x + 1, area.y, area.width.saturating_sub(1), &words.join("   "), Tone::Strong);
    let [cpu, memory] = tree::shares(model, headings, row);
    let figure = |name: &str| of_row(headings, row, name);
    let tasks = match (figure("pids.current").number(), figure("pids.max").number()) {
        (Some(tasks), Some(most)) if most > 0.0 && most.is_finite() => Some(tasks / most),
        _ => None,
    };
    let shown = |name: &str| {
        let measure = headings.iter().find(|heading| heading.name == name).map(|heading| heading.measure);
        measure.map_or_else(|| "-".to_owned(), |measure: Measure| written(figure(name), measure))
    };
    let of = |used: &str, may: &str| match figure(may) {
        Value::Missing | Value::Max => shown(used),
        _ => format!("{} of {}", shown(used), shown(may)),
    };
    let history = model.histories.get(&page.group);
    let io = match (figure("io.rbytes"), figure("io.wbytes")) {
        (Value::Missing, Value::Missing) => "-".to_owned(),
        _ => format!("{} in, {} out", shown("io.rbytes"), shown("io.wbytes")),
    };
    let lines = [
        ("CPU", cpu, of("cpu.usage", "cpu.allotment"), history.map(|history| &history.cpu)),
        ("MEMORY", memory, of("memory.current", "memory.limit"), history.map(|history| &history.memory)),
        ("I/O", None, io, history.map(|history| &history.io)),
        ("TASKS", tasks, of("pids.current", "pids.max"), None),
    ];
    let bar = if area.width >= 100 { 24 } else { 12 };
    let mut y = area.y + 1;
    for (name, share, text, history) in lines {
        let x = area.x + 1;
        pen.text(x, y, NAME, name, Tone::Strong);
        let text_bar = bars::bar(share, usize::from(bar), pen.look);
        pen.text(x + NAME, y, bar, &text_bar, bars::tone(share));
        pen.text(x + NAME + bar + 1, y, NUMBERS, &text, Tone::Plain);
        let at = x + NAME + bar + 1 + NUMBERS + 1;
        if let Some(history) = history {
            let width = area.right().saturating_sub(at + 1);
            // a curve against the allotment is flat where that is large: it is against its own largest
            let curve = bars::curve(history.iter(), usize::from(width), None, pen.look);
            pen.text(at, y, width, &curve, Tone::Plain);
        }
        y += 1;
    }
    let mut waits = Vec::new();
    for (name, word) in [("cpu", "CPU"), ("memory", "memory"), ("io", "I/O")] {
        let share = figure(&format!("{name}.pressure.some"));
        if share != Value::Missing {
            waits.push(format!("{word} {}", shown(&format!("{name}.pressure.some"))));
        }
    }
    if figure("cpu.throttled") != Value::Missing {
        waits.push(format!("stopped by its quota {}", shown("cpu.throttled")));
    }
    let waits = if waits.is_empty() {
        "this kernel does not count them by group".to_owned()
    } else {
        waits.join("   ")
    };
    pen.text(area.x + 1, y, NAME, "WAITS", Tone::Strong);
    pen.text(area.x + 1 + NAME, y, area.width.saturating_sub(NAME + 1), &waits, Tone::Plain);
    y += 1;
    y += limits(page, pen, Rect { y, height: area.bottom().saturating_sub(y), ..area });
    y += resized(model, page, pen, Rect { y, height: area.bottom().saturating_sub(y), ..area });
    y - area.y
}

/// What of it follows its load, its last change, and why nobody changes it.
fn resized(model: &Model, page: &GroupPage, pen: &mut Pen<'_>, area: Rect) -> u16 {
    let Some(following) = model.following(&page.group) else { return 0 };
    let last = following.last.as_ref().map(|last| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(last.at);
        format!("last {} {}", humantime::format_rfc3339_seconds(at), last.change())
    });
    let texts = [Some(following.lines().join("; ")), last, model.elastic.trouble.clone()];
    let width = area.width.saturating_sub(NAME + 2);
    let lines = texts.into_iter().flatten().flat_map(|text| wrapped(&text, usize::from(width)));
    pen.text(area.x + 1, area.y, NAME, "BY LOAD", Tone::Strong);
    let mut used = 0;
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        pen.text(area.x + 1 + NAME, y, width, &line, Tone::Plain);
        used += 1;
    }
    used
}

/// How often it met its limits since it was made.
fn limits(page: &GroupPage, pen: &mut Pen<'_>, area: Rect) -> u16 {
    let met: Vec<String> = page
        .limits
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(words, count)| format!("{words} {count}"))
        .collect();
    let text =
        if met.is_empty() { "none was met since the group was made".to_owned() } else { met.join("   ") };
    pen.text(area.x + 1, area.y, NAME, "LIMITS", Tone::Strong);
    let width = area.width.saturating_sub(NAME + 2);
    let lines = wrapped(&text, usize::from(width));
    let lines = &lines[..lines.len().min(2)];
    for (y, line) in (area.y..).zip(lines) {
        pen.text(area.x + 1 + NAME, y, width, line, Tone::Plain);
    }
    lines.len() as u16
}

fn title(page: &GroupPage, panes: &[(Pane, u16)], pen: &mut Pen<'_>, area: Rect) {
    pen.fill(Rect { height: 1, ..area }, Tone::Bar);
    for (pane, x) in panes {
        let name = match pane {
            Pane::Settings => "SETTINGS".to_owned(),
            Pane::Tasks if page.is_read => format!("TASKS {}", page.tasks.len()),
            Pane::Tasks => "TASKS".to_owned(),
        };
        let text = if page.pane == *pane { format!(" [{name}] ") } else { format!("  {name}  ") };
        pen.text(*x, area.y, area.right().saturating_sub(*x), &text, Tone::Bar);
    }
}

/// What stands instead of a list.
fn instead(model: &Model, page: &GroupPage) -> Option<String> {
    if model.mode != Mode::Live {
        return Some("the log holds figures alone".to_owned());
    }
    if let Some(refusal) = &page.refusal {
        return Some(refusal.lines().join(" "));
    }
    (!page.is_read).then(|| "being read".to_owned())
}

fn settings(model: &Model, page: &GroupPage, pen: &mut Pen<'_>, area: Rect) {
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if let Some(text) = instead(model, page) {
        pen.text(area.x + 1, area.y, area.width.saturating_sub(1), &text, Tone::Plain);
        return;
    }
    let longest = page.settings.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let name_width = u16::try_from(longest).unwrap_or(u16::MAX).min(area.width / 2);
    let docs = wrapped(
        page.settings.get(page.setting.selected).map_or("", |(_, _, doc)| doc),
        usize::from(area.width.saturating_sub(2)),
    );
    let docs = &docs[..docs.len().min(2)];
    let height = usize::from(area.height).saturating_sub(docs.len());
    let first = page.setting.first(height, page.settings.len());
    let lines = page.settings.iter().enumerate().skip(first).take(height);
    for (y, (place, (name, value, _))) in (area.y..).zip(lines) {
        let is_selected = place == page.setting.selected;
        let tone = if is_selected && page.pane == Pane::Settings { Tone::Selected } else { Tone::Plain };
        pen.text(area.x, y, 1, if is_selected { ">" } else { " " }, Tone::Strong);
        pen.text(area.x + 1, y, name_width, name, tone);
        let at = area.x + name_width + 3;
        let value = value.replace('\n', "; ");
        pen.text(at, y, area.right().saturating_sub(at), &value, Tone::Plain);
    }
    for (y, line) in (area.bottom().saturating_sub(docs.len() as u16)..).zip(docs) {
        pen.text(area.x + 1, y, area.width.saturating_sub(1), line, Tone::Faint);
    }
}

fn tasks(model: &Model, page: &GroupPage, pen: &mut Pen<'_>, area: Rect) {
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if let Some(text) = instead(model, page) {
        pen.text(area.x + 1, area.y, area.width.saturating_sub(1), &text, Tone::Plain);
        return;
    }
    let height = usize::from(area.height).saturating_sub(1);
    let first = page.task.first(height, page.tasks.len());
    let last = (first + height).min(page.tasks.len());
    let table = task_table(&page.tasks[first..last]);
    for (y, (line, text)) in (area.y..).zip(table.lines().enumerate()) {
        let is_selected = line > 0 && first + line - 1 == page.task.selected && page.pane == Pane::Tasks;
        let tone = match line {
            0 => Tone::Strong,
            _ if is_selected => Tone::Selected,
            _ => Tone::Plain,
        };
        pen.text(area.x, y, 1, if is_selected { ">" } else { " " }, Tone::Strong);
        pen.text(area.x + 1, y, area.width.saturating_sub(1), text, tone);
    }
    if page.tasks.is_empty() {
        pen.text(area.x + 1, area.y + 1, area.width.saturating_sub(1), "no task", Tone::Plain);
    }
}
