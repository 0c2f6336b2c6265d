//! Reads every group's and the machine's files, again and again, into one sample. In the steady state it allocates
//! nothing for the files of every sample: descriptors stay open, texts go through one buffer, and numbers into the
//! table that is there. Never derives a figure and never sleeps.

use std::{sync::Arc, time::SystemTime};

use kernel::{Error, GroupName, Host};
use settings::DeviceNumber;

use crate::{
    cadence::{Beat, now},
    changes::Changes,
    field::{Field, Pace},
    files::{Buffer, Files},
    group_fields::GROUP_FIELDS,
    machine_fields::MACHINE_FIELDS,
    parse::{self, Context},
    rows::{Elsewhere, Groups, Reader, Row, rows_of},
    sample::{Columns, Parts, Sample, Table},
    sources::{GroupFiles, MachineFile, group_files, machine_files, pace_of, parts},
};

/// Devices above this number are left out: a machine with more has its figures by device, not by group and device.
const MAX_DEVICES: usize = 256;

/// The figures of [`Pace::Seldom`] are read with every sixth reading of those of [`Pace::Slow`].
const SELDOM: u64 = 6;

/// Of more groups than this the slow figures are not read with one sample: 1,000 groups would cost more than a
/// fiftieth of a CPU otherwise, or nearly so.
const SLOW_AT_ONCE: usize = 25;

/// What is sampled and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which groups.
    pub groups: Groups,
    /// The figures that are read less often are read once per this number of samples (at least 1); not of all groups
    /// at once.
    pub slow_every: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { groups: Groups::default(), slow_every: 10 }
    }
}

impl Options {
    /// For samples that are taken every `interval`: what is read less often is read with every tenth, or every ten
    /// seconds where there are fewer.
    pub fn every(interval: std::time::Duration, groups: Groups) -> Options {
        let in_ten_seconds = 10_000 / interval.as_millis().max(1);
        Options { groups, slow_every: in_ten_seconds.clamp(1, 10) as u64 }
    }
}

/// Takes samples.
#[derive(Debug)]
pub struct Sampler<F: Files> {
    files: F,
    options: Options,
    elsewhere: Option<Elsewhere>,
    /// What it said last.
    also: Vec<GroupName>,
    parts: Parts,
    group_files: GroupFiles,
    machine: Vec<(MachineFile, Option<F::Open>)>,
    rows: Vec<Row<F::Open>>,
    /// `None` where directories can't be watched: hierarchies are listed again now and then.
    changes: Option<Changes>,
    /// Groups are to be listed again.
    dirty: bool,
    started: u64,
    open: usize,
    at_most: usize,
    buffer: Buffer,
    unknown: Vec<DeviceNumber>,
    sample: Sample,
}

impl<F: Files> Sampler<F> {
    /// Finds out what can be read on this host, and lists its groups. `watched`: whether new groups are reported by
    /// inotify, which an in-memory kernel has not.
    pub fn new(host: &Host, files: F, options: Options, watched: bool) -> Sampler<F> {
        let parts = parts(host.kernel());
        let columns = Arc::new(Columns::new(GROUP_FIELDS, &parts, |field| pace_of(host, field)));
        let machine_columns = Arc::new(Columns::new(MACHINE_FIELDS, &parts, |field| pace_of(host, field)));
        let machine = machine_files(MACHINE_FIELDS, &machine_columns, &parts)
            .into_iter()
            .map(|file| {
                let open = files.open_outside(&file.path).ok();
                (file, open)
            })
            .collect();
        let mut sampler = Sampler {
            group_files: group_files(host, GROUP_FIELDS, &columns, |_| true),
            machine,
            rows: Vec::new(),
            changes: if watched { Changes::new().ok() } else { None },
            dirty: false,
            started: 0,
            open: 0,
            at_most: files.at_most(),
            buffer: Buffer::default(),
            unknown: Vec::new(),
            sample: Sample {
                groups: Table::new(columns, Arc::from([])),
                machine: Table::new(machine_columns, Arc::from([String::new()])),
                ..Sample::default()
            },
            files,
            options,
            elsewhere: None,
            also: Vec::new(),
            parts,
        };
        sampler.list(host);
        sampler
    }

