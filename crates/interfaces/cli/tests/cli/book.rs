//! docs/ as a book: every page is in it, every link leads somewhere, commands that are shown with their output are run, and
//! the page of refusals is what the tables of refusals say.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    documents::root,
    layout_refusals::{Bad, IMPOSSIBLE, UNREADABLE},
    recipes::not_run,
    refusals::{ROWS, Row},
    world::Need,
};

type Case = (&'static str, fn() -> Result<(), String>);

const CASES: &[Case] = &[
    ("every page is in the book once", summary),
    ("every link leads to a file and a heading", links),
    ("commands that are shown with their output are run", all_run),
    ("images are small", images),
    ("docs/troubleshooting.md is the tables of refusals", troubleshooting),
];

pub fn trials() -> Vec<Trial> {
    let lacks = || (!root().join("README.md").exists()).then(|| Need::Sources.to_string());
    let trial =
        |&(name, case): &Case| suite::fallible(format!("documents: {name}"), lacks(), move || Ok(case()?));
    CASES.iter().map(trial).collect()
}

/// README.md and the pages of docs/, by their paths from docs/ on, with their texts.
pub fn pages_of(root: &Path) -> Vec<(String, String)> {
    let mut pages = vec![("../README.md".to_owned(), fs::read_to_string(root.join("README.md")).unwrap())];
    collect(&root.join("docs"), "", &mut pages);
    pages
}

fn collect(directory: &Path, above: &str, pages: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{above}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), pages);
        } else if name.ends_with(".md") {
            pages.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// What the links of a text lead to. Code is no text.
fn targets(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let prose: String = prose.split('`').step_by(2).collect();
    prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

fn summary() -> Result<(), String> {
    let pages = pages_of(root());
    let (_, summary) = pages.iter().find(|(path, _)| path == "SUMMARY.md").ok_or("no docs/SUMMARY.md")?;
    let listed = targets(summary);
    let once: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let there = pages
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| !["../README.md", "SUMMARY.md"].contains(path));
    let there: BTreeSet<&str> = there.collect();
    if once.len() != listed.len() {
        return Err(format!("a page is listed twice: {listed:?}"));
    }
    if once == there { Ok(()) } else { Err(format!("docs/SUMMARY.md has {once:?}\nbut docs/ has {there:?}")) }
}

/// The name that a heading has in a link, as mdBook and GitHub make it.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn links() -> Result<(), String> {
    let mut wrong = Vec::new();
    for (page, text) in pages_of(root()) {
        let file = root().join("docs").join(&page);
        for link in targets(&text) {
            if link.starts_with("http") {
                continue;
            }
            let (path, heading) =
                link.split_once('#').map_or((link.as_str(), None), |(path, heading)| (path, Some(heading)));
            let target = if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
            // a page of the book can't lead out of it
            let leaves = page != "../README.md"
                && !target
                    .canonicalize()
                    .is_ok_and(|at| at.starts_with(root().join("docs").canonicalize().unwrap()));
            let lacks = heading.is_some_and(|heading| {
                !fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(heading))
            });
            if leaves || lacks || !target.exists() {
                wrong.push(format!("docs/{page}: {link}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn all_run() -> Result<(), String> {
    let pages = pages_of(root());
    let not_run = not_run(&pages);
    if not_run.is_empty() { Ok(()) } else { Err(format!("no test runs the commands of {not_run:?}")) }
}

fn images() -> Result<(), String> {
    let sizes = fs::read_dir(root().join("docs/images")).map_err(|error| error.to_string())?;
    let sum: u64 = sizes.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    if (1..150_000).contains(&sum) { Ok(()) } else { Err(format!("{sum} bytes")) }
}

const BEGINNING: &str = "\
# Troubleshooting

Generated from the tables that the tests provoke on real kernels (`crates/interfaces/cli/tests/cli/refusals.rs` and
`layout_refusals.rs`); `make docs` writes it again.

Where to begin:

| what you see | ask |
|---|---|
| something is missing on this machine | `ringfence doctor` names it, with the command that gets it |
| a limit does not seem to work | `ringfence where PID` shows the process's group in every hierarchy |
| a value is another one than you set | `ringfence status` shows drift; `ringfence history` shows who changed what |
| a program is slow | `ringfence why GROUP` names the cause, with the command that changes it |
| a command is refused | the error names the cause and, after `hint:`, the command that fixes it; below are all causes |

In what follows `db` is the group and `PID` a process. `…` stands for what depends on the machine.
";

fn troubleshooting() -> Result<(), String> {
    let mut page = BEGINNING.to_owned();
    for (heading, of) in [("On both versions", None), ("On cgroup v1", Some(1)), ("On cgroup v2", Some(2))] {
        write!(
            page,
            "\n## {heading}\n\n| what is refused | for example | the error says | hint |\n|---|---|---|---|\n"
        )
        .unwrap();
        for row in ROWS.iter().filter(|row| version(row) == of) {
            let example = match row.refused.starts_with("sh ") {
                true => String::new(),
                false => code(format!("ringfence {}", row.refused.replace("{program}", "ringfence"))),
            };
            writeln!(page, "| {} | {example} | {} |", row.name, says(row.says)).unwrap();
        }
    }
    for (heading, rows) in
        [("Layouts that have errors", UNREADABLE), ("Layouts that a machine can't satisfy", IMPOSSIBLE)]
    {
        write!(page, "\n## {heading}\n\n| the layout has | the error says | hint |\n|---|---|---|\n")
            .unwrap();
        for row in rows {
            let Bad { name, says: parts, .. } = row;
            let parts: Vec<&str> = parts.iter().copied().filter(|part| !is_place(part)).collect();
            writeln!(page, "| {name} | {} |", says(&parts)).unwrap();
        }
    }
    let path = root().join("docs/troubleshooting.md");
    if std::env::var_os("RF_BLESS").is_some() {
        fs::write(&path, &page).map_err(|error| error.to_string())?;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    if written == page { Ok(()) } else { Err("docs/troubleshooting.md is old: make docs".into()) }
}

fn version(row: &Row) -> Option<u8> {
    row.needs.iter().find_map(|need| match need {
        Need::V1(_) | Need::File(_) => Some(1),
        Need::V2(_) | Need::AnyV2 => Some(2),
        _ => None,
    })
}

/// Where in a file an error is.
fn is_place(part: &str) -> bool {
    part.starts_with("l.toml:") || part.contains(" | ") || part.starts_with('^')
}

/// What is said, and the hint.
fn says(parts: &[&str]) -> String {
    let of = |is_hint: bool| {
        let from = parts.iter().position(|part| part.starts_with("hint:")).unwrap_or(parts.len());
        let parts = if is_hint { &parts[from..] } else { &parts[..from] };
        let texts =
            parts.iter().map(|part| part.trim_start_matches("hint:").trim()).filter(|part| !part.is_empty());
        texts.map(code).collect::<Vec<_>>().join(" … ")
    };
    format!("{} | {}", of(false), of(true))
}

fn code(text: impl AsRef<str>) -> String {
    let names = [("{g}", "db"), ("{pid}", "PID"), ("{his}", "PID"), ("{fifo}", "PID"), ("{kthread}", "2")];
    let text =
        names.iter().fold(text.as_ref().trim().to_owned(), |text, (name, value)| text.replace(name, value));
    format!("`{}`", text.replace('|', "\\|"))
}
