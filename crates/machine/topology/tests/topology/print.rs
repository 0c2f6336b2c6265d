//! The view for people and the drawing.

use std::collections::BTreeMap;

use topology::{Machine, print, print::Mark};

use super::{
    machine,
    recorded::{Shape, unpack},
    recorded_text,
};

#[test]
fn the_view_for_people_of_a_machine_that_tells_all() {
    let root = unpack(&recorded_text("qemu-n4c8.sysfs.txt"));
    let machine = Machine::from_root(root.path()).unwrap();
    assert_eq!(
        print::text(&machine),
        "\
model      Intel Core i7 9xx (Nehalem Class Core i7)
CPUs       7 online: 0-4,6-7
offline    5
packages   2
cores      4
SMT        on, 1 or 2 CPUs a core
isolated   6-7
nohz_full  6-7
memory     972.6M

NODE    SIZE    FREE  PACKAGES  CORES  CPUS
   0  250.3M  227.4M         0      1  0-1
   1  251.4M  241.9M         0      1  2-3
   2  219.7M  199.8M         1      1  4
   3  251.2M  241.8M         1      1  6-7

DISTANCE   0   1   2   3
       0  10  12  21  21
       1  12  10  21  21
       2  21  21  10  12
       3  21  21  12  10

L3  SIZE  NODES  CPUS
 0   16M    0-1  0-3
 1   16M    2-3  4,6-7

DEVICE  MAJ:MIN  SIZE  ROTATES  SCHEDULER  MADE OF
dm-0      253:0    2M  yes      none       vda2 as group-volume
loop0       7:0  1.9M  no       none       /bin/busybox
vda       254:0   64M  yes      none
├─vda1    254:1   16M  yes      none
└─vda2    254:2   32M  yes      none
"
    );
}

#[test]
fn the_view_for_people_says_what_a_listing_does_not_tell() {
    assert_eq!(
        print::text(&machine("e7-4850.lscpu.txt")),
        "\
model      ?
CPUs       160 online: 0-159
packages   8
cores      80
SMT        on, 2 CPUs a core
isolated   ?
nohz_full  ?
memory     ?
L3 caches  ? of 24M

NODE  SIZE  FREE  PACKAGES  CORES  CPUS
   0     ?     ?         ?      ?  1-10,41-50
   1     ?     ?         ?      ?  11-20,51-60
   2     ?     ?         ?      ?  21-30,61-70
   3     ?     ?         ?      ?  31-40,71-80
   4     ?     ?         ?      ?  0,81-89,120-129
   5     ?     ?         ?      ?  90-99,130-139
   6     ?     ?         ?      ?  100-109,140-149
   7     ?     ?         ?      ?  110-119,150-159

distances  ?

?: not reported by e7-4850.lscpu.txt
"
    );
}

#[derive(Debug, Clone, Copy)]
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Rect {
    fn within(&self, outer: &Rect) -> bool {
        self.x >= outer.x
            && self.y >= outer.y
            && self.x + self.width <= outer.x + outer.width
            && self.y + self.height <= outer.y + outer.height
    }

    fn apart(&self, other: &Rect) -> bool {
        self.x + self.width <= other.x
            || other.x + other.width <= self.x
            || self.y + self.height <= other.y
            || other.y + other.height <= self.y
    }
}

/// The boxes by class (its first word), in the order in which they are drawn.
fn boxes(svg: &str) -> BTreeMap<String, Vec<Rect>> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let mut boxes: BTreeMap<String, Vec<Rect>> = BTreeMap::new();
    for rect in document.descendants().filter(|node| node.has_tag_name("rect")) {
        let number = |name| rect.attribute(name).map_or(0.0, |value: &str| value.parse().unwrap());
        let class = rect.attribute("class").unwrap().split(' ').next().unwrap().to_owned();
        let (x, y, width, height) = (number("x"), number("y"), number("width"), number("height"));
        boxes.entry(class).or_default().push(Rect { x, y, width, height });
    }
    boxes
}

fn shape(packages: usize, nodes: usize, l3: usize, cores: usize, threads: usize) -> Machine {
    Machine::from_root(Shape { packages, nodes, l3, cores, threads }.tree().path()).unwrap()
}

