//! Values out of the range that the kernel documents, sent to it as they are: libcgroup knows no ranges, and a script
//! may count on what a kernel makes of them. Only files of the version that the host has.

use kernel::{GroupName, Host, Seat};
use plan::Place;
use settings::{NamedSetting, ValueError};

use crate::failure::Failure;

/// A value as it was typed.
pub(crate) struct Raw {
    found: NamedSetting,
    text: String,
    /// Said where there is no such file to send it to.
    error: ValueError,
}

/// One file's text.
pub(crate) struct Text {
    group: GroupName,
    place: Place,
    file: String,
    text: String,
}

impl Raw {
    pub(crate) fn new(found: NamedSetting, text: &str, error: ValueError) -> Raw {
        Raw { found, text: text.to_owned(), error }
    }

    /// The file of a group that it goes to.
    pub(crate) fn text_for(&self, host: &Host, group: &GroupName) -> Result<Text, Failure> {
        let place = apply::place(host, group, &self.found)?;
        if !self.found.files(place.version).contains(&self.found.name) {
            return Err(self.error.clone().into());
        }
        Ok(Text { group: group.clone(), place, file: self.found.name.clone(), text: self.text.clone() })
    }

    /// Writes all of them, or none; returns the texts before.
    pub(crate) fn write_all(host: &Host, texts: &[Text]) -> Result<Vec<Text>, Failure> {
        let mut before = Vec::new();
        for Text { group, place, file, text } in texts {
            let Some(seat) = seat(host, place) else { continue };
            let old = host.kernel().read(seat.at, &seat.path, file);
            if let Err(error) = host.write(&seat, group, file, text) {
                Raw::put_back(host, &before);
                return Err(error.into());
            }
            before.extend(old.ok().map(|old| Text {
                group: group.clone(),
                place: place.clone(),
                file: file.clone(),
                text: old.trim_end().to_owned(),
            }));
        }
        Ok(before)
    }

    pub(crate) fn put_back(host: &Host, before: &[Text]) {
        for Text { group, place, file, text } in before.iter().rev() {
            if let Some(seat) = seat(host, place) {
                // the refusal that made this necessary is what the user reads
                let _ = host.write(&seat, group, file, text);
            }
        }
    }
}

fn seat<'h>(host: &'h Host, place: &Place) -> Option<Seat<'h>> {
    Some(Seat { at: host.hierarchies().get(place.hierarchy)?, path: place.path.clone() })
}
