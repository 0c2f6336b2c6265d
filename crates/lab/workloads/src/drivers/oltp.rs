//! The built-in OLTP: its server is started for each run on shards that were made once, its clients as pgbench's are.
//! Clients and server must agree on how much was done, and the database with both.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use experiment::{file, results::Series};
use units::Bytes;

use super::{
    process::{PATIENCE, Process, Tool, run},
    transactions::{Clients, Counted, log_prefix},
};
use crate::{
    Driver, Error, Failure, Outcome, Site, Span, Timing, files,
    oltp::{FIRST_BURST, ServerReport},
};

/// What its clients' files are named after.
const NAME: &str = "oltp";

/// The hidden subcommand by which this program becomes one of its own workloads.
const SUBCOMMAND: &str = "worker";

/// Longest path of a Unix socket (unix(7)).
const LONGEST_SOCKET: usize = 107;

pub(crate) struct Oltp {
    clients: u32,
    workers: u32,
    transfers: bool,
    rows: u64,
    memory: u64,
    rate: Option<f64>,
    burst: Option<Burst>,
    directory: Option<Shards>,
    run: Option<Run>,
}

/// What the clients do during bursts.
#[derive(Clone, Copy)]
struct Burst {
    rate: f64,
    ms: u32,
    every_ms: u32,
}

/// What works. The clients are dropped, and so ended, before the server.
struct Run {
    clients: Clients,
    server: Process,
}

/// The directory of the database, removed when dropped.
struct Shards(PathBuf);

impl Oltp {
    pub fn new(options: &file::Oltp) -> Result<Oltp, Error> {
        let wrong = |option, value: &str, reason: &str| Failure::Option {
            option,
            value: value.to_owned(),
            reason: reason.to_owned(),
        };
        let transfers = match options.script.as_str() {
            "select" => false,
            "tpcb" => true,
            other => return Err(wrong("script", other, "it is select or tpcb").into()),
        };
        let memory = options.memory.parse::<Bytes>();
        let memory = memory.map_err(|error| wrong("memory", &options.memory, &error.to_string()))?.0;
        for (option, rate) in [("rate", options.rate), ("burst-rate", options.burst_rate)] {
            if let Some(rate) = rate.filter(|rate| !(*rate >= 0.001 && *rate < 1e9)) {
                return Err(wrong(option, &rate.to_string(), "it is at least 0.001").into());
            }
        }
        let (ms, every_ms) = (options.burst_ms, options.burst_every_ms);
        let burst = options.burst_rate.filter(|_| options.rate.is_some());
        let burst = burst.map(|rate| Burst { rate, ms, every_ms });
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = options.workers.unwrap_or_else(|| u32::try_from(cpus).unwrap_or(u32::MAX));
        let (clients, rows) = (options.clients, options.rows);
        for (option, value) in
            [("clients", u64::from(clients)), ("workers", u64::from(workers)), ("rows", rows)]
        {
            if value == 0 {
                return Err(wrong(option, "0", "it is at least 1").into());
            }
        }
        let rate = options.rate;
        Ok(Oltp { clients, workers, transfers, rows, memory, rate, burst, directory: None, run: None })
    }

    /// One of its processes, up to its own options.
    fn command(&self, site: &Site<'_>, group: Option<&str>, process: &str, directory: &Path) -> Tool {
        // our file may have been replaced meanwhile, and what starts the process may be another program
        let this = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
        let mut command = Tool::new(site.launch.command(group, this.as_os_str()), site.launch.stop());
        command.arg(SUBCOMMAND).arg(process).arg("--directory").arg(directory);
        command.args(["--workers", &self.workers.to_string(), "--parent", &std::process::id().to_string()]);
        command
    }

    fn directory(&self) -> Result<&Path, Error> {
        let made = self.directory.as_ref().map(|shards| shards.0.as_path());
        made.ok_or_else(|| Failure::unreadable("the built-in OLTP", "it has no database yet").into())
    }
}

