//! Changes of settings as `ringfence set` makes them: what would be written is shown first, what was written is read
//! back, and what was there before is stored for an undo. The values, their order and their meaning are `settings`',
//! `plan`'s and `apply`'s.

use apply::SettingValue;
use kernel::{GroupName, Host, Seat};
use plan::SettingRequest;
use settings::{Facts, Value};

pub use apply::Planned;

/// Changes that can be put back, at most.
const UNDOABLE: usize = 100;

/// Receives a change that was refused: the group, settings and values as they are typed, and the refusal. The
/// answer is what there is to know of it.
pub type Deputy = Box<dyn Fn(&GroupName, &[(String, String)], apply::Error) -> Result<Vec<String>, Refusal>>;

/// Makes changes, and remembers how to put them back.
pub struct Changer {
    facts: Box<dyn Facts>,
    deputy: Option<Deputy>,
    /// What puts each change back, and what it was, oldest first.
    done: Vec<(String, Vec<SettingRequest>)>,
}

/// What would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// In order.
    pub writes: Vec<Planned>,
    /// What to know of it before.
    pub notes: Vec<String>,
    /// In words, `db: cpu.max`.
    pub what: String,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// In words.
    pub what: String,
    /// The value before and after, as they read.
    pub values: Vec<(String, String)>,
    /// What the kernel made different from what was written.
    pub differences: Vec<String>,
    /// How many changes can be put back now.
    pub undoable: usize,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What and why.
    pub message: String,
    /// What would fix it.
    pub hint: Option<String>,
}

impl Done {
    pub(crate) fn summary(&self) -> String {
        let values = self.values.iter().map(|(before, after)| format!("{before} -> {after}"));
        let values: Vec<String> = values.collect();
        let undo = if self.undoable > 0 { "; u undoes" } else { "" };
        format!("{} {}{undo}", self.what, values.join(", "))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::iter::once(self.summary()).chain(self.differences.iter().cloned()).collect()
    }
}

impl Refusal {
    pub(crate) fn new(message: impl std::fmt::Display, hint: Option<String>) -> Refusal {
        Refusal { message: message.to_string(), hint }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let hint = self.hint.iter().map(|hint| format!("hint: {hint}"));
        self.message.lines().map(str::to_owned).chain(hint).collect()
    }
}

impl From<settings::GroupNameError> for Refusal {
    fn from(error: settings::GroupNameError) -> Refusal {
        kernel::Error::from(error).into()
    }
}

impl From<kernel::Error> for Refusal {
    fn from(error: kernel::Error) -> Refusal {
        let hint = error.hint();
        Refusal::new(error, hint)
    }
}

impl From<apply::Error> for Refusal {
    fn from(error: apply::Error) -> Refusal {
        let hint = error.hint();
        Refusal::new(error, hint)
    }
}

impl Changer {
    /// Values are read for the machine of which these are the facts.
    pub fn new(facts: Box<dyn Facts>) -> Changer {
        Changer { facts, deputy: None, done: Vec::new() }
    }

    /// Asks another for what this user may not change.
    pub fn with_deputy(self, deputy: Deputy) -> Changer {
        Changer { deputy: Some(deputy), ..self }
    }

    /// What `SETTING=VALUE` would write.
    ///
    /// # Errors
    /// In words: no such setting, no such value, no such group.
    pub fn propose(&self, host: &Host, group: &str, text: &str) -> Result<Proposal, Refusal> {
        let (request, mut notes) = self.request(host, group, text)?;
        notes.extend(freezes_us(host, &request)?);
        let requests = [request];
        if apply::inverse(host, &requests).is_empty() {
            notes.push("this can't be undone".to_owned());
        }
        let [request] = &requests;
        let what = format!("{}: {}", request.group, request.found.name);
        Ok(Proposal { writes: apply::preview(host, &requests)?, notes, what })
    }

    /// Writes it, and reads it back.
    ///
    /// # Errors
    /// In words; nothing is changed then, unless it says so.
    pub fn change(&mut self, host: &Host, group: &str, text: &str) -> Result<Done, Refusal> {
        let (request, _) = self.request(host, group, text)?;
        freezes_us(host, &request)?;
        let requests = [request];
        let inverse = apply::inverse(host, &requests);
        let made = self.make(host, &requests)?;
        let [request] = &requests;
        let what = format!("{}: {}", request.group, request.found.name);
        if !inverse.is_empty() {
            self.done.push((what.clone(), inverse));
            let surplus = self.done.len().saturating_sub(UNDOABLE);
            self.done.drain(..surplus);
        }
        Ok(self.finished(what, made))
    }

    /// What would put the last change back.
    ///
    /// # Errors
    /// In words: nothing was changed, or the group is gone.
    pub fn propose_undo(&self, host: &Host) -> Result<Proposal, Refusal> {
        let (what, requests) = self.last()?;
        Ok(Proposal { writes: apply::preview(host, requests)?, notes: Vec::new(), what: what.clone() })
    }

