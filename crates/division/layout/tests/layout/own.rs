//! Our own TOML: every way of saying something, and what it means.

use layout::{
    Account, Condition, Controllers, CpuAmount, CpuDemand, CpuSpec, Desired, Expected, Keep, MemDemand,
    MemoryAmount, Near, Placement, Pool, Process, Smt, Source, Who,
};
use settings::Hundredths;
use units::{Bytes, Limit};

use super::desired;

fn read(text: &str) -> Desired {
    desired("layout.toml", text)
}

/// The texts of a group's settings, by the names they were given.
fn settings(text: &str) -> Vec<(String, String)> {
    let desired = read(&format!("[groups.a]\n{text}"));
    let settings = &desired.groups[0].demands.settings;
    settings.iter().map(|assigned| (assigned.found.name.clone(), assigned.text.clone())).collect()
}

fn cpus(text: &str) -> CpuDemand {
    let desired = read(&format!("[groups.a]\ncpus = {text}\n[groups.oltp1]\ncpus = 1\n"));
    desired.groups[0].demands.cpus.as_ref().unwrap().value.clone()
}

fn some(amount: CpuAmount) -> CpuSpec {
    CpuSpec { amount, nodes: None, near: Vec::new(), placement: None, smt: None, pool: None, weight: None }
}

#[test]
fn cpus_are_asked_for_in_every_way() {
    assert_eq!(cpus("8"), CpuDemand::Some(some(CpuAmount::Count(8))));
    assert_eq!(cpus("\"8\""), CpuDemand::These("8".parse().unwrap()), "a string is a list");
    assert_eq!(cpus("\"0-7,16\""), CpuDemand::These("0-7,16".parse().unwrap()));
    assert_eq!(cpus("\"25%\""), CpuDemand::Some(some(CpuAmount::Percent(Hundredths(2500)))));
    assert_eq!(cpus("\"12.5%\""), CpuDemand::Some(some(CpuAmount::Percent(Hundredths(1250)))));
    assert_eq!(cpus("\"all\""), CpuDemand::All);
    assert_eq!(cpus("{ node = 0 }"), CpuDemand::OfNodes("0".parse().unwrap()));
    assert_eq!(cpus("{ node = \"0-1\" }"), CpuDemand::OfNodes("0-1".parse().unwrap()));
    assert_eq!(cpus("{ node = [0, 2] }"), CpuDemand::OfNodes("0,2".parse().unwrap()));
    assert_eq!(cpus("{ like = \"oltp1\" }"), CpuDemand::Like(settings::GroupName::new("oltp1").unwrap()));
    assert_eq!(cpus("{ count = \"50%\" }"), CpuDemand::Some(some(CpuAmount::Percent(Hundredths(5000)))));
    assert_eq!(cpus("{ min = 2 }"), CpuDemand::Some(some(CpuAmount::Between { min: 2, max: Limit::Max })));
    assert_eq!(cpus("{ max = 4 }"), CpuDemand::Some(some(CpuAmount::Between { min: 1, max: Limit::At(4) })));
    let near = "{ count = 8, near = [\"node:0\", \"device:/dev/nvme0n1\", \"device:8:16\", \"group:oltp1\"], \
        node = 1, smt = \"whole-cores\", placement = \"spread\", pool = \"exclusive\" }";
    assert_eq!(
        cpus(near),
        CpuDemand::Some(CpuSpec {
            amount: CpuAmount::Count(8),
            nodes: Some("1".parse().unwrap()),
            near: vec![
                Near::Node(0),
                Near::Device("/dev/nvme0n1".to_owned()),
                Near::Device("8:16".to_owned()),
                Near::Group(settings::GroupName::new("oltp1").unwrap()),
            ],
            placement: Some(Placement::Spread),
            smt: Some(Smt::WholeCores),
            pool: Some(Pool::Exclusive),
            weight: None,
        })
    );
}

#[test]
fn memory_nodes_are_asked_for_in_every_way() {
    let mems = |text: &str| {
        let desired = read(&format!("[groups.a]\nmems = {text}\n[groups.b]\nmems = \"0\"\n"));
        desired.groups[0].demands.mems.as_ref().unwrap().value.clone()
    };
    assert_eq!(mems("\"local\""), MemDemand::Local);
    assert_eq!(mems("\"all\""), MemDemand::All);
    assert_eq!(mems("\"0-1\""), MemDemand::These("0-1".parse().unwrap()));
    assert_eq!(mems("{ like = \"b\" }"), MemDemand::Like(settings::GroupName::new("b").unwrap()));
}

