//! Recorded listings: what they tell, how they print again, and how a wrong one is refused.

use topology::{Machine, NumactlStyle, SourceKind, TopologyError, print};
use units::Bytes;

use super::{LISTINGS, cpus, machine, recorded_text, refusal};

#[test]
fn a_numactl_listing_prints_as_it_was() {
    for name in ["nehalem-ex.numactl.txt", "qemu-n4c8.numactl.txt"] {
        assert_eq!(print::numactl(&machine(name)).unwrap(), recorded_text(name), "{name}");
    }
}

#[test]
fn the_per_cpu_listing_prints_as_it_was() {
    let name = "e7-4850.cpu_topology.txt";
    assert_eq!(print::cpus(&machine(name)).unwrap(), recorded_text(name));
}

#[test]
fn numactl_tells_nodes_memory_and_distances_and_nothing_else() {
    let machine = machine("nehalem-ex.numactl.txt");
    assert_eq!(machine.sources[0].kind, SourceKind::Numactl);
    assert_eq!(machine.online(), cpus("0-31"));
    assert_eq!(machine.cpus_of_node(1).unwrap(), &cpus("1,5,9,13,17,21,25,29"));
    assert_eq!(machine.node(0).unwrap().memory_total, Some(Bytes(32649 << 20)));
    assert_eq!(machine.node(3).unwrap().memory_free, Some(Bytes(30561 << 20)));
    assert_eq!(machine.distance(2, 2), Some(10));
    assert_eq!(machine.distance(2, 0), Some(21));
    assert_eq!(machine.nearest_nodes(2).unwrap(), [2, 0, 1, 3]);
    assert_eq!(machine.numactl_style, Some(NumactlStyle::Narrow));
    assert_eq!(machine.package_count(), None);
    assert_eq!(machine.cores(), None);
    assert_eq!(machine.core_siblings(0), None);
    assert_eq!(machine.smt_active(), None);
    assert_eq!(machine.l3_groups(), None);
    assert_eq!(machine.block_devices, None);
    assert_eq!(machine.isolated, None);
}

#[test]
fn the_widths_of_every_numactl_are_kept() {
    let wide = "available: 2 nodes (0,2)\nnode 0 cpus: 0\nnode 0 size: 1 MB\nnode 0 free: 0 MB\nnode 2 cpus:\n\
                node 2 size: 8 MB\nnode 2 free: 7 MB\nnode distances:\nnode     0    2 \n   0:   10   17 \n   2:   17   10 \n";
    let classic = wide
        .replace("node     0    2", "node   0   2")
        .replace("   0:   10   17", "  0:  10  17")
        .replace("   2:   17   10", "  2:  17  10");
    for (text, style) in [(wide, NumactlStyle::Wide), (&classic, NumactlStyle::Classic)] {
        let machine = Machine::from_listing("given", text).unwrap();
        assert_eq!(machine.numactl_style, Some(style));
        assert_eq!(print::numactl(&machine).unwrap(), text);
        // a node of memory only
        assert!(machine.cpus_of_node(2).unwrap().is_empty());
    }
}

#[test]
fn what_numactl_does_not_know_reads_and_prints_as_numactl_says_it() {
    let text = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: <not available>\nnode 0 free: 0 MB\n\
                No distance information available.\n";
    let machine = Machine::from_listing("given", text).unwrap();
    assert_eq!(machine.node(0).unwrap().memory_total, None);
    assert_eq!(machine.distance(0, 0), None);
    assert_eq!(print::numactl(&machine).unwrap(), text);
}

#[test]
fn compressed_cpu_lists_of_numactl_are_read() {
    let text = recorded_text("qemu-n4c8.numactl.txt").replace("cpus: 0 1\n", "cpus: 0-1 (2)\n");
    let machine = Machine::from_listing("given", &text).unwrap();
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0-1"));
}

#[test]
fn old_lscpu_tells_the_nodes_of_an_irregularly_numbered_machine() {
    let machine = machine("e7-4850.lscpu.txt");
    assert_eq!(machine.cpus.len(), 160);
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("1-10,41-50"));
    assert_eq!(machine.cpus_of_node(4).unwrap(), &cpus("0,81-89,120-129"));
    assert_eq!(machine.node_of_cpu(0), Some(4));
    assert_eq!(machine.package_count(), Some(8));
    assert_eq!(machine.core_count(), Some(80));
    assert_eq!(machine.smt_active(), Some(true));
    assert_eq!(machine.stated.l3_size, Some(Bytes(24576 << 10)));
    // which CPU is where, is not told
    assert_eq!(machine.packages(), None);
    assert_eq!(machine.core_siblings(0), None);
    assert_eq!(machine.l3_groups(), None);
    assert_eq!(machine.memory_total(), None);
}

