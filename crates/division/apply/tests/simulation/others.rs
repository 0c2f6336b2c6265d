//! What happens beside the commands: time, other people's changes, damaged and lost files, reboots.

use std::collections::BTreeSet;

use apply::{history, undo};
use kernel::Kernel;

use crate::{
    machine::Affinities,
    run::{Checked, Run, meta},
    world::Event,
};

impl Run {
    pub fn wait(&mut self) {
        let seconds = self.random.pick(&[1, 10, 29, 31, 3600]);
        self.clocks.wall += seconds;
        self.clocks.since_boot += seconds;
        // somebody sets the clock
        let jump = self.random.pick(&[0, 0, 1 << 30, -(1 << 30), -2_000_000_000_i64]);
        self.clocks.wall = self.clocks.wall.saturating_add_signed(jump);
        self.note(format!("{seconds} s pass, the clock jumps by {jump} s"));
    }

    /// One bit of a record is wrong while a command runs: it is refused, or does what it would have done.
    pub fn damage(&mut self) -> Checked {
        self.settle()?;
        let directory = self.directory.path().join("generations");
        let mut files: Vec<_> = std::fs::read_dir(&directory).into_iter().flatten().flatten().collect();
        files.sort_by_key(std::fs::DirEntry::file_name);
        if files.is_empty() {
            return Ok(());
        }
        let path = files[self.random.below(files.len())].path();
        let whole = std::fs::read(&path).unwrap();
        let was = self.in_effect()?;
        if whole.is_empty() {
            return Ok(());
        }
        let mut damaged = whole.clone();
        let cut = self.random.chance(30);
        let at = self.random.below(whole.len());
        if cut {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << self.random.below(8);
        }
        std::fs::write(&path, &damaged).unwrap();
        self.count("damaged");
        let before = self.fake.snapshot();
        let what = format!("undo with {} damaged at {at}, cut: {cut}", path.display());
        let done = self.command("undo of something damaged", Vec::new(), |lock, target| {
            undo(lock, target, None, &meta("undo", None))
        })?;
        self.note(format!("  byte {at} of {:?}, cut: {cut}", path.file_name()));
        if std::fs::read(&path).is_ok_and(|now| now == damaged) {
            std::fs::write(&path, &whole).unwrap();
        }
        match done {
            None => Err("killed without a kill".to_owned()),
            Some(Err(failure)) => {
                self.note(format!("  {failure}"));
                self.count("damage refused");
                self.compare(&format!("damage refused ({what})"), &[&before], &[])
            }
            Some(Ok(outcome)) => {
                self.note(format!("  {outcome:?}"));
                self.taken_back("an undo with damage", &was, &before, &outcome.left)
            }
        }
    }

    /// Somebody deletes the state directory: what is there now was there before, as far as anybody can know.
    pub fn lose_state(&mut self) {
        let _ = std::fs::remove_dir_all(self.directory.path());
        std::fs::create_dir(self.directory.path()).unwrap();
        self.base = self.fake.copy();
        self.forget("the state directory is lost");
    }

    /// The machine goes down and comes back, and others do what they do.
    pub fn reboot(&mut self) {
        self.clocks.boot += 1;
        self.clocks.since_boot = 20;
        self.fake = self.kind.kernel(&mut self.random);
        self.base = self.fake.copy();
        self.first = self.fake.processes().unwrap().into_iter().collect();
        self.tasks.clear();
        for cpu in &mut self.machine.cpus {
            cpu.online = true;
        }
        self.affinities = Affinities::default();
        self.forget("the machine is booted");
    }

    pub fn forget(&mut self, why: &'static str) {
        self.count(why);
        self.note(why.to_owned());
        self.made.clear();
        self.affinities = Affinities::default();
        self.theirs.clear();
        self.drifted.clear();
        self.left.clear();
    }

    /// What generations in effect wrote.
    pub fn touched(&self) -> BTreeSet<(usize, String, String)> {
        let in_effect = self.in_effect().unwrap_or_default();
        let records = history(&self.state()).unwrap_or_default();
        let records = records.iter().filter(|record| in_effect.contains(&record.head.generation));
        let places = records.flat_map(|record| &record.entries).filter_map(|entry| {
            let place = entry.action.place()?;
            let file = match &entry.action {
                plan::Action::Write { file, .. } => file.clone(),
                _ => String::new(),
            };
            Some((place.hierarchy, place.path.clone(), file))
        });
        places.collect()
    }

    pub fn event(&mut self) {
        let event =
            Event::random(&mut self.random, &self.fake, &self.tasks.keys().copied().collect::<Vec<_>>());
        self.count("events");
        let (fake, base) = (self.fake.clone(), self.base.clone());
        let hierarchies = fake.hierarchies().unwrap();
        let touched = self.touched();
        let in_base = |tree: usize, group: &str| base.exists(&hierarchies[tree], group);
        let mut result = Ok(());
        match &event {
            Event::Write { tree, group, file, text } => {
                let key = (*tree, group.clone(), (*file).to_owned());
                result = fake.write(&hierarchies[*tree], group, file, text);
                if result.is_ok() && touched.contains(&key) {
                    self.drifted.insert(key);
                } else if result.is_ok() && base.write(&hierarchies[*tree], group, file, text).is_err() {
                    self.theirs.insert(key);
                }
            }
            Event::Make { tree, group } => {
                result = fake.mkdir(&hierarchies[*tree], group);
                if result.is_ok() && base.mkdir(&hierarchies[*tree], group).is_err() {
                    self.theirs.insert((*tree, group.clone(), String::new()));
                }
            }
            Event::Remove { tree, group } => {
                let is_managed = touched.iter().any(|(at, path, _)| at == tree && path == group);
                if !(is_managed && in_base(*tree, group)) {
                    result = fake.rmdir(&hierarchies[*tree], group);
                    if result.is_ok() && in_base(*tree, group) {
                        let _ = base.rmdir(&hierarchies[*tree], group);
                    } else if result.is_ok() {
                        self.drifted.insert((*tree, group.clone(), String::new()));
                    }
                }
            }
            Event::Spawn => {
                self.tasks.insert(fake.spawn(1).unwrap(), base.spawn(1).unwrap());
            }
            Event::Storm { tree, group } => {
                // only where Ringfence is: forks happen whenever somebody looks
                if let Ok(pid) = fake.spawn_storm(1, 6) {
                    result = fake.write(&hierarchies[*tree], group, "cgroup.procs", &pid.to_string());
                }
            }
            Event::Cpu { cpu, online } => {
                fake.set_online(*cpu, *online);
                base.set_online(*cpu, *online);
                self.switched = true;
                for one in self.machine.cpus.iter_mut().filter(|one| one.id == *cpu) {
                    one.online = *online;
                }
            }
            Event::Move { pid, tree, group } => {
                let text = pid.to_string();
                result = fake.write(&hierarchies[*tree], group, "cgroup.procs", &text);
                if result.is_ok() {
                    let there = if in_base(*tree, group) { group.as_str() } else { "" };
                    let there_pid = self.tasks.get(pid).map_or_else(String::new, u32::to_string);
                    let _ = base.write(&hierarchies[*tree], there, "cgroup.procs", &there_pid);
                }
            }
            Event::End { pid } => {
                fake.end(*pid);
                if let Some(other) = self.tasks.remove(pid) {
                    base.end(other);
                }
            }
        }
        self.note(format!("{event:?} {result:?}"));
    }
}
