//! `why` on this machine's own hierarchies: each cause is made to happen, is the first that is told, and the command
//! that is told with it is taken by the kernel.
//!
//! What keeps a busy machine from turning the ranks: a group that shall be held back by something else than others'
//! work has the greatest weight, so that it waits for nobody while it runs; the one that waits for others waits the more,
//! the more they are. A task that sleeps for a disk again and again waits for a busy CPU after each of its sleeps, whatever
//! its weight: of those the cause is the first of all that are not the CPUs'. Refusals (kills, failed forks, a group without CPUs) go before all times by definition. Remote memory and
//! real-time budgets are tested on facts alone, beside the judges.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use kernel::GroupName;
use libtest_mimic::Trial;
use settings::{Controller, Version};
use watch::{
    Descriptors,
    why::{Answer, Cause, Effect, Facts, Kind, Known, gather, why},
};

use crate::{load::Load, trial, world::World};

const CONTROLLERS: [Controller; 7] = [
    Controller::Cpu,
    Controller::Cpuacct,
    Controller::Memory,
    Controller::Pids,
    Controller::Cpuset,
    Controller::Freezer,
    Controller::Io,
];

pub fn trials() -> Vec<Trial> {
    if !CONTROLLERS.into_iter().all(World::has_v1) {
        return Vec::new(); // v2's ways are the same but for the files, which the table's tests hold
    }
    vec![
        trial("why: a group whose tasks sleep was held back by nothing", nothing),
        trial("why: a quota is the first cause", quota),
        trial("why: the quota of a group above is told by its name", quota_above),
        trial("why: another group on the same CPU is the first cause, and is named", neighbours),
        trial("why: more busy tasks than CPUs are the first cause", few_cpus),
        trial("why: a group without CPUs takes no tasks", no_cpus),
        trial("why: a frozen group is the first cause", frozen),
        trial("why: a limit of tasks is the first cause", forks),
        trial("why: killed processes are the first cause", killed),
        trial("why: pages that a limit makes come again are the first cause", reclaim),
        trial(
            "why: pages that come again are the first cause where no pressure is counted too",
            reclaim_bound,
        ),
        trial("why: a limit of I/O is the first cause", throttled),
        trial("why: a limit of I/O is seen by the tasks' states where no pressure is counted", throttled_v1),
        trial("why: others on the same device are named", io_neighbours),
        trial("why: memory that comes back from swap is the first cause", swapped),
    ]
}

