//! The hidden subcommand that built-in workloads are reached by.

use crate::{args, failure::Failure};

pub fn worker(args: &args::Worker) -> Result<(), Failure> {
    let (kind, options) = args.words.split_first().ok_or_else(|| Failure::usage("no workload is named"))?;
    let options = options.iter().map(Into::into);
    let done = match kind.as_str() {
        "oltp-server" => lab::main_oltp_server(options),
        "oltp-clients" => lab::main_oltp_clients(options),
        "cpu" => lab::workloads::main_cpu(options),
        "read" => lab::workloads::main_read(options),
        "logical-io" => lab::workloads::main_logical_io(options),
        "cyclic" => lab::workloads::main_cyclic(options),
        "load" => lab::workloads::main_load(options),
        "enter" => lab::main_enter(options),
        other => return Err(Failure::usage(format!("there is no workload '{other}'"))),
    };
    done.map_err(|error| {
        let failure = Failure::new(&error);
        error.hint().into_iter().fold(failure, Failure::hint)
    })
}