#[test]
fn settings_take_every_kind_of_toml_value() {
    for (given, name, text) in [
        ("memory.max = \"8G\"", "memory.max", "8G"),
        ("memory.max = 8589934592", "memory.max", "8589934592"),
        ("memory.max = 0x1000", "memory.max", "4096"),
        ("memory.max = 1_000_000", "memory.max", "1000000"),
        ("memory.max = \"25%\"", "memory.max", "25%"),
        ("cpu.weight = 97.5", "cpu.weight", "97.5"),
        ("cgroup.freeze = true", "cgroup.freeze", "1"),
        ("memory.oom.group = false", "memory.oom.group", "0"),
        ("memory.limit_in_bytes = -1", "memory.limit_in_bytes", "-1"),
        ("\"memory.max\" = \"8G\"", "memory.max", "8G"),
        ("memory = { max = \"8G\" }", "memory.max", "8G"),
        ("memory.\"max\" = \"8G\"", "memory.max", "8G"),
        ("hugetlb.2MB.max = \"1G\"", "hugetlb.2MB.max", "1G"),
        ("hugetlb.1GB.limit_in_bytes = \"1G\"", "hugetlb.1GB.limit_in_bytes", "1G"),
        ("cpu.max = \"50ms/100ms\"", "cpu.max", "50ms/100ms"),
        ("cpu.max = { quota = \"50ms\", period = \"100ms\" }", "cpu.max", "50ms/100ms"),
        ("cpu.max = { quota = \"max\" }", "cpu.max", "max"),
        ("cpu.max.period = \"100ms\"", "cpu.max", "/100ms"),
        ("io.max.\"/dev/sdb\" = { riops = 10 }", "io.max", "/dev/sdb riops=10"),
        ("io.max.\"/dev/sdb\".riops = 10", "io.max", "/dev/sdb riops=10"),
        (
            "io.max = { \"8:16\" = { wbps = \"1M\", riops = 10 }, \"/dev/sdc\" = \"max\" }",
            "io.max",
            "8:16 wbps=1M riops=10; /dev/sdc max",
        ),
        ("io.max = [\"8:16 riops=10\", \"8:32 wbps=1M\"]", "io.max", "8:16 riops=10; 8:32 wbps=1M"),
        ("io.weight = 200", "io.weight", "200"),
        ("io.weight = { default = 200, \"8:16\" = 500 }", "io.weight", "default 200; 8:16 500"),
        ("devices.allow = [\"c 1:3 rwm\", \"b 8:* r\"]", "devices.allow", "c 1:3 rwm; b 8:* r"),
        ("blkio.throttle.read_iops_device = \"8:16 10\"", "blkio.throttle.read_iops_device", "8:16 10"),
        ("blkio.throttle.read_iops_device.\"8:16\" = 10", "blkio.throttle.read_iops_device", "8:16 10"),
        ("rdma.max.mlx4_0 = { hca_handle = 2 }", "rdma.max", "mlx4_0 hca_handle=2"),
        ("misc.max.res_a = 3", "misc.max", "res_a 3"),
        ("net_prio.ifpriomap.eth0 = 5", "net_prio.ifpriomap", "eth0 5"),
        ("net_cls.classid = 0x100001", "net_cls.classid", "1048577"),
    ] {
        assert_eq!(settings(given), [(name.to_owned(), text.to_owned())], "{given}");
    }
}

#[test]
fn a_setting_whose_name_goes_on_from_anothers_stands_in_quotes() {
    let both = settings("cpu.max = \"50ms/100ms\"\n\"cpu.max.burst\" = \"20ms\"\n");
    assert_eq!(both[0].0, "cpu.max");
    assert_eq!(both[1], ("cpu.max.burst".to_owned(), "20ms".to_owned()));
    // as tables, both can stand below the same name
    let both = settings("cpu.max = { quota = \"50ms\", burst = \"20ms\" }\n");
    assert_eq!(both, [("cpu.max.burst".into(), "20ms".into()), ("cpu.max".into(), "50ms".into())]);
}

