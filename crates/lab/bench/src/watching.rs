//! Our programs that watch groups beside `systemd-cgtop` or an earlier build of ours: the same groups, once a second, one
//! program at a time in turns. Counted is the CPU time of the whole program once it runs evenly, the most memory that it had,
//! and what the recorder writes. Of the live page's server, the peer is `watch`.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use monitor::RecorderOptions;

use crate::{
    Selection,
    browsing::Page,
    followed::{Followed, bound},
    groups::{GROUP, Groups, one_of_many},
    measure::{Done, Numbers, Said, in_turns, show},
    sampled,
};

/// Groups that are watched, and how many of them do something each second.
const GROUPS: usize = 1_000;
const BUSY: usize = 50;

/// The largest ratio to `systemd-cgtop` that we want, share of a CPU in percent, MiB, and bytes per group and second on disk.
const GOAL: f64 = 0.25;
const GOAL_PERCENT: f64 = 2.0;
const GOAL_MEMORY: f64 = 40.0;
const GOAL_BYTES: f64 = 60.0;
/// The largest share of a CPU in percent that the page's server may take beside sampling.
const GOAL_SERVER: f64 = 1.0;

const TURNS: usize = 3;
/// What is not counted of each turn: files are opened, and all figures read.
const BEGIN: Duration = Duration::from_secs(4);
/// What is counted: at least one turn of the figures of 1,000 groups that are read less often.
const TIME: Duration = Duration::from_secs(40);

/// A program that watches, and the command of it; `None`: systemd's.
type Side<'p> = Option<(&'p Path, &'static str)>;

/// What one side needed.
struct Observed {
    /// Milliseconds of CPU time per second, of each turn.
    cpu: Numbers,
    /// The most that it had, in MiB.
    memory: f64,
    /// Written to the log per group and second.
    bytes: f64,
}

pub fn rows(selection: &Selection) -> Done {
    // samples are taken by this program itself
    if selection.before.is_none() {
        sampled::rows(selection)?;
    }
    let row = |command: &str| format!("{command} at 1 Hz, {GROUPS} groups, CPU ms per s");
    let wanted: Vec<_> =
        ["record", "watch"].into_iter().filter(|command| selection.wants(&row(command))).collect();
    if !wanted.is_empty() {
        let of = |program| wanted.iter().map(move |command| Some((program, *command)));
        let mut sides: Vec<Side<'_>> = of(&*selection.program).collect();
        match selection.before() {
            Some(before) => sides.extend(of(before)),
            None => sides.push(None),
        }
        let found = measure(&sides)?;
        let (ours, peers) = found.split_at(wanted.len());
        for (command, (ours, peer)) in wanted.iter().zip(ours.iter().zip(peers.iter().cycle())) {
            let more = format!("  {:.2} % of a CPU, goal {GOAL_PERCENT}", ours.cpu.median / 10.0);
            show(&row(command), [&ours.cpu, &peer.cpu], 2, selection.goal(GOAL), &more);
            show_beside(command, ours, peer);
        }
    }
    if selection.wants(&row("web")) { served(selection, &row("web")) } else { Ok(()) }
}

fn show_beside(command: &str, ours: &Observed, peer: &Observed) {
    let beside = |what: &str, ours: f64, peer: f64, more: &str| {
        println!("{:40} {ours:>26.1} {peer:>26.1}   {more}", format!("{command}, {what}"));
    };
    beside("memory in MiB", ours.memory, peer.memory, &format!("at most {GOAL_MEMORY}"));
    if ours.bytes > 0.0 {
        let more = format!("at most {GOAL_BYTES}  {BUSY} of the groups are busy each second");
        beside("bytes per group and second", ours.bytes, peer.bytes, &more);
    }
}

