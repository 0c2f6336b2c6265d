//! `freeze`, `thaw`, `kill`.

use std::time::Duration;

use serde_json::json;

use super::{group, host};
use crate::{args, failure::Failure, output};

pub fn set_frozen(args: &args::Wait, frozen: bool, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let state = kernel::set_frozen(&host, &name, frozen, Duration::from_secs(args.timeout))?;
    if as_json { output::json(&json!({ "group": name.to_string(), "state": state })) } else { Ok(()) }
}

pub fn kill(args: &args::Wait, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let killed = kernel::kill(&host, &name, Duration::from_secs(args.timeout))?;
    if as_json { output::json(&json!({ "group": name.to_string(), "killed": killed })) } else { Ok(()) }
}
