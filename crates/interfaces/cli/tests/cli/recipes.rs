//! The pages of docs/ whose commands are run, each on the machines that it is about.

use std::sync::Arc;

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::Desk,
    page::{follow, reads_as_meant},
    world::{Need, World},
};

struct Page {
    /// From docs/ on.
    path: &'static str,
    text: &'static str,
    needs: &'static [Need],
}

macro_rules! page {
    ($path:literal, $needs:expr) => {
        Page { path: $path, text: include_str!(concat!("../../../../../docs/", $path)), needs: $needs }
    };
}

/// The groups of pages have names that somebody's groups could have.
const V2: &[Need] = &[
    Need::OwnMachine,
    Need::Plain,
    Need::V2("cpu"),
    Need::V2("cpuset"),
    Need::V2("io"),
    Need::V2("memory"),
    Need::Cpus(8),
];
const ANY_VERSION: &[Need] = &[Need::OwnMachine, Need::Plain, Need::Groups];

const PAGES: &[Page] = &[
    page!("../README.md", V2),
    page!("start.md", V2),
    page!("recipes/numa.md", V2),
    page!("recipes/services.md", &[Need::OwnMachine, Need::Systemd, Need::Program("pg_ctlcluster")]),
    page!("recipes/io.md", V2),
    page!("recipes/core.md", V2),
    page!("recipes/libcgroup.md", ANY_VERSION),
    page!("recipes/elsewhere.md", &[]),
    page!("recipes/undo.md", ANY_VERSION),
    page!("recipes/why.md", V2),
    page!("recipes/lab.md", V2),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |page: &'static Page| {
        let world = world.clone();
        let lacks = world.lacks(page.needs);
        suite::trial(format!("recipe: {}", page.path), lacks, move || {
            let own_machine = page.needs.contains(&Need::OwnMachine);
            follow(&Desk::new(&world, page.path), page.text, own_machine);
        })
    };
    let reader =
        suite::fallible("documents: a page is read as files, commands and their output", None, || {
            reads_as_meant();
            Ok(())
        });
    PAGES.iter().map(trial).chain([reader]).collect()
}

/// Pages that show commands with their output, and are not run.
pub fn not_run(pages: &[(String, String)]) -> Vec<&String> {
    let is_run = |path: &str| PAGES.iter().any(|page| page.path == path);
    let shows = |text: &str| text.contains("```console\n");
    pages.iter().filter(|(path, text)| shows(text) && !is_run(path)).map(|(path, _)| path).collect()
}
