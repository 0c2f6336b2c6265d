//! Which format a listing has, by the first line that one begins with, and what of a pasted text is not the listing:
//! lines before it (a prompt with the command, a remark), and a prompt or comment behind it.

use std::borrow::Cow;

use super::{cpu_listing, hwloc, lscpu, lscpu_table, lstopo, numactl};
use crate::{Machine, SourceKind, TopologyError, print::CPU_ROWS};

/// A reader of one format.
type Reader = fn(&str, &str) -> Result<Machine, TopologyError>;

/// What reads a listing.
pub(super) enum Format {
    /// Ours or lscpu's; `json` knows which.
    Json,
    Listing(SourceKind, Reader),
}

/// The label that lscpu's summary is known by: others come before it, in other words by version.
const SUMMARY: &str = "CPU(s):";

/// The format, and the text with all that is not the listing made blank, so that lines keep their numbers.
pub(super) fn listing(text: &str) -> Option<(Format, Cow<'_, str>)> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (first, line) = lines.next()?;
    let found = std::iter::once((first, line)).chain(lines);
    let starts = |(at, line): (usize, &str)| Some((at, starts(line.trim_start(), at == first)?));
    let (start, format) = found.into_iter().find_map(starts)?;
    // what lscpu's summary is known by is not its first line
    let start = if text.lines().nth(start)?.trim_start().starts_with(SUMMARY) { 0 } else { start };
    Some((format, without(text, start)))
}

/// The format that begins with this line, which has no white space before it.
fn starts(line: &str, is_first: bool) -> Option<Format> {
    let listing = |kind, reader: Reader| Some(Format::Listing(kind, reader));
    let xml = ["<?xml", "<!DOCTYPE", "<topology"];
    match line {
        _ if line.starts_with('{') => Some(Format::Json),
        _ if line.starts_with('<') && (is_first || xml.iter().any(|start| line.starts_with(start))) => {
            listing(SourceKind::Hwloc, hwloc::read)
        }
        _ if line.starts_with("available:") => listing(SourceKind::Numactl, numactl::read),
        _ if line.starts_with("model name ") || line.starts_with(CPU_ROWS[0].trim_end()) => {
            listing(SourceKind::CpuListing, cpu_listing::read)
        }
        _ if line.starts_with(SUMMARY) => listing(SourceKind::Lscpu, lscpu::read),
        _ if lscpu_table::is_header(line) => listing(SourceKind::Lscpu, lscpu_table::read),
        _ if lscpu_table::is_comment_header(line) => listing(SourceKind::Lscpu, lscpu_table::read_parsable),
        _ if lstopo::is_root(line) => listing(SourceKind::Lstopo, lstopo::read),
        _ => None,
    }
}

/// The text with blanks for what stands before line `start`, and for what follows the listing.
fn without(text: &str, start: usize) -> Cow<'_, str> {
    let lines: Vec<&str> = text.lines().collect();
    let follows = |line: &&&str| line.trim().is_empty() || is_beside(line);
    let end = lines.len() - lines[start..].iter().rev().take_while(follows).count();
    let is_clean = lines[..start].iter().chain(&lines[end..]).all(|line| line.trim().is_empty());
    if is_clean {
        return Cow::Borrowed(text);
    }
    let mut rest = lines[start..end].join("\n");
    // XML's declaration may only stand at the very beginning
    if rest.starts_with("<?xml") {
        let declaration = rest.find("?>").map_or(0, |at| at + 2);
        rest.replace_range(..declaration, "");
    }
    Cow::Owned(format!("{}{rest}\n", "\n".repeat(start)))
}

/// Is it a comment, the fence of a code block, or a prompt with or without a command: none of a listing's lines?
fn is_beside(line: &str) -> bool {
    let line = line.trim_end();
    if line.starts_with('#') || line.starts_with("```") {
        return true;
    }
    let prompt = |mark: char| {
        let before = match line.strip_suffix(mark) {
            Some(before) => before,
            None => line.split_once(&format!("{mark} "))?.0,
        };
        Some(before)
    };
    let is_prompt = |before: &str| {
        before.is_empty() || before.contains('@') || before.ends_with([']', '~']) || is_shell(before)
    };
    ['$', '#', '%', '>'].into_iter().filter_map(prompt).any(is_prompt)
}

/// `bash-5.2`
fn is_shell(name: &str) -> bool {
    name.split_once('-').is_some_and(|(shell, version)| {
        shell.ends_with("sh") && version.starts_with(|c: char| c.is_ascii_digit())
    })
}
