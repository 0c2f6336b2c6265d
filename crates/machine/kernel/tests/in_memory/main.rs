//! What the kernel in memory can show.
#![allow(clippy::unwrap_used, reason = "a test")]

mod listing;
mod protected;
mod writers;
