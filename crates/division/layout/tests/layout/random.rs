//! Texts that nobody would write: none makes a reader panic, and large ones are read in reasonable time.

use layout::{Severity, Source, read_cgconfig, read_cgrules, read_toml, render};
use proptest::prelude::*;

use super::exports::assert_toml_is_the_same;
use super::studies::{EXAMPLE, S1, S2};

/// Reads a text by all three grammars and shows what is wrong.
fn survive(text: &str) {
    let source = [Source::new("f", text)];
    for reading in
        [read_toml(&source), read_cgconfig("f", text), read_cgrules("f", text), layout::read(&source)]
    {
        let errors = reading.diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
        assert_eq!(reading.desired.is_none(), errors > 0);
        for origin in reading.diagnostics.iter().filter_map(|found| found.origin.as_ref()) {
            let line = source[0].text.split('\n').nth(origin.line - 1);
            let line = line.unwrap_or_else(|| panic!("no line {} in {text:?}", origin.line));
            assert!(origin.column <= line.chars().count() + 1, "no column {} in {line:?}", origin.column);
        }
        let shown = render(&reading.diagnostics, &source);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        if let Some(desired) = reading.desired {
            assert_toml_is_the_same(&desired);
        }
    }
}

const PIECES: [&str; 64] = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ";",
    ",",
    ".",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "#",
    "\n",
    "\n\n",
    " ",
    "\t",
    "\\",
    "%",
    "%u",
    "*",
    "@dba",
    ":",
    "/",
    "..",
    "groups",
    "group",
    "template",
    "templates",
    "default",
    "defaults",
    "mount",
    "namespace",
    "systemd",
    "perm",
    "task",
    "admin",
    "uid",
    "rules",
    "match",
    "cpus",
    "mems",
    "exclusive",
    "near",
    "like",
    "count",
    "cpu",
    "memory",
    "cpuset",
    "io.max",
    "memory.max",
    "cpu.shares",
    "cpuset.cpus",
    "hugetlb.2MB.max",
    "0-3",
    "8:16 10",
    "8G",
    "-1",
    "true",
    "1e3",
    "a",
    "ü",
];

proptest! {
    // PROPTEST_CASES=100000 for a night
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn no_mixture_of_the_grammars_words_makes_a_reader_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..60),
    ) {
        survive(&pieces.concat());
    }

    #[test]
    fn no_damage_to_a_right_file_makes_a_reader_panic(
        which in 0..4_usize,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, prop::sample::select(PIECES.to_vec())), 1..4),
    ) {
        let rules = "oracle:ora_* cpu,memory db/%u ignore\n% blkio x\n@dba * \"a b\"\n";
        let mut text = [S1, S2, EXAMPLE, rules][which].to_owned();
        for (at, length, new) in cuts {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.floor_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, new);
        }
        survive(&text);
    }

    #[test]
    fn any_cgconfig_asks_the_same_as_toml(
        groups in prop::collection::vec(
            ("[a-z0-9_]{1,6}(/[a-z0-9_.%]{1,6}){0,2}", 0..100_usize, 1..2000_u64, prop::option::of("[a-z]{1,8}"), any::<bool>(), 0..0o7777_u32),
            0..8,
        ),
        by_default in prop::option::of("[a-z]{1,8}"),
    ) {
        let mut text = String::new();
        if let Some(user) = by_default {
            text.push_str(&format!("default {{ perm {{ task {{ uid = {user}; }} admin {{ gid = 0; }} }} }}\n"));
        }
        for (name, cpu, shares, user, exclusive, mode) in groups {
            let name = name.replace('%', "");
            let perm = user.map_or(String::new(), |user| {
                format!("perm {{ task {{ uid = {user}; fperm = {mode:o}; }} admin {{ gid = \"{user}\"; dperm = 0{mode:o}; }} }}")
            });
            text.push_str(&format!(
                "group \"{name}\" {{ {perm} cpu {{ cpu.shares = {shares}; }} cpuset {{ cpuset.cpus = 0-{cpu},{}; \
                 cpuset.cpu_exclusive = {}; }} pids {{ }} memory {{ memory.limit_in_bytes = \"{shares}M\"; }} }}\n",
                cpu + 2,
                u8::from(exclusive),
            ));
        }
        let reading = read_cgconfig("cgconfig.conf", &text);
        if let Some(desired) = reading.desired {
            assert_toml_is_the_same(&desired);
        } else {
            // only names of the kernel's files and lone dots are refused
            for found in reading.diagnostics.iter().filter(|found| found.severity == Severity::Error) {
                prop_assert!(found.message.contains("is not a group name"), "{}", found.message);
            }
        }
    }
}

