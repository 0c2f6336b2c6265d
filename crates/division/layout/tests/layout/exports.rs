//! Out and in again: what is written as a file is read as the same.

use layout::{Desired, Severity, Source};
use settings::Version;

use super::studies::{EXAMPLE, S1, S2};
use super::{Machine, desired};

/// Reads a text that may have warnings.
fn lenient(name: &str, text: &str) -> Desired {
    let sources = [Source::new(name, text)];
    let reading = layout::read(&sources);
    let errors = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert!(!errors, "{text}\n{}", layout::render(&reading.diagnostics, &sources));
    reading.desired.unwrap()
}

/// Writes TOML, reads it, and writes it again.
pub fn assert_toml_is_the_same(desired: &Desired) {
    let text = layout::to_toml(desired);
    let again = lenient("layout.toml", &text);
    assert_eq!(again.without_places(), desired.without_places(), "{text}");
    assert_eq!(layout::to_toml(&again), text, "written the same again");
}

const MANY: &str = r#"
mount { cpu = /cgroup/cpu; "name=jobs" = "/cgroup/my jobs"; }
systemd { slice = db.slice; scope = db.scope; setdefault = yes; pid = 17; }
default { perm { task { gid = users; } admin { uid = 0; dperm = 755; } } }
group a {
  perm { admin { uid = root; gid = wheel; dperm = 0775; fperm = 664; } task { uid = 1001; fperm = 770; } }
  cpu { cpu.cfs_quota_us = 50000; cpu.cfs_period_us = 100000; cpu.rt_runtime_us = 950000; }
  cpuset { cpuset.cpus = 0-3,8; cpuset.mems = 0,2; cpuset.cpu_exclusive = 1; cpuset.memory_migrate = 1; }
  memory { memory.limit_in_bytes = 1073741824; memory.memsw.limit_in_bytes = 2147483648; memory.swappiness = 0; memory.soft_limit_in_bytes = -1; }
  devices { devices.deny = a; devices.allow = "c 1:3 rwm"; devices.allow = "c 1:5 rwm"; }
  blkio { blkio.throttle.read_bps_device = "8:16 1048576"; blkio.throttle.read_iops_device = "8:16 10
8:32 20"; blkio.weight = 500; }
  net_cls { net_cls.classid = 0x100001; }
  net_prio { net_prio.ifpriomap = "eth0 5"; }
  freezer { freezer.state = THAWED; }
  pids { pids.max = 100; }
  cpuacct { }
  name=jobs { }
}
group "a/b c" { cpu { cpu.shares = 100; } }
template students/%u { memory { memory.limit_in_bytes = 100M; } perm { task { uid = root; } admin { gid = students; } } }
template "x/\%/%G" { cpu { cpu.shares = 100; } }
"#;

#[test]
fn libcgroups_files_become_toml_that_asks_the_same() {
    for (name, text) in [
        ("cgconfig.conf", S1),
        ("cgconfig.conf", S2),
        ("cgconfig.conf", &MANY.replace("name=jobs {", "\"name=jobs\" {")),
    ] {
        assert_toml_is_the_same(&lenient(name, text));
    }
    let rules = "oracle:ora_* cpu,memory db/%u ignore\npeter cpu a\n% memory b\n*:\"/opt/my app\" * x ignore_rt\n@dba * d\n*:x pids /\n";
    assert_toml_is_the_same(&lenient("cgrules.conf", rules));
}

#[test]
fn our_own_files_become_the_same_again() {
    assert_toml_is_the_same(&lenient("layout.toml", EXAMPLE));
    let everything = r#"
[host]
hostname = "db*"
model = 'E7-"4850"'
nodes = 4
cpus = { min = 32 }
memory = "100G"
[reserve]
cpus = { count = 2, near = ["node:0", "device:/dev/sdb"], smt = "whole-cores" }
memory = "10%"
[defaults]
mems = "local"
smt = "any"
placement = "spread"
pool = "shared"
tasks = { group = "dba", mode = "0660" }
keep = "repair"
memory.oom.group = true
[groups.a]
cpus = { min = 1, max = 4, node = "0-1", pool = "exclusive" }
mems = { like = "b" }
keep = "off"
match = [{ user = "*" }, { user = 17, process = "a*" }, { group = "x y" }]
[groups.a.groups.b]
cpus = { like = "b" }
[groups.b]
cpus = "25%"
mems = "0"
exclusive = true
cpu.max = "50ms/100ms"
"cpu.max.burst" = "20ms"
io.max."/dev/sdb" = { riops = 10 }
hugetlb.2MB.max = "1G"
controllers = ["pids", "name=x"]
[groups."/machine/x"]
cpus = "all"
[groups."we.ird 'name'"]
cpus = { node = 3 }
[[rules]]
user = "oracle"
to = [{ group = "a", controllers = ["cpu"] }, { group = "b" }]
ignore_rt = true
[[rules]]
process = "/x"
ignore = true
[templates.'t/\%/%u']
cpus = 2
"#;
    assert_toml_is_the_same(&lenient("layout.toml", &everything.replace("\"x y\"", "\"xy\"")));
}

#[test]
fn where_v1_means_something_else_an_import_says_so() {
    let text = layout::to_toml(&lenient(
        "cgconfig.conf",
        "group a { memory { memory.swappiness = 10; memory.soft_limit_in_bytes = 1G; memory.limit_in_bytes = 2G; } }",
    ));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("# cgroup v2 has no memory.swappiness: "), "{text}");
    assert_eq!(lines[2], "memory.swappiness = 10");
    assert!(lines[3].starts_with("# on cgroup v2 nearly the same, memory.high; on v1: "), "{text}");
    assert_eq!(lines[4], "memory.soft_limit_in_bytes = \"1G\"");
    assert_eq!(lines[5], "memory.limit_in_bytes = \"2G\"", "exactly the same on both needs no word");
    assert_eq!(lines.len(), 6);
}

