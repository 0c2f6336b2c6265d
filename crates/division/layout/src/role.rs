//! Roles of the processes of databases, as their titles name them: the one table of what each role is called and which
//! title it has. Titles are those of the databases' own sources and manuals; a row says nothing of threads.

use std::fmt;

/// What a process of a database does, by its title: `postgresql.autovacuum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(usize);

struct Row {
    name: &'static str,
    /// For the manual.
    what: &'static str,
    title: Title,
}

/// Which titles a role has. A text without its database's prefix, as [`postgresql`] and [`oracle`] hand it on.
enum Title {
    /// All of it.
    Is(&'static [&'static str]),
    /// Its beginning, a space behind it.
    Begins(&'static [&'static str]),
    /// Of Oracle: `ora_NAME_SID`, where a `#` of a name is a digit and an `@` a digit or a small letter.
    Named(&'static [&'static str]),
    Fits(fn(&str) -> bool),
}

/// Executables that are called so.
const POSTGRESQL: [&str; 3] = ["postgres", "postmaster", "edb-postgres"];
const ORACLE: [&str; 1] = ["oracle"];

/// In the order in which titles are compared: the first that fits counts.
const ROLES: &[Row] = &[
    Row {
        name: "postgresql.autovacuum",
        what: "autovacuum launcher and workers",
        title: Title::Begins(&["autovacuum launcher", "autovacuum worker"]),
    },
    Row { name: "postgresql.checkpointer", what: "checkpointer", title: Title::Begins(&["checkpointer"]) },
    Row {
        name: "postgresql.writer",
        what: "background writer",
        title: Title::Is(&["background writer", "writer"]),
    },
    Row { name: "postgresql.walwriter", what: "WAL writer", title: Title::Is(&["walwriter", "wal writer"]) },
    Row { name: "postgresql.archiver", what: "archiver", title: Title::Begins(&["archiver"]) },
    Row {
        name: "postgresql.walsender",
        what: "WAL senders, which base backups and replicas read from",
        title: Title::Begins(&["walsender", "wal sender process"]),
    },
    Row {
        name: "postgresql.walreceiver",
        what: "WAL receiver of a replica",
        title: Title::Begins(&["walreceiver", "wal receiver process"]),
    },
    Row {
        name: "postgresql.startup",
        what: "startup process: recovery, replay on a replica",
        title: Title::Begins(&["startup"]),
    },
    Row {
        name: "postgresql.logical",
        what: "logical replication: launcher, workers, slot synchronisation",
        title: Title::Begins(&["logical replication", "bgworker: logical replication", "slotsync worker"]),
    },
    Row {
        name: "postgresql.parallel",
        what: "parallel workers of queries and of CREATE INDEX",
        title: Title::Begins(&["parallel worker", "bgworker: parallel worker"]),
    },
    Row { name: "postgresql.io", what: "I/O workers (PostgreSQL 18)", title: Title::Begins(&["io worker"]) },
    Row {
        name: "postgresql.other",
        what: "logger, statistics collector, WAL summarizer",
        title: Title::Is(&["logger", "stats collector", "walsummarizer"]),
    },
    Row {
        name: "postgresql.backend",
        what: "sessions of clients",
        title: Title::Fits(|title| title.split(' ').any(is_client)),
    },
    Row { name: "postgresql.worker", what: "background workers of extensions", title: Title::Fits(|_| true) },
    Row {
        name: "postgresql.postmaster",
        what: "the first process, which starts all others",
        title: Title::Is(&[]),
    },
    Row { name: "oracle.session", what: "dedicated server processes of sessions", title: Title::Is(&[]) },
    Row {
        name: "oracle.parallel",
        what: "parallel query servers (Pnnn)",
        title: Title::Named(&["p#@@", "pz@@"]),
    },
    Row { name: "oracle.job", what: "job queue (CJQ0, Jnnn)", title: Title::Named(&["cjq0", "j#@@"]) },
    Row {
        name: "oracle.dbwriter",
        what: "database writers (DBWn, BWnn)",
        title: Title::Named(&["dbw@", "bw##"]),
    },
    Row { name: "oracle.logwriter", what: "log writer (LGWR, LGnn)", title: Title::Named(&["lgwr", "lg##"]) },
    Row { name: "oracle.checkpoint", what: "checkpoint process (CKPT)", title: Title::Named(&["ckpt"]) },
    Row { name: "oracle.archiver", what: "archivers (ARCn)", title: Title::Named(&["arc@"]) },
    Row {
        name: "oracle.shared",
        what: "shared servers and dispatchers (Snnn, Dnnn)",
        title: Title::Named(&["s#@@", "d#@@"]),
    },
    Row {
        name: "oracle.background",
        what: "all other background processes, PMON and those of a cluster among them",
        title: Title::Named(&["*"]),
    },
];

