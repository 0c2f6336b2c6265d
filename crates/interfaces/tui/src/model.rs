//! The state of the screens: what was sampled last, which page is open, what is selected, filtered and folded, and the
//! open dialog. It changes by events alone and asks for what it needs by [`Request`]s: it never reads, writes or draws.

mod dialog;
mod group;
mod history;
mod keys;
mod list;
mod machine;
mod tree;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use apply::Following;
use crossterm::event::KeyEvent;
use exporters::view::{Heading, MachineFigures, Owners, Picture, Ran, Row};

use crate::{
    change::{Done, Proposal, Refusal},
    figures::Sight,
};

pub(crate) use dialog::{Dialog, Line, Menu, Requested, plan_lines};
pub(crate) use group::{GroupPage, Pane};
pub(crate) use history::History;
pub(crate) use list::List;
pub(crate) use machine::{MachinePage, Map, letter};
pub(crate) use tree::{Tree, VisibleRow};

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The screen's columns and lines.
    Size(u16, u16),
    /// A sample was taken or read.
    Sampled(Box<Sight>),
    /// An earlier sample, for the histories alone.
    Past(Box<Picture>),
    /// The histories start again: the log is read at another place.
    HistoryReset,
    /// What a request came to.
    Answer(Answer),
}

/// What the model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To end.
    Quit,
    /// A group's settings and tasks.
    Group(String),
    /// Which groups have which CPUs.
    Owners,
    /// What `SETTING=VALUE` would write.
    Propose {
        /// The group.
        group: String,
        /// `SETTING=VALUE`.
        text: String,
    },
    /// To write it.
    Change {
        /// The group.
        group: String,
        /// `SETTING=VALUE`.
        text: String,
    },
    /// What would put the last change back.
    ProposeUndo,
    /// To put it back.
    Undo,
    /// To go this many samples on in the log, or back.
    Step(i64),
    /// To go this many seconds on in the log, or back.
    Jump(i64),
}

/// What a request came to.
#[derive(Debug)]
pub enum Answer {
    /// Of [`Request::Group`].
    Group(Settings),
    /// Of [`Request::Owners`]: the groups that have CPUs, those CPUs, and whether they are theirs alone.
    Owners(Vec<(String, units::CpuSet, bool)>),
    /// Of [`Request::Propose`] and [`Request::ProposeUndo`].
    Proposed(Result<Proposal, Refusal>),
    /// Of [`Request::Change`] and [`Request::Undo`].
    Changed(Result<Done, Refusal>),
    /// Groups whose settings follow their load.
    Elastic(Elastic),
    /// Something that could not be done.
    Refused(Refusal),
    /// The log ends or begins here.
    Edge(&'static str),
}

/// What a group holds now.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The group.
    pub group: String,
    /// Name, value as `ringfence get` shows it, what it does.
    pub settings: Vec<(String, String, &'static str)>,
    /// Its tasks and those of the groups below.
    pub tasks: Vec<Ran>,
    /// Why there are none, if they cannot be read.
    pub refusal: Option<Refusal>,
}

/// What follows its load, as `ringfence elastic` shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Elastic {
    /// The groups, by name.
    pub groups: Vec<Following>,
    /// Why nobody changes them, if so.
    pub trouble: Option<String>,
}

/// Where the samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The running kernel.
    Live,
    /// The recorder's log: nothing can be changed.
    Replay {
        /// Each beat goes on by a sample.
        playing: bool,
    },
}

/// Which page is open.
#[derive(Debug, Clone)]
pub enum Page {
    /// The groups.
    Tree,
    /// A group's.
    Group(Box<GroupPage>),
    /// The machine's.
    Machine(MachinePage),
}

/// The state.
#[derive(Debug)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) every: Duration,
    pub(crate) mode: Mode,
    pub(crate) size: (u16, u16),
    pub(crate) at: Option<SystemTime>,
    pub(crate) lateness: Option<String>,
    pub(crate) tree: Tree,
    pub(crate) figures: MachineFigures,
    pub(crate) histories: HashMap<String, History>,
    pub(crate) topology: topology::Machine,
    pub(crate) owners: Option<Owners>,
    pub(crate) elastic: Elastic,
    /// Interrupts and softirqs per second, by CPU.
    pub(crate) interrupted: BTreeMap<usize, f64>,
    pub(crate) page: Page,
    /// The pages that Esc goes back to.
    pub(crate) behind: Vec<Page>,
    pub(crate) dialog: Option<Dialog>,
    /// Shown in the line above the keys until the next key.
    pub(crate) note: Option<String>,
    pub(crate) undoable: usize,
    ticks: u32,
}

/// The list of groups has room for maps of their CPUs from this width on.
pub(crate) const MAPPED: u16 = 150;

impl Model {
    /// The live screens of the machine of that name, with a sample `every` so often.
    pub fn live(name: &str, every: Duration, topology: topology::Machine) -> Model {
        Model::new(name, every, topology, Mode::Live)
    }

