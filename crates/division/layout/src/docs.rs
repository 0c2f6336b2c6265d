//! The manual's page about the layout file (`docs/layout.md`): made from the table of keys, with examples that the tests
//! read.

use std::fmt::Write as _;

use crate::desired::{Assertions, Power, Reserve, Systemd};
use crate::people::{Person, TASKS_KEYS};
use crate::reader::{Key, Keyed as _};
use crate::toml_file;

/// The page, ending with a newline.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let sections = [
        ("At the top of the file", "", toml_file::TOP),
        ("Groups: `[groups.NAME]`", "Settings stand beside these keys.", toml_file::GROUP),
        ("CPUs: `cpus = { … }`", "", toml_file::CpuTable::KEYS),
        ("Latency: `latency = { … }`", "One of `command`, `log` and `prometheus`.", toml_file::LATENCY),
        ("Memory nodes: `mems = { … }`", "", toml_file::MemTable::KEYS),
        ("Who may put tasks in: `tasks = { … }`", FROM_OUTSIDE, &Person::KEYS[..TASKS_KEYS]),
        ("Who may change settings: `admin = { … }`", "", Person::KEYS),
        (
            "Which processes belong to a group: `match = [{ … }]`",
            "All keys of one entry must fit.",
            toml_file::MatchTable::KEYS,
        ),
        ("Templates: `[templates.NAME]`", "Settings stand beside these keys.", &toml_file::TEMPLATE),
        ("Rules: `[[rules]]`", "", &toml_file::RULE),
        ("Where a rule leads: `to = [{ … }]`", "", toml_file::ToTable::KEYS),
        (
            "What changes by itself: `[[schedule]]`",
            "A schedule has one of `at`, `after` and `on`. More about each in [schedules.md](schedules.md).",
            toml_file::SCHEDULE,
        ),
        ("Events: `on = { … }`", "", toml_file::ON),
        (
            "Groups of a schedule: `groups.NAME = { … }`",
            "Settings stand beside these keys.",
            &toml_file::SCHEDULED,
        ),
        ("Reserved for the rest of the system: `[reserve]`", "", Reserve::KEYS),
        ("Power saving: `[power]`", "", Power::KEYS),
        ("The right machine: `[host]`", "", Assertions::KEYS),
        ("What is expected: `{ … }`", "Of memory, both take sizes.", toml_file::Bounds::<usize>::KEYS),
        ("Defaults: `[defaults]`", "Settings stand beside these keys.", &toml_file::DEFAULTS),
        ("libcgroup's `[[systemd]]`", "", Systemd::KEYS),
    ];
    page.push_str("\n## All keys\n");
    for (title, note, keys) in sections {
        let _ = writeln!(page, "\n### {title}\n"); // a String takes everything
        if !note.is_empty() {
            let _ = writeln!(page, "{note}\n");
        }
        page.push_str("| key | takes, for example | what it means |\n|---|---|---|\n");
        keys.iter().for_each(|key| row(&mut page, key));
    }
    page.push_str(LIBCGROUP);
    page
}

fn row(page: &mut String, key: &Key) {
    let examples: Vec<String> = key.examples.split(" · ").map(|example| format!("`{example}`")).collect();
    let cell = |text: &str| text.replace('|', "\\|");
    let _ = writeln!(page, "| `{}` | {} | {} |", key.name, cell(&examples.join(", ")), cell(key.doc()));
}

const FROM_OUTSIDE: &str = "\
On cgroup v2 an owner can't move a process in from a group that is not theirs: the kernel also requires write access to \
cgroup.procs of the common ancestor. `ringfence move` then asks ringfenced, which moves the owner's own processes; or a service moves itself \
(`ExecStartPost=+ringfence move db $MAINPID`).";

const INTRODUCTION: &str = r#"# The layout file

Generated from `crates/division/layout`; `RF_BLESS=1 cargo test -p ringfence-layout` writes it again. Editors that know JSON
schemas take [layout.schema.json](layout.schema.json).

