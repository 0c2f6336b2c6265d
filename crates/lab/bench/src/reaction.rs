//! How soon a group whose CPUs follow its load has more of them after it began to work all at once, from nothing: from the moment
//! that its processes begin to the moment that the kernel shows the larger set. The daemon is the real one, and so are the group's
//! hierarchies.

use std::{
    io::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use settings::Controller;

use crate::{
    followed::{Followed, Machine},
    groups::{GROUP, Groups, one_of_many},
    interrupt,
    measure::Times,
};

const BURSTS: usize = 12;
/// Processes of a burst, each of which wants a CPU.
const PROCESSES: usize = 4;

/// Between looks at the group's set.
const LOOK: Duration = Duration::from_millis(1);
/// A burst without a larger set by then has none.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the way back to the first set may take: quiet seconds, and more of them after each step that was undone.
const BACK: Duration = Duration::from_secs(120);
/// After a shrink, growth undoes it for this time, which is another case.
const SETTLED: Duration = Duration::from_millis(2500);

/// The median that a burst should take, where the kernel counts waiting by group and where it does not.
pub const GOALS: [(bool, Duration); 2] =
    [(true, Duration::from_millis(150)), (false, Duration::from_millis(250))];

/// Of several bursts, and whether the kernel counts waiting by group.
pub fn measure(program: &Path) -> Result<(Times, bool), String> {
    let groups = Groups::new()?;
    groups.make_many(1)?;
    groups.fill_cpuset(GROUP)?;
    let name = one_of_many(1);
    let machine = Machine::new()?;
    machine.write(
        "layout.toml",
        &format!("[groups.\"{name}\"]\ncpus = {{ min = 1, max = {PROCESSES}, weight = 100 }}\n"),
    )?;
    let layout = machine.path("layout.toml");
    let layout = layout.to_str().ok_or("a directory's name is no text")?;
    let mut daemon = machine.daemon(program, &["--layout", layout, "--check", "0", "--no-strict"])?;
    daemon.go_on(SETTLED)?;
    let place = groups.place(&name, Controller::Cpuset)?.directory;
    let set = || {
        let file = place.join("cpuset.cpus");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok::<_, String>(text.trim().to_owned())
    };
    let first = set()?;
    let mut times = Vec::new();
    for burst in 0..BURSTS {
        let processes = (0..PROCESSES).map(|_| Waiting::start());
        let mut processes: Vec<Waiting> = processes.collect::<Result<_, _>>()?;
        for process in &processes {
            groups.put(&name, process.0.id())?;
        }
        // quiet again, and at another moment between two samples each time
        daemon.go_on(SETTLED + Duration::from_millis(37 * burst as u64))?;
        let began = Instant::now();
        processes.iter_mut().try_for_each(Waiting::begin)?;
        until(&mut daemon, PATIENCE, "a larger set", || Ok(set()? != first))?;
        times.push(began.elapsed());
        drop(processes);
        until(&mut daemon, BACK, "the first set again", || Ok(set()? == first))?;
    }
    let counts = place.join("cpu.pressure").exists();
    drop(daemon);
    Ok((Times::of(times), counts))
}

fn until(
    daemon: &mut Followed,
    limit: Duration,
    what: &str,
    is_so: impl Fn() -> Result<bool, String>,
) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(format!("no {what} within {} s", limit.as_secs()));
        }
        interrupt::check()?;
        sleep(LOOK);
    }
    daemon.check()
}

/// A process that works once it may; killed when dropped.
struct Waiting(Child);

impl Waiting {
    fn start() -> Result<Waiting, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "sh", "-c", "read -r word; while :; do :; done"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Waiting).map_err(|error| format!("sh: {error}"))
    }

    fn begin(&mut self) -> Result<(), String> {
        let word = self.0.stdin.as_mut().map(|input| input.write_all(b"begin\n"));
        word.ok_or("no input")?.map_err(|error| format!("sh: {error}"))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
