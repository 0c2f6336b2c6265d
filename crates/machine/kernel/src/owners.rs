//! Subtrees that belong to somebody else: systemd, kubelet, containerd, Slurm, Nomad, libvirt. They are read,
//! never written.

use settings::{Controller, Version};
use topology::facts::UNIT_PATH;
use units::{group_path, hint::Command};

use crate::{
    Error, GroupName, Hierarchy, OfUnit,
    unit::{bound, is_unit_name, set_property, unit_of},
};

/// What is to be done to a group.
#[derive(Clone, Copy)]
pub enum Change<'c> {
    /// Settings are changed: names with values as a user writes them, which only a refusal needs; the values are empty where
    /// they are not known.
    Settings(&'c dyn Fn() -> Vec<(&'c str, String)>),
    /// It is made.
    Create,
    /// It is removed.
    Delete,
    /// Processes come in.
    Enter,
    /// A program is started in it: its words, as they are typed.
    Run(&'c dyn Fn() -> Vec<String>),
    /// Its processes stop.
    Freeze,
    /// They run again.
    Thaw,
    /// Its processes get a signal.
    Kill,
}

/// Somebody else who manages a subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// Units, slices and scopes.
    Systemd,
    /// Kubernetes' node agent.
    Kubelet,
    /// Docker, containerd, Podman.
    Containers,
    /// Slurm's job steps.
    Slurm,
    /// HashiCorp Nomad.
    Nomad,
    /// Virtual machines.
    Libvirt,
}

impl Owner {
    /// The owner of a group named from the hierarchy's root, by the names these programs give.
    pub fn of(group: &GroupName) -> Option<Owner> {
        let path = group.path();
        if group_path::is_at_or_below(path, UNIT_PATH) {
            return None;
        }
        group_path::names(path)
            .find_map(|part| match part {
                p if p.starts_with("kubepods") || p == "kubelet" || p.starts_with("kubelet") => {
                    Some(Owner::Kubelet)
                }
                p if p == "docker"
                    || p == "containerd"
                    || p.starts_with("docker-")
                    || p.starts_with("cri-containerd") =>
                {
                    Some(Owner::Containers)
                }
                p if p.starts_with("libpod") || p == "machine.slice" && path.contains("libpod") => {
                    Some(Owner::Containers)
                }
                p if p == "slurm" || p.starts_with("slurmstepd") || p.starts_with("slurmd") => {
                    Some(Owner::Slurm)
                }
                p if p == "nomad" || p == "nomad.slice" => Some(Owner::Nomad),
                p if p.starts_with("libvirt") || p == "machine" || p.starts_with("machine-qemu") => {
                    Some(Owner::Libvirt)
                }
                _ => None,
            })
            .or_else(|| is_unit(path).then_some(Owner::Systemd))
    }

    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Owner::Systemd => "systemd",
            Owner::Kubelet => "kubelet",
            Owner::Containers => "the container runtime",
            Owner::Slurm => "Slurm",
            Owner::Nomad => "Nomad",
            Owner::Libvirt => "libvirt",
        }
    }
}

fn is_unit(path: &str) -> bool {
    group_path::names(path).next().is_some_and(is_unit_name)
}

/// Does systemd, where it runs, own this hierarchy? All of v2; of v1 its own named one and the controllers it
/// knows there (systemd's `CGroupMask`: cpuset, freezer and the rest stay free on v1).
pub(crate) fn systemd_manages(at: &Hierarchy) -> bool {
    let managed = [
        Controller::Cpu,
        Controller::Cpuacct,
        Controller::Io,
        Controller::Memory,
        Controller::Devices,
        Controller::Pids,
    ];
    at.version == Version::V2
        || at.name.as_deref() == Some("systemd")
        || at.controllers.iter().any(|controller| managed.contains(controller))
}

