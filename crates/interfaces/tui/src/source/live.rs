//! The running kernel: samples, what a page shows beside them, and changes.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use exporters::view::{self, Ran, Trail};
use kernel::{GroupName, Host};
use monitor::{Beat, Files, Sampler, Task, Window, interruptions::Counts};
use units::CpuSet;

use super::Source;
use crate::{
    change::{Changer, Refusal},
    error::Error,
    figures::Figures,
    model::{Answer, Elastic, Event, Request, Settings},
};

/// What a page shows beside the figures is read again after this many times what reading took: it gets at most
/// a tenth of the time.
const REST: u32 = 10;

/// Reads which groups follow their load; nothing where that can't be read.
pub type Resized = Box<dyn FnMut(&Host) -> Option<Elastic>>;

/// The running kernel.
pub struct Live<F: Files> {
    host: Host,
    sampler: Sampler<F>,
    window: Option<Window>,
    /// What interrupted CPUs by the last sample.
    counts: Option<Counts>,
    figures: Figures,
    changer: Changer,
    tasks: Option<(String, Instant, Vec<Task>)>,
    /// On which CPUs they were before.
    trail: Trail,
    /// What was read last beside the samples, and until when it is not read again.
    rests: Option<(Request, Instant)>,
    resized: Option<Resized>,
    /// Until when that is not read again.
    resized_rests: Option<Instant>,
    /// How many times as long as it took.
    rest: u32,
}

impl<F: Files> Live<F> {
    /// Samples of this sampler, on this host.
    pub fn new(host: Host, mut sampler: Sampler<F>, figures: Figures, changer: Changer) -> Live<F> {
        sampler.only(&host, |field| figures.needs(field));
        Live {
            host,
            sampler,
            window: None,
            counts: None,
            figures,
            changer,
            tasks: None,
            trail: Trail::default(),
            rests: None,
            resized: None,
            resized_rests: None,
            rest: REST,
        }
    }

    /// The same, with groups that follow their load.
    pub fn with_resized(self, resized: Resized) -> Live<F> {
        Live { resized: Some(resized), ..self }
    }

    /// The same, reading what a page shows beside the figures again after this many times what reading took: 0 for a
    /// test that needs it at each sample.
    pub fn with_rest(self, rest: u32) -> Live<F> {
        Live { rest, ..self }
    }

    /// Which groups follow their load, once it may be read again.
    fn elastic(&mut self) -> Option<Event> {
        let began = Instant::now();
        let resized =
            self.resized.as_mut().filter(|_| self.resized_rests.is_none_or(|until| began >= until))?;
        let elastic = resized(&self.host).unwrap_or_default();
        let ended = Instant::now();
        self.resized_rests = Some(ended + (ended - began) * self.rest);
        Some(Event::Answer(Answer::Elastic(elastic)))
    }

    /// What reads beside the samples gets no more than its part of the time.
    fn spared(&mut self, request: Request) -> Vec<Event> {
        let rests =
            self.rests.as_ref().is_some_and(|(last, until)| *last == request && Instant::now() < *until);
        if rests { Vec::new() } else { self.timed(request) }
    }

    fn timed(&mut self, request: Request) -> Vec<Event> {
        let began = Instant::now();
        let answer = match &request {
            Request::Group(group) => Answer::Group(self.group(group)),
            Request::Owners => Answer::Owners(view::allowed(&self.host, self.sampler.sample())),
            _ => return Vec::new(),
        };
        let ended = Instant::now();
        self.rests = Some((request, ended + (ended - began) * self.rest));
        vec![Event::Answer(answer)]
    }

