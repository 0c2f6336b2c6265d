//! Where in a configuration something was said, so that every later complaint can show that place.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The file as it was named to the reader; `<command line>` or the like where there is none.
    #[serde(serialize_with = "name", deserialize_with = "named")]
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in characters on that line, at least 1.
    pub length: usize,
}

/// A value and where it was said. Two are equal if their values and their places are;
/// [`crate::Desired::without_places`] compares the requests alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was said.
    pub origin: Origin,
}

impl Origin {
    /// A place; zeros become ones, so that a place can always be shown.
    pub fn new(file: &str, line: usize, column: usize, length: usize) -> Origin {
        Origin { file: file.into(), line: line.max(1), column: column.max(1), length: length.max(1) }
    }

    /// What was requested by other means than a file: `by` says which, for example `<command line>`.
    pub fn outside_files(by: &str) -> Origin {
        Origin::new(by, 1, 1, 1)
    }
}

impl std::fmt::Display for Origin {
    /// `layout.toml:3:1`, as editors and compilers write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

fn name<S: Serializer>(file: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(file)
}

fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(from).map(Arc::from)
}

impl<T> Spanned<T> {
    /// A value said at `origin`.
    pub fn new(value: T, origin: Origin) -> Spanned<T> {
        Spanned { value, origin }
    }
}
