//! Whether files of groups still contain what they did, from descriptors that stay open: that is compared every second.

use std::os::fd::OwnedFd;

use kernel::Host;
use monitor::{Buffer, Descriptors, Files};
use plan::Place;

use crate::watching::few;

/// The files of some groups, in their order.
pub(super) struct Contents {
    files: Descriptors,
    all: Vec<Vec<Noted>>,
    buffer: Buffer,
    /// This many more files may stay open.
    room: usize,
}

struct Noted {
    file: OwnedFd,
    text: Vec<u8>,
}

impl Contents {
    pub fn of(groups: usize) -> Contents {
        let files = few();
        let room = files.at_most();
        Contents { files, all: (0..groups).map(|_| Vec::new()).collect(), buffer: Buffer::default(), room }
    }

    /// Do a group's files contain what was noted? False where nothing was.
    pub fn are_as_noted(&mut self, group: usize) -> bool {
        let Contents { files, all, buffer, .. } = self;
        let noted = &all[group];
        // a descriptor of a group that was removed is refused, also where there is a new one
        let is_same = |noted: &Noted| files.read(&noted.file, buffer).is_ok() && buffer.text() == noted.text;
        !noted.is_empty() && noted.iter().all(is_same)
    }

    /// Notes what these files of a group contain. The comparison with what is expected comes after this, so that no change
    /// in between is overlooked.
    pub fn note(&mut self, host: &Host, group: usize, place: &Place, names: &[String]) {
        self.forget(group);
        if names.len() > self.room {
            return;
        }
        let at = &host.hierarchies()[place.hierarchy];
        let mut noted = Vec::with_capacity(names.len());
        for name in names {
            let Ok(file) = self.files.open(at, &place.path, name) else { return };
            if self.files.read(&file, &mut self.buffer).is_err() {
                return;
            }
            noted.push(Noted { file, text: self.buffer.text().to_vec() });
        }
        self.room -= noted.len();
        self.all[group] = noted;
    }

    /// They are written, or not as expected: nothing is noted of them.
    pub fn forget(&mut self, group: usize) {
        self.room += self.all[group].len();
        self.all[group].clear();
    }
}
