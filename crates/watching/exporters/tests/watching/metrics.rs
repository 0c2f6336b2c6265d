//! Metrics as programs read them.

use std::{
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use exporters::metrics::{
    Bounds, Desired, DesiredGroup, Format, History, InUnits, Partition, Selection, Type, Writer, write,
};
use fake::Fake;
use kernel::{Host, Kernel};
use libtest_mimic::Trial;
use monitor::{Beat, Groups, Options, Sample, Sampler, Uncached};
use units::Limit;

use crate::trial;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("every line is as OpenMetrics has it", well_formed),
        trial("a unit of the layout has both of its names", units_named),
        trial("numbers are in base units and no limit is infinite", values),
        trial("an invalid partition has the kernel's reason", invalid_partition),
        trial("a histogram is cumulative", histogram),
        trial("the number of groups is bounded and what is left out is counted", bounded),
        trial("above the bound the own groups come first", own_first),
        trial("a history has all of a series together, by time", history),
    ];
    // the VMs have none
    if !Path::new("/rf-vm").is_dir() {
        trials.push(trial("promtool finds nothing to correct", promtool));
    }
    trials
}

fn sample() -> Sample {
    let fake = Fake::v1(2, 2);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    for at in host.hierarchies() {
        for group in ["a", "b\"x\\y", "c"] {
            fake.mkdir(at, group).unwrap();
        }
    }
    fake.set_outside("/proc/loadavg", "1.25 0.92 1.19 6/127 27530\n");
    fake.set_outside("/proc/stat", "cpu0 100 0 0 0 0 0 0 0 0 0\nctxt 77\n");
    let at = |name: &str| host.hierarchies().iter().find(|at| at.label().contains(name)).unwrap();
    fake.write(at("pids"), "a", "pids.max", "5").unwrap();
    fake.write(at("cpu,"), "a", "cpu.cfs_quota_us", "50000").unwrap();
    let options = Options { groups: Groups::Ours, slow_every: 1 };
    let mut sampler = Sampler::new(&host, Uncached(fake), options, false);
    sampler.tick(&host, Beat::default()).unwrap().clone()
}

fn text(format: Format, bounds: Bounds) -> String {
    let mut text = String::new();
    let mut writer = Writer::new(&mut text, format);
    write(&sample(), bounds, &|_| false, &mut writer);
    desired().write(bounds, &mut writer);
    let why = "Cpu list in cpuset.cpus not exclusive";
    let partition = |group: &str, reason: Option<&str>| Partition {
        group: group.to_owned(),
        kind: "root".to_owned(),
        reason: reason.map(str::to_owned),
    };
    Partition::write(&[partition("a", None), partition("c", Some(why))], bounds, &mut writer);
    writer.end();
    text
}

fn own_first() {
    let of = |own: &[&str]| {
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, Format::Text);
        let bounds = Bounds { groups: 2, ..Bounds::default() };
        write(&sample(), bounds, &|group| own.contains(&group), &mut writer);
        desired().write(bounds, &mut writer);
        writer.end();
        let has = |group: &str| text.contains(&format!("{{group=\"{group}\""));
        assert!(text.contains("\nringfence_groups_left_out 2\n"), "{text}");
        (has("a"), has("c"))
    };
    assert_eq!(of(&[]), (true, false));
    assert_eq!(of(&["c"]), (false, true), "the layout's own before others");
    assert_eq!(of(&["c", "a"]), (true, false), "in the order of the table");
}

fn desired() -> Desired {
    let group = |name: &str, cpus| DesiredGroup {
        group: name.to_owned(),
        unit: None,
        cpus,
        elastic: None,
        quota: None,
        memory: Some(Limit::Max),
        pids: None,
        drifts: 2,
    };
    let groups = vec![group("a", Some(Limit::At(1.5))), group("b\"x\\y", None)];
    Desired { at: SystemTime::UNIX_EPOCH + Duration::from_secs(77), groups }
}

