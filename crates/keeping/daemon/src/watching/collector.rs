//! The metrics' thread: makes the text when somebody asks for it, and at its times the file for a collector of text files.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use apply::{Resizes, State, Target};
use exporters::{
    layout_units,
    metrics::{
        Bounds, Desired, Format, InUnits, Partition, Writer, replace, write, write_energy, write_latencies,
    },
};
use kernel::{GroupName, Host, Real};
use monitor::{Beat, Descriptors, Energy, Groups, Options, Sampler};
use tokio::sync::oneshot;

use super::{Paces, Shared, Watching, few, misplaced::Misplaced, own};
use crate::{
    division::is_counted,
    failure_log::FailureLog,
    socket::{Peer, View},
};

/// A user that owns nothing and is in no group.
const NOBODY: u32 = u32::MAX - 1;

/// Somebody wants the metrics.
pub(super) struct Scrape {
    pub format: Format,
    /// Also of groups whose directories only some users may list.
    pub all: bool,
    pub answer: oneshot::Sender<Arc<str>>,
}

/// Answers until nobody can ask any more.
pub(super) fn run(watching: &Watching, shared: Arc<Shared>, requested: &Receiver<Scrape>) {
    let mut collector = Collector::new(watching, shared);
    let mut failures = FailureLog::new("the textfile is not written", "the textfile is written again");
    let mut due = watching.textfile.as_deref().map(|path| (path, Instant::now()));
    loop {
        if let Some((path, at)) = &mut due
            && *at <= Instant::now()
        {
            *at = Instant::now() + watching.paces.textfile;
            into(path, &collector.text(Format::Text, false), &mut failures);
        }
        let left = due.map_or(Duration::MAX, |(_, at)| at.saturating_duration_since(Instant::now()));
        match requested.recv_timeout(left.min(Duration::from_secs(3600))) {
            Ok(request) => {
                let mut requests: Vec<Scrape> =
                    std::iter::once(request).chain(requested.try_iter()).collect();
                // root waits for nobody else's
                requests.sort_by_key(|request| !request.all);
                for request in requests {
                    // the client may be gone
                    let _ = request.answer.send(collector.text(request.format, request.all));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn into(path: &Path, text: &str, failures: &mut FailureLog) {
    match replace(path, text) {
        Ok(()) => failures.succeeded(),
        Err(error) => failures.fail(format!("{}: {error}", path.display())),
    }
}

/// Makes the text.
struct Collector {
    shared: Arc<Shared>,
    paces: Paces,
    bounds: Bounds,
    /// Where the history is; `None`: nothing is applied.
    state: Option<State>,
    seen: Option<Hierarchies>,
    desired: Option<(Instant, Desired)>,
    misplaced: Misplaced,
    texts: [Option<Text>; 4],
    sampling: FailureLog,
    history: FailureLog,
}

/// A text, when it was made, and how long that took.
struct Text {
    at: Instant,
    took: Duration,
    text: Arc<str>,
}

/// For users other than root, metrics are collected again only after this many times as long as the last collection took:
/// that leaves the time to root.
const REST: u32 = 10;

/// The hierarchies, as long as they are the same.
struct Hierarchies {
    host: Host,
    sampler: Sampler<Descriptors>,
    mounts: u64,
}

impl Collector {
    fn new(watching: &Watching, shared: Arc<Shared>) -> Collector {
        Collector {
            state: shared.state.clone().map(State::peek),
            shared,
            paces: watching.paces,
            bounds: Bounds { groups: watching.groups, ..Bounds::default() },
            seen: None,
            desired: None,
            misplaced: Misplaced::default(),
            texts: Default::default(),
            sampling: FailureLog::new("groups have no metrics", "groups have metrics again"),
            history: FailureLog::new("what was applied has no metrics", "what was applied has metrics again"),
        }
    }

    /// The metrics, collected again unless they are fresh.
    fn text(&mut self, format: Format, all: bool) -> Arc<str> {
        let place = usize::from(format == Format::OpenMetrics) + 2 * usize::from(all);
        let rest = |took: Duration| if all { Duration::ZERO } else { took * REST };
        if let Some(Text { at, took, text }) = &self.texts[place]
            && at.elapsed() < self.paces.metrics.max(rest(*took))
        {
            return Arc::clone(text);
        }
        let start = Instant::now();
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, format);
        self.groups(&mut writer, all);
        own::write(&self.shared, &mut writer);
        writer.end();
        let text: Arc<str> = text.into();
        self.texts[place] = Some(Text { at: Instant::now(), took: start.elapsed(), text: Arc::clone(&text) });
        text
    }

    /// Looks at the hierarchies again if they may be others.
    fn see(&mut self) {
        if self.seen.as_ref().is_none_or(|seen| seen.mounts != self.shared.mounts()) {
            self.seen = None;
            let mounts = self.shared.mounts();
            match Host::new(Box::new(Real::new())) {
                Ok(host) => {
                    let options = Options { groups: Groups::Ours, slow_every: 1 };
                    let mut sampler = Sampler::new(&host, few(), options, true);
                    if let Some(state) = self.shared.state.clone() {
                        sampler = sampler.also(layout_units(state));
                    }
                    self.seen = Some(Hierarchies { host, sampler, mounts });
                }
                Err(error) => self.sampling.fail(error),
            }
        }
    }

    /// All figures of the hierarchies, or of the groups alone that everybody may look into.
    fn groups(&mut self, to: &mut Writer<'_>, all: bool) {
        self.see();
        let Some(Hierarchies { host, sampler, .. }) = &mut self.seen else { return };
        // who asks seldom wants all of it
        sampler.refresh();
        let bounds = self.bounds;
        if let Some(state) = &self.state
            && self.desired.as_ref().is_none_or(|(at, _)| at.elapsed() >= self.paces.desired)
        {
            let followed = self.shared.followed();
            match apply::status(state, Target { host, system: &apply::Running::new() }) {
                Ok(statuses) => {
                    self.history.succeeded();
                    let counts =
                        |group: &str, drift: &apply::Drift| is_counted(&followed.desired, group, drift);
                    self.desired = Some((Instant::now(), Desired::of(&statuses, counts)));
                }
                Err(failure) => {
                    self.history.fail(failure);
                    self.desired = None;
                }
            }
        }
        let applied = self.desired.iter().flat_map(|(_, desired)| &desired.groups);
        let own: HashSet<&str> = applied.map(|one| one.group.as_str()).collect();
        self.misplaced.look(host, &self.shared, self.paces.misplaced);
        match sampler.tick(host, Beat::default()) {
            Ok(sample) => {
                self.sampling.succeeded();
                if !all {
                    let rows = sample.groups.rows().iter().map(String::as_str);
                    to.hide(hidden(host, rows.chain(own.iter().copied()).chain(self.misplaced.groups())));
                }
                let desired = self.desired.as_ref().map(|(_, desired)| desired);
                let in_units = InUnits::of(desired, sample.groups.rows());
                let are = in_units.are();
                write(sample, bounds, &|group| own.contains(group) || are.contains(group), to);
                in_units.write(to);
                write_energy(&Energy::live(), to);
                Partition::write(&Partition::all(host, sample.groups.rows()), bounds, to);
            }
            Err(error) => {
                self.sampling.fail(error);
                self.seen = None;
                return;
            }
        }
        if let Some((_, desired)) = &self.desired {
            desired.write(bounds, to);
        }
        if let Some(state) = &self.state {
            let controller = Resizes::of(state).controller().unwrap_or_default();
            write_latencies(&controller.latencies, bounds, to);
        }
        self.misplaced.write(to);
    }
}

/// Of these labels those with a group that a user without any rights could not look into: the socket shows them to nobody else either.
fn hidden<'l>(host: &Host, labels: impl Iterator<Item = &'l str>) -> HashSet<String> {
    let nobody = Peer { uid: NOBODY, gid: NOBODY, pid: 0, groups: Vec::new() };
    let mut view = View::of(&nobody);
    let mut is_hidden = |name: &str| {
        let Ok(group) = GroupName::new(name) else { return true };
        !host.seats(&group).iter().all(|seat| view.lists(&seat.directory()))
    };
    // rules that lead to several groups have all of them in one label
    labels
        .filter(|label| is_hidden(label) || label.split(',').any(&mut is_hidden))
        .map(str::to_owned)
        .collect()
}
