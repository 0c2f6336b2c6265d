//! Figures of real load agree with sources that know nothing of groups: what getrusage(2) says of finished children, what
//! fio and dd counted themselves, the machine's own counters, and the kernel's file. Each goes the whole way: recorded by
//! the program, and dumped. Both sides are read while nothing runs, before the load and after it, so no time decides.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::world::{Need, Scene, Ways, World};

type Body = fn(&mut Scene);

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    const TIME: Ways = &[&[Need::V1("cpuacct")], &[Need::V2("cpu")]];
    const IO: Ways = &[&[Need::V1("blkio")], &[Need::V2("io")]];
    const LOOP: Need = Need::Program("losetup");
    let cases: [(&str, Ways, &[Need], Body); 6] = [
        ("CPU time is what getrusage says of the finished children", TIME, &[], cpu),
        (
            "watch, dump and metrics print what /proc says of the tasks, in their units",
            TIME,
            &[Need::On("memory"), Need::On("pids")],
            units,
        ),
        ("throttled time is what cpu.stat says", TIME, &[Need::On("cpu")], throttled),
        ("operations and bytes are those that dd asked for", IO, &[LOOP], dd),
        ("operations are as many as fio counted", IO, &[LOOP, Need::Program("fio")], fio),
        ("swapping is what /proc/vmstat says", &[&[]], &[Need::On("memory"), Need::Program("mkswap")], swap),
    ];
    let trial = |(name, ways, needs, body): (&'static str, Ways, &[Need], Body)| {
        let lacks = world.lacks_ways(ways).or_else(|| world.lacks(&[&[Need::Groups], needs].concat()));
        let world = world.clone();
        suite::trial(format!("agreement: {name}"), lacks, move || body(&mut Scene::new(&world, name)))
    };
    cases.into_iter().map(trial).collect()
}

const FIELDS: &str = "cpu.usage,cpu.throttled.time,cpu.throttled.periods,io.*/*,memory.swap,machine.swap.*";

/// A log of one test, with a sample of each moment that it asks for.
struct Log {
    directory: TempDir,
}

impl Log {
    fn new() -> Log {
        Log { directory: tempfile::tempdir().unwrap() }
    }

    /// All figures of the group and of the machine now, raw: by a recorder and what is dumped of its log.
    fn now(&self, scene: &Scene) -> Sample {
        let log = self.directory.path().join("log");
        let log = log.to_str().unwrap();
        scene.ok(&format!("record {{g}} --directory {log} --count 1"));
        let lines = scene.ok(&format!("dump --directory {log} --raw --json --fields {FIELDS}"));
        Sample(serde_json::from_str(lines.lines().last().unwrap()).unwrap(), scene.group.clone())
    }
}

#[derive(Debug)]
struct Sample(Value, String);

impl Sample {
    fn group(&self, field: &str) -> u64 {
        let figure = &self.0["groups"][&self.1][field];
        figure.as_u64().unwrap_or_else(|| panic!("{field} is {figure}: {}", self.0))
    }

    /// Of a device that may not have been used yet.
    fn device(&self, field: &str, device: &str) -> u64 {
        self.0["groups"][&self.1][format!("{field}/{device}")].as_u64().unwrap_or(0)
    }

    fn machine(&self, field: &str) -> u64 {
        let figure = &self.0["machine"][format!("machine.{field}")];
        figure.as_u64().unwrap_or_else(|| panic!("{field} is {figure}: {}", self.0))
    }
}

fn ready(scene: &Scene) {
    scene.ok("create {g}");
    // without these a v1 group takes no process; where there is no cpuset nothing is to be filled
    let _ = scene.ringfence("set {g} cpuset.cpus=0 cpuset.mems=0", None);
}

/// A shell in the group that waits for a line on its input before it goes on.
struct Load(Child);

impl Load {
    fn new(scene: &mut Scene, script: &str) -> Load {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo; read line; {script}")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // it has started
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        scene.name("{load}", &child.id().to_string());
        let load = Load(child);
        scene.ok("move {g} {load}");
        load
    }

    fn go(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Closes its input and waits for its end; what it printed.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        text
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU time of a shell that counts to that number.
fn counting(to: u32) -> String {
    format!("i=0; while [ $i -lt {to} ]; do i=$((i+1)); done")
}

/// Emulated CPUs take many times as long.
fn few_if_emulated(many: u32) -> u32 {
    if Path::new("/rf-vm").exists() { many / 8 } else { many }
}

fn finished_children() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()).try_into().unwrap()
}

