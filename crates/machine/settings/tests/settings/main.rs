//! The table tests itself, and every kind of value makes the way from the user's text over a group's files and
//! back, on both versions and under every name.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod fake;
mod refusals;
mod round_trips;

use std::collections::{BTreeMap, BTreeSet};

use settings::{
    Access, Binding, Codec, Controller, DeviceNumber, Facts, Fidelity, Kind, NamedSetting, ReadBack, Setting,
    Side, Value, Version, Via, all, describe, find, markdown,
};
use units::Bytes;

/// A machine of 16 GiB and 8 CPUs with one disk.
struct Machine;

impl Facts for Machine {
    fn memory(&self) -> Option<Bytes> {
        Some(Bytes(16 << 30))
    }
    fn cpus(&self) -> Option<usize> {
        Some(8)
    }
    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        match path {
            "/dev/sdb" => Ok(DeviceNumber { major: 8, minor: 16 }),
            path => Err(format!("{path} does not exist")),
        }
    }
}

const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

/// A huge page size in place of `<size>`.
fn concrete(name: &str) -> String {
    name.replace("<size>", "2MB")
}

fn row(setting: &'static Setting) -> NamedSetting {
    find(&concrete(setting.name)).unwrap()
}

fn bindings() -> impl Iterator<Item = (&'static Setting, Version, &'static Binding)> {
    all().flat_map(|setting| {
        VERSIONS
            .into_iter()
            .filter_map(move |version| Some((setting, version, setting.side(version).binding()?)))
    })
}

#[test]
fn names_are_unique_and_grouped_by_controller() {
    let mut seen = BTreeSet::new();
    for setting in all() {
        assert!(seen.insert(setting.name), "{} is there twice", setting.name);
    }
    let order: Vec<Controller> = all().map(|setting| setting.controller).collect();
    let mut groups = order.clone();
    groups.dedup();
    let expected: Vec<_> = Controller::ALL.into_iter().filter(|c| *c != Controller::PerfEvent).collect();
    assert_eq!(groups, expected);
}

#[test]
fn a_file_name_means_one_setting_and_is_found() {
    for version in VERSIONS {
        let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (setting, of, binding) in bindings() {
            if of == version {
                binding.names().iter().for_each(|file| owners.entry(file).or_default().push(setting.name));
            }
        }
        for (file, rows) in owners {
            let found = find(&concrete(file)).unwrap();
            if all().any(|setting| setting.name == file) {
                assert_eq!((found.setting.name, found.via), (file, Via::Canonical));
            } else {
                assert_eq!(rows.len(), 1, "{file} of {version} is of {rows:?}");
                assert_eq!(found.setting.name, rows[0]);
                let Via::File { version: via, index } = found.via else { panic!("{file}") };
                assert_eq!((via, found.files(via)[index].as_str()), (version, concrete(file).as_str()));
            }
        }
    }
}

#[test]
fn every_row_says_what_it_is_in_one_style() {
    for setting in all() {
        let name = setting.name;
        let texts = VERSIONS.iter().filter_map(|&version| match setting.side(version) {
            Side::Lacks { instead } => Some(*instead),
            Side::Has(binding) => match binding.fidelity {
                Fidelity::Approximate(how) => Some(how),
                Fidelity::Exact => None,
            },
        });
        for text in texts.chain([setting.doc]) {
            assert!(!text.is_empty() && !text.ends_with(['.', ' ', '\n']), "{name}: {text:?}");
            assert!(!text.contains("  ") && !text.contains('\n'), "{name}: {text:?}");
        }
        assert!(setting.doc.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()), "{name}");
        assert!(describe(setting).contains(name));
    }
}

