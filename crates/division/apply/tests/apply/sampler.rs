//! Watches running tasks without a pause: which CPUs each may run on, as sched_getaffinity(2), `/proc` and the files of
//! its group tell.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use apply::{Running, System};
use units::CpuSet;

use crate::{child::until_orphaned, groups::wait_for};

/// The child process: `threads` threads that want a CPU again and again, and leave the rest to whoever watches.
pub fn work(threads: usize) {
    let turn = || {
        let mut sum = 0_u64;
        (0..2_000_u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
        std::thread::sleep(Duration::from_millis(2));
    };
    for _ in 1..threads {
        std::thread::spawn(move || {
            loop {
                turn();
            }
        });
    }
    until_orphaned(turn);
}

/// The tasks of one group, and where they may run.
#[derive(Debug, Clone)]
pub struct Watched {
    pub group: String,
    pub threads: Vec<u32>,
    /// Files that list the group's CPUs.
    pub files: Vec<PathBuf>,
    /// Old and new CPUs together.
    pub within: CpuSet,
}

#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    rounds: AtomicUsize,
    samples: AtomicUsize,
    wrong: Mutex<Vec<String>>,
    /// How often each list of CPUs was seen, by group.
    lists: Mutex<BTreeMap<(String, String), usize>>,
}

/// A thread that samples until it is told to stop.
pub struct Sampler {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub fn start(watched: Vec<Watched>) -> Sampler {
        let seen = Arc::new(Seen::default());
        let own = seen.clone();
        let thread = std::thread::spawn(move || {
            let running = Running::new();
            while !own.stop.load(Ordering::SeqCst) {
                watched.iter().for_each(|watched| own.look(&running, watched));
                own.rounds.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        Sampler { seen, thread: Some(thread) }
    }

    /// Waits until all tasks were looked at once more: to be called after each change.
    pub fn whole_round(&self) -> impl Fn() + Send + Sync + use<> {
        let seen = self.seen.clone();
        move || {
            // the round that is under way began before the change
            let wanted = seen.rounds.load(Ordering::SeqCst) + 2;
            wait_for("the sampler goes on", || seen.rounds.load(Ordering::SeqCst) >= wanted);
        }
    }

    /// How many samples were taken, and which lists of CPUs each group's tasks had; fails if one was wrong.
    pub fn stop(mut self) -> (usize, BTreeMap<(String, String), usize>) {
        self.end();
        let wrong = self.seen.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} wrong samples: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
        (self.seen.samples.load(Ordering::SeqCst), self.seen.lists.lock().unwrap().clone())
    }

    fn end(&mut self) {
        self.seen.stop.store(true, Ordering::SeqCst);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::SeqCst);
    }
}

impl Seen {
    fn look(&self, running: &Running, watched: &Watched) {
        for thread in &watched.threads {
            let affinity = running.affinity(*thread).map_err(|errno| errno.to_string());
            self.sample(watched, &format!("sched_getaffinity({thread})"), affinity, true);
            let status = format!("/proc/{thread}/status");
            self.sample(watched, &status, allowed(&status), true);
        }
        for file in &watched.files {
            self.sample(watched, &file.display().to_string(), list(file), false);
        }
    }

    fn sample(&self, watched: &Watched, what: &str, cpus: Result<CpuSet, String>, of_a_task: bool) {
        self.samples.fetch_add(1, Ordering::SeqCst);
        let wrong = match cpus {
            Ok(cpus) if cpus.is_empty() => "no CPU".to_owned(),
            Ok(cpus) if !cpus.is_subset(&watched.within) => format!("{cpus}, not within {}", watched.within),
            Ok(cpus) => {
                if of_a_task {
                    let key = (watched.group.clone(), cpus.to_string());
                    *self.lists.lock().unwrap().entry(key).or_default() += 1;
                }
                return;
            }
            Err(error) => error,
        };
        self.wrong.lock().unwrap().push(format!("{} {what}: {wrong}", watched.group));
    }
}

fn list(file: &Path) -> Result<CpuSet, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    text.trim().parse::<CpuSet>().map_err(|error| error.to_string())
}

fn allowed(status: &str) -> Result<CpuSet, String> {
    let text = std::fs::read_to_string(status).map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let line = line.ok_or("no Cpus_allowed_list")?;
    line.trim().parse::<CpuSet>().map_err(|error| error.to_string())
}

/// How often a thread gave up its CPU by itself: it goes on only while it gets one.
fn turns(thread: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

/// Waits until each thread has run again.
pub fn all_run(threads: &[u32]) {
    for thread in threads {
        let before = turns(*thread);
        wait_for(&format!("thread {thread} runs"), || turns(*thread) > before + 1);
    }
}
