//! `status`: what each group was given, who is in it, what it uses, and where it drifted from what was applied. One line
//! per group; every file with `-v`.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
};

use ::plan::{Plan, Problem};
use answers::layouts::{Killed, Misplaced, Status};
use apply::{
    Drift, GroupStatus, Head, Measured, NewUnit, Pending, Resizes, RulesFile, Running, State, Target,
    Unfinished,
};
use kernel::Host;
use layout::UnitName;
use monitor::interruptions::{Row, RowState};
use system::files::{self, Trust};
use topology::Machine;
use units::{counted, group_path, hint::Command, printable};

use super::{
    Layout,
    blocks::{Scene, now, seen, shown},
    elastic,
    generations::{interrupted, time, unrecorded, without_record},
    history_of,
    isolation::isolation,
    killed::{InGroup, killed},
    lines::{Line, lines, with_values},
    machines_layout, picture, planned, read, rules, warn, words,
};
use crate::{
    args,
    commands::{group, host_even_unmounted},
    failure::{ATTENTION, Failure},
    output::{self, Paint},
};

/// The most processes in a command: those of more come back with the next apply.
const MOVED: usize = 100;
/// The most tasks of a group that are named.
const NAMED: usize = 8;

pub fn status(args: &args::Status, as_json: bool) -> Result<u8, Failure> {
    let (path, names) = chosen(args);
    let layout = path.as_deref().map(read).transpose()?;
    let host = host_even_unmounted()?;
    let running = Running::new();
    let state = history_of(&args.state);
    let target = Target { host: &host, system: &running };
    let unfinished = apply::unfinished(&state, target)?;
    let pending = apply::pending(&state, target)?;
    let unknown = apply::unknown(&state, target)?;
    let mut groups = apply::status(&state, target)?;
    let all = groups.clone();
    only(&mut groups, &names)?;
    let plan = layout.as_ref().map(|layout| planned(layout, &host, &state)).transpose()?;
    let in_effect = match &layout {
        Some(_) => None,
        None => apply::layout_in_effect(&state, target)?.and_then(|head| head.rules),
    };
    let applied = in_effect.as_ref().map(as_applied);
    let looked = layout.as_ref().or(applied.as_ref().and_then(|applied| applied.as_ref().ok()));
    // without rules nobody is in the wrong group
    let misplaced = looked.map(|layout| rules::misplaced(&layout.desired, &host)).unwrap_or_default();
    let new_units = looked.map(|layout| new_units(target, layout, &all, &names)).unwrap_or_default();
    let unchecked = applied.as_ref().and_then(|applied| applied.as_ref().err());
    let not_in_effect = machines_layout::not_in_effect(&state, &args.socket, groups.is_empty());
    let is_elastic = groups.iter().any(elastic::follows_load);
    let not_resized =
        is_elastic.then(|| Resizes::of(&state).trouble(&apply::again(&state, target), time)).flatten();
    let killed = killed(&state, &host, &groups)?;
    let found = Found {
        groups,
        unfinished,
        pending,
        unknown,
        not_in_effect,
        not_resized,
        plan,
        misplaced,
        new_units,
        killed,
    };
    let is_as_applied = found.is_as_applied();
    if args.svg {
        output::text(&picture::svg(&Machine::live()?, &found.groups))?;
    } else if as_json {
        output::json_by_name(&found.answer(&state, &host, unchecked.is_none())?)?;
    } else {
        let controller = if is_elastic { Resizes::of(&state).controller() } else { None };
        let latencies = controller.map(|controller| controller.latencies).unwrap_or_default();
        let page = Page { host: &host, paint: Paint::stdout(), verbose: args.verbose, latencies };
        let text = found.text(&page, &state, looked)?;
        if let (Some(layout), Some(plan)) = (&layout, &found.plan) {
            warn(plan, layout);
        }
        if let Some(layout) = looked {
            rules::warn(&found.misplaced, layout);
        }
        if let Some(reason) = unchecked {
            output::warning(reason);
        }
        output::text(&text)?;
    }
    Ok(if is_as_applied { 0 } else { ATTENTION })
}