#[test]
fn every_binding_has_its_source_and_its_kernel() {
    for (setting, version, binding) in bindings() {
        let at = format!("{} on {version}", setting.name);
        assert!(binding.source.contains('/'), "{at}: source");
        let numbers: Vec<u32> = binding.since.split('.').map(|part| part.parse().expect(&at)).collect();
        assert!((2..=3).contains(&numbers.len()) && (2..=7).contains(&numbers[0]), "{at}: since");
        assert_eq!(binding.files.is_empty(), binding.codec == Codec::DeviceProgram, "{at}: files");
        let holds = binding.controller == Controller::Core || binding.controller.name(version).is_some();
        assert!(holds, "{at}: {:?} is no controller there", binding.controller);
        if setting.access == Access::Write {
            assert!(
                matches!(binding.read_back, ReadBack::Never | ReadBack::Rescaled(_)),
                "{at}: nothing to read back"
            );
        }
    }
}

#[test]
fn what_only_one_version_has_says_what_to_use_instead() {
    for setting in all() {
        let lacking = VERSIONS.iter().filter(|&&version| setting.side(version).binding().is_none()).count();
        assert!(lacking <= 1, "{} is on no version", setting.name);
    }
    // names of other settings in such texts must exist
    for setting in all() {
        for &version in &VERSIONS {
            let Side::Lacks { instead } = setting.side(version) else { continue };
            let words = instead.split(|c: char| !(c.is_alphanumeric() || "._<>".contains(c)));
            for word in words.map(|word| word.trim_end_matches('.')) {
                let controller = word.split('.').next().and_then(Controller::from_name);
                if controller.is_some() && word.contains('.') {
                    assert!(find(&concrete(word)).is_ok(), "{}: no setting {word}", setting.name);
                }
            }
        }
    }
}

#[test]
fn every_example_is_a_value_under_every_name() {
    for setting in all() {
        let found = row(setting);
        if matches!(setting.access, Access::Read | Access::Command(_)) {
            assert_eq!(setting.example, "", "{}", setting.name);
            assert!(found.parse("1", &Machine).is_err(), "{}", setting.name);
            continue;
        }
        let value = found.parse(setting.example, &Machine).unwrap();
        for file in VERSIONS.into_iter().flat_map(|version| found.files(version)) {
            let named = find(&file).unwrap();
            if named.setting.name == setting.name && named.via != Via::Canonical {
                let expected = named.expected();
                let (_, example) = expected.rsplit_once("such as ").unwrap();
                let again = named.parse(example, &Machine).unwrap();
                let whole = value.satisfied_by(&again) || named.show(&value) == named.show(&again);
                assert!(whole || matches!(setting.kind, Kind::PerDevice(_)), "{file}={example}");
            }
        }
    }
}

#[test]
fn controllers_are_known_by_the_names_of_both_versions() {
    assert_eq!(Controller::from_name("blkio"), Some(Controller::Io));
    assert_eq!(Controller::from_name("io"), Some(Controller::Io));
    assert_eq!(Controller::from_name("freezer"), Some(Controller::Freezer));
    assert_eq!(Controller::Freezer.name(Version::V2), None);
    assert_eq!(Controller::from_name("core"), None);
    for controller in Controller::ALL {
        assert!(!controller.doc().ends_with('.'), "{controller:?}");
    }
}

#[test]
fn the_files_of_the_issue_are_all_known() {
    let v1 = "cpu.shares cpu.cfs_quota_us cpu.cfs_period_us cpu.cfs_burst_us cpu.rt_runtime_us cpuset.cpu_exclusive \
        cpuset.effective_cpus cpuset.mem_hardwall cpuacct.usage_percpu memory.limit_in_bytes memory.oom_control \
        memory.memsw.limit_in_bytes memory.soft_limit_in_bytes memory.force_empty memory.max_usage_in_bytes \
        blkio.throttle.read_iops_device blkio.weight_device blkio.bfq.weight freezer.state devices.list \
        hugetlb.2MB.limit_in_bytes hugetlb.1GB.rsvd.usage_in_bytes net_cls.classid net_prio.ifpriomap tasks";
    let v2 = "cpu.max cpu.weight.nice cpu.uclamp.max cpuset.cpus.exclusive cpuset.cpus.partition memory.swap.high \
        memory.zswap.max memory.reclaim io.latency io.cost.qos io.prio.class pids.peak cgroup.freeze \
        hugetlb.64KB.max rdma.max misc.capacity cgroup.subtree_control irq.pressure";
    for name in v1.split_whitespace().chain(v2.split_whitespace()) {
        assert!(find(name).is_ok(), "{name}");
    }
    assert_eq!(find("hugetlb.2MB.limit_in_bytes").unwrap().files(Version::V2), ["hugetlb.2MB.max"]);
    assert_eq!(find("hugetlb.2MB.limit_in_bytes").unwrap().canonical(), "hugetlb.2MB.max");
}

