//! Where each controller lives, which are missing and how to get them, and what v2 groups can do by themselves.

use settings::{Controller, Version};
use topology::facts::{self, ControllerRow, Facts, MountTrial, Mounted};
use units::hint::Command;

use super::{Area, FactsExt, Finding, Level};

fn finding(level: Level, what: impl Into<String>) -> Finding {
    Finding::new(Area::Controllers, level, what)
}

pub(super) fn controllers(facts: &Facts) -> Vec<Finding> {
    if facts.v1.is_empty() && facts.v2.is_none() {
        return vec![
            finding(Level::Broken, "no cgroup hierarchy is mounted")
                .so("no group can be made, listed or changed")
                .hint("mount -t cgroup2 cgroup2 /sys/fs/cgroup"),
        ];
    }
    let mut found = places(facts);
    found.extend(not_delegated(facts));
    found.extend(missing(facts));
    found
}

/// One finding per hierarchy.
fn places(facts: &Facts) -> Vec<Finding> {
    let place = |names: String, version: Version, at: &Mounted| {
        let base = at.base.path();
        let base = if base.is_empty() { String::new() } else { format!(", our groups below {base}") };
        let what = format!("{names}: {version} at {}{base}", at.mount.display());
        if !at.read_only {
            return finding(Level::Ok, what);
        }
        finding(Level::Attention, format!("{what}, read-only"))
            .so("no group can be made or changed there")
            .hint(Command::new("mount -o remount,bind,rw").arg(at.mount.to_string_lossy()))
    };
    let v1 = facts.v1.iter().map(|at| {
        let name = at.name.as_deref().map(|name| format!("name={name}"));
        place(name.unwrap_or_else(|| at.controllers.join(", ")), Version::V1, &at.at)
    });
    let v2 = facts.v2.iter().map(|at| {
        let names =
            if at.controllers.is_empty() { "no controller".to_owned() } else { at.controllers.join(", ") };
        place(names, Version::V2, &at.at)
    });
    let mut found: Vec<Finding> = v1.chain(v2).collect();
    let core: Vec<&str> =
        Controller::ALL.into_iter().filter(|c| in_every_v2_group(facts, *c)).filter_map(v1_name).collect();
    if !core.is_empty() {
        found.push(finding(Level::Ok, format!("{}: part of every v2 group", core.join(", "))));
    }
    found
}

fn v1_name(controller: Controller) -> Option<&'static str> {
    controller.name(Version::V1)
}

/// What v2 has without a controller of that name, unless a v1 hierarchy took it.
fn in_every_v2_group(facts: &Facts, controller: Controller) -> bool {
    let built_in = match controller {
        Controller::Freezer => facts.child_has("cgroup.freeze") != Some(false),
        Controller::Devices | Controller::Cpuacct | Controller::PerfEvent => true,
        _ => false,
    };
    built_in && facts.v2.is_some() && !v1_name(controller).is_some_and(|name| facts.v1_has(name))
}

/// Main controllers that v2 has, but not where our groups live.
fn not_delegated(facts: &Facts) -> Option<Finding> {
    let v2 = facts.v2.as_ref().filter(|v2| matches!(v2.at.base, facts::Base::Own(_)))?;
    let given = v2.delegated.as_ref()?;
    let main = ["cpu", "cpuset", "io", "memory", "pids"];
    let missing: Vec<&str> = main
        .into_iter()
        .filter(|name| facts.v2_has(name) && !given.iter().any(|controller| controller == name))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let base = v2.at.base.path();
    let found = finding(Level::Note, format!("{}: not delegated to {base}", missing.join(", ")))
        .so(format!("your groups have no settings of {}", missing.join(", ")));
    Some(match &facts.systemd {
        Some(_) => found.hint(
            "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=yes\\n' \
             > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again",
        ),
        None => {
            let command = Command::ringfence("create").group(format!("/{base}"));
            found.hint(format!("as root: {}", command.args(["--controllers", &missing.join(",")])))
        }
    })
}

fn missing(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut unknown: Vec<(&str, &str)> = Vec::new();
    for controller in Controller::ALL {
        let (Some(name), Some(lost)) = (v1_name(controller), lost(controller)) else { continue };
        let here = facts.v1_has(name) || controller.name(Version::V2).is_some_and(|name| facts.v2_has(name));
        if here || in_every_v2_group(facts, controller) {
            continue;
        }
        let main =
            [Controller::Cpu, Controller::Cpuset, Controller::Memory, Controller::Io].contains(&controller);
        let level = if main { Level::Attention } else { Level::Note };
        match facts.controllers.iter().find(|row| row.name == name) {
            None if !main => unknown.push((name, lost)),
            row => found.push(absent(facts, level, name, lost, row)),
        }
    }
    if !unknown.is_empty() {
        // what few need and this kernel lacks, in one finding
        let (names, lost): (Vec<&str>, Vec<&str>) = unknown.into_iter().unzip();
        found.push(
            finding(Level::Note, format!("{}: not in this kernel", names.join(", "))).so(lost.join("; ")),
        );
    }
    found
}

