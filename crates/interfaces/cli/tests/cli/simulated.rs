//! `simulate`: on a machine from its listing and on a log, and what can't be simulated. Nothing is written but the page.

use std::{fs, path::Path, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, says},
    world::{Need, World},
};

/// 16 cores of two CPUs each, in two nodes.
const MACHINE: &str = include_str!("../../../../machine/topology/tests/machines/synthetic-2x8.hwloc.xml");

/// What `ringfence record` saw of two groups in 95 s.
const RECORDED: &[u8] =
    include_bytes!("../../../../lab/experiment/tests/simulator/recorded/01795639205275.rflog");

/// Eight sockets with ten cores of two CPUs each, in two listings.
const LARGE: [&str; 2] = [
    include_str!("../../../../machine/topology/tests/machines/e7-4850.lscpu.txt"),
    include_str!("../../../../machine/topology/tests/machines/e7-4850.cpu_topology.txt"),
];

const LAYOUT: &str = "\
[groups]
db.cpus = { min = 2, max = 14, weight = 300 }
batch.cpus = { min = 2, max = 14 }
rt.cpus = { count = 2, pool = \"exclusive\" }
";

type Case = (&'static str, &'static [Need], fn(&Desk));

const CASES: &[Case] = &[
    ("every load with every rule, and a page", &[], figures),
    ("a recorded load", &[Need::Groups], recorded),
    ("a log with groups from the root", &[], traced),
    ("power saving on 160 CPUs", &[], power),
    ("bad input", &[], refused),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("simulate: {name}"), lacks, move || {
            let desk = Desk::new(&world, name);
            desk.write("m.xml", MACHINE);
            desk.write("l.toml", LAYOUT);
            case(&desk);
        })
    };
    CASES.iter().map(trial).collect()
}

