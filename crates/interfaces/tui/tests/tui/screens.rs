//! What the screens show. The expected text is in `expected/`; `RF_BLESS=1` writes it anew, to be looked at.

use apply::{Bounds, Following, Resize};
use fake::Fake;
use kernel::{Host, Kernel};
use settings::Controller;
use tui::{Elastic, Look};
use units::CpuSet;

use crate::world::{World, expect, machine, reversed, screen};

const GIB: f64 = 1_073_741_824.0;

/// Databases, real-time tasks and web servers on a machine of two nodes.
fn divided() -> World {
    let groups = ["db", "db/oltp1", "db/oltp2", "rt", "web", "web/static", "web/cache\u{1b}[2J"];
    let mut world = World::new(Fake::v2(32, 2), &groups, machine(&["synthetic-2x8.json"]));
    world.idle(32, &[0.02, 0.1, 0.3, 0.25, 0.6, 0.5, 0.99, 1.0]);
    world.give(
        "",
        &[
            ("machine.load", 7.25),
            ("machine.memory.total", 64.0 * GIB),
            ("machine.memory.available", 40.0 * GIB),
            ("machine.memory.node.total/0", 32.0 * GIB),
            ("machine.memory.node.free/0", 4.0 * GIB),
            ("machine.memory.node.file/0", 8.0 * GIB),
            ("machine.memory.node.total/1", 32.0 * GIB),
            ("machine.memory.node.free/1", 28.0 * GIB),
            ("machine.memory.node.file/1", 1.0 * GIB),
            ("machine.cpu.pressure.some", 0.071),
            ("machine.memory.pressure.some", 0.0),
            ("machine.io.pressure.some", 0.012),
        ],
    );
    for (group, used, may, memory, limit, tasks) in [
        ("/", 5.4, 32.0, 24.0, 64.0, 431.0),
        ("db", 3.7, 8.0, 20.0, 32.0, 310.0),
        ("db/oltp1", 3.5, 4.0, 15.6, 16.0, 200.0),
        ("db/oltp2", 0.2, 4.0, 4.4, 16.0, 110.0),
        ("rt", 0.95, 1.0, 0.25, 1.0, 3.0),
        ("web", 0.75, 32.0, 3.5, 64.0, 118.0),
        ("web/static", 0.75, 32.0, 0.001, 64.0, 18.0),
    ] {
        world.give(
            group,
            &[
                ("cpu.usage", used),
                ("cpu.allotment", may),
                ("memory.current", memory * GIB),
                ("memory.limit", limit * GIB),
                ("pids.current", tasks),
            ],
        );
    }
    world.give("rt", &[("cpu.throttled", 0.4), ("cpuset.partition", 1.0), ("cpu.pressure.some", 0.25)]);
    world.give("web", &[("frozen", 1.0)]);
    // a curve needs a past
    for used in [0.0, 1.0, 2.5, 3.0, 3.5] {
        world.give("db/oltp1", &[("cpu.usage", used)]);
        world.beat();
    }
    world
}

#[test]
fn groups_are_a_tree_with_bars_and_curves() {
    let mut world = divided();
    expect("tree-80x24", &world.screen(80, 24));
    expect("tree-120x40", &world.screen(120, 40));
    expect("tree-160x24", &world.screen(160, 24));
    let ascii = Look { colour: false, unicode: false };
    let text = screen(&mut world.model, 80, 24, ascii);
    assert!(text.is_ascii(), "{text}");
    expect("tree-ascii-80x24", &text);
}

/// Newcomers' finding F, issue R point 10: no blank half of the screen, and I/O where it fits.
#[test]
fn a_wide_screen_is_used_and_a_narrow_one_has_the_names() {
    let mut world = divided();
    for group in ["/", "db", "db/oltp1", "db/oltp2", "rt", "web", "web/static"] {
        world.give(group, &[("io.rbytes", 3e6), ("io.wbytes", 40e6)]);
    }
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Cpuset).unwrap();
    world.fake.write(at, "db", "cpuset.cpus", "8-15").unwrap();
    // what shows on a wide screen alone is read from then on
    world.screen(200, 50);
    (0..20).for_each(|_| world.beat());
    let wide = world.screen(200, 50);
    expect("tree-200x50", &wide);
    let row = wide.lines().find(|line| line.contains("oltp1")).unwrap();
    assert!(!row.contains(&" ".repeat(60)), "{row}");
    // the selected group, from end to end, between the first line and the keys
    assert_eq!(reversed(&mut world.model, 200, 50), [0, 3, 49]);
    for heading in ["CPU history", "CPUS", "memory history", "I/O history", "WAIT cpu  mem   io"] {
        assert!(wide.contains(heading), "{heading}");
    }
    let usual = world.screen(80, 24);
    assert!(usual.contains("I/O in+out") && usual.contains("2.9M+38.1M"), "{usual}");
    // newcomers' finding A14
    let narrow = world.screen(60, 24);
    expect("tree-60x24", &narrow);
    for name in ["/", "db", "oltp1", "oltp2", "rt", "web", "static"] {
        assert!(
            narrow.lines().any(|line| line.split_whitespace().any(|word| word == name)),
            "{name}\n{narrow}"
        );
    }
}

