//! `completions`, `links`, `man`.

use std::{fs, io::ErrorKind, path::Path};

use clap::CommandFactory;

use crate::{args, failure::Failure, output};

pub fn completions(args: &args::Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "ringfence", &mut script);
    output::text(&String::from_utf8_lossy(&script))
}

/// A link for each of libcgroup's commands. What is there already stays: another program's must be moved away first.
pub fn links(args: &args::Links) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(format!("cannot make a link at {}: {error}", path.display()))
    };
    let program = fs::read_link("/proc/self/exe").map_err(|error| failed(&args.directory, error))?;
    fs::create_dir_all(&args.directory).map_err(|error| failed(&args.directory, error))?;
    let others = |path: &Path| {
        fs::symlink_metadata(path).is_ok() && fs::read_link(path).ok().as_ref() != Some(&program)
    };
    let paths: Vec<_> = libcgroup::names().map(|name| args.directory.join(name)).collect();
    if let Some(taken) = paths.iter().find(|path| others(path)) {
        return Err(Failure::new(format!("{} is there already; no link was made", taken.display()))
            .hint("name another directory that comes first in PATH, or remove the package that it is of"));
    }
    for path in &paths {
        match std::os::unix::fs::symlink(&program, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(path, error)),
            _ => {}
        }
    }
    Ok(())
}

pub fn man(args: &args::Man) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot write manual pages to {}: {error}", args.directory.display()))
    };
    fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(args::Args::command(), &args.directory).map_err(failed)?;
    libcgroup::names()
        .filter_map(libcgroup::definition)
        .try_for_each(|definition| clap_mangen::generate_to(definition, &args.directory))
        .map_err(failed)
}
