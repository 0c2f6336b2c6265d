//! `move`.

use std::collections::{BTreeMap, BTreeSet};

use apply::StaysIn;
use classify::{Match, matching};
use kernel::{Error, GroupName, Host, LeftBehind, Moved, Seat, What};
use layout::Matcher;
use serde::Serialize;
use serde_json::json;
use system::Accounts;
use units::{Bytes, hint::Command, printable};

use super::{group, host, requests, tasks::stays_in};
use crate::{
    args,
    failure::{ATTENTION, Failure},
    output,
};

/// How often processes are looked for again that came meanwhile: what still comes then forks faster than it can be moved.
const MAX_ROUNDS: usize = 20;

/// How many characters of a command line are shown.
const LONGEST: usize = 80;

pub fn move_tasks(args: &args::Move, as_json: bool) -> Result<(), Failure> {
    let name = group(&args.group)?;
    let host = host()?;
    let moving = Moving { args, host: &host, name: &name, as_json };
    match args.selection.matcher() {
        Some(matcher) => moving.fitting(&matcher),
        None => moving.by_number(),
    }
}

struct Moving<'m> {
    args: &'m args::Move,
    host: &'m Host,
    name: &'m GroupName,
    as_json: bool,
}

impl Moving<'_> {
    fn by_number(&self) -> Result<(), Failure> {
        let pids = &self.args.pids;
        let report = match self.moved(pids).map_err(Failure::from) {
            Err(failure) if self.daemon_may(&failure) => return self.ask_daemon(pids, failure),
            other => other?,
        };
        report.warn(self);
        if self.as_json {
            return output::json(&report);
        }
        for pid in &report.gone {
            output::warning(&format!("process {pid} ended meanwhile"));
        }
        if self.args.tree {
            return output::text(&format!("{}\n", units::counted(report.tasks.len(), "process")));
        }
        Ok(())
    }

    /// Moves what fits, and what of it was forked meanwhile.
    fn fitting(&self, matcher: &Matcher) -> Result<(), Failure> {
        let seats = self.host.seats_to_enter(self.name)?;
        let names = Accounts::new();
        // those below one that is there need not be
        let stays = |one: &Match| !self.args.tree && self.host.is_inside(&seats, one.pid);
        let look = || -> Result<(Vec<Match>, Vec<Match>), Failure> {
            let found = matching(matcher.clone(), &names).map_err(Failure::new)?;
            Ok(found.into_iter().partition(stays))
        };
        let (there, mut found) = look()?;
        if found.is_empty() && there.is_empty() {
            return Err(self.nothing_fits());
        }
        self.refuse_unmovable(&found, &seats)?;
        let (mut report, mut shown) = (Report::default(), Vec::new());
        let mut rounds = 0;
        while !found.is_empty() && !self.args.dry_run {
            let first = rounds == 0;
            match self.living(&mut found) {
                Err((pids, failure)) if first && self.daemon_may(&failure) => {
                    let denied = self.none_moved(failure, found.len());
                    return self.ask_daemon(&pids, denied);
                }
                Err((_, failure)) if first => return Err(self.none_moved(failure, found.len())),
                Err((_, failure)) => {
                    report.warn(self);
                    let before = units::counted(report.tasks.len(), "process");
                    let message =
                        format!("{}\n{before} had been moved before this one came", failure.message);
                    return Err(Failure { message, ..failure }.code(ATTENTION));
                }
                Ok(more) => report.add(more),
            }
            shown.append(&mut found);
            found = look()?.1;
            found.retain(|one| shown.iter().all(|known: &Match| known.pid != one.pid));
            found.retain(|one| self.host.movable(one.pid).is_ok());
            rounds += 1;
            if rounds == MAX_ROUNDS && !found.is_empty() {
                report.warn(self);
                let message = format!("what fits {} forks faster than it can be moved", self.args.selection);
                return Err(Failure::new(message).code(ATTENTION));
            }
        }
        if !found.is_empty() {
            self.warn_if_frozen("what is moved there");
        }
        shown.append(&mut found);
        report.warn(self);
        if self.as_json {
            let mut row = if self.args.dry_run { json!({ "dry_run": true }) } else { json!(report) };
            (row["matched"], row["already_in_group"]) = (json!(shown), json!(there));
            return output::json(&row);
        }
        let what = if self.args.dry_run { "would be moved" } else { "moved" };
        let said = shown.iter().map(|one| (one, what));
        let said = said.chain(there.iter().map(|one| (one, "is already in the group")));
        let mut text = said.map(|(one, what)| line(one, what, &names)).collect::<String>();
        if self.args.tree && !self.args.dry_run {
            text += &format!("{} with their descendants\n", units::counted(report.tasks.len(), "process"));
        }
        output::text(&text)
    }

    /// Moves those of these that live; the others are taken out.
    fn living(&self, found: &mut Vec<Match>) -> Result<Report, (Vec<u32>, Failure)> {
        loop {
            let pids: Vec<u32> = found.iter().map(|one| one.pid).collect();
            match self.moved(&pids) {
                // all others are where they were
                Err(Error::NoProcess { pid }) if pids.contains(&pid) => found.retain(|one| one.pid != pid),
                Err(error) => return Err((pids, error.into())),
                Ok(report) => {
                    found.retain(|one| !report.gone.contains(&one.pid));
                    return Ok(report);
                }
            }
            if found.is_empty() {
                return Ok(Report::default());
            }
        }
    }

    fn nothing_fits(&self) -> Failure {
        let args::Selection { process, command, .. } = &self.args.selection;
        let failure = Failure::new(format!("no process fits {}", self.args.selection));
        let hint = match (process, command) {
            _ if !rustix::process::geteuid().is_root() => {
                "only root sees which program another user's process runs"
            }
            (Some(_), None) => "--process compares a whole name, or a path from / on, in which * is any text",
            (_, Some(_)) => "--command finds a part of the command line, words separated by spaces",
            (None, None) => return failure,
        };
        failure.hint(hint)
    }

    /// As all are moved or none.
    fn none_moved(&self, failure: Failure, count: usize) -> Failure {
        let others = match count {
            0 | 1 => String::new(),
            count => format!("\nnone of the {count} processes that fit was moved"),
        };
        let hint = failure.denied.then(|| {
            let command = Command::ringfence("move").group(self.name).sudo();
            format!("{command} {}", self.args.selection)
        });
        Failure { message: failure.message.clone() + &others, ..failure }.maybe_hint(hint)
    }

    fn refuse_unmovable(&self, found: &[Match], seats: &[Seat<'_>]) -> Result<(), Failure> {
        for one in found {
            let error = match self.host.movable(one.pid) {
                // it ended meanwhile
                Ok(_) | Err(Error::NoProcess { .. }) => continue,
                Err(error) => error,
            };
            let into: Vec<_> = seats.iter().map(|seat| (seat.clone(), self.name.clone())).collect();
            let failure = Failure::from(self.host.with_properties(error, &into));
            return Err(self.none_moved(failure, found.len()));
        }
        Ok(())
    }

    fn warn_if_frozen(&self, what: &str) {
        let name = self.name;
        if let Some(by) = self.host.frozen_by(name) {
            output::warning(&format!(
                "'{name}' is frozen: {what} stands still until it is thawed\nhint: {}",
                Command::ringfence("thaw").group(by)
            ));
        }
    }

    /// May the daemon do what was refused?
    fn daemon_may(&self, failure: &Failure) -> bool {
        failure.denied && !self.args.threads && !self.args.tree
    }

    fn ask_daemon(&self, pids: &[u32], denied: Failure) -> Result<(), Failure> {
        requests::move_processes(&self.args.socket, self.name, pids, denied, self.as_json)
    }

    fn moved(&self, pids: &[u32]) -> Result<Report, Error> {
        let (host, name) = (self.host, self.name);
        let what = match (self.args.threads, self.args.tree) {
            (true, _) => What::Thread,
            (_, true) => What::Tree,
            _ => What::Process,
        };
        let moved = host.move_tasks(name, pids, what)?;
        let left = if what == What::Thread { Vec::new() } else { host.left_behind(name, &moved) };
        let stays = |pid: &u32| (*pid, stays_in(host, name, *pid, std::process::id()));
        let stays = moved.tasks.iter().map(stays).filter(|(_, stays)| !stays.is_empty()).collect();
        let Moved { tasks, gone, directories, .. } = moved;
        let (tasks, gone) = (tasks.into_iter().collect(), gone.into_iter().collect());
        Ok(Report { tasks, directories, gone, memory_left_behind: left, stays_in: stays })
    }
}

