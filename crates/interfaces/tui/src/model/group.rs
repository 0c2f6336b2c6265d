//! A group's page: its settings, its tasks, and how often it met its limits.

use exporters::view::Ran;

use super::{List, Settings};
use crate::change::Refusal;

/// Which list the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    Settings,
    Tasks,
}

/// The page of one group.
#[derive(Debug, Clone, Default)]
pub struct GroupPage {
    pub(crate) group: String,
    pub(crate) pane: Pane,
    /// Name, value, what it does.
    pub(crate) settings: Vec<(String, String, &'static str)>,
    pub(crate) tasks: Vec<Ran>,
    pub(crate) refusal: Option<Refusal>,
    /// Words and how often, since the group was made.
    pub(crate) limits: Vec<(&'static str, u64)>,
    pub(crate) setting: List,
    pub(crate) task: List,
    /// Has it been sampled yet?
    pub(crate) is_read: bool,
}

impl GroupPage {
    pub(crate) fn new(group: &str) -> GroupPage {
        GroupPage { group: group.to_owned(), ..GroupPage::default() }
    }

    /// What the group holds now; the selection stays with its setting.
    pub(crate) fn take(&mut self, read: Settings) {
        if read.group != self.group {
            return; // another page was opened meanwhile
        }
        let selected = self.selected().map(str::to_owned);
        self.settings = read.settings;
        self.tasks = read.tasks;
        // who runs most comes first
        self.tasks.sort_by(|one, other| other.running.unwrap_or(0.0).total_cmp(&one.running.unwrap_or(0.0)));
        self.refusal = read.refusal;
        self.is_read = true;
        if let Some(place) =
            selected.and_then(|name| self.settings.iter().position(|(known, ..)| *known == name))
        {
            self.setting.selected = place;
        }
        self.setting.go(0, self.settings.len());
        self.task.go(0, self.tasks.len());
    }

    /// The selected setting's name.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.settings.get(self.setting.selected).map(|(name, ..)| name.as_str())
    }

    /// The selected setting as it could be typed.
    pub(crate) fn assignment(&self) -> String {
        self.settings.get(self.setting.selected).map_or_else(String::new, |(name, value, _)| {
            // a list of lines is typed again
            let value = if value.contains('\n') { "" } else { value };
            format!("{name}={value}")
        })
    }

    pub(crate) fn go(&mut self, by: isize) {
        match self.pane {
            Pane::Settings => self.setting.go(by, self.settings.len()),
            Pane::Tasks => self.task.go(by, self.tasks.len()),
        }
    }

    pub(crate) fn turn(&mut self) {
        self.pane = match self.pane {
            Pane::Settings => Pane::Tasks,
            Pane::Tasks => Pane::Settings,
        };
    }
}
