//! Ctrl-C and its like end a run between two measurements, so that what was made is removed.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static WANTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on signals only leave their mark.
pub fn watch() -> Result<(), String> {
    let wanted = WANTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(wanted))
            .map_err(|error| format!("signals can't be caught: {error}"))?;
    }
    Ok(())
}

/// An error once one came.
pub fn check() -> Result<(), String> {
    match WANTED.get().is_some_and(|wanted| wanted.load(Ordering::Relaxed)) {
        true => Err("interrupted".to_owned()),
        false => Ok(()),
    }
}
