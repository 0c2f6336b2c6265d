//! `demo`, and the built-in workloads that it starts.

use std::{io::IsTerminal, time::Duration};

use kernel::{Access, GroupName, Host};
use lab::{
    Division, Program, Refused,
    demo::{self, DemoResult, Lengths, Options},
};
use settings::Controller;
use topology::Machine;

use super::{group, groups, host, stop_on_signals, values};
use crate::{args, failure::Failure, output};

/// Groups made by hand, as the command line makes them.
struct ByHand {
    host: Host,
}

pub fn demo(args: &args::Demo, as_json: bool) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("the demonstration makes groups and a loop device, which needs root")
            .hint("sudo ringfence demo"));
    }
    let mut division = ByHand { host: host()? };
    let machine = Machine::live()?;
    let on_terminal = std::io::stderr().is_terminal();
    let mut progress = |what: &str| {
        output::error(&if on_terminal { format!("\r\x1b[K{what}") } else { format!("{what}\n") })
    };
    // one run of each instead of three, and none again
    let once = Lengths { repetitions: 1, repeat_until_seconds: 0.0, ..Lengths::default() };
    let lengths = if args.quick { once } else { Lengths::default() };
    let options = Options {
        program: Program::this("worker"),
        stop: &stop,
        directory: None,
        lengths,
        progress: &mut progress,
    };
    let result = demo::run(&mut division, machine, options);
    if on_terminal {
        output::error("\r\x1b[K");
    }
    let result = result.map_err(|error| {
        let failure = Failure::new(&error);
        error.hint().into_iter().fold(failure, Failure::hint)
    })?;
    if as_json {
        output::json(&result)?;
    } else {
        output::text(&demo::text(&result, std::io::stdout().is_terminal()))?;
    }
    failed(&result)
}

/// A figure that is off is told, a setting that could not be made is a failure.
fn failed(result: &DemoResult) -> Result<(), Failure> {
    match result.failures.first() {
        None => Ok(()),
        Some(first) => {
            let failure = Failure::new(format!("{}: {}", first.of, first.error));
            Err(first.hint.iter().fold(failure, |failure, hint| failure.hint(hint)))
        }
    }
}

pub fn worker(args: &args::Worker) -> Result<(), Failure> {
    let (kind, options) = args.words.split_first().ok_or_else(|| Failure::usage("no workload is named"))?;
    let options = options.iter().map(Into::into);
    let done = match kind.as_str() {
        "cpu" => lab::main_cpu(options),
        "read" => lab::main_read(options),
        other => return Err(Failure::usage(format!("there is no workload '{other}'")).hint("cpu or read")),
    };
    done.map_err(|error| {
        let failure = Failure::new(&error);
        error.hint().into_iter().fold(failure, Failure::hint)
    })
}

/// A failure as the demo passes it on.
fn refused(failure: impl Into<Failure>) -> Refused {
    let failure: Failure = failure.into();
    Refused { text: failure.message, hint: failure.hint }
}

impl Division for ByHand {
    fn describe(&mut self) -> Vec<String> {
        let line = |name: &str| {
            let controller = Controller::from_name(name)?;
            let at = self.host.hierarchy_of(controller)?;
            Some(format!(
                "{name:8} cgroup {} at {}",
                at.version,
                at.path(self.host.base(at).path()).display()
            ))
        };
        ["cpu", "cpuset", "io"].iter().filter_map(|name| line(name)).collect()
    }

    fn groups(&mut self) -> Result<Vec<String>, Refused> {
        let found = self.host.list(&GroupName::base()).map_err(refused)?;
        Ok(found.into_keys().filter(|name| !name.contains('/')).collect())
    }

    fn create(&mut self, name: &str, controllers: &[&str]) -> Result<(), Refused> {
        let name = group(name).map_err(refused)?;
        let wanted: Vec<Controller> =
            controllers.iter().filter_map(|name| Controller::from_name(name)).collect();
        groups::make(&self.host, &name, Some(&wanted), &Access::default()).map(drop).map_err(refused)
    }

    fn set(&mut self, name: &str, wanted: &[(&str, &str)]) -> Result<Vec<String>, Refused> {
        let name = group(name).map_err(refused)?;
        let parsed = wanted.iter().map(|(setting, value)| values::parsed(setting, value));
        let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let parsed: Vec<_> = parsed.into_iter().map(|(found, value, _)| (found, value)).collect();
        let asks = values::asks(&self.host, &name, parsed).map_err(refused)?;
        let changes = apply::set(&self.host, &asks).map_err(refused)?;
        let mut lines = Vec::new();
        for change in changes {
            lines.extend(
                change.written.iter().map(|write| format!("{} <- {}", write.path.display(), write.text)),
            );
            lines.extend(change.differences);
        }
        Ok(lines)
    }

    fn enter(&mut self, name: &str, pid: u32) -> Result<(), Refused> {
        let name = group(name).map_err(refused)?;
        self.host.move_tasks(&name, &[pid], kernel::What::Process).map(drop).map_err(refused)
    }

    fn remove(&mut self, name: &str) -> Result<(), Refused> {
        let name = group(name).map_err(refused)?;
        if self.host.seats(&name).is_empty() {
            return Ok(());
        }
        kernel::kill(&self.host, &name, Duration::from_secs(10)).map_err(refused)?;
        self.host.delete(&name, true).map(drop).map_err(refused)
    }
}
