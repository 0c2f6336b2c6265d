//! What holds of every report: drawn from the results in `samples`, realistic ones and those that are not as
//! results should be.

#[allow(missing_docs, clippy::unwrap_used)]
mod samples;

use std::path::Path;

use experiment::Results;
use experiment::file::{Better, ChartKind};
use experiment::number;
use proptest::prelude::*;
use roxmltree::Document;

use crate::chart::scene::{Area, Role, Scene, Shape};
use crate::chart::{self, Drawn};
use crate::view::View;
use crate::{File, Named, compare, difference, svg, tables};

fn scenes(results: &Results) -> Vec<Scene> {
    let view = View::of(results);
    let charts = chart::ratios(view).into_iter().chain(chart::all(view)).filter_map(|chart| chart.drawn);
    let strips = results.comparisons.iter().filter_map(|comparison| chart::strip(view, comparison));
    charts.flat_map(|Drawn { wide, narrow }| [wide, narrow]).chain(strips).collect()
}

fn files(results: &Results) -> Vec<File> {
    crate::files(results, Path::new("/var/my results")).unwrap_or_else(|error| panic!("{error}"))
}

fn text_of<'a>(files: &'a [File], path: &str) -> &'a str {
    let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}"));
    std::str::from_utf8(&file.bytes).unwrap_or_else(|_| panic!("{path} is not text"))
}

/// The page without what XML has not: the document's type, and elements that are never closed.
fn as_xml(page: &str) -> String {
    let mut out = String::new();
    for (index, part) in page.trim_start_matches("<!DOCTYPE html>").split("<meta").enumerate() {
        let rest = if index == 0 { part } else { part.split_once('>').map_or("", |(_, rest)| rest) };
        out.push_str(rest);
    }
    out
}

fn check_places(scene: &Scene) -> Result<(), String> {
    let page = Area { x: 0.0, y: 0.0, width: scene.width, height: scene.height };
    for mark in &scene.marks {
        let extent = mark.extent();
        let room: &[Area] = if mark.role == Role::Data { &scene.plots } else { std::slice::from_ref(&page) };
        if !room.iter().any(|area| area.holds(&extent)) {
            return Err(format!("{} wide, {:?}: {:?} is outside", scene.width, scene.title, mark.shape));
        }
    }
    Ok(())
}

fn check_labels(scene: &Scene) -> Result<(), String> {
    let labels = scene.marks.iter().filter(|mark| matches!(mark.shape, Shape::Text { .. }));
    let labels: Vec<_> = labels.map(|mark| (mark.extent(), &mark.shape)).collect();
    for (index, (area, shape)) in labels.iter().enumerate() {
        if let Some((_, other)) = labels[index + 1..].iter().find(|(other, _)| other.meets(area)) {
            return Err(format!("{} wide, {:?}: {shape:?} and {other:?}", scene.width, scene.title));
        }
    }
    Ok(())
}

#[test]
fn every_mark_is_inside_its_plot_and_every_label_on_the_page() {
    for (name, results) in samples::all() {
        for scene in scenes(&results) {
            check_places(&scene).unwrap_or_else(|found| panic!("{name}: {found}"));
        }
    }
}

#[test]
fn no_label_lies_on_another() {
    for (name, results) in samples::all() {
        for scene in scenes(&results) {
            check_labels(&scene).unwrap_or_else(|found| panic!("{name}: {found}"));
        }
    }
}

#[test]
fn pages_and_charts_are_well_formed_and_hold_nothing_that_runs_or_loads() {
    for (name, results) in samples::all() {
        let files = files(&results);
        let page = as_xml(text_of(&files, "report.html"));
        let svgs = files.iter().filter(|file| file.path.ends_with(".svg"));
        let svgs = svgs.map(|file| (file.path.as_str(), text_of(&files, &file.path)));
        for (path, text) in svgs.chain([("report.html", page.as_str())]) {
            let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}/{path}: {error}"));
            for node in document.descendants().filter(roxmltree::Node::is_element) {
                let tag = node.tag_name().name();
                assert!(
                    !["script", "img", "iframe", "object", "link", "use", "image"].contains(&tag),
                    "{name}/{path}: {tag}"
                );
                for attribute in node.attributes() {
                    let (attribute, value) = (attribute.name(), attribute.value());
                    assert!(!attribute.starts_with("on") && attribute != "src", "{name}/{path}: {attribute}");
                    assert!(attribute != "href" || value.starts_with('#'), "{name}/{path}: {value}");
                }
                if tag == "style" {
                    let style = node.text().unwrap_or_default();
                    let loads =
                        style.split("url(").skip(1).all(|rest| rest.starts_with("data:font/ttf;base64,"));
                    assert!(loads && !style.contains("@import"), "{name}/{path}");
                }
            }
        }
    }
}