/// Groups of a test, and the way to ask about one.
struct Stage {
    world: World,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let world = World::new(&format!("why-{name}"));
        let stage = Stage { world };
        stage.prefer("");
        stage
    }

    /// A group below with the greatest weight.
    fn make(&self, below: &str) {
        self.world.make(below);
        self.prefer(below);
    }

    fn prefer(&self, below: &str) {
        self.world.write(Controller::Cpu, below, "cpu.shares", "262144");
    }

    /// Has the kernel count the group's pressure too, where it has v2 beside v1.
    fn with_pressure(self) -> Stage {
        let kernel = self.world.host.kernel();
        self.world.host.hierarchies().iter().filter(|at| at.version == Version::V2).for_each(|at| {
            kernel.mkdir(at, &self.world.top).unwrap();
        });
        self
    }

    /// A process of the group that does something.
    fn start(&self, below: &str, words: &[&str]) -> Load {
        let mut load = Load::new(words);
        self.world.put(below, load.pid());
        for at in self.world.host.hierarchies().iter().filter(|at| at.version == Version::V2) {
            if self.world.host.kernel().exists(at, &self.world.name(below)) {
                let pid = load.pid().to_string();
                self.world.host.kernel().write(at, &self.world.name(below), "cgroup.procs", &pid).unwrap();
            }
        }
        load.go();
        load
    }

    fn facts(&self, below: &str) -> Facts {
        let group = GroupName::new(&self.world.name(below)).unwrap();
        gather(&self.world.host, Descriptors::new(), &group, Duration::from_secs(2)).unwrap()
    }

    /// The first cause, which shall be this one, and whose command is carried out.
    fn first(&self, below: &str, kind: Kind) -> Cause {
        self.first_of(below, kind, |_| true)
    }

    /// The same of the causes that are not others' work on the CPUs.
    fn first_but_cpus(&self, below: &str, kind: Kind) -> Cause {
        self.first_of(below, kind, is_not_of_cpus)
    }

    fn first_of(&self, below: &str, kind: Kind, wanted: fn(&Cause) -> bool) -> Cause {
        let facts = self.facts(below);
        let answer = why(&facts);
        let first = answer.causes.iter().find(|cause| wanted(cause));
        let cause = first.unwrap_or_else(|| panic!("no cause: {facts:#?}")).clone();
        assert_eq!(cause.kind, kind, "{answer}\n{facts:#?}");
        assert!(answer.causes.iter().all(|other| other.effect >= cause.effect), "{answer}");
        show(&answer);
        cause.hint.iter().for_each(|hint| self.obey(hint));
        cause
    }

    /// Does what a hint says, as the command line would.
    fn obey(&self, hint: &str) {
        let words: Vec<&str> = match hint.split_once(" '") {
            Some((before, quoted)) => before.split(' ').chain([quoted.trim_end_matches('\'')]).collect(),
            None => hint.split(' ').collect(),
        };
        let ["ringfence", command, group, values @ ..] = words.as_slice() else { panic!("{hint}") };
        assert!(group.starts_with("rf-test-"), "{hint}");
        let group = GroupName::new(group).unwrap();
        if *command == "thaw" {
            let timeout = Duration::from_secs(60);
            kernel::set_frozen(&self.world.host, &group, false, timeout).unwrap();
            return;
        }
        let ask = |value: &&str| {
            let (name, value) = value.split_once('=').unwrap();
            let found = settings::find(name).unwrap();
            let value = found.parse(value, &settings::Nowhere).unwrap();
            let place = apply::place(&self.world.host, &group, &found).unwrap();
            plan::Ask { group: group.clone(), place, found, value }
        };
        let asks: Vec<plan::Ask> = values.iter().map(ask).collect();
        apply::set(&self.world.host, &asks).unwrap_or_else(|error| panic!("{hint}: {error}"));
    }

    /// No more memory and swap together than this, where swap is counted.
    fn limit_swap(&self, limit: &str) {
        let at = self.world.host.hierarchy_of(Controller::Memory).unwrap();
        if self.world.host.kernel().read(at, &self.world.top, "memory.memsw.limit_in_bytes").is_ok() {
            self.world.write(Controller::Memory, "", "memory.memsw.limit_in_bytes", limit);
        }
    }

    fn cpus(&self) -> units::CpuSet {
        self.world.read(Controller::Cpuset, "", "cpuset.cpus").trim().parse().unwrap()
    }
}

fn is_not_of_cpus(cause: &Cause) -> bool {
    !matches!(cause.kind, Kind::Neighbours | Kind::FewCpus)
}

/// What a reader would see, for the one who runs the tests by hand.
fn show(answer: &Answer) {
    if std::env::var_os("RF_SHOW").is_some() {
        let text = format!("{answer}\n");
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
    }
}

fn number(cause: &Cause, name: &str) -> f64 {
    cause.numbers.iter().find(|number| number.name == name).unwrap().value
}

fn nothing() {
    let stage = Stage::new("nothing").with_pressure();
    let _sleeping = Load::new(&["spin"]);
    stage.world.put("", _sleeping.pid());
    let answer = why(&stage.facts(""));
    assert_eq!(answer.causes, [], "{answer}");
    assert!(answer.to_string().contains("nothing held it back"), "{answer}");
    show(&answer);
}

fn quota() {
    let stage = Stage::new("quota");
    stage.world.write(Controller::Cpu, "", "cpu.cfs_quota_us", "5000");
    let _load = stage.start("", &["spin"]);
    let cause = stage.first("", Kind::Quota);
    assert!(number(&cause, "cpu.throttled.periods") > 0.0);
    assert!(cause.lost.unwrap().seconds > 0.5, "{cause:?}");
    assert_ne!(stage.world.read(Controller::Cpu, "", "cpu.cfs_quota_us").trim(), "5000");
}

fn quota_above() {
    let stage = Stage::new("above");
    stage.make("a");
    stage.world.write(Controller::Cpu, "", "cpu.cfs_quota_us", "5000");
    let _load = stage.start("a", &["spin"]);
    let cause = stage.first("a", Kind::Quota);
    assert_eq!(cause.at, stage.world.name(""));
    assert!(
        cause.sentence.contains(&format!("the quota of {} (0.05 CPUs", stage.world.name(""))),
        "{cause:?}"
    );
}

