//! The rules in force, ready to be followed: compiled, with where each leads where that is the same for all processes.
//! Read as a whole or not at all. Decides nothing.

use std::{collections::HashSet, path::PathBuf, rc::Rc};

use classify::{Configuration, Files, Goal, Membership, Other, Placer, Rules};
use kernel::Host;
use layout::{Condition, Desired, Diagnostic, Process, Rule, Severity};
use system::{Accounts, files::Trust};
use tracing::warn;

use crate::{ConfigurationError, RuleFiles, put::Place};

/// How many rules keep the files of their groups open.
const KEPT_OPEN: usize = 64;

/// Rules, and all that following them needs.
pub(crate) struct LoadedRules {
    /// For the templates.
    pub desired: Desired,
    /// In order.
    pub rules: Rules,
    /// The same as they were read.
    pub read: Vec<Rule>,
    /// The accounts, looked up once per load.
    pub accounts: Accounts,
    /// By rule; `None` if it depends on the process, or was not requested yet.
    ways: Vec<Option<Rc<RuleTarget>>>,
    /// By rule: is its group made on demand?
    making: Vec<bool>,
}

/// Where a rule leads.
#[derive(Debug)]
pub(crate) struct RuleTarget {
    /// The groups.
    pub goals: Vec<Goal>,
    /// The hierarchies that it is about ([`kernel::Hierarchy::id`]).
    pub hierarchies: Vec<usize>,
    /// The directories; `None` if they are not there (yet).
    pub places: Option<Vec<Place>>,
    /// The hierarchies without the groups, where it leaves the groups that other rules lead to.
    others: Vec<Other>,
}

impl LoadedRules {
    /// Reads rules from files. What is worth knowing is logged.
    ///
    /// # Errors
    /// Every error of theirs.
    pub fn read(files: &RuleFiles) -> Result<LoadedRules, ConfigurationError> {
        Ok(LoadedRules::new(Self::configuration(&files.files()?)?))
    }

    /// Takes other templates, and leaves the rules as they are.
    ///
    /// # Errors
    /// As of [`LoadedRules::read`].
    pub fn with_templates_of(&self, files: &RuleFiles) -> Result<LoadedRules, ConfigurationError> {
        let listed = files.files()?;
        let new = Self::configuration(&Files { rules: listed.templates, templates: Vec::new() })?;
        let own = Self::configuration(&Files { rules: listed.rules, templates: Vec::new() })?;
        let mut desired = self.desired.clone();
        desired.templates = own.desired.templates;
        let known: Vec<_> = desired.templates.iter().map(|template| template.name.clone()).collect();
        desired.templates.extend(new.desired.templates.into_iter().filter(|one| !known.contains(&one.name)));
        Ok(LoadedRules { desired, ..LoadedRules::of_rules(self.read.clone()) })
    }

    fn configuration(files: &Files) -> Result<Configuration, ConfigurationError> {
        let configuration =
            Configuration::read(files, Trust::of_this_process()).map_err(|error| ConfigurationError {
                summary: format!("{error}: {}", shown(&files.rules)),
                details: layout::render(&error.diagnostics, &error.sources),
            })?;
        for warning in &configuration.warnings {
            warn!("{}", in_line(warning));
        }
        Ok(configuration)
    }

    fn new(configuration: Configuration) -> LoadedRules {
        let rules = configuration.desired.all_rules();
        let ruling = LoadedRules { desired: configuration.desired, ..LoadedRules::of_rules(rules) };
        ruling.warn_of_shells();
        ruling
    }

    fn of_rules(read: Vec<Rule>) -> LoadedRules {
        let accounts = Accounts::new();
        let (rules, unknown) = Rules::compile(&read, &accounts);
        for one in unknown {
            warn!("{}: {one}", one.origin);
        }
        let ways = vec![None; read.len()];
        let makes = |rule: &Rule| rule.targets.iter().any(|target| target.group.name().is_none());
        let making = read.iter().map(makes).collect();
        LoadedRules { desired: Desired::default(), rules, read, accounts, ways, making }
    }

    /// Where a rule leads, if to the same place always.
    pub fn fixed(&mut self, rule: usize, host: &Host) -> Option<Rc<RuleTarget>> {
        let known = self.ways.get(rule)?;
        if let Some(way) = known.as_ref().filter(|way| way.places.is_some()) {
            return Some(Rc::clone(way));
        }
        let goals = match known {
            // requested again until it is there
            Some(way) => way.goals.clone(),
            None => self.fixed_goals(rule)?,
        };
        let placer = Placer::new(host, &self.desired, &self.accounts);
        let kept_open = self.ways.iter().flatten().filter(|way| way.places.is_some()).count();
        let way = Rc::new(RuleTarget::new(goals, &placer, host, kept_open < KEPT_OPEN));
        self.ways[rule] = Some(Rc::clone(&way));
        Some(way)
    }