    fn group(&mut self, group: &str) -> Settings {
        let read = || -> Result<_, Refusal> {
            let name = GroupName::new(group)?;
            let settings = apply::all(&self.host, &name, settings::Setting::can_be_set);
            Ok((settings, monitor::tasks(&self.host, &name)?))
        };
        let at = Instant::now();
        let (settings, tasks) = match read() {
            Ok(read) => read,
            Err(refusal) => {
                return Settings { group: group.to_owned(), refusal: Some(refusal), ..Settings::default() };
            }
        };
        let settings = settings.into_iter().map(|(found, reading)| {
            let value = found.show(&reading.value).trim_end().to_owned();
            (found.name, value, found.setting.doc)
        });
        Settings {
            group: group.to_owned(),
            settings: settings.collect(),
            tasks: self.ran(group, at, tasks),
            refusal: None,
        }
    }

    /// What the tasks did since they were looked at before.
    fn ran(&mut self, group: &str, at: Instant, tasks: Vec<Task>) -> Vec<Ran> {
        let before = self.tasks.take().filter(|(of, ..)| of == group);
        if before.is_none() {
            self.trail = Trail::default();
        }
        let mut ran = match &before {
            Some((_, was, before)) => view::ran_between(before, tasks.clone(), at - *was),
            None => view::ran_between(&[], tasks.clone(), Duration::ZERO),
        };
        self.trail.follow(&mut ran);
        self.tasks = Some((group.to_owned(), at, tasks));
        ran
    }

    /// Since the last sample. The kernel's tables have all CPUs at once.
    fn interrupted(&mut self) -> BTreeMap<usize, f64> {
        let Ok(now) = Counts::now() else { return BTreeMap::new() };
        let before = self.counts.replace(now);
        let (Some(before), Some(now)) = (before, self.counts.as_ref()) else { return BTreeMap::new() };
        now.cpus().iter().map(|cpu| (cpu, now.since(&before, &CpuSet::range(cpu, cpu)).per_sec)).collect()
    }

    fn sight(&mut self, beat: Beat, open: Option<&str>) -> Result<Option<Event>, Error> {
        let interrupted = self.interrupted();
        let sample = self.sampler.tick(&self.host, beat)?;
        let is_first = self.window.is_none();
        let window = self.window.get_or_insert_with(|| view::window_for(sample));
        window.push(sample);
        let mut sight = self.figures.sight(window, open);
        if let Some(sight) = &mut sight {
            view::complete(&mut sight.picture, &self.host);
            sight.interrupted = interrupted;
        }
        if is_first {
            // once more all of every group, so that each counter has a rate from the next sample on
            self.sampler.refresh();
        }
        Ok(sight.map(|sight| Event::Sampled(Box::new(sight))))
    }

    /// What was changed is seen at once.
    fn after_change(&mut self, answer: Answer, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let mut events = vec![Event::Answer(answer)];
        self.sampler.refresh();
        events.extend(self.sight(Beat::default(), open)?);
        if let Some(group) = open {
            events.extend(self.timed(Request::Group(group.to_owned())));
        }
        Ok(events)
    }
}

impl<F: Files> Source for Live<F> {
    fn first(&mut self) -> Result<Vec<Event>, Error> {
        self.beat(Beat::default(), None)
    }

    fn beat(&mut self, beat: Beat, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let elastic = self.elastic();
        Ok(elastic.into_iter().chain(self.sight(beat, open)?).collect())
    }

    fn answer(&mut self, request: Request, open: Option<&str>) -> Result<Vec<Event>, Error> {
        let answer = match request {
            Request::Group(_) | Request::Owners => return Ok(self.spared(request)),
            Request::Propose { group, text } => {
                Answer::Proposed(self.changer.propose(&self.host, &group, &text))
            }
            Request::ProposeUndo => Answer::Proposed(self.changer.propose_undo(&self.host)),
            Request::Change { group, text } => {
                let changed = self.changer.change(&self.host, &group, &text);
                return self.after_change(Answer::Changed(changed), open);
            }
            Request::Undo => {
                let changed = self.changer.undo(&self.host);
                return self.after_change(Answer::Changed(changed), open);
            }
            Request::Quit | Request::Step(_) | Request::Jump(_) => return Ok(Vec::new()),
        };
        Ok(vec![Event::Answer(answer)])
    }
}
