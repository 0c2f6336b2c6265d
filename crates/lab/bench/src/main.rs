//! `make bench`: times commands and daemons against their peers. The two sides of a row alternate run by run, so that
//! whatever else the machine does hits both; medians and their ratio are printed, and decide nothing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints its table")]

mod groups;
mod interrupt;
mod measure;
mod selection;

mod applies;
mod planning;
mod rows;
mod ticking;

mod followed;
mod probes;

mod classifying;
mod reaction;
mod resizing;
mod strict;

mod browsing;
mod observed;
mod overhead;
mod sampled;

mod cyclic;

use std::{path::PathBuf, process::ExitCode};

use measure::{Numbers, Times, run as run_command};
use observed::Side;
use rows::{Row, Rows};
use selection::{Part, Selection};

/// Runs per side and row of one-shot commands; the first of each are not counted.
const RUNS: usize = 400;
const WARM_UP: usize = 20;
/// Bursts that ours, and libcgroup's daemon, get through.
const BURSTS: [usize; 2] = [10, 2];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(resizing::WORK) {
        resizing::work();
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let selection = Selection::of(std::env::args().skip(1))?;
    interrupt::watch()?;
    println!("interleaved; medians in microseconds, and the middle half of the times\n");
    println!("{:40} {:>26} {:>26} {:>6} {:>5}", "row", "ours", "peer", "ratio", "goal");
    let mut good = true;
    for part in Part::ALL.into_iter().filter(|part| selection.holds(*part)) {
        let done = match part {
            Part::Commands => one_shots(&selection),
            Part::Apply => applies(&selection),
            Part::Plan => planning(),
            Part::Elastic => ticks(&selection),
            Part::Daemon => daemon(&selection),
            Part::Burst => bursts(&selection),
            Part::Strict => strict(&selection),
            Part::Watch => watching(&selection).and_then(|()| served(&selection)),
            Part::Lab => lab(&selection),
            Part::Cyclic => wake_ups(&selection),
        };
        if let Err(error) = done {
            eprintln!("bench: {error}");
            good = false;
        }
        if interrupt::check().is_err() {
            return Ok(false);
        }
    }
    Ok(good)
}

fn one_shots(selection: &Selection) -> Result<(), String> {
    let rows = Rows::set_up(&selection.program, selection.before.as_deref())?;
    for row in rows.rows.iter().filter(|row| selection.wants(row.name)) {
        match measure(row) {
            Ok(Sides { ours, peer, faults: [our_faults, peer_faults] }) => {
                let most = row.most_faults.map(|most| format!(", goal {most}")).unwrap_or_default();
                show(
                    row.name,
                    &ours,
                    &peer,
                    row.goal,
                    &format!("  faults {our_faults} / {peer_faults}{most}"),
                );
            }
            Err(error) => println!("{:40} {error}", row.name),
        }
        interrupt::check()?;
    }
    Ok(())
}

fn applies(selection: &Selection) -> Result<(), String> {
    let program = selection.program.as_str();
    let rows: [(&str, &[&str], Option<f64>); 2] = [
        ("apply", &[program, "apply"], Some(0.2)),
        ("our cgconfigparser", &[program, "cgconfigparser", "-l"], Some(0.5)),
    ];
    let before = selection.before.as_deref();
    let peer_name = if before.is_some() { "before" } else { "cgconfigparser" };
    for (name, command, goal_unchanged) in rows {
        if !selection.wants(name) {
            continue;
        }
        let peer = before.map(|before| [&[before], &command[1..]].concat());
        let [fresh, again] = applies::measure(command, peer.as_deref())?;
        let goal = |goal: f64| before.is_none().then_some(goal);
        show(&format!("{name} / {peer_name}, fresh"), &fresh.ours, &fresh.peer, goal(0.5), "");
        show(
            &format!("{name} / {peer_name}, again"),
            &again.ours,
            &again.peer,
            goal_unchanged.and_then(goal),
            "",
        );
    }
    Ok(())
}

