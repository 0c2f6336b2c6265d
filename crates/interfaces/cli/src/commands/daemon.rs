//! `daemon`, the gate that it starts for strict rules, and what systemd starts for the order at boot.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use daemon::{Gate, Keep, Level, Log, LogTarget, METRICS, Options, Paces, Record, RuleFiles, Watching};
use plan::doctor::{Area, Finding};
use system::files;

use crate::{args, failure::Failure, output};

pub fn daemon(args: &args::Daemon) -> Result<(), Failure> {
    let level = match args.log {
        args::LogLevel::Error => Level::ERROR,
        args::LogLevel::Warn => Level::WARN,
        args::LogLevel::Info => Level::INFO,
        args::LogLevel::Debug => Level::DEBUG,
    };
    Log { level: Some(level), to: vec![LogTarget::StandardError] }.begin().map_err(Failure::new)?;
    daemon::run(options(args)).map_err(|error| {
        output::error(error.details());
        let failure = Failure::new(&error);
        error.hint().into_iter().fold(failure, Failure::hint)
    })
}

/// What `doctor` says of strict rules for a shell in the rules below an `/etc`, as far as these can be read.
pub fn strict_shells(etc: &Path) -> Vec<Finding> {
    let Ok(files) = RuleFiles::Below(etc.to_owned()).files() else { return Vec::new() };
    let trust = files::Trust::of_this_process();
    let Ok(configuration) = classify::Configuration::read(&files, trust) else { return Vec::new() };
    let rules = configuration.desired.all_rules();
    let finding = |rule: &layout::Rule| Finding {
        area: Area::Groups,
        level: plan::doctor::Level::Note,
        what: format!("{}: strict rule for a shell", rule.matcher.origin),
        consequence: Some(classify::STRICT_SHELL.to_owned()),
        hint: Some("name the programs that the shell starts instead (docs/rules.md)".to_owned()),
    };
    classify::strict_shells(&rules).map(finding).collect()
}

fn options(args: &args::Daemon) -> Options {
    let given = args.layout.is_some() || !args.rules.is_empty();
    let files = if given {
        let (layout, rules, templates) = (args.layout.clone(), args.rules.clone(), args.templates.clone());
        RuleFiles::These { layout, rules, templates }
    } else {
        RuleFiles::Below(PathBuf::from("/etc"))
    };
    Options {
        files,
        apply: !args.no_apply,
        state: args.state.state.clone().unwrap_or_else(apply::state_directory),
        strict: (!args.no_strict).then(Gate::default),
        keep: if args.repair { Keep::Repair } else { Keep::Report },
        every: args.check,
        socket: (!args.no_socket).then(|| args.socket.clone()),
        watching: watching(args),
        buffer: Options::BUFFER,
    }
}

fn watching(args: &args::Daemon) -> Watching {
    let record = args.record.as_ref().map(|directory| Record {
        directory: directory.clone().unwrap_or_else(monitor::log::directory),
        interval: args.record_interval,
        size: args.record_size,
    });
    let metrics = args.metrics.map(|address| address.unwrap_or(METRICS));
    let (textfile, groups) = (args.textfile.clone(), args.metrics_max_groups);
    Watching { record, metrics, textfile, groups, paces: Paces::default() }
}

/// The gate's process. Its exit status is nobody's: the daemon's watchdog only sees that it ended.
pub fn gate(words: impl Iterator<Item = OsString>) -> u8 {
    let log = Log { level: Some(Level::WARN), to: vec![LogTarget::StandardError] };
    let _ = log.begin();
    match daemon::gate(words) {
        Ok(()) => 0,
        Err(error) => {
            output::error(error.details());
            output::error(&Failure::new(&error).rendered());
            crate::failure::FAILED
        }
    }
}

/// systemd.generator(7): the directories where units go, and those that count more than /etc's.
pub fn generator(mut to: impl Iterator<Item = OsString>) -> u8 {
    let Some(normal) = to.next() else { return crate::failure::USAGE };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let kept_out = to.next().map_or(Ok(()), |early| {
        daemon::keep_out(Path::new("/"), Path::new(&early), boot.trim_end())
            .map_err(|error| (early.clone(), error))
    });
    // the one is done although the other can't be
    let ordered = daemon::order_units(Path::new("/"), Path::new(&normal)).map_err(|error| (normal, error));
    match kept_out.and(ordered.map(drop)) {
        Ok(()) => 0,
        Err((to, error)) => {
            output::error(&format!("cannot write to {}: {error}", Path::new(&to).display()));
            crate::failure::FAILED
        }
    }
}