/// Refuses a change in a subtree that somebody else manages.
///
/// # Errors
/// [`Error::Foreign`] with the owner's own command for it, where there is one.
pub fn refuse_foreign(group: &GroupName, change: Change<'_>) -> Result<(), Error> {
    let Some(owner) = Owner::of(group).filter(|_| group.is_from_root()) else { return Ok(()) };
    let (hint, unit) = match owner {
        Owner::Systemd => {
            let unit = unit_of(group.path()).unwrap_or_else(|| "UNIT".to_owned());
            let settings = match change {
                Change::Settings(settings) => settings(),
                _ => Vec::new(),
            };
            let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let hint = of_unit(&unit, slice_of(group.path()), change);
            (hint, Some(Box::new(OfUnit { unit, settings })))
        }
        other => (format!("use {} for it (kubectl, docker, scontrol, nomad, virsh)", other.name()), None),
    };
    Err(Error::Foreign { group: group.to_string(), owner: owner.name(), hint, unit })
}

/// The command that gives a group these settings, each a name with a value as a user writes it: of a unit of systemd its
/// properties. `None`: its owner has no command for all of them.
pub fn set_command(group: &str, settings: &[(&str, String)]) -> Option<Command> {
    let Some((owner, path)) = owner_of(group) else {
        let words = settings.iter().map(|(name, value)| format!("{name}={value}"));
        return Some(Command::ringfence("set").group(group).args(words));
    };
    let unit = own_unit(owner, &path)?;
    let lines = settings.iter().map(|(name, value)| properties(name, value)).collect::<Option<Vec<_>>>()?;
    Some(set_property(&unit, lines.concat()))
}

/// The command that lets a group's processes run again; `None` where its owner has none.
pub fn thaw_command(group: &str) -> Option<Command> {
    match owner_of(group) {
        None => Some(Command::ringfence("thaw").group(group)),
        Some((owner, path)) => Some(Command::new("systemctl thaw").arg(own_unit(owner, &path)?)),
    }
}

/// The command by which systemd enables a controller for the unit whose group this is; `None`: its owner has none.
/// `all_cpus`: the machine's.
pub(crate) fn enable_command(
    owner: Owner,
    path: &str,
    controller: Controller,
    all_cpus: impl FnOnce() -> String,
) -> Option<Command> {
    // accounting of CPU time needs no controller on v2: a weight, here the default, does
    let line = match controller {
        Controller::Cpu => "CPUWeight=100".to_owned(),
        Controller::Cpuset => format!("AllowedCPUs={}", all_cpus()),
        Controller::Io => "IOAccounting=yes".to_owned(),
        Controller::Memory => "MemoryAccounting=yes".to_owned(),
        Controller::Pids => "TasksAccounting=yes".to_owned(),
        _ => return None,
    };
    Some(set_property(&own_unit(owner, path)?, vec![line]))
}

/// The unit whose group this is. What lies below a unit's group is divided by the service itself.
fn own_unit(owner: Owner, path: &str) -> Option<String> {
    let name = group_path::name(path);
    let is_it = |unit: &String| name.strip_prefix('_').unwrap_or(name) == unit || name == unit;
    unit_of(path).filter(|unit| owner == Owner::Systemd && is_it(unit))
}

/// Who sets a group's files, with its path from the hierarchy's root; `None`: we do. The unit that our groups lie in is a
/// unit as others are.
fn owner_of(group: &str) -> Option<(Owner, String)> {
    let name = GroupName::new(group).ok().filter(GroupName::is_from_root)?;
    let own = (name.path() == UNIT_PATH).then_some(Owner::Systemd);
    Some((own.or_else(|| Owner::of(&name))?, name.path().to_owned()))
}

/// The slice that a unit's group is in, or that it is.
fn slice_of(path: &str) -> &str {
    let is_slice = |name: &&str| name.ends_with(".slice");
    group_path::names(path).take_while(is_slice).last().unwrap_or("-.slice")
}

