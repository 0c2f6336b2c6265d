//! The groups that are sampled: a row each, with its directory in every hierarchy and its open files, and how a
//! row's files are read.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hasher},
};

use kernel::{GroupName, Host};
use rustix::io::Errno;

use crate::{
    changes::Changes,
    files::{Buffer, Files},
    parse::{self, Context},
    sample::Cells,
    sources::{GroupFile, Role},
};

/// Which groups are sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Groups {
    /// Those below the place where our groups live.
    #[default]
    Ours,
    /// All in every hierarchy.
    All,
    /// These and those below them.
    Named(Vec<GroupName>),
}

type Ask = Box<dyn FnMut(&Host) -> Vec<GroupName> + Send>;

/// Asks for groups that are sampled beside the others with all that is below them: they come and go elsewhere, as the units of
/// systemd that a layout has as groups.
pub struct Elsewhere(Ask);

impl Elsewhere {
    /// `ask` gives those that are there now.
    pub fn new(ask: impl FnMut(&Host) -> Vec<GroupName> + Send + 'static) -> Elsewhere {
        Elsewhere(Box::new(ask))
    }

    pub(crate) fn groups(&mut self, host: &Host) -> Vec<GroupName> {
        (self.0)(host)
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

/// A group's directory in each hierarchy, by position.
type Seats = Vec<Option<String>>;

/// A group that is sampled.
#[derive(Debug)]
pub(crate) struct Row<O> {
    pub name: String,
    pub seats: Seats,
    /// The files of every sample, in their order.
    pub open: Vec<Option<O>>,
    /// What the file that leads another said last, as a checksum.
    pub said: Option<u64>,
    /// Never read yet.
    pub is_new: bool,
    /// A directory is gone: what stays open belongs to no group.
    pub stale: bool,
}

impl<O> Row<O> {
    pub(crate) fn new(name: String, seats: Seats, files: usize) -> Row<O> {
        let open = (0..files).map(|_| None).collect();
        Row { name, seats, open, said: None, is_new: true, stale: false }
    }
}

/// The groups that are there now, sorted by name, with watches on their directories; and whether a watch is new, so
/// that something may have been made before it.
pub(crate) fn rows_of(
    host: &Host,
    (groups, also): (&Groups, &[GroupName]),
    mut changes: Option<&mut Changes>,
) -> (BTreeMap<String, Seats>, bool) {
    let mut rows = BTreeMap::new();
    let mut any_new = false;
    for at in host.hierarchies() {
        let also = also.iter().map(|name| host.seat_in(at, name).path);
        for top in tops(host, groups, at.id).into_iter().chain(also) {
            let Ok(below) = host.kernel().descendants(at, &top) else { continue };
            for path in std::iter::once(top).chain(below) {
                any_new |= changes.as_deref_mut().is_some_and(|changes| changes.watch(at, &path));
                let name = host.named(at, &path);
                let seats = rows.entry(name).or_insert_with(|| vec![None; host.hierarchies().len()]);
                seats[at.id] = Some(path);
            }
        }
    }
    (rows, any_new)
}

/// The groups below which is looked in a hierarchy.
fn tops(host: &Host, groups: &Groups, hierarchy: usize) -> Vec<String> {
    let at = &host.hierarchies()[hierarchy];
    match groups {
        Groups::All => vec![String::new()],
        Groups::Ours => vec![host.base(at).path().to_owned()],
        Groups::Named(names) => names.iter().map(|name: &GroupName| host.seat_in(at, name).path).collect(),
    }
}

/// What reading a row takes beside the row.
pub(crate) struct Reader<'r, F: Files> {
    pub files: &'r F,
    pub host: &'r Host,
    pub buffer: &'r mut Buffer,
    pub may_open: usize,
}

impl<F: Files> Reader<'_, F> {
    /// Reads the files of every sample; returns how many were opened and stay open. `all`: also those that would say what they
    /// said before, and what was not there is tried again, as on v2 a controller may have been enabled meanwhile.
    pub(crate) fn tick_files(
        &mut self,
        row: &mut Row<F::Open>,
        files: &mut [GroupFile],
        cells: &mut Cells<'_>,
        context: &mut Context<'_>,
        all: bool,
    ) -> usize {
        let mut opened = 0;
        let mut is_new = true;
        for (place, file) in files.iter_mut().enumerate() {
            if file.role == Role::Follows && !is_new && !all {
                continue;
            }
            if row.open[place].is_none() && all {
                let Some(path) = &row.seats[file.hierarchy] else { continue };
                let at = &self.host.hierarchies()[file.hierarchy];
                if self.may_open > opened {
                    row.open[place] = self.files.open(at, path, file.file).ok();
                    opened += usize::from(row.open[place].is_some());
                }
            }
            let read = match &row.open[place] {
                Some(open) => self.files.read(open, self.buffer),
                None if self.may_open > opened => continue, // not there
                None => self.once(&row.seats[file.hierarchy], file.hierarchy, file.file),
            };
            row.stale |= read == Err(Errno::NODEV);
            if file.role == Role::Leads {
                let says = read.is_ok().then(|| checksum(self.buffer.text()));
                is_new = says.is_none() || row.said != says;
                row.said = says;
            }
            match read {
                Ok(()) => parse::parse(self.buffer.text(), &mut file.wants, cells, context),
                Err(_) => parse::clear(&file.wants, cells, context),
            }
        }
        opened
    }

    /// Opens, reads and closes files that are not read with every sample.
    pub(crate) fn other_files(
        &mut self,
        row: &Row<F::Open>,
        files: &mut [GroupFile],
        cells: &mut Cells<'_>,
        context: &mut Context<'_>,
    ) {
        for file in files {
            match self.once(&row.seats[file.hierarchy], file.hierarchy, file.file) {
                Ok(()) => parse::parse(self.buffer.text(), &mut file.wants, cells, context),
                Err(_) => parse::clear(&file.wants, cells, context),
            }
        }
    }

    /// Opens a file, reads it and closes it again.
    fn once(&mut self, seat: &Option<String>, hierarchy: usize, file: &str) -> Result<(), Errno> {
        let path = seat.as_deref().ok_or(Errno::NOENT)?;
        let open = self.files.open(&self.host.hierarchies()[hierarchy], path, file)?;
        self.files.read(&open, self.buffer)
    }
}

fn checksum(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}
