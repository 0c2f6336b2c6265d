//! Sources of latencies as they are on a machine: programs, files and a server on loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::{fd::AsFd, unix::net::UnixStream},
    path::Path,
    time::{Duration, Instant},
};

use daemon::latency::{Answer, Error, Source};
use layout::{Latency, LatencySource, LatencyUnit, Selector};
use units::Micros;

fn source(source: LatencySource, every: Micros) -> Source {
    Source::new(&Latency { source, p99: Micros(5_000), every, unit: LatencyUnit::Seconds }).unwrap()
}

fn shell(script: &str, every: Micros) -> Source {
    source(LatencySource::Command { command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec() }, every)
}

fn look(source: &mut Source) -> Result<Answer, Error> {
    let (stopped, _stop) = UnixStream::pair().unwrap();
    source.look(stopped.as_fd())
}

const SECOND: Micros = Micros(1_000_000);
/// Nothing decides by this: it is how long a loaded machine may take to start a shell.
const LONG: Micros = Micros(60_000_000);

#[test]
fn a_program_prints_its_latency_in_its_first_line() {
    for (script, expected) in [
        ("echo 4ms", Ok(Answer::P99(0.004))),
        ("echo 0.25; echo more", Ok(Answer::P99(0.25))),
        ("echo 1ms; yes | head -c 200000", Ok(Answer::P99(0.001))),
        ("", Ok(Answer::Nothing)),
        ("echo; echo 4ms", Ok(Answer::Nothing)),
        ("echo fast", Err("it printed 'fast', which is no latency such as 4.2ms")),
        ("echo 4ms; exit 3", Err("it ended with exit status: 3")),
    ] {
        let said = look(&mut shell(script, LONG)).map_err(|error| error.to_string());
        assert_eq!(said, expected.map_err(str::to_owned), "{script}");
    }
    let mut missing = source(LatencySource::Command { command: vec!["/nonexistent/p99".to_owned()] }, LONG);
    assert_eq!(look(&mut missing).unwrap_err().to_string(), "it does not start: no such file or directory");
}

/// Does the process still run? A zombie does not.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn eventually_ended(pid: &str) {
    let start = Instant::now();
    while runs(pid) {
        assert!(start.elapsed() < Duration::from_secs(60), "{pid} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_is_left_of_a_program_that_is_late_or_left_something_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("sleep 600 & echo $! > {0}; echo $$ >> {0}; wait", file.display());
    // long enough for a shell to start; else there is nothing to look for
    assert_eq!(look(&mut shell(&script, Micros(5_000_000))), Err(Error::Late));
    let pids = fs::read_to_string(&file).unwrap();
    assert_eq!(pids.lines().count(), 2);
    pids.lines().for_each(eventually_ended);
    let script = format!("sleep 600 & echo $! > {}; echo 4ms", file.display());
    assert_eq!(look(&mut shell(&script, LONG)), Ok(Answer::P99(0.004)));
    eventually_ended(&fs::read_to_string(&file).unwrap());
}

#[test]
fn a_program_or_server_that_never_ends_its_answer_is_late() {
    assert_eq!(look(&mut shell("exec cat /dev/zero", SECOND)), Err(Error::Late));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut endless = metric(&listener, "x", SECOND);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // until the other end is closed
        while stream.write_all(b"x").is_ok() {}
    });
    let said = look(&mut endless).unwrap_err();
    assert!(said == Error::Late || said.to_string().contains("larger than"), "{said}");
    server.join().unwrap();
}

#[test]
fn root_runs_no_program_that_others_can_change() {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("p99");
    fs::write(&program, "#!/bin/sh\necho 4ms\n").unwrap();
    for (mode, runs) in [(0o755, true), (0o777, false), (0o775, false)] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let command = vec![program.display().to_string()];
        let said = look(&mut source(LatencySource::Command { command }, LONG));
        match runs {
            true => assert_eq!(said, Ok(Answer::P99(0.004))),
            false => {
                assert!(said.unwrap_err().to_string().ends_with("can be written by others than its owner"))
            }
        }
    }
}

#[test]
fn a_look_ends_with_its_caller() {
    let (stopped, stop) = UnixStream::pair().unwrap();
    drop(stop);
    let start = Instant::now();
    assert_eq!(shell("sleep 600", LONG).look(stopped.as_fd()), Err(Error::Stopped));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut silent = metric(&listener, "a", LONG);
    assert_eq!(silent.look(stopped.as_fd()), Err(Error::Stopped));
    assert!(start.elapsed() < Duration::from_secs(55));
}

