//! Elastic groups whose latency is measured: a program, a log and a server report it. Their groups do nothing, so that only the
//! latency can make them grow; a source that is gone leaves the decision to their waiting.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use apply::{Measured, Resize, Resizes, Says};

use crate::{
    Case,
    elastic::{allowed, busy, drifts, sleeper, state},
    metrics_scene::{address, text},
    world::{World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("a_program_s_latency_decides_about_cpus_until_it_fails", by_command),
        ("a_log_s_latency_decides_about_cpus_until_the_file_is_gone", by_log),
        ("a_metric_s_latency_decides_about_cpus_until_its_server_is_gone", by_metric),
    ]
}

/// What reports the latency of a case.
struct Reporter {
    /// For the layout.
    source: String,
    /// Milliseconds; `None`: it is gone.
    now: Arc<Mutex<Option<u32>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// `report` is called again and again.
    fn new(source: String, mut report: impl FnMut(Option<u32>) + Send + 'static) -> Reporter {
        let (now, ended) = (Arc::new(Mutex::new(Some(9))), Arc::new(AtomicBool::new(false)));
        let (shared, end) = (Arc::clone(&now), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            while !end.load(Relaxed) {
                let now = *shared.lock().unwrap();
                report(now);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Reporter { source, now, ended, thread: Some(thread) }
    }

    fn set(&self, now: Option<u32>) {
        *self.now.lock().unwrap() = now;
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn by_command() {
    report(|directory| {
        let file = directory.join("p99");
        let source = format!("command = ['/bin/cat', '{}']", file.display());
        Reporter::new(source, move |now| match now {
            Some(now) => replace(&file, &format!("{now} ms\n")),
            None => drop(fs::remove_file(&file)),
        })
    });
}

/// At once: nobody reads half of it.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, file).unwrap();
}

fn by_log() {
    report(|directory| {
        let file: PathBuf = directory.join("requests.log");
        let source = format!("log = '{}', pattern = 'took ([0-9.]+ ms)'", file.display());
        Reporter::new(source, move |now| match now {
            Some(now) => {
                let mut log = fs::OpenOptions::new().append(true).create(true).open(&file).unwrap();
                writeln!(log, "request took {now} ms").unwrap();
            }
            None => drop(fs::remove_file(&file)),
        })
    });
}

fn by_metric() {
    report(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut listener = Some(listener);
        let source = format!("prometheus = 'http://{address}/metrics', metric = 'request_p99', unit = 'ms'");
        Reporter::new(source, move |now| match now {
            Some(now) => {
                if listener.is_none() {
                    let again = TcpListener::bind(address).unwrap();
                    again.set_nonblocking(true).unwrap();
                    listener = Some(again);
                }
                while let Some(Ok((mut stream, _))) = listener.as_ref().map(TcpListener::accept) {
                    stream.set_nonblocking(false).unwrap();
                    let _ = stream.read(&mut [0; 1024]);
                    let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\nrequest_p99 {now}\n");
                }
            }
            None => listener = None,
        })
    });
}

/// One group with CPUs of its own from 1 to 2, and a target of 5 ms.
fn report(reporter: fn(&Path) -> Reporter) {
    let mut world = World::new();
    let group = world.group_name("measured");
    let reporter = reporter(&world.directory);
    world.write(
        "layout.toml",
        &format!(
            "[groups.{group}]\ncpus = {{ min = 1, max = 2, weight = 100 }}\n\
             latency = {{ {}, p99 = '5ms', every = '500ms' }}\n",
            reporter.source
        ),
    );
    let daemon = world.daemon(&["metrics=127.0.0.1:0", "paces=0"]);
    let quiet = sleeper(&world, &group);
    let has = || allowed(quiet.pid()).len();
    eventually("two CPUs while the latency is bad, although nothing waits", || has() == 2);
    assert_eq!(drifts(&world), [""; 0]);
    let says = || says(&world, &group).map(|one| one.says);
    eventually("the latency is shown", || says() == Some(Says::Measures { p99: 0.009 }));
    let series = |name: &str| {
        let text = text(address(&daemon));
        let line = format!("ringfence_group_latency_{name}{{group=\"{group}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(line.as_str()).map(str::to_owned))
    };
    eventually("the latency is a metric", || series("p99_seconds").as_deref() == Some("0.009"));
    assert_eq!(series("target_seconds").as_deref(), Some("0.005"));
    assert_eq!(series("source_up").as_deref(), Some("1"));
    reporter.set(Some(1));
    eventually("one CPU while the latency is good", || has() == 1);
    reporter.set(None);
    eventually("the source is gone", || matches!(says(), Some(Says::Stopped { .. })));
    daemon.wait_for_log(&format!("{group}: its latency is not known, and its waiting decides"), 1);
    eventually("that is a metric", || series("source_up").as_deref() == Some("0"));
    assert_eq!(series("p99_seconds"), None);
    let load = busy(&world, &group);
    eventually("two CPUs by waiting", || has() == 2);
    drop(load);
    eventually("one CPU, as it is quiet", || has() == 1);
    reporter.set(Some(9));
    daemon.wait_for_log(&format!("{group}: its latency decides again"), 1);
    eventually("two CPUs again while the latency is bad", || has() == 2);
    // an answer may be late on a busy machine, too: each loss is said once
    let log = daemon.log();
    let count = |text: &str| log.matches(text).count();
    assert_eq!(count("its latency is not known"), count("its latency decides again"), "{log}");
    daemon.kill();
    assert_eq!(drifts(&world), [""; 0]);
    reporter.set(Some(1));
    let daemon = world.daemon(&[]);
    eventually("one CPU after a restart, by what the record has", || has() == 1);
    assert!(matches!(says(), Some(Says::Measures { .. })), "{:?}", says());
    let changes = Resizes::of(&state(&world)).last(100).unwrap();
    let why = |change: &Resize| change.numbers["reason"].as_str().unwrap_or_default().to_owned();
    assert_eq!(why(&changes[0]), "slow", "{changes:?}");
    daemon.end();
}

fn says(world: &World, group: &str) -> Option<Measured> {
    Resizes::of(&state(world)).controller()?.latencies.into_iter().find(|one| one.group == group)
}
