//! v2 partitions as Linux 6.12 has them, with `cpuset.cpus.exclusive`, and as 7.2 has them, where one is firm: its CPUs
//! are its own, whatever its siblings list.

use kernel::{GroupName, What};
use rustix::io::Errno;
use settings::Controller::Cpuset;

use super::{
    Case,
    behaviour::is_firm,
    case,
    world::{Done, World, refused, soon},
};

pub fn cases() -> Vec<Case> {
    vec![
        case("exclusive_cpus_are_kept_from_siblings_exclusive_lists", fits, kept),
        case("a_partition_has_its_exclusive_cpus_whatever_its_list_says", fits, has),
        case("a_sibling_that_overlaps_invalidates_a_partition_even_so", loose, overlapped),
        case("a_partition_that_overlaps_a_list_does_not_become_one", loose, overlaps),
        case("a_partition_without_its_exclusive_cpus_is_invalid", loose, without),
        case("a_partition_withstands_siblings_lists", firm, withstands),
        case("a_partition_takes_its_cpus_from_a_siblings_list", firm, takes),
        case("a_partition_grows_into_a_siblings_list", firm, grows),
        case("a_partition_without_its_exclusive_cpus_has_its_list", firm, falls_back),
        case("a_partition_without_any_cpus_is_invalid_until_it_has_some", fits, empty),
        case("a_partition_that_took_all_stays_invalid_until_its_type_is_written", fits, took_all),
        case("a_partition_below_a_partition_needs_no_exclusive_list", fits, nested),
        case("a_partition_with_tasks_leaves_them_a_cpu", fits, tasks),
    ]
    .into_iter()
    .map(|case| case.unless(|world| world.others(Cpuset, "cpuset.cpus")))
    .collect()
}

fn fits(world: &World) -> bool {
    world.on_v2(Cpuset) && world.cpus() >= 8 && world.has_file(Cpuset, "cpuset.cpus.exclusive")
}

fn firm(world: &World) -> bool {
    fits(world) && is_firm(world)
}

fn loose(world: &World) -> bool {
    fits(world) && !is_firm(world)
}

fn two(world: &World) -> (GroupName, GroupName) {
    let groups = (world.group(""), world.beside("2"));
    world.make(&groups.0, &[Cpuset]);
    world.make(&groups.1, &[Cpuset]);
    groups
}

fn write(world: &World, group: &GroupName, file: &str, text: &str) {
    world.write(group, Cpuset, &format!("cpuset.cpus{file}"), text);
}

/// `exclusive.effective`, `partition` and `effective` of a group.
fn shows(world: &World, group: &GroupName) -> [String; 3] {
    [".exclusive.effective", ".partition", ".effective"]
        .map(|file| world.read(group, Cpuset, &format!("cpuset.cpus{file}")))
}

#[track_caller]
fn assert_shows(world: &World, group: &GroupName, expected: [&str; 3]) {
    assert_eq!(shows(world, group), expected);
}

fn of_root(world: &World) -> String {
    world.read(&GroupName::root(), Cpuset, "cpuset.cpus.effective")
}

fn isolated(world: &World) -> String {
    world.read(&GroupName::root(), Cpuset, "cpuset.cpus.isolated")
}

fn kept(world: &World) {
    let (group, other) = two(world);
    let attempt = |group, text| world.try_write(group, Cpuset, "cpuset.cpus.exclusive", text);
    write(world, &group, ".exclusive", "0-1");
    assert_shows(world, &group, ["0-1", "member", "0-7"]);
    refused(attempt(&other, "1-2"), Errno::INVAL, "one of the two is exclusive");
    refused(attempt(&other, "99"), Errno::RANGE, "the machine has no CPU 99");
    refused(attempt(&other, "x"), Errno::INVAL, "");
    write(world, &other, "", "4");
    refused(attempt(&group, "4-5"), Errno::INVAL, "");
    write(world, &other, "", "4-6");
    write(world, &group, ".exclusive", "4-5");
    assert_shows(world, &group, ["4-5", "member", "0-7"]);
    write(world, &other, "", "4-5");
    assert_shows(world, &other, ["", "member", "4-5"]);
}

