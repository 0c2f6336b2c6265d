//! What is known of each driver, a row each: the figures of its runs and what they are in, the tool that it is and the
//! packages that hold it, what is built in instead, and how it works. The check, the schema and its descriptions, the
//! planned time and the hint that installs a tool come from here. Its options are the fields of its type in
//! [`crate::file`].

use crate::{
    file::Driver,
    unit::{BYTE_RATE, Dimension, MILLISECONDS, PLAIN, RATE, TIME},
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

/// A driver.
#[derive(Debug)]
pub struct Row {
    /// As an experiment's file names it.
    pub name: &'static str,
    /// What is measured.
    pub figures: &'static [Figure],
    /// `None` if it is built in, or any program.
    pub tool: Option<&'static Tool>,
    /// What is built in and runs where the tool is missing.
    pub built_in: Option<&'static str>,
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
pub const ALL: [Row; 15] = [
    Row {
        name: "pgbench",
        figures: TRANSACTIONS,
        tool: Some(&PGBENCH),
        built_in: Some("the built-in OLTP"),
        ..PLAIN_ROW
    },
    Row {
        name: "fio",
        figures: READS,
        tool: Some(&FIO),
        built_in: Some("the built-in reader"),
        has_own_clock: true,
        is_io: true,
    },
    Row {
        name: "cyclictest",
        figures: &[("latency", Some(TIME)), ("cycles", Some(PLAIN))],
        tool: Some(&CYCLICTEST),
        built_in: Some("the built-in cyclic test"),
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
    Row { name: "command", figures: &[("seconds", Some(TIME)), ("value", None)], ..PLAIN_ROW },
    Row {
        name: "cpu",
        figures: &[("rate", Some(RATE)), ("cpus", Some(PLAIN)), ("rate-per-cpu", Some(RATE))],
        ..PLAIN_ROW
    },
    Row { name: "read", figures: READS, is_io: true, ..PLAIN_ROW },
    Row { name: "oltp", figures: TRANSACTIONS, ..PLAIN_ROW },
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
            Driver::Command(_) => 5,
            Driver::Cpu(_) => 6,
            Driver::Read(_) => 7,
            Driver::Oltp(_) => 8,
            Driver::Cyclic(_) => 9,
            Driver::LogicalIo(_) => 10,
            Driver::Busy(_) => 11,
            Driver::Sleepers(_) => 12,
            Driver::Writers(_) => 13,
            Driver::IdlePoll(_) => 14,
        };
        &ALL[index]
    }

    /// Does it end its warm-up and itself by its own clock?
    pub fn has_own_clock(&self) -> bool {
        match self {
            Driver::Command(command) => command.until_end.unwrap_or(true),
            other => other.row().has_own_clock,
        }
    }
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
        let instead =
            self.built_in.map(|name| format!(" Where that is missing, {name} runs.")).unwrap_or_default();
        format!("Figures: {}.{needs}{instead}", figures.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TAG;

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
