//! `top`: the screens of the tui crate where there is a terminal, else the pictures of `watch`.

use std::{
    fs,
    io::{IsTerminal, stdout},
};

use apply::{Resizes, Running, State, Target};
use kernel::{GroupName, Host};
use tui::{Changer, Elastic, Figures, Live, Look, Model, Options, Refusal, Replay, Source};

use super::{
    super::{layouts::time, requests},
    chosen, directory, host, sampler,
    watch::{pictures, sorted_by},
};
use crate::{args, failure::Failure};

pub fn top(top: &args::Top, as_json: bool) -> Result<(), Failure> {
    let args = &top.pictures;
    if as_json || args.csv || args.once || args.count.is_some() || !stdout().is_terminal() {
        return pictures(args, false, as_json);
    }
    tui::refuse_dumb()?;
    let mut more = if args.fields.is_empty() { Vec::new() } else { chosen(&args.fields)? };
    let sort = args.sort.as_deref().map(|name| sorted_by(name, &mut more)).transpose()?;
    let tops: &[String] = if args.at.is_some() { &args.groups } else { &[] };
    let figures = Figures::new(&more, tops);
    // where the machine cannot be read, its page is empty
    let machine = topology::Machine::live().unwrap_or_default();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let (mut model, mut source): (Model, Box<dyn Source>) = match args.at {
        Some(moment) => {
            let replay = Replay::new(&directory(&args.log), moment, figures);
            (Model::replay(name, args.interval, machine), Box::new(replay))
        }
        None => {
            let host = host()?;
            let sampler = sampler(&host, &args.groups, 1)?;
            let socket = top.socket.clone();
            let deputy = Box::new(move |group: &GroupName, settings: &[(String, String)], denied| {
                by_daemon(&socket, group, settings, denied)
            });
            let changer = Changer::new(Box::new(system::Live)).with_deputy(deputy);
            let live = Live::new(host, sampler, figures, changer).with_resized(Box::new(resized));
            (Model::live(name, args.interval, machine), Box::new(live))
        }
    };
    if let Some(sort) = &sort {
        model = model.sorted_by(sort);
    }
    let options = Options { interval: args.interval, look: Look::of_environment() };
    Ok(tui::run(model, source.as_mut(), &options)?)
}

/// The groups that `ringfence elastic` shows; who may not read the history sees none.
fn resized(host: &Host) -> Option<Elastic> {
    let (state, running) = (State::peek(apply::state_directory()), Running::new());
    let target = Target { host, system: &running };
    let groups = apply::following(&state, target).ok()?;
    let trouble = || Resizes::of(&state).trouble(&apply::again(&state, target), time);
    let trouble = if groups.is_empty() { None } else { trouble() };
    Some(Elastic { groups, trouble })
}

/// As `set`: what this user has no permission for goes to the daemon.
fn by_daemon(
    socket: &args::Socket,
    group: &GroupName,
    settings: &[(String, String)],
    denied: apply::Error,
) -> Result<Vec<String>, Refusal> {
    let refusal = |failure: Failure| Refusal { message: failure.message, hint: failure.hint };
    let failure = Failure::from(denied);
    if !failure.denied {
        return Err(refusal(failure));
    }
    let changes = requests::changed(socket, group, settings.to_vec(), failure).map_err(refusal)?;
    Ok(changes.iter().flat_map(requests::notes).cloned().collect())
}