fn has(world: &World) {
    let (group, other) = two(world);
    write(world, &group, "", "0-3");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "root");
    assert_shows(world, &group, ["0-1", "root", "0-1"]);
    assert_eq!((of_root(world).as_str(), &shows(world, &other)[2]), ("2-7", &"2-7".to_owned()));
    write(world, &group, ".exclusive", "0-2");
    write(world, &group, "", "4-5");
    assert_shows(world, &group, ["0-2", "root", "0-2"]);
    assert_eq!(isolated(world), "");
    write(world, &group, ".partition", "isolated");
    assert_shows(world, &group, ["0-2", "isolated", "0-2"]);
    assert_eq!(isolated(world), "0-2");
    write(world, &group, ".partition", "member");
    assert_shows(world, &group, ["0-2", "member", "4-5"]);
    world.host.delete(&group, false).done();
    soon("0-7".to_owned(), || of_root(world));
}

fn overlapped(world: &World) {
    let (group, other) = two(world);
    write(world, &group, "", "0-1");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "root");
    write(world, &other, "", "1-2");
    assert_shows(world, &group, ["0-1", "root invalid", "0-1"]);
    assert_eq!(of_root(world), "0-7");
    write(world, &other, "", "2-3");
    assert_shows(world, &group, ["0-1", "root invalid", "0-1"]);
    write(world, &group, ".partition", "root");
    assert_shows(world, &group, ["0-1", "root", "0-1"]);
    write(world, &other, "", "0");
    write(world, &other, "", "\n");
    write(world, &group, ".exclusive", "0");
    assert_shows(world, &group, ["0", "root", "0"]);
}

fn overlaps(world: &World) {
    let (group, other) = two(world);
    write(world, &other, "", "0-3");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "root");
    assert_shows(world, &group, ["0-1", "root invalid (Cpu list in cpuset.cpus not exclusive)", "0-7"]);
    write(world, &other, ".partition", "root");
    assert_eq!(shows(world, &other)[1], "root invalid (Cpu list in cpuset.cpus not exclusive)");
    write(world, &other, "", "2-3");
    assert_shows(world, &other, ["2-3", "root", "2-3"]);
}

fn without(world: &World) {
    let (group, _) = two(world);
    write(world, &group, "", "0-3");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "root");
    write(world, &group, ".exclusive", "\n");
    assert_shows(world, &group, ["", "root invalid (Invalid cpu list in cpuset.cpus.exclusive)", "0-3"]);
    write(world, &group, ".exclusive", "0-1");
    assert_shows(world, &group, ["0-1", "root", "0-1"]);
}

fn withstands(world: &World) {
    for exclusive in [true, false] {
        let (group, other) = two(world);
        write(world, &group, "", "0-1");
        if exclusive {
            write(world, &group, ".exclusive", "0-1");
        }
        write(world, &group, ".partition", "root");
        // the last list leaves nothing: what the parent has, then
        for (list, left) in [("1-2", "2"), ("2-3", "2-3"), ("0-1", "2-7")] {
            write(world, &other, "", list);
            assert_shows(world, &group, ["0-1", "root", "0-1"]);
            assert_shows(world, &other, ["", "member", left]);
            assert_eq!(of_root(world), "2-7");
        }
        for group in [&group, &other] {
            world.host.delete(group, false).done();
        }
        soon("0-7".to_owned(), || of_root(world));
    }
}

fn takes(world: &World) {
    let (group, other) = two(world);
    write(world, &other, "", "0-3");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "isolated");
    assert_shows(world, &group, ["0-1", "isolated", "0-1"]);
    assert_shows(world, &other, ["", "member", "2-3"]);
    assert_eq!((isolated(world).as_str(), of_root(world).as_str()), ("0-1", "2-7"));
    write(world, &group, ".partition", "member");
    assert_shows(world, &other, ["", "member", "0-3"]);
    assert_eq!(isolated(world), "");
}

