//! Plans of whole layouts: the studies' machines, what is placed where, what is refused and why, and every plan carried
//! out step by step on the in-memory kernel, which refuses what real ones refuse.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

#[path = "plan/conflicts.rs"]
mod conflicts;
#[path = "plan/devices.rs"]
mod devices;
#[path = "plan/lints.rs"]
mod lints;
#[path = "plan/placement.rs"]
mod placement;
#[path = "plan/properties.rs"]
mod properties;
#[path = "plan/settings_order.rs"]
mod settings_order;
#[path = "plan/studies.rs"]
mod studies;
#[path = "plan/swaps.rs"]
mod swaps;
#[path = "plan/world.rs"]
mod world;
