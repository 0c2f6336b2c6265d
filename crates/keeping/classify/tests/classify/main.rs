//! The rules on processes that are made up, on the in-memory kernel, and on this machine's own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod oracle;
mod placing;
mod real;
mod semantics;
mod someone;
