//! A row per task over the time of one run per condition, coloured by the CPU that it ran on last: whether a change
//! reached every task, and when.

use std::collections::BTreeSet;

use experiment::file::Chart;
use experiment::results::{Run, TaskSeen};

use super::legend::{self, Symbol};
use super::rows::{self, Group, Row};
use super::scale::Scale;
use super::scene::{Anchor, Area, Dash, Ink, SMALL, Scene, Stroke, Style};
use super::{palette, text};
use crate::view::{View, place_name};

/// More tasks than these make a wall of colour; the rest is in the results.
const MOST: usize = 40;

/// Draws it; `None` if no run has seen tasks.
pub fn draw(view: View<'_>, chart: &Chart, width: f64) -> Option<Scene> {
    let mut scene = Scene::new(width, &chart.title);
    let mut seen: Vec<(String, &Run, Vec<&TaskSeen>)> = Vec::new();
    for condition in view.conditions(&chart.conditions) {
        for load in view.loads() {
            let Some(run) = view.middle((condition, load)) else { continue };
            let named = run.tasks.iter().any(|task| requested(chart, task));
            let tasks: Vec<&TaskSeen> =
                run.tasks.iter().filter(|task| !named || requested(chart, task)).collect();
            if tasks.iter().any(|task| !task.cpus.is_empty()) {
                seen.push((format!("{} · run {}", place_name((condition, load)), run.number), run, tasks));
            }
        }
    }
    if seen.is_empty() {
        return None;
    }
    let cpus: BTreeSet<u32> = seen
        .iter()
        .flat_map(|(_, _, tasks)| tasks.iter().flat_map(|task| task.cpus.iter().map(|(_, cpu)| *cpu)))
        .collect();
    let cpus: Vec<u32> = cpus.into_iter().collect();
    let mut top =
        legend::draw(&mut scene, 0.0, &entries(&cpus, seen.iter().any(|(_, run, _)| !run.events.is_empty())));
    let (low, high) = ends(&seen);
    for (heading, run, tasks) in &seen {
        let shown = &tasks[..tasks.len().min(MOST)];
        let several = shown.iter().any(|task| task.group != shown[0].group);
        let group = Group {
            heading: Some(heading.clone()),
            rows: shown.iter().map(|task| row(task, several)).collect(),
        };
        let mut laid = rows::lay(&mut scene, top, &[group], 14.0);
        let scale = Scale::exactly(low, high).between(laid.ends.0, laid.ends.1);
        for (task, band) in shown.iter().zip(&laid.bands.clone()) {
            draw_task(&mut scene, task, high.min(run.seconds.max(0.0)), band, &scale, &cpus);
        }
        if let (Some(first), Some(last)) = (laid.bands.first(), laid.bands.last()) {
            for event in &run.events {
                let x = scale.at(event.at);
                let ends = ((x, first.y - 3.0), (x, last.bottom() + 3.0));
                scene.line(ends.0, ends.1, Stroke::dashed(Ink::Text, 2.0)).data().tip(event.label.clone());
            }
        }
        let (ticks, unit) = scale.ticks(5, "s");
        rows::horizontal_numbers(&mut scene, &ticks, &scale, laid.bottom + 12.0, unit);
        laid.bottom += 20.0;
        if tasks.len() > shown.len() {
            let words = format!("and {} more tasks, in results.json", tasks.len() - shown.len());
            scene.text((0.0, laid.bottom + 12.0), Anchor::Start, SMALL, words);
            laid.bottom += 18.0;
        }
        top = laid.bottom + 14.0;
    }
    scene.height = top - 10.0;
    Some(scene)
}

/// `of` names groups, or a group's `tasks`; where it names none that has tasks, all are drawn.
fn requested(chart: &Chart, task: &TaskSeen) -> bool {
    chart.of.iter().any(|name| name.strip_suffix(".tasks").unwrap_or(name) == task.group)
}

fn ends(seen: &[(String, &Run, Vec<&TaskSeen>)]) -> (f64, f64) {
    let times = seen.iter().flat_map(|(_, run, tasks)| {
        tasks.iter().flat_map(|task| task.cpus.iter().map(|(time, _)| *time)).chain([run.seconds])
    });
    let (low, high) = times
        .filter(|time| time.is_finite())
        .fold((0.0_f64, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
    (low.max(-1e9), high.min(1e9))
}

fn row(task: &TaskSeen, with_group: bool) -> Row {
    let group = if with_group { format!("{} · ", task.group) } else { String::new() };
    Row { label: format!("{group}{} {}", task.name, task.tid), ..Row::default() }
}

fn entries(cpus: &[u32], events: bool) -> Vec<(Symbol, String)> {
    let shown: Vec<usize> =
        if cpus.len() <= 16 { (0..cpus.len()).collect() } else { vec![0, cpus.len() / 2, cpus.len() - 1] };
    let entry = |index: usize| (Symbol::Field(ink(index, cpus.len())), format!("CPU {}", cpus[index]));
    let mut entries: Vec<(Symbol, String)> = shown.into_iter().map(entry).collect();
    if events {
        entries.push((Symbol::Upright(Ink::Text, Dash::Dashed), "a change of settings".to_owned()));
    }
    entries
}

/// Few CPUs have a colour each; of many, near numbers have near colours.
fn ink(index: usize, count: usize) -> Ink {
    if count <= palette::SERIES {
        Ink::Series(index)
    } else {
        Ink::Ramp(index * (Ink::STEPS - 1) / (count - 1))
    }
}

fn draw_task(scene: &mut Scene, task: &TaskSeen, end: f64, band: &Area, scale: &Scale, cpus: &[u32]) {
    let seen: Vec<(f64, u32)> = task.cpus.iter().filter(|(time, _)| time.is_finite()).copied().collect();
    for (index, same) in seen.chunk_by(|one, other| one.1 == other.1).enumerate() {
        let (Some((from, cpu)), Some(last)) = (same.first(), same.last()) else { continue };
        let behind: usize =
            seen.chunk_by(|one, other| one.1 == other.1).take(index + 1).map(<[_]>::len).sum();
        let to = seen.get(behind).map_or(end.max(last.0), |(time, _)| *time);
        let place = cpus.iter().position(|one| one == cpu).unwrap_or(0);
        let (left, right) = (scale.at(*from), scale.at(to));
        let area = Area { x: left, width: (right - left).max(0.0), y: band.y, height: band.height };
        let ink = ink(place, cpus.len());
        let tip = format!("{} {}: CPU {cpu} from {from:.1} s to {to:.1} s", task.name, task.tid);
        scene.rect(area, ink, 1.0).data().tip(tip);
        let number = cpu.to_string();
        if area.width > text::width(&number, 11.0, true) + 8.0 {
            let on = match ink {
                Ink::Ramp(step) => Ink::OnRamp(step),
                _ => Ink::Surface,
            };
            let style = Style { size: 11.0, bold: true, ink: on };
            scene.text((left + 4.0, band.y + 11.0), Anchor::Start, style, number);
        }
    }
}