/// A unit of the layout is sampled under its name from the root.
fn units_named() {
    let mut desired = desired();
    desired.groups[0] = DesiredGroup {
        group: "sales".to_owned(),
        unit: Some("db.service".to_owned()),
        ..desired.groups[0].clone()
    };
    let mut text = String::new();
    let mut writer = Writer::new(&mut text, Format::OpenMetrics);
    let rows = ["/system.slice/db.service/main", "a", "db.service"].map(str::to_owned);
    let in_units = InUnits::of(Some(&desired), &rows);
    assert_eq!(in_units.are().into_iter().collect::<Vec<_>>(), [rows[0].as_str()]);
    in_units.write(&mut writer);
    let both = "ringfence_layout_group_info{group=\"/system.slice/db.service/main\",layout_group=\"sales/main\",unit=\"db.service\"} 1\n";
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), [both.trim_end()]);
}

fn well_formed() {
    let text = text(Format::OpenMetrics, Bounds::default());
    assert!(text.ends_with("\n# EOF\n"));
    let mut families = BTreeSet::new();
    let mut family = (String::new(), String::new());
    let mut series = BTreeSet::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} is there twice");
            assert!(matches!(kind, "counter" | "gauge" | "info") && !name.ends_with("_total"), "{line}");
            family = (name.to_owned(), kind.to_owned());
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family.0 && name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{} ", family.0)), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value == "+Inf" || value.parse::<f64>().is_ok(), "{line}");
            assert!(series.insert(name.to_owned()), "{name} is there twice");
            let base = name.split('{').next().unwrap();
            let expected = match family.1.as_str() {
                "counter" => format!("{}_total", family.0),
                "info" => format!("{}_info", family.0),
                _ => family.0.clone(),
            };
            assert_eq!(base, expected);
        }
    }
    assert!(families.len() > 20, "{families:?}");
}

fn values() {
    for format in [Format::OpenMetrics, Format::Text] {
        let text = text(format, Bounds::default());
        for line in [
            "ringfence_group_pids_max{group=\"a\"} 5",
            "ringfence_group_pids_max{group=\"c\"} +Inf",
            "ringfence_group_cpu_max_quota_seconds{group=\"a\"} 0.05",
            "ringfence_group_pids_max{group=\"b\\\"x\\\\y\"} +Inf",
            "ringfence_group_effective_cpus{group=\"a\"} 0.5",
            "ringfence_group_effective_memory_bytes{group=\"a\"} +Inf",
            "ringfence_group_requested_cpus{group=\"a\"} 1.5",
            "ringfence_group_requested_memory_bytes{group=\"a\"} +Inf",
            "ringfence_group_drifts{group=\"b\\\"x\\\\y\"} 2",
            "ringfence_compared_timestamp_seconds 77",
            "ringfence_group_partition_valid{group=\"a\",type=\"root\",reason=\"\"} 1",
            "ringfence_group_partition_valid{group=\"c\",type=\"root\",\
             reason=\"Cpu list in cpuset.cpus not exclusive\"} 0",
            "ringfence_machine_load 1.25",
            "ringfence_machine_cpu_user_seconds_total{cpu=\"0\"} 1",
            "ringfence_machine_cpu_switches_total 77",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
    }
    assert!(
        text(Format::Text, Bounds::default())
            .contains("# TYPE ringfence_machine_cpu_switches_total counter\n")
    );
}

/// Two siblings that claim one CPU, as a kernel of v2 has them.
fn invalid_partition() {
    let fake = Fake::v2(4, 1);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let at = &host.hierarchies()[0];
    fake.write(at, "", "cgroup.subtree_control", "+cpuset").unwrap();
    for (group, cpus) in [("a", "1"), ("b", "2"), ("c", "0")] {
        fake.mkdir(at, group).unwrap();
        fake.write(at, group, "cpuset.cpus", cpus).unwrap();
    }
    for group in ["a", "b"] {
        fake.write(at, group, "cpuset.cpus.partition", "root").unwrap();
    }
    let groups = ["a", "b", "c"].map(str::to_owned);
    let reasons = |host: &Host| -> Vec<(String, Option<String>)> {
        let all = Partition::all(host, &groups);
        assert!(all.iter().all(|one| one.kind == "root"), "{all:?}");
        all.into_iter().map(|one| (one.group, one.reason)).collect()
    };
    let valid = |group: &str| (group.to_owned(), None);
    assert_eq!(reasons(&host), [valid("a"), valid("b")]);
    fake.write(at, "b", "cpuset.cpus", "1-2").unwrap();
    let invalid = reasons(&host);
    let reason = invalid.iter().find_map(|(_, reason)| reason.as_deref());
    assert!(reason.is_some_and(|reason| reason.starts_with(char::is_uppercase)), "{invalid:?}");
}

fn histogram() {
    let mut text = String::new();
    let mut writer = Writer::new(&mut text, Format::Text);
    writer.family("wait_seconds", Type::Histogram, "seconds", "Waits");
    writer.histogram(&[(0.5, 2), (1.0, 0), (2.0, 3)], 1, 9.25);
    writer.end();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "wait_seconds_bucket{le=\"0.5\"} 2",
        "wait_seconds_bucket{le=\"1\"} 2",
        "wait_seconds_bucket{le=\"2\"} 5",
        "wait_seconds_bucket{le=\"+Inf\"} 6",
        "wait_seconds_sum 9.25",
        "wait_seconds_count 6",
    ];
    assert_eq!(lines, expected);
}

