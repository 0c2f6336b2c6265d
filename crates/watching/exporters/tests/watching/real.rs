//! On this machine's own v1 hierarchies: figures agree with sources of other kinds, and groups come and go.

use std::time::{Duration, Instant};

use fake::suite;
use kernel::{GroupName, Hierarchy};
use libtest_mimic::Trial;
use monitor::{
    Beat, Buffer, Cadence, Descriptors, Elsewhere, Files, Groups, Options, Reading, Sampler, Window,
};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use rustix::io::Errno;
use settings::Controller;

use crate::{allocations, load::Load, world::World};

pub fn trials() -> Vec<Trial> {
    let controllers =
        [Controller::Cpu, Controller::Cpuacct, Controller::Memory, Controller::Pids, Controller::Cpuset];
    let has_all = controllers.into_iter().all(World::has_v1);
    let lacks = (!has_all).then_some("cpu, cpuacct, memory, pids and cpuset on v1");
    let lacks = lacks.or((!rustix::process::geteuid().is_root()).then_some("root"));
    let trial = |name, case: fn()| suite::trial(name, lacks.map(str::to_owned), case);
    vec![
        trial("CPU time is what getrusage says of the finished children", cpu_time),
        trial("tasks are counted as they start and end", tasks_counted),
        trial("memory that a process takes is shown, and its end by the limit", memory),
        trial("throttled time is what cpu.stat says", throttled),
        trial("a frozen group is shown", frozen),
        trial("the last CPU of each task follows a live change", last_cpu),
        trial("groups that come and go are seen with the next sample but one", groups_come_and_go),
        trial("a group elsewhere that goes and comes back is seen again", elsewhere),
        trial("a group made again under an old name has nothing of the old one's", made_again),
        trial("what is read less often is read in its turn, or when that is requested", paces),
        trial("a sample allocates nothing while nothing changes", no_allocation),
        trial("with few descriptors the same figures are read", few_descriptors),
        trial("figures of the machine are there", machine),
        trial("a cadence drives samples and windows make rates", cadence),
    ]
}

fn finished_children() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()) as u64
}

fn cpu_time() {
    let world = World::new("cpu");
    let mut sampler = world.sampler(1);
    let before = finished_children();
    let mut loads: Vec<Load> = (0..2).map(|_| Load::new(&["burn", "700"])).collect();
    let elsewhere: u64 = loads.iter().map(Load::used).sum();
    loads.iter().for_each(|load| world.put("", load.pid()));
    loads.iter_mut().for_each(Load::go);
    loads.into_iter().for_each(Load::end);
    let spent = finished_children() - before - elsewhere;
    let usage = world.now(&mut sampler, "", "cpu.usage").at().unwrap();
    let difference = usage.abs_diff(spent) as f64 / spent as f64;
    assert!(difference < 0.01, "cpu.usage {usage} ns, getrusage {spent} ns: {difference:.4}");
    let table = &sampler.sample().groups;
    let get = |field| table.get(&world.top, field).at().unwrap();
    let parts = get("cpu.user") + get("cpu.system");
    // most kernels distinguish these by what runs at a tick, and a hypervisor may lose many of those
    assert!(parts > 0 && parts < usage * 2, "{parts} {usage}");
    let row = table.row(&world.top).unwrap();
    let percpu: u64 = table.columns().named("cpu.percpu").filter_map(|at| table.reading(row, at).at()).sum();
    assert_eq!(percpu, usage);
}

fn tasks_counted() {
    let world = World::new("pids");
    world.make("inner");
    let mut sampler = world.sampler(1);
    let mut load = Load::new(&["threads", "5"]);
    world.put("inner", load.pid());
    assert_eq!(world.now(&mut sampler, "inner", "pids.current"), Reading::At(1));
    load.go();
    assert!(load.is_done());
    assert_eq!(world.now(&mut sampler, "", "pids.current"), Reading::At(6));
    let found = monitor::tasks(&world.host, &GroupName::new(&world.top).unwrap()).unwrap();
    assert_eq!(found.len(), 6);
    assert!(found.iter().all(|task| task.group == world.name("inner") && task.process.tgid == load.pid()));
    load.end();
    assert_eq!(world.now(&mut sampler, "", "pids.current"), Reading::At(0));
    world.write(Controller::Pids, "", "pids.max", "7");
    assert_eq!(world.now(&mut sampler, "", "pids.max"), Reading::At(7));
    assert_eq!(world.now(&mut sampler, "inner", "pids.max"), Reading::Max);
}

