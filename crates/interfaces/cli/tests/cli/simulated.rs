//! `simulate`: on a machine from its listing and on a log, and what can't be simulated. Nothing is written but the page.

use std::{fs, path::Path, sync::Arc};

use libtest_mimic::{Completion, Trial};

use crate::{
    desk::{Desk, says},
    world::{Need, World},
};

/// 16 cores of two CPUs each, in two nodes.
const MACHINE: &str = include_str!("../../../../machine/topology/tests/machines/synthetic-2x8.hwloc.xml");

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
    ("bad input", &[], refused),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let world = world.clone();
        let lacking = needs.iter().find(|need| !world.has(**need));
        Trial::ignorable_test(format!("simulate: {name}"), move || {
            if let Some(need) = lacking {
                return Ok(Completion::ignored_with(format!("needs {need:?}")));
            }
            let desk = Desk::new(&world, "simulate");
            desk.write("m.xml", MACHINE);
            desk.write("l.toml", LAYOUT);
            case(&desk);
            Ok(Completion::Completed)
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
    desk.write("much.toml", "[groups]\na.cpus = { min = 20, max = 24, weight = 1 }\nb.cpus = { min = 20, max = 24, weight = 1 }\n");
    desk.write("over.toml", "[groups]\na.cpus = { min = 9, max = 8, weight = 1 }\n");
    desk.write(
        "nested.toml",
        "[groups]\na.cpus = { min = 2, max = 8 }\n\"a/b\".cpus = { min = 2, max = 4 }\n",
    );
    for (layout, words) in [
        ("none.toml", "has no elastic groups"),
        ("much.toml", "20 cores together, and there are 16"),
        ("over.toml", "min 9 is above max 8"),
        ("nested.toml", "group 'a/b' is elastic inside an elastic group"),
    ] {
        let (status, _, error) = desk.run(&format!("simulate {d}/{layout} --machine {d}/m.xml"));
        assert_eq!(status, 2, "{layout}: {error}");
        says(&error, &[words]);
    }
    let (status, _, error) = desk.run(&format!("simulate {d}/l.toml --machine {d}/m.xml --trace nowhere"));
    assert_ne!(status, 0);
    says(&error, &["nowhere"]);
}