#[test]
fn names_from_the_file_are_read_as_they_were_written() {
    let results = samples::absurd();
    let files = files(&results);
    let page = as_xml(text_of(&files, "report.html"));
    let document = Document::parse(&page).unwrap_or_else(|error| panic!("{error}"));
    let heading = document.descendants().find(|node| node.has_tag_name("h1")).and_then(|node| node.text());
    let seen = heading.unwrap_or_default();
    assert!(seen.starts_with("<script>alert('x')</script> & \"quoted\" | `code`"), "{seen}");
    let summary = text_of(&files, "summary.md");
    assert!(!summary.contains("<script>") && !summary.contains("[link]("), "{summary}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<usize> = summary.lines().filter(|line| line.starts_with("| ")).map(columns).collect();
    assert!(!table.is_empty() && table.iter().all(|count| [11, 5].contains(count)), "{table:?}");
}

#[test]
fn a_report_redrawn_from_its_json_has_the_same_bytes() {
    for (name, results) in samples::all() {
        let json = serde_json::to_string(&results).unwrap_or_default();
        let read: Results = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (once, again) = (files(&results), files(&read));
        assert!(!once.is_empty() && once.len() == again.len(), "{name}");
        for (one, other) in once.iter().zip(&again) {
            assert!(one == other, "{name}/{}", one.path);
        }
    }
}

#[test]
fn results_have_exactly_the_keys_that_their_schema_names() {
    let schema: serde_json::Value = serde_json::from_str(&experiment::results_schema()).unwrap_or_default();
    let results = serde_json::to_value(samples::cpusets()).unwrap_or_default();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
    };
    assert!(!keys(&results).is_empty());
    assert_eq!(keys(&schema["properties"]), keys(&results));
    assert_eq!(keys(&schema["$defs"]["Run"]["properties"]), keys(&results["runs"][0]));
}

#[test]
fn every_run_is_a_dot_and_every_rejected_run_a_cross() {
    let results = samples::same_twice();
    let drawn = chart::all(View::of(&results)).remove(0).drawn;
    let Some(Drawn { wide, .. }) = drawn else { panic!("nothing drawn") };
    let data = || wide.marks.iter().filter(|mark| mark.role == Role::Data);
    let dots = data().filter(|mark| matches!(mark.shape, Shape::Dot { .. })).count();
    let rejected = |tip: &String| tip.contains("rejected: foreign CPU 11 % is above 5 %");
    let crosses = data().filter(|mark| mark.tip.as_ref().is_some_and(rejected)).count();
    assert_eq!((dots, crosses), (12, 2 * 4), "a cross is two lines");
}

#[test]
fn the_page_has_the_takeaway_and_the_main_chart_first_and_the_machine_last() {
    let results = samples::cpusets();
    let files = files(&results);
    let page = as_xml(text_of(&files, "report.html"));
    let document = Document::parse(&page).unwrap_or_else(|error| panic!("{error}"));
    let sections: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    assert_eq!(
        sections,
        [
            "takeaway",
            "verdicts",
            "published",
            "charts",
            "settings",
            "figures",
            "runs",
            "environment",
            "reading"
        ]
    );
    let badges = document.descendants().filter(|node| node.attribute("class") == Some("badge"));
    let badges: Vec<&str> = badges.filter_map(|node| node.text()).collect();
    assert_eq!(badges, ["better", "no relevant difference", "inconclusive"]);
    for said in [
        "throughput: “all CPUs” is 80 % above “one CPU”",
        "6 and 6 runs, 1 more rejected.",
        "Published: 1.96 (the study, figure 3). It differs: ",
        "the same way, but weaker",
        "✗ rejected",
        "foreign CPU 18 % is above 5 %",
        "the quota&#39;s transactions have 17 times",
        "the study's 2 and 4 CPUs run here as 1 and 2",
        "6.18.5 #1 SMP PREEMPT_DYNAMIC",
        "cpu.cfs_quota_us = 100000",
    ] {
        let said = said.replace("&#39;", "'");
        assert!(page.replace("&#39;", "'").contains(&said), "{said}");
    }
    let rows = document.descendants().find(|node| node.attribute("id") == Some("runs"));
    let rows =
        rows.into_iter().flat_map(|node| node.descendants()).filter(|node| node.has_tag_name("tr")).count();
    assert_eq!(rows, results.runs.len() + 1, "a row per run, and the head");
}

