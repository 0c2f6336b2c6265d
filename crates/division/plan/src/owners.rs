//! Who may put tasks into groups and change their settings: from names to numbers, and steps where the kernel holds
//! it otherwise.

use std::collections::HashMap;

use layout::{Account, Demands, Origin, Person, Spanned};
use settings::AdminFiles;
use units::group_path;

use crate::{Action, Observed, Owned, Ownership, People, Place, Problem, Step, homes::Home};

/// The steps that give groups to those who are to have them. `renewed` says whether files of a group are made by an
/// earlier step, which then are root's.
pub(crate) fn steps(
    homes: &[Home<'_>],
    observed: &Observed,
    people: &dyn People,
    renewed: &dyn Fn(&Place) -> bool,
    problems: &mut Vec<Problem>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (home, access) in homes.iter().zip(each(homes, people, problems)) {
        if access == Ownership::default() {
            continue;
        }
        for place in home.places.values().filter(|place| renewed(place) || differs(place, &access, observed))
        {
            let action = Action::SetOwnership { place: place.clone(), access };
            steps.push(Step::new(home.group.name.clone(), action, why(&home.group.demands)));
        }
    }
    steps
}

/// Who each of these groups goes to, in their order.
pub(crate) fn each(homes: &[Home<'_>], people: &dyn People, problems: &mut Vec<Problem>) -> Vec<Ownership> {
    let mut all: Vec<Ownership> =
        homes.iter().map(|home| ownership(&home.group.demands, people, problems)).collect();
    let key = |home: &Home<'_>| (home.group.name.is_from_root(), home.group.name.path().to_owned());
    let admin = |access: &Ownership| (access.admin_uid, access.admin_gid);
    let named = homes.iter().zip(&all).filter(|(home, _)| home.group.demands.admin.is_some());
    let admins: HashMap<(bool, String), _> = named.map(|(home, access)| (key(home), admin(access))).collect();
    for (home, access) in homes.iter().zip(&mut all) {
        let (from_root, path) = key(home);
        let above =
            group_path::branch(&path).skip(1).find_map(|above| admins.get(&(from_root, above.to_owned())));
        // what the group above has is his to divide
        if above == Some(&admin(access)) {
            access.admin_files = access.admin_files.max(AdminFiles::Beside);
        }
    }
    all
}

fn ownership(demands: &Demands, people: &dyn People, problems: &mut Vec<Problem>) -> Ownership {
    let mut number = |person: &Option<Spanned<Person>>, group: bool| {
        let Spanned { value, origin } = person.as_ref()?;
        let account = if group { value.group.as_ref()? } else { value.user.as_ref()? };
        look_up(account, group, people, origin, problems)
    };
    let (tasks, admin) = (&demands.tasks, &demands.admin);
    let mode = |person: &Option<Spanned<Person>>| Some(person.as_ref()?.value.mode?.bits());
    Ownership {
        tasks_uid: number(tasks, false),
        tasks_gid: number(tasks, true),
        tasks_mode: mode(tasks),
        admin_uid: number(admin, false),
        admin_gid: number(admin, true),
        file_mode: mode(admin),
        directory_mode: admin.as_ref().and_then(|person| Some(person.value.directory_mode?.bits())),
        admin_files: admin.as_ref().map_or(AdminFiles::Own, |person| person.value.files()),
    }
}

fn look_up(
    account: &Account,
    group: bool,
    people: &dyn People,
    origin: &Origin,
    problems: &mut Vec<Problem>,
) -> Option<u32> {
    let name = match account {
        Account::Id(number) => return Some(*number),
        Account::Name(name) => name,
    };
    let found = if group { people.group(name) } else { people.user(name) };
    if found.is_none() {
        let nobody = Problem::Nobody {
            kind: if group { "group" } else { "user" },
            name: name.clone(),
            origin: origin.clone(),
        };
        if !problems.contains(&nobody) {
            problems.push(nobody);
        }
    }
    found
}

/// Is the directory, or a file that was looked at, another's? What was not looked at counts as such.
fn differs(place: &Place, access: &Ownership, observed: &Observed) -> bool {
    let Some(seen) = observed.group(place) else { return true };
    let Some(directory) = seen.directory else { return true };
    let other = |owned: &Owned, uid: Option<u32>, gid: Option<u32>, mode: Option<u32>| {
        uid.is_some_and(|uid| uid != owned.uid)
            || gid.is_some_and(|gid| gid != owned.gid)
            || mode.is_some_and(|mode| mode != owned.mode & 0o7777)
    };
    other(&directory, access.admin_uid, access.admin_gid, access.directory_mode)
        || seen.owners.is_empty()
        || seen.owners.iter().any(|(file, owned)| {
            let (uid, gid, mode) = access.of_file(place.version, file, *owned, observed.keeper);
            other(owned, uid, gid, mode)
        })
}

fn why(demands: &Demands) -> String {
    let who = |person: &Option<Spanned<Person>>| {
        let person = &person.as_ref()?.value;
        let shown = |account: &Option<Account>| account.as_ref().map_or(String::new(), ToString::to_string);
        Some(format!("{}:{}", shown(&person.user), shown(&person.group)))
    };
    let tasks = who(&demands.tasks).map(|who| format!("{who} may put tasks in"));
    let admin = who(&demands.admin).map(|who| format!("{who} may change it"));
    [tasks, admin].into_iter().flatten().collect::<Vec<String>>().join(", ")
}
