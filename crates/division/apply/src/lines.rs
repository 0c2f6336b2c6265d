//! Lines of JSON with a checksum each, as generations' files consist of them. The checksum is over the line's number
//! and its text, so that a line that is damaged, missing, repeated or in another's place is noticed. Knows nothing of
//! what the lines mean.

use serde::{Serialize, de::DeserializeOwned};

/// Between a line's text and its checksum: JSON never has one.
const MARK: u8 = b'\t';
/// A journal grows by this much, filled with zeros, and always ends in one: what is cut off is noticed.
pub(crate) const ROOM: u64 = 64 << 10;

/// Where a file can't be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is damaged: {what}")]
pub struct Damage {
    /// From 1.
    pub line: u64,
    /// How it shows.
    pub what: String,
}

impl Damage {
    /// A finished record without its last line.
    pub fn end_is_missing() -> Damage {
        Damage { line: 0, what: "its end is missing".to_owned() }
    }
}

/// The only part of a head that is read without a checksum: format 1 had none.
#[derive(serde::Deserialize)]
struct Format {
    format: u32,
}

/// Appends a value as line `number` of a generation's file, counted from 0.
///
/// # Errors
/// The value can't be JSON: a map's key is no string.
pub fn append(bytes: &mut Vec<u8>, number: u64, value: &impl Serialize) -> std::io::Result<()> {
    use std::io::Write;
    let from = bytes.len();
    serde_json::to_writer(&mut *bytes, value)?;
    let sum = checksum(number, &bytes[from..]);
    writeln!(bytes, "\t{sum:08x}")
}

fn checksum(number: u64, text: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&number.to_le_bytes());
    sum.update(text);
    sum.finalize()
}

/// The format that a head names, whatever else it has; `None` where the line is damaged.
pub(crate) fn format(line: &[u8]) -> Option<u32> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let text = match split(line) {
        Some((text, sum)) => (checksum(0, text) == sum).then_some(text)?,
        None => line,
    };
    Some(parsed::<Format>(text, 0).ok()?.format)
}

/// A head: with a checksum, or of the format that had none.
pub(crate) fn head<T: DeserializeOwned>(line: &[u8]) -> Result<T, Damage> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    match split(line) {
        Some(_) => value(line, 0, true),
        None => {
            let format: Format = parsed(line, 0)?;
            if format.format == 1 { parsed(line, 0) } else { Err(damage(0, "it has no checksum")) }
        }
    }
}

/// A line whose number `count` reads from the value itself; one that has none there is not checked.
pub(crate) fn value_of<T: DeserializeOwned>(
    line: &[u8],
    count: impl Fn(&T) -> Option<u64>,
    numbered: bool,
) -> Result<T, Damage> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if !numbered {
        return parsed(line, 0);
    }
    let (text, _) = split(line).ok_or_else(|| damage(0, "the last line has no checksum"))?;
    let read: T = parsed(text, 0)?;
    match count(&read) {
        Some(number) => value(line, number, true),
        None => Ok(read),
    }
}

fn value<T: DeserializeOwned>(line: &[u8], number: u64, numbered: bool) -> Result<T, Damage> {
    if !numbered {
        return parsed(line, number);
    }
    let (text, sum) = split(line).ok_or_else(|| damage(number, "it has no checksum"))?;
    if checksum(number, text) != sum {
        return Err(damage(number, "its checksum is another"));
    }
    parsed(text, number)
}

fn split(line: &[u8]) -> Option<(&[u8], u32)> {
    let at = line.iter().rposition(|byte| *byte == MARK)?;
    let digits = std::str::from_utf8(&line[at + 1..]).ok().filter(|digits| digits.len() == 8)?;
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let sum = plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
    Some((&line[..at], sum))
}

fn parsed<T: DeserializeOwned>(text: &[u8], number: u64) -> Result<T, Damage> {
    serde_json::from_slice(text).map_err(|error| damage(number, &error.to_string()))
}

fn damage(number: u64, what: &str) -> Damage {
    Damage { line: number + 1, what: what.to_owned() }
}

/// Does a journal end as one that nobody cut?
pub(crate) fn ends_in_room(bytes: &[u8]) -> bool {
    bytes.last() == Some(&0) && (bytes.len() as u64).is_multiple_of(ROOM)
}

/// The bytes before the unused room at a journal's end.
pub(crate) fn used(bytes: &[u8]) -> &[u8] {
    bytes.iter().rposition(|byte| *byte != 0).map_or(&[], |last| &bytes[..=last])
}

/// The lines of a file, one after the other.
pub(crate) struct Lines<'b> {
    rest: &'b [u8],
    number: u64,
    numbered: bool,
}

