//! pgbench, on a PostgreSQL of the lab's own or on the user's. Figures are counted from pgbench's log of single
//! transactions, over exactly the span requested. The user's server is never started, stopped or filled.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use experiment::{drivers::PGBENCH, file};
use rustix::process::Signal;
use system::ProcessReader;

use super::{
    postgresql::{Cluster, Server},
    process::{PATIENCE, Tool, command, run},
    programs,
    transactions::{Clients, log_prefix},
};
use crate::{Divided, Driver, Error, Failure, Outcome, Site, Span, Timing, files};

/// The program, and what its files are named after.
const NAME: &str = "pgbench";

/// pgbench ends by itself only if its lab is gone. It is ended by the signal that its own clock would send.
const LONGEST_SECONDS: &str = "1000000";

/// Built-in scripts, by their name in the experiment file.
const SCRIPTS: [&str; 3] = ["select-only", "tpcb-like", "simple-update"];

pub(crate) struct Pgbench {
    options: file::Pgbench,
    cluster: Option<Cluster>,
    run: Option<Run>,
}

/// What works. The clients are dropped, and so ended, before the server.
struct Run {
    clients: Clients,
    server: Option<Server>,
}

impl Pgbench {
    pub fn new(options: &file::Pgbench) -> Result<Pgbench, Error> {
        let wrong = |option, value: String, reason: &str| {
            Err(Failure::Option { option, value, reason: reason.to_owned() }.into())
        };
        if !["simple", "extended", "prepared"].contains(&options.protocol.as_str()) {
            return wrong("protocol", options.protocol.clone(), "it is simple, extended or prepared");
        }
        if options.pid.is_some() && options.dsn.is_none() {
            return wrong(
                "pid",
                String::new(),
                "the server of its own that a workload has is not running yet",
            );
        }
        match options.rate {
            Some(rate) if !rate.is_finite() || rate <= 0.0 => {
                return wrong("rate", rate.to_string(), "it is above 0");
            }
            _ => {}
        }
        for (option, value) in
            [("clients", options.clients), ("threads", options.threads), ("scale", options.scale)]
        {
            if value == 0 {
                return wrong(option, "0".to_owned(), "it is at least 1");
            }
        }
        Ok(Pgbench { options: options.clone(), cluster: None, run: None })
    }

    fn program(&self) -> Result<PathBuf, Failure> {
        match (&self.options.dsn, &self.cluster) {
            (None, Some(cluster)) => Ok(cluster.programs().join("pgbench")),
            (None, None) => programs::postgresql().map(|programs| programs.join("pgbench")),
            // any pgbench does for the user's server
            (Some(_), _) => programs::postgresql()
                .map(|programs| programs.join("pgbench"))
                .or_else(|_| programs::find(&PGBENCH)),
        }
    }

    /// pgbench or another client, up to its own arguments.
    fn client(&self, site: &Site<'_>, program: &str) -> Result<Tool, Error> {
        let path = self.program()?.with_file_name(program);
        let mut client = command(site.launch, site.clients_group, &path, None, "KILL");
        if let (None, Some(cluster)) = (&self.options.dsn, &self.cluster) {
            cluster.address(&mut client);
        }
        Ok(client)
    }

    fn database(&self) -> &str {
        self.options.dsn.as_deref().unwrap_or("postgres")
    }

    fn fill(&self, site: &Site<'_>, cluster: &Cluster) -> Result<(), Error> {
        // what a run measures may forbid to fill
        let plain = file::Pgbench { settings: BTreeMap::new(), ..self.options.clone() };
        let server = cluster.start(site, &plain)?;
        let mut init = self.client(site, NAME)?;
        init.args(["-i", "-q", "-s", &self.options.scale.to_string()]);
        init.args(self.options.partitions.map(|partitions| format!("--partitions={partitions}")));
        init.arg(self.database());
        // a large database takes its time
        run(init, "pgbench-init", site.directory, Duration::from_secs(3600))?;
        server.stop()
    }

    /// The user's server must answer and hold what a built-in script works on.
    fn look_at(&self, site: &Site<'_>, dsn: &str) -> Result<(), Error> {
        if let Some(pid) = self.options.pid {
            is_postmaster(pid)?;
        }
        let mut request = self.client(site, "psql")?;
        request.args(["-X", "-A", "-t", "-c", "select to_regclass('pgbench_accounts') is not null", dsn]);
        let requested = run(request, "psql", site.directory, PATIENCE)?;
        let reported =
            files::tool_text(requested.output()).map_err(Failure::file("read", requested.output()))?;
        if self.script_file().is_none() && reported.trim() != "t" {
            let text = "the server that dsn names has no tables of pgbench".to_owned();
            let hint = format!("pgbench -i -s {} \"{dsn}\"", self.options.scale);
            return Err(Failure::Unfit { text, hint }.into());
        }
        Ok(())
    }

