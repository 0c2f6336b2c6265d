//! What must hold for any text that somebody may hand in: no panic, no place outside the text, and what was read is
//! the same after it was written and read again. One function per grammar; `cargo fuzz` calls them with texts that
//! it searches for, `tests/corpus.rs` with the texts found before and with mutations of these.
//!
//! ```text
//! cargo +nightly fuzz run cgconfig --features libfuzzer -- -max_total_time=300
//! ```
#![allow(clippy::panic, reason = "a broken promise is told by a panic here")]

mod scratch;

mod calendars; // of schedules
mod experiments; // files of the lab
mod journals; // generations
mod logs; // the recorder's
mod machines; // listings
mod requests; // to the daemon

use fake::Fake;
use kernel::Host;
use layout::{Reading, Severity, Source, read_cgconfig, read_cgrules, read_toml, render, to_toml};
use units::{Bytes, CpuSet, Micros};

pub use calendars::calendar;
pub use experiments::{experiment, results};
pub use journals::journal;
pub use logs::{log, log_records};
pub use machines::machine;
pub use requests::request;

/// What takes any bytes.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("cgconfig", cgconfig),
    ("cgrules", cgrules),
    ("toml", toml),
    ("cpu_list", cpu_list),
    ("calendar", calendar),
    ("setting", setting),
    ("group_list", group_list),
    ("experiment", experiment),
    ("results", results),
    ("machine", machine),
    ("journal", journal),
    ("log", log),
    ("log_records", log_records),
    ("request", request),
];

/// cgconfig.conf.
pub fn cgconfig(data: &[u8]) {
    with_text(data, |text| holds(&[Source::new("f", text)], read_cgconfig("f", text)));
}

/// cgrules.conf.
pub fn cgrules(data: &[u8]) {
    with_text(data, |text| holds(&[Source::new("f", text)], read_cgrules("f", text)));
}

/// The layout file.
pub fn toml(data: &[u8]) {
    with_text(data, |text| {
        let source = [Source::new("f", text)];
        holds(&source, read_toml(&source));
    });
}

/// Lists of CPUs, and amounts.
pub fn cpu_list(data: &[u8]) {
    with_text(data, |text| {
        if let Ok(set) = text.parse::<CpuSet>() {
            assert_eq!(set.to_string().parse::<CpuSet>().ok(), Some(set), "{text:?}");
        }
        if let Ok(bytes) = text.parse::<Bytes>() {
            assert_eq!(bytes.0.to_string().parse::<Bytes>().ok(), Some(bytes), "{text:?}");
        }
        if let Ok(micros) = text.parse::<Micros>() {
            assert_eq!(micros.0.to_string().parse::<Micros>().ok(), Some(micros), "{text:?}");
        }
    });
}

/// `NAME=VALUE` as `set` takes it.
pub fn setting(data: &[u8]) {
    with_text(data, |text| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match settings::find(name) {
            Ok(found) => {
                // what a machine would say is not requested: an error then is one that it explains
                if let Err(error) = found.parse(value, &settings::NoMachine) {
                    assert!(!error.to_string().is_empty());
                }
            }
            Err(error) => assert!(!error.hint().is_empty()),
        }
    });
}

/// `-g CONTROLLERS:PATH` of libcgroup's commands, on hosts of all three kinds.
pub fn group_list(data: &[u8]) {
    with_text(data, |text| {
        for fake in [Fake::v1(4, 2), Fake::v2(4, 2), Fake::hybrid(4, 2)] {
            let Ok(host) = Host::new(Box::new(fake)) else { unreachable!("these have hierarchies") };
            let mounts: Vec<_> = host.hierarchies().iter().map(|at| at.mount.clone()).collect();
            match libcgroup::directories(&host, text) {
                Ok(named) => {
                    for directory in named {
                        assert!(mounts.iter().any(|mount| directory.starts_with(mount)), "{directory:?}");
                        let up = directory.components().any(|part| part == std::path::Component::ParentDir);
                        assert!(!up, "{directory:?} leads out");
                    }
                }
                Err(error) => assert!(!error.is_empty()),
            }
        }
    });
}

fn with_text(data: &[u8], check: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
}

fn holds(sources: &[Source], reading: Reading) {
    let errors = reading.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(reading.desired.is_none(), errors, "errors and a result exclude each other");
    for origin in reading.diagnostics.iter().filter_map(|found| found.origin.as_ref()) {
        let line = sources[0].text.split('\n').nth(origin.line - 1);
        let line = line.unwrap_or_else(|| panic!("no line {} in the text", origin.line));
        assert!(origin.column <= line.chars().count() + 1, "no column {} in {line:?}", origin.column);
    }
    let shown = render(&reading.diagnostics, sources);
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    if let Some(desired) = reading.desired {
        let written = to_toml(&desired);
        let again = read_toml(&[Source::new("g", &written)]);
        let again = again.desired.unwrap_or_else(|| panic!("can't be read again:\n{written}"));
        // what TOML writes of it a second time is what it wrote the first time
        assert_eq!(to_toml(&again), written);
    }
}
