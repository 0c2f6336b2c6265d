//! The answers of the commands about layouts and the history: `check`, `plan`, `apply`, `confirm`, `undo`, `history`, `status`.

use std::time::Duration;

use apply::{End, Entry, GroupStatus, Head, NewUnit, Outcome, Pending, Unfinished};
use layout::Diagnostic;
use monitor::Kill;
use plan::{Lint, Plan};
use serde::{Deserialize, Serialize};

use crate::{SettingJson, moment, published};

/// `check`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    /// What is wrong with the layout, or perhaps not as meant.
    pub diagnostics: Vec<Diagnostic>,
    /// How many groups it has.
    pub groups: usize,
    /// How many rules.
    pub rules: usize,
}

/// `import` and `export`: a text in a format of its own.
#[derive(Debug, Serialize)]
pub struct Converted<'t> {
    /// The text.
    pub text: &'t str,
    /// What is said of it.
    pub diagnostics: &'t [Diagnostic],
}

/// `plan` on this machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Planned {
    /// What would be done.
    #[serde(flatten)]
    pub plan: Plan,
    /// The change that waits to be confirmed.
    pub pending: Option<Pending>,
    /// Processes that a rule of the layout fits and that are not in the group that it names.
    pub misplaced: Vec<Misplaced>,
}

/// A process that a rule leads to another group than it is in.
#[derive(Debug, Serialize, Deserialize)]
pub struct Misplaced {
    /// Its number.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// The groups that the rule names.
    pub groups: Vec<String>,
    /// Why it can't be moved there, where that is known.
    pub reason: Option<String>,
    /// The service that it belongs to, which a group of the layout can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// `apply`, `undo`, `shield`, `unshield`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// What was done.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// In seconds.
    #[serde(default, rename = "undone_unless_confirmed_within_sec", skip_serializing_if = "Option::is_none")]
    pub undone_unless_confirmed_within: Option<u64>,
    /// Of an apply: processes that a limit of the layout does not hold for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Vec<Lint>>,
    /// Of an apply: processes that a rule of the layout fits and that are not in the group that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misplaced: Option<Vec<Misplaced>>,
}

/// `confirm`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Confirmed {
    /// The generation that stays.
    pub confirmed: u32,
}

/// A row of `history`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Generation {
    /// What is known of it.
    #[serde(flatten)]
    pub record: Record,
    /// `done`, `rolled back`, `under way`, ….
    pub state: String,
    /// Is it in effect?
    pub in_effect: bool,
    /// What it did, of one that was asked for by its number alone: they may be thousands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Entry>>,
    /// Of the last: what waits to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
}

/// A record, or why there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Record {
    /// It was read.
    Read {
        /// Who, when, what.
        #[serde(with = "published")]
        head: Box<Head>,
        /// How it ended; `None` while it is under way, or interrupted.
        #[serde(with = "published")]
        result: Option<End>,
    },
    /// It is lost or damaged.
    Unread {
        /// Its number.
        generation: u32,
        /// Why.
        error: String,
        /// What would help.
        hint: Option<String>,
    },
}

/// `status`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// Is any group not as it was applied?
    pub drift: bool,
    /// The groups.
    pub groups: Vec<Group>,
    /// A generation that was begun and has no end.
    pub unfinished: Option<Unfinished>,
    /// The change that waits to be confirmed.
    pub pending: Option<Pending>,
    /// Generations without a record.
    pub unknown: Vec<u32>,
    /// Is there any generation?
    pub recorded: bool,
    /// Why the machine's layout is not in effect.
    pub not_in_effect: Vec<String>,
    /// Why groups that follow their load are not resized.
    pub not_resized: Option<String>,
    /// What a layout that was named still needs.
    pub plan: Option<Plan>,
    /// Units that came after the apply.
    pub new_units: Vec<NewUnit>,
    /// As in [`Planned`]; `None`: the rules could not be looked at.
    pub misplaced: Option<Vec<Misplaced>>,
    /// Processes that the kernel killed for want of memory since the last apply. Recordings of
    /// earlier versions lack it.
    #[serde(default)]
    pub killed: Vec<Killed>,
}

