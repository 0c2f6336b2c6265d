//! The clients: a thread and a connection each, one transaction at a time. Each transaction is logged in pgbench's format,
//! progress is reported on standard error as pgbench says it, the number of all at the end. They work until their standard
//! input ends.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Barrier, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use experiment::statistics::SplitMix64;

use super::{
    pace::Pace,
    protocol::{ANSWER, Request, TELLERS, is_done, socket},
};
use crate::{
    Error,
    options::Options,
    start::{Instant, die_with, report},
};

/// A client that waits for its time looks so often whether it is to end.
const NOTICE: Duration = Duration::from_millis(50);

/// What stands before the time of the first burst, in microseconds since 1970.
pub const FIRST_BURST: &str = "first burst at ";

/// What all clients do.
#[derive(Clone)]
struct Task {
    directory: PathBuf,
    log: PathBuf,
    workers: u64,
    rows: u64,
    transfers: bool,
    /// When transactions are meant to start; `None`: one after another.
    pace: Option<Pace>,
}

/// What they share.
struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
    /// All are connected.
    connected: Barrier,
    /// From when on transactions are meant to start.
    begun: OnceLock<Instant>,
    /// To be added to CLOCK_MONOTONIC for nanoseconds since 1970.
    day_ns: u64,
}

/// The clients' process: `--directory DIR --workers N --clients N --rows N --transfers 0|1 --log PREFIX
/// [--per-1000-seconds N [--burst-per-1000-seconds N --burst-ms N --burst-every-ms N]] [--parent PID]`, the words after its
/// hidden subcommand.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_oltp_clients(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let clients = options.number("clients", 1..=8192, None)?;
    // a whole number, and exact for rates as they are written
    let rate = options.number("per-1000-seconds", 0..=1 << 50, Some(0))?;
    let burst = options.number("burst-per-1000-seconds", 0..=1 << 50, Some(0))?;
    let length = options.number("burst-ms", 1..=1 << 30, Some(1))?;
    let every = options.number("burst-every-ms", 1..=1 << 30, Some(1))?;
    let pace = (rate > 0).then(|| match burst {
        0 => Pace::new(clients, rate),
        burst => Pace::new(clients, rate).with_bursts(clients, burst, length * 1_000_000, every * 1_000_000),
    });
    let bursts = pace.as_ref().and_then(Pace::bursts);
    let task = Task {
        directory: options.path("directory")?,
        log: options.path("log")?,
        workers: options.number("workers", 1..=8192, None)?,
        rows: options.number("rows", 1..=1 << 40, None)?,
        transfers: options.number("transfers", 0..=1, None)? == 1,
        pace,
    };
    let parent = options.number("parent", 0..=u64::from(u32::MAX), Some(0))?;
    options.end()?;
    die_with(parent, c"rf-oltp-clients")?;
    let connected = Barrier::new(usize::try_from(clients).unwrap_or(usize::MAX) + 1);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let shared = Arc::new(Shared { stop, done, connected, begun: OnceLock::new(), day_ns: day_ns() });
    let mut threads = Vec::new();
    for number in 0..clients {
        // before any thread waits for the others
        let client = Client::new(&task, number)?;
        let shared = Arc::clone(&shared);
        threads.push(client.spawn(shared)?);
    }
    let begun = *shared.begun.get_or_init(Instant::now);
    shared.connected.wait();
    if let Some((first, _)) = bursts {
        report(&format!("{FIRST_BURST}{}", (begun.0 + first + shared.day_ns) / 1000))?;
    }
    tell_progress(&shared)?;
    for thread in threads {
        thread.join().unwrap_or(Err(Error::Interrupted))?;
    }
    let all = shared.done.load(Ordering::Relaxed);
    report(&format!("number of transactions actually processed: {all}"))
}

fn day_ns() -> u64 {
    let (monotonic, day) = (Instant::now(), SystemTime::now());
    let since = day.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).saturating_sub(monotonic.0)
}