#[test]
fn every_setting_that_can_be_set_can_stand_in_a_group() {
    for setting in settings::all() {
        if matches!(setting.access, settings::Access::Read | settings::Access::Command(_)) {
            continue;
        }
        let name = setting.name.replace("<size>", "2MB");
        let text = format!("{name} = '{}'\n", setting.example);
        match name.as_str() {
            "cpuset.cpus" | "cpuset.mems" => assert!(settings(&text).is_empty(), "{name}"),
            _ => assert_eq!(settings(&text), [(name, setting.example.to_owned())]),
        }
    }
}

#[test]
fn cpusets_named_as_settings_are_demands() {
    let desired = read(
        "[groups.a]\ncpuset.cpus = \"0-3\"\ncpuset.mems = 0\ncpuset.cpu_exclusive = 1\n[groups.b]\ncpuset.cpus = \"all\"\n",
    );
    let a = &desired.groups[0].demands;
    assert_eq!(a.cpus.as_ref().unwrap().value, CpuDemand::These("0-3".parse().unwrap()));
    assert_eq!(a.mems.as_ref().unwrap().value, MemDemand::These("0".parse().unwrap()));
    assert!(!a.exclusive && a.settings.len() == 1 && a.settings[0].is_flag());
    assert_eq!(desired.groups[1].demands.cpus.as_ref().unwrap().value, CpuDemand::All);
}

#[test]
fn groups_stand_in_groups_in_both_ways_and_parents_come_first() {
    let desired = read(
        "[groups.\"z/y/x\"]\ncpus = 1\n[groups.db.groups.oltp1]\ncpus = 1\n[groups.db.groups.oltp1.groups.a]\n\
         [groups.db]\nmemory.max = \"8G\"\n[groups.\"db/oltp2\"]\ncpus = 1\n[groups.\"/machine/x\"]\n",
    );
    let names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    assert_eq!(names, ["db", "db/oltp1", "db/oltp2", "/machine/x", "z/y/x", "db/oltp1/a"]);
    for (index, group) in desired.groups.iter().enumerate() {
        let below = format!("{}/", group.name);
        let before = desired.groups[..index].iter().any(|other| other.name.to_string().starts_with(&below));
        assert!(!before, "{} stands behind a child", group.name);
    }
}

#[test]
fn a_parent_that_is_only_part_of_a_name_is_not_asked_for() {
    let desired = read("[groups.db.groups.oltp1]\ncpus = 1\n");
    assert_eq!(desired.groups.len(), 1);
    // a table of its own asks for it, though nothing stands in it
    assert_eq!(read("[groups.db]\n").groups.len(), 1);
}

#[test]
fn defaults_go_to_whoever_does_not_say_otherwise() {
    let desired = read(
        r#"
[defaults]
mems = "local"
smt = "whole-cores"
placement = "pack"
pool = "exclusive"
tasks = { group = "dba" }
keep = "repair"
memory.oom.group = true
cpu.shares = 2048
[groups.a]
cpus = 2
[groups.b]
cpus = { count = 2, smt = "any" }
mems = "0"
tasks = { user = "oracle" }
keep = "report"
cpu.weight = 50
[groups.c]
memory.max = "1G"
[templates."t/%u"]
"#,
    );
    let [a, b, c] = desired.groups.as_slice() else { panic!("three groups") };
    let spec = |group: &layout::Group| match &group.demands.cpus.as_ref().unwrap().value {
        CpuDemand::Some(spec) => (spec.smt, spec.placement, spec.pool),
        other => panic!("{other:?}"),
    };
    assert_eq!(spec(a), (Some(Smt::WholeCores), Some(Placement::Pack), Some(Pool::Exclusive)));
    assert_eq!(spec(b), (Some(Smt::Any), Some(Placement::Pack), Some(Pool::Exclusive)));
    assert_eq!(a.demands.mems.as_ref().unwrap().value, MemDemand::Local);
    assert_eq!(b.demands.mems.as_ref().unwrap().value, MemDemand::These("0".parse().unwrap()));
    assert!(c.demands.mems.is_none(), "it asks for no CPUs");
    assert_eq!([a.demands.keep, b.demands.keep], [Some(Keep::Repair), Some(Keep::Report)]);
    let names = |group: &layout::Group| -> Vec<String> {
        group.demands.settings.iter().map(|assigned| assigned.found.name.clone()).collect()
    };
    assert_eq!(names(a), ["memory.oom.group", "cpu.shares"]);
    assert_eq!(names(b), ["memory.oom.group", "cpu.weight"], "the same setting by its other name");
    assert_eq!(names(c), ["memory.oom.group", "cpu.shares", "memory.max"]);
    assert_eq!(b.demands.tasks.as_ref().unwrap().value.group, None, "its own people replace the default's");
    assert_eq!(c.demands.tasks.as_ref().unwrap().value.group, Account::new("dba"));
    assert_eq!(desired.templates[0].demands.settings.len(), 2);
}

