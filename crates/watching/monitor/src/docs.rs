//! The field table for people: a page of the manual (`docs/fields.md`).

use std::fmt::Write as _;

use settings::Version;

use crate::{
    GROUP_FIELDS, MACHINE_FIELDS,
    field::{Field, From, Kind, Pace, Per, Source, Unit},
};

/// The whole table as a page.
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    section(&mut page, "Groups", GROUP_FIELDS);
    section(&mut page, "The machine", MACHINE_FIELDS);
    page
}

const INTRODUCTION: &str = "\
# Fields

Generated from the table in `crates/watching/monitor`; `make docs` writes it again.

What is sampled of every group and of the machine. Numbers are stored as they were read, in the unit given here; rates
are made of two of them when they are shown. A figure that this kernel or this version of cgroups does not have is
left out, never shown as 0.

\"Slow\" is every tenth sample (of 25 groups at once at most); \"seldom\" is every sixtieth; the others are read with
every sample.
";

fn section(page: &mut String, title: &str, fields: &[Field]) {
    // writing to a String can't fail
    let _ = write!(
        page,
        "\n## {title}\n\n| field | what it is | kind | unit | per | v1 | v2 |\n|---|---|---|---|---|---|---|\n"
    );
    for field in fields {
        let (v1, v2) = match field.from {
            From::Machine(source) => (place(&source), "the same".to_owned()),
            From::Group { .. } => {
                let side =
                    |version| field.side(version).map_or("none".to_owned(), |side| place(&side.source));
                (side(Version::V1), side(Version::V2))
            }
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {v1} | {v2} |",
            field.name,
            field.help,
            match field.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "level",
                Kind::Limit => "limit",
            },
            match field.unit {
                Unit::Nanos => "ns",
                Unit::Bytes => "bytes",
                Unit::Count => "count",
                Unit::Hundredths => "1/100",
                Unit::Flag => "0 or 1",
            },
            match field.per {
                Per::One => "",
                Per::Cpu => "CPU",
                Per::Node => "node",
                Per::Device => "device",
            },
        );
    }
}

fn place(source: &Source) -> String {
    let often = match source.pace {
        Pace::Tick => "",
        Pace::Slow => ", slow",
        Pace::Seldom => ", seldom",
    };
    match source.shape.key().as_str() {
        "" => format!("`{}`{often}", source.file),
        key => format!("`{}`: {}{often}", source.file, key.replace('<', "\\<")),
    }
}