/// faults F13: at 120 columns 100 % of the time in a wait for I/O was 10, as any number longer than its column was another.
#[test]
fn no_number_is_cut() {
    let mut world = divided();
    world.give(
        "rt",
        &["cpu.pressure.some", "memory.pressure.some", "io.pressure.some"].map(|name| (name, 1.0)),
    );
    let large = [
        ("cpu.usage", 127.25),
        ("cpu.allotment", 255.5),
        ("memory.current", 1000.5 * GIB / 1024.0),
        ("memory.limit", 1000.5 * GIB),
        ("pids.current", 4_194_304.0),
    ];
    world.give("db", &large);
    world.beat();
    for width in [80, 120, 160, 200] {
        let shown = world.screen(width, 24);
        for number in ["127.25/255.50", "1000.5M/1000.5G", "4194304"] {
            assert!(shown.split_whitespace().any(|word| word == number), "{width}: {number}\n{shown}");
        }
        assert!(width < 120 || shown.contains(" 100% 100% 100%"), "{width}:\n{shown}");
    }
}

#[test]
fn what_interrupts_cpus_that_a_group_has_alone_is_a_column() {
    let mut world = divided();
    world.source.interrupted = (0..32).map(|cpu| (cpu, f64::from(cpu as u32))).collect();
    world.screen(200, 50);
    (0..20).for_each(|_| world.beat());
    assert!(!world.screen(200, 50).contains("INTR/s"), "no group has CPUs alone");
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Cpuset).unwrap();
    world.fake.write(at, "rt", "cpuset.cpus", "6-7").unwrap();
    world.fake.write(at, "rt", "cpuset.cpus.partition", "root").unwrap();
    (0..20).for_each(|_| world.beat());
    let wide = world.screen(200, 50);
    let end = |name: &str| {
        wide.lines().find(|line| line.contains(name)).unwrap().split_whitespace().last().unwrap()
    };
    assert_eq!((end("GROUP"), end(" rt "), end(" static ")), ("INTR/s", "13", "-"), "{wide}");
    world.press(&["m"]);
    assert!(world.screen(80, 24).contains("interrupted 0/s"), "{}", world.screen(80, 24));
}

/// Newcomers' finding F: a machine of two CPUs was shown as `0.█ 1.█`.
#[test]
fn a_machine_of_few_cpus_is_a_list_in_words() {
    let mut two = machine(&["synthetic-2x8.json"]);
    two.cpus.truncate(2);
    two.nodes.truncate(1);
    let mut world = World::new(Fake::v2(2, 1), &["db"], two);
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Cpuset).unwrap();
    world.fake.write(at, "db", "cpuset.cpus", "1").unwrap();
    world.idle(2, &[0.9, 0.25]);
    world.beat();
    world.press(&["m"]);
    expect("machine-2-80x24", &world.screen(80, 24));
    world.press(&["Down"]);
    let moved = world.screen(80, 24);
    assert!(moved.contains("> CPU 1") && moved.contains("75% busy   for db"), "{moved}");
}

#[test]
fn groups_are_folded_filtered_and_sorted() {
    let mut world = divided();
    world.press(&["Down", "Left"]);
    expect("tree-folded-80x24", &world.screen(80, 24));
    world.press(&["/", "OLTP2"]);
    expect("tree-filtered-80x24", &world.screen(80, 24));
    world.press(&["Enter", "s"]);
    expect("sort-80x24", &world.screen(80, 24));
    world.press(&["Esc", "Esc", "s", "Down", "Enter"]);
    expect("tree-sorted-80x24", &world.screen(80, 24));
}

#[test]
fn what_is_selected_stays_selected_while_groups_move() {
    let mut world = divided();
    world.press(&["s", "Down", "Enter", "Down", "Down"]);
    let selected = |world: &mut World| {
        let text = world.screen(80, 24);
        text.lines().find(|line| line.starts_with('>')).unwrap().split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(selected(&mut world), ">db/oltp1");
    world.give("rt", &[("cpu.usage", 15.0)]);
    world.beat();
    assert_eq!(selected(&mut world), ">db/oltp1");
    let second = world.screen(80, 24).lines().nth(3).unwrap().to_owned();
    assert!(second.contains("rt"), "{second}");
}

#[test]
fn a_groups_page_shows_settings_tasks_and_limits() {
    let mut world = divided();
    for _ in 0..3 {
        let pid = world.put("db/oltp1");
        world.fake.set_process(pid, |process| {
            process.comm = "postgres".to_owned();
            process.last_cpu = 3;
        });
    }
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Memory).unwrap();
    world.fake.count(at, "db/oltp1", "memory.events", "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1").unwrap();
    world.press(&["Down", "Down", "Enter"]);
    world.beat();
    expect("group-80x24", &world.screen(80, 24));
    expect("group-120x40", &world.screen(120, 40));
    world.press(&["Tab", "Down"]);
    expect("group-tasks-80x24", &world.screen(80, 24));
    world.press(&["Esc"]);
    assert!(world.screen(80, 24).contains("group 3 of 8"));
}