#[test]
fn what_is_not_complete_or_not_there_is_said() {
    let files = files(&samples::nothing_yet());
    let page = text_of(&files, "report.html");
    let resume = "ringfence lab run --resume '/var/my results'";
    for said in ["This experiment is not complete", resume, "0</", "Nothing to draw", "no figures of both"] {
        assert!(page.contains(said.trim_end_matches("</")), "{said}");
    }
    assert!(text_of(&files, "summary.md").contains("not complete"));
}

#[test]
fn tables_for_programs_hold_every_run_and_every_digit() {
    let results = samples::cpusets();
    let files = files(&results);
    let mut runs = ::csv::Reader::from_reader(text_of(&files, "runs.csv").as_bytes());
    let head = runs.headers().cloned().unwrap_or_default();
    let column = head.iter().position(|name| name == "figure throughput").unwrap_or(usize::MAX);
    let read: Vec<Option<f64>> = runs.records().map(|row| row.ok()?.get(column)?.parse().ok()).collect();
    let had: Vec<Option<f64>> =
        results.runs.iter().map(|run| run.figures.get("throughput").copied()).collect();
    assert_eq!(read, had);
    let mut samples = ::csv::Reader::from_reader(text_of(&files, "samples.csv").as_bytes());
    let points = results.runs.iter().flat_map(|run| &run.series).map(|series| series.points.len());
    assert_eq!(samples.records().filter(Result::is_ok).count(), points.sum::<usize>());
}

#[test]
fn the_difference_between_conditions_is_exact() {
    let results = samples::cpusets();
    let difference = difference::between_conditions(View::of(&results));
    let reported: Vec<String> = difference
        .differs
        .iter()
        .flat_map(|row| {
            row.values.iter().map(move |value| {
                format!("{} {}: {:?} = {:?}", row.of, row.name, value.conditions, value.requested)
            })
        })
        .collect();
    assert_eq!(
        reported,
        [
            r#"server cpu.max: ["one CPU", "all CPUs", "one, then all"] = None"#,
            r#"server cpu.max: ["quota of one CPU"] = Some("100000 100000")"#,
            r#"server cpuset.cpus: ["one CPU", "one, then all"] = Some("0")"#,
            r#"server cpuset.cpus: ["all CPUs", "quota of one CPU"] = Some("0-1")"#,
        ]
    );
    let same: Vec<&str> = difference.same.iter().map(|row| row.of.as_str()).collect();
    assert_eq!(same, ["clients", "workload"]);
}

#[test]
fn two_experiments_are_laid_beside_each_other_with_what_differs() {
    let (first, mut second) = (samples::same_twice(), samples::same_twice());
    second.environment.facts[0].1 = "6.12.95".to_owned();
    second.cells[1].median = second.cells[1].median.map(|median| median * 2.0);
    second.cells[0].condition = "only here".to_owned();
    let compared = compare(Named { name: "a|b", results: &first }, Named { name: "<b>", results: &second });
    let ratios: Vec<Option<f64>> = compared.cells.iter().map(|cell| cell.ratio).collect();
    assert_eq!(ratios, [None, Some(2.0), None]);
    // of the values, which are the same: the median alone was doubled
    let (low, high) = compared.cells[1].interval.unwrap();
    assert!(low < 1.0 && 1.0 < high, "{low} to {high}");
    let shown = format!("| 2.00 ({} to {}) |", number::ratio(low), number::ratio(high));
    assert!(compared.markdown().contains(&shown), "{}", compared.markdown());
    let kernel = ("kernel", "6.18.5 #1 SMP PREEMPT_DYNAMIC", "6.12.95");
    let differs: Vec<_> =
        compared.differs.iter().map(|(of, one, two)| (of.as_str(), one.as_str(), two.as_str())).collect();
    assert_eq!(differs, [kernel]);
    assert!(compared.markdown().contains("a\\|b") && compared.markdown().contains("missing"));
}