impl<'b> Lines<'b> {
    pub fn new(bytes: &'b [u8], under_way: bool) -> Lines<'b> {
        let rest = if under_way { used(bytes) } else { bytes };
        Lines { rest, number: 0, numbered: true }
    }

    /// The first line, which decides whether the others have checksums.
    pub fn head<T: DeserializeOwned>(&mut self) -> Result<T, Damage> {
        let line = self.line().ok_or_else(|| damage(0, "the file is empty"))?;
        self.numbered = split(line.strip_suffix(b"\n").unwrap_or(line)).is_some();
        let read = head(line);
        self.number = 1;
        read
    }

    /// The next line.
    pub fn next<T: DeserializeOwned>(&mut self) -> Option<Result<T, Damage>> {
        let line = self.line()?;
        let number = self.number;
        self.number += 1;
        let whole = line.strip_suffix(b"\n");
        Some(value(whole.unwrap_or(line), number, self.numbered))
    }

    /// How many lines come before the one that was read last.
    pub fn before(&self) -> u64 {
        self.number.saturating_sub(1)
    }

    /// What is wrong with the last line that was read.
    pub fn wrong(&self, what: &str) -> Damage {
        damage(self.before(), what)
    }

    /// What is wrong behind the last line that was read.
    pub fn missing(&self, what: &str) -> Damage {
        damage(self.number, what)
    }

    fn line(&mut self) -> Option<&'b [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |end| end + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

/// What can be read of a journal, whatever is damaged in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Readable<T> {
    /// The undamaged lines in their order, each with its number, from 0.
    pub lines: Vec<(u64, T)>,
    /// Each line that is damaged, and where lines are missing; none for a whole journal.
    pub damage: Vec<Damage>,
}

/// A line is read if its checksum fits one of this many numbers: some before it may be missing. With more, chance would
/// find a number for a damaged line.
const GAP: u64 = 8;

/// Every line with a right checksum, also those behind a damaged one: for a file whose lines each say all that is to
/// be known of one thing.
pub fn readable<T: DeserializeOwned>(bytes: &[u8]) -> Readable<T> {
    let mut read = Readable { lines: Vec::new(), damage: Vec::new() };
    let (mut place, mut next, mut is_behind_damage) = (0, 0, false);
    for line in used(bytes).split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // a damaged newline makes one line of two: the place of those behind it is not their number
        let fits = |sum: u32, text: &[u8]| (next..next + GAP).find(|number| checksum(*number, text) == sum);
        let number = match split(line) {
            None => Err("it has no checksum"),
            Some((text, sum)) => fits(sum, text).ok_or("its checksum is another"),
        };
        if number.is_ok_and(|number| number > next) && !is_behind_damage {
            read.damage.push(damage(place, "lines before it are missing"));
        }
        is_behind_damage = number.is_err();
        let value = number.map_err(|what| damage(place, what)).and_then(|number| {
            next = number + 1;
            value(line, number, true).map(|value| (number, value))
        });
        match value {
            Ok(line) => read.lines.push(line),
            Err(Damage { what, .. }) => read.damage.push(damage(place, &what)),
        }
        place += 1;
    }
    if !ends_in_room(bytes) {
        read.damage.push(damage(place, "its end was cut off"));
    }
    read
}

/// How much of a journal can be read.
pub(crate) struct Good {
    /// In bytes.
    pub bytes: u64,
    /// In lines.
    pub lines: u64,
}

impl Good {
    /// Up to the first damaged line, or all.
    pub fn of(bytes: &[u8], damage: Option<&Damage>) -> Good {
        let used = used(bytes);
        let ends = used.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
        let wanted =
            damage.map_or(usize::MAX, |damage| usize::try_from(damage.line - 1).unwrap_or(usize::MAX));
        let mut good = Good { bytes: 0, lines: 0 };
        for end in ends.take(wanted) {
            good = Good { bytes: end, lines: good.lines + 1 };
        }
        good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    /// A record with a head, three steps and marks; with its end, if it is finished. A journal ends in unused room.
    fn file(under_way: bool) -> Vec<u8> {
        let head = serde_json::json!({
            "format": 2, "generation": 7, "kind": "apply", "at": 1, "what": "layout l.toml", "boot": "b",
            "by": { "uid": 0, "login": null, "pid": 4711, "command": "ringfence apply" },
            "hierarchies": [{ "label": "memory", "mount": "/mounted/memory" }],
            "in_effect_before": [], "in_effect": [7], "steps": 3
        });
        let place = |path: &str| serde_json::json!({ "hierarchy": 0, "path": path, "version": "v1" });
        let steps = [
            serde_json::json!({ "group": "a", "do": "create-group", "place": place("a"), "why": "x", "before": "new" }),
            serde_json::json!({ "group": "a", "do": "write", "place": place("a"), "file": "memory.limit_in_bytes",
                "text": "8192", "why": "y", "before": { "files": [["memory.limit_in_bytes", "4096"]] } }),
            serde_json::json!({ "group": "b", "do": "create-group", "place": place("b"), "why": "z", "before": "new" }),
        ];
        let mut lines = vec![head];
        lines.extend(steps);
        lines.extend([0, 1, 2].map(|step| serde_json::json!(step)));
        if !under_way {
            let count = lines.len();
            lines.push(serde_json::json!({ "result": { "ending": "done", "at": 2, "lines": count } }));
        }
        let mut bytes = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            append(&mut bytes, number as u64, line).unwrap();
        }
        if under_way {
            bytes.resize(bytes.len().next_multiple_of(usize::try_from(ROOM).unwrap()), 0);
        }
        bytes
    }

