//! libcgroup's grammars in all their forms.

use layout::{
    Account, Controllers, CpuDemand, Desired, Grammar, Mode, Process, Severity, Source, Subsystem, Who,
};

use super::{desired, said};

fn cgconfig(text: &str) -> Desired {
    let reading = layout::read_cgconfig("cgconfig.conf", text);
    let errors = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
    let source = [Source::new("cgconfig.conf", text)];
    assert!(!errors, "{}", layout::render(&reading.diagnostics, &source));
    reading.desired.unwrap()
}

#[test]
fn comments_may_stand_anywhere_and_white_space_does_not_matter() {
    let desired = cgconfig(
        "# a comment\n* an old comment\ngroup a{cpu{cpu.shares=100;}} # behind\ngroup b\n{ # behind a brace\n\tcpu\n\t{\n\
         \tcpu.shares # between\n =\n 200 ;\n} }\n\n# group c { broken",
    );
    let shares: Vec<&str> =
        desired.groups.iter().map(|group| group.demands.settings[0].text.as_str()).collect();
    assert_eq!(shares, ["100", "200"]);
}

#[test]
fn names_and_values_may_be_in_quotes() {
    let desired = cgconfig(
        r#"group "a b/c" { "cpu" { "cpu.shares" = "100"; } "name=jobs" { } }
mount { "name=systemd" = "/sys/fs/cgroup/my systemd"; }"#,
    );
    assert_eq!(desired.groups[0].name.to_string(), "a b/c");
    assert_eq!(desired.groups[0].demands.controllers[0].value, Subsystem::Named("jobs".to_owned()));
    assert_eq!(desired.mounts[0].path, "/sys/fs/cgroup/my systemd");
}

#[test]
fn a_value_of_several_lines_is_one_value() {
    let desired = cgconfig("group a {\n net_prio {\n net_prio.ifpriomap=\"lo 0\n\teth0 5\";\n }\n}\n");
    assert_eq!(desired.groups[0].demands.settings[0].text, "lo 0\n\teth0 5");
}

#[test]
fn pieces_of_one_group_are_joined() {
    let desired =
        cgconfig("group a { cpu { cpu.shares = 100; } }\ngroup a { memory { memory.limit_in_bytes = 1G; } }");
    assert_eq!(desired.groups.len(), 1);
    let names: Vec<&str> = desired.groups[0].demands.settings.iter().map(|s| s.found.name.as_str()).collect();
    assert_eq!(names, ["cpu.shares", "memory.limit_in_bytes"]);
    assert!(desired.groups[0].demands.controllers.is_empty(), "their settings need them already");
}

#[test]
fn a_group_of_two_files_is_one_and_what_both_say_the_later_says() {
    let first = "mount { cpu = /cgroup/cpu; }\ndefault { perm { task { uid = a; } } }\n\
                 group a { cpu { cpu.shares = 100; cpu.cfs_quota_us = 20000; } memory { } }\n\
                 group b { devices { devices.deny = a; } }\ntemplate t/%u { cpu { } }";
    let second = "mount { cpu = /cgroup/cpu2; }\ndefault { perm { task { uid = b; } } }\n\
                  group a { cpu { cpu.shares = 300; } memory { memory.limit_in_bytes = 1G; } pids { } \
                  cpuset { cpuset.cpus = 1; } }\ngroup b { devices { devices.deny = \"c 1:3 r\"; } }\n\
                  template t/%u { pids { } }";
    let sources = [Source::new("1.conf", first), Source::new("2.conf", second)];
    let reading = layout::read_cgconfigs(&sources);
    let warned: Vec<(Severity, &str)> =
        reading.diagnostics.iter().map(|found| (found.severity, found.message.as_str())).collect();
    let twice =
        ["the mount of 'cpu' is given twice", "'defaults' is given twice", "'cpu.shares' is given twice"];
    assert_eq!(warned.len(), twice.len(), "{warned:?}");
    assert!(twice.iter().all(|text| warned.contains(&(Severity::Warning, text))), "{warned:?}");
    let desired = reading.desired.unwrap();
    let settings = |at: usize| -> Vec<String> {
        let settings = desired.groups[at].demands.settings.iter();
        settings.map(|s| format!("{}={}", s.found.name, s.text)).collect()
    };
    assert_eq!(settings(0), ["cpu.cfs_quota_us=20000", "cpu.shares=300", "memory.limit_in_bytes=1G"]);
    assert_eq!(settings(1), ["devices.deny=a; c 1:3 r"], "rules add up");
    let demands = &desired.groups[0].demands;
    let names: Vec<String> = demands.controllers.iter().map(|c| c.value.to_string()).collect();
    assert_eq!(names, ["pids"], "memory is needed by a setting");
    assert!(matches!(demands.cpus.as_ref().unwrap().value, CpuDemand::These(_)));
    assert_eq!(demands.tasks.as_ref().unwrap().value.user, Account::new("b"));
    assert_eq!(desired.mounts.iter().map(|mount| mount.path.as_str()).collect::<Vec<_>>(), ["/cgroup/cpu2"]);
    assert_eq!(desired.templates[0].demands.controllers.len(), 2);
}

