//! Plans of whole layouts: the studies' machines, what is placed where, what is refused and why, and every plan carried
//! out step by step on the in-memory kernel, which refuses what real ones refuse.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

mod conflicts;
mod core_sizes;
mod devices;
mod disks;
mod elastic;
mod flags;
mod isolated;
mod lints;
mod one_set;
mod placement;
mod power;
mod properties;
mod reserve;
mod settings_order;
mod sharing;
mod studies;
mod swaps;
mod world;
