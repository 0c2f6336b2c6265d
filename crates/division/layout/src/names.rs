//! Settings' names while a configuration is read: known or not, the beginning of one or not, found once however often
//! they are used. The names themselves are the settings table's.

use std::collections::{HashMap, HashSet};

use settings::{DeviceNumber, Facts, NamedSetting, UnknownSetting, Version};
use units::Bytes;

use crate::diagnostic::{Diagnostic, Report};
use crate::origin::Origin;

/// What huge page sizes stand as in the table.
const SIZE: &str = "<size>";

/// The settings table by name.
pub(crate) struct Names {
    /// What a setting's name may have been meant as.
    keys: Vec<&'static str>,
    /// What dotted names begin with, without the last dot.
    beginnings: HashSet<String>,
    /// Also what was looked for and is none: most keys are requested once in each group.
    found: HashMap<String, Option<NamedSetting>>,
}

impl Names {
    /// Beside these keys.
    pub(crate) fn new(keys: Vec<&'static str>) -> Names {
        let mut beginnings = HashSet::new();
        for name in all_names() {
            let dots = name.match_indices('.').map(|(at, _)| at);
            beginnings.extend(dots.map(|at| name[..at].to_owned()));
        }
        Names { keys, beginnings, found: HashMap::new() }
    }

    /// The setting of that name; `None` if there is none.
    pub(crate) fn find(&mut self, name: &str) -> Option<NamedSetting> {
        if let Some(found) = self.found.get(name) {
            return found.clone();
        }
        let found = settings::lookup(name);
        self.found.insert(name.to_owned(), found.clone());
        found
    }

    /// Do names of settings begin with `name` and a dot?
    pub(crate) fn begins(&self, name: &str) -> bool {
        let sized = name.strip_prefix("hugetlb.").map(|rest| {
            let rest = rest.split_once('.').map_or(String::new(), |(_, rest)| format!(".{rest}"));
            format!("hugetlb.{SIZE}{rest}")
        });
        self.beginnings.contains(sized.as_deref().unwrap_or(name))
    }

    /// Says that no setting is called `name`.
    pub(crate) fn unknown(&self, name: &str, origin: Origin, report: &mut Report) {
        let error = if report.is_full() { None } else { settings::find(name).err() };
        let error = error.unwrap_or(UnknownSetting { name: cut(name), nearest: Vec::new() });
        let root = name.split('.').next().unwrap_or_default();
        let key = units::nearest(root, self.keys.iter().copied().filter(|key| *key != root));
        let hint = match key.first() {
            Some(key) if error.nearest.is_empty() && !report.is_full() => format!("did you mean {key}?"),
            _ => error.hint(),
        };
        report.push(Diagnostic::error(error.to_string()).at(origin).hint(hint));
    }
}

fn all_names() -> impl Iterator<Item = &'static str> {
    settings::all().flat_map(|setting| {
        let files =
            [Version::V1, Version::V2].into_iter().filter_map(|version| setting.side(version).binding());
        std::iter::once(setting.name).chain(files.flat_map(|binding| binding.names().iter().copied()))
    })
}

/// A text of the user, short enough for a message.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Any machine: what must be known of one to check a value's syntax.
pub(crate) struct AnyMachine;

impl Facts for AnyMachine {
    fn memory(&self) -> Option<Bytes> {
        Some(Bytes(1 << 40))
    }

    fn cpus(&self) -> Option<usize> {
        Some(1)
    }

    /// A number of its own for each path, so that two paths don't look like one device given twice.
    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        if !path.starts_with('/') {
            return Err(format!("'{}' is neither a path nor a device number", cut(path)));
        }
        let hash = path.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
        Ok(DeviceNumber { major: 1 + (hash >> 20) % 4095, minor: hash & 0xf_ffff })
    }
}