#[test]
fn a_group_of_ours_and_of_libcgroups_is_given_twice() {
    let toml = Source::new("layout.toml", "[groups.a]\ncpu.weight = 100\n");
    let conf = Source::new("cgconfig.conf", "group a { cpu { cpu.shares = 100; } }");
    for sources in [[toml.clone(), conf.clone()], [conf, toml.clone()], [toml.clone(), toml]] {
        let reading = layout::read(&sources);
        let text = layout::render(&reading.diagnostics, &sources);
        assert!(reading.desired.is_none() && text.contains("error: group 'a' is given twice"), "{text}");
    }
}

#[test]
fn a_controller_without_settings_is_kept() {
    let desired = cgconfig("group a { cpu { } cpuacct { } cpuset { cpuset.cpus = 0-3; } }");
    let names: Vec<String> =
        desired.groups[0].demands.controllers.iter().map(|c| c.value.to_string()).collect();
    assert_eq!(names, ["cpu", "cpuacct"]);
}

/// What libcgroup's cgsnapshot wrote of a group on cgroup v1: it was refused.
#[test]
fn a_snapshot_is_read_with_its_empty_values_counters_and_files_of_several_lines() {
    let text = r#"group a {
	memory {
		memory.force_empty="";
		memory.memsw.max_usage_in_bytes="1143287808";
		memory.failcnt="3";
		memory.oom_control="oom_kill_disable 1
under_oom 0
oom_kill 2";
		memory.limit_in_bytes="9223372036854771712";
		memory.soft_limit_in_bytes="9223372036854775807";
		memory.swappiness="60";
	}
	cpuset { cpuset.cpus.exclusive.effective=""; cpuset.mems=""; cpuset.cpus="0-1"; }
	blkio {
		blkio.throttle.write_iops_device="";
		blkio.throttle.read_bps_device="";
		blkio.weight_device="";
		blkio.weight="500";
	}
}"#;
    let (reading, said) = said(&[("cgconfig.conf", text)]);
    assert_eq!(reading.diagnostics.len(), 1, "{said}");
    assert!(said.starts_with("warning: 'memory.memsw.max_usage_in_bytes' is a counter"), "{said}");
    let demands = &reading.desired.unwrap().groups[0].demands;
    let settings: Vec<(&str, &str)> =
        demands.settings.iter().map(|one| (one.found.name.as_str(), one.text.as_str())).collect();
    let expected = [
        ("memory.oom_control", "1"),
        ("memory.limit_in_bytes", "-1"),
        ("memory.soft_limit_in_bytes", "-1"),
        ("memory.swappiness", "60"),
        ("blkio.weight", "500"),
    ];
    assert_eq!(settings, expected);
    assert!(demands.cpus.is_some() && demands.mems.is_none());
}

