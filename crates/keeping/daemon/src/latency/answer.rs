//! What a look at a source comes to.

/// What a source reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The 99th percentile in seconds.
    P99(f64),
    /// It answers, and there were no requests.
    Nothing,
}

/// Why a source says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its answer takes longer than the time between two looks.
    #[error("no answer in time")]
    Late,
    /// The caller ends.
    #[error("the end")]
    Stopped,
    /// In words.
    #[error("{0}")]
    Says(String),
}

impl Error {
    pub(crate) fn failed(error: std::io::Error) -> Error {
        Error::Says(words_of(&error))
    }
}

/// Without the number of the error.
pub(crate) fn words_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