A layout says how a machine is divided. It is TOML: `/etc/ringfence/layout.toml` and, after it, every
`/etc/ringfence/layout.d/*.toml` by name. All files are one layout; nothing may be said twice. libcgroup's
`cgconfig.conf` and `cgrules.conf` are layouts too (see the end).

```toml
[groups.oltp1]
cpus = { node = 0 }
mems = "local"
memory.max = "8G"
tasks = { user = "oracle", group = "dba" }
admin = { user = "root", group = "root" }
match = [{ user = "oracle" }]

[groups.rt]
cpus = 1
exclusive = true
keep = "repair"                          # the daemon makes it so again

[groups.iothrottle]
io.max."/dev/sdb" = { riops = 10 }
```

## CPUs

```toml
[groups]
list.cpus = "0-7,16-23"                  # these very CPUs; a number in quotes is a CPU's number
count.cpus = 8                           # 8 CPUs, the planner chooses which
share.cpus = "25%"                       # of those that are not reserved
node.cpus = { node = 0 }                 # all CPUs of a NUMA node
range.cpus = { min = 2, max = 8 }        # as many as are free
near.cpus = { count = 4, near = "device:/dev/nvme0n1", smt = "whole-cores" }
within.cpus = { count = 4, node = "0-1", placement = "spread" }
same.cpus = { like = "count" }           # shared with another group, also when that one's change
parents.cpus = "all"
```

Groups share CPUs where nothing else is said: the planner keeps the CPUs of each as near to each other as it can, also where another
group has some of them. `plan` warns where others are free meanwhile.
`pool = "exclusive"` keeps the planner from giving the CPUs to another group. `exclusive = true` of a group makes the
kernel hold to it as well, against everybody. With `unit`, a service gets the CPUs again at each start; where the kernel
gives CPUs of their own to groups directly below the root only (before Linux 6.7), bind a slice at the top, such as `rt.slice`, and
put the service in it (`Slice=`). A slice or scope has to run when the layout is applied.

Memory nodes follow with `mems = "local"`. Without `mems` nothing is set: on cgroup v2 the group then has its
parent's nodes.

## Settings

Every setting of [settings.md](settings.md) can stand in a group, under the name of either version of cgroups, with
values as there: strings, numbers, true and false.

```toml
[groups.db]
memory.max = "25%"
cpu.weight = 200
cpu.max = { quota = "150ms", period = "100ms" }     # or "150ms/100ms", "1.5cpu"
"cpu.max.burst" = "20ms"                            # in quotes, since cpu.max has a value already
io.max."/dev/sdb" = { riops = 1000, wbps = "50M" }
io.weight = { default = 100, "8:16" = 500 }
devices.allow = ["c 1:3 rwm", "c 1:5 rwm"]
memory.swappiness = 10                              # on cgroup v1 only
hugetlb.2MB.max = "1G"

[groups.iothrottle]
blkio.throttle.read_iops_device = "8:16 10"         # a v1 name, with the value in that file's syntax
```

