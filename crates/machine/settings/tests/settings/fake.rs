//! A group's files as the kernel keeps them: what is written is kept the way each codec's file keeps it. Claims
//! only what kernels 6.1 and 6.18 were seen to do.

use std::cell::RefCell;
use std::collections::BTreeMap;

use settings::{Codec, FileWrite, Kind, NamedSetting, Version};

pub struct Group {
    version: Version,
    files: RefCell<BTreeMap<String, String>>,
}

impl Group {
    /// A new group that has the files of `found`, with the kernel's first values.
    pub fn new(found: &NamedSetting, version: Version) -> Group {
        let group = Group { version, files: RefCell::default() };
        let Some(binding) = found.side(version).binding() else { return group };
        for (index, file) in found.files(version).into_iter().enumerate() {
            let text = match (binding.codec, index) {
                (Codec::CpuMax, _) => "max 100000",
                (Codec::CpuQuota, 0) => "-1",
                (Codec::CpuQuota, _) => "100000",
                (Codec::MemoryPlusSwap | Codec::SwapAlone, 1) => "1073741824",
                (Codec::FlagInStat(_), _) => "oom_kill_disable 0\nunder_oom 0\noom_kill 0",
                (Codec::Weights | Codec::WeightFiles { .. }, 0) => "default 100",
                _ => "",
            };
            group.files.borrow_mut().insert(file, lines(text));
        }
        group
    }

    pub fn read(&self, file: &str) -> Option<String> {
        self.files.borrow().get(file).cloned()
    }

    pub fn put(&self, file: &str, text: &str) {
        self.files.borrow_mut().insert(file.to_owned(), text.to_owned());
    }

    /// One write(2).
    pub fn write(&self, found: &NamedSetting, write: &FileWrite) {
        let binding = found.side(self.version).binding().unwrap();
        let old = self.read(&write.file).unwrap_or_else(|| panic!("no file {}", write.file));
        let text = write.text.as_str();
        let new = match binding.codec {
            Codec::CpuMax if !text.contains(' ') => {
                format!("{text} {}", old.trim().split(' ').nth(1).unwrap())
            }
            Codec::FlagInStat(key) => format!("{key} {text}\nunder_oom 0\noom_kill 0"),
            Codec::Amount { unlimited } if matches!(found.setting.kind, Kind::Bytes) => {
                pages(text, unlimited)
            }
            Codec::MemoryPlusSwap => pages(text, "-1"),
            Codec::SwapAlone => pages(text, "max"),
            Codec::DeviceKeys | Codec::Keyed => {
                merged(&old, text, matches!(binding.codec, Codec::DeviceKeys))
            }
            Codec::DeviceFiles => replaced(&old, text, "0"),
            Codec::Weights | Codec::WeightFiles { .. } => replaced(&old, text, "default"),
            Codec::ClassId => u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap().to_string(),
            Codec::Percent if text != "max" => format!("{:.2}", text.parse::<f64>().unwrap()),
            _ => text.trim().to_owned(),
        };
        self.files.borrow_mut().insert(write.file.clone(), lines(&new));
    }
}

/// A file without content is empty, without even a newline.
fn lines(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

fn pages(text: &str, unlimited: &str) -> String {
    match text {
        "-1" if unlimited == "-1" => "9223372036854771712".to_owned(),
        "max" if unlimited == "max" => "max".to_owned(),
        number => (number.parse::<u64>().unwrap() / 4096 * 4096).to_string(),
    }
}

/// The line of one name in a file with one name a line; `lifted` takes the line away.
fn replaced(old: &str, text: &str, lifted: &str) -> String {
    let (name, value) = text.split_once(' ').unwrap_or(("default", text));
    let mut lines: BTreeMap<&str, &str> = old.lines().filter_map(|line| line.split_once(' ')).collect();
    lines.insert(name, value);
    lines.retain(|_, value| *value != lifted);
    lines.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("\n")
}

/// As `replaced`, but by key within the line. A device whose every limit is lifted leaves the file.
fn merged(old: &str, text: &str, devices: bool) -> String {
    let mut names: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in old.lines().chain([text]).filter(|line| !line.is_empty()) {
        let (name, pairs) = line.split_once(' ').unwrap();
        for pair in pairs.split(' ') {
            let (key, value) = pair.split_once('=').unwrap_or(("", pair));
            names.entry(name).or_default().insert(key, value);
        }
    }
    names.retain(|_, keys| !devices || keys.values().any(|value| *value != "max"));
    let pair = |(key, value): (&&str, &&str)| match *key {
        "" => (*value).to_owned(),
        key => format!("{key}={value}"),
    };
    let line = |(name, keys): (&&str, &BTreeMap<&str, &str>)| {
        format!("{name} {}", keys.iter().map(pair).collect::<Vec<_>>().join(" "))
    };
    names.iter().map(line).collect::<Vec<_>>().join("\n")
}
