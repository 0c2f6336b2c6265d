//! The layouts in effect, and what undos had to leave.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    rc::Rc,
};

use plan::{Action, Place, Step};

use crate::{
    Failure, State, Target,
    entry::Entry,
    in_effect::{self, Groups},
    isolation,
    lasting::{self, Known},
    made::{self, Changed},
    originals::{self, Original},
    record::Record,
    remainder::Remainder,
    state::STATE,
};

/// The layouts in effect: what a new one has to take back.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Oldest first.
    pub(super) records: Vec<Record>,
    /// What undos had to leave, with the record of its generation where that is still there.
    pub(crate) stayed: Vec<(Remainder, Option<Rc<Record>>)>,
    /// Groups of theirs that somebody removed and made again.
    pub(super) remade: BTreeSet<Place>,
    /// Where directories of theirs are that somebody renamed.
    pub(super) renamed: BTreeMap<Place, Place>,
    /// What files contained before resizing wrote to them.
    pub(super) originals: Vec<Original>,
    /// Where they are recorded; empty where that is of no account.
    directory: PathBuf,
    /// What they decide about each group; `None` if what is planned is no whole layout.
    decided: Option<Groups>,
}

impl Earlier {
    /// None: what is planned adds to whatever there is.
    pub fn none() -> Earlier {
        Earlier::default()
    }

    /// Those of a history that are in effect.
    ///
    /// # Errors
    /// [`Failure::State`].
    pub fn read(state: &State, target: Target<'_>) -> Result<Earlier, Failure> {
        let records = layouts(state, target)?;
        let last = lasting::last(state, target)?;
        let stayed = last.as_ref().map(crate::Summary::stayed).unwrap_or_default();
        let mut of_stayed: BTreeMap<u32, Rc<Record>> = BTreeMap::new();
        for Remainder { generation, .. } in &stayed {
            if !of_stayed.contains_key(generation) && state.is_there(*generation) {
                let record = lasting::of_boot(state.record(*generation)?, &target.system.boot());
                of_stayed.insert(*generation, Rc::new(record));
            }
        }
        let changed = Changed::of(&records, target);
        let remade = match of_stayed.is_empty() {
            true => changed.remade(state, target)?,
            false => made::remade(records.iter().chain(of_stayed.values().map(Rc::as_ref)), state, target)?,
        };
        let renamed = changed.renamed(target);
        let with_record = |stayed: Remainder| {
            let record = of_stayed.get(&stayed.generation).cloned();
            (stayed, record)
        };
        let stayed = stayed.into_iter().map(with_record).collect();
        let mut decided = Groups::new();
        records.iter().for_each(|record| in_effect::add(record, target, &mut decided));
        if let Some(record) = records.last() {
            in_effect::drop_undecided(&record.head, target, &mut decided);
        }
        let directory = std::path::absolute(state.directory()).unwrap_or_default();
        let originals = originals::read(state, target)?;
        Ok(Earlier { records, stayed, remade, renamed, originals, directory, decided: Some(decided) })
    }

    /// Of what a plan found to be so already, that which no layout in effect decides in the same way.
    /// `elastic`: groups whose CPUs no layout decides.
    pub(crate) fn news(&self, found: Vec<Step>, elastic: &BTreeSet<String>) -> Vec<Step> {
        let Some(decided) = &self.decided else { return Vec::new() };
        let is_known = |step: &Step| {
            let name = step.group.to_string();
            let of_load = matches!(&step.action, Action::Write { file, .. } if file == plan::CPUS);
            let group = decided.get(&name);
            (of_load && elastic.contains(&name)) || group.is_some_and(|group| group.decides(&step.action))
        };
        found.into_iter().filter(|step| !is_known(step)).collect()
    }

    /// The elastic groups of the last of them.
    pub(crate) fn elastic(&self) -> BTreeSet<String> {
        let last = self.records.last().into_iter().flat_map(|record| &record.head.upkeep.elastic);
        last.flat_map(|scope| &scope.groups).map(|group| group.name.clone()).collect()
    }

    /// What they gave to knobs of the machine.
    pub(crate) fn knobs(&self) -> isolation::Knobs {
        isolation::given(&self.records, self.stayed.iter().map(|(stayed, _)| stayed))
    }

    /// The settings of the last of them that follow the load.
    pub(crate) fn ranges(&self) -> Vec<plan::Range> {
        self.records.last().map(|record| record.head.upkeep.ranges.clone()).unwrap_or_default()
    }

    /// What the last of them already did without.
    pub(super) fn dropped(&self, target: Target<'_>) -> (BTreeSet<Place>, BTreeSet<(Place, String, String)>) {
        let Some(head) = self.records.last().map(|record| &record.head) else { return Default::default() };
        let here = head.here(target.host);
        let files = head.dropped.files.iter();
        let files = files.filter_map(|(place, file, key)| Some((here(place)?, file.clone(), key.clone())));
        (head.dropped.gone.iter().filter_map(&here).collect(), files.collect())
    }

    /// Is a text of a drop-in file as a generation wrote it?
    pub(crate) fn wrote(&self, path: &Path, text: &str) -> bool {
        let mut known = Known::default();
        let entries = self.records.iter().flat_map(|record| record.entries.iter().chain(&record.decided));
        entries.chain(self.stayed.iter().map(|(stayed, _)| &stayed.entry)).for_each(|entry| known.add(entry));
        known.wrote(path, text)
    }

    /// The directory of the history, if it is not the default one.
    pub(crate) fn history(&self) -> Option<String> {
        let directory = self.directory.to_string_lossy();
        let is_default = directory.is_empty() || directory == STATE;
        (!is_default).then(|| directory.into_owned())
    }

    /// Is what is planned the whole layout, so that nothing beside it stays?
    pub(crate) fn is_of_whole(&self) -> bool {
        self.decided.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.stayed.is_empty()
    }

    /// Did any of them change cpusets?
    pub(crate) fn has_cpusets(&self) -> bool {
        let of_cpuset = |entry: &Entry| match &entry.action {
            Action::Write { file, .. } => file.starts_with("cpuset."),
            Action::MoveTasksAway { .. } => true,
            _ => false,
        };
        let stayed = self.stayed.iter().map(|(stayed, _)| &stayed.entry);
        self.records.iter().flat_map(|record| &record.entries).chain(stayed).any(of_cpuset)
    }
}

fn layouts(state: &State, target: Target<'_>) -> Result<Vec<Record>, Failure> {
    let Some(last) = lasting::last(state, target)? else { return Ok(Vec::new()) };
    let boot = target.system.boot();
    let mut records = Vec::new();
    for generation in last.in_effect() {
        let record = state.record_in_effect(*generation)?.filter(|record| record.head.layout);
        records.extend(record.map(|record| lasting::of_boot(record, &boot)));
    }
    Ok(records)
}
