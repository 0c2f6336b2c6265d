//! Who the caller is and what they may do, and whose the subtrees are.

use topology::facts::{Base, Facts, Mounted};

use super::{Area, Finding, Level};

fn mounts(facts: &Facts) -> impl Iterator<Item = &Mounted> {
    facts.v1.iter().map(|at| &at.at).chain(facts.v2.iter().map(|at| &at.at))
}

pub(super) fn access(facts: &Facts) -> Vec<Finding> {
    let caller = &facts.caller;
    let finding = |level, what: String| Finding::new(Area::Access, level, what);
    let mut found = Vec::new();
    let able = mounts(facts).any(|at| at.writable && !at.read_only);
    if !able && mounts(facts).next().is_some() {
        found.push(unable(facts));
    } else if caller.uid == 0 && !caller.sys_admin {
        let what = "root without CAP_SYS_ADMIN";
        found.push(finding(Level::Note, what.to_owned()).so("nothing can be mounted from here"));
    } else if caller.uid == 0 {
        found.push(finding(Level::Ok, "root".to_owned()));
    } else {
        found.push(finding(Level::Ok, format!("user {}, with a subtree of their own", caller.uid)));
    }
    if caller.pid_namespace {
        let kind = caller.container.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let so = "only what it was given can be divided; limits above it hold, other containers are not seen";
        found.push(finding(Level::Note, format!("inside a container{kind}")).so(so));
    } else if caller.user_namespace {
        let so = "root here is an ordinary user outside: only what was delegated can be changed";
        found.push(finding(Level::Note, "inside a user namespace".to_owned()).so(so));
    }
    found
}

fn unable(facts: &Facts) -> Finding {
    let caller = &facts.caller;
    let who = if caller.uid == 0 { "root".to_owned() } else { format!("user {}", caller.uid) };
    let finding = Finding::new(Area::Access, Level::Attention, format!("{who} may make no group"))
        .so("create, set, run and move are refused; topology, list, get and doctor work");
    match (caller.uid, &facts.systemd) {
        (0, _) if caller.pid_namespace => {
            finding.hint("start the container with its cgroup mount writable: docker run --privileged …")
        }
        (0, _) => finding,
        (_, Some(_)) => finding.hint(
            "sudo ringfence …, or in a scope of your own: systemd-run --user --scope -p Delegate=yes bash",
        ),
        (uid, None) => finding.hint(format!("as root: ringfence create GROUP --tasks {uid} --admin {uid}")),
    }
}

pub(super) fn owners(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(systemd) = &facts.systemd {
        let version = systemd.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let ours = mounts(facts).any(|at| at.base == Base::Unit);
        let place = match (ours, systemd.unit) {
            (false, _) => "",
            (true, true) => "; our groups live below its unit ringfence.service, which is running",
            (true, false) => {
                "; our groups will live below its unit ringfence.service, which ringfence create starts"
            }
        };
        found.push(Finding::new(
            Area::Owners,
            Level::Ok,
            format!("systemd{version} keeps the tree of its units{place}"),
        ));
    }
    for owned in facts.owned.iter().filter(|owned| owned.owner != "systemd") {
        let groups = owned.groups.join(", ");
        let finding = Finding::new(Area::Owners, Level::Note, format!("{} keeps {groups}", owned.owner))
            .so("ringfence never writes there; CPUs that you make exclusive may still be in use by it");
        found.push(match reserve(&owned.owner) {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }
    if found.is_empty() {
        found.push(Finding::new(Area::Owners, Level::Ok, "no other program keeps groups here"));
    }
    found
}

/// How to keep an owner off some CPUs.
fn reserve(owner: &str) -> Option<&'static str> {
    Some(match owner {
        "kubelet" => "kubelet --cpu-manager-policy=static --reserved-cpus=CPUS",
        "the container runtime" => "docker update --cpuset-cpus=OTHER-CPUS CONTAINER",
        "Slurm" => "CpuSpecList=CPUS in the node's line of slurm.conf",
        "Nomad" => "client { reserved { cores = \"CPUS\" } } in the client's configuration",
        "libvirt" => "virsh emulatorpin DOMAIN OTHER-CPUS; virsh vcpupin DOMAIN VCPU OTHER-CPUS",
        _ => return None,
    })
}
