//! Owners and modes of a group's directory and files.

use super::*;

impl Performer<'_> {
    /// Gives a group to somebody.
    pub(super) fn give(
        &mut self,
        place: &Place,
        entry: &Entry,
        access: &plan::Ownership,
    ) -> Result<(), Error> {
        let files = self.files_of(place).map_err(|errno| self.refused(Op::List, entry, None, None, errno))?;
        let maker = self.makers.get(place).copied();
        let each = ownership::each(access, place.version, &files, maker, self.system().maker());
        self.own(place, entry, &each)
    }

    /// Gives a group back to those who had it; what came since then goes to the maker.
    pub(super) fn give_back(
        &self,
        place: &Place,
        entry: &Entry,
        owners: &[(Option<String>, Owned)],
    ) -> Result<(), Error> {
        let came = self.came_since(place, owners);
        let came = came.map_err(|errno| self.refused(Op::List, entry, None, None, errno))?;
        let (uid, gid) = self.system().maker();
        let to_maker = kernel::Ownership { uid: Some(uid), gid: Some(gid), mode: None };
        let then = owners.iter().map(|(file, owned)| (file.as_deref(), ownership::exactly(*owned)));
        let each: Vec<_> = then.chain(came.iter().map(|file| (Some(file.as_str()), to_maker))).collect();
        self.own_rest(place, entry, &each)
    }

    fn own(
        &self,
        place: &Place,
        entry: &Entry,
        each: &[(Option<&str>, kernel::Ownership)],
    ) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        if each.is_empty() {
            return Ok(());
        }
        let done = self.system().own(at, &place.path, each);
        done.map_err(|(file, errno)| self.refused(Op::Own, entry, file.as_deref(), None, errno))
    }

    /// The same; behind a file whose owner can't be given back it goes on with the others.
    fn own_rest(
        &self,
        place: &Place,
        entry: &Entry,
        each: &[(Option<&str>, kernel::Ownership)],
    ) -> Result<(), Error> {
        let Some(at) = self.at(place) else { return Err(not_mounted(entry)) };
        let (mut rest, mut refused) = (each, Vec::new());
        while !rest.is_empty()
            && let Err((file, errno)) = self.system().own(at, &place.path, rest)
        {
            // where its controller is off there is no file
            if file.is_none() || errno != Errno::NOENT {
                refused.push(self.refused(Op::Own, entry, file.as_deref(), None, errno));
            }
            let done = rest.iter().position(|(own, _)| *own == file.as_deref());
            rest = done.map_or(&[], |done| &rest[done + 1..]);
        }
        match (refused.len(), refused.pop()) {
            (_, None) => Ok(()),
            (1, Some(error)) => Err(error),
            (_, Some(last)) => Err(Error::NotAsBefore {
                left: refused.iter().chain([&last]).map(Error::to_string).collect(),
            }),
        }
    }

    /// Files that came with a controller since the owners were recorded, and that are another's than the maker's.
    pub(crate) fn came_since(
        &self,
        place: &Place,
        owners: &[(Option<String>, Owned)],
    ) -> Result<Vec<String>, Errno> {
        // a v1 group's files never change; and without the directory only some of them were given away
        if place.version == Version::V1 || !owners.iter().any(|(file, _)| file.is_none()) {
            return Ok(Vec::new());
        }
        let Some(at) = self.at(place) else { return Ok(Vec::new()) };
        let files = self.host().kernel().files(at, &place.path)?;
        let with_tasks = owners
            .iter()
            .any(|(file, _)| file.as_deref().is_some_and(|file| ownership::TASK_FILES.contains(&file)));
        let new = |file: &&String| {
            let known = owners.iter().any(|(known, _)| known.as_ref() == Some(file));
            // those that take tasks are given away by themselves
            !known && (with_tasks || !ownership::TASK_FILES.contains(&file.as_str()))
        };
        let new: Vec<Option<&str>> = files.iter().filter(new).map(|file| Some(file.as_str())).collect();
        let (uid, gid) = self.system().maker();
        let others = self.system().owned_each(at, &place.path, &new)?.into_iter();
        let others = others.filter(|(_, owned)| (owned.uid, owned.gid) != (uid, gid));
        Ok(others.filter_map(|(file, _)| file.map(str::to_owned)).collect())
    }

    /// The files of a group, whose they are and their modes. Groups made here are alike, so that one listing serves all of them.
    fn files_of(&mut self, place: &Place) -> Result<Vec<(String, Owned)>, Errno> {
        if !self.makers.contains_key(place) {
            return self.list(place);
        }
        let alike = match place.version {
            Version::V1 => String::new(),
            Version::V2 => group_path::parent(&place.path).unwrap_or_default().to_owned(),
        };
        let key = (place.hierarchy, alike);
        if let Some(files) = self.files.get(&key) {
            return Ok(files.clone());
        }
        let files = self.list(place)?;
        self.files.insert(key, files.clone());
        Ok(files)
    }

    pub(super) fn list(&self, place: &Place) -> Result<Vec<(String, Owned)>, Errno> {
        let at = self.at(place).ok_or(Errno::NOENT)?;
        let files = self.host().kernel().files(at, &place.path)?;
        let names: Vec<Option<&str>> = files.iter().map(|file| Some(file.as_str())).collect();
        let owned: HashMap<_, _> = self.system().owned_each(at, &place.path, &names)?.into_iter().collect();
        // one that is gone by now is noticed where it is given away
        let (uid, gid) = self.system().maker();
        let unknown = Owned { uid, gid, mode: 0o666 };
        let now = |file: &str| owned.get(&Some(file)).copied().unwrap_or(unknown);
        Ok(files.iter().map(|file| (file.clone(), now(file))).collect())
    }
}
