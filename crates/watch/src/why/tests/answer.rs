//! What an answer says as a whole: shares, thresholds, words.

use super::*;

#[test]
fn a_group_that_waits_for_nothing_is_told_what_it_used() {
    let answer = why(&facts());
    assert_eq!(answer.causes, []);
    let text = answer.to_string();
    assert!(text.contains("nothing held it back") && text.contains("cpu.usage 10.0 s"), "{text}");
    assert!(text.contains("memory.current 1.0 GiB"), "{text}");
}

#[test]
fn a_cause_below_two_hundredths_is_not_told() {
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
fn what_was_set_is_told_without_the_digits_that_say_nothing() {
    let told = [5, 50, 100, 1000, 1500].map(|time| words::exact(millis(time)));
    assert_eq!(told, ["5 ms", "50 ms", "100 ms", "1 s", "1.5 s"]);
}

#[test]
fn a_name_that_a_shell_would_take_apart_is_quoted() {
    assert_eq!(words::quoted("db/oltp-1"), "db/oltp-1");
    assert_eq!(words::quoted("my db's"), r"'my db'\''s'");
}

#[test]
fn a_long_sentence_is_broken_and_a_command_is_not() {
    let mut facts = facts();
    facts.cpu.waited = Some(Duration::from_secs(5));
    facts.cpu.foreign = Duration::from_secs(6);
    facts.cpu.others = others();
    let text = why(&facts).to_string();
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.contains("\n   hint: ringfence set batch cpuset.cpus=2-7\n"), "{text}");
    assert!(text.contains("\n1. 33% neighbours, 5.00 s lost\n"), "{text}");
}
