//! Study S1's layout, one database to a node: on its own machine, on the one of study S3, and on the machine that
//! this runs on if it has four nodes.

use std::{fs, path::Path, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, says},
    world::{Need, Ways, World},
};

const LAYOUT: &str = "
[groups.test1]
cpus = { node = 0 }
mems = \"local\"
[groups.test2]
cpus = { node = 1 }
mems = \"local\"
[groups.test3]
cpus = { node = 2 }
mems = \"local\"
[groups.test4]
cpus = { node = 3 }
mems = \"local\"
";

const NEHALEM: &str = include_str!("../../../../machine/topology/tests/machines/nehalem-ex.numactl.txt");
const E7: [&str; 2] = [
    include_str!("../../../../machine/topology/tests/machines/e7-4850.lscpu.txt"),
    include_str!("../../../../machine/topology/tests/machines/e7-4850.cpu_topology.txt"),
];

/// Study S4's use cases, and what a plan of each writes on v2 and on v1.
const S4: [(&str, &str, [&[&str]; 2]); 3] = [
    (
        "s4-memory.toml",
        include_str!("../../../../../studies/layouts/s4-memory.toml"),
        [&["general/memory.max <- 102985629696"], &["general/memory.limit_in_bytes <- 102985629696"]],
    ),
    (
        "s4-bandwidth.toml",
        include_str!("../../../../../studies/layouts/s4-bandwidth.toml"),
        [
            &["realtime/io.bfq.weight <- default 1000", "general/io.bfq.weight <- default 100"],
            &["realtime/blkio.bfq.weight <- 1000", "general/blkio.bfq.weight <- 100"],
        ],
    ),
    (
        "s4-exclusive.toml",
        include_str!("../../../../../studies/layouts/s4-exclusive.toml"),
        [
            &["realtime/cpuset.cpus <- 81,121", "realtime/cpuset.cpus.partition <- root"],
            &[
                "realtime/cpuset.cpus <- 81,121",
                "realtime/cpuset.cpu_exclusive <- 1",
                "restrict the tasks of / to CPUs 0-80,82-120,122-159, off 81,121",
            ],
        ],
    ),
];

const CGCONFIG: &str = include_str!("../../../../division/layout/tests/layout/s1.cgconfig.conf");

type Case = (&'static str, fn(&mut Desk));

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    const ANYWHERE: Ways = &[&[]];
    let cases: [(Case, Ways); 6] = [
        (("S1 on its machine is its eight commands", nehalem), ANYWHERE),
        (("S1 on the 160 CPUs of S3", e7), ANYWHERE),
        (("S1's cgconfig.conf is read and turned", cgconfig), ANYWHERE),
        (("S4's ready layouts are right and can be planned on v1 and v2", s4), ANYWHERE),
        (
            ("S4's ready layouts can be planned for this machine", s4_here),
            &[&[Need::Usual, Need::V1("blkio")], &[Need::Usual, Need::V2("io")]],
        ),
        (("S1 on this machine of four nodes", live), &[&[Need::Groups, Need::Nodes(4)]]),
    ];
    let trial = |((name, case), ways): (Case, Ways)| {
        let (lacks, world) = (world.lacks_ways(ways), world.clone());
        suite::trial(format!("layout study: {name}"), lacks, move || {
            let mut desk = Desk::new(&world, name);
            desk.write("layout.toml", LAYOUT);
            case(&mut desk);
        })
    };
    cases.into_iter().map(trial).collect()
}

/// Two commands for each of test1 to test4.
fn commands(cpus: &[impl AsRef<str>]) -> String {
    let lines = cpus.iter().enumerate().map(|(node, cpus)| {
        let (cpus, group) = (cpus.as_ref(), node + 1);
        format!("cgset -r cpuset.cpus='{cpus}' test{group}\ncgset -r cpuset.mems='{node}' test{group}\n")
    });
    lines.collect()
}

