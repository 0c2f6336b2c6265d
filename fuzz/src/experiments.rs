//! Files of the lab: experiments, and the results of experiments, which may be somebody else's.

use experiment::{CheckContext, Experiment, Results, check, leave_out, read, rescale};
use layout::{Source, render};
use topology::Machine;

use crate::with_text;

/// The machine that experiments are checked for.
const LISTING: &str = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 8192 MB\nnode 0 free: 4096 MB\n\
                       node distances:\nnode 0\n0: 10\n";

/// An experiment's file.
pub fn experiment(data: &[u8]) {
    with_text(data, |text| {
        let source = Source::new("f", text);
        let found = read(&source);
        let mut diagnostics = found.diagnostics;
        assert_eq!(
            found.experiment.is_none(),
            !diagnostics.is_empty(),
            "errors and a result exclude each other"
        );
        if let Some(experiment) = found.experiment {
            let Ok(machine) = Machine::from_listing("numactl", LISTING) else { unreachable!("it is one") };
            let cpus =
                rescale::rescale(&experiment, &machine).unwrap_or_else(|_| rescale::anywhere(&experiment));
            let known = CheckContext {
                cpus: &cpus,
                facts: &settings::NoMachine,
                group_figures: &[],
                machine_figures: &[],
            };
            diagnostics.extend(check(&experiment, &source, &found.places, &known));
            // results repeat the experiment as JSON
            let written = serde_json::to_string(&experiment).unwrap_or_else(|error| panic!("{error}"));
            let again: Experiment =
                serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
            assert_eq!(serde_json::to_string(&again).ok(), Some(written));
            let _ = leave_out(&mut experiment.clone(), &cpus, 2);
        }
        let shown = render(&diagnostics, &[source]);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    });
}

/// `results.json`: whatever is in it, the report has no markup of it, and a terminal does nothing by it.
pub fn results(data: &[u8]) {
    let Ok(results) = serde_json::from_slice::<Results>(data) else { return };
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let on_terminal = std::iter::once(report::takeaway(&results)).chain(report::targets(&results));
    for said in on_terminal {
        assert!(!said.split('\n').any(|line| units::printable(line).contains(acts)), "{said:?}");
    }
    for file in
        report::files(&results, std::path::Path::new("results")).unwrap_or_else(|error| panic!("{error}"))
    {
        let text = String::from_utf8_lossy(&file.bytes);
        assert!(!file.path.contains("..") && !file.path.starts_with('/'), "{}", file.path);
        if !file.path.ends_with(".json") {
            assert!(!text.contains(acts) || file.path.ends_with(".csv"), "{}: {text:?}", file.path);
            // Markdown has a backslash before it
            assert!(!text.replace("\\<", "").contains("<script"), "{}", file.path);
        }
    }
}
