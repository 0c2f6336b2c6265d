//! The groups as they are listed: as a tree with folded parts, or as a list by a figure; those that match a filter.

use std::collections::HashSet;

use exporters::view::{Heading, Picture, Row};

use super::list::List;

/// The groups of the last picture, and which of them are seen.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    picture: Option<Picture>,
    /// Sorted by a figure, instead of the picture's rows.
    sorted: Option<Vec<Row>>,
    seen: Vec<VisibleRow>,
    /// The selected group, which may move.
    selected: Option<String>,
    list: List,
    pub filter: String,
    pub sort: Option<String>,
    folded: HashSet<String>,
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VisibleRow {
    /// Its place among the rows.
    row: usize,
    /// Has it groups below it?
    pub is_parent: bool,
    /// Are those hidden?
    pub is_folded: bool,
    /// Is it here only because a group below it matches the filter?
    pub is_context: bool,
}

impl Tree {
    /// A new picture: what is selected stays selected while it is there.
    pub(crate) fn take(&mut self, picture: Picture) {
        self.picture = Some(picture);
        self.arrange();
    }

    /// The rows again, after a change of order, filter or folds.
    pub(crate) fn arrange(&mut self) {
        let Some(picture) = &self.picture else { return };
        self.sorted = self.sort.as_ref().and_then(|by| {
            let mut sorted = picture.clone();
            sorted.sort_by(by).then_some(sorted.rows)
        });
        let rows = self.sorted.as_ref().unwrap_or(&picture.rows);
        self.seen = match (self.filter.is_empty(), self.sorted.is_some()) {
            (true, true) => (0..rows.len()).map(VisibleRow::plain).collect(),
            (true, false) => unfolded(rows, &self.folded),
            (false, true) => (0..rows.len())
                .filter(|row| matches(&rows[*row], &self.filter))
                .map(VisibleRow::plain)
                .collect(),
            (false, false) => filtered(rows, &self.filter),
        };
        let place = self
            .selected
            .as_ref()
            .and_then(|selected| self.seen.iter().position(|seen| rows[seen.row].group == *selected));
        match place {
            Some(place) => self.list.selected = place,
            None => self.list.go(0, self.seen.len()),
        }
        self.selected = self.seen.get(self.list.selected).map(|seen| rows[seen.row].group.clone());
    }

    pub(crate) fn headings(&self) -> &[Heading] {
        self.picture.as_ref().map_or(&[], |picture| &picture.headings)
    }

    fn rows(&self) -> &[Row] {
        let rows = || self.picture.as_ref().map(|picture| &picture.rows);
        self.sorted.as_ref().or_else(rows).map_or(&[], |rows| rows)
    }

    /// The visible lines, at most `height`, from the first: each with its place, and whether it is selected.
    pub(crate) fn lines(&self, height: usize) -> impl Iterator<Item = (&VisibleRow, &Row, bool)> {
        let rows = self.rows();
        let first = self.list.first(height, self.seen.len());
        let seen = self.seen.iter().enumerate().skip(first).take(height);
        seen.map(move |(place, seen)| (seen, &rows[seen.row], place == self.list.selected))
    }

    pub(crate) fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// Which line of how many is selected, from 1.
    pub(crate) fn place(&self) -> (usize, usize) {
        ((self.list.selected + 1).min(self.seen.len()), self.seen.len())
    }

    /// How many groups there are.
    pub(crate) fn count(&self) -> usize {
        self.rows().len()
    }

    pub(crate) fn row(&self, group: &str) -> Option<(&[Heading], &Row)> {
        let row = self.rows().iter().find(|row| row.group == group)?;
        Some((self.headings(), row))
    }

    pub(crate) fn go(&mut self, by: isize) {
        self.list.go(by, self.seen.len());
        self.selected = self.seen.get(self.list.selected).map(|seen| self.rows()[seen.row].group.clone());
    }

    /// Hides what is below the selected group, shows it, or (`None`) the other of both. Hiding where there is nothing
    /// to hide goes to the group above, as other trees have it.
    pub(crate) fn fold(&mut self, fold: Option<bool>) {
        let Some(shown) = self.seen.get(self.list.selected).copied() else { return };
        let row = &self.rows()[shown.row];
        let (group, depth) = (row.group.clone(), row.depth);
        let (fold, may_leave) = fold.map_or((!shown.is_folded, false), |fold| (fold, true));
        if shown.is_parent && fold != shown.is_folded {
            match fold {
                true => _ = self.folded.insert(group),
                false => _ = self.folded.remove(&group),
            }
        } else if fold && may_leave && depth > 0 {
            let above =
                self.seen[..self.list.selected].iter().rev().find(|seen| self.rows()[seen.row].depth < depth);
            self.selected = above.map(|above| self.rows()[above.row].group.clone());
        }
        self.arrange();
    }

    pub(crate) fn is_tree(&self) -> bool {
        self.sorted.is_none()
    }
}

impl VisibleRow {
    fn plain(row: usize) -> VisibleRow {
        VisibleRow { row, is_parent: false, is_folded: false, is_context: false }
    }
}

fn matches(row: &Row, filter: &str) -> bool {
    row.group.to_lowercase().contains(&filter.to_lowercase())
}

fn is_parent(rows: &[Row], row: usize) -> bool {
    rows.get(row + 1).is_some_and(|next| next.depth > rows[row].depth)
}

fn unfolded(rows: &[Row], folded: &HashSet<String>) -> Vec<VisibleRow> {
    let mut seen = Vec::new();
    // deeper rows are hidden
    let mut hidden_below = None;
    for (row, of) in rows.iter().enumerate() {
        if hidden_below.is_some_and(|depth| of.depth > depth) {
            continue;
        }
        let is_folded = folded.contains(&of.group);
        hidden_below = is_folded.then_some(of.depth);
        seen.push(VisibleRow { row, is_parent: is_parent(rows, row), is_folded, is_context: false });
    }
    seen
}

/// What matches, and the groups above it so that the tree is one.
fn filtered(rows: &[Row], filter: &str) -> Vec<VisibleRow> {
    let mut seen = Vec::new();
    // from the end: the next row that is above what was found
    let mut wanted = None;
    for (row, of) in rows.iter().enumerate().rev() {
        let does_match = matches(of, filter);
        let is_above = wanted.is_some_and(|depth| of.depth < depth);
        if does_match || is_above {
            wanted = Some(of.depth);
            seen.push(VisibleRow {
                row,
                is_parent: is_parent(rows, row),
                is_folded: false,
                is_context: !does_match,
            });
        }
    }
    seen.reverse();
    seen
}
