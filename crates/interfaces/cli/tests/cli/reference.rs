//! libcgroup's commands beside Debian's, on the same real groups: each row of a table is one command line, run by
//! both after the same set-up; standard output, whether anything is on standard error, exit status and the groups'
//! state afterwards must be equal. A deliberate difference is a row with its reason and with what ours does instead, and
//! fails once there is no difference any more.
//!
//! Only on hosts with v1 hierarchies and Debian's `cgroup-tools`: elsewhere there is nothing to compare.

mod arguments;
mod reading;
mod row;
mod stage;
mod writing;

use std::{path::PathBuf, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::world::{Need, World, words};
use row::{Out, Row};
use stage::Stage;

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let needs: Vec<Need> =
        stage::CONTROLLERS.iter().map(|name| Need::V1(name)).chain([Need::Plain]).collect();
    let lacks = |tool: &str| {
        // Debian's release has no cgxset and cgxget
        let tool = if tool.starts_with("cgx") { "cgset" } else { tool };
        world.lacks(&needs).or_else(|| reference(tool).is_none().then(|| format!("Debian's {tool}")))
    };
    let trial = |row: Row| {
        let (lacks, world) = (lacks(row.line.split(' ').next().unwrap()), world.clone());
        suite::fallible(format!("reference: {}", row.line), lacks, move || Ok(compare(&world, &row)?))
    };
    let again = |tool: &'static str, program: Option<PathBuf>, lacks: Option<String>| {
        let world = world.clone();
        let name = format!("reference: {tool} makes the groups of a snapshot again");
        suite::fallible(name, lacks, move || Ok(snapshot(&world, program.as_deref())?))
    };
    let rows = [reading::ROWS, writing::ROWS, arguments::ROWS].concat();
    let mut trials: Vec<Trial> = rows.into_iter().map(trial).collect();
    trials.push(again("our cgconfigparser", None, world.lacks(&needs)));
    let theirs = reference("cgconfigparser");
    trials.push(again("Debian's cgconfigparser", theirs, lacks("cgconfigparser")));
    trials
}

/// Writes a snapshot of groups, removes them, and has them made again from it: by `parser`, or ours.
fn snapshot(world: &World, parser: Option<&std::path::Path>) -> Result<(), String> {
    let links = stage::links(&world.program);
    let parser = parser.map_or_else(|| links.path().join("cgconfigparser"), PathBuf::from);
    let mut stage = Stage::set(writing::HELD);
    let before = stage.state();
    let written = Command::new(links.path().join("cgsnapshot"))
        .arg("-s")
        .args(stage::CONTROLLERS)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&written.stdout);
    // others' groups are none of ours to make, and the hierarchies are mounted
    let own = text.split_inclusive("}\n\n").filter(|part| part.starts_with(&stage.fill("group {g}")));
    let path = stage.fill("{dir}/snapshot");
    std::fs::write(&path, own.collect::<String>()).unwrap();
    stage.clear();
    let made = Command::new(parser)
        .args(["-l", &path])
        .env("RINGFENCE_STATE", stage.fill("{dir}/state"))
        .output()
        .map_err(|error| error.to_string())?;
    let after = stage.state();
    match made.status.success() && made.stderr.is_empty() && after == before {
        true => Ok(()),
        false => Err(format!(
            "{made:?}\n=== snapshot\n{}\n=== before\n{before}\n=== after\n{after}",
            std::fs::read_to_string(&path).unwrap()
        )),
    }
}

/// Debian's program. Its cgclear is never run on a machine that somebody uses: on arguments that it does not take
/// (`-e` without `-l`) it deletes every group and unmounts every hierarchy. Its cgconfigparser deletes live groups when
/// it fails. Both are compared in a VM only, where they lie beside this program.
fn reference(tool: &str) -> Option<PathBuf> {
    if matches!(tool, "cgclear" | "cgconfigparser") {
        return Some(PathBuf::from("/rf").join(tool)).filter(|path| path.exists());
    }
    ["/usr/bin", "/usr/sbin"].iter().map(|at| PathBuf::from(at).join(tool)).find(|path| path.exists())
}

