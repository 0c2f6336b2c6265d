//! Groups in services: systemd removes them when a service stops, and makes none when it starts. A thread looks once a second for
//! services that run without, and makes them as the service's drop-in file says; where the layout divides none, it sleeps.

use std::{collections::BTreeMap, os::unix::net::UnixStream, time::Duration};

use apply::{Divided, Running, State, System as _, Target};
use kernel::{Host, Real};
use plan::{Inside, Place};
use tracing::{error, info};

use crate::{Error, division, failure_log::FailureLog, history_events, worker::Worker};

const EVERY: Duration = Duration::from_secs(1);

/// Starts the thread.
///
/// # Errors
/// No thread or descriptor is available.
pub(crate) fn start(state: State) -> Result<Worker<()>, Error> {
    let worker = Worker::start("services", move |stopped| run(&state, stopped));
    worker.map_err(Error::of("the thread for groups in services"))
}

fn run(state: &State, stopped: &UnixStream) {
    let host = match Host::new(Box::new(Real::new())) {
        Ok(host) => host,
        Err(error) => return error!("groups in services are not made: {error}"),
    };
    let mut keeper = Keeper { host, state, known: None, services: Vec::new(), made: BTreeMap::new() };
    let mut failures =
        FailureLog::new("groups in services are not made", "groups in services are made again");
    let events = history_events::watch(state).ok();
    loop {
        let looked = keeper.look();
        let sleeps = looked.is_ok() && keeper.services.is_empty() && events.is_some();
        match looked {
            Ok(()) => failures.succeeded(),
            Err(why) => failures.fail(why),
        }
        let time = (!sleeps).then_some(EVERY);
        if history_events::is_stopped_within(stopped, events.as_ref(), time) {
            return;
        }
    }
}

struct Keeper<'k> {
    host: Host,
    state: &'k State,
    /// The generation that comes next: while it is the same, so are the services.
    known: Option<u32>,
    services: Vec<(String, Place, Inside)>,
    /// The directories, by their inodes, that have all that they are to have; by path.
    made: BTreeMap<String, u64>,
}

impl Keeper<'_> {
    fn look(&mut self) -> Result<(), String> {
        self.read().map_err(|failure| failure.to_string())?;
        let system = Running::new();
        let files = system.unit_files();
        let running = self.services.iter().flat_map(|(unit, place, inside)| {
            let services = apply::running_units(&self.host, (unit, place), files).into_iter();
            services.map(move |(unit, place)| (unit, place, inside.clone()))
        });
        let running: Vec<(String, Place, Inside)> = running.collect();
        self.made.retain(|path, _| running.iter().any(|(_, place, _)| place.path == *path));
        let mut wrong = None;
        for (unit, place, inside) in running {
            wrong = wrong.or(self.make(&unit, &place, &inside).err());
        }
        wrong.map_or(Ok(()), Err)
    }

    /// What the layout in effect has, read again if that may be another one.
    fn read(&mut self) -> Result<(), apply::Failure> {
        let next = Some(self.state.next()?);
        if next != self.known {
            let system = Running::of_a_service();
            let target = Target { host: &self.host, system: &system };
            self.services = apply::divided_services(self.state, target)?;
            self.known = next;
        }
        Ok(())
    }

    fn make(&mut self, unit: &str, place: &Place, inside: &Inside) -> Result<(), String> {
        let host = &self.host;
        let Some(at) = host.hierarchies().get(place.hierarchy) else { return Ok(()) };
        let inode = host.kernel().inode(at, &place.path).ok();
        let is_known = self.made.get(&place.path).copied() == inode;
        let divided = || Divided::new(host, at, &place.path);
        if divided().is_none_or(|service| is_known && service.is_made(inside)) {
            return Ok(());
        }
        // a change that is under way makes them, or takes them away
        let lock = division::try_lock(self.state).map_err(|failure| failure.to_string())?;
        let is_same = self.state.next().is_ok_and(|next| Some(next) == self.known);
        let Some(service) = divided().filter(|_| lock.is_some() && is_same) else { return Ok(()) };
        let was_made = service.is_made(inside);
        service.make(inside).map_err(|error| format!("{unit}: {error}"))?;
        if service.is_made(inside) {
            self.made.extend(inode.map(|inode| (place.path.clone(), inode)));
            if !was_made {
                let names: Vec<String> = inside.groups.keys().cloned().collect();
                info!("{unit} is divided into {}", names.join(", "));
            }
        }
        Ok(())
    }
}