#[test]
fn a_drawing_holds_every_box_inside_its_outer_one_and_none_over_another() {
    let four = Machine::from_root(unpack(&recorded_text("qemu-n4c8.sysfs.txt")).path()).unwrap();
    let e7 = machine("e7-4850.lscpu.txt").merge(machine("e7-4850.cpu_topology.txt")).unwrap();
    for (machine, counts) in [
        (shape(1, 1, 1, 1, 1), [1, 1, 1, 1, 1]),
        (four, [2, 4, 2, 4, 8]),
        (e7, [8, 8, 0, 80, 160]),
        (shape(8, 2, 4, 8, 2), [8, 16, 64, 512, 1024]),
    ] {
        let svg = print::svg(&machine, &|_| None);
        let boxes = boxes(&svg);
        let page = boxes["page"][0];
        let classes = ["package", "node", "l3", "core", "cpu"];
        let found = classes.map(|class| boxes.get(class).map_or(0, Vec::len));
        assert_eq!(found, counts);
        for class in classes.iter().filter_map(|class| boxes.get(*class)) {
            for (index, rect) in class.iter().enumerate() {
                assert!(rect.within(&boxes["machine"][0]) && rect.within(&page), "{rect:?}");
                assert!(class[..index].iter().all(|other| rect.apart(other)), "{rect:?}");
            }
        }
        let inside = |inner: &str, outer: &str| {
            let (Some(inner), Some(outer)) = (boxes.get(inner), boxes.get(outer)) else { return true };
            inner.iter().all(|rect| outer.iter().any(|outer| rect.within(outer)))
        };
        assert!(inside("core", "node") && inside("core", "package") && inside("node", "package"));
        for cpu in &machine.cpus {
            assert!(svg.contains(&format!(">{}</text>", cpu.id)), "CPU {}", cpu.id);
        }
    }
}

#[test]
fn a_drawing_colours_cpus_by_their_mark_and_explains_the_colours() {
    let machine = machine("qemu-n4c8.numactl.txt");
    let svg = print::svg(&machine, &|cpu| {
        let (group, label) = if cpu < 2 { (0, "db/oltp1") } else { (9, "<rest>") };
        Some(Mark { group, label })
    });
    for (class, count) in [("cpu g0", 2), ("key cpu g0", 1), ("cpu g1 lap", 5), ("key cpu g1 lap", 1)] {
        assert_eq!(svg.matches(&format!("class=\"{class}\"")).count(), count, "{class}");
    }
    assert!(svg.contains(">db/oltp1</text>") && svg.contains(">&lt;rest&gt;</text>"));
    assert!(svg.contains("<title>CPU 1, node 0, group db/oltp1</title>"));
    boxes(&svg);
}

#[test]
fn a_drawing_shows_light_and_dark_and_no_text_below_10_px() {
    let svg = print::svg(&shape(1, 1, 1, 2, 2), &|_| None);
    assert!(svg.contains("@media (prefers-color-scheme:dark)"));
    let sizes =
        svg.split("font-size:").skip(1).map(|rest| rest.split("px").next().unwrap().parse::<u32>().unwrap());
    assert!(sizes.min().unwrap() >= 10);
}

#[test]
fn the_largest_machine_that_linux_numbers_is_read_and_drawn() {
    let text = "CPU(s): 8192\nOn-line CPU(s) list: 0-8191\nThread(s) per core: 1\n";
    let machine = Machine::from_listing("given", text).unwrap();
    assert_eq!(boxes(&print::svg(&machine, &|_| None))["cpu"].len(), 8192);
    assert_eq!(Machine::from_listing("again", &machine.to_json()).unwrap(), machine);
}

#[test]
fn a_name_of_any_length_is_cut_to_fit_the_drawing() {
    let long = "m".repeat(5_000_000);
    let text = format!("CPU(s): 1\nOn-line CPU(s) list: 0\nModel name: {long}\n");
    let machine = Machine::from_listing("given", &text).unwrap();
    let svg = print::svg(&machine, &|_| Some(Mark { group: 0, label: &long }));
    assert!(boxes(&svg)["page"][0].width < 1000.0);
}

#[test]
fn a_node_of_memory_only_is_drawn_no_larger_than_its_name() {
    let cpus: String = (0..64).map(|cpu| format!(" {cpu}")).collect();
    let text = format!(
        "available: 2 nodes (0-1)\nnode 0 cpus:{cpus}\nnode 0 size: 9 MB\nnode 0 free: 5 MB\nnode 1 cpus:\n\
         node 1 size: 9 MB\nnode 1 free: 5 MB\nNo distance information available.\n"
    );
    let boxes = boxes(&print::svg(&Machine::from_listing("given", &text).unwrap(), &|_| None));
    let [cpus, memory] = boxes["node"][..] else { panic!("two nodes") };
    assert!(memory.height < 30.0 && memory.apart(&cpus), "{memory:?}");
}
