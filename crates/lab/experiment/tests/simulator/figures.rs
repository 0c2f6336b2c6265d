//! The policy's figures with every kind of load, beside others' rules. `--nocapture` prints the table.
#![allow(clippy::print_stdout, reason = "a table on request")]

use experiment::simulator::{self, Kind, Load, Outcome, Rule, simulate};
use policy::{Elastic, Units};

use super::{group, loads, machine};

/// Small, with SMT, and large, where eight groups with weights of 1 to 4.5 meet.
fn situations() -> [(&'static str, Vec<Elastic>, Units); 3] {
    let eight = (0..8).map(|number| group(&format!("g{number}"), 4, 60, 100 + number * 50)).collect();
    let three = vec![group("oltp", 4, 32, 300), group("web", 4, 24, 200), group("batch", 2, 32, 100)];
    [
        ("16 CPUs", vec![group("db", 2, 14, 300), group("batch", 2, 14, 100)], machine(1, 16, 1)),
        ("40 CPUs, SMT", three, machine(2, 10, 2)),
        ("160 CPUs, SMT", eight, machine(4, 20, 2)),
    ]
}

/// As the recorder sees bursts: averages over uneven spans of about a second.
fn recorded(bursts: &Load) -> Load {
    let samples = |demands: &Vec<f64>| {
        let (mut from, mut out) = (0, Vec::new());
        for (number, span) in [10, 11, 9, 12].into_iter().cycle().enumerate().take(demands.len() / 11) {
            let until = from + span + number % 2;
            let part = &demands[from.min(demands.len())..until.min(demands.len())];
            if part.is_empty() {
                break;
            }
            out.push((until as f64 * simulator::STEP, part.iter().sum::<f64>() / part.len() as f64));
            from = until;
        }
        out
    };
    Load::recorded("recorded", &bursts.demands.iter().map(samples).collect::<Vec<_>>())
}

fn outcomes() -> Vec<(&'static str, Vec<Outcome>)> {
    let one = |(title, groups, units): (&'static str, Vec<Elastic>, Units)| {
        let mut loads = loads(&groups, &units, &Kind::ALL);
        let bursts = loads.iter().find(|load| load.name == "pareto").map(recorded);
        loads.extend(bursts);
        (title, simulate(&groups, &units, &loads, &Rule::ALL).unwrap())
    };
    situations().map(one).into()
}

fn of<'o>(all: &'o [Outcome], load: &str, rule: Rule) -> &'o Outcome {
    all.iter().find(|one| one.load == load && one.rule == rule.name()).unwrap()
}

/// Loads that turn every 2 s in opposite phases cost CPU time with every rule that does not know them: lending what comes
/// back at once does harm, and the policy stops that. No more of it is stranded than without any change.
const TOO_SHORT: &str = "square-4s";

#[test]
fn little_work_is_lost_and_few_cpus_are_stranded() {
    for (title, all) in outcomes() {
        for one in &all {
            println!(
                "{title:14} {:12} {:12} lost {:6.2} stranded {:6.2} unused {:6.2} changes {:5} most {:5} walk {}",
                one.load,
                one.rule,
                one.lost_percent,
                one.stranded_percent,
                one.unused_percent,
                one.changes,
                one.most_changes,
                one.walk
            );
        }
        for one in all.iter().filter(|one| one.rule == Rule::Policy.name()) {
            assert!(one.lost_percent <= 0.5, "{title} {}: lost {}", one.load, one.lost_percent);
            let bound = match one.load.as_str() {
                TOO_SHORT => of(&all, TOO_SHORT, Rule::Static).stranded_percent,
                _ => 25.0,
            };
            assert!(one.stranded_percent <= bound, "{title} {}: stranded {}", one.load, one.stranded_percent);
        }
        let constant = of(&all, "constant", Rule::Policy);
        assert!(constant.most_changes <= 1, "{title}: {} changes", constant.most_changes);
    }
}

/// By what is lost and stranded together; a twentieth of a per cent is nothing.
#[test]
fn the_policy_is_never_a_tenth_worse_than_scx_layereds_rule_and_mostly_better() {
    for (title, all) in outcomes() {
        let cost = |one: &Outcome| one.lost_percent + one.stranded_percent;
        let pairs = all.iter().filter(|one| one.rule == Rule::Policy.name());
        let pairs: Vec<(&Outcome, &Outcome)> =
            pairs.map(|one| (one, of(&all, &one.load, Rule::Layered))).collect();
        for (ours, theirs) in &pairs {
            let (our, their) = (cost(ours), cost(theirs));
            assert!(our <= their * 1.1 + 0.05, "{title} {}: {our} beside {their}", ours.load);
        }
        let better = pairs.iter().filter(|(ours, theirs)| cost(ours) < cost(theirs)).count();
        assert!(better >= 4, "{title}: better on {better}");
    }
}

#[test]
fn who_knows_the_load_loses_nothing_so_that_all_loss_is_the_rules() {
    for (title, all) in outcomes() {
        for one in all.iter().filter(|one| one.rule == Rule::Clairvoyant.name()) {
            assert!(one.lost_percent < 0.01, "{title} {}: {}", one.load, one.lost_percent);
        }
    }
}