fn planning() -> Result<(), String> {
    let times = planning::measure()?;
    let goal = planning::GOAL.as_micros();
    println!("{:40} {:>26}   at most {goal}", "plan, 500 groups on 1,024 CPUs", times.shown());
    Ok(())
}

/// The policy of elastic groups.
fn ticks(selection: &Selection) -> Result<(), String> {
    for (groups, goal) in ticking::ROWS {
        let row = format!("tick, {groups} elastic groups on 1,024 CPUs");
        if selection.wants(&row) {
            let (times, changes) = ticking::measure(groups)?;
            println!("{row:40} {:>26}   at most {}, {changes} changes", times.shown(), goal.as_micros());
        }
    }
    resizing(selection)?;
    reaction(selection)
}

/// From the beginning of a burst to the larger set.
fn reaction(selection: &Selection) -> Result<(), String> {
    let row = "cold burst until its set is larger";
    if selection.wants(row) {
        let (times, counts) = reaction::measure(&absolute(&selection.program)?)?;
        let goal =
            reaction::GOALS.iter().find(|(with, _)| *with == counts).map_or(0, |(_, goal)| goal.as_micros());
        println!("{row:40} {:>26}   at most {goal}", times.shown());
    }
    Ok(())
}

/// The daemon while it looks after elastic groups, beside itself without any.
fn resizing(selection: &Selection) -> Result<(), String> {
    let row =
        |kind: resizing::Kind| format!("daemon with {} {}, CPU ms per s", resizing::GROUPS, kind.name());
    let kinds: Vec<resizing::Kind> =
        resizing::Kind::ALL.into_iter().filter(|kind| selection.wants(&row(*kind))).collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let program = absolute(&selection.program)?;
    let before = selection.before.as_deref().map(absolute).transpose()?;
    let scene = resizing::Scene::new()?;
    for kind in kinds {
        let resizing::Sides { ours, peer, thread, peers_thread } =
            scene.measure(kind, &program, before.as_deref())?;
        let share = |thread: &Numbers| format!("{:.2} % of a CPU", thread.median / 10.0);
        let peers = if before.is_some() { format!(" / {}", share(&peers_thread)) } else { String::new() };
        let more = format!("  its thread {}{peers}, goal {:.2} %", share(&thread), resizing::GOAL * 100.0);
        show_numbers(&row(kind), &ours, &peer, 2, None, &more);
    }
    Ok(())
}

/// CPU time of the daemons per process.
fn daemon(selection: &Selection) -> Result<(), String> {
    let before = selection.before.as_deref().map(absolute).transpose()?;
    let goal = before.is_none().then_some(classifying::GOAL);
    let scene = classifying::Scene::new(absolute(&selection.program)?, before)?;
    for load in classifying::Load::all() {
        let name = load.name();
        if !selection.wants(&name) {
            continue;
        }
        let [ours, peer] = scene.run(load)?;
        let moved = format!("  moved {:.1} % / {:.1} %", ours.moved(), peer.moved());
        show(&name, &ours.cpu(), &peer.cpu(), goal, &moved);
    }
    Ok(())
}

fn bursts(selection: &Selection) -> Result<(), String> {
    use classifying::{BURST, LONG};
    let scene = classifying::Scene::new(absolute(&selection.program)?, None)?;
    let mut left: [Vec<String>; 2] = Default::default();
    for run in 0..BURSTS[0] {
        for side in (0..2).filter(|side| run < BURSTS[*side]) {
            left[side].push(scene.left_out(side)?.to_string());
        }
    }
    let [ours, peer] = left.map(|left| left.join(" "));
    println!("outside 2 s after a burst of {BURST}, of {LONG}: {ours} / {peer}, goal 0");
    Ok(())
}

