//! Hardware and software events of groups, as the kernel's perf_event_open(2) counts them: on every CPU, of the tasks of a
//! group and of those below it. v1 has a controller for that, with v2 every group can be counted. What a machine does not
//! count is missing, with the reason.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    time::{Duration, Instant},
};

use kernel::{Error, GroupName, Host, Real, describe};
use perf_event::{
    Builder, Counter,
    events::{Hardware, Software},
};
use rustix::{fs::OFlags, io::Errno};
use settings::Controller;
use units::{Cpu, IdSet};

use crate::rates::FigureUnit;

/// More groups than these are not counted: each takes a descriptor per event and CPU.
const MOST: usize = 64;

/// What the kernel counts.
#[derive(Clone, Copy)]
pub struct Event {
    /// perf(1)'s name.
    pub name: &'static str,
    kind: Kind,
    /// Of its rate.
    pub unit: FigureUnit,
}

/// Events that this machine or this caller can't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncounted {
    /// perf(1)'s names.
    pub events: Vec<&'static str>,
    /// What the kernel refused them with.
    pub errno: Errno,
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} not counted: {}", self.events.join(", "), reason(self.errno))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Software(Software),
    Hardware(Hardware),
}

const fn software(name: &'static str, event: Software) -> Event {
    Event { name, kind: Kind::Software(event), unit: FigureUnit::PerSecond }
}

const fn hardware(name: &'static str, event: Hardware) -> Event {
    Event { name, kind: Kind::Hardware(event), unit: FigureUnit::PerSecond }
}

/// Those that most machines count.
static EVENTS: [Event; 9] = [
    // nanoseconds, which make CPUs
    Event { unit: FigureUnit::Cpus, ..software("task-clock", Software::TASK_CLOCK) },
    software("context-switches", Software::CONTEXT_SWITCHES),
    software("cpu-migrations", Software::CPU_MIGRATIONS),
    software("page-faults", Software::PAGE_FAULTS),
    hardware("cycles", Hardware::CPU_CYCLES),
    hardware("instructions", Hardware::INSTRUCTIONS),
    hardware("cache-references", Hardware::CACHE_REFERENCES),
    hardware("cache-misses", Hardware::CACHE_MISSES),
    hardware("branch-misses", Hardware::BRANCH_MISSES),
];

/// Counts events of groups from the first look on.
pub struct Perf {
    kernel: Real,
    cpus: Vec<usize>,
    /// Why an event is not counted, by its place.
    refused: [Option<Errno>; EVENTS.len()],
    groups: BTreeMap<String, Counted>,
}

/// A group that is counted.
struct Counted {
    /// By event and CPU.
    counters: Vec<Vec<Counter>>,
    at: Instant,
    counts: [Option<f64>; EVENTS.len()],
    rates: [Option<f64>; EVENTS.len()],
}

impl Perf {
    /// `named`: groups that must be there to be counted.
    ///
    /// # Errors
    /// [`Error::NoGroup`]; [`Error::NotControlled`] for one that has no directory where events are counted;
    /// [`Error::NoController`] where no hierarchy can count.
    pub fn new(host: &Host, named: &[GroupName]) -> Result<Perf, Error> {
        named.iter().try_for_each(|group| host.seat(group, Controller::PerfEvent).map(drop))?;
        let online = host.kernel().outside("/sys/devices/system/cpu/online".as_ref()).ok();
        let online = online.and_then(|text| text.trim().parse::<IdSet<Cpu>>().ok());
        let cpus = online.map_or_else(|| vec![0], |set| set.iter().collect());
        Ok(Perf { kernel: Real::new(), cpus, refused: [None; EVENTS.len()], groups: BTreeMap::new() })
    }

    /// Reads the counters of these groups, and begins to count those that are new.
    pub fn look(&mut self, host: &Host, groups: &[String]) {
        self.groups.retain(|known, _| groups.contains(known));
        for group in groups {
            if let Some(counted) = self.groups.get_mut(group) {
                counted.read();
            } else if self.groups.len() < MOST {
                let counters = self.open(host, group);
                let (counts, rates) = ([None; EVENTS.len()], [None; EVENTS.len()]);
                let mut counted = Counted { counters, at: Instant::now(), counts, rates };
                counted.read();
                self.groups.insert(group.clone(), counted);
            }
        }
    }

