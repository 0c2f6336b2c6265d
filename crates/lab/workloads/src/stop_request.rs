//! How a workload's process is ended: it writes `ready`, then ten times a second how much it has done, and after the
//! line `stop FROM TO` (nanoseconds of CLOCK_MONOTONIC) on its standard input its report of that span. SIGTERM and
//! SIGINT ask for all since `ready`; started by hand it may be given a time instead. What was done in a span is worked out
//! of looks at counters; which counters is each workload's matter.

use std::{
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use serde::Serialize;

use crate::{
    Error,
    options::Options,
    start::{Instant, READY, report},
};

/// Between two looks at what is done.
const BEAT: Duration = Duration::from_millis(100);

/// The span that is to be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopRequest {
    pub from: Instant,
    pub to: Instant,
}

impl StopRequest {
    fn parse(line: &str) -> Option<StopRequest> {
        let mut words = line.strip_prefix("stop ")?.split_whitespace();
        let mut next = || words.next()?.parse().ok().map(Instant);
        Some(StopRequest { from: next()?, to: next()? })
    }

    pub fn seconds(self) -> f64 {
        self.to.since(self.from) as f64 / 1e9
    }

    pub fn holds(self, at: Instant) -> bool {
        self.from < at && at <= self.to
    }

    /// The whole intervals that a series of the span has, in nanoseconds: a fifth of a second, and not more than 300.
    fn interval(self) -> u64 {
        (self.to.since(self.from) / 300).max(200_000_000)
    }
}

/// When a process ends, and with whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// 0: it was started by hand.
    pub parent: u64,
    warm_up: Duration,
    /// Zero: it works until it is ended.
    time: Duration,
}

impl Clock {
    /// `[--parent PID] [--time-ms T [--warm-up-ms W]]`.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn of(options: &mut Options) -> Result<Clock, Error> {
        let parent = options.number("parent", 0..=u64::from(u32::MAX), Some(0))?;
        let mut milliseconds =
            |name, most| options.number(name, 0..=most, Some(0)).map(Duration::from_millis);
        Ok(Clock {
            parent,
            warm_up: milliseconds("warm-up-ms", 600_000)?,
            time: milliseconds("time-ms", 86_400_000)?,
        })
    }
}

