//! Bars of a share and curves of the last samples, as text that reads without colours.

use super::look::{Look, Tone};

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const HEIGHTS_IN_ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// A bar of `width` characters; what it does not fill is dots.
pub(super) fn bar(share: Option<f64>, width: usize, look: Look) -> String {
    let Some(share) = share.filter(|share| share.is_finite()) else { return " ".repeat(width) };
    let share = share.clamp(0.0, 1.0);
    let (full, empty) = if look.unicode { ('█', '·') } else { ('#', '.') };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let (whole, part) = (eighths / 8, eighths % 8);
    let mut text: String = std::iter::repeat_n(full, whole).collect();
    match part {
        0 => {}
        part if look.unicode => text.push(EIGHTHS[part]),
        part if part >= 4 => text.push(full),
        _ => {}
    }
    let drawn = text.chars().count();
    // something is not nothing
    if drawn == 0 && share > 0.0 && width > 0 {
        text.push(if look.unicode { '▏' } else { ':' });
    }
    let drawn = text.chars().count();
    text.extend(std::iter::repeat_n(empty, width.saturating_sub(drawn)));
    text
}

/// How full it is.
pub(super) fn tone(share: Option<f64>) -> Tone {
    match share {
        Some(share) if share >= 0.9 => Tone::Full,
        Some(share) if share >= 0.7 => Tone::Near,
        Some(_) => Tone::Low,
        None => Tone::Plain,
    }
}

/// The last values, the newest at the right; heights are parts of `top`, or of the largest where that is more.
pub(super) fn curve<'v>(
    values: impl DoubleEndedIterator<Item = &'v Option<f32>> + Clone,
    width: usize,
    top: Option<f64>,
    look: Look,
) -> String {
    let heights = if look.unicode { HEIGHTS } else { HEIGHTS_IN_ASCII };
    let last = values.rev().take(width);
    let most = last.clone().flatten().fold(0.0_f32, |most, value| most.max(*value));
    let top = top.map_or(most, |top| (top as f32).max(most));
    let mut text: Vec<char> = last
        .map(|value| match value {
            Some(value) if top > 0.0 => heights[((value / top * 7.0).ceil() as usize).min(7)],
            Some(_) => heights[0],
            None => ' ',
        })
        .collect();
    text.resize(width, ' ');
    text.iter().rev().collect()
}

/// One character for a share.
pub(super) fn height(share: f64, look: Look) -> char {
    let heights = if look.unicode { HEIGHTS } else { HEIGHTS_IN_ASCII };
    heights[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Look = Look { colour: false, unicode: false };
    const BLOCKS: Look = Look { colour: false, unicode: true };

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        for (share, text, blocks) in [
            (Some(0.0), "....", "····"),
            (Some(0.01), ":...", "▏···"),
            (Some(0.5), "##..", "██··"),
            (Some(0.6), "##..", "██▍·"),
            (Some(1.0), "####", "████"),
            (Some(7.0), "####", "████"),
            (Some(f64::NAN), "    ", "    "),
            (None, "    ", "    "),
        ] {
            assert_eq!(bar(share, 4, TEXT), text, "{share:?}");
            assert_eq!(bar(share, 4, BLOCKS), blocks, "{share:?}");
        }
    }

    #[test]
    fn a_curve_ends_with_the_newest_value_and_has_gaps_where_nothing_was_told() {
        let values = [Some(9.0), Some(0.0), None, Some(0.5), Some(1.0)];
        assert_eq!(curve(values.iter(), 4, Some(1.0), BLOCKS), "▁ ▅█");
        assert_eq!(curve(values.iter(), 7, Some(1.0), TEXT), "  #_ ..");
        assert_eq!(curve([Some(0.0)].iter(), 2, None, TEXT), " _");
    }
}