/// What came of one or several moves.
#[derive(Default, Serialize)]
struct Report {
    tasks: BTreeSet<u32>,
    directories: Vec<std::path::PathBuf>,
    /// Processes that ended before they could be moved.
    gone: BTreeSet<u32>,
    memory_left_behind: Vec<LeftBehind>,
    stays_in: BTreeMap<u32, Vec<StaysIn>>,
}

impl Report {
    fn add(&mut self, more: Report) {
        self.tasks.extend(more.tasks);
        self.gone.extend(more.gone);
        self.directories = more.directories;
        self.stays_in.extend(more.stays_in);
        for LeftBehind { group, bytes, processes } in more.memory_left_behind {
            match self.memory_left_behind.iter_mut().find(|known| known.group == group) {
                Some(known) => {
                    known.bytes = Bytes(known.bytes.0.saturating_add(bytes.0));
                    known.processes += processes;
                }
                None => self.memory_left_behind.push(LeftBehind { group, bytes, processes }),
            }
        }
    }

    /// Of what does not follow.
    fn warn(&self, moving: &Moving<'_>) {
        let name = moving.name;
        for LeftBehind { group, bytes, processes } in &self.memory_left_behind {
            let whose = match processes {
                1 => "the process".to_owned(),
                count => format!("the {count} processes"),
            };
            output::warning(&format!(
                "about {} of memory of {whose} stays charged to group '{}': no limit of '{name}' counts it\n\
                 hint: what is started in the group is charged to it: {} -- PROGRAM",
                rounded(*bytes),
                printable(group),
                Command::ringfence("run").group(name),
            ));
        }
        if !self.tasks.is_empty() {
            moving.warn_if_frozen("what was moved there");
        }
        self.warn_of_others(moving);
    }

