//! A scene as PNG, by day, at twice its size: for slides and mails. Draws marks one by one; decides nothing.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use crate::Error;
use crate::chart::palette;
use crate::chart::scene::{Ink, Mark, Scene, Shape};
use crate::chart::text;

/// Dots of the picture per CSS pixel.
const SCALE: f32 = 2.0;

/// The picture's bytes.
///
/// # Errors
/// [`Error::Picture`] if it has no size that a picture can have.
pub fn file(scene: &Scene) -> Result<Vec<u8>, Error> {
    let refused = |reason: String| Error::Picture { title: scene.title.clone(), reason };
    let (width, height) = (dots(scene.width), dots(scene.height));
    let mut picture =
        Pixmap::new(width, height).ok_or_else(|| refused(format!("{width} x {height} is not a size")))?;
    let [red, green, blue] = palette::colour(Ink::Surface, false);
    picture.fill(Color::from_rgba8(red, green, blue, 255));
    for mark in &scene.marks {
        draw(mark, &mut picture);
    }
    picture.encode_png().map_err(|reason| refused(reason.to_string()))
}

fn dots(length: f64) -> u32 {
    (length as f32 * SCALE).ceil() as u32
}

fn draw(mark: &Mark, picture: &mut Pixmap) {
    let scale = Transform::from_scale(SCALE, SCALE);
    match &mark.shape {
        Shape::Rect { area, fill, opacity } => {
            let rect = Rect::from_xywh(area.x as f32, area.y as f32, area.width as f32, area.height as f32);
            if let Some(rect) = rect {
                picture.fill_rect(rect, &paint(*fill, *opacity), scale, None);
            }
        }
        Shape::Path { points, stroke } => {
            if let Some(path) = through(points) {
                let dash = StrokeDash::new(stroke.dash.lengths().to_vec(), 0.0);
                let pen = Stroke {
                    width: stroke.width as f32,
                    line_cap: LineCap::Butt,
                    line_join: LineJoin::Round,
                    dash,
                    ..Stroke::default()
                };
                picture.stroke_path(&path, &paint(stroke.ink, 1.0), &pen, scale, None);
            }
        }
        Shape::Dot { at, radius, fill, edge } => {
            let circle = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
            if let Some(circle) = circle {
                if let Some(fill) = fill {
                    picture.fill_path(&circle, &paint(*fill, 1.0), FillRule::Winding, scale, None);
                }
                picture.stroke_path(&circle, &paint(*edge, 1.0), &Stroke::default(), scale, None);
            }
        }
        Shape::Text { bold, size, ink, text, at, .. } => {
            let start = (mark.extent().x as f32, at.1 as f32);
            if let Some(path) = outlines(text, *bold, *size as f32, start) {
                picture.fill_path(&path, &paint(*ink, 1.0), FillRule::Winding, scale, None);
            }
        }
    }
}

fn paint(ink: Ink, opacity: f64) -> Paint<'static> {
    let [red, green, blue] = palette::colour(ink, false);
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    paint
}

fn through(points: &[(f64, f64)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        if index == 0 { path.move_to(*x as f32, *y as f32) } else { path.line_to(*x as f32, *y as f32) }
    }
    path.finish()
}

/// The text's letters; one that the font lacks is its empty box.
fn outlines(text: &str, bold: bool, size: f32, start: (f32, f32)) -> Option<Path> {
    let face = text::face(bold);
    let mut pen = Pen {
        path: PathBuilder::new(),
        x: start.0,
        y: start.1,
        scale: size / f32::from(face.units_per_em()),
    };
    for character in text.chars() {
        let glyph = face.glyph_index(character).unwrap_or_default();
        face.outline_glyph(glyph, &mut pen);
        pen.x += text::width(character.encode_utf8(&mut [0; 4]), f64::from(size), bold) as f32;
    }
    pen.path.finish()
}

/// Puts outlines where the text stands; fonts count upwards, pictures downwards.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
