//! Groups on the kernel in memory, with the model and the source that `ringfence top` has; figures that a clock makes
//! are replaced by given ones on their way to the model.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::Path,
    rc::Rc,
    time::{Duration, SystemTime},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use exporters::view::{Heading, Picture, Value};
use fake::Fake;
use kernel::{Host, Kernel};
use monitor::{Beat, Groups, Options, Sampler, Uncached};
use ratatui_core::{backend::TestBackend, style::Modifier, terminal::Terminal};
use settings::{Controller, NoMachine, Version};
use tui::{
    Changer, Deputy, Elastic, Error, Event, Figures, Live, Look, Model, Request, Source, deliver, render,
};

/// Without colours, with blocks and lines.
pub const LOOK: Look = Look { colour: false, unicode: true };

/// Figures by group and field; of the machine with an empty group.
type Given = BTreeMap<(String, String), f64>;

pub struct World {
    pub fake: Fake,
    pub model: Model,
    pub source: Fixed<Live<Uncached<Fake>>>,
    /// What follows its load.
    pub elastic: Rc<RefCell<Elastic>>,
    pub has_ended: bool,
}

/// A source whose samples have given times and figures.
pub struct Fixed<S> {
    pub source: S,
    pub given: Given,
    /// By CPU.
    pub interrupted: BTreeMap<usize, f64>,
    taken: u64,
}

impl<S: Source> Fixed<S> {
    pub fn new(source: S) -> Fixed<S> {
        Fixed { source, given: Given::new(), interrupted: BTreeMap::new(), taken: 0 }
    }

    fn fixed(&mut self, events: Result<Vec<Event>, Error>) -> Result<Vec<Event>, Error> {
        let mut events = events?;
        for event in &mut events {
            if let Event::Sampled(sight) = event {
                self.taken += 1;
                self.fix(&mut sight.picture);
                sight.interrupted.clone_from(&self.interrupted);
            }
        }
        Ok(events)
    }

    fn fix(&self, picture: &mut Picture) {
        picture.at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1_800_000_000 + self.taken));
        (picture.late, picture.missed) = (Duration::ZERO, 0);
        let of = |group: &str, heading: &Heading, value: &mut Value| match self
            .given
            .get(&(group.to_owned(), heading.name.clone()))
        {
            Some(number) => *value = Value::At(*number),
            None if heading.name.contains("pressure") || heading.name.ends_with("usage") => {
                *value = Value::At(0.0)
            }
            None => {}
        };
        for row in &mut picture.rows {
            for (heading, value) in picture.headings.iter().zip(&mut row.values) {
                of(&row.group, heading, value);
            }
        }
        for (heading, value) in &mut picture.machine {
            of("", heading, value);
        }
    }
}

impl<S: Source> Source for Fixed<S> {
    fn first(&mut self) -> Result<Vec<Event>, Error> {
        let events = self.source.first();
        self.fixed(events)
    }

    fn beat(&mut self, beat: Beat, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let events = self.source.beat(beat, open);
        self.fixed(events)
    }

    fn answer(&mut self, request: Request, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let events = self.source.answer(request, open);
        self.fixed(events)
    }
}

impl World {
    /// These groups on that kernel, sampled once.
    pub fn new(fake: Fake, groups: &[&str], topology: topology::Machine) -> World {
        World::of(fake, groups, topology, Changer::new(Box::new(NoMachine)))
    }

    /// The same, with somebody who may change what the caller may not.
    pub fn with_deputy(fake: Fake, groups: &[&str], deputy: Deputy) -> World {
        let changer = Changer::new(Box::new(NoMachine)).with_deputy(deputy);
        World::of(fake, groups, topology::Machine::default(), changer)
    }

    fn of(fake: Fake, groups: &[&str], topology: topology::Machine, changer: Changer) -> World {
        let host = Host::new(Box::new(fake.clone())).unwrap();
        for group in groups {
            make(&fake, &host, group);
        }
        let options = Options { groups: Groups::Ours, slow_every: 1 };
        let sampler = Sampler::new(&host, Uncached(fake.clone()), options, false);
        let elastic: Rc<RefCell<Elastic>> = Rc::default();
        let shown = elastic.clone();
        let live = Live::new(host, sampler, Figures::new(&[], &[]), changer);
        let live = live.with_resized(Box::new(move |_| Some(shown.borrow().clone()))).with_rest(0);
        let model = Model::live("test", Duration::from_secs(1), topology);
        let mut world = World { fake, model, source: Fixed::new(live), elastic, has_ended: false };
        world.tell(|source, _| source.first());
        world
    }

    /// Figures that the next samples have.
    pub fn give(&mut self, group: &str, figures: &[(&str, f64)]) {
        let given = figures.iter().map(|(name, number)| ((group.to_owned(), (*name).to_owned()), *number));
        self.source.given.extend(given);
    }

    /// The machine's CPUs with these shares of time with nothing to run, in turns.
    pub fn idle(&mut self, cpus: usize, shares: &[f64]) {
        for (cpu, idle) in (0..cpus).zip(shares.iter().cycle()) {
            let names = ["idle", "iowait"].map(|name| format!("machine.cpu.{name}/{cpu}"));
            self.give("", &[(&names[0], *idle), (&names[1], 0.0)]);
        }
    }

