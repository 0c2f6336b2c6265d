//! What must hold: how two states are compared, what excuses a difference, and whether `status` says what the kernel shows.

use std::{collections::BTreeSet, path::Path};

use apply::{Drift, GroupStatus};
use fake::{Fake, Snapshot};
use kernel::{Hierarchy, Kernel};
use rustix::io::Errno;

use crate::judge::HANDED;

/// One file, or one group, that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub tree: usize,
    pub group: String,
    /// `None`: the group itself is there, or is not.
    pub file: Option<String>,
    pub real: Option<String>,
    pub wanted: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (tree, group) = (self.tree, &self.group);
        match &self.file {
            None if self.real.is_some() => write!(f, "{tree}:{group} is there"),
            None => write!(f, "{tree}:{group} is not there"),
            Some(file) => {
                let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "its default".to_owned());
                write!(f, "{tree}:{group}/{file} is {}, should be {}", text(&self.real), text(&self.wanted))
            }
        }
    }
}

/// Where the real state is as none of those wanted. Of a group that none of them has, only that it is there.
pub fn differences(real: &Snapshot, wanted: &[&Snapshot]) -> Vec<Difference> {
    let mut all = Vec::new();
    for tree in 0..real.groups.len() {
        let groups: BTreeSet<&String> =
            real.groups[tree].keys().chain(wanted.iter().flat_map(|one| one.groups[tree].keys())).collect();
        for group in groups {
            let one = |file: Option<&String>, real: Option<&String>, wanted: Option<&String>| Difference {
                tree,
                group: group.clone(),
                file: file.cloned(),
                real: real.cloned(),
                wanted: wanted.cloned(),
            };
            let now = real.groups[tree].get(group);
            let theirs: Vec<_> = wanted.iter().map(|one| one.groups[tree].get(group)).collect();
            let Some(now) = now else {
                if theirs.iter().all(Option::is_some) {
                    all.push(one(None, None, Some(group)));
                }
                continue;
            };
            let theirs: Vec<_> = theirs.into_iter().flatten().collect();
            if theirs.is_empty() {
                all.push(one(None, Some(group), None));
                continue;
            }
            let files: BTreeSet<&String> =
                now.keys().chain(theirs.iter().flat_map(|values| values.keys())).collect();
            for file in files {
                let is = now.get(file);
                if theirs.iter().all(|values| values.get(file) != is) {
                    all.push(one(Some(file), is, theirs[0].get(file)));
                }
            }
        }
    }
    all
}

/// Does a text that a user reads name the group, or its file: `'group'`, or the path?
pub fn names(text: &str, at: &Hierarchy, group: &str, file: Option<&str>) -> bool {
    let goes_on = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | ',' | '.'))
    };
    let directory = at.path(group).display().to_string();
    if file.is_some_and(|file| text.contains(&format!("{directory}/{file}"))) {
        return true;
    }
    let mut places = text.match_indices(&directory);
    !group.is_empty() && text.contains(&format!("'{group}'"))
        || places.any(|(start, _)| !goes_on(&text[start + directory.len()..]))
}

