//! `topology`, `settings`, `doctor`, `mount`, `umount`.

use std::path::Path;

use apply::{GroupStatus, Running, State, Target};
use kernel::probe;
use plan::doctor::Finding;
use settings::{Controller, Version};
use topology::Machine;
use units::hint::Command;

use super::{host, layouts, listings};
use crate::{
    args::{self, Format},
    failure::{ATTENTION, Failure},
    output,
};

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
    if args.machine.is_empty() { Ok(Machine::live()?) } else { listings::merged(&args.machine) }
}

pub fn settings(args: &args::Settings, as_json: bool) -> Result<(), Failure> {
    // a controller's name stands for all of its settings
    let is_controller =
        |name: &str| settings::find(name).is_err() && settings::all().any(|row| settings::is_of(row, name));
    let is_list = args.names.iter().all(|name| name.contains('*') || is_controller(name));
    let mut rows: Vec<&'static settings::Setting> =
        if args.names.is_empty() { settings::all().collect() } else { Vec::new() };
    for name in &args.names {
        let found = if name.contains('*') {
            fitting(name)?
        } else if is_controller(name) {
            settings::all().filter(|row| settings::is_of(row, name)).collect()
        } else {
            vec![settings::find(name)?.setting]
        };
        for setting in found {
            if !rows.iter().any(|known| known.name == setting.name) {
                rows.push(setting);
            }
        }
    }
    if as_json {
        return output::json(&rows);
    }
    if is_list {
        return output::text(&rows.into_iter().map(listed).collect::<String>());
    }
    let described: Vec<String> = rows.into_iter().map(settings::describe).collect();
    output::text(&described.join("\n"))
}

/// Those of which some name, on either version, fits a pattern such as `memory.*`.
fn fitting(pattern: &str) -> Result<Vec<&'static settings::Setting>, Failure> {
    let unknown =
        || Failure::usage(format!("no setting fits '{pattern}'")).hint("ringfence settings lists them");
    let glob = layout::Glob::new(pattern).ok_or_else(unknown)?;
    let fits = |setting: &&'static settings::Setting| {
        let files =
            [Version::V1, Version::V2].into_iter().filter_map(|version| setting.side(version).binding());
        let mut names = files.flat_map(|binding| binding.names().iter().copied());
        glob.fits(setting.name.as_bytes()) || names.any(|name| glob.fits(name.as_bytes()))
    };
    let found: Vec<&settings::Setting> = settings::all().filter(fits).collect();
    if found.is_empty() { Err(unknown()) } else { Ok(found) }
}

/// A line of the list, as wide as the terminal.
fn listed(row: &'static settings::Setting) -> String {
    let versions = [Version::V1, Version::V2].map(|version| match row.side(version) {
        settings::Side::Has(_) => version.to_string(),
        settings::Side::Lacks { .. } => "--".to_owned(),
    });
    let first = row.doc.split(". ").next().unwrap_or(row.doc);
    let head = format!("{:34} {}  ", row.name, versions.join(" "));
    format!("{head}{}\n", args::wrapped(first, head.chars().count(), args::width()))
}

pub fn doctor(as_json: bool) -> Result<u8, Failure> {
    let facts = probe::probe(&kernel::Real::new());
    let machine = Machine::live().ok();
    let mut findings = plan::doctor::findings(&facts, machine.as_ref());
    findings.extend(super::daemon::strict_shells(Path::new("/etc")));
    findings.extend(isolated());
    findings.sort_by_key(|finding| finding.area);
    if as_json {
        output::json(&serde_json::json!({ "facts": facts, "findings": findings }))?;
    } else {
        output::text(&plan::doctor::render(&findings))?;
    }
    let attention = plan::doctor::needs_attention(&findings);
    Ok(if attention { ATTENTION } else { 0 })
}

/// Groups that the layout in effect isolates. None for who may not read the history.
fn isolated() -> Vec<Finding> {
    let (Ok(host), running) = (host(), Running::new()) else { return Vec::new() };
    let (state, target) = (State::peek(apply::state_directory()), Target { host: &host, system: &running });
    let (Ok(groups), Ok(all)) = (apply::status(&state, target), apply::isolated_cpus(&state, target)) else {
        return Vec::new();
    };
    let one = |group: &GroupStatus| {
        let cpus = group.cpus.as_ref().filter(|cpus| !cpus.is_empty() && cpus.is_subset(&all))?;
        let rows = layouts::rows_of(&groups, cpus);
        (!rows.is_empty()).then(|| layouts::finding(&group.group, cpus, &rows))
    };
    groups.iter().filter_map(one).collect()
}

pub fn mount(args: &args::Mount, as_json: bool) -> Result<(), Failure> {
    let controllers = v1_controllers(&args.controllers)?;
    if !rustix::process::geteuid().is_root() {
        let line = Command::ringfence("mount").args(&args.controllers);
        return Err(Failure::new("mounting a hierarchy needs root").hint(line.sudo()));
    }
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
