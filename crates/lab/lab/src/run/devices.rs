//! The devices that an experiment's runs share: loop devices on files of their own, with a file system if one is requested
//! for, and swap files. Each is in the journal before it is made.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use experiment::{Experiment, file::Device};
use units::Bytes;
use workloads::{
    Stop,
    drivers::process::{self, Tool},
};

use super::{
    clean::{swap_off, unmount},
    journal::{Entry, Journal},
};
use crate::{Error, LoopDevice};

/// Those of one experiment.
#[derive(Default)]
pub(crate) struct Devices {
    loops: Vec<(String, LoopDevice)>,
    given: Vec<(String, PathBuf)>,
    mounts: Vec<(String, PathBuf)>,
    swaps: Vec<PathBuf>,
}

impl Devices {
    /// Makes them; `given` stands in for loop devices.
    pub fn make(
        experiment: &Experiment,
        given: Option<&Path>,
        directory: &Path,
        journal: &mut Journal,
        stop: &Stop,
    ) -> Result<Devices, Error> {
        let mut devices = Devices::default();
        for (name, device) in &experiment.device {
            let made = match (device, given) {
                (Device::Loop { file_system, .. }, Some(path)) => {
                    let writes = file_system.is_some() || is_written(experiment, name);
                    check_given(path, writes).map(|()| devices.given.push((name.clone(), path.to_owned())))
                }
                (Device::Loop { size, scheduler, file_system }, None) => {
                    let requested =
                        Loop { size, scheduler: scheduler.as_deref(), file_system: file_system.as_deref() };
                    let writes = file_system.is_some() || is_written(experiment, name);
                    devices.add_loop(name, &requested, writes, directory, journal, stop)
                }
                (Device::Swap { size }, _) => devices.add_swap(name, size, directory, journal, stop),
            };
            if let Err(error) = made {
                let _ = devices.remove(); // the journal has what is left
                return Err(error);
            }
        }
        Ok(devices)
    }

    fn add_loop(
        &mut self,
        name: &str,
        requested: &Loop<'_>,
        writes: bool,
        directory: &Path,
        journal: &mut Journal,
        stop: &Stop,
    ) -> Result<(), Error> {
        let size = bytes(requested.size)?.next_multiple_of(1 << 20);
        let device = match writes {
            true => LoopDevice::attach_for_writing(directory, size, stop.flag())?,
            false => LoopDevice::attach(directory, size, stop.flag())?,
        };
        let path = device.path();
        if let Some(scheduler) = requested.scheduler {
            let file = PathBuf::from(format!("/sys/block/loop{}/queue/scheduler", device.number()));
            fs::write(&file, scheduler).map_err(Error::file("write", &file))?;
        }
        self.loops.push((name.to_owned(), device));
        let Some(kind) = requested.file_system else { return Ok(()) };
        program(&format!("mkfs.{kind}"), &path, directory, stop)?;
        let point = directory.join(format!("{name}.mount"));
        fs::create_dir(&point).map_err(Error::file("make", &point))?;
        journal.write(&Entry::Mount(point.clone()))?;
        let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
        rustix::mount::mount(&path, &point, kind, flags, None)
            .map_err(|errno| Error::file("mount on", &point)(errno.into()))?;
        // workloads of other users write there
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(&point, open).map_err(Error::file("write", &point))?;
        self.mounts.push((name.to_owned(), point));
        Ok(())
    }

    /// Only if there is less swap than that.
    fn add_swap(
        &mut self,
        name: &str,
        size: &str,
        directory: &Path,
        journal: &mut Journal,
        stop: &Stop,
    ) -> Result<(), Error> {
        let size = bytes(size)?;
        if swap_there() >= size {
            return Ok(());
        }
        let path = directory.join(format!("{name}.swap"));
        journal.write(&Entry::Swap(path.clone()))?;
        let file = fs::File::create_new(&path);
        let made = file.and_then(|file| {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            Ok(rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size)?)
        });
        made.map_err(Error::file("write", &path))?;
        program("mkswap", &path, directory, stop)?;
        program("swapon", &path, directory, stop)?;
        self.swaps.push(path);
        Ok(())
    }

    /// Name → block device, for settings.
    pub fn blocks(&self) -> BTreeMap<String, String> {
        let loops = self.loops.iter().map(|(name, device)| (name.clone(), device.path()));
        let all = loops.chain(self.given.iter().cloned());
        all.map(|(name, path)| (name, path.display().to_string())).collect()
    }

    /// Name → what a workload opens: the block device, or the directory where its file system is.
    pub fn paths(&self) -> BTreeMap<String, PathBuf> {
        let loops = self.loops.iter().map(|(name, device)| (name.clone(), device.path()));
        loops.chain(self.given.iter().cloned()).chain(self.mounts.iter().cloned()).collect()
    }

    /// Everything is tried; the first failure is reported. Loop devices that another process keeps open until it closes them.
    pub fn remove(self) -> Result<Vec<PathBuf>, Error> {
        let mut result = Ok(());
        let mut keep = |done: Result<(), Error>| {
            if result.is_ok() {
                result = done;
            }
        };
        self.mounts.iter().for_each(|(_, point)| keep(unmount(point).map(drop)));
        self.swaps.iter().for_each(|path| keep(swap_off(path).map(drop)));
        let open = self.loops.into_iter().filter_map(|(_, device)| device.detach(CLOSING)).collect();
        result.map(|()| open)
    }
}

/// A loop device as the file requests it.
struct Loop<'l> {
    size: &'l str,
    scheduler: Option<&'l str>,
    file_system: Option<&'l str>,
}

fn bytes(text: &str) -> Result<u64, Error> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| Error::cannot(error.to_string()))
}

/// Does a workload write to it?
fn is_written(experiment: &Experiment, device: &str) -> bool {
    let loads = experiment.load.iter().flat_map(|load| &load.workload);
    let on = experiment.workload.values().chain(loads).filter_map(|workload| workload.driver.device());
    on.into_iter().any(|on| on.writes && on.name == device)
}

fn check_given(path: &Path, writes: bool) -> Result<(), Error> {
    let found = fs::metadata(path).map_err(Error::file("read", path))?;
    if !found.file_type().is_block_device() {
        let hint = Some("lsblk lists them; without --device the lab makes a loop device".to_owned());
        return Err(Error::Cannot { text: format!("{} is no block device", path.display()), hint });
    }
    if writes {
        let hint = Some("without --device it writes to a loop device of its own".to_owned());
        return Err(Error::Cannot {
            text: format!("this experiment would write to {}", path.display()),
            hint,
        });
    }
    Ok(())
}

fn swap_there() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("SwapTotal:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// A loop device that is still open elsewhere (udev looks at every one) is waited for so long.
const CLOSING: Duration = Duration::from_secs(10);

/// A file system of a large device takes a while.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a program on a device or a file, to its end.
fn program(name: &str, on: &Path, directory: &Path, stop: &Stop) -> Result<(), Error> {
    let mut command = Command::new(name);
    command.arg(on);
    process::run(Tool::new(command, stop.clone()), name, directory, PATIENCE)?;
    Ok(())
}
