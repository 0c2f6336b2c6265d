//! Groups of a test of `why` on whichever hierarchies this machine has, settings by their common names, and the way to
//! ask and to do what was answered. What is v1's or v2's alone is with the tests that need it.

use std::time::{Duration, Instant};

use kernel::{Access, GroupName, Hierarchy, Host, Real};
use monitor::Descriptors;
use settings::{Controller, Version};
use why::{Answer, Cause, Facts, Kind, gather, why};

use crate::load::Load;

/// What the causes are made with, and where v1 has hierarchies of their own for figures and freezing.
const CONTROLLERS: [Controller; 7] = [
    Controller::Cpu,
    Controller::Memory,
    Controller::Pids,
    Controller::Cpuset,
    Controller::Io,
    Controller::Cpuacct,
    Controller::Freezer,
];
const NEEDED: usize = 5;

/// Which version of cgroups holds a controller here.
pub fn version(of: Controller) -> Option<Version> {
    let host = Host::new(Box::new(Real::new())).ok()?;
    host.hierarchy_of(of).map(|at| at.version)
}

/// Are the controllers there that the tests make causes with?
pub fn is_possible() -> bool {
    CONTROLLERS[..NEEDED].iter().all(|controller| version(*controller).is_some())
}

/// Groups of a test, removed when it ends.
pub struct Stage {
    pub host: Host,
    pub top: String,
}

impl Stage {
    pub fn new(name: &str) -> Stage {
        let host = Host::new(Box::new(Real::new())).unwrap();
        let stage = Stage { host, top: format!("rf-test-why-{name}-{}", std::process::id()) };
        stage.make("");
        stage
    }

    pub fn name(&self, below: &str) -> String {
        if below.is_empty() { self.top.clone() } else { format!("{}/{below}", self.top) }
    }

    pub fn group(&self, below: &str) -> GroupName {
        GroupName::new(&self.name(below)).unwrap()
    }

