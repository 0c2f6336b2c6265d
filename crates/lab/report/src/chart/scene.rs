//! A drawing as data: marks with places in CSS pixels. SVG is made of it, and tests look at it, so that
//! what is checked is what is seen. Knows nothing of experiments.

#[cfg(test)]
use super::text;

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// In CSS pixels.
    pub width: f64,
    /// In CSS pixels.
    pub height: f64,
    /// What it says, for who can't see it.
    pub title: String,
    /// Where data may be.
    pub plots: Vec<Area>,
    /// From back to front.
    pub marks: Vec<Mark>,
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// Left.
    pub x: f64,
    /// Top.
    pub y: f64,
    /// Not negative.
    pub width: f64,
    /// Not negative.
    pub height: f64,
}

impl Area {
    /// Its right end.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Its lower end.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    #[cfg(test)]
    /// Whether the other lies in it; rounding to hundredths is forgiven.
    pub fn holds(&self, other: &Area) -> bool {
        other.x >= self.x - 0.02
            && other.y >= self.y - 0.02
            && other.right() <= self.right() + 0.02
            && other.bottom() <= self.bottom() + 0.02
    }

    #[cfg(test)]
    /// Whether both have a point in common.
    pub fn meets(&self, other: &Area) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }
}

/// A colour by what it stands for; the palette knows how it looks by day and night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// What is read.
    Text,
    /// What is read second.
    Muted,
    /// Lines behind the data.
    Grid,
    /// The paper.
    Surface,
    /// A field that is set off from the paper.
    Shade,
    /// What was requested or published.
    Target,
    /// Rejected.
    Rejected,
    /// One of what is compared; taken modulo the palette's number.
    Series(usize),
    /// The same, as a body behind marks.
    Body(usize),
    /// A step of the ramp from little (0) to much ([`Ink::STEPS`] - 1).
    Ramp(usize),
    /// What is read on that step.
    OnRamp(usize),
}

impl Ink {
    /// Steps of the ramp.
    pub const STEPS: usize = 7;
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub ink: Ink,
    /// In CSS pixels.
    pub width: f64,
    /// Its dashes.
    pub dash: Dash,
}

impl Stroke {
    /// Unbroken.
    pub fn solid(ink: Ink, width: f64) -> Stroke {
        Stroke { ink, width, dash: Dash::None }
    }

    /// Dashed.
    pub fn dashed(ink: Ink, width: f64) -> Stroke {
        Stroke { ink, width, dash: Dash::Dashed }
    }
}

/// Dashes, so that colour is never the only difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Unbroken.
    None,
    /// `– –`
    Dashed,
    /// `· ·`
    Dotted,
    /// `– ·`
    Mixed,
}

impl Dash {
    /// Of the nth line of a plot.
    pub fn of(index: usize) -> Dash {
        [Dash::None, Dash::Dashed, Dash::Mixed, Dash::Dotted][index % 4]
    }

    /// On and off lengths in CSS pixels.
    pub fn lengths(self) -> &'static [f32] {
        match self {
            Dash::None => &[],
            Dash::Dashed => &[5.0, 3.0],
            Dash::Dotted => &[1.5, 2.5],
            Dash::Mixed => &[6.0, 2.5, 1.5, 2.5],
        }
    }
}

/// Which side of a text its place is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Left.
    Start,
    /// Its middle.
    Middle,
    /// Right.
    End,
}

/// What a mark is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Grid, axis, legend.
    Furniture,
    /// Stands at a value: always within a plot.
    Data,
}

/// A mark.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its form and place.
    pub shape: Shape,
    /// What it is for.
    pub role: Role,
    /// What the pointer says.
    pub tip: Option<String>,
}

/// Its form and place.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Filled.
    Rect {
        /// Where.
        area: Area,
        /// Of its inside.
        fill: Ink,
        /// From 0 (unseen) to 1.
        opacity: f64,
    },
    /// One line through points.
    Path {
        /// At least two.
        points: Vec<(f64, f64)>,
        /// How.
        stroke: Stroke,
    },
    /// A disc or ring.
    Dot {
        /// Its middle.
        at: (f64, f64),
        /// In CSS pixels.
        radius: f64,
        /// Of its inside; `None`: a ring of the colour.
        fill: Option<Ink>,
        /// Of its edge.
        edge: Ink,
    },
    /// A line of text.
    Text {
        /// The base line's end that `anchor` names.
        at: (f64, f64),
        /// Which end that is.
        anchor: Anchor,
        /// In CSS pixels.
        size: f64,
        /// Heavy.
        bold: bool,
        /// Its colour.
        ink: Ink,
        /// What is written.
        text: String,
    },
}