impl Role {
    /// All, by name with what they are.
    pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        ROLES.iter().map(|row| (row.name, row.what))
    }

    /// The role of that name.
    pub fn new(name: &str) -> Option<Role> {
        ROLES.iter().position(|row| row.name == name).map(Role)
    }

    /// The role of a process by its executable's path and its command line as `/proc/PID/cmdline` has it.
    pub fn of(executable: &[u8], command: &[u8]) -> Option<Role> {
        let program = executable.rsplit(|byte| *byte == b'/').next()?;
        let is_any = |names: &[&str]| names.iter().any(|name| name.as_bytes() == program);
        let title = match () {
            () if is_any(&POSTGRESQL) => postgresql,
            () if is_any(&ORACLE) => oracle,
            () => return None,
        };
        title(&command_words(command))
    }

    /// As layouts have it.
    pub fn name(self) -> &'static str {
        ROLES[self.0].name
    }
}

/// A command line with its words parted by spaces.
pub fn command_words(command: &[u8]) -> String {
    let command = command.strip_suffix(b"\0").unwrap_or(command);
    String::from_utf8_lossy(command).replace('\0', " ")
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a title may be taken for that begins with the name of a cluster.
const UNCERTAIN: [&str; 2] = ["postgresql.worker", "postgresql.backend"];

/// `postgres: checkpointer`, with a cluster's name `postgres: 15/main: checkpointer`, up to version 12 `postgres: checkpointer process`
/// (`init_ps_display` in `src/backend/utils/misc/ps_status.c`).
fn postgresql(command: &str) -> Option<Role> {
    let Some(title) = command.strip_prefix("postgres: ") else { return Role::new("postgresql.postmaster") };
    let title = title.trim_end();
    let title = title.strip_suffix(" process").unwrap_or(title);
    let behind =
        title.split_once(": ").map(|(_, behind)| behind).filter(|_| !title.starts_with("bgworker: "));
    let first = |title: &str| {
        let is_client = title.split(' ').skip(1).any(is_client);
        let mut rows = ROLES.iter().enumerate().filter(|(_, row)| row.name.starts_with("postgresql."));
        // a user or a database may have the name of a role
        rows.find(|(_, row)| row.title.fits(title) && (!is_client || row.may_have_client()))
            .map(|(at, _)| Role(at))
    };
    // a database's name may have a colon, and who may make one is trusted less than who names the cluster
    let is_one = |role: &Role| !UNCERTAIN.contains(&role.name());
    let whole = first(title);
    whole.filter(is_one).or_else(|| behind.and_then(first)).or(whole)
}

/// `ora_pmon_SID`, `oracleSID (LOCAL=NO)`.
fn oracle(command: &str) -> Option<Role> {
    let Some(title) = command.strip_prefix("ora_") else {
        return command.starts_with("oracle").then(|| Role::new("oracle.session")).flatten();
    };
    let mut rows = ROLES.iter().enumerate().filter(|(_, row)| row.name.starts_with("oracle."));
    rows.find(|(_, row)| row.title.fits(title)).map(|(at, _)| Role(at))
}

/// The part of a title that says where a client is: `[local]`, `10.0.0.1(5432)`.
fn is_client(word: &str) -> bool {
    let port = word.strip_suffix(')').and_then(|word| Some(word.rsplit_once('(')?.1));
    word == "[local]" || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()))
}

impl Row {
    /// Has its title the address of a client in it?
    fn may_have_client(&self) -> bool {
        matches!(self.name, "postgresql.backend" | "postgresql.walsender")
    }
}

