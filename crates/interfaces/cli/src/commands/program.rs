//! `completions`, `links`, `man`.

use std::{fs, io::ErrorKind, path::Path};

use libcgroup::cset;
use serde_json::json;

use crate::{args, completion, failure::Failure, manual, output};

pub fn completions(args: &args::Completions) -> Result<(), Failure> {
    output::text(&completion::script(args.shell)?)
}

/// A link for each of libcgroup's commands and for cset. What is there already stays: another program's must be moved away first.
pub fn links(args: &args::Links, as_json: bool) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(format!("cannot make a link at {}: {error}", path.display()))
    };
    let program = fs::read_link("/proc/self/exe").map_err(|error| failed(&args.directory, error))?;
    fs::create_dir_all(&args.directory).map_err(|error| failed(&args.directory, error))?;
    let others = |path: &Path| {
        fs::symlink_metadata(path).is_ok() && fs::read_link(path).ok().as_ref() != Some(&program)
    };
    let paths: Vec<_> =
        libcgroup::names().chain([cset::NAME]).map(|name| args.directory.join(name)).collect();
    if let Some(taken) = paths.iter().find(|path| others(path)) {
        return Err(Failure::new(format!("{} already exists; no link was made", taken.display()))
            .hint("name another directory that comes first in PATH, or remove the package that it is of"));
    }
    for path in &paths {
        match std::os::unix::fs::symlink(&program, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(path, error)),
            _ => {}
        }
    }
    if as_json { output::json(&json!({ "links": paths, "program": program })) } else { Ok(()) }
}

/// Into man1 and man5 below a directory that is named man, else all into the directory itself.
pub fn man(args: &args::Man, as_json: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot write manual pages to {}: {error}", args.directory.display()))
    };
    let has_sections = args.directory.file_name().is_some_and(|name| name == "man");
    let libcgroup = libcgroup::names().filter_map(libcgroup::definition).flat_map(manual::pages);
    let all = manual::pages(args::Args::definition()).into_iter().chain(libcgroup);
    let all = all.chain(manual::pages(cset::definition())).chain(manual::files());
    let mut written = Vec::new();
    for page in all {
        let section = if has_sections { format!("man{}", page.section) } else { String::new() };
        let directory = args.directory.join(section);
        fs::create_dir_all(&directory).map_err(failed)?;
        let path = directory.join(format!("{}.{}", page.name, page.section));
        fs::write(&path, page.text).map_err(failed)?;
        written.push(path);
    }
    if as_json { output::json(&json!({ "pages": written })) } else { Ok(()) }
}
