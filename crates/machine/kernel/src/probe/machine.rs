//! What is seen outside the hierarchies, in `/proc` and `/sys`: real-time throttling, pressure, swap, huge
//! pages, NUMA balancing, SMT, isolation, clocks and disks. Only reads.

use std::collections::BTreeMap;

use topology::facts::{Cpus, Disk, HugePages, Memory, Pressure, Realtime, Swap};
use units::{Bytes, CpuSet, Limit, Micros};

use super::Outside;

pub(super) fn realtime(proc: &Outside<'_>) -> Realtime {
    let runtime: Option<i64> = proc.number("/proc/sys/kernel/sched_rt_runtime_us");
    Realtime {
        // -1 is the kernel's way to say "no limit"
        runtime: runtime.map(|us| u64::try_from(us).map_or(Limit::Max, |us| Limit::At(Micros(us)))),
        period: proc.number("/proc/sys/kernel/sched_rt_period_us").map(Micros),
        root: None,
    }
}

pub(super) fn pressure(proc: &Outside<'_>) -> Pressure {
    let readable = |name: &&str| proc.exists(&format!("/proc/pressure/{name}"));
    Pressure {
        readable: ["cpu", "io", "memory", "irq"].into_iter().filter(readable).map(str::to_owned).collect(),
    }
}

pub(super) fn memory(proc: &Outside<'_>) -> Memory {
    Memory {
        swaps: swaps(&proc.text("/proc/swaps").unwrap_or_default()),
        swappiness: proc.number("/proc/sys/vm/swappiness"),
        huge_pages: huge_pages(proc),
        nodes: proc.text("/sys/devices/system/node/has_memory").and_then(|list| list.parse().ok()),
        numa_balancing: proc.number("/proc/sys/kernel/numa_balancing"),
    }
}

fn swaps(text: &str) -> Vec<Swap> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut kib = |skip: usize| Some(Bytes(words.nth(skip)?.parse::<u64>().ok()?.saturating_mul(1024)));
        Some(Swap { name, size: kib(1)?, used: kib(0)? })
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// Every architecture's sizes are powers of two between these (64K on arm64 to 16G on ppc64).
fn huge_pages(proc: &Outside<'_>) -> Vec<HugePages> {
    let one = |shift: u32| {
        let kib = 1u64 << shift;
        let pages = proc.number(&format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"))?;
        Some(HugePages { size: Bytes(kib * 1024), pages })
    };
    (6..=24).filter_map(one).collect()
}

pub(super) fn cpus(proc: &Outside<'_>) -> Cpus {
    let online = proc.cpus("/sys/devices/system/cpu/online");
    Cpus {
        smt_control: proc.text("/sys/devices/system/cpu/smt/control"),
        smt_active: proc.text("/sys/devices/system/cpu/smt/active").map(|flag| flag == "1"),
        isolated: proc.cpus("/sys/devices/system/cpu/isolated"),
        nohz_full: proc.cpus("/sys/devices/system/cpu/nohz_full"),
        governors: online.as_ref().map(|online| governors(proc, online)).unwrap_or_default(),
        idle_states: named(proc, |state| format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/name")),
        energy: named(proc, |zone| format!("/sys/class/powercap/intel-rapl:{zone}/name")),
        online,
    }
}

/// Names in files that are counted from 0 on.
fn named(proc: &Outside<'_>, path: impl Fn(usize) -> String) -> Vec<String> {
    (0..).map_while(|number| proc.text(&path(number))).collect()
}

/// Where the first CPU has no governor none has: hundreds of vain opens are spared.
fn governors(proc: &Outside<'_>, online: &CpuSet) -> BTreeMap<String, CpuSet> {
    let mut found: BTreeMap<String, CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        let Some(governor) = proc.text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
        else {
            break;
        };
        found.entry(governor).or_default().insert(cpu);
    }
    found
}

/// The disks of `/proc/partitions`, which leaves out empty loop devices and hidden paths.
pub(super) fn disks(proc: &Outside<'_>, iocost: &[String]) -> Vec<Disk> {
    let mut disks: Vec<Disk> = Vec::new();
    for line in proc.text("/proc/partitions").unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [major, minor, _, name] = words[..] else { continue };
        if major.parse::<u32>().is_err() {
            continue; // the heading
        }
        // sysfs writes a slash of a name (`cciss/c0d0`) as an exclamation mark
        let at = format!("/sys/class/block/{}", name.replace('/', "!"));
        if proc.exists(&format!("{at}/partition")) {
            // a partition's directory is in its disk's, and the kernel lists it after the disk
            let disk = proc.text(&format!("{at}/../dev"));
            if let Some(disk) = disks.iter_mut().find(|known| Some(&known.number) == disk.as_ref()) {
                disk.partitions.push(name.to_owned());
            }
            continue;
        }
        let number = format!("{major}:{minor}");
        let (scheduler, offered) =
            schedulers(&proc.text(&format!("{at}/queue/scheduler")).unwrap_or_default());
        let iocost = iocost.contains(&number);
        disks.push(Disk {
            name: name.to_owned(),
            number,
            scheduler,
            offered,
            partitions: Vec::new(),
            iocost,
        });
    }
    disks
}

/// `none [mq-deadline] kyber`: the one in brackets is in use; a single word without stands for itself.
fn schedulers(list: &str) -> (Option<String>, Vec<String>) {
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let offered: Vec<String> = list.split_whitespace().map(plain).collect();
    let marked = list.split_whitespace().find(|word| word.starts_with('[')).map(plain);
    (marked.or_else(|| offered.first().cloned()), offered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_areas_are_read_in_bytes() {
        let text =
            "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/vdb   partition\t65532\t\t1024\t\t-2\n";
        let swap = Swap { name: "/dev/vdb".to_owned(), size: Bytes(65532 << 10), used: Bytes(1 << 20) };
        assert_eq!(swaps(text), [swap]);
        assert_eq!(swaps(""), []);
    }

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (used, offered) = schedulers("none [mq-deadline] kyber bfq");
        assert_eq!(
            (used.as_deref(), offered),
            (Some("mq-deadline"), words(&["none", "mq-deadline", "kyber", "bfq"]))
        );
        assert_eq!(schedulers("none"), (Some("none".to_owned()), words(&["none"])));
        assert_eq!(schedulers(""), (None, Vec::new()));
    }
}
