//! From settings that are asked for to the writes that make them so: encoded for the version of the hierarchy
//! they go to, checked for contradictions, and put in order.

use std::collections::HashMap;

use kernel::GroupName;
use settings::{EncodeError, Found, Value, Version};

use crate::order;

/// A group's directory in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// [`kernel::Hierarchy::id`].
    pub hierarchy: usize,
    /// The path below its mount.
    pub path: String,
    /// The hierarchy's version.
    #[serde(with = "crate::names::version")]
    pub version: Version,
}

/// One setting that is asked for, at the place where its controller lives.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The group as the user named it.
    pub group: GroupName,
    /// Where.
    pub place: Place,
    /// The setting.
    pub found: Found,
    /// Its value; a partial one leaves the rest as it is.
    pub value: Value,
}

/// One write(2), with the reason why it stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Which of the asks it serves.
    pub ask: usize,
    /// The directory.
    pub place: Place,
    /// The file in it.
    pub file: String,
    /// The text.
    pub text: String,
    /// Why it comes before or after others, where that matters.
    pub why: Option<&'static str>,
}

/// Why no writes can be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The value can't be written on this version.
    #[error("group '{group}': {error}")]
    Encode {
        /// The group.
        group: String,
        /// Why not.
        error: EncodeError,
    },
    /// Two asks want different things of one file.
    #[error("group '{group}': {first} and {second} both set {file}, to '{one}' and '{other}'")]
    Contradiction {
        /// The group.
        group: String,
        /// The setting named first.
        first: String,
        /// The setting named second.
        second: String,
        /// The file.
        file: String,
        /// What the first writes.
        one: String,
        /// What the second writes.
        other: String,
    },
}

impl PlanError {
    /// What to do instead, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            PlanError::Encode { error, .. } => error.hint(),
            PlanError::Contradiction { .. } => Some("ask for one of the two".to_owned()),
        }
    }
}

impl Write {
    /// Does it write to the same file, and of a file of lines by device or resource to the same line, as `other`?
    pub fn has_target_of(&self, other: &Write) -> bool {
        self.place == other.place
            && self.file == other.file
            && key(&self.file, &self.text) == key(&other.file, &other.text)
    }

    /// Is it about one line of a file of lines by device or resource?
    pub fn is_of_line(&self) -> bool {
        key(&self.file, &self.text).is_some() && !self.file.starts_with("devices.")
    }
}

/// What the kernel holds: the content of a file at a place, `None` if there is no such file.
pub type Held<'a> = &'a dyn Fn(&Place, &str) -> Option<String>;

/// The writes that give every group what is asked for, in an order that the kernel accepts.
///
/// # Errors
/// [`PlanError`]: a value that the version can't hold, or two asks that contradict each other.
pub fn writes(asks: &[Ask], held: Held<'_>) -> Result<Vec<Write>, PlanError> {
    let mut drawn = Drawn::default();
    for (index, ask) in in_table_order(asks) {
        // what is about to be written counts as held: memory plus swap is told from the new memory limit
        let current = |file: &str| drawn.latest(&ask.place, file).or_else(|| held(&ask.place, file));
        let encoded = ask.found.encode(ask.place.version, &ask.value, &current);
        let encoded = encoded.map_err(|error| PlanError::Encode { group: ask.group.to_string(), error })?;
        for write in encoded {
            let new =
                Write { ask: index, place: ask.place.clone(), file: write.file, text: write.text, why: None };
            drawn.add(new, asks)?;
        }
    }
    let mut writes = drawn.writes;
    order::order(&mut writes, held);
    Ok(writes)
}

/// A setting that is told from another comes after it in the table.
fn in_table_order(asks: &[Ask]) -> Vec<(usize, &Ask)> {
    let rows: HashMap<&str, usize> =
        settings::all().enumerate().map(|(row, setting)| (setting.name, row)).collect();
    let mut sorted: Vec<(usize, &Ask)> = asks.iter().enumerate().collect();
    sorted.sort_by_key(|(_, ask)| rows.get(ask.found.setting.name));
    sorted
}

/// The writes so far, found by where they go.
#[derive(Default)]
struct Drawn {
    writes: Vec<Write>,
    by_file: HashMap<Place, HashMap<String, Vec<usize>>>,
}

impl Drawn {
    fn latest(&self, place: &Place, file: &str) -> Option<String> {
        let last = self.by_file.get(place)?.get(file)?.last()?;
        Some(self.writes[*last].text.clone())
    }

    /// Adds a write; one that stands there already is not repeated, one that says otherwise is a contradiction.
    fn add(&mut self, new: Write, asks: &[Ask]) -> Result<(), PlanError> {
        let to_file = self.by_file.entry(new.place.clone()).or_default().entry(new.file.clone()).or_default();
        match to_file
            .iter()
            .find(|index| self.writes[**index].has_target_of(&new))
            .map(|index| &self.writes[*index])
        {
            Some(other) if other.text == new.text => Ok(()),
            Some(other) if !merges(&new.file) => Err(PlanError::Contradiction {
                group: asks[new.ask].group.to_string(),
                first: asks[other.ask].found.name.clone(),
                second: asks[new.ask].found.name.clone(),
                file: new.file.clone(),
                one: other.text.clone(),
                other: new.text,
            }),
            _ => {
                to_file.push(self.writes.len());
                self.writes.push(new);
                Ok(())
            }
        }
    }
}

/// In a file of lines by device or resource, the line's first word says which one it is about.
fn key<'t>(file: &str, text: &'t str) -> Option<&'t str> {
    (is_by_key(file) || merges(file)).then(|| text.split_whitespace().next()).flatten()
}

/// Which line of a file of lines by device or resource a text is about; empty for every other file.
pub fn target_key<'t>(file: &str, text: &'t str) -> &'t str {
    key(file, text).unwrap_or_default()
}

/// What of a line for a device another one for it, `set`, leaves as it is; `None` if nothing.
pub fn rest_of_line(file: &str, line: &str, set: &str) -> Option<String> {
    let name = |word: &str| word.split_once('=').map(|(name, _)| name.to_owned());
    let set: Vec<String> = set.split_whitespace().filter_map(name).collect();
    let words = line.split_whitespace();
    let rest: Vec<&str> = words.filter(|word| name(word).is_some_and(|name| !set.contains(&name))).collect();
    (!rest.is_empty()).then(|| format!("{} {}", target_key(file, line), rest.join(" ")))
}

/// Does the file hold a line for each device or resource?
pub fn is_by_key(file: &str) -> bool {
    const NAMES: [&str; 9] = [
        "io.max",
        "io.latency",
        "io.weight",
        "io.bfq.weight",
        "io.cost.qos",
        "io.cost.model",
        "rdma.max",
        "misc.max",
        "net_prio.ifpriomap",
    ];
    NAMES.contains(&file)
        || file.starts_with("blkio.throttle.")
        || file.ends_with("weight_device")
        || file.starts_with("devices.")
}

/// Files whose lines add to each other.
fn merges(file: &str) -> bool {
    matches!(file, "devices.allow" | "devices.deny" | "io.max" | "io.latency" | "cgroup.subtree_control")
}