    /// Puts the last change back, and reads it. What was refused can be tried again.
    ///
    /// # Errors
    /// In words.
    pub fn undo(&mut self, host: &Host) -> Result<Done, Refusal> {
        let (what, requests) = self.last()?.clone();
        let made = self.make(host, &requests)?;
        self.done.pop();
        Ok(self.finished(what, made))
    }

    fn last(&self) -> Result<&(String, Vec<SettingRequest>), Refusal> {
        self.done.last().ok_or_else(|| Refusal::new("nothing was changed here that could be undone", None))
    }

    fn finished(&self, what: String, made: Written) -> Done {
        Done { what, values: made.values, differences: made.differences, undoable: self.done.len() }
    }

    /// Writes the values, or has the deputy write them.
    fn make(&self, host: &Host, requests: &[SettingRequest]) -> Result<Written, Refusal> {
        let before: Vec<String> = requests.iter().map(|request| current_text(host, request)).collect();
        let differences = match (apply::set(host, requests), &self.deputy, requests.first()) {
            (Ok(changes), ..) => changes.into_iter().flat_map(|change| change.differences).collect(),
            (Err(error), Some(deputy), Some(first)) => {
                let typed = |request: &SettingRequest| {
                    (request.found.name.clone(), request.found.show(&request.value))
                };
                let typed: Vec<(String, String)> = requests.iter().map(typed).collect();
                deputy(&first.group, &typed, error)?
            }
            (Err(error), ..) => return Err(error.into()),
        };
        let values =
            before.into_iter().zip(requests.iter().map(|request| current_text(host, request))).collect();
        Ok(Written { values, differences })
    }

    /// The text as a typed value at its place, and warnings.
    fn request(
        &self,
        host: &Host,
        group: &str,
        text: &str,
    ) -> Result<(SettingRequest, Vec<String>), Refusal> {
        let group = GroupName::new(group)?;
        let Some((name, value)) = text.split_once('=') else {
            let hint = match settings::find(text.trim()) {
                Ok(found) => format!("for example {}={}", found.name, found.setting.example),
                Err(error) => error.hint(),
            };
            return Err(Refusal::new(format!("'{text}' is not SETTING=VALUE"), Some(hint)));
        };
        let parsed = SettingValue::parse(name.trim(), value, self.facts.as_ref()).map_err(|error| {
            let hint = error.hint();
            Refusal::new(error, hint)
        })?;
        let (value, mut notes) = parsed;
        let request = value.request(host, &group)?;
        if let settings::Side::Has(binding) = request.found.side(request.place.version)
            && let settings::Fidelity::Approximate(how) = binding.fidelity
        {
            notes.push(format!("on cgroup {}: {how}", request.place.version));
        }
        Ok((request, notes))
    }
}

/// What was made.
struct Written {
    /// Before and after.
    values: Vec<(String, String)>,
    differences: Vec<String>,
}

/// What the kernel has now, in words.
fn current_text(host: &Host, request: &SettingRequest) -> String {
    let reading = apply::get(host, &request.group, &request.found);
    let shown = |value: &Value| request.found.show(value).trim_end().replace('\n', "; ");
    reading.map_or_else(|_| "?".to_owned(), |reading| shown(&reading.value))
}

/// A program that freezes itself cannot thaw anything; a user whose shell is frozen cannot see it.
fn freezes_us(host: &Host, request: &SettingRequest) -> Result<Option<String>, Refusal> {
    if request.found.setting.name != "cgroup.freeze" || request.value != Value::Flag(true) {
        return Ok(None);
    }
    let at = &host.hierarchies()[request.place.hierarchy];
    let seat = Seat { at, path: request.place.path.clone() };
    let (mut pid, _) = host.kernel().caller();
    if holds(host, &seat, pid) {
        let hint = "start it from another group, or freeze from another terminal".to_owned();
        return Err(Refusal::new(
            format!("ringfence top itself is in group '{}' and would stop too", request.group),
            Some(hint),
        ));
    }
    while let Ok(process) = host.kernel().process(pid) {
        pid = process.parent;
        if pid <= 1 {
            break;
        }
        if holds(host, &seat, pid) {
            let name = host.kernel().process(pid).map(|process| process.comm).unwrap_or_default();
            return Ok(Some(format!("{name} ({pid}), which ringfence top was started from, would stop too")));
        }
    }
    Ok(None)
}

/// Is the process in the group or below it?
fn holds(host: &Host, seat: &Seat<'_>, pid: u32) -> bool {
    let path = host.kernel().group_of(seat.at, pid).ok().and_then(|path| seat.at.below_mount(&path));
    let rest = path.as_deref().and_then(|path| path.strip_prefix(seat.path.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || seat.path.is_empty())
}