    /// Reads nothing of groups but these fields: the others are missing in every sample.
    pub fn only(&mut self, host: &Host, wanted: impl Fn(&Field) -> bool) {
        self.group_files = group_files(host, GROUP_FIELDS, self.sample.groups.columns(), wanted);
        let files = self.group_files.tick.len();
        for row in &mut self.rows {
            *row = Row::new(std::mem::take(&mut row.name), std::mem::take(&mut row.seats), files);
        }
        self.open = 0;
    }

    /// Reads nothing of the machine: its figures are missing in every sample.
    pub fn groups_alone(&mut self) {
        self.machine.clear();
    }

    /// The last sample.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Files that stay open.
    pub fn open_files(&self) -> usize {
        self.open
    }

    /// Takes one sample. `beat`: how it came about; [`Beat::default`] for a single one.
    ///
    /// # Errors
    /// A hierarchy's groups can't be listed. Files that can't be read make their figures missing.
    pub fn tick(&mut self, host: &Host, beat: Beat) -> Result<&Sample, Error> {
        self.look_for_changes(host);
        if self.dirty {
            self.list(host);
        }
        let began = now();
        (self.sample.at, self.sample.clock) = (Some(SystemTime::now()), began);
        self.sample.number = self.started;
        (self.sample.late, self.sample.missed) = (beat.late, beat.missed);
        self.read_groups(host);
        if !self.unknown.is_empty() {
            self.add_devices();
            self.rows.iter_mut().for_each(|row| row.said = None);
            self.read_groups(host);
        }
        self.read_machine();
        self.sample.took = now().saturating_sub(began);
        self.started += 1;
        Ok(&self.sample)
    }

    /// After how many samples the slow figures of a group are read again: what was requested, or more with many groups.
    pub fn slow_every(&self) -> u64 {
        slow_every(self.options.slow_every, self.rows.len())
    }

    /// Samples these, too; they are asked for again as often as slow figures are read.
    pub fn also(mut self, elsewhere: Elsewhere) -> Sampler<F> {
        self.elsewhere = Some(elsewhere);
        self
    }

    /// Makes the next sample read everything of every group, as after a change of settings.
    pub fn refresh(&mut self) {
        self.rows.iter_mut().for_each(|row| row.is_new = true);
    }

    /// The files that every sample reads, open: what a bare reader would have to read.
    #[doc(hidden)]
    pub fn open(&self) -> impl Iterator<Item = &F::Open> {
        let of_groups = self.rows.iter().flat_map(|row| row.open.iter().flatten());
        let machine = self.machine.iter().filter(|(file, _)| file.pace == Pace::Tick);
        of_groups.chain(machine.filter_map(|(_, open)| open.as_ref()))
    }

    fn look_for_changes(&mut self, host: &Host) {
        let is_due = self.started.is_multiple_of(self.options.slow_every.max(1));
        if let Some(elsewhere) = self.elsewhere.as_mut().filter(|_| is_due) {
            let also = elsewhere.groups(host);
            self.dirty |= also != self.also;
            self.also = also;
        }
        self.dirty |= match &mut self.changes {
            Some(changes) => changes.any() || (changes.is_blind() && is_due),
            None => is_due,
        };
    }