    /// The user's own SQL, if the script is none of pgbench's.
    fn script_file(&self) -> Option<&str> {
        Some(self.options.script.as_str()).filter(|script| !SCRIPTS.contains(script))
    }

    fn arguments(&self, site: &Site<'_>, command: &mut Command) -> Result<(), Error> {
        let threads = self.options.threads.min(self.options.clients);
        command.args([
            "-c",
            &self.options.clients.to_string(),
            "-j",
            &threads.to_string(),
            "-T",
            LONGEST_SECONDS,
        ]);
        command.args(["-M", &self.options.protocol, "-P", "1", "-l"]);
        command.arg("--log-prefix").arg(log_prefix(site.directory, NAME));
        if let Some(rate) = self.options.rate {
            command.args(["-R", &rate.to_string()]);
        }
        if let Some(sql) = self.script_file() {
            let path = site.directory.join("script.sql");
            fs::write(&path, sql).map_err(Failure::file("write", &path))?;
            command.arg("-f").arg(path).args(["-s", &self.options.scale.to_string()]);
        } else {
            command.args(["-b", &self.options.script]);
        }
        // without it pgbench empties its table of history and vacuums: not in the user's database
        if self.options.dsn.is_some() || self.script_file().is_some() {
            command.arg("-n");
        }
        command.arg(self.database());
        Ok(())
    }
}

impl Driver for Pgbench {
    fn versions(&self) -> Result<Vec<(String, String)>, Error> {
        let pgbench = self.program()?;
        let mut versions = vec![("pgbench".to_owned(), programs::version(&pgbench))];
        if self.options.dsn.is_none() {
            versions.push(("postgres".to_owned(), programs::version(&pgbench.with_file_name("postgres"))));
        }
        Ok(versions)
    }

    fn prepare(&mut self, site: &Site<'_>) -> Result<(), Error> {
        if let Some(dsn) = &self.options.dsn {
            return self.look_at(site, dsn);
        }
        // stored at once: it is removed with us, also if it can't be filled
        self.cluster = Some(Cluster::make(site)?);
        self.cluster.as_ref().map_or(Ok(()), |cluster| self.fill(site, cluster))
    }

    fn start(&mut self, site: &Site<'_>, _: Timing) -> Result<(), Error> {
        let start = |cluster: &Cluster| cluster.start(site, &self.options);
        let server = self.cluster.as_ref().map(start).transpose()?;
        let mut command = self.client(site, NAME)?;
        self.arguments(site, &mut command)?;
        command.stdin(Stdio::null());
        let clients = Clients::start(command, NAME, site.directory)?;
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
        let Some(Run { clients, server }) = self.run.take() else {
            return Err(Failure::unreadable(NAME, "it was not started").into());
        };
        // as at the end of -T: every client ends its transaction, and the log is whole
        let counted =
            clients.stop(span, self.options.rate.is_some(), |pgbench| pgbench.signal(Signal::ALARM))?;
        server.map_or(Ok(()), Server::stop)?;
        Ok(counted.outcome)
    }

    fn running_server(&self) -> Vec<u32> {
        self.options.pid.map_or_else(Vec::new, with_descendants)
    }

    fn divided(&self) -> Option<Divided<'_>> {
        let server = self.run.as_ref()?.server.as_ref()?.pid();
        let roles = &self.options.roles;
        (!roles.is_empty()).then_some(Divided { server, roles })
    }

    fn clean_up(&mut self) {
        self.run = None;
        self.cluster = None;
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        self.clean_up();
    }
}

/// What is moved into a group by its number must be what it is taken for.
fn is_postmaster(pid: u32) -> Result<(), Error> {
    let mut reader = ProcessReader::new();
    let mut name = || Some(String::from_utf8_lossy(reader.process(pid).ok()?.comm().ok()?).into_owned());
    match name() {
        Some(name) if name == "postgres" || name == "postmaster" => Ok(()),
        name => {
            let is = name.map_or("gone".to_owned(), |name| format!("'{name}'"));
            let hint =
                "the first line of postmaster.pid in the server's data directory is its number".to_owned();
            Err(Failure::Unfit { text: format!("process {pid} is no PostgreSQL server: it is {is}"), hint }
                .into())
        }
    }
}

/// A process and all that it has started, it first.
fn with_descendants(pid: u32) -> Vec<u32> {
    let mut reader = ProcessReader::new();
    let mut parent = |pid: u32| reader.process(pid).ok()?.status().ok().map(|status| status.parent);
    // what can't be listed can't be moved either, which the caller notices
    let all = ProcessReader::all().unwrap_or_default();
    let parents: Vec<(u32, u32)> = all.into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}
