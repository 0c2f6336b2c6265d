//! Who may use a group and its settings: users and groups of the system by name or number, and file modes. That they
//! exist is for others to find out.

use std::fmt;

use settings::AdminFiles;

use crate::reader::keyed;

/// A user or group of the system.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// By name, not empty.
    Name(String),
    /// By number (uid or gid).
    Id(u32),
}

keyed! {
    /// Owner and modes of a part of a group's files (libcgroup's `task` and `admin`). What is not said stays as it is.
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
    pub struct Person in "in 'admin'" {
        /// The owning user, by name or number.
        #[takes(r#""oracle" · 1001"#)]
        pub user: Option<Account>,
        /// The owning group, by name or number.
        #[takes(r#""dba" · 1001"#)]
        pub group: Option<Account>,
        /// Mode of the files, in octal digits.
        #[takes(r#""0664""#)]
        pub mode: Option<Mode>,
        /// Mode of the directory, in octal digits.
        #[takes(r#""0775""#)]
        pub directory_mode: Option<Mode>,
        /// Also the files that take from other groups (weights, CPUs, exclusive CPUs, protected memory), as libcgroup gives
        /// them [default: false].
        #[takes("true")]
        pub all_files: bool,
    }
}

/// The keys of `tasks`, which owns files only.
pub(crate) const TASKS_KEYS: usize = 3;

/// Permission bits of a file, `0..=0o7777`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mode(u32);

impl Person {
    /// Which files of a group go to its admin, as far as the group alone decides.
    pub fn files(&self) -> AdminFiles {
        if self.all_files { AdminFiles::Every } else { AdminFiles::Own }
    }

    /// Owned by root, as the kernel makes files.
    pub(crate) fn root() -> Person {
        Person { user: Some(Account::Id(0)), group: Some(Account::Id(0)), ..Person::default() }
    }
}

impl Account {
    /// A number if it is one, else a name. `None` if it can't be either: empty, white space, any of `:/,*%`, a
    /// control character, a `-` or `@` before it, or a number above 4294967294 (the last one means "unchanged" to the kernel).
    pub fn new(text: &str) -> Option<Account> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().ok().filter(|id| *id != u32::MAX).map(Account::Id);
        }
        let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '/' | ',' | '*' | '%');
        (!text.is_empty() && !text.starts_with(['-', '@']) && !text.contains(odd) && text.len() <= 256)
            .then(|| Account::Name(text.to_owned()))
    }
}

impl Mode {
    /// Octal digits (`0664`, `775`); `None` if it is none or above 7777.
    pub fn new(octal: &str) -> Option<Mode> {
        let digits = (1..=6).contains(&octal.len()) && octal.bytes().all(|b| matches!(b, b'0'..=b'7'));
        let bits = digits.then(|| u32::from_str_radix(octal, 8).ok()).flatten()?;
        (bits <= 0o7777).then_some(Mode(bits))
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::Name(name) => f.write_str(name),
            Account::Id(id) => id.fmt(f),
        }
    }
}

impl fmt::Display for Mode {
    /// Four octal digits, `0664`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}
