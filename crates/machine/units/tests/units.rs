//! Round trips and refusals of the units' text forms.
#![allow(clippy::unwrap_used, reason = "a test's failure is a panic")]

use proptest::prelude::*;
use units::hint::Command;
use units::{Bytes, CpuSet, Limit, MAX_ID, Micros, nearest, printable, shell_quote};

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn amounts_for_reading_have_one_decimal_at_most() {
    for (bytes, text) in [
        (0, "0"),
        (1023, "1023"),
        (1 << 20, "1M"),
        (1536 << 20, "1.5G"),
        (24_683_656 << 10, "23.5G"),
        // not 1024.0M
        ((1 << 30) - 1, "1G"),
        (u64::MAX, "16E"),
    ] {
        assert_eq!(Bytes(bytes).rounded(), text, "{bytes}");
    }
}

#[test]
fn a_list_prints_as_the_kernel_prints_it() {
    for (given, printed) in [
        ("", ""),
        ("0", "0"),
        ("3,1,2", "1-3"),
        ("0-1", "0-1"),
        ("0-31:2/4", "0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29"),
        ("0,4,8,12,16,20,24,28\n", "0,4,8,12,16,20,24,28"),
        ("1-10,41-50", "1-10,41-50"),
        ("00007", "7"),
        // seen on Linux 6.18
        ("0, 1", "0-1"),
        ("0 1\t3", "0-1,3"),
        (",0,,1,", "0-1"),
        (" 0 , 1 ", "0-1"),
    ] {
        assert_eq!(cpus(given).to_string(), printed, "{given:?}");
    }
}

#[test]
fn a_wrong_list_says_where_it_is_wrong() {
    for (given, at, reason) in [
        ("a", 0, "expected a number"),
        ("3-1", 0, "the end of the range is below its start"),
        ("0-", 2, "expected a number"),
        ("-1", 0, "expected a number"),
        ("1-2-3", 3, "expected ',' or '-' between numbers"),
        // to the kernel this is the empty list, and to whoever wrote it a mistake
        (",", 1, "expected a number"),
        ("0 -1", 2, "expected a number"),
        ("0- 1", 2, "expected a number"),
        ("0\n1", 1, "expected ',' or '-' between numbers"),
        ("99999999999999999999", 0, "number is over 65535"),
        ("0-65536", 2, "number is over 65535"),
        ("0-7:3/2", 0, "group size must be at least the used part, and both at least 1"),
        ("0-7:1/0", 0, "group size must be at least the used part, and both at least 1"),
        ("0-7:1", 5, "expected '/' and the group size"),
        ("٣", 0, "expected a number"),
    ] {
        let error = given.parse::<CpuSet>().unwrap_err();
        assert_eq!((error.at, error.reason), (at, reason), "{given:?}");
    }
}

#[test]
fn masks_are_read_as_sysfs_and_hwloc_print_them() {
    for (mask, list) in
        [("ff", "0-7"), ("00000001,00000000", "32"), ("0x00000003", "0-1"), ("0x1,,0x0", "64"), ("0", "")]
    {
        assert_eq!(CpuSet::from_mask(mask).unwrap(), cpus(list), "{mask}");
    }
    for mask in ["", "xyz", "123456789", "+f"] {
        assert!(CpuSet::from_mask(mask).is_err(), "{mask}");
    }
}

#[test]
fn amounts_are_read_with_their_units_and_refused_without_sense() {
    for (given, bytes) in [
        ("8G", 8 << 30),
        ("8GiB", 8 << 30),
        ("1.5k", 1536),
        ("512 MB", 512 << 20),
        ("0", 0),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(given.parse::<Bytes>().unwrap(), Bytes(bytes), "{given}");
    }
    for given in [
        "",
        "G",
        "-1",
        "8X",
        "8Gi G",
        "1..5G",
        "1.",
        ".5G",
        "0.3",
        "16E",
        "1e3",
        "99999999999999999999999999999999",
    ] {
        assert!(given.parse::<Bytes>().is_err(), "{given}");
    }
    for (given, us) in [("50ms", 50_000), ("1.5s", 1_500_000), ("100us", 100), ("7", 7), ("1min", 60_000_000)]
    {
        assert_eq!(given.parse::<Micros>().unwrap(), Micros(us), "{given}");
    }
    for given in ["50 parsecs", "ms", "0.5us", "1h"] {
        assert!(given.parse::<Micros>().is_err(), "{given}");
    }
}

#[test]
fn every_bound_is_below_no_bound() {
    assert!(Limit::At(u64::MAX) < Limit::Max);
    assert_eq!(Limit::At(Bytes(1 << 30)).to_string(), "1G");
    assert_eq!(Limit::<Bytes>::Max.to_string(), "max");
}

