//! Listings as people paste them: lscpu's tables and JSON, lstopo's text, with prompts and remarks around them.

use topology::{Machine, SourceKind, print};
use units::Bytes;

use super::{LISTINGS, cpus, machine, recorded_text, refusal};

const HYBRID: &str = "\
CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ   MINMHZ       MHZ
  0    0      0    0 0:0:0:0          yes 5000.0000 400.0000 1200.0000
  1    0      0    0 0:0:0:0          yes 5000.0000 400.0000 1100.0000
  2    0      0    1 4:4:1:0          yes 5000.0000 400.0000  900.0000
  3    0      0    1 4:4:1:0          yes 5000.0000 400.0000  800.0000
  4    0      0    2 8:8:2:0          yes 3800.0000 400.0000  400.0000
  5    0      0    3 9:9:2:0          yes 3800.0000 400.0000  400.0000
  6    0      0    4 64:64:8:-        yes 2500.0000 400.0000  400.0000
  7    -      -    - -                 no         -        -         -
";

fn read(text: &str) -> Machine {
    Machine::from_listing("given", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_table_of_lscpu_has_cores_nodes_caches_and_what_is_offline() {
    let machine = read(HYBRID);
    assert_eq!(machine.sources[0].kind, SourceKind::Lscpu);
    assert_eq!((machine.online(), machine.offline()), (cpus("0-6"), cpus("7")));
    assert_eq!(machine.core_siblings(3).unwrap(), &cpus("2-3"));
    assert_eq!(machine.core_siblings(6).unwrap(), &cpus("6"));
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0-6"));
    assert_eq!(machine.package_count(), Some(1));
    assert_eq!(machine.cpu(4).unwrap().max_mhz, Some(3800));
    // the last core has no L3
    assert_eq!(machine.l3_groups().unwrap()[0].cpus, cpus("0-5"));
    assert_eq!(machine.memory_total(), None);
}

#[test]
fn what_a_table_of_lscpu_has_no_column_of_is_not_known() {
    let machine = read("CPU ONLINE\n  0 yes\n  1 no\n");
    assert_eq!((machine.online(), machine.offline()), (cpus("0"), cpus("1")));
    assert!(machine.core_siblings(0).is_none() && machine.nodes.is_empty() && machine.l3.is_none());

    let machine = read("CPU CORE ONLINE\n  0    0    yes\n  1    1    yes\n");
    assert_eq!(machine.cores().unwrap().len(), 2);
    // with -y a core's number is unique in its socket only
    let machine = read("SOCKET CORE CPU\n0 0 0\n0 1 1\n36 0 2\n36 1 3\n");
    assert_eq!(machine.cores().unwrap().len(), 4);
    assert_eq!(machine.packages().unwrap()[1].id, 36);

    let named = "CPU MODELNAME ONLINE\n0 Cortex-X925 yes\n1 Intel(R) Xeon(R) CPU @ 2.00GHz yes\n";
    let both = "Cortex-X925 + Intel(R) Xeon(R) CPU @ 2.00GHz";
    assert_eq!(read(named).model_name.as_deref(), Some(both));
}

#[test]
fn the_table_for_programs_is_read_by_its_comment() {
    let text = "# The following is the parsable format, which can be fed to other\n\
                # programs. Each different item in every column has an unique ID\n# starting usually from zero.\n\
                # CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,1,,1,1,1,\n2,0,0,0,,0,0,0,0\n";
    let machine = read(text);
    assert_eq!(machine.core_siblings(0).unwrap(), &cpus("0,2"));
    assert_eq!(machine.cpus_of_node(1).unwrap(), &cpus("1"));
    assert_eq!(machine.l3_groups().unwrap().len(), 1);
    assert_eq!(machine.package_count(), Some(1));

    let chosen = read("# CPU,ONLINE,CORE\n0,Y,0\n1,N,\n");
    assert_eq!((chosen.online(), chosen.cores().unwrap().len()), (cpus("0"), 1));
}

#[test]
fn lscpus_json_is_the_same_machine_as_its_text() {
    for name in ["e5504.lscpu.txt", "e7-4850.lscpu.txt", "qemu-n4c8.lscpu.txt"] {
        let fields: Vec<String> = recorded_text(name)
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(label, value)| {
                let value = value.trim().replace('\\', "\\\\").replace('"', "\\\"");
                format!("{{\"field\": \"{label}:\", \"data\": \"{value}\"}}")
            })
            .collect();
        let flat = format!("{{\n \"lscpu\": [\n{}\n ]\n}}", fields.join(",\n"));
        let text = machine(name);
        let mut json = read(&flat);
        json.sources = text.sources.clone();
        assert_eq!(json, text, "{name}");
    }
    let deep = "{\"field\":\"a:\",\"children\":[".repeat(200);
    assert!(refusal(&format!("{{\"lscpu\":[{deep}")).contains("recursion limit"));
    let sections = "{\"lscpu\":[{\"field\":\"CPU(s):\",\"data\":\"2\",\"children\":[\
                    {\"field\":\"On-line CPU(s) list:\",\"data\":\"0,1\"}]},{\"field\":\"NUMA:\",\"data\":null,\
                    \"children\":[{\"field\":\"NUMA node(s):\",\"data\":\"1\"},\
                    {\"field\":\"NUMA node0 CPU(s):\",\"data\":\"0,1\"}]}]}";
    assert_eq!(read(sections).cpus_of_node(0).unwrap(), &cpus("0-1"));
    let wrong = "{\n\"lscpu\": [\n{\"field\": \"CPU(s):\", \"data\": \"2\"},\n\
                 {\"field\": \"On-line CPU(s) list:\", \"data\": \"0-x\"}\n]}";
    assert!(refusal(wrong).starts_with("given:4: expected a list of CPUs"), "{}", refusal(wrong));
}

#[test]
fn the_table_of_lscpu_as_json_is_read() {
    let old = "{\"cpus\": [{\"cpu\": \"0\", \"node\": \"0\", \"core\": \"0\", \"l1d:l1i:l2:l3\": \"0:0:0:0\", \
               \"online\": \"yes\", \"maxmhz\": \"5000.0000\"}, {\"cpu\": \"1\", \"node\": null, \"online\": \"no\"}]}";
    let new = "{\"cpus\": [{\"cpu\": 0, \"node\": 0, \"core\": 0, \"l1d:l1i:l2:l3\": \"0:0:0:0\", \
               \"online\": true, \"maxmhz\": 5000.0000}, {\"cpu\": 1, \"online\": false}]}";
    for text in [old, new] {
        let machine = read(text);
        assert_eq!((machine.online(), machine.offline()), (cpus("0"), cpus("1")));
        assert_eq!(machine.cpu(0).unwrap().max_mhz, Some(5000));
        assert_eq!(machine.l3_groups().unwrap()[0].cpus, cpus("0"));
    }
    assert!(refusal("{\"cpus\": [1]}").starts_with("given:1: expected a list \"cpus\""));
    assert!(refusal("{\"caches\": []}").starts_with("given:1: expected JSON with \"format\""));
}

#[test]
fn lstopos_text_nests_by_its_indentation() {
    let text = "Machine (31GB total)\n  Package L#0\n    NUMANode L#0 (P#0 15GB)\n    NUMANode L#1 (P#2 4096MB)\n    \
                L3 L#0 (32MB)\n      L2 L#0 (1024KB) + L1d L#0 (48KB) + L1i L#0 (32KB) + Core L#0\n        \
                PU L#0 (P#0)\n        PU L#1 (P#4)\n      L2 L#1 (1024KB) + Core L#1 + PU L#2 (P#1)\n  Package L#1\n    \
                NUMANode L#2 (P#1 16GB)\n    L3 L#1 (32MB) + L2 L#2 (1024KB) + Core L#2\n      PU L#3 (P#2)\n      \
                PU L#4 (P#3)\n  HostBridge\n    PCI 00:02.0 (Storage)\n      Block \"vda\"\n";
    let machine = read(text);
    assert_eq!(machine.sources[0].kind, SourceKind::Lstopo);
    assert_eq!(machine.online(), cpus("0-4"));
    assert_eq!(machine.core_siblings(0).unwrap(), &cpus("0,4"));
    assert_eq!(machine.packages().unwrap()[1].cpus, cpus("2-3"));
    assert_eq!(machine.cpus_of_node(0).unwrap(), &cpus("0-1,4"));
    assert_eq!(machine.cpus_of_node(1).unwrap(), &cpus("2-3"));
    // a second node of a package is memory only
    assert!(machine.cpus_of_node(2).unwrap().is_empty());
    assert_eq!(machine.node(2).unwrap().memory_total, Some(Bytes(4 << 30)));
    assert_eq!(machine.l3_groups().unwrap()[0].cpus, cpus("0-1,4"));
    assert_eq!(machine.l3_groups().unwrap()[1].size, Some(Bytes(32 << 20)));
    assert_eq!(machine.block_devices, None, "it has no numbers");

    let first = "Machine (16GB)\n  NUMANode L#0 (P#0 8GB) + Socket L#0 + L3 L#0 (8192KB)\n    L2 L#0 (256KB) + Core L#0\n      \
                 PU L#0 (P#0)\n      PU L#1 (P#2)\n  NUMANode L#1 (P#1 8GB) + Socket L#1 + L3 L#1 (8192KB) + Core L#1\n    \
                 PU L#2 (P#1)\n    PU L#3 (P#3)\n";
    let machine = read(first);
    assert_eq!(machine.cpus_of_node(1).unwrap(), &cpus("1,3"));
    assert_eq!(machine.l3_groups().unwrap()[0].cpus, cpus("0,2"));

    let flat = read("Machine (2048MB)\n  Package P#0\n    Core P#0 + PU P#0\n    Core P#1 + PU P#1\n");
    assert_eq!(flat.node(0).unwrap().cpus, cpus("0-1"));
    assert_eq!(flat.memory_total(), Some(Bytes(2 << 30)));
    assert_eq!(
        refusal("Machine (2GB)\n  Core L#0\n    PU L#0\n"),
        "given:3: expected a CPU's number, as in 'P#0', below 8192, found 'PU L#0'"
    );
    assert!(
        refusal("Machine (2GB)\n  Package L#0\n")
            .starts_with("given:2: expected an object PU before the end")
    );
}

#[test]
fn rounded_sizes_of_lstopo_do_not_contradict_an_exact_listing() {
    let text = "Machine (128GB total)\n  Package L#0\n    NUMANode L#0 (P#0 64GB)\n    Core L#0 + PU L#0 (P#0)\n  \
                Package L#1\n    NUMANode L#1 (P#1 64GB)\n    Core L#1 + PU L#1 (P#1)\n";
    let numactl = "available: 2 nodes (0-1)\nnode 0 cpus: 0\nnode 0 size: 65395 MB\nnode 0 free: 1 MB\nnode 1 cpus: 1\n\
                   node 1 size: 65536 MB\nnode 1 free: 1 MB\nnode distances:\nnode   0   1 \n  0:  10  20 \n  1:  20  10 \n";
    for (one, other) in [(text, numactl), (numactl, text)] {
        let machine = read(one).merge(read(other)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.node(0).unwrap().memory_total, Some(Bytes(65395 << 20)));
        assert_eq!(machine.cores().unwrap().len(), 2);
    }
    let other = numactl.replace("65395", "32768");
    assert!(read(text).merge(read(&other)).is_err());
}

#[test]
fn prompts_and_remarks_around_a_listing_do_no_harm() {
    let tables = [HYBRID, "# CPU,Core\n0,0\n1,1\n", "Machine (1024MB)\n  Core L#0 + PU L#0 (P#0)\n"];
    let recorded: Vec<String> = LISTINGS.iter().map(|name| recorded_text(name)).collect();
    for text in tables.into_iter().chain(recorded.iter().map(String::as_str)) {
        for (before, after) in [
            ("[root@db1 ~]# numactl -H\n", "[root@db1 ~]#\n"),
            ("# db1, March\n\n", "\n"),
            ("oracle@db1:~> LC_ALL=C lscpu\n", "oracle@db1:~> exit\nlogout\n".trim_end_matches("logout\n")),
            ("Last login: Mon Mar  2 from 192.0.2.7\n$ lscpu -e\n", "$ "),
            ("```\n", "```\n"),
            ("bash-5.2# lstopo\n", "bash-5.2# "),
        ] {
            let pasted =
                read(&format!("{before}{text}{}{after}", if text.ends_with('\n') { "" } else { "\n" }));
            assert_eq!(pasted, read(text), "{before}{text}");
        }
    }
}

#[test]
fn a_wrong_line_below_a_prompt_has_its_own_number() {
    let numactl =
        recorded_text("nehalem-ex.numactl.txt").replace("node 2 size: 32768 MB", "node 2 size: much");
    assert_eq!(
        refusal(&format!("$ numactl -H\n\n{numactl}")),
        "given:11: expected a size as in '32768 MB', found 'much'"
    );
    let xml = recorded_text("synthetic-2x8.hwloc.xml").replace("os_index=\"31\"", "os_index=\"x\"");
    assert!(refusal(&format!("$ lstopo --of xml\n{xml}")).starts_with("given:87: expected a number"));
    for (text, refused) in [
        ("CPU CORE\n0 0\n1\n", "given:3: expected 2 values, as there are columns, found '1'"),
        ("CPU CORE\n0 0\n0 1\n", "given:3: expected each CPU once, and numbers below 8192, found '0 1'"),
        ("CPU CORE\n0 x\n", "given:2: expected a number as CORE, found 'x'"),
        ("CPU NODE\n0 1024\n", "given:2: expected a node number below 1024, found '0 1024'"),
        ("# CPU,Core\n0,0\n1,1,1\n", "given:3: expected 2 values, as there are columns, found '1,1,1'"),
        ("CPU CORE\n", "given: no CPU is listed"),
        (
            "CPU CORE\n0 0\nsomething else entirely\n",
            "given:3: expected 2 values, as there are columns, found 'something else entirely'",
        ),
    ] {
        assert_eq!(refusal(text), refused);
    }
}

#[test]
fn two_kinds_of_cpu_are_both_counted() {
    let text = "CPU(s): 20\nOn-line CPU(s) list: 0-19\nModel name: Cortex-X925\nThread(s) per core: 1\n\
                Core(s) per socket: 10\nSocket(s): 1\nModel name: Cortex-A725\nThread(s) per core: 1\n\
                Core(s) per socket: 10\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-19\n";
    let machine = read(text);
    assert_eq!(machine.model_name.as_deref(), Some("Cortex-X925 + Cortex-A725"));
    assert_eq!((machine.core_count(), machine.package_count()), (Some(20), Some(1)));
}

#[test]
fn what_lscpu_does_not_know_is_not_taken_for_a_number_or_a_name() {
    let text = "CPU(s): 2\nOn-line CPU(s) list: 0,1\nModel name: -\nThread(s) per core: 0\nSocket(s): 0\n";
    let machine = read(text);
    assert_eq!(machine.model_name, None);
    let shown = print::text(&machine);
    assert!(shown.contains("SMT        ?") && shown.contains("packages   ?"), "{shown}");
}

#[test]
fn cores_of_two_sizes_are_shown_as_such() {
    let shown = print::text(&read(HYBRID));
    assert!(shown.contains("SMT        on, 1 or 2 CPUs a core"), "{shown}");
    // a summary only has the most, and the number of CPUs says that not all cores have it
    let summary = "CPU(s): 22\nOn-line CPU(s) list: 0-21\nThread(s) per core: 2\nCore(s) per socket: 16\nSocket(s): 1\n";
    let shown = print::text(&read(summary));
    assert!(
        shown.contains("cores      16") && shown.contains("SMT        on, up to 2 CPUs a core"),
        "{shown}"
    );
}
