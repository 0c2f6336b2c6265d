//! Findings as text for a terminal, at most 100 columns wide but for commands. Says all of them, and the sum of the bad ones.

use std::fmt::Write;

use super::{Finding, Level};

const WIDTH: usize = 100;
/// Two columns, the level, one column.
const INDENT: usize = 12;

/// The findings by area, each with its consequence and its hint on lines of their own.
pub fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut area = None;
    for finding in findings {
        if area != Some(finding.area) {
            area = Some(finding.area);
            let _ = writeln!(text, "{}", finding.area.name());
        }
        let level = format!("  {:9} ", finding.level.name());
        let rest = " ".repeat(INDENT);
        paragraph(&mut text, &level, &finding.what, INDENT, false);
        if let Some(consequence) = &finding.consequence {
            paragraph(&mut text, &rest, consequence, INDENT, false);
        }
        if let Some(hint) = &finding.hint {
            paragraph(&mut text, &format!("{rest}hint: "), hint, INDENT + "hint: ".len(), true);
        }
    }
    let _ = writeln!(text, "{}", sum(findings));
    text
}

/// `text` after `first`, later lines indented; broken at blanks only, so that a longer word stays whole. A
/// `command` is broken after `&&` or `;` alone, where a shell takes a new line, too.
fn paragraph(out: &mut String, first: &str, text: &str, indent: usize, command: bool) {
    let mut start = first.to_owned();
    let mut words: Vec<&str> = text.split(' ').collect();
    while !words.is_empty() {
        let mut width = start.chars().count();
        let fitting = words.iter().take_while(|word| {
            width += word.chars().count() + 1;
            width - 1 <= WIDTH
        });
        let fitting = fitting.count().max(1);
        let ends = |word: &&str| command && (*word == "&&" || word.ends_with(';'));
        let taken = match fitting < words.len() && command {
            false => fitting,
            true => {
                let last = words[..fitting].iter().rposition(ends);
                last.or_else(|| words.iter().position(ends)).map_or(words.len(), |end| end + 1)
            }
        };
        let _ = writeln!(out, "{start}{}", words[..taken].join(" "));
        words.drain(..taken);
        start = " ".repeat(indent);
    }
}

fn sum(findings: &[Finding]) -> String {
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let part = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let bad = [
        part(count(Level::Broken), "finding is broken", "findings are broken"),
        part(count(Level::Attention), "finding needs attention", "findings need attention"),
    ];
    let bad: Vec<String> = bad.into_iter().flatten().collect();
    if bad.is_empty() { "nothing needs attention".to_owned() } else { bad.join(", ") }
}
