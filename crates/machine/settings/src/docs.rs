//! The table for people: a page of the manual (`docs/settings.md`), and one setting on a terminal. Both print the
//! same facts.

use std::fmt::Write as _;

use units::{Bytes, Micros};

use crate::setting::{
    Access, Binding, Codec, Controller, Fidelity, Key, Kind, OutOfRange, Range, Reach, ReadBack, Setting,
    Side, Unit, Version,
};
use crate::table::all;

impl Kind {
    /// What may be written, in words.
    pub fn syntax(self) -> &'static str {
        match self {
            Kind::Flag => "0 or 1 (or no and yes, off and on)",
            Kind::Number => "a whole number",
            Kind::Count => "a whole number, or max where there is a limit to lift",
            Kind::Bytes => {
                "a size in bytes or with K, M, G, T (powers of 1024), a percentage of the machine's memory, or max"
            }
            Kind::Micros => "a duration in us, ms or s (microseconds without a unit)",
            Kind::CpuTime => "nanoseconds",
            Kind::Percent => "a percentage with at most two decimals, or max",
            Kind::Weight => "a weight",
            Kind::CpuMax => {
                "QUOTA, QUOTA/PERIOD, a number of CPUs (1.5cpu), a percentage of one CPU (150%), or max"
            }
            Kind::Cpus => "a list of CPUs, or all",
            Kind::Nodes => "a list of NUMA nodes",
            Kind::Word(_) => "a word",
            Kind::PerDevice(_) => "DEVICE KEY=LIMIT…, several devices separated by ;",
            Kind::Weights => "WEIGHT, DEVICE WEIGHT or DEVICE default, several separated by ;",
            Kind::Rules => {
                "a, or b or c with MAJOR:MINOR (* for all) and some of rwm, several separated by ;"
            }
            Kind::ClassId => "MAJOR:MINOR in hexadecimal, or the number itself (0x100001)",
            Kind::Keyed(_) => "NAME VALUE or NAME KEY=VALUE…, several separated by ;",
            Kind::Text => "text",
        }
    }

    /// The words or keys that may be used.
    fn parts(self) -> Option<String> {
        let key = |key: &Key| {
            let unit = match key.unit {
                Unit::Count => "a number".to_owned(),
                Unit::Bytes => "a size".to_owned(),
                Unit::Micros => "a duration".to_owned(),
                Unit::Percent => "a percentage".to_owned(),
                Unit::Word(words) => words.join(" or "),
            };
            format!("{} ({unit})", key.name)
        };
        match self {
            Kind::Word(words) => Some(words.join(", ")),
            Kind::PerDevice(keys) | Kind::Keyed(keys) if keys.iter().any(|key| !key.name.is_empty()) => {
                Some(keys.iter().map(key).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        }
    }
}

/// The whole table as a page of the manual.
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    for controller in Controller::ALL {
        let name = |version| controller.name(version).map_or("none".to_owned(), |name| format!("`{name}`"));
        let (v1, v2) = (name(Version::V1), name(Version::V2));
        let _ = write!(
            page,
            "\n## {}\n\n{}.\nController on v1: {v1}, on v2: {v2}.\n",
            title(controller),
            escaped(controller.doc())
        );
        for setting in all().filter(|setting| setting.controller == controller) {
            let _ = write!(page, "\n### {}\n\n{}.\n\n", code(setting.name), escaped(setting.doc));
            for (what, text) in facts(setting) {
                let indent = &what[..what.len() - what.trim_start().len()];
                let _ = writeln!(page, "{indent}- {}: {}", what.trim_start(), escaped(&text));
            }
        }
    }
    page.push_str("\n## Files of v1 under another name\n\n| v1 file | setting |\n|---|---|\n");
    let mut renamed: Vec<_> = all().flat_map(v1_names).collect();
    renamed.sort_unstable();
    for (file, setting) in renamed {
        let _ = writeln!(page, "| {} | {} |", code(file), code(setting));
    }
    page
}

const INTRODUCTION: &str = "\
# Settings

Generated from the table in `crates/machine/settings`; `RF_BLESS=1 cargo test -p ringfence-settings` writes it again.

A setting is named as cgroup v2 names it. The name of any file of v1 or v2 is taken too, with the values in that
file's own scale: `cpu.shares=2048` and `cpu.weight=200` ask for the same.

What is out of the documented range is refused before anything is written, except where it says \"takes the nearest
value\": there the value is passed to the kernel as it is, and what the kernel made of it is printed. \"Approximate\" means that this
version does not do quite what the setting says; the plan warns of it.
";

