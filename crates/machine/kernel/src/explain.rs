//! From an errno to its cause: what the kernel's answer means for this operation on this file, checked on the
//! spot by reading what the kernel checked, and the command that fixes it. Only reads.
//!
//! Sources: `kernel/cgroup/cgroup.c`, `cgroup-v1.c`, `cpuset.c`, `cpuset-v1.c`, `kernel/sched/core.c`,
//! `mm/memcontrol-v1.c`, `block/blk-cgroup.c`; each cause was provoked on a real kernel by a test.

use std::path::Path;

use rustix::io::Errno;
use settings::{Controller, Version};
use topology::facts;
use units::group_path;
use units::hint::{self, Command};

use crate::{
    GroupName, Host, Op, Owner, Refusal, Seat,
    control_files::{CONTROLLERS, SUBTREE_CONTROL},
    explain_write,
    explain_write::{THREADED_ELSEWHERE, of_whole_processes},
    owners::enable_command,
    scene::{Finding, Scene, ancestors, found},
    unit_of,
};

/// Fills in `refusal.cause` and `refusal.hint`; leaves them empty where the errno's own words are all there is.
pub(crate) fn explain(host: &Host, seat: &Seat<'_>, group: &GroupName, refusal: &mut Refusal) {
    let scene = Scene { host, seat, group, refusal };
    let found = general(&scene).or_else(|| match refusal.op {
        Op::Move { pid } => moving(&scene, Some(pid)),
        Op::Run => moving(&scene, None),
        Op::Create => creating(&scene),
        Op::Delete => deleting(&scene),
        Op::Write => explain_write::writing(&scene),
        Op::Read | Op::List | Op::Own | Op::Mount => None,
    });
    if let Some((cause, hint)) = found {
        refusal.cause = Some(cause);
        refusal.hint = hint;
    }
}

/// Causes that do not depend on the file: mounts, rights, groups that are gone.
fn general(scene: &Scene<'_>) -> Finding {
    let Scene { host, seat, refusal, .. } = scene;
    let mount = seat.at.mount.display();
    match refusal.errno {
        Errno::ROFS => found(
            format!("{mount} is mounted read-only"),
            // without `bind` a hierarchy of v1 that has groups is busy
            Command::new("mount -o remount,bind,rw").arg(mount.to_string()),
        ),
        Errno::ACCESS | Errno::PERM if !scene.is_root_user() => Some(no_right(scene)),
        Errno::NODEV | Errno::NOENT
            if !host.kernel.exists(seat.at, &seat.path) && refusal.op != Op::Create =>
        {
            found("the group was deleted meanwhile", scene.command("create"))
        }
        // a file that is there may say ENOENT, too: cgroup.subtree_control of a controller's name
        Errno::NOENT if refusal.file.as_deref().is_some_and(|file| !scene.has_file(file)) => {
            missing_file(scene)
        }
        Errno::SRCH => found("the process has ended", "ps -e lists what runs"),
        Errno::MFILE => found("this process has no file descriptor left", "ulimit -n 65536"),
        Errno::AGAIN => leased(scene),
        _ => None,
    }
}

/// A lease that the file's owner took, by `/proc/locks`: "1: LEASE  ACTIVE    WRITE 17 00:24:654349 0 EOF".
fn leased(scene: &Scene<'_>) -> Finding {
    let file = scene.refusal.file.as_deref()?;
    let stat = rustix::fs::stat(&scene.refusal.path).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let inode = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let locks = scene.outside("/proc/locks");
    let mut leases = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let lease =
        leases.find(|words| words.get(1) == Some(&"LEASE") && words.get(5) == Some(&inode.as_str()))?;
    let pid = lease.get(4)?;
    found(
        format!(
            "process {pid} has a lease on {file}, which the kernel takes away after some time (fs.lease-break-time)"
        ),
        format!(
            "try again later, end process {pid}, or forbid leases, which file servers alone use: sysctl fs.leases-enable=0"
        ),
    )
}

