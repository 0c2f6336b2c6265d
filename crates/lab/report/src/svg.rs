//! A scene as SVG: inside the page, where its style sheet colours it, or as a file of its own with its colours by day
//! and night. Everything that comes from a user is escaped.

use std::fmt::Write as _;

use crate::chart::palette;
use crate::chart::scene::{Anchor, Ink, Mark, Scene, Shape, Stroke};

/// For the page: without colours of its own.
pub fn inline(scene: &Scene) -> String {
    let mut out = opening(scene, "");
    body(scene, &mut out);
    out
}

/// A file: with its colours, and paper below it.
pub fn file(scene: &Scene) -> String {
    let mut out = opening(scene, r#" xmlns="http://www.w3.org/2000/svg""#);
    let _ = write!(
        out,
        "<style>svg{{{}}}@media (prefers-color-scheme:dark){{svg{{{}}}}}{}</style><rect width=\"100%\" \
         height=\"100%\" class=\"f-surface\"/>",
        palette::properties(false),
        palette::properties(true),
        classes()
    );
    body(scene, &mut out);
    out
}

/// What the classes of marks look like, given the palette's properties.
pub fn classes() -> String {
    let mut out = String::from("text{font-family:Roboto,system-ui,sans-serif}path{fill:none}");
    for ink in palette::all() {
        let name = palette::name(ink);
        let _ = write!(out, ".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}");
    }
    out
}

fn opening(scene: &Scene, attributes: &str) -> String {
    let (width, height) = (place(scene.width), place(scene.height));
    let title = escape(&scene.title);
    format!(
        r#"<svg{attributes} viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}">"#
    )
}

fn body(scene: &Scene, out: &mut String) {
    for mark in &scene.marks {
        write_mark(mark, out);
    }
    out.push_str("</svg>");
}

fn write_mark(mark: &Mark, out: &mut String) {
    let name = match &mark.shape {
        Shape::Rect { area, fill, opacity } => {
            let (x, y) = (place(area.x), place(area.y));
            let (width, height) = (place(area.width), place(area.height));
            let _ = write!(
                out,
                r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{}""#,
                fill_of(*fill)
            );
            if *opacity < 1.0 {
                let _ = write!(out, r#" opacity="{}""#, place(*opacity));
            }
            "rect"
        }
        Shape::Path { points, stroke } => {
            out.push_str(r#"<path d=""#);
            for (index, (x, y)) in points.iter().enumerate() {
                let _ = write!(out, "{}{} {}", if index == 0 { "M" } else { "L" }, place(*x), place(*y));
            }
            let _ =
                write!(out, r#"" class="{}" stroke-width="{}""#, stroke_of(stroke.ink), place(stroke.width));
            out.push_str(&dashes(stroke));
            "path"
        }
        Shape::Dot { at, radius, fill, edge } => {
            let inside = fill.map_or_else(|| "n".to_owned(), fill_of);
            let _ = write!(
                out,
                r#"<circle cx="{}" cy="{}" r="{}" class="{inside} {}"{}"#,
                place(at.0),
                place(at.1),
                place(*radius),
                stroke_of(*edge),
                if fill.is_none() { r#" fill="none""# } else { "" }
            );
            "circle"
        }
        Shape::Text { at, anchor, size, bold, ink, text } => {
            let _ = write!(
                out,
                r#"<text x="{}" y="{}" font-size="{}" class="{}""#,
                place(at.0),
                place(at.1),
                place(*size),
                fill_of(*ink)
            );
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => out.push_str(r#" text-anchor="middle""#),
                Anchor::End => out.push_str(r#" text-anchor="end""#),
            }
            if *bold {
                out.push_str(r#" font-weight="700""#);
            }
            let _ = write!(out, ">{}", escape(text));
            close(out, "text", mark.tip.as_deref(), true);
            return;
        }
    };
    close(out, name, mark.tip.as_deref(), false);
}

fn close(out: &mut String, name: &str, tip: Option<&str>, opened: bool) {
    match tip {
        None if !opened => out.push_str("/>"),
        _ => {
            if !opened {
                out.push('>');
            }
            if let Some(tip) = tip {
                let _ = write!(out, "<title>{}</title>", escape(tip));
            }
            let _ = write!(out, "</{name}>");
        }
    }
}

fn dashes(stroke: &Stroke) -> String {
    let lengths: Vec<String> = stroke.dash.lengths().iter().map(f32::to_string).collect();
    if lengths.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{}""#, lengths.join(" ")) }
}

fn fill_of(ink: Ink) -> String {
    format!("f-{}", palette::name(ink))
}

fn stroke_of(ink: Ink) -> String {
    format!("s-{}", palette::name(ink))
}

/// Hundredths of a pixel are enough, and a negative zero is a zero.
fn place(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// For XML's text and attributes; characters that XML can't hold are left out.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => out.push(character),
        }
    }
    out
}
