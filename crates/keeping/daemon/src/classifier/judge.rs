//! What one process is to do: the decision, what was remembered, and the move.

use super::*;

/// Why a process was not put where it belongs.
pub(super) enum Trouble {
    /// It ended; before a rule took it, or after.
    NoProcess {
        taken: bool,
    },
    Refused {
        rule: usize,
        error: classify::Error,
    },
}

impl From<NoProcess> for Trouble {
    fn from(_: NoProcess) -> Trouble {
        Trouble::NoProcess { taken: false }
    }
}

/// What is remembered of a process.
struct Remembered {
    memory: Memory,
    /// Of who was born before its parent was moved: what was remembered of the parent before that.
    before_move: Option<Memory>,
}

impl Remembered {
    /// What holds of a process that is here now, in these hierarchies.
    fn of_now(self, now: &Present, hierarchies: &[usize]) -> Memory {
        let only = |memory: Memory| Memory { present: memory.present.only(hierarchies), ..memory };
        let (memory, before) = (only(self.memory), self.before_move.map(only));
        match before {
            Some(before) if memory.present != *now && before.present == *now => before,
            _ => memory,
        }
    }
}

/// All that one judgement needs.
pub(super) struct Judge<'j> {
    pub host: &'j Host,
    pub ruling: &'j mut LoadedRules,
    pub memberships: &'j mut Memberships,
    pub memories: &'j mut Memories,
    pub led: &'j HashSet<(usize, String)>,
    pub made: &'j mut MadeGroups,
    pub counters: &'j Counters,
    pub stays: &'j mut Stays,
    pub titles: &'j mut Titles,
}

