//! The command line: reads arguments, calls the crates that do the work, prints what they say, and ends with a
//! documented status. It holds no logic of its own.
//!
//! It begins at C's `main`: Rust's own start reads `/proc/self/maps` to place a guard below the stack, which takes
//! a tenth of the time of a one-shot command. SIGPIPE keeps its default, as a command's reader expects.
#![no_main]

mod args;
mod commands;
mod failure;
mod output;

#[allow(unsafe_code, reason = "the C library calls a symbol of this name, once, with its arguments")]
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    let status = match args::Args::read() {
        Ok(args) => commands::run(&args).unwrap_or_else(|failure| {
            output::error(&failure.rendered());
            failure.code
        }),
        Err(error) => {
            // a closed standard output is the reader's wish
            let _ = error.print();
            if error.use_stderr() { failure::USAGE } else { 0 }
        }
    };
    i32::from(status)
}
