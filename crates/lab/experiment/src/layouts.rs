//! A layout as a condition: what it plans for its groups on this machine, as settings of groups of the experiment. The
//! groups are made below the experiment's own, so that nothing outside is touched and every figure of a group is there.

use std::collections::BTreeMap;

use layout::{Desired, Diagnostic};
use plan::{Anybody, CPUS, Observed, Problem};
use settings::{Facts, Version};
use topology::Machine;

use crate::{Experiment, file::Settings, note::Note};

/// Conditions that are layouts: their index, and the file as the experiment names it.
pub fn layouts(experiment: &Experiment) -> impl Iterator<Item = (usize, &str)> {
    let of = experiment.condition.iter().enumerate();
    of.filter_map(|(index, condition)| Some((index, condition.layout.as_deref()?)))
}

/// Puts a layout's groups and settings into a condition. What the condition itself sets stays. Returns what a reader of
/// the results must know of it.
///
/// # Errors
/// What can't be planned on this machine, each with its place in the layout.
pub fn add_layout(
    experiment: &mut Experiment,
    condition: usize,
    desired: &Desired,
    machine: &Machine,
    facts: &dyn Facts,
) -> Result<Option<Note>, Vec<Diagnostic>> {
    let groups = planned(desired, machine, facts)?;
    let Some(condition) = experiment.condition.get_mut(condition) else { return Ok(None) };
    for (group, settings) in groups {
        experiment.group.entry(group.clone()).or_default();
        let own = condition.settings.entry(group).or_default();
        for (name, value) in settings {
            own.entry(name).or_insert(value);
        }
    }
    let text = format!(
        "condition '{}' is the layout {}: its groups are made below the lab's own, and its rules move no process",
        condition.name,
        condition.layout.as_deref().unwrap_or_default(),
    );
    Ok(Some(Note::Layout { text }))
}

/// Group → settings. A machine without groups is planned for: the experiment's own begin empty.
fn planned(
    desired: &Desired,
    machine: &Machine,
    facts: &dyn Facts,
) -> Result<BTreeMap<String, Settings>, Vec<Diagnostic>> {
    let plan = plan::plan(desired, machine, &Observed::empty(Version::V2), facts, &Anybody)
        .map_err(|problems| problems.iter().map(Problem::diagnostic).collect::<Vec<_>>())?;
    let mut groups: BTreeMap<String, Settings> = BTreeMap::new();
    for group in &desired.groups {
        let said = group.demands.settings.iter().map(|one| (one.found.name.clone(), one.text.clone()));
        groups.entry(group.name.to_string()).or_default().extend(said);
    }
    for assigned in &plan.assignments {
        let of = groups.entry(assigned.group.to_string()).or_default();
        let cpus = assigned.cpus.as_ref().map(|cpus| (CPUS.to_owned(), cpus.to_string()));
        let mems = assigned.mems.as_ref().map(|mems| ("cpuset.mems".to_owned(), mems.to_string()));
        let alone = assigned.exclusive.then(|| ("cpuset.cpus.partition".to_owned(), "root".to_owned()));
        of.extend(cpus.into_iter().chain(mems).chain(alone));
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Facts for Nothing {
        fn memory(&self) -> Option<units::Bytes> {
            None
        }

        fn cpus(&self) -> Option<usize> {
            Some(4)
        }

        fn device(&self, path: &str) -> Result<settings::DeviceNumber, String> {
            Err(format!("{path} does not exist"))
        }
    }

    const LISTING: &str = "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 8192 MB\n\
                           node 0 free: 4096 MB\nnode distances:\nnode 0\n0: 10\n";

    fn added(layout: &str) -> Result<Experiment, Vec<Diagnostic>> {
        let mut experiment = crate::fixture::experiment(&["plain", "divided"]);
        let own = Settings::from([("cpu.weight".to_owned(), "50".to_owned())]);
        experiment.condition[1].settings.insert("db".to_owned(), own);
        experiment.condition[1].layout = Some("mine.toml".to_owned());
        assert_eq!(layouts(&experiment).collect::<Vec<_>>(), [(1, "mine.toml")]);
        let machine = Machine::from_listing("numactl", LISTING).unwrap();
        let desired = layout::read_toml(&[layout::Source::new("mine.toml", layout)]).desired.unwrap();
        add_layout(&mut experiment, 1, &desired, &machine, &Nothing).map(|note| {
            assert!(note.is_some_and(|note| note.to_string().contains("'divided' is the layout mine.toml")));
            experiment
        })
    }

    #[test]
    fn planned_cpus_and_settings_become_the_conditions_and_its_own_stay() {
        let layout = "[groups.db]\ncpus = 3\nexclusive = true\nmems = \"local\"\ncpu.weight = 500\npids.max = 100\n[groups.rest]\n";
        let experiment = added(layout).unwrap();
        assert_eq!(experiment.group.keys().collect::<Vec<_>>(), ["db", "rest"]);
        let settings = &experiment.condition[1].settings["db"];
        let own: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("cpu.weight", "50"),
            ("cpuset.cpus", "0-2"),
            ("cpuset.cpus.partition", "root"),
            ("cpuset.mems", "0"),
            ("pids.max", "100"),
        ];
        assert_eq!(own, expected);
        assert!(experiment.condition[0].settings.is_empty());
    }

    #[test]
    fn what_can_not_be_planned_here_is_reported() {
        let errors = added("[groups.db]\ncpus = 9\n").unwrap_err();
        assert!(errors[0].message.contains('9'), "{errors:?}");
    }
}
