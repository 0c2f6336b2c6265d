//! Writes text into cells. Names come from users: what is no printable character is escaped.

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};

use super::look::{Look, Tone};

/// A buffer, and how its terminal shows things.
pub(super) struct Pen<'b> {
    buffer: &'b mut Buffer,
    pub look: Look,
}

impl<'b> Pen<'b> {
    pub(super) fn new(buffer: &'b mut Buffer, look: Look) -> Pen<'b> {
        Pen { buffer, look }
    }

    /// Writes at most `width` columns; returns the column behind it.
    pub(super) fn text(&mut self, x: u16, y: u16, width: u16, text: &str, tone: Tone) -> u16 {
        let all = self.buffer.area;
        if y >= all.bottom() || x >= all.right() || width == 0 {
            return x;
        }
        let style = self.look.style(tone);
        let text = units::printable(text);
        let is_shown = |letter: char| self.look.unicode || letter.is_ascii();
        let text = match text.chars().all(is_shown) {
            true => text,
            false => text.chars().map(|letter| if is_shown(letter) { letter } else { '?' }).collect(),
        };
        self.buffer.set_stringn(x, y, &text, usize::from(width), style).0
    }

    /// Writes at the right end of a column.
    pub(super) fn right(&mut self, x: u16, y: u16, width: u16, text: &str, tone: Tone) {
        let length = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        let gap = width.saturating_sub(length);
        self.text(x + gap, y, width - gap, text, tone);
    }

    /// A line of this tone from end to end.
    pub(super) fn fill(&mut self, area: Rect, tone: Tone) {
        let style = self.look.style(tone);
        self.buffer.set_style(area, style);
    }

    /// An empty box with a title.
    pub(super) fn frame(&mut self, area: Rect, title: &str) {
        let area = area.intersection(self.buffer.area);
        if area.width < 2 || area.height < 2 {
            return;
        }
        let [level, upright, corners] = match self.look.unicode {
            true => ["─", "│", "┌┐└┘"],
            false => ["-", "|", "++++"],
        };
        let corners: Vec<char> = corners.chars().collect();
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                let (left, right) = (x == area.left(), x + 1 == area.right());
                let (top, bottom) = (y == area.top(), y + 1 == area.bottom());
                let mut one = [0; 4];
                let symbol: &str = match (left, right, top, bottom) {
                    (true, _, true, _) => corners[0].encode_utf8(&mut one),
                    (_, true, true, _) => corners[1].encode_utf8(&mut one),
                    (true, _, _, true) => corners[2].encode_utf8(&mut one),
                    (_, true, _, true) => corners[3].encode_utf8(&mut one),
                    (_, _, true, _) | (_, _, _, true) => level,
                    (true, ..) | (_, true, ..) => upright,
                    _ => " ",
                };
                let cell = &mut self.buffer[(x, y)];
                cell.reset();
                cell.set_symbol(symbol);
            }
        }
        self.text(area.x + 2, area.y, area.width.saturating_sub(4), &format!(" {title} "), Tone::Strong);
    }

    /// The style of cells that have one already, changed.
    pub(super) fn add(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area, style);
    }
}

/// Words in lines of at most `width` characters; a word that is longer is cut.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = lines.last().map_or(0, |line| line.chars().count());
            let room = if used == 0 { width } else { width.saturating_sub(used + 1) };
            if word.len() <= room {
                let line = lines.last_mut().filter(|line| !line.is_empty());
                match line {
                    Some(line) => line.extend(std::iter::once(' ').chain(word)),
                    None => *lines.last_mut().unwrap_or(&mut String::new()) = word.into_iter().collect(),
                }
                break;
            }
            if used == 0 {
                let rest = word.split_off(width);
                *lines.last_mut().unwrap_or(&mut String::new()) = word.into_iter().collect();
                word = rest;
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_long_words_are_cut() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("a 123456789 b", 4), ["a", "1234", "5678", "9 b"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
