//! The log on the same screens: stepped through, played, and never changed.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, SystemTime},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fake::Fake;
use kernel::{Host, Kernel};
use monitor::{Beat, Groups, Options, Recorder, RecorderOptions, Sampler, Uncached};
use tui::{Event, Figures, Model, Replay, Source, deliver};

use crate::world::{LOOK, screen};

/// As many samples as tasks: a task more with each.
const SAMPLES: usize = 6;

fn record(directory: &Path) {
    let fake = Fake::v2(2, 1);
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let at = &host.hierarchies()[0];
    fake.write(at, "", "cgroup.subtree_control", "+pids").unwrap();
    fake.mkdir(at, "db").unwrap();
    let options = Options { groups: Groups::Ours, slow_every: 1 };
    let mut sampler = Sampler::new(&host, Uncached(fake.clone()), options, false);
    let (mut recorder, _) = Recorder::open(directory, RecorderOptions::default()).unwrap();
    for _ in 0..SAMPLES {
        let pid = fake.spawn(1).unwrap();
        fake.write(at, "db", "cgroup.procs", &pid.to_string()).unwrap();
        recorder.append(sampler.tick(&host, Beat::default()).unwrap()).unwrap();
        // the log's times are in milliseconds
        sleep(Duration::from_millis(3));
    }
}

struct Shown {
    model: Model,
    source: Replay,
}

impl Shown {
    fn new(directory: &Path) -> Shown {
        let model = Model::replay("test", Duration::from_secs(1), topology::Machine::default());
        let mut source = Replay::new(directory, SystemTime::now(), Figures::new(&[], &[]));
        let first = source.first().unwrap();
        let mut shown = Shown { model, source };
        assert!(deliver(&mut shown.model, &mut shown.source, first).unwrap());
        shown
    }

    fn press(&mut self, keys: &[KeyCode]) {
        let events = keys.iter().map(|key| Event::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        deliver(&mut self.model, &mut self.source, events.collect()).unwrap();
    }

    fn screen(&mut self) -> String {
        screen(&mut self.model, 80, 24, LOOK)
    }

    fn tasks(&mut self) -> usize {
        let text = self.screen();
        let line = text.lines().find(|line| line.contains(" db ")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    }
}

#[test]
fn a_log_is_stepped_through_sample_by_sample() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let mut shown = Shown::new(directory.path());
    assert_eq!(shown.tasks(), SAMPLES);
    shown.press(&[KeyCode::Left]);
    assert_eq!(shown.tasks(), SAMPLES - 1);
    // keys that came together are one step
    shown.press(&[KeyCode::Left, KeyCode::Left, KeyCode::Right, KeyCode::Left]);
    assert_eq!(shown.tasks(), SAMPLES - 3);
    shown.press(&[KeyCode::Right]);
    assert_eq!(shown.tasks(), SAMPLES - 2);
    shown.press(&[KeyCode::Char('[')]);
    assert!(shown.screen().contains("the log begins here"));
    assert_eq!(shown.tasks(), SAMPLES - 2);
    shown.press(&[KeyCode::Char(']')]);
    assert_eq!(shown.tasks(), SAMPLES);
    shown.press(&[KeyCode::Right]);
    assert!(shown.screen().contains("the log ends here"));
}

#[test]
fn a_log_is_played_and_stops_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let mut shown = Shown::new(directory.path());
    shown.press(&[KeyCode::Left, KeyCode::Left, KeyCode::Char(' ')]);
    assert!(shown.model.is_playing());
    assert!(shown.screen().contains("LOG, playing"));
    for expected in [SAMPLES - 1, SAMPLES, SAMPLES] {
        let events = shown.source.beat(Beat::default(), None).unwrap();
        deliver(&mut shown.model, &mut shown.source, events).unwrap();
        assert_eq!(shown.tasks(), expected);
    }
    assert!(!shown.model.is_playing());
}

#[test]
fn a_log_grows_while_it_is_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let mut shown = Shown::new(directory.path());
    shown.press(&[KeyCode::Right]);
    assert_eq!(shown.tasks(), SAMPLES);
    record(directory.path());
    shown.press(&[KeyCode::Right]);
    assert_eq!(shown.tasks(), 1, "the second recording's first");
}

#[test]
fn nothing_is_changed_in_a_log() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let mut shown = Shown::new(directory.path());
    for key in ['e', 'f', 'u'] {
        shown.press(&[KeyCode::Char(key)]);
        assert!(shown.screen().contains("this is the log: nothing can be changed in it"), "{key}");
    }
    shown.press(&[KeyCode::Down, KeyCode::Enter]);
    let text = shown.screen();
    assert!(text.contains("the log holds figures alone"), "{text}");
    shown.press(&[KeyCode::Char('m')]);
    let text = shown.screen();
    assert!(text.contains("the log does not hold which group has which CPU"), "{text}");
}

#[test]
fn an_empty_log_is_an_error_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = Replay::new(directory.path(), SystemTime::now(), Figures::new(&[], &[]));
    let error = source.first().unwrap_err();
    assert!(error.to_string().contains("nothing was recorded"), "{error}");
    assert_eq!(error.hint().unwrap(), "ringfence record writes the log");
}
