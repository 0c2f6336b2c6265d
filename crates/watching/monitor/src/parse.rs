//! From a file's bytes to the cells of a row. One pass over the text, no allocation; a key that is not there makes
//! its cell missing, and text that is not as the kernel documents it does too. Never opens a file.

use std::str::FromStr;

use settings::DeviceNumber;
use units::CpuSet;

use crate::{
    field::{Kind, Shape},
    sample::{Cells, Columns, Parts, Reading},
};

/// From this number on v1 prints a limit of memory that is none: `LONG_MAX` in whole pages of 4 to 64 KiB.
const V1_NO_LIMIT: u64 = i64::MAX as u64 - (64 << 10);

/// A figure that a file gives, and where it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub shape: Shape,
    pub kind: Kind,
    pub scale: u64,
    /// The column; of several the first; for devices, the distance from the device's first.
    pub column: usize,
}

/// What a reader of rows knows beside the text.
pub(crate) struct Context<'c> {
    pub columns: &'c Columns,
    pub parts: &'c Parts,
    /// Which node a file of one is of.
    pub node: usize,
    /// Devices that have no columns yet and were used.
    pub unknown: &'c mut Vec<DeviceNumber>,
}

/// Reads `text` for all `wants`, which may be put into the order of the file to be found faster next time.
pub(crate) fn parse(text: &[u8], wants: &mut [Want], cells: &mut Cells<'_>, context: &mut Context<'_>) {
    let Some(first) = wants.first().copied() else { return };
    match first.shape {
        Shape::Keyed(_) => keyed(text, wants, cells, 0),
        Shape::NodeKeyed(_) => {
            let node = context.node;
            // "Node 0 MemFree: …": the key begins behind the second space
            keyed_lines(text, wants, 2, |want, number| cells.set(want.column + node, number));
        }
        Shape::DeviceKey(_) | Shape::DeviceOperation(_) => devices(text, wants, cells, context),
        Shape::Nodes(_) => nodes(text, wants, cells, context.parts),
        Shape::CpuLine(_) => {
            cpu_lines(text, wants, cells, context.parts);
            let keyed_from = wants.iter().position(|want| matches!(want.shape, Shape::Keyed(_)));
            if let Some(from) = keyed_from {
                keyed(text, &mut wants[from..], cells, 0);
            }
        }
        Shape::CpuColumns => cpu_columns(text, first, cells, context.parts),
        Shape::CpuList => cpu_list(text, first, cells, context.parts),
        _ => wants.iter().for_each(|want| cells.set(want.column, alone(text, want))),
    }
}

/// The number of a figure of which there is one in a file; `None`: it is not there, or is none.
pub(crate) fn one(text: &[u8], want: &Want) -> Option<u64> {
    let keyed = || lines(text).find_map(|line| value_of(line, want)).unwrap_or(Reading::Missing);
    match want.shape {
        Shape::Keyed(_) => keyed().at(),
        _ => alone(text, want).at(),
    }
}

/// Makes all cells of a file missing.
pub(crate) fn clear(wants: &[Want], cells: &mut Cells<'_>, context: &Context<'_>) {
    for want in wants {
        match want.shape {
            Shape::DeviceKey(_) | Shape::DeviceOperation(_) => {
                let firsts = context.columns.devices().iter();
                firsts.for_each(|(_, first)| cells.set(first + want.column, Reading::Missing));
            }
            Shape::Nodes(_) => several(want, context.parts.nodes.len(), cells),
            Shape::NodeKeyed(_) => cells.set(want.column + context.node, Reading::Missing),
            Shape::CpuLine(_) | Shape::CpuColumns | Shape::CpuList => {
                several(want, context.parts.cpus.len(), cells);
            }
            _ => cells.set(want.column, Reading::Missing),
        }
    }
}

fn several(want: &Want, count: usize, cells: &mut Cells<'_>) {
    (want.column..want.column + count).for_each(|column| cells.set(column, Reading::Missing));
}

/// A file with one line that is about one figure, or a few.
fn alone(text: &[u8], want: &Want) -> Reading {
    let line = lines(text).next().unwrap_or_default();
    match want.shape {
        Shape::Number => amount(line, want),
        Shape::Word(index) => words(line).nth(index).map_or(Reading::Missing, |word| amount(word, want)),
        Shape::Decimal(index) => {
            words(line).nth(index).and_then(decimal).map_or(Reading::Missing, Reading::At)
        }
        Shape::Pressure(of) => pressure(text, of.as_bytes(), want.scale),
        Shape::ListLength => list_length(line),
        Shape::Is(accepted) => {
            let mut words = words(line);
            let first = words.next().unwrap_or_default();
            let valid =
                accepted.iter().any(|word| word.as_bytes() == first) && words.next() != Some(b"invalid");
            Reading::At(u64::from(valid))
        }
        Shape::Invalid(reasons) => Reading::At(invalid(line, reasons)),
        _ => Reading::Missing,
    }
}

