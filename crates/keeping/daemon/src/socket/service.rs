//! What stands behind the socket, as one trait: who listens need not know how it is done. The answers are typed, and the
//! OpenAPI document is made from these types.

use std::{collections::BTreeMap, sync::Arc};

use classify::{Done, Rules, Told};
use kernel::GroupName;
use schemars::JsonSchema;
use serde::Serialize;
use settings::{Found, Version};

use super::{Peer, Refused, Rights};

/// What the socket's clients are answered from. Rights have been looked at before any of these is called, but for what
/// needs the process or file itself: that is said where it is.
pub trait Service: Send + Sync {
    /// Who may ask for what, as of the layout that holds now.
    fn rights(&self) -> Arc<Rights>;
    /// How the daemon is.
    ///
    /// # Errors
    /// [`Refused`], here and below: it is answered as it is.
    fn status(&self) -> Result<Status, Refused>;
    /// What the daemon counts, by name.
    ///
    /// # Errors
    /// [`Refused`].
    fn counters(&self) -> Result<BTreeMap<String, u64>, Refused>;
    /// All groups that the peer may see.
    ///
    /// # Errors
    /// [`Refused`].
    fn groups(&self, peer: &Peer) -> Result<Vec<Listed>, Refused>;
    /// What a group's settings hold, as far as the peer may read the files; none named means all.
    ///
    /// # Errors
    /// [`Refused`], also where the peer could not read the files itself.
    fn get(&self, group: &GroupName, settings: &[Found], peer: &Peer) -> Result<Vec<Read>, Refused>;
    /// Changes a group's settings, all of them or none.
    ///
    /// # Errors
    /// [`Refused`].
    fn set(
        &self,
        group: &GroupName,
        values: &[(Found, String)],
        peer: &Peer,
    ) -> Result<Vec<Changed>, Refused>;
    /// Puts processes into a group, all of them or none; only the peer's own unless it is root.
    ///
    /// # Errors
    /// [`Refused`].
    fn move_processes(&self, group: &GroupName, pids: &[u32], peer: &Peer) -> Result<Moves, Refused>;
    /// Reads the configuration again; on an error the old one stays.
    ///
    /// # Errors
    /// [`Refused`] with what is wrong with the new one.
    fn reload(&self, peer: &Peer) -> Result<Reloaded, Refused>;
    /// What the rules make of a process, and why; nothing is moved. Only of a process that `/proc` shows the peer.
    ///
    /// # Errors
    /// [`Refused`].
    fn classify(&self, pid: u32, peer: &Peer) -> Result<Classification, Refused>;
}

/// How the daemon is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Present processes have been looked at, and the division is kept.
    pub ready: bool,
    /// When it started (RFC 3339).
    pub since: String,
    /// The files that its layout and rules were read from.
    pub files: Vec<String>,
    /// How many groups the layout has.
    pub groups: usize,
    /// How many rules there are.
    pub rules: usize,
    /// What is wrong now: why the last reload was refused, drift that is only reported.
    pub troubles: Vec<String>,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    pub group: String,
    /// The hierarchies that it is in: a v1 hierarchy's controllers, or `unified`.
    pub hierarchies: Vec<String>,
}

/// What a setting holds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Read {
    /// The setting as it was named.
    pub setting: String,
    /// Its own name.
    pub canonical: String,
    /// The value.
    pub value: serde_json::Value,
    /// The value in the kernel's words.
    pub text: String,
    /// The cgroup version that holds it, `v1` or `v2`.
    #[schemars(with = "String")]
    pub version: Version,
    /// The files that it is read from.
    pub files: Vec<String>,
}

/// A setting that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// The setting as it was named.
    pub setting: String,
    /// What it held before, if it can be read.
    pub before: Option<serde_json::Value>,
    /// What was requested.
    pub requested: serde_json::Value,
    /// What the kernel holds now, if it can be read.
    pub actual: Option<serde_json::Value>,
    /// What was written, in this order: path and text.
    pub written: Vec<(String, String)>,
    /// Differences: value read back, behaviour of this cgroup version, interpretation of the input.
    pub notes: Vec<String>,
}

/// Processes that were moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moves {
    /// Those that are in the group now.
    pub moved: Vec<u32>,
    /// Those that ended meanwhile.
    pub gone: Vec<u32>,
    /// The group's directories.
    pub directories: Vec<String>,
}

/// A configuration that was taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reloaded {
    /// How many groups its layout has.
    pub groups: usize,
    /// How many rules it has.
    pub rules: usize,
    /// What it said beside that.
    pub warnings: Vec<String>,
}

/// What the rules make of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Classification {
    /// Its number.
    pub pid: u32,
    /// Its effective user.
    pub user: u32,
    /// Its program, as rules mean it.
    pub program: String,
    /// What would be done: `there`, `move`, `leave`, `fail`.
    pub would: String,
    /// The rule that fits.
    pub rule: Option<RuleSeen>,
    /// The groups that the rule leads to.
    pub groups: Vec<String>,
    /// The rules before it that did not fit, each with the reason.
    pub passed: Vec<RuleSeen>,
}

/// A rule that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleSeen {
    /// Its number, from 1.
    pub rule: usize,
    /// The file and line that it is from.
    pub origin: Option<String>,
    /// Whom it takes.
    pub takes: String,
    /// Why it did not fit.
    pub why: Option<String>,
}

impl Classification {
    /// What a dry run told.
    pub fn of(told: &Told, rules: &Rules) -> Classification {
        let seen = |index: usize, why: Option<String>| RuleSeen {
            rule: index + 1,
            origin: rules.origin(index).map(|origin| format!("{}:{}", origin.file, origin.line)),
            takes: rules.shown(index).to_owned(),
            why,
        };
        let would = match &told.done {
            Done::There => "there",
            Done::WouldMove | Done::Moved => "move",
            Done::Left => "leave",
            Done::Failed(_) => "fail",
        };
        Classification {
            pid: told.pid,
            user: told.user,
            program: told.program.clone(),
            would: would.to_owned(),
            rule: told.explained.decision.rule().map(|index| seen(index, None)),
            groups: told.goals.iter().map(|goal| goal.group.to_string()).collect(),
            passed: told
                .explained
                .passed
                .iter()
                .map(|passed| seen(passed.rule, Some(passed.why.clone())))
                .collect(),
        }
    }
}