/// What systemd has for a change of a unit's group.
fn of_unit(unit: &str, slice: &str, change: Change<'_>) -> String {
    let systemctl = |verb: &'static str| Command::new("systemctl").arg(verb).arg(unit).to_string();
    let in_scope = || Command::new("systemd-run --scope").arg(format!("--slice={slice}"));
    match change {
        Change::Settings(settings) => {
            let settings = settings();
            let known: Vec<((&str, String), Vec<String>)> = settings
                .into_iter()
                .filter_map(|(name, value)| properties(name, &value).map(|lines| ((name, value), lines)))
                .collect();
            let (settings, lines): (Vec<_>, Vec<_>) = known.into_iter().unzip();
            match lines.is_empty() {
                true => format!("systemd has no property for it: {}", systemctl("show")),
                false => {
                    format!("{}\n{}", set_property(unit, lines.concat()), bound(unit, &settings))
                }
            }
        }
        Change::Create => {
            let own = Command::ringfence("create").group("db");
            let how = "our groups are named without a leading slash, and not as units are";
            format!("{how}: {own}\n{}", bound(unit, &[]))
        }
        Change::Delete => systemctl("stop"),
        Change::Enter => {
            format!("{} PROGRAM starts a program in a unit of its own beside it", in_scope())
        }
        Change::Run(words) => in_scope().arg("--").args(words()).to_string(),
        Change::Freeze => systemctl("freeze"),
        Change::Thaw => systemctl("thaw"),
        Change::Kill => systemctl("kill"),
    }
}

