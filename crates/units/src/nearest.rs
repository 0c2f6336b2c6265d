//! The known names nearest to a mistyped one, for error messages.

use std::cmp::Reverse;

/// Up to three of `known` that are near `given`, nearest first: few edits apart, or one holding the other.
/// Empty when nothing is near enough to be meant.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let given = given.to_ascii_lowercase();
    let mut near: Vec<(usize, Reverse<usize>, &str)> = known
        .into_iter()
        .filter_map(|name| {
            // a short name is part of many longer words
            let within = 2 * name.len() >= given.len() && given.contains(name);
            let holds = given.len() >= 3 && (name.contains(&given) || within);
            let allowed = (given.len() / 3).max(1);
            // an edit changes the length by one at most: most names need no closer look
            let near = given.len().abs_diff(name.len()) <= allowed;
            let edits = if near { strsim::osa_distance(&given, name) } else { usize::MAX };
            (edits <= allowed || holds).then_some((
                edits.min(if holds { allowed } else { edits }),
                Reverse(name.len()),
                name,
            ))
        })
        .collect();
    near.sort();
    near.dedup_by_key(|(_, _, name)| *name);
    near.into_iter().take(3).map(|(_, _, name)| name).collect()
}
