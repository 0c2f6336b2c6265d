//! An experiment's results drawn for readers: a page, charts, tables. Works nothing out but what a drawing needs:
//! every figure is in the results. Pure: results in, the contents of files out, the same bytes each time.

mod chart; // the charts, as scenes
mod compare; // two experiments beside each other
mod csv; // tables for programs
mod difference; // in which settings conditions differ
mod html; // the page
mod markdown; // the summary
mod panels; // steps over time, of what is no experiment
mod published; // what others found beside it
mod svg; // a scene as SVG
mod tables; // those that the experiment requests
mod takeaway; // the first sentence
mod view; // finding things in results
mod words; // what a comparison says

pub use compare::{Compared, Named, compare};
pub use html::panels::page as panels_page;
pub use panels::{Line, Panel, Panels};

use std::path::Path;

use experiment::{Results, number};

use view::View;

/// A file of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Below the report's directory, with `/`.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Why a report can't be drawn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table can't be written.
    #[error("a table can't be written: {0}")]
    Table(#[from] ::csv::Error),
}

/// What came out, in a sentence or two.
pub fn takeaway(results: &Results) -> String {
    takeaway::takeaway(View::of(results))
}

/// What came out of each target, a line each.
pub fn targets(results: &Results) -> Vec<String> {
    let view = View::of(results);
    results.targets.iter().map(|reached| words::target(view, reached)).collect()
}

/// A figure with its unit as the report writes it: `249 µs` of 0.000249 s.
pub fn figure(value: f64, unit: &str) -> String {
    number::with_unit(value, unit)
}

/// The files of the report: `report.html`, `summary.md`, `runs.csv`, `samples.csv`, each chart as
/// `charts/NAME.svg`, and `results.schema.json`. `results.json`, of which all this is made, is the caller's, in `directory`:
/// a command that continues the experiment names it.
///
/// # Errors
/// [`Error`].
pub fn files(results: &Results, directory: &Path) -> Result<Vec<File>, Error> {
    let view = View::within(results, directory);
    let verdicts = chart::ratios(view);
    let charts = chart::all(view);
    let mut files = vec![
        File::text("report.html", html::page(view, verdicts.as_ref(), &charts)),
        File::text("summary.md", markdown::summary(view)),
        File { path: "runs.csv".to_owned(), bytes: csv::runs(view)? },
        File { path: "samples.csv".to_owned(), bytes: csv::samples(view)? },
        File::text("results.schema.json", experiment::results_schema()),
    ];
    for chart in verdicts.iter().chain(&charts) {
        if let Some(drawn) = &chart.drawn {
            files.push(File::text(&format!("charts/{}.svg", chart.name), svg::file(&drawn.wide)));
        }
    }
    Ok(files)
}

impl File {
    fn text(path: &str, text: String) -> File {
        File { path: path.to_owned(), bytes: text.into_bytes() }
    }
}

#[cfg(test)]
#[allow(clippy::panic)] // a test's way to say what it found
mod tests;
