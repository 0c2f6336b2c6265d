//! What the marks of a chart mean, in a line or more above it.

use super::scene::{Anchor, Area, Dash, Ink, SMALL, Scene, Stroke};
use super::text;

/// How a mark looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Symbol {
    /// A filled field.
    Field(Ink),
    /// A run.
    Dot(Ink),
    /// A rejected run.
    Cross(Ink),
    /// A line along the values.
    Line(Ink, Dash),
    /// A mark across the values.
    Upright(Ink, Dash),
}

const SYMBOL: f64 = 20.0;
const LINE: f64 = 18.0;

/// Writes the entries from `top` on, as many in a line as there is room for, and gives where it ends.
pub fn draw(scene: &mut Scene, top: f64, entries: &[(Symbol, String)]) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for (symbol, label) in entries {
        let label = text::fit(label, scene.width - SYMBOL - 8.0, SMALL.size, false);
        let width = SYMBOL + 6.0 + text::width(&label, SMALL.size, false);
        if x > 0.0 && x + width > scene.width {
            (x, y) = (0.0, y + LINE);
        }
        draw_symbol(scene, *symbol, (x, y + 8.0));
        scene.text((x + SYMBOL + 6.0, y + 12.0), Anchor::Start, SMALL, label);
        x += width + 18.0;
    }
    if entries.is_empty() { top } else { y + LINE + 6.0 }
}

fn draw_symbol(scene: &mut Scene, symbol: Symbol, (x, y): (f64, f64)) {
    let middle = x + SYMBOL / 2.0;
    match symbol {
        Symbol::Field(ink) => {
            scene.rect(Area { x: x + 3.0, y: y - 6.0, width: 14.0, height: 12.0 }, ink, 1.0);
        }
        Symbol::Dot(ink) => {
            scene.dot((middle, y), 3.5, ink);
        }
        Symbol::Cross(ink) => scene.cross((middle, y), 3.5, ink, None),
        Symbol::Line(ink, dash) => {
            scene.line((x, y), (x + SYMBOL, y), Stroke { ink, width: 2.2, dash });
        }
        Symbol::Upright(ink, dash) => {
            scene.line((middle, y - 7.0), (middle, y + 7.0), Stroke { ink, width: 2.0, dash });
        }
    }
}