/// What a user other than root may not do, and who may let him.
fn no_right(scene: &Scene<'_>) -> (String, Option<String>) {
    let Scene { host, seat, refusal, .. } = scene;
    let uid = host.kernel.caller().1;
    let path = refusal.path.display();
    match refusal.op {
        Op::Move { pid } => {
            let hint = Some(scene.command("move").arg(pid.to_string()).sudo().into());
            match host.kernel.process(pid).ok().filter(|process| process.uid != uid) {
                Some(process) => {
                    (format!("user {uid} may not move process {pid} of user {}", process.uid), hint)
                }
                None if scene.v1() => (format!("user {uid} may not write {path}"), hint),
                None => {
                    let shared =
                        "or cgroup.procs of the group above that it shares with the process's own group";
                    (format!("user {uid} may not write {path}, {shared}"), hint)
                }
            }
        }
        Op::Create | Op::Delete => {
            let command = scene.command(if refusal.op == Op::Create { "create" } else { "delete" });
            let parent = seat.at.path(scene.parent().unwrap_or_default());
            (format!("user {uid} may not write {}", parent.display()), Some(command.sudo().into()))
        }
        Op::Read | Op::List => {
            (format!("user {uid} may not read {path}"), Some("sudo, or a wider mode".to_owned()))
        }
        _ => (format!("user {uid} may not write {path}"), as_root(scene)),
    }
}

/// The same as root. Never a command that gives the group to the user who was refused: to paste it would
/// give away a group that has an owner.
fn as_root(scene: &Scene<'_>) -> Option<String> {
    let Scene { host, seat, refusal, .. } = scene;
    // the layout's name for it is no group of which a setting could be set
    let is_unit = host.systemd && unit_of(&seat.path).is_some_and(|unit| unit != facts::UNIT_NAME);
    let (file, value) = (refusal.file.as_deref(), refusal.value.as_deref().unwrap_or_default().trim_end());
    match (&refusal.op, file) {
        (Op::Write, Some("freezer.state" | "cgroup.freeze")) => {
            let word = if matches!(value, "FROZEN" | "1") { "freeze" } else { "thaw" };
            Some(scene.command(word).sudo().into())
        }
        (Op::Write, Some("cgroup.kill")) => Some(scene.command("kill").sudo().into()),
        (Op::Write, Some(file)) if !is_unit && settings::find(file).is_ok() => {
            Some(scene.set(file, value).sudo().into())
        }
        (Op::Run, _) => {
            Some(format!("{} $$, and start the program from this shell", scene.command("move").sudo()))
        }
        _ => Some("run the command as root".to_owned()),
    }
}