#[test]
fn lscpu_without_smt_makes_each_cpu_a_core() {
    let machine = machine("e5504.lscpu.txt");
    assert_eq!(machine.model_name.as_deref(), Some("Intel(R) Xeon(R) CPU           E5504  @ 2.00GHz"));
    assert_eq!(machine.cores().unwrap().len(), 8);
    assert_eq!(machine.core_siblings(3).unwrap(), &cpus("3"));
    assert_eq!(machine.package_count(), Some(2));
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0-7"));
}

#[test]
fn new_lscpu_in_sections_and_broken_lines_is_read() {
    let text = recorded_text("qemu-n4c8-nosmt.lscpu.txt");
    let machine = Machine::from_listing("given", &text).unwrap();
    assert_eq!(machine.online(), cpus("0-4,6-7"));
    assert_eq!(machine.offline(), cpus("5"));
    assert_eq!(machine.cpus_of_node(3).unwrap(), &cpus("6-7"));
    // a sum over 7 instances
    assert_eq!(machine.stated.l3_size, Some(Bytes(16 << 20)));

    let broken = text.replace("0-4,6,7\n", "0-4,\n                             6,7\n");
    assert_ne!(broken, text);
    assert_eq!(Machine::from_listing("given", &broken).unwrap().online(), cpus("0-4,6-7"));
}

#[test]
fn every_nth_cpu_of_a_node_is_read_as_lscpu_writes_it() {
    let text = "CPU(s): 16\nOn-line CPU(s) list: 0-15\nNUMA node(s): 3\n\
                NUMA node0 CPU(s): 0-12:4,14\nNUMA node1 CPU(s): 1-15:2\nNUMA node3 CPU(s): 2-10:4\n";
    let machine = Machine::from_listing("given", text).unwrap();
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0,4,8,12,14"));
    assert_eq!(machine.cpus_of_node(1).unwrap(), &cpus("1,3,5,7,9,11,13,15"));
    assert_eq!(machine.cpus_of_node(3).unwrap(), &cpus("2,6,10"));
    assert!(refusal(&text.replace("12:4", "12:0")).starts_with("given:4: expected a list of CPUs"));
}

#[test]
fn cpus_that_a_node_may_get_some_day_are_left_out() {
    let text = "CPU(s): 8\nOn-line CPU(s) list: 0-7\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-140\n";
    assert_eq!(Machine::from_listing("given", text).unwrap().cpus_of_node(0).unwrap(), &cpus("0-7"));
}

#[test]
fn a_single_l3_is_shared_by_every_cpu() {
    let text = recorded_text("qemu-n4c8.lscpu.txt").replace("32 MiB (2 instances)", "300 MiB (1 instance)");
    let machine = Machine::from_listing("given", &text).unwrap();
    assert_eq!(machine.l3_groups().unwrap()[0].cpus, cpus("0-4,6-7"));
    assert_eq!(machine.l3_groups().unwrap()[0].size, Some(Bytes(300 << 20)));
}

#[test]
fn the_per_cpu_listing_tells_packages_cores_and_siblings_but_no_nodes() {
    let machine = machine("e7-4850.cpu_topology.txt");
    assert_eq!(machine.packages().unwrap().len(), 8);
    assert_eq!(machine.cores().unwrap().len(), 80);
    assert_eq!(machine.core_siblings(0).unwrap(), &cpus("0,120"));
    assert_eq!(machine.core_siblings(50).unwrap(), &cpus("10,50"));
    assert_eq!(machine.cpu(10).unwrap().core, Some(25));
    assert!(machine.nodes.is_empty());
    let error = print::numactl(&machine).unwrap_err();
    assert_eq!(
        error.to_string(),
        "format 'numactl' needs the NUMA nodes, which e7-4850.cpu_topology.txt does not tell"
    );
}

