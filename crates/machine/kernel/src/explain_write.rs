//! Causes of refused writes, file by file: each check reads what the kernel compared the value with. Only reads.

use rustix::io::Errno;
use units::group_path;

use crate::{
    Op,
    control_files::{CONTROLLERS, SUBTREE_CONTROL},
    protected::{freezes, protected_in},
    scene::{Finding, Scene, ancestors, cpus, found, nodes},
    unit::size,
};

/// The file that makes a group a partition.
const PARTITION: &str = "cpuset.cpus.partition";

/// The cause of a refused write.
pub(crate) fn writing(scene: &Scene<'_>) -> Finding {
    let file = scene.refusal.file.as_deref()?;
    let value = scene.refusal.value.as_deref().unwrap_or_default().trim();
    match file {
        "cpuset.cpus" | "cpuset.mems" | "cpuset.cpus.exclusive" => cpuset_list(scene, file, value),
        "cpuset.cpu_exclusive" | "cpuset.mem_exclusive" => exclusive_flag(scene, file),
        PARTITION => partition(scene),
        "memory.limit_in_bytes" | "memory.memsw.limit_in_bytes" => v1_memory(scene, file, value),
        "cpu.cfs_quota_us" | "cpu.cfs_period_us" => v1_quota(scene, file, value),
        "cpu.rt_runtime_us" | "cpu.rt_period_us" => realtime(scene, file, value),
        "cpu.cfs_burst_us" | "cpu.max.burst" => burst(scene, file, value),
        "cpu.shares" | "cpu.weight" | "cpu.weight.nice" if scene.text("cpu.idle") == "1" => found(
            "the group is idle (cpu.idle is 1), which leaves it no weight",
            scene.set("cpu.idle", 0).arg(format!("{file}={value}")),
        ),
        SUBTREE_CONTROL => subtree_control(scene, value),
        "cgroup.type" => group_type(scene, value),
        "io.max" | "io.latency" | "io.weight" | "io.bfq.weight" | "blkio.bfq.weight_device" => {
            device_line(scene, file, value)
        }
        file if file.starts_with("blkio.throttle.") => device_line(scene, file, value),
        "devices.allow" | "devices.deny" => devices(scene, file),
        "freezer.state" | "cgroup.freeze" if scene.refusal.errno == Errno::IO => None,
        "freezer.state" | "cgroup.freeze" if freezes(file, value) => freezing(scene),
        "memory.force_empty" | "memory.reclaim" => found(
            "not that much could be reclaimed: what is left is in use",
            format!("{} shows what the memory is", scene.command("stat")),
        ),
        _ => None,
    }
    .or_else(|| last_resort(scene, file, value))
}

