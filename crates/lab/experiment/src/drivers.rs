//! What is known of each driver, a row each: the figures of its runs and what they are in, the tool that it is and the
//! packages that hold it, what is built in instead, and how it works. The check, the schema and its descriptions, the
//! planned time, the replacement of a missing tool and the hint that installs it come from here. Its options and their
//! defaults are its type in [`crate::file`].

use crate::{
    file::{Busy, Cyclic, Driver, Oltp, Read, Writers},
    unit::{BYTE_RATE, BYTES, Dimension, MILLISECONDS, PLAIN, RATE, TIME},
};

/// A figure of a driver's runs: its name, and what it is in (`None`: in whatever a program prints).
pub type Figure = (&'static str, Option<Dimension>);

/// A program that is not built in, and the packages that hold it: Debian's, Fedora's, openSUSE's, Arch's.
#[derive(Debug, PartialEq)]
pub struct Tool {
    /// As people call it.
    pub title: &'static str,
    /// What is searched for on the path.
    pub program: &'static str,
    /// In the order of the distributions above.
    pub packages: [&'static str; 4],
}

/// The device of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnDevice<'d> {
    /// Its name in the experiment, or a path.
    pub name: &'d str,
    /// It is written to.
    pub writes: bool,
}

/// What runs in place of a missing tool.
#[derive(Debug)]
pub struct BuiltIn {
    /// As people call it.
    pub title: &'static str,
    /// The built-in driver that does the same; `None` if it can't do what these options ask for.
    pub of: fn(&Driver) -> Option<Driver>,
}

/// A driver.
#[derive(Debug)]
pub struct Row {
    /// As an experiment's file names it.
    pub name: &'static str,
    /// What is measured.
    pub figures: &'static [Figure],
    /// `None` if it is built in, or any program.
    pub tool: Option<&'static Tool>,
    /// What runs where the tool is missing.
    pub built_in: Option<BuiltIn>,
    /// It ends its warm-up and itself by its own clock.
    pub has_own_clock: bool,
    /// Threads of the kernel do its work.
    pub is_io: bool,
}

/// The server and pgbench, which some distributions pack apart.
pub const PGBENCH: Tool = Tool {
    title: "PostgreSQL",
    program: "pgbench",
    packages: [
        "postgresql",
        "postgresql-server postgresql-contrib",
        "postgresql-server postgresql-contrib",
        "postgresql",
    ],
};
/// Reads and writes of a device.
pub const FIO: Tool = Tool { title: "fio", program: "fio", packages: ["fio"; 4] };
/// Wake-up latency.
pub const CYCLICTEST: Tool = Tool {
    title: "cyclictest",
    program: "cyclictest",
    packages: ["rt-tests", "realtime-tests", "rt-tests", "rt-tests"],
};
/// What the kernel's tracers measure.
pub const RTLA: Tool = Tool { title: "rtla", program: "rtla", packages: ["rtla", "rtla", "rtla", "rtla"] };
/// CPU and memory tests.
pub const SYSBENCH: Tool = Tool { title: "sysbench", program: "sysbench", packages: ["sysbench"; 4] };
/// Loads.
pub const STRESS_NG: Tool = Tool { title: "stress-ng", program: "stress-ng", packages: ["stress-ng"; 4] };

const TRANSACTIONS: &[Figure] = &[
    ("tps", Some(RATE)),
    ("transactions", Some(PLAIN)),
    ("failed", Some(PLAIN)),
    ("latency", Some(TIME)),
    ("lag", Some(TIME)),
];
const WITH_BURSTS: &[Figure] = &[
    TRANSACTIONS[0],
    TRANSACTIONS[1],
    TRANSACTIONS[2],
    TRANSACTIONS[3],
    TRANSACTIONS[4],
    ("bursts", Some(RATE)),
];
const READS: &[Figure] = &[
    ("iops", Some(RATE)),
    ("operations", Some(PLAIN)),
    ("bytes-per-second", Some(BYTE_RATE)),
    ("latency", Some(TIME)),
];
const ROUNDS: &[Figure] = &[("rate", Some(RATE)), ("cpus", Some(PLAIN)), ("fairness", Some(PLAIN))];

/// A built-in one that does nothing special.
const PLAIN_ROW: Row =
    Row { name: "", figures: &[], tool: None, built_in: None, has_own_clock: false, is_io: false };

/// All of them, in the order of [`Driver`].
pub const ALL: [Row; 16] = [
    Row {
        name: "pgbench",
        figures: TRANSACTIONS,
        tool: Some(&PGBENCH),
        built_in: Some(BuiltIn { title: "the built-in OLTP", of: oltp }),
        ..PLAIN_ROW
    },
    Row {
        name: "fio",
        figures: READS,
        tool: Some(&FIO),
        built_in: Some(BuiltIn { title: "the built-in reader", of: reader }),
        has_own_clock: true,
        is_io: true,
    },
    Row {
        name: "cyclictest",
        figures: &[("latency", Some(TIME)), ("cycles", Some(PLAIN))],
        tool: Some(&CYCLICTEST),
        built_in: Some(BuiltIn { title: "the built-in cyclic test", of: cyclic }),
        has_own_clock: true,
        is_io: false,
    },
    Row {
        name: "sysbench",
        figures: &[("rate", Some(RATE)), ("latency", Some(TIME))],
        tool: Some(&SYSBENCH),
        has_own_clock: true,
        ..PLAIN_ROW
    },
    Row { name: "stress-ng", figures: &[("rate", Some(RATE))], tool: Some(&STRESS_NG), ..PLAIN_ROW },
    Row {
        name: "rtla",
        figures: &[
            ("latency", Some(TIME)),
            ("noise", Some(PLAIN)),
            ("interruptions", Some(RATE)),
            ("longest", Some(TIME)),
        ],
        tool: Some(&RTLA),
        built_in: Some(BuiltIn { title: "the built-in cyclic test", of: timerlat }),
        has_own_clock: true,
        is_io: false,
    },
    Row {
        name: "command",
        figures: &[
            ("seconds", Some(TIME)),
            ("cpu-time", Some(TIME)),
            ("peak-memory", Some(BYTES)),
            ("value", None),
        ],
        ..PLAIN_ROW
    },
    Row {
        name: "cpu",
        figures: &[("rate", Some(RATE)), ("cpus", Some(PLAIN)), ("rate-per-cpu", Some(RATE))],
        ..PLAIN_ROW
    },
    Row { name: "read", figures: READS, is_io: true, ..PLAIN_ROW },
    Row { name: "oltp", figures: WITH_BURSTS, ..PLAIN_ROW },
    Row {
        name: "cyclic",
        figures: &[
            ("latency", Some(TIME)),
            ("cycles", Some(PLAIN)),
            ("missed", Some(PLAIN)),
            ("priority", Some(PLAIN)),
        ],
        ..PLAIN_ROW
    },
    Row {
        name: "logical-io",
        figures: &[
            ("reads", Some(RATE)),
            ("executions", Some(RATE)),
            ("calls", Some(RATE)),
            ("transactions", Some(RATE)),
            ("db-time", Some(PLAIN)),
            ("db-cpu", Some(PLAIN)),
            ("run-queue", Some(PLAIN)),
            ("cpu-quantum", Some(PLAIN)),
            ("cpu-quantum-waits", Some(RATE)),
            ("cpu-quantum-ms", Some(MILLISECONDS)),
            ("unaccounted", Some(PLAIN)),
            ("reads-per-cpu", Some(RATE)),
            ("fairness", Some(PLAIN)),
        ],
        ..PLAIN_ROW
    },
    Row { name: "busy", figures: ROUNDS, ..PLAIN_ROW },
    Row { name: "sleepers", figures: ROUNDS, ..PLAIN_ROW },
    Row { name: "writers", figures: ROUNDS, is_io: true, ..PLAIN_ROW },
    Row { name: "idle-poll", figures: ROUNDS, ..PLAIN_ROW },
];

impl Driver {
    /// What is known of it.
    pub fn row(&self) -> &'static Row {
        let index = match self {
            Driver::Pgbench(_) => 0,
            Driver::Fio(_) => 1,
            Driver::Cyclictest(_) => 2,
            Driver::Sysbench(_) => 3,
            Driver::StressNg(_) => 4,
            Driver::Rtla(_) => 5,
            Driver::Command(_) => 6,
            Driver::Cpu(_) => 7,
            Driver::Read(_) => 8,
            Driver::Oltp(_) => 9,
            Driver::Cyclic(_) => 10,
            Driver::LogicalIo(_) => 11,
            Driver::Busy(_) => 12,
            Driver::Sleepers(_) => 13,
            Driver::Writers(_) => 14,
            Driver::IdlePoll(_) => 15,
        };
        &ALL[index]
    }

    /// Does it end its warm-up and itself by its own clock?
    pub fn has_own_clock(&self) -> bool {
        match self {
            Driver::Command(command) => command.until_end,
            other => other.row().has_own_clock,
        }
    }

    /// Is it a program that runs to its end, so that what counts of it is the time that it takes?
    pub fn runs_to_its_end(&self) -> bool {
        matches!(self, Driver::Command(command) if command.until_end)
    }

    /// Options that are a number of threads, or `{NAME}` for as many as a set of CPUs has: their names and texts.
    pub fn counts(&mut self) -> Vec<(&'static str, &mut String)> {
        match self {
            Driver::Cpu(Busy { threads })
            | Driver::Busy(Busy { threads })
            | Driver::Sleepers(Busy { threads })
            | Driver::IdlePoll(Busy { threads })
            | Driver::Writers(Writers { threads, .. }) => vec![("threads", threads)],
            Driver::LogicalIo(engine) => {
                let cage = engine.cpu_count.as_mut().map(|text| ("cpu-count", text));
                [("readers", &mut engine.readers)].into_iter().chain(cage).collect()
            }
            Driver::Pgbench(_)
            | Driver::Fio(_)
            | Driver::Cyclictest(_)
            | Driver::Sysbench(_)
            | Driver::StressNg(_)
            | Driver::Rtla(_)
            | Driver::Command(_)
            | Driver::Read(_)
            | Driver::Oltp(_)
            | Driver::Cyclic(_) => Vec::new(),
        }
    }

    /// Groups that its options name.
    pub fn groups(&self) -> impl Iterator<Item = &String> {
        let roles = if let Driver::Pgbench(pgbench) = self { Some(&pgbench.roles) } else { None };
        roles.into_iter().flat_map(|roles| roles.values())
    }

    /// What it works on; `None` if it needs no device.
    pub fn device(&self) -> Option<OnDevice<'_>> {
        match self {
            Driver::Fio(fio) => {
                let writes = ["write", "rw", "trim"].iter().any(|way| fio.rw.contains(way));
                Some(OnDevice { name: &fio.device, writes })
            }
            Driver::Read(read) => Some(OnDevice { name: &read.device, writes: false }),
            Driver::Writers(writers) => writers.device.as_deref().map(|name| OnDevice { name, writes: true }),
            Driver::Pgbench(_)
            | Driver::Cyclictest(_)
            | Driver::Sysbench(_)
            | Driver::StressNg(_)
            | Driver::Rtla(_)
            | Driver::Command(_)
            | Driver::Cpu(_)
            | Driver::Oltp(_)
            | Driver::Cyclic(_)
            | Driver::LogicalIo(_)
            | Driver::Busy(_)
            | Driver::Sleepers(_)
            | Driver::IdlePoll(_) => None,
        }
    }
}

