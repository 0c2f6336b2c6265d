//! The name of a systemd unit that a group is bound to.

use std::fmt;

use units::hint::Command;

/// Kinds of units that have a control group, by the end of their names.
const KINDS: [&str; 6] = [".service", ".slice", ".scope", ".socket", ".mount", ".swap"];
/// The longest name (`UNIT_NAME_MAX` in systemd's `unit-def.h`).
const LONGEST: usize = 255;

/// A unit of the system's service manager that has a control group: `postgresql@15-main.service`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitName(String);

/// Why a text is no such name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitNameError {
    /// It has none of the ends.
    #[error("'{0}' is not the name of a unit with a control group")]
    Kind(String),
    /// A template stands for no unit.
    #[error("'{0}' is a template, which is not a unit itself")]
    Template(String),
    /// It has a character that systemd does not allow, or is too long.
    #[error("'{0}' is not a unit's name: systemd allows letters, digits and :-_.\\@, at most 255 of them")]
    Character(String),
    /// It stands for several units.
    #[error("'{0}' stands for several units: a group is bound to one")]
    Pattern(String),
}

impl UnitNameError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let list = |pattern: &str| Command::new("systemctl list-units").arg(pattern).to_string();
        match self {
            UnitNameError::Kind(name) if name.contains('.') => {
                format!("such units end in {}", KINDS.join(", "))
            }
            UnitNameError::Kind(name) => format!("did you mean '{name}.service'?"),
            UnitNameError::Template(name) => {
                let (stem, end) = name.split_once('@').unwrap_or((name, ""));
                let instance = format!("{stem}@1{end}");
                format!(
                    "name an instance, such as '{instance}'; {} shows those that run",
                    list(&format!("{stem}@*"))
                )
            }
            UnitNameError::Character(_) => "systemctl list-units shows the names".to_owned(),
            UnitNameError::Pattern(name) => {
                format!("{} shows them; give each a group, or bind the slice that they are in", list(name))
            }
        }
    }
}

impl UnitName {
    /// Checks the name as systemd does.
    ///
    /// # Errors
    /// [`UnitNameError`].
    pub fn new(name: &str) -> Result<UnitName, UnitNameError> {
        let own = || crate::names::cut(name);
        if name.contains(['*', '?', '[']) {
            return Err(UnitNameError::Pattern(own()));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        if name.len() > LONGEST || !name.chars().all(is_allowed) {
            return Err(UnitNameError::Character(own()));
        }
        let stem = KINDS.iter().find_map(|kind| name.strip_suffix(kind)).filter(|stem| !stem.is_empty());
        match stem {
            None => Err(UnitNameError::Kind(own())),
            Some(stem) if stem.ends_with('@') => Err(UnitNameError::Template(own())),
            // `-.slice` is the root of all
            Some(stem) if stem.starts_with('@') || stem == "-" => Err(UnitNameError::Kind(own())),
            Some(_) => Ok(UnitName(name.to_owned())),
        }
    }

    /// As systemd has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The section of the unit's file that takes resource control: `Service` of a service.
    pub fn section(&self) -> String {
        let kind = self.0.rsplit('.').next().unwrap_or_default();
        kind[..1].to_uppercase() + &kind[1..]
    }

    /// Where its control group is if it is directly in that slice: the slices above it are part of a slice's name.
    pub fn path_in(&self, slice: &str) -> String {
        let mut path = String::new();
        let of_slice = |slice: &str, path: &mut String| {
            let stem = slice.strip_suffix(".slice").unwrap_or(slice);
            for (at, _) in stem.match_indices('-').chain([(stem.len(), "")]) {
                path.push_str(&format!("{}.slice/", &stem[..at]));
            }
        };
        if self.0.ends_with(".slice") {
            of_slice(&self.0, &mut path);
            path.pop();
            return path;
        }
        if slice != "-.slice" && !slice.is_empty() {
            of_slice(slice, &mut path);
        }
        path.push_str(&self.0);
        path
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_systemd_does() {
        for name in ["a.service", "postgresql@15-main.service", "rt.slice", r"dev-disk\x2d1.swap", "x.scope"]
        {
            assert_eq!(UnitName::new(name).unwrap().as_str(), name);
        }
        for (name, error) in [
            ("postgresql", UnitNameError::Kind("postgresql".to_owned())),
            ("x.timer", UnitNameError::Kind("x.timer".to_owned())),
            (".service", UnitNameError::Kind(".service".to_owned())),
            ("-.slice", UnitNameError::Kind("-.slice".to_owned())),
            ("getty@.service", UnitNameError::Template("getty@.service".to_owned())),
            ("a b.service", UnitNameError::Character("a b.service".to_owned())),
            ("../a.service", UnitNameError::Character("../a.service".to_owned())),
            ("pg@*.service", UnitNameError::Pattern("pg@*.service".to_owned())),
        ] {
            assert_eq!(UnitName::new(name), Err(error), "{name}");
        }
        assert_eq!(UnitName::new("rt.slice").unwrap().section(), "Slice");
    }

    #[test]
    fn a_group_is_where_the_slices_lead() {
        let path = |name: &str, slice: &str| UnitName::new(name).unwrap().path_in(slice);
        assert_eq!(path("a.service", "system.slice"), "system.slice/a.service");
        assert_eq!(path("pg@1.service", "system-pg.slice"), "system.slice/system-pg.slice/pg@1.service");
        assert_eq!(path("rt-audio.slice", ""), "rt.slice/rt-audio.slice");
        assert_eq!(path("init.scope", "-.slice"), "init.scope");
    }
}