fn cpuset_list(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    let is_cpus = file != "cpuset.mems";
    let (own, possible) = if is_cpus {
        ("cpuset.cpus", scene.outside("/sys/devices/system/cpu/online"))
    } else {
        ("cpuset.mems", scene.outside("/sys/devices/system/node/has_memory"))
    };
    let missing = |within: &str| match is_cpus {
        true => cpus(value).difference(&cpus(within)).to_string(),
        false => nodes(value).difference(&nodes(within)).to_string(),
    };
    let word = if is_cpus { "CPU" } else { "memory node" };
    match scene.refusal.errno {
        Errno::NOSPC if value.is_empty() => found(
            format!("it holds {}, which would be left without a {word}", scene.some_tasks()),
            format!("move them out first, or name other ones: {}", scene.set(file, scene.text(file))),
        ),
        Errno::NOSPC => found(
            format!("none of '{value}' is online, and the group holds {}", scene.some_tasks()),
            scene.set(file, &possible),
        ),
        Errno::RANGE | Errno::INVAL | Errno::ACCESS
            if !possible.is_empty() && !missing(&possible).is_empty() =>
        {
            found(
                format!("the machine has no {word} {} (it has {possible})", missing(&possible)),
                scene.set(file, &possible),
            )
        }
        Errno::ACCESS => {
            let parent = scene.parent()?;
            let allowed = scene.text_in(parent, own);
            let left = missing(&allowed);
            (!left.is_empty()).then_some(())?;
            if allowed.is_empty() {
                return under_empty_parent(scene, parent, own, value);
            }
            let both = match is_cpus {
                true => cpus(&allowed).union(&cpus(value)).to_string(),
                false => nodes(&allowed).union(&nodes(value)).to_string(),
            };
            found(
                format!("its parent '{}' has {own} '{allowed}', which lacks {left}", scene.named(parent)),
                format!("first: {}", scene.set_at(parent, own, both)),
            )
        }
        Errno::BUSY => {
            let children = scene.host.kernel().children(scene.seat.at, &scene.seat.path).unwrap_or_default();
            let holder = children.iter().find(|child| {
                let used = scene.text_in(&group_path::join(&scene.seat.path, child), own);
                if is_cpus {
                    !cpus(&used).is_subset(&cpus(value))
                } else {
                    !nodes(&used).is_subset(&nodes(value))
                }
            });
            match holder {
                Some(child) => {
                    let path = group_path::join(&scene.seat.path, child);
                    let used = scene.text_in(&path, own);
                    let named = scene.named(&path);
                    found(
                        format!("group '{named}' below it uses '{used}'"),
                        format!("first: {}", scene.set_at(&path, own, value)),
                    )
                }
                None if value.is_empty() && !scene.v1() => found(
                    format!(
                        "the group is a partition ({}), and would have no CPU of its own",
                        scene.text(PARTITION)
                    ),
                    format!("first: {}", scene.set(PARTITION, "member")),
                ),
                None => deadline_tasks(scene),
            }
        }
        Errno::INVAL => exclusive_sibling(scene, own, value, is_cpus),
        _ => None,
    }
}

/// Groups above that are empty, as mkdir and cgcreate leave them on v1. Each gets what the nearest one that has some
/// has: with this group's own list they would confine all the other groups below them.
fn under_empty_parent(scene: &Scene<'_>, parent: &str, own: &str, value: &str) -> Finding {
    let text = |path: &str| scene.text_in(path, own);
    let empty: Vec<&str> = ancestors(scene).take_while(|path| text(path).is_empty()).collect();
    let given = ancestors(scene).map(text).find(|text| !text.is_empty())?;
    let above = empty.iter().rev().map(|path| scene.set_at(path, own, &given));
    let commands: Vec<String> = above.chain([scene.set(own, value)]).map(String::from).collect();
    found(format!("its parent '{}' has an empty {own}", scene.named(parent)), commands.join(" && "))
}

fn freezing(scene: &Scene<'_>) -> Finding {
    let (pid, role) = protected_in(scene.host.kernel(), scene.seat.at, &scene.seat.path)?;
    let root = scene.seat.at.path("cgroup.procs");
    found(
        format!(
            "the group contains {role} (process {pid}): frozen, it would block every start that waits for it"
        ),
        format!("move it out first: echo {pid} > {}", units::shell_quote(&root.display().to_string())),
    )
}

fn deadline_tasks(scene: &Scene<'_>) -> Finding {
    found(
        "tasks under SCHED_DEADLINE have reserved more time than the remaining CPUs give",
        format!("chrt -p PID shows each task's reservation; {}", scene.command("get").arg("cpuset.cpus")),
    )
}

/// A sibling with the exclusive flag (v1), or exclusive CPUs (v2), that overlaps.
fn exclusive_sibling(scene: &Scene<'_>, own: &str, value: &str, is_cpus: bool) -> Finding {
    let parent = scene.parent()?;
    let flag = if is_cpus { "cpuset.cpu_exclusive" } else { "cpuset.mem_exclusive" };
    let overlaps = |used: &str| match is_cpus {
        true => !cpus(used).is_disjoint(&cpus(value)),
        false => !nodes(used).is_disjoint(&nodes(value)),
    };
    let own_flag = scene.text(flag) == "1";
    let siblings = scene.host.kernel().children(scene.seat.at, parent).unwrap_or_default();
    let paths = siblings.iter().map(|name| group_path::join(parent, name));
    for path in paths.filter(|path| *path != scene.seat.path) {
        let exclusive = scene.text_in(&path, "cpuset.cpus.exclusive");
        let present =
            if scene.v1() || exclusive.is_empty() { scene.text_in(&path, own) } else { exclusive.clone() };
        let marked =
            if scene.v1() { scene.text_in(&path, flag) == "1" || own_flag } else { !exclusive.is_empty() };
        if marked && overlaps(&present) {
            let named = scene.named(&path);
            return found(
                format!("group '{named}' has '{present}', and one of the two is exclusive"),
                format!("take others, or free them first: {} {own}=…", scene.command_at("set", &path)),
            );
        }
    }
    None
}