    /// As it was, refused, or known not to be whole: nothing is half used (attack finding 6).
    fn harmless(bytes: &[u8], under_way: bool, whole: &Record) -> bool {
        match Record::read(bytes, under_way) {
            Err(_) => true,
            Ok(read) => read == *whole || read.damage.is_some() || !under_way && read.result.is_none(),
        }
    }

    #[test]
    fn no_flipped_bit_is_read_as_something_else() {
        for under_way in [false, true] {
            let bytes = file(under_way);
            let whole = Record::read(&bytes, under_way).unwrap();
            assert_eq!((whole.entries.len(), whole.damage.is_some()), (3, false));
            let used = used(&bytes).len();
            // every bit of a record; of a journal every third, and some of the room behind its lines
            let room = (used..bytes.len()).step_by(997);
            for at in (0..used).chain(room) {
                for bit in (0..8).step_by(if under_way { 3 } else { 1 }) {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    assert!(
                        harmless(&flipped, under_way, &whole),
                        "byte {at}, bit {bit}, journal: {under_way}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_mark_of_a_step_that_is_not_there_is_damage() {
        let whole = file(true);
        let lines = used(&whole).iter().filter(|byte| **byte == b'\n').count() as u64;
        for (mark, is_there) in
            [("2", true), ("3", false), ("-3", true), ("-4", false), ("-9223372036854775808", false)]
        {
            let mut bytes = used(&whole).to_vec();
            append(&mut bytes, lines, &mark.parse::<i64>().unwrap()).unwrap();
            bytes.resize(whole.len(), 0);
            let damage = Record::read(&bytes, true).unwrap().damage;
            assert_eq!(
                damage.as_ref().map(|damage| damage.line),
                (!is_there).then_some(lines + 1),
                "{mark}: {damage:?}"
            );
        }
    }

    #[test]
    fn no_cut_is_read_as_the_whole() {
        for under_way in [false, true] {
            let bytes = file(under_way);
            let whole = Record::read(&bytes, under_way).unwrap();
            let used = used(&bytes).len();
            for end in (0..used).chain((used..bytes.len()).step_by(997)) {
                assert!(harmless(&bytes[..end], under_way, &whole), "cut at {end}, journal: {under_way}");
                let read = Record::read(&bytes[..end], under_way);
                let as_whole = read.is_ok_and(|read| read == whole);
                // the newline at the end of a finished record says nothing
                assert!(
                    !as_whole || !under_way && end + 1 == bytes.len(),
                    "cut at {end}, journal: {under_way}"
                );
            }
        }
    }

    /// A line that is damaged, missing, repeated or moved is named, and the others are read.
    #[test]
    fn the_lines_behind_a_damaged_one_are_read() {
        let journal = |lines: &[&[u8]]| {
            let mut bytes = lines.concat();
            bytes.resize(usize::try_from(ROOM).unwrap(), 0);
            bytes
        };
        let line = |number: u64| {
            let mut bytes = Vec::new();
            append(&mut bytes, number, &serde_json::json!({ "n": number })).unwrap();
            bytes
        };
        let lines: Vec<Vec<u8>> = (0..4).map(line).collect();
        let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| &lines[number][..]);
        let merged = [&b[..b.len() - 1], b"\x0b"].concat();
        for (lines, read, damaged) in [
            (&[a, b, c, d][..], &[0, 1, 2, 3][..], &[][..]),
            (&[a, b"{\n", c, d], &[0, 2, 3], &[2]),
            (&[a, &merged, c, d], &[0, 3], &[2]),
            (&[a, b"{\n", b"}\n", c, d], &[0, 2, 3], &[2, 3]),
            (&[a, c, d], &[0, 2, 3], &[2]),
            (&[a, b, b, c, d], &[0, 1, 2, 3], &[3]),
            (&[a, c, b, d], &[0, 2, 3], &[2, 3]),
            (&[b, c, d], &[1, 2, 3], &[1]),
            (&[a, b, c, &d[..d.len() - 1]], &[0, 1, 2, 3], &[]),
        ] {
            let found = readable::<serde_json::Value>(&journal(lines));
            let values = found.lines.iter().map(|(number, value)| (*number, value["n"].as_u64().unwrap()));
            assert!(values.eq(read.iter().map(|number| (*number, *number))), "{lines:?}: {found:?}");
            let at: Vec<u64> = found.damage.iter().map(|damage| damage.line).collect();
            assert_eq!(at, damaged, "{lines:?}: {found:?}");
        }
    }
}
