//! Which programs that schedules wait for have a process: from the kernel's events, and from a look at all processes.

use std::collections::{BTreeMap, HashSet};

use classify::RequestedProgram;
use events::{Event, Kind};
use layout::Process;
use system::ProcessReader;

/// The processes of each program.
#[derive(Debug, Default)]
pub(crate) struct RunningPrograms {
    /// By program, as the schedule names it.
    of: BTreeMap<String, (RequestedProgram, HashSet<u32>)>,
}

impl RunningPrograms {
    /// Looks for the processes of these programs.
    pub fn look(&mut self, programs: impl Iterator<Item = String>) {
        let requested = |program: &String| {
            let process = Process::new(program).unwrap_or_else(|| Process::Name(program.clone()));
            (RequestedProgram::new(&process), HashSet::new())
        };
        self.of = programs.map(|program| (program.clone(), requested(&program))).collect();
        if self.of.is_empty() {
            return;
        }
        ProcessReader::all().unwrap_or_default().into_iter().for_each(|pid| self.began(pid));
    }

    /// Looks for the same programs again: events were lost.
    pub fn look_again(&mut self) {
        let programs: Vec<String> = self.of.keys().cloned().collect();
        self.look(programs.into_iter());
    }

    /// Does one of its processes live? `None`: nobody waits for it.
    pub fn runs(&self, program: &str) -> Option<bool> {
        self.of.get(program).map(|(_, pids)| !pids.is_empty())
    }

    /// Takes an event. True if it may have changed an answer.
    pub fn take(&mut self, event: &Event) -> bool {
        if self.of.is_empty() {
            return false;
        }
        let before = self.counts();
        match event.kind {
            Kind::Exec { tgid, .. } => self.began(tgid),
            // a child is the same program until its own exec
            Kind::Fork { parent_tgid, child_tgid, .. } if parent_tgid != child_tgid => {
                let of_parent = self.of.values_mut().filter(|(_, pids)| pids.contains(&parent_tgid));
                of_parent.for_each(|(_, pids)| _ = pids.insert(child_tgid));
            }
            Kind::Exit { pid, tgid, .. } if pid == tgid => {
                self.of.values_mut().for_each(|(_, pids)| _ = pids.remove(&tgid));
            }
            _ => return false,
        }
        before != self.counts()
    }

    fn counts(&self) -> Vec<bool> {
        self.of.values().map(|(_, pids)| pids.is_empty()).collect()
    }

    fn began(&mut self, pid: u32) {
        for (program, pids) in self.of.values_mut() {
            match is_program(pid, program) {
                true => pids.insert(pid),
                false => pids.remove(&pid),
            };
        }
    }
}

/// Is a process this program, by its path or its name?
fn is_program(pid: u32, program: &RequestedProgram) -> bool {
    let mut reader = ProcessReader::new();
    reader.process(pid).and_then(|mut process| Ok(program.is(&process.program()?))).unwrap_or(false)
}
