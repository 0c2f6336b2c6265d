//! Bad input and exactly what is said of it: `bad.txt` holds cases of files and the text that a user sees.
//! `RF_BLESS=1` writes what is said now; read the difference before keeping it.

use layout::Severity;

use super::said;

struct Case {
    title: String,
    files: Vec<(String, String)>,
    expected: String,
}

fn path() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layout/bad.txt")
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(path()).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    let mut in_expected = false;
    for line in text.split_inclusive('\n') {
        if let Some(title) = line.strip_prefix("##### ") {
            cases.push(Case { title: title.trim().to_owned(), files: Vec::new(), expected: String::new() });
            in_expected = false;
            continue;
        }
        let case = cases.last_mut().unwrap();
        if let Some(name) = line.strip_prefix(">>> ") {
            case.files.push((name.trim().to_owned(), String::new()));
        } else if line == "<<<\n" {
            in_expected = true;
        } else if in_expected {
            case.expected.push_str(line);
        } else {
            case.files.last_mut().unwrap().1.push_str(line);
        }
    }
    cases
}

#[test]
fn every_bad_input_is_told_with_its_place_and_mend() {
    let cases = cases();
    assert!(cases.len() >= 40);
    let mut written = String::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let files: Vec<(&str, &str)> =
            case.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (reading, text) = said(&files);
        assert!(!reading.diagnostics.is_empty(), "{}: nothing is said", case.title);
        let errors = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
        assert_eq!(reading.desired.is_none(), errors, "{}: an error leaves nothing desired", case.title);
        written.push_str(&format!("##### {}\n", case.title));
        for (name, text) in &case.files {
            written.push_str(&format!(">>> {name}\n{text}"));
        }
        written.push_str(&format!("<<<\n{text}"));
        if text != case.expected {
            wrong.push(format!("{}\nexpected:\n{}\nfound:\n{text}", case.title, case.expected));
        }
    }
    if std::env::var_os("RF_BLESS").is_some() {
        std::fs::write(path(), written).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn messages_are_in_one_style() {
    for case in cases() {
        let files: Vec<(&str, &str)> =
            case.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        for found in said(&files).0.diagnostics {
            let first = found.message.chars().next().unwrap();
            assert!(!first.is_uppercase() || found.message.starts_with("CPU"), "{}", found.message);
            for text in [Some(&found.message), found.hint.as_ref()].into_iter().flatten() {
                assert!(!text.ends_with(['.', ' ']), "{}: {text}", case.title);
            }
            assert!(found.origin.is_some(), "{}: no place for {}", case.title, found.message);
        }
    }
}
