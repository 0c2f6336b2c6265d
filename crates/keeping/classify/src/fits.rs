//! Does a process fit, and if not, in what? Numbers are compared before anything else is read, and a relative, an
//! environment or a command line is read only if everything before it fits.

use layout::{Condition, Role, command_words};
use system::NoProcess;

use crate::{
    Facts, Miss, RequestedProgram,
    compile::{Also, Fit, Whose},
    control_groups,
};

/// Ancestors that are looked at: each costs reads, and a chain of thousands must not hold up all others.
const LONGEST_CHAIN: usize = 256;

impl Fit {
    /// `None` if all parts fit, else the first that does not.
    pub(crate) fn miss(&self, process: &mut dyn Facts) -> Result<Option<Miss>, NoProcess> {
        if !self.who.is(process)? {
            return Ok(Some(Miss::Who));
        }
        if let Some(program) = &self.program
            && !program.is(&process.program()?)
        {
            return Ok(Some(Miss::Program));
        }
        for (index, also) in self.also.iter().enumerate() {
            if !also.holds(process)? {
                return Ok(Some(Miss::Condition(index)));
            }
        }
        Ok(None)
    }

    fn fits(&self, process: &mut dyn Facts) -> Result<bool, NoProcess> {
        Ok(self.miss(process)?.is_none())
    }
}

impl Whose {
    fn is(&self, process: &mut dyn Facts) -> Result<bool, NoProcess> {
        let (uid, gid) = match self {
            Whose::Anyone => return Ok(true),
            Whose::Nobody => return Ok(false),
            _ => process.owner()?,
        };
        Ok(match self {
            Whose::User { uid: requested, .. } => *requested == uid,
            Whose::Group { gid: requested, members, .. } => {
                *requested == gid
                    || members.binary_search(&uid).is_ok()
                    || process.groups()?.contains(requested)
            }
            Whose::Anyone | Whose::Nobody => false, // answered above
        })
    }
}

impl Also {
    fn holds(&self, process: &mut dyn Facts) -> Result<bool, NoProcess> {
        Ok(match self {
            Also::Parent(program) => {
                let parent = process.status()?.parent;
                is_program(process, parent, program)
            }
            Also::Session(program) => {
                let leader = process.session()?;
                is_program(process, leader, program)
            }
            Also::Ancestor(program) => descends_from(process, program)?,
            Also::Any(inner) => any(inner, process)?,
            Also::Not(inner) => !any(inner, process)?,
            Also::As(condition) => holds(condition, process)?,
        })
    }
}

fn any(inner: &[Fit], process: &mut dyn Facts) -> Result<bool, NoProcess> {
    for fit in inner {
        if fit.fits(process)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn holds(condition: &Condition, process: &mut dyn Facts) -> Result<bool, NoProcess> {
    Ok(match condition {
        Condition::Command(expression) => expression.is_in(&command_words(process.command()?)),
        Condition::Role(roles) => {
            let executable = process.program()?.executable.to_vec();
            Role::of(&executable, process.command()?).is_some_and(|role| roles.contains(&role))
        }
        Condition::Environment { name, value } => {
            let variables = process.environment()?.unwrap_or_default();
            let mut variables = variables.split(|byte| *byte == 0);
            // the first counts, as for getenv(3)
            let found = variables.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            found.is_some_and(|found| value.fits(found))
        }
        Condition::Unit(glob) => {
            control_groups::units(process.control_groups()?).any(|unit| glob.fits(unit.as_bytes()))
        }
        Condition::OfUnit(of) => control_groups::units(process.control_groups()?).any(|unit| of.fits(&unit)),
        Condition::Container(glob) => {
            control_groups::containers(process.control_groups()?).any(|container| glob.fits(container))
        }
        Condition::Present(glob) => {
            control_groups::names(process.control_groups()?, glob.as_str().starts_with('/'))
                .any(|name| glob.fits(name))
        }
        // made ready when the rules were compiled
        Condition::Parent(_)
        | Condition::Ancestor(_)
        | Condition::Session(_)
        | Condition::Any(_)
        | Condition::Not(_) => false,
    })
}

/// A relative that is gone, or can't be seen from here, runs nothing.
fn is_program(process: &mut dyn Facts, relative: u32, program: &RequestedProgram) -> bool {
    let own = relative == process.pid();
    if own {
        return process.program().is_ok_and(|own| program.is(&own));
    }
    relative > 0 && process.relative(relative).is_ok_and(|relative| program.is(&relative.program()))
}

fn descends_from(process: &mut dyn Facts, program: &RequestedProgram) -> Result<bool, NoProcess> {
    let mut parent = process.status()?.parent;
    for _ in 0..LONGEST_CHAIN {
        if parent == 0 {
            break;
        }
        let Ok(relative) = process.relative(parent) else { break };
        if program.is(&relative.program()) {
            return Ok(true);
        }
        parent = relative.parent;
    }
    Ok(false)
}
