//! How long a sample takes per group, beside a C program that only preads the same files: `cargo run --release
//! --example sampling -- 100 1000 2000`. Makes groups `rf-test-watch/…` in this machine's hierarchies and removes them
//! again. CPU time, medians of interleaved passes. Needs root and cc(1).
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures")]

use std::{
    io::{Read, Write},
    os::fd::AsRawFd,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kernel::{GroupName, Host, Kernel, Real};
use rustix::time::{ClockId, clock_gettime};
use watch::{Beat, Cadence, Descriptors, Groups, Options, Recorder, RecorderOptions, Sampler};

const TOP: &str = "rf-test-watch";
const PASSES: usize = 41;
const BEATS: u64 = 15;

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "measure").is_some() {
        let scratch = words.next().unwrap();
        return measure(scratch.as_ref(), words.next().unwrap().parse().unwrap());
    }
    let scratch = std::env::temp_dir().join(format!("{TOP}-{}", std::process::id()));
    std::fs::create_dir(&scratch).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/probes/pread_only.c");
    let compiled = Command::new("cc").args(["-O2", "-o"]).arg(scratch.join("probe")).arg(source).status();
    // measured in a child: whatever becomes of it, the groups are removed
    let own = std::env::current_exe().unwrap();
    let all_well = compiled.is_ok_and(|status| status.success())
        && words.all(|count| {
            let child = Command::new(&own).arg("measure").arg(&scratch).arg(count).status();
            remove(&Real::new());
            child.is_ok_and(|status| status.success())
        });
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(all_well);
}

fn measure(scratch: &Path, count: usize) {
    make(&Real::new(), count);
    Descriptors::allow_more().unwrap();
    let host = Host::new(Box::new(Real::new())).unwrap();
    bare(&host, scratch);
    whole(&host, scratch);
}

fn sampler(host: &Host, slow_every: u64) -> Sampler<Descriptors> {
    let groups = Groups::Named(vec![GroupName::new(TOP).unwrap()]);
    let mut sampler = Sampler::new(host, Descriptors::new(), Options { groups, slow_every }, true);
    // the second lists groups once more, as watches are new
    (0..2).for_each(|_| _ = sampler.tick(host, Beat::default()).unwrap());
    sampler
}

/// The files of every sample, beside the program that does nothing but read them.
fn bare(host: &Host, scratch: &Path) {
    let mut sampler = sampler(host, u64::MAX);
    let mut probe = start_probe(&scratch.join("probe"), &sampler);
    let [mut ours, mut bare] = [const { Vec::new() }; 2];
    for _ in 0..PASSES {
        ours.push(cpu_time_of(|| _ = sampler.tick(host, Beat::default()).unwrap()));
        bare.push(pass(&mut probe));
    }
    drop(probe.stdin.take());
    probe.wait().unwrap();
    let rows = sampler.sample().groups.rows().len();
    let files = sampler.open().count();
    let (ours, bare) = (per_group(&mut ours, rows), per_group(&mut bare, rows));
    let ratio = ours / bare;
    println!(
        "{rows} groups, {files} files: {ours:.0} ns per group and sample, pread alone {bare:.0}, ratio {ratio:.3}"
    );
}

/// All figures, and the log.
fn whole(host: &Host, scratch: &Path) {
    let mut sampler = sampler(host, Options::default().slow_every);
    let slow_every = sampler.slow_every();
    let log = scratch.join(format!("log-{}-{slow_every}", std::process::id()));
    let (mut recorder, _) = Recorder::open(&log, RecorderOptions::default()).unwrap();
    recorder.append(sampler.sample()).unwrap();
    let begin = recorder.written();
    let [mut whole, mut recording] = [const { Vec::new() }; 2];
    for _ in 0..PASSES {
        whole.push(cpu_time_of(|| _ = sampler.tick(host, Beat::default()).unwrap()));
        recording.push(cpu_time_of(|| recorder.append(sampler.sample()).unwrap()));
    }
    let rows = sampler.sample().groups.rows().len();
    // at a beat of a second the kernel's data are not in the caches any more
    let mut cadence = Cadence::new(Duration::from_secs(1)).unwrap();
    let mut beat = || cadence.wait().unwrap();
    beat();
    let share = cpu_time_of(|| {
        for _ in 0..BEATS {
            let beat = beat();
            recorder.append(sampler.tick(host, beat).unwrap()).unwrap();
        }
    }) as f64
        / BEATS as f64
        / 1e9;
    let bytes = (recorder.written() - begin) as f64 / (PASSES as u64 + BEATS) as f64 / rows as f64;
    let (whole, recording) = (per_group(&mut whole, rows), per_group(&mut recording, rows));
    println!(
        "  with the slow files every {slow_every} samples {whole:.0} ns, recording {recording:.0} ns and {bytes:.1} bytes (the first record: {:.1}) \
         per group and sample; every second, with the log: {:.2} % of a CPU; {} columns; RSS {} KiB",
        begin as f64 / rows as f64,
        share * 100.0,
        sampler.sample().groups.columns().list().len(),
        resident(),
    );
}

fn per_group(times: &mut [u64], rows: usize) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / rows as f64
}

fn start_probe(path: &Path, sampler: &Sampler<Descriptors>) -> Child {
    let mut probe = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut paths = String::new();
    for file in sampler.open() {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        paths += &format!("{}\n", path.display());
    }
    probe.stdin.as_mut().unwrap().write_all(format!("{paths}\n").as_bytes()).unwrap();
    pass(&mut probe);
    probe
}

fn pass(probe: &mut Child) -> u64 {
    probe.stdin.as_mut().unwrap().write_all(b"g").unwrap();
    let mut took = [0; 8];
    probe.stdout.as_mut().unwrap().read_exact(&mut took).unwrap();
    u64::from_ne_bytes(took)
}

fn cpu_time_of(work: impl FnOnce()) -> u64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let start = now();
    work();
    now() - start
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn make(kernel: &Real, count: usize) {
    for at in kernel.hierarchies().unwrap().iter().filter(|at| at.name.is_none()) {
        for group in std::iter::once(TOP.to_owned()).chain((0..count).map(|n| format!("{TOP}/g{n:04}"))) {
            if !kernel.exists(at, &group) {
                kernel.mkdir(at, &group).unwrap();
            }
        }
    }
}

fn remove(kernel: &Real) {
    for at in kernel.hierarchies().unwrap() {
        let groups = kernel.descendants(&at, TOP).unwrap_or_default();
        for group in groups.iter().rev().map(String::as_str).chain([TOP]) {
            // a hierarchy without it
            let _ = kernel.rmdir(&at, group);
        }
    }
}