/// What was found.
struct Found {
    groups: Vec<GroupStatus>,
    unfinished: Option<Unfinished>,
    pending: Option<Pending>,
    /// Generations without a record.
    unknown: Vec<u32>,
    /// Why the machine's layout is not in effect.
    not_in_effect: Vec<String>,
    /// Why groups that follow their load are not resized.
    not_resized: Option<String>,
    /// What a layout that was named still needs.
    plan: Option<Plan>,
    misplaced: Vec<Misplaced>,
    /// Units that came after the apply.
    new_units: Vec<NewUnit>,
    /// For want of memory, since the last apply.
    killed: Vec<InGroup>,
}

impl Found {
    fn is_as_applied(&self) -> bool {
        let is_broken = self.unfinished.as_ref().is_some_and(|unfinished| !unfinished.lives)
            || self.pending.as_ref().is_some_and(is_late);
        !self.has_drift()
            && !is_broken
            && self.not_in_effect.is_empty()
            && self.not_resized.is_none()
            && self.unknown.is_empty()
            && self.misplaced.is_empty()
            && self.new_units.is_empty()
            && self.plan.as_ref().is_none_or(|plan| plan.steps.is_empty())
    }

    fn has_drift(&self) -> bool {
        self.groups.iter().any(|group| !group.drift.is_empty())
    }

    /// `has_rules`: the rules could be looked at.
    fn answer(self, state: &State, host: &Host, has_rules: bool) -> Result<Status, Failure> {
        Ok(Status {
            drift: self.has_drift(),
            groups: self.groups.into_iter().map(|group| with_values(host, group)).collect(),
            unfinished: self.unfinished,
            pending: self.pending,
            unknown: self.unknown,
            recorded: apply::newest(state)? > 0,
            not_in_effect: self.not_in_effect,
            not_resized: self.not_resized,
            plan: self.plan,
            new_units: self.new_units,
            misplaced: has_rules.then_some(self.misplaced),
            killed: self.killed.into_iter().map(Killed::from).collect(),
        })
    }

    /// `layout`: the one that was named, or is in effect.
    fn text(&self, page: &Page<'_>, state: &State, layout: Option<&Layout<'_>>) -> Result<String, Failure> {
        let bad = |words: &str| page.paint.bad(words) + "\n";
        let mut text = self.unfinished.as_ref().map(|found| page.interrupted(found)).unwrap_or_default();
        if let Some(pending) = &self.pending {
            let words = pending.to_string();
            text += &if is_late(pending) { bad(&words) } else { words + "\n" };
        }
        for generation in &self.unknown {
            text += &bad(&without_record(*generation));
        }
        text += &self.applied(page, state)?;
        for reason in self.not_in_effect.iter().chain(&self.not_resized) {
            text += &bad(reason);
        }
        if let (Some(layout), Some(plan)) = (layout, &self.plan) {
            text += &page.still_to_do(layout.path, plan, !self.misplaced.is_empty());
        }
        for NewUnit { unit, group } in &self.new_units {
            let apply = Command::ringfence("apply")
                .arg(layout.map_or_else(String::new, |layout| layout.path.display().to_string()));
            text += &bad(&format!("{unit} is loaded and not bound yet, as group '{group}': {apply}"));
        }
        Ok(text)
    }

    fn applied(&self, page: &Page<'_>, state: &State) -> Result<String, Failure> {
        let is_new = apply::newest(state)? == 0;
        // what is in effect was brought there by the last that was done, not by one that failed after it
        Ok(match apply::last_done(state)? {
            Some(head) if !self.groups.is_empty() => page.all(&head, self),
            _ if self.unfinished.is_some() => String::new(),
            _ if is_new => unrecorded(state, page.host),
            Some(_) => "nothing that was applied is in effect\n".to_owned(),
            None => "nothing was applied: no change succeeded (ringfence history)\n".to_owned(),
        })
    }
}

