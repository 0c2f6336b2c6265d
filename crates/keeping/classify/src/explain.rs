//! Which rule took a process, and in what each one before it did not fit, in words.

use layout::{Condition, Matcher};
use system::NoProcess;

use crate::{
    Decision, Facts, RequestedProgram, Rules,
    compile::{Also, Compiled, Whose},
};

/// The first part of a rule that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// It names an account that does not exist, and takes nobody.
    Unknown,
    /// Whose the process is.
    Who,
    /// Which program it runs.
    Program,
    /// The condition of this number, from 0, in the order of [`Matcher::also`].
    Condition(usize),
}

/// A rule that did not take the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The rule, from 0.
    pub rule: usize,
    /// What did not fit.
    pub miss: Miss,
    /// The same in words, such as `its user is 1001, not oracle (1000)`.
    pub why: String,
}

/// What became of a process at the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What the rules say.
    pub decision: Decision,
    /// The rules before the one that fits, or all.
    pub passed: Vec<Passed>,
}

impl Rules {
    /// As [`Rules::decide`], with the reason why each rule before did not fit.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn explain(&self, process: &mut dyn Facts) -> Result<Explained, NoProcess> {
        let mut passed = Vec::new();
        if process.status()?.kernel_thread {
            return Ok(Explained { decision: Decision::KernelThread, passed });
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let miss = match &rule.unknown {
                Some(_) => Some(Miss::Unknown),
                None => rule.fit.miss(process)?,
            };
            let Some(miss) = miss else {
                return Ok(Explained { decision: self.outcome(index, process)?, passed });
            };
            let why = rule.why_not(miss, process)?;
            passed.push(Passed { rule: index, miss, why });
        }
        Ok(Explained { decision: Decision::NoRule, passed })
    }
}

impl Compiled {
    fn why_not(&self, miss: Miss, process: &mut dyn Facts) -> Result<String, NoProcess> {
        let status = process.status()?;
        Ok(match (miss, &self.fit.who) {
            (Miss::Unknown, _) => self.unknown.clone().unwrap_or_default(),
            (Miss::Who, Whose::User { uid, name }) => {
                format!("its user is {}, not {}", status.uid, with_number(name, *uid))
            }
            (Miss::Who, Whose::Group { gid, name, .. }) => {
                format!("its user {} is not in group {}", status.uid, with_number(name, *gid))
            }
            (Miss::Who, Whose::Anyone | Whose::Nobody) => "its user does not fit".to_owned(),
            (Miss::Program, _) => {
                let requested = self.fit.program.as_ref().map(RequestedProgram::shown).unwrap_or_default();
                format!(
                    "its program is {}, not {requested}",
                    String::from_utf8_lossy(process.program()?.path())
                )
            }
            (Miss::Condition(index), _) => self.fit.also.get(index).map_or_else(String::new, Also::unmet),
        })
    }
}

fn with_number(name: &str, number: u32) -> String {
    if name.parse() == Ok(number) { name.to_owned() } else { format!("{name} ({number})") }
}

impl Also {
    fn unmet(&self) -> String {
        match self {
            Also::Parent(program) => format!("its parent does not run {}", program.shown()),
            Also::Ancestor(program) => format!("it descends from no {}", program.shown()),
            Also::Session(program) => format!("its session's leader does not run {}", program.shown()),
            Also::Any(_) => "none of 'any' fits".to_owned(),
            Also::Not(_) => "one of 'not' fits".to_owned(),
            Also::As(condition) => unmet(condition),
        }
    }
}

fn unmet(condition: &Condition) -> String {
    match condition {
        Condition::Command(expression) => {
            format!("its command line does not hold '{}'", expression.as_str())
        }
        Condition::Role(roles) => {
            let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            format!("its title is not that of {}", names.join(" or "))
        }
        Condition::Unit(glob) => format!("it is in no unit {glob}"),
        Condition::OfUnit(unit) => format!("it is in no unit {unit}"),
        Condition::Container(glob) => format!("it is in no container {glob}"),
        Condition::Environment { name, value } => format!("its environment has no {name}={value}"),
        Condition::Present(glob) => format!("it is in no group {glob}"),
        Condition::Parent(_) | Condition::Ancestor(_) | Condition::Session(_) => {
            "its relatives do not fit".to_owned()
        }
        Condition::Any(inner) | Condition::Not(inner) => {
            format!("{} conditions do not fit", inner.iter().flat_map(Matcher::with_inner).count())
        }
    }
}
