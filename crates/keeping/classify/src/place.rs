//! Puts a process where a rule leads: the group is made if it is to be made on demand, then all of the process's threads
//! are moved, in the rule's hierarchies only.

use std::cell::RefCell;

use kernel::{GroupName, Host, Seat, What};
use layout::Desired;
use system::NoProcess;

use crate::{
    Error, Facts, Goal, Membership, Names, NewDirectory, Present, Rules,
    goals::{hierarchies, seats},
    make::Maker,
};

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
    pub fn is_there(&self, goals: &[Goal], process: &mut dyn Facts) -> Result<bool, NoProcess> {
        let Ok(seats) = seats(self.host, goals) else { return Ok(false) };
        let here = Membership::of(self.host, process.control_groups()?);
        Ok(seats.iter().all(|(seat, _)| here.at(seat.at.id) == Some(seat.path.as_str())))
    }

    /// The hierarchies that goals are about, also of groups that are still to be made: for [`Present::only`].
    pub fn hierarchies(&self, goals: &[Goal]) -> Vec<usize> {
        hierarchies(self.host, goals)
    }

    /// Puts a process, with all its threads, where a rule leads it.
    ///
    /// # Errors
    /// [`Error`]; nothing was moved then.
    pub fn place(&self, rules: &Rules, rule: usize, process: &mut dyn Facts) -> Result<Placed, Error> {
        let goals = rules.goals(rule, process, self.names)?;
        self.place_at(&goals, process.pid())
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

    /// The same for goals that are known.
    ///
    /// # Errors
    /// [`Error`].
    pub fn place_at(&self, goals: &[Goal], pid: u32) -> Result<Placed, Error> {
        let mut tried = false;
        let into = loop {
            let into = self.ready(goals)?;
            match self.host.move_into(&into, &[pid], What::Process) {
                Ok(_) => break into,
                // an empty group may have been swept away between both
                Err(_) if !tried && goals.iter().any(|goal| self.is_missing(goal)) => tried = true,
                Err(error) => return Err(error.into()),
            }
        };
        let present = into.iter().map(|(seat, _)| (seat.at.id, seat.path.clone())).collect();
        let groups = into.into_iter().map(|(seat, group)| (group, seat.directory())).collect();
        Ok(Placed { groups, present })
    }

    fn is_missing(&self, goal: &Goal) -> bool {
        crate::make::is_made_on_demand(&goal.pattern) && seats(self.host, std::slice::from_ref(goal)).is_err()
    }
}
