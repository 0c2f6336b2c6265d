//! What comes and goes while the daemon runs: devices of our own on any machine; CPUs only on one that is nobody's, which
//! `RF_HOTPLUG` says. The daemon looks at nothing by the clock here: only the kernel's word can tell it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use kernel::GroupName;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use settings::Controller;

use crate::{
    Case,
    world::{Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_device_that_comes_back_has_its_limits_again", device),
        ("a_device_that_is_awaited_does_not_hold_up_repairs", awaited),
        ("a_layout_that_lacked_its_device_is_applied_once_it_comes", late),
    ]
}

pub const OF_CPUS: &[Case] = &[
    ("cpus_that_go_and_come_are_divided_anew", cpus),
    ("memory_that_goes_is_reckoned_with", memory),
    ("a_partition_without_cpus_is_told_and_valid_again_with_them", partition),
];

/// A loop device without a file, under a number that nobody else takes.
struct Device(u32);

impl Device {
    fn add() -> Device {
        // a module's parameter says how far a device's number is from its minor
        let partitions = fs::read_to_string("/sys/module/loop/parameters/max_part").unwrap_or_default();
        assert!(matches!(partitions.trim(), "" | "0"), "loop devices with partitions: {partitions}");
        // each number once: tests run side by side, and a number that is free for a moment is to stay its test's
        static NEXT: AtomicU32 = AtomicU32::new(4000);
        let mut numbers = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed)).take(1000);
        let free = numbers.find(|number| !Path::new(&format!("/sys/block/loop{number}")).exists());
        let device = Device(free.unwrap());
        device.again();
        device
    }

    fn again(&self) {
        control(0x4C80, self.0); // LOOP_CTL_ADD
    }

    fn remove(&self) {
        control(0x4C81, self.0); // LOOP_CTL_REMOVE
    }

    fn key(&self) -> String {
        format!("7:{}", self.0)
    }

    /// A node of it.
    fn node(&self, path: &Path) {
        let _ = fs::remove_file(path);
        mknodat(CWD, path, FileType::BlockDevice, Mode::RUSR, makedev(7, self.0)).unwrap();
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if Path::new(&format!("/sys/block/loop{}", self.0)).exists() {
            self.remove();
        }
        // devtmpfs has it, and a plain /dev does not
        let _ = fs::remove_file(format!("/dev/loop{}", self.0));
    }
}

/// ioctl(2) has no safe form, and Perl is on every Debian.
fn control(command: u32, number: u32) {
    let script = "open(my $c, '+<', '/dev/loop-control') or die $!; defined ioctl($c, $ARGV[0], 0 + $ARGV[1]) or die $!";
    let done = Command::new("perl").args(["-e", script, &command.to_string(), &number.to_string()]).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{done:?}");
}

struct Limited {
    world: World,
    group: String,
    node: PathBuf,
    device: Device,
}

fn limited() -> Limited {
    let mut world = World::new();
    let (group, node, device) = (world.group_name("io"), world.directory.join("disk"), Device::add());
    device.node(&node);
    world.write(
        "layout.toml",
        &format!("[groups.{group}]\npids.max = 500\nio.max.\"{}\" = {{ riops = 10 }}\n", node.display()),
    );
    Limited { world, group, node, device }
}

impl Limited {
    fn held(&self, controller: Controller, files: [&str; 2]) -> String {
        let name = GroupName::new(&self.group).unwrap();
        let Ok(seat) = self.world.host.seat(&name, controller) else { return String::new() };
        let read = files.iter().find_map(|file| self.world.host.read(&seat, &name, file).ok());
        read.unwrap_or_default()
    }

    fn has_limit(&self, device: &Device) -> bool {
        let held = self.held(Controller::Io, ["io.max", "blkio.throttle.read_iops_device"]);
        held.lines().any(|line| line.split_whitespace().next() == Some(&device.key()) && line.contains("10"))
    }

    fn pids(&self) -> String {
        self.held(Controller::Pids, ["pids.max", ""]).trim().to_owned()
    }
}

fn device() {
    let limited = limited();
    let daemon = limited.world.daemon(&["keep=repair"]);
    assert!(limited.has_limit(&limited.device), "{}", daemon.log());
    limited.device.remove();
    fs::remove_file(&limited.node).unwrap();
    daemon.wait_for_log("io.max is not in force", 1);
    // under another number; its name is there before it is
    let other = Device::add();
    other.remove();
    other.node(&limited.node);
    other.again();
    eventually("the limit of the other number", || limited.has_limit(&other));
    other.remove();
    assert!(!limited.has_limit(&other), "the kernel forgets a device's limits with it");
    other.again();
    eventually("the limit of the same number again", || limited.has_limit(&other));
    assert!(!daemon.log().contains("can't be"), "{}", daemon.log());
    daemon.end();
}

