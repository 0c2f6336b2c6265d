//! The running kernel: a thread that samples once a second while somebody looks, makes each answer once for all who ask, and
//! sleeps when nobody does.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use answers::Problem;
use exporters::{layout_units, view};
use hyper::body::Bytes;
use kernel::{GroupName, Host, Real};
use monitor::{Beat, Descriptors, Groups, Options, Sampler, Window};
use settings::GroupNameError;
use tokio::sync::watch;
use topology::Machine;
use units::{CpuSet, group_path};

use crate::{
    api::{
        groups::{self as api, GroupInfo, LimitCount, SampleSource},
        machine::{Owners, OwnersSource},
    },
    division::Division,
    sample::{About, Figures, millis, sample},
};

/// Between two samples.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Sampling ends when no request came for this long.
const IDLE: Duration = Duration::from_secs(10);
/// How long a request waits for the first sample.
const FIRST: Duration = Duration::from_secs(10);
/// Who owns which CPU is read again after this many times what reading took, as it costs a file per group.
const REST: u32 = 400;
/// And never sooner.
const SHORTEST_REST: Duration = Duration::from_secs(2);
/// Other CPUs or nodes are another machine.
const ONLINE: [&str; 2] = ["/sys/devices/system/cpu/online", "/sys/devices/system/node/online"];

/// What was seen last, as the bodies of answers.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Counts samples.
    pub seq: u64,
    /// The sample.
    pub sample: Bytes,
    /// Who owns which CPU.
    pub owners: Arc<Owners>,
    /// The same as JSON.
    pub owners_json: Bytes,
    /// Counts them.
    pub owners_version: u64,
    /// The groups.
    pub groups_json: Bytes,
    /// Counts them.
    pub groups_version: u64,
}

type Seen = Option<Result<Arc<Snapshot>, Problem>>;

/// The thread, until this is dropped.
#[derive(Debug)]
pub struct Live {
    shared: Arc<Shared>,
    seen: watch::Receiver<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    machine: Mutex<Arc<Machine>>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When the last request came.
    last: Option<Instant>,
    /// Something was changed: it is seen at once.
    refresh: bool,
    stop: bool,
    /// A group whose counts are wanted, and where they go.
    limits: Vec<(String, std::sync::mpsc::Sender<Vec<LimitCount>>)>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn machine(&self) -> MutexGuard<'_, Arc<Machine>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is watched.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Only these groups and those below them; empty: all of ours, and the units of the layout.
    pub groups: Vec<GroupName>,
    /// The state directory.
    pub state: std::path::PathBuf,
}

impl Live {
    /// Starts the thread, which sleeps until somebody asks.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(watched: Watched) -> std::io::Result<Live> {
        let shared = Arc::new(Shared::default());
        let (send, seen) = watch::channel(None);
        let of_thread = Arc::clone(&shared);
        let seen_online = online();
        *shared.machine() = machine();
        let body = move || Watcher::new(watched, of_thread, seen_online, send).run();
        let thread = std::thread::Builder::new().name("web-sampler".to_owned()).spawn(body)?;
        Ok(Live { shared, seen, thread: Some(thread) })
    }

    /// The newest snapshot; waits for one before the first request.
    ///
    /// # Errors
    /// Groups can't be read.
    pub async fn now(&self) -> Result<Arc<Snapshot>, Problem> {
        let now = Instant::now();
        let was_idle = {
            let mut state = self.shared.state();
            state.last.replace(now).is_none_or(|last| now - last > IDLE)
        };
        if was_idle {
            self.shared.woken.notify_all();
        }
        // also for those that come while the first sample is taken
        let mut seen = self.seen.clone();
        match tokio::time::timeout(FIRST, seen.wait_for(Option::is_some)).await {
            Ok(Ok(seen)) => seen.clone().unwrap_or_else(|| Err(not_yet())),
            _ => Err(not_yet()),
        }
    }

    /// The machine as it was seen last.
    pub fn machine(&self) -> Arc<Machine> {
        Arc::clone(&self.shared.machine())
    }

    /// Makes the next sample come at once and with all figures, as after a change.
    pub fn refresh(&self) {
        self.shared.state().refresh = true;
        self.shared.woken.notify_all();
    }

    /// How often a group's limits were met; none if nothing is sampled now.
    pub fn limits(&self, group: &str) -> Vec<LimitCount> {
        let (answer, answered) = std::sync::mpsc::channel();
        self.shared.state().limits.push((group.to_owned(), answer));
        self.shared.woken.notify_all();
        answered.recv_timeout(INTERVAL * 2).unwrap_or_default()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.woken.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a thread that panicked has ended as well
        }
    }
}

/// Nothing was read by now.
pub fn not_yet() -> Problem {
    Problem::unavailable("no sample was taken yet")
}

