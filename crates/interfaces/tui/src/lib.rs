//! `ringfence top`: groups, their settings and tasks, and the machine on a terminal, live or from the recorder's log.
//!
//! The way of a beat: a [`source`] (the live kernel or the log) makes a [`Sight`] of the chosen figures; the [`model`]
//! takes it and every key as an event and answers with [`Request`]s; the source carries those out and what they came to
//! is an event again; [`render`] draws the model. Model and drawing are pure: the same events make the same screen.
//! Figures come from `watch`, changes go through `apply`: nothing is read, decided or written in a second way here.

mod error;

mod figures; // which figures the screens show

mod model;
mod render;

mod change;
mod source;

mod input;
mod run;
mod terminal;

pub use change::{Changer, Deputy, Done, Planned, Proposal, Refusal};
pub use error::Error;
pub use figures::{Figures, Sight};
pub use model::{Answer, Elastic, Event, Model, Page, Request, Settings};
pub use render::{Look, render};
pub use run::{Options, deliver, run};
pub use source::{Live, Replay, Resized, Source};
pub use terminal::refuse_dumb;
