//! The path of a group below a hierarchy's mount point: names joined by `/`, and `""` for the root group.

/// The group above; `None` for the root.
pub fn parent(path: &str) -> Option<&str> {
    if path.is_empty() { None } else { Some(path.rsplit_once('/').map_or("", |(parent, _)| parent)) }
}

/// The groups above, the nearest first, the root last; none for the root.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(parent(path), |path| parent(path))
}

/// A path from its parent on: the group's own name. `""` for the root.
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The names that it consists of, the outermost first; none for the root.
pub fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// It and the groups above, itself first, without the root.
pub fn branch(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| parent(path)).filter(|path| !path.is_empty())
}

/// The group of that path, or name, in another group.
pub fn join(group: &str, below: &str) -> String {
    match (group, below) {
        ("", path) | (path, "") => path.to_owned(),
        (group, below) => format!("{group}/{below}"),
    }
}

/// Is it in that group, at any depth?
pub fn is_below(path: &str, above: &str) -> bool {
    path != above && is_at_or_below(path, above)
}

/// Is it that group, or in it at any depth?
pub fn is_at_or_below(path: &str, above: &str) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_end_with_the_root() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(ancestors("a").collect::<Vec<_>>(), [""]);
        assert_eq!(ancestors("").count(), 0);
        assert_eq!(branch("a/b/c").collect::<Vec<_>>(), ["a/b/c", "a/b", "a"]);
        assert_eq!(branch("").count(), 0);
        assert_eq!(names("a/b/c").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(names("").count(), 0);
    }

    #[test]
    fn a_path_is_the_join_of_its_parent_and_its_name() {
        for path in ["a/b/c", "a/b", "a"] {
            assert_eq!(join(parent(path).unwrap(), name(path)), path);
        }
        assert_eq!(join("a/b", ""), "a/b");
        assert_eq!(join("", ""), "");
    }

    #[test]
    fn all_groups_are_below_the_root_and_names_that_begin_alike_are_not_below_each_other() {
        for (path, above) in [("a", ""), ("a/b", ""), ("a/b/c", "a"), ("a/b", "a")] {
            assert!(is_below(path, above) && is_at_or_below(path, above), "{path} in {above:?}");
        }
        for path in ["", "a", "a/b"] {
            assert!(!is_below(path, path) && is_at_or_below(path, path), "{path}");
        }
        for (path, above) in [("ab", "a"), ("a", "a/b"), ("", "a"), ("b/a", "a")] {
            assert!(!is_below(path, above) && !is_at_or_below(path, above), "{path} in {above:?}");
        }
    }
}