/// Prints each second how many were done in it, until standard input ends.
fn tell_progress(shared: &Arc<Shared>) -> Result<(), Error> {
    let waiting = Arc::clone(shared);
    let listen = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink()); // what can't be read has ended
        waiting.stop.store(true, Ordering::Relaxed);
    };
    let started = thread::Builder::new().spawn(listen);
    started.map_err(|source| Error::System { what: "cannot start a thread", source })?;
    let begun = Instant::now();
    let (mut last, mut before) = (begun, 0);
    while !shared.stop.load(Ordering::Relaxed) {
        Instant::now().after(NOTICE).sleep();
        let now = Instant::now();
        if now.since(last) < 1_000_000_000 {
            continue;
        }
        let done = shared.done.load(Ordering::Relaxed);
        let (at, rate) =
            (now.since(begun) as f64 / 1e9, (done - before) as f64 * 1e9 / now.since(last) as f64);
        let line = writeln!(io::stderr().lock(), "progress: {at:.3} s, {rate:.3} tps");
        line.map_err(|source| Error::System { what: "cannot report the progress", source })?;
        (last, before) = (now, done);
    }
    Ok(())
}

struct Client {
    number: u64,
    task: Task,
    stream: UnixStream,
    log: BufWriter<File>,
    random: SplitMix64,
}

impl Client {
    fn new(task: &Task, number: u64) -> Result<Client, Error> {
        let worker = socket(&task.directory, number % task.workers);
        let stream = UnixStream::connect(&worker);
        let stream =
            stream.map_err(|source| Error::System { what: "cannot connect to the server", source })?;
        let path = log_of(&task.log, number);
        let log =
            File::create(&path).map_err(|source| Error::System { what: "cannot make the log", source })?;
        let log = BufWriter::with_capacity(1 << 16, log);
        Ok(Client { number, task: task.clone(), stream, log, random: SplitMix64::new(number) })
    }

    fn spawn(mut self, shared: Arc<Shared>) -> Result<thread::JoinHandle<Result<(), Error>>, Error> {
        let work = move || {
            shared.connected.wait();
            let worked = self.work(&shared).and_then(|()| self.log.flush());
            // the others would go on without it
            worked
                .inspect_err(|_| shared.stop.store(true, Ordering::Relaxed))
                .map_err(|source| Error::System { what: "a client failed", source })
        };
        let thread = thread::Builder::new().stack_size(128 << 10).spawn(work);
        thread.map_err(|source| Error::System { what: "cannot start a thread", source })
    }

    fn work(&mut self, shared: &Shared) -> io::Result<()> {
        let begun = *shared.begun.get_or_init(Instant::now);
        let mut intended = begun;
        let mut transaction = 0_u64;
        loop {
            let draw = self.exponential();
            if let Some(pace) = &self.task.pace {
                intended = Instant(begun.0.saturating_add(pace.next(intended.since(begun), draw)));
                wait(intended, &shared.stop);
            }
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begun = Instant::now();
            let start = if self.task.pace.is_some() { intended } else { begun };
            let request = self.request();
            let mut answer = [0; ANSWER];
            self.stream.write_all(&request.encode())?;
            self.stream.read_exact(&mut answer)?;
            let end = Instant::now();
            transaction += 1;
            let done = is_done(&answer);
            shared.done.fetch_add(u64::from(done), Ordering::Relaxed);
            let took = if done { (end.since(start) / 1000).to_string() } else { "failed".to_owned() };
            let day = end.0 + shared.day_ns;
            let (seconds, microseconds) = (day / 1_000_000_000, day / 1000 % 1_000_000);
            write!(self.log, "{} {transaction} {took} 0 {seconds} {microseconds}", self.number)?;
            match self.task.pace {
                Some(_) => writeln!(self.log, " {}", begun.since(start) / 1000)?,
                None => writeln!(self.log)?,
            }
        }
    }

    fn request(&mut self) -> Request {
        let account = self.number_below(self.task.rows) + 1;
        if self.task.transfers {
            let teller = self.number_below(TELLERS) + 1;
            // as TPC-B has it, and pgbench
            let amount = self.number_below(10_001).cast_signed() - 5000;
            Request::Transfer { account, teller, amount }
        } else {
            Request::Select { account }
        }
    }

    fn number_below(&mut self, bound: u64) -> u64 {
        self.random.draw() % bound.max(1)
    }

    /// As the times between the starts of transactions that know nothing of each other, with the mean 1.
    fn exponential(&mut self) -> f64 {
        let share = ((self.random.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64; // above 0, at most 1
        -share.ln()
    }
}

/// Waits for an instant, or for the end.
fn wait(until: Instant, stop: &AtomicBool) {
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        until.min(Instant::now().after(NOTICE)).sleep();
    }
}

/// `PREFIX.PID` of the first, `PREFIX.PID.N` of the others, as pgbench names them.
fn log_of(prefix: &Path, number: u64) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    if number > 0 {
        name.push(format!(".{number}"));
    }
    PathBuf::from(name)
}