fn cpu(scene: &mut Scene) {
    ready(scene);
    let (log, count) = (Log::new(), counting(50_000));
    let mut load = Load::new(scene, &format!("( {count} ) & ( {count} ) & wait"));
    let first = log.now(scene);
    // what it used before it was in the group counts elsewhere
    let used = fs::read_to_string(format!("/proc/{}/schedstat", load.0.id())).unwrap();
    let elsewhere: u64 = used.split(' ').next().unwrap().parse().unwrap();
    load.go();
    let before = finished_children();
    load.end();
    let spent = finished_children() - before - elsewhere;
    let usage = log.now(scene).group("cpu.usage") - first.group("cpu.usage");
    let difference = usage.abs_diff(spent) as f64 / spent as f64;
    assert!(difference < 0.01, "cpu.usage {usage} ns, getrusage {spent} ns: {difference:.4}");
    shown(&format!("CPU: {usage} ns, getrusage {spent} ns, {:.3} %", difference * 100.0));
}

/// Ticks of `/proc` in a second (USER_HZ, proc_pid_stat(5)), on every processor but Alpha's.
const TICKS: f64 = 100.0;

/// CPU time in nanoseconds, with that of its reaped children, and anonymous memory in bytes: what `/proc` says of a process.
fn said_by_proc(pid: u32) -> (f64, f64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').collect::<Vec<_>>();
    let ticks: u64 = fields[11..15].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
    (ticks as f64 * 1e9 / TICKS, kib.unwrap().parse::<f64>().unwrap() * 1024.0)
}

/// Issue R, point 4. The load holds still while it is looked at.
fn units(scene: &mut Scene) {
    ready(scene);
    let count = counting(few_if_emulated(400_000));
    let script = format!("x=$(head -c 33554432 /dev/zero | tr '\\0' x); {count}; echo; read line; true");
    let mut load = Load::new(scene, &script);
    load.go();
    load.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let (cpu, anon) = said_by_proc(load.0.id());
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    scene.name("{log}", log.to_str().unwrap());
    let fields = "cpu.usage,cpu.user,cpu.system,memory.current,memory.anon,pids.current";
    scene.ok("record {g} --directory {log} --count 1");
    let dumped: Value =
        serde_json::from_str(&scene.ok(&format!("dump --directory {{log}} --raw --json --fields {fields}")))
            .unwrap();
    let watched: Value =
        serde_json::from_str(&scene.ok(&format!("watch {{g}} --once --json --fields {fields}"))).unwrap();
    let metrics = scene.ok("metrics {g}");
    let raw = |field: &str| dumped["groups"][&scene.group][field].as_f64().unwrap();
    let figure = |field: &str| watched["groups"][&scene.group][field].as_f64().unwrap();
    let metric = |name: &str| {
        let head = format!("ringfence_group_{name}{{group=\"{}\"}} ", scene.group);
        let number = metrics.lines().find_map(|line| line.strip_prefix(&head)?.split(' ').next());
        number.unwrap_or_else(|| panic!("no {head}in {metrics}")).parse::<f64>().unwrap()
    };
    let near = |what: &str, one: f64, other: f64, within: f64| {
        assert!((one - other).abs() <= within, "{what}: {one}, {other} by another source");
    };
    // four counts of ticks, each rounded down
    near("cpu.usage of dump", raw("cpu.usage"), cpu, 5e7 + cpu * 0.05);
    // on v1 ticks, of which a guest loses those for which its host runs something else; a wrong unit is 1,000 times off
    let parts = raw("cpu.user") + raw("cpu.system");
    assert!(
        (cpu / 20.0..=cpu * 1.1 + 2e8).contains(&parts),
        "cpu.user and cpu.system of dump: {parts}, {cpu} by another source"
    );
    near(
        "cpu_usage_seconds_total of metrics",
        metric("cpu_usage_seconds_total") * 1e9,
        cpu,
        5e7 + cpu * 0.05,
    );
    // the kernel counts pages per CPU in batches
    let batches = f64::from(4 << 20);
    near("memory.anon of dump", raw("memory.anon"), anon, batches);
    near("memory.anon of watch", figure("memory.anon"), anon, batches);
    near("memory_anon_bytes of metrics", metric("memory_anon_bytes"), anon, batches);
    assert!((anon - batches..anon + 64e6).contains(&raw("memory.current")), "{dumped}");
    near("memory.current of watch", figure("memory.current"), raw("memory.current"), batches);
    near("memory_current_bytes of metrics", metric("memory_current_bytes"), raw("memory.current"), batches);
    for tasks in [raw("pids.current"), figure("pids.current"), metric("pids_current")] {
        assert_eq!(tasks, 1.0);
    }
    assert_eq!(watched["units"]["memory.anon"], "bytes");
    load.end();
    shown(&format!(
        "CPU {} ns, /proc {cpu} ns; anonymous memory {}, /proc {anon}",
        raw("cpu.usage"),
        raw("memory.anon")
    ));
}