/// So many kilobytes of a piece.
fn large(piece: &str, kilobytes: usize) -> String {
    piece.repeat((kilobytes << 10) / piece.len())
}

fn read_garbage(text: &str) {
    let source = [Source::new("f", text)];
    for reading in [read_toml(&source), read_cgconfig("f", text), read_cgrules("f", text)] {
        assert!((1..=1001).contains(&reading.diagnostics.len()), "more than anyone reads");
        assert!(reading.desired.is_none());
        assert!(!render(&reading.diagnostics, &source).is_empty());
    }
}

#[test]
fn ten_megabytes_of_garbage_are_read_until_there_are_too_many_errors() {
    read_garbage(&large("lorem ipsum = dolor { sit } amet; \"consectetur\n", 10 << 10));
}

/// Each of these is a way to make a reader go over the same text again and again.
#[test]
fn a_quarter_of_a_megabyte_of_one_thing_is_read_in_time_that_grows_with_its_length() {
    let unknown: String = (0..20_000).map(|n| format!("x{n} = {n}\nmemory.m{n} = {n}\n")).collect();
    read_garbage(&format!("[groups.a]\n{unknown}"));
    let sizes: String = (0..20_000).map(|n| format!("hugetlb.{n}MB.max = 1\n")).collect();
    let source = [Source::new("f", &format!("[groups.a]\n{sizes}"))];
    assert_eq!(read_toml(&source).desired.unwrap().groups[0].demands.settings.len(), 20_000);
    for piece in ["\0", "{", "=", "group a {", "\"", "%\n", "[a]\n", "a=", "a.", "[", "{a=", "x: y \"z\" #\n"]
    {
        read_garbage(&large(piece, 256));
    }
}

#[test]
fn ten_megabytes_of_right_configuration_are_read() {
    let mut text = String::new();
    let mut groups = 0;
    while text.len() < 10 << 20 {
        text.push_str(&format!(
            "# the group number {groups}, with owners and limits as one of a large number of users has them\n\
             group users/u{groups} {{\n\tperm {{\n\t\ttask {{\n\t\t\tuid = user{groups};\n\t\t\tgid = users;\n\t\t}}\n\
             \t\tadmin {{\n\t\t\tuid = root;\n\t\t\tgid = root;\n\t\t\tdperm = 0755;\n\t\t}}\n\t}}\n\
             \tcpuset {{\n\t\tcpuset.cpus = \"0-31\";\n\t\tcpuset.mems = \"0-3\";\n\t}}\n\
             \tcpu {{\n\t\tcpu.shares = 100;\n\t\tcpu.cfs_quota_us = 50000;\n\t}}\n\
             \tmemory {{\n\t\tmemory.limit_in_bytes = 1G;\n\t\tmemory.swappiness = 10;\n\t}}\n\
             \tblkio {{\n\t\tblkio.throttle.read_iops_device = \"8:16 10\";\n\t}}\n}}\n\n"
        ));
        groups += 1;
    }
    let reading = read_cgconfig("cgconfig.conf", &text);
    assert_eq!(reading.diagnostics, []);
    assert_eq!(reading.desired.unwrap().groups.len(), groups);
    // on one line, where a place is far from the line's beginning
    let line: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let reading = read_cgconfig("cgconfig.conf", &line.join(" "));
    let last = reading.desired.unwrap().groups.last().unwrap().origin.clone();
    assert_eq!((last.line, last.column > 1 << 20), (1, true));
}
