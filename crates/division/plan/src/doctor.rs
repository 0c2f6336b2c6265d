//! What is wrong with this machine, or good to know of it, for dividing it: each finding with its consequence
//! and the hint. A pure function of recorded facts; never reads the machine, and infers nothing from a version.
//!
//! Levels are low on purpose: a plain host in good order has notes, and nothing that needs attention.

mod access;
mod controllers;
mod cpus;
mod realtime;
mod render;
mod resources;
mod writers;

use topology::{Machine, facts::Facts};

pub use render::render;

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What it concerns.
    pub area: Area,
    /// How much it matters.
    pub level: Level,
    /// What was seen.
    pub what: String,
    /// What follows from it for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// The command, or the kernel parameter, that changes it.
    #[serde(rename = "hint", skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How much a finding matters. In ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Works.
    Ok,
    /// Works, but differently from what some expect, or a part that few need is missing.
    Note,
    /// Something that was set is not in force, or a main part is missing.
    Attention,
    /// Nothing can be divided.
    Broken,
}

impl Level {
    /// The word in texts and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Attention => "attention",
            Level::Broken => "broken",
        }
    }
}

/// What a finding concerns, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Who the caller is, and what they may do.
    Access,
    /// Where each controller lives.
    Controllers,
    /// Freezing, killing, running.
    Groups,
    /// Exclusive CPUs and partitions.
    Cpusets,
    /// Real-time throttling and budgets.
    RealTime,
    /// Swap, huge pages, NUMA.
    Memory,
    /// Schedulers, weights, limits.
    Io,
    /// Pressure stall information.
    Pressure,
    /// Subtrees that are somebody else's.
    Owners,
    /// SMT, isolation, clocks.
    Cpus,
}

impl Area {
    /// The heading.
    pub fn name(self) -> &'static str {
        match self {
            Area::Access => "access",
            Area::Controllers => "controllers",
            Area::Groups => "groups",
            Area::Cpusets => "cpusets",
            Area::RealTime => "real time",
            Area::Memory => "memory",
            Area::Io => "io",
            Area::Pressure => "pressure",
            Area::Owners => "owners",
            Area::Cpus => "cpus",
        }
    }
}

/// All findings, by area. Cores and siblings come from `machine`; without it no finding names them.
pub fn findings(facts: &Facts, machine: Option<&Machine>) -> Vec<Finding> {
    if !facts.proc {
        let nothing = Finding::new(Area::Access, Level::Broken, "/proc is not mounted");
        return vec![nothing.so("hierarchies and processes can't be found").hint("mount -t proc proc /proc")];
    }
    let mut found = access::access(facts);
    found.extend(controllers::controllers(facts));
    found.extend(controllers::groups(facts));
    found.extend(cpus::cpusets(facts, machine));
    found.extend(realtime::realtime(facts));
    found.extend(resources::memory(facts));
    found.extend(resources::io(facts));
    found.extend(resources::pressure(facts));
    found.extend(access::owners(facts));
    found.extend(writers::writers(facts));
    found.extend(cpus::cpus(facts, machine));
    found
}

/// Does something need attention (exit status 3)?
pub fn needs_attention(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.level >= Level::Attention)
}

impl Finding {
    fn new(area: Area, level: Level, what: impl Into<String>) -> Finding {
        Finding { area, level, what: what.into(), consequence: None, hint: None }
    }

    fn so(self, consequence: impl Into<String>) -> Finding {
        Finding { consequence: Some(consequence.into()), ..self }
    }

    fn hint(self, hint: impl Into<String>) -> Finding {
        Finding { hint: Some(hint.into()), ..self }
    }
}

/// Facts that several areas need.
trait FactsExt {
    /// Does a mounted v1 hierarchy have it? By v1's name.
    fn v1_has(&self, name: &str) -> bool;
    /// Does the mounted v2 hierarchy have it? By v2's name.
    fn v2_has(&self, name: &str) -> bool;
    /// Is this file in the v2 group that was looked at? `None` if none was, or if the file's controller is not
    /// enabled for it.
    fn child_has(&self, file: &str) -> Option<bool>;
    /// A build option's value, if the kernel's configuration is at hand.
    fn built(&self, option: &str) -> Option<&str>;
    /// A boot parameter as it was given.
    fn booted(&self, name: &str) -> Option<&str>;
}

impl FactsExt for Facts {
    fn v1_has(&self, name: &str) -> bool {
        self.v1.iter().any(|at| at.controllers.iter().any(|controller| controller == name))
    }

    fn v2_has(&self, name: &str) -> bool {
        self.v2.as_ref().is_some_and(|v2| v2.controllers.iter().any(|controller| controller == name))
    }

    fn child_has(&self, file: &str) -> Option<bool> {
        let v2 = self.v2.as_ref()?;
        let files = &v2.child.as_ref()?.files;
        let prefix = file.split_once('.')?.0;
        // a controller that is enabled shows at least one file besides its pressure
        let of_it = |name: &String| name.split('.').next() == Some(prefix) && !name.ends_with(".pressure");
        files.iter().any(of_it).then(|| files.iter().any(|name| name == file))
    }

    fn built(&self, option: &str) -> Option<&str> {
        self.config.get(option).map(String::as_str)
    }

    fn booted(&self, name: &str) -> Option<&str> {
        self.boot.iter().map(String::as_str).find(|word| word.split('=').next() == Some(name))
    }
}
