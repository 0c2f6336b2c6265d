//! An experiment as far as its conditions differ on this machine: one that needs more CPUs is left out, and of those
//! that are the same here one is made. Pure; what was left out, and why, is reported.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    Experiment,
    file::{Condition, Settings, applies},
    note::Note,
    rescale::Rescaled,
};

/// Leaves out what can't be shown on a machine of this many CPUs; the notes say what, and why. Comparisons and charts
/// follow: what named a condition names the one that is the same.
///
/// # Errors
/// No condition is left.
pub fn leave_out(experiment: &mut Experiment, cpus: &Rescaled, online: usize) -> Result<Vec<Note>, String> {
    let mut notes = Vec::new();
    let needs = |condition: &Condition| condition.needs_cpus.unwrap_or(0) as usize;
    for condition in experiment.condition.iter().filter(|condition| needs(condition) > online) {
        let (needs, here) = (needs(condition) as u32, online as u32);
        notes.push(Note::ConditionNeedsCpus { condition: condition.name.clone(), needs, here });
    }
    experiment.condition.retain(|condition| needs(condition) <= online);
    if experiment.condition.is_empty() {
        return Err(notes.iter().map(Note::to_string).collect::<Vec<_>>().join("; "));
    }
    let instead = same(experiment, cpus);
    for (name, other) in &instead {
        notes.push(Note::SameCondition { condition: name.clone(), other: other.clone() });
    }
    experiment.condition.retain(|condition| !instead.contains_key(&condition.name));
    rename(experiment, &instead);
    Ok(notes)
}

/// Condition → a later one that is written differently and is the same here: of several the last, which, rounded to
/// whole CPUs, is the nearest to what it was.
fn same(experiment: &Experiment, cpus: &Rescaled) -> BTreeMap<String, String> {
    let keys: Vec<Keys> = experiment.condition.iter().map(|one| Keys::of(experiment, one, cpus)).collect();
    // of those that are the same here: the last, and the last that is written differently from it
    let mut last: HashMap<&str, (usize, Option<usize>)> = HashMap::new();
    for (place, key) in keys.iter().enumerate().rev() {
        let (first, other) = last.entry(&key.here).or_insert((place, None));
        if other.is_none() && keys[*first].written != key.written {
            *other = Some(place);
        }
    }
    let mut instead = BTreeMap::new();
    for (place, key) in keys.iter().enumerate() {
        let Some((first, other)) = last.get(key.here.as_str()) else { continue };
        let found = if keys[*first].written == key.written { *other } else { Some(*first) };
        if let Some(found) = found.filter(|found| *found > place) {
            let name = |place: usize| experiment.condition[place].name.clone();
            instead.insert(name(place), name(found));
        }
    }
    instead
}

/// What a condition is without its name, as text: as it is written, and as it is on this machine.
struct Keys {
    written: String,
    here: String,
}

impl Keys {
    fn of(experiment: &Experiment, condition: &Condition, cpus: &Rescaled) -> Keys {
        let plain = Condition { name: String::new(), ..condition.clone() };
        let (events, runs) = (events(experiment, condition), workloads(experiment, condition));
        let here = (filled(&plain, cpus), filled_all(events.clone(), cpus), runs);
        // these types always are JSON, with keys in order
        let text = |value: serde_json::Result<String>| value.unwrap_or_default();
        Keys {
            written: text(serde_json::to_string(&(plain, events))),
            here: text(serde_json::to_string(&here)),
        }
    }
}

type Groups = BTreeMap<String, Settings>;

fn filled(condition: &Condition, cpus: &Rescaled) -> Condition {
    Condition { settings: filled_groups(&condition.settings, cpus), ..condition.clone() }
}

fn filled_groups(groups: &Groups, cpus: &Rescaled) -> Groups {
    // a device is the same for all
    let fill = |value: &String| cpus.fill(value, &BTreeMap::new()).unwrap_or_else(|_| value.clone());
    let settings =
        |settings: &Settings| settings.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
    groups.iter().map(|(group, of)| (group.clone(), settings(of))).collect()
}

/// When what is changed in this condition.
fn events(experiment: &Experiment, condition: &Condition) -> Vec<(String, Groups)> {
    let all = experiment.event.iter();
    let here = all.filter(|event| applies(&event.conditions, &condition.name));
    here.map(|event| (event.at.clone(), event.settings.clone())).collect()
}

fn filled_all(events: Vec<(String, Groups)>, cpus: &Rescaled) -> Vec<(String, Groups)> {
    events.into_iter().map(|(at, groups)| (at, filled_groups(&groups, cpus))).collect()
}

/// Which workloads run in it.
fn workloads<'e>(experiment: &'e Experiment, condition: &Condition) -> Vec<&'e String> {
    let all = experiment.workload.iter();
    let runs = all.filter(|(_, one)| applies(&one.conditions, &condition.name));
    runs.map(|(name, _)| name).collect()
}

