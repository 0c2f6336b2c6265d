//! In which settings, workloads and layouts conditions differ, exactly, and what is the same in all of them. What was
//! set in the runs counts; where there is no run, what the file requests.

use std::collections::{BTreeMap, BTreeSet};

use experiment::file::applies;
use experiment::options;
use experiment::results::Setting;

use crate::view::View;

/// One thing that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `server`; or `workload`, `layout`.
    pub of: String,
    /// `cpuset.cpus`.
    pub name: String,
    /// Each value, and the conditions that have it, in the file's order.
    pub values: Vec<Value>,
}

/// A value and who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Names of conditions.
    pub conditions: Vec<String>,
    /// `None`: it is not set there.
    pub requested: Option<String>,
    /// What was written for it, and what the kernel made of it.
    pub written: Vec<String>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Not the same in all conditions.
    pub differs: Vec<Row>,
    /// The same in all.
    pub same: Vec<Row>,
}

type Key = (String, String);
/// What was requested, and what was written for it.
type Had = (String, Vec<String>);

/// What differs between the conditions of an experiment.
pub fn between_conditions(view: View<'_>) -> Difference {
    let conditions = view.conditions(&[]);
    let had: Vec<BTreeMap<Key, Had>> =
        conditions.iter().map(|condition| of_condition(view, condition)).collect();
    let keys: BTreeSet<&Key> = had.iter().flat_map(BTreeMap::keys).collect();
    let mut difference = Difference::default();
    for key in keys {
        let mut values: Vec<Value> = Vec::new();
        for (condition, had) in conditions.iter().zip(&had) {
            let had = had.get(key);
            let requested = had.map(|(requested, _)| requested.clone());
            match values.iter_mut().find(|value| value.requested == requested) {
                Some(value) => value.conditions.push((*condition).to_owned()),
                None => values.push(Value {
                    conditions: vec![(*condition).to_owned()],
                    requested,
                    written: had.map(|(_, written)| written.clone()).unwrap_or_default(),
                }),
            }
        }
        let place = if values.len() > 1 { &mut difference.differs } else { &mut difference.same };
        place.push(Row { of: key.0.clone(), name: key.1.clone(), values });
    }
    difference
}

/// Everything that is set in a condition.
pub fn of_condition(view: View<'_>, condition: &str) -> BTreeMap<Key, Had> {
    let experiment = &view.results.experiment;
    let mut all: BTreeMap<Key, Had> = BTreeMap::new();
    let runs = view.results.runs.iter().filter(|run| run.condition == condition);
    let mut any = false;
    for run in runs {
        any = true;
        for setting in &run.settings {
            take(&mut all, setting);
        }
    }
    let requested = experiment.condition.iter().find(|one| one.name == condition);
    if !any {
        let of_file =
            experiment.group.iter().chain(requested.iter().flat_map(|requested| &requested.settings));
        for (group, settings) in of_file {
            for (name, value) in settings {
                all.insert((group.clone(), name.clone()), (value.clone(), Vec::new()));
            }
        }
    }
    if let Some(layout) = requested.and_then(|requested| requested.layout.as_ref()) {
        all.insert(("layout".to_owned(), "file".to_owned()), (layout.clone(), Vec::new()));
    }
    for (name, workload) in &experiment.workload {
        let runs = applies(&workload.conditions, condition);
        let said = if runs { "runs" } else { "does not run" };
        all.insert(("workload".to_owned(), name.clone()), (said.to_owned(), Vec::new()));
        // runs have reported their options as settings
        let driver =
            requested.filter(|_| runs && !any).map(|requested| options::driver(experiment, name, requested));
        if let Some(Ok(Some(driver))) = driver {
            for option in options::changed(experiment, name) {
                if let Some(value) = options::text_of(&driver, option) {
                    all.insert((name.clone(), option.to_owned()), (value, Vec::new()));
                }
            }
        }
    }
    all
}

/// A condition whose runs did not all have the same is reported with both.
fn take(all: &mut BTreeMap<Key, Had>, setting: &Setting) {
    let key = (setting.group.clone(), setting.name.clone());
    match all.get_mut(&key) {
        None => {
            all.insert(key, (setting.requested.clone(), setting.written.clone()));
        }
        Some((requested, written)) => {
            if !requested.split(" / ").any(|one| one == setting.requested) {
                *requested = format!("{requested} / {}", setting.requested);
            }
            for line in &setting.written {
                if !written.contains(line) {
                    written.push(line.clone());
                }
            }
        }
    }
}