fn throttled(scene: &mut Scene) {
    ready(scene);
    let log = Log::new();
    let first = log.now(scene);
    assert_eq!((first.group("cpu.throttled.time"), first.group("cpu.throttled.periods")), (0, 0));
    scene.ok("set {g} cpu.max=10%");
    let mut load = Load::new(scene, &counting(few_if_emulated(40_000)));
    load.go();
    load.end();
    let path = file(scene, "cpu.stat", "nr_throttled");
    let stat_now = || fs::read_to_string(&path).unwrap();
    // the quota's timer may count once more after the end
    let mut found = None;
    scene.until("a moment without throttling", || {
        let stat = stat_now();
        let last = log.now(scene);
        let is_quiet = stat == stat_now();
        found = Some((stat, last));
        is_quiet
    });
    let (stat, last) = found.unwrap();
    let of = |key: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.map(|number| number.parse::<u64>().unwrap())
    };
    let time = of("throttled_time").or_else(|| of("throttled_usec").map(|micros| micros * 1000)).unwrap();
    assert!(time > 0, "a tenth of a CPU stopped it never: {stat}");
    assert_eq!(last.group("cpu.throttled.time"), time);
    assert_eq!(last.group("cpu.throttled.periods"), of("nr_throttled").unwrap());
    shown(&format!("throttled: {time} ns, cpu.stat the same"));
}

/// The group's file below whichever mount has one with this word in it.
fn file(scene: &Scene, name: &str, word: &str) -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mounts = mounts.filter(|fields| fields[2].starts_with("cgroup")).map(|fields| fields[1].to_owned());
    let paths = mounts.flat_map(|mount| {
        let mount = Path::new(&mount).to_owned();
        // below systemd ours are in a unit
        ["", "ringfence.slice/ringfence.service"].map(|base| mount.join(base).join(&scene.group).join(name))
    });
    let has_word = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(word));
    paths.into_iter().find(has_word).unwrap_or_else(|| panic!("no {name} of {}", scene.group))
}

/// A block device that only this test knows.
struct Device {
    path: String,
    number: String,
    _file: TempDir,
}

impl Device {
    fn new() -> Device {
        let directory = tempfile::tempdir_in("/var/tmp").or_else(|_| tempfile::tempdir()).unwrap();
        let file = directory.path().join("disk");
        fs::write(&file, vec![7; 16 << 20]).unwrap();
        // busybox's can't attach and tell where in one: somebody else may take the free one meanwhile
        let attached = (0..100).find_map(|_| {
            let free = Command::new("losetup").arg("-f").output().unwrap();
            assert!(free.status.success(), "{free:?}");
            let path = String::from_utf8(free.stdout).unwrap().trim().to_owned();
            Command::new("losetup").arg(&path).arg(&file).status().unwrap().success().then_some(path)
        });
        let path = attached.unwrap_or_else(|| panic!("no loop device is free"));
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_owned();
        Device { path, number, _file: directory }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).status();
    }
}

/// What one device's figures grew by while a script ran in the group, and what it printed.
fn done_to(scene: &mut Scene, device: &Device, script: &str) -> ([u64; 4], String) {
    // Linux 6.1 counts on v1 only where a limit holds; this one holds back nobody
    scene.ok(&format!("set {{g}} io.max='{} riops=1000000000 wiops=1000000000'", device.path));
    let log = Log::new();
    let first = log.now(scene);
    let mut load = Load::new(scene, script);
    load.go();
    let printed = load.end();
    let last = log.now(scene);
    let grown = ["io.rios", "io.wios", "io.rbytes", "io.wbytes"]
        .map(|field| last.device(field, &device.number) - first.device(field, &device.number));
    (grown, printed)
}

fn dd(scene: &mut Scene) {
    ready(scene);
    let device = Device::new();
    let path = &device.path;
    let reads = format!("dd if={path} of=/dev/null bs=4k count=300 iflag=direct 2>/dev/null");
    let writes = format!("dd if=/dev/zero of={path} bs=8k count=200 oflag=direct conv=notrunc 2>/dev/null");
    let (grown, _) = done_to(scene, &device, &format!("{reads} && {writes}"));
    assert_eq!(grown, [300, 200, 300 * 4096, 200 * 8192]);
    shown(&format!("dd: 300 reads, 200 writes; ours {grown:?}"));
}