/// What a run left behind.
#[derive(PartialEq, Eq)]
struct Outcome {
    /// `None`: ended by a signal.
    status: Option<i32>,
    out: String,
    error: String,
    state: String,
}

impl Outcome {
    fn is_like(&self, other: &Outcome) -> bool {
        self.status == other.status
            && self.out == other.out
            && self.error.is_empty() == other.error.is_empty()
            && self.state == other.state
    }

    /// For a failed row; of the state only the lines that the other lacks.
    fn summary(&self, beside: Option<&Outcome>) -> String {
        let Outcome { status, out, error, state } = self;
        let lacks = |line: &&str| !beside.is_some_and(|other| other.state.lines().any(|held| held == *line));
        let state: Vec<&str> = state.lines().filter(lacks).collect();
        let state = state.join("\n");
        format!(
            "status {status:?}\n--- standard output\n{out}--- standard error\n{error}\n--- state\n{state}"
        )
    }
}

fn compare(world: &World, row: &Row) -> Result<(), String> {
    let tool = row.line.split(' ').next().unwrap();
    let links = stage::links(&world.program);
    let theirs = match reference(tool) {
        Some(program) => Some(run(row, &program)?.0),
        None => None, // Debian's release has no cgxset and cgxget
    };
    let (ours, stage) = run(row, &links.path().join(tool))?;
    let both = || {
        let summary = theirs.as_ref().map(|theirs| theirs.summary(Some(&ours)));
        let summary = summary.unwrap_or_else(|| "has no such command".to_owned());
        format!("=== reference: {summary}\n=== ours: {}", ours.summary(theirs.as_ref()))
    };
    let Some(differ) = &row.differ else {
        return match &theirs {
            Some(theirs) if theirs.is_like(&ours) => Ok(()),
            _ => Err(both()),
        };
    };
    if theirs.as_ref().is_some_and(|theirs| theirs.is_like(&ours)) {
        return Err(format!("no difference any more: {}\n{}", differ.reason, both()));
    }
    let out = match differ.out {
        Out::Is(text) => ours.out == stage.fill(text),
        Out::Has(text) => ours.out.contains(&stage.fill(text)),
    };
    let holds = differ
        .holds
        .iter()
        .map(|line| stage.fill(line))
        .all(|line| ours.state.lines().any(|held| held == line));
    let lacks = differ.lacks.iter().map(|text| stage.fill(text)).all(|text| !ours.state.contains(&text));
    let status = ours.status == Some(i32::from(differ.status));
    let error = ours.error.is_empty() != differ.error;
    match out && holds && lacks && status && error {
        true => Ok(()),
        false => Err(format!(
            "ours should differ ({}): output {out}, state {}, status {status}, error {error}\n{}",
            differ.reason,
            holds && lacks,
            both()
        )),
    }
}

/// Runs a program on a stage of its own; the stage's groups are gone when this returns, its names remain.
fn run(row: &Row, program: &std::path::Path) -> Result<(Outcome, Stage), String> {
    let mut stage = Stage::set(row.before);
    let line: Vec<String> = words(&stage.fill(row.line)).into_iter().skip(1).collect();
    let mut command = match row.all_mounted {
        false => Command::new(program),
        true => stage::with_all_mounted(program, &stage.fill("{dir}")),
    };
    let output = command
        .args(line)
        .env("LC_ALL", "C")
        .env("RINGFENCE_STATE", stage.fill("{dir}/state"))
        .stdin(std::process::Stdio::null())
        .output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let outcome = Outcome {
        status: output.status.code(),
        out: stage.own(row, &String::from_utf8_lossy(&output.stdout)),
        error: stage.own_errors(&String::from_utf8_lossy(&output.stderr)),
        state: stage.state(),
    };
    stage.clear();
    Ok((outcome, stage))
}