Values are checked when the file is read; what only the machine knows (a share of its memory, a device's number) is
resolved when the layout is planned.

## Groups in groups

```toml
[groups.db]
memory.max = "64G"

[groups.db.groups.oltp1]
cpus = 8

[groups."db/oltp2"]
cpus = 8
```

Both ways of writing are the same, and may be mixed. A parent that is only part of a name is made as needed. A name
with a slash before it, `[groups."/machine/x"]`, begins at the hierarchy's own root instead of the place where
Ringfence's groups live.

The limits of a group hold for the groups in it, too.

On cgroup v1 each controller may have a hierarchy of its own. There a group is still one set of processes, as on v2: it is made in every
hierarchy with a controller, whatever it sets, so that no other group's limits hold for its processes and all that they use is counted.
There are exceptions, in which a group is only where it or a group above it sets something:

- `cpuset`: the CPUs of groups above could not shrink below what is filled in;
- `devices`: the kernel takes no rule for all devices in a group that has groups in it;
- `cpu`, where the kernel has real-time budgets (CONFIG_RT_GROUP_SCHED): a group without one refuses real-time tasks;
- hierarchies in which the caller can make no group, as they are mounted read-only or belong to root.

Two kinds of groups are only where their own settings are: those that a rule of the layout names for some controllers, and those of
libcgroup's files.

A process that is in another group in one of the hierarchies is drift, also in those that the group is not in: `status` names both
groups. A rule of cgrules.conf for some controllers that leads to a group of a layout should be a rule of the layout: `apply` and
`status` do not know it otherwise, and want its processes in all of the group's hierarchies.

In `cpu` each group has a share of its own (`cpu.weight`, 100 by default), and in `blkio` with BFQ as well, however many processes it has:
processes that ran beside those of all others before share it from then on, as on v2.

## Rules and templates

```toml
[templates."students/%u"]
memory.max = "2G"
tasks = { group = "students" }

[[rules]]
group = "students"
to = "students/%u"

[[rules]]
user = "oracle"
process = "ora_*"
to = [{ group = "fast", controllers = ["cpu"] }, { group = "big", controllers = ["memory"] }]

[[rules]]
process = "/usr/sbin/sshd"
ignore = true

[groups.fast]
cpu.weight = 500

[groups.big]
memory.max = "32G"
```

The first rule that matches counts. `match` of a group is a rule as well; those come after `[[rules]]`, those of deeper
groups first. A group that does not exist and whose name in the rule holds codes is made when it is needed, from the
template with the same name if there is one.

## Schedules

```toml
[groups.oltp]
cpus = "0-31"

[groups.nightly]
cpus = "32-35"

[[schedule]]
name = "night"
at = "Mon..Fri 22:00"                    # or after = "600s", or on = { unit = "backup.service" }
until = "06:00"
groups.oltp = { cpus = "0-3" }
groups.nightly = { cpus = "4-35" }
```

At 22:00 the daemon applies the layout with these CPUs, and at 06:00 without them; [schedules.md](schedules.md) says how.

## The machine

```toml
[host]
hostname = "db*"
nodes = 4
cpus = { min = 32 }
memory = "128G"

[reserve]
cpus = { count = 2, near = "node:0", smt = "whole-cores" }
memory = "4G"

[defaults]
smt = "whole-cores"
placement = "pack"
mems = "local"
tasks = { group = "dba" }
memory.oom.group = true
```

On a machine that `host` does not fit, the layout is refused. `defaults` go to each group and template that does not say
otherwise; `mems` only to those that ask for CPUs.
"#;

const LIBCGROUP: &str = r#"
## libcgroup's files

`cgconfig.conf` and `cgrules.conf` are read as they are, by name or, if the name does not show it, by their first line.

| there | here |
|---|---|
| `group NAME { CONTROLLER { SETTING = VALUE; } }` | a group with these settings; pieces of one group are joined |
| `cpuset.cpus`, `cpuset.mems` | `cpus`, `mems` |
| `cpuset.cpu_exclusive` | the setting of that name: on v1 the flag alone, which forbids groups beside it to name the same CPUs, and no more; on v2, which has no such flag, `exclusive` |
| a controller without settings | `controllers` |
| a group that is not in a controller of a group above it | stays so: on cgroup v1 its processes escape what is set there; `check` and `plan` warn |
| `perm { task { } admin { } }` | `tasks`, `admin` with `all_files`; `fperm` is `mode`, `dperm` is `directory_mode` |
| `default { perm { } }` | `[defaults]` |
| `template NAME { }` | `[templates.NAME]`; `default` does not hold for it |
| `mount { }` | `[mounts]`; mounted only with this, always with nodev, nosuid and noexec |
| `namespace { }` | a parent of all groups of the file; with a warning, since it holds for all controllers |
| `systemd { }` | `[[systemd]]`, used by exports only; with a warning |
| a setting given twice | the later one, with a warning |
| `USER:PROCESS CONTROLLERS GROUP OPTIONS` | `[[rules]]` |
| `%` in place of the user | one more entry of the rule's `to` |

A name with a slash before it means the same as without in these files.
"#;