/// The thread's own.
struct Watcher {
    watched: Watched,
    machine: Arc<Machine>,
    /// What was in its files when it was read.
    online: [String; 2],
    shared: Arc<Shared>,
    send: watch::Sender<Seen>,
    figures: Figures,
    kernel: Option<(Host, Sampler<Descriptors>)>,
    window: Option<Window>,
    seq: u64,
    owners: Arc<Owners>,
    owners_json: Bytes,
    /// What the owners were made of, and until when it is not read again.
    made_of: (Vec<(String, CpuSet, bool)>, Division),
    rests_until: Instant,
    groups_json: Bytes,
    groups_version: u64,
    names: Arc<[String]>,
}

/// Why the thread goes on.
enum Turn {
    Sample,
    Limits,
    Stop,
}

impl Watcher {
    fn new(watched: Watched, shared: Arc<Shared>, online: [String; 2], send: watch::Sender<Seen>) -> Watcher {
        let machine = Arc::clone(&shared.machine());
        let nobody = Division::default().owners(Vec::new(), &machine, (OwnersSource::Live, 0, 0));
        Watcher {
            watched,
            machine,
            online,
            shared,
            send,
            figures: Figures::default(),
            kernel: None,
            window: None,
            seq: 0,
            owners: Arc::new(nobody),
            owners_json: Bytes::new(),
            made_of: (Vec::new(), Division::default()),
            rests_until: Instant::now(),
            groups_json: Bytes::new(),
            groups_version: 0,
            names: Arc::from([]),
        }
    }

    fn run(mut self) {
        let mut due = Instant::now();
        loop {
            match self.next(&mut due) {
                Turn::Stop => return,
                Turn::Limits => self.answer_limits(),
                Turn::Sample => {
                    let seen = self.snapshot();
                    if seen.is_err() {
                        self.kernel = None; // hierarchies may have come or gone
                    }
                    self.send.send_replace(Some(seen));
                    self.answer_limits();
                }
            }
        }
    }

