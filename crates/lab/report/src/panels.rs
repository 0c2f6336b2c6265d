//! Panels with steps over time, for what is no experiment.

/// The page's contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Panels {
    /// Its heading.
    pub title: String,
    /// What is drawn.
    pub about: String,
    /// The values' unit.
    pub unit: String,
    /// A table as text, in columns.
    pub table: String,
    /// One below the other, all with the same scale.
    pub panels: Vec<Panel>,
}

/// A panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Above it.
    pub heading: String,
    /// The end of its time axis, from 0.
    pub seconds: f64,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line that stays at each value until the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name; lines of one name have one colour in all panels.
    pub name: String,
    /// Seconds and values, ascending.
    pub steps: Vec<(f64, f64)>,
    /// Beside it, dotted in the same colour.
    pub beside: Vec<(f64, f64)>,
}
