//! Runs one condition on the real machine: makes its groups, gives their settings, starts the workloads inside,
//! lets them begin together, and takes everything away again, also if a step failed.

use std::{sync::atomic::AtomicBool, time::Instant};

use serde::Serialize;

use super::{Condition, Group, seconds};
use crate::{
    Child, CpuReport, Division, Error, Program, ReadReport,
    load::{Others, Ticks},
    run_together,
};

/// How study S2 read: blocks of 8 KiB, four at a time.
const BLOCK: &str = "8192";
const DEPTH: &str = "4";

/// Three periods of a quota.
const WARM_UP_MS: &str = "300";

/// A command that gives settings, and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// As it can be typed.
    pub command: String,
    /// What was written where, one line each.
    pub wrote: Vec<String>,
}

/// What the workloads of one group reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupRun {
    /// The group's name.
    pub group: String,
    /// Its CPU workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuReport>,
    /// Its reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadReport>,
}

impl GroupRun {
    /// CPU time of all its workloads, in nanoseconds.
    fn cpu_time(&self) -> u64 {
        let workers = self.cpu.iter().map(|worker| worker.process_cpu_ns);
        workers.chain(self.read.iter().map(|reader| reader.process_cpu_ns)).sum()
    }
}

/// One run of one condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The condition's name.
    pub condition: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// The groups in the condition's order.
    pub groups: Vec<GroupRun>,
    /// What the rest of the machine did meanwhile.
    pub others: Others,
    /// The settings given.
    pub settings: Vec<Applied>,
}

/// Runs conditions; the tests have one that only pretends.
pub(super) trait Bench {
    fn run(&mut self, condition: &Condition, repetition: u32) -> Result<Run, Error>;
}

/// The real machine.
pub(super) struct Machinery<'a> {
    division: &'a mut dyn Division,
    program: Program,
    stop: &'a AtomicBool,
    /// Groups that are there now.
    made: Vec<String>,
}

const PREFIX: &str = "rf-demo-";

/// The name tells whose the group is, so that the next demonstration can remove it if its owner was killed.
fn name(letter: char) -> String {
    format!("{PREFIX}{}-{letter}", std::process::id())
}

/// The process that made a group of this name; `None` if it is no demonstration's.
pub(super) fn owner(name: &str) -> Option<u32> {
    let (pid, letter) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_ours = matches!(letter, "a" | "b") && pid.bytes().all(|b| b.is_ascii_digit());
    pid.parse().ok().filter(|_| is_ours)
}

impl<'a> Machinery<'a> {
    pub fn new(division: &'a mut dyn Division, program: Program, stop: &'a AtomicBool) -> Machinery<'a> {
        Machinery { division, program, stop, made: Vec::new() }
    }

    fn make(&mut self, group: &Group) -> Result<Option<Applied>, Error> {
        let name = name(group.letter);
        // one that could not be removed before has settings of another condition
        if self.made.contains(&name) {
            self.division.remove(&name)?;
        } else {
            self.made.push(name.clone()); // even if it fails half way it is to be removed
        }
        self.division.create(&name, &group.controllers)?;
        if group.settings.is_empty() {
            return Ok(None);
        }
        let settings: Vec<(&str, &str)> =
            group.settings.iter().map(|(setting, value)| (*setting, value.as_str())).collect();
        let wrote = self.division.set(&name, &settings)?;
        Ok(Some(Applied { command: command(&name, &settings), wrote }))
    }

    fn start(&mut self, condition: &Condition) -> Result<Vec<Child>, Error> {
        let mut children = Vec::new();
        for group in &condition.groups {
            for _ in 0..condition.workers.max(1) {
                let mut child = self.start_one(condition)?;
                match self.division.enter(&name(group.letter), child.pid()) {
                    // one that failed at once tells why when it is listened to
                    Err(refused) if !child.is_gone() => return Err(refused.into()),
                    _ => children.push(child),
                }
            }
        }
        Ok(children)
    }

    fn start_one(&self, condition: &Condition) -> Result<Child, Error> {
        let time = condition.seconds.to_string();
        match &condition.device {
            None => {
                let threads = condition.threads.to_string();
                let options = ["--seconds", &time, "--warm-up-ms", WARM_UP_MS, "--threads", &threads];
                Child::start(&self.program, "cpu", options)
            }
            Some(device) => {
                let options = ["--seconds", &time, "--block", BLOCK, "--depth", DEPTH, "--device"];
                let options = options.map(std::ffi::OsStr::new).into_iter().chain([device.as_os_str()]);
                Child::start(&self.program, "read", options)
            }
        }
    }

    fn measure(&mut self, condition: &Condition, repetition: u32) -> Result<Run, Error> {
        let mut settings = Vec::new();
        for group in &condition.groups {
            settings.extend(self.make(group)?);
        }
        let mut children = self.start(condition)?;
        let failed = |source| Error::System { what: "cannot read /proc/stat", source };
        let (before, begun) = (Ticks::now().map_err(failed)?, Instant::now());
        let reports = run_together(&mut children, seconds(condition.seconds), self.stop)?;
        let (after, elapsed) = (Ticks::now().map_err(failed)?, begun.elapsed());
        let groups = groups(condition, &reports)?;
        let own: u64 = groups.iter().map(GroupRun::cpu_time).sum();
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let others = after.others_since(before, own, elapsed);
        Ok(Run { condition: condition.name(), repetition, groups, others, settings })
    }

    /// Removes every group that is there; the first refusal is told after all were tried. What could not be
    /// removed is tried again the next time.
    fn remove_all(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        let division = &mut self.division;
        self.made.retain(|name| match division.remove(name) {
            Ok(()) => false,
            Err(refused) => {
                if result.is_ok() {
                    result = Err(refused.into());
                }
                true
            }
        });
        result
    }
}

