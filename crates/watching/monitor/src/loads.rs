//! What groups use of CPUs and how long they wait for them: the few figures that dynamic division takes many times a second.
//! Files stay open and are read once a look, nothing is allocated in the steady state, and what can't have changed a decision is
//! not read: the periods of a quota that there is none of, the waiting of a group that hardly runs, and the use of groups that the
//! directory above shows to be quiet.

use std::time::Duration;

use kernel::{GroupName, Host};
use rustix::io::Errno;
use settings::Version;

use crate::{
    cadence::now,
    families::{Family, HARDLY_ANY, families},
    files::Files,
    group_fields::GROUP_FIELDS,
    open_files::{OpenFiles, Slot},
    parse::{self, Want},
    run_delays::RunDelays,
    sources::on_host,
};

/// Who uses fewer CPUs hardly waits: that is read in turns only, as is what was missing.
const IDLE: f64 = 0.05;
const TURN: u64 = 10;

/// Where each task is read, a group that goes on using the same, by this share or [`IDLE`], and waits no more than this share of
/// the time, is read with every third look.
const SAME: f64 = 0.1;
const HARDLY: f64 = 0.002;
const STEADY: u64 = 3;

/// What a group did since the look before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// CPUs used.
    pub used: f64,
    /// The share of the time, 0 to 1, in which its tasks waited for a CPU.
    pub waiting: f64,
    /// The share of its quota's periods, 0 to 1, in which the quota stopped it.
    pub throttled: f64,
}

#[cfg(test)]
mod tests;

/// Reads some groups, again and again.
pub struct Loads<F: Files> {
    files: OpenFiles<F>,
    figures: Figures,
    groups: Vec<Group<F>>,
    families: Vec<Family<F>>,
    looks: u64,
}

/// Where this host has what is read; `None`: nowhere.
#[derive(Debug)]
struct Figures {
    usage: Option<Figure>,
    /// The quota's periods, and those in which it stopped the group; of one file.
    periods: Option<[Figure; 2]>,
    pressure: Option<Figure>,
}

#[derive(Debug, Clone, Copy)]
struct Figure {
    hierarchy: usize,
    file: &'static str,
    want: Want,
}

struct Group<F: Files> {
    name: GroupName,
    /// The directory above, if it is read, too.
    family: Option<usize>,
    usage: Slot<F::Open>,
    periods: Slot<F::Open>,
    pressure: Slot<F::Open>,
    /// Where the kernel does not count waiting by group.
    delays: Option<RunDelays<F>>,
    /// Nanoseconds, and when they were read.
    used: Option<(u64, Duration)>,
    /// The last look since then, if the directory above stood for it.
    quiet: Option<Duration>,
    is_unread: bool,
    /// As [`Figures::periods`].
    counted: Option<[u64; 2]>,
    /// Nanoseconds, of tasks 0, and when they were read.
    waited: Option<(u64, Duration)>,
    /// What it used, and its share of waiting, when that was read last.
    then: (f64, f64),
    load: Option<Load>,
}

/// A moment, and what is due in it.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Duration,
    is_turn: bool,
    is_third: bool,
}

impl<F: Files> Loads<F> {
    /// Of these groups of this host.
    pub fn new(host: &Host, files: F, groups: Vec<GroupName>) -> Loads<F> {
        let usage = figure(host, "cpu.usage");
        let by_task = usage.is_some_and(|usage| host.hierarchies()[usage.hierarchy].version == Version::V1);
        let (all, stopped) = (figure(host, "cpu.periods"), figure(host, "cpu.throttled.periods"));
        let figures = Figures {
            usage,
            periods: all.zip(stopped).map(|(all, stopped)| [all, stopped]),
            pressure: if by_task { None } else { figure(host, "cpu.pressure.some") },
        };
        let at = figures.usage.map(|usage| &host.hierarchies()[usage.hierarchy]);
        let none = || (Vec::new(), vec![None; groups.len()]);
        let (families, of) = at.map_or_else(none, |at| families(host, at, &groups));
        let groups = groups.into_iter().zip(of);
        let groups = groups.map(|(name, family)| Group::new(name, family, by_task)).collect();
        Loads { files: OpenFiles::new(files), figures, groups, families, looks: 0 }
    }

