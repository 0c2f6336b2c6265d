//! What an answer says as a whole: shares, thresholds, words.

use super::*;

#[test]
fn a_group_that_waits_for_nothing_is_shown_with_what_it_used() {
    let answer = why(&facts());
    assert_eq!(answer.causes, []);
    let text = answer.to_string();
    assert!(text.contains("nothing slowed it down") && text.contains("cpu.usage 10.0 s"), "{text}");
    assert!(text.contains("memory.current 1.0 GiB"), "{text}");
}

/// Attack finding 12: a user who may make a group chooses its name.
#[test]
fn names_do_not_steer_the_terminal() {
    let mut facts = facts();
    facts.group = "db\u{1b}[2J/\u{202e}a".to_owned();
    facts.levels[0].group.clone_from(&facts.group);
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    facts.cpu.others[0].task = "cc1\u{9b}\r 4711".to_owned();
    facts.cpu.others[0].rival = Some(("batch\u{7}".to_owned(), 100));
    facts.cpu.others[0].meets = 0;
    let text = why(&facts).to_string();
    assert_eq!(units::printable(&text.replace('\n', " ")), text.replace('\n', " "));
    assert!(text.contains(r"db\u{1b}[2J/\u{202e}a") && text.contains(r"cc1\u{9b}\r"), "{text}");
}

#[test]
fn a_cause_below_two_hundredths_is_not_named() {
    let mut facts = facts();
    facts.cpu.foreign = Duration::from_secs(10);
    facts.cpu.waited = Some(millis(199));
    assert_eq!(kinds(&facts), []);
    facts.cpu.waited = Some(millis(201));
    assert_eq!(kinds(&facts), [Kind::Neighbours]);
}

#[test]
fn shares_and_use_are_the_whole() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(6));
    facts.cpu.foreign = Duration::from_secs(2);
    facts.io.pressure = Some(Duration::from_secs(4));
    facts.io.devices = vec![device(1000, 0)];
    assert_eq!(kinds(&facts), [Kind::FewCpus, Kind::Device, Kind::Neighbours]);
    let shares: f64 = why(&facts).causes.iter().filter_map(|cause| cause.share).sum();
    assert!((shares + 10.0 / 20.0 - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn what_was_set_is_shown_without_the_digits_that_say_nothing() {
    let shown = [5, 50, 100, 1000, 1500].map(|time| words::exact(millis(time)));
    assert_eq!(shown, ["5 ms", "50 ms", "100 ms", "1 s", "1.5 s"]);
}

/// The name of a group is its maker's choice, and root pastes the hint.
#[test]
fn a_hostile_name_comes_back_whole_from_every_hint() {
    let name = "a $(touch x)";
    let mut facts = facts();
    set_quota(&mut facts.levels[0], Duration::from_secs(3));
    facts.levels[0].frozen = (true, true);
    facts.levels[0].failed_forks = 1;
    facts.levels[0].pids_max = Some(Limit::At(3));
    facts.levels[0].group = name.to_owned();
    facts.group = name.to_owned();
    facts.cpu.waited = Some(Duration::from_secs(6));
    facts.cpu.foreign = Duration::from_secs(2);
    let answer = why(&facts);
    let hints: Vec<&str> = answer.causes.iter().filter_map(|cause| cause.hint.as_deref()).collect();
    assert!(hints.len() >= 3, "{answer}");
    for hint in hints {
        let words = shlex::split(hint).unwrap();
        assert!(words.iter().any(|word| word == name), "{hint}");
    }
}

#[test]
fn a_long_sentence_is_broken_and_a_command_is_not() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    facts.cpu.idle = cpus("2-3");
    let text = why(&facts).to_string();
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.contains("\n   hint: ringfence set db/oltp cpuset.cpus=0-3\n"), "{text}");
    assert!(text.contains("\n1. 33% neighbours, 5.00 s lost\n"), "{text}");
}
