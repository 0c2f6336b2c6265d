//! Reads which cgroup hierarchies are mounted from `/proc/self/mountinfo` (proc_pid_mountinfo(5)). Pure text in,
//! list out; never mounts anything.

use std::path::{Path, PathBuf};

use settings::{Controller, Version};

use crate::Hierarchy;

/// The cgroup hierarchies in a mountinfo text: v1 in mount order, v2 last. A hierarchy mounted several times is
/// listed once, at the mount that shows most of it and may be written. `v2_controllers` reads
/// `cgroup.controllers` of the v2 mount.
pub fn hierarchies(mountinfo: &str, v2_controllers: impl Fn(&Hierarchy) -> String) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for candidate in mountinfo.lines().filter_map(parse_line) {
        match found.iter_mut().find(|known| same(known, &candidate)) {
            Some(known) if preference(&candidate) > preference(known) => *known = candidate,
            Some(_) => {}
            None => found.push(candidate),
        }
    }
    found.sort_by_key(|hierarchy| hierarchy.version == Version::V2);
    for (id, hierarchy) in found.iter_mut().enumerate() {
        hierarchy.id = id;
        if hierarchy.version == Version::V2 {
            let names = v2_controllers(hierarchy);
            hierarchy.controllers = std::iter::once(Controller::Core)
                .chain(names.split_whitespace().filter_map(Controller::from_name))
                .collect();
        }
    }
    found
}

/// All mount points of one hierarchy, in mount order.
pub fn points(mountinfo: &str, of: &Hierarchy) -> Vec<PathBuf> {
    let here = mountinfo.lines().filter_map(parse_line).filter(|candidate| same(candidate, of));
    here.map(|candidate| candidate.mount).collect()
}

/// Whatever is mounted at a path or below it, the last first.
pub fn within(mountinfo: &str, path: &Path) -> Vec<PathBuf> {
    let mount = |line: &str| Some(PathBuf::from(unescape(line.split(' ').nth(4)?)));
    mountinfo.lines().rev().filter_map(mount).filter(|mount| mount.starts_with(path)).collect()
}

/// Where a hierarchy's first mount stands among all mounts.
pub fn position(mountinfo: &str, of: &Hierarchy) -> Option<usize> {
    mountinfo.lines().position(|line| parse_line(line).is_some_and(|candidate| same(&candidate, of)))
}

fn same(a: &Hierarchy, b: &Hierarchy) -> bool {
    a.version == b.version
        && (a.version == Version::V2 || (a.name == b.name && a.controllers == b.controllers))
}

fn preference(hierarchy: &Hierarchy) -> (bool, std::cmp::Reverse<usize>) {
    (!hierarchy.read_only, std::cmp::Reverse(hierarchy.root.len()))
}

/// `36 35 98:0 /root /mount/point rw,noatime shared:1 - cgroup source rw,cpu,cpuacct`
fn parse_line(line: &str) -> Option<Hierarchy> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options = after.nth(1)?;
    let mut before = before.split(' ').skip(3);
    let (root, mount, mount_options) = (before.next()?, before.next()?, before.next()?);
    let read_only = |options: &str| options.split(',').any(|option| option == "ro");
    let mut hierarchy = Hierarchy {
        id: 0,
        version,
        mount: PathBuf::from(unescape(mount)),
        root: unescape(root),
        controllers: Vec::new(),
        name: None,
        read_only: read_only(options) || read_only(mount_options),
    };
    if version == Version::V1 {
        hierarchy.name =
            options.split(',').find_map(|option| option.strip_prefix("name=")).map(str::to_owned);
        hierarchy.controllers = options.split(',').filter_map(Controller::from_name).collect();
    }
    Some(hierarchy)
}

/// mountinfo writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    units::unescaped(text, "\\", 3, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
24 1 0:22 / /proc rw - proc proc rw
30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/systemd rw,relatime shared:4 master:2 - cgroup cgroup rw,xattr,name=systemd
32 25 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
33 25 0:29 / /sys/fs/cgroup/a\\040b ro,relatime - cgroup cgroup rw,memory
34 25 0:29 /sub /mnt/m rw,relatime - cgroup cgroup rw,memory
";

    #[test]
    fn every_hierarchy_is_found_once_and_v2_comes_last() {
        let found = hierarchies(HYBRID, |_| "io pids\n".to_owned());
        let labels: Vec<String> = found.iter().map(Hierarchy::label).collect();
        assert_eq!(labels, ["cpu,cpuacct", "name=systemd", "memory", "unified"]);
        assert_eq!(found[3].controllers, [Controller::Core, Controller::Io, Controller::Pids]);
        assert_eq!(
            found[2].mount,
            PathBuf::from("/mnt/m"),
            "a writable mount is taken before a read-only one"
        );
        assert_eq!(found[2].below_mount("/sub/x").as_deref(), Some("x"));
        assert_eq!(found[2].below_mount("/subway"), None);
        assert_eq!(found[0].below_mount("/"), Some(String::new()));
    }

    #[test]
    fn every_mount_point_of_a_hierarchy_is_told_in_mount_order() {
        let found = hierarchies(HYBRID, |_| String::new());
        assert_eq!(points(HYBRID, &found[2]), [PathBuf::from("/sys/fs/cgroup/a b"), PathBuf::from("/mnt/m")]);
        assert_eq!(points(HYBRID, &found[3]), [PathBuf::from("/sys/fs/cgroup/unified")]);
        assert_eq!(position(HYBRID, &found[3]), Some(3));
        assert_eq!(position(HYBRID, &found[2]), Some(4));
    }

    #[test]
    fn what_is_mounted_in_a_directory_is_told_the_last_first() {
        let mounts = |path: &str| within(HYBRID, Path::new(path));
        assert_eq!(mounts("/mnt"), [PathBuf::from("/mnt/m")]);
        assert_eq!(
            mounts("/sys/fs/cgroup")[..2],
            ["/sys/fs/cgroup/a b", "/sys/fs/cgroup/unified"].map(PathBuf::from)
        );
        assert_eq!((mounts("/mn").len(), mounts("/mnt/m").len(), mounts("/mnt/m/x").len()), (0, 1, 0));
    }

    #[test]
    fn an_escaped_mount_point_is_read_and_nonsense_is_passed_over() {
        let found = hierarchies("1 2 0:3 / /a\\040b rw - cgroup x rw,pids\n- cgroup\n\n1 - cgroup", |_| {
            String::new()
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].mount, PathBuf::from("/a b"));
    }
}
