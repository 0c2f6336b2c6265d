//! What each way of saying who is meant takes, and where it leads.

use classify::{Decision, Facts, KnownProcess, Miss, Rules};
use layout::Controllers;
use system::{NoProcess, Status};

use crate::someone::{Town, cgrules, read, rules, someone};

fn to(rule: usize) -> Decision {
    Decision::To { rule }
}

#[test]
fn users_groups_and_programs_of_cgrules_take_whom_libcgroup_takes() {
    let oracle = || someone(1001, 2001, "/u01/bin/oracle");
    let script = || someone(1002, 100, "/home/peter/backup.sh");
    for (line, process, takes) in [
        ("oracle * db", oracle(), true),
        ("1001 * db", oracle(), true),
        ("peter * db", oracle(), false),
        ("* * db", script(), true),
        // primary group, listed in the group, and supplementary
        ("@dba * db", oracle(), true),
        ("@dba * db", script(), true),
        ("@dba * db", someone(1003, 100, "/bin/sh"), false),
        ("@dba * db", KnownProcess { groups: vec![5, 2001], ..someone(1003, 100, "/bin/sh") }, true),
        ("@2001 * db", oracle(), true),
        ("@wheel * db", someone(1003, 100, "/bin/sh"), true),
        ("@wheel * db", oracle(), false),
        // a user's number that is a group's is no member
        ("@dba * db", someone(2001, 100, "/bin/sh"), false),
        // full path, base name, prefix
        ("oracle:/u01/bin/oracle * db", oracle(), true),
        ("oracle:/u01/bin/orac * db", oracle(), false),
        ("oracle:oracle * db", oracle(), true),
        ("oracle:racle * db", oracle(), false),
        ("oracle:ora* * db", oracle(), true),
        ("oracle:/u01/* * db", oracle(), true),
        ("oracle:bin* * db", oracle(), false),
        ("peter:ora* * db", oracle(), false),
        ("*:backup.sh * db", script(), true),
        ("*:/home/peter/backup.sh * db", script(), true),
        ("*:\"my prog\" * db", someone(0, 0, "/opt/my prog"), true),
        ("*:\"/opt/my prog\" * db", someone(0, 0, "/opt/my prog"), true),
        ("*:\"my *\" * db", someone(0, 0, "/opt/my prog"), true),
        ("*:* * db", script(), true),
    ] {
        let mut process = process;
        let decision = cgrules(line).decide(&mut process).unwrap();
        assert_eq!(decision, if takes { to(0) } else { Decision::NoRule }, "{line}");
    }
}

#[test]
fn the_first_rule_that_fits_counts() {
    let rules = cgrules("peter:cp * a\n@dba * b\npeter * c\n* * d\n");
    for (process, rule) in [
        (someone(1002, 100, "/bin/cp"), 0),
        (someone(1002, 100, "/bin/mv"), 1),
        (someone(1001, 2001, "/bin/cp"), 1),
        (someone(1003, 100, "/bin/cp"), 3),
    ] {
        let mut process = process;
        assert_eq!(rules.decide(&mut process), Ok(to(rule)), "{process:?}");
    }
}

#[test]
fn lines_with_a_per_cent_sign_belong_to_the_line_above() {
    let rules = cgrules("peter cpu a\n% memory,io b/%u\nann * c\n");
    assert_eq!(rules.len(), 2);
    let goals = rules.goals(0, &mut someone(1002, 100, "/bin/sh"), &Town).unwrap();
    let shown: Vec<String> = goals.iter().map(|goal| goal.group.to_string()).collect();
    assert_eq!(shown, ["a", "b/peter"]);
    assert!(matches!(&goals[1].controllers, Controllers::These(these) if these.len() == 2));
}

#[test]
fn all_codes_are_filled_in_and_names_can_lead_nowhere_else() {
    for (pattern, process, group) in [
        ("s/%u-%U", someone(1002, 2001, "/bin/sh"), "s/peter-1002"),
        ("s/%g-%G", someone(1002, 2001, "/bin/sh"), "s/dba-2001"),
        ("s/%u-%g", someone(77, 88, "/bin/sh"), "s/77-88"),
        ("s/%p-%P", someone(0, 0, "/opt/x y"), "s/x y-4711"),
        ("s/%p", someone(0, 0, ""), "s/4711"),
        ("s/%p", someone(0, 0, "/home/.."), "s/_"),
        ("s/%p", someone(0, 0, "a\nb"), "s/a_b"),
        ("/%u", someone(1001, 0, "/bin/sh"), "oracle"),
        ("a\\%u", someone(1001, 0, "/bin/sh"), "a%u"),
    ] {
        let rules = cgrules(&format!("* * \"{pattern}\"\n"));
        let mut process = process;
        let goals = rules.goals(0, &mut process, &Town).unwrap();
        assert_eq!(goals[0].group.to_string(), group, "{pattern}");
    }
    let rules = cgrules("* * %p\n");
    // nobody evades the rule by a program's name that no group can have
    let goals = rules.goals(0, &mut someone(0, 0, "/tmp/cgroup.procs"), &Town).unwrap();
    assert_eq!(goals[0].group.to_string(), "cgroup_procs_");
}

