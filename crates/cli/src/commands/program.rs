//! `completions`, `man`.

use std::fs;

use clap::CommandFactory;

use crate::{args, failure::Failure, output};

pub fn completions(args: &args::Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "ringfence", &mut script);
    output::text(&String::from_utf8_lossy(&script))
}

pub fn man(args: &args::Man) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot write manual pages to {}: {error}", args.directory.display()))
    };
    fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(args::Args::command(), &args.directory).map_err(failed)
}
