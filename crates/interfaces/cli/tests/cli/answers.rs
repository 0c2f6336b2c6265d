//! `--json` of every command: a row for each that the manual has, so that a new one is missing here. What docs/json.md
//! says of names and numbers is compared with the answers.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::{
    desk::{Desk, says},
    documents::root,
    world::{Need, World},
};

/// What is on standard output.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    /// One document, and the exit status is one of these.
    Json(&'static [i32]),
    /// A document in the first line, from a command that goes on.
    FirstLine,
    /// An error that names the text's own format.
    Refused,
    /// An error like every command's; what it prints else is not its own.
    Error,
}

const DONE: Is = Is::Json(&[0]);

const LAYOUT: &str = "[groups.{g}]\npids.max = 50\n[[schedule]]\nname = \"night\"\nat = \"22:00 UTC\"\nuntil = \"06:00\"\n\
                      groups.'{g}'.pids.max = 40\n";

/// In an order in which each finds what it needs.
const ROWS: &[(&str, &str, Is)] = &[
    ("create", "create --json {g}-rt", DONE),
    ("list", "list --json {g}", DONE),
    ("set", "set --json {g} pids.max=100", DONE),
    ("get", "get --json {g} pids.max", DONE),
    ("stat", "stat --json {g}", DONE),
    ("move", "move --json {g} {pid}", DONE),
    ("where", "where --json {pid}", DONE),
    ("classify", "classify --json --dry-run --rules {d}/rules.toml {pid}", DONE),
    ("freeze", "freeze --json {g}-rt", Is::Json(&[0, 1])),
    ("thaw", "thaw --json {g}-rt", Is::Json(&[0, 1])),
    ("watch", "watch --json --once {g}", DONE),
    ("top", "top --json --once {g}", DONE),
    ("why", "why --json {g} --for 100ms", DONE),
    ("record", "record --json {g} --count 1 --directory {d}/log", DONE),
    ("dump", "dump --json --directory {d}/log", DONE),
    ("fields", "fields --json cpu.usage", DONE),
    ("isolate-check", "isolate check --json 0 --for 100ms --no-probe", DONE),
    ("doctor", "doctor --json", Is::Json(&[0, 3])),
    ("topology", "topology --json", DONE),
    ("settings", "settings --json memory.max", DONE),
    ("mount", "mount --json nothing", Is::Json(&[1, 2])),
    ("umount", "umount --json nothing", Is::Json(&[1, 2])),
    ("kill", "kill --json {g}", DONE),
    ("delete", "delete --json {g}-rt", DONE),
    ("check", "check --json {d}/l.toml", DONE),
    ("import", "import --json {d}/cgconfig.conf", DONE),
    ("export", "export --json {d}/l.toml --to cgset", DONE),
    ("schema", "schema --json experiment", DONE),
    ("plan", "plan --json {d}/l.toml {s}", DONE),
    ("apply", "apply --json {d}/l.toml {s} --confirm 60s", DONE),
    ("confirm", "confirm --json {s}", DONE),
    ("status", "status --json {s}", DONE),
    ("schedule", "schedule --json {d}/l.toml {s}", DONE),
    ("history", "history --json {s}", DONE),
    ("undo", "undo --json {s}", DONE),
    ("shield", "shield --json 9999 {s}", Is::Json(&[1, 2])),
    ("unshield", "unshield --json {s}", Is::Json(&[1])),
    ("elastic", "elastic --json {s}", Is::Json(&[1])),
    ("pause", "pause --json {s}", DONE),
    ("resume", "resume --json {s}", DONE),
    ("simulate", "simulate --json {d}/none.toml", Is::Json(&[1, 2])),
    ("reload", "reload --json --socket {d}/none", Is::Json(&[1])),
    ("lab-list", "lab list --json", DONE),
    ("lab-show", "lab show --json aa", DONE),
    ("lab-check", "lab check --json aa", DONE),
    ("lab-run", "lab run --json {d}/none.toml", Is::Json(&[1, 2])),
    ("lab-report", "lab report --json {d}/none", Is::Json(&[1])),
    ("lab-compare", "lab compare --json {d}/none {d}/none", Is::Json(&[1])),
    ("lab-clean", "lab clean --json", DONE),
    ("links", "links --json {d}/links", DONE),
    ("man", "man --json {d}/pages", DONE),
    ("web", "web --json", Is::FirstLine),
    ("metrics", "metrics --json {g}", Is::Refused),
    ("perf", "perf --json {g} -- cycles", Is::Refused),
    ("completions", "completions --json bash", Is::Refused),
    ("run", "run --json {g}-none -- /bin/true", Is::Error),
    ("daemon", "daemon --json --layout {d}/none.toml {s} --no-socket", Is::Error),
];

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const CASES: &[Case] = &[
    ("E4: every command answers as JSON, or says that it does not", &[Need::Usual, Need::Sources], every),
    ("E4: a mistake names what is missing", &[], mistakes),
    ("E4: a number is one everywhere", &[Need::On("pids")], numbers),
    ("E4: steps are a list, their count is named so, moments are RFC 3339", &[Need::On("pids")], names),
    ("E4: the history names what stands for a copy", &[Need::On("pids")], copies),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, needs, case): &Case| {
        let (lacks, world) = (world.lacks(needs), world.clone());
        suite::trial(format!("answers: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// The commands that have none below them, as the manual has them.
fn commands(desk: &Desk) -> BTreeSet<String> {
    let pages = desk.json("man --json {d}/all", 0);
    let names = pages["pages"].as_array().unwrap().iter().filter_map(|path| {
        let name = path.as_str().unwrap().rsplit('/').next().unwrap().strip_suffix(".1")?;
        Some(name.strip_prefix("ringfence-")?.to_owned())
    });
    let all: BTreeSet<String> = names.collect();
    let has_below = |name: &String| all.iter().any(|other| other.starts_with(&format!("{name}-")));
    all.iter().filter(|name| !has_below(name)).cloned().collect()
}

fn every(desk: &mut Desk) {
    let rows: BTreeSet<String> = ROWS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(rows, commands(desk));
    desk.scene.ok("create {g}");
    desk.scene.start("{pid}", &["sleep", "60"]);
    desk.write("l.toml", LAYOUT);
    desk.write("rules.toml", "[groups.{g}]\nmatch = [{ command = \"sleep\" }]\n");
    desk.write("cgconfig.conf", "group db {\n\tcpu {\n\t\tcpu.shares = 100;\n\t}\n}\n");
    let page = fs::read_to_string(root().join("docs/json.md")).unwrap();
    for (name, line, is) in ROWS {
        let exception = page.contains(&format!("| `{}` |", name.replace('-', " ")));
        assert_eq!(exception, matches!(is, Is::Refused | Is::Error), "docs/json.md: {name}");
        if *is == Is::FirstLine {
            first_line(desk, line);
            continue;
        }
        let (code, out, error) = desk.run(line);
        let answer: Value = serde_json::from_str(&out)
            .unwrap_or_else(|wrong| panic!("{line}: {wrong}: {code}\n{out}{error}"));
        match is {
            Is::Json(codes) => assert!(codes.contains(&code), "{line}: {code}: {error}"),
            Is::Refused => {
                assert_eq!(code, 2, "{line}: {error}");
                says(answer["error"]["message"].as_str().unwrap(), &["no JSON form"]);
            }
            Is::Error | Is::FirstLine => assert!(code != 0, "{line}: {error}"),
        }
        assert_eq!(answer["error"].is_object(), ![0, 3].contains(&code), "{line}: {answer:#}");
    }
}

fn first_line(desk: &Desk, line: &str) {
    let mut child = desk.spawn(line);
    let mut text = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut text).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"));
    assert!(answer.is_object(), "{answer}");
}

fn mistakes(desk: &mut Desk) {
    for (line, missing) in [
        ("get --json", "<GROUP>"),
        ("move --json", "<GROUP> <PID>..."),
        ("run --json", "<GROUP> <COMMAND>..."),
    ] {
        let message = desk.json(line, 2)["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(message, format!("the following required arguments were not provided: {missing}"));
    }
    let unknown = desk.json("get --json --wrong x", 2)["error"]["message"].clone();
    assert_eq!(unknown, "unexpected argument '--wrong' found");
    for line in ["topology --json --format svg", "plan --json --as cgset"] {
        says(desk.json(line, 2)["error"]["message"].as_str().unwrap(), &["cannot be used with"]);
    }
}

fn numbers(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    let values =
        |applied: Value, now: Value| json!([{ "setting": "pids.max", "applied": applied, "now": now }]);
    assert_eq!(desk.json("status --json {s}", 0)["groups"][0]["values"], values(json!(100), json!(100)));
    assert_eq!(desk.json("get --json {g} pids.max", 0)["settings"][0]["value"], 100);
    // by no generation, so that it is drift
    assert_eq!(desk.json("set --json {g} pids.max=max {s}", 0)["changes"][0]["requested"], "max");
    assert_eq!(desk.json("status --json {s}", 3)["groups"][0]["values"], values(json!(100), json!("max")));
}

fn names(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\n");
    let steps = desk.json("plan --json {d}/l.toml {s}", 0)["steps"].as_array().unwrap().len();
    let applied = desk.json("apply --json {d}/l.toml {s}", 0);
    assert_eq!((&applied["step_count"], &applied["steps"]), (&json!(steps), &Value::Null));
    let history = desk.json("history --json {s}", 0);
    assert_eq!(history[0]["head"]["step_count"], steps);
    assert!(history[0]["head"]["steps"].is_null() && history[0]["steps"].is_null(), "{history:#}");
    let at = history[0]["head"]["at"].as_str().unwrap();
    assert!(at.ends_with('Z') && at.as_bytes()[10] == b'T', "{at}");
    // as docs/recipes/undo.md says: the file, what was written, what was there before
    desk.ends("set {g} pids.max=90 {s}", 0);
    desk.write("m.toml", "[groups.{g}]\npids.max = 80\n");
    desk.ends("apply {d}/m.toml {s}", 0);
    let history = desk.json("history --json 2 {s}", 0);
    let steps = history[0]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["file"] == "pids.max").unwrap();
    assert_eq!((&step["text"], &step["before"]), (&json!("80"), &json!({ "files": [["pids.max", "90"]] })));
    assert_eq!(desk.json("undo --json {s}", 0)["step_count"], steps.len());
}

fn copies(desk: &mut Desk) {
    desk.write("copy/layout.toml", "[groups.{g}]\npids.max = 100\n");
    desk.ends("apply --named /etc/ringfence {d}/copy {s}", 0);
    let history = desk.json("history --json {s}", 0);
    assert_eq!(history[0]["head"]["what"], "layout /etc/ringfence");
    assert_eq!(history[0]["head"]["file"], desk.path("copy").to_str().unwrap());
    let text = desk.ends("history {s}", 0);
    says(&text, &["  layout /etc/ringfence\n"]);
    assert!(!text.contains("copy"), "{text}");
}
