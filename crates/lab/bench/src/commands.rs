//! One-shot commands beside those of libcgroup, on the same groups: times, and page faults.

use std::{os::unix::fs::symlink, path::Path};

use settings::Controller;
use tempfile::TempDir;

use crate::{
    Selection,
    groups::{GROUP, Groups},
    measure::{Done, Numbers, Said, in_turns, run, show},
};

/// Runs per side and row; the first of each are not counted.
const RUNS: usize = 400;
const WARM_UP: usize = 20;
/// Groups for the listing rows.
const MANY: usize = 1_000;

/// A row's name, our command and its peer, the largest ratio that we want, and the most page faults. `{rf}` is our
/// program, `{old}` a directory where it has libcgroup's names, `{group}` a group of three controllers, `{many}` one with
/// [`MANY`] groups in it, and `{dir}` that one's directory.
type Row = (&'static str, &'static str, &'static str, Option<f64>, Option<i64>);

#[rustfmt::skip] // a table
const ROWS: [Row; 10] = [
    ("true, alone and alone", "/bin/true", "/bin/true", None, None),
    ("run / cgexec, cpu", "{rf} run {many} -- /bin/true", "cgexec -g cpu:{many} /bin/true", Some(0.6), None),
    ("run / cgexec, cpu memory pids", "{rf} run {group} -- /bin/true", "cgexec -g cpu,memory,pids:{group} /bin/true", Some(0.6), Some(95)),
    ("set / cgset, one value", "{rf} set --quiet {group} cpu.shares=512", "cgset -r cpu.shares=512 {group}", Some(0.6), Some(75)),
    ("get / cgget, one value", "{rf} get {group} cpu.shares", "cgget -r cpu.shares {group}", None, None),
    ("list / find -type d, 1,000 groups", "{rf} list {many}", "find {dir} -type d", Some(1.2), None),
    ("our cgexec / cgexec, cpu memory pids", "{old}/cgexec -g cpu,memory,pids:{group} /bin/true", "cgexec -g cpu,memory,pids:{group} /bin/true", Some(0.6), None),
    ("our cgset / cgset", "{old}/cgset -r cpu.shares=512 {group}", "cgset -r cpu.shares=512 {group}", Some(0.6), None),
    ("our cgget / cgget", "{old}/cgget -r cpu.shares {group}", "cgget -r cpu.shares {group}", Some(0.6), None),
    ("our lscgroup / lscgroup, 1,000 groups", "{old}/lscgroup cpu:{many}", "lscgroup cpu:{many}", Some(0.4), None),
];

pub fn rows(selection: &Selection) -> Done {
    let groups = Groups::new()?;
    let many = format!("{GROUP}/many");
    groups.make(GROUP, &[Controller::Cpu, Controller::Memory, Controller::Pids])?;
    groups.make(&many, &[Controller::Cpu])?;
    for index in 0..MANY {
        groups.make(&format!("{many}/g{index:04}"), &[Controller::Cpu])?;
    }
    let directory = groups.place(&many, Controller::Cpu)?.directory.display().to_string();
    let old = links(&selection.program)?;
    let before = selection.before().map(|program| Ok::<_, String>((program, links(program)?))).transpose()?;
    let words = |line: &str, program: &Path, old: &TempDir| -> Vec<String> {
        let [program, old] = [program, old.path()].map(|path| path.display().to_string());
        let with: [(&str, &str); 5] = [
            ("{rf}", &program),
            ("{old}", &old),
            ("{group}", GROUP),
            ("{many}", &many),
            ("{dir}", &directory),
        ];
        let fill =
            |word: &str| with.iter().fold(word.to_owned(), |word, (name, text)| word.replace(name, text));
        line.split(' ').map(fill).collect()
    };
    for (name, ours, peer, goal, most) in ROWS.into_iter().filter(|(name, ..)| selection.wants(name)) {
        let is_ours = ours.starts_with('{');
        let (peer, goal) = match before.as_ref().filter(|_| is_ours) {
            Some((before, old)) => (words(ours, before, old), None),
            None => (words(peer, &selection.program, &old), goal),
        };
        match measure(&[words(ours, &selection.program, &old), peer]) {
            Ok([(ours, faults), (peer, peers_faults)]) => {
                let most = most.map(|most| format!(", goal {most}")).unwrap_or_default();
                show(
                    name,
                    [&ours, &peer],
                    0,
                    goal,
                    &format!("  faults {faults:.0} / {peers_faults:.0}{most}"),
                );
            }
            Err(error) => println!("{name:40} {error}"),
        }
        crate::not_interrupted()?;
    }
    Ok(())
}

/// Ours under libcgroup's names.
fn links(program: &Path) -> Done<TempDir> {
    let directory = tempfile::tempdir().said("a temporary directory")?;
    for tool in ["cgexec", "cgset", "cgget", "lscgroup"] {
        symlink(program, directory.path().join(tool)).said(tool)?;
    }
    Ok(directory)
}

/// The times of both, and the medians of their page faults.
fn measure(commands: &[Vec<String>; 2]) -> Done<[(Numbers, f64); 2]> {
    let (mut times, mut faults): ([Vec<_>; 2], [Vec<_>; 2]) = Default::default();
    in_turns(RUNS + WARM_UP, 2, |turn, side| {
        let done = run(&commands[side])?;
        if turn >= WARM_UP {
            times[side].push(done.time);
            faults[side].push(done.faults as f64);
        }
        Ok(())
    })?;
    let [faults, peers_faults] = faults.map(|faults| Numbers::of(faults).median);
    let [times, peers_times] = times.map(|times| Numbers::micros(&times));
    Ok([(times, faults), (peers_times, peers_faults)])
}
