//! The drivers that an experiment names, and the built-in ones in place of tools that are missing.

use std::collections::BTreeMap;

use experiment::{Experiment, Note, file, options, rescale::Rescaled};
use workloads::{Program, drivers};

use crate::Error;

/// Names of sets of CPUs in a built-in driver's options filled in.
///
/// # Errors
/// Nothing is named so, or it is no number.
pub(crate) fn filled(of: &file::Driver, cpus: &Rescaled) -> Result<file::Driver, Error> {
    let mut driver = of.clone();
    for (_, text) in driver.counts() {
        *text = threads(text, cpus)?.to_string();
    }
    let named = match &mut driver {
        file::Driver::LogicalIo(engine) => Some(&mut engine.placement),
        file::Driver::Rtla(rtla) => Some(&mut rtla.cpus),
        _ => None,
    };
    if let Some(named) = named {
        let filled = cpus.fill(named, &BTreeMap::new());
        *named = filled.map_err(|unknown| Error::cannot(format!("nothing is named '{{{unknown}}}'")))?;
    }
    Ok(driver)
}

/// A number of threads, or as many as a named set has CPUs.
pub(super) fn threads(text: &str, cpus: &Rescaled) -> Result<u64, Error> {
    let named = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let filled = match named {
        Some(name) if !name.contains('.') => cpus.fill(&format!("{{{name}.count}}"), &BTreeMap::new()),
        _ => cpus.fill(text, &BTreeMap::new()),
    };
    let threads = filled.ok().and_then(|text| text.parse().ok());
    threads.ok_or_else(|| Error::cannot(format!("'{text}' is no number of threads")))
}

/// Workloads of real tools that run built-in instead: their names, and why, for the reader.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    /// `load` of `[workload.load]`, `NAME.0` of a load's.
    pub names: Vec<String>,
    pub notes: Vec<Note>,
}

/// Puts built-in workloads in place of those named; without names, of those whose tool is missing, or of all that have
/// one if `all` is requested.
pub(crate) fn replace(
    experiment: &mut Experiment,
    all: bool,
    names: Option<&[String]>,
    program: &Program,
) -> Replaced {
    let mut replaced = Replaced::default();
    let conditions = &mut experiment.condition;
    let measured = experiment.workload.iter_mut().map(|(name, workload)| (name.clone(), workload));
    let loads = experiment.load.iter_mut().flat_map(|load| {
        let name = load.name.clone();
        let numbered = load.workload.iter_mut().enumerate();
        numbered.map(move |(number, workload)| (format!("{name}.{number}"), workload))
    });
    for (name, workload) in measured.chain(loads) {
        let row = workload.driver.row();
        let (Some(by), Some(tool)) = (&row.built_in, row.tool) else { continue };
        let stays = || Note::Workload {
            workload: format!("'{name}'"),
            text: format!("{} runs, as {} can't do what its options ask for", tool.program, by.title),
        };
        let Some(instead) = (by.of)(&workload.driver) else {
            replaced.notes.extend(all.then(stays));
            continue;
        };
        // the options of conditions are the tool's: each becomes what the built-in one has otherwise there
        let of_conditions = conditions.iter().filter_map(|condition| condition.options.get(&name));
        let in_conditions = of_conditions.map(|requested| {
            let there = (by.of)(&options::with(&workload.driver, requested).ok()?)?;
            Some(options::between(&instead, &there))
        });
        let Some(in_conditions) = in_conditions.collect::<Option<Vec<_>>>() else {
            replaced.notes.extend(all.then(stays));
            continue;
        };
        let why = match names {
            Some(names) if !names.contains(&name) => continue,
            Some(_) => None,
            None if all => None,
            None => match drivers::new(&workload.driver, program).and_then(|driver| driver.versions()) {
                Ok(_) => continue,
                Err(error) => Some(error),
            },
        };
        let hint = why
            .as_ref()
            .and_then(workloads::Error::hint)
            .map(|hint| format!(" ({hint})"))
            .unwrap_or_default();
        let why = why.map_or_else(|| "as requested".to_owned(), |error| format!("{error}{hint}"));
        let (by, tool) = (by.title.to_owned(), tool.program.to_owned());
        replaced.notes.push(Note::Substitute { workload: name.clone(), by, tool, why });
        workload.driver = instead;
        let of_conditions = conditions.iter_mut().filter_map(|condition| condition.options.get_mut(&name));
        of_conditions.zip(in_conditions).for_each(|(place, options)| *place = options);
        replaced.names.push(name);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use units::CpuSet;

    use super::*;

    fn experiment(workload: &str, options: &str) -> Experiment {
        let text = format!(
            "name='x'\ntitle='x'\n[cpus.six]\n[workload.w]\n{workload}\n[[condition]]\nname='a'\n\
             [[condition]]\nname='b'\n{options}\n[[measure]]\nname='m'\nis='w.rate'\n"
        );
        let read = experiment::read(&layout::Source::new("x", &text));
        read.experiment.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    }

    #[test]
    fn names_of_sets_are_filled_in_also_in_a_conditions_options() {
        let options = "options.w = { cpu-count = '{six}', placement = 'bind:{six.mems}' }";
        let experiment = experiment("driver='logical-io'\nreaders=9", options);
        let mut cpus = Rescaled::default();
        cpus.sets.insert("six".to_owned(), CpuSet::range(0, 2));
        cpus.mems.insert("six".to_owned(), "1".to_owned());
        let variants = options::variants(&experiment, "w").unwrap();
        let file::Driver::LogicalIo(engine) = filled(&variants[1].driver, &cpus).unwrap() else {
            panic!("{variants:?}")
        };
        let reported = [engine.readers, engine.cpu_count.unwrap_or_default(), engine.placement];
        assert_eq!(reported, ["9", "3", "bind:1"]);
        assert!(filled(&variants[1].driver, &Rescaled::default()).is_err(), "nothing is named so");
    }

    #[test]
    fn conditions_change_the_built_in_workload_as_they_do_the_tool() {
        let mut experiment = experiment(
            "driver='pgbench'\nclients=4\nthreads=2",
            "options.w = { clients = 8, threads = 8, script = 'tpcb-like' }",
        );
        let replaced = replace(&mut experiment, true, None, &Program::this("worker"));
        assert_eq!(replaced.names, ["w"]);
        let variants = options::variants(&experiment, "w").unwrap();
        let oltp: Vec<_> = variants
            .iter()
            .map(|variant| match &variant.driver {
                file::Driver::Oltp(oltp) => (oltp.clients, oltp.script.clone()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(oltp, [(4, "select".to_owned()), (8, "tpcb".to_owned())]);
    }

    #[test]
    fn a_tool_stays_if_the_built_in_workload_can_not_do_what_a_condition_asks_for() {
        for (options, in_b) in [("", "options.w.script = 'select 1;'"), ("\nsettings.jit = 'off'", "")] {
            let mut experiment = experiment(&format!("driver='pgbench'{options}"), in_b);
            let replaced = replace(&mut experiment, true, None, &Program::this("worker"));
            assert!(replaced.names.is_empty());
            let said = replaced.notes[0].to_string();
            assert!(said.contains("'w'") && said.contains("pgbench runs"), "{said}");
            assert!(matches!(experiment.workload["w"].driver, file::Driver::Pgbench(_)));
        }
    }
}
