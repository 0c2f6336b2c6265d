//! What is added to a picture of samples: events, and on cgroup v1 tasks that are in only some hierarchies and the reason
//! for CPU time that is missing.

use kernel::Host;
use monitor::{Perf, is_uncounted, members};

use super::{
    cell::{Measure, Value},
    picture::{Heading, Note, Picture},
};

/// Pictures of more groups have the numbers of the pids controller alone: every group costs a file per hierarchy.
const GROUPS: usize = 128;
/// What stands for CPU time that is not counted.
const UNCOUNTED: &str = "no cpuacct";

/// Counts tasks over all hierarchies, and says where figures are missing or hierarchies differ.
pub fn complete(picture: &mut Picture, host: &Host) {
    if host.hierarchies().len() < 2 || picture.rows.len() > GROUPS {
        return;
    }
    let place = |name: &str| picture.headings.iter().position(|heading| heading.name == name);
    let (tasks, cpu) = (place("pids.current"), place("cpu.usage"));
    let mut notes = Vec::new();
    if let Some(place) = tasks {
        let names: Vec<&str> = picture.rows.iter().map(|row| row.group.as_str()).collect();
        let members = members(host, &names);
        for row in &mut picture.rows {
            let Some(members) = members.get(&row.group) else { continue };
            row.values[place] = Value::At(members.count() as f64);
            if let Some(by_hierarchy) = members.differences() {
                notes.push(Note::Split { group: row.group.clone(), by_hierarchy });
            }
        }
    }
    if let Some(place) = cpu {
        for row in picture.rows.iter_mut().filter(|row| row.values[place] == Value::Missing) {
            if is_uncounted(host, &row.group) {
                row.values[place] = Value::Absent(UNCOUNTED);
                notes.push(Note::Uncounted { group: row.group.clone() });
            }
        }
    }
    picture.notes.extend(notes);
}

/// A column per event that is counted: `perf.NAME`, per second.
pub fn add_events(picture: &mut Picture, perf: &Perf) {
    for event in perf.events() {
        let (name, measure) = (format!("perf.{}", event.name), Measure::Figure(event.unit));
        picture.headings.push(Heading { name, measure });
        for row in &mut picture.rows {
            row.values.push(perf.rate(&row.group, event).map_or(Value::Missing, Value::At));
        }
    }
}
