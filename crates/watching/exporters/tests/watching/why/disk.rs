//! Files, devices and swap space of the tests of `why`: on this machine made of files beside the build, in a guest that
//! has no such directory its spare disk and its own swap.

use std::{
    fs::File,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A guest's disk for tests (`tests/vm/README.md`); only read here.
const SPARE: &str = "/dev/vda";

fn directory() -> Option<&'static Path> {
    Some(Path::new(env!("CARGO_TARGET_TMPDIR"))).filter(|path| path.is_dir())
}

/// A file of a test, on whatever the build's directory lies on, so that its pages can be dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(directory: &Path, name: &str, mib: usize) -> Scratch {
        let scratch = Scratch(directory.join(format!("rf-test-why-{name}-{}", std::process::id())));
        std::fs::write(&scratch.0, vec![7u8; mib << 20]).unwrap();
        std::fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o600)).unwrap();
        // what is dirty can't be dropped
        File::open(&scratch.0).unwrap().sync_all().unwrap();
        scratch
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Something to read through the page cache: its path, and how much there is at least.
pub struct Data {
    file: Option<Scratch>,
}

impl Data {
    pub const MIB: usize = 48;

    pub fn new() -> Data {
        Data { file: directory().map(|at| Scratch::new(at, "file", Data::MIB)) }
    }

    pub fn path(&self) -> &str {
        self.file.as_ref().map_or(SPARE, Scratch::path)
    }
}

/// A block device to be read.
pub struct Disk {
    pub path: String,
    pub number: String,
    /// The kernel detaches a loop device with its last user, also if this process is killed.
    _open: File,
}

impl Disk {
    pub fn new(name: &str) -> Disk {
        let Some(directory) = directory() else { return Disk::at(SPARE) };
        let file = Scratch::new(directory, name, 16);
        let arguments = ["--find", "--show", "--read-only", file.path()];
        let output = Command::new("losetup").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let disk = Disk::at(String::from_utf8(output.stdout).unwrap().trim());
        assert!(Command::new("losetup").args(["--detach", &disk.path]).status().unwrap().success());
        disk
    }

    fn at(path: &str) -> Disk {
        let device = format!("/sys/class/block/{}/dev", path.trim_start_matches("/dev/"));
        let number = std::fs::read_to_string(device).unwrap().trim().to_owned();
        Disk { path: path.to_owned(), number, _open: File::open(path).unwrap() }
    }
}

/// Swap space.
pub struct Swap(Option<Scratch>);

impl Swap {
    /// `None` where there is none and none may be added (a container).
    pub fn new() -> Option<Swap> {
        let Some(directory) = directory() else {
            let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
            return (swaps.lines().count() > 1).then_some(Swap(None));
        };
        let file = Scratch::new(directory, "swap", 96);
        let made = Command::new("mkswap").arg(file.path()).output().ok()?.status.success();
        let is_on = made && Command::new("swapon").arg(file.path()).output().ok()?.status.success();
        is_on.then_some(Swap(Some(file)))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = Command::new("swapoff").arg(file.path()).status();
        }
    }
}
