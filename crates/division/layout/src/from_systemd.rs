//! Files of systemd's units to a layout with a group for each unit that they limit.

use std::collections::BTreeSet;

use settings::{Facts, GroupName, UnitSettings, Value, unit_settings};

use crate::{
    assigned::Assigned,
    demand::{CpuDemand, MemDemand},
    desired::{Demands, Desired, Group},
    export::to_toml,
    origin::{Origin, Spanned},
    source::Source,
    unit_name::UnitName,
};

/// The files of a unit, in the order in which systemd reads them.
#[derive(Debug, Clone)]
pub struct UnitSource {
    /// The unit, or all that a directory of drop-in files is for (`pg@.service`, `service`).
    pub name: UnitName,
    /// The unit's own file, and drop-in files.
    pub sources: Vec<Source>,
}

/// What a unit's files say.
struct UnitDemands<'u> {
    unit: &'u UnitName,
    demands: Demands,
    /// Comments.
    notes: Vec<String>,
}

/// A layout that gives each unit what its files say, the way back from [`crate::to_systemd`]. Lines about resources that
/// no setting of a unit says are comments. `tasks`: how many tasks the machine can have, for `TasksMax=33%`. Units that
/// their files limit in nothing are left out.
pub fn from_systemd(units: &[UnitSource], facts: &dyn Facts, tasks: Option<u64>) -> String {
    let read: Vec<UnitDemands<'_>> = units.iter().map(|unit| UnitDemands::new(unit, facts, tasks)).collect();
    let patterns: Vec<&UnitName> =
        read.iter().filter(|read| read.unit.is_pattern() && read.limits()).map(|read| read.unit).collect();
    let (mut text, mut names) = (String::new(), BTreeSet::new());
    for UnitDemands { unit, demands, mut notes } in read {
        let name = if demands.unit.is_some() { group_name(unit, &mut names) } else { None };
        if name.is_none() && notes.is_empty() {
            continue;
        }
        if name.is_none() {
            notes.insert(0, unit.to_string());
        } else {
            let others = patterns.iter().filter(|other| **other != unit && other.fits(unit.as_str()));
            notes.extend(others.map(|other| {
                format!("it fits {other} too, and one group is all that it can be: leave out one")
            }));
        }
        text.push_str(if text.is_empty() { "" } else { "\n" });
        for note in notes {
            text.push_str(&format!("# {}\n", note.replace(char::is_control, " ")));
        }
        if let Some(name) = name {
            let group = Group { name, demands, matches: Vec::new(), origin: origin() };
            text.push_str(&to_toml(&Desired { groups: vec![group], ..Desired::default() }));
        }
    }
    text
}

impl<'u> UnitDemands<'u> {
    fn new(
        UnitSource { name: unit, sources }: &'u UnitSource,
        facts: &dyn Facts,
        tasks: Option<u64>,
    ) -> UnitDemands<'u> {
        let section = unit.section();
        let lines: Vec<(String, String)> =
            sources.iter().flat_map(|source| properties(&source.text, &section)).collect();
        let pairs = lines.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let UnitSettings { settings, others } = unit_settings(pairs, tasks);
        let mut demands = Demands::default();
        let note = |line: String| match line.as_str() {
            // a setting of groups has its name, but systemd writes it back for a unit
            "CPUWeight=idle" => {
                format!(
                    "not carried over, as cpu.idle is no setting of a unit: leave {line} in the unit's file"
                )
            }
            _ => format!("not carried over, as no setting says it: {line}"),
        };
        let mut notes: Vec<String> = others.into_iter().map(note).collect();
        for (name, value) in settings {
            if let Err(reason) = set(&mut demands, name, &value, facts) {
                notes.push(format!("left out: {name} = {value} ({reason})"));
            }
        }
        let mut shares = lines.iter().filter(|(name, value)| name == "TasksMax" && value.ends_with('%'));
        notes
            .extend(shares.next_back().map(|(_, value)| format!("TasksMax={value} of this machine's tasks")));
        if demands != Demands::default() {
            demands.unit = Some(Spanned::new(unit.clone(), origin()));
        }
        UnitDemands { unit, demands, notes }
    }

    fn limits(&self) -> bool {
        self.demands.unit.is_some()
    }
}

fn origin() -> Origin {
    Origin::outside_files("<systemd>")
}

fn set(demands: &mut Demands, name: &str, text: &str, facts: &dyn Facts) -> Result<(), String> {
    let found = settings::find(name).map_err(|error| error.to_string())?;
    match found.parse(text, facts).map_err(|error| error.to_string())? {
        Value::Cpus(cpus) => demands.cpus = Some(Spanned::new(CpuDemand::These(cpus), origin())),
        Value::Nodes(nodes) => demands.mems = Some(Spanned::new(MemDemand::These(nodes), origin())),
        _ => demands.settings.push(Assigned { found, text: text.to_owned(), most: None, origin: origin() }),
    }
    Ok(())
}

