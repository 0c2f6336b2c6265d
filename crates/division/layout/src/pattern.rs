//! Group names with `%` codes for the process that is put there (`students/%u`), of rules and templates.

use std::fmt;

use settings::GroupName;

/// The name of a group with codes in it; checked, so that it names a group for every process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamePattern {
    /// In order, never empty.
    parts: Vec<Part>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// As it is.
    Text(String),
    /// Something of the process.
    Code(Code),
}

/// What of a process stands in a group's name; the codes of libcgroup's cgrules.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// `%u`: its user's name, the number if that has none.
    User,
    /// `%U`: its user's number.
    Uid,
    /// `%g`: its group's name, the number if that has none.
    Group,
    /// `%G`: its group's number.
    Gid,
    /// `%p`: its name, the number if that is not known.
    Process,
    /// `%P`: its number.
    Pid,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A `%` that no code follows.
    #[error("unknown code '{code}'")]
    UnknownCode {
        /// The `%` and what follows it.
        code: String,
        /// Where, in bytes from 0.
        at: usize,
    },
    /// No group can have such a name.
    #[error("{reason}")]
    Name {
        /// Why not.
        reason: String,
    },
}

impl Code {
    /// All, in the order of libcgroup's manual.
    pub const ALL: [Code; 6] = [Code::User, Code::Uid, Code::Group, Code::Gid, Code::Process, Code::Pid];

    /// Its letter.
    pub fn letter(self) -> char {
        match self {
            Code::User => 'u',
            Code::Uid => 'U',
            Code::Group => 'g',
            Code::Gid => 'G',
            Code::Process => 'p',
            Code::Pid => 'P',
        }
    }
}

impl NamePattern {
    /// Reads `students/%u`; `\%` stands for a per cent sign.
    ///
    /// # Errors
    /// See [`PatternError`].
    pub fn new(text: &str) -> Result<NamePattern, PatternError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if text[at + 1..].starts_with('%') => {
                    chars.next();
                    plain.push('%');
                }
                '%' => {
                    let letter = chars.next().map(|(_, letter)| letter);
                    let code = Code::ALL.into_iter().find(|code| Some(code.letter()) == letter);
                    let Some(code) = code else {
                        let code = letter.map_or("%".to_owned(), |letter| format!("%{letter}"));
                        return Err(PatternError::UnknownCode { code, at });
                    };
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Code(code));
                }
                c => plain.push(c),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        let pattern = NamePattern { parts };
        // any process will do: a code's text never holds a slash or a dot alone
        pattern.expand(&|_| "x".to_owned()).map_err(|reason| PatternError::Name { reason })?;
        Ok(pattern)
    }

    /// A name without codes as a pattern.
    pub fn of(name: &GroupName) -> NamePattern {
        NamePattern { parts: vec![Part::Text(name.to_string())] }
    }

    /// The name, if there is no code in it.
    pub fn name(&self) -> Option<GroupName> {
        let fixed = self.parts.iter().all(|part| matches!(part, Part::Text(_)));
        fixed.then(|| self.expand(&|_| String::new()).ok()).flatten()
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The group for one process. Slashes and control characters in what `value` gives become `_`, a lone `.` or `..`
    /// too: a process must not choose its place by its name.
    ///
    /// # Errors
    /// In words, if the name is none a group can have.
    pub fn expand(&self, value: &dyn Fn(Code) -> String) -> Result<GroupName, String> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Code(code) => name.push_str(&harmless(&value(*code))),
            }
        }
        match name.as_str() {
            "." => Ok(GroupName::root()), // as libcgroup writes it
            name => GroupName::new(name).map_err(|error| error.to_string()),
        }
    }
}

/// A name as libcgroup's files have it: a slash before it does not matter, and the root group is written `.` too.
pub(crate) fn group_name(text: &str) -> Result<GroupName, settings::GroupNameError> {
    match text.trim_matches('/') {
        "" if !text.is_empty() => Ok(GroupName::root()),
        "." => Ok(GroupName::root()),
        name => GroupName::new(name),
    }
}

fn harmless(text: &str) -> String {
    match text {
        "" | "." | ".." => "_".to_owned(),
        text => text.replace(|c: char| c == '/' || c.is_control(), "_"),
    }
}

impl fmt::Display for NamePattern {
    /// As it was written: codes with `%`, a per cent sign as `\%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(&text.replace('%', "\\%")),
            Part::Code(code) => write!(f, "%{}", code.letter()),
        })
    }
}
