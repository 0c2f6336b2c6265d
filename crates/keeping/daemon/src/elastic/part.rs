//! What the controller is a loop over: groups that one rule changes together, each with its own figures and writes.

use std::{rc::Rc, time::Duration};

use apply::{Ended, LeftAlone, Originals, Presence, Resize, Target};
use kernel::{GroupName, Host};
use policy::GroupState;

/// What parts start with: the groups may not have what a rule can start from.
pub(super) struct Start<'s> {
    pub target: Target<'s>,
    pub originals: Rc<Originals>,
    /// What the groups had to be given first.
    pub changes: Vec<Resize>,
    /// Groups that are left as they are.
    pub left_alone: Vec<LeftAlone>,
}

impl Start<'_> {
    /// Is a group there that the layout made or found? One that is not is left as it is until the next apply.
    ///
    /// # Errors
    /// In words: the machine has no such setting.
    pub fn has(&mut self, name: &str, group: &GroupName, setting: &str) -> Result<bool, String> {
        let presence = self.originals.presence(self.target.host, group, setting);
        let why = match presence.map_err(|error| cause(&error))? {
            Presence::There => return Ok(true),
            Presence::Gone => "it is gone",
            Presence::Remade => "somebody removed it and made it again",
        };
        self.leave(name, setting, why.to_owned());
        Ok(false)
    }

    /// Leaves a group as it is until the next apply: the others go on.
    pub fn leave(&mut self, name: &str, setting: &str, why: String) {
        self.left_alone.push(LeftAlone { group: name.to_owned(), setting: setting.to_owned(), why });
    }
}

/// Is a group still what it was? What can't be said is said by who reads it next.
pub(super) fn is_there(originals: &Originals, host: &Host, group: &GroupName, setting: &str) -> bool {
    originals.presence(host, group, setting) == Ok(Presence::There)
}

/// An error on one line: of a log, and of what `status` says.
pub(super) fn cause(error: &apply::Error) -> String {
    error.to_string().replace('\n', "; ")
}

/// Groups with a rule.
pub(super) trait Part {
    /// The groups, for the log.
    fn names(&self) -> Vec<&str>;

    /// Whose figures [`Part::tick`] takes, in this order.
    fn groups(&self) -> &[GroupName];

    /// Has a group something else than the rule knows?
    ///
    /// # Errors
    /// In words: the kernel does not say what it has.
    fn is_changed(&mut self, host: &Host) -> Result<bool, String>;

    /// The changes that follow, in the order in which they are to be written. `states`: of [`Part::groups`].
    ///
    /// # Errors
    /// In words: figures that only this rule takes can't be read.
    fn tick(&mut self, host: &Host, now: Duration, states: &[GroupState]) -> Result<Vec<Resize>, String>;

    /// Writes one change of the last tick, by its place in the list.
    ///
    /// # Errors
    /// In words: the kernel does not say what the group has.
    fn write(&mut self, target: Target<'_>, now: Duration, change: usize) -> Result<Outcome, String>;

    /// No change of the last tick is written: the groups have what they had.
    fn withdraw(&mut self);

    /// What has ended by itself since the last time.
    fn end(&mut self) -> Vec<Ended>;

    /// What goes on, in words.
    fn goes_on(&self) -> Option<&'static str>;
}

/// Why a rule ends whose writes the kernel refused, the last one with this cause.
pub(super) fn refused_too_often(cause: &str) -> String {
    format!("the kernel refused too many writes within a minute, the last one: {cause}")
}

/// After this number of refused ticks, ended resizing leaves what is there: the static shares are refused, too.
const TRIES: u32 = 3;

/// The end of a rule: its groups get their static shares back, as far as the kernel takes them.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why, once it has begun.
    cause: Option<String>,
    /// In how many ticks something was refused since then.
    tries: u32,
    is_refused: bool,
    is_said: bool,
}

impl Ending {
    pub fn begin(&mut self, cause: String) {
        self.cause.get_or_insert(cause);
    }

    pub fn has_begun(&self) -> bool {
        self.cause.is_some()
    }

    /// A tick begins: is nothing tried any more?
    pub fn is_over(&mut self) -> bool {
        self.tries += u32::from(std::mem::take(&mut self.is_refused));
        self.tries >= TRIES
    }

    /// Something was refused in this tick.
    pub fn refused(&mut self) {
        self.is_refused = self.has_begun();
    }

    /// Why it has ended, once the static shares are back or nothing is tried any more; `share`: what they are. Once.
    pub fn say(&mut self, is_back: bool, share: &str) -> Option<String> {
        let cause = self.cause.as_ref().filter(|_| !self.is_said)?;
        if !is_back && self.tries < TRIES {
            return None;
        }
        self.is_said = true;
        Some(match is_back {
            true => format!("{cause}; {share}"),
            false => {
                format!("{cause}; the kernel refuses the static shares, too, and what was there last stays")
            }
        })
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The group has it.
    Written,
    /// The kernel refused it, with the cause: the group has what it had.
    Refused(String),
    /// The group was not as the rule knows it: nothing was written.
    Unexpected,
}
