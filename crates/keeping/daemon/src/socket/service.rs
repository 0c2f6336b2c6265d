//! What carries out the requests of the socket, as one trait: the server need not know how.

use std::sync::Arc;

use answers::{
    Problem,
    socket::{
        Classification, Counters, GroupSummary, MovedProcesses, Reloaded, SettingChange, SettingReading,
        Status,
    },
};
use kernel::GroupName;
use settings::NamedSetting;

use super::{Peer, Rights};

/// Carries out requests. The server checks rights before it calls any of these, except where a right depends on the
/// process or file itself: each method says so.
pub trait Service: Send + Sync {
    /// Who may request what, by the layout in effect.
    fn rights(&self) -> Arc<Rights>;
    /// The daemon's status.
    ///
    /// # Errors
    /// [`Problem`], here and below: the client gets it as it is.
    fn status(&self) -> Result<Status, Problem>;
    /// The daemon's counters.
    ///
    /// # Errors
    /// [`Problem`].
    fn counters(&self) -> Result<Counters, Problem>;
    /// All groups that the peer may see.
    ///
    /// # Errors
    /// [`Problem`].
    fn groups(&self, peer: &Peer) -> Result<Vec<GroupSummary>, Problem>;
    /// The values of a group's settings, as far as the peer may read the files; none named means all.
    ///
    /// # Errors
    /// [`Problem`], also where the peer could not read the files itself.
    fn get(
        &self,
        group: &GroupName,
        settings: &[NamedSetting],
        peer: &Peer,
    ) -> Result<Vec<SettingReading>, Problem>;
    /// Changes a group's settings, all of them or none.
    ///
    /// # Errors
    /// [`Problem`].
    fn set(
        &self,
        group: &GroupName,
        values: Vec<(NamedSetting, String)>,
        peer: &Peer,
    ) -> Result<Vec<SettingChange>, Problem>;
    /// Puts processes into a group, all of them or none; only the peer's own unless it is root.
    ///
    /// # Errors
    /// [`Problem`].
    fn move_processes(&self, group: &GroupName, pids: &[u32], peer: &Peer)
    -> Result<MovedProcesses, Problem>;
    /// Reloads the configuration; if it has errors, the old one stays active.
    ///
    /// # Errors
    /// [`Problem`] with what is wrong with the new one.
    fn reload(&self, peer: &Peer) -> Result<Reloaded, Problem>;
    /// What the rules say about a process, and why; nothing is moved. Only of a process that `/proc` shows as the peer's.
    ///
    /// # Errors
    /// [`Problem`].
    fn classify(&self, pid: u32, peer: &Peer) -> Result<Classification, Problem>;
}