    /// The screens of a log.
    pub fn replay(name: &str, every: Duration, topology: topology::Machine) -> Model {
        Model::new(name, every, topology, Mode::Replay { playing: false })
    }

    fn new(name: &str, every: Duration, topology: topology::Machine, mode: Mode) -> Model {
        Model {
            name: name.to_owned(),
            every,
            mode,
            size: (80, 24),
            at: None,
            lateness: None,
            tree: Tree::default(),
            figures: MachineFigures::default(),
            histories: HashMap::new(),
            topology,
            owners: None,
            elastic: Elastic::default(),
            interrupted: BTreeMap::new(),
            page: Page::Tree,
            behind: Vec::new(),
            dialog: None,
            note: None,
            undoable: 0,
            ticks: 0,
        }
    }

    /// Sorts the groups by this figure from the beginning.
    pub fn sorted_by(mut self, figure: &str) -> Model {
        self.tree.sort = Some(figure.to_owned());
        self
    }

    /// The group whose page is open.
    pub fn open(&self) -> Option<&str> {
        match &self.page {
            Page::Group(page) => Some(&page.group),
            Page::Tree | Page::Machine(_) => None,
        }
    }

    /// Is it the running kernel that is shown?
    pub fn is_live(&self) -> bool {
        self.mode == Mode::Live
    }

    /// Does each beat go on in the log?
    pub fn is_playing(&self) -> bool {
        self.mode == Mode::Replay { playing: true }
    }

    /// Takes an event; what it asks for in return.
    pub fn update(&mut self, event: Event) -> Vec<Request> {
        match event {
            Event::Key(key) => self.key(key),
            Event::Size(columns, lines) => {
                self.size = (columns, lines);
                Vec::new()
            }
            Event::Sampled(sight) => self.sampled(*sight),
            Event::Past(picture) => {
                self.remember(&picture);
                Vec::new()
            }
            Event::HistoryReset => {
                self.histories.clear();
                Vec::new()
            }
            Event::Answer(answer) => {
                self.answered(answer);
                Vec::new()
            }
        }
    }

    fn sampled(&mut self, sight: Sight) -> Vec<Request> {
        let Sight { picture, limits, interrupted } = sight;
        self.interrupted = interrupted;
        self.at = picture.at;
        self.lateness = exporters::view::lateness(picture.late, picture.missed);
        self.figures = MachineFigures::of(&picture);
        self.remember(&picture);
        self.ticks = self.ticks.wrapping_add(1);
        // groups that are gone are forgotten now and then
        if self.ticks.is_multiple_of(64) {
            let groups: std::collections::HashSet<&str> =
                picture.rows.iter().map(|row| row.group.as_str()).collect();
            self.histories.retain(|group, _| groups.contains(group.as_str()));
        }
        self.tree.take(picture);
        if let Page::Group(page) = &mut self.page {
            page.limits = limits;
        }
        self.wanted()
    }

    /// What the open page shows beside the figures.
    pub(crate) fn wanted(&self) -> Vec<Request> {
        match (&self.page, self.mode) {
            (Page::Tree, Mode::Live) if self.size.0 >= MAPPED => vec![Request::Owners],
            (_, Mode::Replay { .. }) | (Page::Tree, _) => Vec::new(),
            (Page::Group(page), _) => vec![Request::Group(page.group.clone())],
            (Page::Machine(_), _) => vec![Request::Owners],
        }
    }

    fn remember(&mut self, picture: &Picture) {
        for row in &picture.rows {
            match self.histories.get_mut(&row.group) {
                Some(history) => history.push(&picture.headings, row),
                None => self.histories.entry(row.group.clone()).or_default().push(&picture.headings, row),
            }
        }
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Group(settings) => {
                if let Page::Group(page) = &mut self.page {
                    page.take(settings);
                }
            }
            Answer::Owners(owned) => {
                let cpus = self.topology.online();
                self.owners = Some(Owners::new(owned, &cpus));
            }
            Answer::Elastic(elastic) => self.elastic = elastic,
            Answer::Proposed(proposed) => self.proposed(proposed),
            Answer::Changed(Ok(done)) => {
                self.undoable = done.undoable;
                self.dialog = None;
                match done.differences.is_empty() {
                    true => self.note = Some(done.summary()),
                    false => {
                        self.dialog = Some(Dialog::notice("Done, but not exactly as typed", done.lines()))
                    }
                }
            }
            Answer::Changed(Err(refusal)) | Answer::Refused(refusal) => {
                self.dialog = Some(Dialog::refused(&refusal));
            }
            Answer::Edge(words) => {
                self.note = Some(words.to_owned());
                self.mode = match self.mode {
                    Mode::Replay { .. } => Mode::Replay { playing: false },
                    Mode::Live => Mode::Live,
                };
            }
        }
    }

    /// What of a group follows its load.
    pub(crate) fn following(&self, group: &str) -> Option<&Following> {
        self.elastic.groups.iter().find(|one| one.group == group)
    }

    /// The row of a group in the last picture.
    pub(crate) fn row(&self, group: &str) -> Option<(&[Heading], &Row)> {
        self.tree.row(group)
    }
}
