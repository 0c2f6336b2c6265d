//! Puts a process where a rule leads: the group is made if it is to be made on demand, then all of the process's threads
//! are moved, in the rule's hierarchies only.

use std::cell::RefCell;

use kernel::{GroupName, Host, Seat, What};
use layout::Desired;
use system::NoProcess;

use crate::{
    Error, Facts, Goal, Membership, Names, NewDirectory, Present, Rules,
    control_groups::is_ours,
    goals::{hierarchies, seats},
    make::Maker,
    strays::others,
};

/// Where a process is, compared with where a rule leads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// There, and in no group of another rule.
    There,
    /// In all directories of the rule's groups, and in a hierarchy without these in another rule's group.
    Partly,
    /// Not in all of them.
    Elsewhere,
}

/// Puts processes into the groups of a configuration.
pub struct Placer<'p> {
    host: &'p Host,
    maker: Maker<'p>,
    names: &'p dyn Names,
    made: RefCell<Vec<NewDirectory>>,
}

/// Where a process was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The groups, each with a directory.
    pub groups: Vec<(GroupName, std::path::PathBuf)>,
    /// The same as it will be seen.
    pub present: Present,
}

impl<'p> Placer<'p> {
    /// `desired`: the configuration that the rules are of, for its templates.
    pub fn new(host: &'p Host, desired: &'p Desired, names: &'p dyn Names) -> Placer<'p> {
        Placer { host, maker: Maker { host, desired, names }, names, made: RefCell::default() }
    }

    /// The directories of groups that were made on demand since the last call, also where the move into one failed.
    pub fn take_made(&self) -> Vec<NewDirectory> {
        self.made.take()
    }

    pub(crate) fn host(&self) -> &Host {
        self.host
    }

    pub(crate) fn names(&self) -> &dyn Names {
        self.names
    }

    /// Is the process there already, by what `/proc/PID/cgroup` says of it? One read, and mostly the answer: a child is
    /// born into its parent's group.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn is_there(
        &self,
        rules: &Rules,
        goals: &[Goal],
        process: &mut dyn Facts,
    ) -> Result<bool, NoProcess> {
        Ok(self.presence(rules, goals, process)? == Presence::There)
    }

    pub(crate) fn presence(
        &self,
        rules: &Rules,
        goals: &[Goal],
        process: &mut dyn Facts,
    ) -> Result<Presence, NoProcess> {
        let Ok(seats) = seats(self.host, goals) else { return Ok(Presence::Elsewhere) };
        let here = Membership::of(self.host, process.control_groups()?);
        let is_in = |(seat, _): &(Seat<'_>, GroupName)| here.at(seat.at.id) == Some(seat.path.as_str());
        Ok(match seats.iter().all(is_in) {
            false => Presence::Elsewhere,
            true if others(self.host, goals).iter().any(|other| other.holds(rules, self.host, &here)) => {
                Presence::Partly
            }
            true => Presence::There,
        })
    }

    /// The hierarchies that goals are about, also of groups that are still to be made: for [`Present::only`].
    pub fn hierarchies(&self, goals: &[Goal]) -> Vec<usize> {
        hierarchies(self.host, self.maker.desired, goals)
    }

    /// Puts a process, with all its threads, where a rule leads it.
    ///
    /// # Errors
    /// [`Error`]; nothing was moved then.
    pub fn place(&self, rules: &Rules, rule: usize, process: &mut dyn Facts) -> Result<Placed, Error> {
        let goals = rules.goals(rule, process, self.names)?;
        self.place_at(rules, &goals, process.pid())
    }

    /// The directories that goals lead to, made if they are to be made on demand: for a command that is to be started
    /// there, and what [`Host::move_into`] takes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn ready(&self, goals: &[Goal]) -> Result<Vec<(Seat<'p>, GroupName)>, Error> {
        // nothing is made for a rule that can't be followed as a whole
        for goal in goals.iter().filter(|goal| !crate::make::is_made_on_demand(&goal.pattern)) {
            seats(self.host, std::slice::from_ref(goal))?;
        }
        for goal in goals {
            let made = self.maker.ready(goal)?;
            self.made.borrow_mut().extend(made);
        }
        Ok(seats(self.host, goals)?)
    }

    /// The same for goals that are known. In hierarchies without the group, the process leaves the group that another rule
    /// led it to.
    ///
    /// # Errors
    /// [`Error`].
    pub fn place_at(&self, rules: &Rules, goals: &[Goal], pid: u32) -> Result<Placed, Error> {
        let mut tried = false;
        let into = loop {
            let mut into = self.ready(goals)?;
            into.extend(self.ways_out(rules, goals, pid));
            match self.host.move_into(&into, &[pid], What::Process) {
                Ok(_) => break into,
                // an empty group may have been swept away between both
                Err(_) if !tried && goals.iter().any(|goal| self.is_missing(goal)) => tried = true,
                Err(error) => return Err(error.into()),
            }
        };
        let ours = into.iter().filter(|(seat, _)| is_ours(self.host.base(seat.at), &seat.path));
        let present = ours.map(|(seat, _)| (seat.at.id, seat.path.clone())).collect();
        let groups = into.into_iter().map(|(seat, group)| (group, seat.directory())).collect();
        Ok(Placed { groups, present })
    }

    /// Where it goes from groups that other rules lead to.
    fn ways_out(&self, rules: &Rules, goals: &[Goal], pid: u32) -> Vec<(Seat<'p>, GroupName)> {
        let others = others(self.host, goals);
        if others.is_empty() {
            return Vec::new();
        }
        let here = Membership::of_process(self.host, pid);
        let held = others.into_iter().filter(|other| other.holds(rules, self.host, &here));
        held.filter_map(|other| other.seat(self.host)).collect()
    }

    fn is_missing(&self, goal: &Goal) -> bool {
        crate::make::is_made_on_demand(&goal.pattern) && seats(self.host, std::slice::from_ref(goal)).is_err()
    }
}
