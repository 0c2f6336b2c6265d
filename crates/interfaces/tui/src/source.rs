//! Where samples come from and requests go to: the running kernel or the recorder's log.

mod live;
mod replay;

pub use live::{Live, Resized};
pub use replay::Replay;

use monitor::Beat;

use crate::{
    error::Error,
    model::{Event, Request},
};

/// What the loop asks. Each answer is a list of events for the model.
pub trait Source {
    /// What the model sees first.
    ///
    /// # Errors
    /// There is nothing to see.
    fn first(&mut self) -> Result<Vec<Event>, Error>;

    /// A beat: the next sample. `open` is the group whose page is open.
    ///
    /// # Errors
    /// The groups can't be listed any more.
    fn beat(&mut self, beat: Beat, open: Option<&str>) -> Result<Vec<Event>, Error>;

    /// Carries out what the model requested. What is refused is an event too.
    ///
    /// # Errors
    /// The source can't go on.
    fn answer(&mut self, request: Request, open: Option<&str>) -> Result<Vec<Event>, Error>;
}
