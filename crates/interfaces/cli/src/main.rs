//! The command line: reads arguments, calls the crates that do the work, prints what they say, and ends with a
//! documented status. It holds no logic of its own.
//!
//! It begins at C's `main`: Rust's own start reads `/proc/self/maps` to place a guard below the stack, which takes
//! a tenth of the time of a one-shot command. SIGPIPE keeps its default, as a command's reader expects.
#![no_main]

mod args;
mod commands;
mod completion;
mod elevated;
mod failure;
mod manual;
mod output;
mod studies;

use libcgroup::cset;

#[allow(unsafe_code, reason = "the C library calls a symbol of this name, once, with its arguments")]
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    // a panic that left a function of C's would abort before anything is cleaned up
    std::panic::catch_unwind(start).unwrap_or(i32::from(failure::FAILED))
}

fn start() -> i32 {
    // set-user-ID, set-group-ID or file capabilities: the environment and the arguments are somebody else's
    if elevated::is_elevated() {
        output::error("ringfence does not run set-user-ID, set-group-ID or with file capabilities");
        return i32::from(failure::FAILED);
    }
    if program_name().as_deref() == Some(daemon::GATE) {
        return i32::from(commands::gate(std::env::args_os().skip(1)));
    }
    if program_name().as_deref() == Some(daemon::GENERATOR) {
        return i32::from(commands::generator(std::env::args_os().skip(1)));
    }
    if let Some(status) = completion::answered().or_else(as_other_tool) {
        return i32::from(status);
    }
    let status = match args::Args::read() {
        Ok(mut args) => {
            let as_json = args.everywhere.json;
            commands::run(&mut args).unwrap_or_else(|failure| output::failure(&failure, as_json))
        }
        Err(mistake) => mistake.reported(),
    };
    i32::from(status)
}

/// One of libcgroup's commands or cset, by the name of the link that this was started by, or after our own name. Looked for
/// first: no other definition is built for them.
fn as_other_tool() -> Option<u8> {
    let mut words = std::env::args_os();
    let link = words.next()?;
    let link = std::path::Path::new(&link).file_name()?.to_str()?;
    if link == cset::NAME {
        return Some(cset::run(words));
    }
    if link != "ringfence" && libcgroup::names().any(|name| name == link) {
        return libcgroup::run(link, words);
    }
    let first = words.next()?;
    if first == cset::NAME {
        return Some(cset::run(words));
    }
    libcgroup::run(first.to_str()?, words)
}

/// The name of the link that this was started by.
fn program_name() -> Option<String> {
    let link = std::env::args_os().next()?;
    Some(std::path::Path::new(&link).file_name()?.to_str()?.to_owned())
}