fn reader(driver: &Driver) -> Option<Driver> {
    let Driver::Fio(fio) = driver else { return None };
    let depth = fio.jobs.saturating_mul(fio.depth);
    let read = Read { device: fio.device.clone(), block: fio.block.clone(), depth };
    (fio.rw == "read").then_some(Driver::Read(read))
}

fn oltp(driver: &Driver) -> Option<Driver> {
    let Driver::Pgbench(pgbench) = driver else { return None };
    let script = match pgbench.script.as_str() {
        "select-only" => "select",
        "tpcb-like" | "simple-update" => "tpcb",
        _ => return None,
    };
    let oltp = Oltp {
        clients: pgbench.clients,
        script: script.to_owned(),
        rate: pgbench.rate,
        // both are what the server has of its data in memory of its own
        memory: pgbench.shared_buffers.clone(),
        ..Oltp::default()
    };
    // the user's own server can't be replaced, nor what only PostgreSQL has
    let is_plain = pgbench.partitions.is_none() && pgbench.settings.is_empty() && pgbench.roles.is_empty();
    (is_plain && pgbench.dsn.is_none() && pgbench.pid.is_none()).then_some(Driver::Oltp(oltp))
}

fn cyclic(driver: &Driver) -> Option<Driver> {
    let Driver::Cyclictest(cyclic) = driver else { return None };
    Some(Driver::Cyclic(cyclic.clone()))
}

