//! What the lines of `/proc/PID/cgroup` say: in which groups a process is, in which unit of systemd, in which container.

use std::rc::Rc;

use kernel::{GroupName, Hierarchy, Host, Owner, group_in, group_lines};
use topology::facts::Base;

/// The groups that a process is in, in each hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// What `/proc/PID/cgroup` said.
    text: Vec<u8>,
    /// By hierarchy ([`kernel::Hierarchy::id`]), as paths below the mounts; not where the mount does not show it.
    groups: Vec<(usize, String)>,
    ours: Present,
}

/// The memberships that were seen last: processes that follow each other are mostly in the same groups, and then nothing
/// is taken apart again.
#[derive(Debug, Default)]
pub struct Memberships {
    seen: Vec<Rc<Membership>>,
    /// Whose turn it is to be forgotten.
    next: usize,
}

/// The groups of ours that a process is in: not the roots, not the place below which our groups are, not what belongs to
/// somebody else. By hierarchy ([`kernel::Hierarchy::id`]), as paths below the mounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Present {
    groups: Vec<(usize, String)>,
}

impl Membership {
    /// From the text of `/proc/PID/cgroup`.
    pub fn of(host: &Host, text: &[u8]) -> Membership {
        let below = |at: &Hierarchy| Some((at.id, at.below_mount(&group_in(at, text)?)?));
        let groups = host.hierarchies().iter().filter_map(below).collect();
        Membership::new(host, text.to_vec(), groups)
    }

    fn new(host: &Host, text: Vec<u8>, groups: Vec<(usize, String)>) -> Membership {
        let is_ours = |(at, path): &&(usize, String)| {
            host.hierarchies().get(*at).is_some_and(|at| is_ours(host.base(at), path))
        };
        let ours = Present { groups: groups.iter().filter(is_ours).cloned().collect() };
        Membership { text, groups, ours }
    }

    /// Of a process as the kernel has it now; in no group if it ended.
    pub fn of_process(host: &Host, pid: u32) -> Membership {
        let paths = host.kernel().groups_of(host.hierarchies(), pid).unwrap_or_default();
        let below = |(at, path): (&Hierarchy, Option<String>)| Some((at.id, at.below_mount(&path?)?));
        let groups = host.hierarchies().iter().zip(paths).filter_map(below).collect();
        Membership::new(host, Vec::new(), groups)
    }

    /// The group in one hierarchy, as a path below its mount.
    pub fn at(&self, hierarchy: usize) -> Option<&str> {
        self.groups.iter().find(|(at, _)| *at == hierarchy).map(|(_, path)| path.as_str())
    }

    /// Those that are ours.
    pub fn ours(&self) -> &Present {
        &self.ours
    }
}

impl Memberships {
    /// How many are cached.
    const SEEN: usize = 8;

    /// From the text of `/proc/PID/cgroup`; of the same host always.
    pub fn of(&mut self, host: &Host, text: &[u8]) -> Rc<Membership> {
        if let Some(seen) = self.seen.iter().find(|seen| seen.text == text) {
            return Rc::clone(seen);
        }
        let new = Rc::new(Membership::of(host, text));
        if self.seen.len() < Self::SEEN {
            self.seen.push(Rc::clone(&new));
        } else {
            self.seen[self.next] = Rc::clone(&new);
            self.next = (self.next + 1) % Self::SEEN;
        }
        new
    }
}

impl Present {
    /// In groups of ours in these hierarchies alone.
    #[must_use]
    pub fn only(&self, hierarchies: &[usize]) -> Present {
        let mut groups = self.groups.clone();
        groups.retain(|(at, _)| hierarchies.contains(at));
        Present { groups }
    }

    /// Each with its hierarchy.
    pub fn groups(&self) -> &[(usize, String)] {
        &self.groups
    }

    /// In none of our groups?
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group in one hierarchy, as a path below its mount.
    pub fn at(&self, hierarchy: usize) -> Option<&str> {
        self.groups.iter().find(|(at, _)| *at == hierarchy).map(|(_, path)| path.as_str())
    }
}

impl FromIterator<(usize, String)> for Present {
    /// Hierarchies ascending, as [`Membership::of`] gives them.
    fn from_iter<I: IntoIterator<Item = (usize, String)>>(groups: I) -> Present {
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort();
        Present { groups }
    }
}

pub(crate) fn is_ours(base: &Base, path: &str) -> bool {
    if !base.path().is_empty() {
        return path.strip_prefix(base.path()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'));
    }
    !path.is_empty() && GroupName::new(&format!("/{path}")).is_ok_and(|name| Owner::of(&name).is_none())
}

/// The units that a process is in: systemd keeps its own in v2 and in the v1 hierarchy of its name.
pub(crate) fn units(text: &[u8]) -> impl Iterator<Item = String> {
    let of_systemd = |(id, controllers, path): (&[u8], &[u8], &'_ [u8])| {
        let own = (id == b"0" && controllers.is_empty()) || controllers == b"name=systemd";
        own.then(|| kernel::unit_of(std::str::from_utf8(path).ok()?)).flatten()
    };
    group_lines(text).filter_map(of_systemd)
}

/// The group of the unit that a process is in, from the hierarchy's root, with a slash before it.
pub(crate) fn unit_group(text: &[u8]) -> Option<&str> {
    let mut of_v2 = group_lines(text).filter(|(id, controllers, _)| *id == b"0" && controllers.is_empty());
    let path = std::str::from_utf8(of_v2.next()?.2).ok()?;
    kernel::unit_group(path)
}

/// The containers that a process is in, by the names that runtimes give their groups.
pub(crate) fn containers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    group_lines(text).filter_map(|(_, _, path)| container(path))
}