#[test]
fn quota_and_period_are_two_parts_of_one_setting() {
    let desired = cgconfig("group a { cpu { cpu.cfs_quota_us = 50000; cpu.cfs_period_us = 100000; } }");
    assert_eq!(desired.groups[0].demands.settings.len(), 2);
}

#[test]
fn a_setting_given_twice_is_warned_about_and_the_later_counts() {
    let (reading, text) = said(&[("cgconfig.conf", "group a { cpu { cpu.shares = 1; cpu.shares = 2; } }")]);
    assert!(text.starts_with("warning: 'cpu.shares' is given twice"), "{text}");
    let desired = reading.desired.unwrap();
    let texts: Vec<&str> = desired.groups[0].demands.settings.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts, ["2"]);
}

#[test]
fn device_rules_given_several_times_add_up() {
    let desired = cgconfig(
        "group a { devices { devices.deny = a; devices.allow = \"c 1:3 rwm\"; devices.allow = \"c 1:5 rwm\"; } }",
    );
    let settings = &desired.groups[0].demands.settings;
    assert_eq!(settings[0].text, "a");
    assert_eq!(settings[1].text, "c 1:3 rwm; c 1:5 rwm");
    assert_eq!(settings.len(), 2);
}

#[test]
fn what_cgsnapshot_writes_of_an_untouched_group_is_read() {
    let desired = cgconfig(
        "group a {\n\tmemory {\n\t\tmemory.limit_in_bytes=\"9223372036854771712\";\n\t\tmemory.swappiness=\"60\";\n\
         \t\tmemory.use_hierarchy=\"1\";\n\t}\n\tcpuset {\n\t\tcpuset.cpus=\"\";\n\t\tcpuset.mems=\"\";\n\
         \t\tcpuset.cpu_exclusive=\"0\";\n\t}\n\tcpu {\n\t\tcpu.cfs_quota_us=\"-1\";\n\t}\n}\n",
    );
    let demands = &desired.groups[0].demands;
    assert!(demands.cpus.is_none() && demands.mems.is_none() && !demands.exclusive, "empty sets ask nothing");
    assert_eq!(demands.settings[0].text, "-1", "v1 prints no limit as a number");
}

#[test]
fn people_and_modes_come_from_perm_and_default() {
    let desired = cgconfig(
        "default { perm { task { gid = users; } admin { uid = 0; dperm = 755; } } }
group a { perm { admin { uid = root; gid = wheel; dperm = 0775; fperm = 664; } task { uid = 1001; fperm = 770; } } cpu {} }
group b { cpu {} }",
    );
    let a = &desired.groups[0].demands;
    let admin = &a.admin.as_ref().unwrap().value;
    assert_eq!((admin.mode, admin.directory_mode), (Mode::new("664"), Mode::new("775")));
    let tasks = &a.tasks.as_ref().unwrap().value;
    assert_eq!((tasks.user.clone(), tasks.group.clone()), (Some(Account::Id(1001)), None));
    assert_eq!(tasks.mode.unwrap().bits(), 0o770);
    let b = &desired.groups[1].demands;
    assert_eq!(b.tasks.as_ref().unwrap().value.group, Account::new("users"));
    assert_eq!(b.admin.as_ref().unwrap().value.user, Some(Account::Id(0)));
}

#[test]
fn the_root_group_and_names_with_slashes_are_those_of_libcgroup() {
    let desired =
        cgconfig("group . { cpu { cpu.shares = 1; } }\ngroup /a/b/ { cpu { } }\ngroup default { cpu { } }");
    let mut names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["/", "a/b", "default"]);
}

#[test]
fn templates_have_codes_in_their_names() {
    let desired =
        cgconfig("template students/%u { cpu { cpu.shares = %; } }".replace("= %;", "= 50;").as_str());
    let template = &desired.templates[0];
    assert_eq!(template.name.to_string(), "students/%u");
    let name = template.name.expand(&|_| "bob".to_owned()).unwrap();
    assert_eq!(name.to_string(), "students/bob");
}