/// What `status` says that is not so.
pub fn wrong_words(
    fake: &Fake,
    statuses: &[GroupStatus],
    base: &Snapshot,
    wanted: &Snapshot,
    named: impl Fn(&Hierarchy, &str) -> bool,
) -> Vec<String> {
    let hierarchies = fake.hierarchies().unwrap();
    let mut wrong = Vec::new();
    for status in statuses {
        let mut expected: BTreeSet<u32> = BTreeSet::new();
        if status.directories.is_empty() {
            wrong.push(format!("status lists group '{}', which has no directory", status.group));
        }
        for directory in &status.directories {
            let Some((at, group)) = place(&hierarchies, directory) else {
                wrong.push(format!("{} is in no hierarchy", directory.display()));
                continue;
            };
            let says_gone = status
                .drift
                .iter()
                .any(|drift| matches!(drift, Drift::Gone { directory: gone, .. } if gone == directory));
            if says_gone == fake.exists(at, &group) {
                wrong.push(format!("{} gone: {says_gone}", directory.display()));
            }
        }
        for at in &hierarchies {
            let procs = fake.read(at, &status.group, "cgroup.procs").unwrap_or_default();
            expected.extend(procs.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        // without a drift what is asked holds for every process of the group
        let prefix = format!("{}/", status.group);
        let is_below = |group: &str| group == status.group || group.starts_with(&prefix);
        for directory in status.directories.iter().filter(|_| status.drift.is_empty()) {
            let Some((at, _)) = place(&hierarchies, directory) else { continue };
            for pid in &expected {
                let now = fake.group_of(at, *pid).unwrap_or_default();
                if !is_below(now.trim_start_matches('/')) {
                    wrong.push(format!(
                        "group '{}' is as asked, but {pid} is in {now} below {}",
                        status.group,
                        at.mount.display()
                    ));
                }
            }
        }
        let tasks: BTreeSet<u32> = status.tasks.iter().map(|task| task.pid).collect();
        if tasks != expected {
            wrong.push(format!("group '{}' has the tasks {expected:?}, status says {tasks:?}", status.group));
        }
        for setting in &status.settings {
            let Some((at, path)) = place(&hierarchies, &setting.file) else { continue };
            let Some((group, file)) = path.rsplit_once('/') else { continue };
            let real = fake.read(at, group, file).ok();
            let real = real.as_deref().map(|text| text.trim_end_matches('\n'));
            let is_line = |text: &str| real.is_some_and(|real| real.lines().any(|line| line == text));
            let actual = setting.actual.as_deref();
            if actual != real && !actual.is_some_and(is_line) {
                wrong.push(format!(
                    "{} holds {real:?}, status says {actual:?} (asked for {})",
                    setting.file.display(),
                    setting.requested
                ));
            }
        }
    }
    // everything that the layout is about and that is not as wanted has to be a drift of that group
    let real = fake.snapshot();
    for difference in differences(&real, &[wanted]) {
        let at = &hierarchies[difference.tree];
        let Some(status) = statuses.iter().find(|status| status.group == difference.group) else { continue };
        let Some(file) = &difference.file else {
            let is_said = status.drift.iter().any(|drift| matches!(drift, Drift::Gone { .. }));
            if difference.real.is_none() && !is_said && status.directories.contains(&at.path(&status.group)) {
                wrong.push(format!("{difference}, and status does not say so"));
            }
            continue;
        };
        let path = at.path(&difference.group).join(file);
        let is_asked = status.settings.iter().any(|setting| setting.file == path);
        // what brings that file back brings this one back along with it
        let brings = |of: &Path| {
            let of = of.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            settings::changes(at.version, of).contains(&file.as_str())
        };
        let is_said = status.drift.iter().any(|drift| match drift {
            Drift::Changed { file: of, .. } => *of == path || of.parent() == path.parent() && brings(of),
            Drift::InvalidPartition { .. } => file == "cpuset.cpus.partition",
            _ => false,
        });
        // what the layout alone would change is its decision, also where it was so before it was applied
        let of = |snapshot: &Snapshot| {
            snapshot.groups[difference.tree]
                .get(&difference.group)
                .and_then(|values| values.get(file))
                .cloned()
        };
        let is_value = file != HANDED && settings::lookup(file).is_some();
        let is_asked = is_asked || is_value && of(base) != of(wanted);
        if is_asked && !is_said && !named(at, &difference.group) {
            wrong.push(format!("{difference}, and status does not say so"));
        }
    }
    for status in statuses {
        for drift in &status.drift {
            let Drift::Changed { file, .. } = drift else { continue };
            let Some((at, path)) = place(&hierarchies, file) else { continue };
            let Some((group, name)) = path.rsplit_once('/') else { continue };
            let of = |snapshot: &Snapshot| {
                snapshot.groups[at.id].get(group).map(|values| values.get(name).cloned())
            };
            // a snapshot shows no default, so it does not tell one from a file whose controller is off
            if fake.read(at, group, name) == Err(Errno::NOENT) {
                continue;
            }
            if of(wanted).is_some() && of(&real) == of(wanted) && !named(at, group) {
                wrong.push(format!("status says {drift}, which is as asked"));
            }
        }
    }
    wrong
}

/// The hierarchy and the path in it of a file or directory.
fn place<'h>(hierarchies: &'h [Hierarchy], path: &Path) -> Option<(&'h Hierarchy, String)> {
    let below = |at: &'h Hierarchy| {
        let rest = path.strip_prefix(&at.mount).ok()?;
        Some((at, rest.to_str()?.to_owned()))
    };
    let all = hierarchies.iter().filter_map(below);
    all.min_by_key(|(_, rest)| rest.len())
}