fn exclusive_flag(scene: &Scene<'_>, file: &str) -> Finding {
    let parent = scene.parent()?;
    let named = scene.named(parent);
    match scene.refusal.errno {
        Errno::ACCESS if !parent.is_empty() && scene.text_in(parent, file) == "0" => found(
            format!("its parent '{named}' is not exclusive itself"),
            format!("first: {}", scene.set_at(parent, file, 1)),
        ),
        Errno::INVAL => {
            let list = if file == "cpuset.cpu_exclusive" { "cpuset.cpus" } else { "cpuset.mems" };
            let own = scene.text(list);
            let siblings = scene.host.kernel().children(scene.seat.at, parent).unwrap_or_default();
            let other = siblings.iter().find_map(|name| {
                let path = group_path::join(parent, name);
                let used = scene.text_in(&path, list);
                let shared = cpus(&used).intersection(&cpus(&own));
                (path != scene.seat.path && !shared.is_empty()).then_some((path, used))
            })?;
            found(
                format!(
                    "group '{}' has {list} '{}', which overlaps with '{own}'",
                    scene.named(&other.0),
                    other.1
                ),
                format!("first: {} {list}=… without these", scene.command_at("set", &other.0)),
            )
        }
        Errno::BUSY => {
            let children = scene.host.kernel().children(scene.seat.at, &scene.seat.path).unwrap_or_default();
            let child = children
                .iter()
                .map(|name| group_path::join(&scene.seat.path, name))
                .find(|path| scene.text_in(path, file) == "1")?;
            found(
                format!("group '{}' below it is exclusive", scene.named(&child)),
                format!("first: {}", scene.set_at(&child, file, 0)),
            )
        }
        _ => None,
    }
}

fn partition(scene: &Scene<'_>) -> Finding {
    match scene.refusal.errno {
        Errno::INVAL => found(
            format!("the kernel keeps it a member ({})", scene.text(PARTITION)),
            format!(
                "{} cpuset.cpus=… cpuset.cpus.partition=root: a partition needs CPUs of its own",
                scene.command("set")
            ),
        ),
        _ => None,
    }
}

const OWN_USE: &str = "memory.usage_in_bytes";
/// By how much a limit that is offered is above the use, in bytes.
const MARGIN: u64 = 8 << 20;

fn v1_memory(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    let (other, usage) = if file == "memory.limit_in_bytes" {
        ("memory.memsw.limit_in_bytes", OWN_USE)
    } else {
        ("memory.limit_in_bytes", "memory.memsw.usage_in_bytes")
    };
    match scene.refusal.errno {
        Errno::BUSY => {
            let used = scene.text(usage);
            // the use goes on changing
            let enough = used.parse::<u64>().ok()?.saturating_add(MARGIN).div_ceil(1 << 20);
            // with swap, v2's name means another amount
            let name = settings::lookup(file).map(|found| found.canonical()).filter(|_| usage == OWN_USE);
            let name = name.as_deref().unwrap_or(file);
            found(
                format!("the group uses {} and not enough of it could be reclaimed", size(&used)),
                format!("a limit above its use is taken: {}", scene.set(name, format!("{enough}M"))),
            )
        }
        Errno::INVAL => {
            let bound = scene.text(other);
            // -1 is no limit
            let amount = |text: &str| text.parse::<i128>().ok().map(|n| if n < 0 { i128::MAX } else { n });
            let (limit, bound_number) = (amount(value)?, amount(&bound)?);
            let crossed =
                if file == "memory.limit_in_bytes" { limit > bound_number } else { limit < bound_number };
            crossed.then_some(())?;
            let word = if file == "memory.limit_in_bytes" { "at most" } else { "at least" };
            found(
                format!("it must be {word} {other}, which is {}", size(&bound)),
                scene.set(file, size(value)).arg(format!("{other}={}", size(value))),
            )
        }
        _ => None,
    }
}