fn missing_file(scene: &Scene<'_>) -> Finding {
    let Scene { host, seat, refusal, .. } = scene;
    let file = refusal.file.as_deref().unwrap_or_default();
    let prefix = file.split('.').next().unwrap_or_default();
    if seat.path.is_empty() {
        return found(
            format!("the root group has no {file}: it is not limited"),
            "name a group of your own; ringfence list shows them",
        );
    }
    let controller = Controller::from_name(prefix).filter(|controller| *controller != Controller::Core);
    if let (Some(controller), Version::V2) = (controller, seat.at.version) {
        let name = controller.name(Version::V2).unwrap_or(prefix);
        let enabled = scene.text(CONTROLLERS).split_whitespace().any(|word| word == name);
        if !enabled {
            return without_controller(scene, controller, name);
        }
    }
    let release = host.kernel.outside(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    found(
        format!("this kernel ({}) has no {file} on cgroup {}", release.trim(), seat.at.version),
        format!("ringfence settings {file} shows since when it exists and what to use instead"),
    )
}

/// A controller that no group above hands down; below somebody else's groups it is not ours to hand it down.
fn without_controller(scene: &Scene<'_>, controller: Controller, name: &str) -> Finding {
    let path = &scene.seat.path;
    let owner = GroupName::new(&format!("/{path}")).ok().and_then(|group| Owner::of(&group));
    match owner.filter(|owner| *owner != Owner::Systemd || scene.host.systemd) {
        Some(owner) => {
            let cause =
                format!("{} has not enabled controller {name} for it: it has no such limit", owner.name());
            let all_cpus = || scene.text_in("", "cpuset.cpus.effective");
            Some((cause, enable_command(owner, path, controller, all_cpus).map(String::from)))
        }
        None => found(
            format!(
                "controller {name} is not enabled for the group (its parent's cgroup.subtree_control lacks it)"
            ),
            scene.command("create").args(["--controllers", name]),
        ),
    }
}

/// Putting a task into a group, by a write or by clone3.
fn moving(scene: &Scene<'_>, pid: Option<u32>) -> Finding {
    let Scene { host, seat, refusal, .. } = scene;
    match refusal.errno {
        Errno::NOSPC if scene.v1() => {
            let (cpus, mems) = (scene.text("cpuset.cpus"), scene.text("cpuset.mems"));
            let missing = match (cpus.is_empty(), mems.is_empty()) {
                (true, true) => {
                    "cpuset.cpus and cpuset.mems are empty, so a task in it would have no CPU to run on and no memory"
                }
                (true, false) => "cpuset.cpus is empty, so a task in it would have no CPU to run on",
                (false, true) => {
                    "cpuset.mems is empty, so a task in it would have no memory node to allocate from"
                }
                (false, false) => return offline_cpuset(scene),
            };
            found(missing, fill_cpusets(scene))
        }
        Errno::NOSPC => offline_cpuset(scene),
        Errno::BUSY if !scene.v1() => {
            let enabled = scene.text(SUBTREE_CONTROL);
            if enabled.is_empty() {
                return None;
            }
            let below = match takes_tasks_below(scene) {
                Some(path) => {
                    format!("use a group below it: {}", hint::group(host.named(seat.at, &path)))
                }
                None => scene.command_at("create", &group_path::join(&seat.path, "main")).into(),
            };
            found(
                format!(
                    "it hands the controllers {enabled} to its children, and on cgroup v2 only groups without \
                     such children hold processes"
                ),
                below,
            )
        }
        Errno::OPNOTSUPP => {
            let kind = scene.text("cgroup.type");
            let cause = if kind == "domain invalid" {
                "its type is 'domain invalid': a parent is threaded, so it takes threads only once it is threaded itself"
                    .to_owned()
            } else if refusal.file.as_deref() == Some("cgroup.threads") {
                format!(
                    "its type is '{kind}': threads of one process are only spread over groups of one threaded subtree"
                )
            } else {
                format!("its type is '{kind}': a whole process belongs into the threaded subtree's root")
            };
            match of_whole_processes(scene) {
                Some(name) => {
                    found(format!("{cause}; its parent hands out {name}"), THREADED_ELSEWHERE.to_owned())
                }
                None => found(cause, scene.set("cgroup.type", "threaded")),
            }
        }
        Errno::AGAIN => {
            let (limit, current) = (scene.text("pids.max"), scene.text("pids.current"));
            found(
                format!("it may hold {limit} tasks and holds {current}"),
                scene.set("pids.max", current.parse::<u64>().unwrap_or(0) + 100),
            )
        }
        Errno::INVAL => invalid_move(scene, pid),
        _ => None,
    }
}

/// The nearest group below on v2 that hands no controllers to its children.
fn takes_tasks_below(scene: &Scene<'_>) -> Option<String> {
    let Scene { host, seat, .. } = scene;
    let mut below = host.kernel.descendants(seat.at, &seat.path).ok()?;
    below.sort_by_key(|path| (path.matches('/').count(), path.clone()));
    below.into_iter().find(|path| scene.text_in(path, SUBTREE_CONTROL).is_empty())
}

/// The commands that give the group what it lacks, after the groups above it that lack the same, from the nearest one
/// that has it.
fn fill_cpusets(scene: &Scene<'_>) -> String {
    let above: Vec<&str> = ancestors(scene).collect();
    let wanted = ["cpuset.cpus", "cpuset.mems"].map(|file| {
        let holder = above.iter().map(|path| scene.text_in(path, file)).find(|text| !text.is_empty());
        (file, holder.unwrap_or_default())
    });
    let mut commands: Vec<String> = Vec::new();
    for at in std::iter::once(scene.seat.path.as_str()).chain(above).filter(|at| !at.is_empty()) {
        let lacking = wanted.iter().filter(|(file, _)| scene.text_in(at, file).is_empty());
        let given: Vec<String> = lacking.map(|(file, value)| format!("{file}={value}")).collect();
        if !given.is_empty() {
            commands.push(scene.command_at("set", at).args(given).into());
        }
    }
    commands.reverse();
    commands.join(" && ")
}

fn offline_cpuset(scene: &Scene<'_>) -> Finding {
    let (cpus, mems) = (scene.text("cpuset.cpus"), scene.text("cpuset.mems"));
    found(
        format!("none of its CPUs ({cpus}) or memory nodes ({mems}) is online"),
        scene.set("cpuset.cpus", scene.outside("/sys/devices/system/cpu/online")).arg("cpuset.mems=0"),
    )
}

fn invalid_move(scene: &Scene<'_>, pid: Option<u32>) -> Finding {
    let Scene { host, .. } = scene;
    let process = pid.and_then(|pid| host.kernel.process(pid).ok());
    let realtime = process.as_ref().map_or(scene.refusal.op == Op::Run, crate::Process::is_realtime);
    if realtime && scene.v1() && scene.text("cpu.rt_runtime_us") == "0" {
        return found(
            "the task runs under a real-time policy, and the group's real-time budget (cpu.rt_runtime_us) is 0",
            scene.set("cpu.rt_runtime_us", "50ms"),
        );
    }
    let process = process.filter(|process| process.kernel_thread || process.bound)?;
    found(
        format!(
            "{} ({}) is a kernel thread bound to its CPU, which stays in the root group",
            process.pid,
            units::printable(&process.comm)
        ),
        "leave it out; isolcpus= or taskset move those that can be moved",
    )
}

fn creating(scene: &Scene<'_>) -> Finding {
    let Scene { seat, refusal, .. } = scene;
    match refusal.errno {
        Errno::AGAIN => {
            for path in ancestors(scene) {
                for (file, word) in [("cgroup.max.depth", "levels"), ("cgroup.max.descendants", "groups")] {
                    let limit = scene.text_in(path, file);
                    if limit.parse::<u64>().is_ok() {
                        let named = scene.named(path);
                        return found(
                            format!("{file} of group '{named}' allows {limit} {word} below it"),
                            scene.set_at(path, file, "max"),
                        );
                    }
                }
            }
            None
        }
        Errno::EXIST => found(
            "there is a file of that name",
            Command::ringfence("create").group(format!("{}_", scene.group)),
        ),
        Errno::NAMETOOLONG => found("the kernel takes names of at most 255 bytes", "use a shorter name"),
        Errno::ACCESS | Errno::PERM => found(
            format!("the kernel allows no new group in {}", seat.at.mount.display()),
            "ringfence doctor shows who owns the hierarchy",
        ),
        Errno::NOSPC => {
            found("the kernel has no group number left (65535 per v1 hierarchy)", "ringfence list --tree")
        }
        _ => None,
    }
}

fn deleting(scene: &Scene<'_>) -> Finding {
    let Scene { host, seat, refusal, .. } = scene;
    if refusal.errno != Errno::BUSY {
        return None;
    }
    let own = scene.named(&seat.path);
    let tasks = scene.some_tasks();
    if !tasks.is_empty() {
        let first = host.tasks_in(seat).first().copied().unwrap_or_default();
        return found(
            format!("group '{own}' still holds {tasks}"),
            format!("{}, or move them out: ringfence move OTHER {first}", scene.command("kill")),
        );
    }
    let children = host.kernel.children(seat.at, &seat.path).unwrap_or_default();
    match children.len() {
        0 => None,
        count => found(
            format!("it has {} below it ({})", units::counted(count, "group"), children.join(", ")),
            scene.command("delete --recursive"),
        ),
    }
}
