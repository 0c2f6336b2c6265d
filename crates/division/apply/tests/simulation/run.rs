//! One seed: commands, faults and what others do, in an order drawn from it; after each the rules are looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use apply::{
    By, Earlier, Failure, Lock, Meta, Outcome as Applied, Recovered, Recovery, State, Target, UNDOABLE,
    confirm, execute, generations, recover, undo,
};
use fake::{Fake, Snapshot};
use kernel::Kernel;
use plan::{Anybody, MachineFacts, Plan};
use rustix::io::Errno;
use tempfile::TempDir;
use topology::Machine;

use crate::{
    layouts::Layout,
    machine::{Affinities, Clocks, Fault, Faults, Killed, Sim},
    random::{FIRST_SHORT, Random},
    world::{CPUS, Kind},
};

/// What came of one seed.
pub struct Outcome {
    pub violation: Option<String>,
    /// What was done, a line for each.
    pub log: Vec<String>,
    /// What happened how often.
    pub counted: BTreeMap<&'static str, u64>,
}

pub fn run(seed: u64) -> Outcome {
    let mut run = Run::new(seed);
    let violation = run.all().err();
    Outcome { violation, log: run.log, counted: run.counted }
}

pub const ERRNOS: [Errno; 8] = [
    Errno::INVAL,
    Errno::NOSPC,
    Errno::PERM,
    Errno::IO,
    Errno::NOMEM,
    Errno::BUSY,
    Errno::ACCESS,
    Errno::NODEV,
];
/// Seconds within which a change has to be confirmed, where it has to be.
const WITHIN: u64 = 30;

/// What the history says of an apply.
pub const LAYOUT: &str = "layout";

/// A generation that was applied.
pub struct AppliedLayout {
    pub layout: Layout,
    pub before: Snapshot,
    /// What others had changed of the layout before it.
    pub drifted: BTreeSet<(usize, String, String)>,
}

pub struct Run {
    pub random: Random,
    pub kind: Kind,
    pub machine: Machine,
    pub fake: Fake,
    /// The same without Ringfence.
    pub base: Fake,
    pub clocks: Clocks,
    pub affinities: Affinities,
    pub directory: TempDir,
    /// How many generations can be undone one by one.
    undoable: usize,
    pub made: BTreeMap<u32, AppliedLayout>,
    pub last: Option<Layout>,
    /// Tasks that others started, with their numbers where Ringfence never was.
    pub tasks: BTreeMap<u32, u32>,
    /// Those that were there at the start.
    pub first: BTreeSet<u32>,
    /// What others wrote into groups, or made, that are only there because of a layout.
    pub theirs: BTreeSet<(usize, String, String)>,
    /// What others changed of what a layout asks for, since the last apply.
    pub drifted: BTreeSet<(usize, String, String)>,
    /// Was a CPU switched off?
    pub switched: bool,
    /// What commands named as left.
    pub left: Vec<String>,
    pub log: Vec<String>,
    pub counted: BTreeMap<&'static str, u64>,
    /// What a layout makes alone of a state, worked out last.
    pub known: Option<(Layout, Snapshot, Option<Snapshot>)>,
}