/// Properties of a unit that mean the same as a setting's value.
fn properties(name: &str, value: &str) -> Option<Vec<String>> {
    let found = settings::lookup(name).filter(|found| found.via == settings::Via::Canonical)?;
    let property = found.setting.unit_property()?;
    let typed = || {
        let value = found.parse(value, &settings::NoMachine).ok()?;
        let writes = found.encode(Version::V2, &value, &|_| None).ok()?;
        let lines = writes.iter().map(|write| settings::unit_lines(&write.file, &write.text));
        Some(lines.collect::<Option<Vec<_>>>()?.concat())
    };
    // an amount of this machine, such as 50%, which systemd knows too
    let as_typed = || vec![format!("{property}={}", if value.is_empty() { "VALUE" } else { value })];
    Some(typed().filter(|lines| !lines.is_empty()).unwrap_or_else(as_typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_property_as_systemd_writes_it() {
        for (name, value, expected) in [
            ("memory.max", "8G", Some(&["MemoryMax=8589934592"][..])),
            ("memory.max", "max", Some(&["MemoryMax=infinity"])),
            ("memory.max", "50%", Some(&["MemoryMax=50%"])),
            ("memory.max", "", Some(&["MemoryMax=VALUE"])),
            ("cpu.max", "150%", Some(&["CPUQuota=150%"])),
            ("cpu.max", "1.5cpu", Some(&["CPUQuota=150%"])),
            ("cpu.max", "10000 50000", Some(&["CPUQuota=20%", "CPUQuotaPeriodSec=50000us"])),
            ("cpuset.cpus", "0-3", Some(&["AllowedCPUs=0-3"])),
            ("io.max", "8:16 riops=10", Some(&["IOReadIOPSMax=/dev/block/8:16 10"])),
            ("cpu.max.burst", "10ms", None),
            ("nosuch", "1", None),
        ] {
            let expected =
                expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
            assert_eq!(properties(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_setting_of_a_unit_is_a_property_and_one_of_our_groups_is_ours() {
        let command = |group: &str, name: &'static str, value: &str| {
            set_command(group, &[(name, value.to_owned())]).map(String::from)
        };
        for (group, expected) in [
            ("db/oltp", Some("ringfence set db/oltp cpu.max=150%")),
            ("/db", Some("ringfence set /db cpu.max=150%")),
            ("/system.slice/pg.service", Some("systemctl set-property pg.service CPUQuota=150%")),
            ("/system.slice/pg.service/below", None),
            ("/system.slice", Some("systemctl set-property system.slice CPUQuota=150%")),
            ("/ringfence.slice", Some("systemctl set-property ringfence.slice CPUQuota=150%")),
            (
                "/ringfence.slice/ringfence.service",
                Some("systemctl set-property ringfence.service CPUQuota=150%"),
            ),
            ("/docker/0123", None),
        ] {
            assert_eq!(command(group, "cpu.max", "150%").as_deref(), expected, "{group}");
        }
        assert_eq!(command("/system.slice/pg.service", "cpu.max.burst", "10ms"), None);
        let thaw = |group| thaw_command(group).map(String::from);
        assert_eq!(thaw("/system.slice/pg.service").as_deref(), Some("systemctl thaw pg.service"));
        assert_eq!(thaw("db").as_deref(), Some("ringfence thaw db"));
        assert_eq!(thaw("/docker/0123"), None);
    }

    #[test]
    fn a_controller_is_enabled_by_its_units_property() {
        let command = |owner, path, controller| {
            enable_command(owner, path, controller, || "0-3".to_owned()).map(String::from)
        };
        let of = |path, controller| command(Owner::Systemd, path, controller);
        let set = |line: &str| Some(format!("systemctl set-property pg.service {line}"));
        assert_eq!(of("system.slice/pg.service", Controller::Cpu), set("CPUWeight=100"));
        assert_eq!(of("system.slice/pg.service", Controller::Cpuset), set("AllowedCPUs=0-3"));
        assert_eq!(of("system.slice/pg.service", Controller::Io), set("IOAccounting=yes"));
        assert_eq!(of("system.slice/pg.service", Controller::Memory), set("MemoryAccounting=yes"));
        assert_eq!(of("system.slice/pg.service", Controller::Pids), set("TasksAccounting=yes"));
        assert_eq!(of("system.slice/pg.service", Controller::Hugetlb), None);
        assert_eq!(of("system.slice/pg.service/below", Controller::Cpu), None);
        assert_eq!(command(Owner::Containers, "docker/0123", Controller::Cpu), None);
    }

    #[test]
    fn a_refusal_has_a_command_that_can_be_pasted() {
        let group = GroupName::new("/system.slice/system-pg.slice/pg@15-main.service").unwrap();
        let hint = |change| refuse_foreign(&group, change).unwrap_err().hint().unwrap();
        let settings = || vec![("io.max", "8:16 riops=10".to_owned()), ("memory.max", "1G".to_owned())];
        assert_eq!(
            hint(Change::Settings(&settings)),
            "systemctl set-property pg@15-main.service 'IOReadIOPSMax=/dev/block/8:16 10' MemoryMax=1G\n\
             or in a layout, for ringfence apply:\n  [groups.pg]\n  unit = \"pg@15-main.service\"\n  \
             io.max = \"8:16 riops=10\"\n  memory.max = \"1G\""
        );
        // faults F13: the group's own limits were a number of bytes
        let given =
            vec![("memory.max".to_owned(), "1610612736".to_owned()), ("pids.max".to_owned(), "7".to_owned())];
        let moved = Error::OfUnit { pid: 7, comm: "sh".to_owned(), unit: "pg.service".to_owned(), given };
        assert_eq!(
            moved.hint().unwrap(),
            "systemctl set-property pg.service MemoryMax=1536M TasksMax=7\n\
             or in a layout, for ringfence apply:\n  [groups.pg]\n  unit = \"pg.service\"\n  \
             memory.max = \"1536M\"\n  pids.max = \"7\""
        );
        assert_eq!(moved.of_unit().unwrap().settings[0].1, "1536M");
        let words = || vec!["sh".to_owned(), "-c".to_owned(), "a b".to_owned()];
        assert_eq!(hint(Change::Run(&words)), "systemd-run --scope --slice=system-pg.slice -- sh -c 'a b'");
    }

    #[test]
    fn subtrees_of_others_are_recognised_and_our_own_is_not() {
        for (path, owner) in [
            ("/system.slice/ssh.service", Some(Owner::Systemd)),
            ("/init.scope", Some(Owner::Systemd)),
            ("/kubepods.slice/kubepods-pod1.slice", Some(Owner::Kubelet)),
            ("/kubepods/burstable", Some(Owner::Kubelet)),
            ("/docker/0123", Some(Owner::Containers)),
            ("/system.slice/docker-12.scope", Some(Owner::Containers)),
            ("/slurm/uid_0/job_1", Some(Owner::Slurm)),
            ("/nomad.slice/x", Some(Owner::Nomad)),
            ("/machine.slice/machine-qemu-1.scope", Some(Owner::Libvirt)),
            ("/ringfence.slice/ringfence.service/db", None),
            ("/db/oltp1", None),
        ] {
            assert_eq!(Owner::of(&GroupName::new(path).unwrap()), owner, "{path}");
        }
    }
}
