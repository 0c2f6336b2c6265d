//! The named sets of CPUs of an experiment as they are on this machine: each has as large a share of it as the study's
//! had of the study's machine, and at least one CPU. Pure: the machine is an argument.

use std::collections::BTreeMap;

use topology::Machine;
use units::CpuSet;

use crate::{
    file::{Cpus, CpusFrom, Experiment},
    note::Note,
};

/// The named sets here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rescaled {
    /// Name → CPUs.
    pub sets: BTreeMap<String, CpuSet>,
    /// Name → memory nodes of these CPUs, as a list.
    pub mems: BTreeMap<String, String>,
    /// Name → its exact share of this machine's CPU time, in hundredths of a percent of one CPU.
    pub shares: BTreeMap<String, u64>,
    /// Name, what the study had, the CPUs here.
    pub rows: Vec<(String, String, String)>,
    /// What a reader must know.
    pub notes: Vec<Note>,
}

impl Rescaled {
    /// `{name}` becomes the set's CPUs, `{name.mems}` their memory nodes, `{name.count}` how many CPUs it has,
    /// `{name.quota}` their time as a quota (`200%`), `{name.share}` the same before it was rounded to whole CPUs
    /// (`12.5%`), and the name of a device its path.
    ///
    /// # Errors
    /// The name that is not known.
    pub fn fill(&self, text: &str, devices: &BTreeMap<String, String>) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').ok_or_else(|| behind.to_owned())?;
            filled.push_str(before);
            filled.push_str(&self.stands_for(name, devices).ok_or_else(|| name.to_owned())?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn stands_for(&self, name: &str, devices: &BTreeMap<String, String>) -> Option<String> {
        if let Some(path) = devices.get(name) {
            return Some(path.clone());
        }
        let (name, what) = name.split_once('.').unwrap_or((name, "cpus"));
        let cpus = self.sets.get(name)?;
        match what {
            "cpus" => Some(cpus.to_string()),
            "mems" => self.mems.get(name).cloned(),
            "count" => Some(cpus.len().to_string()),
            "quota" => Some(format!("{}%", cpus.len() * 100)),
            "share" => Some(self.share(name)),
            _ => None,
        }
    }

    /// `12.5%`
    fn share(&self, name: &str) -> String {
        format!("{}%", self.shares.get(name).copied().unwrap_or(0) as f64 / 100.0)
    }
}

/// The sets here.
///
/// # Errors
/// Why the experiment can't be made here: too few nodes or CPUs.
pub fn rescale(experiment: &Experiment, machine: &Machine) -> Result<Rescaled, String> {
    let (online, nodes) = (machine.online(), machine.nodes.len().max(1));
    let study = experiment.machine.as_ref();
    if let Some(study) = study {
        if (study.needs_nodes as usize) > nodes {
            let needed = study.needs_nodes;
            return Err(format!("it needs {needed} NUMA nodes, and this machine has {nodes}"));
        }
        if (study.needs_cpus as usize) > online.len() {
            let needed = study.needs_cpus;
            return Err(format!("it needs {needed} CPUs, and this machine has {}", online.len()));
        }
    }
    let mut found = Rescaled::default();
    for name in in_order(&experiment.cpus) {
        let set = &experiment.cpus[name];
        let of_study = study.map_or(online.len(), |study| study.cpus as usize).max(1);
        let (whole, whole_there) = match (set.node, within(set, experiment, &found, of_study)) {
            (_, Some(within)) => within,
            (None, None) => (online.clone(), of_study),
            (Some(node), None) => {
                // in turn, where there are fewer
                let node_here = if nodes > 1 { node as usize % nodes } else { node as usize };
                let here = machine.nodes.get(node_here).map(|node| node.cpus.clone());
                let none = || format!("it uses NUMA node {node}, and this machine has {nodes}");
                let there = of_study / study.map_or(nodes, |study| study.nodes.max(1) as usize).max(1);
                (here.ok_or_else(none)?, there.max(1))
            }
        };
        let there = set.count.map_or(whole_there, |count| count as usize);
        let count = match study {
            _ if set.as_many => there,
            Some(_) => (there * whole.len() + whole_there / 2) / whole_there,
            None => there,
        };
        let count = count.clamp(1, whole.len().max(1));
        let hundredths = match study {
            Some(_) => there * whole.len() * 10_000 / whole_there,
            None => there * 10_000,
        };
        found.shares.insert(name.clone(), hundredths as u64);
        let mut cpus = choose(set, &whole, count, &found.sets);
        if cpus.is_empty() {
            // an experiment that makes no sense then says so by `needs-cpus`
            let other = beside(set).map(String::as_str).unwrap_or_default();
            let (end, side) = match set.from {
                CpusFrom::Before => (whole.first(), "before"),
                _ => (whole.last(), "behind"),
            };
            cpus = end.into_iter().collect();
            found.notes.push(Note::NoCpuLeft {
                set: name.clone(),
                side: side.to_owned(),
                other: other.to_owned(),
                cpu: cpus.to_string(),
            });
        }
        let mems = machine.nodes_of_cpus(&cpus).filter(|nodes| !nodes.is_empty());
        found.mems.insert(name.clone(), mems.map_or_else(|| "0".to_owned(), |nodes| nodes.to_string()));
        if set.as_many && count < there {
            let (here, study) = (count as u32, there as u32);
            found.notes.push(Note::FewerCpus { set: name.clone(), here, study });
        }
        let there = format!("{there} of {whole_there}");
        found.rows.push((name.clone(), there, cpus.to_string()));
        found.sets.insert(name.clone(), cpus);
    }
    let (as_share, only_share) = shares(experiment);
    for name in &only_share {
        let share = format!("{} of a CPU's time", found.share(name));
        found.rows.iter_mut().filter(|(row, ..)| row == name).for_each(|row| row.2.clone_from(&share));
    }
    let mut notes = notes(experiment, &found, (&as_share, &only_share), online.len());
    notes.extend(nodes_apart(experiment, nodes));
    found.notes.append(&mut notes);
    Ok(found)
}

/// The set that another is a part of, and how many CPUs it had in the study.
fn within(set: &Cpus, experiment: &Experiment, found: &Rescaled, of_study: usize) -> Option<(CpuSet, usize)> {
    let other = set.within.as_ref()?;
    let count = experiment.cpus.get(other)?.count.map_or(of_study, |count| count as usize);
    Some((found.sets.get(other)?.clone(), count.max(1)))
}

/// The names alone, each as one CPU: to check an experiment that can't be made here.
pub fn anywhere(experiment: &Experiment) -> Rescaled {
    let mut found = Rescaled::default();
    for name in experiment.cpus.keys() {
        found.sets.insert(name.clone(), CpuSet::range(0, 0));
        found.mems.insert(name.clone(), "0".to_owned());
        found.shares.insert(name.clone(), 10_000);
    }
    found
}

/// The set that this one stands behind or before.
fn beside(set: &Cpus) -> Option<&String> {
    match set.from {
        CpusFrom::After => set.after.as_ref(),
        CpusFrom::Before => set.before.as_ref(),
        CpusFrom::First | CpusFrom::Last => None,
    }
}

/// Those that others stand behind or before come first.
fn in_order(sets: &BTreeMap<String, Cpus>) -> Vec<&String> {
    let mut order: Vec<&String> = Vec::new();
    // each round places at least one, unless they stand behind one another in a circle
    for _ in 0..sets.len() {
        for (name, set) in sets {
            let placed = |other: &&String| order.contains(other) || !sets.contains_key(*other);
            let ready = [beside(set), set.within.as_ref()].iter().flatten().all(placed);
            if ready && !order.contains(&name) {
                order.push(name);
            }
        }
    }
    order
}

fn choose(set: &Cpus, whole: &CpuSet, count: usize, others: &BTreeMap<String, CpuSet>) -> CpuSet {
    match set.from {
        CpusFrom::First => whole.iter().take(count).collect(),
        CpusFrom::Last => whole.iter().skip(whole.len().saturating_sub(count)).collect(),
        CpusFrom::After => {
            let last = beside(set).and_then(|other| others.get(other)).and_then(CpuSet::last);
            whole.iter().filter(|cpu| last.is_none_or(|last| *cpu > last)).take(count).collect()
        }
        CpusFrom::Before => {
            let first = beside(set).and_then(|other| others.get(other)).and_then(CpuSet::first);
            let free: Vec<usize> =
                whole.iter().filter(|cpu| first.is_none_or(|first| *cpu < first)).collect();
            free.iter().skip(free.len().saturating_sub(count)).copied().collect()
        }
    }
}

/// What binding to a node can't show where there is only one.
fn nodes_apart(experiment: &Experiment, here: usize) -> Option<Note> {
    let study =
        experiment.machine.as_ref().map(|study| study.nodes).filter(|there| *there > 1 && here == 1)?;
    let on_nodes = experiment.cpus.iter().filter(|(_, set)| set.node.is_some());
    let sets: Vec<String> = on_nodes.map(|(name, _)| name.clone()).collect();
    (!sets.is_empty()).then_some(Note::OneNode { study, sets })
}

/// Sets of which the share is used, and those of them of which nothing else is: which CPUs they are does not matter.
fn shares(experiment: &Experiment) -> (Vec<String>, Vec<String>) {
    // wherever a name stands for something, as every text of the experiment is looked at
    let text = serde_json::to_string(experiment).unwrap_or_default();
    let is_used = |name: &str, what: &str| text.contains(&format!("{{{name}{what}}}"));
    let beside: Vec<&String> =
        experiment.cpus.values().flat_map(|set| [beside(set), set.within.as_ref()]).flatten().collect();
    let as_share: Vec<String> =
        experiment.cpus.keys().filter(|name| is_used(name, ".share")).cloned().collect();
    let only = |name: &&String| {
        !["", ".cpus", ".mems", ".count", ".quota"].iter().any(|what| is_used(name, what))
            && !beside.contains(name)
    };
    let only = as_share.iter().filter(only).cloned().collect();
    (as_share, only)
}

fn notes(
    experiment: &Experiment,
    found: &Rescaled,
    (shares, only_share): (&[String], &[String]),
    here: usize,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let as_sets = || found.sets.iter().filter(|(name, _)| !only_share.contains(name));
    if let Some(study) = experiment.machine.as_ref().filter(|study| study.cpus as usize != here) {
        let there = |name: &String| {
            let set = &experiment.cpus[name];
            // all of a node, or of the machine
            let whole = if set.node.is_some() { study.cpus / study.nodes.max(1) } else { study.cpus };
            set.count.unwrap_or(whole)
        };
        let list = |mut names: Vec<&String>, of: &dyn Fn(&String) -> String| {
            names.sort_by_key(|name| there(name));
            let each: Vec<String> = names.into_iter().map(of).collect();
            match each.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
                None => String::new(),
            }
        };
        let sets: Vec<&String> = as_sets().map(|(name, _)| name).collect();
        if !sets.is_empty() {
            notes.push(Note::RescaledCpus {
                plural: study.cpus > 1 || sets.len() > 1,
                study: list(sets.clone(), &|name| there(name).to_string()),
                here: list(sets, &|name| found.sets[name].len().to_string()),
            });
        }
        if !shares.is_empty() {
            notes.push(Note::RescaledShares {
                plural: study.cpus > 1 || shares.len() > 1,
                study: list(shares.iter().collect(), &|name| there(name).to_string()),
                of: study.cpus,
                here: list(shares.iter().collect(), &|name| found.share(name)),
            });
        }
    }
    for (name, same) in as_sets() {
        for (other, _) in as_sets().filter(|(other, cpus)| *other > name && *cpus == same) {
            let (set, other) = (name.clone(), other.clone());
            notes.push(Note::SameCpus { set, other, cpus: same.to_string() });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::StudyMachine;

    fn machine(cpus: usize, nodes: usize) -> Machine {
        let mut text = format!("available: {nodes} nodes (0-{})\n", nodes - 1);
        for node in 0..nodes {
            let cpus: Vec<String> =
                (0..cpus).filter(|cpu| cpu % nodes == node).map(|cpu| cpu.to_string()).collect();
            text += &format!(
                "node {node} cpus: {}\nnode {node} size: 1024 MB\nnode {node} free: 512 MB\n",
                cpus.join(" ")
            );
        }
        let columns: Vec<String> = (0..nodes).map(|node| node.to_string()).collect();
        text += &format!("node distances:\nnode {}\n", columns.join(" "));
        for node in 0..nodes {
            let row: Vec<&str> = (0..nodes).map(|other| if other == node { "10" } else { "21" }).collect();
            text += &format!("{node}: {}\n", row.join(" "));
        }
        Machine::from_listing("numactl", &text).unwrap()
    }

    fn experiment(study: Option<StudyMachine>, sets: &[(&str, Cpus)]) -> Experiment {
        let text = "name='x'\ntitle='x'\n[workload.w]\ndriver='cpu'\n[[condition]]\nname='a'\n[[measure]]\nname='m'\nis='w.rate'\n";
        let mut experiment = crate::read(&layout::Source::new("x", text)).experiment.unwrap();
        experiment.machine = study;
        experiment.cpus = sets.iter().map(|(name, set)| ((*name).to_owned(), set.clone())).collect();
        experiment
    }

    fn set(count: Option<u32>, from: CpusFrom, after: Option<&str>, node: Option<u32>) -> Cpus {
        let beside = after.map(str::to_owned);
        let (after, before) = match from {
            CpusFrom::Before => (None, beside),
            _ => (beside, None),
        };
        Cpus { count, from, after, before, node, within: None, as_many: false }
    }

    fn same(set: &str, other: &str, cpus: &str) -> Note {
        Note::SameCpus { set: set.to_owned(), other: other.to_owned(), cpus: cpus.to_owned() }
    }

    fn words(of: &Rescaled) -> Vec<String> {
        of.notes.iter().map(Note::to_string).collect()
    }

    fn study(cpus: u32, nodes: u32) -> Option<StudyMachine> {
        Some(StudyMachine { cpus, nodes, needs_nodes: 1, needs_cpus: 1 })
    }

    #[test]
    fn a_set_has_the_same_share_of_this_machine_and_at_least_one_cpu() {
        let sets = [
            ("one", set(Some(1), CpusFrom::Last, None, None)),
            ("all", set(None, CpusFrom::First, None, None)),
            ("half", set(Some(4), CpusFrom::First, None, None)),
            ("rest", set(Some(4), CpusFrom::After, Some("half"), None)),
        ];
        for (cpus, expected) in [
            (2, ["1", "0-1", "0", "1"]),
            (8, ["7", "0-7", "0-3", "4-7"]),
            (32, ["28-31", "0-31", "0-15", "16-31"]),
        ] {
            let found = rescale(&experiment(study(8, 1), &sets), &machine(cpus, 1)).unwrap();
            let of = |name: &str| found.sets[name].to_string();
            assert_eq!([of("one"), of("all"), of("half"), of("rest")], expected, "{cpus}");
            assert_eq!(
                found
                    .notes
                    .iter()
                    .any(|note| matches!(note, Note::RescaledCpus { study, .. } if study == "1, 4, 4 and 8")),
                cpus != 8
            );
        }
        let found = rescale(&experiment(study(8, 1), &sets), &machine(2, 1)).unwrap();
        assert!(found.notes.contains(&same("one", "rest", "1")), "{:?}", found.notes);
    }

    #[test]
    fn what_this_machine_can_not_show_is_reported_with_the_reason() {
        let node = [("n", set(None, CpusFrom::First, None, Some(1)))];
        let here = |study, cpus, nodes| rescale(&experiment(study, &node), &machine(cpus, nodes));
        assert_eq!(here(study(32, 4), 8, 2).unwrap().sets["n"].to_string(), "1,3,5,7");
        assert_eq!(here(study(32, 4), 8, 2).unwrap().mems["n"], "1");
        assert!(here(study(32, 4), 8, 1).unwrap_err().contains("NUMA node 1"));
        let needs = Some(StudyMachine { cpus: 32, nodes: 4, needs_nodes: 2, needs_cpus: 1 });
        assert_eq!(here(needs, 8, 1).unwrap_err(), "it needs 2 NUMA nodes, and this machine has 1");
        let behind = [
            ("a", set(None, CpusFrom::First, None, None)),
            ("b", set(Some(1), CpusFrom::After, Some("a"), None)),
        ];
        let shared = rescale(&experiment(None, &behind), &machine(4, 1)).unwrap();
        assert_eq!(shared.sets["b"].to_string(), "3");
        assert_eq!(words(&shared), ["no CPU is left for 'b' behind 'a': it shares CPU 3"]);
        let needs = Some(StudyMachine { cpus: 8, nodes: 1, needs_nodes: 1, needs_cpus: 5 });
        let few = rescale(&experiment(needs, &behind), &machine(4, 1)).unwrap_err();
        assert_eq!(few, "it needs 5 CPUs, and this machine has 4");
    }

    #[test]
    fn sets_that_are_swapped_never_share_a_cpu() {
        let sets = [
            ("few-first", set(Some(4), CpusFrom::First, None, None)),
            ("many-behind", set(Some(32), CpusFrom::After, Some("few-first"), None)),
            ("few-last", set(Some(4), CpusFrom::Last, None, None)),
            ("many-before", set(Some(32), CpusFrom::Before, Some("few-last"), None)),
        ];
        for (cpus, expected) in [
            (36, ["0-3", "4-35", "32-35", "0-31"]),
            (8, ["0", "1-7", "7", "0-6"]),
            (2, ["0", "1", "1", "0"]),
            (1, ["0", "0", "0", "0"]),
        ] {
            let found = rescale(&experiment(study(36, 1), &sets), &machine(cpus, 1)).unwrap();
            let of = |name: &str| found.sets[name].to_string();
            assert_eq!(["few-first", "many-behind", "few-last", "many-before"].map(of), expected, "{cpus}");
        }
    }

    #[test]
    fn a_set_for_a_load_that_does_not_grow_has_as_many_cpus_and_another_is_a_part_of_it() {
        let nine = Cpus { as_many: true, ..set(Some(9), CpusFrom::First, None, Some(0)) };
        let six = Cpus { within: Some("nine".to_owned()), ..set(Some(6), CpusFrom::First, None, None) };
        let sets = [("nine", nine), ("six", six)];
        let few = Note::FewerCpus { set: "nine".to_owned(), here: 2, study: 9 };
        let single = Note::OneNode { study: 8, sets: vec!["nine".to_owned()] };
        for (cpus, nodes, expected, notes) in [
            (2, 1, ["0-1", "0"], [true, true]),
            (8, 4, ["0,4", "0"], [true, false]),
            (16, 1, ["0-8", "0-5"], [false, true]),
            (64, 2, ["0,2,4,6,8,10,12,14,16", "0,2,4,6,8,10"], [false, false]),
        ] {
            let found = rescale(&experiment(study(160, 8), &sets), &machine(cpus, nodes)).unwrap();
            let of = |name: &str| found.sets[name].to_string();
            assert_eq!([of("nine"), of("six")], expected, "{cpus} CPUs on {nodes} nodes");
            let reported = [&few, &single].map(|note| found.notes.contains(note));
            assert_eq!(reported, notes, "{:?}", found.notes);
            assert_eq!((found.mems["nine"].as_str(), found.mems["six"].as_str()), ("0", "0"));
        }
    }

    #[test]
    fn four_nodes_are_taken_in_turn_where_there_are_two() {
        let sets: Vec<(&str, Cpus)> = [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
            .map(|(name, node)| (name, set(None, CpusFrom::First, None, Some(node))))
            .to_vec();
        let found = rescale(&experiment(study(32, 4), &sets), &machine(8, 2)).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|name| found.mems[name].clone()), ["0", "1", "0", "1"]);
        assert!(found.notes.contains(&same("a", "c", "0,2,4,6")));
        assert_eq!(words(&found)[0], "the study's 8, 8, 8 and 8 CPUs run here as 4, 4, 4 and 4");
    }

    #[test]
    fn a_share_is_not_rounded_to_whole_cpus() {
        let sets = [("two", set(Some(2), CpusFrom::First, None, None))];
        let of = |cpus| {
            let found = rescale(&experiment(study(32, 1), &sets), &machine(cpus, 1)).unwrap();
            found.fill("{two.share}", &BTreeMap::new()).unwrap()
        };
        assert_eq!([2, 3, 32, 64].map(of), ["12.5%", "18.75%", "200%", "400%"]);
        // where only the share is used, the CPU that it would be is not shown
        let mut only = experiment(study(32, 1), &sets);
        let share = [("cpu.max".to_owned(), "{two.share}".to_owned())].into();
        only.condition[0].settings = [("g".to_owned(), share)].into();
        let found = rescale(&only, &machine(2, 1)).unwrap();
        assert_eq!(words(&found), ["the study's 2 of 32 CPUs run here as 12.5% of a CPU's time"]);
        assert_eq!(found.rows[0].2, "12.5% of a CPU's time");
    }

    #[test]
    fn names_in_values_stand_for_sets_and_devices() {
        let sets = [
            ("one", set(Some(1), CpusFrom::Last, None, None)),
            ("all", set(None, CpusFrom::First, None, None)),
        ];
        let found = rescale(&experiment(study(8, 1), &sets), &machine(4, 1)).unwrap();
        let devices = BTreeMap::from([("disk".to_owned(), "/dev/loop7".to_owned())]);
        for (text, expected) in [
            ("{one}", "3"),
            ("{all}", "0-3"),
            ("{all.count}", "4"),
            ("{all.quota}", "400%"),
            ("{one.mems}", "0"),
            ("{disk} riops=10", "/dev/loop7 riops=10"),
            ("8G", "8G"),
        ] {
            assert_eq!(found.fill(text, &devices).as_deref(), Ok(expected));
        }
        assert_eq!(found.fill("{two}", &devices), Err("two".to_owned()));
        assert_eq!(found.fill("{one.size}", &devices), Err("one.size".to_owned()));
        assert_eq!(found.fill("{one", &devices), Err("one".to_owned()));
    }
}
