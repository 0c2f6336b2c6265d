"""What the machine has of all that isolation may change, a line each: what, where, value. For comparisons: see tuned.sh.

state.py                    prints it
state.py compare A B [C]    prints how B differs from A; C is like A, from some seconds later: what differs there changes by itself
"""

import glob
import hashlib
import os
import sys

FILES = """
/proc/sys/**
/proc/irq/default_smp_affinity
/proc/irq/*/smp_affinity_list
/sys/devices/virtual/workqueue/**
/sys/bus/workqueue/devices/*/cpumask
/sys/devices/system/machinecheck/*/*
/sys/devices/system/cpu/smt/control
/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us
/sys/devices/system/cpu/cpu*/cpuidle/state*/disable
/sys/devices/system/cpu/cpu*/cpufreq/*
/sys/kernel/mm/**
/sys/kernel/debug/sched/**
/sys/class/net/*/queues/*/*ps_cpus
/sys/class/net/*/threaded
/sys/block/*/queue/*
/sys/module/kvm*/parameters/*
/sys/fs/cgroup/cpuset.cpus.isolated
/sys/fs/cgroup/*/cpuset.cpus*
/sys/fs/cgroup/*/*/cpuset.cpus*
""".split()
# figures, not settings
COUNTS = (
    "/proc/sys/fs/",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/vm/stat_refresh",
    "/proc/sys/vm/drop_caches",
    "/sys/kernel/debug/sched/debug",
    "/sys/kernel/debug/sched/domains",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed",
    "/sys/kernel/mm/transparent_hugepage/hugepages-",
    "/sys/kernel/mm/hugepages/",
    "/sys/kernel/mm/ksm/full_scans",
    "/sys/kernel/mm/swap/",
)
BOUND = 0x04000000  # PF_NO_SETAFFINITY
KERNEL = 0x00200000  # PF_KTHREAD


def line(kind, place, value):
    print(kind, place, value.strip().replace("\t", " ").replace("\n", "\\n"), sep="\t")


def places(pattern):
    if not pattern.endswith("/**"):
        return glob.iglob(pattern)
    # no link is followed: some lead back up
    return (os.path.join(directory, name) for directory, _, names in os.walk(pattern[:-3]) for name in names)


def files():
    for pattern in FILES:
        for path in places(pattern):
            if os.path.isfile(path) and not path.startswith(COUNTS) and os.access(path, os.R_OK):
                try:
                    with open(path, "rb") as file:
                        line("file", path, file.read(65536).decode("utf-8", "replace"))
                except OSError as error:
                    line("file", path, f"errno {error.errno}")


def configuration():
    for directory, _, names in os.walk("/etc"):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not path.startswith(("/etc/tuned/", "/etc/ringfence/")):
                with open(path, "rb") as file:
                    line("file", path, hashlib.sha256(file.read()).hexdigest())


def tasks():
    for stat in glob.iglob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(stat) as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            with open(stat + "us") as file:
                cpus = next(text for text in file if text.startswith("Cpus_allowed_list")).split()[1]
        except (OSError, StopIteration):
            continue  # it has ended
        field = rest.split()
        flags, nice, started, priority, policy = (int(field[number]) for number in (6, 16, 19, 37, 38))
        kind = "bound" if flags & BOUND else "thread" if flags & KERNEL else "process"
        if kind == "process":
            # a database's process has another command line after each command
            name = name if not name.startswith("postgres") else "postgres"
        elif name.startswith("kworker"):
            continue  # its CPUs are those of its queue's mask, which is a file
        _, _, pid, _, tid, _ = stat.split("/")
        line(kind, f"{pid}/{tid} {started} {name}", f"CPUs {cpus} policy {policy} priority {priority} nice {nice}")


def read(path):
    with open(path) as file:
        rows = (text.rstrip("\n").split("\t") for text in file)
        return {(kind, place): value for kind, place, value in rows}


def compare(before, after, settled):
    everything = "CPUs " + open("/sys/devices/system/cpu/online").read().strip() + " "
    differs = {"file": [], "old": [], "born": []}
    for key, value in after.items():
        kind, place = key
        then = before.get(key)
        if then is not None and settled.get(key) != then:
            continue
        if then is None and kind in ("process", "thread"):
            # who was born meanwhile has what its parents had before: every CPU
            if not value.startswith(everything):
                differs["born"].append(f"{place}: {value}")
        elif then is not None and then != value:
            differs["file" if kind == "file" else "old"].append(f"{place}: {then}, now {value}")
    gone = [f"{place}: gone" for kind, place in before if kind == "file" and (kind, place) not in after]
    differs["file"] += [text for text in gone if "/proc/irq/" not in text and "/workqueue/" not in text]
    for kind, rows in differs.items():
        for row in rows:
            print(kind, row, sep="\t")


if len(sys.argv) == 1:
    files()
    configuration()
    tasks()
else:
    first, second = read(sys.argv[2]), read(sys.argv[3])
    compare(first, second, read(sys.argv[4]) if len(sys.argv) > 4 else first)
