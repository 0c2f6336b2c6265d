//! Temporary.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::panic)]
#[path = "../tests/kernel/devices.rs"]
mod devices;
fn main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == devices::PROBE) {
        devices::probe(words);
        return std::process::ExitCode::SUCCESS;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, devices::trials()).exit_code()
}
