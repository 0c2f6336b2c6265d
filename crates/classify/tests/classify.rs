//! The rules on processes that are made up, on the in-memory kernel, and on this machine's own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

#[path = "classify/oracle.rs"]
mod oracle;
#[path = "classify/placing.rs"]
mod placing;
#[path = "classify/real.rs"]
mod real;
#[path = "classify/semantics.rs"]
mod semantics;
#[path = "classify/someone.rs"]
mod someone;
