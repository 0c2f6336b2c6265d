//! The machine's knobs: their files and threads. A trait, so that a test can put another machine in its place.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use kernel::threads;
use rustix::{
    fs::{Access, access},
    io::Errno,
};
use settings::knobs::{Instance, Knob, Per, Seen};
use units::{CpuSet, ProcStat};

use crate::read_only;

/// `PF_KTHREAD` and `PF_NO_SETAFFINITY` in linux/sched.h.
const OF_KERNEL: u64 = 0x0020_0000;
const BOUND: u64 = 0x0400_0000;

/// The knobs of a machine, or what a test puts in their place.
pub trait MachineKnobs {
    /// What is there of a row, in the order of names; what can't be read is left out.
    fn look(&self, knob: &Knob) -> Vec<Seen>;
    /// The text at one place, without the newline.
    ///
    /// # Errors
    /// `ENOENT` and `ESRCH` where it is gone.
    fn read(&self, instance: &Instance) -> Result<String, Errno>;
    /// Writes it.
    ///
    /// # Errors
    /// The kernel's errno.
    fn write(&self, instance: &Instance, text: &str) -> Result<(), Errno>;
    /// The command line of the kernel that runs.
    fn command_line(&self) -> String;
    /// Those of these programs that run, with the number of a process.
    fn running(&self, _programs: &[&str]) -> Vec<(String, u32)> {
        Vec::new()
    }
}

/// A machine without any.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKnobs;

impl MachineKnobs for NoKnobs {
    fn look(&self, _knob: &Knob) -> Vec<Seen> {
        Vec::new()
    }

    fn read(&self, _instance: &Instance) -> Result<String, Errno> {
        Err(Errno::NOENT)
    }

    fn write(&self, _instance: &Instance, _text: &str) -> Result<(), Errno> {
        Err(Errno::NOENT)
    }

    fn command_line(&self) -> String {
        String::new()
    }
}

/// The running machine, or a copy of its files below a directory.
#[derive(Debug, Clone, Default)]
pub struct KnobFiles {
    root: PathBuf,
}

impl KnobFiles {
    /// Those below a directory. Threads are always the running machine's, so that only files are looked at.
    pub fn below(root: impl Into<PathBuf>) -> KnobFiles {
        KnobFiles { root: root.into() }
    }

    fn is_copy(&self) -> bool {
        !self.root.as_os_str().is_empty()
    }

    fn path(&self, path: &str) -> PathBuf {
        if self.is_copy() { self.root.join(path.trim_start_matches('/')) } else { PathBuf::from(path) }
    }

    /// The absolute paths that a pattern fits.
    fn fitting(&self, pattern: &str) -> Vec<String> {
        let mut paths = vec![String::new()];
        for part in pattern.split('/').skip(1) {
            let below = |path: String| match part.split_once('*') {
                None => vec![format!("{path}/{part}")],
                Some((start, end)) => {
                    let fits = |name: &String| {
                        name.len() >= part.len() - 1 && name.starts_with(start) && name.ends_with(end)
                    };
                    let names = self.names(&path).into_iter().filter(fits);
                    names.map(|name| format!("{path}/{name}")).collect()
                }
            };
            paths = paths.into_iter().flat_map(below).collect();
        }
        paths.retain(|path| self.path(path).is_file());
        paths
    }

    /// What a directory has, numbers in their order.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        names
    }

    fn file(&self, knob: &Knob, path: String) -> Option<Seen> {
        let instance = Instance::File(path.clone());
        let text = self.read(&instance).ok()?;
        let at = self.path(&path);
        // what no owner may write stays as it is, even for root
        let fixed = fs::metadata(&at).is_ok_and(|metadata| metadata.permissions().readonly());
        let is_read_only = access(&at, Access::WRITE_OK) == Err(Errno::ROFS);
        let read_only = is_read_only.then(|| read_only::of(&at));
        Some(Seen { knob: knob.name.to_owned(), instance, text, before: None, fixed, read_only })
    }

    fn threads(&self, seen: impl Fn(u32) -> Option<Seen>) -> Vec<Seen> {
        if self.is_copy() {
            return Vec::new();
        }
        let numbers = self.names("/proc").into_iter().filter_map(|name| name.parse().ok());
        numbers.filter_map(seen).collect()
    }
}

impl MachineKnobs for KnobFiles {
    fn look(&self, knob: &Knob) -> Vec<Seen> {
        match knob.per {
            Per::Thread => self.threads(|thread| movable(knob, thread)),
            Per::ThreadOfCpu | Per::InterruptThread => self.threads(|thread| scheduled(knob, thread)),
            _ => self.fitting(knob.path).into_iter().filter_map(|path| self.file(knob, path)).collect(),
        }
    }

    fn read(&self, instance: &Instance) -> Result<String, Errno> {
        match instance {
            Instance::File(path) => {
                let text = fs::read_to_string(self.path(path)).map_err(|error| errno(&error))?;
                Ok(text.trim_end().to_owned())
            }
            Instance::Thread { thread, started, .. } => {
                is_same(*thread, *started)?;
                let cpus = threads::cpus_of(*thread).map_err(|error| errno(&error))?;
                Ok(cpus.to_string())
            }
            Instance::Policy { policy_of, started, .. } => {
                is_same(*policy_of, *started)?;
                threads::policy_of(*policy_of).map_err(|error| errno(&error))
            }
        }
    }

