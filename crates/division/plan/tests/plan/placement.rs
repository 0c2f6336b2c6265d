//! Which CPUs groups keep, and who moves when somebody has to.

use settings::Version;

use crate::world::{Kind, World, cpus, machine, plan_on};

/// Plans of the second layout on a machine that was brought to the first; the group's CPUs before and after.
fn before_and_after(world: &World, first: &str, second: &str, group: &str) -> (String, String) {
    let before = cpus(&world.apply(first))[group].clone();
    let plan = world.apply(second);
    world.is_done(second);
    (before, cpus(&plan)[group].clone())
}

fn exclusive(name: &str, cpus: &str) -> String {
    format!("[groups.{name}]\ncpus = {cpus}\nexclusive = true\n")
}

fn counted(name: &str, cpus: &str) -> String {
    format!("[groups.{name}]\ncpus = {cpus}\n")
}

#[test]
fn local_memory_is_that_of_a_node_that_has_some() {
    let mut machine = machine(4, 1, 2, 1);
    for node in &mut machine.nodes {
        let memory = if node.id == 2 { 8 << 30 } else { 0 };
        node.memory_total = Some(units::Bytes(memory));
    }
    for (layout, on) in [
        ("[groups.db]\ncpus = 2\nmems = \"local\"\n", "4-5"),
        // without such a wish any node will do
        ("[groups.db]\ncpus = 2\n", "0-1"),
        // and the nodes that are named are kept to
        ("[groups.db]\ncpus = { count = 2, node = 1 }\nmems = \"local\"\n", "2-3"),
    ] {
        assert_eq!(cpus(&plan_on(Version::V2, &machine, layout).unwrap())["db"], on, "{layout}");
    }
}

#[test]
fn a_sharer_more_does_not_take_what_is_left_for_who_takes_it_all() {
    let first = "\
[groups.g0]
cpus = \"all\"
exclusive = true
[groups.g1]
cpus = { count = 1, smt = \"threads\" }
[groups.\"g1/g2\"]
cpus = \"all\"
exclusive = true
[groups.g3]
cpus = { count = 2, smt = \"whole-cores\" }
";
    for group in ["g1", "g3"] {
        let second = format!("{first}{}", counted("extra", "{ count = 1 }"));
        let world = World::new(Kind::V1, machine(1, 2, 2, 1));
        let (before, after) = before_and_after(&world, first, &second, group);
        assert_eq!(before, after, "{group}");
    }
}

#[test]
fn a_sharer_more_does_not_make_a_spread_group_move() {
    let first = [
        exclusive("g0", "{ count = 1, smt = \"threads\" }"),
        exclusive("g1", "{ count = 3, placement = \"spread\" }"),
        exclusive("g2", "\"all\""),
        counted("g3", "{ count = 3, near = \"node:0\" }"),
    ]
    .concat();
    let second = format!("{first}{}", counted("extra", "{ count = 1 }"));
    for (nodes, l3, cores) in [(2, 2, 2), (2, 1, 4), (4, 1, 2), (3, 1, 3)] {
        for group in ["g0", "g1", "g3"] {
            let world = World::new(Kind::V1, machine(nodes, l3, cores, 1));
            let (before, after) = before_and_after(&world, &first, &second, group);
            assert_eq!(before, after, "{group}");
        }
    }
}

#[test]
fn who_has_what_he_asks_for_keeps_it_though_another_place_would_do_as_well() {
    let held = [exclusive("a", "\"2-3\""), exclusive("b", "\"5,7\""), counted("c", "\"6\"")].concat();
    let requested = [exclusive("a", "2"), exclusive("b", "2"), counted("c", "1")].concat();
    for (group, expected) in [("a", "2-3"), ("b", "5,7"), ("c", "6")] {
        let world = World::new(Kind::V2, machine(2, 1, 4, 1));
        assert_eq!(before_and_after(&world, &held, &requested, group).1, expected);
    }
}

#[test]
fn one_group_yields_where_one_is_enough() {
    // node 0 is full; two of its CPUs are wanted, which one group can give, or two
    let held = [exclusive("a", "\"0\""), exclusive("b", "\"1-2\""), exclusive("c", "\"3\"")].concat();
    let requested = [exclusive("a", "1"), exclusive("b", "2"), exclusive("c", "1")].concat();
    let requested = format!("{requested}{}", exclusive("new", "{ count = 2, node = 0 }"));
    let world = World::new(Kind::V2, machine(2, 1, 4, 1));
    world.apply(&held);
    let after = cpus(&world.apply(&requested));
    assert_eq!((after["a"].as_str(), after["c"].as_str(), after["new"].as_str()), ("0", "3", "1-2"));
    assert_eq!(after["b"], "4-5");
}

#[test]
fn who_is_bound_to_a_node_stays_and_who_is_not_yields() {
    let held = [exclusive("bound", "\"0-1\""), exclusive("free", "\"2-3\"")].concat();
    let requested = [
        exclusive("bound", "{ count = 2, node = 0 }"),
        exclusive("free", "2"),
        exclusive("new", "{ count = 2, node = 0 }"),
    ]
    .concat();
    let world = World::new(Kind::V2, machine(2, 1, 4, 1));
    world.apply(&held);
    let after = cpus(&world.apply(&requested));
    assert_eq!(
        (after["bound"].as_str(), after["new"].as_str(), after["free"].as_str()),
        ("0-1", "2-3", "4-5")
    );
}

#[test]
fn a_chain_of_groups_yields_where_nothing_else_helps() {
    // `new` must be on node 0, so `a` goes to node 1, so `b` goes to node 2
    let held = [exclusive("a", "\"0-1\""), exclusive("b", "\"2-3\"")].concat();
    let requested = [
        exclusive("a", "{ count = 2, node = \"0-1\" }"),
        exclusive("b", "2"),
        exclusive("new", "{ count = 2, node = 0 }"),
    ]
    .concat();
    let world = World::new(Kind::V2, machine(4, 1, 2, 1));
    world.apply(&held);
    let after = cpus(&world.apply(&requested));
    assert_eq!((after["new"].as_str(), after["a"].as_str(), after["b"].as_str()), ("0-1", "2-3", "4-5"));
}

#[test]
fn a_group_over_two_nodes_moves_when_one_has_room_for_it() {
    let held = [exclusive("a", "\"0,4\""), exclusive("b", "\"1-3\"")].concat();
    let requested = [exclusive("a", "2"), exclusive("b", "3")].concat();
    let world = World::new(Kind::V2, machine(2, 1, 4, 1));
    let (_, after) = before_and_after(&world, &held, &requested, "a");
    assert_eq!(after, "4-5");
}

#[test]
fn a_group_that_grows_keeps_what_it_has_and_one_that_shrinks_keeps_some_of_it() {
    let held = [exclusive("a", "\"2-3\""), exclusive("b", "\"4-7\"")].concat();
    let requested = [exclusive("a", "3"), exclusive("b", "2")].concat();
    let world = World::new(Kind::V2, machine(2, 1, 4, 1));
    world.apply(&held);
    let after = cpus(&world.apply(&requested));
    assert_eq!((after["a"].as_str(), after["b"].as_str()), ("0,2-3", "4-5"));
}

#[test]
fn the_same_cpus_whatever_the_version() {
    let requested =
        [exclusive("a", "3"), counted("b", "2"), exclusive("c", "{ count = 2, near = \"node:1\" }")];
    let on = |version| cpus(&plan_on(version, &machine(2, 1, 4, 2), &requested.concat()).unwrap());
    assert_eq!(on(Version::V1), on(Version::V2));
}
