//! Samples for readers: pictures as text, comma-separated values and JSON, and metrics for Prometheus. Samples nothing.
//!
//! - A loop of `watch` and of `top`: `Cadence::wait` → `Sampler::tick(&host, beat)` → `Window::push(sample)` →
//!   [`view::Picture`] of the chosen figures.
//! - `dump --since … --fields …`: `Log::since`, then the same `Window` and pictures, or [`metrics::History`].
//! - The daemon adds its own families to a sample's with [`metrics::Writer`].

mod layout_units;
pub mod metrics;
pub mod view;

pub use layout_units::layout_units;
