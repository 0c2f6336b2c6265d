//! Rows of text in columns that line up.

/// Where a column's text stands.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// A table with a head; the last column is never padded.
pub(super) struct Table {
    columns: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[(&str, Side)]) -> Self {
        Table {
            columns: head.iter().map(|(_, side)| *side).collect(),
            rows: vec![head.iter().map(|(name, _)| (*name).to_owned()).collect()],
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, two blanks between columns, none at a line's end.
    pub fn print(&self) -> String {
        let length = |cell: &String| cell.chars().count();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or(0))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, side), width) in row.iter().zip(&self.columns).zip(&widths) {
                match side {
                    Side::Left => line += &format!("{cell:<width$}  "),
                    Side::Right => line += &format!("{cell:>width$}  "),
                }
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}
