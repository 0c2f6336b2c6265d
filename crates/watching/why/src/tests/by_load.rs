//! Groups whose CPUs or quota ringfenced changes: no hint writes what it changes.

use apply::{Again, Bounds, Ended, Following, LeftAlone, RangeNumbers, RangeStatus, Resize, Subject};

use super::*;

const LAYOUT: &str = "/etc/ringfence/db.toml";

/// `db/oltp` waits for itself on CPUs 0-1, and may have up to `max` of 0-3.
fn waiting(max: usize, free: &str) -> Facts {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(20);
    facts.cpu.waited = Some(Duration::from_secs(10));
    let bounds = Bounds { min: 1, max, weight: 300, pool: cpus("0-3"), saves_power: false };
    follow(&mut facts, Some(bounds), free, Vec::new());
    facts
}

/// A quota of 20 ms stops `db/oltp`; it follows the load up to `max` CPUs.
fn throttled(max: f64) -> Facts {
    let mut facts = facts();
    facts.cpu.used = Duration::from_secs(2);
    facts.cpu.waited = Some(Duration::from_secs(8));
    set_quota(&mut facts.levels[0], Duration::from_secs(8));
    let range = RangeStatus {
        setting: "cpu.max".to_owned(),
        min: "10%".to_owned(),
        max: format!("{}%", max * 100.0),
        now: Some("20%".to_owned()),
        numbers: RangeNumbers { min: 0.1, max, now: Some(0.2) },
    };
    follow(&mut facts, None, "", vec![range]);
    facts
}

fn follow(facts: &mut Facts, bounds: Option<Bounds>, free: &str, ranges: Vec<RangeStatus>) {
    let group = Following {
        group: "db/oltp".to_owned(),
        cpus: bounds.as_ref().map(|_| cpus("0-1")),
        bounds,
        lent: CpuSet::new(),
        borrowed: CpuSet::new(),
        ranges,
        last: None,
    };
    let resized = Resized {
        level: group.group.clone(),
        group,
        free: if free.is_empty() { CpuSet::new() } else { cpus(free) },
    };
    facts.by_load = ByLoad { groups: vec![resized], ..ByLoad::default() };
    facts.bound.layout = Some(LAYOUT.into());
}

/// The end of the only cause's sentence, and its hint.
fn said(facts: &Facts) -> (String, Option<String>) {
    let answer = why(facts);
    assert_eq!(answer.causes.len(), 1, "{answer}");
    let cause = &answer.causes[0];
    let sentence = &cause.sentence;
    (sentence.rsplit("; ").next().unwrap_or_default().to_owned(), cause.hint.clone())
}

fn halted(facts: &mut Facts) {
    let (why, hint) = ("resizing is paused".to_owned(), Some("ringfence resume".to_owned()));
    facts.by_load.halt = Some(Halt { why, hint });
}

#[test]
fn a_hint_never_writes_the_cpus_of_an_elastic_group() {
    let (ending, hint) = said(&waiting(2, "2-3"));
    assert_eq!(ending, "it is elastic, and 2 is its max");
    let raise = "in cpus = { min, max, weight } of group db/oltp in /etc/ringfence/db.toml, then: \
                 ringfence apply /etc/ringfence/db.toml";
    assert_eq!(hint.unwrap(), format!("raise max {raise}"));
    let (ending, hint) = said(&waiting(4, ""));
    assert_eq!(ending, "it is elastic, and other groups have the rest of the CPUs that they share");
    assert_eq!(hint.unwrap(), format!("raise weight (300) or min (1) {raise}"));
    let adds = "it is elastic, and ringfenced gives it up to 4 while it waits";
    assert_eq!(said(&waiting(4, "3")), (adds.to_owned(), None));
    // nor where CPUs idle beside those that others use
    let mut facts = waiting(2, "2-3");
    facts.cpu.used = Duration::from_secs(10);
    (facts.cpu.foreign, facts.cpu.others, facts.cpu.idle) = (Duration::from_secs(20), others(), cpus("3"));
    assert_eq!(said(&facts).1.unwrap(), format!("raise max {raise}"));
    // a record of an earlier version has no path
    facts.bound.layout = None;
    let hint = said(&facts).1.unwrap();
    assert!(hint.ends_with("of group db/oltp in its layout, and apply that"), "{hint}");
}

#[test]
fn where_nobody_resizes_the_hint_is_what_changes_that_unless_the_group_is_at_its_max() {
    let mut facts = waiting(4, "2-3");
    halted(&mut facts);
    let (ending, hint) = said(&facts);
    assert_eq!(
        (ending.as_str(), hint.as_deref()),
        ("it is elastic up to 4, but resizing is paused", Some("ringfence resume"))
    );
    let mut facts = waiting(2, "2-3");
    halted(&mut facts);
    assert!(said(&facts).1.unwrap().starts_with("raise max"));
}