fn nehalem(desk: &mut Desk) {
    desk.write("nehalem-ex.numactl.txt", NEHALEM);
    let cpus =
        ["0,4,8,12,16,20,24,28", "1,5,9,13,17,21,25,29", "2,6,10,14,18,22,26,30", "3,7,11,15,19,23,27,31"];
    for version in ["", "--v1 "] {
        let line =
            format!("plan {{d}}/layout.toml {version}--machine {{d}}/nehalem-ex.numactl.txt --as cgset");
        assert_eq!(desk.ends(&line, 0), commands(&cpus));
    }
}

fn e7(desk: &mut Desk) {
    desk.write("lscpu.txt", E7[0]);
    desk.write("cpus.txt", E7[1]);
    let line = "plan {d}/layout.toml --machine {d}/lscpu.txt --machine {d}/cpus.txt --as cgset";
    let nodes = E7[0].lines().filter_map(|line| {
        let (node, cpus) = line.split_once(" CPU(s):")?;
        node.starts_with("NUMA node").then(|| cpus.trim().to_owned())
    });
    let nodes: Vec<String> = nodes.collect();
    assert_eq!((nodes.len(), nodes[0].as_str()), (8, "1-10,41-50"));
    assert_eq!(desk.ends(line, 0), commands(&nodes[..4]));
}

/// The CPUs of each node of this machine.
fn nodes() -> Vec<String> {
    let list = |node: usize| fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist"));
    (0..).map_while(|node| list(node).ok()).map(|cpus| cpus.trim().to_owned()).collect()
}

fn live(desk: &mut Desk) {
    assert_eq!(desk.ends("plan {d}/layout.toml --as cgset", 0), commands(&nodes()));
}

fn s4(desk: &mut Desk) {
    desk.write("nehalem-ex.numactl.txt", NEHALEM);
    desk.write("lscpu.txt", E7[0]);
    desk.write("cpus.txt", E7[1]);
    for (name, layout, parts) in S4 {
        let listings: &[&str] = match name {
            // it takes whole cores, so the listing has to say which CPUs share one
            "s4-exclusive.toml" => &["lscpu.txt", "cpus.txt"],
            _ => &["nehalem-ex.numactl.txt"],
        };
        let machine: String = listings.iter().map(|name| format!(" --machine {{d}}/{name}")).collect();
        desk.write(name, layout);
        desk.ends(&format!("check {{d}}/{name}"), 0);
        for (version, parts) in ["", "--v1 "].iter().zip(parts) {
            let line = format!("plan -v {{d}}/{name} {version}{machine}");
            says(&desk.ends(&line, 0), parts);
        }
    }
}

/// Exclusive CPUs want every group above to have them, before Linux 6.7: systemd's unit has none.
const ABOVE_HAS_NONE: &str = "gets exclusive CPUs, but group /ringfence.slice/ringfence.service above it";

fn s4_here(desk: &mut Desk) {
    let is_below_unit = Path::new("/run/systemd/system").is_dir();
    for (name, layout, _) in S4 {
        desk.write(name, layout);
        let (status, plan, error) = desk.run(&format!("plan -v {{d}}/{name}"));
        if is_below_unit && name == "s4-exclusive.toml" && status != 0 {
            says(&error, &[ABOVE_HAS_NONE, "give the group a name from the root"]);
            continue;
        }
        assert_eq!(status, 0, "{plan}{error}");
        // below the unit where systemd is; on v1 the hierarchies follow
        let created = plan.lines().filter_map(|line| line.split_once(". create ")?.1.split(' ').next());
        assert!(created.map(|group| group.rsplit('/').next()).any(|last| last == Some("realtime")), "{plan}");
    }
}

fn cgconfig(desk: &mut Desk) {
    desk.write("cgconfig.conf", CGCONFIG);
    let toml = desk.ends("import {d}/cgconfig.conf", 0);
    says(&toml, &["[groups.test1]", "[groups.test4]", "oracle4"]);
    desk.write("imported.toml", &toml);
    let commands = desk.ends("export {d}/imported.toml --to cgset", 0);
    says(&commands, &["cgset -r cpuset.cpus='0-31' test1\n", "cgset -r cpuset.mems='0-3' test4\n"]);
}
