//! The order of groups: as a tree, each below the one that holds it, or by a figure.

use std::cmp::Ordering;

use units::group_path;

use super::cell::{Row, Value};

/// The group above, by name; `None` above the first part.
pub fn parent(group: &str) -> Option<&str> {
    group_path::parent(group).filter(|above| !above.is_empty())
}

/// Is it this group or below it? `/` holds all that is named from the root.
fn is_within(group: &str, top: &str) -> bool {
    match top {
        "/" => true,
        top => group_path::is_at_or_below(group, top),
    }
}

/// Is it one of these groups or below one of them? Without any, every group is.
pub fn is_shown(group: &str, tops: &[String]) -> bool {
    tops.is_empty() || tops.iter().any(|top| is_within(group, top))
}

/// Each behind its parent, parts compared one by one: `db`, `db/oltp`, `db-2`.
pub fn by_tree(rows: &mut [Row]) {
    rows.sort_by(|one, other| one.group.split('/').cmp(other.group.split('/')));
    let names: Vec<String> = rows.iter().map(|row| row.group.clone()).collect();
    let mut open: Vec<&str> = Vec::new();
    for (row, name) in rows.iter_mut().zip(&names) {
        while open.last().is_some_and(|top| !group_path::is_below(name, top)) {
            open.pop();
        }
        row.depth = open.len();
        let begin = open.last().map_or(0, |top| top.len() + 1);
        row.label = name[begin..].to_owned();
        open.push(name);
    }
}

/// The largest first, what has no value last; else as before.
pub fn by_figure(rows: &mut [Row], column: usize) {
    let figure = |row: &Row| row.values.get(column).copied().unwrap_or(Value::Missing);
    rows.sort_by(|one, other| match (figure(one).number(), figure(other).number()) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    for row in rows {
        row.depth = 0;
        row.label.clone_from(&row.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(groups: &[(&str, Value)]) -> Vec<Row> {
        let row = |(group, value): &(&str, Value)| Row {
            group: (*group).to_owned(),
            label: String::new(),
            depth: 7,
            values: vec![*value],
        };
        groups.iter().map(row).collect()
    }

    #[test]
    fn groups_stand_below_those_that_hold_them() {
        let names = ["/", "db", "db-2", "db/oltp", "db/oltp/1", "web/a/b", "/a", "/a/b"];
        let mut rows = rows(&names.map(|name| (name, Value::Missing)));
        by_tree(&mut rows);
        let shown: Vec<(usize, &str)> = rows.iter().map(|row| (row.depth, row.label.as_str())).collect();
        let expected =
            [(0, "/"), (0, "/a"), (1, "b"), (0, "db"), (1, "oltp"), (2, "1"), (0, "db-2"), (0, "web/a/b")];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_largest_comes_first_and_what_has_no_value_last() {
        let of = [("a", Value::Missing), ("b", Value::At(1.0)), ("c/d", Value::Max), ("e", Value::Whole(5))];
        let mut rows = rows(&of);
        by_figure(&mut rows, 0);
        let shown: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(shown, ["c/d", "e", "b", "a"]);
    }

    #[test]
    fn a_group_holds_itself_and_what_is_below() {
        for (group, top, expected) in [
            ("db", "db", true),
            ("db/a", "db", true),
            ("db-2", "db", false),
            ("x", "/", true),
            ("db", "db/a", false),
        ] {
            assert_eq!(is_within(group, top), expected, "{group} in {top}");
        }
    }
}
