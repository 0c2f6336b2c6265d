//! How wide a label is in the report's own font, and labels made to fit. The font is Roboto (fonts/README.md): the
//! page carries it, so what fits here fits there. Other scripts are counted as wide as they may get.

use std::sync::OnceLock;

use ttf_parser::Face;

/// The font, as it is carried along.
pub const REGULAR: &[u8] = include_bytes!("../../fonts/Roboto-Regular.ttf");
/// Its heavy sort.
pub const BOLD: &[u8] = include_bytes!("../../fonts/Roboto-Bold.ttf");

/// The font, read.
fn face(bold: bool) -> &'static Face<'static> {
    static FACES: OnceLock<[Face<'static>; 2]> = OnceLock::new();
    let faces = FACES.get_or_init(|| {
        [REGULAR, BOLD]
            .map(|bytes| Face::parse(bytes, 0).expect("the fonts are built in, and every test reads them"))
    });
    &faces[usize::from(bold)]
}

/// In CSS pixels.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let face = face(bold);
    let em = f64::from(face.units_per_em());
    let advance =
        |character| match face.glyph_index(character).and_then(|glyph| face.glyph_hor_advance(glyph)) {
            Some(units) => f64::from(units) / em,
            None => 1.05, // of another font: CJK is one em wide
        };
    text.chars().map(advance).sum::<f64>() * size
}

/// Cut to fit, with an ellipsis. Control characters are shown as spaces: they would end a label's line.
pub fn fit(text: &str, room: f64, size: f64, bold: bool) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if width(&clean, size, bold) <= room {
        return clean;
    }
    let mut shortened: Vec<char> = Vec::new();
    let mut taken = width("…", size, bold);
    for character in clean.chars() {
        taken += width(character.encode_utf8(&mut [0; 4]), size, bold);
        if taken > room {
            break;
        }
        shortened.push(character);
    }
    shortened.into_iter().collect::<String>().trim_end().to_owned() + "…"
}

/// In lines that fit, broken at spaces; the last of `most` lines is cut if it must be.
pub fn wrap(text: &str, room: f64, most: usize, size: f64, bold: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut line = word.to_owned();
        let last = lines.len() + 1 >= most;
        while let Some(next) = words.peek() {
            let longer = format!("{line} {next}");
            if !last && width(&longer, size, bold) > room {
                break;
            }
            line = longer;
            words.next();
        }
        lines.push(fit(&line, room, size, bold));
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_and_broken_to_fit() {
        let long = "a very long name of a condition that nobody can read ".repeat(20);
        for room in [40.0, 100.0, 333.0] {
            assert!(width(&fit(&long, room, 13.0, false), 13.0, false) <= room);
            let lines = wrap(&long, room, 3, 12.0, true);
            assert!(
                lines.len() == 3 && lines.iter().all(|line| width(line, 12.0, true) <= room),
                "{lines:?}"
            );
        }
        assert_eq!(wrap("all CPUs", 300.0, 2, 13.0, false), ["all CPUs"]);
        assert_eq!(fit("a\nb\u{7}c", 100.0, 13.0, false), "a b c");
    }
}
