//! What each key does, by page and by the dialog in front of it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use exporters::view::Cell;

use super::{Dialog, GroupPage, Line, MachinePage, Map, Menu, Mode, Model, Page, Pane, Request, Requested};
use crate::{
    change::{Proposal, Refusal},
    figures::ORDERS,
};

/// Lines that a page key goes.
const PAGE: isize = 10;

impl Model {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Request> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match (key.code, &mut self.dialog) {
                (KeyCode::Char('c'), _) => vec![Request::Quit],
                (KeyCode::Char('u'), Some(Dialog::Edit { .. } | Dialog::Filter(_))) => {
                    self.typed(Line::clear)
                }
                _ => Vec::new(),
            };
        }
        // Esc and a key that come together look like the key with Alt
        if key.modifiers.contains(KeyModifiers::ALT) {
            let mut requests = self.key(KeyCode::Esc.into());
            requests.extend(self.key(key.code.into()));
            return requests;
        }
        self.note = None;
        match self.dialog {
            Some(_) => self.dialog_key(key.code),
            None => self.page_key(key.code),
        }
    }

    fn page_key(&mut self, key: KeyCode) -> Vec<Request> {
        if let Some(requests) = self.replay_key(key) {
            return requests;
        }
        match key {
            KeyCode::Char('q') => return vec![Request::Quit],
            KeyCode::Char('?') | KeyCode::F(1) => self.dialog = Some(Dialog::Help { first: 0 }),
            KeyCode::Char('f') => return self.ask_freeze(),
            KeyCode::Char('e') => return self.edit(),
            KeyCode::Char('u') => return self.ask_undo(),
            KeyCode::Char('m') if !matches!(self.page, Page::Machine(_)) => {
                return self.turn_to(Page::Machine(MachinePage::default()));
            }
            KeyCode::Char('t') => {
                self.behind.clear();
                self.page = Page::Tree;
            }
            _ => return self.own_key(key),
        }
        Vec::new()
    }

    /// Keys that mean time while a log is shown.
    fn replay_key(&mut self, key: KeyCode) -> Option<Vec<Request>> {
        let Mode::Replay { playing } = &mut self.mode else { return None };
        let request = match key {
            KeyCode::Char(' ') => {
                *playing = !*playing;
                return Some(Vec::new());
            }
            KeyCode::Left => Request::Step(-1),
            KeyCode::Right => Request::Step(1),
            KeyCode::Char('[') => Request::Jump(-60),
            KeyCode::Char(']') => Request::Jump(60),
            KeyCode::Char('{') => Request::Jump(-3600),
            KeyCode::Char('}') => Request::Jump(3600),
            _ => return None,
        };
        *playing = false;
        Some(vec![request])
    }

    fn own_key(&mut self, key: KeyCode) -> Vec<Request> {
        match &mut self.page {
            Page::Tree => self.tree_key(key),
            Page::Group(page) => {
                match key {
                    KeyCode::Esc | KeyCode::Backspace => return self.back(),
                    KeyCode::Tab | KeyCode::BackTab => page.turn(),
                    KeyCode::Enter if page.pane == Pane::Settings => return self.edit(),
                    key => page.go(lines(key)),
                }
                Vec::new()
            }
            Page::Machine(_) => self.machine_key(key),
        }
    }

    fn tree_key(&mut self, key: KeyCode) -> Vec<Request> {
        match key {
            KeyCode::Enter => {
                if let Some(group) = self.tree.selected() {
                    let page = GroupPage::new(group);
                    return self.turn_to(Page::Group(Box::new(page)));
                }
            }
            KeyCode::Esc => {
                self.tree.filter.clear();
                self.tree.arrange();
            }
            KeyCode::Char('/') => self.dialog = Some(Dialog::Filter(Line::new(&self.tree.filter))),
            KeyCode::Char('s') => {
                let by = self.tree.sort.as_deref();
                let place = ORDERS.iter().position(|(name, _)| Some(*name) == by);
                self.dialog = Some(Dialog::Sort(Menu { selected: place.map_or(0, |place| place + 1) }));
            }
            KeyCode::Char(' ') => self.tree.fold(None),
            KeyCode::Left | KeyCode::Char('-' | 'h') => self.tree.fold(Some(true)),
            KeyCode::Right | KeyCode::Char('+' | 'l') => self.tree.fold(Some(false)),
            key => self.tree.go(lines(key)),
        }
        Vec::new()
    }

    fn machine_key(&mut self, key: KeyCode) -> Vec<Request> {
        let map = self.map();
        let selected = self.selected_cpu();
        let Page::Machine(page) = &mut self.page else { return Vec::new() };
        match key {
            KeyCode::Left | KeyCode::Char('h') => page.selected = page.selected.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => {
                page.selected = (page.selected + 1).min(map.spots.len().saturating_sub(1));
            }
            KeyCode::Esc | KeyCode::Backspace => return self.back(),
            KeyCode::Enter => {
                let owners = self.owners.as_ref().zip(selected);
                let owner = owners.and_then(|(owners, cpu)| match owners.cell(cpu) {
                    Cell::One(place) => Some(owners.list[place].group.clone()),
                    Cell::Several => owners.all_of(cpu).last().map(|owner| owner.group.clone()),
                    Cell::Nobodys => None,
                });
                return match owner {
                    Some(group) => self.turn_to(Page::Group(Box::new(GroupPage::new(&group)))),
                    None => Vec::new(),
                };
            }
            key => page.selected = map.below(page.selected, lines(key)),
        }
        Vec::new()
    }

    /// Where the CPUs are on the machine's page.
    pub(crate) fn map(&self) -> Map {
        Map::new(&self.topology, usize::from(self.size.0))
    }

    /// The CPU that is selected on the machine's page.
    pub(crate) fn selected_cpu(&self) -> Option<usize> {
        let Page::Machine(page) = &self.page else { return None };
        self.map().spots.get(page.selected).map(|spot| spot.cpu)
    }

    fn turn_to(&mut self, page: Page) -> Vec<Request> {
        let before = std::mem::replace(&mut self.page, page);
        self.behind.push(before);
        self.wanted()
    }

    fn back(&mut self) -> Vec<Request> {
        self.page = self.behind.pop().unwrap_or(Page::Tree);
        self.wanted()
    }

    /// The group that a change is for.
    fn group(&self) -> Option<String> {
        match &self.page {
            Page::Tree => self.tree.selected().map(str::to_owned),
            Page::Group(page) => Some(page.group.clone()),
            Page::Machine(_) => None,
        }
    }

    /// In a log nothing can be changed; without a group there is nothing to be.
    fn changeable(&mut self) -> Option<String> {
        if self.mode != Mode::Live {
            self.note = Some("this is the log: nothing can be changed in it".to_owned());
            return None;
        }
        let group = self.group();
        if group.is_none() {
            self.note = Some("select a group first: t shows them".to_owned());
        }
        group
    }

    fn edit(&mut self) -> Vec<Request> {
        let Some(group) = self.changeable() else { return Vec::new() };
        let text = match &self.page {
            Page::Group(page) => page.assignment(),
            Page::Tree | Page::Machine(_) => String::new(),
        };
        let request = Request::Propose { group: group.clone(), text: text.clone() };
        self.dialog = Some(Dialog::Edit { group, line: Line::new(&text), proposed: None });
        if text.is_empty() { Vec::new() } else { vec![request] }
    }

    fn ask_freeze(&mut self) -> Vec<Request> {
        let Some(group) = self.changeable() else { return Vec::new() };
        let is_frozen = self.row(&group).is_some_and(|(headings, row)| {
            crate::figures::of_row(headings, row, "frozen").number() == Some(1.0)
        });
        let (word, value) = if is_frozen { ("Thaw", 0) } else { ("Freeze", 1) };
        let text = format!("cgroup.freeze={value}");
        let requested = Requested::Change { group: group.clone(), text: text.clone() };
        self.dialog = Some(Dialog::Sure { what: format!("{word} {group}"), requested, proposed: None });
        vec![Request::Propose { group, text }]
    }

    fn ask_undo(&mut self) -> Vec<Request> {
        if self.mode != Mode::Live {
            return self.changeable().map_or_else(Vec::new, |_| Vec::new());
        }
        if self.undoable == 0 {
            self.note = Some("nothing was changed here that could be undone".to_owned());
            return Vec::new();
        }
        self.dialog =
            Some(Dialog::Sure { what: "Undo".to_owned(), requested: Requested::Undo, proposed: None });
        vec![Request::ProposeUndo]
    }

    /// What was proposed for the dialog that still asks for it.
    pub(super) fn proposed(&mut self, answer: Result<Proposal, Refusal>) {
        if let Some(Dialog::Edit { proposed, .. } | Dialog::Sure { proposed, .. }) = &mut self.dialog {
            *proposed = Some(answer);
        }
    }

    fn dialog_key(&mut self, key: KeyCode) -> Vec<Request> {
        let Some(dialog) = &mut self.dialog else { return Vec::new() };
        match (dialog, key) {
            (Dialog::Filter(_), KeyCode::Esc) => {
                self.dialog = None;
                self.tree.filter.clear();
                self.tree.arrange();
            }
            (Dialog::Filter(_), KeyCode::Enter) => self.dialog = None,
            (Dialog::Filter(_), KeyCode::Down) => self.tree.go(1),
            (Dialog::Filter(_), KeyCode::Up) => self.tree.go(-1),
            (_, KeyCode::Esc) => self.dialog = None,
            (Dialog::Help { .. }, KeyCode::Char('q' | '?') | KeyCode::Enter) => self.dialog = None,
            (Dialog::Help { first }, key) => *first = first.saturating_add_signed(lines(key)),
            (Dialog::Sort(menu), KeyCode::Enter) => {
                let chosen = menu.selected.checked_sub(1).map(|place| ORDERS[place].0.to_owned());
                self.tree.sort = chosen;
                self.tree.arrange();
                self.dialog = None;
            }
            (Dialog::Sort(menu), key) => {
                menu.selected = menu.selected.saturating_add_signed(lines(key)).min(ORDERS.len());
            }
            (Dialog::Edit { group, line, proposed }, KeyCode::Enter) => {
                // what was refused is not tried; what was not proposed yet comes at once
                if matches!(proposed, Some(Ok(_))) {
                    return vec![Request::Change { group: group.clone(), text: line.text.clone() }];
                }
            }
            (Dialog::Sure { requested, proposed: Some(Ok(_)), .. }, KeyCode::Enter | KeyCode::Char('y')) => {
                let request = match requested.clone() {
                    Requested::Change { group, text } => Request::Change { group, text },
                    Requested::Undo => Request::Undo,
                };
                return vec![request];
            }
            (Dialog::Sure { .. }, KeyCode::Char('n' | 'q')) => self.dialog = None,
            (
                Dialog::Sure { proposed: Some(Err(_)), .. } | Dialog::Notice { .. },
                KeyCode::Enter | KeyCode::Char('q'),
            ) => {
                self.dialog = None;
            }
            (Dialog::Edit { .. } | Dialog::Filter(_), key) => return self.typing(key),
            (Dialog::Sure { .. } | Dialog::Notice { .. }, _) => {}
        }
        Vec::new()
    }

    fn typing(&mut self, key: KeyCode) -> Vec<Request> {
        match key {
            KeyCode::Char(letter) => self.typed(|line| line.insert(letter)),
            KeyCode::Backspace => self.typed(Line::remove_before),
            KeyCode::Delete => self.typed(Line::remove_after),
            KeyCode::Left => self.typed(|line| line.go(false)),
            KeyCode::Right => self.typed(|line| line.go(true)),
            KeyCode::Home => self.typed(|line| line.cursor = 0),
            KeyCode::End => self.typed(|line| line.cursor = line.text.len()),
            _ => Vec::new(),
        }
    }

    /// A line was changed: the filter acts at once, a setting's new value is proposed at once.
    fn typed(&mut self, change: impl FnOnce(&mut Line)) -> Vec<Request> {
        match &mut self.dialog {
            Some(Dialog::Filter(line)) => {
                change(line);
                self.tree.filter.clone_from(&line.text);
                self.tree.arrange();
                Vec::new()
            }
            Some(Dialog::Edit { group, line, proposed }) => {
                change(line);
                *proposed = None;
                vec![Request::Propose { group: group.clone(), text: line.text.clone() }]
            }
            _ => Vec::new(),
        }
    }
}

/// How many lines a key goes in a list.
fn lines(key: KeyCode) -> isize {
    match key {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown => PAGE,
        KeyCode::PageUp => -PAGE,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => 0,
    }
}