fn memory() {
    let world = World::new("memory");
    let mut sampler = world.sampler(1);
    let mut load = Load::new(&["take", "32"]);
    world.put("", load.pid());
    load.go();
    assert!(load.is_done());
    let anon = world.now(&mut sampler, "", "memory.anon").at().unwrap();
    // the kernel sums up what its CPUs counted only now and then
    assert!((30 << 20..40 << 20).contains(&anon), "{anon}");
    let table = &sampler.sample().groups;
    let row = table.row(&world.top).unwrap();
    let nodes: u64 =
        table.columns().named("memory.node.anon").filter_map(|at| table.reading(row, at).at()).sum();
    assert!(nodes >= 30 << 20, "{nodes}");
    assert!(table.get(&world.top, "memory.current").at().unwrap() >= anon);
    load.end();
    world.write(Controller::Memory, "", "memory.limit_in_bytes", "16M");
    world.write(Controller::Memory, "", "memory.memsw.limit_in_bytes", "20M");
    let mut killed = Load::new(&["take", "64"]);
    world.put("", killed.pid());
    killed.go();
    assert!(!killed.is_done(), "64 MiB fit into 16");
    killed.end();
    assert_eq!(world.now(&mut sampler, "", "memory.events.oom_kill"), Reading::At(1));
    let table = &sampler.sample().groups;
    assert_eq!(table.get(&world.top, "memory.max"), Reading::At(16 << 20));
    let met = world.read(Controller::Memory, "", "memory.failcnt").trim().parse().unwrap();
    assert!(met > 0);
    assert_eq!(table.get(&world.top, "memory.events.max"), Reading::At(met));
}

fn throttled() {
    let world = World::new("quota");
    let mut sampler = world.sampler(1);
    world.write(Controller::Cpu, "", "cpu.cfs_quota_us", "5000");
    let mut load = Load::new(&["burn", "40"]);
    world.put("", load.pid());
    load.go();
    load.end();
    // the quota's timer may count once more after the end
    let mut stat = world.read(Controller::Cpu, "", "cpu.stat");
    let time = loop {
        let time = world.now(&mut sampler, "", "cpu.throttled.time");
        let after = world.read(Controller::Cpu, "", "cpu.stat");
        if std::mem::replace(&mut stat, after.clone()) == after {
            break time;
        }
    };
    let of = |key: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        Reading::At(line.trim().parse().unwrap())
    };
    assert_eq!(time, of("throttled_time"));
    assert!(time.at().unwrap() > 100_000_000, "40 ms at 5 ms in 100 stop it for long: {time:?}");
    let table = &sampler.sample().groups;
    assert_eq!(table.get(&world.top, "cpu.throttled.periods"), of("nr_throttled"));
    assert_eq!(table.get(&world.top, "cpu.max.quota"), Reading::At(5_000_000));
}

fn frozen() {
    if !World::has_v1(Controller::Freezer) {
        return; // that v2 says so too is seen on the in-memory kernel
    }
    let world = World::new("freezer");
    let mut sampler = world.sampler(1);
    assert_eq!(world.now(&mut sampler, "", "frozen"), Reading::At(0));
    world.write(Controller::Freezer, "", "freezer.state", "FROZEN");
    assert_eq!(world.now(&mut sampler, "", "frozen"), Reading::At(1));
    world.write(Controller::Freezer, "", "freezer.state", "THAWED");
}

/// Study S5's proof.
fn last_cpu() {
    let world = World::new("last");
    let all = world.read(Controller::Cpuset, "", "cpuset.cpus");
    let cpus: units::CpuSet = all.trim().parse().unwrap();
    let mut load = Load::new(&["spin"]);
    world.put("", load.pid());
    load.go();
    assert!(load.is_done());
    let group = GroupName::new(&world.top).unwrap();
    for cpu in [cpus.first().unwrap(), cpus.last().unwrap()] {
        world.write(Controller::Cpuset, "", "cpuset.cpus", &cpu.to_string());
        let deadline = Instant::now() + Duration::from_secs(60);
        // a task that sleeps keeps its last CPU: the one that spins moves
        while !monitor::tasks(&world.host, &group).unwrap().iter().any(|task| {
            task.process.last_cpu as usize == cpu
                && task.scheduled.is_none_or(|scheduled| scheduled.ran > Duration::ZERO)
        }) {
            assert!(Instant::now() < deadline, "no task of {group} ran on CPU {cpu}");
        }
    }
}

