//! What `--json` means for each command; a new one has to say it here (docs/json.md).

use super::Command;

/// What is on standard output with `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON: one document, or one a line from a command that goes on.
    Json,
    /// Nothing: its text has a format of its own, which other programs read. What has the same as JSON.
    Refused(Option<&'static str>),
    /// What another program prints, or the daemon's log; of its own only errors.
    Errors,
}

impl Command {
    /// Of this command.
    pub fn answer(&self) -> Answer {
        match self {
            Command::Metrics(_) => Answer::Refused(Some("ringfence watch --once --json")),
            Command::Perf(_) => Answer::Refused(Some("ringfence watch GROUP --perf --count 1 --json")),
            Command::Completions(_) => Answer::Refused(None),
            Command::Run(_) | Command::Daemon(_) | Command::RevertUnlessConfirmed(_) | Command::Worker(_) => {
                Answer::Errors
            }
            Command::Create(_)
            | Command::Delete(_)
            | Command::List(_)
            | Command::Get(_)
            | Command::Set(_)
            | Command::Move(_)
            | Command::Where(_)
            | Command::Classify(_)
            | Command::Freeze(_)
            | Command::Thaw(_)
            | Command::Kill(_)
            | Command::Stat(_)
            | Command::Watch(_)
            | Command::Top(_)
            | Command::Web(_)
            | Command::Record(_)
            | Command::Dump(_)
            | Command::Fields(_)
            | Command::Why(_)
            | Command::Isolate(_)
            | Command::Doctor
            | Command::Topology(_)
            | Command::Settings(_)
            | Command::Mount(_)
            | Command::Umount(_)
            | Command::Check(_)
            | Command::Import(_)
            | Command::Export(_)
            | Command::Schema(_)
            | Command::Plan(_)
            | Command::Elastic(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Schedule(_)
            | Command::Simulate(_)
            | Command::Apply(_)
            | Command::Shield(_)
            | Command::Unshield(_)
            | Command::Confirm(_)
            | Command::Undo(_)
            | Command::History(_)
            | Command::Status(_)
            | Command::Reload(_)
            | Command::Lab(_)
            | Command::Links(_)
            | Command::Man(_) => Answer::Json,
        }
    }
}