#[test]
fn the_per_cpu_listing_is_not_printed_from_what_does_not_tell_cores() {
    for (name, missing) in [
        ("nehalem-ex.numactl.txt", "the package, core id and SMT siblings of each CPU"),
        ("e5504.lscpu.txt", "the package and core id of each CPU"),
    ] {
        let error = print::cpus(&machine(name)).unwrap_err();
        assert!(matches!(error, TopologyError::Missing { .. }));
        assert_eq!(error.to_string(), format!("format 'cpus' needs {missing}, which {name} does not tell"));
        assert!(error.hint().unwrap().contains("second listing"));
    }
}

#[test]
fn hwloc_of_either_version_tells_the_same_machine() {
    let two = machine("synthetic-2x8.hwloc.xml");
    assert_eq!(two.online(), cpus("0-31"));
    assert_eq!(two.cpus_of_node(1).unwrap(), &cpus("16-31"));
    assert_eq!(two.core_siblings(2).unwrap(), &cpus("2-3"));
    assert_eq!(two.packages().unwrap().len(), 2);
    assert_eq!(two.l3_groups().unwrap().len(), 4);
    assert_eq!(two.l3_groups().unwrap()[3].cpus, cpus("24-31"));
    assert_eq!(two.node(0).unwrap().memory_total, Some(Bytes(1 << 30)));
    assert_eq!(two.node(0).unwrap().memory_free, None);
    assert_eq!(two.distance(0, 1), Some(21));

    let mut one = machine("synthetic-2x8.hwloc1.xml");
    one.sources = two.sources.clone();
    assert_eq!(one, two);
}

#[test]
fn hwloc_tells_block_devices_with_their_numbers() {
    let machine = machine("one-node-2.hwloc.xml");
    let disk = machine.block_device("/dev/vda").unwrap();
    assert_eq!((disk.major, disk.minor, disk.size), (254, 0, Bytes(256 << 30)));
    assert_eq!(machine.block_device_numbered(254, 0), Some(disk));
    assert_eq!(machine.block_devices.as_ref().unwrap().len(), 1, "a network card is no block device");
    assert_eq!(machine.model_name.as_deref(), Some("Intel(R) Xeon(R) Processor"));
}

#[test]
fn carriage_returns_and_a_byte_order_mark_do_no_harm() {
    for name in LISTINGS {
        let text = format!("\u{feff}{}", recorded_text(name).replace('\n', "\r\n"));
        let machine_again = Machine::from_listing(name, &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine_again, machine(name), "{name}");
    }
}

#[test]
fn an_unknown_format_names_the_known_ones() {
    for (text, begins) in [("", "nothing"), ("\n\nhello\n", "'hello'"), ("\u{1b}[2J", "'\\u{1b}[2J'")] {
        let error = Machine::from_listing("given", text).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("given: not a machine listing of a known format (it begins with {begins})")
        );
        let hint = error.hint().unwrap();
        for format in ["numactl --hardware", "lscpu", "-e, -p or -J", "lstopo", "--of xml", "--json"] {
            assert!(hint.contains(format), "{hint}");
        }
    }
}