    pub fn beat(&mut self) {
        self.tell(|source, open| source.beat(Beat::default(), open));
    }

    fn tell(&mut self, request: impl FnOnce(&mut dyn Source, Option<&str>) -> Result<Vec<Event>, Error>) {
        let open = self.model.open().map(str::to_owned);
        let events = request(&mut self.source, open.as_deref()).unwrap();
        self.has_ended |= !deliver(&mut self.model, &mut self.source, events).unwrap();
    }

    /// Presses keys: words are named keys, anything else is typed letter by letter.
    pub fn press(&mut self, keys: &[&str]) {
        for key in keys {
            let named = match *key {
                "Enter" => Some(KeyCode::Enter),
                "Esc" => Some(KeyCode::Esc),
                "Tab" => Some(KeyCode::Tab),
                "Left" => Some(KeyCode::Left),
                "Right" => Some(KeyCode::Right),
                "Down" => Some(KeyCode::Down),
                "Up" => Some(KeyCode::Up),
                "PageDown" => Some(KeyCode::PageDown),
                "End" => Some(KeyCode::End),
                "Backspace" => Some(KeyCode::Backspace),
                _ => None,
            };
            match named {
                Some(code) => self.key(KeyEvent::new(code, KeyModifiers::NONE)),
                None if *key == "^U" => self.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)),
                None if *key == "^C" => self.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)),
                None => key
                    .chars()
                    .for_each(|letter| self.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE))),
            }
        }
    }

    fn key(&mut self, key: KeyEvent) {
        self.has_ended |= !deliver(&mut self.model, &mut self.source, vec![Event::Key(key)]).unwrap();
    }

    /// The screen as text, without blanks at the ends of lines.
    pub fn screen(&mut self, columns: u16, lines: u16) -> String {
        screen(&mut self.model, columns, lines, LOOK)
    }

    /// A group's file on the hierarchy of a controller.
    pub fn file(&self, controller: Controller, group: &str, v1: &str, v2: &str) -> String {
        let host = Host::new(Box::new(self.fake.clone())).unwrap();
        let at = host.hierarchy_of(controller).unwrap();
        let file = if at.version == Version::V1 { v1 } else { v2 };
        self.fake.read(at, group, file).unwrap().trim().to_owned()
    }

    /// A new process in a group, in every hierarchy.
    pub fn put(&self, group: &str) -> u32 {
        let pid = self.fake.spawn(1).unwrap();
        for at in self.fake.hierarchies().unwrap() {
            self.fake.write(&at, group, "cgroup.procs", &pid.to_string()).unwrap();
        }
        pid
    }
}

/// A group in every hierarchy, on v2 with all controllers, on v1 with all CPUs and nodes.
fn make(fake: &Fake, host: &Host, group: &str) {
    let parent = group.rsplit_once('/').map_or("", |(parent, _)| parent);
    for at in host.hierarchies() {
        if at.version == Version::V2 {
            let names = at.controllers.iter().filter_map(|one| one.name(Version::V2));
            let all: Vec<String> = names.map(|name| format!("+{name}")).collect();
            fake.write(at, parent, "cgroup.subtree_control", &all.join(" ")).unwrap();
        }
        fake.mkdir(at, group).unwrap();
        if at.version == Version::V1 && at.controllers.contains(&Controller::Cpuset) {
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let all = fake.read(at, parent, file).unwrap();
                fake.write(at, group, file, all.trim()).unwrap();
            }
        }
    }
}

pub fn screen(model: &mut Model, columns: u16, lines: u16, look: Look) -> String {
    model.update(Event::Size(columns, lines));
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| render(model, look, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| -> String {
        let cells = (0..columns).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..lines).map(line).fold(String::new(), |text, line| text + &line + "\n")
}

/// The lines that are reversed from end to end.
pub fn reversed(model: &mut Model, columns: u16, lines: u16) -> Vec<u16> {
    model.update(Event::Size(columns, lines));
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    let look = Look { colour: false, unicode: true };
    terminal.draw(|frame| render(model, look, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let is_reversed = |x, y| buffer[(x, y)].modifier.contains(Modifier::REVERSED);
    (0..lines).filter(|y| (0..columns).all(|x| is_reversed(x, *y))).collect()
}

/// Compares a screen with the file of that name; with `RF_BLESS` it is written anew.
pub fn expect(name: &str, screen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/tui/expected/{name}.txt"));
    if std::env::var_os("RF_BLESS").is_some() {
        std::fs::write(path, screen).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(screen == expected, "the screen is not as in {}:\n{screen}", path.display());
}

/// A machine of the topology crate's listings; several are merged.
pub fn machine(listings: &[&str]) -> topology::Machine {
    let one = |name: &&str| {
        let path = format!("{}/../../machine/topology/tests/machines/{name}", env!("CARGO_MANIFEST_DIR"));
        topology::Machine::from_listing(name, &std::fs::read_to_string(path).unwrap()).unwrap()
    };
    listings.iter().map(one).reduce(|one, other| one.merge(other).unwrap()).unwrap()
}
