//! A setting's name as the user wrote it, found in the table: canonical (`cpu.max`) or the name of any file of
//! either version (`cpu.cfs_quota_us`).

use crate::setting::{Binding, Codec, Controller, Setting, Side, Version};
use crate::table::all;

/// The part of a name that stands for a huge page size.
const SIZE: &str = "<size>";

/// A setting together with the name it was requested by.
#[derive(Clone, serde::Serialize)]
pub struct NamedSetting {
    /// The row.
    pub setting: &'static Setting,
    /// Which of its names was used; decides the syntax of values.
    pub via: Via,
    /// The name as it was given.
    pub name: String,
    /// The huge page size in the name (`2MB`).
    pub size: Option<String>,
}

/// Which of a setting's names was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The table's own name.
    Canonical,
    /// The name of a file that differs from it.
    File {
        /// Whose file.
        version: Version,
        /// Which of [`Binding::files`].
        index: usize,
    },
}

/// A name that no version of the kernel knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown setting '{name}'")]
pub struct UnknownSetting {
    /// What was given, cut after 100 characters.
    pub name: String,
    /// Known names that are near, nearest first.
    pub nearest: Vec<&'static str>,
}

impl UnknownSetting {
    /// What to try.
    pub fn hint(&self) -> String {
        match self.nearest.as_slice() {
            [] => "`ringfence settings` lists all names".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        }
    }
}

/// Finds the setting that `name` names, on either version.
///
/// # Errors
/// No setting and no file of one has that name; the error holds the nearest ones.
pub fn find(name: &str) -> Result<NamedSetting, UnknownSetting> {
    // what layouts call them
    let name = match name.trim() {
        "cpus" => "cpuset.cpus",
        "mems" => "cpuset.mems",
        name => name,
    };
    lookup(name).ok_or_else(|| {
        let known = all().map(|setting| setting.name).chain(file_names().map(|(.., file)| file));
        let name: String = name.chars().take(100).collect();
        UnknownSetting { nearest: units::nearest(&any_size(&name), known), name }
    })
}

/// Is `setting` one of the controller that either version calls `name`, or of the pattern `memory.*`? A setting's own
/// name is neither.
pub fn is_of(setting: &Setting, name: &str) -> bool {
    if let Some(prefix) = name.strip_suffix('*') {
        return setting.name.starts_with(prefix);
    }
    match Controller::from_name(name) {
        Some(controller) => setting.controller == controller,
        None => name == "core" && setting.controller == Controller::Core,
    }
}

/// A name with what stands where a huge page size belongs taken for one, so that its pattern is near.
pub(crate) fn any_size(name: &str) -> String {
    let after = name.strip_prefix("hugetlb.").and_then(|rest| rest.split_once('.'));
    after.map_or_else(|| name.to_owned(), |(_, last)| format!("hugetlb.{SIZE}.{last}"))
}

/// The same without looking for near names where there is none: that takes a millisecond.
pub fn lookup(name: &str) -> Option<NamedSetting> {
    let found = |setting, via, size: Option<&str>| NamedSetting {
        setting,
        via,
        name: name.to_owned(),
        size: size.map(str::to_owned),
    };
    // a row's own name goes before any file: `cpu.stat` also serves `cpuacct.usage` on v2
    let own = all()
        .find_map(|setting| matches(setting.name, name).map(|size| found(setting, Via::Canonical, size)));
    own.or_else(|| {
        file_names().find_map(|(setting, version, index, file)| {
            matches(file, name).map(|size| found(setting, Via::File { version, index }, size))
        })
    })
}

/// Every file of every row, v2's first: where one name means two things, it is v2's.
fn file_names() -> impl Iterator<Item = (&'static Setting, Version, usize, &'static str)> {
    [Version::V2, Version::V1].into_iter().flat_map(|version| {
        all()
            .filter_map(move |setting| setting.side(version).binding().map(|binding| (setting, binding)))
            .flat_map(move |(setting, binding)| {
                binding.names().iter().enumerate().map(move |(index, &file)| (setting, version, index, file))
            })
    })
}

impl Binding {
    /// The files that name this binding's setting: not those that are another's and only read beside.
    pub fn names(&self) -> &'static [&'static str] {
        match self.codec {
            Codec::StatField { .. } | Codec::UserSystem | Codec::IoStat => &[],
            Codec::MemoryPlusSwap | Codec::SwapAlone | Codec::Reclaim => &self.files[..1],
            _ => self.files,
        }
    }
}

/// Does `name` fit `pattern`? With the huge page size, if the pattern has one.
fn matches<'n>(pattern: &str, name: &'n str) -> Option<Option<&'n str>> {
    // few patterns have a size: the controller's name excludes most without a search
    if !pattern.starts_with("hugetlb") {
        return (pattern == name).then_some(None);
    }
    let Some((before, after)) = pattern.split_once(SIZE) else {
        return (pattern == name).then_some(None);
    };
    let size = name.strip_prefix(before)?.strip_suffix(after)?;
    let digits = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = size.split_at(digits);
    (!number.is_empty() && matches!(unit, "KB" | "MB" | "GB")).then_some(Some(size))
}

impl std::fmt::Debug for NamedSetting {
    /// The name alone: a row is a page.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({})", self.name)
    }
}

impl NamedSetting {
    /// What `version` has of the setting.
    pub fn side(&self, version: Version) -> &'static Side {
        self.setting.side(version)
    }

    /// The files that hold it on `version`; none if that version lacks it or holds it without a file.
    pub fn files(&self, version: Version) -> Vec<String> {
        let files = self.side(version).binding().map_or(&[][..], |binding| binding.files);
        files.iter().map(|file| self.with_size(file)).collect()
    }

    /// The table's name for it, with the huge page size.
    pub fn canonical(&self) -> String {
        self.with_size(self.setting.name)
    }

    /// The binding whose syntax and range the name asks for: that of the file named; of a row's own name v2's,
    /// unless only v1 has a file of that name or only v1 can write it.
    pub(crate) fn spoken(&self) -> Option<(Version, &'static Binding)> {
        let order = match self.via {
            Via::File { version, .. } => [version, version],
            Via::Canonical
                if self.only(Version::V1, &Self::named_by) || self.only(Version::V1, &Self::written) =>
            {
                [Version::V1, Version::V2]
            }
            Via::Canonical => [Version::V2, Version::V1],
        };
        order.into_iter().find_map(|version| self.side(version).binding().map(|binding| (version, binding)))
    }

    fn only(&self, version: Version, is: &dyn Fn(&Self, Version) -> bool) -> bool {
        [Version::V1, Version::V2].into_iter().all(|of| is(self, of) == (of == version))
    }

    fn named_by(&self, version: Version) -> bool {
        self.side(version).binding().is_some_and(|binding| binding.files.contains(&self.setting.name))
    }

    fn written(&self, version: Version) -> bool {
        let read_only = |codec| matches!(codec, Codec::Text | Codec::StatField { .. });
        self.side(version).binding().is_some_and(|binding| !read_only(binding.codec))
    }

    pub(crate) fn with_size(&self, file: &str) -> String {
        self.size.as_deref().map_or_else(|| file.to_owned(), |size| file.replace(SIZE, size))
    }
}
