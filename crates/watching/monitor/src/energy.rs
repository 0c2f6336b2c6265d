//! What power saving can be seen by: how long each CPU was idle in which state (`cpuidle`), and how much energy the processor
//! used (`intel-rapl`), as counts since the boot. Many machines, and most virtual ones, show neither.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Counts at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Energy {
    at: Instant,
    /// By CPU: the names of its idle states, and how long it was in each, in microseconds.
    idle: BTreeMap<usize, Vec<(String, u64)>>,
    /// By domain, such as `package-0`: microjoules, and where the count begins again.
    joules: BTreeMap<String, (u64, u64)>,
}

/// What became of it between two moments.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct EnergyUse {
    /// By CPU: shares of the time in each idle state.
    pub idle: BTreeMap<usize, BTreeMap<String, f64>>,
    /// By domain: watts.
    pub watts: BTreeMap<String, f64>,
}

impl Energy {
    /// Of the running machine.
    pub fn live() -> Energy {
        Energy::below(Path::new("/"))
    }

    /// Of a copy of its files below a directory.
    pub fn below(root: &Path) -> Energy {
        Energy { at: Instant::now(), idle: idle(root), joules: joules(root) }
    }

    /// Seconds that each CPU was in each idle state: CPU, state, seconds.
    pub fn idle_seconds(&self) -> impl Iterator<Item = (usize, &str, f64)> {
        let of_cpu = |(cpu, states): (&usize, _)| (*cpu, states);
        self.idle.iter().map(of_cpu).flat_map(|(cpu, states): (usize, &Vec<(String, u64)>)| {
            states.iter().map(move |(name, micros)| (cpu, name.as_str(), *micros as f64 / 1e6))
        })
    }

    /// Joules by domain; the count begins again now and then.
    pub fn joules(&self) -> impl Iterator<Item = (&str, f64)> {
        self.joules.iter().map(|(domain, (micros, _))| (domain.as_str(), *micros as f64 / 1e6))
    }

    /// Since an earlier moment.
    pub fn since(&self, before: &Energy) -> EnergyUse {
        self.over(before, self.at.saturating_duration_since(before.at))
    }

    fn over(&self, before: &Energy, time: Duration) -> EnergyUse {
        let seconds = time.as_secs_f64().max(1e-6);
        let share = |cpu: &usize, name: &String, after: u64| {
            let before = before.idle.get(cpu)?.iter().find(|(known, _)| known == name)?.1;
            Some((after.saturating_sub(before) as f64 / 1e6 / seconds).clamp(0.0, 1.0))
        };
        let of_cpu = |(cpu, states): (&usize, &Vec<(String, u64)>)| {
            let shares =
                states.iter().filter_map(|(name, micros)| Some((name.clone(), share(cpu, name, *micros)?)));
            (*cpu, shares.collect())
        };
        let watts = self.joules.iter().filter_map(|(domain, (after, range))| {
            let (before, _) = before.joules.get(domain)?;
            let used = if after >= before { after - before } else { (range + after).saturating_sub(*before) };
            Some((domain.clone(), used as f64 / 1e6 / seconds))
        });
        EnergyUse { idle: self.idle.iter().map(of_cpu).collect(), watts: watts.collect() }
    }
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The entries of a directory whose names begin so, with what follows.
fn entries(directory: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = all.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix(prefix)?.to_owned(), entry.path()))
    });
    let mut named: Vec<(String, PathBuf)> = named.collect();
    named.sort();
    named
}

fn idle(root: &Path) -> BTreeMap<usize, Vec<(String, u64)>> {
    let cpus = entries(&root.join("sys/devices/system/cpu"), "cpu");
    let of_cpu = |(number, path): (String, PathBuf)| {
        let states = entries(&path.join("cpuidle"), "state")
            .into_iter()
            .filter_map(|(_, state)| Some((text(&state.join("name"))?, self::number(&state.join("time"))?)));
        let states: Vec<(String, u64)> = states.collect();
        Some((number.parse().ok()?, states)).filter(|(_, states)| !states.is_empty())
    };
    cpus.into_iter().filter_map(of_cpu).collect()
}

/// `energy_uj` is root's alone.
fn joules(root: &Path) -> BTreeMap<String, (u64, u64)> {
    let zones = entries(&root.join("sys/class/powercap"), "intel-rapl:");
    let of_zone = |(zone, path): (String, PathBuf)| {
        let name = text(&path.join("name"))?;
        // a core's or memory's zone is one of a package
        let name = match zone.split_once(':') {
            Some((package, _)) => format!("package-{package}/{name}"),
            None => name,
        };
        let range = number(&path.join("max_energy_range_uj")).unwrap_or(0);
        Some((name, (number(&path.join("energy_uj"))?, range)))
    };
    zones.into_iter().filter_map(of_zone).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's failure is a panic")]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    #[test]
    fn idle_states_and_energy_are_rates_between_two_looks_also_where_a_count_begins_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let none = Energy::below(root);
        assert_eq!((none.idle_seconds().count(), none.joules().count()), (0, 0));
        let cpu = "sys/devices/system/cpu";
        let rapl = "sys/class/powercap";
        let set = |poll: u64, deep: u64, package: u64, memory: u64| {
            for (state, name, time) in [(0, "POLL", poll), (1, "C6", deep)] {
                write(root, &format!("{cpu}/cpu1/cpuidle/state{state}/name"), name);
                write(root, &format!("{cpu}/cpu1/cpuidle/state{state}/time"), &time.to_string());
            }
            for (zone, name, energy) in [("0", "package-0", package), ("0:0", "dram", memory)] {
                write(root, &format!("{rapl}/intel-rapl:{zone}/name"), name);
                write(root, &format!("{rapl}/intel-rapl:{zone}/energy_uj"), &energy.to_string());
                write(root, &format!("{rapl}/intel-rapl:{zone}/max_energy_range_uj"), "100000000");
            }
        };
        fs::create_dir_all(root.join(cpu).join("cpufreq")).unwrap();
        set(1_000_000, 2_000_000, 99_000_000, 5_000_000);
        let before = Energy::below(root);
        assert_eq!(before.idle_seconds().collect::<Vec<_>>(), [(1, "POLL", 1.0), (1, "C6", 2.0)]);
        assert_eq!(before.joules().collect::<Vec<_>>(), [("package-0", 99.0), ("package-0/dram", 5.0)]);
        set(1_000_000, 3_500_000, 9_000_000, 6_000_000);
        let used = Energy::below(root).over(&before, Duration::from_secs(2));
        assert_eq!(used.idle[&1], BTreeMap::from([("POLL".to_owned(), 0.0), ("C6".to_owned(), 0.75)]));
        assert_eq!(used.watts["package-0"], 5.0);
        assert_eq!(used.watts["package-0/dram"], 0.5);
    }
}