/// What can't be done without a controller.
fn lost(controller: Controller) -> Option<&'static str> {
    Some(match controller {
        Controller::Cpu => "CPU time can't be shared or capped by group",
        Controller::Cpuset => "groups can't be bound to CPUs and memory nodes",
        Controller::Cpuacct => "CPU time is not counted by group",
        Controller::Memory => "memory can't be limited or protected by group",
        Controller::Io => "I/O can't be limited or weighted by group",
        Controller::Pids => "the number of tasks can't be limited by group",
        Controller::Devices => "access to devices can't be restricted by group",
        Controller::Freezer => "groups can't be frozen",
        Controller::Hugetlb => "huge pages can't be limited by group",
        Controller::NetCls => "packets can't be marked with their group's class",
        Controller::NetPrio => "packets can't be given their group's priority",
        Controller::PerfEvent => "perf can't count events by group",
        Controller::Rdma => "RDMA handles can't be limited by group",
        Controller::Misc => "counted resources (misc.max) can't be limited by group",
        Controller::Core => return None,
    })
}

/// A controller that no mounted hierarchy has: why, and how to get it.
fn absent(facts: &Facts, level: Level, name: &str, lost: &str, row: Option<&ControllerRow>) -> Finding {
    let say = |why: &str| finding(level, format!("{name}: {why}")).so(lost);
    let no_v1 = facts.booted("cgroup_no_v1").filter(|word| listed_in(word, name) || listed_in(word, "all"));
    let Some(row) = row else {
        // a kernel without the v1 side of a controller does not list it
        return match facts.v2 {
            Some(_) => say("not in this kernel"),
            None => say("this kernel has it on cgroup v2 only, if at all").hint(mount_v2(facts)),
        };
    };
    if !row.enabled {
        let off = facts.booted("cgroup_disable").filter(|word| listed_in(word, name));
        return say("switched off at boot").hint(match off {
            Some(word) => format!("remove {word} from the kernel's command line"),
            None => format!("cgroup_enable={name} on the kernel's command line"),
        });
    }
    if row.hierarchy != 0 {
        return say("in a v1 hierarchy that is not mounted here").hint(format!("ringfence mount {name}"));
    }
    match &row.trial {
        MountTrial::Mounts => say("in no hierarchy").hint(format!("ringfence mount {name}")),
        MountTrial::Untried | MountTrial::Forgone(_) => {
            say("in no hierarchy").hint(format!("as root: ringfence mount {name}"))
        }
        MountTrial::Refused(_) if no_v1.is_some() => {
            say("disabled for cgroup v1 at boot").hint(match facts.v2 {
                Some(_) => format!("remove {} from the kernel's command line", no_v1.unwrap_or_default()),
                None => mount_v2(facts),
            })
        }
        MountTrial::Refused(_) if name == "net_cls" && facts.v2.is_some() => {
            say("this kernel can't mount it")
                .hint("nft add rule inet filter output socket cgroupv2 level 1 \"GROUP\" meta mark set 1")
        }
        MountTrial::Refused(why) => {
            let refused = say(&format!("this kernel lists it, and can't mount it on v1: {why}"));
            if facts.v2.is_none() { refused.hint(mount_v2(facts)) } else { refused }
        }
    }
}

/// Is `name` in a parameter like `cgroup_disable=memory,io`?
fn listed_in(parameter: &str, name: &str) -> bool {
    parameter.split_once('=').is_some_and(|(_, list)| list.split(',').any(|word| word == name))
}

/// The command that mounts v2 beside the existing hierarchies.
pub(super) fn mount_v2(facts: &Facts) -> String {
    let beside = facts.v1.first().and_then(|at| at.at.mount.parent()).map(|dir| dir.join("unified"));
    match beside {
        Some(at) => format!("mkdir {0} && mount -t cgroup2 cgroup2 {0}", at.display()),
        None => "mount -t cgroup2 cgroup2 /sys/fs/cgroup".to_owned(),
    }
}

/// Freezing, killing, running.
pub(super) fn groups(facts: &Facts) -> Vec<Finding> {
    let finding = |level, what: &str| Finding::new(Area::Groups, level, what);
    let mut found = Vec::new();
    if facts.v2.is_none() {
        if facts.v1_has("freezer") {
            found.push(finding(
                Level::Ok,
                "freeze: by the v1 freezer; kill: process by process until none is left",
            ));
        }
        return found;
    }
    let freeze = if facts.v1_has("freezer") { "by the v1 freezer" } else { "by cgroup.freeze" };
    found.push(match (facts.child_has("cgroup.freeze"), facts.child_has("cgroup.kill")) {
        (None, _) => finding(Level::Ok, "freeze and kill: not seen, as there is no v2 group to look at"),
        (_, Some(true)) => finding(Level::Ok, &format!("freeze: {freeze}; kill: by cgroup.kill")),
        _ => finding(Level::Note, "this kernel has no cgroup.kill")
            .so("ringfence kill signals process by process until none is left"),
    });
    match facts.clone_into_cgroup {
        Some(true) => {
            found.push(finding(Level::Ok, "run: programs are born inside their group (CLONE_INTO_CGROUP)"))
        }
        Some(false) => found.push(
            finding(Level::Attention, "clone3 does not take CLONE_INTO_CGROUP")
                .so("ringfence run does not start programs in v2 groups")
                .hint("sh -c 'ringfence move GROUP $$ && exec COMMAND'"),
        ),
        None => {}
    }
    found
}
