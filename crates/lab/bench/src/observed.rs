//! Our programs that watch groups beside `systemd-cgtop`: the same groups, once a second, one program at a time in turns.
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
    followed::Followed,
    groups::{GROUP, Groups, one_of_many},
    interrupt,
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

const TURNS: usize = 3;
/// What is not counted of each turn: files are opened, and all figures read.
const BEGIN: Duration = Duration::from_secs(4);
/// What is counted: at least one turn of the figures of 1,000 groups that are read less often.
const TIME: Duration = Duration::from_secs(40);

/// A program that watches.
#[derive(Clone, Copy)]
enum Side {
    Record,
    Watch,
    Peer,
}

/// Milliseconds of CPU time per second, of each turn.
pub struct Observed {
    pub record: Numbers,
    pub watch: Numbers,
    pub peer: Numbers,
    /// The most that `record` and `watch` had, in bytes.
    pub memory: [u64; 2],
    /// Written by `record` per group and second.
    pub bytes: f64,
}

struct Scene<'p> {
    // in the order of their ends
    _busy: Vec<Busy>,
    groups: Groups,
    logs: TempDir,
    program: &'p Path,
}

pub fn measure(program: &Path) -> Result<Observed, String> {
    let scene = Scene::new(program)?;
    let mut spent: [Vec<f64>; 3] = Default::default();
    let (mut memory, mut bytes) = ([0; 3], Vec::new());
    for turn in 0..TURNS {
        let mut sides = [Side::Record, Side::Watch, Side::Peer];
        sides.rotate_left(turn);
        for side in sides {
            let log = scene.logs.path().join(turn.to_string());
            let mut program = Followed::start(&mut scene.command(side, &log))?;
            rest(&mut program, BEGIN)?;
            let (key, begin) = (size(&log), (Instant::now(), program.cpu()?));
            rest(&mut program, TIME)?;
            let seconds = begin.0.elapsed().as_secs_f64();
            let cpu = program.cpu()?.saturating_sub(begin.1);
            spent[side as usize].push(cpu.as_secs_f64() * 1e3 / seconds);
            let most = &mut memory[side as usize];
            *most = program.resident()?.max(*most);
            if let Side::Record = side {
                bytes.push(per_group_and_second(key, size(&log), seconds));
            }
        }
    }
    let [record, watch, peer] = spent.map(Numbers::of);
    let memory = [memory[0], memory[1]];
    Ok(Observed { record, watch, peer, memory, bytes: Numbers::of(bytes).median })
}

/// What grew in that time, and the share of the record of everything that is written now and then, which is most of what
/// is there at the begin.
fn per_group_and_second(key: u64, all: u64, seconds: f64) -> f64 {
    let of_keys = key as f64 / RecorderOptions::default().key_every as f64;
    (all.saturating_sub(key) as f64 / seconds + of_keys) / GROUPS as f64
}

fn rest(program: &mut Followed, time: Duration) -> Result<(), String> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        program.check()?;
        interrupt::check()?;
    }
    Ok(())
}

/// Bytes of all files of a log; nothing where none is.
fn size(log: &Path) -> u64 {
    let files = fs::read_dir(log).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

impl Scene<'_> {
    fn new(program: &Path) -> Result<Scene<'_>, String> {
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
        Ok(Scene { _busy: busy, groups, logs, program })
    }

    fn command(&self, side: Side, log: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        match side {
            Side::Record => {
                command.arg(self.program).args(["record", GROUP, "--interval", "1s", "--directory"]).arg(log);
            }
            Side::Watch => {
                command.arg(self.program).args(["watch", GROUP, "--interval", "1s"]);
            }
            Side::Peer => {
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
