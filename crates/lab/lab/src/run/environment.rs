//! What can change a result, as this machine says it. Reads only; what is not reported is left out.

use std::{fs, time::SystemTime};

use experiment::results::Environment;
use kernel::Host;
use topology::Machine;

/// The machine now, with the versions of the programs that are used.
pub(crate) fn environment(host: &Host, machine: &Machine, versions: &[(String, String)]) -> Environment {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    let uname = rustix::system::uname();
    add(
        "kernel",
        Some(format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())),
    );
    add("kernel build", Some(uname.version().to_string_lossy().into_owned()));
    add("command line", read("/proc/cmdline"));
    add("CPU model", machine.model_name.clone().or_else(|| field("/proc/cpuinfo", "model name")));
    let cores = machine.core_count().map(|cores| format!(", {cores} cores")).unwrap_or_default();
    add("CPUs", Some(format!("{} ({} online{cores})", machine.online(), machine.online().len())));
    add("NUMA nodes", Some(machine.nodes.len().max(1).to_string()));
    add("memory", field("/proc/meminfo", "MemTotal"));
    add("swap", field("/proc/meminfo", "SwapTotal"));
    add("mitigations", mitigations());
    add("governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add("SMT", read("/sys/devices/system/cpu/smt/control"));
    add("turbo off", read("/sys/devices/system/cpu/intel_pstate/no_turbo"));
    add("boost", read("/sys/devices/system/cpu/cpufreq/boost"));
    add("isolated CPUs", read("/sys/devices/system/cpu/isolated"));
    add("transparent huge pages", read("/sys/kernel/mm/transparent_hugepage/enabled"));
    add("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    add("preemption", read("/sys/kernel/debug/sched/preempt"));
    add("NUMA balancing", read("/proc/sys/kernel/numa_balancing"));
    add("swappiness", read("/proc/sys/vm/swappiness"));
    add("hypervisor", hypervisor());
    let hierarchies = host
        .hierarchies()
        .iter()
        .map(|at| format!("{} (cgroup {}) at {}", at.label(), at.version, at.mount.display()));
    add("cgroups", Some(hierarchies.collect::<Vec<_>>().join("; ")));
    add(
        "distribution",
        field_of("/etc/os-release", "PRETTY_NAME=").map(|name| name.trim_matches('"').to_owned()),
    );
    for (program, version) in versions {
        add(program, Some(version.clone()));
    }
    add("ringfence", Some(env!("CARGO_PKG_VERSION").to_owned()));
    Environment { began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(), facts }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

fn field_of(path: &str, start: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned)
}

/// What the kernel does against the CPU's faults; those that do not affect it are left out.
fn mitigations() -> Option<String> {
    let directory = fs::read_dir("/sys/devices/system/cpu/vulnerabilities").ok()?;
    let mut all: Vec<String> = directory
        .flatten()
        .filter_map(|entry| {
            let state = read(entry.path().to_str()?)?;
            (state != "Not affected").then(|| format!("{}: {state}", entry.file_name().to_string_lossy()))
        })
        .collect();
    all.sort();
    Some(if all.is_empty() { "none needed".to_owned() } else { all.join("; ") })
}

fn hypervisor() -> Option<String> {
    let name = read("/sys/class/dmi/id/product_name").filter(|name| !name.is_empty());
    let flags = field("/proc/cpuinfo", "flags")?;
    let is_virtual = flags.split_whitespace().any(|flag| flag == "hypervisor");
    is_virtual.then(|| name.unwrap_or_else(|| "yes".to_owned()))
}
