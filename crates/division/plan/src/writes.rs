//! From settings to the writes that give them, in order.

use std::collections::HashMap;

use settings::{Clash, EncodeError, Joined, NamedSetting};

use crate::{Place, PlanError, ReadFile, SettingRequest, Write, order, request::merges};

/// The writes that give every group what is requested, in an order that the kernel accepts. Requests for parts of one
/// setting are joined: a file, or a line by device, is written once.
///
/// # Errors
/// [`PlanError`]: a value that the version can't express, or two requests that contradict each other.
pub fn writes(requests: &[SettingRequest], read: ReadFile<'_>) -> Result<Vec<Write>, PlanError> {
    let (writes, mut problems) = drawn(requests, read);
    if problems.is_empty() { Ok(writes) } else { Err(problems.swap_remove(0)) }
}

/// The same without what can't be written, and the problems with that.
pub(crate) fn drawn(requests: &[SettingRequest], read: ReadFile<'_>) -> (Vec<Write>, Vec<PlanError>) {
    let each = in_table_order(requests).into_iter();
    let each = each.map(|(index, request)| (index, &request.place, &request.found, &request.value));
    let (joined, clashes) = settings::join(each);
    let mut drawn = Drawn { requests, read, writes: Vec::new(), by_file: HashMap::new() };
    let mut problems: Vec<PlanError> = clashes.iter().map(|clash| contradiction(requests, *clash)).collect();
    for one in &joined {
        problems.extend(drawn.draw(one).err());
    }
    let mut writes = drawn.writes;
    order::order(&mut writes, read);
    (writes, problems)
}

/// A setting that is derived from another comes after it in the table.
fn in_table_order(requests: &[SettingRequest]) -> Vec<(usize, &SettingRequest)> {
    let rows: HashMap<&str, usize> =
        settings::all().enumerate().map(|(row, setting)| (setting.name, row)).collect();
    let mut sorted: Vec<(usize, &SettingRequest)> = requests.iter().enumerate().collect();
    sorted.sort_by_key(|(_, request)| rows.get(request.found.setting.name));
    sorted
}

fn contradiction(requests: &[SettingRequest], Clash { first, second }: Clash) -> PlanError {
    let [one, other] = [first, second].map(|index| &requests[index]);
    let files = one.found.files(one.place.version);
    PlanError::Contradiction {
        group: one.group.to_string(),
        first: one.found.name.clone(),
        second: other.found.name.clone(),
        file: files.into_iter().next().unwrap_or_else(|| one.found.canonical()),
        one: one.found.show(&one.value),
        other: other.found.show(&other.value),
    }
}

/// The writes so far, found by where they go.
struct Drawn<'r> {
    requests: &'r [SettingRequest],
    read: ReadFile<'r>,
    writes: Vec<Write>,
    by_file: HashMap<&'r Place, HashMap<String, Vec<usize>>>,
}

impl Drawn<'_> {
    fn draw(&mut self, joined: &Joined) -> Result<(), PlanError> {
        let first = &self.requests[joined.of[0]];
        let encoded = self.encode(first, &joined.found, &joined.value);
        let encoded = encoded.map_err(|error| PlanError::Encode { group: first.group.to_string(), error })?;
        // which of several requests a write serves: those that come to a write of the same by themselves
        let alone: Vec<(usize, Option<Vec<Write>>)> = match joined.of.as_slice() {
            [_] => Vec::new(),
            several => several
                .iter()
                .map(|index| {
                    let request = &self.requests[*index];
                    (*index, self.encode(request, &request.found, &request.value).ok())
                })
                .collect(),
        };
        for write in encoded {
            let serves = |alone: &Option<Vec<Write>>| {
                alone.as_ref().is_none_or(|alone| alone.iter().any(|own| own.has_target_of(&write)))
            };
            let of: Vec<usize> =
                alone.iter().filter(|(_, alone)| serves(alone)).map(|(index, _)| *index).collect();
            let requests = if of.is_empty() { joined.of.clone() } else { of };
            self.add(Write { requests, ..write })?;
        }
        Ok(())
    }

    /// What is about to be written counts as current: memory plus swap is derived from the new memory limit.
    fn encode(
        &self,
        request: &SettingRequest,
        found: &NamedSetting,
        value: &settings::Value,
    ) -> Result<Vec<Write>, EncodeError> {
        let place = &request.place;
        let current = |file: &str| self.latest(place, file).or_else(|| (self.read)(place, file));
        let writes = found.encode(place.version, value, &current)?.into_iter();
        let write = |write: settings::FileWrite| Write {
            requests: Vec::new(),
            place: place.clone(),
            file: write.file,
            text: write.text,
            why: None,
        };
        Ok(writes.map(write).collect())
    }

    fn latest(&self, place: &Place, file: &str) -> Option<String> {
        let last = self.by_file.get(place)?.get(file)?.last()?;
        Some(self.writes[*last].text.clone())
    }

    /// Adds a write; one that stands there already is not repeated, one that says otherwise is a contradiction.
    fn add(&mut self, new: Write) -> Result<(), PlanError> {
        let place = &self.requests[new.requests[0]].place;
        let to_file = self.by_file.entry(place).or_default().entry(new.file.clone()).or_default();
        let other = to_file.iter().copied().find(|index| self.writes[*index].has_target_of(&new));
        match other.map(|index| &mut self.writes[index]) {
            Some(other) if other.text == new.text => {
                other.requests.extend(new.requests);
                Ok(())
            }
            Some(other) if !merges(&new.file) => {
                let [first, second] = [other.requests[0], new.requests[0]].map(|index| &self.requests[index]);
                Err(PlanError::Contradiction {
                    group: second.group.to_string(),
                    first: first.found.name.clone(),
                    second: second.found.name.clone(),
                    file: new.file.clone(),
                    one: other.text.clone(),
                    other: new.text,
                })
            }
            _ => {
                to_file.push(self.writes.len());
                self.writes.push(new);
                Ok(())
            }
        }
    }
}