fn neighbours() {
    let stage = Stage::new("beside");
    let cpu = stage.cpus().first().unwrap().to_string();
    for group in ["a", "hog"] {
        stage.make(group);
        stage.world.write(Controller::Cpuset, group, "cpuset.cpus", &cpu);
    }
    let _own = stage.start("a", &["spin"]);
    let _hog = stage.start("hog", &["spin", "2"]);
    let facts = stage.facts("a");
    let hog = facts.cpu.others.iter().find(|other| other.group == stage.world.name("hog"));
    assert!(hog.is_some_and(|hog| hog.ran > Duration::ZERO), "{facts:#?}");
    let cause = stage.first("a", Kind::Neighbours);
    // the greatest weight of all but each other's: nobody had more of that CPU
    assert_eq!(cause.at, stage.world.name("hog"));
    assert!(cause.sentence.contains("most of it"), "{}", cause.sentence);
}

fn few_cpus() {
    let stage = Stage::new("few");
    let cpu = stage.cpus().last().unwrap().to_string();
    stage.make("a");
    stage.world.write(Controller::Cpuset, "a", "cpuset.cpus", &cpu);
    let _load = stage.start("a", &["spin", "3"]);
    let cause = stage.first("a", Kind::FewCpus);
    assert_eq!(number(&cause, "cpuset.cpus"), 1.0);
    if stage.cpus().len() > 1 {
        assert_ne!(stage.world.read(Controller::Cpuset, "a", "cpuset.cpus").trim(), cpu);
    }
}

fn no_cpus() {
    let stage = Stage::new("none");
    stage.make("a");
    stage.world.write(Controller::Cpuset, "a", "cpuset.cpus", "\n");
    let cause = stage.first("a", Kind::NoCpus);
    assert_eq!(cause.effect, Effect::Refused);
    assert_eq!(stage.world.read(Controller::Cpuset, "a", "cpuset.cpus").trim(), stage.cpus().to_string());
}

fn frozen() {
    let stage = Stage::new("frozen");
    stage.make("a");
    let _load = stage.start("a", &["spin"]);
    stage.world.write(Controller::Freezer, "", "freezer.state", "FROZEN");
    let cause = stage.first("a", Kind::Frozen);
    assert_eq!((cause.at, cause.effect), (stage.world.name(""), Effect::Stopped));
    assert_eq!(stage.world.read(Controller::Freezer, "a", "freezer.state").trim(), "THAWED");
}

fn forks() {
    let stage = Stage::new("pids");
    let mut load = stage.start("", &["fork"]);
    assert!(load.is_done()); // its own thread is there
    stage.world.write(Controller::Pids, "", "pids.max", "1");
    let cause = stage.first("", Kind::PidsLimit);
    assert!(number(&cause, "pids.events.max") > 0.0);
    assert_eq!(stage.world.read(Controller::Pids, "", "pids.max").trim(), "8");
}

fn killed() {
    let stage = Stage::new("killed");
    stage.world.write(Controller::Memory, "", "memory.limit_in_bytes", "24M");
    stage.limit_swap("24M");
    let _load = stage.start("", &["outgrow", "64"]);
    let cause = stage.first("", Kind::OutOfMemory);
    assert!(number(&cause, "memory.events.oom_kill") > 0.0);
    assert_eq!(
        stage.world.read(Controller::Memory, "", "memory.limit_in_bytes").trim(),
        (36 << 20).to_string()
    );
}