pub type Checked<T = ()> = Result<T, String>;

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let kind = Kind::random(&mut random);
        let fake = kind.kernel(&mut random);
        let (made, tasks, theirs, drifted, left, counted) = Default::default();
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let first = fake.processes().unwrap().into_iter().collect();
        Run {
            random,
            kind,
            machine: machine(),
            base: fake.copy(),
            fake,
            clocks: Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 },
            affinities: Affinities::default(),
            directory,
            undoable: if seed < FIRST_SHORT { UNDOABLE } else { 1 + (seed % 3) as usize },
            made,
            last: None,
            tasks,
            first,
            theirs,
            drifted,
            switched: false,
            left,
            log: vec![format!("{kind:?}")],
            counted,
            known: None,
        }
    }

    fn all(&mut self) -> Checked {
        let more = if self.undoable < UNDOABLE { 10 } else { 0 };
        for _ in 0..3 + more + self.random.below(7) {
            match self.random.below(100) {
                0..40 => self.apply()?,
                40..55 => self.undo()?,
                55..60 => self.confirm()?,
                60..66 => self.wait(),
                66..70 => self.damage()?,
                70 => self.lose_state(),
                71 => self.reboot(),
                _ => self.event(),
            }
        }
        self.finish()
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counted.entry(what).or_default() += 1;
    }

    pub fn note(&mut self, line: String) {
        // its name is different each time
        let directory = self.directory.path().display().to_string();
        self.log.push(line.replace(&directory, "STATE"));
    }

    /// A fault at one of a command's first changes, now and then.
    pub fn fault(&mut self, percent: usize) -> Vec<(usize, Fault)> {
        if !self.random.chance(percent) {
            return Vec::new();
        }
        let mut faults = Vec::new();
        let count = if self.random.chance(20) { 2 } else { 1 };
        for _ in 0..count {
            let fault = match self.random.below(4) {
                0 => Fault::KillBefore,
                1 => Fault::KillAfter,
                _ => Fault::Refuse(self.random.pick(&ERRNOS)),
            };
            faults.push((self.random.below(20), fault));
        }
        faults
    }

    /// A new process that does `act`; `None` if it was killed.
    pub fn command<T>(
        &mut self,
        what: &str,
        faults: Vec<(usize, Fault)>,
        act: impl FnOnce(&Lock, Target<'_>) -> T,
    ) -> Checked<Option<T>> {
        let shown = format!("{what} {faults:?}");
        let faults = Faults::at(faults);
        let (host, sim) = Sim::new(&self.fake, &faults, self.clocks, &self.affinities, CPUS);
        let state = State::open(self.directory.path()).map_err(|failure| failure.to_string())?;
        let state = state.undoable(self.undoable);
        let lock = state.lock(Duration::ZERO).map_err(|failure| failure.to_string())?;
        let result = catch_unwind(AssertUnwindSafe(|| act(&lock, Target { host: &host, system: &sim })));
        self.note(format!("{shown}: {} changes, fault {}", faults.count(), faults.hit()));
        if faults.hit() {
            self.count("faults");
        }
        match result {
            Ok(done) => Ok(Some(done)),
            Err(payload) if payload.is::<Killed>() => {
                self.count("kills");
                Ok(None)
            }
            Err(_) => Err(format!("{what} panicked")),
        }
    }

    pub fn state(&self) -> State {
        State::peek(self.directory.path()).undoable(self.undoable)
    }

    /// The applied generations in effect, oldest first.
    pub fn in_effect(&self) -> Checked<Vec<u32>> {
        let all = generations(&self.state()).map_err(|failure| failure.to_string())?;
        Ok(apply::in_effect(&all, &self.clocks.boot_id()))
    }

    /// What a process that was killed left is put back, and what was not confirmed is taken back: by the next command,
    /// which may be killed too.
    pub fn settle(&mut self) -> Checked<Vec<Recovered>> {
        let before = self.fake.snapshot();
        let in_effect = self.in_effect()?;
        let mut all = Vec::new();
        loop {
            let faults = self.fault(15).into_iter().filter(|(_, fault)| !matches!(fault, Fault::Refuse(_)));
            let faults = faults.collect();
            match self.command("recover", faults, recover)? {
                None => {}
                Some(Err(failure)) => return Err(format!("recover: {failure}")),
                Some(Ok(recovered)) => {
                    all.extend(recovered);
                    break;
                }
            }
        }
        for recovered in &all {
            self.note(format!("  {recovered:?}"));
            self.left.extend(recovered.left.iter().cloned());
        }
        let now = self.in_effect()?;
        if now != in_effect {
            self.count("taken back");
            self.taken_back("not confirmed", &in_effect, &before, &[])?;
        }
        Ok(all)
    }

    fn apply(&mut self) -> Checked {
        self.settle()?;
        let before = self.fake.snapshot();
        let is_v1 = self.kind.has_v1_memory();
        let layout = match &self.last {
            Some(last) if self.random.chance(70) => last.clone().changed(&mut self.random, is_v1),
            _ => Layout::random(&mut self.random, is_v1),
        };
        let within = self.random.chance(15).then_some(WITHIN);
        let text = layout.text().replace('\n', " | ");
        let faults = self.fault(35);
        let (machine, wanted) = (self.machine.clone(), layout.clone());
        let hit = !faults.is_empty();
        let done = self.command(&format!("apply {text} {within:?}"), faults, |lock, target| {
            planned(lock.state(), target, &machine, &wanted).map(|plan| {
                let lints: Vec<String> = plan.lints.iter().map(|lint| lint.message.clone()).collect();
                execute(lock, target, &plan, &meta(LAYOUT, within)).map(|outcome| (outcome, lints))
            })
        })?;
        match done {
            None => return self.killed("a killed apply", &before),
            Some(Err(problem)) => {
                self.count("not planned");
                self.note(format!("  {problem}"));
                self.compare("a layout that the machine cannot satisfy", &[&before], &[])?;
            }
            Some(Ok(Err(failure))) => {
                if !hit && self.reference(Some(&layout)).is_some() {
                    self.count("refused, possible alone");
                }
                self.failed("apply", failure, &before)?;
            }
            Some(Ok(Ok((outcome, lints)))) => {
                self.count("applied");
                lints.iter().for_each(|lint| self.note(format!("  {lint}")));
                self.applied(&layout, before, &outcome, lints)?;
            }
        }
        self.status_is_true()
    }

    fn applied(
        &mut self,
        layout: &Layout,
        before: Snapshot,
        outcome: &Applied,
        mut named: Vec<String>,
    ) -> Checked {
        self.last = Some(layout.clone());
        let drifted = std::mem::take(&mut self.drifted);
        let names = std::fs::read_dir(self.directory.path().join("generations")).unwrap();
        if names.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".joined")) {
            self.count("joined");
        }
        if let Some(generation) = outcome.generation {
            self.made.insert(generation, AppliedLayout { layout: layout.clone(), before, drifted });
        }
        named.extend(outcome.left.iter().cloned());
        named.extend(self.stayed()?);
        let Some(wanted) = self.reference(Some(layout)) else {
            self.count("not possible alone");
            return Ok(());
        };
        self.compare("after apply", &[&wanted], &named)
    }

    fn failed(&mut self, what: &str, failure: Failure, before: &Snapshot) -> Checked {
        self.note(format!("  {failure}"));
        let left = match failure {
            Failure::RolledBack { left, .. } => {
                self.count("rolled back");
                left
            }
            _ => {
                self.count("refused");
                Vec::new()
            }
        };
        let is_whole = left.is_empty();
        self.left.extend(left);
        self.compare(&format!("after a failed {what}"), &[before], &[])?;
        if is_whole { self.tasks_are_back(what, before) } else { Ok(()) }
    }

    /// What a killed command began is put back by the next one.
    fn killed(&mut self, what: &str, before: &Snapshot) -> Checked {
        let was = self.in_effect()?;
        let recovered = self.settle()?;
        if recovered.iter().any(|recovered| recovered.how == Recovery::Finished) {
            return Err(format!("{what} was done although it was killed: {recovered:?}"));
        }
        if self.in_effect()? == was {
            self.compare(&format!("after {what} and recovery"), &[before], &[])?;
            if recovered.iter().all(|recovered| recovered.left.is_empty()) {
                self.tasks_are_back(what, before)?;
            }
        }
        self.status_is_true()
    }

    fn undo(&mut self) -> Checked {
        self.settle()?;
        let before = self.fake.snapshot();
        let in_effect = self.in_effect()?;
        let to = match self.random.below(4) {
            0 => Some(0),
            1 if !in_effect.is_empty() => Some(self.random.pick(&in_effect)),
            _ => None,
        };
        let faults = self.fault(35);
        self.undo_to(to, faults, &before, &in_effect)?;
        self.status_is_true()
    }

    /// Returns what it names as left.
    pub fn undo_to(
        &mut self,
        to: Option<u32>,
        faults: Vec<(usize, Fault)>,
        before: &Snapshot,
        was: &[u32],
    ) -> Checked<Vec<String>> {
        let done = self.command(&format!("undo {to:?}"), faults, |lock, target| {
            undo(lock, target, to, &meta("undo", None))
        })?;
        match done {
            None => self.killed("a killed undo", before)?,
            Some(Err(Failure::NothingToUndo | Failure::NothingRecorded { .. })) => {
                self.compare("nothing to undo", &[before], &[])?
            }
            Some(Err(failure)) => self.failed("undo", failure, before)?,
            Some(Ok(outcome)) => {
                self.count("undone");
                self.note(format!("  {outcome:?}"));
                self.taken_back("after undo", was, before, &outcome.left)?;
                return Ok(outcome.left);
            }
        }
        Ok(Vec::new())
    }

    fn confirm(&mut self) -> Checked {
        self.settle()?;
        let done = self.command("confirm", Vec::new(), |lock, target| confirm(lock, target, None))?;
        if matches!(done, Some(Ok(_))) {
            self.count("confirmed");
        }
        Ok(())
    }

    /// A group that had to stay has no limit any more, but for those that are named by their file.
    fn nothing_limits_who_stays(&self, left: &[String]) -> Checked {
        let (now, base) = (self.fake.snapshot(), self.base.snapshot());
        let is_limit = |file: &str| {
            ["cpu.", "memory.", "pids.", "io.", "blkio."].iter().any(|start| file.starts_with(start))
        };
        let mut wrong = Vec::new();
        for (tree, groups) in now.groups.iter().enumerate() {
            let stays = groups.iter().filter(|(group, _)| !base.groups[tree].contains_key(*group));
            for (group, file, text) in
                stays.flat_map(|(group, values)| values.iter().map(move |(file, text)| (group, file, text)))
            {
                let key = (tree, group.clone(), file.clone());
                let is_others = self.theirs.contains(&key)
                    || self.theirs.contains(&(tree, group.clone(), String::new()))
                    || self.drifted.contains(&key);
                if is_limit(file) && !is_others && !left.iter().any(|text| text.contains(file.as_str())) {
                    wrong.push(format!("{group}/{file} is still {text}"));
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("undone, and {}", wrong.join("; "))) }
    }

    /// Everybody leaves, and everything is undone: as at the start.
    fn finish(&mut self) -> Checked {
        self.settle()?;
        let mut left: Vec<String> = Vec::new();
        for tasks_stay in [true, false] {
            if !tasks_stay {
                self.tasks.clear();
                // whoever is left of a storm, too
                let first: BTreeSet<u32> = self.first.clone();
                for fake in [&self.fake, &self.base] {
                    for pid in fake.processes().unwrap().into_iter().filter(|pid| !first.contains(pid)) {
                        fake.end(pid);
                    }
                }
                for cpu in 0..CPUS {
                    self.fake.set_online(cpu, true);
                    self.base.set_online(cpu, true);
                }
                let mut made: Vec<_> = self.theirs.iter().filter(|(.., file)| file.is_empty()).collect();
                made.sort_by_key(|(_, group, _)| std::cmp::Reverse(group.len()));
                for (tree, group, _) in made {
                    let _ = self.fake.rmdir(&self.fake.hierarchies().unwrap()[*tree], group);
                }
                // what others wrote is theirs where the file is still there: v1's never go, and v2's stay with a
                // controller that could not be switched off, which is named
                self.theirs.retain(|(.., file)| !file.is_empty());
                self.note("everybody leaves".to_owned());
            }
            let (before, was) = (self.fake.snapshot(), self.in_effect()?);
            left.extend(self.undo_to(Some(0), Vec::new(), &before, &was)?);
            self.status_is_true()?;
            self.nothing_limits_who_stays(&left)?;
        }
        let base = self.base.snapshot();
        // what earlier commands named is no excuse any more
        self.left.clear();
        self.compare("after everything is undone", &[&base], &left)?;
        let all = units::CpuSet::range(0, CPUS - 1);
        let affinities = self.affinities.lock().unwrap();
        let other = affinities.iter().find(|(pid, cpus)| **cpus != all && self.fake.process(**pid).is_ok());
        match other {
            Some((pid, cpus)) if left.is_empty() => {
                Err(format!("after everything is undone: {pid} is on CPUs {cpus}"))
            }
            _ => Ok(()),
        }
    }
}

