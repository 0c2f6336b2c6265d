//! Groups whose CPUs or quotas follow their load. A tick of the policy alone; the daemon with a hundred of them on this
//! machine's real hierarchies, beside an earlier build, or itself with the same groups and nothing that follows a load; and how
//! soon a group has more CPUs after it began to work all at once, from nothing.

use std::{
    fmt::Write as _,
    thread::sleep,
    time::{Duration, Instant},
};

use settings::Controller;

use crate::{
    Selection,
    followed::{Followed, Machine, bound},
    groups::{GROUP, Groups, one_of_many},
    measure::{Done, Numbers, Said, in_turns, show, show_alone, until},
    planning,
};

/// Groups whose load is followed.
const GROUPS: usize = 100;
/// The largest share of a CPU that the thread should need.
const GOAL: f64 = 0.005;

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

/// What follows the load, before the groups and of each: first followed, then with a fixed value. Two CPUs are enough for
/// the general groups.
const KINDS: [(&str, &str, [&str; 2]); 2] = [
    ("elastic CPU sets", "[power]\nsaving = true\n", ["\"pids.max\" = 1000"; 2]),
    (
        "elastic quotas",
        "",
        ["\"cpu.max\" = { min = \"40ms/100ms\", max = \"80ms/100ms\" }", "\"cpu.max\" = \"40ms/100ms\""],
    ),
];

const BURST: &str = "cold burst until its set is larger";
const BURSTS: u32 = 12;
/// Processes of a burst, each of which wants a CPU.
const PROCESSES: usize = 4;
/// A burst without a larger set by then has none.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the way back to the first set may take: quiet seconds, and more of them after each step that was undone.
const BACK: Duration = Duration::from_secs(120);
/// After a shrink, growth undoes it for this time, which is another case.
const SETTLED: Duration = Duration::from_millis(2500);
/// The median that a burst should take, where the kernel counts waiting by group and where it does not.
const BURST_GOALS: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(250)];

pub fn rows(selection: &Selection) -> Done {
    planning::ticks(selection)?;
    let row = |name: &str| format!("daemon with {GROUPS} {name}, CPU ms per s");
    let kinds: Vec<_> = KINDS.into_iter().filter(|(name, ..)| selection.wants(&row(name))).collect();
    if !kinds.is_empty() {
        let _scene = scene()?;
        for kind in kinds {
            let [(ours, thread), (peer, peers_thread)] = looks(selection, kind)?;
            let share = |thread: &Numbers| format!("{:.2} % of a CPU", thread.median / 10.0);
            let peers =
                selection.before().map(|_| format!(" / {}", share(&peers_thread))).unwrap_or_default();
            let more = format!("  its thread {}{peers}, goal {:.2} %", share(&thread), GOAL * 100.0);
            show(&row(kind.0), [&ours, &peer], 2, None, &more);
        }
    }
    if selection.wants(BURST) { bursts(selection) } else { Ok(()) }
}

/// The groups with their processes, which end first.
fn scene() -> Done<(Vec<Followed>, Groups)> {
    let program = std::env::current_exe().said("this program")?;
    let program = program.to_str().ok_or("this program's name is no text")?;
    let groups = Groups::new()?;
    groups.make_many(GROUPS + 1)?;
    groups.fill_cpuset(GROUP)?;
    let mut processes = Vec::new();
    for number in 1..=GROUPS {
        let name = one_of_many(number);
        groups.fill_cpuset(&name)?;
        let words = if number <= BUSY { [program, WORK] } else { ["sleep", "86400"] };
        let one = Followed::start(&mut bound(&words))?;
        groups.put(&name, one.number())?;
        processes.push(one);
    }
    Ok((processes, groups))
}

/// Milliseconds of CPU time per second by side: of the daemon, and of the thread that resizes. Nothing changes meanwhile:
/// what is counted is the looking.
fn looks(
    selection: &Selection,
    (_, power, settings): (&str, &str, [&str; 2]),
) -> Done<[(Numbers, Numbers); 2]> {
    let layout = |is_followed: bool| {
        let mut text = if is_followed { power.to_owned() } else { String::new() };
        for number in 1..=GROUPS {
            let setting = settings[usize::from(!is_followed)];
            let _ = writeln!(text, "[groups.\"{}\"]\n{setting}", one_of_many(number)); // a String takes everything
        }
        text
    };
    let before = selection.before();
    let sides = [(&*selection.program, true), (before.unwrap_or(&selection.program), before.is_some())];
    let mut found: [[Vec<f64>; 2]; 2] = Default::default();
    in_turns(TURNS, 2, |_, side| {
        let (program, is_followed) = sides[side];
        let machine = Machine::new()?;
        let mut daemon = machine.divided(program, &layout(is_followed))?;
        daemon.go_on(BEGIN)?;
        let now = |daemon: &Followed| Ok::<_, String>([daemon.cpu()?, daemon.cpu_of_threads("elastic")?]);
        let (began, before) = (Instant::now(), now(&daemon)?);
        daemon.go_on(TIME)?;
        let (seconds, after) = (began.elapsed().as_secs_f64(), now(&daemon)?);
        for (of, (after, before)) in found[side].iter_mut().zip(after.into_iter().zip(before)) {
            of.push(after.saturating_sub(before).as_secs_f64() * 1e3 / seconds);
        }
        Ok(())
    })?;
    Ok(found.map(|[all, thread]| (Numbers::of(all), Numbers::of(thread))))
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

/// From the moment that its processes begin to the moment that the kernel shows the larger set.
fn bursts(selection: &Selection) -> Done {
    let groups = Groups::new()?;
    groups.make_many(1)?;
    groups.fill_cpuset(GROUP)?;
    let name = one_of_many(1);
    let machine = Machine::new()?;
    let layout = format!("[groups.\"{name}\"]\ncpus = {{ min = 1, max = {PROCESSES}, weight = 100 }}\n");
    let mut daemon = machine.divided(&selection.program, &layout)?;
    daemon.go_on(SETTLED)?;
    let place = groups.place(&name, Controller::Cpuset)?.directory;
    let file = place.join("cpuset.cpus");
    let set = || std::fs::read_to_string(&file).said(file.display());
    let first = set()?;
    let mut times = Vec::new();
    for burst in 0..BURSTS {
        let words = ["sh", "-c", "read -r word; while :; do :; done"];
        let processes = (0..PROCESSES).map(|_| Followed::start_waiting(&mut bound(&words)));
        let mut processes: Vec<Followed> = processes.collect::<Result<_, _>>()?;
        processes.iter().try_for_each(|process| groups.put(&name, process.number()))?;
        // quiet again, and at another moment between two samples each time
        daemon.go_on(SETTLED + Duration::from_millis(37) * burst)?;
        let began = Instant::now();
        processes.iter_mut().try_for_each(Followed::begin)?;
        let look = Duration::from_millis(1);
        until(PATIENCE, look, "larger set", || Ok(set()? != first))?;
        times.push(began.elapsed());
        drop(processes);
        until(BACK, look, "first set again", || Ok(set()? == first))?;
        daemon.check()?;
    }
    let [counted, uncounted] = BURST_GOALS;
    let goal = if place.join("cpu.pressure").exists() { counted } else { uncounted };
    show_alone(BURST, &times, goal, "");
    Ok(())
}
