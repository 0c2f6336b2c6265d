//! The charts of a report, each for a wide and for a narrow page: text stays as large on a phone.

mod bars;
mod frame; // values upwards
mod heat;
mod legend; // what marks mean
pub mod palette; // which colour an ink is
mod ratios;
mod rows; // values to the right, a row each
mod scale; // from values to places
pub mod scene; // a drawing as data
mod slopes;
mod stacked;
pub mod steps;
mod tail;
mod tasks;
pub mod text; // how wide a label is
mod time;

use experiment::file::{Chart as Requested, ChartKind};
use experiment::results::Comparison;

use crate::view::View;
use scene::Scene;

/// On a page of 1280 pixels, on paper, and in files of its own.
const WIDE: f64 = 860.0;
/// On a phone of 400 pixels.
const NARROW: f64 = 348.0;

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its files' name without ending, unique in its report.
    pub name: String,
    /// What it says.
    pub title: String,
    /// What to look at.
    pub caption: String,
    /// As it is drawn, if there is anything to draw.
    pub drawn: Option<Drawn>,
}

/// Both of its drawings.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// For a wide page and for files.
    pub wide: Scene,
    /// For a narrow page.
    pub narrow: Scene,
}

/// The ratios of all comparisons; `None` if there is none.
pub fn ratios(view: View<'_>) -> Option<Chart> {
    let all: Vec<&Comparison> = view.results.comparisons.iter().collect();
    let drawn = both(|width| ratios::draw(view, &all, width, true))?;
    Some(Chart {
        name: "verdicts".to_owned(),
        title: "All comparisons".to_owned(),
        caption: "Each ratio of medians with its interval. An interval that does not touch 1 is a difference; one that \
                  lies in the shaded field is no relevant difference."
            .to_owned(),
        drawn: Some(drawn),
    })
}

/// One comparison's ratio, without words.
pub fn strip(view: View<'_>, comparison: &Comparison) -> Option<Scene> {
    ratios::draw(view, &[comparison], NARROW - 24.0, false)
}

/// Those that the experiment requests; of one that requests none, bars of every measure.
pub fn all(view: View<'_>) -> Vec<Chart> {
    let experiment = &view.results.experiment;
    let own: Vec<Requested> = experiment.measure.iter().map(|measure| bars_of(&measure.name)).collect();
    let requested = if experiment.chart.is_empty() { &own } else { &experiment.chart };
    let chart = |(index, requested): (usize, &Requested)| Chart {
        name: format!("{:02}-{}", index + 1, slug(&requested.title)),
        title: requested.title.clone(),
        caption: caption(requested),
        drawn: both(|width| draw(view, requested, width)),
    };
    requested.iter().enumerate().map(chart).collect()
}

fn bars_of(measure: &str) -> Requested {
    Requested {
        title: measure.to_owned(),
        kind: ChartKind::Bars,
        of: vec![measure.to_owned()],
        conditions: Vec::new(),
        log: false,
        line: Vec::new(),
        ideal: None,
    }
}

fn both(draw: impl Fn(f64) -> Option<Scene>) -> Option<Drawn> {
    Some(Drawn { wide: draw(WIDE)?, narrow: draw(NARROW)? })
}

fn draw(view: View<'_>, requested: &Requested, width: f64) -> Option<Scene> {
    match requested.kind {
        ChartKind::Bars => bars::draw(view, requested, width),
        ChartKind::Stacked => stacked::draw(view, requested, width),
        ChartKind::Slopes => slopes::draw(view, requested, width),
        ChartKind::Time => time::draw(view, requested, width),
        ChartKind::Heat => heat::draw(view, requested, width),
        ChartKind::Histogram => tail::draw(view, requested, width),
        ChartKind::Tasks => tasks::draw(view, requested, width),
    }
}

/// What to look at.
fn caption(requested: &Requested) -> String {
    let words = match requested.kind {
        ChartKind::Bars if requested.log => {
            "Each dot is a run. The axis is logarithmic: each step is ten times the one before. Look how close the \
             dots lie to the target, and to each other."
        }
        ChartKind::Bars => {
            "Each dot is a run, the bar ends at their median. Look whether the dots of two bars overlap: where they do \
             not, chance alone is an unlikely reason."
        }
        ChartKind::Stacked => {
            "Each bar is made of the medians of its parts; a dot is the sum of one run. Look which part grows."
        }
        ChartKind::Slopes => {
            "Each thin line joins the runs of one block, made one soon after the other. Look whether all of them go \
             the same way."
        }
        ChartKind::Time => {
            "One run per condition: the one with the middle figure. Look at what happens at the upright lines, and \
             how steady the line is before and after."
        }
        ChartKind::Heat => {
            "The median of all runs in each field; the stronger its colour, the larger the number. Below stands where \
             each colour begins."
        }
        ChartKind::Histogram => {
            "All runs together, from the median (P50) to the longest: at P99, one in a hundred took longer than the \
             line shows. Both axes are logarithmic. Look where the lines part."
        }
        ChartKind::Tasks => {
            "Each row is a task, its colour the CPU that it ran on last, in the run with the middle figure. Look \
             whether all rows change colour at the upright line."
        }
    };
    words.to_owned()
}

/// Letters and digits of a title, for a file's name.
fn slug(title: &str) -> String {
    let mut out = String::new();
    for character in title.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() {
            out.push(character);
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
        if out.len() >= 40 {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "chart".to_owned() } else { out.to_owned() }
}
