//! The daemon's options: which files it follows, where its state is, what it does about drift. Data, and which files
//! that means at the moment.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use classify::Files;
use exporters::metrics::Bounds;
use system::files;
use units::Bytes;

use crate::ConfigurationError;

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
    /// The control socket; `None`: none is opened.
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

/// Where metrics are, unless another address is named.
pub const METRICS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), exporters::metrics::PORT);

/// What is recorded and shown; by default nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watching {
    /// The log.
    pub record: Option<Record>,
    /// Where metrics are had over HTTP ([`METRICS`]).
    pub metrics: Option<SocketAddr>,
    /// A file for a collector of text files.
    pub textfile: Option<PathBuf>,
    /// The most groups with metrics; the number of those left out is a metric.
    pub groups: usize,
    /// How often what is looked at.
    pub paces: Paces,
}

/// How the log is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it is.
    pub directory: PathBuf,
    /// How often a sample is taken, at least 1 ms.
    pub interval: Duration,
    /// At most so much on disk.
    pub size: Bytes,
}

/// The least time between two collections of the same metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paces {
    /// All of them: who asks more often has the same again.
    pub metrics: Duration,
    /// What of it is compared with what was applied.
    pub desired: Duration,
    /// What of it compares all processes with the rules.
    pub misplaced: Duration,
    /// The file is written.
    pub textfile: Duration,
    /// What is refused is tried again: the log, the address.
    pub again: Duration,
}

impl Default for Watching {
    fn default() -> Self {
        let groups = Bounds::default().groups;
        Watching { record: None, metrics: None, textfile: None, groups, paces: Paces::default() }
    }
}

impl Default for Paces {
    fn default() -> Self {
        Paces {
            metrics: Duration::from_secs(1),
            desired: Duration::from_secs(10),
            misplaced: Duration::from_secs(30),
            textfile: Duration::from_secs(15),
            again: Duration::from_secs(5),
        }
    }
}

/// What is done about a division that is no longer as it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Drift is logged, once for each difference.
    Report,
    /// Drift is logged and repaired.
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
    pub fn files(&self) -> Result<Files, ConfigurationError> {
        let listed = match self {
            RuleFiles::Below(etc) => Files::below(etc),
            RuleFiles::Libcgroup(etc) => Files::below(etc).map(|mut files| {
                let own = etc.join("ringfence");
                files.rules.retain(|file| !file.starts_with(&own));
                files
            }),
            RuleFiles::These { layout, rules, templates } => {
                let of_layout = layout.as_deref().map_or(Ok(Vec::new()), files::layout_files);
                of_layout.and_then(|mut files| {
                    files.extend(Files::named(rules)?.rules);
                    Ok(Files { rules: files, templates: templates.clone() })
                })
            }
        };
        listed.map_err(|error| ConfigurationError { summary: error.message.clone(), details: String::new() })
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