    /// One warning for all that stay in the same group, with one command for all hierarchies.
    fn warn_of_others(&self, moving: &Moving<'_>) {
        let mut by_group: BTreeMap<(&str, &str), BTreeSet<u32>> = BTreeMap::new();
        for (pid, stays) in &self.stays_in {
            for StaysIn { controllers, group } in stays {
                by_group.entry((group, controllers)).or_default().insert(*pid);
            }
        }
        let mut together: BTreeMap<(&str, BTreeSet<u32>), Vec<&str>> = BTreeMap::new();
        for ((group, controllers), pids) in by_group {
            together.entry((group, pids)).or_default().push(controllers);
        }
        let (noun, again) = match moving.args.threads {
            true => ("thread", "move --threads"),
            false => ("process", "move"),
        };
        for ((group, pids), controllers) in together {
            let (controllers, name) = (controllers.join(","), moving.name);
            let who = match (pids.len(), pids.first()) {
                (1, Some(pid)) => format!("{noun} {pid} stays"),
                (count, _) => format!("{} stay", units::counted(count, noun)),
            };
            output::warning(&format!(
                "{who} in group '{}' of {controllers}, as '{name}' does not exist there: that group's limits still apply\n\
                 hint: {} && {}",
                printable(group),
                Command::ringfence("create").group(name).arg("--controllers").arg(&controllers),
                Command::ringfence(again).group(name).args(pids.iter().map(u32::to_string)),
            ));
        }
    }
}

/// One that fits, and what becomes of it.
fn line(one: &Match, what: &str, names: &Accounts) -> String {
    let user = names.user_name(one.user).unwrap_or_else(|| one.user.to_string());
    let (program, mut command) = (printable(&one.program), printable(&one.command).into_owned());
    if let Some((at, _)) = command.char_indices().nth(LONGEST) {
        command.replace_range(at.., "…");
    }
    format!("{} ({program}, user {}) {what}: {command}\n", one.pid, printable(&user))
}

/// Whole MiB: it is an estimate.
fn rounded(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.checked_next_multiple_of(1 << 20).unwrap_or(bytes.0))
}
