//! What wakes the loop, as one closed list of events, and the wait for them. Handles none of them.

use std::{
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    Error, ReloadScope,
    alarm::Alarm,
    handle::Command,
    listener::Listener,
    signals::{PendingSignals, Signals},
    timespec::timespec,
    uevents::Uevents,
};

/// Why the loop woke; it handles them in this order.
pub(crate) enum Event {
    /// CPUs, memory or devices came or went.
    Machine,
    /// Processes started, changed their user or ended; the listener has queued which.
    Processes,
    /// End (SIGTERM, SIGINT).
    End,
    /// Reload (SIGHUP, SIGUSR1, SIGUSR2).
    Reload(ReloadScope),
    /// The alarm of schedules woke.
    Alarm,
    /// Another thread sent a command.
    Command(Command),
    /// The last of each round: what is due by now, also when nothing but time passed.
    Tick,
}

/// Where events come from.
pub(crate) struct Sources {
    pub listener: Listener,
    pub signals: Signals,
    /// `None`: the kernel refuses them, or no layout is applied.
    pub uevents: Option<Uevents>,
    /// Of schedules; `None`: no layout is applied.
    pub alarm: Option<Alarm>,
    pub commands: Receiver<Command>,
}

/// Which sources are readable.
struct Readable {
    processes: bool,
    signals: bool,
    uevents: bool,
    alarm: bool,
}

impl Sources {
    /// Waits for events, at most until `due`, and adds them to the list.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, due: Option<Instant>, events: &mut Vec<Event>) -> Result<(), Error> {
        let due = due.into_iter().chain(self.listener.due()).min();
        let readable = self.poll(due)?;
        if readable.uevents && self.uevents.as_mut().is_some_and(Uevents::take) {
            events.push(Event::Machine);
        }
        if readable.processes || self.listener.is_due() {
            events.push(Event::Processes);
        }
        if readable.alarm && self.alarm.is_some() {
            events.push(Event::Alarm);
        }
        if readable.signals {
            let PendingSignals { end, reload } = self.signals.pending();
            events.extend(end.then_some(Event::End));
            events.extend(reload.map(Event::Reload));
            events.extend(self.commands.try_iter().map(Event::Command));
        }
        events.push(Event::Tick);
        Ok(())
    }

    fn poll(&self, due: Option<Instant>) -> Result<Readable, Error> {
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        // never before the time
        let left = left.map(|left| timespec(left + Duration::from_millis(1)));
        let (urgent, others) = self.listener.fds();
        let signals = self.signals.fd();
        // a source that is missing is replaced by another, whose result is the same
        let uevents = self.uevents.as_ref().map_or(signals, Uevents::fd);
        let alarm = self.alarm.as_ref().map_or(signals, Alarm::fd);
        let fds = [urgent, others.unwrap_or(urgent), signals, uevents, alarm];
        let mut all = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut all, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::of("poll")(errno.into())),
        }
        let [urgent, others, signals, uevents, alarm] = all.map(|one| !one.revents().is_empty());
        Ok(Readable { processes: urgent || others, signals, uevents, alarm })
    }
}