#[test]
fn a_wrong_line_is_named_with_what_was_expected() {
    let numactl = recorded_text("nehalem-ex.numactl.txt");
    let lscpu = recorded_text("e7-4850.lscpu.txt");
    let table = recorded_text("e7-4850.cpu_topology.txt");
    let hwloc = recorded_text("synthetic-2x8.hwloc.xml");
    for (text, from, to, refused) in [
        (&numactl, "(0-3)", "(0-2)", "given:1: expected a list of 4 nodes, found '0-2'"),
        (&numactl, "(0-3)", "(0-3000)", "given:1: expected node numbers below 1024, found '0-3000'"),
        (
            &numactl,
            "node 2 size: 32768 MB",
            "node 2 size: much",
            "given:9: expected a size as in '32768 MB', found 'much'",
        ),
        (
            &numactl,
            "node 1 cpus: 1 5",
            "node 1 cpus: 1 5 5",
            "given:5: expected each CPU once, and a number that Linux has, found '5'",
        ),
        (
            &numactl,
            "node 1 cpus: 1 5",
            "node 1 cpus: 1 8192",
            "given:5: expected CPU numbers below 8192, found '1 8192 9 13 17 21 25 29'",
        ),
        (&numactl, "node 1 cpus: 1", "node 1 cpus: 0 1", "given: CPU 0 is in both node 0 and node 1"),
        (
            &numactl,
            "node 3 free",
            "node 4 free",
            "given:13: expected 'node 3 free:…', found 'node 4 free: 30561 MB'",
        ),
        (
            &numactl,
            "  2: 21 21 10 21\n",
            "  2: 21 21 10\n",
            "given:18: expected 4 distances, found '2: 21 21 10'",
        ),
        (&numactl, "  3: 21 21 21 10\n", "", "given:19: expected '3:' and its distances, found the end"),
        (
            &numactl,
            "  3: 21 21 21 10\n",
            "  3: 21 21 21 10\nmore\n",
            "given:20: expected the end, found 'more'",
        ),
        (
            &lscpu,
            "0,81-89,120-129",
            "0,81-8",
            "given:25: expected a list of CPUs (the end of the range is below its start at position 3 of '0,81-8'), found '0,81-8'",
        ),
        (&lscpu, "0,81-89,120-129", "0,81-89,120-200", "given: CPU 130 is in both node 4 and node 5"),
        (
            &lscpu,
            "CPU(s):                160",
            "CPU(s):                161",
            "given:4: expected 160 CPUs, as the lists of on-line and off-line CPUs hold, found '161'",
        ),
        (
            &lscpu,
            "NUMA node7 CPU(s):     110-119,150-159\n",
            "",
            "given:9: expected 7, as there are lines 'NUMA nodeN CPU(s)', found '8'",
        ),
        (
            &lscpu,
            "NUMA node7",
            "NUMA node6",
            "given:28: expected each node once, found 'NUMA node6 CPU(s):     110-119,150-159'",
        ),
        (
            &lscpu,
            "On-line CPU(s) list:   0-159\n",
            "",
            "given:27: expected a line 'On-line CPU(s) list: LIST' before the end, found the end",
        ),
        (
            &lscpu,
            "L3 cache:              24576K",
            "L3 cache:              24576Q",
            "given:20: expected an amount of memory, found '24576Q'",
        ),
        (
            &lscpu,
            "CPU(s):                160",
            "CPU(s):                -1",
            "given:4: expected a number, found '-1'",
        ),
        (
            &table,
            " 158 159\n",
            " 158\n",
            "given:3: expected 159 values, one for each CPU, found '160 values'",
        ),
        (
            &table,
            " 158 159\n",
            " 158 158\n",
            "given:2: expected each CPU once, and numbers below 8192, found '158'",
        ),
        (
            &table,
            "socket)      0 4",
            "socket)      0 0",
            "given:4: expected 21 for physical id 0, as the rows above count, found '20'",
        ),
        (
            &table,
            "cores/socket) 10",
            "cores/socket) 9",
            "given:6: expected 10 for physical id 0, as the rows above count, found '9'",
        ),
        (
            &table,
            "core id ",
            "core ",
            "given:5: expected 'core id     (# assigned to a core)  …', found 'core     (# assigned to a core)  0 0 1 2 8 9 16 17 18 24 25 …'",
        ),
        (
            &hwloc,
            "os_index=\"31\"",
            "os_index=\"30\"",
            "given:86: expected each PU once, found '<object type=\"PU\" os_index=\"30\" cpuset=\"0x80000000\" complete…'",
        ),
        (&hwloc, "os_index=\"31\"", "os_index=\"x\"", "given:86: expected a number as os_index, found 'x'"),
        (
            &hwloc,
            "10 21 21 10",
            "10 21 21",
            "given:91: expected a distance from each of 2 nodes to each, found '<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os…'",
        ),
        (
            &hwloc,
            "cpuset=\"0xffff0000\"",
            "cpuset=\"zzz\"",
            "given:49: expected a mask of CPUs as cpuset, found 'zzz'",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert!(&wrong != text, "{from}");
        assert_eq!(refusal(&wrong), refused);
    }
}

#[test]
fn xml_that_is_not_hwlocs_is_refused_at_its_line() {
    assert!(refusal("<html>\n</html>").starts_with("given:1: expected '<topology>'"));
    assert!(refusal("<topology>\n</topology>").starts_with("given:1: expected an object of type PU"));
    assert!(refusal("<topology>\n<object></x></topology>").starts_with("given:2: expected hwloc's XML ("));
    // entities that multiply
    let bomb = "<!DOCTYPE t [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\
                <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]>\
                <topology>&d;</topology>";
    assert!(refusal(bomb).contains("hwloc's XML"), "{}", refusal(bomb));
}

#[test]
fn a_listing_that_is_too_long_is_refused_before_it_is_read() {
    let long = "x".repeat(topology::MAX_LISTING + 1);
    assert_eq!(refusal(&long), "given: 8388609 bytes are too long for a machine listing (at most 8388608)");
}
