//! The bodies of requests and answers, as the daemon writes and its clients read them. The OpenAPI document is made from
//! these types. Only data: no rights, no I/O.

use std::collections::BTreeMap;

use classify::{Done, Outcome, Rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Version;

use crate::SettingJson;

/// The daemon's counters, by name.
pub type Counters = BTreeMap<String, u64>;

/// Processes to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Processes {
    /// Their PIDs, 1 to 1024 of them.
    pub pids: Vec<u32>,
}

/// The daemon's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its PID.
    pub pid: u32,
    /// The layout is applied and all processes that were there at the start are classified.
    pub ready: bool,
    /// When it started (RFC 3339).
    pub since: String,
    /// The files that its layout and rules were read from.
    pub files: Vec<String>,
    /// How many groups the layout has.
    pub groups: usize,
    /// How many rules there are.
    pub rules: usize,
    /// Why what its files say is not in effect: the last reload or the layout was refused, or another change is under way.
    pub not_in_effect: Vec<String>,
    /// What is wrong now: that, and drift that is only reported.
    pub troubles: Vec<String>,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Its name.
    pub group: String,
    /// The hierarchies that it is in: a v1 hierarchy's controllers, or `unified`.
    pub hierarchies: Vec<String>,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingReading {
    /// The setting as it was named.
    pub setting: String,
    /// Its own name.
    pub canonical: String,
    /// The value.
    pub value: SettingJson,
    /// The value in the kernel's words.
    pub text: String,
    /// The cgroup version of the hierarchy that it is in.
    pub version: CgroupVersion,
    /// The files that it is read from.
    pub files: Vec<String>,
}

/// A version of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// Version 1.
    V1,
    /// Version 2.
    V2,
}

/// A setting that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// The group.
    pub group: String,
    /// The setting as it was named.
    pub setting: String,
    /// The value before, if it can be read.
    pub before: Option<SettingJson>,
    /// What was requested.
    pub requested: SettingJson,
    /// The value now, if it can be read.
    pub actual: Option<SettingJson>,
    /// What was written, in this order.
    pub written: Vec<FileWrite>,
    /// Where the value now is not what was requested, and why.
    pub differences: Vec<String>,
    /// Where the version that controls the group does not do exactly what the setting says.
    pub approximations: Vec<String>,
    /// How the request was understood, where that is not obvious: a partition that stands for its disk.
    pub warnings: Vec<String>,
}

/// One write to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWrite {
    /// The file.
    pub path: String,
    /// The text.
    pub text: String,
    /// Why it came when it came, where that matters.
    pub why: Option<String>,
}

/// Processes that were moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedProcesses {
    /// Those that are in the group now.
    pub moved: Vec<u32>,
    /// Those that ended meanwhile.
    pub gone: Vec<u32>,
    /// The group's directories.
    pub directories: Vec<String>,
}

/// A configuration that was reloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// How many groups its layout has.
    pub groups: usize,
    /// How many rules it has.
    pub rules: usize,
    /// What is worth knowing about it.
    pub warnings: Vec<String>,
}

/// What the rules say about a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Classification {
    /// Its PID.
    pub pid: u32,
    /// Its effective user.
    pub user: u32,
    /// Its program, as rules mean it.
    pub program: String,
    /// What would be done.
    pub would: Verdict,
    /// The rule that matches.
    pub rule: Option<RuleInfo>,
    /// The groups that the rule leads to.
    pub groups: Vec<String>,
    /// The rules before it that do not match, each with the reason.
    pub passed: Vec<RuleInfo>,
}

/// What the daemon would do with a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing: it is where its rule leads.
    There,
    /// Move it.
    Move,
    /// Nothing: no rule matches, or it was placed by hand.
    Leave,
    /// It could not be moved.
    Fail,
}

/// A rule that was compared with a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInfo {
    /// Its number, from 1.
    pub rule: usize,
    /// The file and line that it is from.
    pub origin: Option<String>,
    /// Which processes it matches.
    pub takes: String,
    /// Why it does not match.
    pub why: Option<String>,
}

impl From<Version> for CgroupVersion {
    fn from(version: Version) -> CgroupVersion {
        match version {
            Version::V1 => CgroupVersion::V1,
            Version::V2 => CgroupVersion::V2,
        }
    }
}

impl SettingChange {
    /// A change that was made, and warnings about its request.
    pub fn of(change: apply::Change, warnings: Vec<String>) -> SettingChange {
        let written = change.written.into_iter().map(|write| FileWrite {
            path: write.path.display().to_string(),
            text: write.text,
            why: write.why.map(str::to_owned),
        });
        SettingChange {
            before: change.before.as_ref().map(SettingJson::from),
            requested: SettingJson::from(&change.requested),
            actual: change.actual.as_ref().map(SettingJson::from),
            written: written.collect(),
            group: change.group,
            setting: change.setting,
            differences: change.differences,
            approximations: change.approximations,
            warnings,
        }
    }
}

impl Classification {
    /// The result of a dry run.
    pub fn of(outcome: &Outcome, rules: &Rules) -> Classification {
        let info = |index: usize, why: Option<String>| RuleInfo {
            rule: index + 1,
            origin: rules.origin(index).map(|origin| format!("{}:{}", origin.file, origin.line)),
            takes: rules.shown(index).to_owned(),
            why,
        };
        let would = match &outcome.done {
            Done::There => Verdict::There,
            Done::WouldMove | Done::Moved => Verdict::Move,
            Done::Left => Verdict::Leave,
            Done::Failed(_) => Verdict::Fail,
        };
        let passed = outcome.explained.passed.iter();
        Classification {
            pid: outcome.pid,
            user: outcome.user,
            program: outcome.program.clone(),
            would,
            rule: outcome.explained.decision.rule().map(|index| info(index, None)),
            groups: outcome.goals.iter().map(|goal| goal.group.to_string()).collect(),
            passed: passed.map(|passed| info(passed.rule, Some(passed.why.clone()))).collect(),
        }
    }
}