fn timerlat(driver: &Driver) -> Option<Driver> {
    let Driver::Rtla(rtla) = driver else { return None };
    let cyclic = Cyclic { interval_us: rtla.interval_us, priority: rtla.priority, ..Cyclic::default() };
    (rtla.tracer == "timerlat").then_some(Driver::Cyclic(cyclic))
}

impl Row {
    /// Names of its figures.
    pub fn names(&self) -> Vec<&'static str> {
        self.figures.iter().map(|(name, _)| *name).collect()
    }

    /// What a figure is in; `None` where that is not known.
    pub(crate) fn dimension(&self, figure: &str) -> Option<Dimension> {
        self.figures.iter().find(|(name, _)| *name == figure).and_then(|(_, dimension)| *dimension)
    }

    /// For the schema: what its figures are, and what it needs.
    pub(crate) fn described(&self) -> String {
        let figure = |(name, dimension): &Figure| {
            let unit = dimension.map_or_else(|| " (as the program prints it)".to_owned(), Dimension::words);
            format!("`{name}`{unit}")
        };
        let figures: Vec<String> = self.figures.iter().map(figure).collect();
        let needs = self.tool.map(|tool| format!(" Needs {}.", tool.title)).unwrap_or_default();
        let instead = self.built_in.as_ref().map(|by| {
            format!(" Where that is missing, {} runs, if it can do what the options ask for.", by.title)
        });
        format!("Figures: {}.{needs}{}", figures.join(", "), instead.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{file::Pgbench, options::TAG};

    #[test]
    fn what_replaces_pgbench_has_its_clients_its_rate_and_its_memory() {
        let requested = Pgbench {
            clients: 5,
            rate: Some(7.5),
            script: "simple-update".to_owned(),
            shared_buffers: "256MB".to_owned(),
            ..Pgbench::default()
        };
        let expected = Oltp {
            clients: 5,
            rate: Some(7.5),
            script: "tpcb".to_owned(),
            memory: "256MB".to_owned(),
            ..Oltp::default()
        };
        assert_eq!(oltp(&Driver::Pgbench(requested.clone())), Some(Driver::Oltp(expected)));
        for other in [
            Pgbench { script: "select 1;".to_owned(), ..requested.clone() },
            Pgbench { dsn: Some("host=db".to_owned()), ..requested.clone() },
            Pgbench { partitions: Some(4), ..requested.clone() },
            Pgbench { settings: [("jit".to_owned(), "off".to_owned())].into(), ..requested.clone() },
            Pgbench { roles: [("postgresql.io".to_owned(), "io".to_owned())].into(), ..requested },
        ] {
            assert_eq!(oltp(&Driver::Pgbench(other)), None);
        }
    }

    #[test]
    fn a_tool_alone_has_something_built_in_that_runs_in_its_place() {
        for row in ALL.iter().filter(|row| row.built_in.is_some()) {
            let text = serde_json::json!({ TAG: row.name, "device": "disk" });
            let driver: Driver = serde_json::from_value(text).unwrap();
            let instead = row.built_in.as_ref().and_then(|by| (by.of)(&driver)).unwrap();
            assert!(row.tool.is_some() && instead.row().tool.is_none(), "{}", row.name);
        }
    }

    #[test]
    fn each_driver_has_its_own_row() {
        for row in &ALL {
            // the device and the command have no default
            let text = serde_json::json!({ TAG: row.name, "device": "disk", "command": ["true"] });
            let driver: Driver = serde_json::from_value(text).unwrap();
            assert_eq!(driver.row().name, row.name);
            assert!(!row.figures.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn the_schema_describes_each_drivers_figures() {
        let schema = crate::schema();
        for row in &ALL {
            for name in row.names() {
                assert!(row.described().contains(&format!("`{name}`")), "{name}");
            }
            let described = serde_json::to_string(&row.described()).unwrap();
            assert!(schema.contains(described.trim_matches('"')), "{}: {described}", row.name);
        }
    }
}
