//! Our programs that watch groups beside `systemd-cgtop` or an earlier build of ours: the same groups, once a second, one program at a time in turns.
//! Counted is the CPU time of the whole program once it runs evenly, the most memory that it had, and what the recorder
//! writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use monitor::RecorderOptions;
use tempfile::TempDir;

use crate::{
    browsing::Page,
    followed::Followed,
    groups::{GROUP, Groups, one_of_many},
    measure::Numbers,
};

/// Groups that are watched, and how many of them do something each second.
pub const GROUPS: usize = 1_000;
pub const BUSY: usize = 50;

/// The largest ratio to `systemd-cgtop` that we want, share of a CPU, memory, and bytes per group and second on disk.
pub const GOAL: f64 = 0.25;
pub const GOAL_SHARE: f64 = 0.02;
pub const GOAL_MEMORY: u64 = 40 << 20;
pub const GOAL_BYTES: f64 = 60.0;
/// The largest share of a CPU that the page's server may take beside sampling.
pub const GOAL_SERVER: f64 = 0.01;

const TURNS: usize = 3;
/// What is not counted of each turn: files are opened, and all figures read.
const BEGIN: Duration = Duration::from_secs(4);
/// What is counted: at least one turn of the figures of 1,000 groups that are read less often.
const TIME: Duration = Duration::from_secs(40);

/// A program that watches.
pub enum Side {
    Record(PathBuf),
    Watch(PathBuf),
    /// `ringfence web` with one page open.
    Web(PathBuf),
    Cgtop,
}

/// What one side needed.
pub struct Observed {
    /// Milliseconds of CPU time per second, of each turn.
    pub cpu: Numbers,
    /// The most that it had, in bytes.
    pub memory: u64,
    /// Written to the log per group and second.
    pub bytes: f64,
}

struct Scene {
    // in the order of their ends
    _busy: Vec<Busy>,
    groups: Groups,
    logs: TempDir,
}

/// All sides, in their order.
pub fn measure(sides: &[Side]) -> Result<Vec<Observed>, String> {
    let scene = Scene::new()?;
    let [mut spent, mut bytes] = [const { Vec::new() }; 2].map(|of: Vec<f64>| vec![of; sides.len()]);
    let mut memory = vec![0; sides.len()];
    for turn in 0..TURNS {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        order.rotate_left(turn % sides.len());
        for side in order {
            let log = scene.logs.path().join(format!("{turn}-{side}"));
            let (mut program, page) = scene.start(&sides[side], &log)?;
            program.go_on(BEGIN)?;
            let (key, begin) = (size(&log), (Instant::now(), program.cpu()?));
            program.go_on(TIME)?;
            let seconds = begin.0.elapsed().as_secs_f64();
            let cpu = program.cpu()?.saturating_sub(begin.1);
            spent[side].push(cpu.as_secs_f64() * 1e3 / seconds);
            memory[side] = program.resident()?.max(memory[side]);
            bytes[side].push(per_group_and_second(key, size(&log), seconds));
            page.map_or(Ok(()), Page::close)?;
        }
    }
    let each = spent.into_iter().zip(memory).zip(bytes);
    Ok(each
        .map(|((spent, memory), bytes)| Observed {
            cpu: Numbers::of(spent),
            memory,
            bytes: Numbers::of(bytes).median,
        })
        .collect())
}

/// What grew in that time, and the share of the record of everything that is written now and then, which is most of what
/// is there at the begin.
fn per_group_and_second(key: u64, all: u64, seconds: f64) -> f64 {
    let of_keys = key as f64 / RecorderOptions::default().key_every as f64;
    (all.saturating_sub(key) as f64 / seconds + of_keys) / GROUPS as f64
}

/// Bytes of all files of a log; nothing where none is.
fn size(log: &Path) -> u64 {
    let files = fs::read_dir(log).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

impl Scene {
    fn new() -> Result<Scene, String> {
        let groups = Groups::new()?;
        groups.make_many(GROUPS)?;
        let logs = tempfile::tempdir_in("/var/tmp").map_err(|error| format!("/var/tmp: {error}"))?;
        groups.fill_cpuset(GROUP)?;
        let mut busy = Vec::new();
        for number in (1..GROUPS).step_by(GROUPS / BUSY) {
            let name = one_of_many(number);
            groups.fill_cpuset(&name)?;
            let one = Busy::start()?;
            groups.put(&name, one.0.id())?;
            busy.push(one);
        }
        Ok(Scene { _busy: busy, groups, logs })
    }

    fn start(&self, side: &Side, log: &Path) -> Result<(Followed, Option<Page>), String> {
        let mut command = self.command(side, log);
        if !matches!(side, Side::Web(_)) {
            return Ok((Followed::start(&mut command)?, None));
        }
        let (program, output) = Followed::start_to_read(&mut command)?;
        Ok((program, Some(Page::open(output)?)))
    }

    fn command(&self, side: &Side, log: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        match side {
            Side::Record(program) => {
                command.arg(program).args(["record", GROUP, "--interval", "1s", "--directory"]).arg(log);
            }
            Side::Watch(program) => {
                command.arg(program).args(["watch", GROUP, "--interval", "1s"]);
            }
            Side::Web(program) => {
                command.arg(program).args(["web", GROUP]);
            }
            Side::Cgtop => {
                command.args(["systemd-cgtop", "--batch", "--raw", "--delay=1", "--iterations=1000"]);
                command.arg(self.peers_path());
            }
        }
        command
    }

    /// As systemd names a group: from the root of every hierarchy.
    fn peers_path(&self) -> PathBuf {
        let seat = kernel::GroupName::new(GROUP)
            .ok()
            .and_then(|name| self.groups.host().seats(&name).first().map(|seat| seat.path.clone()));
        Path::new("/").join(seat.unwrap_or_else(|| GROUP.to_owned()))
    }
}

/// A shell that starts a program each second; killed when dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Result<Busy, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "sh", "-c", "while sleep 1; do :; done"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Busy).map_err(|error| format!("sh: {error}"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
