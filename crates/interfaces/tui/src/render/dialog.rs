//! Questions and notices in front of a page.

use ratatui_core::layout::{Position, Rect};

use super::{
    help,
    look::Tone,
    pen::{Pen, wrapped},
};
use crate::{
    change::{Proposal, Refusal},
    figures::ORDERS,
    model::{Dialog, Line, Model, plan_lines},
};

/// The widest that a box gets.
const WIDEST: u16 = 100;

/// Draws the dialog; where the cursor is, if something is typed.
pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) -> Option<Position> {
    let dialog = model.dialog.as_ref()?;
    let width = area.width.saturating_sub(4).min(WIDEST);
    let inner = usize::from(width.saturating_sub(4));
    match dialog {
        Dialog::Filter(line) => return Some(filter(line, pen, area)),
        Dialog::Help { first } => {
            let all = help::lines(model);
            let height = usize::from(area.height.saturating_sub(4));
            let first = (*first).min(all.len().saturating_sub(height));
            let shown: Vec<(String, Tone)> = all[first..]
                .iter()
                .take(height)
                .map(|line| {
                    ((*line).to_owned(), if line.starts_with(' ') { Tone::Plain } else { Tone::Strong })
                })
                .collect();
            let more = if all.len() > height { "Keys (arrows: more)" } else { "Keys" };
            boxed(more, &shown, pen, area, width);
        }
        Dialog::Sort(menu) => {
            let entries = std::iter::once(("name", "as a tree")).chain(ORDERS);
            let lines: Vec<(String, Tone)> = entries
                .enumerate()
                .map(|(place, (name, words))| match place == menu.selected {
                    true => (format!("> {name:22} {words}"), Tone::Selected),
                    false => (format!("  {name:22} {words}"), Tone::Plain),
                })
                .collect();
            boxed("Sort by", &lines, pen, area, width.min(70));
        }
        Dialog::Notice { title, lines } => {
            let lines = lines.iter().flat_map(|line| wrapped(line, inner)).map(|line| (line, Tone::Plain));
            boxed(title, &lines.collect::<Vec<_>>(), pen, area, width);
        }
        Dialog::Sure { what, proposed, .. } => {
            let lines = proposal(proposed.as_ref(), "", inner);
            boxed(&format!("{}?", what.escape_debug()), &lines, pen, area, width);
        }
        Dialog::Edit { group, line, proposed } => {
            let (text, cursor) = window(line, inner.saturating_sub(2));
            let mut lines = vec![(format!("> {text}"), Tone::Strong), (String::new(), Tone::Plain)];
            lines.extend(proposal(proposed.as_ref(), &line.text, inner));
            // the box keeps its place while its text changes
            let least = usize::from(area.height).saturating_sub(8).min(10);
            let missing = least.saturating_sub(lines.len());
            lines.extend(std::iter::repeat_n((String::new(), Tone::Plain), missing));
            let corner = boxed(&format!("Set {}", group.escape_debug()), &lines, pen, area, width);
            return Some(Position { x: corner.x + 2 + u16::try_from(cursor).unwrap_or(0), y: corner.y });
        }
    }
    None
}

/// In the line above the keys, so that the groups are seen meanwhile.
fn filter(line: &Line, pen: &mut Pen<'_>, area: Rect) -> Position {
    let y = area.bottom().saturating_sub(2);
    let name = " filter: ";
    let blank = " ".repeat(usize::from(area.width));
    pen.text(area.x, y, area.width, &blank, Tone::Plain);
    let x = pen.text(area.x, y, area.width, name, Tone::Strong);
    let (text, cursor) = window(line, usize::from(area.right().saturating_sub(x + 1)));
    pen.text(x, y, area.right().saturating_sub(x), &text, Tone::Plain);
    Position { x: x + u16::try_from(cursor).unwrap_or(0), y }
}

/// The part of a line around its cursor, and the cursor's column in it.
fn window(line: &Line, width: usize) -> (String, usize) {
    let cursor = line.text[..line.cursor].chars().count();
    let width = width.max(1);
    let first = (cursor + 1).saturating_sub(width);
    (line.text.chars().skip(first).take(width).collect(), cursor - first)
}

/// What would be written, or why not.
fn proposal(proposed: Option<&Result<Proposal, Refusal>>, text: &str, width: usize) -> Vec<(String, Tone)> {
    let plain = |line: String| (line, Tone::Plain);
    match proposed {
        None if text.is_empty() => wrapped(
            "SETTING=VALUE, for example cpu.max=150%, memory.max=8G, pids.max=100, cpuset.cpus=0-3; \
                     ringfence settings explains all",
            width,
        )
        .into_iter()
        .map(plain)
        .collect(),
        None => Vec::new(),
        Some(Err(refusal)) => {
            refusal.lines().iter().flat_map(|line| wrapped(line, width)).map(plain).collect()
        }
        Some(Ok(proposal)) => {
            let mut lines = vec![(format!("{} would write", proposal.what), Tone::Plain)];
            for (path, change) in plan_lines(proposal) {
                lines.extend(wrapped(&path.display().to_string(), width).into_iter().map(plain));
                let indented = wrapped(&change, width.saturating_sub(4)).into_iter();
                lines.extend(indented.map(|line| (format!("    {line}"), Tone::Strong)));
            }
            if proposal.writes.is_empty() {
                lines.push(plain("nothing: it is so already".to_owned()));
            }
            for note in &proposal.notes {
                lines.extend(wrapped(&format!("note: {note}"), width).into_iter().map(plain));
            }
            lines
        }
    }
}

/// Lines in a box in the middle; returns the place of the first.
fn boxed(title: &str, lines: &[(String, Tone)], pen: &mut Pen<'_>, area: Rect, width: u16) -> Position {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    pen.frame(place, title);
    let inner = Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: width.saturating_sub(4),
        height: height.saturating_sub(2),
    };
    for (y, (line, tone)) in (inner.top()..inner.bottom()).zip(lines) {
        pen.text(inner.x, y, inner.width, line, *tone);
    }
    Position { x: inner.x, y: inner.y }
}
