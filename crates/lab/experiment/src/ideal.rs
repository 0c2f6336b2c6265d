//! What a figure would be if it grew as the CPUs do. Worked out of results, for a chart.

use units::CpuSet;

use crate::{
    file::Ideal,
    results::{Cell, Design},
};

/// The ideal figure of a condition: the median of the one that it starts from, as many times as there are more CPUs.
/// `None` without runs of that, or for a condition whose CPUs are not named.
pub fn ideal(requested: &Ideal, design: &Design, cells: &[Cell], of: &Cell) -> Option<f64> {
    let count = |condition: &str| -> Option<f64> {
        let set = requested.cpus.get(condition)?;
        let (.., here) = design.cpus.iter().find(|(name, ..)| name == set)?;
        here.parse::<CpuSet>().ok().filter(|cpus| !cpus.is_empty()).map(|cpus| cpus.len() as f64)
    };
    let is_start =
        |cell: &&Cell| cell.condition == requested.from && cell.measure == of.measure && cell.load == of.load;
    let start = cells.iter().find(is_start)?.median?;
    Some(start * count(&of.condition)? / count(&requested.from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(condition: &str, median: Option<f64>) -> Cell {
        Cell {
            condition: condition.to_owned(),
            load: None,
            measure: "rate".to_owned(),
            values: median.into_iter().collect(),
            rejected: 0,
            rejected_values: Vec::new(),
            median,
            interval: None,
            variation: None,
            published: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn ideal_is_as_many_times_the_start_as_there_are_more_cpus() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let requested =
            Ideal { from: "few".to_owned(), cpus: [pair("few", "two"), pair("many", "six")].into() };
        let row = |name: &str, here: &str| (name.to_owned(), "of the study".to_owned(), here.to_owned());
        let design = Design { cpus: vec![row("two", "0-1"), row("six", "0,2-6")], ..Design::default() };
        let cells = [cell("few", Some(100.0)), cell("many", Some(250.0)), cell("other", Some(1.0))];
        let of = |place: usize| ideal(&requested, &design, &cells, &cells[place]);
        assert_eq!([of(0), of(1), of(2)], [Some(100.0), Some(300.0), None]);
        let none = [cell("few", None), cell("many", Some(250.0))];
        assert_eq!(ideal(&requested, &design, &none, &none[1]), None);
    }
}