    /// What each group did, in the groups' order. `None`: it is not there, or was looked at only once.
    pub fn all(&self) -> impl Iterator<Item = Option<Load>> + '_ {
        self.groups.iter().map(|group| group.load)
    }

    /// Files that stay open.
    pub fn open_files(&self) -> usize {
        self.files.open()
    }

    /// Looks at all of them.
    pub fn look(&mut self, host: &Host) {
        let Loads { files, figures, groups, families, looks } = self;
        *looks += 1;
        let (at, looks) = (now(), *looks);
        let look = |index: usize| {
            let turn = looks + index as u64;
            Look { at, is_turn: turn.is_multiple_of(TURN), is_third: turn.is_multiple_of(STEADY) }
        };
        for (index, group) in groups.iter_mut().enumerate() {
            let look = look(index);
            group.is_unread = group.family.is_some() && !group.is_due(look);
            if !group.is_unread {
                let used = group.look(host, files, figures, look);
                group.family.into_iter().for_each(|family| families[family].add(used));
            }
        }
        for (number, family) in families.iter_mut().enumerate() {
            let now = figures.of_family(host, files, family);
            let is_quiet = family.is_quiet(now);
            let unread = groups.iter_mut().enumerate();
            let unread = unread.filter(|(_, group)| group.is_unread && group.family == Some(number));
            match is_quiet {
                true => unread.for_each(|(_, group)| group.is_quiet_at(at)),
                false => unread.for_each(|(index, group)| {
                    group.look(host, files, figures, look(index));
                }),
            }
        }
    }
}

impl<F: Files> Group<F> {
    fn new(name: GroupName, family: Option<usize>, by_task: bool) -> Group<F> {
        Group {
            name,
            family,
            usage: Slot::New,
            periods: Slot::New,
            pressure: Slot::New,
            delays: by_task.then(RunDelays::default),
            used: None,
            quiet: None,
            is_unread: false,
            counted: None,
            waited: None,
            then: (0.0, 0.0),
            load: None,
        }
    }

    /// Is it read whatever the directory above shows? A group with a small quota runs out of it with little use.
    fn is_due(&self, look: Look) -> bool {
        look.is_turn || self.load.is_none_or(|load| load.used > IDLE || load.throttled > 0.0)
    }

    /// It is not read, and uses what it did.
    fn is_quiet_at(&mut self, at: Duration) {
        self.quiet = Some(at);
        self.load = self.load.map(|load| Load { waiting: 0.0, throttled: 0.0, ..load });
    }

    /// Reads it. The nanoseconds that it used since it was read last.
    fn look(&mut self, host: &Host, files: &mut OpenFiles<F>, figures: &Figures, look: Look) -> u64 {
        let before = self.used;
        self.load = self.read(host, files, figures, look);
        let used = self.used.zip(before).map(|((now, _), (then, _))| now.saturating_sub(then));
        used.unwrap_or_default()
    }

    fn read(&mut self, host: &Host, files: &mut OpenFiles<F>, figures: &Figures, look: Look) -> Option<Load> {
        let (before, quiet) = (self.used.take(), self.quiet.take());
        let usage = figures.usage?;
        let text = files.read(&mut self.usage, look.is_turn, |files| usage.open(host, files, &self.name))?;
        let now = parse::one(text, &usage.want)?;
        let beside = figures.periods.filter(|[periods, _]| periods.is_beside(&usage));
        let counted = beside.and_then(|periods| both(text, &periods));
        self.used = Some((now, look.at));
        // until the last look it was quiet
        let quiet = quiet.filter(|_| before.is_some_and(|(then, _)| now.saturating_sub(then) > HARDLY_ANY));
        let since = before.map(|(_, at)| look.at.saturating_sub(quiet.unwrap_or(at)).as_secs_f64());
        let used = before.zip(since).and_then(|((then, _), since)| rate(now.checked_sub(then)?, since));
        let has_run = before.is_none_or(|(then, _)| then != now);
        let counted = counted.or_else(|| self.periods(host, files, figures, look, has_run));
        let throttled = self.throttled(counted);
        let waiting = match has_run || self.delays.is_none() {
            true => self.waiting(host, files, figures, look, (used, since)),
            // the kernel adds a task's delay when it runs
            false => self.has_not_waited(look.at),
        };
        Some(Load { used: used?, waiting, throttled })
    }

    /// The periods, where they have a file of their own: without a quota there are none, and who did not run was not stopped.
    fn periods(
        &mut self,
        host: &Host,
        files: &mut OpenFiles<F>,
        figures: &Figures,
        look: Look,
        has_run: bool,
    ) -> Option<[u64; 2]> {
        let periods = figures.periods?;
        let has_quota = self.counted.is_none_or(|[all, _]| all > 0);
        if !(has_run && (look.is_turn || has_quota)) {
            return None;
        }
        let open = |files: &F| periods[0].open(host, files, &self.name);
        both(files.read(&mut self.periods, look.is_turn, open)?, &periods)
    }

