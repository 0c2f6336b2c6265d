//! The hidden subcommand that built-in workloads are reached by.

use super::isolate;
use crate::{args, failure::Failure};

pub fn worker(args: &args::Worker) -> Result<(), Failure> {
    let (kind, options) = args.words.split_first().ok_or_else(|| Failure::usage("no workload is named"))?;
    if kind == isolate::NOISE {
        return isolate::noise(options);
    }
    let options = options.iter().map(Into::into);
    let done: Result<(), lab::Error> = match kind.as_str() {
        "oltp-server" => workloads::oltp::main_oltp_server(options).map_err(Into::into),
        "oltp-clients" => workloads::oltp::main_oltp_clients(options).map_err(Into::into),
        "cpu" => workloads::main_cpu(options).map_err(Into::into),
        "read" => workloads::main_read(options).map_err(Into::into),
        "logical-io" => workloads::main_logical_io(options).map_err(Into::into),
        "cyclic" => workloads::main_cyclic(options).map_err(Into::into),
        "load" => workloads::main_load(options).map_err(Into::into),
        "enter" => lab::main_enter(options),
        other => return Err(Failure::usage(format!("there is no workload '{other}'"))),
    };
    done.map_err(|error| {
        let failure = Failure::new(&error);
        error.hint().into_iter().fold(failure, Failure::hint)
    })
}