/// All tables of a page below a heading's section, as texts.
fn rows_of<'d>(document: &'d Document<'_>, section: &str) -> Vec<Vec<&'d str>> {
    let section = document.descendants().find(|node| node.attribute("id") == Some(section));
    let rows = section.into_iter().flat_map(|node| node.descendants()).filter(|node| node.has_tag_name("tr"));
    let cells = |row: roxmltree::Node<'d, '_>| {
        row.children().filter(|node| node.is_element()).map(|node| node.text().unwrap_or("")).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_tables_that_are_asked_for_are_of_the_middle_run_and_its_times_close() {
    let results = samples::db_time();
    let grids = tables::all(View::of(&results));
    let titles: Vec<&str> = grids.iter().map(|grid| grid.title.as_str()).collect();
    assert_eq!(titles, ["Load profile", "Top events", "Ranking"]);
    for grid in &grids {
        assert_eq!(grid.parts.len(), if grid.title == "Ranking" { 1 } else { 5 }, "{grid:?}");
        for row in grid.parts.iter().flat_map(|part| &part.rows) {
            assert_eq!(row.len(), grid.heads.len(), "{row:?}");
        }
    }
    let caged = &grids[0].parts[1];
    assert_eq!(caged.name.as_deref(), Some("instance caging"));
    let names: Vec<&str> = caged.rows.iter().map(|row| row[0].as_str()).collect();
    let all = ["DB Time(s)", "DB CPU(s)", "Logical reads", "User calls", "Executes", "Transactions"];
    assert_eq!(names, all);
    assert_eq!(
        caged.rows[2][2..],
        ["–", "64", "1,024"],
        "no transaction, 64 reads an execution, 16 of these a call"
    );
    for part in &grids[1].parts {
        let shares: f64 = part.rows.iter().map(|row| row[4].parse::<f64>().unwrap_or(f64::NAN)).sum();
        assert!((shares - 100.0).abs() < 0.2, "{part:?}");
        let seconds: Vec<f64> =
            part.rows.iter().map(|row| row[2].replace(',', "").parse().unwrap_or(f64::NAN)).collect();
        assert!(seconds.is_sorted_by(|one, next| one >= next), "the longest first: {part:?}");
        let waits = part.rows.iter().find(|row| row[0] == "resmgr:cpu quantum").map(|row| row[3].as_str());
        let is_caged = part.name.as_deref().is_some_and(|name| name.contains("caging"));
        assert_eq!(waits, is_caged.then_some("83.333"), "{part:?}");
    }
    let order: Vec<[&str; 3]> =
        grids[2].parts[0].rows.iter().map(|row| [row[0].as_str(), &row[1], &row[5]]).collect();
    assert_eq!(
        order,
        [
            ["1", "caging and binding", "2"],
            ["2", "instance caging", "1"],
            ["3", "binding to CPUs", "4"],
            ["4", "nothing", "3"],
            ["5", "more threads than CPUs", "–"],
        ],
        "less waiting is better"
    );
    let files = files(&results);
    let page = as_xml(text_of(&files, "report.html"));
    let document = Document::parse(&page).unwrap_or_else(|error| panic!("{error}"));
    let rows = rows_of(&document, "tables");
    assert_eq!(
        rows.len(),
        6 + 5 + 5 * all.len() + grids[1].parts.iter().map(|part| part.rows.len()).sum::<usize>() + 5
    );
    let summary = text_of(&files, "summary.md");
    assert!(summary.contains("## Top events\n\n### nothing\n\n| event | waits |"), "{summary}");
    assert!(
        summary.contains("- DB CPU, instance caging : nothing: published 0.60, here ")
            && summary.contains(": **differs: "),
        "{summary}"
    );
}

#[test]
fn a_table_without_runs_says_so() {
    let mut results = samples::db_time();
    results.runs.clear();
    samples::cells(&mut results);
    let grids = tables::all(View::of(&results));
    assert!(grids[0].parts.is_empty() && grids[1].parts.is_empty(), "{grids:?}");
    let ranks: Vec<&str> = grids[2].parts[0].rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(ranks, ["–"; 5]);
    let files = files(&results);
    assert!(text_of(&files, "report.html").contains("no run that counts has these figures"));
}

#[test]
fn options_of_conditions_are_among_the_differences_as_they_were_and_without_runs_as_asked_for() {
    let mut results = samples::db_time();
    for value in ["1", "{six}"] {
        let difference = difference::between_conditions(View::of(&results));
        let row = difference.differs.iter().find(|row| row.name == "cpu-count");
        let row = row.unwrap_or_else(|| panic!("{difference:?}"));
        let reported: Vec<(Option<&str>, usize)> =
            row.values.iter().map(|value| (value.requested.as_deref(), value.conditions.len())).collect();
        assert_eq!((row.of.as_str(), reported), ("load", vec![(None, 3), (Some(value), 2)]));
        results.runs.clear();
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1e12), -1e3..1e3, 1e-9..1e-3, proptest::num::f64::NORMAL, Just(f64::NAN)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_the_figures_are_marks_stay_in_plots_and_labels_apart(
        figures in proptest::collection::vec(value(), 24), log: bool, names in proptest::collection::vec("\\PC{0,40}", 3),
    ) {
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let measures = [samples::measure("one", "s", Better::Lower), samples::measure("two", "1/s", Better::Higher)];
        let mut experiment = samples::experiment("x", "x", &names, &[], &measures);
        let kinds = [ChartKind::Bars, ChartKind::Stacked, ChartKind::Slopes, ChartKind::Heat, ChartKind::Time];
        experiment.chart = kinds.into_iter().map(|kind| samples::chart("chart", kind, &["one", "two"])).collect();
        experiment.chart.iter_mut().for_each(|chart| chart.log = log);
        let mut results = samples::results(experiment, 4);
        let mut dice = samples::Dice::new(1);
        for (index, figure) in figures.iter().enumerate() {
            let (condition, block) = (names[index % names.len()], index as u32 / 3);
            let mut run = samples::run(index as u32, block, condition, None, &mut dice);
            let other = figures[figures.len() - 1 - index];
            run.figures = [("one".to_owned(), *figure), ("two".to_owned(), other)].into();
            let points = figures.iter().enumerate().map(|(time, value)| (time as f64, *value)).collect();
            let series = |name: &str| experiment::results::Series { name: name.to_owned(), unit: "1/s".to_owned(), points };
            run.series = vec![series("one")];
            run.rejected = (index % 7 == 6).then(|| "why".to_owned());
            results.runs.push(run);
        }
        samples::cells(&mut results);
        for scene in scenes(&results) {
            prop_assert_eq!(check_places(&scene), Ok(()));
            prop_assert_eq!(check_labels(&scene), Ok(()));
            prop_assert!(Document::parse(&svg::file(&scene)).is_ok());
        }
    }
}

/// newcomers F: no sentence to take home, the charts 6,800 pixels down, and a limit that is "slower" than none.
#[test]
fn the_first_thing_on_the_page_is_what_to_take_home() {
    let results = samples::cpusets();
    let said = crate::takeaway(&results);
    assert!(said.contains("“all CPUs”") && said.contains("Of 3 comparisons: 1 better"), "{said}");
    let files = files(&results);
    let page = text_of(&files, "report.html");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("id=\"takeaway\"") < place("<figure") && place("<figure") < place("id=\"verdicts\""));
    assert!(place("id=\"environment\"") > place("id=\"runs\""));
    assert!(text_of(&files, "summary.md").contains("Of 3 comparisons"));
}

#[test]
fn a_target_is_what_the_report_answers_with() {
    let mut results = samples::cpusets();
    results.comparisons.clear();
    let reached = |target: f64, median: Option<f64>, farthest: f64| experiment::results::TargetReached {
        measure: "throughput".to_owned(),
        condition: "one CPU".to_owned(),
        load: None,
        target,
        median,
        off: median.map(|median| median / target - 1.0),
        farthest: median.map(|_| farthest),
        runs: 6,
    };
    results.targets = vec![reached(10.0, Some(9.97), -0.01), reached(100.0, Some(100.0), 0.002)];
    assert_eq!(
        crate::targets(&results)[0],
        "one CPU (throughput): 9.97/s measured, 0.3\u{a0}% below its target of 10/s; all 6 runs within 1\u{a0}%"
    );
    assert_eq!(
        crate::takeaway(&results),
        "All 2 targets are reached within 0.3\u{a0}%; the farthest is “one CPU” with 9.97/s of 10/s."
    );
    results.targets.push(reached(50.0, Some(10.0), -0.9));
    assert!(crate::takeaway(&results).starts_with("1 of 3 targets are missed by more than 5"));
    results.targets = vec![reached(10.0, None, 0.0)];
    assert!(crate::targets(&results)[0].contains("no run counts; the target is 10/s"));
    let files = files(&results);
    assert!(text_of(&files, "report.html").contains("no run counts; the target is 10/s"));
    assert!(text_of(&files, "summary.md").contains("## Targets"));
}

/// newcomers A14: charts said "95 % interval" of three runs; F: what others published was shown as a warning.
#[test]
fn an_interval_says_how_surely_it_covers_and_a_published_result_is_no_warning() {
    let mut results = samples::cpusets();
    for cell in &mut results.cells {
        cell.values.truncate(3);
    }
    for one in &mut results.comparisons {
        one.runs = (3, 3);
        one.note = Some("published: the quota is slower".to_owned());
    }
    let files = files(&results);
    let page = text_of(&files, "report.html");
    assert!(page.contains("75\u{a0}% interval") && page.contains("89\u{a0}% interval"));
    let before_the_words = page.split("id=\"reading\"").next().unwrap_or_default();
    assert!(!before_the_words.contains("95\u{a0}% interval") && !before_the_words.contains("95 % interval"));
    assert!(page.contains("Published result: the quota is slower.") && !page.contains("Mind:"));
}