fn fio(scene: &mut Scene) {
    ready(scene);
    let device = Device::new();
    let job = "--rw=randrw --bs=4k --size=16m --direct=1 --ioengine=psync --output-format=json";
    let script = format!("exec fio --name=mixed --filename={} {job}", device.path);
    let (grown, printed) = done_to(scene, &device, &script);
    let told: Value = serde_json::from_str(&printed).unwrap();
    let of = |way: &str, what: &str| told["jobs"][0][way][what].as_u64().unwrap();
    let fios =
        [of("read", "total_ios"), of("write", "total_ios"), of("read", "io_bytes"), of("write", "io_bytes")];
    assert!(fios[0] > 0 && fios[1] > 0, "{printed}");
    assert_eq!(grown, fios);
    shown(&format!("fio: {fios:?}; ours {grown:?}"));
}

/// Swap space, as the machine has it or of this test's own.
enum Swap {
    Machines,
    Own(TempDir),
}

impl Swap {
    /// `None` where that is not allowed (a container).
    fn new() -> Option<Swap> {
        if fs::read_to_string("/proc/swaps").unwrap().lines().count() > 1 {
            return Some(Swap::Machines);
        }
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = directory.path().join("swap");
        // on the disk before anything is swapped: writing both at once may take longer than the kernel waits before it kills
        let mut made = File::create(&file).unwrap();
        made.write_all(&vec![0; 64 << 20]).and_then(|()| made.sync_all()).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let done = |program| Command::new(program).arg(&file).output().unwrap().status.success();
        (done("mkswap") && done("swapon")).then_some(Swap::Own(directory))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if let Swap::Own(directory) = self {
            let _ = Command::new("swapoff").arg(directory.path().join("swap")).status();
        }
    }
}

/// Pages read from swap and written there.
fn swapped() -> [u64; 2] {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    ["pswpin ", "pswpout "]
        .map(|key| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().parse().unwrap())
}

/// A sample while nothing is swapped, and what the kernel said just then.
fn quiet(log: &Log, scene: &Scene) -> (Sample, [u64; 2]) {
    let mut found = None;
    scene.until("a moment without swapping", || {
        let before = swapped();
        let sample = log.now(scene);
        let is_quiet = before == swapped();
        found = is_quiet.then_some((sample, before));
        is_quiet
    });
    found.unwrap()
}

/// What the group's processes say themselves, in bytes.
fn swap_of_processes(scene: &Scene) -> u64 {
    let numbers = fs::read_to_string(file(scene, "cgroup.procs", &scene.fill("{load}"))).unwrap();
    let of = |pid: &str| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    numbers.lines().filter_map(of).sum::<u64>() << 10
}

fn swap(scene: &mut Scene) {
    let Some(_swap) = Swap::new() else { return };
    ready(scene);
    scene.ok("set {g} memory.max=16M");
    let log = Log::new();
    // no zeros, which the kernel would not write; `tail` keeps a line that never ends. It grows slowly, as a kernel whose
    // disk lags behind kills who has nothing but pages that were just used
    let script = "(for i in $(seq 64); do head -c 524288 /dev/zero | tr '\\0' x; sleep 0.02; done; cat) \
        | tail -n 1 | tail -c 1";
    let mut load = Load::new(scene, script);
    let (first, before) = quiet(&log, scene);
    load.go();
    scene.until("half of it in swap", || log.now(scene).group("memory.swap") >= 8 << 20);
    let swap = quiet(&log, scene).0.group("memory.swap");
    let of_processes = swap_of_processes(scene);
    // what is in both, read ahead or not yet given up, counts as memory or as swap: at most all of the group's memory
    let difference = swap.abs_diff(of_processes);
    assert!(difference <= 16 << 20, "{of_processes} bytes of processes, {swap} of the group");
    // one page at least is x's: what was written comes back
    assert_eq!(load.end(), "x");
    let (last, after) = quiet(&log, scene);
    let grown = ["swap.in", "swap.out"].map(|field| last.machine(field) - first.machine(field));
    assert_eq!(grown, [after[0] - before[0], after[1] - before[1]]);
    assert!(grown.into_iter().all(|pages| pages > 0), "{grown:?}");
    assert!((8 << 20..=40 << 20).contains(&swap), "{swap} bytes of the group in swap");
    assert!(first.group("memory.swap") == 0 && last.group("memory.swap") < swap, "{last:?}");
    shown(&format!(
        "swap: {grown:?} pages in and out, /proc/vmstat the same; the group held {swap} bytes there, its processes {of_processes}"
    ));
}

/// What was seen, for the one who runs the tests by hand.
fn shown(text: &str) {
    if std::env::var_os("RF_SHOW").is_some() {
        eprintln!("{text}");
    }
}