fn v1_quota(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    (scene.refusal.errno == Errno::INVAL).then_some(())?;
    let number: i64 = value.parse().ok()?;
    if file == "cpu.cfs_period_us" && !(1_000..=1_000_000).contains(&number) {
        return found("the period must be 1 ms to 1 s", scene.set("cpu.cfs_period_us", "100ms"));
    }
    if file == "cpu.cfs_quota_us" && (0..1_000).contains(&number) {
        return found("the quota must be at least 1 ms", scene.set("cpu.cfs_quota_us", "1ms"));
    }
    let (quota, period) = match file {
        "cpu.cfs_quota_us" => (number, scene.text("cpu.cfs_period_us").parse().ok()?),
        _ => (scene.text("cpu.cfs_quota_us").parse().ok()?, number),
    };
    let share = |quota: i64, period: i64| quota as f64 / period as f64;
    // v1 refuses a child that may run more than its parent, and a parent below what a child may
    for path in group_path::ancestors(&scene.seat.path).filter(|path| !path.is_empty()) {
        let limit: i64 = scene.text_in(path, "cpu.cfs_quota_us").parse().ok()?;
        let window: i64 = scene.text_in(path, "cpu.cfs_period_us").parse().ok()?;
        if limit >= 0 && (quota < 0 || share(quota, period) > share(limit, window)) {
            let named = scene.named(path);
            return found(
                format!(
                    "its parent '{named}' may run {:.2} CPUs, less than the {:.2} requested",
                    share(limit, window),
                    share(quota, period)
                ),
                format!(
                    "first: {}",
                    scene.set_at(path, "cpu.max", format!("{:.2}cpu", share(quota, period)))
                ),
            );
        }
    }
    let below = scene.host.kernel().descendants(scene.seat.at, &scene.seat.path).unwrap_or_default();
    let child = below.iter().find_map(|path| {
        let limit: i64 = scene.text_in(path, "cpu.cfs_quota_us").parse().ok()?;
        let window: i64 = scene.text_in(path, "cpu.cfs_period_us").parse().ok()?;
        (limit > 0 && share(limit, window) > share(quota, period))
            .then(|| (path.clone(), share(limit, window)))
    })?;
    found(
        format!(
            "group '{}' below it may run {:.2} CPUs, more than the {:.2} requested",
            scene.named(&child.0),
            child.1,
            share(quota, period)
        ),
        format!("first: {}", scene.set_at(&child.0, "cpu.max", format!("{:.2}cpu", share(quota, period)))),
    )
}

fn burst(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    let (_, pair) = settings::pairs(scene.seat.at.version).find(|(first, _)| *first == file)?;
    let quota = scene.text(pair.other).split_whitespace().next()?.parse::<u64>().ok()?;
    let requested = value.parse::<u64>().ok()?;
    (requested > quota).then_some(())?;
    found(format!("the burst may be at most the quota, which is {quota} us"), scene.set(file, quota))
}

