//! The first rule that fits a process, and where it leads. The way of every exec event: what a rule asks is read, the cheap
//! first, and nothing else.

use std::borrow::Cow;

use kernel::GroupName;
use layout::{Code, NamePattern};
use system::NoProcess;

use crate::{Facts, Goal, GoalError, Names, Rules, control_groups};

/// What the rules say of a process. Rules are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No rule fits.
    NoRule,
    /// A thread of the kernel's own, which stays where the kernel has it.
    KernelThread,
    /// A rule says to leave it where it is (`ignore`, `ignore_rt`).
    Ignored {
        /// The rule.
        rule: usize,
    },
    /// A rule fits, but it was put where it is by hand ([`crate::settle`]).
    Stays {
        /// The rule.
        rule: usize,
    },
    /// It belongs where this rule leads ([`Rules::goals`]).
    To {
        /// The rule.
        rule: usize,
    },
}

impl Decision {
    /// The rule that fits.
    pub fn rule(self) -> Option<usize> {
        match self {
            Decision::Ignored { rule } | Decision::Stays { rule } | Decision::To { rule } => Some(rule),
            Decision::NoRule | Decision::KernelThread => None,
        }
    }
}

impl Rules {
    /// Where a process belongs. The first rule that fits it counts.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn decide(&self, process: &mut dyn Facts) -> Result<Decision, NoProcess> {
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.unknown.is_none() && rule.fit.miss(process)?.is_none() {
                return self.outcome(index, process);
            }
        }
        Ok(if process.kernel_thread()? { Decision::KernelThread } else { Decision::NoRule })
    }

    /// What a rule that fits says.
    pub(crate) fn outcome(&self, index: usize, process: &mut dyn Facts) -> Result<Decision, NoProcess> {
        if process.kernel_thread()? {
            return Ok(Decision::KernelThread);
        }
        let rule = &self.rules[index];
        let ignored = rule.ignore || (rule.ignore_rt && process.realtime()?);
        Ok(if ignored { Decision::Ignored { rule: index } } else { Decision::To { rule: index } })
    }

    /// The groups that a rule leads a process to; empty if there is no such rule.
    ///
    /// # Errors
    /// [`GoalError`].
    pub fn goals(
        &self,
        rule: usize,
        process: &mut dyn Facts,
        names: &dyn Names,
    ) -> Result<Vec<Goal>, GoalError> {
        let aims = self.rules.get(rule).map_or(&[][..], |rule| &rule.goals);
        let mut goals = Vec::with_capacity(aims.len());
        for aim in aims {
            let group = match (&aim.fixed, &aim.within) {
                (Some(group), _) => group.clone(),
                (None, Some(name)) => in_unit(&aim.pattern, name, process)?,
                (None, None) => expanded(&aim.pattern, process, names)?,
            };
            goals.push(aim.goal(group));
        }
        Ok(goals)
    }
}

/// The group of this name in the group of the unit that the process is in.
fn in_unit(pattern: &NamePattern, name: &str, process: &mut dyn Facts) -> Result<GroupName, GoalError> {
    let pid = process.pid();
    let unit = control_groups::unit_group(process.control_groups()?);
    let group = unit.map(|unit| GroupName::new(&format!("{unit}/{name}")).map_err(|error| error.to_string()));
    let group = group.unwrap_or_else(|| Err("it is in no unit of systemd".to_owned()));
    group.map_err(|reason| GoalError::Name { pid, pattern: pattern.clone(), reason })
}

/// The group's name for one process. Its user and group are the effective ones, as the rule's.
fn expanded(
    pattern: &NamePattern,
    process: &mut dyn Facts,
    names: &dyn Names,
) -> Result<GroupName, GoalError> {
    let (pid, status) = (process.pid(), process.status()?);
    let needed = pattern.parts().iter().any(|part| matches!(part, layout::Part::Code(Code::Process)));
    let program = if needed { process.program()?.name() } else { b"" };
    let program: Cow<'_, str> = String::from_utf8_lossy(program);
    let value = |code: Code, program: &str| match code {
        Code::User => names.user_name(status.uid).unwrap_or_else(|| status.uid.to_string()),
        Code::Uid => status.uid.to_string(),
        Code::Group => names.group_name(status.gid).unwrap_or_else(|| status.gid.to_string()),
        Code::Gid => status.gid.to_string(),
        Code::Process if program.is_empty() => pid.to_string(),
        Code::Process => program.to_string(),
        Code::Pid => pid.to_string(),
    };
    let named = pattern.expand(&|code| value(code, &program));
    // a user names his programs: one that is no valid group name must not evade the rule
    let named = named.or_else(|reason| match needed {
        true => pattern.expand(&|code| value(code, &group_part(&program))),
        false => Err(reason),
    });
    named.map_err(|reason| GoalError::Name { pid, pattern: pattern.clone(), reason })
}

/// A program's name as a part of a group's name where it can't be one as it is: `tasks` becomes `tasks_`, `cgroup.procs`
/// becomes `cgroup_procs_`.
fn group_part(program: &str) -> String {
    const LONGEST: usize = 128;
    let mut part = String::new();
    for c in program.chars().take_while({
        let mut length = 0;
        move |c| {
            length += c.len_utf8();
            length < LONGEST
        }
    }) {
        part.push(if c.is_control() || c == '.' { '_' } else { c });
    }
    part.push('_');
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack finding 28.
    #[test]
    fn a_program_whose_name_no_group_can_have_gets_a_group_all_the_same() {
        let pattern = NamePattern::new("apps/%p").unwrap();
        for program in ["tasks", "cgroup.procs", "cpuset.cpus", "a\u{1b}[2J", "\n", &"x".repeat(255)] {
            let as_it_is = pattern.expand(&|_| program.to_owned());
            let part = group_part(program);
            let group = pattern.expand(&|_| part.clone()).unwrap();
            assert!(group.path().starts_with("apps/") && group.path().ends_with('_'), "{program:?} {group}");
            // control characters are replaced in any case
            let control = program.contains(char::is_control);
            assert!(as_it_is.is_err() || control || program.len() == 255, "{program:?}");
        }
    }
}