/// Kills in one group.
#[derive(Debug, Serialize, Deserialize)]
pub struct Killed {
    /// The group; a kill in a group below it counts there, if that was applied.
    pub group: String,
    /// How many processes.
    pub processes: usize,
    /// The last one.
    pub last: KilledProcess,
}

/// A process that the kernel killed for want of memory.
#[derive(Debug, Serialize, Deserialize)]
pub struct KilledProcess {
    /// When.
    pub at: String,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its user, by number.
    pub uid: u32,
    /// What it had in memory.
    pub resident_bytes: u64,
    /// The memory group that it was in, from the hierarchy's root; `None` if the kernel did not log it.
    pub group: Option<String>,
    /// The group whose limit was met; `None` if the machine's memory was used up, or the kernel did not log it.
    pub limited: Option<String>,
    /// That limit.
    pub limit_bytes: Option<u64>,
    /// It went with others of its group (`memory.oom.group`).
    pub with_group: bool,
}

impl From<&Kill> for KilledProcess {
    fn from(kill: &Kill) -> KilledProcess {
        KilledProcess {
            at: moment(Duration::from_millis(kill.at)).unwrap_or_default(),
            pid: kill.pid,
            comm: kill.comm.clone(),
            uid: kill.uid,
            resident_bytes: kill.resident.0,
            group: kill.group.clone(),
            limited: kill.limited.clone(),
            limit_bytes: kill.limit.map(|limit| limit.0),
            with_group: kill.with_group,
        }
    }
}

/// A group, with its settings as values beside the files' texts.
#[derive(Debug, Serialize, Deserialize)]
pub struct Group {
    /// The group.
    #[serde(flatten)]
    pub status: GroupStatus,
    /// What it was given, as `get` and `set` have it. Recordings of earlier versions lack it.
    #[serde(default)]
    pub values: Vec<Given>,
}

/// A setting that a group was given.
#[derive(Debug, Serialize, Deserialize)]
pub struct Given {
    /// Its name.
    pub setting: String,
    /// What was applied, if that can be said.
    pub applied: Option<SettingJson>,
    /// What the kernel has, where that is something else.
    pub now: Option<SettingJson>,
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use serde_json::Value;

    use super::*;
    use crate::Refused;

    /// Read as `T` and written again, all that was recorded is there under the same names.
    fn same<T: Serialize + serde::de::DeserializeOwned>(printed: &Value) -> Result<(), String> {
        let answer: T = serde_json::from_value(printed.clone()).map_err(|error| error.to_string())?;
        let again = serde_json::to_value(&answer).map_err(|error| error.to_string())?;
        if has(&again, printed) { Ok(()) } else { Err(format!("{again:#}")) }
    }

    /// A recording of an earlier version lacks fields that came since, and has `null` where one is left out now.
    fn has(answer: &Value, recorded: &Value) -> bool {
        match (answer, recorded) {
            (Value::Object(answer), Value::Object(recorded)) => recorded
                .iter()
                .all(|(name, value)| answer.get(name).map_or(value.is_null(), |answer| has(answer, value))),
            (Value::Array(answer), Value::Array(recorded)) => {
                answer.len() == recorded.len()
                    && answer.iter().zip(recorded).all(|(answer, recorded)| has(answer, recorded))
            }
            _ => answer == recorded,
        }
    }

    #[test]
    fn what_the_ansible_modules_are_tested_with_are_these_answers() {
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../ansible/tests/unit/fixtures");
        // where the source tree is not at hand there is nothing to compare
        let files = fs::read_dir(recordings).into_iter().flatten();
        for path in files.map(|file| file.unwrap().path()) {
            let recorded: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let Ok(printed) = serde_json::from_str::<Value>(recorded["out"].as_str().unwrap()) else {
                continue; // the version, which is text
            };
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let result = match name.split('-').next().unwrap() {
                _ if printed.get("error").is_some() => same::<Refused>(&printed),
                "plan" => same::<Planned>(&printed),
                "apply" | "undo" => same::<Done>(&printed),
                "confirm" => same::<Confirmed>(&printed),
                "history" => same::<Vec<Generation>>(&printed),
                "status" => same::<Status>(&printed),
                _ => Err("no type for it".to_owned()),
            };
            assert_eq!(result, Ok(()), "{name}");
        }
    }
}