/// As the unit without its kind; with it where the name is taken.
fn group_name(unit: &UnitName, taken: &mut BTreeSet<String>) -> Option<GroupName> {
    let stem = unit.stem().trim_end_matches(['*', '@', '-']);
    let kind = unit.as_str().rsplit('.').next().unwrap_or_default();
    let short = if stem.is_empty() { kind } else { stem };
    let free = [short, unit.as_str()].into_iter().filter(|name| !taken.contains(*name));
    let name = free.filter_map(|name| GroupName::new(name).ok()).next()?;
    taken.insert(name.to_string());
    Some(name)
}

/// The properties in a section of a unit's file (systemd.syntax(7)).
fn properties(text: &str, section: &str) -> Vec<(String, String)> {
    let (mut found, mut is_in, mut whole) = (Vec::new(), false, String::new());
    for line in text.lines() {
        let line = line.trim();
        // comments may stand between the parts of a line
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(part) = line.strip_suffix('\\') {
            whole.push_str(part);
            whole.push(' ');
            continue;
        }
        whole.push_str(line);
        let line = std::mem::take(&mut whole);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_in = name == section;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_in) {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use settings::NoMachine;

    use super::*;

    fn unit(name: &str, texts: &[&str]) -> UnitSource {
        let sources = texts.iter().map(|text| Source::new(name, text)).collect();
        UnitSource { name: UnitName::of_file_name(name).unwrap(), sources }
    }

    #[test]
    fn files_are_groups_with_comments_for_what_no_setting_says() {
        let units = [
            unit(
                "db.service",
                &[
                    "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/x \\\n  MemoryMax=1\nTasksMax=5\n",
                    "# ours\n[Service]\nTasksMax=33%\nAllowedCPUs=0-3\nMemoryMax=2G\nDeviceAllow=/dev/null rw\nCPUWeight=abc\n",
                ],
            ),
            unit("db.slice", &["[Slice]\nCPUQuota=150%\n"]),
            unit("pg@.service", &["[Service]\nMemoryHigh=1G\n"]),
            unit("pg@1.service", &["[Service]\nMemoryHigh=2G\n"]),
            unit("nothing.service", &["[Service]\nExecStart=/bin/x\n"]),
            unit("batch.service", &["[Service]\nCPUWeight=idle\nMemoryLimit=1G\nBlockIOWeight=300\n"]),
            unit("slice", &["[Slice]\nDelegate=yes\n"]),
        ];
        let text = from_systemd(&units, &NoMachine, Some(1000));
        assert_eq!(
            text,
            r#"# not carried over, as no setting says it: DeviceAllow=/dev/null rw
# left out: cpu.weight = abc (cpu.weight: 'abc' is not a number)
# TasksMax=33% of this machine's tasks
[groups.db]
unit = "db.service"
cpus = "0-3"
pids.max = 330
memory.max = "2G"

[groups."db.slice"]
unit = "db.slice"
cpu.max = "1.5cpu"

[groups.pg]
unit = "pg@*.service"
memory.high = "1G"

# it fits pg@*.service too, and one group is all that it can be: leave out one
[groups."pg@1"]
unit = "pg@1.service"
memory.high = "2G"

# not carried over, as cpu.idle is no setting of a unit: leave CPUWeight=idle in the unit's file
[groups.batch]
unit = "batch.service"
memory.max = "1G"
io.weight = 60

# *.slice
# not carried over, as no setting says it: Delegate=yes
"#
        );
        let reading = crate::read(&[Source::new("l.toml", &text)]);
        assert!(reading.desired.is_some(), "{:?}", reading.diagnostics);
    }

    #[test]
    fn a_layout_of_units_comes_back_from_its_export() {
        let layout = "[groups.db]\nunit = \"db.service\"\ncpus = \"0-3\"\nmems = \"0\"\nmemory.max = 1073741824\ncpu.max = \"1.5cpu\"\nio.max = \"8:16 rbps=1000000\"\nio.weight = \"200; 8:16 50\"\n\n[groups.pg]\nunit = \"pg@*.service\"\npids.max = 7\n";
        let desired = crate::read(&[Source::new("l.toml", layout)]).desired.unwrap();
        let text = crate::to_systemd(&desired, &NoMachine).text;
        let units: Vec<UnitSource> = text
            .split("# /etc/systemd/system/")
            .skip(1)
            .map(|file| {
                let (path, text) = file.split_once('\n').unwrap();
                unit(path.split_once(".d/").unwrap().0, &[text])
            })
            .collect();
        let back = from_systemd(&units, &NoMachine, None);
        let again = crate::read(&[Source::new("l.toml", &back)]).desired.unwrap();
        let sorted = |desired: &Desired| {
            let mut same = desired.without_places();
            for group in &mut same.groups {
                group.demands.settings.sort_by(|one, other| one.found.name.cmp(&other.found.name));
            }
            same
        };
        assert_eq!(sorted(&again), sorted(&desired), "{text}\n{back}");
    }
}