impl Bench for Machinery<'_> {
    fn run(&mut self, condition: &Condition, repetition: u32) -> Result<Run, Error> {
        let run = self.measure(condition, repetition);
        // the workloads are gone by now: their values were dropped
        let removed = self.remove_all();
        let run = run?;
        removed.map(|()| run)
    }
}

impl Drop for Machinery<'_> {
    fn drop(&mut self) {
        let _ = self.remove_all(); // only after a panic is there anything left
    }
}

fn groups(condition: &Condition, reports: &[String]) -> Result<Vec<GroupRun>, Error> {
    let unreadable = |name: &str| {
        let name = name.to_owned();
        move |source| Error::Report { name, source }
    };
    let each = condition.groups.iter().zip(reports.chunks(condition.workers.max(1)));
    each.map(|(group, lines)| {
        let mut run = GroupRun { group: name(group.letter), cpu: Vec::new(), read: None };
        for line in lines {
            match condition.device {
                None => run.cpu.push(serde_json::from_str(line).map_err(unreadable("cpu workload"))?),
                Some(_) => run.read = Some(serde_json::from_str(line).map_err(unreadable("read workload"))?),
            }
        }
        Ok(run)
    })
    .collect()
}

/// The command line that does the same.
fn command(group: &str, settings: &[(&str, &str)]) -> String {
    let words = settings.iter().map(|(setting, value)| {
        let plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-,.%/_".contains(&b));
        if plain {
            format!("{setting}={value}")
        } else {
            format!("{setting}='{}'", value.replace('\'', "'\\''"))
        }
    });
    let words: Vec<String> = words.collect();
    format!("ringfence set {group} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_demonstrations_own_names_have_an_owner() {
        assert_eq!(owner("rf-demo-4711-a"), Some(4711));
        assert_eq!(owner(&name('b')), Some(std::process::id()));
        for other in [
            "rf-demo-4711",
            "rf-demo-4711-c",
            "rf-demo-x-a",
            "rf-demo--a",
            "rf-demo-+1-a",
            "db",
            "rf-demo-1-a-b",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn a_command_is_quoted_where_a_shell_needs_it() {
        assert_eq!(command("g", &[("cpu.max", "50%")]), "ringfence set g cpu.max=50%");
        let settings = [("cpuset.cpus", "0-3"), ("io.max", "/dev/loop0 riops=10")];
        assert_eq!(command("g", &settings), "ringfence set g cpuset.cpus=0-3 io.max='/dev/loop0 riops=10'");
    }
}
