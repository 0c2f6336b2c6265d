//! What an experiment asks of the program around it: groups, their settings, processes in them. Whether a
//! setting lands on cgroup v1 or v2 is not the experiment's business.

/// An explained refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    /// What was refused and why, with the group, the file and the value.
    pub text: String,
    /// What mends it, if that is known.
    pub hint: Option<String>,
}

/// Groups as the user names them (`rf-demo-4711-a`), wherever they really are.
pub trait Division {
    /// Where each controller that the experiments use is found, one line each, for people.
    fn describe(&mut self) -> Vec<String>;

    /// The names of all groups at the place where our groups are made, without those below them.
    ///
    /// # Errors
    /// They can't be listed.
    fn groups(&mut self) -> Result<Vec<String>, Refused>;

    /// Makes a group where these controllers (`cpu`, `cpuset`, `io`) are, and nowhere else.
    ///
    /// # Errors
    /// A controller is missing, or the kernel refuses; then nothing is left of the group.
    fn create(&mut self, group: &str, controllers: &[&str]) -> Result<(), Refused>;

    /// Gives settings by name (`cpu.max`) and value as on the command line, in an order that the kernel accepts.
    /// Returns a line for each file written: what was written where, and what the kernel made of it if that
    /// differs.
    ///
    /// # Errors
    /// A setting was refused; then none of them is changed.
    fn set(&mut self, group: &str, settings: &[(&str, &str)]) -> Result<Vec<String>, Refused>;

    /// Moves a process into a group, wherever the group is.
    ///
    /// # Errors
    /// The kernel refuses, or the process is gone.
    fn enter(&mut self, group: &str, pid: u32) -> Result<(), Refused>;

    /// Kills every process in a group, waits until they are gone, and removes the group. One that is not there
    /// is as good as removed.
    ///
    /// # Errors
    /// A process can't be killed, or the kernel refuses.
    fn remove(&mut self, group: &str) -> Result<(), Refused>;
}
