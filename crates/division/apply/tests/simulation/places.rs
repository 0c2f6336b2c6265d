//! The knobs of a machine in memory: what their files take and show, threads of the kernel, and what partitions do to these.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use fake::Fake;
use kernel::Kernel;
use rustix::io::Errno;
use settings::{
    Version,
    knobs::{self, Encoding, Instance, KNOBS, Knob, Per, Seen},
};
use units::CpuSet;

use crate::{machine::Faults, random::Random};

/// One place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub knob: &'static str,
    pub text: String,
    /// What the kernel says to every write.
    pub refuses: Option<Errno>,
}

#[derive(Debug, Default)]
struct State {
    places: BTreeMap<Instance, Place>,
    /// The CPUs that are no partition's.
    effective: Option<CpuSet>,
}

/// All places, which outlive the commands.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<Mutex<State>>);

/// What threads are made of, by number and name.
pub const KTHREADD: u32 = 2;

pub fn thread(number: u32, comm: &str) -> Instance {
    Instance::Thread { thread: number, started: u64::from(number) * 10, comm: comm.to_owned() }
}

impl Places {
    /// A machine with some of each kind.
    pub fn random(random: &mut Random) -> Places {
        let places = Places::default();
        let add = |knob: &'static str, path: String, text: &str, refuses: Option<Errno>| {
            places.add(knob, Instance::File(path), text, refuses);
        };
        for irq in 0..16 + random.below(12) {
            let managed = random.chance(15).then_some(Errno::IO);
            let text = random.pick(&["0-3", "0-3", "0-1", "3", "2-3"]);
            add("interrupts", format!("/proc/irq/{irq}/smp_affinity_list"), text, managed);
        }
        add("interrupt-default", "/proc/irq/default_smp_affinity".to_owned(), "f", None);
        add("workqueues", "/sys/devices/virtual/workqueue/cpumask".to_owned(), "f", None);
        for queue in ["writeback", "nvme-wq", "raid5wq"] {
            let refuses = random.chance(20).then_some(Errno::INVAL);
            add("workqueue-masks", format!("/sys/devices/virtual/workqueue/{queue}/cpumask"), "f", refuses);
        }
        for queue in 0..3 {
            let at = format!("/sys/class/net/eth0/queues/rx-{queue}/rps_cpus");
            add("receive-steering", at, random.pick(&["0", "f", "8"]), None);
            let at = format!("/sys/class/net/eth0/queues/tx-{queue}/xps_cpus");
            add("transmit-steering", at, random.pick(&["1", "c", "0"]), None);
        }
        add("watchdog", "/proc/sys/kernel/watchdog_cpumask".to_owned(), "0-3", None);
        for cpu in 0..4 {
            let at = |rest: &str| format!("/sys/devices/system/cpu/cpu{cpu}/{rest}");
            add("wake-up-latency", at("power/pm_qos_resume_latency_us"), "0", None);
            add("governor", at("cpufreq/scaling_governor"), "schedutil", None);
            let busy = random.chance(30).then_some(Errno::BUSY);
            add(
                "energy-preference",
                at("cpufreq/energy_performance_preference"),
                "balance_performance",
                busy,
            );
        }
        for knob in KNOBS.iter().filter(|knob| knob.is_of_machine() && !knob.path.contains('*')) {
            let text = match knob.encoding {
                Encoding::Choice => "[always] madvise never",
                _ => "3",
            };
            add(knob.name, knob.path.to_owned(), text, None);
        }
        for (at, name) in ["kthreadd", "kswapd0", "jbd2/vda1-8", "kauditd", "khugepaged"].iter().enumerate() {
            places.add("kernel-threads", thread(KTHREADD + at as u32, name), "0-3", None);
        }
        for number in 20..20 + random.below(6) as u32 {
            let text = random.pick(&["0-1", "0-3", "3"]);
            places.add("kernel-threads", thread(number, "kworker/u8"), text, None);
        }
        places
    }

    pub fn add(&self, knob: &'static str, instance: Instance, text: &str, refuses: Option<Errno>) {
        let place = Place { knob, text: text.to_owned(), refuses };
        self.0.lock().unwrap().places.insert(instance, place);
    }

    pub fn remove(&self, instance: &Instance) {
        self.0.lock().unwrap().places.remove(instance);
    }

    pub fn all(&self) -> BTreeMap<Instance, Place> {
        self.0.lock().unwrap().places.clone()
    }

    pub fn texts(&self) -> BTreeMap<Instance, String> {
        self.all().into_iter().map(|(instance, place)| (instance, place.text)).collect()
    }

    pub fn write(&self, instance: &Instance, text: &str) -> Result<(), Errno> {
        let mut state = self.0.lock().unwrap();
        let Some(place) = state.places.get_mut(instance) else {
            return Err(if matches!(instance, Instance::File(_)) { Errno::NOENT } else { Errno::SRCH });
        };
        if let Some(errno) = place.refuses {
            return Err(errno);
        }
        place.text = taken(knobs::find(place.knob).unwrap(), &place.text, text)?;
        Ok(())
    }

    /// A partition that came or went gives every thread of the root group the CPUs that are left (`update_tasks_cpumask`
    /// of `kernel/cgroup/cpuset.c`).
    pub fn partitioned(&self, fake: &Fake) {
        let hierarchies = fake.hierarchies().unwrap();
        let Some(at) = hierarchies.iter().find(|at| at.version == Version::V2) else { return };
        let text = fake.read(at, "", "cpuset.cpus.effective").ok();
        let Some(now) = text.and_then(|text| text.trim().parse::<CpuSet>().ok()) else { return };
        let mut state = self.0.lock().unwrap();
        if state.effective.replace(now.clone()).is_none_or(|then| then == now) {
            return;
        }
        for (_, place) in state.places.iter_mut().filter(|(_, place)| place.knob == "kernel-threads") {
            place.text = now.to_string();
        }
    }
}