/// (version, kernel, group, its files) as recorded from kernels.
fn recorded() -> impl Iterator<Item = (Version, &'static str, &'static str, BTreeSet<&'static str>)> {
    let lines = include_str!("files.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (head, files) = line.split_once(": ").unwrap();
        let [version, kernel, _, group] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let version = if version == "v1" { Version::V1 } else { Version::V2 };
        (version, kernel, group, files.split(' ').collect())
    })
}

#[test]
fn every_file_that_kernels_were_seen_to_have_is_known_for_its_version() {
    for (version, kernel, _, files) in recorded() {
        for file in files {
            let found = find(file).unwrap_or_else(|error| panic!("{kernel}: {error}"));
            assert!(found.files(version).iter().any(|name| name == file), "{file} on {version} {kernel}");
        }
    }
}

#[test]
fn the_root_group_has_the_files_that_kernels_were_seen_to_have() {
    for kernel in ["6.1", "6.18"] {
        for (setting, version, binding) in bindings() {
            let files = |group: &str| -> BTreeSet<&str> {
                let of = recorded().filter(|row| (row.0, row.1, row.2) == (version, kernel, group));
                of.flat_map(|row| row.3).collect()
            };
            let Some(file) = binding.files.first().map(|file| concrete(file)) else { continue };
            let (root, child) = (files("root"), files("child"));
            if root.contains(file.as_str()) || child.contains(file.as_str()) {
                let at = format!("{} on {version} {kernel}", setting.name);
                assert_eq!(binding.at_root, root.contains(file.as_str()), "{at}: {file}");
                let only = setting.doc.contains("in the root group only");
                assert_eq!(only, !child.contains(file.as_str()), "{at}: {file}");
            }
        }
    }
}

#[test]
fn the_manuals_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/settings.md");
    let page = markdown();
    if std::env::var_os("RF_BLESS").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs")).unwrap();
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/settings.md is not the table: RF_BLESS=1 cargo test -p ringfence-settings"
    );
}

#[test]
fn the_table_and_values_are_json_for_programs() {
    let json = serde_json::to_value(find("cpu.shares").unwrap().setting).unwrap();
    assert_eq!(json["name"], "cpu.weight");
    assert_eq!(json["v1"]["has"]["files"][0], "cpu.shares");
    assert_eq!(json["v1"]["has"]["range"]["between"]["max"], 262_144);
    for (name, text, expected) in [
        ("cgroup.freeze", "yes", "true"),
        ("memory.max", "8G", "8589934592"),
        ("memory.max", "max", "\"max\""),
        ("cpu.max", "50ms/100ms", r#"{"quota_us":50000,"period_us":100000}"#),
        ("cpuset.cpus", "3,1,2", "\"1-3\""),
        ("io.max", "8:16 riops=10 wbps=max", r#"{"8:16":{"riops":10,"wbps":"max"}}"#),
        ("io.weight", "200; 8:16 default", r#"{"default":200.0,"8:16":null}"#),
        ("cpu.uclamp.min", "12.5%", "12.5"),
    ] {
        let value: Value = find(name).unwrap().parse(text, &Machine).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), expected, "{name}={text}");
    }
}