#[test]
fn a_process_can_not_choose_its_place_by_its_name() {
    let desired = cgconfig("template a/%p { cpu { } }");
    for (name, expected) in [("../../b", ".._.._b"), ("..", "_"), ("x\ny", "x_y"), ("", "_")] {
        let group = desired.templates[0].name.expand(&|_| name.to_owned()).unwrap();
        assert_eq!(group.to_string(), format!("a/{expected}"));
    }
}

#[test]
fn a_namespace_is_a_parent_of_all_groups() {
    let desired = cgconfig("namespace { cpu = daemons; }\ngroup a { cpu { } }\ngroup . { cpu { } }");
    let names: Vec<String> = desired.groups.iter().map(|group| group.name.to_string()).collect();
    assert_eq!(names, ["/", "daemons/a"]);
}

#[test]
fn the_flag_for_exclusive_cpus_stays_a_flag() {
    let desired =
        cgconfig("group a { cpuset { cpuset.cpus = 2,3; cpuset.mems = 0; cpuset.cpu_exclusive = 1; } }");
    let demands = &desired.groups[0].demands;
    assert!(!demands.exclusive && demands.settings.len() == 1 && demands.settings[0].is_flag());
    assert_eq!(demands.cpus.as_ref().unwrap().value, CpuDemand::These("2-3".parse().unwrap()));
}

#[test]
fn rules_are_read_in_all_their_forms() {
    let text = "# comment
pupil           devices         /usergroup/students
student:cp      devices         /usergroup/students/cp   # behind
@admin          *               admingroup/
\"with space\":x   cpu             y
*:\"/opt/my app/run\"  cpu,memory  \"my group\"  ignore_rt
oracle:ora_*    cpuset          db/%u   ignore
peter           cpu             test1/
%               memory          test2/
%               blkio,pids      test3
*               *               default/
";
    let (reading, errors) = said(&[("cgrules.conf", text)]);
    assert!(errors.starts_with("error: 'with space' is no user"), "{errors}");
    assert!(reading.desired.is_none());
    let desired = desired("cgrules.conf", &text.replace("\"with space\"", "someone"));
    let rules = &desired.rules;
    assert_eq!(rules.len(), 8);
    assert_eq!(rules[0].targets[0].group.to_string(), "usergroup/students");
    assert_eq!(rules[1].matcher.process, Some(Process::Name("cp".to_owned())));
    assert_eq!(rules[2].matcher.who, Who::GroupMember(Account::Name("admin".to_owned())));
    assert_eq!(rules[2].targets[0].controllers, Controllers::All);
    assert_eq!(rules[4].matcher.process, Some(Process::Path("/opt/my app/run".to_owned())));
    assert_eq!(rules[4].targets[0].group.to_string(), "my group");
    assert!(rules[4].ignore_rt && !rules[4].ignore);
    assert_eq!(rules[5].matcher.process, Some(Process::Prefix("ora_".to_owned())));
    assert!(rules[5].ignore);
    let peter: Vec<String> = rules[6].targets.iter().map(|target| target.group.to_string()).collect();
    assert_eq!(peter, ["test1", "test2", "test3"], "% goes on with the same user");
    assert_eq!(rules[7].matcher.who, Who::Anyone);
}

#[test]
fn a_file_of_rules_alone_may_lead_to_groups_that_are_there_already() {
    assert_eq!(desired("cgrules.conf", "oracle blkio /iothrottle\n").rules.len(), 1);
}

#[test]
fn ditto_below_a_rule_whose_controllers_are_gone_stays_with_its_user() {
    let (reading, _) = said(&[("cgrules.conf", "a cpu x\nb ns y\n% cpu z\n")]);
    let rules = reading.desired.unwrap().rules;
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[1].matcher.who.to_string(), "b");
    assert_eq!(rules[1].targets[0].group.to_string(), "z");
}

