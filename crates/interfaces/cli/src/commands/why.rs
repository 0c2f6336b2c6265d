//! `why`: what slowed a group down.

use monitor::Descriptors;

use super::{group, host};
use crate::{args, failure::Failure, output};

pub fn why(args: &args::Why, json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let facts = why::gather(&host()?, Descriptors::new(), &name, args.span)?;
    let answer = why::why(&facts);
    if json { output::json(&answer) } else { output::text(&answer.to_string()) }
}
