//! The commands that make a layout in effect hold again, as they are offered: of the history that they are about, and of the layout
//! that was applied, which need not be the machine's own.

use std::path::{Path, PathBuf};

use kernel::Host;
use units::hint::Command;

use crate::state::{STATE, State, state_directory};

/// The directory of the machine's layout: commands take it where none is named, and the service has no other.
pub const LAYOUT: &str = "/etc/ringfence";

/// Of one history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Again {
    /// The layout in effect, if there is one and its place is known.
    pub layout: Option<PathBuf>,
    /// The directory of the history, if a command without `--state` takes another one.
    history: Option<String>,
    /// Does the machine's service resize its groups: is there systemd, and is it the machine's history?
    by_service: bool,
}

impl Again {
    /// For that layout.
    pub fn of(state: &State, host: &Host, layout: Option<PathBuf>) -> Again {
        let by_service = host.has_systemd() && state.directory() == Path::new(STATE);
        Again { layout, by_service, ..Again::of_history(state) }
    }

    /// For what needs no layout.
    pub fn of_history(state: &State) -> Again {
        let other = Some(state.directory()).filter(|directory| *directory != state_directory());
        let history = other.map(|directory| directory.to_string_lossy().into_owned());
        Again { history, ..Again::default() }
    }

    /// Applies the layout again.
    pub fn apply(&self) -> Command {
        let layout = self.layout.iter().map(|path| path.to_string_lossy());
        self.here(Command::ringfence("apply").args(layout))
    }

    /// Has the daemon resize groups again.
    pub fn resume(&self) -> Command {
        self.here(Command::ringfence("resume"))
    }

    /// Keeps a generation that waits for it.
    pub fn confirm(&self, generation: u32) -> Command {
        self.here(Command::ringfence("confirm").arg(generation.to_string()))
    }

    /// Takes the last generation back.
    pub fn undo(&self) -> Command {
        self.here(Command::ringfence("undo"))
    }

    /// Starts the daemon.
    pub fn start(&self) -> Command {
        let other = self.layout.as_ref().filter(|path| !path.starts_with(LAYOUT));
        if other.is_none() && self.by_service {
            return Command::new("systemctl start ringfenced");
        }
        let daemon = Command::ringfence("daemon");
        self.here(
            other.iter().fold(daemon, |daemon, path| daemon.arg("--layout").arg(path.to_string_lossy())),
        )
    }

    fn here(&self, command: Command) -> Command {
        self.history.iter().fold(command, |command, history| command.arg("--state").arg(history))
    }
}