/// See [`Shape::Invalid`].
fn invalid(line: &[u8], reasons: &[&str]) -> u64 {
    let mut words = words(line).skip(1);
    if words.next() != Some(b"invalid") {
        return 0;
    }
    let reason = line.split(|byte| *byte == b'(').nth(1).unwrap_or_default();
    let reason = reason.strip_suffix(b")").unwrap_or(reason);
    let place = reasons.iter().position(|known| known.as_bytes() == reason).unwrap_or(reasons.len());
    place as u64 + 1
}

/// A number, or no limit as either version writes it.
fn amount(word: &[u8], want: &Want) -> Reading {
    let limit = want.kind == Kind::Limit;
    match number(word) {
        Some((found, _)) if limit && found >= V1_NO_LIMIT => Reading::Max,
        Some((found, _)) => Reading::At(found.saturating_mul(want.scale)),
        None if limit && (word.starts_with(b"max") || word.starts_with(b"-1")) => Reading::Max,
        None => Reading::Missing,
    }
}

fn pressure(text: &[u8], of: &[u8], scale: u64) -> Reading {
    let line = lines(text).find(|line| line.starts_with(of));
    let total = line.and_then(|line| words(line).find_map(|word| word.strip_prefix(b"total=")));
    total.and_then(number).map_or(Reading::Missing, |(total, _)| Reading::At(total.saturating_mul(scale)))
}

fn list_length(line: &[u8]) -> Reading {
    let set = std::str::from_utf8(line).ok().and_then(|line| CpuSet::from_str(line.trim()).ok());
    set.map_or(Reading::Missing, |set| Reading::At(set.len() as u64))
}

fn keyed(text: &[u8], wants: &mut [Want], cells: &mut Cells<'_>, skipped: usize) {
    keyed_lines(text, wants, skipped, |want, reading| cells.set(want.column, reading));
}

/// Lines of `key value` behind `skipped` words. The keys are looked for in the order of `wants`; if the file has
/// another, that is learned.
fn keyed_lines(text: &[u8], wants: &mut [Want], skipped: usize, mut set: impl FnMut(&Want, Reading)) {
    let mut next = 0;
    for line in lines(text) {
        let Some(want) = wants.get(next) else { return };
        if let Some(found) = value_of(behind(line, skipped), want) {
            set(want, found);
            next += 1;
        }
    }
    if next == wants.len() {
        return;
    }
    for want in &wants[next..] {
        let found = lines(text).find_map(|line| value_of(behind(line, skipped), want));
        set(want, found.unwrap_or(Reading::Missing));
    }
    // an unstable sort allocates nothing
    let place = |want: &Want| {
        lines(text).position(|line| value_of(behind(line, skipped), want).is_some()).unwrap_or(usize::MAX)
    };
    wants.sort_unstable_by_key(place);
}

fn value_of(line: &[u8], want: &Want) -> Option<Reading> {
    let (Shape::Keyed(key) | Shape::NodeKeyed(key)) = want.shape else { return None };
    let rest = line.strip_prefix(key.as_bytes())?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii_start();
    Some(amount(rest, want))
}

fn behind(mut line: &[u8], skipped: usize) -> &[u8] {
    for _ in 0..skipped {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        line = line[end..].trim_ascii_start();
    }
    line
}

/// Devices' lines of both versions. A device that was never used gets no columns.
fn devices(text: &[u8], wants: &[Want], cells: &mut Cells<'_>, context: &mut Context<'_>) {
    clear(wants, cells, context);
    for line in lines(text) {
        let mut rest = words(line);
        let Some(device) = rest.next().and_then(device) else { continue };
        let known = context.columns.devices().iter().find(|(number, _)| *number == device);
        match known {
            Some((_, first)) => device_line(rest, wants, |want, number| {
                cells.set(first + want.column, Reading::At(number));
            }),
            None => device_line(rest, wants, |_, number| {
                if number > 0 && !context.unknown.contains(&device) {
                    context.unknown.push(device);
                }
            }),
        }
    }
}

fn device_line<'t>(
    words: impl Iterator<Item = &'t [u8]> + Clone,
    wants: &[Want],
    mut set: impl FnMut(&Want, u64),
) {
    for want in wants {
        let found = match want.shape {
            Shape::DeviceKey(key) => words.clone().find_map(|word| {
                let rest = word.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?;
                number(rest)
            }),
            Shape::DeviceOperation(key) => {
                let mut words = words.clone();
                let is_this = words.next() == Some(key.as_bytes());
                if is_this { words.next().and_then(number) } else { None }
            }
            _ => None,
        };
        if let Some((found, _)) = found {
            set(want, found.saturating_mul(want.scale));
        }
    }
}

