//! `check`, `import`, `export`, `schema`: layouts as texts. The machine is asked for its accounts and its size, and
//! nothing else.

use layout::{Desired, Diagnostic, HostFacts, Severity, Trust};
use serde_json::json;
use settings::Version;
use system::Accounts;
use topology::Machine;

use super::{counted, errors, read, refused};
use crate::{args, failure::Failure, output};

pub fn check(args: &args::LayoutFile, as_json: bool) -> Result<(), Failure> {
    let (mut reading, sources) = layout::read_path(&args.layout, Trust::of_this_process());
    if let Some(desired) = &reading.desired {
        reading.diagnostics.extend(of_this_machine(desired));
    }
    let diagnostics = &reading.diagnostics;
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if as_json {
        output::json(&json!({ "diagnostics": diagnostics }))?;
        let has = || Failure::new(format!("{} has {}", args.layout.display(), errors(diagnostics)));
        return if failed { Err(has()) } else { Ok(()) };
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

/// What is asked for is a text in a form of its own.
fn has_no_json(command: &str, as_json: bool) -> Result<(), Failure> {
    if as_json { Err(Failure::usage(format!("{command} has no JSON form"))) } else { Ok(()) }
}

pub fn import(args: &args::LayoutFile, as_json: bool) -> Result<(), Failure> {
    has_no_json("import", as_json)?;
    output::text(&layout::to_toml(&read(&args.layout)?.desired))
}

pub fn export(args: &args::Export, as_json: bool) -> Result<(), Failure> {
    has_no_json("export", as_json)?;
    let layout = read(&args.layout)?;
    let version = if args.v2 { Version::V2 } else { Version::V1 };
    let desired = &layout.desired;
    let export = match args.to {
        args::ExportTo::Toml => return output::text(&layout::to_toml(desired)),
        args::ExportTo::Cgconfig => layout::to_cgconfig(desired, version, &system::Live),
        args::ExportTo::Cgrules => layout::to_cgrules(desired),
        args::ExportTo::Cgset => layout::to_cgset(desired, version, &system::Live),
    };
    output::error(&layout::render(&export.lost, &layout.sources));
    output::text(&export.text)
}

pub fn schema(args: &args::Schema) -> Result<(), Failure> {
    match args.of {
        args::SchemaOf::Layout => output::text(&layout::schema()),
        args::SchemaOf::Experiment => output::text(&experiment::schema()),
    }
}