/// What a file shows after a write.
fn taken(knob: &Knob, now: &str, text: &str) -> Result<String, Errno> {
    let all = CpuSet::range(0, 3);
    let text = text.trim();
    let cpus = |set: CpuSet| match set.intersection(&all) {
        set if set.is_empty() && knob.name != "receive-steering" && knob.name != "transmit-steering" => {
            Err(Errno::INVAL)
        }
        set => Ok(set),
    };
    match knob.encoding {
        Encoding::Mask => {
            let set = cpus(CpuSet::from_mask(text).map_err(|_| Errno::INVAL)?)?;
            let bits = set.iter().fold(0u32, |bits, cpu| bits | 1 << cpu);
            Ok(format!("{bits:x}"))
        }
        Encoding::List | Encoding::Affinity => {
            Ok(cpus(text.parse::<CpuSet>().map_err(|_| Errno::INVAL)?)?.to_string())
        }
        Encoding::Choice => {
            let words: Vec<&str> = now.split(' ').map(|word| word.trim_matches(['[', ']'])).collect();
            if !words.contains(&text) {
                return Err(Errno::INVAL);
            }
            let word = |word: &&str| if *word == text { format!("[{word}]") } else { (*word).to_owned() };
            Ok(words.iter().map(word).collect::<Vec<String>>().join(" "))
        }
        _ => Ok(text.to_owned()),
    }
}

/// The places as one command sees them, which may be killed or refused at a write.
#[derive(Debug, Clone, Default)]
pub struct Knobs {
    pub places: Places,
    pub faults: Arc<Faults>,
}

impl apply::MachineKnobs for Knobs {
    fn look(&self, knob: &Knob) -> Vec<Seen> {
        let all = self.places.all().into_iter().filter(|(_, place)| place.knob == knob.name);
        let seen = |(instance, place): (Instance, Place)| Seen {
            knob: knob.name.to_owned(),
            instance,
            text: place.text,
            before: None,
            fixed: false,
            read_only: None,
        };
        let mut seen: Vec<Seen> = all.map(seen).collect();
        if knob.per == Per::Thread {
            seen.sort_by_key(|seen| match seen.instance {
                Instance::Thread { thread, .. } => thread,
                _ => 0,
            });
        }
        seen
    }

    fn read(&self, instance: &Instance) -> Result<String, Errno> {
        let gone = if matches!(instance, Instance::File(_)) { Errno::NOENT } else { Errno::SRCH };
        self.places.all().get(instance).map(|place| place.text.clone()).ok_or(gone)
    }

    fn write(&self, instance: &Instance, text: &str) -> Result<(), Errno> {
        self.faults.plain(|| self.places.write(instance, text))
    }

    fn command_line(&self) -> String {
        "quiet".to_owned()
    }
}