/// `8:16`; not by `FromStr`, which takes text.
fn device(word: &[u8]) -> Option<DeviceNumber> {
    let (major, rest) = number(word)?;
    let (minor, rest) = number(rest.strip_prefix(b":")?)?;
    let number = DeviceNumber { major: u32::try_from(major).ok()?, minor: u32::try_from(minor).ok()? };
    rest.is_empty().then_some(number)
}

/// `key N0=…` and `key=total N0=…`.
fn nodes(text: &[u8], wants: &[Want], cells: &mut Cells<'_>, parts: &Parts) {
    for want in wants {
        let Shape::Nodes(key) = want.shape else { continue };
        several(want, parts.nodes.len(), cells);
        let is_this = |line: &&[u8]| {
            line.strip_prefix(key.as_bytes()).is_some_and(|rest| matches!(rest.first(), Some(b' ' | b'=')))
        };
        let Some(line) = lines(text).find(is_this) else { continue };
        for word in words(line).skip(1) {
            let found = word.strip_prefix(b"N").and_then(number);
            let found = found.and_then(|(node, rest)| Some((node, number(rest.strip_prefix(b"=")?)?.0)));
            let Some((node, found)) = found else { continue };
            if let Some(place) = parts.nodes.iter().position(|id| u64::from(*id) == node) {
                cells.set(want.column + place, Reading::At(found.saturating_mul(want.scale)));
            }
        }
    }
}

/// The lines `cpu0 …` of `/proc/stat`; a CPU that is off has none.
fn cpu_lines(text: &[u8], wants: &[Want], cells: &mut Cells<'_>, parts: &Parts) {
    let of_cpus = |want: &&Want| matches!(want.shape, Shape::CpuLine(_));
    wants.iter().filter(of_cpus).for_each(|want| several(want, parts.cpus.len(), cells));
    for line in lines(text) {
        let Some(rest) = line.strip_prefix(b"cpu") else { break };
        let Some((cpu, rest)) = number(rest) else { continue };
        let Some(place) = place_of(cpu, parts) else { continue };
        for (index, found) in words(rest).enumerate() {
            let is_this = |want: &&Want| matches!(want.shape, Shape::CpuLine(wanted) if wanted == index);
            if let (Some(want), Some((found, _))) = (wants.iter().find(is_this), number(found)) {
                cells.set(want.column + place, Reading::At(found.saturating_mul(want.scale)));
            }
        }
    }
}

fn place_of(cpu: u64, parts: &Parts) -> Option<usize> {
    let cpu = u32::try_from(cpu).ok()?;
    parts.cpus.binary_search(&cpu).ok()
}

/// All CPUs' numbers in a line, in order, also of those that are off.
fn cpu_list(text: &[u8], want: Want, cells: &mut Cells<'_>, parts: &Parts) {
    let mut found = lines(text).next().map(words).into_iter().flatten().filter_map(number);
    for place in 0..parts.cpus.len() {
        let reading =
            found.next().map_or(Reading::Missing, |(time, _)| Reading::At(time.saturating_mul(want.scale)));
        cells.set(want.column + place, reading);
    }
}

/// The sums of `/proc/interrupts`' columns; lines such as `ERR: 0` count for no CPU.
fn cpu_columns(text: &[u8], want: Want, cells: &mut Cells<'_>, parts: &Parts) {
    several(&want, parts.cpus.len(), cells);
    let mut rows = lines(text);
    let header = rows.next().unwrap_or_default();
    let count = words(header).count();
    for (index, name) in words(header).enumerate() {
        let cpu = name.strip_prefix(b"CPU").and_then(number);
        let Some(place) = cpu.and_then(|(cpu, _)| place_of(cpu, parts)) else { continue };
        let one = |line: &[u8]| {
            let mut numbers = words(line).skip(1).take(count).map_while(whole);
            // a line with fewer numbers than CPUs is a sum over all of them
            let found = numbers.nth(index)?;
            (numbers.count() + index + 1 == count).then_some(found)
        };
        let sum: u64 = rows.clone().filter_map(one).fold(0, u64::saturating_add);
        cells.set(want.column + place, Reading::At(sum));
    }
}

fn whole(word: &[u8]) -> Option<u64> {
    number(word).filter(|(_, rest)| rest.is_empty()).map(|(found, _)| found)
}

/// `0.91` as 91.
fn decimal(word: &[u8]) -> Option<u64> {
    let (whole, rest) = number(word)?;
    let (part, end) = number(rest.strip_prefix(b".")?)?;
    (end.is_empty() && rest.len() == 3).then(|| whole.saturating_mul(100).saturating_add(part))
}

/// The digits at the start, and what follows them.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut found: u64 = 0;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        found = found.checked_mul(10)?.checked_add(u64::from(digit))?;
        at += 1;
    }
    (at > 0).then(|| (found, &text[at..]))
}

/// The lines without their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    Lines { rest: text }
}

#[derive(Clone)]
struct Lines<'t> {
    rest: &'t [u8],
}

impl<'t> Iterator for Lines<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Some(line)
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