impl Judge<'_> {
    pub fn judge(&mut self, process: &mut Process<'_>, scan: Option<Scan>) -> Result<Done, Trouble> {
        let pid = process.pid();
        let decision = self.ruling.rules.decide(process)?;
        let remembered = self.remembered(process, scan, decision)?;
        let Decision::To { rule } = decision else {
            self.note(process, decision, remembered)?;
            return Ok(Done::Left);
        };
        let way = self.way(rule, process)?;
        // a service that was started just now has no groups yet: it is looked at again
        if way.places.is_none() && self.ruling.is_in_unit(rule) {
            self.note(process, decision, remembered)?;
            return Ok(Done::Left);
        }
        let taken = |_| Trouble::NoProcess { taken: true };
        let now_at = now();
        let member = self.memberships.of(self.host, process.control_groups().map_err(taken)?);
        let strays = way.strays(&self.ruling.rules, self.host, &member);
        let holds = || way.places.as_ref().is_some_and(|places| Place::hold(places, &member));
        let there = strays.is_empty() && holds();
        let hierarchies = [way.hierarchies.as_slice(), &strays].concat();
        let present = member.ours();
        let now = present.only(&hierarchies);
        // only who is in a group that this rule does not lead to can have been put there
        let parent = if there || now.is_empty() { None } else { self.parent(process, &hierarchies)? };
        let before = match remembered {
            Some(remembered) => Some(remembered.of_now(&now, &hierarchies)),
            // a rule's doing, before we were started
            None if !now.is_empty() && now.groups().iter().all(|group| self.led.contains(group)) => {
                Some(Memory { present: now.clone(), ..Memory::default() })
            }
            None => None,
        };
        let (decision, memory) = settle(decision, &now, parent.as_ref(), before.as_ref(), there);
        self.memories.keep(pid, Memory { present: present.clone(), ..memory.clone() }, now_at);
        if there {
            Counters::count(&self.counters.there);
            return Ok(Done::Left);
        }
        if decision != (Decision::To { rule }) {
            Counters::count(&self.counters.by_hand);
            if let Some((at, path)) = now.groups().first()
                && let Some(at) = self.host.hierarchies().get(*at)
            {
                let group = units::printable(&self.host.named(at, path)).into_owned();
                self.stays.add(pid, rule, group);
            }
            return Ok(Done::Left);
        }
        if self.is_own(process)? {
            debug!(pid, "process {pid} is the daemon's own: it stays where it is");
            return Ok(Done::Left);
        }
        let is_stray = !strays.is_empty();
        let placed = self.move_into(&way, rule, (pid, is_stray), &member)?;
        let merged = self.host.hierarchies().iter().filter_map(|at| {
            let path = placed.iter().find(|(id, _)| *id == at.id).map(|(_, path)| path.as_str());
            let path = path.or_else(|| present.at(at.id).filter(|_| !strays.contains(&at.id)))?;
            (!path.is_empty()).then(|| (at.id, path.to_owned()))
        });
        self.memories.moved(pid, Memory { present: merged.collect(), ..memory }, self::now());
        Ok(Done::Moved)
    }

    /// This daemon, one of its children, or another daemon with its gate: in a group they could be slowed down, frozen or
    /// starved, and every start that waits for a gate with them.
    fn is_own(&self, process: &mut Process<'_>) -> Result<bool, NoProcess> {
        let (pid, own) = (process.pid(), std::process::id());
        Ok(pid == own
            // a gate that has not registered itself yet
            || (has_children() && process.status()?.parent == own)
            || kernel::protected(self.host.kernel(), pid).is_some())
    }

    /// What is remembered, or after lost events what its parent hands on.
    fn remembered(
        &self,
        process: &mut Process<'_>,
        scan: Option<Scan>,
        decision: Decision,
    ) -> Result<Option<Remembered>, NoProcess> {
        let own = process.pid();
        let whose = match self.memories.of(own) {
            Some(_) => own,
            None if scan == Some(Scan::Start) => return Ok(None),
            None => process.status()?.parent,
        };
        let Some(memory) = self.memories.of(whose) else { return Ok(None) };
        let before_move = if self.memories.was_moved(own) { None } else { self.memories.before_move(whose) };
        // a reload renumbers the rules: the one that fits now is the one that the manual move overruled
        let counted = |memory: Rc<Memory>| {
            let memory = (*memory).clone();
            if scan == Some(Scan::Reload) { Memory { rule: decision.rule(), ..memory } } else { memory }
        };
        Ok(Some(Remembered { memory: counted(memory), before_move: before_move.map(counted) }))
    }

    /// No rule takes it: it stays, and what it is now is remembered.
    fn note(
        &mut self,
        process: &mut Process<'_>,
        decision: Decision,
        remembered: Option<Remembered>,
    ) -> Result<(), NoProcess> {
        if decision == Decision::KernelThread {
            self.titles.ended(process.pid());
            return Ok(());
        }
        let memory = match remembered {
            // where it is counts only once a rule takes it
            Some(remembered) => Memory { rule: decision.rule(), ..remembered.memory },
            None => {
                let member = self.memberships.of(self.host, process.control_groups()?);
                settle(decision, member.ours(), None, None, false).1
            }
        };
        self.memories.keep(process.pid(), memory, now());
        Ok(())
    }

    fn way(&mut self, rule: usize, process: &mut Process<'_>) -> Result<Rc<RuleTarget>, Trouble> {
        if let Some(way) = self.ruling.fixed(rule, self.host) {
            return Ok(way);
        }
        let goals =
            self.ruling.rules.goals(rule, process, &self.ruling.accounts).map_err(|error| match error {
                GoalError::NoProcess(_) => Trouble::NoProcess { taken: true },
                error => Trouble::Refused { rule, error: error.into() },
            })?;
        let placer = Placer::new(self.host, &self.ruling.desired, &self.ruling.accounts);
        Ok(Rc::new(RuleTarget::new(goals, &placer, self.host, false)))
    }

    fn parent(
        &mut self,
        process: &mut Process<'_>,
        hierarchies: &[usize],
    ) -> Result<Option<Present>, NoProcess> {
        let parent = process.status()?.parent;
        let mut reader = ProcessReader::new();
        let Ok(mut parent) = reader.process(parent) else { return Ok(None) };
        let Ok(text) = parent.control_groups() else { return Ok(None) };
        Ok(Some(self.memberships.of(self.host, text).ours().only(hierarchies)))
    }

    /// Moves it; where it is then. `is_stray`: it leaves groups that other rules lead to, too.
    fn move_into(
        &mut self,
        way: &RuleTarget,
        rule: usize,
        (pid, is_stray): (u32, bool),
        from: &Membership,
    ) -> Result<Vec<(usize, String)>, Trouble> {
        // services of systemd stay where they are, which the long way looks at
        let is_long = is_stray || self.host.needs_unit();
        if let Some(places) = way.places.as_ref().filter(|_| !is_long) {
            match put(self.host, places, pid, from) {
                Placement::Done => {
                    return Ok(places.iter().map(|place| (place.at, place.path.clone())).collect());
                }
                Placement::NoProcess => return Err(Trouble::NoProcess { taken: true }),
                Placement::Refused => self.ruling.forget_places(rule),
            }
        }
        let placer = Placer::new(self.host, &self.ruling.desired, &self.ruling.accounts);
        let placed = placer.place_at(&self.ruling.rules, &way.goals, pid);
        let made = placer.take_made();
        let placed = placed.map_err(|error| match error.gone() {
            Some(_) => Trouble::NoProcess { taken: true },
            None => Trouble::Refused { rule, error },
        });
        self.made.add(made);
        let placed = placed?;
        let hierarchies = self.host.hierarchies().iter();
        Ok(hierarchies.filter_map(|at| Some((at.id, placed.present.at(at.id)?.to_owned()))).collect())
    }
}

/// Does this process have a child? One call answers, where `/proc/PID/status` costs as much as a move.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}