fn realtime(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    match scene.refusal.errno {
        Errno::BUSY => found(
            "real-time tasks in the group would be left without a budget",
            format!("move them out first: {}", scene.command("get").arg("tasks")),
        ),
        Errno::INVAL => {
            let parent = scene.parent()?;
            let number = |text: String| text.parse::<i64>().ok();
            let period = number(scene.text("cpu.rt_period_us"))?;
            let (requested, period) = match file {
                "cpu.rt_runtime_us" => (value.parse().ok()?, period),
                _ => (number(scene.text("cpu.rt_runtime_us"))?, value.parse().ok()?),
            };
            if requested > period {
                return found(
                    format!("the budget of {requested} us is longer than its period of {period} us"),
                    scene.set("cpu.rt_runtime_us", period / 20),
                );
            }
            // the sum of the groups in `path`, without the one that the write is about
            let sum_in = |path: &str| -> i64 {
                let children = scene.host.kernel().children(scene.seat.at, path).unwrap_or_default();
                let paths = children.iter().map(|name| group_path::join(path, name));
                let others = paths.filter(|path| *path != scene.seat.path);
                others
                    .filter_map(|path| number(scene.text_in(&path, "cpu.rt_runtime_us")))
                    .filter(|runtime| *runtime > 0)
                    .sum()
            };
            let below = sum_in(&scene.seat.path);
            if requested >= 0 && below > requested {
                return found(
                    format!(
                        "groups below it hold budgets of {below} us, more than the {requested} us requested"
                    ),
                    format!("{} shows them; lower theirs first", scene.command("list")),
                );
            }
            let (taken, limit) = (sum_in(parent), number(scene.text_in(parent, "cpu.rt_runtime_us"))?);
            let free = (limit - taken).max(0);
            let named = scene.named(parent);
            found(
                format!(
                    "'{named}' has a real-time budget of {limit} us, of which groups beside this one hold {taken} us: \
                     {free} us are free"
                ),
                if parent.is_empty() {
                    format!(
                        "lower another group's, or request at most {free} us (cat /proc/sys/kernel/sched_rt_runtime_us)"
                    )
                } else {
                    format!("first: {}", scene.set_at(parent, "cpu.rt_runtime_us", requested + taken))
                },
            )
        }
        _ => None,
    }
}

fn subtree_control(scene: &Scene<'_>, value: &str) -> Finding {
    let (named, main) = (scene.named(&scene.seat.path), format!("{}/main", scene.seat.path));
    let name = value.trim_start_matches(['+', '-']);
    match scene.refusal.errno {
        Errno::BUSY if value.starts_with('-') => found(
            format!("a group below '{named}' enables {name} for its own children"),
            format!("disable it there first: {}", scene.command_at("list --tree", &scene.seat.path)),
        ),
        Errno::BUSY => found(
            format!(
                "group '{named}' holds {} itself, and on cgroup v2 a group that has processes cannot give controllers to groups below it",
                scene.some_tasks()
            ),
            {
                let pids = scene.host.tasks_in(scene.seat);
                format!(
                    "move them to a group below it first: {} && {}",
                    scene.command_at("create --controllers core", &main),
                    scene.command_at("move", &main).args(pids.iter().map(u32::to_string))
                )
            },
        ),
        Errno::NOENT => found(
            format!("controller {name} is not available in '{named}' (it has: {})", scene.text(CONTROLLERS)),
            format!(
                "enable it in the parents first: {}",
                scene.command_at("create", &scene.seat.path).args(["--controllers", name])
            ),
        ),
        Errno::INVAL if name == "cpu" => found(
            "real-time tasks run outside the root group, which the v2 cpu controller does not allow on a kernel with RT_GROUP_SCHED",
            "chrt -o -p 0 PID for each, or move them to the root group: ringfence move / PID",
        ),
        Errno::INVAL => found(
            format!("the kernel knows no controller '{name}', or it is bound to a v1 hierarchy"),
            "ringfence doctor shows where each controller lives",
        ),
        Errno::OPNOTSUPP => found(
            format!(
                "'{named}' is of type '{}', and {name} works only on whole processes",
                scene.text("cgroup.type")
            ),
            "only cpu, cpuset, perf_event and pids work inside a threaded subtree",
        ),
        _ => None,
    }
}

fn group_type(scene: &Scene<'_>, value: &str) -> Finding {
    let now = scene.text("cgroup.type");
    match scene.refusal.errno {
        Errno::INVAL if value != "threaded" => found(
            format!("only 'threaded' can be written, and there is no way back (it is '{now}')"),
            format!("{}, and create it again", scene.command("delete")),
        ),
        Errno::OPNOTSUPP | Errno::BUSY => match of_whole_processes(scene) {
            Some(name) => found(
                format!("its parent hands out {name}, which works only on whole processes"),
                THREADED_ELSEWHERE,
            ),
            None => found(
                format!("it is '{now}', and holds processes or enables controllers for groups below it"),
                format!("empty it first: {}", scene.command("get").arg("cgroup.procs")),
            ),
        },
        _ => None,
    }
}