pub fn meta(what: &str, confirm_within: Option<u64>) -> Meta {
    Meta {
        by: By::default(),
        what: what.to_owned(),
        confirm_within,
        layout: what == LAYOUT,
        ..Meta::default()
    }
}

pub fn planned(
    state: &State,
    target: Target<'_>,
    machine: &Machine,
    layout: &Layout,
) -> Result<Plan, String> {
    planned_text(state, target, machine, &layout.text())
}

pub fn planned_text(
    state: &State,
    target: Target<'_>,
    machine: &Machine,
    text: &str,
) -> Result<Plan, String> {
    let sources = [layout::Source::new("layout.toml", text)];
    let reading = layout::read(&sources);
    let desired = reading.desired.ok_or_else(|| layout::render(&reading.diagnostics, &sources))?;
    let earlier = Earlier::read(state, target).map_err(|failure| failure.to_string())?;
    apply::planned(target, &earlier, &desired, machine, &MachineFacts(machine), &Anybody)
        .map_err(|problems| format!("{problems:?}"))
}

pub fn machine() -> Machine {
    let cpu = |id: usize| {
        serde_json::json!({
            "id": id, "online": true, "package": 0, "core": id, "node": 0, "l3": 0, "siblings": id.to_string(),
        })
    };
    let all = serde_json::json!({
        "sources": [],
        "cpus": (0..CPUS).map(cpu).collect::<Vec<_>>(),
        "nodes": [{
            "id": 0, "cpus": format!("0-{}", CPUS - 1), "memory_total": 4_u64 << 30, "distances": [10],
        }],
        "l3": [{ "cpus": format!("0-{}", CPUS - 1) }],
    });
    serde_json::from_value(all).unwrap()
}
