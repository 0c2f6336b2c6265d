//! The machine as a map: nodes with their memory, and every CPU with its load and the group that has it.

use ratatui_core::layout::Rect;

use super::{bars, header::bytes, look::Tone, pen::Pen};
use exporters::view::{Cell, Owners};

use crate::model::{Map, Mode, Model, Page, letter};

/// Lines of the legend, at most, on a small screen.
const LEGEND: usize = 3;

pub(super) fn draw(model: &Model, pen: &mut Pen<'_>, area: Rect) {
    let Page::Machine(page) = &model.page else { return };
    let map = model.map();
    let most = if area.height > 30 { 2 * LEGEND } else { LEGEND };
    // a list says it in words
    let legend = if map.is_list && model.owners.is_some() {
        Vec::new()
    } else {
        legend(model, usize::from(area.width), most)
    };
    let below = u16::try_from(legend.len() + 1).unwrap_or(u16::MAX).min(area.height);
    let height = usize::from(area.height - below);
    let selected = map.spots.get(page.selected);
    // the selected line is in the middle where the map goes on at both ends
    let line = selected.map_or(0, |spot| spot.line);
    let first = line.saturating_sub(height / 2).min(map.lines.saturating_sub(height));
    let y_of = |line: usize| {
        let place = line.checked_sub(first).filter(|place| *place < height)?;
        Some(area.y + place as u16)
    };
    for (line, node) in &map.nodes {
        if let Some(y) = y_of(*line) {
            draw_node(model, *node, pen, Rect { y, height: 1, ..area });
        }
    }
    for (place, spot) in map.spots.iter().enumerate() {
        if let Some(y) = y_of(spot.line) {
            if map.is_list {
                let line = Rect { y, height: 1, ..area };
                draw_line(model, &map, spot.cpu, place == page.selected, pen, line);
                continue;
            }
            let x = area.x + u16::try_from(spot.x).unwrap_or(u16::MAX);
            draw_cpu(model, &map, spot.cpu, place == page.selected, pen, (x, y));
        }
    }
    if map.spots.is_empty() {
        pen.text(area.x + 2, area.y, area.width, "the machine's CPUs are not known here", Tone::Plain);
    }
    let mut y = area.y + height as u16;
    for line in legend {
        pen.text(area.x, y, area.width, &line, Tone::Plain);
        y += 1;
    }
    if let Some(spot) = selected {
        pen.text(area.x, y, area.width, &detail(model, spot.cpu, pen), Tone::Strong);
    }
}

fn draw_node(model: &Model, node: Option<usize>, pen: &mut Pen<'_>, area: Rect) {
    let name = node.map_or_else(|| "CPUs".to_owned(), |node| format!("node {node}"));
    let x = pen.text(area.x, area.y, area.width, &name, Tone::Strong);
    let known = node.and_then(|node| model.topology.node(node));
    let sizes = node.and_then(|node| model.figures.nodes.get(&node).copied());
    let total = sizes.map(|[total, ..]| total).or(known.and_then(|node| Some(node.memory_total?.0 as f64)));
    let Some(total) = total.filter(|total| *total > 0.0) else { return };
    let room = |x: u16| area.right().saturating_sub(x);
    let mut x = x + 2;
    if let Some([_, free, file]) = sizes {
        let share = Some((total - free) / total);
        x = pen.text(
            x,
            area.y,
            room(x),
            &bars::bar(share, 16, pen.look),
            bars::tone(Some((total - free - file) / total)),
        );
        let text =
            format!(" {} of {} used, {} of it caches files", bytes(total - free), bytes(total), bytes(file));
        x = pen.text(x, area.y, room(x), &text, Tone::Plain);
    } else {
        x = pen.text(x, area.y, room(x), &format!("{} of memory", bytes(total)), Tone::Plain);
    }
    if known.is_some_and(|node| node.cpus.is_empty()) {
        pen.text(x, area.y, room(x), "  no CPU", Tone::Plain);
    }
}

fn draw_cpu(model: &Model, map: &Map, cpu: usize, is_selected: bool, pen: &mut Pen<'_>, (x, y): (u16, u16)) {
    let digits = map.digits;
    if is_selected {
        pen.text(x.saturating_sub(1), y, 1, ">", Tone::Strong);
    }
    let number = format!("{cpu:>digits$}");
    let tone = if is_selected { Tone::Bar } else { Tone::Faint };
    let x = pen.text(x, y, digits as u16, &number, tone);
    let is_online = model.topology.cpu(cpu).is_some_and(|cpu| cpu.online);
    let (letter, tone) = match model.owners.as_ref().map(|owners| (owners, owners.cell(cpu))) {
        None | Some((_, Cell::Nobodys)) => ('.', Tone::Faint),
        Some((_, Cell::Several)) => ('+', Tone::Strong),
        Some((owners, Cell::One(place))) => (letter(owners, place), Tone::Owner(place)),
    };
    let x = pen.text(x, y, 1, letter.encode_utf8(&mut [0; 4]), tone);
    let share = model.figures.busy.get(&cpu).copied();
    let (load, tone) = match share {
        _ if !is_online => ('x', Tone::Faint),
        Some(share) => (bars::height(share, pen.look), bars::tone(Some(share))),
        None => ('?', Tone::Faint),
    };
    pen.text(x, y, 1, load.encode_utf8(&mut [0; 4]), tone);
}

