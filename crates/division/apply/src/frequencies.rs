//! Frequencies of CPUs that power saving leaves idle: their governor and energy preference save energy, and CPUs in use have what
//! they had. What was there before is in a file before the first write, so that the next process puts it back after a crash.

use std::{collections::BTreeSet, io::ErrorKind, path::PathBuf};

use kernel::GroupName;
use policy::Scope;
use serde::{Deserialize, Serialize};
use settings::knobs::{self, Instance, Knob};
use units::CpuSet;

use crate::{Failure, MachineKnobs, State, Target, cpus_of, status::layout_in_effect};

/// The rows of the table of knobs, with what saves energy. While the governor is `performance`, a processor refuses other
/// preferences: this order on the way there, the other one on the way back.
const ROWS: [(&str, &str); 2] = [("governor", "powersave"), ("energy-preference", "power")];

/// The file of what was there before.
const FILE: &str = "frequencies.json";

/// The frequencies of a state directory's machine.
#[derive(Debug)]
pub struct Frequencies {
    path: PathBuf,
    /// Places that refused: not tried again.
    refused: BTreeSet<Instance>,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Followed {
    /// CPUs that save energy now and did not before.
    pub saving: CpuSet,
    /// CPUs that have again what they had.
    pub restored: CpuSet,
    /// In words: places that refuse, or that somebody else changed.
    pub left: Vec<String>,
}

/// What the file has.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Nothing of it outlives the boot.
    boot: String,
    given: Vec<Given>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Given {
    knob: String,
    instance: Instance,
    before: String,
}

impl Frequencies {
    /// Those of a state directory. Nothing is read yet.
    pub fn of(state: &State) -> Frequencies {
        Frequencies { path: state.directory().join("elastic").join(FILE), refused: BTreeSet::new() }
    }

    /// Lets these CPUs save energy, and all others have what they had. A CPU that shares its frequency with one that is not
    /// among them is left alone. Nothing is written where nothing changes.
    ///
    /// # Errors
    /// The file can't be read or written: nothing new saves energy then.
    pub fn follow(
        &mut self,
        machine: &dyn MachineKnobs,
        boot: &str,
        idle: &CpuSet,
    ) -> Result<Followed, Failure> {
        let (stays, mut done) = self.restore(machine, boot, idle)?;
        if stays.is_empty() && idle.is_empty() {
            return Ok(done);
        }
        let mut given = stays;
        let before = given.len();
        for (knob, to) in ROWS {
            let Some(row) = knobs::find(knob) else { continue };
            for seen in machine.look(row) {
                let is_known = given.iter().any(|one| one.instance == seen.instance);
                if is_known
                    || row.same(&seen.text, to)
                    || self.refused.contains(&seen.instance)
                    || !is_idle(machine, &seen.instance, idle)
                {
                    continue;
                }
                let before = row.plain(&seen.text).to_owned();
                given.push(Given { knob: knob.to_owned(), instance: seen.instance, before });
            }
        }
        if given.len() > before {
            self.write(boot, &given)?;
        }
        let mut refused = Vec::new();
        for one in &given[before..] {
            let Some((row, to)) = row_of(one) else { continue };
            match machine.write(&one.instance, to) {
                Ok(()) => done.saving = done.saving.union(&one.instance.cpu().into_iter().collect()),
                Err(errno) => {
                    let means = row
                        .refusal(errno.raw_os_error())
                        .map_or_else(|| kernel::describe(errno), |one| one.means.to_owned());
                    done.left.push(format!("{} does not become {to}: {means}", one.instance));
                    self.refused.insert(one.instance.clone());
                    refused.push(one.clone());
                }
            }
        }
        if !refused.is_empty() {
            given.retain(|one| !refused.contains(one));
            self.write(boot, &given)?;
        }
        Ok(done)
    }

    /// All CPUs but these have what they had. What stays as it is, as it saves energy.
    fn restore(
        &self,
        machine: &dyn MachineKnobs,
        boot: &str,
        idle: &CpuSet,
    ) -> Result<(Vec<Given>, Followed), Failure> {
        let mut done = Followed::default();
        let (stays, back): (Vec<Given>, Vec<Given>) =
            self.read(boot)?.into_iter().partition(|given| is_idle(machine, &given.instance, idle));
        for given in back.iter().rev() {
            self.put_back(machine, given, &mut done);
        }
        if !back.is_empty() {
            self.write(boot, &stays)?;
        }
        Ok((stays, done))
    }

    /// What stands there and is neither ours nor as before is somebody else's.
    fn put_back(&self, machine: &dyn MachineKnobs, given: &Given, done: &mut Followed) {
        let (Some((row, to)), Ok(now)) = (row_of(given), machine.read(&given.instance)) else { return };
        if row.same(&now, &given.before) {
            return;
        }
        if !row.same(&now, to) {
            done.left.push(format!(
                "{} stays {}: it was changed to that meanwhile",
                given.instance,
                row.plain(&now)
            ));
            return;
        }
        match machine.write(&given.instance, &given.before) {
            Ok(()) => done.restored = done.restored.union(&given.instance.cpu().into_iter().collect()),
            Err(errno) => {
                let reason = kernel::describe(errno);
                done.left.push(format!("{} stays {to}: {reason}", given.instance));
            }
        }
    }

