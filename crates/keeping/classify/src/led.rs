//! The groups that rules lead to: who is in another one was put there by somebody.

use std::collections::HashSet;

use kernel::{GroupName, Hierarchy, Host};
use layout::{Glob, NamePattern, Part, Rule};
use units::group_path;

/// The groups that rules lead to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Led {
    fixed: HashSet<GroupName>,
    /// Of names with codes: what they can become.
    made: Vec<Glob>,
}

impl Led {
    pub fn of(rules: &[Rule]) -> Led {
        let mut led = Led::default();
        for target in rules.iter().flat_map(|rule| &rule.targets) {
            match target.group.name() {
                Some(name) => _ = led.fixed.insert(name),
                None => led.made.extend(glob(&target.group)),
            }
        }
        led
    }

    /// Is it such a group, or in one?
    pub fn holds(&self, host: &Host, at: &Hierarchy, path: &str) -> bool {
        // a rule may name a group of our place from the root, too
        let is = |path: &str| {
            [host.named(at, path), format!("/{path}")].iter().any(|name| {
                self.made.iter().any(|glob| glob.fits(name.as_bytes()))
                    || GroupName::new(name).is_ok_and(|name| self.fixed.contains(&name))
            })
        };
        group_path::branch(path).any(is)
    }
}

fn glob(pattern: &NamePattern) -> Option<Glob> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Code(_) => "*".to_owned(),
    };
    Glob::new(&pattern.parts().iter().map(part).collect::<String>())
}
