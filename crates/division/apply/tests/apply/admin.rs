//! What a group's admin can do on this machine's own kernel: the kernel in memory has the same for every kind of group.

use std::{os::unix::process::CommandExt, path::PathBuf, process::Command, time::Duration};

use apply::{Running, State, execute};
use settings::{Controller, Reach, Version};

use crate::{
    groups::Groups,
    pipeline::whole,
    world::{meta, target},
};

/// A user that this machine need not know.
const UID: u32 = 4_000_009;

/// What a shell of his prints.
fn by_him(script: &str, files: &[PathBuf]) -> String {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "sh"]).args(files).uid(UID).gid(UID).current_dir("/");
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

pub fn an_admin_writes_no_file_that_reaches_beyond_his_group() {
    let groups = Groups::new("admin");
    let (his, other) = (groups.name("his"), groups.name("other"));
    let text = format!(
        "[groups.\"{his}\"]\ncpus = \"0-1\"\nmemory.max = \"64M\"\ncpu.weight = 50\npids.max = 20\n\
         admin = {{ user = {UID} }}\n[groups.\"{other}\"]\ncpus = \"1\"\ncpu.weight = 50\n"
    );
    let layout = ("layout.toml", text);
    let system = Running::new();
    let here = target(&groups.host, &system);
    let directory = tempfile::tempdir().unwrap();
    let lock = State::open(directory.path()).unwrap().lock(Duration::ZERO).unwrap();
    execute(&lock, here, &whole(&layout, here), &meta("an admin's group")).unwrap();
    assert_eq!(whole(&layout, here).steps, [], "the same again has nothing to do");

    let name = kernel::GroupName::new(&his).unwrap();
    let mut limits = 0;
    for seat in groups.host.seats(&name) {
        let files = groups.host.kernel().files(seat.at, &seat.path).unwrap();
        let paths: Vec<PathBuf> = files.iter().map(|file| seat.directory().join(file)).collect();
        let writable = by_him("for file; do [ -w \"$file\" ] && echo \"${file##*/}\"; done; true", &paths);
        for file in writable.lines() {
            assert_eq!(settings::reach(seat.at.version, file), Some(Reach::Own), "{file} is his");
        }
        limits += writable.lines().filter(|file| file.starts_with("memory.") || *file == "pids.max").count();
    }
    assert!(limits >= 2, "his own limits are his");

    // a group that he makes can have no more than his
    let at = groups.host.hierarchy_of(Controller::Cpuset).unwrap();
    let seats = groups.host.seats(&name);
    let cpuset = seats.iter().find(|seat| seat.at.id == at.id).unwrap().directory();
    let others = || {
        let name = kernel::GroupName::new(&other).unwrap();
        let seat = groups.host.seat_in(at, &name);
        let effective =
            if at.version == Version::V1 { "cpuset.effective_cpus" } else { "cpuset.cpus.effective" };
        let read = |path: &str| groups.host.kernel().read(at, path, effective).unwrap();
        (read(&seat.path), read(""))
    };
    let before = others();
    let script = "cd \"$1\" && echo +cpuset > cgroup.subtree_control; mkdir mine && cd mine && echo made; \
                  echo 0-1 > cpuset.cpus; echo 0 > cpuset.mems; echo 0-1 > cpuset.cpus.exclusive; \
                  echo root > cpuset.cpus.partition; echo isolated > cpuset.cpus.partition; \
                  echo 1 > cpuset.cpu_exclusive; echo 1 > cpuset.mem_exclusive; true";
    assert_eq!(by_him(script, &[cpuset]), "made\n");
    assert_eq!(others(), before, "nobody lost a CPU");
}
