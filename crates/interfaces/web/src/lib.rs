//! `ringfence web`: the machine, its groups, plans and experiments in a browser of the user who starts it.
//!
//! The way of a request: [`server`] takes a connection of loopback if the user at its other end is ours, and one request of it;
//! [`guard`] looks at Host, Origin and what the browser says of the asking page; [`sessions`] at the cookie; [`routes`] finds the
//! row; [`answer`] reads the machine, or has a command of this very program change something ([`program`]). Samples are made
//! by one thread for all who look ([`live`]).
//!
//! It listens on loopback alone, holds no right that its user has not, and writes nothing itself.

// in the order of the data's way
pub mod api;
mod error;

mod assets;
mod guard;
mod peers;
mod sessions;

mod routes;

mod openapi;

mod program;

mod division;
mod machine;
mod sample;

mod live;
mod replay;

mod history;
mod layouts;

mod group;
mod lab;

mod answer;

mod server;

pub use error::Error;
pub use openapi::document;
pub use program::Program;
pub use server::{Options, Server, serve};