    fn throttled(&mut self, counted: Option<[u64; 2]>) -> f64 {
        let Some([all, stopped]) = counted else { return 0.0 };
        match self.counted.replace([all, stopped]) {
            Some([all_then, stopped_then]) if all > all_then => {
                let share = stopped.saturating_sub(stopped_then) as f64 / (all - all_then) as f64;
                share.clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// The share of waiting, read or as it was.
    fn waiting(
        &mut self,
        host: &Host,
        files: &mut OpenFiles<F>,
        figures: &Figures,
        look: Look,
        (used, since): (Option<f64>, Option<f64>),
    ) -> f64 {
        let runs = used.is_some_and(|used| used > IDLE);
        let (used_then, share_then) = self.then;
        let is_same = used.is_some_and(|used| (used - used_then).abs() <= IDLE.max(used_then * SAME));
        let is_steady = self.delays.is_some() && is_same && share_then <= HARDLY;
        if used.is_some() && !look.is_turn && !(runs && (!is_steady || look.is_third)) {
            return if runs { share_then } else { 0.0 };
        }
        let Some(grown) = self.waited(host, files, figures, look) else { return 0.0 };
        let (Some((then, at)), Some(since)) = (self.waited.replace((grown, look.at)), since) else {
            return 0.0;
        };
        let grown = grown.saturating_sub(then) as f64 / 1e9;
        let all = look.at.saturating_sub(at).as_secs_f64();
        // who begins to run waited until then as before
        let share = match runs && used_then <= IDLE {
            true => (grown - share_then * (all - since)) / since,
            false => grown / all,
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.then = (used.unwrap_or_default(), share);
        share
    }

    fn has_not_waited(&mut self, until: Duration) -> f64 {
        self.waited.iter_mut().for_each(|(_, at)| *at = until);
        self.then = (0.0, 0.0);
        0.0
    }

    /// Nanoseconds in which tasks waited, from some moment on.
    fn waited(
        &mut self,
        host: &Host,
        files: &mut OpenFiles<F>,
        figures: &Figures,
        look: Look,
    ) -> Option<u64> {
        if let Some(delays) = &mut self.delays {
            let so_far = self.waited.map_or(0, |(so_far, _)| so_far);
            return Some(so_far + delays.look(host, files, &self.name));
        }
        let pressure = figures.pressure?;
        let open = |files: &F| pressure.open(host, files, &self.name);
        parse::one(files.read(&mut self.pressure, look.is_turn, open)?, &pressure.want)
    }
}

impl Figures {
    /// The nanoseconds that a directory with groups has used.
    fn of_family<F: Files>(
        &self,
        host: &Host,
        files: &mut OpenFiles<F>,
        family: &mut Family<F>,
    ) -> Option<u64> {
        let usage = self.usage?;
        let Family { path, usage: slot, .. } = family;
        let open = |files: &F| files.open(&host.hierarchies()[usage.hierarchy], path, usage.file);
        parse::one(files.read(slot, true, open)?, &usage.want)
    }
}

impl Figure {
    fn open<F: Files>(&self, host: &Host, files: &F, group: &GroupName) -> Result<F::Open, Errno> {
        let at = &host.hierarchies()[self.hierarchy];
        files.open(at, &host.seat_in(at, group).path, self.file)
    }

    fn is_beside(&self, other: &Figure) -> bool {
        (self.hierarchy, self.file) == (other.hierarchy, other.file)
    }
}

fn figure(host: &Host, name: &str) -> Option<Figure> {
    let field = GROUP_FIELDS.iter().find(|field| field.name == name)?;
    let (hierarchy, source) = on_host(host, field)?;
    let want = Want { shape: source.shape, kind: field.kind, scale: source.scale, column: 0 };
    Some(Figure { hierarchy, file: source.file, want })
}

fn both(text: &[u8], figures: &[Figure; 2]) -> Option<[u64; 2]> {
    let [one, other] = figures.each_ref().map(|figure| parse::one(text, &figure.want));
    Some([one?, other?])
}

/// CPUs, of nanoseconds used within these seconds.
fn rate(used: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| used as f64 / 1e9 / seconds)
}
