//! Latency sources whose answer never ends: SIGTERM still ends the daemon and the programs that it started.

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    Case,
    world::{Daemon, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_program_that_never_ends_does_not_keep_the_daemon_from_its_end", command),
        ("a_log_without_end_does_not_keep_the_daemon_from_its_end", log),
        ("a_server_that_sends_byte_by_byte_does_not_keep_the_daemon_from_its_end", dribble),
        ("a_server_with_buckets_without_end_does_not_keep_the_daemon_from_its_end", buckets),
    ]
}

/// The time that a source has for an answer: the longest that a layout may give.
const EVERY: &str = "60s";
/// Half of that, so that no daemon passes that waits for its source. systemd would kill it after 90 s; one takes milliseconds.
const ENOUGH: Duration = Duration::from_secs(30);

/// An elastic group with this source, and the daemon that follows it.
fn daemon(world: &mut World, source: &str, every: &str) -> Daemon {
    let group = world.group_name("endless");
    world.write(
        "layout.toml",
        &format!(
            "[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n\
             latency = {{ {source}, p99 = '5ms', every = '{every}' }}\n"
        ),
    );
    world.daemon(&[])
}

fn ends(mut daemon: Daemon) {
    let pid = daemon.pid();
    let start = Instant::now();
    daemon.signal(Signal::TERM);
    let status = loop {
        if let Some(status) = daemon.ended() {
            break status;
        }
        if start.elapsed() > ENOUGH {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            let say = |task: fs::DirEntry| {
                let of = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
                format!("{} {}", of("comm").trim(), of("stat"))
            };
            let threads: String = threads.map(|task| say(task.unwrap())).collect();
            panic!("it still runs {ENOUGH:?} after SIGTERM:\n{threads}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    eprintln!("ended {:?} after SIGTERM", start.elapsed());
    assert!(status.success(), "{status}\n{}", daemon.log());
}

fn command() {
    let mut world = World::new();
    let file = world.directory.join("pids");
    // neither hears SIGTERM
    let script = format!(
        "trap \"\" TERM; sleep 3600 & echo $! > {0}.new; echo $$ >> {0}.new; mv {0}.new {0}; wait",
        file.display()
    );
    let source = format!("command = ['/bin/sh', '-c', '{script}']");
    let daemon = daemon(&mut world, &source, EVERY);
    eventually("the program runs", || file.exists());
    let pids = fs::read_to_string(&file).unwrap();
    ends(daemon);
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        eventually(&format!("{pid} is gone"), || has_ended(pid));
    }
}

/// A zombie counts: nobody may wait for it in a guest without a real init.
fn has_ended(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// What writes, answers or sends until the case ends.
struct Endless {
    stop: Arc<AtomicBool>,
    /// How often it did.
    times: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Endless {
    /// `work`: one piece, until it is stopped.
    fn new(mut work: impl FnMut(&AtomicUsize) + Send + 'static) -> Endless {
        let (stop, times) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&times));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                work(&counted);
            }
        });
        Endless { stop, times, thread: Some(thread) }
    }

    /// A server of loopback that sends this again and again, each time after a pause, to each who asks until he goes.
    fn server(part: Vec<u8>, pause: Duration) -> (Endless, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut asked: Vec<TcpStream> = Vec::new();
        let work = move |times: &AtomicUsize| {
            while let Ok((mut stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                // one that reads no more must not hold up the end of the case
                stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
                asked.push(stream);
            }
            asked.retain_mut(|stream| {
                let is_sent = stream.write_all(&part).is_ok();
                times.fetch_add(usize::from(is_sent), Relaxed);
                is_sent
            });
            std::thread::sleep(pause);
        };
        (
            Endless::new(work),
            format!("prometheus = 'http://{address}/metrics', metric = 'request', unit = 's'"),
        )
    }

    fn has_done(&self, times: usize) -> bool {
        self.times.load(Relaxed) >= times
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn log() {
    let mut world = World::new();
    let file = world.directory.join("requests.log");
    fs::write(&file, "").unwrap();
    let source = format!("log = '{}', pattern = 'took ([0-9.]+ ms)'", file.display());
    let lines = "request took 1.5 ms\n".repeat(5_000);
    let writer = Endless::new(move |times| {
        append(&file, &lines);
        times.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    });
    let daemon = daemon(&mut world, &source, "100ms");
    let before = writer.times.load(Relaxed);
    eventually("it goes on while the daemon reads", || writer.has_done(before + 20));
    ends(daemon);
}

/// From its start again once it is long: a test fills no disk.
fn append(file: &Path, text: &str) {
    let mut log = fs::OpenOptions::new().append(true).open(file).unwrap();
    if log.metadata().unwrap().len() > 16 << 20 {
        log.set_len(0).unwrap();
    }
    log.write_all(text.as_bytes()).unwrap();
}

fn dribble() {
    let mut world = World::new();
    let (server, source) = Endless::server(b"#".to_vec(), Duration::from_millis(20));
    let daemon = daemon(&mut world, &source, EVERY);
    eventually("an answer is under way", || server.has_done(10));
    ends(daemon);
}

fn buckets() {
    let mut world = World::new();
    let mut part = String::new();
    for bucket in 0..20_000 {
        writeln!(part, "request_bucket{{le=\"{bucket}.5\"}} 1").unwrap();
    }
    let (server, source) = Endless::server(part.into_bytes(), Duration::ZERO);
    let daemon = daemon(&mut world, &source, "1s");
    // more than an answer may have: at least one is read
    eventually("answers are read", || server.has_done(50));
    ends(daemon);
}