    fn write(&self, instance: &Instance, text: &str) -> Result<(), Errno> {
        match instance {
            Instance::File(path) => {
                // an empty write does not reach the kernel's handler
                let line = format!("{text}\n");
                let opened = fs::OpenOptions::new().write(true).open(self.path(path));
                opened.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| errno(&error))
            }
            Instance::Thread { thread, started, .. } => {
                is_same(*thread, *started)?;
                let cpus: CpuSet = text.trim().parse().map_err(|_| Errno::INVAL)?;
                threads::set_cpus_of(*thread, &cpus).map_err(|error| errno(&error))
            }
            Instance::Policy { policy_of, started, .. } => {
                is_same(*policy_of, *started)?;
                threads::set_policy_of(*policy_of, text).map_err(|error| errno(&error))
            }
        }
    }

    fn command_line(&self) -> String {
        fs::read_to_string(self.path("/proc/cmdline")).unwrap_or_default()
    }

    fn running(&self, programs: &[&str]) -> Vec<(String, u32)> {
        /// The kernel's name of a process ends here.
        const COMM: usize = 15;
        let name = |process: u32| {
            let comm = fs::read_to_string(self.path(&format!("/proc/{process}/comm"))).ok()?;
            let is_it = |program: &&&str| program.get(..COMM).unwrap_or(program) == comm.trim_end();
            Some(((*programs.iter().find(is_it)?).to_owned(), process))
        };
        self.names("/proc").into_iter().filter_map(|number| name(number.parse().ok()?)).collect()
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error)
}

fn stat(thread: u32) -> Result<Vec<u8>, Errno> {
    fs::read(Path::new("/proc").join(thread.to_string()).join("stat")).map_err(|_| Errno::SRCH)
}

/// A thread of the kernel: its flags, name, and start.
fn of_kernel(thread: u32) -> Option<(u64, String, u64)> {
    let text = stat(thread).ok()?;
    let stat = ProcStat::parse(&text)?;
    let flags = stat.flags().filter(|flags| flags & OF_KERNEL != 0)?;
    Some((flags, String::from_utf8_lossy(stat.name()).into_owned(), stat.started()?))
}

/// One of those that a row names, with its policy.
fn scheduled(knob: &Knob, thread: u32) -> Option<Seen> {
    let (_, comm, started) = of_kernel(thread)?;
    comm.strip_prefix(knob.path.trim_end_matches('*'))?;
    let text = threads::policy_of(thread).ok()?;
    let instance = Instance::Policy { policy_of: thread, started, comm };
    Some(Seen { knob: knob.name.to_owned(), instance, text, before: None, fixed: false, read_only: None })
}

/// One that takes other CPUs.
fn movable(knob: &Knob, thread: u32) -> Option<Seen> {
    let (flags, comm, started) = of_kernel(thread)?;
    if flags & BOUND != 0 {
        return None;
    }
    let instance = Instance::Thread { thread, started, comm };
    let text = threads::cpus_of(thread).ok()?.to_string();
    Some(Seen { knob: knob.name.to_owned(), instance, text, before: None, fixed: false, read_only: None })
}

/// Is the thread of that number the one that started then?
fn is_same(thread: u32, started: u64) -> Result<(), Errno> {
    let text = stat(thread)?;
    let now = ProcStat::parse(&text).and_then(|stat| stat.started());
    if now == Some(started) { Ok(()) } else { Err(Errno::SRCH) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::knobs::{self, find};

    #[test]
    fn files_of_a_pattern_are_found_read_and_written() {
        let directory = tempfile::tempdir().unwrap();
        for irq in ["2", "10"] {
            let at = directory.path().join("proc/irq").join(irq);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("smp_affinity_list"), "0-3\n").unwrap();
        }
        fs::write(directory.path().join("proc/irq/default_smp_affinity"), "f\n").unwrap();
        let files = KnobFiles::below(directory.path());
        let seen = files.look(find("interrupts").unwrap());
        let paths: Vec<String> = seen.iter().map(|seen| seen.instance.to_string()).collect();
        assert_eq!(paths, ["/proc/irq/2/smp_affinity_list", "/proc/irq/10/smp_affinity_list"]);
        assert!(seen.iter().all(|seen| seen.text == "0-3" && !seen.fixed && seen.read_only.is_none()));
        files.write(&seen[0].instance, "0-2").unwrap();
        assert_eq!(files.read(&seen[0].instance).unwrap(), "0-2");
        assert_eq!(files.look(find("interrupt-default").unwrap()).len(), 1);
        assert_eq!(
            files.read(&Instance::File("/proc/irq/3/smp_affinity_list".to_owned())),
            Err(Errno::NOENT)
        );
    }

    #[test]
    fn the_tables_numbers_are_those_of_linux() {
        let numbers = [
            (knobs::Errno::PERM, Errno::PERM),
            (knobs::Errno::NOENT, Errno::NOENT),
            (knobs::Errno::IO, Errno::IO),
            (knobs::Errno::BUSY, Errno::BUSY),
            (knobs::Errno::INVAL, Errno::INVAL),
            (knobs::Errno::NOSPC, Errno::NOSPC),
        ];
        for (ours, linux) in numbers {
            assert_eq!(ours.0, linux.raw_os_error());
        }
    }

    #[test]
    fn threads_of_the_kernel_are_known_by_their_start() {
        // where /proc shows no threads of the kernel, as in a container, there is nothing to find
        for seen in KnobFiles::default().look(find("kernel-threads").unwrap()) {
            let Instance::Thread { thread, started, comm } = seen.instance else { panic!("no thread") };
            let other = Instance::Thread { thread, started: started + 1, comm };
            assert_eq!(KnobFiles::default().read(&other), Err(Errno::SRCH));
        }
    }
}