    /// Sleeps until a sample is due, or longer while nobody asks.
    fn next(&mut self, due: &mut Instant) -> Turn {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        loop {
            if state.stop {
                return Turn::Stop;
            }
            if !state.limits.is_empty() && self.window.is_some() {
                return Turn::Limits;
            }
            let now = Instant::now();
            let is_needed = state.last.is_some_and(|last| now - last <= IDLE);
            let is_refreshed = std::mem::take(&mut state.refresh);
            if is_refreshed {
                self.rests_until = now;
                if let Some((_, sampler)) = &mut self.kernel {
                    sampler.refresh();
                }
            }
            if is_needed && (is_refreshed || now >= *due) {
                // the beat does not drift; what was missed is not made up for
                *due = if now >= *due + INTERVAL {
                    now + INTERVAL
                } else {
                    (*due).max(now - INTERVAL) + INTERVAL
                };
                return Turn::Sample;
            }
            let wait = if is_needed {
                due.saturating_duration_since(now)
            } else {
                // what was seen before a pause is old
                self.send.send_if_modified(|seen| seen.take().is_some());
                Duration::from_secs(3600)
            };
            let waited = shared.woken.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn answer_limits(&mut self) {
        let wanted = std::mem::take(&mut self.shared.state().limits);
        for (group, answer) in wanted {
            let limits = self.window.as_ref().map(|window| self.figures.limits(window, &group));
            let _ = answer.send(limits.unwrap_or_default()); // the other end may have gone
        }
    }

    fn snapshot(&mut self) -> Result<Arc<Snapshot>, Problem> {
        let (host, mut sampler) = match self.kernel.take() {
            Some(kernel) => kernel,
            None => self.open()?,
        };
        let is_first = self.window.is_none();
        let newest = sampler.tick(&host, Beat::default())?;
        let window = self.window.get_or_insert_with(|| view::window_for(newest));
        window.push(newest);
        self.seq += 1;
        let sight = self.figures.sight(window);
        let mut sight = sight.ok_or_else(|| Problem::unavailable("no sample was taken yet"))?;
        view::complete(&mut sight.picture, &host);
        self.look_at_owners(&host, &sampler);
        self.look_at_groups(&host, &sampler)?;
        if is_first {
            // once more all of every group, so that each counter has a rate from the next sample on
            sampler.refresh();
        }
        let about = About {
            seq: self.seq,
            source: SampleSource::Live,
            interval: INTERVAL,
            owners_version: self.owners.version,
            groups_version: self.groups_version,
        };
        let body = json(&sample(sight, &self.machine, about))?;
        self.kernel = Some((host, sampler));
        Ok(Arc::new(Snapshot {
            seq: self.seq,
            sample: body,
            owners: Arc::clone(&self.owners),
            owners_json: self.owners_json.clone(),
            owners_version: self.owners.version,
            groups_json: self.groups_json.clone(),
            groups_version: self.groups_version,
        }))
    }

    fn open(&mut self) -> Result<(Host, Sampler<Descriptors>), Problem> {
        let host = host()?;
        // where that is refused, files are opened again each time
        let _ = Descriptors::allow_more();
        let sampler =
            |groups| Sampler::new(&host, Descriptors::new(), Options::every(INTERVAL, groups), true);
        let mut sampler = match self.watched.groups.as_slice() {
            [] => sampler(Groups::Ours).also(layout_units(self.watched.state.clone())),
            names => sampler(Groups::Named(names.to_vec())),
        };
        sampler.only(&host, |field| self.figures.needs(field));
        (self.window, self.names) = (None, Arc::from([]));
        Ok((host, sampler))
    }

    fn look_at_owners(&mut self, host: &Host, sampler: &Sampler<Descriptors>) {
        let is_other = self.look_at_machine() || self.names != *sampler.sample().groups.rows();
        if !is_other && Instant::now() < self.rests_until {
            return;
        }
        let began = Instant::now();
        let allowed = view::allowed(host, sampler.sample());
        let division = Division::in_effect(&apply::State::peek(self.watched.state.clone()));
        let made_of = (allowed, division);
        if made_of != self.made_of || self.owners_json.is_empty() {
            let version = self.owners.version + 1;
            let about = (OwnersSource::Live, millis(SystemTime::now()), version);
            let owners = made_of.1.owners(made_of.0.clone(), &self.machine, about);
            self.owners_json = json(&owners).unwrap_or_default();
            self.owners = Arc::new(owners);
            self.made_of = made_of;
            self.groups_json = Bytes::new(); // the list has each group's CPUs
        }
        self.rests_until = Instant::now() + (began.elapsed() * REST).max(SHORTEST_REST);
    }

    /// CPUs and nodes come and go: is it another machine?
    fn look_at_machine(&mut self) -> bool {
        let online = online();
        let is_other = online != self.online;
        if is_other {
            self.online = online;
            self.machine = machine();
            *self.shared.machine() = Arc::clone(&self.machine);
            self.owners_json = Bytes::new(); // a new version of them is how pages learn of it
        }
        is_other
    }

    fn look_at_groups(&mut self, host: &Host, sampler: &Sampler<Descriptors>) -> Result<(), Problem> {
        let names = sampler.sample().groups.rows();
        if self.names == *names && !self.groups_json.is_empty() {
            return Ok(());
        }
        self.names = Arc::clone(names);
        self.groups_version += 1;
        let cpus: BTreeMap<&str, &CpuSet> =
            self.made_of.0.iter().map(|(group, cpus, _)| (group.as_str(), cpus)).collect();
        let is_listed = |name: &str| names.binary_search_by(|row| row.as_str().cmp(name)).is_ok();
        let info = |name: &String| {
            let parent = group_path::branch(name).skip(1).find(|above| is_listed(above));
            let depth = group_path::branch(name).skip(1).filter(|above| is_listed(above)).count();
            GroupInfo {
                group: name.clone(),
                label: below(name, parent).to_owned(),
                parent: parent.map(str::to_owned),
                depth,
                unit: name.strip_prefix('/').and_then(kernel::unit_of),
                hierarchies: hierarchies(host, name).unwrap_or_default(),
                cpus: cpus.get(name.as_str()).map(ToString::to_string),
                elastic: self.made_of.1.bounds(name).cloned(),
            }
        };
        let mut groups: Vec<GroupInfo> = names.iter().map(info).collect();
        groups.sort_by(|one, other| group_path::names(&one.group).cmp(group_path::names(&other.group)));
        self.groups_json = json(&api::Groups { version: self.groups_version, groups })?;
        Ok(())
    }
}

fn online() -> [String; 2] {
    ONLINE.map(|file| fs::read_to_string(file).unwrap_or_default())
}

/// Where it can't be read, its page is empty.
fn machine() -> Arc<Machine> {
    Arc::new(Machine::live().unwrap_or_default())
}

/// The name below the group above.
fn below<'n>(name: &'n str, parent: Option<&str>) -> &'n str {
    let rest = parent.and_then(|parent| name.strip_prefix(parent)).map(|rest| rest.trim_start_matches('/'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Where a group is: a v1 hierarchy's controllers, or `unified`.
pub fn hierarchies(host: &Host, group: &str) -> Result<Vec<String>, GroupNameError> {
    let name = GroupName::new(group)?;
    Ok(host.seats(&name).iter().map(|seat| seat.at.label()).collect())
}

/// The machine's hierarchies now.
///
/// # Errors
/// There are none.
pub fn host() -> Result<Host, Problem> {
    Ok(Host::new(Box::new(Real::new()))?)
}

/// As the body of an answer.
///
/// # Errors
/// A number that JSON has not.
pub fn json(value: &impl serde::Serialize) -> Result<Bytes, Problem> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(|error| Problem::unavailable(format!("no JSON: {error}")))
}
