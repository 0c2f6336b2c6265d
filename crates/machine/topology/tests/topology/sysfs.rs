//! `/sys` and `/proc`: recorded trees, made ones, and this machine's own.

use std::{fs, path::Path, process::Command, time::Instant};

use topology::{Machine, SourceKind, print};
use units::{Bytes, CpuSet};

use super::{
    cpus, machine,
    recorded::{Shape, put, scratch, unpack},
    recorded_text,
};

fn tree(name: &str) -> tempfile::TempDir {
    unpack(&recorded_text(name))
}

fn read(root: &Path) -> Machine {
    Machine::from_root(root).unwrap_or_else(|error| panic!("{error}"))
}

/// The per-CPU listing made of `/proc/cpuinfo`, as the study's authors made theirs.
fn listing_of_cpuinfo(text: &str) -> String {
    let column = |field: &str| -> String {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let values = lines.filter(|(name, _)| name.trim() == field).map(|(_, value)| value.trim());
        values.collect::<Vec<_>>().join(" ")
    };
    let model = text.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap();
    format!(
        "model name      : {model}\nprocessors  (OS CPU count)          {}\nphysical id (processor socket)      {}\n\
         siblings    (logical CPUs/socket)   {}\ncore id     (# assigned to a core)  {}\n\
         cpu cores   (physical cores/socket) {}\n",
        column("processor"),
        column("physical id"),
        column("siblings"),
        column("core id"),
        column("cpu cores")
    )
}

/// A numactl listing without what changes from moment to moment.
fn without_free(listing: &str) -> Vec<&str> {
    listing.lines().filter(|line| !line.contains(" free: ")).collect()
}

#[test]
fn a_recorded_tree_prints_what_numactl_and_cpuinfo_said_on_that_machine() {
    for name in ["qemu-n4c8", "qemu-n4c8-nosmt"] {
        let root = tree(&format!("{name}.sysfs.txt"));
        let machine = read(root.path());
        assert_eq!(machine.sources[0].kind, SourceKind::Sysfs);
        let cpuinfo = fs::read_to_string(root.path().join("proc/cpuinfo")).unwrap();
        assert_eq!(print::cpus(&machine).unwrap(), listing_of_cpuinfo(&cpuinfo), "{name}");
    }
    let machine = read(tree("qemu-n4c8.sysfs.txt").path());
    let listed = print::numactl(&machine).unwrap();
    assert_eq!(without_free(&listed), without_free(&recorded_text("qemu-n4c8.numactl.txt")));
}

#[test]
fn a_recorded_tree_tells_smt_l3_offline_isolated_and_distances() {
    let machine = read(tree("qemu-n4c8.sysfs.txt").path());
    assert_eq!(machine.online(), cpus("0-4,6-7"));
    assert_eq!(machine.offline(), cpus("5"));
    assert_eq!(machine.isolated, Some(cpus("6-7")));
    assert_eq!(machine.nohz_full, Some(cpus("6-7")));
    assert_eq!(machine.smt_active(), Some(true));
    assert_eq!(machine.smt_control.as_deref(), Some("on"));
    assert_eq!(machine.core_siblings(6).unwrap(), &cpus("6-7"));
    // its sibling is offline
    assert_eq!(machine.core_siblings(4).unwrap(), &cpus("4"));
    assert_eq!(machine.cpu(5).unwrap().package, None);
    assert_eq!(machine.with_siblings(&cpus("0,7")).unwrap(), cpus("0-1,6-7"));
    assert_eq!(machine.cores().unwrap().len(), 4);
    // an L3 over two nodes
    let l3 = machine.l3_groups().unwrap();
    assert_eq!(l3.iter().map(|group| group.cpus.to_string()).collect::<Vec<_>>(), ["0-3", "4,6-7"]);
    assert_eq!(machine.nodes_of_cpus(&l3[1].cpus).unwrap().to_string(), "2-3");
    assert_eq!(machine.nearest_nodes(1).unwrap(), [1, 0, 2, 3]);
    assert_eq!(machine.memory_total(), Some(Bytes(995_908 << 10)));
}

