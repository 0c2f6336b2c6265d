//! Layouts made up from a seed: a few groups, some in others, with settings that this kind of machine has.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::random::Random;

/// Names that layouts take from; `old` and `old/in` were there before.
const NAMES: [&str; 8] = ["a", "a/b", "a/c", "d", "d/e/f", "old", "old/x", "old/in"];

/// A layout: its groups with their lines of TOML.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    pub groups: BTreeMap<&'static str, BTreeMap<&'static str, String>>,
}

/// A setting's name, values for it, and whether v1 lacks it.
type Choice = (&'static str, &'static [&'static str], bool);

/// CPUs by number: which ones are chosen of several that would do depends on those that a group has, on purpose.
const CHOICES: [Choice; 10] = [
    ("cpu.weight", &["50", "200", "700"], false),
    ("cpu.max", &["\"10%\"", "\"1.5cpu\"", "\"50ms/100ms\"", "\"max\""], false),
    ("memory.max", &["\"64M\"", "\"256M\"", "\"max\""], false),
    ("memory.high", &["\"48M\"", "\"128M\""], true),
    ("memory.low", &["\"16M\""], true),
    ("pids.max", &["20", "100", "\"max\""], false),
    ("io.max.\"254:0\"", &["{ riops = 10 }", "{ riops = 20, wbps = \"1M\" }", "{ riops = 30 }"], false),
    ("cpus", &["\"0-1\"", "\"2\"", "\"0-2\"", "\"all\""], false),
    ("tasks", &["{ user = 1000 }", "{ user = 1001, group = 1001 }"], false),
    ("admin", &["{ user = 1000 }"], false),
];

/// Further ones for seeds from [`FIRST_WIDE`](crate::random::FIRST_WIDE) on.
const WIDE: [Choice; 7] = [
    ("cpu.idle", &["1", "0"], false),
    ("cpu.weight", &["50"], false),
    ("cpu.max", &["\"50ms/100ms\"", "\"10ms/50ms\""], false),
    ("cpu.max.burst", &["\"5ms\"", "\"10ms\""], false),
    ("controllers", &["[\"cpu\"]", "[\"cpuset\"]"], false),
    ("cpus", &["\"0-1\"", "\"2-3\""], false),
    ("pids.max", &["20"], false),
];

impl Layout {
    pub fn random(random: &mut Random, is_v1: bool) -> Layout {
        let mut groups = BTreeMap::new();
        for _ in 0..1 + random.below(4) {
            groups.insert(random.pick(&NAMES), settings(random, is_v1));
        }
        Layout { groups }
    }

    /// Nearly the same: one group or setting more, less or different.
    pub fn changed(&self, random: &mut Random, is_v1: bool) -> Layout {
        let mut layout = self.clone();
        let names: Vec<&str> = layout.groups.keys().copied().collect();
        match random.below(4) {
            0 if names.len() > 1 => drop(layout.groups.remove(random.pick(&names))),
            1 => drop(layout.groups.insert(random.pick(&NAMES), settings(random, is_v1))),
            _ => {
                let group = names[random.below(names.len())];
                let new = settings(random, is_v1);
                let settings = layout.groups.entry(layout.name_of(group)).or_default();
                if random.chance(50) {
                    let all: Vec<&str> = settings.keys().copied().collect();
                    if let Some(gone) = all.get(random.below(all.len().max(1))) {
                        settings.remove(gone);
                    }
                }
                settings.extend(new.into_iter().take(1));
            }
        }
        layout
    }

    fn name_of(&self, group: &str) -> &'static str {
        NAMES.into_iter().find(|name| *name == group).unwrap_or("a")
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (group, settings) in &self.groups {
            writeln!(text, "[groups.\"{group}\"]").unwrap();
            for (key, value) in settings {
                writeln!(text, "{key} = {value}").unwrap();
            }
        }
        text
    }
}

fn settings(random: &mut Random, is_v1: bool) -> BTreeMap<&'static str, String> {
    let mut settings = BTreeMap::new();
    for _ in 0..1 + random.below(3) {
        let (name, values, v2_only) =
            if random.is_wide() && random.chance(60) { random.pick(&WIDE) } else { random.pick(&CHOICES) };
        if !(is_v1 && v2_only) {
            settings.insert(name, random.pick(values).to_owned());
        }
    }
    if settings.contains_key("cpus") && random.chance(20) {
        settings.insert("exclusive", "true".to_owned());
    }
    settings
}
