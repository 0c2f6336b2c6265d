//! Draws the reports of the tests' results to look at: `cargo run -p ringfence-report --example sample -- DIR`.

#[allow(dead_code, missing_docs, clippy::unwrap_used)]
mod samples;

use std::path::PathBuf;
use std::{env, fs, io};

use report::Named;

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.ok_or_else(|| io::Error::other("usage: sample DIR"))?;
    for (name, results) in samples::all() {
        let files = report::files(&results, &directory).map_err(io::Error::other)?;
        for file in files {
            let path = directory.join(name).join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(&directory))?;
            fs::write(path, &file.bytes)?;
        }
    }
    let (first, second) = (samples::cpusets(), samples::nothing_yet());
    let beside = report::compare(
        Named { name: "2026-03-14-s5", results: &first },
        Named { name: "2026-03-21-s5", results: &second },
    );
    fs::write(directory.join("compared.md"), beside.markdown())
}
