//! Isolated CPUs on a machine in memory: killed and refused at each change, "before or after, never between"; and many
//! seeds with what others do meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use apply::{Failure, Lock, Outcome, State, Target, execute, recover, status, undo};
use fake::{Fake, Snapshot};
use kernel::Kernel;
use plan::Action;
use rustix::io::Errno;
use settings::knobs::Instance;
use tempfile::TempDir;

use crate::{
    machine::{Affinities, Clocks, Fault, Faults, IDLE_WORKER, Killed, Sim},
    places::{KTHREADD, Places, thread},
    random::Random,
    run::{ERRNOS, LAYOUT, machine, meta, planned_text},
    world::{CPUS, Kind},
};

const FULL: &str = "[groups.rt]\ncpus = \"3\"\nexclusive = true\nisolate = \"full\"\n[isolate]\n\
    timer-migration = true\nnmi-watchdog = true\nstat-interval = 10\nhuge-pages = true\ncompaction = true\n";
/// The least number of steps that this is about.
const STEPS: usize = 40;

/// The machine, and the history on it.
struct Desk {
    fake: Fake,
    places: Places,
    affinities: Affinities,
    clocks: Clocks,
    directory: TempDir,
}

type Planned = Result<Result<Outcome, Failure>, String>;

/// All that a change may change.
type Picture = (Snapshot, BTreeMap<Instance, String>);

impl Desk {
    fn new(fake: Fake, places: Places) -> Desk {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
        Desk { fake, places, affinities: Affinities::default(), clocks, directory }
    }

    fn picture(&self) -> Picture {
        (self.fake.snapshot(), self.places.texts())
    }