    /// Where rules lead, as far as that is the same for all processes.
    pub fn led(&mut self, host: &Host) -> HashSet<(usize, String)> {
        let mut led = HashSet::new();
        for rule in 0..self.read.len() {
            let way = self.fixed(rule, host);
            let places = way.iter().filter_map(|way| way.places.as_ref()).flatten();
            led.extend(places.map(|place| (place.at, place.path.clone())));
        }
        led
    }

    fn fixed_goals(&self, rule: usize) -> Option<Vec<Goal>> {
        let goal = |target: &layout::Target| {
            let group = target.group.name().filter(|_| target.within.is_none())?;
            Some(Goal { controllers: target.controllers.clone(), pattern: target.group.clone(), group })
        };
        self.read.get(rule)?.targets.iter().map(goal).collect()
    }

    /// After a failed move: the places looked up before may be outdated.
    pub fn forget_places(&mut self, rule: usize) {
        if let Some(way) = self.ways.get_mut(rule) {
            *way = None;
        }
    }

    /// The hierarchies may be others.
    pub fn forget_ways(&mut self) {
        self.ways.fill(None);
    }

    /// Does a rule ask for the titles of processes?
    fn ask_for_titles(&self) -> bool {
        self.read.iter().flat_map(|rule| &rule.matcher.also).any(Condition::is_of_title)
    }

    /// Does a rule lead elsewhere than to groups in services?
    pub fn leads_to_own_groups(&self) -> bool {
        (0..self.read.len()).any(|rule| !self.is_in_unit(rule))
    }

    /// Is its group in the unit of the process?
    pub fn is_in_unit(&self, rule: usize) -> bool {
        let targets = self.read.get(rule).into_iter().flat_map(|rule| &rule.targets);
        targets.into_iter().any(|target| target.within.is_some())
    }

    /// Must processes be checked again without an event: for their titles, or because their unit's groups are made after they start?
    pub fn looks_again(&self) -> bool {
        self.ask_for_titles() || (0..self.read.len()).any(|rule| self.is_in_unit(rule))
    }

    /// Are groups made on demand, which are to be removed again?
    pub fn makes_groups(&self) -> bool {
        self.making.contains(&true)
    }

    /// Does this rule make groups?
    pub fn makes_group(&self, rule: usize) -> bool {
        self.making.get(rule) == Some(&true)
    }

    /// Strict rules for a shell, each with its place: while neither the exec gate nor the daemon can run, every login and
    /// every script waits.
    fn warn_of_shells(&self) {
        for rule in classify::strict_shells(&self.read) {
            warn!("{}: {}", rule.matcher.origin, classify::STRICT_SHELL);
        }
    }

    /// The programs whose start strict rules gate.
    pub fn gated_programs(&self) -> Vec<PathBuf> {
        let path = |rule: &Rule| match &rule.matcher.process {
            Some(Process::Path(path)) if rule.matcher.strict => Some(PathBuf::from(path)),
            _ => None,
        };
        let mut programs: Vec<PathBuf> = self.read.iter().filter_map(path).collect();
        programs.sort();
        programs.dedup();
        programs
    }
}

impl RuleTarget {
    /// For goals.
    pub fn new(goals: Vec<Goal>, placer: &Placer<'_>, host: &Host, keep_open: bool) -> RuleTarget {
        let hierarchies = placer.hierarchies(&goals);
        let places = Place::of(host, &goals, keep_open);
        let others = Other::of(host, &goals);
        RuleTarget { goals, hierarchies, places, others }
    }

    /// The hierarchies in which a process is in a group of another rule's that it is to leave.
    pub fn strays(&self, rules: &Rules, host: &Host, member: &Membership) -> Vec<usize> {
        let held = self.others.iter().filter(|other| other.holds(rules, host, member));
        held.map(Other::hierarchy).collect()
    }
}

fn shown(files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if files.is_empty() { "no files".to_owned() } else { files.join(", ") }
}

/// A diagnostic in one line of a log.
pub(crate) fn in_line(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
    let kind = if diagnostic.severity == Severity::Error { "error: " } else { "" };
    format!("{place}{kind}{}", diagnostic.message)
}