#[test]
fn an_exclusive_group_does_not_share_by_default() {
    let desired = read("[defaults]\npool = \"shared\"\n[groups.rt]\ncpus = 1\nexclusive = true\n");
    assert_eq!(
        desired.groups[0].demands.cpus.as_ref().unwrap().value,
        CpuDemand::Some(some(CpuAmount::Count(1)))
    );
}

#[test]
fn the_root_group_only_leads_to_groups_in_it() {
    let desired = read("[groups.a]\ncpus = 1\n[groups.\"/\".groups.b]\ncpu.shares = 2048\n");
    let names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    assert_eq!(names, ["a", "/b"]);
}

#[test]
fn rules_and_matches_are_one_order() {
    let desired = read(
        r#"
[groups.db]
match = [{ user = "oracle" }]
[groups.db.groups.reports]
match = [{ user = "oracle", process = "rman" }, { group = "report" }, { user = "@writers" }]
[[rules]]
process = "/usr/sbin/sshd"
ignore = true
[[rules]]
user = 1001
to = [{ group = "db", controllers = ["cpu", "io"] }, { group = "db/reports", controllers = "memory" }]
ignore_rt = true
[[rules]]
user = "nobody"
to = "db"
controllers = "*"
"#,
    );
    let all: Vec<String> = desired
        .all_rules()
        .iter()
        .map(|rule| {
            let process =
                rule.matcher.process.as_ref().map_or(String::new(), |process| format!(":{process}"));
            let groups: Vec<String> = rule.targets.iter().map(|target| target.group.to_string()).collect();
            format!("{}{process} {}", rule.matcher.who, groups.join(","))
        })
        .collect();
    let expected = [
        "*:/usr/sbin/sshd ",
        "1001 db,db/reports",
        "nobody db",
        "oracle:rman db/reports",
        "@report db/reports",
        "@writers db/reports",
        "oracle db",
    ];
    assert_eq!(all, expected);
    assert!(desired.rules[0].ignore && desired.rules[1].ignore_rt);
    assert_eq!(desired.rules[0].matcher.process, Some(Process::Path("/usr/sbin/sshd".to_owned())));
    assert_eq!(desired.rules[1].matcher.who, Who::User(Account::Id(1001)));
    let Controllers::These(these) = &desired.rules[1].targets[0].controllers else { panic!("these") };
    assert_eq!(these.iter().map(ToString::to_string).collect::<Vec<_>>(), ["cpu", "blkio"]);
    assert_eq!(desired.rules[2].targets[0].controllers, Controllers::All);
}

#[test]
fn the_machine_and_what_is_kept_of_it_are_read() {
    let desired = read(
        r#"
[host]
hostname = "db*"
model = "X7560"
nodes = 4
cpus = { min = 32 }
memory = "100G"
[reserve]
cpus = { count = 2, near = "node:0" }
memory = "10%"
[mounts]
cpu = "/cgroup/cpu"
io = "/cgroup/blkio"
"name=jobs" = "/cgroup/jobs"
"#,
    );
    let host = &desired.assertions;
    assert_eq!(host.nodes.as_ref().unwrap().value, Expected { min: 4, max: Limit::At(4) });
    assert_eq!(host.cpus.as_ref().unwrap().value, Expected { min: 32, max: Limit::Max });
    let memory = host.memory.as_ref().unwrap().value;
    assert_eq!(memory, Expected { min: Bytes(90 << 30), max: Limit::At(Bytes(110 << 30)) });
    assert_eq!(desired.reserve.memory.as_ref().unwrap().value, MemoryAmount::Percent(Hundredths(1000)));
    let mounts: Vec<String> = desired.mounts.iter().map(|mount| mount.subsystem.to_string()).collect();
    assert_eq!(mounts, ["cpu", "blkio", "name=jobs"]);
}

