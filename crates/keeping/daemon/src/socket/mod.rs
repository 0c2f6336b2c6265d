//! The daemon's interface: HTTP with JSON on a Unix socket, where the peer's credentials decide what it may do. It runs in
//! one thread of its own, which sleeps until a client connects, and survives whatever clients do: every size, time and
//! number is limited. It writes nothing itself: a [`Service`] carries requests out.
//!
//! One connection carries one request. [`Rights`] says who may do what; groups are named relative to the place where our
//! groups live, never from a hierarchy's root.

// in the order of a request's way
mod credentials;
mod peer_groups;
mod rights;

mod assignments;
mod name;

mod routes;

mod openapi;

mod service;

mod answer;

mod server;

mod audit;
mod control;
mod visible;

mod live;

pub mod client;

pub use answer::{Answer, answer};
pub use assignments::Assignments;
pub use control::Control;
pub use credentials::Peer;
pub use live::Live;
pub use openapi::document;
pub use rights::Rights;
pub use routes::Request;
pub(crate) use server::check;
pub use server::{Counts, Handle, Limits, ServeError, serve, serve_within};
pub use service::Service;
pub(crate) use visible::View;

/// Where the daemon listens by default.
pub const SOCKET: &str = "/run/ringfence/ringfenced.sock";
/// The variable that names another place to its clients.
pub const SOCKET_VARIABLE: &str = "RINGFENCE_SOCKET";