/// What strict rules add to a start, beside the bare probe.
fn strict(selection: &Selection) -> Result<(), String> {
    let program = absolute(&selection.program)?;
    for start in strict::Start::all() {
        let row = start.name();
        if !selection.wants(&row) {
            continue;
        }
        let sides = strict::measure(&program, start)?;
        let [probe, ours] = sides.added();
        let [at_main, by_probe] =
            [&sides.ours, &sides.probe].map(|side| format!("{}/{}", side.execs - side.outside, side.execs));
        let free = Times::of(sides.free.times).shown();
        let (ratio, goal) = (ours.median / probe.median, strict::GOAL);
        let [ours, probe] = [ours.shown(), probe.shown()];
        let more = format!("  at main() {at_main} / {by_probe}, without {free}");
        println!("{row:40} {ours:>26} {probe:>26} {ratio:>6.2} {goal:>5.2}{more}");
    }
    Ok(())
}

/// What samples cost beside bare reads, and programs that watch beside systemd's.
fn watching(selection: &Selection) -> Result<(), String> {
    let row = |count: usize| format!("sample of {count} groups, ns per group");
    // samples are taken by this program itself
    let samples = selection.before.is_none();
    if samples && sampled::COUNTS.iter().any(|count| selection.wants(&row(*count))) {
        let (groups, probes) = (groups::Groups::new()?, probes::Probes::compile()?);
        for count in sampled::COUNTS.into_iter().filter(|count| selection.wants(&row(*count))) {
            let sampled::Pair { files, ours, bare } = sampled::measure(&groups, &probes, count)?;
            show_numbers(&row(count), &ours, &bare, 0, sampled::GOAL, &format!("  {files} files"));
        }
    }
    let name = format!("at 1 Hz, {} groups, CPU ms per s", observed::GROUPS);
    let program = absolute(&selection.program)?;
    let before = selection.before.as_deref().map(absolute).transpose()?;
    type Program = fn(PathBuf) -> Side;
    let commands: [(&str, Program); 2] = [("record", Side::Record), ("watch", Side::Watch)];
    let wanted = commands.map(|(command, side)| (format!("{command} {name}"), command, side));
    let wanted: Vec<_> = wanted.into_iter().filter(|(row, ..)| selection.wants(row)).collect();
    let of = |program: &PathBuf| wanted.iter().map(|(_, _, side)| side(program.clone())).collect::<Vec<_>>();
    let mut sides = of(&program);
    match &before {
        _ if wanted.is_empty() => return Ok(()),
        Some(before) => sides.extend(of(before)),
        None => sides.push(Side::Cgtop),
    }
    let found = observed::measure(&sides)?;
    let (ours, peers) = found.split_at(wanted.len());
    for ((row, command, _), (ours, peer)) in wanted.iter().zip(ours.iter().zip(peers.iter().cycle())) {
        let share = observed::GOAL_SHARE * 100.0;
        let more = format!("  {:.2} % of a CPU, goal {share}", ours.cpu.median / 10.0);
        let goal = before.is_none().then_some(observed::GOAL);
        show_numbers(row, &ours.cpu, &peer.cpu, 2, goal, &more);
        let beside = |what: &str, ours: f64, peer: f64, more: &str| {
            println!("{:40} {ours:>26.1} {peer:>26.1}   {more}", format!("{command}, {what}"));
        };
        let [our_memory, memory, most] =
            [ours.memory, peer.memory, observed::GOAL_MEMORY].map(|bytes| bytes as f64 / f64::from(1 << 20));
        beside("memory in MiB", our_memory, memory, &format!("at most {most}"));
        if ours.bytes > 0.0 {
            let (most, busy) = (observed::GOAL_BYTES, observed::BUSY);
            let more = format!("at most {most}  {busy} of the groups are busy each second");
            beside("bytes per group and second", ours.bytes, peer.bytes, &more);
        }
    }
    Ok(())
}