#[test]
fn several_files_are_one_layout() {
    let sources = [
        Source::new("layout.toml", "[groups.db]\nmemory.max = \"8G\"\n[defaults]\ncpu.weight = 50\n"),
        Source::new(
            "layout.d/10.toml",
            "[groups.db.groups.oltp1]\ncpus = { like = \"rt\" }\n[[rules]]\nuser=\"a\"\nto=\"db\"\n",
        ),
        Source::new(
            "layout.d/20.toml",
            "[groups.rt]\ncpus = 1\n[[rules]]\nuser=\"b\"\nto=\"rt\"\n[reserve]\ncpus = 1\n",
        ),
    ];
    let reading = layout::read_toml(&sources);
    assert!(reading.diagnostics.is_empty(), "{}", layout::render(&reading.diagnostics, &sources));
    let desired = reading.desired.unwrap();
    let names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    assert_eq!(names, ["db", "rt", "db/oltp1"]);
    assert_eq!(desired.rules.len(), 2);
    assert!(
        desired.groups.iter().all(|group| group
            .demands
            .settings
            .iter()
            .any(|s| s.found.name == "cpu.weight"))
    );
    assert_eq!(desired.groups[2].origin.to_string(), "layout.d/10.toml:1:19");
}

#[test]
fn one_file_given_twice_says_everything_twice() {
    let source = Source::new("a.toml", "[groups.db]\ncpus = 1\n");
    let reading = layout::read_toml(&[source.clone(), source]);
    assert!(reading.desired.is_none());
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let desired = read("\u{feff}[groups.db]\r\ncpus = 1\r\nmemory.max = \"8G\"\r\n");
    assert_eq!(desired.groups[0].origin.line, 1);
    assert_eq!(desired.groups[0].demands.settings[0].origin.line, 3);
}

#[test]
fn a_long_chain_of_likes_is_no_circle_and_does_not_overflow() {
    let mut text = "[groups.g0]\ncpus = 1\n".to_owned();
    (1..20_000).for_each(|n| text.push_str(&format!("[groups.g{n}]\ncpus = {{ like = \"g{}\" }}\n", n - 1)));
    assert_eq!(read(&text).groups.len(), 20_000);
}

#[test]
fn what_else_a_process_must_be_like_is_read_and_written_again() {
    let text = r#"[groups.a]
match = [{ process = "*/bin/ora*", command = '-D (archive|wal)\b', parent = "cron", ancestor = "/usr/sbin/sshd", session = "bash", unit = "pg@*.service", container = "*", in = "/user.slice/*", any = [{ process = "fio" }, { not = [{ user = "root" }] }], environment = { SID = "prod*", "A B" = "*" } }]

[[rules]]
not = [{ user = "root" }]
to = "a"
"#;
    let desired = read(text);
    let matcher = &desired.groups[0].matches[0];
    assert_eq!(matcher.who, Who::Anyone);
    assert_eq!(matcher.also.len(), 10);
    let Some(Process::Glob(glob)) = &matcher.process else { panic!("{:?}", matcher.process) };
    assert!(glob.fits(b"/u01/bin/oracle"));
    let [
        Condition::Command(expression),
        ..,
        Condition::Any(any),
        Condition::Environment { name: first, .. },
        _,
    ] = matcher.also.as_slice()
    else {
        panic!("{:?}", matcher.also)
    };
    assert!(expression.is_in("pg -D wal") && !expression.is_in("pg -D wall"));
    assert_eq!((any.len(), first.as_str()), (2, "SID"));
    assert_eq!(matcher.with_inner().len(), 4);
    assert_eq!(layout::to_toml(&desired), text);
    let lost = layout::to_cgrules(&desired).lost;
    assert_eq!(lost.len(), 2, "cgrules.conf can't say them: {lost:?}");
}