#[test]
fn a_mistyped_name_finds_its_neighbours_and_nonsense_finds_none() {
    let known = ["cpu.max", "cpu.weight", "memory.max", "memory.high", "cpuset.cpus", "cpuset.mems"];
    assert_eq!(nearest("cpu.mx", known)[0], "cpu.max");
    assert_eq!(nearest("cpuset.cpu", known)[0], "cpuset.cpus");
    assert_eq!(nearest("memory.maximum", known)[0], "memory.max");
    assert!(nearest("zzzzzz", known).is_empty());
}

/// Finding A12 of the newcomers' review.
#[test]
fn an_exact_ending_comes_first_and_then_the_shortest_name() {
    let known = [
        "cpuset.cpus.exclusive.effective",
        "cpuset.sched_relax_domain_level",
        "cpuset.cpus.exclusive",
        "cpuset.cpus",
        "cpuset.mems",
        "memory.kmem.tcp.max_usage_in_bytes",
        "memory.memsw.max_usage_in_bytes",
        "memory.low",
        "memory.max",
        "memory.oom.group",
        "cpu.max",
    ];
    assert_eq!(nearest("cpus", known)[0], "cpuset.cpus");
    assert_eq!(nearest("mems", known)[0], "cpuset.mems");
    assert_eq!(nearest("memory", known), ["memory.low", "memory.max", "memory.oom.group"]);
    assert_eq!(nearest("cpu", known)[0], "cpu.max");
    assert!(nearest("", known).is_empty());
}

/// attack finding 12.
#[test]
fn nothing_that_steers_a_terminal_is_printable() {
    assert_eq!(printable("db/größe 1"), "db/größe 1");
    assert!(matches!(printable("plain"), std::borrow::Cow::Borrowed("plain")));
    let hostile = "a\u{1b}]0;x\u{7}\r\n\t\u{9b}2J\u{202e}b\u{2066}\u{200f}\u{feff}\u{7f}";
    let shown = printable(hostile);
    assert_eq!(shown, r"a\u{1b}]0;x\u{7}\r\n\t\u{9b}2J\u{202e}b\u{2066}\u{200f}\u{feff}\u{7f}");
    assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()));
}

#[test]
fn a_command_takes_hostile_names_as_one_word_each() {
    let command = Command::ringfence("set").group("a $(touch x)").arg("cpu.max=1,2").arg("it's").arg("");
    let command = command.group("-rf").sudo().to_string();
    assert_eq!(command, r"sudo ringfence set 'a $(touch x)' cpu.max=1,2 'it'\''s' '' /-rf");
    let words = shlex::split(&command).expect("a shell reads it");
    assert_eq!(words, ["sudo", "ringfence", "set", "a $(touch x)", "cpu.max=1,2", "it's", "", "/-rf"]);
}

proptest! {
    #[test]
    fn a_shell_reads_a_quoted_word_back(word in "\\PC*") {
        let line = format!("x {}", shell_quote(&word));
        prop_assert_eq!(shlex::split(&line), Some(vec!["x".to_owned(), word]));
    }

    #[test]
    fn what_is_printed_reads_back(ids in proptest::collection::btree_set(0..=MAX_ID, 0..2000)) {
        let set: CpuSet = ids.iter().copied().collect();
        prop_assert_eq!(&set, &cpus(&set.to_string()));
        prop_assert_eq!(set.len(), ids.len());
        prop_assert_eq!(set.first(), ids.first().copied());
        prop_assert_eq!(set.last(), ids.last().copied());
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), ids.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn set_operations_are_those_of_mathematics(
        a in proptest::collection::btree_set(0usize..300, 0..80),
        b in proptest::collection::btree_set(0usize..300, 0..80),
    ) {
        let (x, y): (CpuSet, CpuSet) = (a.iter().copied().collect(), b.iter().copied().collect());
        prop_assert_eq!(x.union(&y), a.union(&b).copied().collect());
        prop_assert_eq!(x.intersection(&y), a.intersection(&b).copied().collect());
        prop_assert_eq!(x.difference(&y), a.difference(&b).copied().collect());
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
        let mut z = x.clone();
        for id in &b { z.remove(*id); }
        prop_assert_eq!(z, x.difference(&y));
    }

    #[test]
    fn a_range_holds_just_its_numbers(first in 0usize..500, length in 0usize..300, used in 1usize..5, more in 0usize..5) {
        let last = first + length;
        let listed: CpuSet = cpus(&format!("{first}-{last}:{used}/{}", used + more));
        let counted: CpuSet = (first..=last).filter(|id| (id - first) % (used + more) < used).collect();
        prop_assert_eq!(listed, counted);
        prop_assert_eq!(CpuSet::range(first, last), (first..=last).collect());
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}") {
        let _ = text.parse::<CpuSet>();
        let _ = CpuSet::from_mask(&text);
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Micros>();
    }

    #[test]
    fn amounts_read_back(n in any::<u64>()) {
        prop_assert_eq!(Bytes(n).to_string().parse::<Bytes>().unwrap(), Bytes(n));
        prop_assert_eq!(Micros(n).to_string().parse::<Micros>().unwrap(), Micros(n));
    }
}