#[test]
fn where_resizing_has_ended_by_itself_the_hint_starts_it_again() {
    let ended = |of: Subject| Ended { of, why: "6 shrinks did harm".to_owned() };
    let cpus = |groups: &[&str]| Subject::Cpus(groups.iter().map(ToString::to_string).collect());
    let quota = || Subject::Quota("db/oltp".to_owned());
    let mut facts = waiting(4, "2-3");
    facts.by_load.ended = vec![ended(cpus(&["batch", "db/oltp"]))];
    let words =
        "it is elastic up to 4, but resizing of the CPUs of batch, db/oltp has ended: 6 shrinks did harm";
    assert_eq!(said(&facts), (words.to_owned(), Some("ringfence resume".to_owned())));
    facts.by_load.ended = vec![ended(cpus(&["db"])), ended(quota())];
    assert_eq!(said(&facts).1, None);
    let mut facts = throttled(1.0);
    facts.by_load.ended = vec![ended(quota())];
    assert_eq!(said(&facts).1.as_deref(), Some("ringfence resume"));
}

/// `resume` changes nothing there: each second is a try.
#[test]
fn where_resizing_fails_the_hint_is_the_plan_of_the_layout() {
    let why = "nothing is resized, and it is tried every second: 4 CPUs are guaranteed and 3 are there";
    let mut facts = waiting(4, "2-3");
    facts.by_load.halt = Some(Halt { why: why.to_owned(), hint: None });
    let (ending, hint) = said(&facts);
    assert_eq!(ending, format!("it is elastic up to 4, but {why}"));
    assert_eq!(hint.as_deref(), Some("ringfence plan /etc/ringfence/db.toml"));
    facts.bound.layout = None;
    assert_eq!(said(&facts).1, None);
}

#[test]
fn where_a_group_is_left_alone_the_hint_is_the_next_apply() {
    let left = |setting: &str| LeftAlone {
        group: "db/oltp".to_owned(),
        setting: setting.to_owned(),
        why: "somebody removed it and made it again".to_owned(),
    };
    let mut again = Again::default();
    again.layout = Some("/etc/ringfence/db.toml".into());
    let mut facts = waiting(4, "2-3");
    facts.by_load.again = again.clone();
    facts.by_load.left_alone = vec![left("cpuset.cpus")];
    let words =
        "it is elastic up to 4, but it is not resized: somebody removed it and made it again".to_owned();
    assert_eq!(said(&facts), (words, Some("ringfence apply /etc/ringfence/db.toml".to_owned())));
    facts.by_load.left_alone = vec![left("cpu.max")];
    assert_eq!(said(&facts).1, None);
    let mut facts = throttled(1.0);
    facts.by_load.again = again;
    facts.by_load.left_alone = vec![left("cpu.max")];
    assert_eq!(said(&facts).1.as_deref(), Some("ringfence apply /etc/ringfence/db.toml"));
}

#[test]
fn a_group_with_all_that_it_could_have_gets_no_hint() {
    let mut facts = waiting(2, "");
    facts.by_load.groups[0].group.bounds.as_mut().unwrap().pool = cpus("0-1");
    let words = "it is elastic, and has all CPUs that elastic groups share";
    assert_eq!(said(&facts), (words.to_owned(), None));
    facts.by_load.groups[0].group.bounds.as_mut().unwrap().saves_power = true;
    assert_eq!(said(&facts), ("these are all that general groups may have".to_owned(), None));
    // confined by power saving
    let mut facts = waiting(4, "2-3");
    facts.by_load.groups[0].group.bounds.as_mut().unwrap().saves_power = true;
    assert_eq!(said(&facts), ("power saving gives it more as soon as it waits".to_owned(), None));
    halted(&mut facts);
    assert_eq!(said(&facts).1.as_deref(), Some("ringfence resume"));
}

#[test]
fn a_hint_never_writes_a_quota_that_follows_the_load() {
    let raise = "in cpu.max = { min, max } of group db/oltp in /etc/ringfence/db.toml, then: \
                 ringfence apply /etc/ringfence/db.toml";
    let (ending, hint) = said(&throttled(0.2));
    assert_eq!(ending, "it follows the load, and 0.2 CPUs is its max");
    assert_eq!(hint.unwrap(), format!("raise max {raise}"));
    let mut facts = throttled(1.0);
    let grows = "it follows the load, and ringfenced raises it up to 1 CPU";
    assert_eq!(said(&facts), (grows.to_owned(), None));
    halted(&mut facts);
    let (ending, hint) = said(&facts);
    assert_eq!(ending, "it follows the load up to 1 CPU, but resizing is paused");
    assert_eq!(hint.as_deref(), Some("ringfence resume"));
    // its bucket is empty
    let mut facts = throttled(1.0);
    let numbers = serde_json::json!({ "reason": "spent" });
    let texts = ("40%".to_owned(), "20%".to_owned());
    facts.by_load.groups[0].group.last =
        Some(Resize::now("db/oltp", "cpu.max", texts, (String::new(), numbers)));
    let (ending, hint) = said(&facts);
    assert_eq!(ending, "it follows the load, and what the group may use above its min is spent");
    assert_eq!(hint.unwrap(), format!("raise min (0.1 CPUs) {raise}"));
}

/// The level above is not elastic: its CPUs are set by hand as before.
#[test]
fn other_groups_are_advised_as_before() {
    let mut facts = waiting(2, "");
    facts.by_load.groups[0].level = "db/other".to_owned();
    assert_eq!(said(&facts).1.as_deref(), Some("ringfence set db/oltp cpuset.cpus=0-2"));
}