fn figures(desk: &Desk) {
    let directory = desk.path("");
    let d = directory.display();
    let page = desk.path("page.html");
    let text = desk.ends(&format!("simulate {d}/l.toml --machine {d}/m.xml --html {}", page.display()), 0);
    says(&text, &["lost %", "square-20s", "pareto", "scx_layered", "clairvoyant", "ringfence"]);
    let page = fs::read_to_string(page).unwrap();
    says(&page, &["diurnal · scx_layered", "<svg", "batch"]);
    let again = desk.ends(&format!("simulate {d}/l.toml --machine {d}/m.xml"), 0);
    assert_eq!(text, again, "the same each time");
    let answer = desk.json(
        &format!("simulate {d}/l.toml --machine {d}/m.xml --synthetic constant --against static --json"),
        0,
    );
    assert_eq!(answer["groups"], serde_json::json!(["db", "batch"]));
    let outcomes = answer["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), 2, "{answer}");
    for one in outcomes {
        let sum = |point: &serde_json::Value| {
            point["cpus"].as_array().unwrap().iter().map(|cpus| cpus.as_u64().unwrap()).sum::<u64>()
        };
        assert!(
            one["points"].as_array().unwrap().iter().all(|point| sum(point) <= 30),
            "rt's CPUs are left out"
        );
    }
}

/// General groups have few CPUs at low use and lose next to nothing, and the page draws them.
fn power(desk: &Desk) {
    let directory = desk.path("");
    let d = directory.display();
    desk.write("lscpu.txt", LARGE[0]);
    desk.write("cores.txt", LARGE[1]);
    desk.write("p.toml", "[power]\nsaving = true\nfloor = 4\n[groups]\nrt.cpus = { count = 8, pool = \"exclusive\" }\nweb.cpu.weight = 100\n");
    let page = desk.path("power.html");
    let command = format!(
        "simulate {d}/p.toml --machine {d}/lscpu.txt --machine {d}/cores.txt --html {}",
        page.display()
    );
    let text = desk.ends(&command, 0);
    says(&text, &["power saving", "idle", "diurnal", "square-120s"]);
    assert!(!text.contains("scx_layered"), "no elastic groups: {text}");
    says(&fs::read_to_string(page).unwrap(), &["diurnal · power saving", "general groups", "<svg"]);
    let answer = desk.json(&format!("{command} --json"), 0);
    for one in answer["power"].as_array().unwrap() {
        let figure = |name: &str| one[name].as_f64().unwrap();
        assert!(figure("lost_percent") <= 0.5 && figure("cpus") == 152.0, "{one}");
        // what turns within the dwell is left as it is
        let turns = one["load"] == "square-4s" || one["load"] == "square-20s";
        assert!((figure("idle") > 0.0) != turns && (figure("changes") == 0.0) == turns, "{one}");
        let least = one["points"].as_array().unwrap().iter().map(|point| point["cpus"][0].as_u64().unwrap());
        assert!(least.min().unwrap() >= 4, "{one}");
    }
    let constant = answer["power"].as_array().unwrap().iter().find(|one| one["load"] == "constant").unwrap();
    assert_eq!(constant["changes"], 1, "{constant}");
    desk.write("both.toml", &format!("[power]\nsaving = true\n{LAYOUT}web.cpu.weight = 100\n"));
    let text = desk.ends(&format!("simulate {d}/both.toml --machine {d}/m.xml --synthetic ramp"), 0);
    says(&text, &["scx_layered", "power saving"]);
}

/// The root group of the log is every machine's; a layout can't name it, so that only the message is seen.
fn recorded(desk: &Desk) {
    let directory = desk.path("");
    let d = directory.display();
    let log = desk.path("log");
    record(desk, &log);
    let (status, _, error) =
        desk.run(&format!("simulate {d}/l.toml --machine {d}/m.xml --trace {}", log.display()));
    assert_eq!(status, 2, "{error}");
    says(&error, &["has no CPU use of the layout's elastic groups", "ringfence record"]);
}

/// A log of two groups that the layout names from the root.
fn traced(desk: &Desk) {
    let (directory, log) = (desk.path(""), desk.path("trace"));
    let d = directory.display();
    fs::create_dir(&log).unwrap();
    fs::write(log.join("01795639205275.rflog"), RECORDED).unwrap();
    desk.write(
        "t.toml",
        "[power]\nsaving = true\n[groups]\n\"/rf-test-pol2/oltp\".cpus = { min = 2, max = 8 }\n\"/rf-test-pol2/batch\".cpu.weight = 100\n",
    );
    let answer = desk.json(
        &format!("simulate {d}/t.toml --machine {d}/m.xml --trace {} --against static --json", log.display()),
        0,
    );
    let (outcome, power) = (&answer["outcomes"][0], &answer["power"][0]);
    assert_eq!((&outcome["load"], &power["load"]), (&"recorded".into(), &"recorded".into()), "{answer}");
    for seconds in [&outcome["seconds"], &power["seconds"]] {
        assert!((90.0..100.0).contains(&seconds.as_f64().unwrap()), "{answer}");
    }
    assert!(power["idle"].as_f64().unwrap() > 0.0, "{power}");
    // after a reboot the other clock begins again, and the same times may come twice
    fs::write(log.join("01795639205276.rflog"), RECORDED).unwrap();
    let answer = desk.json(
        &format!("simulate {d}/t.toml --machine {d}/m.xml --trace {} --against static --json", log.display()),
        0,
    );
    assert!((180.0..200.0).contains(&answer["outcomes"][0]["seconds"].as_f64().unwrap()), "{answer}");
}

/// As `record` leaves it after SIGTERM at once: begun, with few samples.
fn record(desk: &Desk, log: &Path) {
    let mut child = desk.spawn(&format!("record --directory {} --interval 100ms", log.display()));
    while !fs::read_dir(log)
        .is_ok_and(|mut entries| entries.any(|entry| entry.unwrap().metadata().unwrap().len() > 64))
    {
        assert!(child.try_wait().unwrap().is_none(), "the recorder ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn refused(desk: &Desk) {
    let directory = desk.path("");
    let d = directory.display();
    desk.write("none.toml", "[groups]\na.cpus = 1\n");
    desk.write("floor.toml", "[power]\nsaving = true\nfloor = 33\n");
    desk.write("much.toml", "[groups]\na.cpus = { min = 20, max = 24, weight = 1 }\nb.cpus = { min = 20, max = 24, weight = 1 }\n");
    desk.write("over.toml", "[groups]\na.cpus = { min = 9, max = 8, weight = 1 }\n");
    desk.write(
        "nested.toml",
        "[groups]\na.cpus = { min = 2, max = 8 }\n\"a/b\".cpus = { min = 2, max = 4 }\n",
    );
    for (layout, words) in [
        ("none.toml", "has no elastic groups"),
        ("floor.toml", "the floor of power saving is 33 CPUs, and general groups have 32"),
        ("much.toml", "the machine has 32 CPUs, but groups with CPUs of their own need 40 CPUs: 8 too many"),
        ("over.toml", "min 9 is above max 8"),
        ("nested.toml", "group 'a/b': it requests CPUs below the elastic group 'a'"),
    ] {
        let (status, _, error) = desk.run(&format!("simulate {d}/{layout} --machine {d}/m.xml"));
        assert_eq!(status, 2, "{layout}: {error}");
        says(&error, &[words]);
    }
    let (status, _, error) = desk.run(&format!("simulate {d}/l.toml --machine {d}/m.xml --trace nowhere"));
    assert_ne!(status, 0);
    says(&error, &["nowhere"]);
}