fn history() {
    let (mut first, mut second) = (sample(), sample());
    first.at = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_500));
    second.at = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(2_500));
    let wanted = Selection {
        field: &|field| ["pids.max", "cpu.max.quota"].contains(&field.name),
        group: &|group| group == "a" || group.starts_with('b'),
    };
    let mut history = History::default();
    history.add(&first, Bounds::default(), &wanted);
    history.add(&second, Bounds::default(), &wanted);
    let text = history.text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "ringfence_group_cpu_max_quota_seconds{group=\"a\"} 0.05 1.500",
        "ringfence_group_cpu_max_quota_seconds{group=\"a\"} 0.05 2.500",
        "ringfence_group_cpu_max_quota_seconds{group=\"b\\\"x\\\\y\"} +Inf 1.500",
        "ringfence_group_cpu_max_quota_seconds{group=\"b\\\"x\\\\y\"} +Inf 2.500",
        "ringfence_group_pids_max{group=\"a\"} 5 1.500",
        "ringfence_group_pids_max{group=\"a\"} 5 2.500",
        "ringfence_group_pids_max{group=\"b\\\"x\\\\y\"} +Inf 1.500",
        "ringfence_group_pids_max{group=\"b\\\"x\\\\y\"} +Inf 2.500",
    ];
    assert_eq!(lines, expected);
    assert_eq!(text.matches("# TYPE").count(), 2, "{text}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
}

fn bounded() {
    let text = text(Format::OpenMetrics, Bounds { groups: 2, ..Bounds::default() });
    assert!(text.contains("{group=\"a\"}") && !text.contains("{group=\"c\"}"), "{text}");
    assert!(
        text.contains("\nringfence_groups_left_out 2\n") && text.contains("\nringfence_groups 4\n"),
        "{text}"
    );
}

fn promtool() {
    // as `scripts/install test` brings it
    let unpacked = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/prometheus/usr/bin"));
    let places = std::env::var("PATH").unwrap();
    let mut all = places.split(':').map(Path::new).chain([unpacked]).map(|at| at.join("promtool"));
    let found = all.find(|file| file.is_file());
    let promtool = found.unwrap_or_else(|| panic!("there is no promtool; hint: scripts/install test"));
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(text(Format::Text, Bounds::default()).as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}
