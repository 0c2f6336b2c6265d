//! Draws the model: header, the open page, the dialog in front of it, and the keys. Pure: the same model makes the
//! same cells; nothing is read or worked out here but places on the screen.

mod bars;
mod dialog;
mod group;
mod header;
mod help;
mod keys;
mod look;
mod machine;
mod pen;
mod tree;

pub use look::Look;

use ratatui_core::{layout::Rect, terminal::Frame};

use crate::model::{Model, Page};
use pen::Pen;

/// Lines above a page and below it.
const HEADER: u16 = 2;
const FOOTER: u16 = 2;

/// Draws everything.
pub fn render(model: &Model, look: Look, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut pen = Pen::new(frame.buffer_mut(), look);
    header::draw(model, &mut pen, Rect { height: HEADER.min(area.height), ..area });
    let below = area.height.saturating_sub(HEADER);
    let page = Rect { y: area.y + HEADER.min(area.height), height: below.saturating_sub(FOOTER), ..area };
    match &model.page {
        Page::Tree => tree::draw(model, &mut pen, page),
        Page::Group(open) => group::draw(model, open, &mut pen, page),
        Page::Machine(_) => machine::draw(model, &mut pen, page),
    }
    keys::draw(model, &mut pen, Rect { y: page.y + page.height, height: below.min(FOOTER), ..area });
    let cursor = dialog::draw(model, &mut pen, area);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}
