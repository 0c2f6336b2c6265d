//! The name of a systemd unit that a group is bound to, or a pattern of such names.

use std::fmt;

use units::hint::Command;

/// Kinds of units that have a control group, by the end of their names.
const KINDS: [&str; 6] = [".service", ".slice", ".scope", ".socket", ".mount", ".swap"];
/// The longest name (`UNIT_NAME_MAX` in systemd's `unit-def.h`).
const LONGEST: usize = 255;

/// What a pattern has and a name has not, as systemctl(1) reads it.
const SIGNS: [char; 3] = ['*', '?', '['];

/// A unit of the system's service manager that has a control group, `postgresql@15-main.service`, or a pattern of such
/// units: `postgresql@*.service`.
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
    /// A pattern that can't be read.
    #[error("'{0}' is no pattern of units: a [ without its ], or nothing between them")]
    Pattern(String),
}

impl UnitNameError {
    /// The same of another name.
    fn of(self, name: &str) -> UnitNameError {
        let kind = match self {
            UnitNameError::Kind(_) => UnitNameError::Kind,
            UnitNameError::Template(_) => UnitNameError::Template,
            UnitNameError::Character(_) => UnitNameError::Character,
            UnitNameError::Pattern(_) => UnitNameError::Pattern,
        };
        kind(crate::names::cut(name))
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let list = |pattern: &str| Command::new("systemctl list-units").arg(pattern).to_string();
        match self {
            UnitNameError::Kind(name) if name.contains('.') => {
                format!("such units end in {}", KINDS.join(", "))
            }
            UnitNameError::Kind(name) => format!("did you mean '{name}.service'?"),
            UnitNameError::Template(name) => {
                let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
                format!(
                    "name an instance, such as '{stem}1.{end}', or all, '{stem}*.{end}'; {} shows those that run",
                    list(&format!("{stem}*"))
                )
            }
            UnitNameError::Character(_) => "systemctl list-units shows the names".to_owned(),
            UnitNameError::Pattern(_) => {
                "* is any text, ? one character, [ab] and [a-z] one of these, [!ab] any other".to_owned()
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
        let signs = if name.contains(SIGNS) { "*?[]!^" } else { "" };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c) || signs.contains(c);
        if name.len() > LONGEST || !name.chars().all(is_allowed) {
            return Err(UnitNameError::Character(own()));
        }
        let stem = KINDS.iter().find_map(|kind| name.strip_suffix(kind)).filter(|stem| !stem.is_empty());
        match stem {
            None => Err(UnitNameError::Kind(own())),
            // `-.slice` is the root of all
            Some(stem) if stem.starts_with('@') || stem == "-" => Err(UnitNameError::Kind(own())),
            Some(stem) if stem.ends_with(['@', '-']) => Err(UnitNameError::Template(own())),
            Some(_) if !signs.is_empty() && expression(name).is_none() => Err(UnitNameError::Pattern(own())),
            Some(_) => Ok(UnitName(name.to_owned())),
        }
    }

    /// The name of a directory of drop-in files without its `.d`: a unit's, or a template of units (`user-.slice`).
    ///
    /// # Errors
    /// [`UnitNameError`].
    pub fn of_directory(name: &str) -> Result<UnitName, UnitNameError> {
        let of = UnitName::of_file_name(name)?;
        Ok(of.template().unwrap_or(of))
    }

    /// Of a pattern, what stands for each unit that fits it, also one that starts later, as systemd reads the drop-in files of that name
    /// for it. `None` where there is none, or where it would be for all units of a kind.
    pub fn template(&self) -> Option<UnitName> {
        let template = UnitName(self.file_name().filter(|_| self.is_pattern())?);
        template.is_template().then_some(template)
    }

    /// Is it such a template, which is no unit?
    pub fn is_template(&self) -> bool {
        self.0.contains('.') && self.stem().ends_with(['@', '-'])
    }

    /// A unit of the template, for what its kind and the template's file say: `user-NAME.slice`.
    pub fn instance(&self, name: &str) -> String {
        let kind = &self.0[self.stem().len()..];
        format!("{}{name}{kind}", self.stem())
    }

    /// Does it stand for all units that fit it, rather than for one?
    pub fn is_pattern(&self) -> bool {
        self.0.contains(SIGNS)
    }

    /// The unit's name fits the pattern, or is it.
    pub fn fits(&self, unit: &str) -> bool {
        let is_so = || expression(&self.0).is_some_and(|regex| regex.is_match(unit));
        self.0 == unit || self.is_pattern() && self.template().is_none_or(|own| own.0 != unit) && is_so()
    }

    /// Does it stand for all units of a kind?
    pub fn is_of_all(&self) -> bool {
        self.file_name().is_some_and(|file| !file.contains('.'))
    }

    /// The name of which systemd reads drop-in files (`NAME.d`) for just the units that are meant: a template for its
    /// instances, and what ends in a dash or is a kind alone for all that begin or end so (systemd.unit(5)). `None` if
    /// there is none.
    pub fn file_name(&self) -> Option<String> {
        if !self.is_pattern() {
            return Some(self.0.clone());
        }
        let (before, after) = self.0.split_once('*')?;
        let is_kind = KINDS.contains(&after);
        // the first @ counts, and a dash alone is the root of all
        let is_stem = before.is_empty()
            || before.find('@').is_some_and(|at| at > 0 && at + 1 == before.len())
            || before.ends_with('-') && before != "-" && !before.contains('@');
        let file = format!("{before}{}", if before.is_empty() { &after[1..] } else { after });
        (is_kind && is_stem && !before.contains(SIGNS)).then_some(file)
    }

    /// The same the other way: the units for which systemd reads drop-in files of that name.
    ///
    /// # Errors
    /// [`UnitNameError`].
    pub fn of_file_name(name: &str) -> Result<UnitName, UnitNameError> {
        let is_kind = KINDS.iter().any(|kind| kind[1..] == *name);
        match name.rsplit_once('.') {
            None if is_kind => UnitName::new(&format!("*.{name}")),
            Some((stem, kind)) if stem.ends_with('@') || stem.ends_with('-') && stem != "-" => {
                // in the words of the caller, who wrote no star
                UnitName::new(&format!("{stem}*.{kind}")).map_err(|error| error.of(name))
            }
            _ => UnitName::new(name),
        }
    }

    /// Without its kind: `postgresql@15-main`.
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(self.0.as_str(), |(stem, _)| stem)
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

/// A pattern as fnmatch(3) reads it with `FNM_NOESCAPE`, as systemd does.
fn expression(pattern: &str) -> Option<regex_lite::Regex> {
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            '[' => {
                let other = rest.strip_prefix(['!', '^']);
                let (set, behind) = other.unwrap_or(rest).split_once(']')?;
                let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.@".contains(c);
                if set.is_empty() || !set.chars().all(is_plain) {
                    return None;
                }
                text.push_str(&format!("[{}{set}]", if other.is_some() { "^" } else { "" }));
                rest = behind;
            }
            c => text.push_str(&regex_lite::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    text.push('$');
    regex_lite::Regex::new(&text).ok()
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
    fn a_file_that_is_none_of_a_unit_is_named_as_it_was_typed() {
        let error = UnitName::of_file_name("/etc/systemd/system/user-.conf").unwrap_err();
        assert_eq!(error, UnitNameError::Character("/etc/systemd/system/user-.conf".to_owned()));
        let error = UnitName::of_file_name("user-.conf").unwrap_err();
        assert_eq!(error, UnitNameError::Kind("user-.conf".to_owned()));
        assert_eq!(UnitName::of_file_name("user-.slice").unwrap().as_str(), "user-*.slice");
    }

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
            ("pg@*", UnitNameError::Kind("pg@*".to_owned())),
            ("pg@[.service", UnitNameError::Pattern("pg@[.service".to_owned())),
            ("pg@[].service", UnitNameError::Pattern("pg@[].service".to_owned())),
            ("pg@[z-a].service", UnitNameError::Pattern("pg@[z-a].service".to_owned())),
            ("pg]@1.service", UnitNameError::Character("pg]@1.service".to_owned())),
        ] {
            assert_eq!(UnitName::new(name), Err(error), "{name}");
        }
        assert_eq!(UnitName::new("rt.slice").unwrap().section(), "Slice");
    }

    #[test]
    fn a_pattern_fits_as_systemctl_reads_it() {
        for (pattern, fits, not) in [
            (
                "pg@*.service",
                &["pg@15-main.service"][..],
                &["pg.service", "xpg@1.service", "pg@.service"][..],
            ),
            ("pg@1?.service", &["pg@15.service"], &["pg@1.service", "pg@155.service"]),
            ("pg@[1-3a].service", &["pg@2.service", "pg@a.service"], &["pg@4.service", "pg@-.service"]),
            ("pg@[!1].service", &["pg@2.service"], &["pg@1.service", "pg@.service"]),
            ("*-rt.slice", &["a-rt.slice", "-rt.slice"], &["a-rt.service", "a-rtxslice"]),
            ("pg@1.service", &["pg@1.service"], &["pg@1xservice"]),
            (r"a\x2d*.service", &[r"a\x2db.service"], &["a-b.service"]),
        ] {
            let pattern = UnitName::new(pattern).unwrap();
            assert!(fits.iter().all(|unit| pattern.fits(unit)), "{pattern}");
            assert!(!not.iter().any(|unit| pattern.fits(unit)), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_is_a_file_of_systemds_where_both_mean_the_same_units() {
        for (pattern, file) in [
            ("pg.service", Some("pg.service")),
            ("pg@*.service", Some("pg@.service")),
            ("app-*.scope", Some("app-.scope")),
            ("*.slice", Some("slice")),
            ("pg@a-*.service", None),
            ("pg*.service", None),
            ("pg@?.service", None),
            ("pg@*-main.service", None),
        ] {
            let pattern = UnitName::new(pattern).unwrap();
            assert_eq!(pattern.file_name().as_deref(), file, "{pattern}");
            if let Some(file) = file {
                assert_eq!(UnitName::of_file_name(file), Ok(pattern));
            }
        }
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
