//! Compiled rules against the rules as they are said, on random rules and processes.

use classify::{Decision, KnownProcess, Names, Rules};
use layout::{
    Account, Condition, Controllers, Glob, Matcher, NamePattern, Origin, Process, Rule, Target, Who,
};
use proptest::prelude::*;

use crate::someone::{Town, someone};

fn account(names: &'static [&'static str]) -> impl Strategy<Value = Account> {
    proptest::sample::select(names).prop_map(|name| Account::new(name).unwrap())
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        Just(Who::Anyone),
        account(&["root", "oracle", "peter", "ann", "1001", "77", "nosuch"]).prop_map(Who::User),
        account(&["dba", "wheel", "2001", "88", "nosuch"]).prop_map(Who::GroupMember),
    ]
}

const PROGRAMS: [&str; 6] =
    ["/u02/bin/cp", "/u03/bin/cp", "/u01/bin/oracle", "/u01/bin/ora_pmon", "sh", "/opt/my prog"];

fn process() -> impl Strategy<Value = Process> {
    let texts = [
        "/u02/bin/cp",
        "cp",
        "ora*",
        "ora_*",
        "/u01/*",
        "oracle",
        "*/bin/*",
        "my*",
        "m*g",
        "/u01/*/oracle",
        "nothing",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(|text| Process::pattern(text).unwrap())
}

fn matcher() -> impl Strategy<Value = Matcher> {
    let simple = (who(), proptest::option::of(process())).prop_map(|(who, process)| Matcher {
        who,
        process,
        also: Vec::new(),
        strict: false,
        origin: Origin::outside_files(""),
    });
    simple.prop_recursive(3, 12, 3, |inner| {
        let condition = prop_oneof![
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Condition::Any),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Condition::Not),
            process().prop_map(Condition::Parent),
            process().prop_map(Condition::Ancestor),
            proptest::sample::select(vec!["batch/*", "x"])
                .prop_map(|glob| Condition::Present(Glob::new(glob).unwrap())),
        ];
        (inner, proptest::collection::vec(condition, 0..3))
            .prop_map(|(matcher, also)| Matcher { also, ..matcher })
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    (matcher(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2)).prop_map(
        |(matcher, ignore, ignore_rt)| {
            let origin = Origin::outside_files("");
            let target = Target {
                controllers: Controllers::All,
                group: NamePattern::new("a/%u").unwrap(),
                within: None,
                origin,
            };
            Rule { matcher, targets: vec![target], ignore, ignore_rt }
        },
    )
}

fn known() -> impl Strategy<Value = KnownProcess> {
    let uids = proptest::sample::select(vec![0, 1001, 1002, 1003, 77]);
    let gids = proptest::sample::select(vec![0, 100, 2001, 2002, 88]);
    let groups = proptest::collection::vec(proptest::sample::select(vec![2001, 2002, 5]), 0..3);
    let programs = || proptest::sample::select(PROGRAMS.to_vec());
    (uids, gids, groups, programs(), programs(), any::<bool>()).prop_map(
        |(uid, gid, groups, program, parent, realtime)| {
            let mut known = KnownProcess { groups, realtime, ..someone(uid, gid, program) };
            known.relatives[0].1.program = parent.as_bytes().to_vec();
            known
        },
    )
}

/// `None`: an account is not known, and nothing that names it is to count.
fn takes(matcher: &Matcher, process: &KnownProcess) -> Option<bool> {
    let number = |account: &Account, group: bool| match account {
        Account::Id(number) => Some(*number),
        Account::Name(name) if group => Town.group(name).ok(),
        Account::Name(name) => Town.user(name).ok(),
    };
    let (uid, gid) = (process.status.uid, process.status.gid);
    let who = match &matcher.who {
        Who::Anyone => true,
        Who::User(account) => uid == number(account, false)?,
        Who::GroupMember(account) => {
            let requested = number(account, true)?;
            gid == requested
                || process.groups.contains(&requested)
                || Town.members(&requested.to_string()).contains(&uid)
        }
    };
    let program = matcher.process.as_ref().is_none_or(|requested| runs(requested, &process.program));
    let also: Option<Vec<bool>> = matcher.also.iter().map(|condition| holds(condition, process)).collect();
    Some(also?.iter().all(|holds| *holds) && who && program)
}

fn holds(condition: &Condition, process: &KnownProcess) -> Option<bool> {
    let all = |inner: &[Matcher]| {
        inner.iter().map(|matcher| takes(matcher, process)).collect::<Option<Vec<bool>>>()
    };
    Some(match condition {
        Condition::Any(inner) => all(inner)?.contains(&true),
        Condition::Not(inner) => !all(inner)?.contains(&true),
        Condition::Parent(requested) => runs(requested, &process.relatives[0].1.program),
        Condition::Ancestor(requested) => {
            process.relatives.iter().any(|(_, relative)| runs(requested, &relative.program))
        }
        Condition::Present(glob) => glob.as_str() == "batch/*",
        other => panic!("not made here: {other:?}"),
    })
}

fn runs(requested: &Process, program: &[u8]) -> bool {
    let whole = std::str::from_utf8(program).unwrap();
    let name = whole.rsplit('/').next().unwrap();
    match requested.to_string().as_str() {
        "/u02/bin/cp" => whole == "/u02/bin/cp",
        "cp" => name == "cp",
        "ora*" => name.starts_with("ora"),
        "ora_*" => name.starts_with("ora_"),
        "/u01/*" => whole.starts_with("/u01/"),
        "oracle" => name == "oracle",
        "*/bin/*" => whole.contains("/bin/"),
        "my*" => name.starts_with("my"),
        "m*g" => name.len() > 1 && name.starts_with('m') && name.ends_with('g'),
        "/u01/*/oracle" => whole.starts_with("/u01/") && whole.ends_with("/oracle"),
        "nothing" => false,
        other => panic!("not made here: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn compiled_rules_take_whom_the_rules_as_said_take(rules in proptest::collection::vec(rule(), 0..8), process in known()) {
        let (compiled, unknown) = Rules::compile(&rules, &Town);
        let first = rules.iter().position(|rule| takes(&rule.matcher, &process) == Some(true));
        let expected = match first {
            None => Decision::NoRule,
            Some(rule) if rules[rule].ignore || (rules[rule].ignore_rt && process.realtime) => Decision::Ignored { rule },
            Some(rule) => Decision::To { rule },
        };
        let decision = compiled.decide(&mut process.clone()).unwrap();
        prop_assert_eq!(decision, expected);
        for (index, rule) in rules.iter().enumerate() {
            let told = unknown.iter().any(|unknown| unknown.rule == index);
            prop_assert_eq!(told, takes(&rule.matcher, &process).is_none());
        }
        let explained = compiled.explain(&mut process.clone()).unwrap();
        prop_assert_eq!(explained.decision, decision);
        let passed: Vec<usize> = explained.passed.iter().map(|passed| passed.rule).collect();
        prop_assert_eq!(passed, (0..first.unwrap_or(rules.len())).collect::<Vec<_>>());
        prop_assert!(explained.passed.iter().all(|passed| !passed.why.is_empty()));
    }
}
