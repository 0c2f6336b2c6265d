//! What elastic groups did since the sample before, as the policy takes it.

use kernel::{GroupName, Host};
use monitor::{Descriptors, Loads};
use policy::GroupState;

use crate::watching::few;

/// The figures of some groups.
pub(super) struct States {
    loads: Loads<Descriptors>,
    states: Vec<GroupState>,
}

impl States {
    pub fn new(host: &Host, groups: Vec<GroupName>) -> States {
        let states = vec![GroupState::default(); groups.len()];
        States { loads: Loads::new(host, few(), groups), states }
    }

    /// In the groups' order. One of which nothing is known, as at first, has no numbers in its state.
    pub fn all(&self) -> &[GroupState] {
        &self.states
    }

    /// Takes a sample.
    pub fn look(&mut self, host: &Host) {
        self.loads.look(host);
        for (state, load) in self.states.iter_mut().zip(self.loads.all()) {
            *state = match load {
                Some(load) => GroupState {
                    used: load.used,
                    waiting: load.waiting,
                    throttled: load.throttled,
                    slack: None,
                },
                None => GroupState { used: f64::NAN, ..GroupState::default() },
            };
        }
    }
}