/// Prints what `look` counts until the process is ended, or its time is over; `None` if its parent is gone.
///
/// # Errors
/// Standard output fails, or no signal can be listened to.
pub(super) fn until_stopped(
    clock: Clock,
    mut look: impl FnMut() -> u64,
) -> Result<Option<StopRequest>, Error> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .map_err(|source| Error::System { what: "cannot listen to signals", source })?;
    }
    report(READY)?;
    let begun = Instant::now();
    if !clock.time.is_zero() {
        let from = begun.after(clock.warm_up);
        let to = from.after(clock.time);
        while Instant::now() < to && !ended.load(Ordering::Relaxed) {
            look();
            let left = Duration::from_nanos(to.since(Instant::now()));
            Instant::now().after(left.min(BEAT)).sleep();
        }
        return Ok(Some(StopRequest { from, to: to.min(Instant::now()) }));
    }
    let requested = listen();
    loop {
        report(&look().to_string())?;
        if ended.load(Ordering::Relaxed) {
            return Ok(Some(StopRequest { from: begun, to: Instant::now() }));
        }
        match requested.recv_timeout(BEAT) {
            Ok(requested) => return Ok(Some(requested)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// What the first line on standard input requests; nothing comes, and the channel closes, at its end.
fn listen() -> mpsc::Receiver<StopRequest> {
    let (sender, requested) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        if let Some(requested) = read.ok().and_then(|_| StopRequest::parse(line.trim())) {
            let _ = sender.send(requested); // who listens has ended first
        }
    });
    requested
}

/// The looks before and after an instant, and how far it is from the one to the other (of 1); at both ends, twice the
/// last one. `None` without looks.
pub(super) fn around<L>(looks: &[L], when: impl Fn(&L) -> Instant, at: Instant) -> Option<(&L, &L, f64)> {
    let after = looks.partition_point(|look| when(look) < at);
    let before = after.checked_sub(1).and_then(|place| looks.get(place));
    let (one, other) = match (before, looks.get(after)) {
        (Some(before), Some(after)) => (before, after),
        (Some(only), None) | (None, Some(only)) => (only, only),
        (None, None) => return None,
    };
    let whole = when(other).since(when(one));
    let share = if whole == 0 { 0.0 } else { at.since(when(one)) as f64 / whole as f64 };
    Some((one, other, share))
}

/// How far a number has grown from one instant to another, as the looks around them say; 0 without looks.
pub(super) fn grown<L>(
    looks: &[L],
    when: impl Fn(&L) -> Instant,
    number: impl Fn(&L) -> f64,
    from: Instant,
    to: Instant,
) -> f64 {
    let at = |instant| {
        let (one, other, share) = around(looks, &when, instant)?;
        Some(number(one) + (number(other) - number(one)) * share)
    };
    at(to).zip(at(from)).map_or(0.0, |(to, from)| to - from)
}

/// For each whole interval of the span its end, in seconds since the span's beginning, and per second what was done in
/// it, as `done` says of any two instants.
pub(super) fn series(requested: StopRequest, done: impl Fn(Instant, Instant) -> f64) -> Vec<(f64, f64)> {
    let interval = requested.interval();
    let seconds = interval as f64 / 1e9;
    let whole = requested.to.since(requested.from) / interval;
    let end = |number: u64| Instant(requested.from.0 + number * interval);
    (1..=whole)
        .map(|number| (number as f64 * seconds, done(end(number - 1), end(number)) / seconds))
        .collect()
}

/// What the one with the least did by what the one with the most did; `None` if nobody did anything.
pub(super) fn fairness(each: impl IntoIterator<Item = f64>) -> Option<f64> {
    let ends = each.into_iter().fold(None, |ends: Option<(f64, f64)>, one| {
        Some(ends.map_or((one, one), |(least, most)| (least.min(one), most.max(one))))
    });
    ends.filter(|(_, most)| *most > 0.0).map(|(least, most)| least / most)
}

/// Writes a report as the one line that it is.
///
/// # Errors
/// Standard output fails.
pub(super) fn print_report(name: &str, found: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_string(found);
    report(&line.map_err(|source| Error::Report { name: name.to_owned(), source })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_stops_it() {
        assert_eq!(StopRequest::parse("stop 5 9"), Some(StopRequest { from: Instant(5), to: Instant(9) }));
        for line in ["", "stop", "stop 5", "halt 5 9", "stop a b"] {
            assert_eq!(StopRequest::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_span_holds_its_end_and_not_its_beginning() {
        let requested = StopRequest { from: Instant(5), to: Instant(9) };
        assert_eq!([5, 6, 9, 10].map(|at| requested.holds(Instant(at))), [false, true, true, false]);
    }

    #[test]
    fn growth_lies_on_the_line_between_two_looks() {
        let looks = [(Instant(0), 0.0), (Instant(100), 10.0), (Instant(300), 50.0)];
        let of = |from, to| grown(&looks, |look| look.0, |look| look.1, Instant(from), Instant(to));
        assert_eq!((of(50, 200), of(0, 300), of(300, 900)), (25.0, 50.0, 0.0));
        assert_eq!(grown(&looks[..0], |look| look.0, |look| look.1, Instant(0), Instant(9)), 0.0);
    }

    #[test]
    fn a_series_has_whole_intervals_only() {
        let requested = StopRequest { from: Instant(7), to: Instant(7 + 500_000_000) };
        let reported = series(requested, |from, to| to.since(from) as f64 / 1e8);
        assert_eq!(reported, [(0.2, 10.0), (0.4, 10.0)]);
    }

    #[test]
    fn fairness_is_the_least_by_the_most() {
        assert_eq!(fairness([3.0, 4.0, 3.5]), Some(0.75));
        assert_eq!((fairness([]), fairness([0.0, 0.0]), fairness([0.0, 2.0])), (None, None, Some(0.0)));
    }
}
