//! `check`, `import`, `export`, `schema`: layouts as texts. Of the machine, only its accounts and its size are read.

use std::path::{Path, PathBuf};

use ::plan::{Anybody, Observed, Problem};
use answers::layouts::{Checked, Converted};
use apply::State;
use layout::{CpuDemand, Desired, Diagnostic, HostFacts, MemDemand, Severity, UnitName};
use settings::Version;
use system::{
    Accounts,
    files::{self, Trust},
};
use topology::Machine;
use units::{counted, hint::Command};

use super::{Layout, impossible, read, refused};
use crate::{args, failure::Failure, output};

pub fn check(args: &args::Check, as_json: bool) -> Result<(), Failure> {
    let (mut reading, sources) = files::read_layout(&args.layout, Trust::of_this_process());
    if let Some(desired) = &reading.desired {
        reading.diagnostics.extend(apply::foreign(desired).map(|problem| problem.diagnostic()));
        reading.diagnostics.extend(of_this_machine(desired));
        reading.diagnostics.extend(starving(desired));
        let state = State::peek(apply::state_directory());
        let in_force = apply::in_force(&state, &args.layout).unwrap_or_default();
        reading.diagnostics.extend(apply::times(desired, &in_force, jiff::Timestamp::now()));
    }
    let diagnostics = &reading.diagnostics;
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if as_json && !failed {
        let (groups, rules) = reading
            .desired
            .as_ref()
            .map_or((0, 0), |desired| (desired.groups.len(), desired.all_rules().len()));
        let diagnostics = reading.diagnostics;
        return output::json_by_name(&Checked { diagnostics, groups, rules });
    }
    match &reading.desired {
        Some(desired) if !failed => {
            output::error(&layout::render(diagnostics, &sources));
            let (groups, rules) = (desired.groups.len(), desired.all_rules().len());
            output::text(&format!("{}, {}: no error\n", counted(groups, "group"), counted(rules, "rule")))
        }
        _ => Err(refused(diagnostics, &sources, &args.layout)),
    }
}

/// Limits that no program can run with: that needs no machine to be seen.
fn starving(desired: &Desired) -> Vec<Diagnostic> {
    let of_group = |group: &layout::Group| {
        let found = group.demands.settings.iter().filter_map(|assigned| {
            let value = assigned.found.parse(&assigned.text, &system::Live).ok()?;
            let (message, hint) = ::plan::starving(&assigned.found, &value, &group.name)?;
            Some(Diagnostic::warning(message).at(assigned.origin.clone()).hint(hint))
        });
        found.collect::<Vec<Diagnostic>>()
    };
    desired.groups.iter().flat_map(of_group).collect()
}

/// That it is for another machine is no error of a layout; nor is it then that this one lacks its users.
fn of_this_machine(desired: &Desired) -> Vec<Diagnostic> {
    let mut elsewhere = desired.assertions.refusals(&facts());
    let accounts = desired.unknown_accounts(&Accounts::new());
    if elsewhere.is_empty() {
        return accounts;
    }
    elsewhere.extend(accounts);
    elsewhere.into_iter().map(|found| Diagnostic { severity: Severity::Warning, ..found }).collect()
}

/// What is known of this machine.
fn facts() -> HostFacts {
    let hostname = Some(rustix::system::uname().nodename().to_string_lossy().into_owned());
    let Ok(machine) = Machine::live() else { return HostFacts { hostname, ..HostFacts::default() } };
    HostFacts {
        hostname,
        model: machine.model_name.clone(),
        nodes: (!machine.nodes.is_empty()).then_some(machine.nodes.len()),
        cpus: Some(machine.online().len()),
        memory: machine.memory_total(),
    }
}

/// A text in a format of its own, and what is said of it.
fn answered(
    text: &str,
    said: &[Diagnostic],
    sources: &[layout::Source],
    as_json: bool,
) -> Result<(), Failure> {
    output::error(&layout::render(said, sources));
    match as_json {
        true => output::json_by_name(&Converted { text, diagnostics: said }),
        false => output::text(text),
    }
}

/// libcgroup's own files, in its order.
const LIBCGROUP: [&str; 4] = ["/etc/cgconfig.conf", "/etc/cgconfig.d", "/etc/cgrules.conf", "/etc/cgrules.d"];

