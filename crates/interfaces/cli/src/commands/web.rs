//! `web`: the page of this machine, until Ctrl-C.

use std::{
    io::{self, BufRead, IsTerminal, Read, stdin},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    sync::mpsc::{self, Sender},
    thread,
};

use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use web::{Options, Program, Server};

use super::{group, host};
use crate::{args, failure::Failure, output};

impl From<web::Error> for Failure {
    fn from(error: web::Error) -> Failure {
        let failure = match &error {
            web::Error::NotLoopback(_) => Failure::usage(&error),
            _ => Failure::new(&error),
        };
        failure.maybe_hint(error.hint())
    }
}

/// What ends the wait.
enum Came {
    /// Return was pressed.
    Return,
    /// A signal.
    End,
}

pub fn web(args: &args::Web, as_json: bool) -> Result<(), Failure> {
    let groups = args.groups.iter().map(|name| group(name)).collect::<Result<Vec<_>, _>>()?;
    // a name that was misspelt would be an empty page; without any name there may be no hierarchy
    for name in groups.iter().filter(|name| !name.path().is_empty()) {
        host()?.existing(name)?;
    }
    // before there is a server, so that no signal ends it half started
    let (send, came) = mpsc::channel();
    end_on_signals(send.clone())
        .map_err(|error| Failure::new(format!("signals can't be caught: {error}")))?;
    let server = web::serve(Options {
        listen: args.listen,
        write: args.write,
        session: args.session,
        groups,
        log: args.log.directory.clone().unwrap_or_else(monitor::log::directory),
        results: args.results.clone(),
        program: Program {
            path: "/proc/self/exe".into(),
            state: args.state.state.clone(),
            socket: args.socket.socket.clone(),
        },
        warn: output::warning,
    })?;
    let url = show(&server, as_json)?;
    if args.open {
        open(&url);
    }
    if stdin().is_terminal() {
        thread::spawn(move || {
            stdin().lock().lines().map_while(Result::ok).try_for_each(|_| send.send(Came::Return))
        });
    }
    while let Ok(Came::Return) = came.recv() {
        show(&server, as_json)?;
    }
    Ok(())
}

fn end_on_signals(send: Sender<Came>) -> io::Result<()> {
    let (mut came, signalled) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
    }
    thread::spawn(move || {
        // an error can only mean that nothing will come any more
        let _ = came.read(&mut [0]);
        send.send(Came::End)
    });
    Ok(())
}

/// Prints a new URL.
fn show(server: &Server, as_json: bool) -> Result<String, Failure> {
    let url = server.url()?;
    let text = if as_json { format!("{}\n", json!({ "url": url })) } else { format!("{url}\n") };
    output::text(&text)?;
    Ok(url)
}

/// As the user behind sudo, whose desktop it is.
fn open(url: &str) {
    let user = std::env::var("SUDO_USER").ok().filter(|_| rustix::process::geteuid().is_root());
    let mut command = match &user {
        Some(user) => {
            let mut command = Command::new("sudo");
            command.args(["-u", user, "--", "xdg-open"]);
            command
        }
        None => Command::new("xdg-open"),
    };
    let started = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        // it is waited for, so that it is no zombie while the server runs
        Ok(mut child) => drop(thread::spawn(move || {
            if !child.wait().is_ok_and(|status| status.success()) {
                output::warning("xdg-open has failed; open the URL yourself");
            }
        })),
        Err(error) => output::warning(&format!("xdg-open can't be started: {error}; open the URL yourself")),
    }
}
