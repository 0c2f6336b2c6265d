//! The two lines above every page: when, and what the machine does.

use ratatui_core::layout::Rect;

use super::{bars, look::Tone, pen::Pen};
use crate::model::{Mode, Model};
use exporters::view::{Measure, Value, written};
use monitor::FigureUnit;

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    pen.fill(Rect { height: 1.min(area.height), ..area }, Tone::Bar);
    let at = model.at.map(|at| humantime::format_rfc3339_seconds(at).to_string()).unwrap_or_default();
    let what = match model.mode {
        Mode::Live => format!("every {}", humantime::format_duration(model.every)),
        Mode::Replay { playing: true } => "LOG, playing".to_owned(),
        Mode::Replay { playing: false } => "LOG, stopped".to_owned(),
    };
    let load = model.figures.get("load").map(|load| format!("  load {load:.2}")).unwrap_or_default();
    let late = model.lateness.as_ref().map(|late| format!("  {late}")).unwrap_or_default();
    let line = format!(" ringfence  {}  {at}  {what}{load}{late}", model.name);
    pen.text(area.x, area.y, area.width, &line, Tone::Bar);
    if area.height > 1 {
        machine(model, pen, Rect { y: area.y + 1, ..area });
    }
}

/// CPU and memory as bars, and how long anything waited.
fn machine(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let figures = &model.figures;
    let width = if area.width >= 100 { 16 } else { 10 };
    let mut x = area.x;
    let piece = |pen: &mut Pen<'_>, x: u16, name: &str, share: Option<f64>, text: &str| {
        let left = area.right().saturating_sub(x);
        let x = pen.text(x, area.y, left, name, Tone::Strong);
        let x = pen.text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &bars::bar(share, width, pen.look),
            bars::tone(share),
        );
        pen.text(x, area.y, area.right().saturating_sub(x), text, Tone::Plain)
    };
    let cpus = figures.busy.len();
    if cpus > 0 {
        let used = figures.used_cpus();
        x = piece(pen, x, " CPU ", Some(used / cpus as f64), &format!(" {used:.2} of {cpus}"));
    }
    if let (Some(total), Some(available)) = (figures.get("memory.total"), figures.get("memory.available")) {
        let used = total - available;
        let text = format!(" {} of {}", bytes(used), bytes(total));
        x = piece(pen, x, "  MEM ", Some(used / total), &text);
    }
    let pressure = |name: &str| figures.get(&format!("{name}.pressure.some"));
    let words: Vec<String> = [("cpu", "c"), ("memory", "m"), ("io", "i")]
        .into_iter()
        .filter_map(|(name, letter)| Some(format!("{letter} {:.0}%", pressure(name)? * 100.0)))
        .collect();
    let words = words.join(" ");
    let width = u16::try_from("  WAIT ".len() + words.len()).unwrap_or(u16::MAX);
    if !words.is_empty() && width <= area.right().saturating_sub(x) {
        let x = pen.text(x, area.y, area.right().saturating_sub(x), "  WAIT ", Tone::Strong);
        pen.text(x, area.y, area.right().saturating_sub(x), &words, Tone::Plain);
    }
}

pub(super) fn bytes(number: f64) -> String {
    written(Value::At(number), Measure::Figure(FigureUnit::Bytes))
}