#[test]
fn what_a_cgconfig_sets_at_the_root_is_told_in_toml_and_left_out() {
    let first = lenient(
        "cgconfig.conf",
        "group . { cpu { cpu.shares = 2048; } }\ngroup a { pids { pids.max = 5; } }\n",
    );
    assert_eq!(first.groups.iter().map(|group| group.name.to_string()).collect::<Vec<_>>(), ["/", "a"]);
    let export = layout::to_cgconfig(&first, Version::V1, &Machine);
    assert!(export.text.contains("cpu.shares") && export.lost.is_empty(), "{}", export.text);
    let text = layout::to_toml(&first);
    assert!(text.contains("root of a hierarchy:\n#   cpu.shares = 2048\n"), "{text}");
    let again = lenient("layout.toml", &text);
    assert_eq!(again.groups.iter().map(|group| group.name.to_string()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn cgconfig_is_written_as_it_is_read() {
    for text in [S1, S2] {
        let first = lenient("cgconfig.conf", text);
        let export = layout::to_cgconfig(&first, Version::V1, &Machine);
        assert!(export.lost.is_empty(), "{:?}", export.lost);
        let again = lenient("cgconfig.conf", &export.text);
        assert_eq!(again.without_places(), first.without_places(), "{}", export.text);
    }
}

#[test]
fn a_full_cgconfig_survives_the_way_through_toml_and_back() {
    let first = lenient("cgconfig.conf", &MANY.replace("name=jobs {", "\"name=jobs\" {"));
    let toml = lenient("layout.toml", &layout::to_toml(&first));
    let export = layout::to_cgconfig(&toml, Version::V1, &Machine);
    assert!(export.lost.is_empty(), "{:?}", export.lost);
    let again = lenient("cgconfig.conf", &export.text);
    let next = layout::to_cgconfig(&again, Version::V1, &Machine);
    assert_eq!(next.text, export.text, "the kernel's own words for every value do not change any more");
    let names = |desired: &Desired| -> Vec<String> {
        desired.groups.iter().map(|group| group.name.to_string()).collect()
    };
    assert_eq!(names(&again), names(&first));
    let a = |desired: &Desired| {
        desired.groups.iter().find(|group| group.name.to_string() == "a").unwrap().demands.clone()
    };
    let (first, again) = (a(&first.without_places()), a(&again.without_places()));
    assert_eq!((&again.cpus, &again.mems, again.exclusive), (&first.cpus, &first.mems, first.exclusive));
    assert_eq!(
        (&again.tasks, &again.admin, &again.controllers),
        (&first.tasks, &first.admin, &first.controllers)
    );
}

#[test]
fn a_layout_is_exported_in_the_words_of_either_version() {
    let desired = desired(
        "layout.toml",
        "[groups.db]\nmemory.max = \"25%\"\ncpu.weight = 200\ncpu.max = \"1.5cpu\"\nio.max.\"/dev/sdb\" = { riops = 10 }\n\
         cpus = \"2-3\"\nexclusive = true\nmemory.limit_in_bytes.x = 1\n".replace("memory.limit_in_bytes.x = 1\n", "").as_str(),
    );
    let v1 = layout::to_cgset(&desired, Version::V1, &Machine);
    assert!(v1.lost.is_empty(), "{:?}", v1.lost);
    let expected = "cgcreate -g cpuset,memory,cpu,blkio:db\n\
        cgset -r cpuset.cpus='2-3' db\ncgset -r cpuset.cpu_exclusive=1 db\n\
        cgset -r memory.limit_in_bytes=68719476736 db\ncgset -r cpu.shares=2048 db\n\
        cgset -r cpu.cfs_period_us=100000 db\ncgset -r cpu.cfs_quota_us=150000 db\n\
        cgset -r blkio.throttle.read_iops_device=\"8:16 10\" db\n";
    assert_eq!(v1.text, expected);
    let v2 = layout::to_cgset(&desired, Version::V2, &Machine);
    let expected = "cgcreate -g cpuset,memory,cpu,io:db\n\
        cgset -r cpuset.cpus='2-3' db\ncgset -r cpuset.cpus.partition=root db\n\
        cgset -r memory.max=68719476736 db\ncgset -r cpu.weight=200 db\ncgset -r cpu.max=\"150000 100000\" db\n\
        cgset -r io.max=\"8:16 riops=10\" db\n";
    assert_eq!(v2.text, expected);
    let of_unit = lenient("layout.toml", "[groups.web]\nunit = \"nginx.service\"\npids.max = 9\n");
    for export in [
        layout::to_cgset(&of_unit, Version::V2, &Machine),
        layout::to_cgconfig(&of_unit, Version::V2, &Machine),
    ] {
        assert_eq!(export.lost.len(), 1, "{:?}", export.lost);
        assert!(export.lost[0].message.contains("does not limit nginx.service"), "{:?}", export.lost);
        assert!(export.text.contains("does not limit nginx.service"), "{}", export.text);
    }
}

#[test]
fn groups_are_made_before_they_are_set() {
    let desired = desired(
        "layout.toml",
        "[groups.a]\ncontrollers = [\"freezer\", \"name=x\"]\n[groups.'a/b']\npids.max = 5\n[groups.c]\nmatch = [{ user = \"root\" }]\n",
    );
    let text = |version| layout::to_cgset(&desired, version, &Machine).text;
    let set = "cgcreate -g pids:a/b\ncgset -r pids.max=5 a/b\n";
    assert_eq!(text(Version::V1), format!("cgcreate -g freezer,name=x:a\n{set}"));
    assert_eq!(text(Version::V2), set);
}

#[test]
fn settings_that_share_a_file_on_v2_are_exported_as_one_line_in_every_order() {
    for (settings, on_v2, in_unit) in [
        (
            ["cpu.cfs_period_us = 50000", "cpu.cfs_quota_us = 15000"],
            &["cgset -r cpu.max=\"15000 50000\" db"][..],
            "CPUQuota=30%\nCPUQuotaPeriodSec=50000us\n",
        ),
        (
            [
                "blkio.throttle.read_bps_device = \"8:16 20971520\"",
                "blkio.throttle.write_bps_device = \"8:16 10485760\"",
            ],
            &["cgset -r io.max=\"8:16 rbps=20971520 wbps=10485760\" db"],
            "IOReadBandwidthMax=/dev/block/8:16 20971520\nIOWriteBandwidthMax=/dev/block/8:16 10485760\n",
        ),
        (
            ["memory.memsw.limit_in_bytes = \"96M\"", "memory.limit_in_bytes = \"64M\""],
            &["cgset -r memory.max=67108864 db", "cgset -r memory.swap.max=33554432 db"],
            "MemoryMax=67108864\nMemorySwapMax=33554432\n",
        ),
    ] {
        for lines in [settings.join("\n"), [settings[1], settings[0]].join("\n")] {
            let desired = desired("layout.toml", &format!("[groups.db]\n{lines}\n"));
            let cgset = layout::to_cgset(&desired, Version::V2, &Machine);
            let (made, set) = cgset.text.trim_end().split_once('\n').unwrap();
            assert!(made.starts_with("cgcreate -g ") && made.ends_with(":db"), "{made}");
            assert_eq!((set, cgset.lost.len()), (on_v2.join("\n").as_str(), 0), "{lines}");
            let cgconfig = layout::to_cgconfig(&desired, Version::V2, &Machine);
            assert_eq!(cgconfig.lost, [], "{lines}");
            let units = layout::to_systemd(&desired, &Machine);
            assert!(units.lost.is_empty() && units.text.ends_with(in_unit), "{lines}: {}", units.text);
            // v1 has a file for each
            let v1 = layout::to_cgset(&desired, Version::V1, &Machine);
            assert_eq!((v1.text.matches("cgset -r ").count(), v1.lost.len()), (2, 0), "{lines}: {}", v1.text);
        }
    }
}

#[test]
fn systemd_gets_slices_and_drop_in_files_for_units() {
    let desired = desired(
        "layout.toml",
        "[groups.\"db/oltp-1\"]\ncpus = \"2-3\"\nmemory.max = \"64G\"\n\"cpu.max\" = \"1.5cpu\"\n\"cpu.max.burst\" = \"10ms\"\n\
         [groups.pg]\nunit = \"postgresql@15-main.service\"\nio.max = \"8:16 riops=10\"\n\
         [groups.any]\ncpus = 2\n",
    );
    let export = layout::to_systemd(&desired, &Machine);
    let expected = "# /etc/systemd/system/any.slice\n[Slice]\n\
        # not here: which CPUs these are is not known without a machine (let the planner resolve it first: ringfence plan)\n\n\
        # /etc/systemd/system/db-oltp\\x2d1.slice\n[Slice]\nAllowedCPUs=2-3\nMemoryMax=68719476736\nCPUQuota=150%\n\
        # not here: systemd has no property for cpu.max.burst\n\n\
        # /etc/systemd/system/postgresql@15-main.service.d/90-layout.conf\n[Service]\nIOReadIOPSMax=/dev/block/8:16 10\n";
    let mut blocks: Vec<&str> = export.text.trim_end().split("\n\n").collect();
    blocks.sort_unstable();
    assert_eq!(blocks.join("\n\n") + "\n", expected);
    assert_eq!(export.lost.len(), 2);
}

#[test]
fn what_an_export_can_not_say_is_told_and_stands_in_it_as_a_comment() {
    let desired = desired(
        "layout.toml",
        "[reserve]\ncpus = 1\n[groups.a]\ncpus = 8\nmems = \"local\"\nmemory.swappiness = 10\nmemory.high = \"1G\"\n\
         io.max.\"/dev/nosuch\" = { riops = 1 }\n",
    );
    let export = layout::to_cgconfig(&desired, Version::V2, &Machine);
    let lost: Vec<&str> = export.lost.iter().map(|warning| warning.message.as_str()).collect();
    let expected = [
        "cgconfig.conf has no reserve",
        "which CPUs these are is not known without a machine",
        "which nodes these are is not known without a machine",
        "cgroup v2 has no memory.swappiness",
        "io.max: /dev/nosuch does not exist",
    ];
    assert_eq!(lost, expected);
    for message in lost {
        assert!(export.text.contains(&format!("# not here: {message}")), "{}", export.text);
    }
    assert!(export.text.contains("memory.high = 1073741824;"), "{}", export.text);
    let again = lenient("cgconfig.conf", &export.text);
    assert_eq!(again.groups[0].demands.settings.len(), 1);
}

/// Without the section that only Ringfence follows, a drop-in file would have the limits of one role for the whole service.
#[test]
fn groups_in_a_service_stay_out_of_all_formats_but_our_own() {
    let desired = desired(
        "layout.toml",
        "[groups.pg]\nunit = \"postgresql@15-main.service\"\nmemory.max = \"64G\"\n\
         [groups.pg.groups.maintenance]\nmatch = [{ role = \"postgresql.autovacuum\" }]\npids.max = 5\n",
    );
    let lost = "group 'pg/maintenance' is in postgresql@15-main.service, which only ringfence apply divides: it is left out";
    for export in [
        layout::to_systemd(&desired, &Machine),
        layout::to_cgconfig(&desired, Version::V2, &Machine),
        layout::to_cgset(&desired, Version::V2, &Machine),
    ] {
        assert!(export.lost.iter().any(|warning| warning.message == lost), "{:?}", export.lost);
        assert!(
            !export.text.contains("pids.max = 5") && !export.text.contains("pids.max=5"),
            "{}",
            export.text
        );
        assert!(!export.text.contains("TasksMax"), "{}", export.text);
    }
    assert_toml_is_the_same(&desired);
}

#[test]
fn a_shell_reads_a_command_as_it_was_meant() {
    let line = |file: &str, value: &str, group: &str| {
        layout::cgset_line(file, value, &settings::GroupName::new(group).unwrap())
    };
    assert_eq!(line("cpuset.cpus", "0,4", "a"), "cgset -r cpuset.cpus='0,4' a");
    assert_eq!(line("cpuset.mems", "0", "a/b"), "cgset -r cpuset.mems='0' a/b");
    assert_eq!(
        line("memory.limit_in_bytes", "8589934592", "a b"),
        "cgset -r memory.limit_in_bytes=8589934592 'a b'"
    );
    assert_eq!(line("io.max", "8:16 riops=10", "a"), "cgset -r io.max=\"8:16 riops=10\" a");
    assert_eq!(line("x", "$(reboot)", "it's"), "cgset -r x='$(reboot)' 'it'\\''s'");
    assert_eq!(line("x", "a'b$", "a"), "cgset -r x='a'\\''b$' a");
    assert_eq!(line("x", "", "a"), "cgset -r x='' a");
}

#[test]
fn rules_are_written_as_cgrules_conf() {
    let text = "oracle:ora_*\tcpu,memory\tdb/%u\tignore\npeter\tcpu\ta\n%\tmemory\tb\n*:\"/opt/my app\"\t*\tx\tignore_rt\n";
    let export = layout::to_cgrules(&lenient("cgrules.conf", text));
    assert_eq!(export.text, text);
    let desired = desired(
        "layout.toml",
        "[groups.db]\nmatch = [{ user = \"oracle\" }, { group = \"dba\", process = \"x\" }]\n",
    );
    assert_eq!(layout::to_cgrules(&desired).text, "oracle\t*\tdb\n@dba:x\t*\tdb\n");
}

#[test]
fn schedules_are_written_as_they_were_read() {
    let text = r#"
[groups."db/oltp"]
cpus = "0-3"
mems = "0"
memory.max = "1G"
[groups.batch]
cpus = { count = 2, smt = "any" }
[[schedule]]
name = "night"
at = "Mon..Fri 22:00 Europe/Berlin"
until = "06:00"
missed = "skip"
groups."db/oltp" = { cpus = 4, mems = "local", memory.max = "2G" }
groups.batch.cpus = "25%"
[[schedule]]
name = "swap"
after = "10m"
every = "1h 30m"
groups.batch = { cpu.weight = 10, cpu.max = "150ms/100ms" }
[[schedule]]
name = "backup"
on = { unit = "backup.service", state = "inactive" }
groups.batch = { cpu.weight = 20 }
[[schedule]]
name = "dump"
on = { process = "/usr/bin/pg_dump" }
groups.batch = { cpu.weight = 30 }
"#;
    let read = desired("layout.toml", text);
    assert_eq!(read.schedules.len(), 4);
    assert_toml_is_the_same(&read);
}

#[test]
fn the_change_made_last_counts_and_the_rest_stays() {
    let read = desired(
        "layout.toml",
        "[defaults]\nsmt = \"threads\"\n[groups.a]\ncpus = 1\nmemory.max = \"1G\"\npids.max = 5\n\
         [[schedule]]\nname = \"one\"\nat = \"22:00\"\ngroups.a = { cpus = 2, memory.max = \"2G\" }\n\
         [[schedule]]\nname = \"two\"\nat = \"23:00\"\ngroups.a = { memory.limit_in_bytes = \"3G\" }\n",
    );
    let of = |names: &[&str]| {
        let text = layout::to_toml(&read.with(names));
        text.split("[[schedule]]").next().unwrap().replace('\n', " ")
    };
    let group = |text: &str| text.split("[groups.a] ").nth(1).unwrap().trim().to_owned();
    let threads = |count: u32| format!("cpus = {{ count = {count}, smt = \"threads\" }}");
    assert_eq!(group(&of(&[])), format!("{} memory.max = \"1G\" pids.max = 5", threads(1)));
    assert_eq!(group(&of(&["one"])), format!("{} pids.max = 5 memory.max = \"2G\"", threads(2)));
    assert_eq!(
        group(&of(&["one", "gone", "two"])),
        format!("{} pids.max = 5 memory.limit_in_bytes = \"3G\"", threads(2))
    );
    assert_eq!(group(&of(&["two", "one"])), format!("{} pids.max = 5 memory.max = \"2G\"", threads(2)));
}
