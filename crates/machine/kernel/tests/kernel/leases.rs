//! Leases on cgroup files, which the owner of a delegated group can take: nobody waits for one. On the real kernel; the
//! in-memory one has none.
#![allow(unsafe_code, reason = "no crate has fcntl(2) with F_SETLEASE")]

use std::{
    fs::File,
    os::fd::AsRawFd,
    path::Path,
    time::{Duration, Instant},
};

use fake::suite;
use kernel::{Access, Error, GroupName, Host, Real};
use libtest_mimic::{Completion, Failed, Trial};
use settings::Controller;

pub fn trials() -> Vec<Trial> {
    let there = |host: &Host| host.hierarchy_of(Controller::Pids).is_some() && !host.needs_unit();
    let is_root = rustix::process::geteuid().is_root();
    match Host::new(Box::new(Real::new())) {
        Ok(host) if is_root && there(&host) => {
            vec![suite::ignorable("a_leased_file_is_refused_at_once", leased)]
        }
        _ => Vec::new(),
    }
}

/// A group of the test, removed when it ends.
struct Group(Host, GroupName);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.0.delete(&self.1, true);
    }
}

/// Until it is closed, whoever else opens the file waits. Nothing where the kernel grants no lease on cgroup files (from
/// Linux 7.0 on).
fn lease(path: &Path) -> Option<File> {
    let file = File::open(path).unwrap();
    // SAFETY: neither call touches memory of ours. The signal says that somebody waits.
    let taken = unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
    };
    let error = std::io::Error::last_os_error();
    if taken != 0 && error.raw_os_error() == Some(libc::EINVAL) {
        return None;
    }
    assert_eq!(taken, 0, "{error}");
    Some(file)
}

fn leased() -> Result<Completion, Failed> {
    let name = GroupName::new("rf-test-leased")?;
    let group = Group(Host::new(Box::new(Real::new()))?, name.clone());
    let host = &group.0;
    host.create(&name, Some(&[Controller::Pids]), &Access::default())?;
    let seat = host.seat(&name, Controller::Pids)?;
    for file in ["pids.max", "cgroup.procs"] {
        let Some(lease) = lease(&seat.directory().join(file)) else {
            return Ok(Completion::ignored_with("this kernel grants no lease on cgroup files"));
        };
        let start = Instant::now();
        let pid = std::process::id();
        for refused in [
            host.read(&seat, &name, file).err(),
            host.write(&seat, &name, file, "max").err(),
            host.kernel()
                .hold(seat.at, &seat.path, file)
                .err()
                .map(|errno| host.refused(kernel::Op::Write, &seat, &name, Some(file), None, errno)),
        ] {
            let Some(Error::Refused(refusal)) = refused else { return Err(format!("{refused:?}").into()) };
            let cause = refusal.cause.unwrap_or_default();
            assert!(cause.starts_with(&format!("process {pid} has a lease on {file}")), "{cause}");
            assert!(refusal.hint.unwrap_or_default().contains("fs.leases-enable=0"));
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        drop(lease);
        host.read(&seat, &name, file)?;
    }
    host.write(&seat, &name, "pids.max", "77")?;
    Ok(Completion::Completed)
}
