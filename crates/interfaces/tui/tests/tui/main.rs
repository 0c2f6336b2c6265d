//! The screens on the kernel in memory: what they show, as text, what keys do to them, and what changes do to the
//! kernel's files. The same events make the same screen, so figures that depend on time are given.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test's failure is a panic")]

mod changes;
mod replay;
mod screens;
mod world;
