//! Where texts come from: descriptors that stay open, read by pread into one buffer, or any [`Kernel`], so that the
//! in-memory one can be sampled too. cgroup files are opened by the kernel crate's opener alone.

use std::os::fd::OwnedFd;

use kernel::{Hierarchy, Kernel, Real};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::{Resource, Rlimit},
};

/// A kernel file of at most half a page is whole in one read; see [`kernel::Kernel::read`].
const HALF_A_PAGE: usize = 2048;
/// What a buffer holds first.
const FIRST: usize = 64 << 10;
/// Descriptors left to the rest of the program.
const RESERVE: usize = 128;

/// A source of texts.
pub trait Files {
    /// A file that is open.
    type Open;
    /// Opens a group's file.
    ///
    /// # Errors
    /// The kernel's errno.
    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<Self::Open, Errno>;
    /// Opens a file outside of cgroups.
    ///
    /// # Errors
    /// The kernel's errno.
    fn open_outside(&self, path: &str) -> Result<Self::Open, Errno>;
    /// Reads an open file from its start; what was read is in the buffer.
    ///
    /// # Errors
    /// The kernel's errno; `ENODEV` once the group is gone.
    fn read(&self, file: &Self::Open, into: &mut Buffer) -> Result<(), Errno>;
    /// How many files may stay open.
    fn at_most(&self) -> usize;
}

/// One buffer for all reads. It grows to the longest text and stays.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer { bytes: vec![0; FIRST], filled: 0 }
    }
}

impl Buffer {
    /// What was read last.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Reads by `step`, which is given the free part and the place that it begins at, until nothing follows.
    fn fill(&mut self, mut step: impl FnMut(&mut [u8], u64) -> Result<usize, Errno>) -> Result<(), Errno> {
        self.filled = 0;
        loop {
            match step(&mut self.bytes[self.filled..], self.filled as u64) {
                Ok(count) => {
                    self.filled += count;
                    if count <= HALF_A_PAGE && (self.filled == count || count == 0) {
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    self.filled = 0;
                    return Err(errno);
                }
            }
            if self.filled == self.bytes.len() {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
    }

    fn put(&mut self, text: &[u8]) {
        if text.len() > self.bytes.len() {
            self.bytes.resize(text.len(), 0);
        }
        self.bytes[..text.len()].copy_from_slice(text);
        self.filled = text.len();
    }
}

/// Descriptors of the running kernel.
#[derive(Debug, Default)]
pub struct Descriptors {
    kernel: Real,
    at_most: Option<usize>,
}

impl Descriptors {
    /// The running kernel's files.
    pub fn new() -> Descriptors {
        Descriptors::default()
    }

    /// The same for a program that has other things to do: at most this number stays open.
    pub fn few(at_most: usize) -> Descriptors {
        Descriptors { at_most: Some(at_most), ..Descriptors::default() }
    }

    /// Lets this process open as many files as it may; returns how many. Children inherit it, so this is for
    /// programs that do nothing but watch.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn allow_more() -> Result<u64, Errno> {
        let Rlimit { current, maximum } = rustix::process::getrlimit(Resource::Nofile);
        if current == maximum {
            return Ok(current.unwrap_or(u64::MAX));
        }
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
        Ok(maximum.unwrap_or(u64::MAX))
    }
}

impl Files for Descriptors {
    type Open = OwnedFd;

    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<OwnedFd, Errno> {
        self.kernel.open(at, group, file, OFlags::RDONLY)
    }

    fn open_outside(&self, path: &str) -> Result<OwnedFd, Errno> {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    fn read(&self, file: &OwnedFd, into: &mut Buffer) -> Result<(), Errno> {
        into.fill(|free, from| rustix::io::pread(file, free, from))
    }

    fn at_most(&self) -> usize {
        let limit = rustix::process::getrlimit(Resource::Nofile).current;
        let allowed = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        self.at_most.unwrap_or(usize::MAX).min(allowed.saturating_sub(RESERVE))
    }
}

/// Any kernel, opened for each read: slower, and for tests on the in-memory one.
#[derive(Debug)]
pub struct Uncached<K>(pub K);

/// A file of [`Uncached`].
#[derive(Debug)]
pub enum Named {
    /// A group's.
    Group(Hierarchy, String, String),
    /// Another.
    Outside(String),
}

impl<K: Kernel> Files for Uncached<K> {
    type Open = Named;

    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<Named, Errno> {
        self.0.read(at, group, file)?;
        Ok(Named::Group(at.clone(), group.to_owned(), file.to_owned()))
    }

    fn open_outside(&self, path: &str) -> Result<Named, Errno> {
        self.0.outside(path.as_ref())?;
        Ok(Named::Outside(path.to_owned()))
    }

    fn read(&self, file: &Named, into: &mut Buffer) -> Result<(), Errno> {
        let text = match file {
            // a descriptor of a group that is gone answers ENODEV
            Named::Group(at, group, file) => self.0.read(at, group, file).map_err(|errno| match errno {
                Errno::NOENT => Errno::NODEV,
                errno => errno,
            })?,
            Named::Outside(path) => self.0.outside(path.as_ref())?,
        };
        into.put(text.as_bytes());
        Ok(())
    }

    fn at_most(&self) -> usize {
        usize::MAX
    }
}
