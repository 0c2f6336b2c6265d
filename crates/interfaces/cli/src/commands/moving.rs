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
use crate::{args, failure::Failure, output};

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
        let report = match self.moved(pids) {
            Err(failure) if self.daemon_may(&failure) => return self.ask_daemon(pids, failure),
            other => other?,
        };
        if self.as_json {
            return output::json(&report);
        }
        report.say_gone();
        if self.args.tree {
            return output::text(&format!("{}\n", units::counted(report.tasks.len(), "process")));
        }
        Ok(())
    }

    /// Moves what fits, and what of it was forked meanwhile.
    fn fitting(&self, matcher: &Matcher) -> Result<(), Failure> {
        let seats = self.seats()?;
        let names = Accounts::new();
        let look = || -> Result<(Vec<Match>, Vec<Match>), Failure> {
            let found = matching(matcher.clone(), &names).map_err(Failure::new)?;
            Ok(found.into_iter().partition(|one| self.is_in(&seats, one.pid)))
        };
        let (there, mut found) = look()?;
        if found.is_empty() && there.is_empty() {
            return Err(Failure::new(format!("no process fits {}", self.args.selection)).hint(
                "--process compares whole names, in which * is any text; --command finds a part of the command line",
            ));
        }
        self.refuse_unmovable(&found, &seats)?;
        let (mut report, mut shown) = (Report::default(), Vec::new());
        for _ in 0..MAX_ROUNDS {
            let pids: Vec<u32> = found.iter().map(|one| one.pid).collect();
            shown.append(&mut found);
            if self.args.dry_run || pids.is_empty() {
                break;
            }
            match self.moved(&pids) {
                Err(failure) if self.daemon_may(&failure) => return self.ask_daemon(&pids, failure),
                other => report.add(other?),
            }
            found = look()?.1;
            found.retain(|one| shown.iter().all(|known: &Match| known.pid != one.pid));
            found.retain(|one| self.host.movable(one.pid).is_ok());
        }
        if self.as_json {
            let mut row = if self.args.dry_run { json!({ "dry_run": true }) } else { json!(report) };
            (row["matched"], row["already_in_group"]) = (json!(shown), json!(there));
            return output::json(&row);
        }
        let what = if self.args.dry_run { "would be moved" } else { "moved" };
        shown.retain(|one| !report.gone.contains(&one.pid));
        let said = shown.iter().map(|one| (one, what));
        let said = said.chain(there.iter().map(|one| (one, "is already in the group")));
        output::text(&said.map(|(one, what)| line(one, what, &names)).collect::<String>())
    }

    /// The group's directories, which must be there.
    fn seats(&self) -> Result<Vec<Seat<'_>>, Failure> {
        Ok(match self.name.path() {
            "" => self.host.hierarchies().iter().map(|at| self.host.seat_in(at, self.name)).collect(),
            _ => self.host.existing(self.name)?,
        })
    }

    fn is_in(&self, seats: &[Seat<'_>], pid: u32) -> bool {
        seats.iter().all(|seat| {
            let path = self.host.kernel().group_of(seat.at, pid).ok();
            path.and_then(|path| seat.at.below_mount(&path)).is_some_and(|path| path == seat.path)
        })
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
            let others = match found.len() {
                1 => String::new(),
                count => format!("\nnone of the {count} processes that fit was moved"),
            };
            return Err(Failure { message: failure.message.clone() + &others, ..failure });
        }
        Ok(())
    }

    /// May the daemon do what was refused?
    fn daemon_may(&self, failure: &Failure) -> bool {
        failure.denied && !self.args.threads && !self.args.tree
    }

    fn ask_daemon(&self, pids: &[u32], denied: Failure) -> Result<(), Failure> {
        requests::move_processes(&self.args.socket, self.name, pids, denied, self.as_json)
    }

    /// Moves tasks, and warns of what of them does not follow.
    fn moved(&self, pids: &[u32]) -> Result<Report, Failure> {
        let (host, name) = (self.host, self.name);
        let what = match (self.args.threads, self.args.tree) {
            (true, _) => What::Thread,
            (_, true) => What::Tree,
            _ => What::Process,
        };
        let moved = host.move_tasks(name, pids, what)?;
        let left = if what == What::Thread { Vec::new() } else { host.left_behind(name, &moved) };
        left.iter().for_each(|left| self.warn_of_memory(left));
        if let Some(by) = host.frozen_by(name).filter(|_| !moved.tasks.is_empty()) {
            output::warning(&format!(
                "'{name}' is frozen: what was moved there stands still until it is thawed\nhint: {}",
                Command::ringfence("thaw").group(by)
            ));
        }
        let mut stays: BTreeMap<u32, Vec<StaysIn>> = BTreeMap::new();
        for &pid in &moved.tasks {
            let own = stays_in(host, name, pid, std::process::id());
            own.iter().for_each(|stays| self.warn_of_others(pid, stays));
            if !own.is_empty() {
                stays.insert(pid, own);
            }
        }
        let Moved { tasks, gone, directories, .. } = moved;
        let (tasks, gone) = (tasks.into_iter().collect(), gone.into_iter().collect());
        Ok(Report { tasks, directories, gone, memory_left_behind: left, stays_in: stays })
    }

    fn warn_of_memory(&self, LeftBehind { group, bytes, processes }: &LeftBehind) {
        let whose =
            if *processes == 1 { "the process".to_owned() } else { format!("the {processes} processes") };
        output::warning(&format!(
            "about {} of memory of {whose} stays charged to group '{}': no limit of '{}' counts it\n\
             hint: what is started in the group is charged to it: {} -- PROGRAM",
            rounded(*bytes),
            printable(group),
            self.name,
            Command::ringfence("run").group(self.name),
        ));
    }

    fn warn_of_others(&self, pid: u32, StaysIn { controllers, group }: &StaysIn) {
        let (noun, again) = match self.args.threads {
            true => ("thread", "move --threads"),
            false => ("process", "move"),
        };
        output::warning(&format!(
            "{noun} {pid} stays in group '{}' of {controllers}, as '{}' does not exist there: that group's limits still apply\n\
             hint: {} && {}",
            printable(group),
            self.name,
            Command::ringfence("create").group(self.name).arg("--controllers").arg(controllers),
            Command::ringfence(again).group(self.name).arg(pid.to_string()),
        ));
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
        self.memory_left_behind.extend(more.memory_left_behind);
        self.stays_in.extend(more.stays_in);
    }

    fn say_gone(&self) {
        for pid in &self.gone {
            output::warning(&format!("process {pid} ended meanwhile"));
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
