//! Draws a machine as SVG: packages, nodes with their memory, L3 caches, cores and CPUs as boxes inside each
//! other; CPUs coloured by what the caller marks them with. Light and dark by the viewer's preference. The text
//! is never smaller than 10 px; a large machine makes a large drawing.

use std::collections::BTreeMap;

use crate::svg::Svg;

use super::nest::{Kind, Region, nest};
use crate::{LogicalCpu, Machine};

/// What a CPU is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The group it belongs to, counted from 0: chooses the colour, of which there are eight, then the same
    /// eight with a thick border.
    pub group: usize,
    /// The group's name, for the legend.
    pub label: &'a str,
}

/// The drawing. `mark` is called once for each CPU number.
pub fn svg<'a>(machine: &Machine, mark: &dyn Fn(usize) -> Option<Mark<'a>>) -> String {
    let marks: BTreeMap<usize, Mark<'a>> =
        machine.cpus.iter().filter_map(|cpu| Some((cpu.id, mark(cpu.id)?))).collect();
    let whole = Block::of(machine, &nest(machine));
    let width = (whole.width + 2 * MARGIN).max(MIN_WIDTH);
    let (legend, legend_height) = lay_legend(legend(machine, &marks), width, whole.height + 2 * MARGIN);
    let height = whole.height + 2 * MARGIN + legend_height;
    let mut drawing = Svg::new();
    drawing
        .element("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("width", width)
        .with("height", height)
        .with("viewBox", format_args!("0 0 {width} {height}"))
        .with("role", "img")
        .with("font-family", "sans-serif")
        .around(|svg| {
            svg.element("title").text(title(machine, Kind::Machine));
            svg.style(STYLE);
            svg.element("rect").with("class", "page").with("width", width).with("height", height).empty();
            Pen { machine, marks: &marks, svg }.block(&whole, MARGIN, MARGIN);
            legend.iter().for_each(|key| key.draw(svg));
        });
    drawing.finish() + "\n"
}

const MARGIN: u32 = 12;
const MIN_WIDTH: u32 = 320;
const PAD: u32 = 6;
const GAP: u32 = 5;
const CPU_WIDTH: u32 = 34;
const CPU_HEIGHT: u32 = 22;
/// Width over height that the layout comes as near to as it can.
const SHAPE: f64 = 1.6;
const COLOURS: usize = 8;

const STYLE: &str = "
.page{fill:#fff} text{fill:#1d232a;font-size:11px} .mid{text-anchor:middle}
.machine{fill:#f4f6f8;stroke:#9aa5b1} .package{fill:#e6eaef;stroke:#8795a3}
.node{fill:#fbfcfd;stroke:#5b7083;stroke-width:1.5} .l3{fill:#eef3ea;stroke:#7d9a6b} .core{fill:#fff;stroke:#a9b4bf}
.cpu{fill:#dfe6ed;stroke:#8795a3} .t0{font-size:16px;font-weight:bold} .t1,.t2{font-size:12px;font-weight:bold}
.t4{font-size:10px} .offline{fill:#fff;stroke-dasharray:2 2} .isolated{stroke:#b3261e;stroke-width:2;stroke-dasharray:4 2}
.g0{fill:#9ecae9}.g1{fill:#ffc685}.g2{fill:#a5dba0}.g3{fill:#f4a6a0}.g4{fill:#cdb7e9}.g5{fill:#d9c3a5}.g6{fill:#f5b8d8}.g7{fill:#a8dcd9}
.lap{stroke:#1d232a;stroke-width:3}
@media (prefers-color-scheme:dark){
.page{fill:#14181d} text{fill:#e6eaef} .machine{fill:#1b2127;stroke:#55616d} .package{fill:#232b33;stroke:#66737f}
.node{fill:#191f25;stroke:#8ea3b5} .l3{fill:#222b20;stroke:#6f8a5f} .core{fill:#14181d;stroke:#55616d}
.cpu{fill:#34404c;stroke:#76848f} .offline{fill:#14181d} .isolated{stroke:#ff897d}
.g0{fill:#1f5a8c}.g1{fill:#8a4b08}.g2{fill:#1f6b2f}.g3{fill:#8c2f2a}.g4{fill:#5a3d8a}.g5{fill:#6b5232}.g6{fill:#8a2f63}.g7{fill:#1b6b68}
.lap{stroke:#e6eaef}}
";

/// A region with its size and where everything in it lies, from its own upper left corner, in px.
struct Block {
    class: &'static str,
    title: String,
    title_class: &'static str,
    width: u32,
    height: u32,
    blocks: Vec<(u32, u32, Block)>,
    cpus: Vec<(u32, u32, usize)>,
}

impl Block {
    fn of(machine: &Machine, region: &Region) -> Block {
        let (class, title_class, title_size) = match region.kind {
            Kind::Machine => ("machine", "t0", 16),
            Kind::Package(_) => ("package", "t1", 12),
            Kind::Node(_) => ("node", "t2", 12),
            Kind::L3(_) => ("l3", "t3", 11),
            Kind::Core(_) => ("core", "t4", 10),
        };
        let title = title(machine, region.kind);
        let mut block = Block {
            class,
            title_class,
            // a letter of a bold sans-serif is about 0.62 of its size wide
            width: title.chars().count() as u32 * title_size * 62 / 100,
            height: PAD / 2 + title_size + PAD,
            title,
            blocks: Vec::new(),
            cpus: Vec::new(),
        };
        // nodes of memory only are small: they get rows of their own
        for of_memory in [false, true] {
            let inside = region.inside.iter().filter(|inner| inner.cpus.is_empty() == of_memory);
            block.lay_blocks(inside.map(|inner| Block::of(machine, inner)).collect());
        }
        block.lay_cpus(region.loose().iter().collect(), matches!(region.kind, Kind::Core(_)));
        block.width += 2 * PAD;
        block
    }

    /// Rows and columns of equal cells, as near to [`SHAPE`] as they can be.
    fn lay_blocks(&mut self, inner: Vec<Block>) {
        let cell = |size: fn(&Block) -> u32| inner.iter().map(size).max().unwrap_or(0) + GAP;
        let (width, height) = (cell(|block| block.width), cell(|block| block.height));
        let columns = columns(inner.len(), width, height);
        let top = self.height;
        for (index, mut block) in inner.into_iter().enumerate() {
            let (row, column) = (index as u32 / columns, index as u32 % columns);
            let (x, y) = (PAD + column * width, top + row * height);
            (block.width, block.height) = (width - GAP, height - GAP);
            self.width = self.width.max(x + block.width - PAD);
            self.height = self.height.max(y + block.height + PAD);
            self.blocks.push((x, y, block));
        }
    }

    /// A core's CPUs in one row of up to four; others in a grid.
    fn lay_cpus(&mut self, cpus: Vec<usize>, core: bool) {
        let (width, height) = (CPU_WIDTH + GAP - 2, CPU_HEIGHT + GAP - 2);
        let columns = if core { cpus.len().clamp(1, 4) as u32 } else { columns(cpus.len(), width, height) };
        let top = self.height;
        for (index, cpu) in cpus.into_iter().enumerate() {
            let (row, column) = (index as u32 / columns, index as u32 % columns);
            let (x, y) = (PAD + column * width, top + row * height);
            self.width = self.width.max(x + CPU_WIDTH - PAD);
            self.height = self.height.max(y + CPU_HEIGHT + PAD);
            self.cpus.push((x, y, cpu));
        }
    }
}

/// How many columns of `width` by `height` cells bring `count` of them nearest to [`SHAPE`].
fn columns(count: usize, width: u32, height: u32) -> u32 {
    let count = count.max(1) as u32; // a machine has at most 8192 CPUs
    let off = |columns: &u32| {
        let rows = count.div_ceil(*columns);
        let shape = f64::from(columns * width) / f64::from(rows * height);
        // full rows are worth more than the shape
        let waste = f64::from(columns * rows - count) / f64::from(count);
        (shape / SHAPE).ln().abs() + 6.0 * waste
    };
    (1..=count).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(1)
}

fn title(machine: &Machine, kind: Kind) -> String {
    match kind {
        Kind::Machine => machine.model_name.as_deref().map_or("machine".to_owned(), short),
        Kind::Package(id) => format!("package {id}"),
        Kind::Node(index) => machine.nodes.get(index).map_or(String::new(), |node| {
            let total = node.memory_total.map_or(String::new(), |bytes| format!(": {}", bytes.rounded()));
            let free = node.memory_free.map_or(String::new(), |bytes| format!(", {} free", bytes.rounded()));
            format!("node {}{total}{free}", node.id)
        }),
        Kind::L3(index) => {
            let size = machine.l3_groups().and_then(|groups| groups.get(index)?.size);
            size.map_or("L3".to_owned(), |size| format!("L3 {}", size.rounded()))
        }
        Kind::Core(id) => id.map_or("core".to_owned(), |id| format!("core {id}")),
    }
}

/// A name that fits into a drawing.
fn short(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Draws blocks at their places.
struct Pen<'a, 's> {
    machine: &'a Machine,
    marks: &'a BTreeMap<usize, Mark<'a>>,
    svg: &'s mut Svg,
}

impl Pen<'_, '_> {
    fn block(&mut self, block: &Block, x: u32, y: u32) {
        rect(self.svg, block.class, (x, y), (block.width, block.height), 3);
        let baseline = y + PAD / 2 + title_height(block.title_class);
        text(self.svg, block.title_class, (x + PAD, baseline), &block.title);
        for (dx, dy, inner) in &block.blocks {
            self.block(inner, x + dx, y + dy);
        }
        for (dx, dy, id) in &block.cpus {
            self.cpu(*id, x + dx, y + dy);
        }
    }

    fn cpu(&mut self, id: usize, x: u32, y: u32) {
        let Some(cpu) = self.machine.cpu(id) else { return };
        let (class, description) = (self.class(cpu), self.description(cpu));
        self.svg.element("g").around(|svg| {
            svg.element("title").text(description);
            rect(svg, &class, (x, y), (CPU_WIDTH, CPU_HEIGHT), 2);
            text(svg, "mid", (x + CPU_WIDTH / 2, y + CPU_HEIGHT / 2 + 4), &id.to_string());
        });
    }

    fn class(&self, cpu: &LogicalCpu) -> String {
        let mut class = "cpu".to_owned();
        if !cpu.online {
            class += " offline";
        }
        if let Some(mark) = self.marks.get(&cpu.id) {
            class += &mark_class(mark);
        }
        if self.machine.isolated.as_ref().is_some_and(|isolated| isolated.contains(cpu.id)) {
            class += " isolated";
        }
        class
    }

    /// What a viewer shows when pointing at a CPU.
    fn description(&self, cpu: &LogicalCpu) -> String {
        let mut text = format!("CPU {}", cpu.id);
        let places = [
            ("node", cpu.node.map(|id| id.to_string())),
            ("package", cpu.package.map(|id| id.to_string())),
            ("core", cpu.core.map(|id| id.to_string())),
            ("group", self.marks.get(&cpu.id).map(|mark| mark.label.to_owned())),
        ];
        for (what, place) in places {
            if let Some(place) = place {
                text += &format!(", {what} {place}");
            }
        }
        text + if cpu.online { "" } else { ", offline" }
    }
}

fn rect(svg: &mut Svg, class: &str, (x, y): (u32, u32), (width, height): (u32, u32), corner: u32) {
    let rect = svg.element("rect").with("class", class).with("x", x).with("y", y);
    rect.with("width", width).with("height", height).with("rx", corner).empty();
}

fn text(svg: &mut Svg, class: &str, (x, y): (u32, u32), text: &str) {
    svg.element("text").with("class", class).with("x", x).with("y", y).text(text);
}

fn title_height(class: &str) -> u32 {
    match class {
        "t0" => 16,
        "t1" | "t2" => 12,
        "t3" => 11,
        _ => 10,
    }
}

fn mark_class(mark: &Mark<'_>) -> String {
    let lap = if mark.group / COLOURS % 2 == 1 { " lap" } else { "" };
    format!(" g{}{lap}", mark.group % COLOURS)
}

/// The classes that the drawing uses, with what they mean.
fn legend(machine: &Machine, marks: &BTreeMap<usize, Mark<'_>>) -> Vec<(String, String)> {
    let groups: BTreeMap<usize, &Mark<'_>> = marks.values().map(|mark| (mark.group, mark)).collect();
    let mut entries: Vec<(String, String)> =
        groups.values().map(|mark| (format!("cpu{}", mark_class(mark)), short(mark.label))).collect();
    if machine.isolated.as_ref().is_some_and(|isolated| !isolated.is_empty()) {
        entries.push(("cpu isolated".to_owned(), "isolated".to_owned()));
    }
    if !machine.offline().is_empty() {
        entries.push(("cpu offline".to_owned(), "offline".to_owned()));
    }
    entries
}

/// A row's part of the legend, at its place.
struct Key {
    class: String,
    label: String,
    x: u32,
    y: u32,
}

impl Key {
    fn draw(&self, svg: &mut Svg) {
        rect(svg, &format!("key {}", self.class), (self.x, self.y), (14, 14), 2);
        svg.element("text").with("x", self.x + 20).with("y", self.y + 11).text(&self.label);
    }
}

/// The legend from `top` on, broken to the drawing's width; and how high it is.
fn lay_legend(entries: Vec<(String, String)>, width: u32, top: u32) -> (Vec<Key>, u32) {
    const ROW: u32 = 24;
    let (mut x, mut rows) = (MARGIN, u32::from(!entries.is_empty()));
    let mut keys = Vec::new();
    for (class, label) in entries {
        let needed = 20 + label.chars().count() as u32 * 7 + 16;
        if x > MARGIN && x + needed > width {
            x = MARGIN;
            rows += 1;
        }
        keys.push(Key { class, label, x, y: top + (rows - 1) * ROW });
        x += needed;
    }
    (keys, rows * ROW)
}