fn groups_come_and_go() {
    let world = World::new("groups");
    let mut sampler = world.sampler(1000);
    let names = |sampler: &mut Sampler<Descriptors>| {
        (0..2).for_each(|_| _ = sampler.tick(&world.host, Beat::default()).unwrap());
        sampler.sample().groups.rows().to_vec()
    };
    assert_eq!(names(&mut sampler), [world.name("")]);
    world.make("a");
    world.make("a/b");
    world.make("c");
    assert_eq!(names(&mut sampler), [world.name(""), world.name("a"), world.name("a/b"), world.name("c")]);
    world.make("a/b/d");
    world.remove("c");
    assert_eq!(
        names(&mut sampler),
        [world.name(""), world.name("a"), world.name("a/b"), world.name("a/b/d")]
    );
}

fn made_again() {
    let world = World::new("again");
    world.make("a");
    let mut sampler = world.sampler(1000);
    let load = Load::new(&["burn", "1"]);
    world.put("a", load.pid());
    assert_eq!(world.next(&mut sampler, "a", "pids.current"), Reading::At(1));
    load.end();
    world.remove("a");
    world.make("a");
    let usage = world.next(&mut sampler, "a", "cpu.usage");
    let usage = if usage == Reading::Missing { world.next(&mut sampler, "a", "cpu.usage") } else { usage };
    assert_eq!(usage, Reading::At(0));
}

/// Each pace has its beat, and a refresh reads all.
fn paces() {
    let world = World::new("paces");
    let mut sampler = world.sampler(2);
    let figures = |sampler: &mut Sampler<Descriptors>| {
        let table = &sampler.tick(&world.host, Beat::default()).unwrap().groups;
        ["pids.current", "pids.events.max", "pids.max"].map(|field| table.get(&world.top, field))
    };
    assert_eq!(figures(&mut sampler), [Reading::At(0), Reading::At(0), Reading::Max]);
    world.write(Controller::Pids, "", "pids.max", "1");
    let mut two = Load::new(&["threads", "1"]);
    world.put("", two.pid());
    two.go();
    assert!(!two.is_done(), "a second thread began above the limit");
    two.end();
    let mut seen = [None; 3];
    for number in 1..20 {
        let now = figures(&mut sampler);
        let wanted = [Reading::At(0), Reading::At(1), Reading::At(1)];
        (0..3).filter(|of| now[*of] == wanted[*of]).for_each(|of| _ = seen[of].get_or_insert(number));
    }
    let [tick, slow, seldom] = seen.map(|number| number.unwrap_or(usize::MAX));
    assert!(tick == 1 && slow <= 2 && slow < seldom && seldom <= 12, "{seen:?}");
    world.write(Controller::Pids, "", "pids.max", "max");
    sampler.refresh();
    assert_eq!(figures(&mut sampler)[2], Reading::Max);
}

fn no_allocation() {
    let world = World::new("steady");
    (0..20).for_each(|number| world.make(&format!("g{number}")));
    let mut sampler = world.sampler(u64::MAX);
    let mut window = Window::new(1);
    for _ in 0..4 {
        sampler.tick(&world.host, Beat::default()).unwrap();
        window.push(sampler.sample());
    }
    let allocated = allocations::during(|| {
        for _ in 0..10 {
            sampler.tick(&world.host, Beat::default()).unwrap();
            window.push(sampler.sample());
        }
    });
    assert_eq!(allocated, 0);
    assert_eq!(sampler.sample().groups.rows().len(), 21);
}

/// Descriptors of which only three may stay open.
struct Few(Descriptors);

impl Files for Few {
    type Open = <Descriptors as Files>::Open;
    fn open(&self, at: &Hierarchy, group: &str, file: &str) -> Result<Self::Open, Errno> {
        self.0.open(at, group, file)
    }
    fn open_outside(&self, path: &str) -> Result<Self::Open, Errno> {
        self.0.open_outside(path)
    }
    fn read(&self, file: &Self::Open, into: &mut Buffer) -> Result<(), Errno> {
        self.0.read(file, into)
    }
    fn at_most(&self) -> usize {
        3
    }
}

