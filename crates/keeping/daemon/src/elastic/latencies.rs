//! The latencies of elastic groups: a thread for each source, which never makes the thread that resizes wait. A source that
//! stops to answer is logged once, and the group's waiting decides until it answers again.

use std::{
    collections::BTreeMap,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use apply::{Measured, Says};
use layout::Latency;
use tracing::warn;

use crate::history_events::is_stopped_within;
use crate::{
    failure_log::FailureLog,
    latency::{Answer, Error, Source},
    worker::Worker,
};

/// This many times without an answer, and a source has stopped. One late answer changes nothing.
const MISSED: u32 = 3;

/// The sources of the layout in effect.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    all: Vec<One>,
}

/// One group's source.
#[derive(Debug)]
struct One {
    group: String,
    latency: Latency,
    says: Arc<Mutex<Answers>>,
    /// Ends with this.
    _thread: Option<Worker<()>>,
}

/// What a source says, and when it last did.
#[derive(Debug)]
struct Answers {
    says: Says,
    at: Instant,
}

impl Answers {
    fn new() -> Answers {
        Answers { says: Says::Begins, at: Instant::now() }
    }

    /// Takes in what came of a look. What the source said before counts until it has missed some times.
    fn take(&mut self, said: Result<Answer, Error>, patience: Duration, now: Instant) {
        match said {
            Ok(Answer::P99(p99)) => (self.says, self.at) = (Says::Measures { p99 }, now),
            Ok(Answer::Nothing) => (self.says, self.at) = (Says::Nothing, now),
            Err(why) if now.saturating_duration_since(self.at) >= patience => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                let since = match self.says {
                    Says::Stopped { since, .. } => since,
                    _ => since,
                };
                self.says = Says::Stopped { why: why.to_string(), since };
            }
            Err(_) => {}
        }
    }

    /// 1 - p99 / target; `None`: the waiting decides.
    fn slack(&self, target: f64, patience: Duration, now: Instant) -> Option<f64> {
        match self.says {
            Says::Measures { p99 } if now.saturating_duration_since(self.at) <= 2 * patience => {
                Some(1.0 - p99 / target)
            }
            _ => None,
        }
    }
}

impl Latencies {
    /// Those of a layout: sources that are the same go on, others end.
    pub fn follow(&mut self, latencies: &BTreeMap<String, Latency>) {
        self.all.retain(|one| latencies.get(&one.group) == Some(&one.latency));
        for (group, latency) in latencies {
            if self.all.iter().all(|one| one.group != *group) {
                self.all.push(One::start(group, latency));
            }
        }
    }

    /// Of a group, by its name in the layout; `None`: its waiting decides.
    pub fn slack(&self, group: &str) -> Option<f64> {
        let one = self.all.iter().find(|one| one.group == group)?;
        let answers = one.says.lock().unwrap_or_else(PoisonError::into_inner);
        answers.slack(seconds(&one.latency), patience(&one.latency), Instant::now())
    }

    /// What all of them say.
    pub fn measured(&self) -> Vec<Measured> {
        let of_one = |one: &One| Measured {
            group: one.group.clone(),
            source: one.latency.source.to_string(),
            target: seconds(&one.latency),
            says: one.says.lock().unwrap_or_else(PoisonError::into_inner).says.clone(),
        };
        self.all.iter().map(of_one).collect()
    }
}

impl One {
    fn start(group: &str, latency: &Latency) -> One {
        let says = Arc::new(Mutex::new(Answers::new()));
        let (own, name, shared) = (latency.clone(), group.to_owned(), Arc::clone(&says));
        let thread = Worker::start("latency", move |stopped| run(&name, &own, &shared, stopped));
        let thread = thread.inspect_err(|error| {
            warn!("{group}: its latency is not looked at, and its waiting decides: no thread: {error}");
            says.lock().unwrap_or_else(PoisonError::into_inner).take(
                Err(Error::Says(format!("no thread: {error}"))),
                Duration::ZERO,
                Instant::now(),
            );
        });
        One { group: group.to_owned(), latency: latency.clone(), says, _thread: thread.ok() }
    }
}

fn run(group: &str, latency: &Latency, answers: &Mutex<Answers>, stopped: &UnixStream) {
    let every = Duration::from_micros(latency.every.0);
    let mut log = FailureLog::of(
        format!("{group}: its latency is not known, and its waiting decides: {}", latency.source),
        format!("{group}: its latency decides again: {}", latency.source),
    );
    let mut source = Source::new(latency);
    loop {
        let start = Instant::now();
        let said = match &mut source {
            Ok(source) => source.look(stopped.as_fd()),
            Err(error) => Err(error.clone()),
        };
        if said == Err(Error::Stopped) {
            return;
        }
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.take(said, patience(latency), Instant::now());
        match &answers.says {
            Says::Stopped { why, .. } => log.fail(why),
            Says::Measures { .. } | Says::Nothing => log.succeeded(),
            Says::Begins => {}
        }
        drop(answers);
        if is_stopped_within(stopped, None, Some(every.saturating_sub(start.elapsed()))) {
            return;
        }
    }
}

fn patience(latency: &Latency) -> Duration {
    MISSED * Duration::from_micros(latency.every.0)
}

fn seconds(latency: &Latency) -> f64 {
    Duration::from_micros(latency.p99.0).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    #[test]
    fn a_source_has_stopped_when_it_misses_three_times_and_is_back_with_its_next_answer() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let late = || Err(Error::Late);
        let mut answers = Answers { says: Says::Begins, at: start };
        answers.take(Ok(Answer::P99(0.004)), PATIENCE, after(1));
        assert_eq!(answers.slack(0.005, PATIENCE, after(1)).map(|slack| (slack * 100.0).round()), Some(20.0));
        answers.take(late(), PATIENCE, after(2));
        answers.take(late(), PATIENCE, after(3));
        assert_eq!(answers.says, Says::Measures { p99: 0.004 });
        answers.take(late(), PATIENCE, after(4));
        assert!(matches!(&answers.says, Says::Stopped { why, .. } if why == "no answer in time"));
        assert_eq!(answers.slack(0.005, PATIENCE, after(4)), None);
        answers.take(Ok(Answer::Nothing), PATIENCE, after(5));
        assert_eq!((&answers.says, answers.slack(0.005, PATIENCE, after(5))), (&Says::Nothing, None));
        answers.take(Ok(Answer::P99(0.01)), PATIENCE, after(6));
        assert_eq!(answers.slack(0.005, PATIENCE, after(6)), Some(-1.0));
        assert_eq!(answers.slack(0.005, PATIENCE, after(13)), None, "what nobody renews is old");
    }

    #[test]
    fn one_that_never_answers_has_stopped_too() {
        let start = Instant::now();
        let mut answers = Answers { says: Says::Begins, at: start };
        answers.take(Err(Error::Late), PATIENCE, start + Duration::from_secs(1));
        assert_eq!(answers.says, Says::Begins);
        answers.take(Err(Error::Late), PATIENCE, start + PATIENCE);
        assert!(matches!(answers.says, Says::Stopped { .. }));
    }
}
