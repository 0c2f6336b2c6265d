//! A block device to read from: a file of real data behind a free loop device. Nothing of it can be left over.
//! The file has no name, and the kernel detaches the device at its last close, be it by SIGKILL.
#![allow(unsafe_code, reason = "the loop driver is requested by ioctl(2); each call says what holds")]

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use experiment::statistics::SplitMix64;
use rustix::fs::{FallocateFlags, Mode, OFlags};

use crate::Error;

/// From `include/uapi/linux/loop.h`.
const LOOP_CONFIGURE: u32 = 0x4C0A;
const LOOP_CTL_GET_FREE: u32 = 0x4C82;
const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Sectors of the size that every disk and file system takes direct I/O in.
const BLOCK_SIZE: u32 = 4096;
/// How much is written between two looks at the caller's flag.
const PIECE: usize = 1 << 20;

/// A loop device. Dropping it detaches it.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    /// Its last close detaches the device; children don't inherit it.
    node: Option<File>,
    /// How sysfs names the file behind it, to distinguish it from a later user's.
    backing: String,
}

impl LoopDevice {
    /// Makes a read-only device of `size` bytes, a multiple of 1 MiB, whose data lies in `directory`.
    ///
    /// # Errors
    /// [`Error::Loop`] with the step that failed; [`Error::Interrupted`] if `stop` was set.
    pub fn attach(directory: &Path, size: u64, stop: &AtomicBool) -> Result<LoopDevice, Error> {
        LoopDevice::attach_as(directory, size, false, stop)
    }

    /// The same, to be written to.
    ///
    /// # Errors
    /// As [`LoopDevice::attach`].
    pub fn attach_for_writing(directory: &Path, size: u64, stop: &AtomicBool) -> Result<LoopDevice, Error> {
        LoopDevice::attach_as(directory, size, true, stop)
    }

    fn attach_as(directory: &Path, size: u64, write: bool, stop: &AtomicBool) -> Result<LoopDevice, Error> {
        let backing = backing_file(directory, size, stop)?;
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control");
        let control = control.map_err(failed("cannot open /dev/loop-control", None))?;
        // between the answer and its use somebody else may take the device
        for _ in 0..64 {
            let number = free_device(&control).map_err(failed("no device is free", None))?;
            let path = device_path(number);
            let node = OpenOptions::new().read(true).write(write).open(&path);
            let node = node.map_err(failed("cannot open", Some(&path)))?;
            match configure(&node, &backing, write) {
                Ok(()) => {
                    let backing = sysfs(number, "backing_file").unwrap_or_default();
                    return Ok(LoopDevice { number, node: Some(node), backing });
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(failed("cannot attach", Some(&path))(error)),
            }
        }
        Err(failed("others took every free device", None)(io::Error::from_raw_os_error(libc::EBUSY)))
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> PathBuf {
        device_path(self.number)
    }

    /// Its number N.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Detaches the device and waits until it is free. The device itself if another process still has it open after `patience`:
    /// the kernel detaches it when that closes it, and nobody has to do anything.
    pub fn detach(mut self, patience: Duration) -> Option<PathBuf> {
        self.node = None;
        let begun = Instant::now();
        while sysfs(self.number, "backing_file").is_some_and(|now| now == self.backing) {
            if begun.elapsed() > patience {
                return Some(self.path());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }
}

fn device_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn failed<'a>(what: &'static str, path: Option<&'a Path>) -> impl Fn(io::Error) -> Error + 'a {
    move |source| Error::Loop { what, path: path.map(Path::to_owned), source }
}

/// An attribute that exists only while the device is attached.
fn sysfs(number: u32, attribute: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/sys/block/loop{number}/loop/{attribute}")).ok()?;
    Some(text.trim_end().to_owned())
}

/// A file without a name, filled with data, so that reads of it come from the disk and not from a hole.
fn backing_file(directory: &Path, size: u64, stop: &AtomicBool) -> Result<File, Error> {
    let failed = failed("cannot write its data in", Some(directory));
    let mut file = nameless(directory).map_err(&failed)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(errno) => return Err(failed(errno.into())),
    }
    let mut piece = noise();
    for number in 0..size.div_ceil(PIECE as u64) {
        if stop.load(Ordering::Relaxed) {
            return Err(workloads::Error::Interrupted.into());
        }
        // no two pieces are equal, should the file system share equal ones
        piece[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&piece).map_err(&failed)?;
    }
    file.sync_all().map_err(&failed)?;
    Ok(file)
}

fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, flags, mode) {
        Ok(fd) => return Ok(fd.into()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {} // a file system without such files
        Err(errno) => return Err(errno.into()),
    }
    let path = directory.join(format!(".rf-lab-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Data that does not compress.
fn noise() -> Vec<u8> {
    let mut random = SplitMix64::new(0);
    (0..PIECE / 8).flat_map(|_| random.draw().to_le_bytes()).collect()
}

fn free_device(control: &File) -> io::Result<u32> {
    // SAFETY: the call takes no argument and touches no memory of ours.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

fn configure(node: &File, backing: &File, write: bool) -> io::Result<()> {
    // the kernel shows this name where it has no path, and people in `losetup`
    let mut file_name = [0; 64];
    file_name[..9].copy_from_slice(b"ringfence");
    let info = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO | if write { 0 } else { LO_FLAGS_READ_ONLY },
        file_name,
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let fd = backing.as_raw_fd().unsigned_abs();
    let config = LoopConfig { fd, block_size: BLOCK_SIZE, info, reserved: [0; 8] };
    // SAFETY: `config` has the layout of the kernel's `struct loop_config` and lives through the call, which
    // only reads it.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_size_of_the_kernels() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn an_interrupted_attach_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let result = LoopDevice::attach(directory.path(), 1 << 20, &AtomicBool::new(true));
        assert!(result.is_err_and(|error| error.is_interruption()));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_can_not_hold_the_data_is_named() {
        let error =
            LoopDevice::attach(Path::new("/nonexistent"), 1 << 20, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(
                "cannot make a loop device: cannot write its data in /nonexistent: No such file"
            ),
            "{text}"
        );
    }
}
