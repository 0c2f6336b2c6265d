//! Numbers, names and commands as a reader gets them, and an answer as a page of text.

use std::{fmt, time::Duration};

use units::{Bytes, counted, printable};

use super::{
    answer::{Answer, Cause, Certainty, Choice, Number},
    facts::{Facts, Level},
};
use monitor::FigureUnit;

const WIDTH: usize = 100;

/// `it`, or the name of a group above.
pub(crate) fn subject(facts: &Facts, level: &Level) -> String {
    if level.group == facts.group { "it".to_owned() } else { level.group.clone() }
}

/// `its thing`, or `the thing of` a group above.
pub(crate) fn whose(facts: &Facts, level: &Level, thing: &str) -> String {
    if level.group == facts.group {
        format!("its {thing}")
    } else {
        format!("the {thing} of {}", level.group)
    }
}

/// A duration, with as many digits as say something.
pub(crate) fn time(time: Duration) -> String {
    seconds(time.as_secs_f64())
}

fn seconds(seconds: f64) -> String {
    let millis = seconds * 1000.0;
    if seconds >= 10.0 {
        format!("{seconds:.1} s")
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if millis >= 10.0 || millis == 0.0 {
        format!("{millis:.0} ms")
    } else {
        format!("{millis:.1} ms")
    }
}

/// A duration that was set: without the digits that say nothing.
pub(crate) fn exact(duration: Duration) -> String {
    let text = time(duration);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Bytes in the largest unit below them, with at most one decimal.
pub(crate) fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    let decimals = usize::from(number < 10.0 && unit != "B");
    format!("{number:.decimals$} {unit}")
}

/// CPUs: `0.25 CPUs`, `1 CPU`.
pub(crate) fn cpus(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} CPU{}", if text == "1" { "" } else { "s" })
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Half as much again, in whole MiB.
pub(crate) fn half_more(bytes: u64) -> Bytes {
    let mebi = 1 << 20;
    Bytes(bytes.saturating_add(bytes / 2).max(bytes.saturating_add(mebi)).div_ceil(mebi).saturating_mul(mebi))
}

/// How a group gets settings, each `SETTING=VALUE` as a user writes it: by our command, by systemd's for a unit, or by
/// a change of the layout that has the unit as a group, whose drop-in file systemd takes after its own. `None`: by none.
pub(crate) fn set(facts: &Facts, group: &str, settings: &[String]) -> Option<String> {
    let pairs = settings.iter().filter_map(|text| text.split_once('='));
    let pairs: Vec<(&str, String)> = pairs.map(|(name, value)| (name, value.to_owned())).collect();
    let command = kernel::set_command(group, &pairs)?;
    match facts.bound.at(group) {
        Some(unit) => Some(facts.bound.change(&unit.group, &pairs)),
        None => Some(command.into()),
    }
}

impl Number {
    /// The value as people read it, with its unit.
    pub fn written(&self) -> String {
        match self.unit {
            FigureUnit::Seconds => seconds(self.value),
            FigureUnit::Bytes => size(self.value as u64),
            FigureUnit::Share => percent(self.value),
            FigureUnit::BytesPerSecond => format!("{}/s", size(self.value as u64)),
            FigureUnit::Cpus => cpus(self.value),
            FigureUnit::PerSecond => format!("{:.1}/s", self.value),
            FigureUnit::Count | FigureUnit::Flag | FigureUnit::Reason => format!("{:.0}", self.value),
        }
    }
}

fn number(number: &Number) -> String {
    format!("{} {}", number.name, number.written())
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used: Vec<String> = self.used.iter().map(number).collect();
        let tasks = counted(self.tasks as u64, "task");
        writeln!(f, "{}, {} for {}", printable(&self.group), tasks, seconds(self.seconds))?;
        paragraph(f, "used: ", &used.join(", "))?;
        if self.causes.is_empty() {
            writeln!(f, "nothing slowed it down")?;
        }
        for (place, cause) in self.causes.iter().enumerate() {
            let part = cause.share.map_or_else(|| "  -".to_owned(), |share| percent(share).replace(' ', ""));
            let known = match cause.lost.map(|lost| lost.known) {
                Some(Certainty::AtMost) => " (at most)",
                Some(Certainty::Sampled) => " (sampled)",
                _ => "",
            };
            let lost = cause
                .lost
                .map_or_else(String::new, |lost| format!(", {} lost{known}", seconds(lost.seconds)));
            writeln!(f, "\n{}. {part} {}{lost}", place + 1, cause.kind.name())?;
            details(f, cause)?;
        }
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| {
            paragraph(f, "note: ", &note.sentence)?;
            note.hint.iter().try_for_each(|hint| writeln!(f, "      hint: {}", printable(hint)))
        })
    }
}

fn details(f: &mut fmt::Formatter<'_>, cause: &Cause) -> fmt::Result {
    paragraph(f, "   ", &cause.sentence)?;
    // a command stays on its line, to be copied
    cause.hint.iter().try_for_each(|hint| writeln!(f, "   hint: {}", printable(hint)))?;
    let name = |choice: &Choice| printable(&choice.group).into_owned();
    let width = cause.choices.iter().map(|choice| name(choice).chars().count()).max().unwrap_or(0);
    cause
        .choices
        .iter()
        .try_for_each(|choice| writeln!(f, "   for {:width$}: {}", name(choice), printable(&choice.command)))
}

/// Words on lines of a screen, the later ones below the first.
fn paragraph(f: &mut fmt::Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    let indent = " ".repeat(head.len());
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in printable(text).split(' ') {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            writeln!(f, "{line}")?;
            line.clone_from(&indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(f, "{line}")
}
