//! Files of cgroup v2 that are no settings to Ringfence, and that libcgroup's cgset writes: which controllers the groups below
//! have, and which tasks are in a group. Tasks are moved as cgclassify moves them.

use kernel::{GroupName, Host, Op, Seat, What};
use settings::Version;

use crate::failure::{Failure, NO_SETTING};

/// Which controllers the groups below have.
const CONTROLLERS: &str = "cgroup.subtree_control";

/// What `NAME=VALUE` asks of such a file.
pub(crate) enum CoreFile {
    /// Words such as `+cpuset` and `-pids`.
    Controllers(Vec<String>),
    /// A process or thread comes into the group.
    Task(u32, What),
}

/// One of them for one group.
pub(crate) enum Step<'h> {
    Controller(Seat<'h>, GroupName, String),
    Task(Seat<'h>, GroupName, u32, What),
}

/// What takes a step back: a text for a file.
pub(crate) struct Back<'h> {
    seat: Seat<'h>,
    file: &'static str,
    text: String,
}

impl CoreFile {
    /// `None` for all other names.
    pub(crate) fn read(name: &str, value: &str) -> Option<Result<CoreFile, Failure>> {
        let task = |what| {
            let wrong = || Failure::usage(format!("'{value}' is no number of a process or thread"));
            value.trim().parse().map(|task| CoreFile::Task(task, what)).map_err(|_| wrong())
        };
        match name {
            CONTROLLERS => {
                let words = value.split_whitespace().map(str::to_owned).collect();
                Some(Ok(CoreFile::Controllers(words)))
            }
            "cgroup.procs" => Some(task(What::Process)),
            "cgroup.threads" => Some(task(What::Thread)),
            _ => None,
        }
    }

    /// For groups, each before those below it. Of `below`, those without groups of their own keep their controllers: nothing would
    /// have them.
    pub(crate) fn steps<'h>(
        &self,
        host: &'h Host,
        groups: &[(GroupName, bool)],
    ) -> Result<Vec<Step<'h>>, Failure> {
        let at = host.hierarchies().iter().find(|at| at.version == Version::V2);
        let at = at.ok_or_else(|| {
            Failure::new(NO_SETTING, "cgroup v2 is not mounted, and v1 has no such file")
                .hint("cgclassify -g CONTROLLERS:GROUP PID moves a process")
        })?;
        let mut seats = Vec::new();
        for (group, below) in groups {
            let seat = host.seat_in(at, group);
            host.refuse_missing(&seat, group).map_err(|error| Failure::from(error).status(NO_SETTING))?;
            seats.push((seat, group.clone(), *below));
        }
        let has_groups = |seat: &Seat<'_>| {
            host.kernel().children(seat.at, &seat.path).is_ok_and(|children| !children.is_empty())
        };
        Ok(match self {
            CoreFile::Task(task, what) => {
                seats.into_iter().map(|(seat, group, _)| Step::Task(seat, group, *task, *what)).collect()
            }
            CoreFile::Controllers(words) => {
                seats.retain(|(seat, _, below)| !below || has_groups(seat));
                let mut steps = Vec::new();
                for word in words {
                    let step = |(seat, group, _): &(Seat<'h>, GroupName, bool)| {
                        Step::Controller(seat.clone(), group.clone(), word.clone())
                    };
                    // a controller goes from the groups below first
                    match word.starts_with('-') {
                        true => steps.extend(seats.iter().rev().map(step)),
                        false => steps.extend(seats.iter().map(step)),
                    }
                }
                steps
            }
        })
    }
}

impl<'h> Step<'h> {
    /// Does all of them, or none; returns what takes them back.
    pub(crate) fn do_all(host: &Host, steps: &[Step<'h>]) -> Result<Vec<Back<'h>>, Failure> {
        let mut done = Vec::new();
        for step in steps {
            match step.perform(host) {
                Ok(back) => done.extend(back),
                Err(failure) => {
                    Back::take_back(host, &done);
                    return Err(failure);
                }
            }
        }
        Ok(done)
    }

    fn perform(&self, host: &Host) -> Result<Option<Back<'h>>, Failure> {
        match self {
            Step::Controller(seat, group, word) => {
                let before = host.kernel().read(seat.at, &seat.path, CONTROLLERS).unwrap_or_default();
                host.write(seat, group, CONTROLLERS, word)?;
                let name = word.trim_start_matches(['+', '-']);
                let had = before.split_whitespace().any(|one| one == name);
                let text = match (word.starts_with('+'), had) {
                    (true, false) => format!("-{name}"),
                    (false, true) => format!("+{name}"),
                    _ => return Ok(None),
                };
                Ok(Some(Back { seat: seat.clone(), file: CONTROLLERS, text }))
            }
            Step::Task(seat, group, task, what) => {
                let from = host.kernel().group_of(seat.at, *task).ok();
                host.move_into(&[(seat.clone(), group.clone())], &[*task], *what)?;
                let from = from.and_then(|path| seat.at.below_mount(&path));
                let file = if *what == What::Thread { "cgroup.threads" } else { "cgroup.procs" };
                let back = |path| Back { seat: Seat { at: seat.at, path }, file, text: task.to_string() };
                Ok(from.map(back))
            }
        }
    }
}

impl Back<'_> {
    /// Takes steps back. What that refuses is said.
    pub(crate) fn take_back(host: &Host, done: &[Back<'_>]) {
        for Back { seat, file, text } in done.iter().rev() {
            if let Err(errno) = host.kernel().write(seat.at, &seat.path, file, text) {
                let group = GroupName::root();
                let error = host.refused(Op::Write, seat, &group, Some(file), Some(text), errno);
                crate::failure::warn(&format!("not taken back: {error}\n"));
            }
        }
    }
}
