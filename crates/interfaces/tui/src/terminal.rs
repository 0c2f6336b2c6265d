//! The terminal while the screens are on it, and as it was again afterwards: at the end, on an error and on a panic.

use std::{
    io::{self, Write, stdout},
    sync::atomic::{AtomicBool, Ordering},
};

use crossterm::{
    cursor, execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;

use crate::error::Error;

/// Refuses a terminal that nothing can be drawn on.
///
/// # Errors
/// [`Error::Dumb`].
pub fn refuse_dumb() -> Result<(), Error> {
    match std::env::var("TERM") {
        Ok(term) if term == "dumb" => Err(Error::Dumb { term }),
        _ => Ok(()),
    }
}

/// The screens' terminal. Dropping it gives the user's back.
pub(crate) struct Screen {
    pub terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Screen> {
        enable_raw_mode()?;
        // from here on a failure has to give the terminal back too
        IS_OURS.store(true, Ordering::SeqCst);
        let entered = execute!(stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => {
                restore_on_panic();
                Ok(Screen { terminal })
            }
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// What is said of a panic is said on the user's screen.
fn restore_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        say(panic);
    }));
}

/// Have the screens the terminal now?
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Once: a second time would draw over what was said meanwhile. A terminal that is gone needs nothing back.
fn restore() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    let _ = stdout().flush();
}
