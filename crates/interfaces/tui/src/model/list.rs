//! A place in a list, and the part of the list that is seen around it.

/// The selected line of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct List {
    pub selected: usize,
}

impl List {
    /// Goes on by some lines or back, not beyond the ends of a list of `length`.
    pub(crate) fn go(&mut self, by: isize, length: usize) {
        self.selected = self.selected.saturating_add_signed(by).min(length.saturating_sub(1));
    }

    /// The first of `height` lines of `length` that are seen: the selected one is among them, in the middle where the
    /// list goes on at both ends.
    pub(crate) fn first(&self, height: usize, length: usize) -> usize {
        self.selected.saturating_sub(height / 2).min(length.saturating_sub(height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_line_is_always_seen() {
        let mut list = List::default();
        for (by, selected, first) in
            [(0, 0, 0), (3, 3, 0), (4, 7, 2), (100, 19, 10), (-1, 18, 10), (-99, 0, 0)]
        {
            list.go(by, 20);
            assert_eq!((list.selected, list.first(10, 20)), (selected, first), "{by}");
        }
        list.go(5, 0);
        assert_eq!((list.selected, list.first(10, 0)), (0, 0));
    }
}