pub fn import(args: &args::Import, as_json: bool) -> Result<(), Failure> {
    if args.from == args::ImportFrom::Systemd {
        return import_units(&args.files, as_json);
    }
    let named: Vec<PathBuf> = match args.files.is_empty() {
        true => LIBCGROUP.iter().map(PathBuf::from).filter(|path| path.exists()).collect(),
        false => args.files.clone(),
    };
    if named.is_empty() {
        return Err(Failure::new(format!("none of {} exists", LIBCGROUP.join(", ")))
            .hint("ringfence import FILE names another"));
    }
    if let Some(path) = named.iter().find(|path| !path.exists()) {
        let there: Vec<&str> = LIBCGROUP.into_iter().filter(|path| Path::new(path).exists()).collect();
        let hint = match there.as_slice() {
            [] => "name a file of libcgroup: cgconfig.conf, cgrules.conf".to_owned(),
            there => Command::ringfence("import").args(there).into(),
        };
        return Err(Failure::usage(format!("there is no {}", path.display())).hint(hint));
    }
    let mut files = Vec::new();
    for path in &named {
        files.extend(files_of(path)?);
    }
    let shown: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
    let shown = PathBuf::from(shown.join(", "));
    if files.is_empty() {
        return Err(Failure::new(format!("there is no file *.conf in {}", shown.display())));
    }
    let loaded = files::load(&files, Trust::of_this_process());
    if !loaded.diagnostics.is_empty() {
        return Err(refused(&loaded.diagnostics, &loaded.sources, &shown));
    }
    let reading = layout::read(&loaded.sources);
    let Some(desired) = &reading.desired else {
        return Err(refused(&reading.diagnostics, &loaded.sources, &shown));
    };
    answered(&layout::to_toml(desired), &reading.diagnostics, &loaded.sources, as_json)
}

/// A layout from the files of units.
fn import_units(names: &[PathBuf], as_json: bool) -> Result<(), Failure> {
    let named = names.iter().map(|name| {
        let name = name.to_string_lossy();
        UnitName::of_file_name(&name).map_err(|error| Failure::usage(&error).hint(error.hint()))
    });
    let (units, unread) = files::unit_sources(&named.collect::<Result<Vec<UnitName>, Failure>>()?);
    if !unread.is_empty() {
        return Err(refused(&unread, &[], Path::new("systemd's files")));
    }
    let text = layout::from_systemd(&units, &system::Live, system::tasks_max());
    if text.is_empty() {
        let what = if names.is_empty() { "a unit" } else { "these units" };
        return Err(Failure::new(format!("no file in /etc or /run limits {what}"))
            .hint("systemctl cat UNIT shows a unit's files; those of packages hold without a layout"));
    }
    answered(&text, &[], &[], as_json)
}

/// A file itself; of a layout's directory its files, of any other its `*.conf`, as libcgroup reads them.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error: Diagnostic| Failure::usage(&error.message).maybe_hint(error.hint);
    if !path.is_dir() {
        return files::layout_files(path).map_err(wrong);
    }
    let is_layout = path.join("layout.toml").exists() || path.join("layout.d").exists();
    if is_layout { files::layout_files(path) } else { files::files_in(path, "conf") }.map_err(wrong)
}

pub fn export(args: &args::Export, as_json: bool) -> Result<(), Failure> {
    let layout = read(&args.layout)?;
    let version = if args.v2 { Version::V2 } else { Version::V1 };
    let desired = &layout.desired;
    let export = match args.to {
        args::ExportTo::Toml => return answered(&layout::to_toml(desired), &[], &layout.sources, as_json),
        args::ExportTo::Cgconfig => layout::to_cgconfig(desired, version, &system::Live),
        args::ExportTo::Cgrules => layout::to_cgrules(desired),
        args::ExportTo::Cgset => layout::to_cgset(desired, version, &system::Live),
        args::ExportTo::Systemd => layout::to_systemd(&resolved(&layout)?, &system::Live),
    };
    answered(&export.text, &export.lost, &layout.sources, as_json)
}

/// The layout with the CPUs and memory nodes that a plan for this machine has, as if nothing was applied.
fn resolved(layout: &Layout<'_>) -> Result<Desired, Failure> {
    let (machine, observed) = (Machine::live()?, Observed::empty(Version::V2));
    let plan = ::plan::plan(&layout.desired, &machine, &observed, &system::Live, &Anybody);
    let plan = plan.map_err(|problems| {
        let wrong: Vec<Diagnostic> = problems.iter().map(Problem::diagnostic).collect();
        impossible(layout, &wrong)
    })?;
    let mut desired = layout.desired.clone();
    for assignment in plan.assignments {
        let group = desired.groups.iter_mut().find(|group| group.name == assignment.group);
        let Some(demands) = group.map(|group| &mut group.demands) else { continue };
        if let (Some(cpus), Some(set)) = (&mut demands.cpus, assignment.cpus) {
            cpus.value = CpuDemand::These(set);
        }
        if let (Some(mems), Some(set)) = (&mut demands.mems, assignment.mems) {
            mems.value = MemDemand::These(set);
        }
    }
    Ok(desired)
}

pub fn schema(args: &args::Schema) -> Result<(), Failure> {
    match args.of {
        args::SchemaOf::Layout => output::text(&layout::schema()),
        args::SchemaOf::Experiment => output::text(&experiment::schema()),
    }
}
