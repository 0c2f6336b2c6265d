//! What a group was given, setting by setting: the files that a setting has in one directory are one line of it.

use std::path::{Path, PathBuf};

use answers::{
    SettingJson,
    layouts::{Given, Group},
};
use apply::{GroupStatus, SettingStatus};
use kernel::Host;
use settings::{Value, Version};

use super::{
    blocks::now,
    words::{self, Files},
};

/// A setting of one directory, all of its files together.
pub struct Line {
    pub name: String,
    pub applied: String,
    /// What the kernel has now, where that is something else.
    pub now: Option<String>,
    /// Both as values, where the files' texts are any.
    values: [Option<Value>; 2],
}

/// Of a group, in the order of its settings.
pub fn lines(host: &Host, group: &GroupStatus) -> Vec<Line> {
    let mut lines: Vec<(PathBuf, String, Vec<&SettingStatus>)> = Vec::new();
    for status in &group.settings {
        let (directory, file) = parts(&status.file);
        let name = words::setting_of(&file);
        match lines.iter_mut().find(|(at, named, _)| *at == directory && *named == name) {
            Some((.., files)) => files.push(status),
            None => lines.push((directory, name, vec![status])),
        }
    }
    let filled = lines.into_iter().map(|(directory, name, files)| {
        let as_applied = files.iter().all(|file| file.as_requested);
        let applied = Texts::of(host, &directory, &files, |file| Some(&file.requested));
        let now = (!as_applied).then(|| Texts::of(host, &directory, &files, |file| file.actual.as_deref()));
        let said = |texts: &Option<Texts>| {
            texts.as_ref().map_or_else(|| "nothing that can be read".to_owned(), Texts::words)
        };
        Line {
            name,
            applied: said(&applied),
            now: now.as_ref().map(said),
            values: [Some(&applied), now.as_ref()].map(|texts| texts.unwrap_or(&applied).as_ref()?.value()),
        }
    });
    filled.collect()
}

/// A group with what `get` and `set` have of each setting: values beside the files' texts.
pub fn with_values(host: &Host, status: GroupStatus) -> Group {
    let given = |line: Line| {
        let [applied, now] = line.values.map(|value| value.as_ref().map(SettingJson::from));
        Given { setting: line.name, applied, now }
    };
    let values = lines(host, &status).into_iter().map(given).collect();
    Group { status, values }
}

/// Texts of one setting's files.
struct Texts {
    files: Files,
    /// `None`: the directory is in no hierarchy any more.
    version: Option<Version>,
}

impl Texts {
    /// `None` where one of them can't be read.
    fn of<'s>(
        host: &Host,
        directory: &Path,
        files: &[&'s SettingStatus],
        text: impl Fn(&'s SettingStatus) -> Option<&'s str>,
    ) -> Option<Texts> {
        let mut texts = Files::new();
        for status in files {
            let text = text(status)?;
            let file = parts(&status.file).1;
            // a device a line, each applied by itself
            let lines = texts.entry(file.clone()).or_default();
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(&words::whole(&file, text, status.actual.as_deref()));
        }
        let Some((at, path)) = host.hierarchies().iter().find_map(|at| {
            let below = directory.strip_prefix(at.path("")).ok()?;
            Some((at, below.to_string_lossy().into_owned()))
        }) else {
            return Some(Texts { files: texts, version: None });
        };
        let beside = texts.keys().find_map(|file| words::read_beside(file));
        if let Some(other) = beside.filter(|other| !texts.contains_key(*other)) {
            let place = ::plan::Place { hierarchy: at.id, path, version: at.version };
            texts.extend(now(host, &place, other).map(|text| (other.to_owned(), text)));
        }
        Some(Texts { files: texts, version: Some(at.version) })
    }

    fn words(&self) -> String {
        match self.version {
            Some(version) => words::value(&self.files, version, None, &system::Live),
            None => {
                let texts: Vec<&str> = self.files.values().map(String::as_str).collect();
                words::first_line(&texts.join(", "))
            }
        }
    }

    fn value(&self) -> Option<Value> {
        Some(words::decoded(&self.files, self.version?)?.1)
    }
}

/// Directory and name.
fn parts(file: &Path) -> (PathBuf, String) {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (file.parent().unwrap_or(Path::new("")).to_owned(), name)
}
