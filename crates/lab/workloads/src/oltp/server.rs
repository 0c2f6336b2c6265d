//! The server: a worker for each shard, which serves its connections one question at a time. It works until its
//! standard input ends, then adds up its tables and says what it did.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::Timespec,
};
use serde::{Deserialize, Serialize};

use super::{
    protocol::{ASK, Request, answer, socket},
    shard::{Shard, fill},
};
use crate::{
    Error,
    options::Options,
    start::{READY, die_with, process_cpu_time, report},
};

/// How soon a worker sees that it is to end.
const NOTICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What the server did since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Questions that were answered with success.
    pub done: u64,
    /// Of these, transfers.
    pub transfers: u64,
    /// Rows of all histories.
    pub history: u64,
    /// In every shard the sums of accounts, tellers and branches are equal.
    pub balanced: bool,
    /// CPU time of the whole process, in nanoseconds.
    pub process_cpu_ns: u64,
}

/// The server's process: `--directory DIR --workers N [--memory BYTES] [--fill ROWS] [--parent PID]`, the words after
/// its hidden subcommand. With `--fill` it makes the shards and ends. Else it writes `ready`, works until its standard
/// input ends, and writes its report as one line of JSON.
///
/// # Errors
/// [`Error::Option`], [`Error::System`].
pub fn main_oltp_server(words: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut options = Options::new(words)?;
    let directory = options.path("directory")?;
    let workers = options.number("workers", 1..=8192, None)?;
    let memory = options.number("memory", 0..=1 << 50, Some(0))?;
    let rows = options.number("fill", 0..=1 << 40, Some(0))?;
    let parent = options.number("parent", 0..=u64::from(u32::MAX), Some(0))?;
    options.end()?;
    die_with(parent, c"rf-oltp-server")?;
    let shard = |worker: u64| directory.join(format!("shard-{worker}.sqlite"));
    if rows > 0 {
        return (0..workers).try_for_each(|worker| fill(&shard(worker), rows).map_err(database));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for number in 0..workers {
        let worker = Worker::new(&directory, &shard(number), number, memory / workers)?;
        threads.push((worker, Arc::clone(&stop)));
    }
    // all listen before any client is reported so
    let threads = threads.into_iter().map(|(worker, stop)| {
        thread::Builder::new()
            .spawn(move || worker.work(&stop))
            .map_err(|source| Error::System { what: "cannot start a thread", source })
    });
    let threads: Vec<_> = threads.collect::<Result<_, _>>()?;
    report(READY)?;
    let ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
    stop.store(true, Ordering::Relaxed);
    ended.map_err(|source| Error::System { what: "cannot read standard input", source })?;
    let mut sum = ServerReport { balanced: true, ..ServerReport::default() };
    for thread in threads {
        let one = thread.join().unwrap_or(Err(Error::Interrupted))?;
        sum.done += one.done;
        sum.transfers += one.transfers;
        sum.history += one.history;
        sum.balanced &= one.balanced;
    }
    sum.process_cpu_ns = process_cpu_time();
    let line = serde_json::to_string(&sum);
    report(&line.map_err(|source| Error::Report { name: "OLTP server".to_owned(), source })?)
}

fn database(error: rusqlite::Error) -> Error {
    Error::System { what: "the built-in database failed", source: io::Error::other(error) }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// A thread of the server with its shard.
struct Worker {
    listener: UnixListener,
    connections: Vec<Connection>,
    shard: Shard,
    report: ServerReport,
}

/// A client. It has one question at a time, which may come in pieces.
struct Connection {
    stream: UnixStream,
    record: [u8; ASK],
    read: usize,
}

impl Worker {
    fn new(directory: &Path, shard: &Path, number: u64, memory: u64) -> Result<Worker, Error> {
        let path = socket(directory, number);
        let _ = std::fs::remove_file(&path); // of the run before; another cause is reported by the next line
        let listener = UnixListener::bind(&path).map_err(system("cannot listen on a socket"))?;
        listener.set_nonblocking(true).map_err(system("cannot listen on a socket"))?;
        let shard = Shard::open(shard, memory).map_err(database)?;
        Ok(Worker { listener, connections: Vec::new(), shard, report: ServerReport::default() })
    }

    fn work(mut self, stop: &AtomicBool) -> Result<ServerReport, Error> {
        while !stop.load(Ordering::Relaxed) {
            let ready = self.wait()?;
            if ready.first() == Some(&true) {
                self.accept()?;
            }
            self.serve(&ready)?;
        }
        let sums = self.shard.sums().map_err(database)?;
        let balanced = sums.accounts == sums.tellers && sums.tellers == sums.branches;
        Ok(ServerReport { history: sums.history, balanced, ..self.report })
    }

    /// Who has something to say: the listener, then the connections.
    fn wait(&self) -> Result<Vec<bool>, Error> {
        let mut all = vec![PollFd::new(&self.listener, PollFlags::IN)];
        all.extend(self.connections.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        match poll(&mut all, Some(&NOTICE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(system("cannot wait for clients")(errno.into())),
        }
        Ok(all.iter().map(|one| !one.revents().is_empty()).collect())
    }

    fn accept(&mut self) -> Result<(), Error> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).map_err(system("cannot serve a client"))?;
                self.connections.push(Connection { stream, record: [0; ASK], read: 0 });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(system("cannot accept a client")(error)),
        }
    }

    /// Serves those that are ready; who has gone is forgotten.
    fn serve(&mut self, ready: &[bool]) -> Result<(), Error> {
        let mut gone = Vec::new();
        for (place, connection) in self.connections.iter_mut().enumerate() {
            if ready.get(place + 1) != Some(&true) {
                continue;
            }
            let request = match connection.request() {
                Ok(Some(request)) => request,
                Ok(None) => continue,
                Err(_) => {
                    gone.push(place);
                    continue;
                }
            };
            let balance = self.shard.serve(request).map_err(database)?;
            if balance.is_some() {
                self.report.done += 1;
                self.report.transfers += u64::from(matches!(request, Request::Transfer { .. }));
            }
            // nine bytes fit into any socket's buffer whose client has read its last answer
            if connection.stream.write_all(&answer(balance)).is_err() {
                gone.push(place);
            }
        }
        for place in gone.into_iter().rev() {
            self.connections.swap_remove(place);
        }
        Ok(())
    }
}

impl Connection {
    /// A whole question, if it has come.
    fn request(&mut self) -> io::Result<Option<Request>> {
        match self.stream.read(&mut self.record[self.read..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.read += read;
                if self.read < ASK {
                    return Ok(None);
                }
                self.read = 0;
                Request::decode(&self.record).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