    /// The events that are not counted, by reason.
    pub fn uncounted(&self) -> Vec<Uncounted> {
        let mut all: Vec<Uncounted> = Vec::new();
        for (event, errno) in EVENTS.iter().zip(self.refused) {
            let Some(errno) = errno else { continue };
            match all.iter_mut().find(|known| known.errno == errno) {
                Some(known) => known.events.push(event.name),
                None => all.push(Uncounted { events: vec![event.name], errno }),
            }
        }
        all
    }

    /// The events that are counted.
    pub fn events(&self) -> impl Iterator<Item = &'static Event> {
        EVENTS.iter().zip(self.refused).filter(|(_, refused)| refused.is_none()).map(|(event, _)| event)
    }

    /// An event's count per second between the last two looks at a group, in its unit; `None` before the second.
    pub fn rate(&self, group: &str, event: &Event) -> Option<f64> {
        let place = EVENTS.iter().position(|known| known.name == event.name)?;
        self.groups.get(group)?.rates[place]
    }

    /// No counters of an event that is refused; that is known from then on.
    fn open(&mut self, host: &Host, group: &str) -> Vec<Vec<Counter>> {
        let seat = GroupName::new(group)
            .map_err(Error::from)
            .and_then(|name| host.seat(&name, Controller::PerfEvent));
        // gone meanwhile, or not where events are counted
        let Ok(seat) = seat else { return Vec::new() };
        let directory = self.kernel.open(seat.at, &seat.path, "", OFlags::RDONLY | OFlags::DIRECTORY);
        let Ok(directory) = directory.map(File::from) else { return Vec::new() };
        let of_event = |(event, refused): (&Event, &mut Option<Errno>)| {
            if refused.is_some() {
                return Vec::new();
            }
            let opened: Result<_, Errno> = self.cpus.iter().map(|cpu| event.open(&directory, *cpu)).collect();
            opened.unwrap_or_else(|errno| {
                *refused = Some(errno);
                Vec::new()
            })
        };
        EVENTS.iter().zip(&mut self.refused).map(of_event).collect()
    }
}

impl Event {
    fn open(&self, directory: &File, cpu: usize) -> Result<Counter, Errno> {
        let mut builder = match self.kind {
            Kind::Software(event) => Builder::new(event),
            Kind::Hardware(event) => Builder::new(event),
        };
        // all of a task's time, in the kernel too
        builder.observe_cgroup(directory).one_cpu(cpu).exclude_kernel(false).exclude_hv(false).enabled(true);
        builder.build().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// A count in the figure's unit.
    fn whole(&self, count: f64) -> f64 {
        if self.unit == FigureUnit::Cpus { count / 1e9 } else { count }
    }
}

impl Counted {
    fn read(&mut self) {
        let elapsed = std::mem::replace(&mut self.at, Instant::now()).elapsed();
        for (place, counters) in self.counters.iter_mut().enumerate() {
            let before = self.counts[place];
            let counts: Option<Vec<f64>> = counters.iter_mut().map(count).collect();
            let now = counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum());
            self.rates[place] = before.zip(now).and_then(|(before, now)| {
                let rate = EVENTS[place].whole(now - before) / elapsed.as_secs_f64();
                (elapsed > Duration::ZERO).then_some(rate.max(0.0))
            });
            self.counts[place] = now;
        }
    }
}

/// Where more events are counted than a CPU has counters, each counts a part of the time, and the whole is estimated.
fn count(counter: &mut Counter) -> Option<f64> {
    let read = counter.read_count_and_time().ok()?;
    let part = match read.time_running {
        0 => 1.0,
        running => read.time_enabled as f64 / running as f64,
    };
    Some(read.count as f64 * part)
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            "this machine's CPUs have no counters for it, as most virtual machines"
        }
        Errno::ACCESS | Errno::PERM => "it takes root or CAP_PERFMON",
        Errno::NOSYS => "this kernel is built without CONFIG_PERF_EVENTS",
        Errno::INVAL | Errno::BADF => "this kernel is built without CONFIG_CGROUP_PERF",
        Errno::MFILE => "too many files are open",
        _ => return describe(errno),
    }
    .to_owned()
}
