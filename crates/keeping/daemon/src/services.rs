//! Groups in services: systemd removes them when a service stops, and makes none when it starts. A thread looks once a second for
//! services that run without, and makes them as the service's drop-in file says.

use std::{os::unix::net::UnixStream, time::Duration};

use apply::{Divided, Running, State, System as _, Target};
use kernel::{Host, Real};
use plan::{Inside, Place};
use rustix::event::{PollFd, PollFlags, poll};
use tracing::{error, info};

use crate::{Error, division, failure_log::FailureLog, timespec::timespec, worker::Worker};

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
    let mut keeper = Keeper { host, state, known: None, services: Vec::new() };
    let mut failures =
        FailureLog::new("groups in services are not made", "groups in services are made again");
    loop {
        match keeper.look() {
            Ok(()) => failures.succeeded(),
            Err(why) => failures.fail(why),
        }
        let mut fds = [PollFd::new(stopped, PollFlags::IN)];
        if poll(&mut fds, Some(&timespec(EVERY))).is_ok_and(|ready| ready > 0) {
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
}

impl Keeper<'_> {
    fn look(&mut self) -> Result<(), String> {
        self.read().map_err(|failure| failure.to_string())?;
        let mut wrong = None;
        let system = Running::new();
        let files = system.unit_files();
        for (unit, place, inside) in &self.services {
            for (unit, place) in apply::running_services(&self.host, (unit, place), files) {
                wrong = wrong.or(self.make(&unit, &place, inside).err());
            }
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

    fn make(&self, unit: &str, place: &Place, inside: &Inside) -> Result<(), String> {
        let Some(at) = self.host.hierarchies().get(place.hierarchy) else { return Ok(()) };
        let lacks = |service: &Divided<'_>| !service.is_made(inside);
        if Divided::new(&self.host, at, &place.path).filter(lacks).is_none() {
            return Ok(());
        }
        // a change that is under way makes them, or takes them away
        let lock = division::try_lock(self.state).map_err(|failure| failure.to_string())?;
        let is_same = self.state.next().is_ok_and(|next| Some(next) == self.known);
        let Some(service) = Divided::new(&self.host, at, &place.path).filter(|_| lock.is_some() && is_same)
        else {
            return Ok(());
        };
        service.make(inside).map_err(|error| format!("{unit}: {error}"))?;
        info!(
            "{unit} was started: it is divided into {}",
            inside.groups.keys().cloned().collect::<Vec<_>>().join(", ")
        );
        Ok(())
    }
}