fn device_line(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    let device = value.split_whitespace().next().unwrap_or_default();
    match scene.refusal.errno {
        Errno::NODEV | Errno::NXIO => {
            let partition = scene.outside(&format!("/sys/dev/block/{device}/partition"));
            if partition.is_empty() {
                return found(
                    format!("there is no block device {device}"),
                    "lsblk lists them; a path like /dev/sdb is taken too",
                );
            }
            let whole = scene.outside(&format!("/sys/dev/block/{device}/../dev"));
            found(
                format!("{device} is a partition, and only whole disks are limited"),
                scene.set(file, value.replacen(device, &whole, 1)),
            )
        }
        Errno::INVAL | Errno::OPNOTSUPP if file.contains("weight") || file.contains("bfq") => found(
            format!(
                "the device's I/O scheduler knows no weights (/sys/dev/block/{device}/queue/scheduler: {})",
                scene.outside(&format!("/sys/dev/block/{device}/queue/scheduler"))
            ),
            format!("echo bfq > /sys/dev/block/{device}/queue/scheduler"),
        ),
        Errno::RANGE | Errno::INVAL => found(
            format!("'{value}' is not 'MAJOR:MINOR AMOUNT' as {file} takes it"),
            format!("ringfence settings {file} shows an example"),
        ),
        _ => None,
    }
}

fn devices(scene: &Scene<'_>, file: &str) -> Finding {
    match scene.refusal.errno {
        Errno::PERM if file == "devices.allow" => {
            let parent = scene.parent()?;
            found(
                format!("its parent '{}' does not allow that device itself", scene.named(parent)),
                format!(
                    "{} shows what may be handed down",
                    scene.command_at("get", parent).arg("devices.list")
                ),
            )
        }
        Errno::INVAL => found(
            "a rule is 'a', or 'b' or 'c' with MAJOR:MINOR and some of r, w, m; while groups below exist, 'a' is refused",
            "ringfence settings devices.allow shows an example",
        ),
        _ => None,
    }
}

/// What EINVAL, EACCES and ERANGE mean where nothing more is known: the table's own words on the value.
fn last_resort(scene: &Scene<'_>, file: &str, value: &str) -> Finding {
    if !matches!(scene.refusal.op, Op::Write) {
        return None;
    }
    if scene.seat.path.is_empty() {
        return found(
            "the root group holds what nobody limits",
            "name a group of your own; ringfence list shows them",
        );
    }
    let found_setting = settings::find(file).ok()?;
    let setting = found_setting.setting;
    match scene.refusal.errno {
        Errno::INVAL | Errno::RANGE => found(
            format!("the kernel does not take '{value}' for {file}"),
            // a value that this kernel refuses is no example
            match setting.example == value {
                true => format!("ringfence settings {file} shows its range and the kernels that take it"),
                false => format!(
                    "ringfence settings {file} shows its range; an example: {}={}",
                    setting.name, setting.example
                ),
            },
        ),
        Errno::ACCESS | Errno::PERM if setting.access == settings::Access::Read => {
            found(format!("{file} can only be read"), scene.command("get").arg(file))
        }
        Errno::OPNOTSUPP => found(
            format!("this kernel knows {file}, but the hardware or its configuration does not offer it"),
            "ringfence doctor",
        ),
        _ => None,
    }
}

/// Where a group of threads can be.
pub(crate) const THREADED_ELSEWHERE: &str =
    "make a threaded group below a parent that hands out only cpu, cpuset, pids and perf_event";

/// A controller that the group's parent hands out and that keeps the group from being threaded.
pub(crate) fn of_whole_processes(scene: &Scene<'_>) -> Option<String> {
    let controllers = scene.text_in(scene.parent()?, SUBTREE_CONTROL);
    let threaded = |name: &&str| matches!(*name, "cpu" | "cpuset" | "pids" | "perf_event");
    controllers.split_whitespace().find(|name| !threaded(name)).map(str::to_owned)
}
