//! The configurations of the published studies, as they are.

use layout::{Account, Controllers, CpuDemand, MemDemand, Person, Subsystem, Who};
use settings::{Controller, Version};

use super::{Machine, desired};

pub const S1: &str = include_str!("s1.cgconfig.conf");

pub const S2: &str = "mount {
        blkio = /cgroup/blkio;
}

group iothrottle {
        blkio {
                blkio.throttle.read_iops_device=\"8:16 10\";
        }
}
";

/// The example of the manual.
pub const EXAMPLE: &str = r#"[groups.oltp1]
cpus = { node = 0 }          # also: 8 · "0-7" · "25%" · { count = 8, near = "node:0", smt = "whole-cores" } · { like = "oltp2" }
mems = "local"               # the nodes those CPUs are on; also "0", "0-3", "all"
memory.max = "8G"
tasks = { user = "oracle", group = "dba" }   # who may put tasks in
admin = { user = "root", group = "root" }    # who may change its settings
match = [{ user = "oracle" }]
[groups.rt]
cpus = 1
exclusive = true
[groups.iothrottle]
io.max."/dev/sdb" = { riops = 10 }
"#;

fn person(user: &str, group: &str) -> Person {
    Person { user: Account::new(user), group: Account::new(group), ..Person::default() }
}

#[test]
fn the_first_studys_groups_are_read_with_their_sets_and_people() {
    let desired = desired("/etc/cgconfig.conf", S1);
    let mounts: Vec<String> =
        desired.mounts.iter().map(|mount| format!("{}={}", mount.subsystem, mount.path)).collect();
    let expected = ["cpuset", "cpu", "cpuacct", "memory", "devices", "freezer", "net_cls", "blkio"];
    assert_eq!(mounts, expected.map(|name| format!("{name}=/cgroup/{name}")));
    assert_eq!(desired.groups.len(), 4);
    for (index, group) in desired.groups.iter().enumerate() {
        let number = index + 1;
        assert_eq!(group.name.to_string(), format!("test{number}"));
        let demands = &group.demands;
        assert_eq!(demands.cpus.as_ref().unwrap().value, CpuDemand::These("0-31".parse().unwrap()));
        assert_eq!(demands.mems.as_ref().unwrap().value, MemDemand::These("0-3".parse().unwrap()));
        let user = if number == 1 { "oracle".to_owned() } else { format!("oracle{number}") };
        assert_eq!(demands.tasks.as_ref().unwrap().value, person(&user, "dba"));
        let admin = Person { all_files: true, ..person("root", "root") };
        assert_eq!(demands.admin.as_ref().unwrap().value, admin);
        assert!(demands.settings.is_empty() && demands.controllers.is_empty() && !demands.exclusive);
    }
    assert_eq!(desired.groups[1].origin.to_string(), "/etc/cgconfig.conf:32:7");
}

#[test]
fn the_first_studys_commands_come_out_with_its_own_quoting() {
    let text = r#"
[groups.test1]
cpus = "0,4,8,12,16,20,24,28"
mems = "0"
[groups.test2]
cpus = "1,5,9,13,17,21,25,29"
mems = "1"
memory.limit_in_bytes = 8589934592
"#;
    let export = layout::to_cgset(&desired("layout.toml", text), Version::V1, &Machine);
    assert!(export.lost.is_empty());
    let expected = "cgcreate -g cpuset:test1\n\
        cgset -r cpuset.cpus='0,4,8,12,16,20,24,28' test1\n\
        cgset -r cpuset.mems='0' test1\n\
        cgcreate -g cpuset,memory:test2\n\
        cgset -r cpuset.cpus='1,5,9,13,17,21,25,29' test2\n\
        cgset -r cpuset.mems='1' test2\n\
        cgset -r memory.limit_in_bytes=8589934592 test2\n";
    assert_eq!(export.text, expected);
}

#[test]
fn the_second_studys_throttle_is_read_and_written_as_it_was() {
    let desired = desired("cgconfig.conf", S2);
    let [group] = desired.groups.as_slice() else { panic!("{} groups", desired.groups.len()) };
    let [limit] = group.demands.settings.as_slice() else { panic!("no single setting") };
    assert_eq!(
        (limit.found.setting.name, limit.found.name.as_str(), limit.text.as_str()),
        ("io.max", "blkio.throttle.read_iops_device", "8:16 10")
    );
    let export = layout::to_cgset(&desired, Version::V1, &Machine);
    let text = export.text.strip_prefix("cgcreate -g blkio:iothrottle\n").unwrap();
    assert_eq!(text, "cgset -r blkio.throttle.read_iops_device=\"8:16 10\" iothrottle\n");
    let export = layout::to_cgset(&desired, Version::V2, &Machine);
    let text = export.text.strip_prefix("cgcreate -g io:iothrottle\n").unwrap();
    assert_eq!(text, "cgset -r io.max=\"8:16 riops=10\" iothrottle\n");
}

#[test]
fn the_second_studys_rule_leads_to_the_group_of_its_configuration() {
    let sources = [
        layout::Source::new("cgconfig.conf", S2),
        layout::Source::new("cgrules.conf", "oracle blkio /iothrottle\n"),
    ];
    let reading = layout::read(&sources);
    assert!(reading.diagnostics.is_empty(), "{}", layout::render(&reading.diagnostics, &sources));
    let desired = reading.desired.unwrap();
    let [rule] = desired.rules.as_slice() else { panic!("{} rules", desired.rules.len()) };
    assert_eq!(rule.matcher.who, Who::User(Account::Name("oracle".to_owned())));
    let blkio = Subsystem::Controller(Controller::Io);
    assert_eq!(rule.targets[0].controllers, Controllers::These(vec![blkio]));
    assert_eq!(rule.targets[0].group.name().as_ref(), Some(&desired.groups[0].name));
}

#[test]
fn the_manuals_example_is_read() {
    let desired = desired("layout.toml", EXAMPLE);
    let names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    assert_eq!(names, ["oltp1", "rt", "iothrottle"]);
    let oltp1 = &desired.groups[0];
    assert_eq!(oltp1.demands.cpus.as_ref().unwrap().value, CpuDemand::OfNodes("0".parse().unwrap()));
    assert_eq!(oltp1.demands.mems.as_ref().unwrap().value, MemDemand::Local);
    assert_eq!(oltp1.demands.settings[0].text, "8G");
    assert_eq!(oltp1.demands.tasks.as_ref().unwrap().value, person("oracle", "dba"));
    assert_eq!(oltp1.matches[0].who, Who::User(Account::Name("oracle".to_owned())));
    assert!(desired.groups[1].demands.exclusive);
    assert_eq!(desired.groups[2].demands.settings[0].text, "/dev/sdb riops=10");
}