/// A unit that is restarted: it comes back before it is asked for again.
fn elsewhere() {
    let world = World::new("elsewhere");
    for name in ["ours", "unit"] {
        world.make(name);
    }
    let [ours, unit] = ["ours", "unit"].map(|name| GroupName::new(&world.name(name)).unwrap());
    let options = Options { groups: Groups::Named(vec![ours]), slow_every: 4 };
    let mut sampler =
        Sampler::new(&world.host, Descriptors::new(), options, true).also(Elsewhere::new(move |host| {
            [unit.clone()].into_iter().filter(|name| !host.seats(name).is_empty()).collect()
        }));
    let mut is_seen = || world.next(&mut sampler, "unit", "pids.current") == Reading::At(0);
    assert!(is_seen());
    world.remove("unit");
    is_seen();
    assert!(!is_seen());
    world.make("unit");
    is_seen();
    assert!((0..4).any(|_| is_seen()));
}

fn few_descriptors() {
    let world = World::new("few");
    world.make("a");
    let mut many = world.sampler(1);
    let mut few = Sampler::new(&world.host, Few(Descriptors::new()), world.options(1), true);
    many.tick(&world.host, Beat::default()).unwrap();
    few.tick(&world.host, Beat::default()).unwrap();
    assert_eq!(few.open_files(), 3);
    assert!(many.open_files() > 3);
    let before = many.sample().groups.clone();
    many.refresh();
    let many = &many.tick(&world.host, Beat::default()).unwrap().groups;
    let few = &few.sample().groups;
    assert_eq!(many.rows(), few.rows());
    for row in 0..2 {
        for column in 0..many.columns().list().len() {
            let name = many.columns().list()[column].field.name;
            // what the kernel took for making groups is given back in its own time
            if before.reading(row, column) == many.reading(row, column) {
                assert_eq!(many.reading(row, column), few.reading(row, column), "{name}");
            }
        }
    }
    assert_eq!(few.get(&world.name("a"), "pids.current"), Reading::At(0));
}

fn machine() {
    let world = World::new("machine");
    let mut sampler = world.sampler(1);
    let table = &sampler.tick(&world.host, Beat::default()).unwrap().machine;
    let cpus = std::thread::available_parallelism().unwrap().get();
    for name in ["cpu.user", "cpu.steal", "interrupts"] {
        let shown =
            table.columns().named(name).filter(|at| table.reading(0, *at) != Reading::Missing).count();
        assert!(shown >= cpus, "{name}: {shown} of {cpus}");
    }
    for name in
        ["forks", "tasks.running", "load", "memory.total", "memory.free", "swap.out", "memory.node.free"]
    {
        assert!(table.get("", name).at().is_some(), "{name}");
    }
    let free = table.get("", "memory.free").at().unwrap();
    assert!(free < table.get("", "memory.total").at().unwrap());
}

fn cadence() {
    let world = World::new("cadence");
    let mut sampler = world.sampler(2);
    let mut load = Load::new(&["spin"]);
    world.put("", load.pid());
    load.go();
    assert!(load.is_done());
    let mut cadence = Cadence::new(Duration::from_millis(50)).unwrap();
    let mut window = Window::new(2);
    let mut beats = 0;
    let mut sampled = |window: &mut Window| {
        let beat = cadence.wait().unwrap();
        window.push(sampler.tick(&world.host, beat).unwrap());
        beats += 1;
        assert_eq!(window.newest().unwrap().number, beats - 1);
    };
    (0..8).for_each(|_| sampled(&mut window));
    let uses = |window: &Window, name: &str| {
        let table = &window.newest().unwrap().groups;
        let column = table.columns().named(name).next().unwrap();
        window.group(table.row(&world.top).unwrap(), column).unwrap().value.unwrap()
    };
    for name in ["cpu.usage", "cpu.user"] {
        // on a busy machine a thread may get nothing for some samples
        let deadline = Instant::now() + Duration::from_secs(60);
        while uses(&window, name) == 0.0 {
            assert!(Instant::now() < deadline, "{name}: a thread uses no CPU");
            sampled(&mut window);
        }
        assert!(uses(&window, name) < 2.0, "{name}: a thread uses {} CPUs", uses(&window, name));
    }
}
