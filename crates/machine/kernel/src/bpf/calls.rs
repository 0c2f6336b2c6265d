//! The bpf(2) calls that put one device program on a group's directory: load, attach, replace, detach, and ask which
//! are there. Knows nothing of device rules; never touches a program of another name.
#![allow(unsafe_code, reason = "bpf(2) has no safe wrapper; the one call says what holds")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::program::Instruction;

/// The name under which our programs are known (`bpftool cgroup show`).
const NAME: [u8; 16] = *b"ringfence_dev\0\0\0";

const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_DETACH: libc::c_int = 9;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;

const TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
const ALLOW_MULTI: u32 = 2;
const REPLACE: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
    replaced: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Query {
    target: u32,
    kind: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct InfoOf {
    program: u32,
    length: u32,
    info: u64,
}

/// `union bpf_attr`, larger than any kernel's so far: a kernel takes more than it knows if that is zero, and some
/// write answers beyond the part that their oldest callers pass.
#[repr(C)]
union Attributes {
    whole: [u64; 32],
    load: Load,
    attach: Attach,
    query: Query,
    id: u32,
    info: InfoOf,
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Info {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    lengths: [u32; 2],
    pointers: [u64; 2],
    loaded: u64,
    uid: u32,
    map_count: u32,
    maps: u64,
    name: [u8; 16],
}

/// A loaded program.
#[derive(Debug)]
pub(crate) struct Program {
    handle: OwnedFd,
    /// The kernel's hash of the instructions.
    pub tag: [u8; 8],
}

impl Program {
    /// Checked and loaded by the kernel, not attached yet.
    ///
    /// # Errors
    /// `EPERM` without CAP_BPF and CAP_NET_ADMIN, `EINVAL` or `ENOSYS` on a kernel without such programs, `E2BIG`
    /// for too many instructions.
    pub fn load(instructions: &[Instruction]) -> Result<Program, Errno> {
        let code: Vec<[u8; 8]> = instructions.iter().map(|instruction| instruction.to_bytes()).collect();
        let mut attributes = zeroed();
        attributes.load = Load {
            kind: TYPE_CGROUP_DEVICE,
            count: u32::try_from(code.len()).map_err(|_| Errno::TOOBIG)?,
            instructions: code.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: NAME,
        };
        let handle = descriptor(bpf(PROG_LOAD, &mut attributes)?);
        let tag = info(&handle)?.tag;
        Ok(Program { handle, tag })
    }

    /// Puts the program on a group, in place of `old` if it is given; others' programs stay beside it.
    ///
    /// # Errors
    /// `EPERM` without the right, or where another program is attached as the only one; `EINVAL` on a kernel
    /// without CONFIG_CGROUP_BPF; `EBADF` if the directory is no cgroup v2 group's.
    pub fn attach(&self, group: BorrowedFd<'_>, old: Option<&Program>) -> Result<(), Errno> {
        let replaced = old.map_or(0, |old| number(old.handle.as_fd()));
        let flags = if old.is_some() { ALLOW_MULTI | REPLACE } else { ALLOW_MULTI };
        match (self.call(PROG_ATTACH, group, flags, replaced), old) {
            // before Linux 5.6: both for a moment, which is stricter, never looser
            (Err(Errno::INVAL), Some(old)) => {
                self.call(PROG_ATTACH, group, ALLOW_MULTI, 0)?;
                old.detach(group)
            }
            (done, _) => done,
        }
    }

    /// Takes the program off a group.
    ///
    /// # Errors
    /// As [`Program::attach`]; `ENOENT` if it is not there.
    pub fn detach(&self, group: BorrowedFd<'_>) -> Result<(), Errno> {
        self.call(PROG_DETACH, group, 0, 0)
    }

    fn call(
        &self,
        command: libc::c_int,
        group: BorrowedFd<'_>,
        flags: u32,
        replaced: u32,
    ) -> Result<(), Errno> {
        let mut attributes = zeroed();
        let (target, program) = (number(group), number(self.handle.as_fd()));
        attributes.attach = Attach { target, program, kind: ATTACH_CGROUP_DEVICE, flags, replaced };
        bpf(command, &mut attributes).map(|_| ())
    }
}

/// Our programs on a group; more than one if another process died between two calls on an old kernel.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN or CAP_SYS_ADMIN, `EINVAL` or `ENOSYS` on a kernel without such programs.
pub(crate) fn ours(group: BorrowedFd<'_>) -> Result<Vec<Program>, Errno> {
    let mut found = Vec::new();
    for id in ids(group)? {
        let mut attributes = zeroed();
        attributes.id = id;
        let handle = match bpf(PROG_GET_FD_BY_ID, &mut attributes) {
            Ok(handle) => descriptor(handle),
            Err(Errno::NOENT) => continue, // gone meanwhile
            Err(errno) => return Err(errno),
        };
        let info = info(&handle)?;
        if info.name == NAME {
            found.push(Program { handle, tag: info.tag });
        }
    }
    Ok(found)
}

/// The numbers of all device programs that are attached to the group itself.
fn ids(group: BorrowedFd<'_>) -> Result<Vec<u32>, Errno> {
    let mut ids = vec![0u32; 64]; // the kernel's own bound
    let mut attributes = zeroed();
    attributes.query = Query {
        target: number(group),
        kind: ATTACH_CGROUP_DEVICE,
        flags: 0,
        attach_flags: 0,
        ids: ids.as_mut_ptr() as u64,
        count: ids.len() as u32,
    };
    bpf(PROG_QUERY, &mut attributes)?;
    // SAFETY: the kernel left the query in the union, with the count of what it wrote; all bits are valid numbers.
    let count = unsafe { attributes.query.count } as usize;
    ids.truncate(count);
    Ok(ids)
}

fn info(program: &OwnedFd) -> Result<Info, Errno> {
    let mut info = Info::default();
    let mut attributes = zeroed();
    let info_at = (&raw mut info) as u64;
    attributes.info =
        InfoOf { program: number(program.as_fd()), length: size_of::<Info>() as u32, info: info_at };
    bpf(OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(info)
}

fn zeroed() -> Attributes {
    Attributes { whole: [0; 32] }
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    // never negative while it is open
    descriptor.as_raw_fd() as u32
}

fn bpf(command: libc::c_int, attributes: &mut Attributes) -> Result<libc::c_long, Errno> {
    // SAFETY: `attributes` is a whole, initialised union of the size given, larger than the kernel's own, so that
    // every answer the kernel writes into it has room. The addresses in it are of buffers that live in the caller's
    // frame over the call, with their lengths beside them.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<Attributes>())
    };
    match answer {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)),
        answer => Ok(answer),
    }
}

/// A descriptor that the kernel has just made for us (bpf(2) sets close-on-exec).
fn descriptor(number: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel returned it a moment ago as a new descriptor; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(number as libc::c_int) }
}