/// One setting for a terminal.
pub fn describe(setting: &Setting) -> String {
    let mut text = format!("{}\n  {}.\n\n", setting.name, setting.doc);
    let facts = facts(setting);
    let width = facts.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    for (what, fact) in facts {
        let _ = writeln!(text, "  {what:width$}  {}", fact.replace('`', ""));
    }
    text
}

/// What there is to say of a setting, in order.
fn facts(setting: &Setting) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match setting.access {
        Access::Read => facts.push(("access", "read only".to_owned())),
        Access::Command(by) => facts.push(("access", format!("read only; changed by {by}"))),
        Access::Write | Access::ReadWrite => {
            let resets = setting.v1.binding().is_some_and(|binding| binding.codec == Codec::Reset);
            let syntax = if resets { "0, which starts it again" } else { setting.kind.syntax() };
            facts.push(("value", syntax.to_owned()));
            facts.extend(setting.kind.parts().map(|parts| ("one of", parts)));
            facts.push(("example", code(setting.example)));
        }
    }
    if setting.access == Access::Write {
        facts.push(("access", "write only".to_owned()));
    }
    side(&mut facts, setting, "v2", &setting.v2);
    side(&mut facts, setting, "v1", &setting.v1);
    facts.extend(setting.unit_property().map(|property| ("systemd", code(&format!("{property}=")))));
    facts
}

fn side(facts: &mut Vec<(&'static str, String)>, setting: &Setting, name: &'static str, side: &Side) {
    let binding = match side {
        Side::Has(binding) => binding,
        Side::Lacks { instead } => {
            facts.push((name, format!("not available: {instead}")));
            return;
        }
    };
    let files = match binding.files {
        [] => "a BPF program on the group".to_owned(),
        files => files.iter().map(|file| code(file)).collect::<Vec<_>>().join(", "),
    };
    let root = match binding.at_root {
        true => "; in the root group too",
        false => "",
    };
    facts.push((name, format!("{files}; since kernel {}{root} ({})", binding.since, binding.source)));
    let written = !matches!(binding.codec, Codec::Reset | Codec::Text | Codec::StatField { .. });
    if setting.access != Access::Read && written {
        facts.extend(range(setting.kind, binding).map(|range| ("  range", range)));
    }
    if !binding.initial.is_empty() {
        let files: Vec<String> = binding.initial.iter().map(|text| code(text)).collect();
        facts.push(("  in a new group", files.join(" and ")));
    }
    match binding.reach {
        Reach::Own => {}
        Reach::Beside(how) | Reach::Machine(how) => {
            facts.push(("  reaches beyond the group", how.to_owned()))
        }
    }
    match binding.read_back {
        ReadBack::Same | ReadBack::Never => {}
        ReadBack::Rounded(how) => facts.push(("  reads back", format!("rounded {how}"))),
        ReadBack::Rescaled(how) => facts.push(("  reads back", how.to_owned())),
    }
    if let Fidelity::Approximate(how) = binding.fidelity {
        facts.push(("  approximate", how.to_owned()));
    }
}

/// The range in the unit of the file, and what the kernel does outside it.
pub fn range(kind: Kind, binding: &Binding) -> Option<String> {
    let Range::Between { min, max } = binding.range else {
        return match binding.out_of_range {
            OutOfRange::Misread(how) => Some(how.to_owned()),
            _ => None,
        };
    };
    let number = |number: u64| match kind {
        Kind::Bytes => Bytes(number).to_string(),
        Kind::Micros | Kind::CpuMax => Micros(number).to_string(),
        _ => number.to_string(),
    };
    let low = u64::try_from(min).map_or_else(|_| min.to_string(), number);
    let outside = match binding.out_of_range {
        OutOfRange::Refused => String::new(),
        OutOfRange::Clamped => "; the kernel takes the nearest value for others".to_owned(),
        OutOfRange::Misread(how) => format!("; {how}"),
    };
    let period = match binding.codec {
        Codec::CpuMax | Codec::CpuQuota => " (the period 1ms to 1s)",
        _ => "",
    };
    Some(format!("{low} to {}{period}{outside}", number(max)))
}

/// The files of v1 that a setting of another name holds, with that name.
fn v1_names(setting: &'static Setting) -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = setting.v1.binding().map_or(&[][..], Binding::names);
    let own = move |file: &&&str| all().all(|other| other.name != **file);
    files.iter().filter(own).map(move |file| (*file, setting.name))
}

fn title(controller: Controller) -> &'static str {
    controller.name(Version::V2).or(controller.name(Version::V1)).unwrap_or("every group")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Text with nothing in it, outside of code, that markdown would take for a tag or emphasis.
fn escaped(text: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => part.replace('<', "\\<").replace('*', "\\*"),
        _ => part.to_owned(),
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}
