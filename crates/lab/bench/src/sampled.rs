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
    Selection,
    groups::{GROUP, Groups},
    measure::{Done, Numbers, Said, in_turns, show},
    probes::Probes,
};

/// The largest ratio that we want.
const GOAL: f64 = 1.25;

/// How many groups are read.
const COUNTS: [usize; 3] = [100, 1_000, 2_000];

/// Samples of each side; those before them are not counted.
const SAMPLES: usize = 81;
const WARM_UP: usize = 3;

/// Makes the groups that are missing, and reads all of them: nanoseconds per group and sample.
pub fn rows(selection: &Selection) -> Done {
    let row = |count: usize| format!("sample of {count} groups, ns per group");
    let counts: Vec<usize> = COUNTS.into_iter().filter(|count| selection.wants(&row(*count))).collect();
    if counts.is_empty() {
        return Ok(());
    }
    let (groups, probes) = (Groups::new()?, Probes::compile()?);
    for count in counts {
        groups.make_many(count)?;
        let (files, sides) = measure(&groups, &probes, count)?;
        let [ours, bare] = sides.map(Numbers::of);
        show(&row(count), [&ours, &bare], 0, GOAL, &format!("  {files} files"));
    }
    Ok(())
}

/// How many files are read, and the times of both sides.
fn measure(groups: &Groups, probes: &Probes, count: usize) -> Done<(usize, [Vec<f64>; 2])> {
    let top = GroupName::new(GROUP).said(GROUP)?;
    let options = Options { groups: monitor::Groups::Named(vec![top]), slow_every: u64::MAX };
    Descriptors::allow_more().said("as many open files as are needed")?;
    let mut sampler = Sampler::new(groups.host(), Descriptors::new(), options, true);
    let mut rows = 0;
    // the second lists groups once more, as watches are new
    for _ in 0..3 {
        rows = sampler.tick(groups.host(), Beat::default()).said("a sample")?.groups.rows().len();
    }
    if rows != count {
        return Err(format!("{rows} groups are read, not {count}"));
    }
    let mut probe = Probe::start(probes, &sampler)?;
    let files = sampler.open().count();
    let mut times: [Vec<f64>; 2] = Default::default();
    in_turns(SAMPLES + WARM_UP, 2, |turn, side| {
        let time = if side == 0 { own_sample(&mut sampler, groups)? } else { probe.sample()? };
        if turn >= WARM_UP {
            times[side].push(time.as_nanos() as f64 / rows as f64);
        }
        Ok(())
    })?;
    Ok((files, times))
}

fn own_sample(sampler: &mut Sampler<Descriptors>, groups: &Groups) -> Done<Duration> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).said("the clock");
    let start = now()?;
    sampler.tick(groups.host(), Beat::default()).said("a sample")?;
    Ok(now()?.saturating_sub(start))
}

const PROBE: &str = "pread_only.c";

/// The C program; it ends with its input.
struct Probe {
    child: Child,
}

impl Probe {
    /// With all files that a sampler keeps open.
    fn start(probes: &Probes, sampler: &Sampler<Descriptors>) -> Done<Probe> {
        let child =
            Command::new(probes.path("pread_only")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut probe = Probe { child: child.said(PROBE)? };
        let mut paths = String::new();
        for file in sampler.open() {
            let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
            paths += &format!("{}\n", path.said(PROBE)?.display());
        }
        paths.push('\n');
        probe.send(paths.as_bytes())?;
        Ok(probe)
    }

    fn send(&mut self, bytes: &[u8]) -> Done {
        let input = self.child.stdin.as_mut().ok_or("pread_only.c has no input")?;
        input.write_all(bytes).said(PROBE)
    }

    fn sample(&mut self) -> Done<Duration> {
        self.send(b"g")?;
        let mut took = [0; 8];
        let output = self.child.stdout.as_mut().ok_or("pread_only.c has no output")?;
        output.read_exact(&mut took).said(PROBE)?;
        Ok(Duration::from_nanos(u64::from_ne_bytes(took)))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
