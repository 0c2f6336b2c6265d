//! `cgrulesengd`: the rules daemon, which is ours without a layout. It reads cgrules.conf, and cgconfig.conf for
//! templates, below `/etc`.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command as Program, Stdio},
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use daemon::{Keep, Level, Log, LogTarget, Options, RuleFiles, Watching};

use crate::{
    arguments::command,
    failure::{BAD_ARGUMENTS, BAD_RULES, Failure, SYSTEM, warn},
};

/// syslog's facilities, by the names that the reference takes (syslog(3)).
const FACILITIES: [(&str, u8); 18] = [
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

pub(crate) fn definition() -> Command {
    let flag = |name: &'static str, short, help| {
        Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).help(help)
    };
    let value = |name: &'static str, short, value, help| {
        Arg::new(name).short(short).long(name).value_name(value).help(help)
    };
    command("cgrulesengd", "Put processes into groups as the rules say, now and in future")
        .arg(value("logfile", 'f', "FILE", "Write the log to this file; - is standard output"))
        .arg(value("syslog", 's', "FACILITY", "Write the log to syslog [default: daemon]").num_args(0..=1).require_equals(false).default_missing_value("daemon"))
        .arg(flag("nodaemon", 'n', "Stay in the foreground"))
        .arg(flag("verbose", 'v', "Log more; up to three times").action(ArgAction::Count))
        .arg(flag("quiet", 'q', "Log less").action(ArgAction::Count))
        .arg(flag("nolog", 'Q', "Log nothing"))
        .arg(flag("debug", 'd', "As -nvvvf -"))
        .arg(value("socket-user", 'u', "USER", "Accepted: groups chosen by hand stay without a socket"))
        .arg(value("socket-group", 'g', "GROUP", "Accepted, as -u"))
        .arg(
            Arg::new("etc")
                .long("etc")
                .value_name("DIRECTORY")
                .value_parser(value_parser!(PathBuf))
                .help("Read cgrules.conf and cgconfig.conf there [default: /etc]"),
        )
        .after_help(
            "Signals: USR2 reads rules and templates again, USR1 templates; if the new files have errors, the old ones stay active.\n\n\
             Example: cgrulesengd -n -v -f -",
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Failure> {
    let log = log(matches)?;
    let debug = matches.get_flag("debug");
    if !matches.get_flag("nodaemon") && !debug {
        return background(log.to.contains(&LogTarget::StandardOutput));
    }
    log.begin().map_err(|error| Failure::new(SYSTEM, format!("the log can't be written: {error}")))?;
    let etc = matches.get_one::<PathBuf>("etc").map_or(Path::new("/etc"), PathBuf::as_path);
    let options = Options {
        files: RuleFiles::Libcgroup(etc.to_owned()),
        apply: false,
        state: apply::state_directory(),
        strict: None,
        keep: Keep::Report,
        every: Duration::ZERO,
        socket: None,
        watching: Watching::default(),
        buffer: Options::BUFFER,
    };
    match daemon::run(options) {
        Ok(()) => Ok(0),
        Err(error) => {
            warn(error.details());
            let status = if matches!(error, daemon::Error::Configuration(_)) { BAD_RULES } else { SYSTEM };
            Err(error.hint().into_iter().fold(Failure::new(status, &error), Failure::hint))
        }
    }
}

/// Starts itself again in the background, and returns once it is ready.
fn background(to_standard_output: bool) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| Failure::new(SYSTEM, format!("it can't be started: {error}"));
    let mut program = Program::new("/proc/self/exe");
    let words: Vec<_> = std::env::args_os().collect();
    // after our own name the command's stands; as a link there is no such word
    let link = words.first().is_some_and(|word| Path::new(word).file_name() == Some("cgrulesengd".as_ref()));
    let given = words.into_iter().skip(if link { 1 } else { 2 });
    program.arg0("cgrulesengd").arg("-n").args(given).stdin(Stdio::null()).process_group(0);
    // a reader of our output must not wait for the daemon's end
    program.stderr(Stdio::piped());
    if !to_standard_output {
        program.stdout(Stdio::null());
    }
    match daemon::wait_for_ready(&mut program).map_err(failed)? {
        Ok(_) => Ok(0),
        Err(ended) => {
            warn(&ended.said);
            Ok(ended.status.code().and_then(|code| code.try_into().ok()).unwrap_or(SYSTEM))
        }
    }
}

fn log(matches: &ArgMatches) -> Result<Log, Failure> {
    let mut to = Vec::new();
    let debug = matches.get_flag("debug");
    match matches.get_one::<String>("logfile").map(String::as_str) {
        Some("-") => to.push(LogTarget::StandardOutput),
        Some(path) => to.push(LogTarget::File(path.into())),
        None if debug => to.push(LogTarget::StandardOutput),
        None => {}
    }
    if let Some(facility) = matches.get_one::<String>("syslog") {
        to.push(LogTarget::Syslog(number(facility)?));
    } else if to.is_empty() {
        to.push(LogTarget::Syslog(3));
    }
    let level = if debug { 3 } else { 0 } + i32::from(matches.get_count("verbose"))
        - i32::from(matches.get_count("quiet"));
    let level = match level {
        ..0 => Level::ERROR,
        0 => Level::WARN,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    // a host without a system log is no reason not to work, unless an option names it
    let requested = matches.contains_id("syslog");
    to.retain(|to| requested || !matches!(to, LogTarget::Syslog(_)) || Path::new("/dev/log").exists());
    Ok(Log { level: (!matches.get_flag("nolog")).then_some(level), to })
}

fn number(facility: &str) -> Result<u8, Failure> {
    let name = facility.to_ascii_lowercase();
    let name = name.strip_prefix("log_").unwrap_or(&name);
    let found = FACILITIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, number)| *number).ok_or_else(|| {
        let known: Vec<&str> = FACILITIES.iter().map(|(name, _)| *name).collect();
        Failure::new(BAD_ARGUMENTS, format!("'{facility}' is no facility of syslog"))
            .hint(format!("known are {}", known.join(", ")))
    })
}
