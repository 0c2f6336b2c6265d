//! A scene as SVG: inside the page, where its style sheet colours it, or as a file of its own with its colours by day
//! and night. How elements are written is `topology::svg`'s.

use std::fmt::Write as _;

use topology::svg::{Element, Length, Svg};

use crate::chart::palette;
use crate::chart::scene::{Anchor, Ink, Mark, Scene, Shape, Stroke};

/// For the page: without colours of its own.
pub fn inline(scene: &Scene) -> String {
    let mut svg = Svg::new();
    root(&mut svg, scene, false).around(|svg| scene.marks.iter().for_each(|mark| write_mark(svg, mark)));
    svg.finish()
}

/// A file: with its colours, and paper below it.
pub fn file(scene: &Scene) -> String {
    let mut svg = Svg::new();
    root(&mut svg, scene, true).around(|svg| {
        let (day, night) = (palette::properties(false), palette::properties(true));
        let dark = format!("@media (prefers-color-scheme:dark){{svg{{{night}}}}}");
        svg.style(&format!("svg{{{day}}}{dark}{}", classes()));
        let paper = svg.element("rect").with("width", "100%").with("height", "100%");
        paper.with("class", "f-surface").empty();
        scene.marks.iter().for_each(|mark| write_mark(svg, mark));
    });
    svg.finish()
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

fn root<'s>(svg: &'s mut Svg, scene: &Scene, is_file: bool) -> Element<'s> {
    let (width, height) = (Length(scene.width), Length(scene.height));
    let svg = svg.element("svg");
    let svg = if is_file { svg.with("xmlns", "http://www.w3.org/2000/svg") } else { svg };
    svg.with("viewBox", format_args!("0 0 {width} {height}"))
        .with("width", width)
        .with("height", height)
        .with("role", "img")
        .with("aria-label", &scene.title)
}

fn write_mark(svg: &mut Svg, mark: &Mark) {
    let tip = mark.tip.as_deref();
    match &mark.shape {
        Shape::Rect { area, fill, opacity } => {
            let rect = svg.element("rect").with("x", Length(area.x)).with("y", Length(area.y));
            let rect = rect.with("width", Length(area.width)).with("height", Length(area.height));
            let rect = rect.with("class", fill_of(*fill));
            if *opacity < 1.0 { rect.with("opacity", Length(*opacity)).tip(tip) } else { rect.tip(tip) }
        }
        Shape::Path { points, stroke } => {
            let mut line = String::new();
            for (index, (x, y)) in points.iter().enumerate() {
                let step = if index == 0 { 'M' } else { 'L' };
                let _ = write!(line, "{step}{} {}", Length(*x), Length(*y)); // a String takes everything
            }
            let path = svg.element("path").with("d", line).with("class", stroke_of(stroke.ink));
            dashed(path.with("stroke-width", Length(stroke.width)), stroke).tip(tip);
        }
        Shape::Dot { at, radius, fill, edge } => {
            let inside = fill.map_or_else(|| "n".to_owned(), fill_of);
            let dot = svg.element("circle").with("cx", Length(at.0)).with("cy", Length(at.1));
            let dot = dot.with("r", Length(*radius));
            let dot = dot.with("class", format_args!("{inside} {}", stroke_of(*edge)));
            if fill.is_none() { dot.with("fill", "none").tip(tip) } else { dot.tip(tip) }
        }
        Shape::Text { at, anchor, size, bold, ink, text } => {
            let label = svg.element("text").with("x", Length(at.0)).with("y", Length(at.1));
            let label = label.with("font-size", Length(*size)).with("class", fill_of(*ink));
            let label = match anchor {
                Anchor::Start => label,
                Anchor::Middle => label.with("text-anchor", "middle"),
                Anchor::End => label.with("text-anchor", "end"),
            };
            let label = if *bold { label.with("font-weight", "700") } else { label };
            label.around(|svg| {
                svg.text(text);
                tip.into_iter().for_each(|tip| svg.element("title").text(tip));
            });
        }
    }
}

fn dashed<'s>(path: Element<'s>, stroke: &Stroke) -> Element<'s> {
    let lengths: Vec<String> = stroke.dash.lengths().iter().map(f32::to_string).collect();
    if lengths.is_empty() { path } else { path.with("stroke-dasharray", lengths.join(" ")) }
}

fn fill_of(ink: Ink) -> String {
    format!("f-{}", palette::name(ink))
}

fn stroke_of(ink: Ink) -> String {
    format!("s-{}", palette::name(ink))
}
