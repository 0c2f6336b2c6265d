//! Two descriptions of one machine made into one.

use topology::{Machine, print};

use super::{cpus, machine, recorded_text};

fn merge_refusal(first: Machine, second: Machine) -> String {
    first.merge(second).unwrap_err().to_string()
}

fn changed(name: &str, from: &str, to: &str) -> Machine {
    let text = recorded_text(name);
    assert!(text.contains(from), "{from}");
    Machine::from_listing("changed", &text.replace(from, to)).unwrap()
}

#[test]
fn lscpu_and_the_per_cpu_listing_together_map_cpus_to_nodes_and_cores() {
    let (nodes, cores) = (machine("e7-4850.lscpu.txt"), machine("e7-4850.cpu_topology.txt"));
    for merged in [nodes.clone().merge(cores.clone()).unwrap(), cores.clone().merge(nodes).unwrap()] {
        // study S3's irregular numbering: node 4 begins with CPU 0, of package 0
        assert_eq!(merged.cpus_of_node(4).unwrap(), &cpus("0,81-89,120-129"));
        let cpu = merged.cpu(0).unwrap();
        assert_eq!((cpu.node, cpu.package, cpu.core), (Some(4), Some(0), Some(0)));
        assert_eq!(merged.core_siblings(81).unwrap(), &cpus("81,121"));
        assert_eq!(merged.cpus_of_nodes(&"0,4".parse().unwrap()), cpus("0-10,41-50,81-89,120-129"));
        // each package is one node, numbered otherwise
        for package in merged.packages().unwrap() {
            let nodes = merged.nodes_of_cpus(&package.cpus).unwrap();
            assert_eq!(nodes.len(), 1);
            assert_eq!(merged.cpus_of_node(nodes.first().unwrap()).unwrap(), &package.cpus);
        }
        assert_eq!(print::cpus(&merged).unwrap(), recorded_text("e7-4850.cpu_topology.txt"));
        assert_eq!(merged.sources.len(), 2);
    }
}

#[test]
fn four_listings_of_one_machine_agree_and_fill_each_other_in() {
    let all = ["qemu-n4c8.hwloc.xml", "qemu-n4c8.lscpu.txt", "qemu-n4c8.numactl.txt"];
    let merged = all.into_iter().map(machine).reduce(|all, next| all.merge(next).unwrap()).unwrap();
    assert_eq!(merged.offline(), cpus("5"), "only lscpu tells it");
    assert!(merged.node(0).unwrap().memory_free.is_some(), "only numactl tells it");
    assert_eq!(merged.l3_groups().unwrap().len(), 2);
    assert_eq!(merged.core_siblings(4).unwrap(), &cpus("4"));
    assert_eq!(merged.core_siblings(6).unwrap(), &cpus("6-7"));
}

#[test]
fn listings_of_different_machines_are_refused_by_what_differs() {
    let start = "e7-4850.lscpu.txt and changed do not describe the same machine: ";
    let name = "e7-4850.lscpu.txt";
    let lscpu = || machine(name);
    for (from, to, differs) in [
        ("1-10,41-50", "1-10,41-49", "node 0 has CPUs 1-10,41-50 in one and 1-10,41-49 in the other"),
        (
            "Socket(s):             8",
            "Socket(s):             4",
            "number of packages is 8 in one and 4 in the other",
        ),
        (
            "Thread(s) per core:    2",
            "Thread(s) per core:    4",
            "threads per core is 2 in one and 4 in the other",
        ),
    ] {
        assert_eq!(merge_refusal(lscpu(), changed(name, from, to)), format!("{start}{differs}"));
    }
    assert_eq!(
        merge_refusal(lscpu(), machine("e5504.lscpu.txt")),
        "e7-4850.lscpu.txt and e5504.lscpu.txt do not describe the same machine: \
         online CPUs only in the first: 8-159; only in the second: none"
    );
    let cores =
        changed("qemu-n4c8.hwloc.xml", "type=\"Package\" os_index=\"1\"", "type=\"Package\" os_index=\"3\"");
    assert!(
        merge_refusal(machine("qemu-n4c8.hwloc.xml"), cores)
            .ends_with("CPU 4's package is 1 in one and 3 in the other")
    );
}

#[test]
fn memory_may_differ_by_rounding_and_no_more() {
    let name = "qemu-n4c8.numactl.txt";
    let hwloc = || machine("qemu-n4c8.hwloc.xml");
    let exact = hwloc().merge(machine(name)).unwrap();
    assert_eq!(exact.node(0).unwrap().memory_total, hwloc().node(0).unwrap().memory_total);
    let other = changed(name, "node 0 size: 250 MB", "node 0 size: 300 MB");
    assert!(merge_refusal(hwloc(), other).contains("node 0 has "));
}