/// Nobody is there to undo it.
fn is_late(pending: &Pending) -> bool {
    pending.overdue || pending.unwatched
}

/// The layout in effect, for its rules; if it is not the same any more, a warning instead.
fn as_applied(applied: &RulesFile) -> Result<Layout<'_>, String> {
    let path = &applied.path;
    let (reading, sources) = files::read_layout(path, Trust::of_this_process());
    let layout = reading.desired.map(|desired| Layout { path, desired, sources });
    let is_same = |layout: &Layout<'_>| layout.rules().as_ref() == Some(applied);
    layout.filter(is_same).ok_or_else(|| {
        format!(
            "{} changed since it was applied; rules and unit patterns were not checked: {}",
            path.display(),
            Command::ringfence("plan").arg(path.display().to_string())
        )
    })
}

/// Units that came after the apply, of the groups that were named; without an answer of systemd, a warning instead.
fn new_units(
    target: Target<'_>,
    layout: &Layout<'_>,
    groups: &[GroupStatus],
    names: &[String],
) -> Vec<NewUnit> {
    let found = apply::new_units(target, &layout.desired, groups).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(Problem::diagnostic).collect();
        output::error(&layout::render(&problems, &layout.sources));
        Vec::new()
    });
    let is_of =
        |one: &NewUnit, name: &String| one.unit == *name || group_path::is_at_or_below(&one.group, name);
    let named = |one: &NewUnit| names.is_empty() || names.iter().any(|name| is_of(one, name));
    found.into_iter().filter(named).collect()
}

/// The layout and the groups; a path among the groups is the layout, as it was before there was an option for it.
fn chosen(args: &args::Status) -> (Option<PathBuf>, Vec<String>) {
    let is_path = |word: &String| {
        let path = Path::new(word);
        let looks = path.is_absolute() || word.starts_with("./") || word.starts_with("../");
        let named = path.extension().is_some_and(|ending| ending == "toml" || ending == "conf");
        // as the directory that a layout is by default
        let has_layout = path.join("layout.toml").exists() || path.join("layout.d").is_dir();
        has_layout || (looks || named) && path.exists()
    };
    let (mut paths, names): (Vec<String>, Vec<String>) = args.groups.iter().cloned().partition(is_path);
    (args.layout.clone().or_else(|| paths.pop().map(PathBuf::from)), names)
}

/// The groups that were named and those below them.
fn only(groups: &mut Vec<GroupStatus>, names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        names.iter().map(|name| Ok(group(name)?.to_string())).collect::<Result<_, Failure>>()?;
    let is_of = |group: &GroupStatus, name: &str| {
        let is_unit = group.unit.as_ref().is_some_and(|unit| unit.name == name);
        is_unit || group_path::is_at_or_below(&group.group, name)
    };
    if let Some(unknown) = names.iter().find(|name| !groups.iter().any(|group| is_of(group, name))) {
        let near = units::nearest(unknown, groups.iter().map(|group| group.group.as_str()));
        let failure = Failure::new(format!("no generation in effect has a group '{unknown}'"));
        return Err(match near.is_empty() {
            true if kernel::is_unit_name(unknown) => {
                failure.hint(Command::ringfence("get").group(unknown).to_string())
            }
            true => failure.hint("ringfence status lists the groups that were applied"),
            false => failure.hint(format!("did you mean {}?", near.join(" or "))),
        });
    }
    groups.retain(|group| names.iter().any(|name| is_of(group, name)));
    Ok(())
}

struct Page<'h> {
    host: &'h Host,
    paint: Paint,
    verbose: bool,
    /// Of elastic groups.
    latencies: Vec<Measured>,
}