fn awaited() {
    let limited = limited();
    let daemon = limited.world.daemon(&["keep=repair", "every=50"]);
    limited.device.remove();
    fs::remove_file(&limited.node).unwrap();
    daemon.wait_for_log("io.max is not in force", 1);
    let name = GroupName::new(&limited.group).unwrap();
    let seat = limited.world.host.seat(&name, Controller::Pids).unwrap();
    limited.world.host.write(&seat, &name, "pids.max", "77").unwrap();
    eventually("pids.max is repaired", || limited.pids() == "500");
    let log = daemon.log();
    assert_eq!(log.matches("io.max is not in force").count(), 1, "{log}");
    daemon.end();
}

fn late() {
    let limited = limited();
    limited.device.remove();
    fs::remove_file(&limited.node).unwrap();
    // groups that only report what changed still are to be applied once
    let daemon = limited.world.daemon(&[]);
    assert!(daemon.log().contains("the layout is not applied"), "{}", daemon.log());
    assert_eq!(limited.pids(), "");
    limited.device.node(&limited.node);
    limited.device.again();
    eventually("the layout is applied", || limited.pids() == "500" && limited.has_limit(&limited.device));
    daemon.end();
}

/// Puts a CPU off, until this goes.
pub struct Offline(u32);

impl Offline {
    pub fn new(cpu: u32) -> Offline {
        set_online(cpu, "0");
        Offline(cpu)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        set_online(self.0, "1");
    }
}

fn set_online(cpu: u32, value: &str) {
    fs::write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), value).unwrap();
}

fn cpuset(world: &World, group: &str, file: &str) -> String {
    let name = GroupName::new(group).unwrap();
    let seat = world.host.seat(&name, Controller::Cpuset).unwrap();
    world.host.read(&seat, &name, file).unwrap_or_default().trim().to_owned()
}

fn cpus() {
    let mut world = World::new();
    let group = world.group_name("all");
    world.write("layout.toml", &format!("[groups.{group}]\ncpus = \"100%\"\nmems = \"all\"\n"));
    let daemon = world.daemon(&["keep=repair"]);
    let online = || fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned();
    let before = online();
    assert_eq!(cpuset(&world, &group, "cpuset.cpus"), before);
    let offline = Offline::new(1);
    assert_ne!(online(), before);
    daemon.wait_for_log("the machine's CPUs or memory nodes changed", 1);
    eventually("without the CPU", || cpuset(&world, &group, "cpuset.cpus") == online());
    drop(offline);
    // v1's kernel takes a CPU from a group and never gives it back
    eventually("with the CPU again", || cpuset(&world, &group, "cpuset.cpus") == before);
    daemon.wait_for_log("the machine's CPUs or memory nodes changed", 2);
    daemon.end();
}

/// A share of the machine's memory follows it.
fn memory() {
    let mut world = World::new();
    let group = world.group_name("half");
    world.write("layout.toml", &format!("[groups.{group}]\nmemory.max = \"50%\"\n"));
    let daemon = world.daemon(&["keep=repair"]);
    let limit = || -> u64 {
        let name = GroupName::new(&group).unwrap();
        let seat = world.host.seat(&name, Controller::Memory).unwrap();
        let files = ["memory.max", "memory.limit_in_bytes"];
        let read = files.iter().find_map(|file| world.host.read(&seat, &name, file).ok());
        read.unwrap().trim().parse().unwrap()
    };
    let before = limit();
    // the kernel keeps blocks that hold what can't be moved
    let blocks = fs::read_dir("/sys/devices/system/memory").unwrap().map(|entry| entry.unwrap().path());
    let mut blocks: Vec<PathBuf> =
        blocks.map(|block| block.join("online")).filter(|online| online.exists()).collect();
    blocks.sort();
    let gone =
        blocks.iter().rev().find(|online| fs::write(online, "0").is_ok()).expect("a block that can go");
    eventually("a smaller limit", || limit() < before);
    fs::write(gone, "1").unwrap();
    eventually("the limit as it was", || limit() == before);
    daemon.end();
}

fn partition() {
    let mut world = World::new();
    let group = world.group_name("rt");
    world
        .write("layout.toml", &format!("[groups.{group}]\ncpus = \"2\"\nmems = \"all\"\nexclusive = true\n"));
    let daemon = world.daemon(&["keep=repair"]);
    let state = || match cpuset(&world, &group, "cpuset.cpus.partition") {
        // v1 has none
        state if state.is_empty() => cpuset(&world, &group, "cpuset.cpus"),
        state => state,
    };
    let before = state();
    // an empty one may be without CPUs
    let process = Running::start(&world.copy("sleep", "sleep"), &["600"]);
    world.put(&group, process.pid());
    let offline = Offline::new(2);
    daemon.wait_for_log("drift cannot be repaired", 1);
    assert_ne!(state(), before);
    drop(offline);
    eventually(&format!("{before} again"), || state() == before);
    daemon.end();
}
