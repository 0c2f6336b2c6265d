//! Files that every group has.

use super::*;

const V1: Binding = Binding {
    since: "2.6.24",
    at_root: true,
    source: "admin-guide/cgroup-v1/cgroups.rst, section 2",
    ..BINDING
};
const V2: Binding =
    Binding { since: "4.5", source: "admin-guide/cgroup-v2.rst, Core Interface Files", ..BINDING };
const TASKS: Option<Order> = at(Stage::Tasks, "tasks come when the group is ready");
const MOVE: Access = Command("ringfence move GROUP PID…");

const fn row(
    name: &'static str,
    kind: Kind,
    access: Access,
    example: &'static str,
    doc: &'static str,
    v1: Side,
    v2: Side,
) -> Setting {
    Setting { name, controller: Controller::Core, doc, kind, access, example, v1, v2 }
}

pub(super) const ROWS: &[Setting] = &[
    row(
        "cgroup.procs",
        Kind::Text,
        MOVE,
        "",
        "The processes in the group, by PID",
        Has(Binding { files: &["cgroup.procs"], since: "3.0", order: TASKS, ..V1 }),
        Has(Binding { files: &["cgroup.procs"], at_root: true, order: TASKS, ..V2 }),
    ),
    row(
        "cgroup.threads",
        Kind::Text,
        Command("ringfence move --threads GROUP TID…"),
        "",
        "The threads in the group, by TID",
        Has(Binding { files: &["tasks"], order: TASKS, ..V1 }),
        Has(Binding { files: &["cgroup.threads"], since: "4.14", at_root: true, order: TASKS, ..V2 }),
    ),
    row(
        "cgroup.type",
        Kind::Word(&["threaded"]),
        ReadWrite,
        "threaded",
        "Whether the group holds processes (domain) or single threads; threaded can't be undone",
        lacks("every v1 group takes single threads"),
        Has(Binding {
            files: &["cgroup.type"],
            reach: Reach::Beside(
                "the group above becomes a threaded domain, in which no group beside this one takes processes",
            ),
            codec: Codec::Word,
            order: at(Stage::Threaded, "threads can be taken only by a threaded group"),
            read_back: ReadBack::Rescaled("domain, domain threaded, domain invalid or threaded"),
            since: "4.14",
            ..V2
        }),
    ),
    text(
        "cgroup.controllers",
        Controller::Core,
        "Controllers that the group's children may have",
        lacks("a v1 hierarchy has the controllers it was mounted with: `ringfence doctor` lists them"),
        Has(Binding { files: &["cgroup.controllers"], at_root: true, ..V2 }),
    ),
    row(
        "cgroup.subtree_control",
        Kind::Text,
        Command("ringfence create GROUP --controllers …"),
        "",
        "Controllers that the group's children have",
        lacks("a v1 hierarchy has the controllers it was mounted with: `ringfence doctor` lists them"),
        Has(Binding { files: &["cgroup.subtree_control"], at_root: true, ..V2 }),
    ),
    text(
        "cgroup.events",
        Controller::Core,
        "Whether the group or one below it holds a process (populated), and whether all of it is frozen",
        lacks("read cgroup.procs of the group and those below it, and freezer.state"),
        Has(Binding { files: &["cgroup.events"], ..V2 }),
    ),
    row(
        "cgroup.max.descendants",
        Kind::Count,
        ReadWrite,
        "100",
        "Most groups below this one",
        lacks("v1 does not limit the number of groups"),
        Has(Binding {
            files: &["cgroup.max.descendants"],
            codec: MAX,
            range: between(0, 2_147_483_646),
            since: "4.14",
            at_root: true,
            ..V2
        }),
    ),
    row(
        "cgroup.max.depth",
        Kind::Count,
        ReadWrite,
        "3",
        "Most levels of groups below this one",
        lacks("v1 does not limit the depth of groups"),
        Has(Binding {
            files: &["cgroup.max.depth"],
            codec: MAX,
            range: between(0, 2_147_483_646),
            since: "4.14",
            at_root: true,
            ..V2
        }),
    ),
    text(
        "cgroup.stat",
        Controller::Core,
        "How many groups are below this one, and how many of them are removed but still hold something",
        lacks("count the directories: `ringfence list GROUP`"),
        Has(Binding { files: &["cgroup.stat"], since: "4.14", at_root: true, ..V2 }),
    ),
    text(
        "cgroup.stat.local",
        Controller::Core,
        "How long the group was frozen",
        lacks("v1 does not count it"),
        Has(Binding { files: &["cgroup.stat.local"], since: "6.18", ..V2 }),
    ),
    row(
        "cgroup.kill",
        Kind::Flag,
        Write,
        "1",
        "Kills every process of the group and those below it at once",
        lacks("`ringfence kill GROUP` freezes the group, signals every process and thaws it"),
        Has(Binding {
            files: &["cgroup.kill"],
            codec: Codec::Flag,
            range: between(1, 1),
            order: ACTION,
            read_back: ReadBack::Never,
            since: "5.14",
            ..V2
        }),
    ),
    row(
        "cgroup.pressure",
        Kind::Flag,
        ReadWrite,
        "0",
        "Whether pressure is counted for this group",
        lacks("pressure is counted per v2 group only"),
        Has(Binding { files: &["cgroup.pressure"], codec: Codec::Flag, since: "6.1", at_root: true, ..V2 }),
    ),
    text(
        "irq.pressure",
        Controller::Core,
        "Share of time in which tasks of the group waited for interrupts",
        lacks("pressure is counted per v2 group only; /proc/pressure/irq shows the whole machine's"),
        Has(Binding { files: &["irq.pressure"], since: "6.1", at_root: true, ..V2 }),
    ),
    row(
        "cgroup.clone_children",
        Kind::Flag,
        ReadWrite,
        "1",
        "A new child group starts with the parent's cpuset.cpus and cpuset.mems",
        Has(Binding {
            files: &["cgroup.clone_children"],
            codec: Codec::Flag,
            since: "2.6.37",
            source: "admin-guide/cgroup-v1/cgroups.rst, section 1.5",
            ..V1
        }),
        lacks("an empty cpuset.cpus or cpuset.mems means the parent's on v2"),
    ),
    row(
        "notify_on_release",
        Kind::Flag,
        ReadWrite,
        "1",
        "The kernel runs release_agent when the group becomes empty",
        Has(Binding {
            files: &["notify_on_release"],
            reach: Reach::Machine("a program of root's is run with the name of a group"),
            codec: Codec::Flag,
            source: "admin-guide/cgroup-v1/cgroups.rst, section 1.4",
            ..V1
        }),
        lacks("watch populated in cgroup.events"),
    ),
    row(
        "release_agent",
        Kind::Text,
        ReadWrite,
        "/usr/local/sbin/group-empty",
        "Program that the kernel runs for a group that became empty; in the root group only",
        Has(Binding {
            files: &["release_agent"],
            reach: Reach::Machine("the program is run as root"),
            codec: Codec::Line,
            source: "admin-guide/cgroup-v1/cgroups.rst, section 1.4",
            ..V1
        }),
        lacks("watch populated in cgroup.events"),
    ),
    text(
        "cgroup.sane_behavior",
        Controller::Core,
        "Left over from the development of v2; always 0, in the root group only",
        Has(Binding { files: &["cgroup.sane_behavior"], since: "3.10", ..V1 }),
        lacks("it means nothing"),
    ),
    row(
        "cgroup.event_control",
        Kind::Text,
        Command("a program that registers an eventfd"),
        "",
        "Where programs register to be woken at a threshold, out of memory, or a memory.pressure_level",
        Has(Binding {
            files: &["cgroup.event_control"],
            codec: Codec::Eventfd,
            controller: Controller::Memory,
            since: "2.6.34",
            source: "admin-guide/cgroup-v1/memory.rst, sections 9 to 11",
            ..V1
        }),
        lacks("poll memory.events, or a trigger written to memory.pressure"),
    ),
    row(
        "memory.pressure_level",
        Kind::Text,
        Command("a program that registers an eventfd"),
        "",
        "What programs name in cgroup.event_control to be woken when reclaim gets hard",
        Has(Binding {
            files: &["memory.pressure_level"],
            codec: Codec::Eventfd,
            controller: Controller::Memory,
            since: "3.10",
            source: "admin-guide/cgroup-v1/memory.rst, section 11",
            ..V1
        }),
        lacks("poll a trigger written to memory.pressure"),
    ),
];
