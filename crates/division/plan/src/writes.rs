//! From settings to the writes that give them, in order.

use std::collections::HashMap;

use crate::{Place, PlanError, ReadFile, SettingRequest, Write, order, request::merges};

/// The writes that give every group what is requested, in an order that the kernel accepts.
///
/// # Errors
/// [`PlanError`]: a value that the version can't express, or two requests that contradict each other.
pub fn writes(requests: &[SettingRequest], read: ReadFile<'_>) -> Result<Vec<Write>, PlanError> {
    let mut drawn = Drawn::default();
    for (index, request) in in_table_order(requests) {
        // what is about to be written counts as current: memory plus swap is derived from the new memory limit
        let current = |file: &str| drawn.latest(&request.place, file).or_else(|| read(&request.place, file));
        let encoded = request.found.encode(request.place.version, &request.value, &current);
        let encoded =
            encoded.map_err(|error| PlanError::Encode { group: request.group.to_string(), error })?;
        for write in encoded {
            let new = Write {
                request: index,
                place: request.place.clone(),
                file: write.file,
                text: write.text,
                why: None,
            };
            drawn.add(new, requests)?;
        }
    }
    let mut writes = drawn.writes;
    order::order(&mut writes, read);
    Ok(writes)
}

/// A setting that is derived from another comes after it in the table.
fn in_table_order(requests: &[SettingRequest]) -> Vec<(usize, &SettingRequest)> {
    let rows: HashMap<&str, usize> =
        settings::all().enumerate().map(|(row, setting)| (setting.name, row)).collect();
    let mut sorted: Vec<(usize, &SettingRequest)> = requests.iter().enumerate().collect();
    sorted.sort_by_key(|(_, request)| rows.get(request.found.setting.name));
    sorted
}

/// The writes so far, found by where they go.
#[derive(Default)]
struct Drawn {
    writes: Vec<Write>,
    by_file: HashMap<Place, HashMap<String, Vec<usize>>>,
}

impl Drawn {
    fn latest(&self, place: &Place, file: &str) -> Option<String> {
        let last = self.by_file.get(place)?.get(file)?.last()?;
        Some(self.writes[*last].text.clone())
    }

    /// Adds a write; one that stands there already is not repeated, one that says otherwise is a contradiction.
    fn add(&mut self, new: Write, requests: &[SettingRequest]) -> Result<(), PlanError> {
        let to_file = self.by_file.entry(new.place.clone()).or_default().entry(new.file.clone()).or_default();
        match to_file
            .iter()
            .find(|index| self.writes[**index].has_target_of(&new))
            .map(|index| &self.writes[*index])
        {
            Some(other) if other.text == new.text => Ok(()),
            Some(other) if !merges(&new.file) => Err(PlanError::Contradiction {
                group: requests[new.request].group.to_string(),
                first: requests[other.request].found.name.clone(),
                second: requests[new.request].found.name.clone(),
                file: new.file.clone(),
                one: other.text.clone(),
                other: new.text,
            }),
            _ => {
                to_file.push(self.writes.len());
                self.writes.push(new);
                Ok(())
            }
        }
    }
}
