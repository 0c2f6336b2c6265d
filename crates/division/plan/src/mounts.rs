//! Hierarchies that a cgconfig.conf wants mounted and that are not.

use std::{borrow::Cow, collections::BTreeMap};

use layout::{Desired, Mount, Origin, Subsystem};
use settings::{Controller, GroupName, Version};

use crate::{Action, Lint, LintKind, Observed, Problem, SeenHierarchy, Step};

/// What is observed, with the hierarchies that the steps mount added at the end, in the steps' order.
pub(crate) fn mounted<'o>(
    desired: &Desired,
    observed: &'o Observed,
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> (Cow<'o, Observed>, Vec<Step>) {
    let mut by_path: BTreeMap<&str, Vec<&Mount>> = BTreeMap::new();
    for mount in &desired.mounts {
        by_path.entry(&mount.path).or_default().push(mount);
    }
    // in the order in which they are said
    let mut wanted: Vec<(&str, Vec<&Mount>)> = by_path.into_iter().collect();
    wanted.sort_by_key(|(_, mounts)| {
        (mounts[0].origin.file.clone(), mounts[0].origin.line, mounts[0].origin.column)
    });
    let mut with = Cow::Borrowed(observed);
    let mut steps = Vec::new();
    for (path, mounts) in wanted {
        let holders: Vec<(&&Mount, Option<&SeenHierarchy>)> =
            mounts.iter().map(|mount| (mount, holder(mount, observed))).collect();
        let there = holders.iter().filter(|(_, at)| at.is_some()).count();
        if there == 0 {
            let hierarchy = hierarchy(path, &mounts);
            let action = Action::Mount {
                controllers: hierarchy.controllers.clone(),
                name: hierarchy.name.clone(),
                path: path.into(),
            };
            steps.push(Step::new(GroupName::root(), action, "the configuration wants it mounted"));
            with.to_mut().hierarchies.push(hierarchy);
        } else if there < mounts.len() {
            problems.push(torn(path, &holders));
        } else if let Some((mount, at)) =
            holders.iter().find_map(|(mount, at)| at.filter(|at| at.mount != path).map(|at| (mount, at)))
        {
            lints.push(elsewhere(mount, at));
        }
    }
    (with, steps)
}

fn holder<'o>(mount: &Mount, observed: &'o Observed) -> Option<&'o SeenHierarchy> {
    match &mount.subsystem {
        Subsystem::Controller(controller) => observed.hierarchies.get(observed.hierarchy_of(*controller)?),
        Subsystem::Named(name) => observed.hierarchies.iter().find(|at| at.name.as_ref() == Some(name)),
    }
}

fn hierarchy(path: &str, mounts: &[&Mount]) -> SeenHierarchy {
    let controllers: Vec<Controller> = mounts
        .iter()
        .filter_map(|mount| match mount.subsystem {
            Subsystem::Controller(controller) => Some(controller),
            Subsystem::Named(_) => None,
        })
        .collect();
    let name = mounts.iter().find_map(|mount| match &mount.subsystem {
        Subsystem::Named(name) => Some(name.clone()),
        Subsystem::Controller(_) => None,
    });
    SeenHierarchy { name, ..SeenHierarchy::empty(Version::V1, controllers, path.to_owned()) }
}

fn called(mount: &Mount) -> String {
    match &mount.subsystem {
        Subsystem::Controller(controller) => controller.name(Version::V1).unwrap_or("core").to_owned(),
        Subsystem::Named(name) => format!("name={name}"),
    }
}

/// Some of a hierarchy's controllers are in use, others are not: the kernel can't join them.
fn torn(path: &str, holders: &[(&&Mount, Option<&SeenHierarchy>)]) -> Problem {
    let names = |there: bool| -> Vec<String> {
        holders.iter().filter(|(_, at)| at.is_some() == there).map(|(mount, _)| called(mount)).collect()
    };
    let origin =
        holders.first().map_or_else(|| Origin::outside_files(path), |(mount, _)| mount.origin.clone());
    let at = holders.iter().find_map(|(_, at)| *at).map_or("", |at| &at.mount);
    Problem::Refused {
        message: format!(
            "{} can't be mounted together with {} at {path}: that is at {at} already",
            names(false).join(","),
            names(true).join(",")
        ),
        origin,
        hint: format!("give {} a path of its own, or unmount {at}", names(false).join(",")),
        version: Version::V1,
    }
}

fn elsewhere(mount: &Mount, at: &SeenHierarchy) -> Lint {
    let version = if at.version == Version::V2 { " (cgroup v2)" } else { "" };
    let message = format!(
        "{} is to be mounted at {}, and is at {}{version} already: it stays there",
        called(mount),
        mount.path,
        at.mount
    );
    Lint::new(LintKind::Approximate, None, message).at(&mount.origin)
}