impl Title {
    fn fits(&self, title: &str) -> bool {
        match self {
            Title::Is(all) => all.contains(&title),
            Title::Begins(all) => all.iter().any(|begin| {
                title.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            }),
            Title::Named(all) => {
                let name = title.split('_').next().unwrap_or_default();
                let is_like = |(like, c): (u8, u8)| match like {
                    b'#' => c.is_ascii_digit(),
                    b'@' => c.is_ascii_digit() || c.is_ascii_lowercase(),
                    like => like == c,
                };
                all.iter().any(|like| {
                    *like == "*" || like.len() == name.len() && like.bytes().zip(name.bytes()).all(is_like)
                })
            }
            Title::Fits(fits) => fits(title),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(program: &str, command: &str) -> &'static str {
        Role::of(program.as_bytes(), command.as_bytes()).map_or("none", Role::name)
    }

    #[test]
    fn a_title_of_postgresql_has_one_role_with_and_without_the_name_of_a_cluster() {
        for (title, expected) in [
            ("checkpointer ", "checkpointer"),
            ("checkpointer process   ", "checkpointer"),
            ("checkpointer performing shutdown checkpoint", "checkpointer"),
            ("background writer ", "writer"),
            ("writer process", "writer"),
            ("walwriter ", "walwriter"),
            ("wal writer process", "walwriter"),
            ("autovacuum launcher ", "autovacuum"),
            ("autovacuum worker shop", "autovacuum"),
            ("autovacuum worker a: b", "autovacuum"),
            ("autovacuum worker a: checkpointer", "autovacuum"),
            ("autovacuum worker process   shop", "autovacuum"),
            ("archiver last was 000000010000000000000003", "archiver"),
            ("archiver ", "archiver"),
            ("walsender repl 10.0.0.2(41234) streaming 0/3000148", "walsender"),
            ("wal sender process repl 10.0.0.2(41234) streaming 0/3000148", "walsender"),
            ("walreceiver streaming 0/3000148", "walreceiver"),
            ("startup recovering 000000010000000000000003", "startup"),
            ("logical replication launcher ", "logical"),
            ("logical replication worker for subscription 16390", "logical"),
            ("logical replication apply worker for subscription 16390 ", "logical"),
            ("bgworker: logical replication launcher   ", "logical"),
            ("parallel worker for PID 4711 ", "parallel"),
            ("io worker 0", "io"),
            ("logger ", "other"),
            ("alice shop [local] idle", "backend"),
            ("alice shop 10.0.0.1(5432) idle in transaction", "backend"),
            ("alice shop ::1(40022) SELECT", "backend"),
            // names that look like roles
            ("checkpointer shop [local] idle", "backend"),
            ("autovacuum worker [local] idle", "backend"),
            ("archiver shop 10.0.0.1(5432) SELECT", "backend"),
            ("TimescaleDB Background Worker Launcher ", "worker"),
            ("pg_cron launcher ", "worker"),
        ] {
            let expected = format!("postgresql.{expected}");
            for prefix in ["", "15/main: ", "checkpointer: "] {
                let command = format!("postgres: {prefix}{title}");
                assert_eq!(role("/usr/lib/postgresql/15/bin/postgres", &command), expected, "{command}");
            }
        }
        let first = "/usr/lib/postgresql/15/bin/postgres -D /var/lib/postgresql/15/main";
        assert_eq!(role("/usr/lib/postgresql/15/bin/postgres", first), "postgresql.postmaster");
        assert_eq!(role("/usr/bin/perl", "postgres: checkpointer "), "none");
    }

    #[test]
    fn a_title_of_oracle_has_one_role() {
        for (title, expected) in [
            ("ora_pmon_ORCL", "background"),
            ("ora_psp0_ORCL", "background"),
            ("ora_p000_ORCL", "parallel"),
            ("ora_p00a_ORCL", "parallel"),
            ("ora_smon_ORCL", "background"),
            ("ora_dbw0_ORCL", "dbwriter"),
            ("ora_dbwa_ORCL", "dbwriter"),
            ("ora_lgwr_ORCL_2", "logwriter"),
            ("ora_lg00_ORCL", "logwriter"),
            ("ora_ckpt_ORCL", "checkpoint"),
            ("ora_arc1_ORCL", "archiver"),
            ("ora_cjq0_ORCL", "job"),
            ("ora_j004_ORCL", "job"),
            ("ora_s000_ORCL", "shared"),
            ("ora_lms0_ORCL", "background"),
            ("oracleORCL (LOCAL=NO)", "session"),
            ("oracleORCL (DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))", "session"),
        ] {
            assert_eq!(role("/u01/app/bin/oracle", title), format!("oracle.{expected}"), "{title}");
        }
        assert_eq!(role("/u01/app/bin/oracle", "asm_pmon_+ASM"), "none");
    }

    #[test]
    fn every_row_is_found_by_its_name() {
        for (name, what) in Role::all() {
            assert_eq!(Role::new(name).map(Role::name), Some(name));
            assert!(!what.is_empty());
        }
        assert_eq!(Role::new("postgresql.nothing"), None);
    }
}