#[cfg(test)]
impl Mark {
    /// The rectangle that it fills, without the width of its stroke.
    pub fn extent(&self) -> Area {
        match &self.shape {
            Shape::Rect { area, .. } => *area,
            Shape::Path { points, .. } => around(points),
            Shape::Dot { at, .. } => Area { x: at.0, y: at.1, width: 0.0, height: 0.0 },
            Shape::Text { at, anchor, size, bold, text, .. } => {
                let width = text::width(text, *size, *bold);
                let left = match anchor {
                    Anchor::Start => at.0,
                    Anchor::Middle => at.0 - width / 2.0,
                    Anchor::End => at.0 - width,
                };
                Area { x: left, y: at.1 - size * 0.8, width, height: *size }
            }
        }
    }
}

#[cfg(test)]
fn around(points: &[(f64, f64)]) -> Area {
    let (mut left, mut top) = points.first().copied().unwrap_or_default();
    let (mut right, mut bottom) = (left, top);
    for &(x, y) in points {
        (left, right) = (left.min(x), right.max(x));
        (top, bottom) = (top.min(y), bottom.max(y));
    }
    Area { x: left, y: top, width: right - left, height: bottom - top }
}

impl Scene {
    /// An empty one; its height grows with what is added to it.
    pub fn new(width: f64, title: &str) -> Scene {
        Scene { width, height: 0.0, title: title.to_owned(), plots: Vec::new(), marks: Vec::new() }
    }

    /// A filled rectangle.
    pub fn rect(&mut self, area: Area, fill: Ink, opacity: f64) -> &mut Mark {
        self.add(Shape::Rect { area, fill, opacity })
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) -> &mut Mark {
        self.add(Shape::Path { points: vec![from, to], stroke })
    }

    /// A line through points.
    pub fn path(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) -> &mut Mark {
        self.add(Shape::Path { points, stroke })
    }

    /// A disc with an edge of the paper's colour, so that it stands out from what is below it.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, ink: Ink) -> &mut Mark {
        self.add(Shape::Dot { at, radius, fill: Some(ink), edge: Ink::Surface })
    }

    /// A cross of two lines: what does not count.
    pub fn cross(&mut self, at: (f64, f64), half: f64, ink: Ink, tip: Option<String>) {
        let ((x, y), stroke) = (at, Stroke::solid(ink, 1.6));
        let ends =
            [((x - half, y - half), (x + half, y + half)), ((x - half, y + half), (x + half, y - half))];
        for (from, to) in ends {
            let mark = self.line(from, to, stroke);
            mark.tip.clone_from(&tip);
        }
    }

    /// A line of text.
    pub fn text(
        &mut self,
        at: (f64, f64),
        anchor: Anchor,
        style: Style,
        text: impl Into<String>,
    ) -> &mut Mark {
        let Style { size, bold, ink } = style;
        self.add(Shape::Text { at, anchor, size, bold, ink, text: text.into() })
    }

    fn add(&mut self, shape: Shape) -> &mut Mark {
        let index = self.marks.len();
        self.marks.push(Mark { shape, role: Role::Furniture, tip: None });
        &mut self.marks[index]
    }
}

impl Mark {
    /// It stands at a value.
    pub fn data(&mut self) -> &mut Mark {
        self.role = Role::Data;
        self
    }

    /// What the pointer says.
    pub fn tip(&mut self, tip: impl Into<String>) -> &mut Mark {
        self.tip = Some(tip.into());
        self
    }
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// In CSS pixels.
    pub size: f64,
    /// Heavy.
    pub bold: bool,
    /// Its colour.
    pub ink: Ink,
}

/// Names of what is compared.
pub const LABEL: Style = Style { size: 13.0, bold: false, ink: Ink::Text };
/// Values that are read first.
pub const VALUE: Style = Style { size: 13.0, bold: true, ink: Ink::Text };
/// Over a plot.
pub const HEADING: Style = Style { size: 13.0, bold: true, ink: Ink::Text };
/// Numbers along an axis, legends.
pub const SMALL: Style = Style { size: 12.0, bold: false, ink: Ink::Muted };
