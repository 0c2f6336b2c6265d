//! Which options a workload's driver has in a condition: those of the workload, and over them the condition's own. One
//! driver is enough for all conditions in which they are the same. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Experiment,
    file::{Condition, Driver, Options, applies},
};

/// A workload's driver, and the conditions in which it is that.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// With its options.
    pub driver: Driver,
    /// In the file's order.
    pub conditions: Vec<String>,
}

/// Why options do not make a driver. A file that was read has none of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workload '{workload}' in condition '{condition}': {reason}")]
pub struct OptionsError {
    /// Whose.
    pub workload: String,
    /// Where.
    pub condition: String,
    /// What is wrong.
    pub reason: String,
}

/// A driver with some of its options replaced; `null` takes one away.
///
/// # Errors
/// There is no such option, or its value has another shape.
pub fn with(driver: &Driver, options: &Options) -> Result<Driver, String> {
    let whole = serde_json::to_value(driver).map_err(|error| error.to_string())?;
    let Value::Object(mut whole) = whole else { return Ok(driver.clone()) };
    for (name, value) in options {
        // what the driver does not know would be passed over when it is read
        let known = whole.get_mut(name).filter(|_| name != TAG);
        *known.ok_or_else(|| format!("there is no option '{name}'"))? = value.clone();
    }
    serde_json::from_value(Value::Object(whole)).map_err(|error| error.to_string())
}

/// Names the driver among its options.
pub(crate) const TAG: &str = "driver";

/// The options in which one driver differs from another of the same program.
pub fn between(from: &Driver, to: &Driver) -> Options {
    let all = |driver: &Driver| match serde_json::to_value(driver) {
        Ok(Value::Object(options)) => options,
        _ => Default::default(),
    };
    let from = all(from);
    all(to).into_iter().filter(|(name, value)| name != TAG && from.get(name) != Some(value)).collect()
}

/// A workload's driver in a condition; `None` if there is no such workload.
///
/// # Errors
/// [`OptionsError`].
pub fn driver(
    experiment: &Experiment,
    workload: &str,
    condition: &Condition,
) -> Result<Option<Driver>, OptionsError> {
    let Some(of) = experiment.workload.get(workload) else { return Ok(None) };
    let Some(options) = condition.options.get(workload) else { return Ok(Some(of.driver.clone())) };
    let failed =
        |reason| OptionsError { workload: workload.to_owned(), condition: condition.name.clone(), reason };
    with(&of.driver, options).map(Some).map_err(failed)
}

/// All drivers that a workload has, each once, with the conditions in which it runs so.
///
/// # Errors
/// [`OptionsError`].
pub fn variants(experiment: &Experiment, workload: &str) -> Result<Vec<Variant>, OptionsError> {
    let only = experiment.workload.get(workload).map(|of| of.conditions.as_slice()).unwrap_or_default();
    let mut found: Vec<Variant> = Vec::new();
    for condition in &experiment.condition {
        if !applies(only, &condition.name) {
            continue;
        }
        let Some(driver) = driver(experiment, workload, condition)? else { continue };
        match found.iter_mut().find(|variant| variant.driver == driver) {
            Some(same) => same.conditions.push(condition.name.clone()),
            None => found.push(Variant { driver, conditions: vec![condition.name.clone()] }),
        }
    }
    Ok(found)
}

/// The options of a workload's driver that some condition has otherwise.
pub fn changed<'e>(experiment: &'e Experiment, workload: &str) -> BTreeSet<&'e str> {
    let of = experiment.condition.iter().filter_map(|condition| condition.options.get(workload));
    of.flat_map(|options| options.keys().map(String::as_str)).collect()
}

/// A driver's option as people write it; `None` if it is neither given nor has a default.
pub fn text_of(driver: &Driver, name: &str) -> Option<String> {
    let value = serde_json::to_value(driver).ok()?.get_mut(name)?.take();
    text(&value)
}

