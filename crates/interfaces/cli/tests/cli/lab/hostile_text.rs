//! Text that another user chose in results and in experiment files: nothing that a terminal acts on gets to it, or into a
//! report.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use super::{Lab, files, text};

/// What a terminal, or who reads a line, is misled by.
const EVIL: &str = "\u{1b}]0;owned\u{7}\r\u{9b}2J\u{202e}";

fn acts(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t') || character == '\u{202e}'
}

/// Words that only have a meaning as they are.
const FIXED: [&str; 8] = ["driver", "kind", "better", "order", "verdict", "from", "rw", "script"];

/// Puts it into every text of results; returns the keys of those texts.
fn spoil(key: &str, value: &mut Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !FIXED.contains(&key) => {
            text.push_str(EVIL);
            keys.insert(key.to_owned());
        }
        Value::Array(all) => all.iter_mut().for_each(|one| spoil(key, one, keys)),
        Value::Object(all) => {
            // the keys of these are names, too
            let is_map = ["figures", "readings", "latencies", "group", "workload", "target"].contains(&key);
            let old = std::mem::take(all);
            for (name, mut value) in old {
                spoil(&name, &mut value, keys);
                all.insert(if is_map { name + EVIL } else { name }, value);
            }
        }
        _ => {}
    }
}

/// attack finding 12: 16 kinds of texts in results that another user made reached root's terminal as they were.
pub fn results(lab: &Lab) {
    lab.experiment(1);
    lab.ok("run small.toml --directory out");
    let path = lab.path("out/results.json");
    let mut results: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    results["comparisons"][0]["note"] = "a note".into();
    results["comparisons"][0]["published"] = serde_json::json!([1.5, "a source"]);
    results["cells"][0]["published"] = serde_json::json!([1.5, "a source"]);
    let all_rejected = serde_json::json!({ "kind": "all-rejected", "runs": 1, "last": "a reason" });
    results["cells"][0]["warnings"] = serde_json::json!([all_rejected]);
    results["runs"][0]["rejected"] = "a reason".into();
    let rescaled = serde_json::json!({ "kind": "rescaled-cpus", "study": "a", "here": "b", "plural": true });
    results["notes"] = serde_json::json!([rescaled]);
    let mut keys = BTreeSet::new();
    spoil("", &mut results, &mut keys);
    assert!(keys.len() >= 16, "{keys:?}");
    let spoiled = serde_json::to_vec(&results).unwrap();
    for line in
        ["report out", "compare out out", "run --resume out", "report out --json", "compare out out --json"]
    {
        // a resumed experiment writes results of its own
        fs::write(&path, &spoiled).unwrap();
        let output = lab.run(line);
        let is_json = line.ends_with("--json");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        // JSON is for programs: no control character is in it, marks of direction are what they are
        let found = said.chars().find(|one| acts(*one) && (!is_json || (*one as u32) < 32));
        assert_eq!(found, None, "{line}: {said:?}");
        // a refusal quotes one text, escaped by the reader of JSON, and shows none of the others
        assert!(
            line.starts_with("run") || output.status.success() && said.contains("owned"),
            "{line}: {said:?}"
        );
    }
    let written = files(&lab.path("out"));
    let is_drawn = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        ["csv", "md", "html", "svg"].contains(&end)
    };
    let drawn: Vec<_> = written.iter().filter(|(path, _)| is_drawn(path)).collect();
    assert!(drawn.len() >= 5, "{:?}", written.keys());
    for (path, bytes) in drawn {
        let found = text(bytes).chars().find(|one| one.is_control() && !matches!(one, '\n' | '\t'));
        assert_eq!(found, None, "{}", path.display());
    }
}

/// attack finding 12: what an experiment's file says where it is wrong.
pub fn mistakes(lab: &Lab) {
    lab.experiment(1);
    let right = fs::read_to_string(lab.path("small.toml")).unwrap();
    let escaped = r"\u001b]0;owned\u0007\r\u009b2J\u202e";
    for (what, wrong) in [
        ("a name", right.replace("[group.server]", &format!("[group.\"a{escaped}\"]"))),
        ("a value", right.replace("driver = \"cpu\"", &format!("driver = \"cpu{escaped}\""))),
        ("a measure", right.replace("work.rate", &format!("work.rate{escaped}"))),
        ("a time", right.replace("\"1s\"", &format!("\"1s{escaped}\""))),
        ("a character of the file", right.replace("title =", &format!("title{EVIL} ="))),
        ("a comment", right.replace("[group.server]", &format!("# {EVIL}\n[group.server]"))),
    ] {
        assert_ne!(wrong, right, "{what}");
        fs::write(lab.path("wrong.toml"), wrong).unwrap();
        let output = lab.run("check wrong.toml");
        let said = text(&output.stderr);
        assert!(said.contains("error"), "{what}: {said:?}");
        assert_eq!(said.chars().find(|one| acts(*one)), None, "{what}: {said:?}");
    }
    let said = text(&lab.command("check").arg(format!("{EVIL}.toml")).output().unwrap().stderr);
    assert!(said.contains("owned") && !said.chars().any(acts), "{said:?}");
}