fn grows(world: &World) {
    let (group, other) = two(world);
    write(world, &other, "", "4-5");
    write(world, &group, "", "0-1");
    write(world, &group, ".partition", "root");
    write(world, &group, "", "0-4");
    assert_shows(world, &group, ["0-4", "root", "0-4"]);
    assert_shows(world, &other, ["", "member", "5"]);
    write(world, &group, "", "0-3");
    assert_shows(world, &other, ["", "member", "4-5"]);
}

fn falls_back(world: &World) {
    let (group, other) = two(world);
    write(world, &group, "", "0-3");
    write(world, &group, ".exclusive", "0-1");
    write(world, &group, ".partition", "root");
    write(world, &group, ".exclusive", "\n");
    assert_shows(world, &group, ["0-3", "root", "0-3"]);
    write(world, &group, ".exclusive", "0-1");
    assert_shows(world, &group, ["0-1", "root", "0-1"]);
    write(world, &other, ".exclusive", "4-5");
    write(world, &other, ".partition", "root");
    refused(world.try_write(&other, Cpuset, "cpuset.cpus.exclusive", "\n"), Errno::BUSY, "is a partition");
    assert_shows(world, &other, ["4-5", "root", "4-5"]);
}

fn empty(world: &World) {
    let (group, other) = two(world);
    for (group, file) in [(&group, ""), (&other, ".exclusive")] {
        write(world, group, ".partition", "root");
        let reason = "root invalid (cpuset.cpus and cpuset.cpus.exclusive are empty)";
        assert_eq!(shows(world, group)[1], reason);
        let cpus = if file.is_empty() { "0-1" } else { "2-3" };
        write(world, group, file, cpus);
        assert_shows(world, group, [cpus, "root", cpus]);
    }
}

fn took_all(world: &World) {
    let (group, _) = two(world);
    let reason = "root invalid (Parent unable to distribute cpu downstream)";
    write(world, &group, "", "0-7");
    write(world, &group, ".partition", "root");
    assert_shows(world, &group, ["", reason, "0-7"]);
    write(world, &group, "", "0-3");
    assert_shows(world, &group, ["", reason, "0-3"]);
    write(world, &group, ".partition", "root");
    assert_shows(world, &group, ["0-3", "root", "0-3"]);
}

fn nested(world: &World) {
    let (group, _) = two(world);
    write(world, &group, ".exclusive", "0-3");
    write(world, &group, ".partition", "root");
    let (below, beside) = (world.create("a", &[Cpuset]), world.create("b", &[Cpuset]));
    write(world, &below, "", "0-1");
    write(world, &below, ".partition", "root");
    assert_shows(world, &below, ["0-1", "root", "0-1"]);
    assert_shows(world, &group, ["0-3", "root", "2-3"]);
    assert_eq!((shows(world, &beside)[2].as_str(), of_root(world).as_str()), ("2-3", "4-7"));
    write(world, &group, ".partition", "member");
    assert_eq!(shows(world, &below)[1], "root invalid (Parent is not a partition root)");
    write(world, &group, ".exclusive", "\n");
    write(world, &below, ".partition", "member");
    write(world, &below, ".partition", "root");
    assert_eq!(shows(world, &below)[1], "root invalid (Invalid cpu list in cpuset.cpus.exclusive)");
}

fn tasks(world: &World) {
    let (group, _) = two(world);
    write(world, &group, ".exclusive", "0-3");
    write(world, &group, ".partition", "root");
    let pid = world.start();
    world.host.move_tasks(&group, &[pid], What::Process).done();
    let below = world.create("a", &[Cpuset]);
    write(world, &below, ".exclusive", "0-3");
    write(world, &below, ".partition", "root");
    assert_shows(world, &below, ["0-3", "root invalid (Parent unable to distribute cpu downstream)", "0-3"]);
    assert_shows(world, &group, ["0-3", "root", "0-3"]);
}