    fn read(&self, boot: &str) -> Result<Vec<Given>, Failure> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", error.to_string())),
        };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| self.failed("read", error.to_string()))?;
        Ok(if record.boot == boot { record.given } else { Vec::new() })
    }

    /// At once: a kill leaves the old file or the new one.
    fn write(&self, boot: &str, given: &[Given]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| self.failed("write to", error.to_string());
        if given.is_empty() {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text =
            serde_json::to_vec(&Record { boot: boot.to_owned(), given: given.to_vec() }).unwrap_or_default();
        let new = self.path.with_extension("new");
        if let Some(above) = self.path.parent() {
            std::fs::create_dir_all(above).map_err(failed)?;
        }
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &self.path)).map_err(failed)
    }

    fn failed(&self, what: &'static str, reason: String) -> Failure {
        Failure::State { what, path: self.path.clone(), reason, hint: None }
    }
}

/// CPUs that no layout in effect leaves idle have what they had: who takes back a layout does not leave that to a daemon, which may
/// not run. In words: what stays.
pub(crate) fn give_back(state: &State, target: Target<'_>) -> Vec<String> {
    let (frequencies, boot) = (Frequencies::of(state), target.system.boot());
    let restore = || {
        if frequencies.read(&boot)?.is_empty() {
            return Ok(Vec::new());
        }
        let scopes = layout_in_effect(state, target)?.map(|head| head.upkeep.elastic).unwrap_or_default();
        let (_, done) = frequencies.restore(target.system.knobs(), &boot, &idle_cpus(target, &scopes))?;
        Ok(done.left)
    };
    restore().unwrap_or_else(|failure: Failure| {
        vec![format!("frequencies of CPUs stay as power saving left them: {failure}")]
    })
}

fn is_idle(machine: &dyn MachineKnobs, instance: &Instance, idle: &CpuSet) -> bool {
    instance.cpu().is_some_and(|cpu| idle.contains(cpu) && domain(machine, cpu).is_subset(idle))
}

fn row_of(given: &Given) -> Option<(&'static Knob, &'static str)> {
    let (knob, to) = ROWS.into_iter().find(|(knob, _)| *knob == given.knob)?;
    Some((knobs::find(knob)?, to))
}

/// The CPUs whose frequency is the same as this one's.
fn domain(machine: &dyn MachineKnobs, cpu: usize) -> CpuSet {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/related_cpus");
    let text = machine.read(&Instance::File(path)).unwrap_or_default();
    let all: CpuSet = text.split_whitespace().filter_map(|one| one.parse::<usize>().ok()).collect();
    if all.is_empty() { CpuSet::range(cpu, cpu) } else { all }
}

