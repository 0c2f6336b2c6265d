//! What was asked of each group by the generations in effect, what the kernel holds, what is used, and where the two
//! differ. Only reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use plan::Place;
use serde::Serialize;
use settings::Value;
use units::Limit;

use crate::{
    Failure, State, Target,
    before::is_by_key,
    held::get,
    perform::{Performer, name},
    record::{Act, Entry, Record},
};

/// One group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupStatus {
    /// As the user writes it.
    pub group: String,
    /// Its directories, those that are gone among them.
    pub directories: Vec<PathBuf>,
    /// The last generation that changed it.
    pub generation: u32,
    /// What was asked, file by file.
    pub settings: Vec<SettingStatus>,
    /// Memory in use, in bytes, if memory is counted for it.
    pub memory: Option<u64>,
    /// CPU time used so far, in microseconds, if it is counted.
    pub cpu_usec: Option<u64>,
    /// The processes in the group itself, ascending.
    pub tasks: Vec<u32>,
    /// Where it is not as asked; empty if it is.
    pub drift: Vec<Drift>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingStatus {
    /// Its path.
    pub file: PathBuf,
    /// What was written; of a file of lines by device, the line.
    pub asked: String,
    /// What it holds; `None` if it can't be read.
    pub held: Option<String>,
    /// Is that what was asked for, but for the kernel's rounding?
    pub as_asked: bool,
}

/// How a group is not as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "drift", rename_all = "kebab-case")]
pub enum Drift {
    /// Somebody changed a value.
    Changed {
        /// The file's path.
        file: PathBuf,
        /// What was asked.
        asked: String,
        /// What it holds; `None` if it can't be read any more.
        held: Option<String>,
    },
    /// Somebody removed it.
    Gone {
        /// The directory.
        directory: PathBuf,
    },
    /// The kernel keeps the partition invalid.
    InvalidPartition {
        /// The kernel's words.
        state: String,
    },
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Drift::Changed { file, asked, held } => {
                let held = held.as_deref().unwrap_or("nothing that can be read");
                write!(f, "{}: asked for {asked}, holds {held}", file.display())
            }
            Drift::Gone { directory } => write!(f, "{} is gone", directory.display()),
            Drift::InvalidPartition { state } => write!(f, "the kernel keeps the partition invalid: {state}"),
        }
    }
}

/// What was asked of one group, as it adds up over the generations in effect.
#[derive(Default)]
struct Asked {
    generation: u32,
    places: BTreeSet<Place>,
    /// By place, file and, in a file of lines by device, the line's first word; with what it held after the write.
    writes: BTreeMap<(Place, String, String), (String, Option<String>)>,
}

/// Every group that a generation in effect changed, by name.
///
/// # Errors
/// [`Failure::State`].
pub fn status(state: &State, target: Target<'_>) -> Result<Vec<GroupStatus>, Failure> {
    let last = state.last()?.filter(|last| last.head.boot == target.system.boot());
    let in_effect = last.map(|last| last.in_effect().to_vec()).unwrap_or_default();
    let mut asked: BTreeMap<String, Asked> = BTreeMap::new();
    for generation in in_effect {
        add(&state.record(generation)?, target, &mut asked);
    }
    let performer = Performer::new(target, target.host.hierarchies().iter().cloned().map(Some).collect());
    Ok(asked.into_iter().map(|(group, asked)| of(&performer, group, asked)).collect())
}

fn add(record: &Record, target: Target<'_>, groups: &mut BTreeMap<String, Asked>) {
    for (step, entry) in record.entries.iter().enumerate() {
        let Some(place) = entry.act.place() else { continue };
        let spot = record.head.hierarchies.get(place.hierarchy);
        let Some(at) = spot.and_then(|spot| spot.find(target.host)) else { continue };
        let place = Place { hierarchy: at.id, ..place.clone() };
        let group = groups.entry(entry.group.clone()).or_default();
        group.generation = record.head.generation;
        match &entry.act {
            Act::Write { file, text, .. } => {
                let key =
                    if is_by_key(file) { text.split_whitespace().next().unwrap_or_default() } else { "" };
                let held = record.held.iter().find(|(of, _)| *of == step).map(|(_, held)| held.clone());
                group.places.insert(place.clone());
                group.writes.insert((place, file.clone(), key.to_owned()), (text.clone(), held));
            }
            Act::CreateGroup { .. } => {
                group.places.insert(place);
            }
            _ => {}
        }
    }
}

fn of(performer: &Performer<'_>, group: String, asked: Asked) -> GroupStatus {
    let directory = |place: &Place| PathBuf::from(performer.directory(place));
    let (mut drift, mut settings) = (Vec::new(), Vec::new());
    for place in &asked.places {
        if !performer.exists(place) {
            drift.push(Drift::Gone { directory: directory(place) });
        }
    }
    for ((place, file, _), (text, held_then)) in
        asked.writes.iter().filter(|((place, ..), _)| performer.exists(place))
    {
        let held = performer.content(place, file);
        let as_asked =
            is_as_asked(performer, &group, (place, file, text), held.as_deref(), held_then.as_deref());
        let file = directory(place).join(file);
        match &held {
            Some(state) if state.contains("invalid") => {
                drift.push(Drift::InvalidPartition { state: state.clone() });
            }
            _ if as_asked => {}
            _ => drift.push(Drift::Changed { file: file.clone(), asked: text.clone(), held: held.clone() }),
        }
        settings.push(SettingStatus { file, asked: text.clone(), held, as_asked });
    }
    let host = performer.host();
    let named = name(&group);
    let tasks: BTreeSet<u32> = host.seats(&named).iter().flat_map(|seat| host.tasks_in(seat)).collect();
    let used = |setting: &str| {
        let found = settings::lookup(setting)?;
        match get(host, &named, &found).ok()?.value {
            Value::Bytes(Limit::At(bytes)) => Some(bytes.0),
            Value::Micros(Limit::At(micros)) => Some(micros.0),
            Value::Count(Limit::At(count)) => Some(count),
            Value::Number(number) => u64::try_from(number).ok(),
            Value::Text(text) => {
                text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse().ok())
            }
            _ => None,
        }
    };
    GroupStatus {
        directories: asked.places.iter().map(directory).collect(),
        generation: asked.generation,
        settings,
        memory: used("memory.current"),
        cpu_usec: used("cpuacct.usage").or_else(|| used("cpu.stat")),
        tasks: tasks.into_iter().collect(),
        drift,
        group,
    }
}

/// The text itself, what the kernel made of it then, or what means the same.
fn is_as_asked(
    performer: &Performer<'_>,
    group: &str,
    (place, file, text): (&Place, &str, &str),
    held: Option<&str>,
    held_then: Option<&str>,
) -> bool {
    let Some(found) = settings::lookup(file) else { return held == Some(text) || held == held_then };
    let Some(held) = held else { return found.setting.access == settings::Access::Write };
    if found.setting.access == settings::Access::Write || held == text {
        return true;
    }
    if let (Some(then), false) = (held_then, is_by_key(file)) {
        return held == then;
    }
    let act = Act::Write { place: place.clone(), file: file.to_owned(), text: text.to_owned() };
    let entry = Entry { group: group.to_owned(), act, why: String::new(), before: Default::default() };
    performer.compare(&entry, place, file, text, held).is_none() && performer.means(place, file, text, held)
}