impl Page<'_> {
    fn interrupted(&self, unfinished: &Unfinished) -> String {
        let Unfinished { generation, process, lives, ended } = unfinished;
        let words = if *lives {
            format!("generation {generation} is under way (process {process})")
        } else {
            self.paint.bad(&format!("generation {generation} {}", interrupted(*process, *ended)))
        };
        format!("{words}\n")
    }

    fn all(&self, head: &Head, found: &Found) -> String {
        let groups = &found.groups;
        let mut text = format!(
            "generation {}, {}, {}: {}\n\n",
            head.generation,
            time(head.at),
            head.by.person(),
            head.words()
        );
        let names = groups.iter().map(|group| group.group.chars().count()).max().unwrap_or(0);
        let used: Vec<[String; 3]> = groups.iter().map(|group| used(group, groups)).collect();
        let width = |column: usize| used.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let [tasks, memory, cpu] = [width(0), width(1), width(2)];
        for (group, row) in groups.iter().zip(&used) {
            let state = match group.drift.is_empty() {
                true => self.paint.good("ok   "),
                false => self.paint.bad("drift"),
            };
            let lines = lines(self.host, group);
            let settings: Vec<String> =
                lines.iter().map(|line| format!("{}={}", line.name, line.applied)).collect();
            let name = self.paint.strong(&format!("{:names$}", group.group));
            let line = format!(
                "{state}  {name}  {:>tasks$}  {:>memory$}  {:>cpu$}  {}",
                row[0],
                row[1],
                row[2],
                settings.join(" ")
            );
            let _ = writeln!(text, "{}", line.trim_end()); // a String takes everything
            for below in
                self.below(group, groups, &lines).into_iter().chain(self.killed(group, &found.killed))
            {
                let _ = writeln!(text, "       {below}");
            }
            if self.verbose {
                self.details(&mut text, group, &lines);
            }
        }
        text.push('\n');
        text.push_str(&self.summary(groups, found.misplaced.len()));
        text
    }

    /// What there is to be said of a group below its line.
    fn below(&self, group: &GroupStatus, groups: &[GroupStatus], lines: &[Line]) -> Vec<String> {
        let mut below: Vec<String> = drifts(group, lines).iter().map(|drift| self.paint.bad(drift)).collect();
        let outside: BTreeSet<u32> = group.drift.iter().flat_map(Drift::outside).collect();
        if !outside.is_empty() && outside.len() <= MOVED && group.unit.is_none() {
            let pids = outside.iter().map(u32::to_string);
            below.push(format!("hint: {}", Command::ringfence("move").group(&group.group).args(pids)));
        }
        let stopped = group.unit.as_ref().filter(|unit| !unit.runs);
        below.extend(stopped.map(|unit| match UnitName::of_directory(&unit.name) {
            Ok(name) if name.is_template() => {
                let now = match unit.instances.as_slice() {
                    [] => String::new(),
                    those => format!(", as {}", those.join(", ")),
                };
                format!(
                    "each {} that starts later has these settings from its start{now}",
                    name.instance("*")
                )
            }
            _ => format!("{} does not run: its settings come into force when it starts", unit.name),
        }));
        // what drifted is said above
        let shown = |row: &Row| match row.state {
            RowState::Drift => false,
            RowState::Done | RowState::ByKernel => self.verbose,
            RowState::Refused | RowState::BootOnly => true,
        };
        let rows = isolation(&group.knobs).into_iter().filter(shown);
        below.extend(rows.map(|Row { name, state, detail }| format!("{name}: {}, {detail}", state.name())));
        below.extend(elastic::bounds(group).iter().map(ToString::to_string));
        let latencies = self.latencies.iter().filter(|one| one.group == group.group);
        below.extend(latencies.map(ToString::to_string));
        below.extend(frozen(group).map(|words| self.paint.changed(&words)));
        // with one hierarchy, it was moved between two looks
        let several = self.host.hierarchies().len() > 1;
        for (other, pids) in in_both(group, groups) {
            let (split, mut elsewhere): (Vec<u32>, Vec<u32>) =
                pids.into_iter().partition(|pid| self.is_split(*pid, &group.group, other));
            // those that are named as drift
            let is_named = |pid: &u32| {
                let drift = group.drift.iter();
                drift.filter_map(Drift::in_other).any(|(of, pids)| of == other && pids.contains(pid))
            };
            elsewhere.retain(|pid| several && !is_named(pid));
            let hows = [("with some of their threads", split), ("in other hierarchies", elsewhere)];
            let hows = hows.into_iter().filter(|(_, pids)| !pids.is_empty());
            below.extend(
                hows.map(|(how, pids)| format!("also in group '{other}', {how}: {}", numbers(&pids))),
            );
        }
        below
    }

    fn killed(&self, group: &GroupStatus, killed: &[InGroup]) -> Option<String> {
        let InGroup { processes, last, .. } = killed.iter().find(|killed| killed.group == group.group)?;
        let (when, comm, why) =
            (time(last.at / 1000), printable(&last.comm), Command::ringfence("why").group(&group.group));
        let processes = counted(*processes, "process");
        let words = format!(
            "{processes} killed for want of memory since then, the last at {when} ({} {comm}): {why}",
            last.pid
        );
        Some(self.paint.changed(&words))
    }

    /// Is the process in both groups in one hierarchy? Then its threads are.
    fn is_split(&self, pid: u32, one: &str, other: &str) -> bool {
        let (Ok(one), Ok(other)) = (group(one), group(other)) else { return false };
        self.host.hierarchies().iter().any(|at| {
            let holds = |group| self.host.tasks_in(&self.host.seat_in(at, group)).contains(&pid);
            holds(&one) && holds(&other)
        })
    }

    fn summary(&self, groups: &[GroupStatus], misplaced: usize) -> String {
        let drifted: Vec<&str> =
            groups.iter().filter(|group| !group.drift.is_empty()).map(|group| group.group.as_str()).collect();
        // on v1 a process may be in several of them
        let tasks: BTreeSet<u32> =
            groups.iter().flat_map(|group| &group.tasks).map(|task| task.pid).collect();
        let count = format!("{} with {}", counted(groups.len(), "group"), counted(tasks.len(), "process"));
        match drifted.len() {
            0 if misplaced > 0 => {
                let outside =
                    format!("{} outside the group that a rule names", counted(misplaced, "process"));
                format!("{count}: all as applied, but {}\n", self.paint.bad(&outside))
            }
            0 => format!("{count}: {}\n", self.paint.good("all as applied")),
            drifts => format!("{count}: {}\n", self.paint.bad(&format!("{drifts} drifted"))),
        }
    }

    fn details(&self, text: &mut String, group: &GroupStatus, lines: &[Line]) {
        for directory in &group.directories {
            let _ = writeln!(text, "       directory  {}", directory.display());
        }
        let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        for line in lines {
            let now =
                line.now.as_ref().map(|now| self.paint.bad(&format!("  (now {now})"))).unwrap_or_default();
            let _ = writeln!(text, "       {:width$}  {}{now}", line.name, line.applied);
        }
        let mut rows: Vec<String> = Vec::new();
        for owner in &group.owners {
            let row = format!("{}  {}", owner.file.display(), owner.requested);
            // owners are alike in each of v1's hierarchies
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        for row in rows {
            let _ = writeln!(text, "       owner  {row}");
        }
        for file in &group.settings {
            let now = file.actual.as_deref().map_or_else(|| "-".to_owned(), words::first_line);
            let _ = writeln!(text, "       file  {}  {now}", file.file.display());
        }
        let _ = writeln!(text, "       {}", tasks(group));
    }

    /// What apply would do.
    fn still_to_do(&self, path: &Path, plan: &Plan, outside: bool) -> String {
        let path_shown = path.display();
        match (plan.steps.is_empty(), outside) {
            (true, false) => return format!("\nthe machine is as {path_shown} says\n"),
            (true, true) => {
                return format!(
                    "\nthe groups are as {path_shown} says, but not all processes are where it wants them: see the warnings\n"
                );
            }
            _ => {}
        }
        let current = |place: &::plan::Place, file: &str| now(self.host, place, file);
        let shown = shown(
            plan,
            Scene { hierarchies: &seen(self.host), current: &current, facts: &system::Live },
            self.verbose,
            self.paint,
        );
        format!("\nstill to do for {}:\n{shown}", path.display())
    }
}

