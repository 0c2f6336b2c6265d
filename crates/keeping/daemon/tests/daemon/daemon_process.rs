//! This binary as the daemon, and as the gate of its strict rules.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use daemon::{Gate, Keep, Log, LogTarget, Options, Paces, Record, RuleFiles, Watching};

pub const DAEMON: &str = "rf-test-daemon";
pub const GATE: &str = "rf-test-gate";

/// Words: the directory of the test, then `name=value`.
pub fn daemon(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let directory = PathBuf::from(words.next().unwrap());
    let there = |name: &str| Some(directory.join(name)).filter(|path| path.exists());
    let mut options = Options {
        files: RuleFiles::These {
            layout: there("layout.toml"),
            rules: there("cgrules.conf").into_iter().collect(),
            templates: there("cgconfig.conf").into_iter().collect(),
        },
        apply: there("layout.toml").is_some(),
        state: directory.join("state"),
        strict: Some(Gate { words: vec![GATE.into()], ..Gate::default() }),
        keep: Keep::Report,
        every: Duration::ZERO,
        socket: None,
        // another suite may have more of them here than are shown else
        watching: Watching { groups: 100_000, ..Watching::default() },
        buffer: Options::BUFFER,
    };
    let mut to = LogTarget::File(directory.join("log"));
    for word in words {
        match word.to_str().unwrap().split_once('=').unwrap() {
            ("buffer", bytes) => options.buffer = bytes.parse().unwrap(),
            // for what is tried here a machine may be as slow as it likes
            ("patience", seconds) => {
                let limits = &mut options.strict.as_mut().unwrap().limits;
                let patience = Duration::from_secs(seconds.parse().unwrap());
                (limits.start, limits.answer) = (patience, patience);
            }
            ("every", millis) => options.every = Duration::from_millis(millis.parse().unwrap()),
            ("metrics", address) => options.watching.metrics = Some(address.parse().unwrap()),
            ("textfile", path) => options.watching.textfile = Some(path.into()),
            ("record", path) => {
                let (interval, size) = (Duration::from_millis(20), units::Bytes(1 << 20));
                options.watching.record = Some(Record { directory: path.into(), interval, size });
            }
            // what is looked at now and then is looked at whenever somebody asks
            ("paces", millis) => {
                let often = Duration::from_millis(millis.parse().unwrap());
                options.watching.paces =
                    Paces { metrics: often, desired: often, misplaced: often, textfile: often, again: often };
            }
            ("log", "error") => to = LogTarget::StandardError,
            // also what somebody else applied
            ("apply", "yes") => options.apply = true,
            ("keep", "repair") => options.keep = Keep::Repair,
            ("socket", path) => options.socket = Some(path.into()),
            other => panic!("{other:?}"),
        }
    }
    Log { level: Some(daemon::Level::DEBUG), to: vec![to] }.begin().unwrap();
    match daemon::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n{}", error.details());
            ExitCode::FAILURE
        }
    }
}

pub fn gate(words: impl Iterator<Item = OsString>) -> ExitCode {
    match daemon::gate(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gate: {error}\n{}", error.details());
            ExitCode::FAILURE
        }
    }
}
