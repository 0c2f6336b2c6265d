//! What the daemon is asked to do: which files it follows, where it keeps its state, how it keeps the division. Data,
//! and which files that means at the moment.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use classify::Files;

use crate::{Refused, Watching};

/// What the daemon is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where rules come from, and the layout that is applied.
    pub files: RuleFiles,
    /// Apply the layout at the start and at a reload; without it only processes are classified.
    pub apply: bool,
    /// Where the history of changes is ([`apply::STATE`]).
    pub state: PathBuf,
    /// The gate of strict rules; `None`: they are followed as all others.
    pub strict: Option<Gate>,
    /// What is done where the division is no longer as applied, of groups of which the layout does not say that itself.
    pub keep: Keep,
    /// How often that is looked at, beside every change of the machine's CPUs, memory and devices; zero: only then.
    pub every: Duration,
    /// Where it answers; `None`: nowhere.
    pub socket: Option<PathBuf>,
    /// What is recorded and shown as metrics.
    pub watching: Watching,
    /// The receive buffer for process events, in bytes as the kernel counts them, about 700 per event; the kernel may
    /// give less ([`Options::BUFFER`]).
    pub buffer: usize,
}

impl Options {
    /// Room for some ten thousand events.
    pub const BUFFER: usize = 32 << 20;
}

/// How the gate of strict rules ([`crate::gate`]) is started and watched.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The first words of this program's arguments when it is started as [`crate::GATE`]; empty where that name is
    /// enough.
    pub words: Vec<OsString>,
    /// How long it may take to answer, before it is ended and starts go on without it.
    pub limits: events::Limits,
}

/// What is done about a division that is no longer as it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It is told in the log, once for each difference.
    Report,
    /// It is told and made as the layout asks again.
    Repair,
}

/// Where rules and layout come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleFiles {
    /// A system's: the layout, cgrules.conf and cgconfig.conf below its `/etc`, as far as they are there.
    Below(PathBuf),
    /// cgrules.conf and the templates of cgconfig.conf alone below an `/etc`, as libcgroup's daemon has it.
    Libcgroup(PathBuf),
    /// These.
    These {
        /// A layout: a file, or a directory with layout.toml and layout.d.
        layout: Option<PathBuf>,
        /// More files with rules.
        rules: Vec<PathBuf>,
        /// Files in the grammar of cgconfig.conf that give templates only.
        templates: Vec<PathBuf>,
    },
}

impl RuleFiles {
    /// The files as they are now.
    ///
    /// # Errors
    /// A directory that can't be read, a layout that is not there.
    pub fn files(&self) -> Result<Files, Refused> {
        let listed = match self {
            RuleFiles::Below(etc) => Files::below(etc),
            RuleFiles::Libcgroup(etc) => Files::below(etc).map(|mut files| {
                let own = etc.join("ringfence");
                files.rules.retain(|file| !file.starts_with(&own));
                files
            }),
            RuleFiles::These { layout, rules, templates } => {
                let of_layout = layout.as_deref().map_or(Ok(Vec::new()), files::layout_files);
                of_layout.map(|mut files| {
                    files.extend(rules.iter().cloned());
                    Files { rules: files, templates: templates.clone() }
                })
            }
        };
        listed.map_err(|error| Refused { summary: error.message.clone(), details: String::new() })
    }

    /// The layout that is applied, if there is one.
    pub fn layout(&self) -> Option<PathBuf> {
        match self {
            RuleFiles::Below(etc) => {
                let own = etc.join("ringfence");
                let there = |name: &str| own.join(name).symlink_metadata().is_ok();
                (there("layout.toml") || there("layout.d")).then_some(own)
            }
            RuleFiles::Libcgroup(_) => None,
            RuleFiles::These { layout, .. } => layout.clone(),
        }
    }
}
