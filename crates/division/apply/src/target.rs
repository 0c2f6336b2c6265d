//! What a change is made to.

use kernel::Host;

use crate::system::System;

/// The host, and what of the running system is needed beside it.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// The host.
    pub host: &'t Host,
    /// The running system.
    pub system: &'t dyn System,
}