/// An option's value as people write it.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => Some(all.iter().filter_map(text).collect::<Vec<_>>().join(" ")),
        Value::Object(all) if all.is_empty() => Some("none".to_owned()),
        Value::Object(all) => {
            let given = all.iter().filter_map(|(name, value)| Some(format!("{name} = {}", text(value)?)));
            Some(given.collect::<Vec<_>>().join(", "))
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "x"
title = "x"
[cpus.six]
count = 1
[workload.engine]
driver = "logical-io"
readers = 9
[workload.other]
driver = "cpu"
conditions = ["caged", "caged on a node"]
[[condition]]
name = "free"
[[condition]]
name = "caged"
options.engine.cpu-count = "{six}"
[[condition]]
name = "caged on a node"
options.engine = { cpu-count = "{six}", placement = "bind:0" }
[[condition]]
name = "as the workload has it"
options.engine.readers = 9
[[measure]]
name = "m"
is = "engine.reads"
"#;

    fn experiment() -> Experiment {
        let read = crate::read(&layout::Source::new("x", TEXT));
        read.experiment.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    }

    #[test]
    fn a_condition_replaces_what_it_names_and_leaves_the_rest() {
        let experiment = experiment();
        let of = |condition: usize| driver(&experiment, "engine", &experiment.condition[condition]);
        let of = |condition| match of(condition) {
            Ok(Some(Driver::LogicalIo(engine))) => engine,
            other => panic!("{other:?}"),
        };
        let caged = of(2);
        assert_eq!(caged.readers, "9");
        assert_eq!(caged.cpu_count.as_deref(), Some("{six}"));
        assert_eq!(caged.placement, "bind:0");
        assert_eq!((of(0).cpu_count, of(0).placement.as_str()), (None, "first-touch"));
        assert_eq!(driver(&experiment, "nothing", &experiment.condition[0]), Ok(None));
    }

    #[test]
    fn one_driver_is_enough_for_all_conditions_with_the_same_options() {
        let experiment = experiment();
        let names = |workload: &str| -> Vec<Vec<String>> {
            variants(&experiment, workload).unwrap().into_iter().map(|one| one.conditions).collect()
        };
        assert_eq!(
            names("engine"),
            [vec!["free", "as the workload has it"], vec!["caged"], vec!["caged on a node"]]
        );
        assert_eq!(names("other"), [["caged", "caged on a node"]]);
        assert_eq!(
            changed(&experiment, "engine").into_iter().collect::<Vec<_>>(),
            ["cpu-count", "placement", "readers"]
        );
        assert!(changed(&experiment, "other").is_empty());
    }

    #[test]
    fn what_no_driver_takes_is_refused_also_from_results() {
        let mut experiment = experiment();
        let engine = experiment.condition[1].options.get_mut("engine").unwrap();
        engine.insert("cpu-cuont".to_owned(), 1.into());
        let error = variants(&experiment, "engine").unwrap_err().to_string();
        assert_eq!(error, "workload 'engine' in condition 'caged': there is no option 'cpu-cuont'");
        let engine = experiment.condition[1].options.get_mut("engine").unwrap();
        engine.remove("cpu-cuont");
        engine.insert("words".to_owned(), "many".into());
        assert!(variants(&experiment, "engine").is_err());
        engine_is_no_other_program(&experiment);
    }

    fn engine_is_no_other_program(experiment: &Experiment) {
        let options = Options::from([("driver".to_owned(), "cpu".into())]);
        assert!(with(&experiment.workload["engine"].driver, &options).is_err());
    }

    #[test]
    fn what_is_between_two_drivers_makes_the_one_of_the_other() {
        let experiment = experiment();
        let all = variants(&experiment, "engine").unwrap();
        let (free, caged) = (&all[0].driver, &all[2].driver);
        for (from, to) in [(free, caged), (caged, free)] {
            assert_eq!(with(from, &between(from, to)).as_ref(), Ok(to));
        }
        assert_eq!(text_of(caged, "cpu-count").as_deref(), Some("{six}"));
        assert_eq!((text_of(free, "cpu-count"), text_of(free, "nothing")), (None, None));
    }
}