#[test]
fn elastic_groups_show_their_cpus_bounds_loans_and_last_change() {
    let mut world = divided();
    let bounds =
        |min, max| Bounds { min, max, weight: 100, pool: "0-15".parse().unwrap(), saves_power: false };
    let texts = ("8-9".to_owned(), "8-11".to_owned());
    let why = ("it used 1.9 CPUs".to_owned(), Default::default());
    let last = Resize { at: 1_800_000_000_000, ..Resize::now("db/oltp1", "cpuset.cpus", texts, why) };
    let of = |group: &str, cpus: &str, bounds, last| Following {
        group: group.to_owned(),
        cpus: Some(cpus.parse().unwrap()),
        bounds: Some(bounds),
        lent: if last { "10-11".parse().unwrap() } else { CpuSet::new() },
        borrowed: if last { CpuSet::new() } else { "10-11".parse().unwrap() },
        ranges: Vec::new(),
        last: None,
    };
    let owner = Following { last: Some(last), ..of("db/oltp1", "8-11", bounds(2, 14), true) };
    let groups = vec![owner, of("web", "10-12", bounds(1, 8), false)];
    let trouble = Some("resizing is paused: ringfence resume".to_owned());
    *world.elastic.borrow_mut() = Elastic { groups, trouble };
    world.beat();
    expect("tree-elastic-80x24", &world.screen(80, 24));
    world.press(&["Down", "Down", "Enter"]);
    expect("group-elastic-80x24", &world.screen(80, 24));
    // once the layout is undone nothing is elastic
    *world.elastic.borrow_mut() = Elastic::default();
    world.beat();
    assert!(!world.screen(80, 24).contains("BY LOAD"));
}

#[test]
fn the_machine_is_a_map_of_who_has_which_cpu() {
    let mut world = divided();
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Cpuset).unwrap();
    for (group, cpus) in
        [("rt", "0-1"), ("db", "8-15"), ("db/oltp1", "8-11"), ("db/oltp2", "12-15"), ("web", "2-8")]
    {
        world.fake.write(at, group, "cpuset.cpus", cpus).unwrap();
    }
    world.press(&["m"]);
    expect("machine-80x24", &world.screen(80, 24));
    world.press(&["Right", "Down"]);
    expect("machine-moved-80x24", &world.screen(80, 24));
    world.press(&["Enter"]);
    assert!(
        world.screen(80, 24).lines().nth(2).unwrap().starts_with(" db/oltp1"),
        "{}",
        world.screen(80, 24)
    );
    world.press(&["Esc"]);
    assert!(world.screen(80, 24).contains("node 0"));
}

#[test]
fn a_machine_of_160_cpus_is_readable_to_its_end() {
    let topology = machine(&["e7-4850.lscpu.txt", "e7-4850.cpu_topology.txt"]);
    let mut world = World::new(Fake::v2(160, 8), &["db", "rt"], topology);
    let host = Host::new(Box::new(world.fake.clone())).unwrap();
    let at = host.hierarchy_of(Controller::Cpuset).unwrap();
    world.fake.write(at, "db", "cpuset.cpus", "1-20,41-60").unwrap();
    world.fake.write(at, "rt", "cpuset.cpus", "150-159").unwrap();
    world.idle(160, &[0.02, 0.1, 0.3, 0.25, 0.6, 0.5, 0.99, 1.0, 0.8, 0.85]);
    world.beat();
    world.press(&["m"]);
    expect("machine-160-80x24", &world.screen(80, 24));
    world.press(&["End"]);
    expect("machine-160-end-80x24", &world.screen(80, 24));
    expect("machine-160-120x40", &world.screen(120, 40));
}

#[test]
fn the_keys_are_told() {
    let mut world = divided();
    world.press(&["?"]);
    expect("help-80x24", &world.screen(80, 24));
    world.press(&["End"]);
    let end = world.screen(80, 24);
    assert!(end.contains("the page of that group"), "{end}");
    // the text fits into the box
    assert!(end.lines().all(|line| line.chars().count() <= 80));
    world.press(&["Esc", "q"]);
    assert!(world.has_ended);
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let mut world = divided();
    for keys in
        [&[][..], &["Enter"], &["e"], &["Esc", "m"], &["?"], &["Esc", "Esc", "Esc", "/"], &["Esc", "s"]]
    {
        world.press(keys);
        for (columns, lines) in [(1, 1), (2, 3), (20, 5), (39, 8), (500, 3), (3, 200)] {
            world.screen(columns, lines);
        }
    }
}

#[test]
fn only_quitting_keys_end_it() {
    let mut world = divided();
    world.press(&["x", "Esc", "Esc", "Backspace", "Tab", "+", "-", "PageDown", "End"]);
    assert!(!world.has_ended);
    world.press(&["/", "q", "Enter"]);
    assert!(!world.has_ended, "q was typed into the filter");
    assert!(world.screen(80, 24).contains("no group's name has that in it"));
    world.press(&["^C"]);
    assert!(world.has_ended);
}
