//! One function per command: arguments in, a call, the answer printed.

mod classify;
mod control;
mod cpu;
mod daemon;
mod groups;
mod isolate;
mod lab;
mod layouts;
mod listings;
mod machine;
mod members;
mod moving;
mod perf;
mod program;
mod requests;
mod simulate;
mod tasks;
mod units;
mod values;
mod watching;
mod web;
mod why;
mod worker;

use std::sync::{Arc, atomic::AtomicBool};

pub use daemon::{gate, generator};
use kernel::{GroupName, Host, Real};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};

use crate::{
    args::{Answer, Args, Command},
    failure::Failure,
};

/// Where a group that was named is not there, once more with the group of the unit that may be meant.
pub fn run(args: &mut Args) -> Result<u8, Failure> {
    let ended = match once(args) {
        Err(failure) if failure.missing => match units::resolve(args) {
            Ok(false) => {
                let failure = new_group(args, failure);
                Err(units::explain_above(args, failure))
            }
            Ok(true) => once(args),
            Err(other) => Err(other.code(failure.code)),
        },
        other => other,
    };
    ended.map_err(|failure| units::explain_bound(args, failure))
}

/// What goes on in a new group has the command that makes it; who reads or ends a group wants no empty one.
fn new_group(args: &mut Args, failure: Failure) -> Failure {
    let goes_on = matches!(args.command, Command::Set(_) | Command::Run(_) | Command::Move(_));
    let Some(name) = args.command.groups().into_iter().next().filter(|_| goes_on) else { return failure };
    let create = ::units::hint::Command::ringfence("create").group(name);
    let near = failure.hint.as_deref().and_then(|hint| Some(hint.split_once('?')?.0.to_owned()));
    match near {
        Some(near) => failure.hint(format!("{near}? otherwise: {create}")),
        None => failure.hint(create),
    }
}

fn once(args: &Args) -> Result<u8, Failure> {
    let json = args.everywhere.json;
    if let (true, Answer::Refused(instead)) = (json, args.command.answer()) {
        let failure = Failure::usage("this command's text has a format of its own, and no JSON form");
        return Err(instead.into_iter().fold(failure, Failure::hint));
    }
    match &args.command {
        Command::Create(create) => groups::create(create, json),
        Command::Delete(delete) => groups::delete(delete, json),
        Command::List(list) => groups::list(list, json),
        Command::Get(get) => values::get(get, json, values::Which::Settings),
        Command::Stat(get) => values::get(get, json, values::Which::Statistics),
        Command::Set(set) => values::set(set, json),
        Command::Run(run) => return tasks::run(run),
        Command::Move(moving) => moving::move_tasks(moving, json),
        Command::Where(places) => match places.cpu {
            Some(cpu) => cpu::cpu(cpu, json),
            None => match places.groups() {
                groups if groups.is_empty() => tasks::places(places, json),
                groups if groups.len() < places.of.len() => {
                    Err(Failure::usage("where takes processes or groups, not both"))
                }
                groups => members::members(&groups, json),
            },
        },
        Command::Classify(classify) => return classify::classify(classify, json),
        Command::Freeze(wait) => control::set_frozen(wait, true, json),
        Command::Thaw(wait) => control::set_frozen(wait, false, json),
        Command::Kill(wait) => control::kill(wait, json),
        Command::Perf(perf) => return perf::perf(perf),
        Command::Watch(watch) => watching::watch(watch, json),
        Command::Top(top) => watching::top(top, json),
        Command::Record(record) => watching::record(record, json),
        Command::Web(web) => web::web(web, json),
        Command::Dump(dump) => watching::dump(dump, json),
        Command::Metrics(metrics) => watching::metrics(metrics),
        Command::Fields(fields) => watching::fields(fields, json),
        Command::Why(args) => why::why(args, json),
        Command::Isolate(args) => return isolate::isolate(args, json),
        Command::Doctor => return machine::doctor(json),
        Command::Topology(topology) => machine::topology(topology, json),
        Command::Settings(settings) => machine::settings(settings, json),
        Command::Mount(mount) => machine::mount(mount, json),
        Command::Umount(mount) => machine::umount(mount, json),
        Command::Check(file) => layouts::check(file, json),
        Command::Import(file) => layouts::import(file, json),
        Command::Export(export) => layouts::export(export, json),
        Command::Schema(schema) => layouts::schema(schema),
        Command::Plan(plan) => layouts::plan(plan, json),
        Command::Elastic(args) => return layouts::elastic(args, json),
        Command::Pause(args) => layouts::pause(args, true, json),
        Command::Resume(args) => layouts::pause(args, false, json),
        Command::Schedule(schedule) => layouts::schedule(schedule, json),
        Command::Simulate(args) => simulate::simulate(args, json),
        Command::Apply(apply) if apply.dry_run => layouts::plan(&apply.as_plan(), json),
        Command::Apply(apply) => return layouts::apply(apply, json),
        Command::Shield(args) => return layouts::shield(args, json),
        Command::Unshield(args) => return layouts::unshield(args, json),
        Command::Confirm(generation) => layouts::confirm(generation, json),
        Command::Undo(generation) => return layouts::undo(generation, json),
        Command::History(history) => layouts::history(history, json),
        Command::Status(state) => return layouts::status(state, json),
        Command::RevertUnlessConfirmed(revert) => layouts::revert(revert),
        Command::Daemon(daemon) => daemon::daemon(daemon),
        Command::Reload(socket) => requests::reload(socket, json),
        Command::Lab(args) => return lab::lab(args, json),
        Command::Completions(completions) => program::completions(completions),
        Command::Links(links) => program::links(links, json),
        Command::Man(man) => program::man(man, json),
        Command::Worker(worker) => worker::worker(worker),
    }
    .map(|()| 0)
}

fn host() -> Result<Host, Failure> {
    Ok(Host::new(Box::new(Real::new()))?)
}

/// For layouts, which may ask for the first hierarchies to be mounted.
fn host_even_unmounted() -> Result<Host, Failure> {
    Ok(Host::even_without_hierarchies(Box::new(Real::new()))?)
}

/// A flag that Ctrl-C and its like set from now on, instead of ending this process: for commands that put back what they
/// did.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // a reader that goes away must not end us before everything is done or put back
    let ignored = Arc::new(AtomicBool::new(false));
    for (signal, flag) in [(SIGINT, &stop), (SIGTERM, &stop), (SIGHUP, &stop), (SIGPIPE, &ignored)] {
        signal_hook::flag::register(signal, flag.clone())
            .map_err(|error| Failure::new(format!("signals can't be caught: {error}")))?;
    }
    Ok(stop)
}

fn group(name: &str) -> Result<GroupName, Failure> {
    Ok(GroupName::new(name)?)
}