/// What the server of the live page takes, with one page open.
fn served(selection: &Selection, row: &str) -> Done {
    let program = &*selection.program;
    let mut sides = vec![Some((program, "web")), Some((program, "watch"))];
    sides.extend(selection.before().map(|before| Some((before, "web"))));
    let found = measure(&sides)?;
    let [ours, watch, before @ ..] = &found[..] else { return Err("a side is missing".to_owned()) };
    let percent = (ours.cpu.median - watch.cpu.median) / 10.0;
    let more = format!("  {percent:.2} % of a CPU beside sampling, goal {GOAL_SERVER}; the peer is watch");
    show(row, [&ours.cpu, &watch.cpu], 2, None, &more);
    if let Some(before) = before.first() {
        show(&format!("{row}, before"), [&ours.cpu, &before.cpu], 2, None, "");
    }
    println!("{:40} {:>26.1}", "web, memory in MiB", ours.memory);
    Ok(())
}

/// All sides, in their order.
fn measure(sides: &[Side<'_>]) -> Done<Vec<Observed>> {
    let groups = Groups::new()?;
    let _busy = busy(&groups)?;
    let logs = tempfile::tempdir_in("/var/tmp").said("/var/tmp")?;
    let mut found = vec![[const { Vec::new() }; 3]; sides.len()];
    in_turns(TURNS, sides.len(), |turn, side| {
        let log = logs.path().join(format!("{turn}-{side}"));
        let mut command = command(&groups, sides[side], &log);
        let (mut program, page) = match sides[side] {
            Some((_, "web")) => {
                let (program, output) = Followed::start_to_read(&mut command)?;
                (program, Some(Page::open(output)?))
            }
            _ => (Followed::start(&mut command)?, None),
        };
        program.go_on(BEGIN)?;
        let (key, begin) = (size(&log), (Instant::now(), program.cpu()?));
        program.go_on(TIME)?;
        let seconds = begin.0.elapsed().as_secs_f64();
        let cpu = program.cpu()?.saturating_sub(begin.1).as_secs_f64() * 1e3 / seconds;
        let memory = program.resident()? as f64 / f64::from(1 << 20);
        let bytes = per_group_and_second(key, size(&log), seconds);
        found[side].iter_mut().zip([cpu, memory, bytes]).for_each(|(of, number)| of.push(number));
        page.map_or(Ok(()), Page::close)
    })?;
    let observed = |[cpu, memory, bytes]: [Vec<f64>; 3]| Observed {
        cpu: Numbers::of(cpu),
        memory: memory.into_iter().fold(0.0, f64::max),
        bytes: Numbers::of(bytes).median,
    };
    Ok(found.into_iter().map(observed).collect())
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

/// The groups, in some of which a shell starts a program each second.
fn busy(groups: &Groups) -> Done<Vec<Followed>> {
    groups.make_many(GROUPS)?;
    groups.fill_cpuset(GROUP)?;
    let mut busy = Vec::new();
    for number in (1..GROUPS).step_by(GROUPS / BUSY) {
        let name = one_of_many(number);
        groups.fill_cpuset(&name)?;
        let one = Followed::start(&mut bound(&["sh", "-c", "while sleep 1; do :; done"]))?;
        groups.put(&name, one.number())?;
        busy.push(one);
    }
    Ok(busy)
}

fn command(groups: &Groups, side: Side<'_>, log: &Path) -> Command {
    let mut command = bound(&[]);
    match side {
        Some((program, name)) => {
            command.arg(program).args([name, GROUP]);
            if name != "web" {
                command.args(["--interval", "1s"]);
            }
            if name == "record" {
                command.arg("--directory").arg(log);
            }
        }
        None => {
            command.args(["systemd-cgtop", "--batch", "--raw", "--delay=1", "--iterations=1000"]);
            // as systemd names a group: from the root of every hierarchy
            let name = kernel::GroupName::new(GROUP).ok();
            let seat = name.and_then(|name| groups.host().seats(&name).first().map(|seat| seat.path.clone()));
            command.arg(Path::new("/").join(seat.unwrap_or_else(|| GROUP.to_owned())));
        }
    }
    command
}
