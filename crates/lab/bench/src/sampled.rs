//! What a sample of all figures costs per group, beside a C program that does nothing but pread the same files, which
//! both keep open. CPU time of the one thread that reads, in turns; figures that are read less often are left out on
//! both sides, as they are opened each time.

use std::{
    io::{Read, Write},
    os::fd::AsRawFd,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kernel::GroupName;
use monitor::{Beat, Descriptors, Options, Sampler};
use nix::time::{ClockId, clock_gettime};

use crate::{
    groups::{GROUP, Groups},
    interrupt,
    measure::Numbers,
    probes::Probes,
};

/// The largest ratio that we want.
pub const GOAL: f64 = 1.25;

/// How many groups are read.
pub const COUNTS: [usize; 3] = [100, 1_000, 2_000];

/// Samples of each side; those before them are not counted.
const SAMPLES: usize = 81;
const WARM_UP: usize = 3;

/// Nanoseconds per group and sample.
pub struct Pair {
    pub files: usize,
    pub ours: Numbers,
    pub bare: Numbers,
}

/// Makes the groups that are missing, and reads all of them.
pub fn measure(groups: &Groups, probes: &Probes, count: usize) -> Result<Pair, String> {
    groups.make_many(count)?;
    let top = GroupName::new(GROUP).map_err(|error| error.to_string())?;
    let options = Options { groups: monitor::Groups::Named(vec![top]), slow_every: u64::MAX };
    Descriptors::allow_more().map_err(|errno| format!("as many open files as are needed: {errno}"))?;
    let mut sampler = Sampler::new(groups.host(), Descriptors::new(), options, true);
    let mut sample = || -> Result<usize, String> {
        let sample = sampler.tick(groups.host(), Beat::default()).map_err(|error| error.to_string())?;
        Ok(sample.groups.rows().len())
    };
    // the second lists groups once more, as watches are new
    (0..2).try_for_each(|_| sample().map(drop))?;
    let rows = sample()?;
    if rows != count {
        return Err(format!("{rows} groups are read, not {count}"));
    }
    let mut probe = Probe::start(probes, &sampler)?;
    let files = sampler.open().count();
    let [mut ours, mut bare] = [const { Vec::new() }; 2];
    for turn in 0..SAMPLES + WARM_UP {
        interrupt::check()?;
        let mut pair = [Duration::ZERO; 2];
        // who goes first alternates
        for side in [turn % 2, 1 - turn % 2] {
            pair[side] = if side == 0 { own_sample(&mut sampler, groups)? } else { probe.sample()? };
        }
        if turn >= WARM_UP {
            let per_group = |time: Duration| time.as_nanos() as f64 / rows as f64;
            ours.push(per_group(pair[0]));
            bare.push(per_group(pair[1]));
        }
    }
    Ok(Pair { files, ours: Numbers::of(ours), bare: Numbers::of(bare) })
}

fn own_sample(sampler: &mut Sampler<Descriptors>, groups: &Groups) -> Result<Duration, String> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let start = now().map_err(|errno| errno.to_string())?;
    sampler.tick(groups.host(), Beat::default()).map_err(|error| error.to_string())?;
    Ok(now().map_err(|errno| errno.to_string())?.saturating_sub(start))
}

/// The C program; it ends with its input.
struct Probe {
    child: Child,
}

impl Probe {
    /// With all files that a sampler keeps open.
    fn start(probes: &Probes, sampler: &Sampler<Descriptors>) -> Result<Probe, String> {
        let child =
            Command::new(probes.path("pread_only")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut probe = Probe { child: child.map_err(|error| failed(&error))? };
        let mut paths = String::new();
        for file in sampler.open() {
            let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
            paths += &format!("{}\n", path.map_err(|error| error.to_string())?.display());
        }
        paths.push('\n');
        probe.send(paths.as_bytes())?;
        Ok(probe)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("pread_only.c has no input")?;
        input.write_all(bytes).map_err(|error| failed(&error))
    }

    fn sample(&mut self) -> Result<Duration, String> {
        self.send(b"g")?;
        let mut took = [0; 8];
        let output = self.child.stdout.as_mut().ok_or("pread_only.c has no output")?;
        output.read_exact(&mut took).map_err(|error| failed(&error))?;
        Ok(Duration::from_nanos(u64::from_ne_bytes(took)))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn failed(error: &std::io::Error) -> String {
    format!("pread_only.c: {error}")
}