/// Processes of a group that are in a later one of the list, too, which is neither above nor below it: on v1 each holds in
/// its own hierarchies.
fn in_both<'g>(group: &GroupStatus, groups: &'g [GroupStatus]) -> Vec<(&'g str, Vec<u32>)> {
    let own: BTreeSet<u32> = group.tasks.iter().map(|task| task.pid).collect();
    let others = groups.iter().filter(|other| {
        other.group > group.group
            && !group_path::is_below(&other.group, &group.group)
            && !group_path::is_below(&group.group, &other.group)
    });
    let both = others.map(|other| {
        let pids = other.tasks.iter().map(|task| task.pid).filter(|pid| own.contains(pid)).collect();
        (other.group.as_str(), pids)
    });
    both.filter(|(_, pids): &(&str, Vec<u32>)| !pids.is_empty()).collect()
}

fn frozen(group: &GroupStatus) -> Option<String> {
    let by = group.frozen_by.as_ref()?;
    let with = if *by == group.group { String::new() } else { format!(" with group '{by}'") };
    let thaw = Command::ringfence("thaw").group(by);
    if group.running.is_empty() {
        return Some(format!("frozen{with}: nothing in it runs until `{thaw}`"));
    }
    let (pids, freeze) = (numbers(&group.running), Command::ringfence("freeze").group(by));
    Some(format!(
        "frozen{with} until `{thaw}`; outside of it in the freezer hierarchy and running: {pids} (`{freeze}`)"
    ))
}