/// The CPUs that power saving leaves idle where their frequencies are to follow: what general groups share and do not have now,
/// without those that other groups of the layout may use.
pub fn idle_cpus(target: Target<'_>, scopes: &[Scope]) -> CpuSet {
    let mut idle = CpuSet::new();
    for scope in scopes.iter().filter(|scope| scope.frequency) {
        let Some(named) = &scope.saving else { continue };
        let of_group = |one: &policy::Elastic| {
            let group = GroupName::new(scope.directory(one)).ok()?;
            cpus_of(target.host, &group).ok()
        };
        let sets: Vec<CpuSet> = scope.groups.iter().filter_map(of_group).collect();
        if sets.is_empty() {
            continue;
        }
        let others = scopes.iter().filter(|other| other.saving.is_none()).map(|other| &other.pool);
        let used = sets.iter().chain(others).fold(named.clone(), |all, set| all.union(set));
        idle = idle.union(&scope.pool.difference(&used));
    }
    idle
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// A machine of four CPUs, of which the last two share their frequency.
    struct World {
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            let world = World { directory: tempfile::tempdir().unwrap() };
            for cpu in 0..4 {
                world.set(cpu, "scaling_governor", if cpu == 1 { "performance" } else { "schedutil" });
                world.set(cpu, "energy_performance_preference", "balance_performance");
                world.set(cpu, "related_cpus", if cpu < 2 { ["0", "1"][cpu] } else { "2 3" });
            }
            world
        }

        fn file(&self, cpu: usize, name: &str) -> PathBuf {
            self.directory.path().join(format!("root/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"))
        }

        fn set(&self, cpu: usize, name: &str, text: &str) {
            let file = self.file(cpu, name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }

        /// Governor and preference of each CPU.
        fn all(&self) -> Vec<(String, String)> {
            let read = |cpu, name: &str| fs::read_to_string(self.file(cpu, name)).unwrap().trim().to_owned();
            (0..4)
                .map(|cpu| (read(cpu, "scaling_governor"), read(cpu, "energy_performance_preference")))
                .collect()
        }

        fn machine(&self) -> Tree {
            Tree { root: self.directory.path().join("root"), refuses: false }
        }

        fn frequencies(&self) -> Frequencies {
            Frequencies {
                path: self.directory.path().join("elastic/frequencies.json"),
                refused: BTreeSet::new(),
            }
        }

        fn follow(&self, idle: &str) -> Followed {
            self.frequencies().follow(&self.machine(), "boot", &idle.parse().unwrap()).unwrap()
        }

        fn has_record(&self) -> bool {
            Path::new(&self.frequencies().path).exists()
        }
    }

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn cpus_that_are_left_idle_save_energy_and_have_what_they_had_when_they_are_used() {
        let world = World::new();
        let first = world.all();
        let done = world.follow("1-3");
        assert_eq!((done.saving, done.left), (cpus("1-3"), Vec::new()));
        let saving = ("powersave".to_owned(), "power".to_owned());
        assert_eq!(world.all()[1..], [saving.clone(), saving.clone(), saving.clone()]);
        assert_eq!(world.all()[0], first[0]);
        assert_eq!(world.follow("1-3"), Followed::default(), "it is so");
        // CPU 3 is used, and CPU 2 has its frequency
        assert_eq!(world.follow("1-2").restored, cpus("2-3"));
        assert_eq!((&world.all()[1], &world.all()[2..]), (&saving, &first[2..]));
        assert_eq!(world.follow("").restored, cpus("1"));
        assert_eq!(world.all(), first);
        assert!(!world.has_record());
    }

    #[test]
    fn who_comes_after_a_crash_puts_back_what_was_there_and_after_a_boot_nothing_is_ours() {
        let world = World::new();
        let first = world.all();
        world.follow("1");
        // a kill between the record and the writes: only a part of them was made
        world.set(1, "energy_performance_preference", "balance_performance");
        let done = world.follow("");
        assert_eq!((done.restored, done.left), (cpus("1"), Vec::new()));
        assert_eq!(world.all(), first);
        world.follow("1");
        let after_boot = world.frequencies().follow(&world.machine(), "other boot", &CpuSet::new()).unwrap();
        assert_eq!(after_boot, Followed::default());
        assert_eq!(world.all()[1].0, "powersave", "it was there at the boot");
    }

    #[test]
    fn what_somebody_else_set_meanwhile_stays_and_is_named() {
        let world = World::new();
        world.follow("0");
        world.set(0, "scaling_governor", "ondemand");
        let done = world.follow("");
        let file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        assert_eq!(done.left, [format!("{file} stays ondemand: it was changed to that meanwhile")]);
        assert_eq!(world.all()[0], ("ondemand".to_owned(), "balance_performance".to_owned()));
    }

    #[test]
    fn a_machine_without_frequencies_has_none_changed() {
        let world = World::new();
        fs::remove_dir_all(world.directory.path().join("root")).unwrap();
        assert_eq!(world.follow("0-3"), Followed::default());
        assert!(!world.has_record());
    }

    /// A copy of the machine's files. A write of sysfs is the whole text, whatever was there before.
    struct Tree {
        root: PathBuf,
        /// Has no governor powersave.
        refuses: bool,
    }

    impl MachineKnobs for Tree {
        fn look(&self, knob: &Knob) -> Vec<knobs::Seen> {
            crate::KnobFiles::below(&self.root).look(knob)
        }
        fn read(&self, instance: &Instance) -> Result<String, rustix::io::Errno> {
            crate::KnobFiles::below(&self.root).read(instance)
        }
        fn write(&self, instance: &Instance, text: &str) -> Result<(), rustix::io::Errno> {
            if self.refuses && text == "powersave" {
                return Err(rustix::io::Errno::INVAL);
            }
            let file = self.root.join(instance.to_string().trim_start_matches('/'));
            assert!(file.is_file(), "{instance}");
            fs::write(file, format!("{text}\n")).unwrap();
            Ok(())
        }
        fn command_line(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_refusal_is_named_once_and_leaves_the_rest() {
        let world = World::new();
        let first = world.all();
        let (machine, mut frequencies) = (Tree { refuses: true, ..world.machine() }, world.frequencies());
        let done = frequencies.follow(&machine, "boot", &cpus("0")).unwrap();
        assert!(done.left.len() == 1 && done.left[0].contains("the CPU has no such governor"), "{done:?}");
        assert_eq!(world.all()[0], ("schedutil".to_owned(), "power".to_owned()));
        assert_eq!(frequencies.follow(&machine, "boot", &cpus("0")).unwrap(), Followed::default());
        frequencies.follow(&machine, "boot", &CpuSet::new()).unwrap();
        assert_eq!(world.all(), first);
    }
}
