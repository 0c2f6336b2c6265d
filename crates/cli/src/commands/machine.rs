//! `topology`, `settings`, `doctor`, `mount`, `umount`.

use std::{
    fmt::Write,
    fs,
    io::Read,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use settings::{Controller, Version};
use topology::Machine;

use super::host;
use crate::{
    args::{self, Format},
    failure::{ATTENTION, Failure},
    output,
};

/// No listing of a machine is longer; a larger file was named by mistake.
const MAX_LISTING: u64 = 64 << 20;

pub fn topology(args: &args::Topology, as_json: bool) -> Result<(), Failure> {
    let machine = machine(args)?;
    if as_json {
        return output::text(&machine.to_json());
    }
    let rendered = match args.format {
        Format::Text => Ok(topology::print::text(&machine)),
        Format::Numactl => topology::print::numactl(&machine),
        Format::Cpus => topology::print::cpus(&machine),
        Format::Svg => Ok(topology::print::svg(&machine, &|_| None)),
    };
    output::text(&rendered?)
}

fn machine(args: &args::Topology) -> Result<Machine, Failure> {
    if args.machine.is_empty() { Ok(Machine::live()?) } else { listings(&args.machine) }
}

/// A machine from its listings, merged.
pub fn listings(paths: &[PathBuf]) -> Result<Machine, Failure> {
    let mut merged: Option<Machine> = None;
    for path in paths {
        let machine = listing(path)?;
        merged = Some(match merged {
            Some(first) => first.merge(machine)?,
            None => machine,
        });
    }
    merged.ok_or_else(|| Failure::usage("no listing is named"))
}

fn listing(path: &Path) -> Result<Machine, Failure> {
    let failed = |error: String| Failure::new(format!("cannot read {}: {error}", path.display()));
    if fs::metadata(path).map_err(|error| failed(error.to_string()))?.file_type().is_fifo() {
        return Err(failed("it is a named pipe, which may never end: save the listing to a file".to_owned()));
    }
    let file = fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_LISTING + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > MAX_LISTING {
        return Err(failed("it is larger than 64 MiB, no listing of a machine".to_owned()));
    }
    Ok(Machine::from_listing(&path.display().to_string(), &text)?)
}

pub fn settings(args: &args::Settings, as_json: bool) -> Result<(), Failure> {
    if args.names.is_empty() {
        let rows: Vec<&settings::Setting> = settings::all().collect();
        if as_json {
            return output::json(&rows);
        }
        let mut text = String::new();
        for row in rows {
            let versions = [Version::V1, Version::V2].map(|version| match row.side(version) {
                settings::Side::Has(_) => version.to_string(),
                settings::Side::Lacks { .. } => "--".to_owned(),
            });
            let first = row.doc.split(". ").next().unwrap_or(row.doc);
            let _ = writeln!(text, "{:34} {}  {first}", row.name, versions.join(" "));
        }
        return output::text(&text);
    }
    let found: Vec<_> = args.names.iter().map(|name| settings::find(name)).collect::<Result<_, _>>()?;
    if as_json {
        return output::json(&found.iter().map(|found| found.setting).collect::<Vec<_>>());
    }
    let described: Vec<String> = found.iter().map(|found| settings::describe(found.setting)).collect();
    output::text(&described.join("\n"))
}

pub fn doctor(as_json: bool) -> Result<u8, Failure> {
    let facts = kernel::facts::probe(&kernel::Real::new());
    let machine = Machine::live().ok();
    let findings = plan::doctor::findings(&facts, machine.as_ref());
    if as_json {
        output::json(&serde_json::json!({ "facts": facts, "findings": findings }))?;
    } else {
        output::text(&plan::doctor::render(&findings))?;
    }
    let attention = plan::doctor::needs_attention(&findings);
    Ok(if attention { ATTENTION } else { 0 })
}

pub fn mount(args: &args::Mount, as_json: bool) -> Result<(), Failure> {
    let controllers = v1_controllers(&args.controllers)?;
    let directory = kernel::mount_v1(&kernel::Real::new(), &controllers, args.at.as_deref())?;
    if as_json {
        output::json(&serde_json::json!({ "mounted": directory }))
    } else {
        output::text(&format!("{}\n", directory.display()))
    }
}

pub fn umount(args: &args::Mount, as_json: bool) -> Result<(), Failure> {
    let controllers = v1_controllers(&args.controllers)?;
    let host = host()?;
    let directory = kernel::unmount_v1(&host, &controllers)?;
    if as_json { output::json(&serde_json::json!({ "unmounted": directory })) } else { Ok(()) }
}

fn v1_controllers(names: &[String]) -> Result<Vec<Controller>, Failure> {
    let one = |name: &String| {
        Controller::from_name(name).filter(|controller| controller.name(Version::V1).is_some()).ok_or_else(
            || Failure::usage(format!("'{name}' is not a v1 controller")).hint("ringfence doctor lists them"),
        )
    };
    names.iter().map(one).collect()
}