#[test]
fn ignored_processes_stay_and_no_further_rule_is_looked_at() {
    let rules = cgrules("*:sshd * x ignore\n*:rt * y ignore_rt\n* * z\n");
    let realtime = |program: &str| KnownProcess { realtime: true, ..someone(0, 0, program) };
    for (process, decision) in [
        (someone(0, 0, "/sbin/sshd"), Decision::Ignored { rule: 0 }),
        (realtime("/sbin/sshd"), Decision::Ignored { rule: 0 }),
        (realtime("/bin/rt"), Decision::Ignored { rule: 1 }),
        (someone(0, 0, "/bin/rt"), to(1)),
        (realtime("/bin/sh"), to(2)),
    ] {
        let mut process = process;
        assert_eq!(rules.decide(&mut process), Ok(decision), "{process:?}");
    }
}

#[test]
fn the_kernels_own_threads_are_never_classified() {
    let status = Status { kernel_thread: true, ..someone(0, 0, "").status };
    let mut thread = KnownProcess { status, ..someone(0, 0, "kworker/0:1") };
    let rules = cgrules("* * x\n");
    assert_eq!(rules.decide(&mut thread), Ok(Decision::KernelThread));
    assert_eq!(rules.explain(&mut thread).unwrap().decision, Decision::KernelThread);
}