/// The rules in order, as `user:process controllers=group,… options`.
fn in_order(text: &str) -> Vec<String> {
    let all = desired("cgrules.conf", text).rules;
    let shown = all.iter().map(|rule| {
        let process = rule.matcher.process.as_ref().map(|process| format!(":{process}")).unwrap_or_default();
        let targets = rule.targets.iter().map(|target| {
            let controllers = match &target.controllers {
                Controllers::All => "*".to_owned(),
                Controllers::These(these) => {
                    these.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
                }
            };
            format!("{controllers}={}", target.group)
        });
        let ignore = if rule.ignore { " ignore" } else { "" };
        format!("{}{process} {}{ignore}", rule.matcher.who, targets.collect::<Vec<_>>().join(","))
    });
    shown.collect()
}

/// Oracle's guide has such a file; it was refused as a whole.
#[test]
fn a_program_below_a_per_cent_sign_is_an_exception_of_the_user_above() {
    for (text, rules) in [
        ("@g devices d\n%:rm devices d/rm\n", vec!["@g:rm devices=d,devices=d/rm", "@g devices=d"]),
        // the user's other groups hold for it too
        ("u cpu a\n% memory b\n%:cp pids c\n", vec!["u:cp cpu=a,memory=b,pids=c", "u cpu=a,memory=b"]),
        // `%` alone goes on with the line above, `%:` with the user above
        (
            "u cpu a\n%:cp cpu b\n% pids c\n%:mv cpu d\n",
            vec!["u:cp cpu=a,cpu=b,pids=c", "u:mv cpu=a,cpu=d", "u cpu=a"],
        ),
        ("u:cp cpu a\n%:mv cpu b\n% pids c\n", vec!["u:cp cpu=a", "u:mv cpu=b,pids=c"]),
        ("u cpu a\n%:* memory b\n", vec!["u cpu=a,memory=b"]),
        ("u cpu a\n%:/usr/bin/x* cpu b ignore\n", vec!["u:/usr/bin/x* cpu=a,cpu=b ignore", "u cpu=a"]),
        ("u cpu a ignore\n%:cp cpu b\n* cpu c\n", vec!["u:cp cpu=a,cpu=b", "u cpu=a ignore", "* cpu=c"]),
    ] {
        assert_eq!(in_order(text), rules, "{text}");
    }
    for text in ["%:rm cpu a\n", "u cpu a\n%rm cpu a\n", "u cpu a\n%:a*b cpu a\n"] {
        assert!(said(&[("cgrules.conf", text)]).0.desired.is_none(), "{text}");
    }
}

/// A guide has the two lines of the first text: the second never held, and nothing said so.
#[test]
fn a_rule_that_takes_no_process_is_named() {
    let dead = |text: &str| {
        let (reading, text) = said(&[("cgrules.conf", text)]);
        assert!(reading.desired.is_some(), "{text}");
        let dead =
            reading.diagnostics.iter().filter(|one| one.message.starts_with("this rule takes no process"));
        dead.map(|one| (one.origin.as_ref().unwrap().line, one.also[0].0.line)).collect::<Vec<_>>()
    };
    for (text, lines) in [
        ("oracle cpu,memory db\noracle blkio /iothrottle\n", vec![(2, 1)]),
        ("* * a\noracle * b\n@dba:x * c\n", vec![(2, 1), (3, 1)]),
        ("u:ora* cpu a\nu:oracle cpu b\nu:/bin/oracle cpu c\nu:ora_* cpu d\n", vec![(2, 1), (4, 1)]),
        ("u cpu a ignore\nu:x cpu b\n", vec![(2, 1)]),
        // these take someone
        ("u:x cpu a\nu cpu b\n* cpu c\n", vec![]),
        ("u:x cpu a\nu:y cpu b\n@u:x cpu c\nv:x cpu c\n", vec![]),
        ("u cpu a\n% memory b\n%:x cpu c\n", vec![]),
    ] {
        assert_eq!(dead(text), lines, "{text}");
    }
    let conditions = "rules = [{ user = \"u\", parent = \"x\", to = \"a\" }, { user = \"u\", unit = \"y\", parent = \"x\", to = \"b\" },\n\
                      { user = \"u\", unit = \"y\", to = \"c\" }]\n";
    let (reading, text) = said(&[("layout.toml", conditions)]);
    let dead = reading.diagnostics.iter().filter(|one| one.message.starts_with("this rule takes no process"));
    assert_eq!(dead.count(), 1, "{text}");
}

