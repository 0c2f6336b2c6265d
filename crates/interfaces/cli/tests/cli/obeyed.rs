//! What is advised beside refusals, in messages of plan, status, doctor, why and others: each row makes the situation, reads the
//! command from what is printed there, runs exactly that, and compares what became of it.

mod on_own;
mod on_systemd;
mod on_v2;
mod rows;

use std::{path::PathBuf, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, answer, sleep_program},
    hints,
    reported::Stage,
    world::{Need, World, words},
};

/// All lines are a shell's, with `ringfence` in its `PATH` and `{d}/state` as the directory of the history. Those before may also be
/// `write FILE TEXT`, `start {name} PROGRAM…`, `as-user {name} PROGRAM…`, and `enter GROUP CONTROLLER {name}`, a move by hand.
pub struct Row {
    /// What it is about, as a sentence.
    name: &'static str,
    needs: &'static [Need],
    before: &'static [&'static str],
    /// The line that prints the command.
    prints: &'static str,
    /// How the command begins.
    hint: &'static str,
    /// What the reader has to fill in.
    fill: (&'static str, &'static str),
    /// Where the command goes, for `{}`.
    with: &'static str,
    then: Then,
    /// What the trial leaves beside its groups and files.
    after: &'static [&'static str],
}

/// What becomes of the situation by the command.
#[derive(Clone, Copy)]
enum Then {
    /// The same line prints it no more.
    Gone,
    /// It shows this.
    Shows(&'static str),
    /// This line prints that, as it did not before.
    Prints(&'static str, &'static str),
}
use Then::{Gone, Prints, Shows};

const ROW: Row = Row {
    name: "",
    needs: &[],
    before: &[],
    prints: "",
    hint: "",
    fill: ("", ""),
    with: "{}",
    then: Gone,
    after: &[],
};

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |row: &'static Row| {
        let usual: &[Need] = if row.needs.contains(&Need::NoHierarchy) { &[] } else { &[Need::Usual] };
        let (lacks, world) = (world.lacks(&[usual, row.needs].concat()), world.clone());
        suite::trial(format!("obeyed: {}", row.name), lacks, move || obeyed(&world, row))
    };
    [on_systemd::ROWS, on_v2::ROWS, on_own::ROWS, rows::ROWS].into_iter().flatten().map(trial).collect()
}

/// One row on its way; what it leaves goes when it ends.
struct Play {
    desk: Desk,
    state: PathBuf,
    row: &'static Row,
}

impl Drop for Play {
    fn drop(&mut self) {
        // what is in it would keep the second group
        self.row.after.iter().chain(&["ringfence kill {g}-rt"]).for_each(|line| drop(self.shell(line)));
    }
}

fn obeyed(world: &Arc<World>, row: &'static Row) {
    let mut desk = Desk::new(world, row.name);
    desk.scene.name("{sleep}", sleep_program());
    let program = desk.scene.program();
    desk.scene.name("{program}", &program);
    let state = desk.path("state");
    let mut play = Play { desk, state, row };
    for line in row.before {
        play.prepare(line);
    }
    let (_, text) = play.shell(row.prints);
    let command = play.command(&text).unwrap_or_else(|| panic!("no '{}' in:\n{text}", row.hint));
    if let Prints(line, expected) = row.then {
        let (_, before) = play.shell(line);
        assert!(!before.contains(&play.fill(expected)), "before '{command}', {line}: {before}");
    }
    let (code, said) = play.shell(&row.with.replace("{}", &command));
    match row.then {
        Shows(expected) => {
            // systemctl status and the like end as what they show
            let is_shown = !matches!(code, 126 | 127) && said.contains(&play.fill(expected));
            assert!(is_shown, "{command}: {code}: {said}");
        }
        Gone => {
            assert_eq!(code, 0, "{command}: {said}");
            play.until(&command, row.prints, |now| play.command(now).is_none());
        }
        Prints(line, expected) => {
            assert_eq!(code, 0, "{command}: {said}");
            let expected = play.fill(expected);
            play.until(&command, line, |now| now.contains(&expected));
        }
    }
}

impl Play {
    fn fill(&self, text: &str) -> String {
        self.desk.scene.fill(text)
    }

    /// Exit status, and all that is printed.
    fn shell(&self, line: &str) -> (i32, String) {
        let output = hints::obey(&self.desk.scene.program(), &self.fill(line), Some(&self.state));
        let (code, out, error) = answer(output);
        (code, format!("{error}{out}"))
    }

    fn prepare(&mut self, line: &'static str) {
        if let Some((file, text)) = line.strip_prefix("write ").and_then(|rest| rest.split_once(' ')) {
            self.desk.write(file, text);
        } else if let Some((name, program)) =
            line.strip_prefix("as-user ").and_then(|rest| rest.split_once(' '))
        {
            let program = words(&self.fill(program));
            let program: Vec<&str> = program.iter().map(String::as_str).collect();
            let pid = self.desk.scene.start_as(65534, &program);
            self.desk.scene.name(name, &pid.to_string());
        } else if let Some((name, program)) =
            line.strip_prefix("start ").and_then(|rest| rest.split_once(' '))
        {
            let program = words(&self.fill(program));
            let program: Vec<&str> = program.iter().map(String::as_str).collect();
            let pid = self.desk.scene.start(name, &program);
            Stage::new(&mut self.desk).free(pid);
        } else if let Some(rest) = line.strip_prefix("enter ") {
            let rest = words(&self.fill(rest));
            let [group, controller, pid] = &rest[..] else { panic!("{line}") };
            Stage::new(&mut self.desk).move_by_hand(pid.parse().unwrap(), group, controller);
        } else {
            let (code, said) = self.shell(line);
            assert!(matches!(code, 0 | 3), "{line}: {code}: {said}");
        }
    }

    /// The command as it is printed, with what the reader fills in.
    fn command(&self, text: &str) -> Option<String> {
        let (from, to) = self.row.fill;
        let text = if from.is_empty() { text.to_owned() } else { text.replace(from, to) };
        let at = text.find(&self.fill(self.row.hint))?;
        let mut lines = text[at..].lines();
        let mut line = lines.next()?.to_owned();
        // doctor goes on in a new line where a shell does
        while line.ends_with(" &&") {
            line = format!("{line} {}", lines.next()?.trim_start());
        }
        let command = hints::command(&line)?;
        let is_open = command.matches('(').count() >= command.matches(')').count();
        Some(if is_open { command } else { command.trim_end_matches(')') }.to_owned())
    }

    fn until(&self, command: &str, line: &str, holds: impl Fn(&str) -> bool) {
        self.desk.scene.until(&format!("the effect of '{command}' on '{line}'"), || {
            let (_, now) = self.shell(line);
            holds(&now)
        });
    }
}
