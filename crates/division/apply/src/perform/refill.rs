//! A group that was made again gets its values back.

use settings::is_by_key;

use super::*;
use crate::{entry::Before, inverse};

/// How often what a group contained is written again: a file may wait for another one (CPUs for memory nodes).
const MAX_PASSES: usize = 5;

/// Lets a group that was made again contain what it contained; says what it does not.
pub(crate) fn refill(
    performer: &mut Performer<'_>,
    journal: &mut Journal<'_>,
    step: usize,
    entry: &Entry,
    (place, files): (&Place, &[(String, String)]),
) -> Vec<String> {
    let mut left = Vec::new();
    for _ in 0..MAX_PASSES {
        left.clear();
        for (file, text) in files {
            if performer.content(place, file).is_some_and(|actual| actual != *text) {
                left.extend(write_back(performer, journal, step, entry, (place, file, text)).err());
            }
        }
        if left.is_empty() {
            break;
        }
    }
    for (file, text) in files {
        let now = performer.content(place, file);
        if now.as_ref().is_some_and(|now| now != text) && left.is_empty() {
            let (group, now) = (&entry.group, now.unwrap_or_default());
            left.push(format!("{file} of group '{group}' contained '{text}' and contains '{now}' now"));
        }
    }
    left
}

fn write_back(
    performer: &mut Performer<'_>,
    journal: &mut Journal<'_>,
    step: usize,
    entry: &Entry,
    (place, file, before): (&Place, &str, &str),
) -> Result<(), String> {
    let write =
        |text: &str| Action::Write { place: place.clone(), file: file.to_owned(), text: text.to_owned() };
    let actions = if is_by_key(file) && file != DEVICES_V1 {
        // a new group has no line yet: each is written as it was read
        before.lines().map(write).collect()
    } else {
        let actual = performer.content(place, file).unwrap_or_default();
        let action = if file == DEVICES_V1 {
            Action::Write { place: place.clone(), file: "devices.deny".to_owned(), text: "a".to_owned() }
        } else {
            write(&actual)
        };
        let before = Before::Files(vec![(file.to_owned(), before.to_owned())]);
        inverse::inverse(&Entry { action, before, ..entry.clone() }, &[]).actions
    };
    for action in actions {
        let entry = Entry { action, ..entry.clone() };
        performer.perform(step, &entry, journal).map_err(|error| error.to_string())?;
    }
    Ok(())
}
