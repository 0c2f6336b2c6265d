//! The known names nearest to a mistyped one, for error messages.

/// How a known name resembles the given one, the surest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// It differs in case only.
    Same,
    /// Its last component is the given name: `cpus` and `cpuset.cpus`.
    LastComponent,
    /// It begins or ends with the given name.
    Affix,
    /// A few letters were mistyped.
    Typo,
    /// One contains the other.
    Part,
}

/// At most three of `known` that are near `given`, nearest first, and among equals the shortest.
/// Empty when nothing is near enough to be meant.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let given = given.to_ascii_lowercase();
    let mut near: Vec<(Likeness, usize, usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let (likeness, distance) = likeness(&given, name)?;
            Some((likeness, distance, name.len(), name))
        })
        .collect();
    near.sort();
    near.dedup_by_key(|(_, _, _, name)| *name);
    near.into_iter().take(3).map(|(_, _, _, name)| name).collect()
}

fn likeness(given: &str, name: &str) -> Option<(Likeness, usize)> {
    let lengths = given.len().abs_diff(name.len());
    if given.eq_ignore_ascii_case(name) {
        return Some((Likeness::Same, 0));
    }
    if !given.is_empty() && name.rsplit_once('.').is_some_and(|(_, last)| last == given) {
        return Some((Likeness::LastComponent, lengths));
    }
    let controller = name.strip_prefix(given).is_some_and(|rest| !given.is_empty() && rest.starts_with('.'));
    let affix = given.len() >= 3 && (name.starts_with(given) || name.ends_with(given));
    if controller || affix {
        return Some((Likeness::Affix, lengths));
    }
    let allowed = (given.len() / 3).clamp(1, 4);
    // an edit changes the length by one at most: most names need no closer look
    if lengths <= allowed {
        let edits = strsim::osa_distance(given, name);
        if edits <= allowed {
            return Some((Likeness::Typo, edits));
        }
    }
    // a short name is part of many longer words
    let within = 2 * name.len() >= given.len();
    let part = (given.len() >= 3 && name.contains(given)) || (within && given.contains(name));
    part.then_some((Likeness::Part, lengths))
}