/// A file of a test, on whatever the build's directory lies on, so that its pages can be dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("rf-test-why-{name}-{}", std::process::id());
        Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn sized(name: &str, mib: usize) -> Scratch {
        let scratch = Scratch::new(name);
        std::fs::write(&scratch.0, vec![7u8; mib << 20]).unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn reread(stage: &Stage, also: fn(&Stage)) -> (Scratch, Load) {
    let file = Scratch::new("file");
    stage.world.write(Controller::Memory, "", "memory.limit_in_bytes", "16M");
    also(stage);
    let mut load = stage.start("", &["reread", file.path(), "48"]);
    assert!(load.is_done(), "the file was not written");
    (file, load)
}

fn reclaim() {
    let stage = Stage::new("reclaim").with_pressure();
    let _load = reread(&stage, |_| ());
    let cause = stage.first_but_cpus("", Kind::MemoryLimit);
    assert!(number(&cause, "memory.events.max") > 0.0);
    assert!(number(&cause, "memory.refaults.file") > 0.0);
    assert_eq!(
        stage.world.read(Controller::Memory, "", "memory.limit_in_bytes").trim(),
        (24 << 20).to_string()
    );
}

/// What is waited for the pages is seen by the tasks' states, and the machine's pressure bounds it.
fn reclaim_bound() {
    let stage = Stage::new("bound");
    let _load = reread(&stage, |stage| stage.limit_swap("16M"));
    let facts = stage.facts("");
    assert_eq!(facts.memory.pressure, None);
    let answer = why(&facts);
    let cause = answer.causes.iter().find(|cause| is_not_of_cpus(cause));
    let cause = cause.unwrap_or_else(|| panic!("no cause: {facts:#?}"));
    assert_eq!(cause.kind, Kind::MemoryLimit, "{answer}\n{facts:#?}");
    assert_ne!(cause.lost.unwrap().known, Known::Measured);
    show(&answer);
}

/// A block device whose data is a file of the test.
struct Loop {
    path: String,
    number: String,
    _file: Scratch,
}

impl Loop {
    fn new(name: &str) -> Loop {
        let file = Scratch::sized(name, 16);
        let output =
            Command::new("losetup").args(["--find", "--show", "--read-only", file.path()]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let number =
            std::fs::read_to_string(format!("/sys/class/block/{}/dev", path.trim_start_matches("/dev/")));
        Loop { number: number.unwrap().trim().to_owned(), path, _file: file }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

/// A busy machine makes the rate fall below the limit, as each operation waits for the kernel's workers too: the cause is
/// known by the time that is not waited at the device, and by a rate above a fifth.
fn limited(stage: &Stage) -> Cause {
    let device = Loop::new("limited");
    let limit = format!("{} 20", device.number);
    stage.world.write(Controller::Io, "", "blkio.throttle.read_iops_device", &limit);
    let _load = stage.start("", &["direct", &device.path]);
    let cause = stage.first_but_cpus("", Kind::IoLimit);
    assert_eq!(number(&cause, "riops"), 20.0);
    let held = stage.world.read(Controller::Io, "", "blkio.throttle.read_iops_device");
    assert_eq!(held.trim(), format!("{} 40", device.number));
    cause
}

fn throttled() {
    let stage = Stage::new("io").with_pressure();
    let cause = limited(&stage);
    let has_v2 = stage.world.host.hierarchies().iter().any(|at| at.version == Version::V2);
    assert_eq!(cause.lost.unwrap().known, if has_v2 { Known::Measured } else { Known::Sampled });
}

fn throttled_v1() {
    let cause = limited(&Stage::new("iov1"));
    assert_eq!(cause.lost.unwrap().known, Known::Sampled);
}

/// How long an operation takes depends on the machine: that the others are told, and by name, does not.
fn io_neighbours() {
    let stage = Stage::new("disk");
    let device = Loop::new("shared");
    ["a", "hog"].iter().for_each(|group| stage.make(group));
    let _own = stage.start("a", &["direct", &device.path]);
    let _others = [(); 2].map(|()| stage.start("hog", &["direct", &device.path]));
    let facts = stage.facts("a");
    let shared = facts.io.devices.iter().find(|known| known.device.to_string() == device.number).unwrap();
    assert_eq!(
        shared.others.first().map(|(group, _)| group.clone()),
        Some(stage.world.name("hog")),
        "{facts:#?}"
    );
    let answer = why(&facts);
    show(&answer);
    let cause = answer.causes.iter().find(|cause| cause.kind == Kind::IoNeighbours);
    let cause = cause.unwrap_or_else(|| panic!("{answer}\n{facts:#?}"));
    assert_eq!(cause.at, stage.world.name("hog"));
    stage.obey(cause.hint.as_ref().unwrap());
}

/// Swap space of a test.
struct Swap(Scratch);

impl Swap {
    /// `None` where this may not be done (a container).
    fn new() -> Option<Swap> {
        let file = Scratch::sized("swap", 96);
        std::fs::set_permissions(&file.0, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let made = Command::new("mkswap").arg(file.path()).output().ok()?.status.success();
        (made && Command::new("swapon").arg(file.path()).output().ok()?.status.success()).then(|| Swap(file))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.0.path()).status();
    }
}

fn swapped() {
    let Some(_swap) = Swap::new() else { return };
    let stage = Stage::new("swap").with_pressure();
    stage.world.write(Controller::Memory, "", "memory.limit_in_bytes", "16M");
    let _load = stage.start("", &["touch", "32"]);
    let cause = stage.first_but_cpus("", Kind::Swap);
    assert!(number(&cause, "memory.refaults.anon") > 0.0);
    assert!(number(&cause, "memory.swap") > 0.0);
}
