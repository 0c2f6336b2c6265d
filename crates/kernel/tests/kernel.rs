//! The conformance suite: one list of cases, run on the in-memory kernel (v1, v2 and both) and on the kernel of
//! the machine that it runs on. What the fake claims is thereby what real kernels do. Needs no other file, so
//! that the binary can be copied into a virtual machine.

mod conformance;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use conformance::{World, WorldKind};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(conformance::CHILD) {
        return conformance::child();
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for kind in WorldKind::ALL {
        match World::new(kind, "list") {
            Ok(world) => trials.extend(conformance::cases(&world).into_iter().map(|case| case.trial(kind))),
            Err(reason) => {
                eprintln!("{}: not run: {reason}", kind.name());
                trials.push(Trial::test(format!("{}::not_run", kind.name()), || Ok(())).with_ignored_flag(true));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
