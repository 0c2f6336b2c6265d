//! The two lines below every page: notes, and the keys.

use ratatui_core::layout::Rect;

use super::{look::Tone, pen::Pen};
use crate::model::{Dialog, Mode, Model, Page};

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    pen.text(area.x, area.y, area.width, &status(model), Tone::Plain);
    let area = Rect { y: area.bottom() - 1, height: 1, ..area };
    pen.fill(area, Tone::Bar);
    let keys = keys(model, pen.look.unicode);
    let length = |gap: usize, keys: &[(&str, &str)]| {
        keys.iter().map(|(key, word)| key.chars().count() + 1 + word.len() + gap).sum::<usize>()
    };
    let width = usize::from(area.width);
    let gap = if length(2, &keys) <= width { 2 } else { 1 };
    let mut shown = keys;
    // help and the end stay
    while length(gap, &shown) > width && shown.len() > 2 {
        shown.remove(shown.len() - 3);
    }
    let mut x = area.x;
    for (key, word) in shown {
        x = pen.text(x, area.y, area.right().saturating_sub(x), key, Tone::Bar);
        pen.add(
            Rect {
                x: x - (x - area.x).min(key.chars().count() as u16),
                width: key.chars().count() as u16,
                ..area
            },
            ratatui_core::style::Style::new().add_modifier(ratatui_core::style::Modifier::BOLD),
        );
        let text = format!(" {word}{:gap$}", "");
        x = pen.text(x, area.y, area.right().saturating_sub(x), &text, Tone::Bar);
    }
}

fn status(model: &Model) -> String {
    if let Some(note) = &model.note {
        return format!(" {note}");
    }
    let mut notes = Vec::new();
    if let Page::Tree = model.page {
        let (place, seen) = model.tree.place();
        notes.push(match seen == model.tree.count() {
            true => format!("group {place} of {seen}"),
            false => format!("group {place} of {seen} shown, {} in all", model.tree.count()),
        });
        if !model.tree.filter.is_empty() && !matches!(model.dialog, Some(Dialog::Filter(_))) {
            notes.push(format!("filter '{}' (Esc: off)", model.tree.filter));
        }
        if let Some(sort) = &model.tree.sort {
            notes.push(format!("sorted by {sort}"));
        }
    }
    match model.undoable {
        0 => {}
        1 => notes.push("1 change to undo".to_owned()),
        more => notes.push(format!("{more} changes to undo")),
    }
    format!(" {}", notes.join("  "))
}

fn keys(model: &Model, unicode: bool) -> Vec<(&'static str, &'static str)> {
    let (enter, sides) = if unicode { ("↵", "←→") } else { ("Ret", "+-") };
    let is_log = model.mode != Mode::Live;
    let mut keys = match (&model.dialog, &model.page) {
        (Some(Dialog::Filter(_)), _) => return vec![(enter, "keep"), ("Esc", "off")],
        (Some(Dialog::Sort(_)), _) => return vec![(enter, "sort"), ("Esc", "back")],
        (Some(Dialog::Edit { .. }), _) => return vec![(enter, "write"), ("^U", "clear"), ("Esc", "back")],
        (Some(Dialog::Sure { .. }), _) => return vec![(enter, "yes"), ("Esc", "no")],
        (Some(Dialog::Help { .. } | Dialog::Notice { .. }), _) => return vec![("Esc", "back")],
        (None, Page::Tree) if is_log => {
            vec![(enter, "page"), ("/", "filter"), ("s", "sort"), ("+-", "fold"), ("m", "machine")]
        }
        (None, Page::Tree) => vec![
            (enter, "page"),
            ("/", "filter"),
            ("s", "sort"),
            (sides, "fold"),
            ("m", "machine"),
            ("e", "edit"),
            ("f", "freeze"),
            ("u", "undo"),
        ],
        (None, Page::Group(_)) if is_log => vec![("Esc", "back"), ("m", "machine")],
        (None, Page::Group(_)) => vec![
            ("Esc", "back"),
            ("Tab", "list"),
            ("e", "edit"),
            ("f", "freeze"),
            ("u", "undo"),
            ("m", "machine"),
        ],
        (None, Page::Machine(_)) => vec![("Esc", "back"), (enter, "owner")],
    };
    if is_log {
        let step = if unicode { "←→" } else { "<-->" };
        let time = [(step, "step"), ("[]", "1 min"), ("{}", "1 h"), ("Space", "play")];
        keys.splice(0..0, time);
    }
    keys.extend([("?", "help"), ("q", "quit")]);
    keys
}