#[test]
fn a_strict_rule_is_read_and_written_again_and_lost_where_cgrules_cannot_say_it() {
    let text = "[groups.a]\nmatch = [{ user = \"oracle\", process = \"/bin/oracle\", strict = true }]\n\n[[rules]]\nprocess = \"/bin/fio\"\nstrict = true\nto = \"a\"\n";
    let desired = read(text);
    assert!(desired.all_rules().iter().all(|rule| rule.matcher.strict));
    assert_eq!(layout::to_toml(&desired), text);
    assert_eq!(layout::to_cgrules(&desired).lost.len(), 2);
    assert!(
        !read("[groups.a]\nmatch = [{ process = \"fio\", strict = false }]\n").groups[0].matches[0].strict
    );
}

#[test]
fn a_weight_makes_a_group_elastic_with_cpus_of_its_own() {
    let amount = CpuAmount::Between { min: 2, max: Limit::At(8) };
    let elastic = CpuSpec { weight: Some(300), pool: Some(Pool::Exclusive), ..some(amount) };
    assert_eq!(cpus("{ min = 2, max = 8, weight = 300 }"), CpuDemand::Some(elastic));
    assert_eq!(cpus("{ min = 2, max = 8 }"), CpuDemand::Some(some(amount)));
    for (text, wrong) in [
        ("{ min = 2, weight = 300 }", "'weight' needs 'min' and 'max'"),
        ("{ count = 2, weight = 300 }", "'weight' needs 'min' and 'max'"),
        ("{ min = 2, max = 8, weight = 0 }", "0"),
        ("{ min = 0, max = 8, weight = 1 }", "0"),
        ("{ min = 9, max = 8, weight = 1 }", "min 9 is above max 8"),
        ("{ min = 2, max = 8, weight = 10001 }", "10001 is out of range"),
        ("{ min = 2, max = 8, weight = 4294967296 }", "4294967296 is out of range"),
        ("{ min = 2, max = 8, weight = 1, pool = \"shared\" }", "does not go with pool"),
    ] {
        let source = Source::new("layout.toml", &format!("[groups.a]\ncpus = {text}\n"));
        let found = layout::read_toml(&[source]).diagnostics;
        assert!(
            found.iter().any(|one| one.message.contains(wrong) && one.origin.is_some()),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn a_setting_between_bounds_has_both_and_is_exported_with_them() {
    for text in [
        "cpu.max = { min = \"0.5cpu\", max = \"2cpu\" }",
        "memory.low = { max = \"4G\", min = \"1G\" }",
        "\"cpu.max\" = { min = \"50ms/200ms\", max = \"100ms/200ms\" }",
    ] {
        let desired = read(&format!("[groups.a]\n{text}\n"));
        let [assigned] = desired.groups[0].demands.settings.as_slice() else { panic!("{text}") };
        let most = assigned.most.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert!(
            text.contains(&format!("max = \"{most}\""))
                && text.contains(&format!("min = \"{}\"", assigned.text))
        );
        let exported = layout::to_toml(&desired);
        assert_eq!(read(&exported).without_places(), desired.without_places(), "{exported}");
    }
}

#[test]
fn bounds_between_which_nothing_is_are_errors() {
    for (text, expected) in [
        ("cpu.max = { min = \"2cpu\", max = \"1cpu\" }", "min 2cpu is above max 1cpu"),
        ("cpu.max = { min = \"0\", max = \"1cpu\" }", "0 is out of range"),
        ("cpu.max = { min = \"1cpu\" }", "needs both min and max"),
        ("cpu.max = { min = \"1cpu\", max = \"max\" }", "min and max are amounts"),
        ("cpu.max = { min = \"50ms/100ms\", max = \"50ms/50ms\" }", "period 100ms and max 50ms"),
        ("cpu.max = { min = \"1cpu\", max = \"2cpu\", quota = \"1cpu\" }", "unknown key 'quota'"),
        ("cpu.max = { min = \"1cpu\", max = \"2cpu\", burst = \"1ms\" }", "gives cpu.max.burst beside"),
        ("memory.max = { min = \"1G\", max = \"2G\" }", "takes no min and max"),
        ("memory.low = { min = \"3G\", max = \"2G\" }", "min 3G is above max 2G"),
    ] {
        let source = Source::new("layout.toml", &format!("[groups.a]\n{text}\n"));
        let errors = layout::read_toml(&[source]).diagnostics;
        let texts: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
        assert!(texts.len() == 1 && texts[0].contains(expected), "{text}: {texts:?}");
    }
}
