//! The daemon with a hundred groups whose CPUs or quotas follow their load, on this machine's real hierarchies: its CPU time,
//! and that of the thread that resizes. Beside it, in turns, an earlier build, or itself with the same groups and nothing that
//! follows a load. Nothing changes while it is measured: what is counted is the looking.

use std::{
    fmt::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    followed::{Followed, Machine},
    groups::{GROUP, Groups, one_of_many},
    measure::Numbers,
};

/// Groups whose load is followed.
pub const GROUPS: usize = 100;
/// The largest share of a CPU that the thread should need.
pub const GOAL: f64 = 0.005;

/// The argument with which this program is the work of a group.
pub const WORK: &str = "--work";
/// Groups with such work; all others have a process that sleeps.
const BUSY: usize = 5;
/// The work: threads, each busy for the first time in every other.
const THREADS: u32 = 8;
const WORKS: Duration = Duration::from_micros(250);
const EVERY: Duration = Duration::from_millis(20);

const TURNS: usize = 3;
/// What is not counted of each turn: groups are made, files opened.
const BEGIN: Duration = Duration::from_secs(5);
const TIME: Duration = Duration::from_secs(20);

/// What follows the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The CPUs of general groups, which two CPUs are enough for.
    Cpus,
    Quotas,
}

/// Both sides of a row: milliseconds of CPU time per second, of each turn.
pub struct Sides {
    pub ours: Numbers,
    pub peer: Numbers,
    /// Of the thread alone.
    pub thread: Numbers,
    pub peers_thread: Numbers,
}

/// The groups with their processes.
pub struct Scene {
    // in the order of their ends
    _processes: Vec<Process>,
    _groups: Groups,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Cpus, Kind::Quotas];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpus => "elastic CPU sets",
            Kind::Quotas => "elastic quotas",
        }
    }

    /// A layout of all groups; `follows`: else they have fixed values.
    fn layout(self, follows: bool) -> String {
        let mut text = String::new();
        if self == Kind::Cpus && follows {
            text.push_str("[power]\nsaving = true\n");
        }
        let setting = match (self, follows) {
            (Kind::Cpus, _) => "\"pids.max\" = 1000",
            (Kind::Quotas, true) => "\"cpu.max\" = { min = \"40ms/100ms\", max = \"80ms/100ms\" }",
            (Kind::Quotas, false) => "\"cpu.max\" = \"40ms/100ms\"",
        };
        for number in 1..=GROUPS {
            let _ = writeln!(text, "[groups.\"{}\"]\n{setting}", one_of_many(number)); // a String takes everything
        }
        text
    }
}

impl Scene {
    pub fn new() -> Result<Scene, String> {
        let groups = Groups::new()?;
        groups.make_many(GROUPS + 1)?;
        groups.fill_cpuset(GROUP)?;
        let mut processes = Vec::new();
        for number in 1..=GROUPS {
            let name = one_of_many(number);
            groups.fill_cpuset(&name)?;
            let one = if number <= BUSY { Process::work()? } else { Process::sleeper()? };
            groups.put(&name, one.0.id())?;
            processes.push(one);
        }
        Ok(Scene { _processes: processes, _groups: groups })
    }

    /// With an earlier build, the peer is that one with the same layout.
    pub fn measure(&self, kind: Kind, program: &Path, before: Option<&Path>) -> Result<Sides, String> {
        let sides = [(program, true), (before.unwrap_or(program), before.is_some())];
        let [mut all, mut thread]: [[Vec<f64>; 2]; 2] = Default::default();
        for turn in 0..TURNS {
            for side in [turn % 2, 1 - turn % 2] {
                let (program, follows) = sides[side];
                let machine = Machine::new()?;
                machine.write("layout.toml", &kind.layout(follows))?;
                let layout = machine.path("layout.toml");
                let layout = layout.to_str().ok_or("a directory's name is no text")?;
                let mut daemon =
                    machine.daemon(program, &["--layout", layout, "--check", "0", "--no-strict"])?;
                daemon.go_on(BEGIN)?;
                let now =
                    |daemon: &Followed| Ok::<_, String>((daemon.cpu()?, daemon.cpu_of_threads("elastic")?));
                let (began, before) = (Instant::now(), now(&daemon)?);
                daemon.go_on(TIME)?;
                let (seconds, after) = (began.elapsed().as_secs_f64(), now(&daemon)?);
                let per_second =
                    |after: Duration, before| after.saturating_sub(before).as_secs_f64() * 1e3 / seconds;
                all[side].push(per_second(after.0, before.0));
                thread[side].push(per_second(after.1, before.1));
            }
        }
        let [ours, peer] = all.map(Numbers::of);
        let [thread, peers_thread] = thread.map(Numbers::of);
        Ok(Sides { ours, peer, thread, peers_thread })
    }
}

/// The work of a busy group; it ends with its process.
pub fn work() -> ! {
    for _ in 1..THREADS {
        std::thread::spawn(|| work_alone());
    }
    work_alone()
}

fn work_alone() -> ! {
    loop {
        let began = Instant::now();
        while began.elapsed() < WORKS {
            std::hint::spin_loop();
        }
        sleep(EVERY.saturating_sub(began.elapsed()));
    }
}

/// A process of a group; killed when dropped.
struct Process(Child);

impl Process {
    fn work() -> Result<Process, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let program = program.to_str().ok_or("this program's name is no text")?;
        Process::start(&[program, WORK])
    }

    fn sleeper() -> Result<Process, String> {
        Process::start(&["sleep", "86400"])
    }

    fn start(words: &[&str]) -> Result<Process, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(words);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Process).map_err(|error| format!("{}: {error}", words[0]))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
