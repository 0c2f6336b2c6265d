//! The argument `CONTROLLERS:PATH` that most commands take: read in one place, and resolved to the hierarchies and
//! groups of the host. It never looks whether the groups are there.

use kernel::{GroupName, Hierarchy, Host, Seat};
use settings::{Controller, Version};

use crate::{
    failure::{Failure, NO_CONTROLLER},
    machine,
};

/// One word of the list before the colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// A controller, by its v1 or v2 name.
    Controller(Controller),
    /// `name=X`: a v1 hierarchy without controllers.
    Named(String),
    /// Nothing before the colon: v2, whatever controllers it has.
    Unified,
    /// `*`: all mounted controllers.
    Every,
    /// Something else.
    Unknown(String),
}

/// `CONTROLLERS:PATH`, or `CONTROLLERS` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupList {
    /// In the order given; never empty.
    pub words: Vec<Word>,
    /// What follows the colon, as it was given; `None` without a colon.
    pub path: Option<String>,
}

/// A hierarchy that is named, with those of its controllers that are, and whether it is by `*` only.
pub(crate) type Place<'h> = (&'h Hierarchy, Vec<Controller>, bool);

/// A group in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target<'h> {
    pub at: &'h Hierarchy,
    /// Those of the hierarchy's controllers that were named; all for `*`.
    pub controllers: Vec<Controller>,
    /// Not by its name: a controller that is not available there is left out.
    pub by_star: bool,
    pub group: GroupName,
}

impl Target<'_> {
    /// Its directory.
    pub fn seat<'h>(&self, host: &'h Host) -> Seat<'h> {
        host.seat_in(&host.hierarchies()[self.at.id], &self.group)
    }
}

impl Word {
    fn of(text: &str) -> Word {
        match text {
            "*" => Word::Every,
            text => match (text.strip_prefix("name="), Controller::from_name(text)) {
                (Some(name), _) => Word::Named(name.to_owned()),
                (None, Some(controller)) => Word::Controller(controller),
                (None, None) => Word::Unknown(text.to_owned()),
            },
        }
    }
}

impl GroupList {
    /// Reads the argument; any text is one. Empty words between commas are skipped.
    pub fn read(text: &str) -> GroupList {
        let (words, path) = match text.split_once(':') {
            Some((words, path)) => (words, Some(path.to_owned())),
            None => (text, None),
        };
        let mut words: Vec<Word> = words.split(',').filter(|word| !word.is_empty()).map(Word::of).collect();
        if words.is_empty() {
            words.push(Word::Unified);
        }
        GroupList { words, path }
    }

    /// The path, where one is needed.
    ///
    /// # Errors
    /// There is none.
    pub fn needed_path(&self, text: &str) -> Result<&str, Failure> {
        self.path.as_deref().filter(|path| !path.is_empty()).ok_or_else(|| {
            Failure::usage(format!("'{text}' is not CONTROLLERS:PATH"))
                .hint("for example cpu,memory:db/oltp1")
        })
    }

    /// The hierarchies that are named, each once, in the order of the words.
    ///
    /// # Errors
    /// A controller or name that is on none.
    pub fn hierarchies<'h>(&self, host: &'h Host) -> Result<Vec<Place<'h>>, Failure> {
        let mut found: Vec<Place<'h>> = Vec::new();
        for word in &self.words {
            for (at, controllers, by_star) in word.hierarchies(host)? {
                match found.iter_mut().find(|(known, ..)| known.id == at.id) {
                    Some((_, known, star)) => {
                        known.extend(controllers);
                        *star &= by_star;
                    }
                    None => found.push((at, controllers, by_star)),
                }
            }
        }
        Ok(found)
    }
}

impl Word {
    fn hierarchies<'h>(&self, host: &'h Host) -> Result<Vec<Place<'h>>, Failure> {
        let all = || host.hierarchies().iter();
        let not_mounted = |message: String| Failure::new(NO_CONTROLLER, message);
        match self {
            Word::Controller(controller) => match host.hierarchy_of(*controller) {
                Some(at) => Ok(vec![(at, vec![*controller], false)]),
                // the kernel crate says what is missing
                None => Err(host.seat(&GroupName::root(), *controller).map_or_else(Failure::from, |_| {
                    not_mounted("the controller is on no mounted hierarchy".to_owned())
                })),
            },
            Word::Named(name) => {
                let at = all().find(|at| at.name.as_deref() == Some(name));
                let known = all().filter_map(|at| at.name.clone()).collect();
                let error = kernel::Error::NoNamed { name: name.clone(), known };
                at.map(|at| vec![(at, Vec::new(), false)]).ok_or_else(|| error.into())
            }
            Word::Unified => {
                let at = all().find(|at| at.version == Version::V2);
                at.map(|at| vec![(at, Vec::new(), false)]).ok_or_else(|| {
                    not_mounted("cgroup v2 is not mounted".to_owned()).hint("name a controller: cpu:db/oltp1")
                })
            }
            Word::Every => {
                let real = |at: &Hierarchy| -> Vec<Controller> {
                    at.controllers
                        .iter()
                        .copied()
                        .filter(|controller| *controller != Controller::Core)
                        .collect()
                };
                let with = all().map(|at| (at, real(at), true));
                Ok(with.filter(|(_, controllers, _)| !controllers.is_empty()).collect())
            }
            Word::Unknown(name) => {
                let known = all().flat_map(|at| at.controllers.iter().filter_map(|one| one.name(at.version)));
                let near = units::nearest(name, known).join(" or ");
                let failure = not_mounted(format!("controller '{name}' is on no mounted hierarchy"));
                Err(if near.is_empty() {
                    failure.hint("lssubsys lists the mounted ones")
                } else {
                    failure.hint(format!("did you mean {near}?"))
                })
            }
        }
    }
}

/// The groups that `-g` arguments name, one target for each hierarchy of each.
///
/// # Errors
/// No path, no such controller, a name that a group can't have.
pub(crate) fn targets<'h>(host: &'h Host, arguments: &[&str]) -> Result<Vec<Target<'h>>, Failure> {
    let mut targets: Vec<Target<'h>> = Vec::new();
    for argument in arguments {
        let list = GroupList::read(argument);
        let path = list.needed_path(argument)?;
        let hierarchies = list.hierarchies(host)?;
        let group = machine::group(host, hierarchies.iter().map(|(at, ..)| *at), path)?;
        for (at, controllers, by_star) in hierarchies {
            match targets.iter_mut().find(|known| known.at.id == at.id && known.group == group) {
                Some(known) => {
                    known.controllers.extend(controllers);
                    known.by_star &= by_star;
                }
                None => targets.push(Target { at, controllers, by_star, group: group.clone() }),
            }
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_its_first_colon_and_commas() {
        let read = |text| GroupList::read(text);
        assert_eq!(
            read("cpu,blkio,name=systemd:/a/b:c"),
            GroupList {
                words: vec![
                    Word::Controller(Controller::Cpu),
                    Word::Controller(Controller::Io),
                    Word::Named("systemd".to_owned())
                ],
                path: Some("/a/b:c".to_owned())
            }
        );
        assert_eq!(read(":db").words, [Word::Unified]);
        assert_eq!(read("*:db").words, [Word::Every]);
        assert_eq!(read("nosuch"), GroupList { words: vec![Word::Unknown("nosuch".to_owned())], path: None });
        assert!(read("cpu:").needed_path("cpu:").is_err());
        assert!(read("cpu").needed_path("cpu").is_err());
        assert_eq!(read(",,cpu,,:a").words, [Word::Controller(Controller::Cpu)]);
    }
}