#[test]
fn a_comma_too_many_is_none() {
    assert_eq!(
        in_order("u cpu,memory, a\nv ,cpu,,pids b ignore,\n"),
        ["u cpu+memory=a", "v cpu+pids=b ignore"]
    );
    assert!(said(&[("cgrules.conf", "u , a\n")]).0.desired.is_none());
}

#[test]
fn the_grammar_is_told_by_name_and_else_by_text() {
    for (name, text, expected) in [
        ("/etc/cgconfig.conf", "", Grammar::Cgconfig),
        ("/etc/cgconfig.d/a.conf", "", Grammar::Cgconfig),
        ("/etc/cgrules.conf", "", Grammar::Cgrules),
        ("cgrules.d/b.conf", "", Grammar::Cgrules),
        ("cgconfig.toml", "", Grammar::Toml),
        ("x", "# c\n\ngroup a { }", Grammar::Cgconfig),
        ("x", "mount{\n", Grammar::Cgconfig),
        ("x", "group a\n{\n", Grammar::Cgconfig),
        ("x", "group . {\n cpu { }\n}\n", Grammar::Cgconfig),
        ("x", "group .\n{ cpu { cpu.shares = 5; } }\n", Grammar::Cgconfig),
        ("x", "group / {cpu {cpu.shares = 5;}}", Grammar::Cgconfig),
        ("x", "template . { cpu { cpu.shares = 5; } }", Grammar::Cgconfig),
        ("x", "mount . cpu = 1", Grammar::Toml),
        ("x", "oracle\tcpu\tdb/oltp1\n", Grammar::Cgrules),
        ("x", "*:ora cpu,memory db ignore", Grammar::Cgrules),
        ("x", "[groups.a]\n", Grammar::Toml),
        ("x", "groups.a.cpus = 1\n", Grammar::Toml),
        ("x", "systemd = { slice = \"a\" }", Grammar::Toml),
        ("x", "systemd.slice = \"a\"", Grammar::Toml),
        ("x", "", Grammar::Toml),
    ] {
        assert_eq!(Grammar::of(&Source::new(name, text)), expected, "{name}: {text:?}");
    }
}

#[test]
fn mount_options_beside_a_controller_are_no_controllers() {
    let desired = desired(
        "cgconfig.conf",
        "mount { \"cpu,cpuacct,nodev,nosuid,noexec\" = /mnt/cpu; \"name=a,b\" = /mnt/ab; }",
    );
    let mounts: Vec<String> =
        desired.mounts.iter().map(|mount| format!("{}={}", mount.subsystem, mount.path)).collect();
    assert_eq!(mounts, ["cpu=/mnt/cpu", "cpuacct=/mnt/cpu", "name=a,b=/mnt/ab"]);
    let (reading, text) = said(&[("cgconfig.conf", "mount { \"cpu,xattr\" = /mnt/cpu; }")]);
    assert_eq!(reading.desired.unwrap().mounts.len(), 1);
    assert!(text.starts_with("warning: the mount option 'xattr' is left out"), "{text}");
}

#[test]
fn defaults_do_not_hold_for_templates() {
    let desired = cgconfig(
        "default { perm { task { gid = users; } admin { gid = users; } } } template a/%u { cpu {} } group b { cpu {} }",
    );
    let owner = |demands: &layout::Demands| demands.tasks.as_ref().unwrap().value.group.clone();
    assert_eq!(owner(&desired.templates[0].demands), Some(Account::Id(0)), "as the kernel makes it");
    assert_eq!(owner(&desired.groups[0].demands), Account::new("users"));
}

#[test]
fn several_systemd_sections_are_kept() {
    let desired =
        cgconfig("systemd { slice = a.slice; } systemd { slice = b.slice; scope = b.scope; pid = 17; }");
    assert_eq!(desired.systemd.len(), 2);
    assert_eq!(desired.systemd[1].value.pid.map(|pid| pid.0), Some(17));
}