/// A CPU in words: its load, and who may use it.
fn draw_line(model: &Model, map: &Map, cpu: usize, is_selected: bool, pen: &mut Pen<'_>, area: Rect) {
    let digits = map.digits;
    let mark = if is_selected { ">" } else { " " };
    let room = |x: u16| area.right().saturating_sub(x);
    let x = pen.text(area.x, area.y, area.width, &format!("{mark} CPU {cpu:>digits$}  "), Tone::Strong);
    let is_online = model.topology.cpu(cpu).is_some_and(|cpu| cpu.online);
    let share = model.figures.busy.get(&cpu).copied().filter(|_| is_online);
    let bar = usize::from((area.width / 4).clamp(8, 40));
    let x = pen.text(x, area.y, room(x), &bars::bar(share, bar, pen.look), bars::tone(share));
    let load = match share {
        _ if !is_online => " offline".to_owned(),
        Some(share) => format!(" {:>3.0}% busy", share * 100.0),
        None => "      -    ".to_owned(),
    };
    let x = pen.text(x, area.y, room(x), &load, Tone::Plain);
    if let Some(owners) = &model.owners {
        pen.text(x, area.y, room(x), &format!("   for {}", users(owners, cpu)), Tone::Plain);
    }
    if is_selected {
        pen.fill(area, Tone::Selected);
    }
}

/// The groups that may use a CPU, as far as not all may.
fn users(owners: &Owners, cpu: usize) -> String {
    let alone = |is_alone: bool| if is_alone { " (alone)" } else { "" };
    let all = owners.all_of(cpu);
    let all: Vec<String> =
        all.map(|owner| format!("{}{}", units::printable(&owner.group), alone(owner.is_exclusive))).collect();
    if all.is_empty() { "any group".to_owned() } else { all.join(", ") }
}

/// What the letters mean, in at most `most` lines.
fn legend(model: &Model, width: usize, most: usize) -> Vec<String> {
    let Some(owners) = &model.owners else {
        let text = match model.mode {
            Mode::Live => "which group has which CPU is being read",
            Mode::Replay { .. } => "the log does not hold which group has which CPU",
        };
        return vec![text.to_owned()];
    };
    let marks = match owners.list.is_empty() {
        true => ". any group may use it".to_owned(),
        false => ". any group may use it   + several have it   A alone   a with others".to_owned(),
    };
    let mut lines = vec![marks];
    let mut line = String::new();
    for (place, owner) in owners.list.iter().enumerate() {
        let entry = format!("{} {} {}", letter(owners, place), units::printable(&owner.group), owner.cpus);
        if !line.is_empty() && line.chars().count() + 3 + entry.chars().count() > width {
            if lines.len() + 1 >= most {
                line = format!("{} and {} more", line, owners.list.len() - place);
                break;
            }
            lines.push(std::mem::take(&mut line));
        }
        line = if line.is_empty() { entry } else { format!("{line}   {entry}") };
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

fn detail(model: &Model, cpu: usize, pen: &Pen<'_>) -> String {
    let mut words = vec![match &model.owners {
        Some(owners) => format!("CPU {cpu}: {}", users(owners, cpu)),
        None => format!("CPU {cpu}"),
    }];
    if let Some(share) = model.figures.busy.get(&cpu) {
        words.push(format!("busy {:.0}% {}", share * 100.0, bars::bar(Some(*share), 8, pen.look)));
    }
    words.extend(model.interrupted.get(&cpu).map(|count| format!("interrupted {count:.0}/s")));
    if let Some(known) = model.topology.cpu(cpu) {
        if !known.online {
            words.push("offline".to_owned());
        }
        words.extend(known.package.map(|package| format!("package {package}")));
        let others = known.siblings.iter().flat_map(|siblings| siblings.iter()).filter(|other| *other != cpu);
        let others: Vec<String> = others.map(|other| other.to_string()).collect();
        let with = if others.is_empty() { String::new() } else { format!(" with {}", others.join(",")) };
        words.extend(known.core.map(|core| format!("core {core}{with}")));
    }
    words.join("  ")
}