impl Driver for Oltp {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        let versions = [("built-in OLTP", env!("CARGO_PKG_VERSION")), ("SQLite", rusqlite::version())];
        Ok(versions.map(|(name, version)| (name.to_owned(), version.to_owned())).to_vec())
    }

    fn prepare(&mut self, site: &Site<'_>) -> Result<(), Error> {
        let directory = site.directory.join("oltp");
        let socket = directory.join(format!("worker-{}.socket", self.workers));
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let text = format!("{} is too long for a Unix socket's path", socket.display());
            return Err(
                Failure::Unfit { text, hint: "let the lab work in a shorter directory".to_owned() }.into()
            );
        }
        fs::create_dir(&directory).map_err(Failure::file("create", &directory))?;
        let mut fill = self.command(site, site.group, "oltp-server", &directory);
        fill.args(["--fill", &self.rows.to_string()]);
        self.directory = Some(Shards(directory));
        run(fill, "oltp-fill", site.directory, Duration::from_secs(3600)).map(drop)
    }

    fn start(&mut self, site: &Site<'_>, _: Timing) -> Result<(), Error> {
        let directory = self.directory()?;
        let mut server = self.command(site, site.group, "oltp-server", directory);
        server.args(["--memory", &self.memory.to_string()]).stdin(Stdio::piped());
        let mut server = Process::start_with_input(server, "oltp-server", site.directory)?;
        server
            .wait_until(|server| files::tool_text(server.output()).is_ok_and(|text| text.contains('\n')))?;
        let mut clients = self.command(site, site.clients_group, "oltp-clients", directory);
        clients.args(["--clients", &self.clients.to_string(), "--rows", &self.rows.to_string()]);
        clients.args(["--transfers", if self.transfers { "1" } else { "0" }]);
        clients.arg("--log").arg(log_prefix(site.directory, NAME));
        if let Some(rate) = self.rate {
            clients.args(["--per-1000-seconds", &format!("{:.0}", rate * 1000.0)]);
        }
        if let Some(Burst { rate, ms, every_ms }) = self.burst {
            clients.args(["--burst-per-1000-seconds", &format!("{:.0}", rate * 1000.0)]);
            clients.args(["--burst-ms", &ms.to_string(), "--burst-every-ms", &every_ms.to_string()]);
        }
        clients.stdin(Stdio::piped());
        let clients = Clients::start(clients, NAME, site.directory)?;
        self.run = Some(Run { clients, server });
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Error> {
        self.run.as_mut().map_or(Ok(()), |run| run.clients.wait_until_they_work())
    }

    fn done(&mut self) -> Option<f64> {
        self.run.as_mut().map(|run| run.clients.done())
    }

    fn stop(&mut self, span: Span) -> Result<Outcome, Error> {
        let Some(Run { clients, mut server }) = self.run.take() else {
            return Err(Failure::unreadable("the built-in OLTP", "it was not started").into());
        };
        let mut counted = clients.stop(span, self.rate.is_some(), Process::end_input)?;
        server.end_input();
        server.finish(PATIENCE)?;
        let text = files::tool_text(server.output()).map_err(Failure::file("read", server.output()))?;
        let line = text.lines().last().unwrap_or_default();
        let report: ServerReport = serde_json::from_str(line)
            .map_err(|source| Error::Report { name: "OLTP server".to_owned(), source })?;
        agree(&report, counted.all, self.transfers)?;
        if let Some(burst) = self.burst {
            add_bursts(&mut counted, burst)?;
        }
        counted.outcome.files.push(server.output().to_owned());
        Ok(counted.outcome)
    }

    fn clean_up(&mut self) {
        self.run = None;
        self.directory = None;
    }
}

impl Drop for Oltp {
    fn drop(&mut self) {
        self.clean_up();
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        // the site's directory is removed by who made it; this one holds most of it
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// When bursts began, as the clients say it: as a rate over the span, and each as a point in time.
fn add_bursts(counted: &mut Counted, burst: Burst) -> Result<(), Error> {
    let wrong = || Failure::unreadable("the built-in OLTP", "its clients do not say when bursts began");
    let printed = counted.outcome.files.first().ok_or_else(wrong)?;
    let text = files::tool_text(printed).map_err(Failure::file("read", printed))?;
    let first = text.lines().find_map(|line| line.strip_prefix(FIRST_BURST)?.parse::<i64>().ok());
    let first = first.ok_or_else(wrong)?;
    let step = usize::try_from(i64::from(burst.every_ms.max(1)) * 1000).unwrap_or(usize::MAX);
    let begun: Vec<i64> =
        (first..counted.span.end).step_by(step).filter(|at| counted.span.contains(at)).collect();
    let since = |at: i64| (at - counted.span.start) as f64 / 1e6;
    let seconds = since(counted.span.end);
    let points = begun.iter().map(|at| (since(*at), 1.0)).collect();
    counted.outcome.readings.insert("bursts".to_owned(), begun.len() as f64 / seconds);
    counted.outcome.series.push(Series { name: "bursts".to_owned(), unit: String::new(), points });
    Ok(())
}

/// What clients were reported, the server did, and the database holds must be the same.
fn agree(server: &ServerReport, clients: u64, transfers: bool) -> Result<(), Error> {
    let expected = if transfers { clients } else { 0 };
    if server.done == clients && server.transfers == expected && server.history == expected && server.balanced
    {
        return Ok(());
    }
    let reason = format!("its clients had {clients} transactions, {server:?}");
    Err(Failure::unreadable("the built-in OLTP", reason).into())
}