/// Groups as users name them: with `from_root` from the hierarchy's root with a slash before it, else below the place
/// where our groups are.
pub(crate) fn names(text: &[u8], from_root: bool) -> impl Iterator<Item = &[u8]> {
    group_lines(text).map(move |(_, _, path)| {
        if from_root {
            return path;
        }
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let below = path.strip_prefix(Base::Unit.path().as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
        below.unwrap_or(path)
    })
}

/// The innermost container of a path.
fn container(path: &[u8]) -> Option<&[u8]> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    (0..parts.len()).rev().find_map(|index| {
        let part = parts[index];
        let scope = part.strip_suffix(b".scope");
        let numbered = ["docker-", "cri-containerd-", "crio-", "libpod-"];
        let of_scope = numbered.iter().find_map(|runtime| scope?.strip_prefix(runtime.as_bytes()));
        let machine = || {
            let machine = scope?.strip_prefix(b"machine-")?;
            (!machine.starts_with(b"qemu")).then_some(machine)
        };
        let nspawn = || part.strip_prefix(b"systemd-nspawn@")?.strip_suffix(b".service");
        let lxc = || part.strip_prefix(b"lxc.payload.");
        let above = || {
            let above = parts.get(index.checked_sub(1)?)?;
            let runtime = matches!(*above, b"docker" | b"lxc") || above.starts_with(b"pod");
            (runtime && !part.ends_with(b".slice")).then_some(part)
        };
        let found = of_scope.filter(|id| *id != b"conmon").or_else(machine).or_else(nspawn);
        found.or_else(lxc).or_else(above).filter(|found| !found.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use settings::{Controller, Version};

    use super::*;

    const TEXT: &[u8] = b"5:name=systemd:/system.slice/pg@15-main.service\n4:cpu,cpuacct:/db/x:y\n3:memory:/m (deleted)\n0::/user.slice/user-1000.slice/session-2.scope\n";

    #[test]
    fn the_group_is_found_per_hierarchy() {
        let at = |version, controllers: &[Controller], name: Option<&str>| Hierarchy {
            id: 0,
            version,
            mount: "/".into(),
            root: "/".into(),
            controllers: controllers.to_vec(),
            name: name.map(str::to_owned),
            read_only: false,
        };
        for (at, path) in [
            (at(Version::V1, &[Controller::Cpuacct], None), Some("/db/x:y")),
            (at(Version::V1, &[Controller::Memory], None), Some("/m")),
            (at(Version::V1, &[], Some("systemd")), Some("/system.slice/pg@15-main.service")),
            (at(Version::V2, &[], None), Some("/user.slice/user-1000.slice/session-2.scope")),
            (at(Version::V1, &[Controller::Pids], None), None),
        ] {
            assert_eq!(group_in(&at, TEXT).as_deref(), path);
        }
        assert_eq!(units(TEXT).collect::<Vec<_>>(), ["pg@15-main.service", "session-2.scope"]);
    }

    #[test]
    fn our_groups_are_told_from_roots_and_others() {
        for (base, path, ours) in [
            (Base::Root, "", false),
            (Base::Root, "db/oltp1", true),
            (Base::Root, "user.slice/user-0.slice", false),
            (Base::Root, "docker/0123", false),
            (Base::Unit, "ringfence.slice/ringfence.service", false),
            (Base::Unit, "ringfence.slice/ringfence.service/db", true),
            (Base::Unit, "db", false),
            (Base::Own("a/b".to_owned()), "a/b", false),
            (Base::Own("a/b".to_owned()), "a/bc/d", false),
            (Base::Own("a/b".to_owned()), "a/b/c", true),
        ] {
            assert_eq!(is_ours(&base, path), ours, "{base:?} {path}");
        }
    }

    #[test]
    fn containers_are_known_by_the_names_runtimes_give() {
        for (path, name) in [
            ("/system.slice/docker-4f5e.scope", Some("4f5e")),
            ("/docker/4f5e/init.scope", Some("4f5e")),
            ("/kubepods/burstable/pod12-34/4f5e", Some("4f5e")),
            ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-4f5e.scope", Some("4f5e")),
            ("/machine.slice/libpod-4f5e.scope/container", Some("4f5e")),
            ("/machine.slice/machine-web.scope", Some("web")),
            ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", None),
            ("/machine.slice/systemd-nspawn@web.service/payload", Some("web")),
            ("/lxc.payload.web/x", Some("web")),
            ("/lxc/web", Some("web")),
            ("/db/oltp1", None),
            ("/docker", None),
            ("/", None),
        ] {
            assert_eq!(container(path.as_bytes()), name.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn groups_are_named_below_our_place_or_from_the_root() {
        let text = b"0::/ringfence.slice/ringfence.service/db/oltp1\n1:cpu:/batch\n";
        let names =
            |from_root| names(text, from_root).map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>();
        assert_eq!(names(false), ["db/oltp1", "batch"]);
        assert_eq!(names(true), ["/ringfence.slice/ringfence.service/db/oltp1", "/batch"]);
    }
}
