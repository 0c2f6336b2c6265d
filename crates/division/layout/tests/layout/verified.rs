//! Questions that only a machine answers: is it the right one, do the accounts exist.

use layout::{Accounts, HostFacts, Severity, Source};
use units::Bytes;

use super::desired;

#[test]
fn another_machine_is_refused_with_every_reason() {
    let text =
        "[host]\nhostname = \"db*\"\nmodel = \"x7560\"\nnodes = 4\ncpus = { min = 32 }\nmemory = \"128G\"\n";
    let host = desired("layout.toml", text).assertions;
    let right = HostFacts {
        hostname: Some("db17".to_owned()),
        model: Some("Intel(R) Xeon(R) CPU X7560 @ 2.27GHz".to_owned()),
        nodes: Some(4),
        cpus: Some(64),
        memory: Some(Bytes(126 << 30)),
    };
    assert!(host.refusals(&right).is_empty());
    assert!(host.refusals(&HostFacts::default()).is_empty(), "what is not known is not held against it");
    let wrong = HostFacts {
        hostname: Some("web1".to_owned()),
        model: Some("AMD EPYC".to_owned()),
        nodes: Some(2),
        cpus: Some(31),
        memory: Some(Bytes(64 << 30)),
    };
    let text = layout::render(&host.refusals(&wrong), &[Source::new("layout.toml", text)]);
    let expected = "\
error: this layout is for another machine: host name 'web1', expected 'db*'
 --> layout.toml:2:12
  |
2 | hostname = \"db*\"
  |            ^^^^^
hint: change the assertion if the machine is right

error: this layout is for another machine: CPU model 'AMD EPYC', expected 'x7560'
 --> layout.toml:3:9
  |
3 | model = \"x7560\"
  |         ^^^^^^^
hint: change the assertion if the machine is right

error: this layout is for another machine: NUMA nodes 2, expected 4
 --> layout.toml:4:9
  |
4 | nodes = 4
  |         ^
hint: change the assertion if the machine is right

error: this layout is for another machine: CPUs 31, expected at least 32
 --> layout.toml:5:8
  |
5 | cpus = { min = 32 }
  |        ^^^^^^^^^^^^
hint: change the assertion if the machine is right

error: this layout is for another machine: memory 64G, expected 117964M to 144180M
 --> layout.toml:6:10
  |
6 | memory = \"128G\"
  |          ^^^^^^
hint: change the assertion if the machine is right
";
    assert_eq!(text, expected);
}

struct System;

impl Accounts for System {
    fn is_user(&self, name: &str) -> bool {
        name == "oracle"
    }
    fn is_group(&self, name: &str) -> bool {
        name == "dba"
    }
    fn users(&self) -> Vec<String> {
        vec!["oracle".to_owned()]
    }
    fn groups(&self) -> Vec<String> {
        vec!["dba".to_owned()]
    }
}

#[test]
fn accounts_that_do_not_exist_are_told_each_at_its_place() {
    let text = "\
[defaults]
tasks = { user = \"oracel\", group = \"dba\" }
[groups.a]
match = [{ user = \"nobody1\" }, { group = \"dbas\" }, { user = 4711 }]
[groups.b]
admin = { user = \"oracle\", group = \"oracle\" }
[[rules]]
user = \"someone\"
to = \"a\"
[[rules]]
user = \"“someone”\"
to = \"a\"
";
    let desired = desired("layout.toml", text);
    let errors = desired.unknown_accounts(&System);
    let told: Vec<String> = errors
        .iter()
        .map(|error| {
            let origin = error.origin.as_ref().unwrap();
            let severity = if error.severity == Severity::Error { "error" } else { "warning" };
            format!(
                "{}:{} {severity}: {} ({})",
                origin.line,
                origin.column,
                error.message,
                error.hint.as_ref().unwrap()
            )
        })
        .collect();
    let expected = [
        "2:9 error: no user 'oracel' exists on this system (did you mean oracle?)",
        "6:9 error: no group 'oracle' exists on this system (getent group lists those that exist; to add it: groupadd oracle)",
        "4:10 warning: no user 'nobody1' exists on this system, so this takes nobody (getent passwd lists those that exist; to add it: useradd nobody1)",
        "4:32 warning: no group 'dbas' exists on this system, so this takes nobody (did you mean dba?)",
        "7:1 warning: no user 'someone' exists on this system, so this takes nobody (getent passwd lists those that exist; to add it: useradd someone)",
        "10:1 warning: no user '“someone”' exists on this system, so this takes nobody (write straight quotes (\") in place of typographic ones)",
    ];
    assert_eq!(told, expected);
}
