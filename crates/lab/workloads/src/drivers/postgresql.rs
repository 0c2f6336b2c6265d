//! A PostgreSQL of the lab's own: made once, started for each run, stopped and removed. It runs as the user postgres
//! (PostgreSQL refuses to run as root), listens on a Unix socket in a directory of its own that nobody else may enter,
//! and on no network. Its settings are PostgreSQL's defaults but for those that an experiment names.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use experiment::{drivers::PGBENCH, file};
use rustix::process::Signal;
use system::Accounts;

use super::{
    process::{PATIENCE, Process, Tool, command, run},
    programs,
};
use crate::{Error, Failure, Site};

/// Whom the server runs as where we are root, a name that PostgreSQL's packages make.
const OWNER: &str = "postgres";

/// The superuser within the database.
const SUPERUSER: &str = "ringfence";

/// Longest path of a Unix socket (unix(7)).
const LONGEST_SOCKET: usize = 107;

/// The server's data with the programs that work on it. Removed when dropped.
pub(crate) struct Cluster {
    programs: PathBuf,
    directory: PathBuf,
    owner: Option<&'static str>,
}

/// A running server. Stopped when dropped.
pub(crate) struct Server {
    process: Process,
}

impl Cluster {
    /// Makes an empty one in the site's directory.
    ///
    /// # Errors
    /// PostgreSQL is missing or refuses, or its user can't reach the directory.
    pub fn make(site: &Site<'_>) -> Result<Cluster, Error> {
        let programs = programs::postgresql()?;
        let directory = site.directory.join("postgresql");
        let socket = directory.join(".s.PGSQL.5432");
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let text = format!("{} is too long for a Unix socket's path", socket.display());
            return Err(
                Failure::Unfit { text, hint: "let the lab work in a shorter directory".to_owned() }.into()
            );
        }
        fs::create_dir(&directory).map_err(Failure::file("create", &directory))?;
        let owner = rustix::process::geteuid().is_root().then_some(OWNER);
        let cluster = Cluster { programs, directory, owner };
        cluster.hand_over()?;
        let mut initdb = cluster.as_owner(site, None, "initdb");
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--no-locale", "--username", SUPERUSER]);
        initdb.arg("-D").arg(cluster.directory.join("data"));
        run(initdb, "initdb", site.directory, PATIENCE).map_err(|error| cluster.unreachable(error))?;
        Ok(cluster)
    }

    /// Nobody but the server's user may enter: the server trusts who reaches its socket.
    fn hand_over(&self) -> Result<(), Error> {
        let failed = || Failure::file("hand over", &self.directory);
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700)).map_err(failed())?;
        if let Some(owner) = self.owner {
            let numbers = Accounts::new().owner(&format!("{owner}:{owner}"));
            let Ok((Some(user), Some(group))) = numbers else {
                return Err(Error::from(programs::missing(&PGBENCH)));
            };
            chown(&self.directory, Some(user), Some(group)).map_err(failed())?;
        }
        Ok(())
    }

    /// A directory above that is closed is the likely reason.
    fn unreachable(&self, error: Error) -> Error {
        let Some(owner) = self.owner else { return error };
        let closed =
            |path: &&Path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
        let above = self.directory.ancestors().skip(1);
        match above.into_iter().find(closed) {
            Some(closed) => {
                let text = format!("the user {owner} can't reach {}: {error}", self.directory.display());
                let chmod = units::hint::Command::new("chmod o+x").arg(closed.display().to_string());
                Failure::Unfit { text, hint: chmod.into() }.into()
            }
            None => error,
        }
    }

    fn as_owner(&self, site: &Site<'_>, group: Option<&str>, program: &str) -> Tool {
        // an immediate shutdown, by which its children and its shared memory end, too
        let at_end = if program == "postgres" { "QUIT" } else { "KILL" };
        let mut command = command(site.launch, group, &self.programs.join(program), self.owner, at_end);
        without_variables(&mut command);
        command
    }

    /// The directory of PostgreSQL's programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// What a client needs to find the server.
    pub fn address(&self, client: &mut Command) {
        without_variables(client);
        client.arg("-h").arg(&self.directory).args(["-U", SUPERUSER]);
    }

    /// Starts the server in the site's group and waits until it takes connections.
    ///
    /// # Errors
    /// It ends instead, or takes too long.
    pub fn start(&self, site: &Site<'_>, options: &file::Pgbench) -> Result<Server, Error> {
        let data = self.directory.join("data");
        let state = data.join("postmaster.pid");
        let mut command = self.as_owner(site, site.group, "postgres");
        command.arg("-D").arg(&data).arg("-k").arg(&self.directory);
        let buffers = format!("shared_buffers={}", options.shared_buffers);
        command.args(["-c", "listen_addresses=", "-c", &buffers]);
        command.args(["-c", &format!("max_connections={}", options.clients.saturating_add(20))]);
        for (name, value) in &options.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let mut process = Process::start(command, "postgresql", site.directory)?;
        process.wait_until(|process| is_ready(&state, process.pid()))?;
        Ok(Server { process })
    }
}

/// As pg_ctl(1) finds it: the file's first line is the server's number, the eighth its state.
fn is_ready(state: &Path, pid: u32) -> bool {
    let text = fs::read_to_string(state).unwrap_or_default();
    let mut lines = text.lines();
    lines.next() == Some(&pid.to_string()) && lines.nth(6).is_some_and(|state| state.trim() == "ready")
}

/// Removes what the environment would point PostgreSQL's programs to another server.
fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // the site's directory is removed by who made it; this one holds most of it
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Server {
    /// Its first process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Stops it with a checkpoint, so that every start begins alike.
    ///
    /// # Errors
    /// It ended badly or not in time.
    pub fn stop(mut self) -> Result<(), Error> {
        self.process.signal(Signal::INT);
        self.process.finish(PATIENCE)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // its children have sessions of their own: only it can end them
        self.process.signal(Signal::QUIT);
        let _ = self.process.end_within(Duration::from_secs(10));
    }
}