fn numbers(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<String>>().join(", ")
}

/// In words, a setting's files together.
fn drifts(group: &GroupStatus, lines: &[Line]) -> Vec<String> {
    let changed = lines.iter().filter_map(|line| {
        Some(format!("{}: applied {}, now {}", line.name, line.applied, line.now.as_ref()?))
    });
    // what is no setting of the group itself is one of a template's unit
    let is_line = |drift: &&Drift| match drift {
        Drift::Changed { file, .. } => group.settings.iter().any(|setting| setting.file == *file),
        _ => false,
    };
    let others = group.drift.iter().filter(|drift| !is_line(drift)).map(ToString::to_string);
    changed.chain(others).collect()
}

/// Tasks, memory and CPU time, where they are counted. The processes of a service are in its groups, if it has any.
fn used(group: &GroupStatus, groups: &[GroupStatus]) -> [String; 3] {
    let memory = group.memory.map(|bytes| format!("{} memory", words::rounded(bytes))).unwrap_or_default();
    let cpu =
        group.cpu_usec.map(|micros| format!("{}.{:01} s CPU", micros / 1_000_000, micros / 100_000 % 10));
    let is_in_it = |other: &&GroupStatus| group_path::is_below(&other.group, &group.group);
    let in_it = groups.iter().filter(|_| group.unit.is_some()).filter(is_in_it);
    let processes: usize = in_it.map(|inner| inner.tasks.len()).sum();
    [counted(group.tasks.len() + processes, "process"), memory, cpu.unwrap_or_default()]
}

fn tasks(group: &GroupStatus) -> String {
    let named: Vec<String> = group
        .tasks
        .iter()
        .take(NAMED)
        .map(|task| format!("{} {}", task.pid, printable(&task.comm)))
        .collect();
    let more = match group.tasks.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match group.tasks.len() {
        0 => "no processes".to_owned(),
        count => format!("{}: {}{more}", counted(count, "process"), named.join(", ")),
    }
}
