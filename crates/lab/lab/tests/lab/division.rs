//! Groups for these tests, by plain reads and writes of cgroupfs (v1, v2 or both), so that what the workloads
//! measure is not judged by the code that is to make groups later. Every directory is named `rf-test-lab-…`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

type Failed = Box<dyn std::error::Error>;

const PREFIX: &str = "rf-test-lab-";

/// The hierarchy that holds a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub mount: PathBuf,
    pub v2: bool,
}

/// The running kernel's hierarchies.
pub struct Cgroupfs;

impl Cgroupfs {
    /// Where a controller is, by its v2 name.
    pub fn place(controller: &str) -> Result<Place, Failed> {
        let v1_name = if controller == "io" { "blkio" } else { controller };
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut v2 = None;
        for field in fields {
            let mount = PathBuf::from(field[1]);
            if field[2] == "cgroup" && field[3].split(',').any(|option| option == v1_name) {
                return Ok(Place { mount, v2: false });
            }
            let holds = || fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
            if field[2] == "cgroup2" && holds().split_whitespace().any(|name| name == controller) {
                v2 = Some(Place { mount, v2: true });
            }
        }
        v2.ok_or_else(|| format!("no hierarchy holds {controller}").into())
    }

    /// A group's directories.
    pub fn directories(group: &str) -> Vec<PathBuf> {
        let found = ["cpu", "cpuset", "io"].into_iter().filter_map(|name| Self::place(name).ok());
        let mut found: Vec<PathBuf> = found.map(|at| at.mount.join(format!("{PREFIX}{group}"))).collect();
        found.sort();
        found.dedup();
        found.retain(|path| path.is_dir());
        found
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    Ok(fs::write(path, text).map_err(|error| format!("write '{text}' to {}: {error}", path.display()))?)
}

/// `/dev/loop0` → `7:0`.
fn number(device: &str) -> Result<String, Failed> {
    let name = Path::new(device).file_name().ok_or("no device")?;
    Ok(fs::read_to_string(Path::new("/sys/class/block").join(name).join("dev"))?.trim().to_owned())
}

/// The file and the text of a setting.
fn encode(setting: &str, value: &str, v2: bool) -> Result<(&'static str, String), Failed> {
    Ok(match (setting, v2) {
        ("cpuset.cpus", _) => ("cpuset.cpus", value.to_owned()),
        ("cpuset.mems", _) => ("cpuset.mems", value.to_owned()),
        ("cpu.max", _) => {
            let quota = value.strip_suffix('%').ok_or("a quota in percent")?.parse::<u64>()? * 1000;
            if v2 { ("cpu.max", format!("{quota} 100000")) } else { ("cpu.cfs_quota_us", quota.to_string()) }
        }
        ("io.max", _) => {
            let (device, limit) = value.split_once(" riops=").ok_or("a device and riops")?;
            let device = number(device)?;
            if v2 {
                ("io.max", format!("{device} riops={limit}"))
            } else {
                ("blkio.throttle.read_iops_device", format!("{device} {limit}"))
            }
        }
        _ => return Err(format!("{setting} is unknown here").into()),
    })
}

impl Cgroupfs {
    /// Makes a group where these controllers are.
    pub fn create(group: &str, controllers: &[&str]) -> Result<(), Failed> {
        for controller in controllers {
            let Place { mount, v2 } = Self::place(controller)?;
            if v2 {
                write(&mount.join("cgroup.subtree_control"), &format!("+{controller}"))?;
            }
            let path = mount.join(format!("{PREFIX}{group}"));
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives it settings by their names and values as on the command line.
    pub fn set(group: &str, settings: &[(&str, &str)]) -> Result<(), Failed> {
        let one = |(setting, value): &(&str, &str)| {
            let at = Self::place(setting.split('.').next().unwrap_or_default())?;
            let (file, text) = encode(setting, value, at.v2)?;
            write(&at.mount.join(format!("{PREFIX}{group}")).join(file), &text)
        };
        settings.iter().try_for_each(one)
    }

    /// Kills what is in it, and removes it.
    pub fn remove(group: &str) -> Result<(), Failed> {
        for path in Self::directories(group) {
            let begun = Instant::now();
            loop {
                let procs = fs::read_to_string(path.join("cgroup.procs"))?;
                for pid in procs
                    .lines()
                    .filter_map(|line| line.parse().ok())
                    .filter_map(rustix::process::Pid::from_raw)
                {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
                match fs::remove_dir(&path) {
                    Ok(()) => break,
                    Err(_) if begun.elapsed() < Duration::from_secs(10) => {
                        std::thread::sleep(Duration::from_millis(5))
                    }
                    Err(error) => return Err(format!("remove {}: {error}", path.display()).into()),
                }
            }
        }
        Ok(())
    }
}