fn log(path: &Path) -> Source {
    let (log, pattern) = (path.to_str().unwrap().to_owned(), "took ([0-9.]+ ms)".to_owned());
    source(LatencySource::Log { log, pattern }, LONG)
}

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_log_is_read_from_its_end_and_followed_where_it_is_renamed_or_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("requests.log");
    append(&path, "took 900 ms\ntook 9");
    let mut log = log(&path);
    assert_eq!(look(&mut log), Ok(Answer::Nothing), "what was there before is old");
    append(&path, "00 ms\n");
    assert_eq!(look(&mut log), Ok(Answer::Nothing), "so is a line that had begun");
    append(&path, "took 3 ms\nstarted\ntook 4");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.003)), "a line counts with its end");
    append(&path, " ms\n");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.004)));
    // renamed: its last lines, then the new one from its start
    append(&path, "took 5 ms\n");
    fs::rename(&path, directory.path().join("requests.log.1")).unwrap();
    assert_eq!(
        look(&mut log).unwrap_err().to_string(),
        format!("{}: no such file or directory", path.display())
    );
    append(&directory.path().join("requests.log.1"), "took 6 ms\n");
    append(&path, "took 2 ms\n");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.006)));
    // emptied
    fs::write(&path, "").unwrap();
    assert_eq!(look(&mut log), Ok(Answer::P99(0.006)));
    append(&path, "took 7 ms\n");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.007)));
    // neither a line without an end nor one of other bytes
    append(&path, &"x".repeat(1 << 20));
    assert_eq!(look(&mut log), Ok(Answer::P99(0.007)));
    append(&path, "took 99 ms\ntook 8 ms\n");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.008)), "the end of a long line is no line");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\xfftook 99 ms\n").unwrap();
    assert_eq!(look(&mut log), Ok(Answer::P99(0.008)));
    // more than is read at once: the newest lines
    append(&path, &"took 50 ms\n".repeat(1 << 20));
    append(&path, &"took 9 ms\n".repeat(1 << 20));
    assert_eq!(look(&mut log), Ok(Answer::P99(0.009)));
}

#[test]
fn what_is_no_file_is_no_log_and_makes_nobody_wait() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert_eq!(
        look(&mut log(&fifo)).unwrap_err().to_string(),
        format!("{} is no regular file", fifo.display())
    );
    let missing = directory.path().join("none.log");
    let mut log = log(&missing);
    assert!(look(&mut log).is_err());
    append(&missing, "took 1 ms\n");
    look(&mut log).unwrap();
    append(&missing, "took 3 ms\n");
    assert_eq!(look(&mut log), Ok(Answer::P99(0.003)), "it came later");
}

fn metric(listener: &TcpListener, name: &str, every: Micros) -> Source {
    let prometheus = format!("http://{}/metrics", listener.local_addr().unwrap());
    source(LatencySource::Prometheus { prometheus, metric: Selector::new(name).unwrap() }, every)
}

/// Answers one request with each of these.
fn serve(listener: TcpListener, answers: Vec<String>) -> std::thread::JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let one = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..count]).into_owned()
        };
        answers.into_iter().map(one).collect()
    })
}

#[test]
fn a_metric_is_read_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut source = metric(&listener, "http_seconds", LONG);
    let buckets = |counts: [u32; 3]| {
        let [one, other, all] = counts;
        let body = format!(
            "http_seconds_bucket{{le=\"0.004\"}} {one}\nhttp_seconds_bucket{{le=\"0.008\"}} {other}\n\
             http_seconds_bucket{{le=\"+Inf\"}} {all}\n"
        );
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let low =
        "HTTP/1.0 200 OK\r\n\r\nhttp_seconds_bucket{le=\"0.001\"} 1\nhttp_seconds_bucket{le=\"+Inf\"} 1\n";
    let answers = vec![
        buckets([500, 500, 500]),
        buckets([500, 500, 500]),
        buckets([600, 600, 600]),
        buckets([600, 700, 700]),
        "HTTP/1.1 500 Internal Server Error\r\n\r\n".to_owned(),
        low.to_owned(),
        buckets([1, 1, 1]),
    ];
    let server = serve(listener, answers);
    assert_eq!(look(&mut source), Ok(Answer::Nothing), "the first answer only counts");
    assert_eq!(look(&mut source), Ok(Answer::Nothing), "no request");
    let near = |said: Result<Answer, Error>, expected: f64| {
        let Ok(Answer::P99(p99)) = said else { panic!("{said:?}") };
        assert!((p99 - expected).abs() < 1e-9, "{p99}");
    };
    near(look(&mut source), 0.00396);
    near(look(&mut source), 0.00792);
    assert_eq!(look(&mut source).unwrap_err().to_string(), "it answers 500 Internal Server Error");
    let below = "the largest bound of http_seconds is 0.001 s, below the target";
    assert_eq!(look(&mut source).unwrap_err().to_string(), below);
    assert_eq!(look(&mut source), Ok(Answer::Nothing), "the server began again");
    let requests = server.join().unwrap();
    assert!(requests.iter().all(|request| request.starts_with("GET /metrics HTTP/1.0\r\n")), "{requests:?}");
}

#[test]
fn a_server_that_refuses_or_is_silent_is_an_error_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut silent = metric(&listener, "a", Micros(100_000));
    assert_eq!(look(&mut silent), Err(Error::Late));
    let address = listener.local_addr().unwrap();
    let mut gone = metric(&listener, "a", LONG);
    drop(listener);
    assert_eq!(look(&mut gone).unwrap_err().to_string(), format!("{address}: connection refused"));
}
