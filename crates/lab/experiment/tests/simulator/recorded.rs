//! The policy's figures with a load that `ringfence record` saw: 95 s of two groups on two busy CPUs, `oltp` with bursts of many
//! short requests, `batch` in turns of computing and sleep; `ringfence record --interval 500ms /rf-test-pol2`.
#![allow(clippy::print_stdout, reason = "a table on request")]

use std::path::Path;
use std::time::SystemTime;

use experiment::simulator::{self, Load, Rule, simulate};
use monitor::{Log, Sample, rates};

use super::{group, machine};

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/recorded");
const GROUPS: [&str; 2] = ["rf-test-pol2/oltp", "rf-test-pol2/batch"];

/// The number of such machines that count as one: two CPUs divide nothing.
const MACHINES: f64 = 8.0;

fn load() -> Load {
    let mut samples = Log::open(Path::new(LOG)).unwrap().since(SystemTime::UNIX_EPOCH);
    let mut uses = [Vec::new(), Vec::new()];
    let (mut before, mut began): (Option<Sample>, Option<SystemTime>) = (None, None);
    while let Some(sample) = samples.next_sample().unwrap() {
        let since = sample.at.unwrap().duration_since(*began.get_or_insert(sample.at.unwrap())).unwrap();
        if let Some(before) = &before {
            for (name, uses) in GROUPS.iter().zip(&mut uses) {
                let row = sample.groups.row(name).unwrap();
                let column = sample.groups.columns().first_named("cpu.usage").unwrap();
                let used = rates::between(&before.groups, &sample.groups, row, column);
                let used = used.and_then(|figure| figure.value);
                uses.extend(used.map(|used| (since.as_secs_f64(), used * MACHINES)));
            }
        }
        before = Some(sample);
    }
    Load::recorded("recorded", &uses)
}

#[test]
fn a_recorded_load_loses_nothing_to_speak_of_and_strands_less_than_a_static_division() {
    let load = load();
    assert!(load.steps() > 900, "{} steps", load.steps());
    let mean = |group: usize| load.demands[group].iter().sum::<f64>() / load.steps() as f64;
    assert!(mean(0) > 0.5 && mean(1) > 0.5, "{} and {} CPUs", mean(0), mean(1));
    let groups = [group("oltp", 2, 14, 300), group("batch", 2, 14, 100)];
    let all = simulate(&groups, &machine(1, 16, 1), &[load], &Rule::ALL).unwrap();
    for one in &all {
        println!(
            "{:12} lost {:6.2} stranded {:6.2} unused {:6.2} changes {:5} walk {}",
            one.rule, one.lost_percent, one.stranded_percent, one.unused_percent, one.changes, one.walk
        );
    }
    let of = |rule: Rule| all.iter().find(|one| one.rule == rule.name()).unwrap();
    let (ours, fixed, layered) = (of(Rule::Policy), of(Rule::Static), of(Rule::Layered));
    assert!(ours.lost_percent <= 0.5 && ours.stranded_percent <= 25.0, "{ours:?}");
    let cost = |one: &simulator::Outcome| one.lost_percent + one.stranded_percent;
    assert!(cost(ours) <= cost(fixed) + 0.05, "{} beside {}", cost(ours), cost(fixed));
    assert!(cost(ours) <= cost(layered) * 1.1 + 0.05, "{} beside {}", cost(ours), cost(layered));
    assert!(ours.unused_percent < fixed.unused_percent, "{ours:?}");
}