#[test]
fn the_same_machine_read_three_ways_is_the_same() {
    let live = read(tree("qemu-n4c8.sysfs.txt").path());
    for name in ["qemu-n4c8.hwloc.xml", "qemu-n4c8.lscpu.txt", "qemu-n4c8.numactl.txt"] {
        let merged = live.clone().merge(machine(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(merged.cpus, live.cpus, "{name} tells nothing of CPUs that the tree does not");
    }
}

#[test]
fn an_l3_list_that_names_an_offline_cpu_is_read_without_it() {
    let text = recorded_text("qemu-n4c8-nosmt.sysfs.txt");
    assert!(
        text.contains("cpu4/cache/index3/shared_cpu_list:4-5"),
        "as Linux 6.1 showed it, CPU 5 being offline"
    );
    let machine = read(unpack(&text).path());
    assert_eq!(machine.l3_groups().unwrap()[2].cpus, cpus("4"));
}

#[test]
fn disks_partitions_and_devices_made_of_them_lead_to_the_whole_disk() {
    let machine = read(tree("qemu-n4c8.sysfs.txt").path());
    let names: Vec<&str> =
        machine.block_devices.iter().flatten().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["dm-0", "loop0", "loop1", "vda", "vda1", "vda2"]);
    let partition = machine.block_device("/dev/vda2").unwrap();
    assert_eq!((partition.major, partition.minor, partition.size), (254, 2, Bytes(32 << 20)));
    assert_eq!(partition.scheduler.as_deref(), Some("none"));
    assert_eq!(machine.whole_disk(partition).unwrap().name, "vda");
    let volume = machine.block_device("dm-0").unwrap();
    assert_eq!(volume.mapper_name.as_deref(), Some("group-volume"));
    assert_eq!(volume.made_of, ["vda2"]);
    assert_eq!(machine.whole_disk(volume).unwrap().name, "dm-0");
    let below: Vec<&str> = machine.disks_below(volume).iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(below, ["vda"]);
    assert_eq!(machine.block_device("loop0").unwrap().backing_file.as_deref(), Some("/bin/busybox"));
    assert_eq!(machine.block_device_numbered(254, 1).unwrap().name, "vda1");
    assert_eq!(machine.block_device("sda"), None);
}

#[test]
fn devices_that_name_each_other_in_a_circle_have_no_disk_below() {
    let root = tree("qemu-n4c8.sysfs.txt");
    for (name, other, minor) in [("md1", "md2", 1), ("md2", "md1", 2)] {
        put(root.path(), &format!("sys/block/{name}/dev"), &format!("9:{minor}\n"));
        put(root.path(), &format!("sys/block/{name}/slaves/{other}/dev"), "\n");
    }
    let machine = read(root.path());
    assert!(machine.disks_below(machine.block_device("md1").unwrap()).is_empty());
}

#[test]
fn without_numa_all_cpus_and_memory_are_one_node() {
    let root = tree("qemu-n4c8.sysfs.txt");
    fs::remove_dir_all(root.path().join("sys/devices/system/node")).unwrap();
    let machine = read(root.path());
    assert_eq!(machine.nodes.len(), 1);
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0-4,6-7"));
    assert_eq!(machine.nodes[0].memory_total, Some(Bytes(995_908 << 10)));
    assert!(print::numactl(&machine).unwrap().ends_with("No distance information available.\n"));
}

#[test]
fn a_kernel_that_tells_little_leaves_the_rest_unknown() {
    let root = scratch();
    put(root.path(), "sys/devices/system/cpu/online", "0-1\n");
    let machine = read(root.path());
    assert_eq!(machine.online(), cpus("0-1"));
    assert_eq!(machine.cores(), None);
    assert_eq!(machine.l3, None);
    assert_eq!(machine.isolated, None);
    assert_eq!(machine.nohz_full, None);
    assert_eq!(machine.block_devices, None);
    assert_eq!(machine.nodes[0].memory_total, None);
    assert_eq!(Machine::from_listing("x", &machine.to_json()).unwrap(), machine);

    put(root.path(), "sys/devices/system/cpu/cpu0/topology/core_id", "-1\n");
    put(root.path(), "sys/devices/system/cpu/nohz_full", "(null)\n");
    let machine = read(root.path());
    assert_eq!(machine.cpu(0).unwrap().core, None);
    assert_eq!(machine.nohz_full, Some(CpuSet::new()));
}

#[test]
fn a_nul_behind_a_list_is_passed_over() {
    let root = tree("qemu-n4c8.sysfs.txt");
    put(root.path(), "sys/devices/system/cpu/cpu0/topology/package_cpus_list", "0-3\n\0");
    put(root.path(), "sys/devices/system/cpu/nohz_full", "\0\n");
    let machine = read(root.path());
    assert_eq!(machine.packages().unwrap()[0].cpus, cpus("0-3"));
    assert_eq!(machine.nohz_full, Some(CpuSet::new()));
}

#[test]
fn distances_to_nodes_that_are_not_shown_are_left_out() {
    let root = tree("qemu-n4c8.sysfs.txt");
    fs::remove_dir_all(root.path().join("sys/devices/system/node/node1")).unwrap();
    let machine = read(root.path());
    assert_eq!(machine.node(3).unwrap().distances, Some(vec![21, 12, 10]));
    assert_eq!(machine.distance(0, 2), Some(21));
}

#[test]
fn without_sysfs_proc_tells_the_cpus() {
    let root = scratch();
    put(root.path(), "proc/cpuinfo", "processor\t: 3\nflags\t: many\n");
    assert_eq!(read(root.path()).online(), cpus("3"));
    let nothing = scratch();
    let error = Machine::from_root(nothing.path()).unwrap_err().to_string();
    assert!(error.ends_with(": no CPU is listed"), "{error}");
}

#[test]
fn a_kernel_file_with_something_else_in_it_is_named() {
    for (path, content, refused) in [
        ("cpu/online", "some", "expected a list of CPUs, found 'some'"),
        ("cpu/online", "0-9000", "expected a list of CPUs, found '0-9000'"),
        ("cpu/cpu0/topology/core_id", "one", "expected a number, found 'one'"),
        ("cpu/cpu0/cache/index3/size", "big", "expected a size, found 'big'"),
        ("node/node1/distance", "10 20", "expected 4 distances, found '10 20'"),
        ("node/node1/meminfo", "none", "expected MemTotal in kB, found 'none'"),
    ] {
        let root = tree("qemu-n4c8.sysfs.txt");
        let path = format!("sys/devices/system/{path}");
        put(root.path(), &path, content);
        let error = Machine::from_root(root.path()).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {refused}", root.path().join(path).display()));
    }
}

#[test]
fn a_tree_of_1024_cpus_is_read_whole() {
    let shape = Shape { packages: 8, nodes: 2, l3: 4, cores: 8, threads: 2 };
    let root = shape.tree();
    let start = Instant::now();
    let machine = read(root.path());
    let took = start.elapsed();
    assert_eq!(machine.online().len(), 1024);
    assert_eq!(machine.nodes.len(), 16);
    assert_eq!(machine.l3_groups().unwrap().len(), 64);
    assert_eq!(machine.cores().unwrap().len(), 512);
    assert_eq!(machine.packages().unwrap().len(), 8);
    assert_eq!(machine.core_siblings(1).unwrap(), &cpus("1,513"));
    assert_eq!(machine.cpus_of_node(15).unwrap().to_string(), shape.list(480, 32));
    assert_eq!(machine.cpu(1023).unwrap().max_mhz, Some(3400));
    assert_eq!(Machine::from_listing("x", &machine.to_json()).unwrap(), machine);
    println!("read 1024 CPUs in {took:?}");
}

#[test]
fn this_machine_is_read_as_proc_shows_it() {
    let machine = Machine::live().unwrap_or_else(|error| panic!("{error}"));
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let processors: CpuSet = cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("processor")?.split_once(':')?.1.trim().parse::<usize>().ok())
        .collect();
    assert_eq!(machine.online(), processors);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(print::cpus(&machine).unwrap(), listing_of_cpuinfo(&cpuinfo));
    }
    assert_eq!(machine.block_devices.as_ref().unwrap().len(), kernel_block_devices());
    assert_eq!(Machine::from_listing("x", &machine.to_json()).unwrap(), machine);
    assert!(!print::text(&machine).is_empty());
}

/// Whole disks and partitions with a number.
fn kernel_block_devices() -> usize {
    fs::read_dir("/sys/class/block")
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().join("dev").exists())
        .count()
}

#[test]
fn this_machine_prints_as_its_numactl_does() {
    let output = Command::new("numactl").arg("--hardware").output();
    let output = output.expect("numactl must be installed for this test: apt-get install numactl");
    let said = String::from_utf8(output.stdout).unwrap();
    let listed = Machine::from_listing("numactl", &said).unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::live().unwrap();
    // the widths changed with numactl 2.0.19
    machine.numactl_style = listed.numactl_style;
    let printed = print::numactl(&machine).unwrap();
    assert_eq!(without_free(&printed), without_free(&said));
    assert_eq!(printed.lines().count(), said.lines().count());
    assert_eq!(print::numactl(&listed).unwrap(), said);
}