/// What the server of the live page takes, with one page open, beside `watch` or an earlier build.
fn served(selection: &Selection) -> Result<(), String> {
    let row = format!("web at 1 Hz, {} groups, CPU ms per s", observed::GROUPS);
    if !selection.wants(&row) {
        return Ok(());
    }
    let program = absolute(&selection.program)?;
    let before = selection.before.as_deref().map(absolute).transpose()?;
    let mut sides = vec![Side::Web(program.clone()), Side::Watch(program)];
    sides.extend(before.map(Side::Web));
    let found = observed::measure(&sides)?;
    let [ours, watch] = &found[..2] else { return Err("a side is missing".to_owned()) };
    let [share, goal] =
        [(ours.cpu.median - watch.cpu.median) / 1e3, observed::GOAL_SERVER].map(|share| share * 100.0);
    let more = format!("  {share:.2} % of a CPU beside sampling, goal {goal}; the peer is watch");
    show_numbers(&row, &ours.cpu, &watch.cpu, 2, None, &more);
    if let Some(before) = found.get(2) {
        show_numbers(&format!("{row}, before"), &ours.cpu, &before.cpu, 2, None, "");
    }
    println!("{:40} {:>26.1}", "web, memory in MiB", ours.memory as f64 / f64::from(1 << 20));
    Ok(())
}

/// What the lab's samples take from a workload.
fn lab(selection: &Selection) -> Result<(), String> {
    let overhead::Pair { sampled, unsampled } = overhead::measure(&absolute(&selection.program)?)?;
    show_numbers("lab, work per second sampled / not", &sampled, &unsampled, 1, overhead::GOAL, "  or more");
    Ok(())
}

/// How late a real-time thread wakes by the built-in measurement and by cyclictest.
fn wake_ups(selection: &Selection) -> Result<(), String> {
    let names = ["P50", "P99"].map(|quantile| format!("late wake-ups / cyclictest, {quantile}, us"));
    if !names.iter().any(|name| selection.wants(name)) {
        return Ok(());
    }
    let cyclic::Sides { p50, p99 } = cyclic::measure(&selection.program)?;
    for (name, [ours, peer]) in names.iter().zip([p50, p99]) {
        let more = format!("  or {:+.1} us within {}", ours.median - peer.median, cyclic::GOAL_US);
        show_numbers(name, &ours, &peer, 1, cyclic::GOAL, &more);
    }
    Ok(())
}

fn absolute(program: &str) -> Result<PathBuf, String> {
    std::path::absolute(program).map_err(|error| format!("{program}: {error}"))
}

fn show(name: &str, ours: &Times, peer: &Times, goal: Option<f64>, more: &str) {
    let ratio = ours.median.as_secs_f64() / peer.median.as_secs_f64();
    let goal = goal.map_or_else(String::new, |goal| format!("{goal:.2}"));
    println!("{name:40} {:>26} {:>26} {ratio:>6.2} {goal:>5}{more}", ours.shown(), peer.shown());
}

fn show_numbers(
    name: &str,
    ours: &Numbers,
    peer: &Numbers,
    decimals: usize,
    goal: impl Into<Option<f64>>,
    more: &str,
) {
    let goal = goal.into().map_or_else(String::new, |goal| format!("{goal:.2}"));
    let ratio = ours.median / peer.median;
    let [ours, peer] = [ours, peer].map(|numbers| numbers.shown(decimals));
    println!("{name:40} {ours:>26} {peer:>26} {ratio:>6.2} {goal:>5}{more}");
}

/// What both sides of a row took.
struct Sides {
    ours: Times,
    peer: Times,
    /// The medians of page faults, ours first.
    faults: [i64; 2],
}

fn measure(row: &Row) -> Result<Sides, String> {
    let mut runs: [Vec<measure::Run>; 2] = Default::default();
    for run in 0..RUNS + WARM_UP {
        // which side goes first alternates too
        for side in [run % 2, 1 - run % 2] {
            let done = run_command([&row.ours, &row.peer][side])?;
            if run >= WARM_UP {
                runs[side].push(done);
            }
        }
    }
    let faults = runs.each_ref().map(|runs| {
        let mut faults: Vec<i64> = runs.iter().map(|run| run.faults).collect();
        faults.sort_unstable();
        faults[faults.len() / 2]
    });
    let [ours, peer] = runs.map(|runs| Times::of(runs.into_iter().map(|run| run.time).collect()));
    Ok(Sides { ours, peer, faults })
}