    /// A group with all CPUs and nodes and the greatest weight.
    pub fn make(&self, below: &str) {
        let here = |one: &Controller| self.host.hierarchy_of(*one).is_some();
        let controllers: Vec<Controller> = CONTROLLERS.into_iter().filter(here).collect();
        let group = self.group(below);
        self.host.create(&group, Some(&controllers), &Access::default()).unwrap();
        if version(Controller::Cpuset) == Some(Version::V1) {
            let seat = self.host.seat(&group, Controller::Cpuset).unwrap();
            let parent = seat.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let all = self.host.kernel().read(seat.at, parent, file).unwrap();
                self.host.kernel().write(seat.at, &seat.path, file, all.trim()).unwrap();
            }
        }
        self.set(below, "cpu.weight=10000");
    }

    /// Has the kernel count the group's pressure too, where it has v2 beside v1.
    pub fn with_pressure(self) -> Stage {
        let missing = |at: &&Hierarchy| {
            at.version == Version::V2
                && !self.host.kernel().exists(at, &self.host.seat_in(at, &self.group("")).path)
        };
        for at in self.host.hierarchies().iter().filter(missing) {
            self.host.kernel().mkdir(at, &self.host.seat_in(at, &self.group("")).path).unwrap();
        }
        self
    }

    /// `SETTING=VALUE`, as `ringfence set` does it.
    pub fn set(&self, below: &str, setting: &str) {
        self.set_of(&self.group(below), &[setting]).unwrap_or_else(|error| panic!("{setting}: {error}"));
    }

    fn set_of(&self, group: &GroupName, settings: &[&str]) -> Result<(), apply::Error> {
        let request = |setting: &&str| {
            let (name, value) = setting.split_once('=').unwrap();
            let found = settings::find(name).unwrap();
            let value = found.parse(value, &settings::NoMachine).unwrap();
            let place = apply::place(&self.host, group, &found)?;
            Ok(plan::SettingRequest { group: group.clone(), place, found, value })
        };
        let requests: Vec<plan::SettingRequest> =
            settings.iter().map(request).collect::<Result<_, apply::Error>>()?;
        apply::set(&self.host, &requests).map(|_| ())
    }

    /// Has this kernel the setting?
    pub fn has(&self, setting: &str) -> bool {
        let found = settings::find(setting).unwrap();
        apply::get(&self.host, &self.group(""), &found).is_ok()
    }

    /// What `ringfence get` shows.
    pub fn value(&self, below: &str, setting: &str) -> String {
        let found = settings::find(setting).unwrap();
        found.show(&apply::get(&self.host, &self.group(below), &found).unwrap().value)
    }

    pub fn cpus(&self) -> units::CpuSet {
        self.value("", "cpuset.cpus.effective").parse().unwrap()
    }

    /// A process in the group that waits to be let go.
    pub fn waiting(&self, below: &str, words: &[&str]) -> Load {
        let load = Load::new(words);
        for seat in self.host.existing(&self.group(below)).unwrap() {
            self.host.kernel().write(seat.at, &seat.path, "cgroup.procs", &load.pid().to_string()).unwrap();
        }
        load
    }

    /// A process of the group that does something.
    pub fn start(&self, below: &str, words: &[&str]) -> Load {
        let mut load = self.waiting(below, words);
        load.go();
        load
    }

    pub fn freeze(&self, below: &str, frozen: bool) {
        kernel::set_frozen(&self.host, &self.group(below), frozen, Duration::from_secs(60)).unwrap();
    }

    pub fn facts(&self, below: &str) -> Facts {
        gather(
            &self.host,
            Descriptors::new(),
            &self.group(below),
            &units::CpuSet::new(),
            Duration::from_secs(2),
        )
        .unwrap()
    }

    pub fn answer(&self, below: &str) -> Answer {
        let answer = why(&self.facts(below));
        show(&answer);
        answer
    }

    /// Looks until something was seen to happen during a look: what that one shows is judged.
    pub fn facts_when(&self, below: &str, state: &str, is_so: impl Fn(&Facts) -> bool) -> Facts {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let facts = self.facts(below);
            if is_so(&facts) {
                return facts;
            }
            assert!(Instant::now() < deadline, "not seen within a minute: {state}: {facts:#?}");
        }
    }

    /// The first cause, which shall be this one, and whose command is carried out.
    pub fn first(&self, below: &str, kind: Kind) -> Cause {
        self.first_in(&self.facts(below), kind)
    }

    pub fn first_in(&self, facts: &Facts, kind: Kind) -> Cause {
        self.first_of(facts, kind, |_| true)
    }

    /// The same of the causes that are not others' work on the CPUs.
    pub fn first_but_cpus(&self, facts: &Facts, kind: Kind) -> Cause {
        self.first_of(facts, kind, is_not_of_cpus)
    }

    fn first_of(&self, facts: &Facts, kind: Kind, wanted: fn(&Cause) -> bool) -> Cause {
        let answer = why(facts);
        show(&answer);
        let first = answer.causes.iter().find(|cause| wanted(cause));
        let cause = first.unwrap_or_else(|| panic!("no cause: {facts:#?}")).clone();
        assert_eq!(cause.kind, kind, "{answer}\n{facts:#?}");
        assert!(answer.causes.iter().all(|other| other.effect >= cause.effect), "{answer}");
        cause.hint.iter().for_each(|hint| self.obey(hint));
        cause
    }

    /// Does what a hint says, as a shell and the command line would.
    pub fn obey(&self, hint: &str) {
        hint.split(" && ").for_each(|command| self.obey_one(command));
    }

    fn obey_one(&self, hint: &str) {
        let words = shlex::split(hint).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["ringfence", command, group, values @ ..] = words.as_slice() else { panic!("{hint}") };
        assert!(group.starts_with("rf-test-"), "{hint}");
        let group = GroupName::new(group).unwrap();
        match *command {
            "thaw" => _ = kernel::set_frozen(&self.host, &group, false, Duration::from_secs(60)).unwrap(),
            "set" => self.set_of(&group, values).unwrap_or_else(|error| panic!("{hint}: {error}")),
            _ => panic!("{hint}"),
        }
    }

    /// No more memory and swap together than `limit`: v1 has a limit of both, v2 one of swap.
    pub fn limit_swap(&self, below: &str, memory_and_swap: &str) {
        let group = self.group(below);
        match version(Controller::Memory) {
            // a kernel without swap has neither
            Some(Version::V1) => {
                _ = self.set_of(&group, &[&format!("memory.memsw.limit_in_bytes={memory_and_swap}")]);
            }
            _ => _ = self.set_of(&group, &["memory.swap.max=0"]),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // processes that were killed leave their groups in a moment
        for _ in 0..1000 {
            let mut left = false;
            for at in self.host.hierarchies() {
                let top = self.host.seat_in(at, &self.group("")).path;
                let below = self.host.kernel().descendants(at, &top).unwrap_or_default();
                for group in below.iter().rev().map(String::as_str).chain([top.as_str()]) {
                    left |= self.host.kernel().rmdir(at, group) == Err(rustix::io::Errno::BUSY);
                }
            }
            if !left {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub fn is_not_of_cpus(cause: &Cause) -> bool {
    !matches!(cause.kind, Kind::Neighbours | Kind::FewCpus)
}

/// What a reader would see, for the one who runs the tests by hand.
fn show(answer: &Answer) {
    if std::env::var_os("RF_SHOW").is_some() {
        let text = format!("{answer}\n");
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
    }
}

pub fn number(cause: &Cause, name: &str) -> f64 {
    cause.numbers.iter().find(|number| number.name == name).unwrap().value
}
