//! No two modules of a crate need each other. A module and those below it count as one: between the modules of one
//! parent the uses run one way. What a module uses of those above it is not counted.

mod names;
mod rows;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::architecture::{crate_directories, rust_files};
use names::{Crate, Name};

pub use names::is_for_tests;

pub fn trials() -> Vec<Trial> {
    let paths = crate_directories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    // in a VM there is no source
    if paths.is_empty() {
        return Vec::new();
    }
    let mut trials = rows::trials();
    trials.push(suite::fallible("no two modules need each other", None, move || {
        let mut wrong = Vec::new();
        for path in &paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let files = rust_files(path, "src").into_iter().map(|(file, text)| {
                let file = file.split_once("/src/").unwrap().1.to_owned();
                (file, text)
            });
            let cycles = cycles(&Crate::read(&files.collect()));
            wrong.extend(cycles.iter().map(|cycle| format!("{name}: {cycle}")));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    }));
    trials
}

/// Which module uses which, among those of one parent, with one place each.
type Uses<'c> = BTreeMap<&'c str, BTreeMap<&'c str, (&'c Name, &'c [String])>>;

/// A cycle of each parent that has one: `a → b → a: a::x uses b::y, b uses a`.
fn cycles(of: &Crate) -> Vec<String> {
    let mut parents: BTreeMap<&[String], Uses<'_>> = BTreeMap::new();
    for (user, path) in of.uses() {
        let used = of.module_of(path);
        let shared = user.iter().zip(used).take_while(|(one, other)| one == other).count();
        // one of them is above the other, or they are the same
        let (Some(from), Some(to)) = (user.get(shared), used.get(shared)) else { continue };
        let uses = parents.entry(&user[..shared]).or_default();
        uses.entry(from).or_default().entry(to).or_insert((user, path));
    }
    parents.iter().filter_map(|(parent, uses)| shown(parent, uses)).collect()
}

fn shown(parent: &[String], uses: &Uses<'_>) -> Option<String> {
    let mut done = BTreeSet::new();
    let cycle = uses.keys().find_map(|name| walk(name, uses, &mut Vec::new(), &mut done))?;
    let name =
        |module: &str| parent.iter().map(String::as_str).chain([module]).collect::<Vec<_>>().join("::");
    let modules: Vec<String> = cycle.iter().map(|module| name(module)).collect();
    let places = cycle.windows(2).map(|pair| {
        let (user, path) = &uses[pair[0]][pair[1]];
        format!("{} uses {}", user.join("::"), path.join("::"))
    });
    Some(format!("{}: {}", modules.join(" → "), places.collect::<Vec<_>>().join(", ")))
}

/// The first cycle on a way, begun and ended by the same module.
fn walk<'c>(
    name: &'c str,
    uses: &Uses<'c>,
    way: &mut Vec<&'c str>,
    done: &mut BTreeSet<&'c str>,
) -> Option<Vec<&'c str>> {
    if let Some(begin) = way.iter().position(|before| *before == name) {
        return Some(way[begin..].iter().copied().chain([name]).collect());
    }
    if done.contains(name) {
        return None;
    }
    way.push(name);
    let found = uses.get(name).and_then(|used| used.keys().find_map(|used| walk(used, uses, way, done)));
    way.pop();
    done.insert(name);
    found
}