    /// Lists groups again: rows that stay keep their descriptors and numbers.
    fn list(&mut self, host: &Host) {
        let (found, watches_are_new) =
            rows_of(host, (&self.options.groups, &self.also), self.changes.as_mut());
        // one that comes back is another answer then
        self.also.retain(|name| !host.seats(name).is_empty());
        // a group below one whose watch is new may have been missed: once more with the next sample
        self.dirty = watches_are_new;
        let mut old = std::mem::take(&mut self.rows).into_iter().peekable();
        for (name, seats) in found {
            while old.next_if(|row| row.name < name).is_some() {}
            let known = old.next_if(|row| row.name == name && row.seats == seats && !row.stale);
            self.rows.push(known.unwrap_or_else(|| Row::new(name, seats, self.group_files.tick.len())));
        }
        self.open = self.rows.iter().map(|row| row.open.iter().flatten().count()).sum();
        let names: Arc<[String]> = self.rows.iter().map(|row| row.name.clone()).collect();
        let columns = Arc::clone(self.sample.groups.columns());
        let mut groups = self.sample.groups.reshaped(columns, names);
        // a group that was made again under an old name has nothing of the old one's
        for (index, _) in self.rows.iter().enumerate().filter(|(_, row)| row.is_new) {
            groups.forget(index);
        }
        self.sample.groups = groups;
    }

    fn add_devices(&mut self) {
        let mut columns = Columns::clone(self.sample.groups.columns());
        let free = MAX_DEVICES.saturating_sub(columns.devices().len());
        self.unknown
            .drain(..)
            .take(free)
            .for_each(|device| columns.add_device(GROUP_FIELDS, device, Pace::Tick));
        let rows = Arc::clone(self.sample.groups.rows());
        self.sample.groups = self.sample.groups.reshaped(Arc::new(columns), rows);
    }

    fn read_groups(&mut self, host: &Host) {
        let every = self.slow_every();
        let columns = Arc::clone(self.sample.groups.columns());
        let full = columns.devices().len() >= MAX_DEVICES;
        for (index, row) in self.rows.iter_mut().enumerate() {
            let mut context =
                Context { columns: &columns, parts: &self.parts, node: 0, unknown: &mut self.unknown };
            let is_slow_due = row.is_new || (self.started + index as u64).is_multiple_of(every);
            let mut cells = self.sample.groups.cells(index);
            let mut reading = Reader {
                files: &self.files,
                host,
                buffer: &mut self.buffer,
                may_open: self.at_most.saturating_sub(self.open),
            };
            let opened =
                reading.tick_files(row, &mut self.group_files.tick, &mut cells, &mut context, is_slow_due);
            self.open += opened;
            if is_slow_due {
                reading.other_files(row, &mut self.group_files.slow, &mut cells, &mut context);
            }
            let turn = self.started / every + index as u64;
            if row.is_new || (is_slow_due && turn.is_multiple_of(SELDOM)) {
                reading.other_files(row, &mut self.group_files.seldom, &mut cells, &mut context);
            }
            row.is_new = false;
            let now = now();
            let times = &mut self.sample.groups.times[index];
            times.tick = now;
            if is_slow_due {
                times.slow = now;
            }
            if row.stale {
                // made again under its name, or gone: the lists show which
                self.dirty = true;
            }
        }
        if full {
            self.unknown.clear();
        }
    }

    fn read_machine(&mut self) {
        let every = self.options.slow_every.max(1);
        let columns = Arc::clone(self.sample.machine.columns());
        let is_slow_due = self.started.is_multiple_of(every);
        for (file, open) in &mut self.machine {
            if file.pace == Pace::Slow && !is_slow_due {
                continue;
            }
            let mut cells = self.sample.machine.cells(0);
            let mut context = Context {
                columns: &columns,
                parts: &self.parts,
                node: file.node,
                unknown: &mut self.unknown,
            };
            match open.as_ref().map(|open| self.files.read(open, &mut self.buffer)) {
                Some(Ok(())) => parse::parse(self.buffer.text(), &mut file.wants, &mut cells, &mut context),
                _ => parse::clear(&file.wants, &mut cells, &context),
            }
        }
        let times = &mut self.sample.machine.times[0];
        times.tick = now();
        if is_slow_due {
            times.slow = times.tick;
        }
    }
}

/// What was requested, or more if there are many groups.
pub fn slow_every(requested: u64, groups: usize) -> u64 {
    requested.max(1).max(groups.div_ceil(SLOW_AT_ONCE) as u64)
}