#[test]
fn a_rule_with_an_unknown_account_takes_nobody_and_is_told() {
    let desired = read(
        "layout.toml",
        "[[rules]]\nuser = \"nosuch\"\nto = \"a\"\n[[rules]]\nnot = { user = \"nosuch\" }\nto = \"b\"\n[[rules]]\nuser = \"*\"\nto = \"c\"\n",
    );
    let (rules, unknown) = Rules::compile(&desired.all_rules(), &Town);
    assert_eq!(unknown.iter().map(|unknown| unknown.rule).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(unknown[0].to_string(), "there is no user 'nosuch'; the rule takes no process");
    assert_eq!(unknown[0].origin.line, 1);
    let explained = rules.explain(&mut someone(0, 0, "/bin/sh")).unwrap();
    assert_eq!(explained.decision, to(2), "also not what is 'not' of an unknown user");
    assert!(explained.passed.iter().all(|passed| passed.miss == Miss::Unknown));
}

#[test]
fn conditions_of_our_own_layouts_hold_or_not() {
    let someone = || someone(1001, 2001, "/u01/bin/oracle");
    for (condition, holds) in [
        ("process = \"/u01/*/ora*\"", true),
        ("process = \"/u01/*/pg*\"", false),
        ("process = \"o*cle\"", true),
        ("command = \"-D /data$\"", true),
        ("command = \"^oracle\"", false),
        ("parent = \"make\"", true),
        ("parent = \"bash\"", false),
        ("ancestor = \"/usr/sbin/sshd\"", true),
        ("ancestor = \"ssh*\"", true),
        ("ancestor = \"cron\"", false),
        ("session = \"bash\"", true),
        ("session = \"zsh\"", false),
        ("unit = \"pg@*.service\"", true),
        ("unit = \"pg\"", false),
        ("container = \"*\"", false),
        ("in = \"batch/*\"", true),
        ("in = \"/batch/night\"", true),
        ("in = \"batch\"", false),
        // the first of two counts, as for getenv
        ("environment = { ORACLE_SID = \"prod*\" }", true),
        ("environment = { ORACLE_SID = \"test\" }", false),
        ("environment = { ORACLE_SID = \"prod*\", HOME = \"/root\" }", false),
        ("environment = { ORACLE = \"*\" }", false),
        ("any = [{ user = \"peter\" }, { parent = \"make\" }]", true),
        ("any = [{ user = \"peter\" }, { parent = \"bash\" }]", false),
        ("not = { user = \"peter\" }", true),
        ("not = [{ user = \"peter\" }, { user = \"oracle\" }]", false),
        ("not = { user = \"oracle\", process = \"x\" }", true),
        ("user = \"oracle\"\nparent = \"make\"\nnot = { any = [{ unit = \"cron.service\" }] }", true),
        ("user = \"peter\"\nparent = \"make\"", false),
    ] {
        let rules = rules("layout.toml", &format!("[[rules]]\n{condition}\nto = \"x\"\n"));
        let decision = rules.decide(&mut someone()).unwrap();
        assert_eq!(decision, if holds { to(0) } else { Decision::NoRule }, "{condition}");
    }
}

#[test]
fn a_hidden_environment_and_relatives_that_ended_fit_nothing() {
    let rules = rules(
        "layout.toml",
        "[[rules]]\nenvironment = { HOME = \"*\" }\nto = \"x\"\n[[rules]]\nancestor = \"*h*\"\nto = \"x\"\n[[rules]]\nsession = \"bash\"\nto = \"x\"\n",
    );
    let mut process = KnownProcess { environment: None, relatives: Vec::new(), ..someone(1, 1, "/bin/x") };
    assert_eq!(rules.decide(&mut process), Ok(Decision::NoRule));
}

#[test]
fn a_chain_of_parents_without_end_ends() {
    let rules = rules("layout.toml", "[[rules]]\nancestor = \"cron\"\nto = \"x\"\n");
    let mut process = someone(1, 1, "/bin/x");
    process.relatives[2].1.parent = 300;
    assert_eq!(rules.decide(&mut process), Ok(Decision::NoRule));
}

#[test]
fn a_session_leader_is_its_own() {
    let rules = rules("layout.toml", "[[rules]]\nsession = \"x\"\nto = \"x\"\n");
    let mut process = KnownProcess { session: 4711, ..someone(1, 1, "/bin/x") };
    assert_eq!(rules.decide(&mut process), Ok(to(0)));
}

#[test]
fn every_rule_that_passed_by_says_why() {
    let rules = rules(
        "layout.toml",
        r#"
rules = [
  { user = "peter", to = "a" },
  { group = "wheel", to = "b" },
  { user = "oracle", process = "/bin/sh", to = "c" },
  { parent = "cron", to = "d" },
  { command = "nothing", to = "e" },
  { not = { user = "oracle" }, to = "f" },
  { user = 1001, to = "g" },
]"#,
    );
    let explained = rules.explain(&mut someone(1001, 2001, "/u01/bin/oracle")).unwrap();
    let why: Vec<&str> = explained.passed.iter().map(|passed| passed.why.as_str()).collect();
    let expected = [
        "its user is 1001, not peter (1002)",
        "its user 1001 is not in group wheel (2002)",
        "its program is /u01/bin/oracle, not /bin/sh",
        "its parent does not run cron",
        "its command line does not hold 'nothing'",
        "one of 'not' fits",
    ];
    assert_eq!(why, expected);
    assert_eq!(explained.decision, to(6));
    assert_eq!(rules.shown(2), "oracle:/bin/sh");
}

/// Counts what is asked of it.
struct Counted {
    known: KnownProcess,
    requested: Vec<&'static str>,
}

impl Facts for Counted {
    fn pid(&self) -> u32 {
        self.known.pid
    }
    fn status(&mut self) -> Result<Status, NoProcess> {
        Ok(self.known.status)
    }
    fn groups(&mut self) -> Result<&[u32], NoProcess> {
        self.known.groups()
    }
    fn program(&mut self) -> Result<system::Program<'_>, NoProcess> {
        self.requested.push("program");
        self.known.program()
    }
    fn realtime(&mut self) -> Result<bool, NoProcess> {
        self.requested.push("realtime");
        self.known.realtime()
    }
    fn command(&mut self) -> Result<&[u8], NoProcess> {
        self.requested.push("command");
        self.known.command()
    }
    fn environment(&mut self) -> Result<Option<&[u8]>, NoProcess> {
        self.requested.push("environment");
        self.known.environment()
    }
    fn control_groups(&mut self) -> Result<&[u8], NoProcess> {
        self.requested.push("control groups");
        self.known.control_groups()
    }
    fn session(&mut self) -> Result<u32, NoProcess> {
        self.requested.push("session");
        self.known.session()
    }
    fn relative(&mut self, pid: u32) -> Result<classify::Relative, NoProcess> {
        self.requested.push("relative");
        self.known.relative(pid)
    }
}

#[test]
fn a_rule_by_user_reads_nothing_but_the_status() {
    let rules = cgrules("peter:cp * a\n@dba:mv * b\noracle * c\n");
    let mut process = Counted { known: someone(1001, 100, "/bin/cp"), requested: Vec::new() };
    assert_eq!(rules.decide(&mut process), Ok(to(2)));
    assert_eq!(process.requested, Vec::<&str>::new());
    let rules = self::rules(
        "layout.toml",
        "[[rules]]\nuser = \"peter\"\ncommand = \"x\"\nto = \"a\"\n[[rules]]\nprocess = \"mv\"\nenvironment = { A = \"b\" }\nto = \"a\"\n",
    );
    assert_eq!(rules.decide(&mut process), Ok(Decision::NoRule));
    assert_eq!(process.requested, ["program"], "nothing behind the first part that does not fit");
}