    /// A new process that does `act`: its result, `None` if it was killed, and how many changes it came to.
    fn command<T>(
        &self,
        at: Vec<(usize, Fault)>,
        act: impl FnOnce(&Lock, Target<'_>) -> T,
    ) -> (Option<T>, usize) {
        let faults = Faults::at(at);
        let (host, sim) =
            Sim::with_places(&self.fake, &faults, self.clocks, &self.affinities, CPUS, &self.places);
        let state = State::open(self.directory.path()).unwrap();
        let lock = state.lock(Duration::ZERO).unwrap();
        let target = Target { host: &host, system: &sim };
        match catch_unwind(AssertUnwindSafe(|| act(&lock, target))) {
            Ok(done) => (Some(done), faults.count()),
            Err(payload) if payload.is::<Killed>() => (None, faults.count()),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    fn apply(&self, text: &str, at: Vec<(usize, Fault)>) -> (Option<Result<Outcome, Failure>>, usize) {
        let (done, count) = self.try_apply(text, at);
        (done.map(Result::unwrap), count)
    }

    /// The same, where the machine may not have what the layout asks for.
    fn try_apply(&self, text: &str, at: Vec<(usize, Fault)>) -> (Option<Planned>, usize) {
        self.command(at, |lock, target| {
            let plan = planned_text(lock.state(), target, &machine(), text)?;
            Ok(execute(lock, target, &plan, &meta(LAYOUT, None)))
        })
    }

    fn undo(&self, at: Vec<(usize, Fault)>) -> (Option<Result<Outcome, Failure>>, usize) {
        self.command(at, |lock, target| undo(lock, target, Some(0), &meta("undo", None)))
    }

    /// What the next command does first; returns what it names.
    fn recover(&self, at: Vec<(usize, Fault)>) -> Option<Vec<String>> {
        let (done, _) = self.command(at, |lock, target| recover(lock, target).unwrap());
        done.map(|recovered| recovered.into_iter().flat_map(|one| one.left).collect())
    }

    /// The drift that `status` shows.
    fn drift(&self) -> Vec<String> {
        let (groups, _) = self.command(Vec::new(), |lock, target| status(lock.state(), target).unwrap());
        let drift = groups.unwrap().into_iter().flat_map(|group| group.drift);
        drift.map(|drift| drift.to_string()).collect()
    }
}

/// What differs, but for places that a text names.
fn differing(now: &Picture, then: &Picture, named: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if now.0.groups != then.0.groups {
        all.push("groups".to_owned());
    }
    for (instance, text) in &then.1 {
        let is = now.1.get(instance);
        let is_named = named.iter().any(|line| line.contains(&instance.to_string()));
        if !is_named && is.is_some_and(|is| is != text) {
            all.push(format!("{instance} was {text} and is {}", is.unwrap()));
        }
    }
    all
}

fn kinds() -> [Kind; 4] {
    [Kind::V1, Kind::V2, Kind::V2Exclusive, Kind::V2Firm]
}

fn fresh(kind: Kind, seed: u64) -> Desk {
    let mut random = Random::new(seed);
    Desk::new(kind.kernel(&mut random), Places::random(&mut random))
}

/// How many steps are about knobs.
fn knob_steps(desk: &Desk, text: &str) -> usize {
    let (plan, _) = desk
        .command(Vec::new(), |lock, target| planned_text(lock.state(), target, &machine(), text).unwrap());
    plan.unwrap().steps.iter().filter(|step| matches!(step.action, Action::SetKnob { .. })).count()
}

const FAULTS: [Fault; 6] = [
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::Refuse(Errno::PERM),
    Fault::Refuse(Errno::INVAL),
    Fault::Refuse(Errno::IO),
    Fault::Refuse(Errno::NOSPC),
];

#[test]
fn a_kill_or_a_refusal_at_any_of_an_isolations_changes_leaves_all_as_before_or_all_done() {
    for kind in kinds() {
        let steps = knob_steps(&fresh(kind, 1), FULL);
        assert!(steps >= STEPS, "{kind:?}: {steps} steps");
        let clean = fresh(kind, 1);
        let count = clean.apply(FULL, Vec::new()).1;
        let (mut killed, mut refused) = (0, 0);
        for (at, fault) in (0..count).flat_map(|at| FAULTS.map(|fault| (at, fault))) {
            let desk = fresh(kind, 1);
            let before = desk.picture();
            let what = format!("{kind:?}, {fault:?} at change {at} of {count}");
            let (done, _) = desk.apply(FULL, vec![(at, fault)]);
            match done {
                None => {
                    killed += 1;
                    // the recovery is killed as well, and the next one goes on
                    desk.recover(vec![(at % 5, Fault::KillAfter)]);
                    let left = desk.recover(Vec::new()).unwrap();
                    assert_eq!(left, Vec::<String>::new(), "{what}");
                }
                Some(Err(Failure::RolledBack { left, .. })) => {
                    refused += 1;
                    assert_eq!(left, Vec::<String>::new(), "{what}");
                }
                Some(Err(other)) => panic!("{what}: {other}"),
                // an interrupt that can't be moved stays, and is reported
                Some(Ok(outcome)) => {
                    assert!(!outcome.differences.is_empty() || !outcome.unmoved.is_empty(), "{what}");
                    let undone = desk.undo(Vec::new()).0.unwrap().unwrap();
                    assert_eq!(undone.left, Vec::<String>::new(), "{what}");
                }
            }
            assert_eq!(differing(&desk.picture(), &before, &[]), Vec::<String>::new(), "{what}");
        }
        assert!(killed >= 2 * STEPS && refused >= STEPS, "{kind:?}: {killed} killed, {refused} refused");
        println!("{kind:?}: {steps} knobs set, {count} changes: {killed} kills, {refused} refusals");
    }
}

#[test]
fn an_undo_of_an_isolation_that_is_killed_is_as_if_it_never_began_and_a_refusal_is_left_to_the_next() {
    for kind in kinds() {
        let desk = fresh(kind, 2);
        desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
        let count = desk.undo(Vec::new()).1;
        assert!(count >= STEPS, "{kind:?}: {count} changes");
        for (at, fault) in (0..count).flat_map(|at| FAULTS[..3].iter().map(move |fault| (at, *fault))) {
            let desk = fresh(kind, 2);
            let before = desk.picture();
            desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
            let applied = desk.picture();
            let what = format!("{kind:?}, {fault:?} at change {at} of {count} of an undo");
            match desk.undo(vec![(at, fault)]).0 {
                None => {
                    let left = desk.recover(Vec::new()).unwrap();
                    assert_eq!(left, Vec::<String>::new(), "{what}");
                    let wrong = differing(&desk.picture(), &applied, &[]);
                    assert_eq!(wrong, Vec::<String>::new(), "{what}");
                }
                Some(Err(failure)) => panic!("{what}: {failure}"),
                Some(Ok(outcome)) => {
                    let wrong = differing(&desk.picture(), &before, &outcome.left);
                    let of_knobs: Vec<&String> = wrong.iter().filter(|line| *line != "groups").collect();
                    assert_eq!(of_knobs, Vec::<&String>::new(), "{what}: {:?}", outcome.left);
                    assert!(!outcome.left.is_empty() || desk.picture() == before, "{what}");
                    let stays: Vec<&String> =
                        outcome.left.iter().filter(|line| line.contains("cannot set")).collect();
                    if !stays.is_empty() {
                        let drift = desk.drift();
                        assert!(
                            drift.iter().any(|line| line.contains("the next undo or apply")),
                            "{what}: {drift:?}"
                        );
                    }
                }
            }
            // the next one is not refused
            let last = desk.undo(Vec::new()).0.unwrap();
            let left = last.map(|outcome| outcome.left).unwrap_or_default();
            assert_eq!(differing(&desk.picture(), &before, &left), Vec::<String>::new(), "{what}");
            assert_eq!(left, Vec::<String>::new(), "{what}");
            assert_eq!(desk.drift(), Vec::<String>::new(), "{what}");
        }
        println!("{kind:?}: {count} changes of an undo, killed and refused at each");
    }
}

#[test]
fn what_an_undo_could_not_put_back_goes_back_with_the_next_layout_too() {
    let desk = fresh(Kind::V2, 3);
    let before = desk.picture();
    desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
    let mask = Instance::File("/proc/irq/default_smp_affinity".to_owned());
    let refusing = |refuses: Option<Errno>| {
        let text = desk.places.texts()[&mask].clone();
        desk.places.add("interrupt-default", mask.clone(), &text, refuses);
    };
    refusing(Some(Errno::IO));
    let outcome = desk.undo(Vec::new()).0.unwrap().unwrap();
    assert!(outcome.left.len() == 1 && outcome.left[0].contains(&mask.to_string()), "{:?}", outcome.left);
    assert_eq!(desk.places.texts()[&mask], "7");
    // refused again, the layout is applied all the same, and says so
    let other = "[groups.other]\ncpu.weight = 50\n";
    let outcome = desk.apply(other, Vec::new()).0.unwrap().unwrap();
    assert!(outcome.left.iter().any(|line| line.contains(&mask.to_string())), "{:?}", outcome.left);
    assert_eq!(desk.drift().len(), 1);
    refusing(None);
    desk.apply("[groups.other]\ncpu.weight = 60\n", Vec::new()).0.unwrap().unwrap();
    assert_eq!(desk.places.texts(), before.1);
    assert_eq!(desk.drift(), Vec::<String>::new());
}

#[test]
fn a_worker_of_the_kernel_that_ends_once_it_refused_other_cpus_stops_no_change() {
    let desk = fresh(Kind::V1, 5);
    let worker = desk.fake.spawn(KTHREADD).unwrap();
    desk.fake.set_process(worker, |process| {
        (process.comm, process.kernel_thread, process.bound) = (IDLE_WORKER.to_owned(), true, true);
    });
    let outcome = desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
    assert!(desk.fake.process(worker).is_err(), "nobody tried to move it");
    assert!(outcome.unmoved.iter().all(|one| one.thread != worker), "{:?}", outcome.unmoved);
}

#[test]
fn nothing_of_an_earlier_boot_is_written_to_this_one() {
    let mut desk = fresh(Kind::V2, 4);
    desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
    let mut random = Random::new(5);
    let machine = Places::random(&mut random);
    // as if the boot had the same numbers, and the same texts as the layout had written
    for (instance, text) in desk.places.texts() {
        let _ = machine.write(&instance, &text);
    }
    desk.places = machine;
    desk.fake = Kind::V2.kernel(&mut random);
    desk.clocks.boot += 1;
    let booted = desk.picture();
    for fault in [vec![(0, Fault::Refuse(Errno::IO))], Vec::new()] {
        let (done, count) = desk.undo(fault);
        assert_eq!(count, 0, "{done:?}");
        assert_eq!(desk.picture().1, booted.1);
    }
    // killed in the middle, then booted
    desk.apply(FULL, vec![(30, Fault::KillAfter)]);
    let half = desk.picture();
    desk.clocks.boot += 1;
    let (_, count) = desk.undo(Vec::new());
    assert_eq!((count, desk.picture().1), (0, half.1));
}

/// Values that others write.
const OTHERS: [(&str, &[&str]); 4] = [
    ("/proc/irq/default_smp_affinity", &["f", "3", "8"]),
    ("/proc/sys/vm/stat_interval", &["1", "10", "77"]),
    ("/proc/irq/3/smp_affinity_list", &["0-3", "3", "0"]),
    ("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us", &["0", "20", "n/a"]),
];

fn layout(random: &mut Random) -> String {
    let mut text = String::new();
    let cpus = random.pick(&["3", "2-3", "2"]);
    if random.chance(85) {
        let level =
            random.pick(&["\"cpus\"", "\"quiet\"", "\"full\"", "{ level = \"cpus\", governor = true }"]);
        text += &format!("[groups.rt]\ncpus = \"{cpus}\"\nexclusive = true\nisolate = {level}\n");
    }
    text += "[groups.rest]\ncpu.weight = 70\n";
    if text.contains("isolate") && random.chance(70) {
        text += "[isolate]\n";
        for row in ["stat-interval = 10", "timer-migration = true", "huge-pages = true", "compaction = 5"] {
            if random.chance(60) {
                text += row;
                text.push('\n');
            }
        }
    }
    text
}

/// One seed; returns what went wrong.
fn seed(number: u64, counted: &mut BTreeMap<&'static str, usize>) -> Result<(), String> {
    let mut random = Random::new(number);
    let kind = random.pick(&kinds());
    let desk = Desk::new(kind.kernel(&mut random), Places::random(&mut random));
    // what would be there without any layout
    let mut base = desk.places.texts();
    let snapshot = desk.fake.snapshot();
    // what somebody else wrote over ours, which stays
    let mut theirs: BTreeSet<Instance> = BTreeSet::new();
    let mut log = vec![format!("{kind:?}")];
    let mut count = |what| *counted.entry(what).or_default() += 1;
    let check = |what: &str, now: &Picture, then: &Picture, named: &[String], log: &[String]| {
        let wrong = differing(now, then, named);
        if wrong.is_empty() { Ok(()) } else { Err(format!("{what}: {wrong:?}\n  {}", log.join("\n  "))) }
    };
    let mut left: Vec<String> = Vec::new();
    for _ in 0..4 + random.below(6) {
        let fault = match random.below(6) {
            0 => vec![(random.below(70), Fault::KillBefore)],
            1 => vec![(random.below(70), Fault::KillAfter)],
            2 => vec![(random.below(70), Fault::Refuse(random.pick(&ERRNOS)))],
            _ => Vec::new(),
        };
        let before = desk.picture();
        let is_undo = random.chance(30);
        match random.below(10) {
            0..7 => {
                let text = layout(&mut random);
                log.push(format!("{} {fault:?} undo {is_undo}", text.replace('\n', " | ")));
                let done = if is_undo { desk.undo(fault).0.map(Ok) } else { desk.try_apply(&text, fault).0 };
                if let Some(Err(_)) = done {
                    count("not possible");
                    continue;
                }
                match done.map(Result::unwrap) {
                    None => {
                        count("kills");
                        let mut named = desk.recover(Vec::new()).unwrap();
                        named.extend(left.iter().cloned());
                        check("after a kill", &desk.picture(), &before, &named, &log)?;
                    }
                    Some(Err(Failure::RolledBack { left: named, .. })) => {
                        count("refusals");
                        check("after a refusal", &desk.picture(), &before, &named, &log)?;
                        left.extend(named);
                    }
                    Some(Err(Failure::NothingToUndo | Failure::NothingRecorded { .. })) => {}
                    Some(Err(other)) => return Err(format!("{other}\n  {}", log.join("\n  "))),
                    Some(Ok(outcome)) if is_undo => {
                        count("undone");
                        log.push(format!("  {outcome:?}"));
                        let mut named = outcome.left.clone();
                        named.extend(left.iter().cloned());
                        let then = (desk.picture().0, base.clone());
                        check("after an undo", &desk.picture(), &then, &named, &log)?;
                        theirs.clear();
                        left.extend(outcome.left);
                    }
                    Some(Ok(outcome)) => {
                        count("applied");
                        log.push(format!("  {outcome:?}"));
                        left.extend(outcome.left);
                    }
                }
            }
            7 => {
                let (path, texts) = random.pick(&OTHERS);
                let (instance, text) = (Instance::File(path.to_owned()), random.pick(texts));
                let now = desk.places.texts().get(&instance).cloned();
                if desk.places.write(&instance, text).is_ok()
                    && desk.places.texts().get(&instance) != now.as_ref()
                {
                    count("written by others");
                    log.push(format!("{path} is written by others: {text}"));
                    base.insert(instance.clone(), desk.places.texts()[&instance].clone());
                    theirs.insert(instance);
                }
            }
            8 => {
                let started = 100 + random.below(100) as u32;
                let instance = thread(started, "started");
                if !base.contains_key(&instance) {
                    count("threads started");
                    log.push(format!("thread {started} starts"));
                    let cpus = desk.places.texts()[&thread(KTHREADD, "kthreadd")].clone();
                    desk.places.add("kernel-threads", instance.clone(), &cpus, None);
                    base.insert(instance, base[&thread(KTHREADD, "kthreadd")].clone());
                }
            }
            _ => {
                let all: Vec<Instance> = base.keys().cloned().collect();
                let gone = random.pick(&all);
                if gone != thread(KTHREADD, "kthreadd") {
                    count("gone");
                    log.push(format!("{gone} is gone"));
                    desk.places.remove(&gone);
                    base.remove(&gone);
                }
            }
        }
    }
    // what was written by others while ours stood there and is the same again stays theirs or goes back: both are before
    let outcome = match desk.undo(Vec::new()).0.unwrap() {
        Ok(outcome) => outcome,
        Err(Failure::NothingToUndo | Failure::NothingRecorded { .. }) => Outcome::nothing(),
        Err(other) => return Err(format!("{other}\n  {}", log.join("\n  "))),
    };
    log.push(format!("  {outcome:?}"));
    if !outcome.left.is_empty() {
        return Err(format!("at last {:?} is left\n  {}", outcome.left, log.join("\n  ")));
    }
    check("at last", &desk.picture(), &(snapshot, base), &[], &log)
}

/// The end of a partition gives all threads other CPUs: one that the kernel, or somebody, moved meanwhile stays as the undo says.
#[test]
fn a_thread_that_was_moved_since_has_after_the_undo_the_cpus_that_are_named() {
    for kind in kinds() {
        let desk = fresh(kind, 5);
        let own = thread(4711, "kcompactd1");
        desk.places.add("kernel-threads", own.clone(), "0-3", None);
        desk.apply(FULL, Vec::new()).0.unwrap().unwrap();
        assert_eq!(desk.places.texts()[&own], "0-2", "{kind:?}");
        desk.places.write(&own, "2-3").unwrap();
        let outcome = desk.undo(Vec::new()).0.unwrap().unwrap();
        let named = outcome.replaced.iter().find(|line| line.contains("kcompactd1"));
        assert!(named.is_some_and(|line| line.contains("stays 2-3")), "{kind:?}: {:?}", outcome.replaced);
        assert_eq!(desk.places.texts()[&own], "2-3", "{kind:?}");
    }
}

#[test]
fn whatever_happens_meanwhile_an_undo_brings_back_every_knob_that_nobody_else_changed() {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let mut counted = BTreeMap::new();
    if let Some(one) = number("RF_SEED") {
        seed(one, &mut counted).unwrap_or_else(|wrong| panic!("{wrong}"));
        return;
    }
    let count = number("RF_SEEDS").unwrap_or(150);
    let failed: Vec<(u64, String)> =
        (0..count).filter_map(|one| Some((one, seed(one, &mut counted).err()?))).collect();
    println!("{count} seeds: {counted:?}");
    for (one, wrong) in failed.iter().take(3) {
        println!("RF_SEED={one}: {wrong}");
    }
    assert!(failed.is_empty(), "{} of {count} seeds failed, the first is {}", failed.len(), failed[0].0);
}
