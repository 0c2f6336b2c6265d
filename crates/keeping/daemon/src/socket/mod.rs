//! The daemon's interface: HTTP with JSON on a Unix socket, where the peer's credentials decide what it may. It runs in
//! one thread of its own, which sleeps until somebody asks, and outlives whatever clients do: every size, time and number
//! is limited. It writes nothing itself: what may be done is done by a [`Service`].
//!
//! One connection carries one request. Who may do what is said in [`Rights`]; groups are named as they are below the
//! place where our groups live, never from a hierarchy's root.

// in the order of a request's way
mod credentials;
mod peer_groups;
mod refused;
mod rights;

mod server;

mod assignments;
mod name;
mod openapi;
mod routes;

mod answer;
mod service;

mod audit;
mod control;
mod live;
mod visible;

pub mod client;

pub use answer::{Answer, answer};
pub use control::Control;
pub use credentials::Peer;
pub use live::Live;
pub use openapi::document;
pub use refused::Refused;
pub use rights::Rights;
pub use routes::{Requested, requested};
pub use server::{Counts, Handle, Limits, Unserved, serve, serve_within};
pub use service::{Changed, Classification, Listed, Moves, Read, Reloaded, RuleSeen, Service, Status};
pub(crate) use visible::View;

/// Where the daemon answers, unless it is told otherwise.
pub const SOCKET: &str = "/run/ringfence/ringfenced.sock";