/// Comparisons, tables, charts and their lines name what is run. What was published stays with the condition of its name.
fn rename(experiment: &mut Experiment, instead: &BTreeMap<String, String>) {
    let renamed = |name: &mut String| {
        if let Some(other) = instead.get(name) {
            name.clone_from(other);
        }
    };
    let names: HashSet<String> =
        experiment.condition.iter().map(|condition| condition.name.clone()).collect();
    let mut compared = HashSet::new();
    for one in &mut experiment.comparison {
        renamed(&mut one.baseline);
        renamed(&mut one.condition);
    }
    experiment.comparison.retain(|one| {
        let key = (one.measure.clone(), one.baseline.clone(), one.condition.clone(), one.load.clone());
        compared.insert(key)
            && one.baseline != one.condition
            && names.contains(&one.baseline)
            && names.contains(&one.condition)
    });
    experiment.table.iter_mut().for_each(|table| table.conditions.iter_mut().for_each(renamed));
    for chart in &mut experiment.chart {
        chart.conditions.iter_mut().for_each(renamed);
        chart.line.iter_mut().filter_map(|line| line.condition.as_mut()).for_each(renamed);
        if let Some(ideal) = &mut chart.ideal {
            renamed(&mut ideal.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use layout::Source;

    use super::*;
    use crate::{file::Chart, fixture, rescale};

    fn experiment() -> Experiment {
        let text = r#"
name = "x"
title = "x"
[machine]
cpus = 8
[cpus.two]
count = 2
[cpus.four]
count = 4
[cpus.all]
[group.g]
[workload.w]
driver = "cpu"
group = "g"
[[condition]]
name = "2 CPUs"
settings.g."cpuset.cpus" = "{two}"
[[condition]]
name = "4 CPUs"
settings.g."cpuset.cpus" = "{four}"
[[condition]]
name = "8 CPUs"
settings.g."cpuset.cpus" = "{all}"
[[measure]]
name = "rate"
is = "w.rate"
[[comparison]]
measure = "rate"
baseline = "2 CPUs"
condition = "4 CPUs"
[[comparison]]
measure = "rate"
baseline = "2 CPUs"
condition = "8 CPUs"
[[chart]]
title = "x"
kind = "bars"
of = ["rate"]
[chart.ideal]
from = "2 CPUs"
cpus = { "2 CPUs" = "two", "4 CPUs" = "four", "8 CPUs" = "all" }
"#;
        crate::read(&Source::new("x", text)).experiment.unwrap()
    }

    fn on(cpus: u32, experiment: &mut Experiment) -> Result<Vec<Note>, String> {
        let all: Vec<String> = (0..cpus).map(|cpu| cpu.to_string()).collect();
        let listing = format!(
            "available: 1 nodes (0)\nnode 0 cpus: {}\nnode 0 size: 1024 MB\nnode 0 free: 512 MB\n\
             node distances:\nnode 0\n0: 10\n",
            all.join(" ")
        );
        let machine = topology::Machine::from_listing("numactl", &listing).unwrap();
        let found = rescale::rescale(experiment, &machine).unwrap();
        leave_out(experiment, &found, cpus as usize)
    }

    fn names(experiment: &Experiment) -> Vec<&str> {
        experiment.condition.iter().map(|condition| condition.name.as_str()).collect()
    }

    #[test]
    fn conditions_that_are_the_same_here_are_made_once() {
        let mut eight = experiment();
        assert_eq!(on(8, &mut eight), Ok(Vec::new()));
        assert_eq!(eight, experiment(), "all three differ");
        let mut two = experiment();
        let noted: Vec<String> = on(2, &mut two).unwrap().iter().map(Note::to_string).collect();
        assert_eq!(noted, ["'2 CPUs' is not run: it is the same as '4 CPUs' here"]);
        assert_eq!(names(&two), ["4 CPUs", "8 CPUs"]);
        let compared: Vec<_> =
            two.comparison.iter().map(|one| (one.baseline.as_str(), one.condition.as_str())).collect();
        assert_eq!(compared, [("4 CPUs", "8 CPUs")]);
        let Chart { ideal: Some(ideal), .. } = &two.chart[0] else { panic!("no ideal") };
        assert_eq!(ideal.from, "4 CPUs");
        let mut one = experiment();
        assert_eq!(on(1, &mut one).unwrap().len(), 2);
        assert_eq!((names(&one), one.comparison.len()), (vec!["8 CPUs"], 0));
    }

    #[test]
    fn what_was_written_alike_or_changes_or_runs_otherwise_stays() {
        // the same twice is a question of its own: how much do two runs differ?
        let mut alike = fixture::experiment(&["a", "b"]);
        assert_eq!(leave_out(&mut alike, &Rescaled::default(), 2), Ok(Vec::new()));
        assert_eq!(names(&alike), ["a", "b"]);
        let mut changed = experiment();
        changed.event.push(crate::file::Event {
            at: "50%".to_owned(),
            conditions: vec!["2 CPUs".to_owned()],
            settings: changed.condition[2].settings.clone(),
            label: String::new(),
        });
        assert_eq!(on(2, &mut changed), Ok(Vec::new()));
        let mut elsewhere = experiment();
        let workload = elsewhere.workload["w"].clone();
        elsewhere.workload.insert(
            "v".to_owned(),
            crate::file::Workload { conditions: vec!["2 CPUs".to_owned()], ..workload },
        );
        assert_eq!(on(2, &mut elsewhere), Ok(Vec::new()));
    }

    #[test]
    fn a_condition_that_needs_more_cpus_is_left_out_with_its_comparisons() {
        let mut some = experiment();
        some.condition[2].needs_cpus = Some(3);
        let notes = on(2, &mut some).unwrap();
        let expected = "'8 CPUs' is not reproducible here: it needs 3 CPUs, and this machine has 2";
        assert_eq!(notes[0].to_string(), expected);
        assert_eq!((names(&some), some.comparison.len()), (vec!["4 CPUs"], 0));
        let mut none = experiment();
        none.condition.iter_mut().for_each(|condition| condition.needs_cpus = Some(9));
        assert!(on(2, &mut none).unwrap_err().contains("'4 CPUs' is not reproducible here: it needs 9 CPUs"));
    }
}
