//! Groups made on demand and processes moved, on the in-memory kernel of either version.

use classify::{Error, NewDirectory, Placer, sweep};
use fake::Fake;
use kernel::{GroupName, Host, Kernel};
use layout::{Desired, Source};

use crate::someone::{Town, cgrules, someone};

/// The configuration of these files.
fn desired(files: &[(&str, &str)]) -> Desired {
    let sources: Vec<Source> = files.iter().map(|(name, text)| Source::new(name, text)).collect();
    let reading = layout::read(&sources);
    reading.desired.unwrap_or_else(|| panic!("{}", layout::render(&reading.diagnostics, &sources)))
}

fn name(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

fn worlds() -> [(Fake, Host); 3] {
    [Fake::v1(8, 2), Fake::v2(8, 2), Fake::hybrid(8, 2)].map(|fake| {
        let host = Host::new(Box::new(fake.clone())).unwrap();
        (fake, host)
    })
}

const RULES: &str = "peter cpu,memory,cpuset students/%u\n% pids counted\n* * rest\n";
const TEMPLATE: &str =
    "template students/%u { memory { memory.limit_in_bytes = 64M; } cpu { cpu.shares = 512; } }\n";

#[test]
fn a_group_is_made_from_its_template_and_the_process_moved_where_the_rule_is_about() {
    for (fake, host) in worlds() {
        let desired = desired(&[("cgconfig.conf", TEMPLATE), ("cgrules.conf", RULES)]);
        host.create(&name("counted"), Some(&[settings::Controller::Pids]), &Default::default()).unwrap();
        let rules = cgrules(RULES);
        let pid = fake.spawn(1).unwrap();
        let mut process = classify::KnownProcess { pid, ..someone(1002, 100, "/bin/sh") };
        let placer = Placer::new(&host, &desired, &Town);
        let placed = placer.place(&rules, 0, &mut process).unwrap();
        let group = name("students/peter");
        let found = settings::lookup("memory.max").unwrap();
        let limit = apply::get(&host, &group, &found).unwrap().value;
        assert_eq!(found.show(&limit), "64M");
        let at = |controller: &str| {
            host.hierarchy_of(settings::Controller::from_name(controller).unwrap()).unwrap()
        };
        for controller in ["cpu", "memory", "cpuset", "pids"] {
            // of lines that meet in one hierarchy the last counts
            let last = at(controller).id == at("pids").id;
            let there = if last { "counted" } else { "students/peter" };
            assert_eq!(fake.group_of(at(controller), pid).unwrap(), format!("/{there}"), "{controller}");
            assert_eq!(placed.present.at(at(controller).id), Some(there));
        }
        let ids = ["cpu", "memory", "cpuset", "pids"].map(|controller| at(controller).id);
        for other in host.hierarchies().iter().filter(|other| !ids.contains(&other.id)) {
            assert_eq!(fake.group_of(other, pid).unwrap(), "/", "the rule is not about {}", other.label());
        }
    }
}

/// Attack finding 28: such a program stayed with its parent.
#[test]
fn a_program_named_as_a_file_of_the_kernel_s_is_placed_by_its_rule() {
    for (program, group) in [("tasks", "apps/tasks_"), ("cgroup.procs", "apps/cgroup_procs_")] {
        for (fake, host) in worlds() {
            let desired = desired(&[("cgrules.conf", "* pids apps/%p\n")]);
            let rules = cgrules("* pids apps/%p\n");
            let pid = fake.spawn(1).unwrap();
            let mut process =
                classify::KnownProcess { pid, ..someone(1002, 100, &format!("/tmp/{program}")) };
            Placer::new(&host, &desired, &Town).place(&rules, 0, &mut process).unwrap();
            let at = host.hierarchy_of(settings::Controller::Pids).unwrap();
            assert_eq!(fake.group_of(at, pid).unwrap(), format!("/{group}"));
        }
    }
}

#[test]
fn a_plain_name_that_is_missing_is_not_made() {
    for (fake, host) in worlds() {
        let desired = desired(&[("cgrules.conf", RULES)]);
        let pid = fake.spawn(1).unwrap();
        let mut process = classify::KnownProcess { pid, ..someone(1001, 100, "/bin/sh") };
        let placed = Placer::new(&host, &desired, &Town).place(&cgrules(RULES), 1, &mut process);
        let Err(Error::Kernel(kernel::Error::NoGroup { group, .. })) = placed else { panic!("{placed:?}") };
        assert_eq!(group, "rest");
        assert!(host.seats(&name("rest")).is_empty());
    }
}

#[test]
fn nothing_is_made_for_a_rule_that_cannot_be_followed_as_a_whole() {
    for (fake, host) in worlds() {
        let desired = desired(&[("cgrules.conf", RULES)]);
        let pid = fake.spawn(1).unwrap();
        let mut process = classify::KnownProcess { pid, ..someone(1002, 100, "/bin/sh") };
        let placed = Placer::new(&host, &desired, &Town).place(&cgrules(RULES), 0, &mut process);
        assert!(placed.is_err(), "'counted' is missing: {placed:?}");
        assert!(host.seats(&name("students")).is_empty());
    }
}

#[test]
fn a_template_that_is_refused_leaves_no_group() {
    let template = "template students/%u { cpuset { cpuset.cpus = 0-99; cpuset.mems = 0; } }\n";
    for (fake, host) in worlds() {
        let desired = desired(&[("cgconfig.conf", template), ("cgrules.conf", RULES)]);
        host.create(&name("counted"), Some(&[settings::Controller::Pids]), &Default::default()).unwrap();
        let pid = fake.spawn(1).unwrap();
        let mut process = classify::KnownProcess { pid, ..someone(1002, 100, "/bin/sh") };
        if host.hierarchies().len() == 1 {
            continue; // v2 takes CPUs that there are not
        }
        let placed = Placer::new(&host, &desired, &Town).place(&cgrules(RULES), 0, &mut process);
        assert!(placed.is_err(), "{placed:?}");
        assert!(host.seats(&name("students/peter")).is_empty() && host.seats(&name("students")).is_empty());
    }
}

#[test]
fn a_template_gives_its_cpus_and_nodes_and_new_cpusets_above_it_their_parents() {
    let fake = Fake::v1(8, 2);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let desired = desired(&[("layout.toml", "[templates.\"t/%u\"]\ncpus = \"0-3\"\nmems = \"1\"\n")]);
    let rules = cgrules("* * t/%u\n");
    let pid = fake.spawn(1).unwrap();
    let mut process = classify::KnownProcess { pid, ..someone(1002, 100, "/bin/sh") };
    Placer::new(&host, &desired, &Town).place(&rules, 0, &mut process).unwrap();
    let held = |setting: &str| {
        let found = settings::lookup(setting).unwrap();
        found.show(&apply::get(&host, &name("t/peter"), &found).unwrap().value)
    };
    assert_eq!((held("cpuset.cpus").as_str(), held("cpuset.mems").as_str()), ("0-3", "1"));
    let found = settings::lookup("cpuset.cpus").unwrap();
    let parent = apply::get(&host, &name("t"), &found).unwrap().value;
    assert_eq!(found.show(&parent), "0-7", "a new v1 cpuset above it has its parent's");
}

#[test]
fn counted_cpus_of_a_template_are_refused_in_words_where_they_cannot_be_had() {
    let (fake, host) = (Fake::v1(8, 2), Host::new(Box::new(Fake::v1(8, 2))).unwrap());
    let desired = desired(&[("layout.toml", "[templates.\"t/%u\"]\ncpus = 60000\n")]);
    let mut process = classify::KnownProcess { pid: fake.spawn(1).unwrap(), ..someone(1002, 100, "/bin/sh") };
    let placed = Placer::new(&host, &desired, &Town).place(&cgrules("* * t/%u\n"), 0, &mut process);
    let Err(Error::Cpus { why, .. }) = placed else { panic!("{placed:?}") };
    assert!(why.contains("60000"), "{why}");
    assert!(host.seats(&name("t")).is_empty());
}

/// F2: a process that one rule led to a quota kept it under another rule, whose group had no quota.
#[test]
fn the_first_rule_decides_for_all_hierarchies() {
    use settings::Controller::{Cpu, Memory};
    let text = "rules = [{ command = \"^one\", to = \"one\" }, { command = \"^nested\", to = \"two/x\" },\n\
                { command = \"^cpu\", to = [{ group = \"one\", controllers = [\"memory\"] }] }, { user = \"peter\", to = \"two\" }]\n";
    let desired = desired(&[("layout.toml", text)]);
    let (rules, _) = classify::Rules::compile(&desired.all_rules(), &Town);
    for (rule, from, to) in [
        (0, "two", "/"),
        (0, "two/sub", "/"),
        // put there by hand
        (0, "hand", "/hand"),
        (0, "hand/two", "/hand/two"),
        // in the group above its own
        (1, "two", "/two"),
        (1, "two/y", "/two"),
        // the rule is about memory alone
        (2, "two", "/two"),
    ] {
        let fake = Fake::v1(8, 2);
        let host = Host::new(Box::new(fake.clone())).unwrap();
        let groups =
            [("one", Memory), ("two/x", Memory), ("two/sub", Cpu), ("two/y", Cpu), ("hand/two", Cpu)];
        for (group, controller) in groups {
            host.create(&name(group), Some(&[controller]), &Default::default()).unwrap();
        }
        let pid = fake.spawn(1).unwrap();
        host.move_tasks(&name(from), &[pid], kernel::What::Process).unwrap();
        let mut process = classify::KnownProcess { pid, ..someone(1002, 100, "/bin/sh") };
        let placer = Placer::new(&host, &desired, &Town);
        let at = |controller| host.hierarchy_of(controller).unwrap();
        let lines = || {
            let group = |controller| fake.group_of(at(controller), pid).unwrap();
            format!("3:memory:{}\n2:cpu:{}\n", group(Memory), group(Cpu)).into_bytes()
        };
        let goals = rules.goals(rule, &mut process, &Town).unwrap();
        host.move_tasks(&goals[0].group, &[pid], kernel::What::Process).unwrap();
        process.control_groups = lines();
        let is_there = placer.is_there(&rules, &goals, &mut process).unwrap();
        assert_eq!(is_there, to == format!("/{from}"), "{rule} {from}");
        let placed = placer.place(&rules, rule, &mut process).unwrap();
        assert_eq!(fake.group_of(at(Cpu), pid).unwrap(), to, "{rule} {from}");
        assert_eq!(placed.present.at(at(Memory).id), Some(goals[0].group.path()));
        process.control_groups = lines();
        assert!(placer.is_there(&rules, &goals, &mut process).unwrap(), "{rule} {from}");
    }
}

/// The group of a layout is in every hierarchy of v1. A process that somebody's tool had put into a group of memory was left
/// alone, as if that were a choice about a group that limits processes.
#[test]
fn who_is_elsewhere_is_there_by_choice_only_where_the_group_has_settings() {
    let text = "[groups.db]\npids.max = 100\nmatch = [{ command = \"^db\" }]\n\
                [groups.\"db/in\"]\nmatch = [{ command = \"^in\" }]\n[groups.all]\nmatch = [{ user = \"peter\" }]\n";
    let desired = desired(&[("layout.toml", text)]);
    let (rules, _) = classify::Rules::compile(&desired.all_rules(), &Town);
    let host = Host::new(Box::new(Fake::v1(8, 2))).unwrap();
    for group in ["db", "db/in", "all"] {
        host.create(&name(group), None, &Default::default()).unwrap();
    }
    let placer = Placer::new(&host, &desired, &Town);
    let about = |rule: usize| {
        let goals = rules.goals(rule, &mut someone(1002, 100, "/bin/sh"), &Town).unwrap();
        placer.hierarchies(&goals)
    };
    let pids = host.hierarchy_of(settings::Controller::Pids).unwrap().id;
    assert_eq!([about(0), about(1)], [vec![pids], vec![pids]]);
    assert_eq!(about(2).len(), host.seats(&name("all")).len());
}

#[test]
fn where_it_is_already_is_seen_from_one_read() {
    let fake = Fake::v1(4, 1);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let desired = desired(&[("cgrules.conf", "* cpu a/%u\n")]);
    let rules = cgrules("* cpu a/%u\n");
    let placer = Placer::new(&host, &desired, &Town);
    let mut process = someone(1002, 100, "/bin/sh");
    let goals = rules.goals(0, &mut process, &Town).unwrap();
    assert!(!placer.is_there(&rules, &goals, &mut process).unwrap(), "there is no such group yet");
    process.pid = fake.spawn(1).unwrap();
    placer.place_at(&rules, &goals, process.pid).unwrap();
    assert!(!placer.is_there(&rules, &goals, &mut process).unwrap());
    process.control_groups = b"3:memory:/x\n2:cpu:/a/peter\n".to_vec();
    assert!(placer.is_there(&rules, &goals, &mut process).unwrap());
}

/// Attack finding 5: a name that a rule could have made is no reason to remove a group.
#[test]
fn only_empty_directories_that_were_made_are_swept() {
    for (fake, host) in worlds() {
        let groups = ["s/peter", "s/ann", "s/ann/own", "s/oracle", "s/hand", "other"];
        for group in groups {
            host.create(&name(group), Some(&[settings::Controller::Pids]), &Default::default()).unwrap();
        }
        let made: Vec<NewDirectory> = ["s/peter", "s/ann", "s/oracle"]
            .iter()
            .flat_map(|group| {
                let directories =
                    host.seats(&name(group)).iter().map(kernel::Seat::directory).collect::<Vec<_>>();
                directories.into_iter().map(|directory| NewDirectory { group: name(group), directory })
            })
            .collect();
        let pid = fake.spawn(1).unwrap();
        host.move_tasks(&name("s/oracle"), &[pid], kernel::What::Process).unwrap();
        let groups = |swept: Vec<NewDirectory>| swept.into_iter().map(|made| made.group).collect::<Vec<_>>();
        assert_eq!(groups(sweep(&host, &made)), [name("s/peter")]);
        for group in ["s/ann/own", "s/oracle", "s/hand", "other"] {
            assert!(!host.seats(&name(group)).is_empty(), "{group}");
        }
        fake.end(pid);
        assert_eq!(groups(sweep(&host, &made)), [name("s/oracle")]);
        assert!(!host.seats(&name("s/hand")).is_empty());
    }
}

/// Attack finding 5.
#[test]
fn what_was_made_is_reported_and_what_was_there_is_not() {
    for (fake, host) in worlds() {
        let desired = desired(&[("cgrules.conf", "* pids s/%u\n")]);
        let rules = cgrules("* pids s/%u\n");
        let placer = Placer::new(&host, &desired, &Town);
        let mut process = someone(1002, 100, "/bin/sh");
        process.pid = fake.spawn(1).unwrap();
        placer.place(&rules, 0, &mut process).unwrap();
        let made = placer.take_made();
        assert!(!made.is_empty() && made.iter().all(|made| made.group == name("s/peter")), "{made:?}");
        placer.place(&rules, 0, &mut process).unwrap();
        assert_eq!(placer.take_made(), []);
    }
}
